package types

import (
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// The way back from the JSON of docs/json.md to values. Codecs check what value they
// get, so that an error names the part of the JSON that is wrong.

type node = jsontext.Node

const jsonNumber = jsontext.Number

// parser converts JSON to values. It keeps the first error.
type parser struct {
	path []string
	err  *value.JSONError
}

// FromJSON implements [value.JSONCodec].
func (c exported) FromJSON(p []byte) (value.Value, error) {
	n, err := jsontext.Parse(p)
	if err != nil {
		return value.Value{}, err
	}
	var ps parser
	v := c.parse(&ps, &n)
	if ps.err != nil {
		return value.Value{}, ps.err
	}
	if _, err := c.Append(nil, v); err != nil {
		return value.Value{}, &value.JSONError{Problem: err.Error()}
	}
	return v, nil
}

func (p *parser) fail(msg string, args ...any) value.Value {
	if p.err == nil {
		p.err = &value.JSONError{Path: strings.Join(p.path, ""), Problem: fmt.Sprintf(msg, args...)}
	}
	return value.Null()
}

// expects reports whether n is of a kind, and records an error if it is not.
func (p *parser) expects(n *node, k jsontext.Kind, what string) bool {
	if n.Kind != k {
		p.fail("expected %s, found %s", what, found(n))
	}
	return n.Kind == k
}

// found describes a node for an error.
func found(n *node) string {
	switch n.Kind {
	case jsontext.String:
		if len(n.Text) <= 40 {
			return fmt.Sprintf("the string %q", n.Text)
		}
	case jsontext.Number, jsontext.Bool:
		if len(n.Text) <= 40 {
			return n.Text
		}
	}
	return n.Kind.String()
}

// element converts part i of an array.
func (p *parser) element(c codec, n *node, i int) value.Value {
	return p.part(c, &n.Parts[i], "["+strconv.Itoa(i)+"]")
}

// field converts a member.
func (p *parser) field(c codec, n *node, name string) value.Value {
	step := "." + name
	if name == "" || strings.ContainsAny(name, " .[]\"") {
		step = "[" + strconv.Quote(name) + "]"
	}
	return p.part(c, n, step)
}

func (p *parser) part(c codec, n *node, step string) value.Value {
	if p.err != nil {
		return value.Null()
	}
	p.path = append(p.path, step)
	v := c.parse(p, n)
	p.path = p.path[:len(p.path)-1]
	return v
}

// members returns the members of an object in the order of names, which are all that
// it must and may have.
func (p *parser) members(n *node, names []string) []*node {
	if !p.expects(n, jsontext.Object, "an object with the fields "+strings.Join(names, ", ")) {
		return nil
	}
	all := make([]*node, len(names))
	for i, member := range n.Names {
		k := slices.IndexFunc(names, func(name string) bool { return value.FieldMember(name) == member })
		switch {
		case k < 0:
			p.fail("unknown field %q: expected %s", member, strings.Join(names, ", "))
			return nil
		case all[k] != nil:
			p.fail("field %q is given twice", member)
			return nil
		}
		all[k] = &n.Parts[i]
	}
	if k := slices.Index(all, nil); k >= 0 {
		p.fail("field %q is missing", names[k])
		return nil
	}
	return all
}

// member returns a member of an object, or nil.
func member(n *node, name string) *node {
	if n.Kind == jsontext.Object {
		if i := slices.Index(n.Names, name); i >= 0 {
			return &n.Parts[i]
		}
	}
	return nil
}

// classed returns the class and the value of {"@class": …, "@value": …}; for an object
// with other members, the object without its class.
func classed(n *node) (class string, inner *node) {
	c := member(n, value.ClassMember)
	if c == nil || c.Kind != jsontext.String {
		return "", n
	}
	if v := member(n, value.ValueMember); v != nil && len(n.Names) == 2 {
		return c.Text, v
	}
	rest := &node{Kind: jsontext.Object}
	for i, name := range n.Names {
		if name != value.ClassMember {
			rest.Names, rest.Parts = append(rest.Names, name), append(rest.Parts, n.Parts[i])
		}
	}
	return c.Text, rest
}

// marked returns the number of marks of a null, see reader.present, and whether n is
// one.
func marked(n *node) (marks uint8, null bool) {
	if n.Kind == jsontext.Null {
		return 0, true
	}
	if m := member(n, value.NullMember); m != nil && len(n.Names) == 1 && m.Kind == jsontext.Number {
		if k, err := strconv.ParseUint(m.Text, 10, 7); err == nil && k > 0 {
			return uint8(k), true
		}
	}
	return 0, false
}

// optional converts a value that can be absent: null is absent, a marked null is the
// null of the type with one mark less.
func (p *parser) optional(c codec, n *node) value.Value {
	marks, null := marked(n)
	switch {
	case null && marks == 0:
		return value.Null()
	case null:
		p.optional(c, &node{Kind: jsontext.Null}) // must be possible
		return value.Null().WithVariant(marks)
	}
	v := c.parse(p, n)
	if v.IsNull() && p.err == nil {
		return v.WithVariant(v.Variant() + 1)
	}
	return v
}

// integer converts a number of size bytes.
func (p *parser) integer(n *node, size int) int64 {
	if !p.expects(n, jsontext.Number, "an integer") {
		return 0
	}
	i, err := strconv.ParseInt(n.Text, 10, 8*size)
	switch {
	case err == nil:
	case strings.ContainsAny(n.Text, ".eE"):
		p.fail("expected an integer, found %s", found(n))
	default:
		p.fail("%s does not fit into %d bits", found(n), 8*size)
	}
	return i
}

// float converts a number, or the text of one that JSON does not have, to its bits.
func (p *parser) float(n *node, size int) uint64 {
	bits := func(f float64) uint64 {
		if size == 4 {
			return uint64(math.Float32bits(float32(f)))
		}
		return math.Float64bits(f)
	}
	switch {
	case n.Kind == jsontext.Number:
		f, err := strconv.ParseFloat(n.Text, 8*size)
		if err != nil {
			p.fail("%s is out of range", found(n))
		}
		return bits(f)
	case n.Kind != jsontext.String:
	case n.Text == "NaN" && size == 4:
		return 0x7fc00000
	case n.Text == "NaN":
		return 0x7ff8000000000000
	case n.Text == "Infinity":
		return bits(math.Inf(1))
	case n.Text == "-Infinity":
		return bits(math.Inf(-1))
	default:
		if digits, ok := strings.CutPrefix(n.Text, "NaN("); ok && len(digits) == 2*size+1 {
			u, err := strconv.ParseUint(digits[:2*size], 16, 8*size)
			nan := math.IsNaN(math.Float64frombits(u))
			if size == 4 {
				nan = math.IsNaN(float64(math.Float32frombits(uint32(u))))
			}
			if err == nil && nan && digits[2*size] == ')' {
				return u
			}
		}
	}
	p.fail(`expected a number, "NaN", "Infinity" or "-Infinity", found %s`, found(n))
	return 0
}

// bytes converts {"base64": …} or {"hex": …}.
func (p *parser) bytes(n *node) []byte {
	if n.Kind == jsontext.Object && len(n.Names) == 1 && n.Parts[0].Kind == jsontext.String {
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
		if err == nil {
			return b
		}
		p.fail("bytes: %v", err)
		return nil
	}
	p.fail(`expected bytes, {"base64": "…"} or {"hex": "…"}, found %s`, found(n))
	return nil
}

// maxDigits limits big numbers.
const maxDigits = 100_000

// decimal converts a number to its unscaled digits and scale.
func (p *parser) decimal(n *node) (unscaled *big.Int, scale int32) {
	if !p.expects(n, jsontext.Number, "a number") {
		return new(big.Int), 0
	}
	digits, exponent, _ := strings.Cut(strings.ToLower(n.Text), "e")
	whole, fraction, _ := strings.Cut(digits, ".")
	e := int64(0)
	if exponent != "" {
		var err error
		if e, err = strconv.ParseInt(exponent, 10, 33); err != nil {
			p.fail("%s is out of range", found(n))
			return new(big.Int), 0
		}
	}
	s := int64(len(fraction)) - e
	unscaled, ok := new(big.Int), s >= math.MinInt32 && s <= math.MaxInt32 && len(digits) <= maxDigits
	if ok {
		unscaled, ok = unscaled.SetString(whole+fraction, 10)
	}
	if !ok {
		p.fail("%s is out of range", found(n))
		return new(big.Int), 0
	}
	return unscaled, int32(s)
}

// bigInteger converts a number without a fraction.
func (p *parser) bigInteger(n *node) *big.Int {
	unscaled, scale := p.decimal(n)
	if p.err == nil && scale != 0 {
		p.fail("expected an integer, found %s", found(n))
	}
	return unscaled
}

// str converts a string.
func (p *parser) str(n *node) string {
	p.expects(n, jsontext.String, "a string")
	return n.Text
}

// date converts "2024-02-29" at the start of s; rest follows it.
func cutDate(s string) (c value.Civil, rest string, ok bool) {
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
	if err != nil || merr != nil || derr != nil || y < math.MinInt32 || y > math.MaxInt32 || !validDay(y, uint8(month), uint8(day)) {
		return c, s, false
	}
	return value.Civil{Year: int32(y), Month: uint8(month), Day: uint8(day)}, s[i+6:], true
}

// clock converts "23:59:58.123456789".
func clock(s string, c value.Civil) (value.Civil, bool) {
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

// timestamp converts a date, a time of day or both, or an instant in UTC.
func (p *parser) timestamp(n *node, k value.Kind) value.Value {
	example := map[value.Kind]string{value.KindDate: "2024-02-29", value.KindTimeOfDay: "23:59:58.123", value.KindDateTime: "2024-02-29T23:59:58.123", value.KindInstant: "2024-02-29T23:59:58.123Z"}[k]
	if n.Kind == jsontext.String {
		var c value.Civil
		rest, ok := n.Text, true
		if k != value.KindTimeOfDay {
			c, rest, ok = cutDate(rest)
		}
		if ok && k != value.KindTimeOfDay && k != value.KindDate {
			rest, ok = strings.CutPrefix(rest, "T")
		}
		if ok && k == value.KindInstant {
			rest, ok = strings.CutSuffix(rest, "Z")
		}
		if ok && k != value.KindDate {
			c, ok = clock(rest, c)
			rest = ""
		}
		if ok && rest == "" {
			switch k {
			case value.KindDate:
				return value.Date(c.Year, c.Month, c.Day)
			case value.KindTimeOfDay:
				return value.TimeOfDay(c.Hour, c.Minute, c.Second, c.Nano)
			case value.KindDateTime:
				return value.DateTime(c)
			}
			t := time.Date(int(c.Year), time.Month(c.Month), int(c.Day), int(c.Hour), int(c.Minute), int(c.Second), 0, time.UTC)
			return value.Instant(t.Unix(), c.Nano)
		}
	}
	return p.fail("expected %v such as %q, found %s", k, example, found(n))
}
