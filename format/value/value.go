package value

import (
	"math"
	"math/big"
	"slices"
	"time"
	"unsafe"
)

// Kind is the kind of a value.
type Kind uint8

// The kinds, with the methods that return their values.
const (
	KindNull      Kind = iota
	KindBool           // Bool
	KindInt            // Int: a signed integer of up to 64 bits
	KindUint           // Uint: an integer beyond the largest int64
	KindFloat32        // Float
	KindFloat64        // Float
	KindString         // Text
	KindBytes          // Text
	KindBigInt         // BigInt
	KindDecimal        // Decimal
	KindInstant        // Time, in UTC
	KindDate           // Time, without a zone
	KindTimeOfDay      // Time, without a zone
	KindDateTime       // Time, without a zone
	KindList           // Len, At: elements of a list, a set, an array, a tuple, a row
	KindRecord         // Len, At, Name: fields in the order of their serializer
	KindMap            // Len, Key, At: entries in the order of the file
)

var kindNames = [...]string{"null", "a boolean", "an integer", "an integer", "a float", "a double", "a string", "bytes", "a big integer", "a decimal",
	"an instant", "a date", "a time of day", "a date with time", "a list", "a record", "a map"}

// String returns the name of the kind with its article: "a list".
func (k Kind) String() string { return kindNames[k] }

// Value is one value. It is immutable; the zero Value is null. Methods that do not
// apply to the kind return zero values.
//
// Values are small, because there are very many: texts and parts are a pointer and
// a length.
type Value struct {
	_    [0]func() // not comparable
	kind Kind
	// variant is the encoding that the codec read, if it has several for the value.
	// 0 is the encoding that the codec prefers; others are known to the codec only.
	// See [Value.WithVariant].
	variant uint8
	aux     int32          // nanoseconds, scale
	num     int64          // number, bits of a float, seconds, calendar fields; length of a text or of parts
	data    unsafe.Pointer // first byte of a text: characters, bytes, digits; first part
	shape   *Shape         // of a record; of another value, if it has a class
}

// Shape is the names of the fields of a record. Records of the same type share it.
type Shape struct {
	Names []string
	// Variants are the variants of the encoded names; nil: all are 0.
	Variants []uint8
	class    string // see Value.WithClass
}

// Arena allocates the texts and parts of many values together. A value that is kept
// keeps up to 6 KiB of its neighbors in memory. The zero Arena is ready to use; it is
// not safe for concurrent use.
type Arena struct {
	// Views makes texts refer to the bytes that they are read from, which must not
	// change as long as the values are used.
	Views bool

	values, block   []Value // block is all of the block whose rest is values
	text, textBlock []byte
}

// Sizes of blocks. What needs more than a quarter of a block gets memory of its own.
const (
	arenaValues = 127 // 4 KiB with the header of the allocator
	arenaText   = 2048
)

// Reset lets the arena use its memory again. Values from it must no longer be used.
func (a *Arena) Reset() {
	clear(a.block[:len(a.block)-len(a.values)])
	a.values, a.text = a.block, a.textBlock
}

// Values returns n null values for [List], [Record] or [Map].
func (a *Arena) Values(n int) []Value {
	if n > arenaValues/4 {
		return make([]Value, n)
	}
	if n > len(a.values) {
		a.block = make([]Value, arenaValues)
		a.values = a.block
	}
	v := a.values[:n:n]
	a.values = a.values[n:]
	return v
}

// Text returns p as a text: a copy of it, unless a.Views is set.
func (a *Arena) Text(p []byte) string {
	n := len(p)
	switch {
	case n == 0:
		return ""
	case a.Views:
		return unsafe.String(&p[0], n)
	case n > arenaText/4:
		return string(p)
	}
	if n > len(a.text) {
		a.textBlock = make([]byte, arenaText)
		a.text = a.textBlock
	}
	copy(a.text, p)
	s := unsafe.String(&a.text[0], n) // not written again before Reset
	a.text = a.text[n:]
	return s
}

// SetInt sets a null without a class to an integer, faster than an assignment: it
// writes no pointers.
func (v *Value) SetInt(n int64) { v.kind, v.num = KindInt, n }

// SetBool sets a null to a boolean. See [Value.SetInt].
func (v *Value) SetBool(b bool) {
	v.kind = KindBool
	if b {
		v.num = 1
	}
}

