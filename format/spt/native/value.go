package native

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
)

// MaxValue is the largest size of an element or entry, 1 GiB. Larger ones are
// neither written nor read.
const MaxValue = 1 << 30

// maxDepth limits the nesting of maps and arrays in a value.
const maxDepth = 1000

// errShort: the bytes end within a value.
var errShort = msg.ErrShort

// shape, size, isMap and isArray call package msg. A byte that does not start a
// value is an ErrCorrupt.
func shape(p []byte) (n int, inside int64, err error) {
	n, inside, err = msg.Shape(p)
	return n, inside, kinded(err)
}

func size(p []byte) (int, error) {
	n, err := msg.Size(p)
	return n, kinded(err)
}

func kinded(err error) error {
	if err == msg.ErrCode { //nolint:errorlint // msg wraps nothing
		return format.Errorf(format.ErrCorrupt, "%v", err)
	}
	return err
}

func isMap(c byte) bool   { return msg.IsMap(c) }
func isArray(c byte) bool { return msg.IsArray(c) }

// check returns an error that matches format.ErrCorrupt unless p is exactly one
// msgpack value.
func check(p []byte) error {
	n, err := size(p)
	switch {
	case errors.Is(err, errShort):
		return format.Errorf(format.ErrCorrupt, "a msgpack value does not end within its %d bytes", len(p))
	case err != nil:
		return err
	case n < len(p):
		return format.Errorf(format.ErrCorrupt, "%d bytes after a msgpack value of %d bytes", len(p)-n, n)
	}
	return nil
}

// checkMap returns an error that matches format.ErrCorrupt unless p, which is one
// value, is a map whose keys ascend by their bytes.
func checkMap(p []byte) error {
	if !isMap(p[0]) {
		return errNoMap(p[0])
	}
	var last []byte
	n := 0
	return eachPair(p, func(key, _ []byte) error {
		if n > 0 && bytes.Compare(last, key) >= 0 {
			return format.Errorf(format.ErrCorrupt, "the keys of the map are not in ascending order at entry %d", n)
		}
		last = key
		n++
		return nil
	})
}

func errNoMap(code byte) error {
	return format.Errorf(format.ErrCorrupt, "expected a map, found msgpack code 0x%02x", code)
}

// eachPair calls f with each entry of a map, which is one value.
func eachPair(p []byte, f func(key, value []byte) error) error {
	at, inside, err := shape(p)
	for ; err == nil && inside > 0; inside -= 2 {
		var k, v int
		if k, err = size(p[at:]); err != nil {
			break
		}
		if v, err = size(p[at+k:]); err != nil {
			break
		}
		err = f(p[at:at+k], p[at+k:at+k+v])
		at += k + v
	}
	return err
}

// Append appends v as msgpack. Equal values have equal bytes: integers have the
// shortest encoding, whatever their Go type, and the entries of every map,
// including structs, are sorted by the bytes of their encoded keys; duplicate keys
// are an error. In other respects it encodes as package msgpack does, including
// struct tags and encoder interfaces. A [msgpack.RawMessage] is appended unchanged
// if it is one value.
func Append(dst []byte, v any) ([]byte, error) {
	if raw, ok := v.(msgpack.RawMessage); ok {
		if err := checkNew(raw); err != nil {
			return dst, err
		}
		return append(dst, raw...), nil
	}
	w := appender{p: dst}
	enc := msgpack.GetEncoder()
	defer msgpack.PutEncoder(enc)
	enc.Reset(&w)
	enc.UseCompactInts(true)
	if err := enc.Encode(v); err != nil {
		return dst, err
	}
	made := w.p[len(dst):]
	if err := checkNew(made); err != nil { // custom encoders may write anything
		return dst, err
	}
	if _, err := sortMaps(made, 0); err != nil {
		return dst, err
	}
	return w.p, nil
}

func checkNew(p []byte) error {
	if len(p) > MaxValue {
		return format.Errorf(format.ErrLimit, "a value of %d bytes, the limit is %d", len(p), MaxValue)
	}
	return check(p)
}

// Marshal returns the encoding of v. See [Append].
func Marshal(v any) ([]byte, error) { return Append(nil, v) }

type appender struct{ p []byte }

func (a *appender) Write(p []byte) (int, error) {
	a.p = append(a.p, p...)
	return len(p), nil
}

func (a *appender) WriteByte(c byte) error {
	a.p = append(a.p, c)
	return nil
}

// sortMaps sorts the maps in the value at the start of p in place, and returns the
// length of the value.
func sortMaps(p []byte, depth int) (int, error) {
	at, inside, err := shape(p)
	if err != nil || inside == 0 {
		return at, err
	}
	if depth == maxDepth {
		return 0, format.Errorf(format.ErrLimit, "a value nested more than %d deep", maxDepth)
	}
	if !isMap(p[0]) {
		for range inside {
			n, err := sortMaps(p[at:], depth+1)
			if err != nil {
				return 0, err
			}
			at += n
		}
		return at, nil
	}
	type pair struct{ key, all []byte }
	start := at
	var pairs []pair
	sorted := true
	for ; inside > 0; inside -= 2 {
		k, err := sortMaps(p[at:], depth+1)
		if err != nil {
			return 0, err
		}
		v, err := sortMaps(p[at+k:], depth+1)
		if err != nil {
			return 0, err
		}
		now := pair{key: p[at : at+k], all: p[at : at+k+v]}
		if len(pairs) > 0 && bytes.Compare(pairs[len(pairs)-1].key, now.key) >= 0 {
			sorted = false
		}
		pairs = append(pairs, now)
		at += k + v
	}
	if sorted {
		return at, nil
	}
	slices.SortFunc(pairs, func(a, b pair) int { return bytes.Compare(a.key, b.key) })
	ordered := make([]byte, 0, at-start)
	for i, e := range pairs {
		if i > 0 && bytes.Equal(pairs[i-1].key, e.key) {
			return 0, fmt.Errorf("duplicate map key % x", e.key[:min(len(e.key), 32)])
		}
		ordered = append(ordered, e.all...)
	}
	copy(p[start:at], ordered)
	return at, nil
}

// AppendMapHeader appends the head of a map of n entries.
func AppendMapHeader(dst []byte, n int) []byte { return msg.AppendMap(dst, n) }
