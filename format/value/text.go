package value

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/savepoint-tools/spt/internal/jsonstring"
)

// maxZeros is the number of leading zeros from which a number is written with an
// exponent.
const maxZeros = 20

// digits returns all digits of a decimal as a JSON number.
func (v Value) digits() string {
	digits := v.BigInt().String()
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	point := int64(len(digits)) - int64(v.aux)
	switch {
	case v.aux == 0:
	case v.aux < 0, point <= -maxZeros: // zeros at the end would be digits
		return sign + digits + "e" + strconv.FormatInt(-int64(v.aux), 10)
	case point <= 0:
		digits = "0." + strings.Repeat("0", int(-point)) + digits
	case point < int64(len(digits)):
		digits = digits[:point] + "." + digits[point:]
	}
	return sign + digits
}

func (v Value) decimalFloat() float64 {
	f, _ := strconv.ParseFloat(v.digits(), 64) // the error means infinity, which f is
	return f
}

// String returns v as a text, for users and for comparing with text: all digits of
// a number, ISO 8601 for a time, the characters of a string, "null" for null, and
// JSON for a value with parts.
func (v Value) String() string {
	switch v.kind {
	case KindString, KindBytes:
		return v.characters()
	case KindInstant, KindDate, KindTimeOfDay, KindDateTime:
		return v.isoText()
	case KindFloat32, KindFloat64:
		return strings.Trim(string(v.WithClass("").AppendJSON(nil, nil, nil)), `"`)
	}
	return string(v.AppendJSON(nil, nil, nil))
}

// isoText returns a time in ISO 8601; an instant in UTC.
func (v Value) isoText() string {
	if v.kind == KindInstant {
		return v.Time().Format(time.RFC3339Nano)
	}
	c := v.Civil()
	date, clock := "", ""
	if v.kind != KindTimeOfDay {
		sign, year := "", int64(c.Year)
		if year < 0 {
			sign, year = "-", -year
		}
		date = fmt.Sprintf("%s%04d-%02d-%02d", sign, year, c.Month, c.Day)
	}
	if v.kind != KindDate {
		clock = time.Date(1, 1, 1, int(c.Hour), int(c.Minute), int(c.Second), int(c.Nano), time.UTC).Format("15:04:05.999999999")
	}
	if v.kind == KindDateTime {
		return date + "T" + clock
	}
	return date + clock
}

// MarshalJSON implements json.Marshaler with [Value.AppendJSON].
func (v Value) MarshalJSON() ([]byte, error) { return v.AppendJSON(nil, nil, nil), nil }

// AppendJSON appends v as JSON, as docs/json.md describes. text and bytes, if not nil,
// append strings and byte arrays, which they must not change; by default a byte array is
// {"base64": …}.
func (v Value) AppendJSON(dst []byte, text func(dst []byte, s string) []byte, bytes func(dst, p []byte) []byte) []byte {
	w := jsonWriter{text, bytes}
	if text == nil {
		w.text = appendString
	}
	if bytes == nil {
		w.bytes = appendBytes
	}
	return w.append(dst, &v)
}

func appendString(dst []byte, s string) []byte { return jsonstring.Append(dst, s, false) }

func appendBytes(dst, p []byte) []byte {
	return append(base64.StdEncoding.AppendEncode(append(dst, `{"base64":"`...), p), `"}`...)
}

// Surrogate returns the half of a surrogate pair whose three bytes s starts with, and
// whether it does. Strings of UTF-16 units can contain them; they are not UTF-8.
func Surrogate(s string) (unit uint16, ok bool) { return jsonstring.Surrogate(s) }

// Names of members that are not fields. A field whose name starts with "@" has
// another one in front.
const (
	ClassMember = "@class" // the class of a value
	ValueMember = "@value" // the value, if it is not a record
	NullMember  = "@null"  // a null within so many values that are not null
)

