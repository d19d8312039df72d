package native

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
)

// MaxValue is the size of the largest element or entry, 1 GiB. A larger one is
// neither written nor read.
const MaxValue = 1 << 30

// maxDepth is how deep the maps and arrays of a value may nest for [Append].
const maxDepth = 1000

var (
	// errShort: the bytes end inside a value.
	errShort = errors.New("the value is cut short")
	// errCode: a byte that starts no value.
	errCode = format.Errorf(format.ErrCorrupt, "the byte 0xc1, which starts no msgpack value")
)

// shape reads what stands at the start of p, n bytes of it, and how many
// values follow that belong to it. A length that goes beyond p is errShort.
//
//	first byte   meaning                          then
//	00–7f e0–ff  small integer                    nothing
//	80–8f        map of the low 4 bits            that many keys and values
//	90–9f        array of the low 4 bits          that many values
//	a0–bf        string of the low 5 bits         that many bytes
//	c0 c2 c3     nil, false, true                 nothing
//	c1           never used
//	c4 c5 c6     binary                           u8, u16 or u32 length, bytes
//	c7 c8 c9     extension                        u8, u16 or u32 length, a type, bytes
//	ca cb        float                            4, 8 bytes
//	cc–cf d0–d3  unsigned, signed integer         1, 2, 4, 8 bytes
//	d4–d8        extension                        a type, 1, 2, 4, 8, 16 bytes
//	d9 da db     string                           u8, u16 or u32 length, bytes
//	dc dd        array                            u16 or u32 count, values
//	de df        map                              u16 or u32 count, keys and values
//
// All numbers are big-endian. Wire format: never change.
func shape(p []byte) (n int, inside int64, err error) {
	if len(p) == 0 {
		return 0, 0, errShort
	}
	c := p[0]
	head, size, count := 1, int64(0), int64(0)
	length := func(width int) int64 { // of width bytes behind the first
		head += width
		if len(p) < head {
			err = errShort
			return 0
		}
		var wide [8]byte
		copy(wide[8-width:], p[1:head])
		return int64(binary.BigEndian.Uint64(wide[:]))
	}
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
	case c <= 0x8f:
		count = 2 * int64(c&0x0f)
	case c <= 0x9f:
		count = int64(c & 0x0f)
	case c <= 0xbf:
		size = int64(c & 0x1f)
	case c == 0xc1:
		err = errCode
	case c <= 0xc6:
		size = length(1 << (c - 0xc4))
	case c <= 0xc9:
		size = length(1<<(c-0xc7)) + 1
	case c <= 0xcb:
		size = 4 << (c - 0xca)
	case c <= 0xcf:
		size = 1 << (c - 0xcc)
	case c <= 0xd3:
		size = 1 << (c - 0xd0)
	case c <= 0xd8:
		size = 1 + 1<<(c-0xd4)
	case c <= 0xdb:
		size = length(1 << (c - 0xd9))
	case c <= 0xdd:
		count = length(2 << (c - 0xdc))
	default:
		count = 2 * length(2<<(c-0xde))
	}
	if err == nil && size > int64(len(p)-head) {
		err = errShort
	}
	if err != nil {
		return 0, 0, err
	}
	return head + int(size), count, nil
}

// size is the length of the value at the start of p. It does not recurse: the
// depth of what it walks is the file's.
func size(p []byte) (int, error) {
	at := 0
	for left := int64(1); left > 0; {
		n, inside, err := shape(p[at:])
		if err != nil {
			return 0, err
		}
		at += n
		left += inside - 1
		if left > int64(len(p)-at) { // a value has a byte at least
			return 0, errShort
		}
	}
	return at, nil
}

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
		return format.Errorf(format.ErrCorrupt, "%d bytes behind a msgpack value of %d", len(p)-n, n)
	}
	return nil
}

// checkMap fails unless p, which is one value, is a map whose keys ascend by
// their bytes. The error matches format.ErrCorrupt.
func checkMap(p []byte) error {
	if !isMap(p[0]) {
		return format.Errorf(format.ErrCorrupt, "a map is expected, and a msgpack value of code 0x%02x stands there", p[0])
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

func isMap(c byte) bool   { return c&0xf0 == 0x80 || c == 0xde || c == 0xdf }
func isArray(c byte) bool { return c&0xf0 == 0x90 || c == 0xdc || c == 0xdd }

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
// structs included, stand in the order of the bytes of their encoded keys; two
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

// Marshal is [Append] to nothing.
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

// AppendMapHeader appends what stands before the n entries of a map.
func AppendMapHeader(dst []byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, 0x80|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, 0xde), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xdf), uint32(n))
}
