package expression

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format/value"
)

func float(f float64) value.Value { return value.Float64(math.Float64bits(f)) }

func isInteger(k value.Kind) bool {
	return k == value.KindInt || k == value.KindUint || k == value.KindBigInt
}

func isFloat(k value.Kind) bool { return k == value.KindFloat32 || k == value.KindFloat64 }

func isNumber(k value.Kind) bool { return isInteger(k) || isFloat(k) || k == value.KindDecimal }

// bigOf returns an integer.
func bigOf(v value.Value) *big.Int {
	switch v.Kind() {
	case value.KindInt:
		return big.NewInt(v.Int())
	case value.KindUint:
		return new(big.Int).SetUint64(v.Uint())
	}
	return v.BigInt()
}

// integer returns an integer in its smallest kind.
func integer(n *big.Int) value.Value {
	switch {
	case n.IsInt64():
		return value.Int(n.Int64())
	case n.IsUint64():
		return value.Uint(n.Uint64())
	}
	return value.BigInt(complement(n))
}

// complement returns n in big-endian two's complement.
func complement(n *big.Int) []byte {
	size := n.BitLen()/8 + 1
	if n.Sign() < 0 {
		n = new(big.Int).Add(n, new(big.Int).Lsh(big.NewInt(1), uint(8*size)))
	}
	return n.FillBytes(make([]byte, size))
}

// floatOf returns a number as the nearest float.
func floatOf(v value.Value) float64 {
	if v.Kind() == value.KindBigInt {
		f, _ := new(big.Float).SetInt(v.BigInt()).Float64()
		return f
	}
	return v.Float()
}

// decimal is unscaled × 10^-scale.
type decimal struct {
	unscaled *big.Int
	scale    int64
}

// maxExponent bounds the exponents of decimals that are calculated with. All floats
// are within.
const maxExponent = 1000

// decimalOf returns the decimal of digits as they are written, if its exponent is
// within bounds.
func decimalOf(text string) (decimal, bool) {
	digits, exponent := text, int64(0)
	if i := strings.IndexAny(text, "eE"); i >= 0 {
		e, err := strconv.ParseInt(text[i+1:], 10, 32)
		if err != nil || e < -maxExponent || e > maxExponent {
			return decimal{}, false
		}
		digits, exponent = text[:i], e
	}
	whole, fraction, _ := strings.Cut(digits, ".")
	n, ok := new(big.Int).SetString(whole+fraction, 10)
	return decimal{n, int64(len(fraction)) - exponent}, ok
}

// exact returns a number but NaN and the infinities as a decimal: of a float, the
// shortest digits that are it, which are those that are printed.
func exact(v value.Value) decimal {
	switch k := v.Kind(); k {
	case value.KindDecimal:
		return decimal{v.BigInt(), int64(v.Scale())}
	case value.KindFloat32, value.KindFloat64:
		bits := 64
		if k == value.KindFloat32 {
			bits = 32
		}
		d, _ := decimalOf(strconv.FormatFloat(v.Float(), 'e', -1, bits))
		return d
	}
	return decimal{bigOf(v), 0}
}

func (d decimal) value() value.Value {
	return value.Decimal(complement(d.unscaled), int32(d.scale))
}

// compare compares decimals. Their exponents, which can be anything, cost nothing.
func (d decimal) compare(o decimal) int {
	if c := cmp.Compare(d.unscaled.Sign(), o.unscaled.Sign()); c != 0 || d.unscaled.Sign() == 0 {
		return c
	}
	if d.scale == o.scale {
		return d.unscaled.Cmp(o.unscaled)
	}
	n, m := digitsOf(d.unscaled), digitsOf(o.unscaled)
	if c := cmp.Compare(n-d.scale, m-o.scale); c != 0 {
		return c * d.unscaled.Sign()
	}
	// As long as each other: the scales differ by no more than the digits do.
	return d.at(max(d.scale, o.scale)).Cmp(o.at(max(d.scale, o.scale)))
}

// digitsOf returns the number of decimal digits.
func digitsOf(n *big.Int) int64 { return int64(len(strings.TrimPrefix(n.String(), "-"))) }

// at returns the unscaled number at a scale that is not smaller.
func (d decimal) at(scale int64) *big.Int {
	if scale == d.scale {
		return d.unscaled
	}
	return new(big.Int).Mul(d.unscaled, new(big.Int).Exp(big.NewInt(10), big.NewInt(scale-d.scale), nil))
}

// compareNumbers compares two numbers exactly. Those that are not ordered are NaN.
func compareNumbers(a, b value.Value) (c int, ordered bool) {
	ka, kb := a.Kind(), b.Kind()
	switch {
	case ka == value.KindInt && kb == value.KindInt:
		return cmp.Compare(a.Int(), b.Int()), true
	case isFloat(ka) && isFloat(kb):
		x, y := a.Float(), b.Float()
		return cmp.Compare(x, y), x == x && y == y
	case isFloat(kb):
		return compareFloat(a, b)
	case isFloat(ka):
		c, ordered = compareFloat(b, a)
		return -c, ordered
	case ka == value.KindDecimal || kb == value.KindDecimal:
		return exact(a).compare(exact(b)), true
	case ka == value.KindUint && kb == value.KindUint:
		return cmp.Compare(a.Uint(), b.Uint()), true
	case ka == value.KindUint && kb == value.KindInt:
		return 1, true
	case ka == value.KindInt && kb == value.KindUint:
		return -1, true
	}
	return bigOf(a).Cmp(bigOf(b)), true
}

