package scramble

import (
	"math"
	"math/big"
	"math/bits"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// Mask replaces the parts of values. It implements [value.Mask].
//
//   - An integer keeps its sign and its number of bits, so 0, 1, -1 and -2 stay; with
//     Wide, the number of bytes that it needs.
//   - A float or double that is a whole number is replaced like an integer; another one
//     keeps its sign and exponent. Zero, infinities and the usual NaN stay.
//   - A decimal keeps its sign, its number of digits and its scale.
//   - A string keeps its number of characters, and each character the number of bytes
//     that it takes. Characters that cannot be printed stay such. The text of a UUID, in
//     lower case, becomes the text of a UUID.
//   - A byte array keeps its length.
//   - An instant or a date keeps its sign and number of bits of the seconds or days
//     since 1970; times keep whether they have milliseconds, microseconds or
//     nanoseconds.
type Mask struct {
	*Key
	Wide bool
}

var _ value.Mask = Mask{}

func unsupported(what string) error {
	return format.Errorf(format.ErrUnsupported, "%s cannot be replaced", what)
}

// Leaf implements [value.Mask].
func (m Mask) Leaf(v value.Value) (value.Value, error) {
	switch v.Kind() {
	case value.KindBool:
		return value.Bool(v.Bool() != (m.Choice(0, 2) == 1)), nil
	case value.KindInt:
		return value.Int(m.number(v.Int())), nil
	case value.KindUint:
		return value.Uint(m.magnitude(ofNumbers, v.Uint())), nil
	case value.KindFloat32:
		return value.Float32(uint32(m.float(uint64(uint32(v.Int())), 32))), nil
	case value.KindFloat64:
		return value.Float64(m.float(uint64(v.Int()), 64)), nil
	case value.KindString:
		s, err := m.text(v.Text())
		return value.String(s), err
	case value.KindBytes:
		if v.Class() != "" {
			return v, unsupported("bytes of class " + v.Class())
		}
		return value.Bytes(m.bytes([]byte(v.Text()))), nil
	case value.KindBigInt:
		return value.BigInt(m.big(v.Text(), v.BigInt())), nil
	case value.KindDecimal:
		return m.decimal(v), nil
	case value.KindInstant:
		return value.Instant(m.number(v.Int()), m.fraction(v.Nano())), nil
	case value.KindDate, value.KindTimeOfDay, value.KindDateTime:
		return m.civil(v)
	}
	return v, unsupported(v.Kind().String())
}

// Name implements [value.Mask]: letters are replaced by letters, digits by digits, and
// other characters of ASCII stay.
func (m Mask) Name(v value.Value) (value.Value, error) {
	if v.Kind() != value.KindString {
		return v, unsupported(v.Kind().String() + " as a name")
	}
	s, err := m.characters(ofNames, v.Text())
	return value.String(s), err
}

// Choice implements [value.Mask].
func (m Mask) Choice(i, n int) int {
	s := []symbol{{uint32(i), uint32(n)}}
	m.permute(ofChoices, 0, s)
	return int(s[0].n)
}

// number replaces an integer.
func (m Mask) number(n int64) int64 {
	if n < 0 {
		return ^int64(m.magnitude(ofNegative, uint64(^n)))
	}
	return int64(m.magnitude(ofNumbers, uint64(n)))
}

// magnitude replaces a number by another one of as many bits.
func (m Mask) magnitude(d domain, n uint64) uint64 {
	k := bits.Len64(n)
	if !m.Wide || k > 63 {
		if k < 2 {
			return n
		}
		top := uint64(1) << (k - 1)
		return top | m.low(d, uint64(k), n&^top, k-1)
	}
	// The class is the size of the smallest integer: 7, 15, 31 or 63 bits.
	width, least := 7, uint64(0)
	for k > width {
		least = 1 << width
		width = 2*width + 1
	}
	for {
		if n = m.low(d, uint64(width)|1<<8, n, width); n >= least {
			return n
		}
	}
}

// low permutes the numbers of some bits.
func (m Mask) low(d domain, tweak, n uint64, width int) uint64 {
	var buf [8]symbol
	s := buf[:0]
	for at := width; at > 0; at -= 8 {
		w := min(at, 8)
		s = append(s, symbol{uint32(n >> (at - w) & (1<<w - 1)), 1 << w})
	}
	m.permute(d, tweak, s)
	n = 0
	for _, x := range s {
		n = n<<bits.Len32(x.radix-1) | uint64(x.n)
	}
	return n
}

// float replaces the bits of a float or double.
func (m Mask) float(b uint64, size int) uint64 {
	mantissa := 52
	f := math.Float64frombits(b)
	if size == 32 {
		mantissa = 23
		f = float64(math.Float32frombits(uint32(b)))
	}
	whole := func(f float64) bool {
		return f == math.Trunc(f) && math.Abs(f) < float64(uint64(1)<<(mantissa+1))
	}
	special := func(f float64, b uint64) bool {
		return math.IsInf(f, 0) || math.IsNaN(f) && b<<(64-mantissa) == 1<<63
	}
	if f == 0 || special(f, b) {
		return b
	}
	if whole(f) {
		sign := math.Copysign(1, f)
		f = sign * float64(m.magnitude(ofNumbers, uint64(math.Abs(f))))
		if size == 32 {
			return uint64(math.Float32bits(float32(f)))
		}
		return math.Float64bits(f)
	}
	head, low := b>>mantissa, b&(1<<mantissa-1)
	for {
		low = m.low(ofFloats, head<<8|uint64(size), low, mantissa)
		b = head<<mantissa | low
		f = math.Float64frombits(b)
		if size == 32 {
			f = float64(math.Float32frombits(uint32(b)))
		}
		if !special(f, b) && !whole(f) {
			return b
		}
	}
}

// big replaces the two's complement of a big integer.
func (m Mask) big(text string, n *big.Int) []byte {
	d := ofNumbers
	if n.Sign() < 0 {
		d = ofNegative
		n.Not(n)
	}
	k := n.BitLen()
	if k > 1 {
		p := n.Bytes()
		top := uint(k-1) % 8
		p[0] &^= 1 << top
		s := make([]symbol, 0, len(p))
		for i, b := range p {
			radix := uint32(1 << 8)
			if i == 0 {
				if radix = 1 << top; radix == 1 {
					continue
				}
			}
			s = append(s, symbol{uint32(b), radix})
		}
		m.permute(d, uint64(k), s)
		off := len(p) - len(s)
		p[0] = 0
		for i, x := range s {
			p[off+i] = byte(x.n)
		}
		p[0] |= 1 << top
		n.SetBytes(p)
	}
	// As many bytes as before, which need not be the fewest.
	out := n.FillBytes(make([]byte, len(text)))
	if d == ofNegative {
		for i := range out {
			out[i] = ^out[i]
		}
	}
	return out
}

// decimal replaces the unscaled number of a decimal by one with as many digits.
func (m Mask) decimal(v value.Value) value.Value {
	digits := func(n *big.Int) int { return len(n.Abs(n).String()) }
	want := digits(v.BigInt())
	for {
		v = value.Decimal(m.big(v.Text(), v.BigInt()), v.Scale())
		if digits(v.BigInt()) == want {
			return v
		}
	}
}

// bytes replaces bytes, in place.
func (m Mask) bytes(p []byte) []byte {
	if len(p) > 1 {
		m.wide(p)
		return p
	}
	for i, b := range p { // one, or none
		s := []symbol{{uint32(b), 1 << 8}}
		m.permute(ofBytes, 0, s)
		p[i] = byte(s[0].n)
	}
	return p
}

// fraction replaces the nanoseconds of a second.
func (m Mask) fraction(nano int32) int32 {
	for _, unit := range []int32{1e6, 1e3, 1} {
		if nano == 0 || nano%unit != 0 {
			continue
		}
		for {
			s := []symbol{{uint32(nano / 1e6), 1000}}
			for u, rest := int32(1e3), nano%1e6; u >= unit; u /= 1000 {
				s = append(s, symbol{uint32(rest / u), 1000})
				rest %= u
			}
			m.permute(ofFractions, uint64(unit), s)
			nano = 0
			for _, x := range s {
				nano = nano*1000 + int32(x.n)
			}
			if nano *= unit; nano%(unit*1000) != 0 || unit == 1e6 && nano != 0 {
				return nano
			}
		}
	}
	return nano
}

// civil replaces a date or a time without a zone.
func (m Mask) civil(v value.Value) (value.Value, error) {
	c := v.Civil()
	if v.Kind() != value.KindTimeOfDay {
		day := time.Date(int(c.Year), time.Month(c.Month), int(c.Day), 0, 0, 0, 0, time.UTC)
		if day.Month() != time.Month(c.Month) || day.Day() != int(c.Day) {
			return v, unsupported("a date that does not exist")
		}
		const daySeconds = 24 * 60 * 60
		day = time.Unix(m.number(day.Unix()/daySeconds)*daySeconds, 0).UTC()
		if y := day.Year(); y != int(int32(y)) {
			return v, unsupported("a date too far from 1970")
		}
		c.Year, c.Month, c.Day = int32(day.Year()), uint8(day.Month()), uint8(day.Day())
	}
	if v.Kind() == value.KindDate {
		return value.Date(c.Year, c.Month, c.Day), nil
	}
	if c.Hour > 23 || c.Minute > 59 || c.Second > 59 {
		return v, unsupported("a time that does not exist")
	}
	if c.Hour|c.Minute|c.Second != 0 { // midnight stays
		s := []symbol{{uint32(c.Hour), 24}, {uint32(c.Minute), 60}, {uint32(c.Second), 60}}
		for {
			m.permute(ofClocks, 0, s)
			if s[0].n|s[1].n|s[2].n != 0 {
				break
			}
		}
		c.Hour, c.Minute, c.Second = uint8(s[0].n), uint8(s[1].n), uint8(s[2].n)
	}
	c.Nano = m.fraction(c.Nano)
	if v.Kind() == value.KindTimeOfDay {
		return value.TimeOfDay(c.Hour, c.Minute, c.Second, c.Nano), nil
	}
	return value.DateTime(c), nil
}

// ID replaces 16 bytes that identify something.
func (k *Key) ID(id [16]byte) (out [16]byte) {
	copy(out[:], Mask{Key: k}.bytes(id[:]))
	return out
}
