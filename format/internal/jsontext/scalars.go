package jsontext

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The scalars of docs/json.md. The errors of the methods below are for users: what was
// expected, and what was found.

// String describes a node for an error: its text if it is short, otherwise its kind.
func (n *Node) String() string {
	switch n.Kind {
	case String:
		if len(n.Text) <= 40 {
			return fmt.Sprintf("the string %q", n.Text)
		}
	case Number, Bool:
		if len(n.Text) <= 40 {
			return n.Text
		}
	}
	return n.Kind.String()
}

// Integer returns a number as a signed integer of bits.
func (n *Node) Integer(bits int) (int64, error) {
	if n.Kind != Number {
		return 0, fmt.Errorf("expected an integer, found %s", n)
	}
	i, err := strconv.ParseInt(n.Text, 10, bits)
	switch {
	case err == nil:
		return i, nil
	case strings.ContainsAny(n.Text, ".eE"):
		return 0, fmt.Errorf("expected an integer, found %s", n)
	}
	return i, fmt.Errorf("%s does not fit into %d bits", n, bits)
}

// The bits of the NaN that Java writes.
const (
	nan32 = 0x7fc00000
	nan64 = 0x7ff8000000000000
)

// Float returns the bits of a number, or of the text of one that JSON does not have, as
// a floating-point number of 32 or 64 bits.
func (n *Node) Float(bits int) (uint64, error) {
	of := func(f float64) uint64 {
		if bits == 32 {
			return uint64(math.Float32bits(float32(f)))
		}
		return math.Float64bits(f)
	}
	switch {
	case n.Kind == Number:
		f, err := strconv.ParseFloat(n.Text, bits)
		if err != nil {
			return of(f), fmt.Errorf("%s is out of range", n)
		}
		return of(f), nil
	case n.Kind != String:
	case n.Text == "NaN" && bits == 32:
		return nan32, nil
	case n.Text == "NaN":
		return nan64, nil
	case n.Text == "Infinity":
		return of(math.Inf(1)), nil
	case n.Text == "-Infinity":
		return of(math.Inf(-1)), nil
	default:
		if digits, ok := strings.CutPrefix(n.Text, "NaN("); ok && len(digits) == bits/4+1 {
			u, err := strconv.ParseUint(digits[:bits/4], 16, bits)
			nan := math.IsNaN(math.Float64frombits(u))
			if bits == 32 {
				nan = math.IsNaN(float64(math.Float32frombits(uint32(u))))
			}
			if err == nil && nan && digits[bits/4] == ')' {
				return u, nil
			}
		}
	}
	return 0, fmt.Errorf(`expected a number, "NaN", "Infinity" or "-Infinity", found %s`, n)
}

// Bytes returns the bytes of {"base64": …} or {"hex": …}.
func (n *Node) Bytes() ([]byte, error) {
	if n.Kind == Object && len(n.Names) == 1 && n.Parts[0].Kind == String {
		var b []byte
		var err error
		switch text := n.Parts[0].Text; n.Names[0] {
		case "base64":
			b, err = base64.StdEncoding.Strict().DecodeString(text)
		case "hex":
			b, err = hex.DecodeString(text)
		default:
			err = fmt.Errorf("unknown encoding %q", n.Names[0])
		}
		if err != nil {
			return nil, fmt.Errorf("bytes: %w", err)
		}
		return b, nil
	}
	return nil, fmt.Errorf(`expected bytes, {"base64": "…"} or {"hex": "…"}, found %s`, n)
}

// Civil is the fields of a time; its zone depends on the format.
type Civil struct {
	Year                             int32
	Month, Day, Hour, Minute, Second uint8
	Nano                             int32
}

// Unix returns the seconds since 1970 of a time in UTC.
func (c Civil) Unix() int64 {
	return time.Date(int(c.Year), time.Month(c.Month), int(c.Day), int(c.Hour), int(c.Minute), int(c.Second), 0, time.UTC).Unix()
}

// TimeFormat is the format of a time in JSON.
type TimeFormat int

// The formats.
const (
	Date      TimeFormat = iota // 2024-02-29
	TimeOfDay                   // 23:59:58.123
	DateTime                    // 2024-02-29T23:59:58.123
	Instant                     // 2024-02-29T23:59:58.123Z, in UTC
)

var timeFormats = [...]struct{ name, example string }{
	{"a date", "2024-02-29"}, {"a time of day", "23:59:58.123"}, {"a date with time", "2024-02-29T23:59:58.123"}, {"an instant", "2024-02-29T23:59:58.123Z"},
}

// Time returns the fields of a time in a format.
func (n *Node) Time(f TimeFormat) (c Civil, err error) {
	if n.Kind == String {
		rest, ok := n.Text, true
		if f != TimeOfDay {
			c, rest, ok = cutDate(rest)
		}
		if ok && f != TimeOfDay && f != Date {
			rest, ok = strings.CutPrefix(rest, "T")
		}
		if ok && f == Instant {
			rest, ok = strings.CutSuffix(rest, "Z")
		}
		if ok && f != Date {
			c, ok = clock(rest, c)
			rest = ""
		}
		if ok && rest == "" {
			return c, nil
		}
	}
	return Civil{}, fmt.Errorf("expected %s such as %q, found %s", timeFormats[f].name, timeFormats[f].example, n)
}

// cutDate converts "2024-02-29" at the start of s; rest follows it.
func cutDate(s string) (c Civil, rest string, ok bool) {
	sign := int64(1)
	if strings.HasPrefix(s, "-") {
		sign, s = -1, s[1:]
	}
	i := strings.IndexByte(s, '-')
	if i < 4 || i > 10 || len(s) < i+6 || s[i+3] != '-' {
		return c, s, false
	}
	year, err := strconv.ParseUint(s[:i], 10, 32) // at most 10 digits
	month, merr := strconv.ParseUint(s[i+1:i+3], 10, 8)
	day, derr := strconv.ParseUint(s[i+4:i+6], 10, 8)
	y := sign * int64(year)
	if err != nil || merr != nil || derr != nil || y < math.MinInt32 || y > math.MaxInt32 || !ValidDay(y, uint8(month), uint8(day)) {
		return c, s, false
	}
	return Civil{Year: int32(y), Month: uint8(month), Day: uint8(day)}, s[i+6:], true
}

// clock converts "23:59:58.123456789".
func clock(s string, c Civil) (Civil, bool) {
	if len(s) < 8 || s[2] != ':' || s[5] != ':' {
		return c, false
	}
	h, err := strconv.ParseUint(s[:2], 10, 8)
	m, merr := strconv.ParseUint(s[3:5], 10, 8)
	sec, serr := strconv.ParseUint(s[6:8], 10, 8)
	if err != nil || merr != nil || serr != nil || h > 23 || m > 59 || sec > 59 {
		return c, false
	}
	c.Hour, c.Minute, c.Second = uint8(h), uint8(m), uint8(sec)
	if s = s[8:]; s == "" {
		return c, true
	}
	if s[0] != '.' || len(s) < 2 || len(s) > 10 {
		return c, false
	}
	nano, err := strconv.ParseUint((s[1:] + "00000000")[:9], 10, 32)
	c.Nano = int32(nano)
	return c, err == nil
}

// ValidDay reports whether a date exists in the proleptic Gregorian calendar.
func ValidDay(year int64, month, day uint8) bool {
	if month < 1 || month > 12 || day < 1 {
		return false
	}
	last := uint8(30) + (month+month>>3)&1
	if month == 2 {
		last = 28
		if year%4 == 0 && (year%100 != 0 || year%400 == 0) {
			last = 29
		}
	}
	return day <= last
}
