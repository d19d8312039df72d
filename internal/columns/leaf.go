package columns

import (
	"fmt"
	"math"
	"math/big"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// leafOf returns the column of a type that has no parts in Parquet.
func leafOf(t *types.Type) *column {
	c := &column{}
	switch t.Kind {
	case types.TypeBool:
		c.node, c.leaf = parquet.Leaf(parquet.BooleanType), booleanOf
	case types.TypeInt:
		bits := t.Bits
		if bits == 0 {
			bits = 64
		}
		c.node, c.leaf = parquet.Int(bits), func(v value.Value) (parquet.Value, error) { return integerOf(v, bits) }
	case types.TypeFloat:
		if t.Bits == 32 {
			c.node, c.leaf = parquet.Leaf(parquet.FloatType), floatOf
		} else {
			c.node, c.leaf = parquet.Leaf(parquet.DoubleType), doubleOf
		}
	case types.TypeBigInt:
		c.node, c.leaf = parquet.String(), digitsOf
	case types.TypeDecimal:
		c.node, c.leaf = decimalColumn(t)
	case types.TypeString, types.TypeEnum:
		c.node, c.leaf = parquet.String(), textOf
	case types.TypeBytes, types.TypeNotDecoded:
		c.node, c.leaf = parquet.Leaf(parquet.ByteArrayType), bytesOf
	case types.TypeInstant, types.TypeDateTime:
		u := unitOf(t.Precision)
		c.node = parquet.TimestampAdjusted(u.unit, t.Kind == types.TypeInstant)
		c.leaf = func(v value.Value) (parquet.Value, error) { return u.timestampOf(v, t.Kind) }
	case types.TypeDate:
		c.node, c.leaf = parquet.Date(), dateOf
	case types.TypeTimeOfDay:
		u := unitOf(t.Precision)
		c.node, c.leaf = parquet.TimeAdjusted(u.unit, false), u.clockOf
	default:
		c.node, c.leaf, c.json = parquet.JSON(), jsonOf, true
	}
	return c
}

// unfit is the error for a value that is not one of its column.
func unfit(v value.Value, of string) (parquet.Value, error) {
	return parquet.Value{}, format.Errorf(format.ErrUnsupported, "%s does not fit into a column of %s", v.Kind(), of)
}

func booleanOf(v value.Value) (parquet.Value, error) {
	if v.Kind() != value.KindBool {
		return unfit(v, "BOOLEAN")
	}
	return parquet.BooleanValue(v.Bool()), nil
}

func integerOf(v value.Value, bits int) (parquet.Value, error) {
	n := v.Int()
	if v.Kind() != value.KindInt || n<<(64-bits)>>(64-bits) != n {
		return unfit(v, fmt.Sprintf("INT(%d)", bits))
	}
	if bits == 64 {
		return parquet.Int64Value(n), nil
	}
	return parquet.Int32Value(int32(n)), nil
}

func floatOf(v value.Value) (parquet.Value, error) {
	if v.Kind() != value.KindFloat32 {
		return unfit(v, "FLOAT")
	}
	return parquet.FloatValue(math.Float32frombits(uint32(v.Int()))), nil
}

func doubleOf(v value.Value) (parquet.Value, error) {
	if v.Kind() != value.KindFloat64 && v.Kind() != value.KindFloat32 {
		return unfit(v, "DOUBLE")
	}
	return parquet.DoubleValue(v.Float()), nil
}

func bytesOf(v value.Value) (parquet.Value, error) {
	if v.Kind() != value.KindBytes {
		return unfit(v, "BINARY")
	}
	return parquet.ByteArrayValue([]byte(v.Text())), nil
}

func stringOf(s string) parquet.Value { return parquet.ByteArrayValue([]byte(s)) }

// textOf puts a string. What is not UTF-8, such as half a surrogate pair, is U+FFFD:
// readers of Parquet refuse it.
func textOf(v value.Value) (parquet.Value, error) {
	if v.Kind() != value.KindString {
		return unfit(v, "STRING")
	}
	return stringOf(strings.ToValidUTF8(v.Text(), "\ufffd")), nil
}

// digitsOf puts a number as its digits.
func digitsOf(v value.Value) (parquet.Value, error) {
	switch v.Kind() {
	case value.KindInt, value.KindUint, value.KindBigInt, value.KindDecimal:
		return stringOf(v.String()), nil
	}
	return unfit(v, "STRING with the digits of a number")
}

func jsonOf(v value.Value) (parquet.Value, error) {
	return parquet.ByteArrayValue(v.AppendJSON(nil, nil, nil)), nil
}

// maxDigits is how many digits a DECIMAL has in readers: what 16 bytes hold.
const maxDigits = 38

// decimalColumn returns the column of a decimal: text if its digits are not bounded, or
// too many.
func decimalColumn(t *types.Type) (parquet.Node, func(value.Value) (parquet.Value, error)) {
	precision, scale := int(t.Precision), int(t.Scale)
	if precision <= 0 || precision > maxDigits || scale < 0 || scale > precision {
		return parquet.String(), digitsOf
	}
	name := fmt.Sprintf("DECIMAL(%d,%d)", precision, scale)
	limit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(precision)), nil)
	unscaled := func(v value.Value) *big.Int {
		n := v.BigInt()
		shift := int64(scale) - int64(v.Scale())
		if v.Kind() != value.KindDecimal || shift > maxDigits || shift < -maxDigits {
			return nil
		}
		by := new(big.Int).Exp(big.NewInt(10), big.NewInt(max(shift, -shift)), nil)
		if shift >= 0 {
			n.Mul(n, by)
		} else if _, rest := n.QuoRem(n, by, new(big.Int)); rest.Sign() != 0 {
			return nil
		}
		if n.CmpAbs(limit) >= 0 {
			return nil
		}
		return n
	}
	var typ parquet.Type
	var of func(n *big.Int) parquet.Value
	switch {
	case precision <= 9:
		typ, of = parquet.Int32Type, func(n *big.Int) parquet.Value { return parquet.Int32Value(int32(n.Int64())) }
	case precision <= 18:
		typ, of = parquet.Int64Type, func(n *big.Int) parquet.Value { return parquet.Int64Value(n.Int64()) }
	default:
		typ, of = parquet.FixedLenByteArrayType(16), func(n *big.Int) parquet.Value {
			if n.Sign() < 0 {
				n.Add(n, new(big.Int).Lsh(big.NewInt(1), 128))
			}
			return parquet.FixedLenByteArrayValue(n.FillBytes(make([]byte, 16)))
		}
	}
	return parquet.Decimal(scale, precision, typ), func(v value.Value) (parquet.Value, error) {
		n := unscaled(v)
		if n == nil {
			return unfit(v, name)
		}
		return of(n), nil
	}
}

