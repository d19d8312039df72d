package types

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

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
func found(n *node) string { return n.String() }

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

// failed records the error of a scalar.
func (p *parser) failed(err error) {
	if err != nil {
		p.fail("%v", err)
	}
}

// integer converts a number of size bytes.
func (p *parser) integer(n *node, size int) int64 {
	i, err := n.Integer(8 * size)
	p.failed(err)
	return i
}

// float converts a number, or the text of one that JSON does not have, to its bits.
func (p *parser) float(n *node, size int) uint64 {
	bits, err := n.Float(8 * size)
	p.failed(err)
	return bits
}

// bytes converts {"base64": …} or {"hex": …}.
func (p *parser) bytes(n *node) []byte {
	b, err := n.Bytes()
	p.failed(err)
	return b
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

// timeFormats are the formats of times.
var timeFormats = map[value.Kind]jsontext.TimeFormat{value.KindDate: jsontext.Date, value.KindTimeOfDay: jsontext.TimeOfDay, value.KindDateTime: jsontext.DateTime, value.KindInstant: jsontext.Instant}

// timestamp converts a date, a time of day or both, or an instant in UTC.
func (p *parser) timestamp(n *node, k value.Kind) value.Value {
	t, err := n.Time(timeFormats[k])
	if err != nil {
		return p.fail("%v", err)
	}
	c := value.Civil(t)
	switch k {
	case value.KindDate:
		return value.Date(c.Year, c.Month, c.Day)
	case value.KindTimeOfDay:
		return value.TimeOfDay(c.Hour, c.Minute, c.Second, c.Nano)
	case value.KindDateTime:
		return value.DateTime(c)
	}
	return value.Instant(t.Unix(), c.Nano)
}