// compareFloat compares an exact number with a float.
func compareFloat(a, b value.Value) (c int, ordered bool) {
	f := b.Float()
	switch {
	case f != f:
		return 0, false
	case math.IsInf(f, 0):
		return -int(math.Copysign(1, f)), true
	}
	switch a.Kind() {
	case value.KindDecimal:
		return exact(a).compare(exact(b)), true
	case value.KindInt:
		switch {
		case f >= 1<<63:
			return -1, true
		case f < -1<<63:
			return 1, true
		}
		whole := math.Trunc(f)
		if c := cmp.Compare(a.Int(), int64(whole)); c != 0 {
			return c, true
		}
		return cmp.Compare(whole, f), true
	}
	return new(big.Float).SetInt(bigOf(a)).Cmp(big.NewFloat(f)), true
}

// arithmetic calculates with two numbers. Integers stay exact; one divided by another
// is a float.
func arithmetic(op string, a, b value.Value) (value.Value, *Error) {
	ka, kb := a.Kind(), b.Kind()
	if ka == value.KindInt && kb == value.KindInt {
		if n, ok := small(op, a.Int(), b.Int()); ok {
			return value.Int(n), nil
		}
	}
	switch {
	case op == "%":
		switch {
		case !isInteger(ka) || !isInteger(kb):
			return value.Value{}, failf(0, "%% needs integers, found %v and %v", ka, kb)
		case bigOf(b).Sign() == 0:
			return value.Value{}, failf(0, "%% by zero")
		}
		return integer(new(big.Int).Rem(bigOf(a), bigOf(b))), nil
	case op == "/":
		return float(floatOf(a) / floatOf(b)), nil
	case op == "**":
		return power(a, b)
	case isFloat(ka) || isFloat(kb):
		x, y := floatOf(a), floatOf(b)
		switch op {
		case "+":
			return float(x + y), nil
		case "-":
			return float(x - y), nil
		}
		return float(x * y), nil
	case isInteger(ka) && isInteger(kb):
		n := combine(op, bigOf(a), bigOf(b))
		if n.BitLen() > maxBits {
			return value.Value{}, tooLarge()
		}
		return integer(n), nil
	}
	d, o := exact(a), exact(b)
	for _, x := range []decimal{d, o} {
		if x.scale < -maxExponent || x.scale > maxExponent || x.unscaled.BitLen() > maxBits {
			return value.Value{}, tooLarge()
		}
	}
	if op == "*" {
		return decimal{new(big.Int).Mul(d.unscaled, o.unscaled), d.scale + o.scale}.value(), nil
	}
	scale := max(d.scale, o.scale)
	return decimal{combine(op, d.at(scale), o.at(scale)), scale}.value(), nil
}

func tooLarge() *Error { return failf(0, "the result is too large to be calculated exactly") }

// small calculates with integers if the result is one of 64 bits.
func small(op string, a, b int64) (n int64, ok bool) {
	switch op {
	case "+":
		n = a + b
		return n, (n > a) == (b > 0)
	case "-":
		n = a - b
		return n, (n < a) == (b > 0)
	case "*":
		if a == 0 || b == 0 {
			return 0, true
		}
		n = a * b
		return n, n/b == a && !(a == -1 && b == math.MinInt64) && !(b == -1 && a == math.MinInt64)
	case "%":
		if b == 0 {
			return 0, false
		}
		if b == -1 {
			return 0, true
		}
		return a % b, true
	}
	return 0, false
}

func combine(op string, a, b *big.Int) *big.Int {
	switch op {
	case "+":
		return new(big.Int).Add(a, b)
	case "-":
		return new(big.Int).Sub(a, b)
	}
	return new(big.Int).Mul(a, b)
}

// power is exact for integers if the exponent is not negative.
func power(a, b value.Value) (value.Value, *Error) {
	if !isInteger(a.Kind()) || !isInteger(b.Kind()) || bigOf(b).Sign() < 0 {
		return float(math.Pow(floatOf(a), floatOf(b))), nil
	}
	base, exponent := bigOf(a), bigOf(b)
	switch {
	case base.BitLen() > 1 && (!exponent.IsInt64() || exponent.Int64() > maxBits || int64(base.BitLen()-1)*exponent.Int64() > maxBits):
		return value.Value{}, tooLarge()
	case base.BitLen() <= 1 && exponent.BitLen() > 2: // of 0, 1 and -1 all even powers are the same, and all odd ones
		exponent = big.NewInt(2 + int64(exponent.Bit(0)))
	}
	return integer(new(big.Int).Exp(base, exponent, nil)), nil
}

// negate returns -v of a number.
func negate(v value.Value) (value.Value, *Error) {
	switch k := v.Kind(); {
	case isFloat(k):
		return float(-v.Float()), nil
	case k == value.KindDecimal:
		return value.Decimal(complement(new(big.Int).Neg(v.BigInt())), v.Scale()), nil
	}
	return arithmetic("-", value.Int(0), v)
}

// sign returns -1, 0 or 1; 0 for NaN.
func sign(v value.Value) int {
	c, _ := compareNumbers(v, value.Int(0))
	return c
}