// FieldMember returns the name of the member for a field of a record.
func FieldMember(name string) string {
	if strings.HasPrefix(name, "@") {
		return "@" + name
	}
	return name
}

// EncodedNull is the first variant of nulls that differ only in their encoding.
const EncodedNull = 128

// jsonWriter appends values. It takes them by reference, because copies take half of
// the time.
type jsonWriter struct {
	text  func(dst []byte, s string) []byte
	bytes func(dst, p []byte) []byte
}

func (w *jsonWriter) append(dst []byte, v *Value) []byte {
	if v.shape == nil || v.kind == KindRecord || v.shape.class == "" {
		return w.bare(dst, v)
	}
	dst = append(w.text(append(dst, `{"`+ClassMember+`":`...), v.shape.class), `,"`+ValueMember+`":`...)
	return append(w.bare(dst, v), '}')
}

// bare appends a value without its class, unless it is a record.
func (w *jsonWriter) bare(dst []byte, v *Value) []byte {
	switch v.kind {
	case KindBool:
		return strconv.AppendBool(dst, v.num != 0)
	case KindInt:
		return strconv.AppendInt(dst, v.num, 10)
	case KindUint:
		return strconv.AppendUint(dst, uint64(v.num), 10)
	case KindFloat32:
		return appendFloat(dst, float64(math.Float32frombits(uint32(v.num))), uint64(v.num), 32)
	case KindFloat64:
		return appendFloat(dst, math.Float64frombits(uint64(v.num)), uint64(v.num), 64)
	case KindString:
		return w.text(dst, unsafe.String((*byte)(v.data), int(v.num)))
	case KindBytes:
		return w.bytes(dst, unsafe.Slice((*byte)(v.data), int(v.num)))
	case KindBigInt:
		return v.BigInt().Append(dst, 10)
	case KindDecimal:
		return append(dst, v.digits()...)
	case KindInstant, KindDate, KindTimeOfDay, KindDateTime:
		return w.text(dst, v.isoText())
	case KindList:
		dst = append(dst, '[')
		parts := v.parts()
		for i := range parts {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.append(dst, &parts[i])
		}
		return append(dst, ']')
	case KindRecord:
		dst = append(dst, '{')
		class := v.shape.class
		if class != "" {
			dst = w.text(append(dst, `"`+ClassMember+`":`...), class)
		}
		parts := v.parts()
		for i := range parts {
			if i > 0 || class != "" {
				dst = append(dst, ',')
			}
			dst = w.append(append(w.text(dst, FieldMember(v.shape.Names[i])), ':'), &parts[i])
		}
		return append(dst, '}')
	case KindMap:
		dst = append(dst, '[')
		parts := v.parts()
		for i := 0; i < len(parts); i += 2 {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(w.append(append(dst, '['), &parts[i]), ',')
			dst = append(w.append(dst, &parts[i+1]), ']')
		}
		return append(dst, ']')
	}
	if v.variant > 0 && v.variant < EncodedNull {
		return append(strconv.AppendInt(append(dst, `{"`+NullMember+`":`...), int64(v.variant), 10), '}')
	}
	return append(dst, "null"...)
}

// The bits of the NaN that Java writes.
const (
	nan32 = 0x7fc00000
	nan64 = 0x7ff8000000000000
)

// appendFloat appends the shortest digits that represent a number, in the notation
// of JavaScript, or the text of a number that JSON does not have.
func appendFloat(dst []byte, f float64, bits uint64, size int) []byte {
	switch {
	case math.IsNaN(f) && size == 32 && bits != nan32:
		return fmt.Appendf(dst, `"NaN(%08x)"`, uint32(bits))
	case math.IsNaN(f) && size == 64 && bits != nan64:
		return fmt.Appendf(dst, `"NaN(%016x)"`, bits)
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	verb := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-6 || a >= 1e21) {
		verb = 'e'
	}
	return strconv.AppendFloat(dst, f, verb, -1, size)
}
