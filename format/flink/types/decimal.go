package types

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Decimal is a decimal number, Unscaled × 10^-Scale: what Java calls a
// BigDecimal, whose trailing zeros count.
type Decimal struct {
	Unscaled *big.Int
	Scale    int32
}

// maxZeros is from how many zeros on a number is written with an exponent.
const maxZeros = 20

// String is all digits of the number, as JSON has numbers.
func (d Decimal) String() string {
	digits := d.Unscaled.String()
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	point := int64(len(digits)) - int64(d.Scale)
	switch {
	case d.Scale == 0:
	case point > int64(len(digits))+maxZeros, point <= -maxZeros:
		return sign + digits + "e" + strconv.FormatInt(-int64(d.Scale), 10)
	case point <= 0:
		digits = "0." + strings.Repeat("0", int(-point)) + digits
	case point < int64(len(digits)):
		digits = digits[:point] + "." + digits[point:]
	case d.Unscaled.Sign() != 0:
		digits += strings.Repeat("0", int(point)-len(digits))
	}
	return sign + digits
}

// MarshalJSON is the digits.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// Float is the nearest number that a float64 holds, or an infinity.
func (d Decimal) Float() float64 {
	f, _ := strconv.ParseFloat(d.String(), 64) // its error says that it is an infinity
	return f
}

// readBigDec reads a big integer and, unless that is null, int scale.
func readBigDec(r *reader) any {
	n, ok := readBigInt(r).(*big.Int)
	if !ok {
		return nil
	}
	return Decimal{n, r.I32()}
}

// decimalData reads the decimals of SQL (spec B10): long unscaled where the
// precision is at most 18, else int length and two's complement.
func decimalData(precision, scale int32) decoder {
	return func(r *reader) any {
		if precision <= 18 {
			return Decimal{big.NewInt(r.I64()), scale}
		}
		off := r.Offset()
		p := r.Blob("a decimal")
		if r.Err() == nil && len(p) == 0 {
			r.Fail(off, format.ErrCorrupt, "a decimal without a digit")
		}
		if r.Err() != nil {
			return nil
		}
		return Decimal{twosComplement(p), scale}
	}
}

// twosComplement is the number that big-endian bytes are.
func twosComplement(p []byte) *big.Int {
	v := new(big.Int).SetBytes(p)
	if p[0]&0x80 != 0 {
		v.Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(8*len(p))))
	}
	return v
}
