package types

import (
	"encoding/binary"
	"math"
	"math/big"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// scalar is a codec of values without parts.
type scalar struct {
	size int // size of every value; 0: over finds the end
	over func(r *reader)
	get  func(r *reader) value.Value
	put  func(w *writer, v value.Value)
	from func(p *parser, n *node) value.Value
	op   op // see steps
	typ  *Type
}

func (s scalar) read(r *reader) value.Value     { return s.get(r) }
func (s scalar) write(w *writer, v value.Value) { s.put(w, v) }

func (s scalar) parse(p *parser, n *node) value.Value { return s.from(p, n) }

func (s scalar) skip(r *reader) {
	if s.size > 0 {
		r.Bytes(s.size, "a value")
		return
	}
	s.over(r)
}

// integer is a codec of signed integers of size bytes.
func integer(size int) scalar {
	return scalar{size: size,
		get: func(r *reader) value.Value {
			switch size {
			case 8:
				return value.Int(r.I64())
			case 4:
				return value.Int(int64(r.I32()))
			case 2:
				return value.Int(int64(int16(r.U16())))
			}
			return value.Int(int64(int8(r.U8())))
		},
		put: func(w *writer, v value.Value) {
			if n, ok := w.fits(v, size); ok {
				w.int(n, size)
			}
		},
		from: func(p *parser, n *node) value.Value { return value.Int(p.integer(n, size)) },
		op:   map[int]op{1: opByte, 2: opShort, 4: opInt, 8: opLong}[size],
		typ:  &Type{Kind: TypeInt, Word: map[int]string{1: "byte", 2: "short", 4: "int", 8: "long"}[size], Bits: 8 * size},
	}
}

// int appends the low bytes of n.
func (w *writer) int(n int64, size int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	w.p = append(w.p, b[8-size:]...)
}

func (w *writer) bool(b bool) {
	if b {
		w.p = append(w.p, 1)
	} else {
		w.p = append(w.p, 0)
	}
}

// blob appends a length and bytes.
func (w *writer) blob(s string) {
	if len(s) > math.MaxInt32 {
		w.fail("%d bytes: an array has up to %d", len(s), math.MaxInt32)
		return
	}
	w.int(int64(len(s)), 4)
	w.p = append(w.p, s...)
}

var (
	byteCodec, shortCodec = integer(1), integer(2)
	intCodec, longCodec   = integer(4), integer(8)

	boolCodec = scalar{size: 1, typ: &Type{Kind: TypeBool, Word: "boolean"},
		get: func(r *reader) value.Value { return value.Bool(r.Bool("a boolean")) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindBool) {
				w.bool(v.Bool())
			}
		},
		from: func(p *parser, n *node) value.Value {
			p.expects(n, jsontext.Bool, "true or false")
			return value.Bool(n.Text == "true")
		},
		op: opBool,
	}
	floatCodec = scalar{size: 4, typ: &Type{Kind: TypeFloat, Word: "float", Bits: 32},
		get: func(r *reader) value.Value { return value.Float32(uint32(r.I32())) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindFloat32) {
				w.int(v.Int(), 4)
			}
		},
		from: func(p *parser, n *node) value.Value { return value.Float32(uint32(p.float(n, 4))) },
		op:   opFloat,
	}
	doubleCodec = scalar{size: 8, typ: &Type{Kind: TypeFloat, Word: "double", Bits: 64},
		get: func(r *reader) value.Value { return value.Float64(uint64(r.I64())) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindFloat64) {
				w.int(v.Int(), 8)
			}
		},
		from: func(p *parser, n *node) value.Value { return value.Float64(p.float(n, 8)) },
		op:   opDouble,
	}
	bytesCodec = scalar{typ: &Type{Kind: TypeBytes, Word: "bytes"},
		over: func(r *reader) { r.Blob("a byte array") },
		get:  func(r *reader) value.Value { return value.BytesOf(r.arena.Text(r.Blob("a byte array"))) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindBytes) {
				w.blob(v.Text())
			}
		},
		from: func(p *parser, n *node) value.Value { return value.Bytes(p.bytes(n)) },
	}
	charCodec = scalar{size: 2, typ: &Type{Kind: TypeString, Word: "char"},
		get: func(r *reader) value.Value {
			return value.String(java.FromUnits([]uint16{r.U16()}))
		},
		put: func(w *writer, v value.Value) {
			if !w.expects(v, value.KindString) {
				return
			}
			u, ok := java.Units(v.Text())
			if len(u) != 1 || !ok {
				w.fail("expected one character, found %q", v.Text())
				return
			}
			w.int(int64(u[0]), 2)
		},
		from: func(p *parser, n *node) value.Value {
			s := p.str(n)
			if u, ok := java.Units(s); p.err == nil && (len(u) != 1 || !ok) {
				p.fail("expected one character of 16 bits, found %s", found(n))
			}
			return value.String(s)
		},
	}
	stringCodec      = characters(true)
	stringValueCodec = characters(false)
	stringDataCodec  = scalar{typ: &Type{Kind: TypeString, Word: "string"},
		over: func(r *reader) { r.Blob("a string") },
		get: func(r *reader) value.Value {
			off := r.Offset()
			p := r.Blob("a string")
			if r.Err() == nil && !utf8.Valid(p) {
				r.Fail(off, format.ErrUnsupported, "a string that is not UTF-8")
			}
			return value.String(r.arena.Text(p))
		},
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindString) {
				if !utf8.ValidString(v.Text()) {
					w.fail("the string %q is not UTF-8", v.Text())
				}
				w.blob(v.Text())
			}
		},
		from: func(p *parser, n *node) value.Value { return value.String(p.str(n)) },
	}
)