// SetFloat sets a null to the float or double with these bits. See [Value.SetInt].
func (v *Value) SetFloat(kind Kind, bits uint64) { v.kind, v.num = kind, int64(bits) }

func textOf(kind Kind, s string) Value {
	return Value{kind: kind, num: int64(len(s)), data: unsafe.Pointer(unsafe.StringData(s))}
}

func partsOf(kind Kind, parts []Value) Value {
	return Value{kind: kind, num: int64(len(parts)), data: unsafe.Pointer(unsafe.SliceData(parts))}
}

// characters returns the text of a kind that has one.
func (v Value) characters() string { return unsafe.String((*byte)(v.data), int(v.num)) }

// parts returns the parts of a list, a record or a map.
func (v Value) parts() []Value {
	if v.kind < KindList {
		return nil
	}
	return unsafe.Slice((*Value)(v.data), int(v.num))
}

// Null is the null value.
func Null() Value { return Value{} }

// Bool returns a boolean.
func Bool(b bool) Value {
	if b {
		return Value{kind: KindBool, num: 1}
	}
	return Value{kind: KindBool}
}

// Int returns an integer.
func Int(n int64) Value { return Value{kind: KindInt, num: n} }

// Uint returns an integer, of KindInt if n fits.
func Uint(n uint64) Value {
	if n <= math.MaxInt64 {
		return Int(int64(n))
	}
	return Value{kind: KindUint, num: int64(n)}
}

// Float32 returns the float with these bits.
func Float32(bits uint32) Value { return Value{kind: KindFloat32, num: int64(bits)} }

// Float64 returns the double with these bits.
func Float64(bits uint64) Value { return Value{kind: KindFloat64, num: int64(bits)} }

// String returns a string, which should be valid UTF-8.
func String(s string) Value { return textOf(KindString, s) }

// Bytes returns a byte array with a copy of p.
func Bytes(p []byte) Value { return BytesOf(string(p)) }

// BytesOf returns a byte array with the bytes of s.
func BytesOf(s string) Value { return textOf(KindBytes, s) }

// BigInt returns the big integer with this big-endian two's complement.
func BigInt(p []byte) Value { return textOf(KindBigInt, string(p)) }

// Decimal returns unscaled × 10^-scale; unscaled is big-endian two's complement.
func Decimal(unscaled []byte, scale int32) Value {
	v := textOf(KindDecimal, string(unscaled))
	v.aux = scale
	return v
}

// Instant returns a point in time, in seconds and nanoseconds since 1970.
func Instant(sec int64, nano int32) Value { return Value{kind: KindInstant, num: sec, aux: nano} }

// Civil is a date, a time of day or both, without a zone. It need not be a valid
// date or time.
type Civil struct {
	Year                             int32
	Month, Day, Hour, Minute, Second uint8
	Nano                             int32
}

func civil(kind Kind, c Civil) Value {
	return Value{kind: kind, aux: c.Nano,
		num: int64(c.Year)<<26 | int64(c.Month&15)<<22 | int64(c.Day&31)<<17 | int64(c.Hour&31)<<12 | int64(c.Minute&63)<<6 | int64(c.Second&63)}
}

// Date returns a date without a zone.
func Date(year int32, month, day uint8) Value {
	return civil(KindDate, Civil{Year: year, Month: month, Day: day})
}

// TimeOfDay returns a time of day without a zone.
func TimeOfDay(hour, minute, second uint8, nano int32) Value {
	return civil(KindTimeOfDay, Civil{Hour: hour, Minute: minute, Second: second, Nano: nano})
}

// DateTime returns a date with time, without a zone.
func DateTime(c Civil) Value { return civil(KindDateTime, c) }

// List returns a list. It keeps elems.
func List(elems []Value) Value { return partsOf(KindList, elems) }

// Record returns a record with a field for each name of the shape. It keeps both
// arguments.
func Record(shape *Shape, fields []Value) Value {
	v := partsOf(KindRecord, fields)
	v.shape = shape
	return v
}

// Map returns a map of alternating keys and values. It keeps pairs.
func Map(pairs []Value) Value { return partsOf(KindMap, pairs) }

// WithVariant returns v marked as read from another encoding than the codec's
// preferred one.
func (v Value) WithVariant(variant uint8) Value {
	v.variant = variant
	return v
}

