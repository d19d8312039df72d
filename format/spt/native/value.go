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

// MaxValue is the size of the largest element or entry, 1 GiB. A larger one is
// neither written nor read.
const MaxValue = 1 << 30

// maxDepth is how deep the maps and arrays of a value may nest for [Append].
const maxDepth = 1000

// errShort: the bytes end inside a value.
var errShort = msg.ErrShort

// shape, size, isMap and isArray are those of package msg; a byte that starts no
// value is an ErrCorrupt here.
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

// check fails unless p is exactly one msgpack value. The error matches
// format.ErrCorrupt.
func check(p []byte) error {
	n, err := size(p)
	switch {
	case errors.Is(err, errShort):
		return format.Errorf(format.ErrCorrupt, "a msgpack value that does not end within its %d bytes", len(p))
	case err != nil:
		return err
	case n < len(p):
		return format.Errorf(format.ErrCorrupt, "%d bytes after a msgpack value of %d", len(p)-n, n)
	}
	return nil
}

// checkMap fails unless p, which is one value, is a map whose keys ascend by
// their bytes. The error matches format.ErrCorrupt.
func checkMap(p []byte) error {
	if !isMap(p[0]) {
		return errNoMap(p[0])
	}
	var last []byte
	n := 0
	return eachPair(p, func(key, _ []byte) error {
		if n > 0 && bytes.Compare(last, key) >= 0 {
			return format.Errorf(format.ErrCorrupt, "the keys of the map do not ascend at entry %d", n)
		}
		last = key
		n++
		return nil
	})
}

func errNoMap(code byte) error {
	return format.Errorf(format.ErrCorrupt, "expected a map, found msgpack code 0x%02x", code)
}

// eachPair walks a map that is one value.
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

// Append appends v as msgpack. Equal values give equal bytes: integers take
// the shortest form whatever their Go type, and the entries of every map,
// structs included, are in the order of the bytes of their encoded keys; two
// that are equal are an error. Else it is what package msgpack makes of v, its
// struct tags and encoder interfaces included. A [msgpack.RawMessage] is taken
// as it is if it is one value.
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
	if err := checkNew(made); err != nil { // an encoder interface may write anything
		return dst, err
	}
	if _, err := sortMaps(made, 0); err != nil {
		return dst, err
	}
	return w.p, nil
}

func checkNew(p []byte) error {
	if len(p) > MaxValue {
		return format.Errorf(format.ErrLimit, "a value of %d bytes, over the limit of %d", len(p), MaxValue)
	}
	return check(p)
}

// Marshal returns v as [Append] appends it.
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

// sortMaps puts the maps in the value at the start of p in order, in place,
// and gives its length.
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
			return 0, fmt.Errorf("a map with two keys of the bytes % x", e.key[:min(len(e.key), 32)])
		}
		ordered = append(ordered, e.all...)
	}
	copy(p[start:at], ordered)
	return at, nil
}

// AppendMapHeader appends what precedes the n entries of a map.
func AppendMapHeader(dst []byte, n int) []byte { return msg.AppendMap(dst, n) }
