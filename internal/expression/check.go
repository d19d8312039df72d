package expression

import (
	"regexp"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format/value"
)

// Type is a set of kinds of values that a part of an expression can have.
type Type uint8

// The types of names.
const (
	Null   Type = 1 << iota
	Bool        // true, false
	Int         // integers of any size
	Float       // floats, decimals
	String      // texts, bytes, times
	List        // lists
	fields      // records, maps
	Any    = Null | Bool | Int | Float | String | List | fields

	numbers = Int | Float
	parts   = List | fields
)

var typeNames = []struct {
	t    Type
	name string
}{{numbers, "a number"}, {parts, "a list"}, {Null, "null"}, {Bool, "a boolean"}, {Int, "an integer"}, {Float, "a float"}, {String, "a string"}, {List, "a list"}, {fields, "a record"}}

// String returns the names of the kinds: "an integer or null".
func (t Type) String() string {
	if t == Any {
		return "any value"
	}
	var all []string
	for _, n := range typeNames {
		if t&n.t == n.t {
			all = append(all, n.name)
			t &^= n.t
		}
	}
	return strings.Join(all, " or ")
}

// typeOf returns the type of a value.
func typeOf(v value.Value) Type {
	switch k := v.Kind(); {
	case k == value.KindNull:
		return Null
	case k == value.KindBool:
		return Bool
	case isInteger(k):
		return Int
	case isNumber(k):
		return Float
	case isText(k):
		return String
	case k == value.KindList:
		return List
	}
	return fields
}

// checker finds the types of an expression, and what does not fit.
type checker struct {
	names []Name
	uses  []bool
}

func (c *checker) need(n node, what string, want Type) *Error {
	got, err := c.check(n)
	if err == nil && got&want == 0 {
		err = failf(n.position(), "%s needs %v, found %v", what, want, got)
	}
	return err
}

func (c *checker) check(n node) (Type, *Error) {
	switch n := n.(type) {
	case *literal:
		return typeOf(n.value), nil
	case *list:
		for _, e := range n.elements {
			if _, err := c.check(e); err != nil {
				return 0, err
			}
		}
		return List, nil
	case *name:
		i := slices.IndexFunc(c.names, func(known Name) bool { return known.Name == n.name })
		if i < 0 {
			e := failf(n.pos, "unknown name %s", n.name)
			e.Unknown = n.name
			for _, known := range c.names {
				e.Known = append(e.Known, known.Name)
			}
			return 0, e
		}
		n.index, c.uses[i] = i, true
		return c.names[i].Type, nil
	case *element:
		return Any, nil
	case *unary:
		if n.op == "not" {
			return Bool, c.need(n.node, "not", Bool)
		}
		t, err := c.check(n.node)
		if err == nil && t&numbers == 0 {
			err = failf(n.pos, "%s needs a number, found %v", n.op, t)
		}
		return t & numbers, err
	case *binary:
		return c.binary(n)
	case *comparison:
		before, err := c.check(n.operands[0])
		if err != nil {
			return 0, err
		}
		for i, operand := range n.operands[1:] {
			t, err := c.check(operand)
			if err != nil {
				return 0, err
			}
			if (before&numbers == 0 || t&numbers == 0) && (before&String == 0 || t&String == 0) {
				return 0, failf(n.places[i], "cannot compare %v with %v", before, t)
			}
			before = t
		}
		return Bool, nil
	case *logic:
		for _, operand := range n.operands {
			if err := c.need(operand, n.op, Bool); err != nil {
				return 0, err
			}
		}
		return Bool, nil
	case *conditional:
		test, err := c.check(n.test)
		if err != nil {
			return 0, err
		}
		if n.yes == nil { // the value itself, if it is true
			if test&Bool == 0 {
				return 0, failf(n.pos, "?: needs a boolean, found %v", test)
			}
			no, err := c.check(n.no)
			return Bool | no, err
		}
		if test&Bool == 0 {
			return 0, failf(n.pos, "? needs a boolean before it, found %v", test)
		}
		yes, err := c.check(n.yes)
		if err != nil {
			return 0, err
		}
		no, err := c.check(n.no)
		return yes | no, err
	case *path:
		return c.path(n)
	case *call:
		return c.call(n)
	case *closure:
		return c.check(n.node)
	}
	panic("internal error: unknown node")
}