// void is a codec of one byte that Flink ignores. The variant is the difference to
// the byte that Flink writes.
func void(written byte) scalar {
	return scalar{size: 1, typ: &Type{Kind: TypeNull, Word: "void"},
		get: func(r *reader) value.Value { return value.Null().WithVariant(r.U8() ^ written) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindNull) {
				w.p = append(w.p, v.Variant()^written)
			}
		},
		from: func(p *parser, n *node) value.Value {
			marks, null := marked(n)
			if !null {
				p.fail("expected null, found %s", found(n))
			}
			return value.Null().WithVariant(marks)
		},
	}
}

// uvarint reads 7 bits per byte, low group first.
func (r *reader) uvarint() uint32 {
	off := r.Offset()
	n := r.uvarint64()
	if n > math.MaxUint32 {
		r.Fail(off, format.ErrCorrupt, "a number of more than 32 bits")
		return 0
	}
	return uint32(n)
}

func (r *reader) uvarint64() uint64 {
	off := r.Offset()
	var v uint64
	for shift := 0; shift < 64; shift += 7 {
		b := r.U8()
		v |= uint64(b&0x7f) << shift
		if b < 0x80 {
			if b == 0 && shift > 0 {
				r.other(off, "a number with leading zeros")
			}
			if shift == 63 && b > 1 {
				break
			}
			return v
		}
	}
	r.Fail(off, format.ErrCorrupt, "a number of more than 64 bits")
	return 0
}

func (w *writer) uvarint(n uint32) { w.uvarint64(uint64(n)) }

func (w *writer) uvarint64(n uint64) {
	for ; n >= 0x80; n >>= 7 {
		w.p = append(w.p, byte(n)|0x80)
	}
	w.p = append(w.p, byte(n))
}

