package value

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxZeros is the number of zeros from which a number is written with an exponent.
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
	case point > int64(len(digits))+maxZeros, point <= -maxZeros:
		return sign + digits + "e" + strconv.FormatInt(-int64(v.aux), 10)
	case point <= 0:
		digits = "0." + strings.Repeat("0", int(-point)) + digits
	case point < int64(len(digits)):
		digits = digits[:point] + "." + digits[point:]
	case digits != "0":
		digits += strings.Repeat("0", int(point)-len(digits))
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
		return v.text
	case KindInstant, KindDate, KindTimeOfDay, KindDateTime:
		return v.isoText()
	case KindFloat32, KindFloat64:
		return strings.Trim(string(v.AppendJSON(nil, nil, nil)), `"`)
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

// AppendJSON appends v as JSON. Records are objects with their fields in order,
// preceded by "@class" if they have a class. Maps are arrays of pairs, since keys
// need not be text. Numbers have all their digits; NaN and the infinities are
// strings. Times are ISO 8601. text and bytes, if not nil, append strings and byte
// arrays; by default a byte array is a base64 string.
func (v Value) AppendJSON(dst []byte, text func(dst []byte, s string) []byte, bytes func(dst []byte, s string) []byte) []byte {
	if text == nil {
		text = func(dst []byte, s string) []byte {
			p, _ := json.Marshal(s) // never fails for a string
			return append(dst, p...)
		}
	}
	if bytes == nil {
		bytes = func(dst []byte, s string) []byte {
			return append(base64.StdEncoding.AppendEncode(append(dst, '"'), []byte(s)), '"')
		}
	}
	w := jsonWriter{text, bytes}
	return w.append(dst, v)
}

type jsonWriter struct {
	text, bytes func(dst []byte, s string) []byte
}

func (w *jsonWriter) append(dst []byte, v Value) []byte {
	switch v.kind {
	case KindBool:
		return strconv.AppendBool(dst, v.num != 0)
	case KindInt:
		return strconv.AppendInt(dst, v.num, 10)
	case KindUint:
		return strconv.AppendUint(dst, uint64(v.num), 10)
	case KindFloat32:
		return appendFloat(dst, v.Float(), 32)
	case KindFloat64:
		return appendFloat(dst, v.Float(), 64)
	case KindString:
		return w.text(dst, v.text)
	case KindBytes:
		return w.bytes(dst, v.text)
	case KindBigInt:
		return v.BigInt().Append(dst, 10)
	case KindDecimal:
		return append(dst, v.digits()...)
	case KindInstant, KindDate, KindTimeOfDay, KindDateTime:
		return w.text(dst, v.isoText())
	case KindList:
		dst = append(dst, '[')
		for i, e := range v.parts {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = w.append(dst, e)
		}
		return append(dst, ']')
	case KindRecord:
		dst = append(dst, '{')
		if v.text != "" {
			dst = w.text(append(w.text(dst, "@class"), ':'), v.text)
		}
		for i, e := range v.parts {
			if i > 0 || v.text != "" {
				dst = append(dst, ',')
			}
			dst = w.append(append(w.text(dst, v.shape.Names[i]), ':'), e)
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
	return append(dst, "null"...)
}

// appendFloat appends the shortest digits that represent f, in the notation of
// JavaScript.
func appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
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
