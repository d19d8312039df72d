package native

import (
	"encoding/binary"
	"math"
	"time"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
)

// Decode gives the value that p is, as Go values: nil, bool, int64, or uint64
// where that is too small, float32, float64, string, []byte, []any and
// time.Time. A string that is not UTF-8 comes as []byte, and an extension as a
// map with its "type" and "data". A map comes as map[string]any if its keys are
// strings and none comes twice, else as pairs, [][2]any, in their order.
//
// What nests more than 1000 deep is a format.ErrLimit; more than 2,097,152 values
// in one are a format.ErrUnsupported: each takes many times its bytes. Nothing in
// the result is a view of p.
func Decode(p []byte) (any, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	v, _, err := new(decoder).value(p, 0)
	return v, err
}

// DecodeMap is Decode for a map, which comes as its entries whatever its keys.
func DecodeMap(p []byte) ([]format.Entry, error) {
	if err := check(p); err != nil {
		return nil, err
	}
	if !isMap(p[0]) {
		return nil, format.Errorf(format.ErrCorrupt, "a map is expected, and a msgpack value of code 0x%02x stands there", p[0])
	}
	at, inside, err := shape(p)
	if err != nil {
		return nil, err
	}
	d := new(decoder)
	all := make([]format.Entry, 0, min(inside/2, 4096))
	for range inside / 2 {
		e := format.Entry{Off: at}
		for _, v := range []*any{&e.Key, &e.Value} {
			var n int
			if *v, n, err = d.value(p[at:], 1); err != nil {
				return nil, err
			}
			at += n
		}
		e.End = at
		all = append(all, e)
	}
	return all, nil
}

// maxValues is how many values Decode makes of one.
const maxValues = 2 << 20

// decoder counts the values that it made.
type decoder struct{ values int }

// value gives the value at the start of p, which is whole, and its length.
func (d *decoder) value(p []byte, depth int) (any, int, error) {
	if d.values++; d.values > maxValues {
		return nil, 0, format.Errorf(format.ErrUnsupported, "more than %d values in one", maxValues)
	}
	if depth > maxDepth {
		return nil, 0, format.Errorf(format.ErrLimit, "a value nested more than %d deep", maxDepth)
	}
	n, inside, err := shape(p)
	if err != nil {
		return nil, 0, err
	}
	c := p[0]
	switch {
	case isArray(c):
		all := make([]any, 0, min(inside, 4096))
		for range inside {
			v, k, err := d.value(p[n:], depth+1)
			if err != nil {
				return nil, 0, err
			}
			all = append(all, v)
			n += k
		}
		return all, n, nil
	case isMap(c):
		pairs, k, err := d.pairs(p[n:], inside/2, depth+1)
		if err != nil {
			return nil, 0, err
		}
		return object(pairs), n + k, nil
	}
	return scalar(p[:n]), n, nil
}

func (d *decoder) pairs(p []byte, count int64, depth int) ([][2]any, int, error) {
	all := make([][2]any, 0, min(count, 4096))
	at := 0
	for range count {
		var pair [2]any
		for i := range pair {
			v, n, err := d.value(p[at:], depth)
			if err != nil {
				return nil, 0, err
			}
			pair[i] = v
			at += n
		}
		all = append(all, pair)
	}
	return all, at, nil
}

// object is a map by its keys, where they are strings and none comes twice.
func object(pairs [][2]any) any {
	m := make(map[string]any, len(pairs))
	for _, p := range pairs {
		k, ok := p[0].(string)
		if _, twice := m[k]; !ok || twice {
			return pairs
		}
		m[k] = p[1]
	}
	return m
}

// scalar gives a value without values inside: p is all of it. See msg.Head for
// what the first byte means.
func scalar(p []byte) any {
	c, rest := p[0], p[1:]
	switch {
	case c <= 0x7f:
		return int64(c)
	case c >= 0xe0:
		return int64(int8(c))
	case c&0xe0 == 0xa0:
		return text(rest)
	}
	switch c {
	case 0xc2, 0xc3:
		return c == 0xc3
	case 0xc4, 0xc5, 0xc6:
		return append([]byte{}, rest[1<<(c-0xc4):]...)
	case 0xc7, 0xc8, 0xc9:
		return extension(rest[1<<(c-0xc7):])
	case 0xca:
		return math.Float32frombits(binary.BigEndian.Uint32(rest))
	case 0xcb:
		return math.Float64frombits(binary.BigEndian.Uint64(rest))
	case 0xcc, 0xcd, 0xce, 0xcf:
		if u := unsigned(rest); u > math.MaxInt64 {
			return u
		}
		return int64(unsigned(rest))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		shift := 64 - 8*len(rest)
		return int64(unsigned(rest)<<shift) >> shift
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return extension(rest)
	case 0xd9, 0xda, 0xdb:
		return text(rest[1<<(c-0xd9):])
	}
	return nil // 0xc0; shape refuses 0xc1
}

func unsigned(p []byte) uint64 { return msg.Uint(p) }

func text(p []byte) any {
	if !utf8.Valid(p) {
		return append([]byte{}, p...)
	}
	return string(p)
}

// extension gives what stands behind the length: a type, −1 for a timestamp,
// and its data.
func extension(p []byte) any {
	kind, data := int8(p[0]), p[1:]
	if kind == -1 {
		switch len(data) {
		case 4: // seconds
			return time.Unix(int64(unsigned(data)), 0).UTC()
		case 8: // 30 bits of nanoseconds, 34 of seconds
			v := unsigned(data)
			if ns := v >> 34; ns < 1e9 {
				return time.Unix(int64(v&(1<<34-1)), int64(ns)).UTC()
			}
		case 12: // nanoseconds, seconds
			if ns := unsigned(data[:4]); ns < 1e9 {
				return time.Unix(int64(unsigned(data[4:])), int64(ns)).UTC()
			}
		}
	}
	return map[string]any{"type": int64(kind), "data": append([]byte{}, data...)}
}