// characters is a codec of strings: uvarint length, plus one with nulls, where 0 is
// null; then a uvarint for each UTF-16 unit.
func characters(nulls bool) scalar {
	length := func(r *reader) (n uint32, null bool) {
		off := r.Offset()
		n = r.uvarint()
		if nulls && n == 0 {
			return 0, true
		}
		if nulls {
			n--
		}
		if int64(n) > int64(r.Remaining()) {
			r.Fail(off, format.ErrTruncated, "cut short: expected a string of %d characters, %d bytes left", n, r.Remaining())
			return 0, true
		}
		return n, false
	}
	return scalar{typ: &Type{Kind: TypeString, Word: "string", Null: nulls},
		over: func(r *reader) {
			n, _ := length(r)
			if p := r.Next(int(n)); p != nil {
				i := notASCII(p)
				r.Back(len(p) - i)
				n -= uint32(i)
			}
			for range n {
				if r.U8() < 0x80 {
					continue
				}
				if r.U8() >= 0x80 {
					r.U8()
				}
			}
		},
		get: func(r *reader) value.Value {
			n, null := length(r)
			if null {
				return value.Null()
			}
			if p := r.Next(int(n)); p != nil {
				if notASCII(p) == len(p) {
					return value.String(r.arena.Text(p))
				}
				r.Back(len(p))
			}
			u := make([]uint16, n) // no more than bytes are left
			for i := range u {
				at := r.Offset()
				v := r.uvarint()
				if v > 0xffff {
					r.Fail(at, format.ErrCorrupt, "character 0x%x has more than 16 bits", v)
				}
				if r.Err() != nil {
					return value.Null()
				}
				u[i] = uint16(v)
			}
			return value.String(java.FromUnits(u))
		},
		put: func(w *writer, v value.Value) {
			if v.IsNull() && nulls {
				w.uvarint(0)
				return
			}
			if !w.expects(v, value.KindString) {
				return
			}
			s, plus := v.Text(), 0
			if nulls {
				plus = 1
			}
			if len(s) < math.MaxInt32 && plainText(s) {
				w.uvarint(uint32(len(s) + plus))
				w.p = append(w.p, s...)
				return
			}
			u, ok := java.Units(s)
			switch {
			case !ok:
				w.fail("the string %q is not UTF-8", s)
				return
			case len(u) >= math.MaxInt32:
				w.fail("a string of %d characters is too long", len(u))
				return
			}
			w.uvarint(uint32(len(u) + plus))
			for _, c := range u {
				w.uvarint(uint32(c))
			}
		},
		from: func(p *parser, n *node) value.Value {
			if nulls && n.Kind == jsontext.Null {
				return value.Null()
			}
			return value.String(p.str(n))
		},
		op: map[bool]op{true: opText}[nulls],
	}
}

// notASCII returns the index of the first byte from 0x80 on, or len(p).
func notASCII(p []byte) int {
	i := 0
	for ; len(p)-i >= 8 && binary.NativeEndian.Uint64(p[i:])&0x8080808080808080 == 0; i += 8 {
	}
	for i < len(p) && p[i] < 0x80 {
		i++
	}
	return i
}

func plainText(s string) bool {
	for i := range len(s) {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true // a NUL is a byte here, too
}

// enum is a codec of the constants of an enum: int number.
type enum []string

func (e enum) skip(r *reader) { r.Bytes(4, "a constant") }

func (e enum) read(r *reader) value.Value {
	off := r.Offset()
	i := r.I32()
	if r.Err() == nil && (i < 0 || int(i) >= len(e)) {
		r.Fail(off, format.ErrCorrupt, "constant %d of an enum of %d", i, len(e))
	}
	if r.Err() != nil {
		return value.Null()
	}
	return value.String(e[i])
}

func (e enum) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindString) {
		return
	}
	for i, name := range e {
		if name == v.Text() {
			w.int(int64(i), 4)
			return
		}
	}
	w.fail("the enum has no constant %q", v.Text())
}

func (e enum) parse(p *parser, n *node) value.Value {
	s := p.str(n)
	if p.err == nil && !slices.Contains(e, s) {
		p.fail("expected one of the constants %s, found %q", list(e), s)
	}
	return value.String(s)
}

// list returns names for an error.
func list(names []string) string {
	const most = 20
	if len(names) > most {
		return strings.Join(names[:most], ", ") + ", …"
	}
	return strings.Join(names, ", ")
}

// The constants 0, 1 and 10 have a short encoding by their numbers, and a long one
// like other big integers. Flink's choice depends on the identity of the object
// (spec flink-serializers B4).
const longEncoding = 1 // variant

var constants = [...]string{1: "\x00", 2: "\x01", 3: "\x0a"}

