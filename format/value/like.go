package value

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
)

// FromJSONLike returns the value that p, which is the JSON of docs/json.md, represents in
// place of another value of the same codec. A [JSONCodec] knows its type; other codecs
// read values that describe themselves, so the parts have the types of the parts of like. Parts
// whose JSON is the same are the parts of like, with their encoding. A part that like
// does not have, or that is null in it, has the type that its JSON suggests: an integer, a
// double, a string, a boolean, bytes, a list or a record.
//
// If p does not represent such a value, the error is a *JSONError.
func FromJSONLike(c Codec, like Value, p []byte) (Value, error) {
	if _, ok := c.(JSONCodec); ok {
		return FromJSON(c, p)
	}
	n, err := jsontext.Parse(p)
	if err != nil {
		return Value{}, err
	}
	l := liker{}
	v, _ := l.value(like, &n)
	if l.err != nil {
		return Value{}, l.err
	}
	if _, err := c.Append(nil, v); err != nil {
		return Value{}, &JSONError{Problem: err.Error()}
	}
	return v, nil
}

// liker converts JSON to values like others. It keeps the first error.
type liker struct {
	path string
	err  *JSONError
}

func (l *liker) fail(msg string, args ...any) (Value, bool) {
	if l.err == nil {
		l.err = &JSONError{Path: l.path, Problem: fmt.Sprintf(msg, args...)}
	}
	return Value{}, false
}

// part converts a part of a value.
func (l *liker) part(like Value, n *jsontext.Node, step string) (Value, bool) {
	before := l.path
	l.path += step
	v, same := l.value(like, n)
	l.path = before
	return v, same
}

// value converts a node. same is set if the result is like itself.
func (l *liker) value(like Value, n *jsontext.Node) (v Value, same bool) {
	if l.err != nil {
		return Value{}, false
	}
	var err error
	switch {
	case n.Kind == jsontext.Null:
		return like.orNull()
	case like.kind >= KindList:
		v, same = l.composite(like, n)
	case like.kind == KindNull:
		return l.natural(n)
	default:
		v, err = scalarLike(like.kind, n)
		same = v.kind == like.kind && v.num == like.num && v.aux == like.aux && v.Text() == like.Text()
	}
	switch {
	case err != nil:
		return l.fail("%v", err)
	case same:
		return like, true
	case v.kind == like.kind:
		v.variant = like.variant // the codec uses it if the new value fits
	}
	return v, false
}

// orNull returns null, and whether v is null.
func (v Value) orNull() (Value, bool) {
	if v.IsNull() {
		return v, true
	}
	return Value{}, false
}

// scalarLike converts a node to a kind that has no parts.
func scalarLike(kind Kind, n *jsontext.Node) (v Value, err error) {
	var i int64
	var u uint64
	switch kind {
	case KindBool:
		if n.Kind != jsontext.Bool {
			return v, fmt.Errorf("expected true or false, found %s", n)
		}
		return Bool(n.Text == "true"), nil
	case KindInt, KindUint:
		if u, uerr := strconv.ParseUint(n.Text, 10, 64); uerr == nil && n.Kind == jsontext.Number {
			return Uint(u), nil
		}
		i, err = n.Integer(64)
		return Int(i), err
	case KindFloat32:
		u, err = n.Float(32)
		return Float32(uint32(u)), err
	case KindFloat64:
		u, err = n.Float(64)
		return Float64(u), err
	case KindString:
		if n.Kind != jsontext.String {
			return v, fmt.Errorf("expected a string, found %s", n)
		}
		return String(n.Text), nil
	case KindBytes:
		p, err := n.Bytes()
		return Bytes(p), err
	case KindInstant:
		t, err := n.Time(jsontext.Instant)
		return Instant(t.Unix(), t.Nano), err
	}
	return v, format.Errorf(format.ErrUnsupported, "%v of this codec cannot be read from JSON", kind)
}