// WithClass returns v with the name of its class, if that differs from the class of
// its serializer; "" removes it.
func (v Value) WithClass(class string) Value {
	if class == v.Class() {
		return v
	}
	shape := &Shape{class: class}
	if v.shape != nil {
		shape.Names, shape.Variants = v.shape.Names, v.shape.Variants
	}
	if class == "" && v.kind != KindRecord {
		shape = nil
	}
	v.shape = shape
	return v
}

// WithAt returns v, a list, a record or a map, with element, field or value i replaced.
// Its other details stay.
func (v Value) WithAt(i int, e Value) Value {
	parts := slices.Clone(v.parts())
	if v.kind == KindMap {
		i = 2*i + 1
	}
	parts[i] = e
	v.data = unsafe.Pointer(unsafe.SliceData(parts))
	return v
}

// Kind returns the kind of v.
func (v Value) Kind() Kind { return v.kind }

// IsNull reports whether v is null.
func (v Value) IsNull() bool { return v.kind == KindNull }

// Variant returns the encoding that v was read from, as defined by its codec.
func (v Value) Variant() uint8 { return v.variant }

// Bool returns a boolean.
func (v Value) Bool() bool { return v.kind == KindBool && v.num != 0 }

// Int returns an integer; for a float its bits.
func (v Value) Int() int64 { return v.num }

// Uint returns an integer as unsigned.
func (v Value) Uint() uint64 { return uint64(v.num) }

// Float returns a number as the nearest float64 or an infinity.
func (v Value) Float() float64 {
	switch v.kind {
	case KindInt:
		return float64(v.num)
	case KindUint:
		return float64(uint64(v.num))
	case KindFloat32:
		return float64(math.Float32frombits(uint32(v.num)))
	case KindFloat64:
		return math.Float64frombits(uint64(v.num))
	case KindDecimal:
		return v.decimalFloat()
	}
	return 0
}

// Text returns the characters of a string, the bytes of a byte array, or the
// two's complement of a big integer or of the unscaled value of a decimal.
func (v Value) Text() string {
	switch v.kind {
	case KindString, KindBytes, KindBigInt, KindDecimal:
		return v.characters()
	}
	return ""
}

// Class returns the class of a value if it differs from the class of its
// serializer, such as a subclass; otherwise "".
func (v Value) Class() string {
	if v.shape == nil {
		return ""
	}
	return v.shape.class
}

// BigInt returns a big integer, or the unscaled value of a decimal.
func (v Value) BigInt() *big.Int {
	text := v.Text()
	n := new(big.Int).SetBytes([]byte(text))
	if text != "" && text[0]&0x80 != 0 {
		n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(8*len(text))))
	}
	return n
}

// Scale returns the scale of a decimal.
func (v Value) Scale() int32 { return v.aux }

// Nano returns the nanoseconds within the second of an instant.
func (v Value) Nano() int32 { return v.aux }

// Time returns an instant.
func (v Value) Time() time.Time { return time.Unix(v.num, int64(v.aux)).UTC() }

// Civil returns the fields of a date or a time without a zone.
func (v Value) Civil() Civil {
	n := v.num
	return Civil{int32(n >> 26), uint8(n >> 22 & 15), uint8(n >> 17 & 31), uint8(n >> 12 & 31), uint8(n >> 6 & 63), uint8(n & 63), v.aux}
}

// Len returns the number of elements, fields or entries.
func (v Value) Len() int {
	switch v.kind {
	case KindMap:
		return int(v.num / 2)
	case KindList, KindRecord:
		return int(v.num)
	}
	return 0
}

// At returns element, field or map value i.
func (v Value) At(i int) Value {
	if v.kind == KindMap {
		i = 2*i + 1
	}
	return v.parts()[i]
}

// Key returns key i of a map.
func (v Value) Key(i int) Value { return v.parts()[2*i] }

// Name returns the name of field i of a record.
func (v Value) Name(i int) string { return v.shape.Names[i] }

// Shape returns the shape of a record, or nil.
func (v Value) Shape() *Shape {
	if v.kind != KindRecord {
		return nil
	}
	return v.shape
}

// Field returns the first field with this name, and whether there is one.
func (v Value) Field(name string) (Value, bool) {
	if v.kind == KindRecord {
		if i := slices.Index(v.shape.Names, name); i >= 0 {
			return v.parts()[i], true
		}
	}
	return Value{}, false
}