// bigInt reads int n: 0 null; 1, 2, 3 for 0, 1, 10; else n-4 bytes of two's
// complement.
func (r *reader) bigInt() (digits []byte, variant uint8, null bool) {
	off := r.Offset()
	n := r.I32()
	switch {
	case n == 0:
		return nil, 0, true
	case n >= 1 && n <= 3:
		return []byte(constants[n]), 0, false
	case n < 5:
		r.Fail(off, format.ErrCorrupt, "invalid length %d of a big integer", n)
		return nil, 0, true
	}
	p := r.Bytes(int(n-4), "a big integer")
	if p == nil {
		return nil, 0, true
	}
	r.shortest(off, p)
	if constant(string(p)) > 0 {
		variant = longEncoding
	}
	return p, variant, false
}

// shortest records an error unless p is the shortest two's complement of its
// number.
func (r *reader) shortest(off int, p []byte) {
	if len(p) > 1 && (p[0] == 0 && p[1] < 0x80 || p[0] == 0xff && p[1] >= 0x80) {
		r.other(off, "a big integer that is not in its shortest encoding")
	}
}

// constant returns the number of a constant, or 0.
func constant(digits string) int {
	for i := 1; i < len(constants); i++ {
		if constants[i] == digits {
			return i
		}
	}
	return 0
}

func (w *writer) bigInt(digits string, variant uint8) {
	if n := constant(digits); n > 0 && variant != longEncoding {
		w.int(int64(n), 4)
		return
	}
	if len(digits) > math.MaxInt32-4 || digits == "" {
		w.fail("a big integer of %d bytes", len(digits))
		return
	}
	w.int(int64(len(digits)+4), 4)
	w.p = append(w.p, digits...)
}

func skipBigInt(r *reader) (null bool) {
	n := r.I32()
	if n > 3 {
		r.Bytes(int(n-4), "a big integer")
	}
	return n == 0
}

var bigIntCodec = scalar{typ: &Type{Kind: TypeBigInt, Word: "BigInteger", Null: true},
	over: func(r *reader) { skipBigInt(r) },
	get: func(r *reader) value.Value {
		p, variant, null := r.bigInt()
		if null {
			return value.Null()
		}
		return value.BigInt(p).WithVariant(variant)
	},
	put: func(w *writer, v value.Value) {
		if v.IsNull() {
			w.int(0, 4)
		} else if w.expects(v, value.KindBigInt) {
			w.bigInt(v.Text(), v.Variant())
		}
	},
	from: func(p *parser, n *node) value.Value {
		if n.Kind == jsontext.Null {
			return value.Null()
		}
		return value.BigInt(twosComplement(p.bigInteger(n)))
	},
}

// bigDecCodec reads a big integer and, unless that is null, int scale.
var bigDecCodec = scalar{typ: &Type{Kind: TypeDecimal, Word: "BigDecimal", Null: true},
	over: func(r *reader) {
		if !skipBigInt(r) {
			r.Bytes(4, "a scale")
		}
	},
	get: func(r *reader) value.Value {
		p, variant, null := r.bigInt()
		if null {
			return value.Null()
		}
		return value.Decimal(p, r.I32()).WithVariant(variant)
	},
	put: func(w *writer, v value.Value) {
		if v.IsNull() {
			w.int(0, 4)
		} else if w.expects(v, value.KindDecimal) {
			w.bigInt(v.Text(), v.Variant())
			w.int(int64(v.Scale()), 4)
		}
	},
	from: func(p *parser, n *node) value.Value {
		if n.Kind == jsontext.Null {
			return value.Null()
		}
		unscaled, scale := p.decimal(n)
		return value.Decimal(twosComplement(unscaled), scale)
	},
}