// composite converts a node to a list, a record or a map.
func (l *liker) composite(like Value, n *jsontext.Node) (v Value, same bool) {
	switch like.kind {
	case KindRecord:
		return l.record(like, n)
	case KindMap:
		return l.pairs(like, n)
	}
	if n.Kind != jsontext.Array {
		return l.fail("expected an array, found %s", n)
	}
	parts := make([]Value, len(n.Parts))
	same = len(parts) == like.Len()
	for i := range parts {
		var one Value // an element more is like the last
		if k := min(i, like.Len()-1); k >= 0 {
			one = like.At(k)
		}
		p, eq := l.part(one, &n.Parts[i], "["+strconv.Itoa(i)+"]")
		parts[i], same = p, same && eq
	}
	return List(parts), same
}

// record converts a node to a record, with the fields in the order of like and those
// that it does not have after them.
func (l *liker) record(like Value, n *jsontext.Node) (v Value, same bool) {
	if n.Kind != jsontext.Object {
		return l.fail("expected an object, found %s", n)
	}
	given := map[string]*jsontext.Node{}
	var order []string
	for i, name := range n.Names {
		if name == ClassMember {
			if c := &n.Parts[i]; c.Kind != jsontext.String || c.Text != like.Class() {
				return l.fail("expected the class %q, found %s", like.Class(), c)
			}
			continue
		}
		name = fieldOf(name)
		if given[name] != nil {
			return l.fail("field %q is given twice", name)
		}
		given[name] = &n.Parts[i]
		order = append(order, name)
	}
	shape := &Shape{class: like.Class()}
	var fields []Value
	same = len(order) == like.Len()
	add := func(name string, one Value, variant uint8) {
		f, eq := l.part(one, given[name], "."+name)
		shape.Names, shape.Variants, fields = append(shape.Names, name), append(shape.Variants, variant), append(fields, f)
		same = same && eq
	}
	for i := range like.Len() {
		name := like.Name(i)
		if given[name] == nil {
			same = false
			continue
		}
		variant := uint8(0)
		if s := like.shape; s.Variants != nil {
			variant = s.Variants[i]
		}
		add(name, like.At(i), variant)
	}
	for _, name := range order {
		if !slices.Contains(shape.Names, name) {
			add(name, Value{}, 0)
		}
	}
	return Record(shape, fields), same
}

// fieldOf is the inverse of [FieldMember].
func fieldOf(member string) string {
	if len(member) > 1 && member[0] == '@' && member[1] == '@' {
		return member[1:]
	}
	return member
}

// pairs converts a node to a map.
func (l *liker) pairs(like Value, n *jsontext.Node) (v Value, same bool) {
	if n.Kind != jsontext.Array {
		return l.fail("expected an array of pairs, found %s", n)
	}
	parts := make([]Value, 0, 2*len(n.Parts))
	same = len(n.Parts) == like.Len()
	for i := range n.Parts {
		pair := &n.Parts[i]
		step := "[" + strconv.Itoa(i) + "]"
		if pair.Kind != jsontext.Array || len(pair.Parts) != 2 {
			l.path += step
			return l.fail("expected [key, value], found %s", pair)
		}
		var key, value Value
		if k := min(i, like.Len()-1); k >= 0 {
			key, value = like.Key(k), like.At(k)
		}
		k, eqKey := l.part(key, &pair.Parts[0], step+"[0]")
		e, eq := l.part(value, &pair.Parts[1], step+"[1]")
		parts, same = append(parts, k, e), same && eqKey && eq
	}
	return Map(parts), same
}

// natural converts a node to the value that it suggests.
func (l *liker) natural(n *jsontext.Node) (Value, bool) {
	kind := KindRecord
	switch n.Kind {
	case jsontext.Bool:
		kind = KindBool
	case jsontext.String:
		kind = KindString
	case jsontext.Array:
		kind = KindList
	case jsontext.Number:
		kind = KindFloat64
		if _, err := n.Integer(64); err == nil {
			kind = KindInt
		}
	case jsontext.Object:
		if _, err := n.Bytes(); err == nil {
			kind = KindBytes
		}
	}
	if kind < KindList {
		v, err := scalarLike(kind, n)
		if err != nil {
			return l.fail("%v", err)
		}
		return v, false
	}
	like := List(nil)
	if kind == KindRecord {
		like = Record(&Shape{}, nil)
	}
	v, _ := l.composite(like, n)
	return v, false
}
