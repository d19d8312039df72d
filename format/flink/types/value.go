package types

import (
	"math"
	"math/big"
	"slices"
	"unicode/utf16"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// Pairs is the entries of a map, in the order of the file. As JSON it is an
// array of two-element arrays: keys need not be strings.
type Pairs [][2]any

// Decoder gives a function that reads one whole value written with the
// serializer that s describes; ok is false where values of this kind are not
// decoded. It is an error where bytes are left over.
//
// Numbers come as Go numbers of their width, a big integer as *big.Int, a
// decimal as [Decimal], a char or a string as string, byte[] as []byte, null and
// void as nil; tuples, lists, sets, arrays and rows as []any, maps as [Pairs], a
// POJO as map[string]any by field (one of a subclass says which in "@class"), an
// enum as the name of its constant. A moment is a time.Time in UTC, a date or
// time of day without a zone a string as ISO 8601 has it. What JSON has no number
// for are the strings "NaN", "Infinity" and "-Infinity". A value with a time to
// live is a pair of the time (ms) and the value. Left or right of an either is a
// map with one entry, "left" or "right"; a window has "start" and "end" (ms), and
// a row that is no INSERT is a map of its "kind" and "fields".
func Decoder(s *Snapshot) (decode func(p []byte) (any, error), ok bool) {
	return whole(decoderOf(s))
}

// MapDecoder is Decoder for the map of a broadcast state: int count, keys and
// values, one entry behind the other.
func MapDecoder(key, value *Snapshot) (decode func(p []byte) ([]format.Entry, error), ok bool) {
	k, v := decoderOf(key), decoderOf(value)
	if k == nil || v == nil {
		return nil, false
	}
	return func(p []byte) ([]format.Entry, error) {
		c := java.NewCursor(p)
		r := &reader{c}
		all := []format.Entry{}
		eachEntry(r, k, v, func(e format.Entry) { all = append(all, e) })
		if err := used(c); err != nil {
			return nil, err
		}
		return all, nil
	}, true
}

// eachEntry reads int n and n keys and values.
func eachEntry(r *reader, key, value decoder, f func(format.Entry)) {
	for range r.Count("entries", 2) {
		e := format.Entry{Off: r.Offset()}
		e.Key, e.Value = key(r), value(r)
		if e.End = r.Offset(); r.Err() != nil {
			return
		}
		f(e)
	}
}

type decoder = func(r *reader) any

// whole makes a function of a decoder that has to use up its input.
func whole(read decoder) (func(p []byte) (any, error), bool) {
	if read == nil {
		return nil, false
	}
	return func(p []byte) (any, error) {
		c := java.NewCursor(p)
		v := read(&reader{c})
		if err := used(c); err != nil {
			return nil, err
		}
		return v, nil
	}, true
}

// used fails unless all was read without an error.
func used(c *java.Cursor) error {
	if c.Err() == nil && c.Remaining() > 0 {
		c.Fail(c.Offset(), format.ErrCorrupt, "%d bytes are left over", c.Remaining())
	}
	return c.Err()
}

// reader reads values. Its cursor keeps the first error.
type reader struct{ *java.Cursor }

// decoderOf picks the decoder of a snapshot; nil where there is none. Every
// decoder reads at least one byte per value, which bounds counts.
func decoderOf(s *Snapshot) decoder {
	if s == nil || s.Unknown || s.Old {
		return nil
	}
	k, ok := lookup(known, s.Class)
	if !ok {
		return nil
	}
	if k.body == simple {
		return k.value
	}
	nested := make([]decoder, len(s.Nested))
	for i, n := range s.Nested {
		if nested[i] = decoderOf(n); nested[i] == nil {
			return nil
		}
	}
	switch simpleName(s.Class) {
	case "EnumSerializerSnapshot":
		return s.readEnum
	case "ListSerializerSnapshot", "ArrayListSerializerSnapshot":
		return array(1, nested[0])
	case "SetSerializerSnapshot":
		return array(1, nullIf(1, nested[0]))
	case "GenericArraySerializerSnapshot", "GenericArraySerializerConfigSnapshot", "TraversableSerializerSnapshot":
		return array(1, nullIf(0, nested[0]))
	case "MapSerializerSnapshot":
		return mapOf(nested[0], nullIf(1, nested[1]))
	case "NullAwareMapSerializerSnapshot":
		return mapOf(nullIf(1, nested[0]), nullIf(1, nested[1]))
	case "ScalaOptionSerializerSnapshot":
		return nullIf(0, nested[0])
	case "NullableSerializerSnapshot":
		if len(s.numbers) != 1 || s.numbers[0] < 0 {
			return nil
		}
		return s.nullable(nested[0])
	case "RowSerializerSnapshot":
		return s.row(nested)
	case "TimerSerializerSnapshot":
		return timer(nested)
	case "DecimalSerializerSnapshot":
		if len(s.numbers) == 2 {
			return decimalData(s.numbers[0], s.numbers[1])
		}
	case "TimestampDataSerializerSnapshot":
		if len(s.numbers) == 1 {
			return timestampData(s.numbers[0])
		}
	case "TupleSerializerSnapshot", "ScalaCaseClassSerializerSnapshot", "Tuple2CaseClassSerializerSnapshot", "TtlSerializerSnapshot":
		if len(nested) == 0 {
			return nil
		}
		return tuple(nested)
	case "JavaEitherSerializerSnapshot", "EitherSerializerSnapshot", "ScalaEitherSerializerSnapshot":
		return either(nested)
	case "TtlAwareSerializerSnapshot":
		return nested[0]
	case "PojoSerializerSnapshot":
		return s.pojo(nested)
	}
	return nil
}

func readBool(r *reader) any   { return r.Bool("a boolean") }
func readByte(r *reader) any   { return int8(r.U8()) }
func readShort(r *reader) any  { return int16(r.U16()) }
func readInt(r *reader) any    { return r.I32() }
func readLong(r *reader) any   { return r.I64() }
func readDouble(r *reader) any { return number(math.Float64frombits(uint64(r.I64()))) }
func readVoid(r *reader) any   { r.U8(); return nil }
func readBytes(r *reader) any  { return append([]byte{}, r.Blob("a byte array")...) }

func readFloat(r *reader) any {
	f := math.Float32frombits(uint32(r.I32()))
	if d := float64(f); d != d || math.IsInf(d, 0) {
		return number(d)
	}
	return f
}

func number(f float64) any {
	switch {
	case f != f:
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return f
}

func readChar(r *reader) any {
	off := r.Offset()
	return r.units(off, []uint16{r.U16()})
}

// uvarint reads 7 bits per byte, low group first.
func (r *reader) uvarint() uint32 {
	off := r.Offset()
	var v uint64
	for shift := 0; shift < 35; shift += 7 {
		b := r.U8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if v > math.MaxUint32 {
				break
			}
			return uint32(v)
		}
	}
	r.Fail(off, format.ErrCorrupt, "a number of more than 32 bits")
	return 0
}

// readString reads uvarint length+1 (0: null), then a uvarint per UTF-16 unit.
func readString(r *reader) any {
	off := r.Offset()
	n := r.uvarint()
	if n == 0 {
		return nil
	}
	return r.chars(off, n-1)
}

// readStringValue is readString without null: the length stands as it is.
func readStringValue(r *reader) any {
	off := r.Offset()
	return r.chars(off, r.uvarint())
}

func (r *reader) chars(off int, n uint32) any {
	if int64(n) > int64(r.Remaining()) {
		r.Fail(off, format.ErrTruncated, "cut short: expected a string of %d characters, %d bytes left", n, r.Remaining())
		return nil
	}
	u := make([]uint16, n)
	for i := range u {
		at := r.Offset()
		v := r.uvarint()
		if v > 0xffff {
			r.Fail(at, format.ErrCorrupt, "a character 0x%x of more than 16 bits", v)
			return nil
		}
		u[i] = uint16(v)
	}
	return r.units(off, u)
}

// units makes a string of UTF-16 units. Half a surrogate pair is no text.
func (r *reader) units(off int, u []uint16) any {
	for i := 0; i < len(u); i++ {
		if u[i]&0xf800 != 0xd800 {
			continue
		}
		if u[i] >= 0xdc00 || i+1 == len(u) || u[i+1]&0xfc00 != 0xdc00 {
			r.Fail(off, format.ErrUnsupported, "a string with half a surrogate pair, which is no Unicode text")
			return nil
		}
		i++
	}
	return string(utf16.Decode(u))
}

// readBigInt reads int n: 0 null; 1, 2, 3 for 0, 1, 10; else n-4 bytes of two's
// complement.
func readBigInt(r *reader) any {
	off := r.Offset()
	n := r.I32()
	switch {
	case n == 0:
		return nil
	case n >= 1 && n <= 3:
		return big.NewInt([...]int64{0, 0, 1, 10}[n])
	case n < 5:
		r.Fail(off, format.ErrCorrupt, "a big integer of length %d", n)
		return nil
	}
	p := r.Bytes(int(n-4), "a big integer")
	if p == nil {
		return nil
	}
	return twosComplement(p)
}

// array reads int n and n values of at least size bytes.
func array(size int, one decoder) decoder {
	return func(r *reader) any {
		n := r.Count("elements", size)
		all := make([]any, 0, min(n, 4096))
		for range n {
			all = append(all, one(r))
			if r.Err() != nil {
				return nil
			}
		}
		return all
	}
}

// nullIf reads a mark in front of a value; null where it is null.
func nullIf(null byte, one decoder) decoder {
	return func(r *reader) any {
		if r.Bool("a mark of null") == (null == 1) {
			return nil
		}
		return one(r)
	}
}

func mapOf(key, value decoder) decoder {
	return func(r *reader) any {
		all := Pairs{}
		eachEntry(r, key, value, func(e format.Entry) { all = append(all, [2]any{e.Key, e.Value}) })
		return all
	}
}

func tuple(fields []decoder) decoder {
	return func(r *reader) any {
		all := make([]any, len(fields))
		for i, f := range fields {
			all[i] = f(r)
		}
		return all
	}
}

// rowKinds are the kinds of rows by their numbers.
var rowKinds = [...]string{"INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"}

// row reads a mask and the fields that are not null (spec B8). Bits count from
// the highest of the first byte: two of the kind, where rows have one, from the
// lower one on, and one for each field that says that it is null.
func (s *Snapshot) row(fields []decoder) decoder {
	kinds := 0
	if s.Version == 3 || s.mark {
		kinds = 2
	}
	bits := kinds + len(fields)
	if bits == 0 {
		return nil
	}
	return func(r *reader) any {
		mask := r.Bytes((bits+7)/8, "the mask of a row")
		if r.Err() != nil {
			return nil
		}
		bit := func(i int) int { return int(mask[i/8]>>(7-i%8)) & 1 }
		all := make([]any, len(fields))
		for i, f := range fields {
			if bit(kinds+i) == 0 {
				all[i] = f(r)
			}
		}
		if kinds > 0 {
			if kind := bit(0) | bit(1)<<1; kind > 0 {
				return map[string]any{"kind": rowKinds[kind], "fields": all}
			}
		}
		return all
	}
}

func either(sides []decoder) decoder {
	return func(r *reader) any {
		if r.Bool("left") {
			return map[string]any{"left": sides[0](r)}
		}
		return map[string]any{"right": sides[1](r)}
	}
}

func (s *Snapshot) nullable(one decoder) decoder {
	return func(r *reader) any {
		if r.Bool("a mark of null") {
			r.Bytes(int(s.numbers[0]), "the padding of a null")
			return nil
		}
		return one(r)
	}
}

func (s *Snapshot) readEnum(r *reader) any {
	off := r.Offset()
	i := r.I32()
	if i < 0 || int(i) >= len(s.Names) {
		r.Fail(off, format.ErrCorrupt, "constant %d of an enum of %d", i, len(s.Names))
		return nil
	}
	return s.Names[i]
}

// pojo reads byte flags, then by flags:
//
//	1  nothing: null
//	2  per field a mark of null and a value
//	4  UTF class, a value of that subclass
//	8  byte number of a registered subclass, a value of it
func (s *Snapshot) pojo(fields []decoder) decoder {
	subs := make([]decoder, len(s.Subclasses))
	for i, sub := range s.Subclasses {
		subs[i] = decoderOf(sub) // nil where there is none
	}
	return func(r *reader) any {
		off := r.Offset()
		switch flags := r.U8(); flags {
		case 1:
			return nil
		case 2:
		case 4:
			name := r.Text().String()
			i := slices.Index(s.subclasses[s.registered:], name)
			if i >= 0 {
				i += s.registered
			}
			return s.subclass(r, off, subs, i)
		case 8:
			i := int(r.U8())
			if i >= s.registered {
				i = -1
			}
			return s.subclass(r, off, subs, i)
		default:
			r.Fail(off, format.ErrCorrupt, "an object with flags 0x%02x", flags)
			return nil
		}
		all := make(map[string]any, len(fields))
		for i, f := range fields {
			if all[s.Names[i]] = nil; !r.Bool("a mark of null") {
				all[s.Names[i]] = f(r)
			}
		}
		return all
	}
}

// subclass reads an object of subclass i, -1 where it is not described. The
// object says under "@class" which it is.
func (s *Snapshot) subclass(r *reader, off int, subs []decoder, i int) any {
	switch {
	case r.Err() != nil:
		return nil
	case i < 0 || i >= len(subs):
		r.Fail(off, format.ErrUnsupported, "an object of a subclass of %q that is not described is not decoded", s.Type)
		return nil
	case subs[i] == nil:
		r.Fail(off, format.ErrUnsupported, "an object of subclass %q is not decoded", s.subclasses[i])
		return nil
	}
	v := subs[i](r)
	if m, ok := v.(map[string]any); ok {
		m["@class"] = s.subclasses[i]
	}
	return v
}