func (c *checker) binary(n *binary) (Type, *Error) {
	left, err := c.check(n.left)
	if err != nil {
		return 0, err
	}
	right, err := c.check(n.right)
	if err != nil {
		return 0, err
	}
	both := func(t Type) bool { return left&t != 0 && right&t != 0 }
	switch n.op {
	case "==", "!=":
		if left != Null && right != Null && !both(Null) && !both(Bool) && !both(numbers) && !both(String) && !both(List) && !both(fields) {
			return 0, failf(n.pos, "cannot compare %v with %v", left, right)
		}
		return Bool, nil
	case "in":
		if right&(parts|Null) == 0 {
			hint := ""
			if right == String {
				hint = "; for texts, write b contains a"
			}
			return 0, failf(n.pos, "in needs a list, a map or a record after it, found %v%s", right, hint)
		}
		return Bool, nil
	case "contains", "startsWith", "endsWith", "matches":
		if left&(String|Null) == 0 || right&(String|Null) == 0 {
			return 0, failf(n.pos, "%s needs two strings, found %v and %v", n.op, left, right)
		}
		if l, ok := n.right.(*literal); ok && n.op == "matches" {
			if _, err := regexp.Compile(l.value.Text()); err != nil {
				return 0, failf(l.pos, "%v", err)
			}
		}
		return Bool, nil
	case "..":
		if left&Int == 0 || right&Int == 0 {
			return 0, failf(n.pos, ".. needs two integers, found %v and %v", left, right)
		}
		return List, nil
	case "??":
		return left&^Null | right, nil
	case "%":
		if !both(Int) {
			return 0, failf(n.pos, "%% needs integers, found %v and %v", left, right)
		}
		return Int, nil
	case "+":
		if !both(numbers) && both(String) {
			return String, nil
		}
		if both(String) {
			return numbers | String, nil
		}
	}
	if !both(numbers) {
		return 0, failf(n.pos, "%s cannot be calculated of %v and %v", n.op, left, right)
	}
	if left&numbers == Int && right&numbers == Int && n.op != "/" && n.op != "**" {
		return Int, nil
	}
	return numbers, nil
}

func (c *checker) path(n *path) (Type, *Error) {
	t, err := c.check(n.base)
	if err != nil {
		return 0, err
	}
	for _, s := range n.steps {
		if s.slice {
			if t&(List|String|Null) == 0 {
				return 0, failf(s.pos, "a slice needs a list or a string, found %v", t)
			}
			for _, end := range []node{s.from, s.to} {
				if end == nil {
					continue
				}
				if err := c.need(end, "a slice", Int); err != nil {
					return 0, err
				}
			}
			continue
		}
		key, err := c.check(s.key)
		if err != nil {
			return 0, err
		}
		switch {
		case t&(parts|Null) == 0:
			return 0, failf(s.pos, "cannot look into %v", t)
		case t == List && key&Int == 0:
			return 0, failf(s.pos, "the index of a list is an integer, found %v", key)
		}
		t = Any
	}
	return t, nil
}

func (c *checker) call(n *call) (Type, *Error) {
	f := functions[n.function]
	for i, arg := range n.args {
		if p, ok := arg.(*closure); ok {
			want := Bool
			if f.maps {
				want = Any
			}
			if err := c.need(p.node, n.function, want); err != nil {
				return 0, err
			}
			continue
		}
		t, err := c.check(arg)
		if err != nil {
			return 0, err
		}
		if t&f.takes == 0 {
			return 0, failf(n.args[i].position(), "%s needs %v, found %v", n.function, f.takes, t)
		}
	}
	return f.returns, nil
}