// decimalData is the codec of SQL decimals (spec flink-serializers B10): long
// unscaled if the precision is at most 18, otherwise int length and two's
// complement.
func decimalData(precision, scale int32) scalar {
	fits := func(w *writer, v value.Value) bool { return w.decimal(v, precision, scale) }
	from := func(p *parser, n *node) value.Value { return p.sqlDecimal(n, precision, scale) }
	typ := &Type{Kind: TypeDecimal, Word: "decimal", Precision: precision, Scale: scale}
	if precision <= 18 {
		return scalar{size: 8, from: from, typ: typ,
			get: func(r *reader) value.Value {
				off := r.Offset()
				return r.smallDecimal(off, r.I64(), precision, scale)
			},
			put: func(w *writer, v value.Value) {
				if !fits(w, v) {
					return
				}
				n := v.BigInt()
				if !n.IsInt64() {
					w.fail("%v does not fit into 64 bits", n)
					return
				}
				w.int(n.Int64(), 8)
			},
		}
	}
	return scalar{from: from, typ: typ,
		over: func(r *reader) { r.Blob("a decimal") },
		get: func(r *reader) value.Value {
			off := r.Offset()
			p := r.Blob("a decimal")
			if r.Err() == nil && len(p) == 0 {
				r.Fail(off, format.ErrCorrupt, "a decimal without a digit")
			}
			return r.wideDecimal(off, p, precision, scale)
		},
		put: func(w *writer, v value.Value) {
			if fits(w, v) {
				w.blob(v.Text())
			}
		},
	}
}

// decimal reports whether v is a decimal of a SQL type, and records an error if it is
// not.
func (w *writer) decimal(v value.Value, precision, scale int32) bool {
	switch {
	case !w.expects(v, value.KindDecimal):
	case v.Scale() != scale:
		w.fail("expected a decimal of scale %d, found %d", scale, v.Scale())
	case v.BigInt().CmpAbs(powerOfTen(precision)) >= 0:
		w.fail("%v has more than %d digits", v, precision)
	default:
		return true
	}
	return false
}

// smallDecimal returns the decimal of a SQL type with up to 18 digits.
func (r *reader) smallDecimal(off int, unscaled int64, precision, scale int32) value.Value {
	n := big.NewInt(unscaled)
	r.digits(off, n, precision)
	return value.Decimal(twosComplement(n), scale)
}

// wideDecimal returns the decimal of a SQL type with more digits.
func (r *reader) wideDecimal(off int, p []byte, precision, scale int32) value.Value {
	r.shortest(off, p)
	v := value.Decimal(p, scale)
	r.digits(off, v.BigInt(), precision)
	return v
}

func (r *reader) digits(off int, unscaled *big.Int, precision int32) {
	if r.Err() == nil && unscaled.CmpAbs(powerOfTen(precision)) >= 0 {
		r.Fail(off, format.ErrCorrupt, "a decimal of more than %d digits", precision)
	}
}

var powersOfTen = func() (all [maxPrecision + 1]*big.Int) {
	for i := range all {
		all[i] = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(i)), nil)
	}
	return all
}()

// powerOfTen returns 10 to the power of a precision, which is at most maxPrecision.
func powerOfTen(precision int32) *big.Int {
	return powersOfTen[max(0, min(precision, maxPrecision))]
}

// sqlDecimal converts a number with at most scale digits after the point to a decimal
// of that scale.
func (p *parser) sqlDecimal(n *node, precision, scale int32) value.Value {
	unscaled, s := p.decimal(n)
	if p.err != nil {
		return value.Null()
	}
	if grow := int64(scale) - int64(s); grow < 0 || grow > maxPrecision && unscaled.Sign() != 0 {
		return p.fail("expected a number with %d digits after the point, found %s", scale, found(n))
	} else if unscaled.Sign() != 0 {
		unscaled.Mul(unscaled, new(big.Int).Exp(big.NewInt(10), big.NewInt(grow), nil))
	}
	if digits := unscaled.Text(10); len(strings.TrimPrefix(digits, "-")) > int(precision) && unscaled.Sign() != 0 {
		return p.fail("%s has more than %d digits", found(n), precision)
	}
	return value.Decimal(twosComplement(unscaled), scale)
}

// maxPrecision is the largest precision of SQL decimals.
const maxPrecision = 38

// twosComplement returns the shortest two's complement of n.
func twosComplement(n *big.Int) []byte {
	if n.Sign() >= 0 {
		return append(make([]byte, 1-min(1, n.BitLen()%8), 1+n.BitLen()/8), n.Bytes()...)
	}
	// -n-1 has the same bits, inverted.
	m := new(big.Int).Not(n)
	p := twosComplement(m)
	for i := range p {
		p[i] = ^p[i]
	}
	return p
}