// unit is the unit of a time.
type unit struct {
	unit  parquet.TimeUnit
	name  string
	nanos int64
}

// unitOf returns the coarsest unit that has as many digits of a second.
func unitOf(precision int32) unit {
	switch {
	case precision <= 3:
		return unit{parquet.Millisecond, "MILLIS", 1e6}
	case precision <= 6:
		return unit{parquet.Microsecond, "MICROS", 1e3}
	}
	return unit{parquet.Nanosecond, "NANOS", 1}
}

func (u unit) timestampOf(v value.Value, kind types.TypeKind) (parquet.Value, error) {
	name := "TIMESTAMP(" + u.name + ")"
	var t time.Time
	switch {
	case kind == types.TypeInstant && v.Kind() == value.KindInstant:
		t = v.Time()
	case kind == types.TypeDateTime && v.Kind() == value.KindDateTime:
		var ok bool
		if t, ok = timeOf(v.Civil()); !ok {
			return unfit(v, name)
		}
	default:
		return unfit(v, name)
	}
	perSecond := int64(time.Second) / u.nanos
	n := new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(perSecond))
	n.Add(n, big.NewInt(int64(t.Nanosecond())/u.nanos))
	if !n.IsInt64() || int64(t.Nanosecond())%u.nanos != 0 {
		return parquet.Value{}, format.Errorf(format.ErrUnsupported, "%s does not fit into a column of %s", v, name)
	}
	return parquet.Int64Value(n.Int64()), nil
}

// timeOf returns a date with time as if it were in UTC, and whether it exists.
func timeOf(c value.Civil) (time.Time, bool) {
	t := time.Date(int(c.Year), time.Month(c.Month), int(c.Day), int(c.Hour), int(c.Minute), int(c.Second), int(c.Nano), time.UTC)
	same := t.Month() == time.Month(c.Month) && t.Day() == int(c.Day) && t.Hour() == int(c.Hour) && t.Minute() == int(c.Minute) && t.Second() == int(c.Second) && t.Nanosecond() == int(c.Nano)
	return t, same
}

func dateOf(v value.Value) (parquet.Value, error) {
	t, ok := timeOf(v.Civil())
	const day = 24 * 60 * 60
	days := t.Unix() / day // of midnight: without rest
	if v.Kind() != value.KindDate || !ok || int64(int32(days)) != days {
		return unfit(v, "DATE")
	}
	return parquet.Int32Value(int32(days)), nil
}

func (u unit) clockOf(v value.Value) (parquet.Value, error) {
	c := v.Civil()
	c.Year, c.Month, c.Day = 1970, 1, 1
	t, ok := timeOf(c)
	if v.Kind() != value.KindTimeOfDay || !ok || int64(c.Nano)%u.nanos != 0 {
		return unfit(v, "TIME("+u.name+")")
	}
	n := t.UnixNano() / u.nanos
	if u.unit == parquet.Millisecond {
		return parquet.Int32Value(int32(n)), nil
	}
	return parquet.Int64Value(n), nil
}
