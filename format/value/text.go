package value

import (
	"encoding/base64"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
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
// append strings and byte arrays; by default a byte array is {"base64": …}.
func (v Value) AppendJSON(dst []byte, text func(dst []byte, s string) []byte, bytes func(dst []byte, s string) []byte) []byte {
	if text == nil {
		text = appendString
	}
	if bytes == nil {
		bytes = func(dst []byte, s string) []byte {
			return append(base64.StdEncoding.AppendEncode(append(dst, `{"base64":"`...), []byte(s)), `"}`...)
		}
	}
	w := jsonWriter{text, bytes}
	return w.append(dst, v)
}

// appendString appends a JSON string. Half a surrogate pair, which is not UTF-8, is
// an escape sequence.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch half, ok := Surrogate(s); {
		case r == utf8.RuneError && n == 1 && ok:
			dst = fmt.Appendf(dst, `\u%04x`, half)
			n = 3
		case r == '"', r == '\\':
			dst = append(dst, '\\', byte(r))
		case r < 0x20:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		default:
			dst = utf8.AppendRune(dst, r)
		}
		s = s[n:]
	}
	return append(dst, '"')
}

// Surrogate returns the half of a surrogate pair whose three bytes s starts with, and
// whether it does. Strings of UTF-16 units can contain them; they are not UTF-8.
func Surrogate(s string) (unit uint16, ok bool) {
	if len(s) >= 3 && s[0] == 0xed && s[1]>>5 == 0b101 && s[2]>>6 == 0b10 {
		return 0xd000 | uint16(s[1]&0x3f)<<6 | uint16(s[2]&0x3f), true
	}
	return 0, false
}

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

type jsonWriter struct {
	text, bytes func(dst []byte, s string) []byte
}

func (w *jsonWriter) append(dst []byte, v Value) []byte {
	if v.shape == nil || v.kind == KindRecord || v.shape.class == "" {
		return w.bare(dst, v)
	}
	dst = append(w.text(append(dst, `{"`+ClassMember+`":`...), v.shape.class), `,"`+ValueMember+`":`...)
	return append(w.bare(dst, v), '}')
}

// bare appends a value without its class, unless it is a record.
func (w *jsonWriter) bare(dst []byte, v Value) []byte {
	switch v.kind {
	case KindBool:
		return strconv.AppendBool(dst, v.num != 0)
	case KindInt:
		return strconv.AppendInt(dst, v.num, 10)
	case KindUint:
		return strconv.AppendUint(dst, uint64(v.num), 10)
	case KindFloat32, KindFloat64:
		return v.appendFloat(dst)
	case KindString:
		return w.text(dst, v.characters())
	case KindBytes:
		return w.bytes(dst, v.characters())
	case KindBigInt:
		return v.BigInt().Append(dst, 10)
	case KindDecimal:
		return append(dst, v.digits()...)
	case KindInstant, KindDate, KindTimeOfDay, KindDateTime:
		return w.text(dst, v.isoText())
	case KindList:
		dst = append(dst, '[')
		for i, e := range v.parts() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.append(dst, e)
		}
		return append(dst, ']')
	case KindRecord:
		dst = append(dst, '{')
		class := v.Class()
		if class != "" {
			dst = w.text(append(dst, `"`+ClassMember+`":`...), class)
		}
		for i, e := range v.parts() {
			if i > 0 || class != "" {
				dst = append(dst, ',')
			}
			dst = w.append(append(w.text(dst, FieldMember(v.shape.Names[i])), ':'), e)
		}
		return append(dst, '}')
	case KindMap:
		dst = append(dst, '[')
		for i := range v.Len() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.append(append(dst, '['), v.Key(i))
			dst = append(w.append(append(dst, ','), v.At(i)), ']')
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
func (v Value) appendFloat(dst []byte) []byte {
	f, bits := v.Float(), 64
	if v.kind == KindFloat32 {
		bits = 32
	}
	switch {
	case math.IsNaN(f) && bits == 32 && v.num != nan32:
		return fmt.Appendf(dst, `"NaN(%08x)"`, uint32(v.num))
	case math.IsNaN(f) && bits == 64 && v.num != nan64:
		return fmt.Appendf(dst, `"NaN(%016x)"`, uint64(v.num))
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
	return strconv.AppendFloat(dst, f, verb, -1, bits)
}
