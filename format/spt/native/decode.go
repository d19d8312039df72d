package native

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
	"github.com/savepoint-tools/spt/format/value"
)

// ValueCodec reads and writes any msgpack value.
//
// A string that is not UTF-8 becomes bytes. A map whose keys are distinct strings
// becomes a record, any other map a map. A timestamp extension becomes an instant,
// any other extension a record of its "type" and "data". The variant of a value is
// its first byte, if that is not the first byte of the shortest encoding.
//
// Values nested more than 1000 deep are a format.ErrLimit. More than 2,097,152
// values in one are a format.ErrUnsupported, because each takes many times its
// encoded size.
type ValueCodec struct{}

var _ value.Codec = ValueCodec{}

// Skip implements [value.Codec].
func (ValueCodec) Skip(p []byte) (int, error) {
	n, err := size(p)
	return n, truncated(err, len(p))
}

// Read implements [value.Codec].
func (ValueCodec) Read(p []byte) (value.Value, int, error) {
	v, n, err := new(decoder).value(p, 0)
	return v, n, truncated(err, len(p))
}

// truncated returns err with a kind, for a value in n bytes that is cut short.
func truncated(err error, n int) error {
	if errors.Is(err, errShort) {
		return format.Errorf(format.ErrTruncated, "a msgpack value does not end within its %d bytes", n)
	}
	return err
}

// maxValues limits the number of values within one.
const maxValues = 2 << 20

// decoder counts the decoded values.
type decoder struct{ values int }

// value reads the value at the start of p.
func (d *decoder) value(p []byte, depth int) (value.Value, int, error) {
	if d.values++; d.values > maxValues {
		return value.Value{}, 0, format.Errorf(format.ErrUnsupported, "more than %d values in one", maxValues)
	}
	if depth > maxDepth {
		return value.Value{}, 0, format.Errorf(format.ErrLimit, "a value nested more than %d deep", maxDepth)
	}
	n, inside, err := shape(p)
	if err != nil {
		return value.Value{}, 0, err
	}
	if !isArray(p[0]) && !isMap(p[0]) {
		return scalar(p[:n]), n, nil
	}
	if inside > int64(len(p)-n) {
		return value.Value{}, 0, errShort
	}
	head := p[0]
	all := make([]value.Value, 0, min(inside, 4096))
	for range inside {
		v, k, err := d.value(p[n:], depth+1)
		if err != nil {
			return value.Value{}, 0, err
		}
		all = append(all, v)
		n += k
	}
	if isArray(p[0]) {
		return value.List(all).WithVariant(variant(head, arrayCode(len(all)))), n, nil
	}
	return mapOf(all).WithVariant(variant(head, mapCode(len(all)/2))), n, nil
}

// variant returns the first byte of a value, or 0 if it is the first byte of the
// shortest encoding.
func variant(first, shortest byte) uint8 {
	if first == shortest {
		return 0
	}
	return first
}

// The functions below return the first byte of the shortest encoding.

func stringCode(n int) byte {
	if n < 1<<5 {
		return 0xa0 | byte(n)
	}
	return sized(n, 0xd9)
}

func binaryCode(n int) byte { return sized(n, 0xc4) }

// sized returns code, code+1 or code+2 for a length of 1, 2 or 4 bytes.
func sized(n int, code byte) byte {
	switch {
	case n < 1<<8:
		return code
	case n < 1<<16:
		return code + 1
	}
	return code + 2
}

func arrayCode(n int) byte {
	var b [8]byte
	return msg.AppendArray(b[:0], n)[0]
}

func mapCode(n int) byte {
	var b [8]byte
	return msg.AppendMap(b[:0], n)[0]
}

func intCode(n int64) byte {
	var b [16]byte
	return msg.AppendInt(b[:0], n)[0]
}

// mapOf returns pairs as a record if their keys are distinct strings, otherwise as
// a map.
func mapOf(pairs []value.Value) value.Value {
	n := len(pairs) / 2
	shape := &value.Shape{Names: make([]string, n)}
	seen := make(map[string]bool, n)
	fields := make([]value.Value, n)
	for i := range n {
		key := pairs[2*i]
		if key.Kind() != value.KindString || seen[key.Text()] {
			return value.Map(pairs)
		}
		seen[key.Text()] = true
		shape.Names[i], fields[i] = key.Text(), pairs[2*i+1]
		if v := key.Variant(); v != 0 {
			if shape.Variants == nil {
				shape.Variants = make([]uint8, n)
			}
			shape.Variants[i] = v
		}
	}
	return value.Record(shape, fields)
}

// scalar returns the value p, which has no values inside. See msg.Head for the
// meaning of its first byte.
func scalar(p []byte) value.Value {
	c, rest := p[0], p[1:]
	switch {
	case c <= 0x7f:
		return value.Int(int64(c))
	case c >= 0xe0:
		return value.Int(int64(int8(c)))
	case msg.IsString(c):
		head := 1
		if c >= 0xd9 {
			head += 1 << (c - 0xd9)
		}
		if s := p[head:]; utf8.Valid(s) {
			return value.String(string(s)).WithVariant(variant(c, stringCode(len(s))))
		}
		return value.Bytes(p[head:]).WithVariant(c)
	case msg.IsBinary(c):
		data := rest[1<<(c-0xc4):]
		return value.Bytes(data).WithVariant(variant(c, binaryCode(len(data))))
	}
	switch c {
	case 0xc2, 0xc3:
		return value.Bool(c == 0xc3)
	case 0xc7, 0xc8, 0xc9:
		return extension(c, rest[1<<(c-0xc7):])
	case 0xca:
		return value.Float32(binary.BigEndian.Uint32(rest))
	case 0xcb:
		return value.Float64(binary.BigEndian.Uint64(rest))
	case 0xcc, 0xcd, 0xce, 0xcf:
		v := value.Uint(unsigned(rest))
		if v.Kind() == value.KindUint {
			return v
		}
		return v.WithVariant(variant(c, intCode(v.Int())))
	case 0xd0, 0xd1, 0xd2, 0xd3:
		shift := 64 - 8*len(rest)
		n := int64(unsigned(rest)<<shift) >> shift
		return value.Int(n).WithVariant(variant(c, intCode(n)))
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return extension(c, rest)
	}
	return value.Null() // 0xc0; shape rejects 0xc1
}

func unsigned(p []byte) uint64 { return msg.Uint(p) }

// extensionShape is the fields of an extension. The variant of an extension, its
// first byte, distinguishes it from a map with these keys.
var extensionShape = &value.Shape{Names: []string{"type", "data"}}

// extension returns the value of p, which follows the length: a type, −1 for a
// timestamp, and data.
func extension(c byte, p []byte) value.Value {
	kind, data := int8(p[0]), p[1:]
	if kind == -1 {
		if v, ok := timestamp(data); ok {
			return v.WithVariant(timestampVariant(c, data, v))
		}
	}
	return value.Record(extensionShape, []value.Value{value.Int(int64(kind)), value.Bytes(data)}).WithVariant(c)
}

func timestamp(data []byte) (value.Value, bool) {
	switch len(data) {
	case 4: // seconds
		return value.Instant(int64(unsigned(data)), 0), true
	case 8: // 30 bits of nanoseconds, 34 of seconds
		v := unsigned(data)
		if ns := v >> 34; ns < 1e9 {
			return value.Instant(int64(v&(1<<34-1)), int32(ns)), true
		}
	case 12: // nanoseconds, seconds
		if ns := unsigned(data[:4]); ns < 1e9 {
			return value.Instant(int64(unsigned(data[4:])), int32(ns)), true
		}
	}
	return value.Value{}, false
}
