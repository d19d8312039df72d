package expression

import (
	"maps"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format/value"
)

type (
	eval func(*Vars) (value.Value, *Error)
	test func(*Vars) (bool, *Error)
)

// code is a compiled part. A constant one has its value already.
type code struct {
	eval     eval
	constant bool
	value    value.Value
}

func constant(v value.Value) code {
	return code{func(*Vars) (value.Value, *Error) { return v, nil }, true, v}
}

// folded makes a part whose parts are constant one too. Where it fails, it fails when
// it is evaluated.
func folded(e eval, parts ...code) code {
	for _, p := range parts {
		if !p.constant {
			return code{eval: e}
		}
	}
	if v, err := e(&Vars{}); err == nil {
		return constant(v)
	}
	return code{eval: e}
}

type compiler struct{ names []Name }

// placed sets the position of an error that has none.
func placed(err *Error, pos int) *Error {
	if err != nil {
		err.pos = pos
	}
	return err
}

func (c *compiler) compile(n node) code {
	switch n := n.(type) {
	case *literal:
		return constant(n.value)
	case *name:
		i := n.index
		if known := c.names[i]; !known.Constant.IsNull() {
			return constant(known.Constant)
		}
		return code{eval: func(v *Vars) (value.Value, *Error) { return v.Values[i], nil }}
	case *element:
		return code{eval: func(v *Vars) (value.Value, *Error) { return v.item, nil }}
	case *list:
		elements := make([]code, len(n.elements))
		for i, e := range n.elements {
			elements[i] = c.compile(e)
		}
		return folded(func(v *Vars) (value.Value, *Error) {
			if err := v.makes(len(elements)); err != nil {
				return value.Value{}, placed(err, n.pos)
			}
			out := make([]value.Value, len(elements))
			for i, e := range elements {
				var err *Error
				if out[i], err = e.eval(v); err != nil {
					return value.Value{}, err
				}
			}
			return value.List(out), nil
		}, elements...)
	case *unary:
		if n.op == "not" {
			break
		}
		operand := c.compile(n.node)
		return folded(func(v *Vars) (value.Value, *Error) {
			a, err := operand.eval(v)
			if err != nil {
				return a, err
			}
			if !isNumber(a.Kind()) {
				return a, failf(n.pos, "%s needs a number, found %v", n.op, a.Kind())
			}
			if n.op == "-" {
				a, err = negate(a)
			}
			return a, placed(err, n.pos)
		}, operand)
	case *binary:
		switch n.op {
		case "??":
			left, right := c.compile(n.left), c.compile(n.right)
			return code{eval: func(v *Vars) (value.Value, *Error) {
				if a, err := left.eval(v); err != nil || !a.IsNull() {
					return a, err
				}
				return right.eval(v)
			}}
		case "..":
			return c.sequence(n)
		case "+", "-", "*", "/", "%", "**":
			return c.arithmetic(n)
		}
	case *conditional:
		if n.yes == nil {
			first, no := c.compile(n.test).eval, c.compile(n.no).eval
			return code{eval: func(v *Vars) (value.Value, *Error) {
				a, err := first(v)
				if err != nil {
					return a, err
				}
				if a.Kind() != value.KindBool {
					return a, failf(n.pos, "?: needs a boolean, found %v", a.Kind())
				}
				if a.Bool() {
					return a, nil
				}
				return no(v)
			}}
		}
		first, yes, no := c.test(n.test, "?"), c.compile(n.yes).eval, c.compile(n.no).eval
		return code{eval: func(v *Vars) (value.Value, *Error) {
			ok, err := first(v)
			switch {
			case err != nil:
				return value.Value{}, err
			case ok:
				return yes(v)
			}
			return no(v)
		}}
	case *path:
		return c.path(n)
	case *call:
		return c.call(n)
	}
	is := c.test(n, "")
	return code{eval: func(v *Vars) (value.Value, *Error) {
		ok, err := is(v)
		return value.Bool(ok), err
	}}
}

func (c *compiler) arithmetic(n *binary) code {
	left, right := c.compile(n.left), c.compile(n.right)
	return folded(func(v *Vars) (value.Value, *Error) {
		a, err := left.eval(v)
		if err != nil {
			return a, err
		}
		b, err := right.eval(v)
		if err != nil {
			return b, err
		}
		ka, kb := a.Kind(), b.Kind()
		switch {
		case isNumber(ka) && isNumber(kb):
			if a, err = arithmetic(n.op, a, b); err == nil {
				err = v.exactly(a, b)
			}
		case n.op == "+" && isText(ka) && isText(kb):
			x, y := textOf(a), textOf(b)
			a, err = v.text(len(x)+len(y), func() string { return x + y })
		default:
			err = failf(n.pos, "%s cannot be calculated of %v and %v", n.op, ka, kb)
		}
		return a, placed(err, n.pos)
	}, left, right)
}

// ends evaluates the ends of a range.
func (c *compiler) ends(n *binary) func(*Vars) (from, to value.Value, err *Error) {
	left, right := c.compile(n.left).eval, c.compile(n.right).eval
	return func(v *Vars) (from, to value.Value, err *Error) {
		if from, err = left(v); err == nil {
			to, err = right(v)
		}
		if err == nil && (!isInteger(from.Kind()) || !isInteger(to.Kind())) {
			err = failf(n.pos, ".. needs two integers, found %v and %v", from.Kind(), to.Kind())
		}
		return from, to, err
	}
}

// sequence makes the list of a range.
func (c *compiler) sequence(n *binary) code {
	ends := c.ends(n)
	return code{eval: func(v *Vars) (value.Value, *Error) {
		from, to, err := ends(v)
		if err != nil {
			return from, err
		}
		size := new(big.Int).Sub(bigOf(to), bigOf(from))
		switch {
		case size.Sign() < 0:
			return value.List(nil), nil
		case from.Kind() != value.KindInt || to.Kind() != value.KindInt || !size.IsInt64():
			size.SetInt64(math.MaxInt32)
		}
		count := int(min(size.Int64(), math.MaxInt32-1)) + 1
		if err := v.makes(count); err != nil {
			return from, placed(err, n.pos)
		}
		out := make([]value.Value, count)
		for i := range out {
			out[i] = value.Int(from.Int() + int64(i))
		}
		return value.List(out), nil
	}}
}

// test compiles what must be true or false. what needs it, for errors.
func (c *compiler) test(n node, what string) test {
	switch n := n.(type) {
	case *unary:
		if n.op == "not" {
			is := c.test(n.node, "not")
			return func(v *Vars) (bool, *Error) {
				ok, err := is(v)
				return !ok && err == nil, err
			}
		}
	case *logic:
		return c.logic(n)
	case *comparison:
		return c.comparison(n)
	case *binary:
		switch n.op {
		case "==", "!=":
			return c.equality(n)
		case "in":
			return c.in(n)
		case "contains", "startsWith", "endsWith", "matches":
			return c.texts(n)
		}
	case *closure:
		return c.test(n.node, what)
	case *call:
		if is := c.quantifier(n); is != nil {
			return is
		}
	}
	e := c.compile(n).eval
	pos := n.position()
	return func(v *Vars) (bool, *Error) {
		a, err := e(v)
		if err != nil {
			return false, err
		}
		if a.Kind() != value.KindBool {
			if what == "the expression" && a.IsNull() {
				return false, nil
			}
			if what == "the expression" {
				return false, failf(pos, "the expression is %v, expected true or false", a.Kind())
			}
			return false, failf(pos, "%s needs a boolean, found %v", what, a.Kind())
		}
		return a.Bool(), nil
	}
}

func (c *compiler) logic(n *logic) test {
	all := make([]test, len(n.operands))
	for i, operand := range n.operands {
		all[i] = c.test(operand, n.op)
	}
	stop := n.op == "or"
	if len(all) == 2 {
		left, right := all[0], all[1]
		return func(v *Vars) (bool, *Error) {
			if ok, err := left(v); err != nil || ok == stop {
				return ok, err
			}
			return right(v)
		}
	}
	return func(v *Vars) (bool, *Error) {
		for _, is := range all {
			if ok, err := is(v); err != nil || ok == stop {
				return ok, err
			}
		}
		return !stop, nil
	}
}

type order uint8

const (
	less order = iota
	lessOrEqual
	greater
	greaterOrEqual
)

var orders = map[string]order{"<": less, "<=": lessOrEqual, ">": greater, ">=": greaterOrEqual}

func (o order) holds(c int) bool {
	switch o {
	case less:
		return c < 0
	case lessOrEqual:
		return c <= 0
	case greater:
		return c > 0
	}
	return c >= 0
}

func (o order) holdsInt(a, b int64) bool {
	switch o {
	case less:
		return a < b
	case lessOrEqual:
		return a <= b
	case greater:
		return a > b
	}
	return a >= b
}

func (o order) of(v *Vars, a, b value.Value, pos int) (bool, *Error) {
	c, isOrdered, err := ordered(a, b)
	if err == nil {
		err = v.exactly(a, b)
	}
	return isOrdered && o.holds(c), placed(err, pos)
}

func (c *compiler) comparison(n *comparison) test {
	all := make([]code, len(n.operands))
	for i, operand := range n.operands {
		all[i] = c.compile(operand)
	}
	ops := make([]order, len(n.ops))
	for i, op := range n.ops {
		ops[i] = orders[op]
	}
	if len(all) > 2 {
		return func(v *Vars) (bool, *Error) {
			a, err := all[0].eval(v)
			if err != nil {
				return false, err
			}
			for i, op := range ops {
				b, err := all[i+1].eval(v)
				if err != nil {
					return false, err
				}
				if ok, err := op.of(v, a, b, n.places[i]); err != nil || !ok {
					return false, err
				}
				a = b
			}
			return true, nil
		}
	}
	left, right, op, pos := all[0].eval, all[1].eval, ops[0], n.places[0]
	if k := all[1].value; all[1].constant && k.Kind() == value.KindString {
		text := k.Text()
		if i, ok := c.slot(n.operands[0]); ok {
			return func(v *Vars) (bool, *Error) {
				if a := &v.Values[i]; a.Kind() == value.KindString {
					return op.holds(strings.Compare(a.Text(), text)), nil
				}
				return op.of(v, v.Values[i], k, pos)
			}
		}
	}
	if k := all[1].value; all[1].constant && k.Kind() == value.KindInt {
		number := k.Int()
		if i, ok := c.slot(n.operands[0]); ok {
			return func(v *Vars) (bool, *Error) {
				if a := &v.Values[i]; a.Kind() == value.KindInt {
					return op.holdsInt(a.Int(), number), nil
				}
				return op.of(v, v.Values[i], k, pos)
			}
		}
		return func(v *Vars) (bool, *Error) {
			a, err := left(v)
			if err != nil {
				return false, err
			}
			if a.Kind() == value.KindInt {
				return op.holdsInt(a.Int(), number), nil
			}
			return op.of(v, a, k, pos)
		}
	}
	return func(v *Vars) (bool, *Error) {
		a, err := left(v)
		if err != nil {
			return false, err
		}
		b, err := right(v)
		if err != nil {
			return false, err
		}
		return op.of(v, a, b, pos)
	}
}

// slot returns the number of a name whose value is a variable.
func (c *compiler) slot(n node) (int, bool) {
	if n, ok := n.(*name); ok && c.names[n.index].Constant.IsNull() {
		return n.index, true
	}
	return 0, false
}

func (c *compiler) equality(n *binary) test {
	left, right := c.compile(n.left), c.compile(n.right)
	negated := n.op == "!="
	if k := right.value; right.constant {
		if i, ok := c.slot(n.left); ok {
			switch k.Kind() {
			case value.KindInt:
				number := k.Int()
				return func(v *Vars) (bool, *Error) {
					if a := &v.Values[i]; a.Kind() == value.KindInt {
						return (a.Int() == number) != negated, nil
					}
					same, err := v.equal(v.Values[i], k)
					return same != negated, placed(err, n.pos)
				}
			case value.KindString:
				text := k.Text()
				return func(v *Vars) (bool, *Error) {
					if a := &v.Values[i]; a.Kind() == value.KindString {
						return (a.Text() == text) != negated, nil
					}
					same, err := v.equal(v.Values[i], k)
					return same != negated, placed(err, n.pos)
				}
			}
		}
	}
	return func(v *Vars) (bool, *Error) {
		a, err := left.eval(v)
		if err != nil {
			return false, err
		}
		b, err := right.eval(v)
		if err != nil {
			return false, err
		}
		same, err := v.equal(a, b)
		return same != negated, placed(err, n.pos)
	}
}

func (c *compiler) in(n *binary) test {
	left := c.compile(n.left).eval
	if r, ok := n.right.(*binary); ok && r.op == ".." {
		ends := c.ends(r)
		return func(v *Vars) (bool, *Error) {
			a, err := left(v)
			if err != nil {
				return false, err
			}
			from, to, err := ends(v)
			if err != nil {
				return false, err
			}
			return within(a, from, to) != n.negated, nil
		}
	}
	right := c.compile(n.right)
	ints, texts, simple := map[int64]bool{}, map[string]bool{}, right.constant && right.value.Kind() == value.KindList
	if simple {
		for i := range right.value.Len() {
			switch e := right.value.At(i); e.Kind() {
			case value.KindInt:
				ints[e.Int()] = true
			case value.KindString:
				texts[e.Text()] = true
			default:
				simple = false
			}
		}
	}
	return func(v *Vars) (bool, *Error) {
		a, err := left(v)
		if err != nil {
			return false, err
		}
		if simple {
			switch a.Kind() {
			case value.KindInt:
				return ints[a.Int()] != n.negated, nil
			case value.KindString:
				return texts[a.Text()] != n.negated, nil
			}
		}
		b, err := right.eval(v)
		if err != nil {
			return false, err
		}
		ok, err := v.in(a, b)
		return ok != n.negated, placed(err, n.pos)
	}
}

// within reports whether a value is an integer of a range.
func within(a, from, to value.Value) bool {
	if !isNumber(a.Kind()) {
		return false
	}
	if c, ok := compareNumbers(a, from); !ok || c < 0 {
		return false
	}
	if c, ok := compareNumbers(a, to); !ok || c > 0 {
		return false
	}
	if isInteger(a.Kind()) {
		return true
	}
	d := exact(a)
	switch {
	case d.scale <= 0 || d.unscaled.Sign() == 0:
		return true
	case d.scale > digitsOf(d.unscaled):
		return false
	}
	one := decimal{big.NewInt(1), 0}
	return new(big.Int).Rem(d.unscaled, one.at(d.scale)).Sign() == 0
}

// texts compiles contains, startsWith, endsWith and matches. Null has no text: it
// matches nothing.
func (c *compiler) texts(n *binary) test {
	left, right := c.compile(n.left).eval, c.compile(n.right)
	var pattern *regexp.Regexp
	if n.op == "matches" && right.constant && isText(right.value.Kind()) {
		pattern, _ = regexp.Compile(right.value.Text()) // what fails is compiled again, for its error
	}
	return func(v *Vars) (bool, *Error) {
		a, err := left(v)
		if err != nil {
			return false, err
		}
		b, err := right.eval(v)
		if err != nil {
			return false, err
		}
		if a.IsNull() || b.IsNull() {
			return n.negated, nil
		}
		if !isText(a.Kind()) || !isText(b.Kind()) {
			hint := ""
			if a.Kind() == value.KindList || a.Kind() == value.KindMap {
				hint = "; for elements and keys, write b in a"
			}
			return false, failf(n.pos, "%s needs two strings, found %v and %v%s", n.op, a.Kind(), b.Kind(), hint)
		}
		x, y := textOf(a), textOf(b)
		if err := v.work(1 + len(x)/64); err != nil {
			return false, placed(err, n.pos)
		}
		var ok bool
		switch n.op {
		case "contains":
			ok = strings.Contains(x, y)
		case "startsWith":
			ok = strings.HasPrefix(x, y)
		case "endsWith":
			ok = strings.HasSuffix(x, y)
		default:
			p := pattern
			if p == nil {
				var err error
				if err := v.work(128 + len(y)); err != nil {
					return false, placed(err, n.pos)
				}
				if p, err = regexp.Compile(y); err != nil {
					// The error of regexp shows the pattern, which may come from a value.
					return false, failf(n.right.position(), "the string after matches is not a regular expression")
				}
			}
			ok = p.MatchString(x)
		}
		return ok != n.negated, nil
	}
}

// path compiles what looks into a value.
func (c *compiler) path(n *path) code {
	base := c.compile(n.base)
	steps := make([]func(*Vars, value.Value) (value.Value, *Error), len(n.steps))
	optional := make([]bool, len(n.steps))
	for i, s := range n.steps {
		optional[i] = s.optional
		if s.slice {
			steps[i] = c.slice(s)
			continue
		}
		key := c.compile(s.key)
		steps[i] = func(v *Vars, a value.Value) (value.Value, *Error) {
			k, err := key.eval(v)
			if err != nil {
				return k, err
			}
			return v.look(a, k, s)
		}
	}
	return code{eval: func(v *Vars) (value.Value, *Error) {
		a, err := base.eval(v)
		for i := 0; err == nil && i < len(steps); i++ {
			if optional[i] && a.IsNull() {
				return a, nil // and so is all that follows
			}
			a, err = steps[i](v, a)
		}
		return a, err
	}}
}

// look returns an element, an entry or a field.
func (v *Vars) look(a, key value.Value, s step) (value.Value, *Error) {
	switch k := a.Kind(); {
	case k == value.KindRecord && key.Kind() == value.KindString:
		return v.field(a, key.Text(), s)
	case k == value.KindMap && !isInteger(key.Kind()):
		i, err := v.find(a, key)
		switch {
		case err != nil:
			return a, placed(err, s.pos)
		case i >= 0:
			return a.At(i), nil
		case a.Len() > 0 && typeOf(a.Key(0)) != typeOf(key):
			return a, failf(s.pos, "%v is not a key of this map, whose first key is %v", key.Kind(), a.Key(0).Kind())
		}
		return value.Null(), nil
	case k == value.KindList && isInteger(key.Kind()):
		i, err := index(key, a.Len(), s.pos)
		if err != nil {
			return a, err
		}
		return a.At(i), nil
	case k == value.KindMap:
		for i := range a.Len() {
			if a.Key(i).Kind() != value.KindString {
				i, err := index(key, a.Len(), s.pos)
				if err != nil {
					return a, err
				}
				return pair(a, i), nil
			}
		}
		return a, failf(s.pos, "the keys of this map are strings, found %v", key.Kind())
	case k == value.KindNull:
		return a, failf(s.pos, "cannot look for %s in null; ?. in place of . keeps null", s.label())
	}
	return a, failf(s.pos, "cannot look for %s in %v", s.label(), a.Kind())
}

// label returns the key as errors show it: as it is written. One that is calculated may
// come from a value, which errors do not show.
func (s step) label() string {
	if l, ok := s.key.(*literal); ok {
		return l.value.String()
	}
	return "a key"
}

// pair returns an entry of a map as a list.
func pair(m value.Value, i int) value.Value {
	return value.List([]value.Value{m.Key(i), m.At(i)})
}

// index returns the number of an element; negative ones count from the end.
func index(key value.Value, size, pos int) (int, *Error) {
	i := key.Int()
	if i < 0 {
		i += int64(size)
	}
	if key.Kind() != value.KindInt || i < 0 || i >= int64(size) {
		return 0, failf(pos, "index %v of a list of %d elements", key, size)
	}
	return int(i), nil
}

const class = "@class" // asks for the class of a record

func (v *Vars) field(record value.Value, name string, s step) (value.Value, *Error) {
	if f, ok := record.Field(name); ok {
		return f, nil
	}
	if name == class && record.Class() != "" {
		return value.String(record.Class()), nil
	}
	// A subclass has other fields, and an either has one of two.
	if v.OpenRecords || s.optional || record.Class() != "" || record.Len() == 1 && (name == "left" || name == "right") {
		return value.Null(), nil
	}
	err := failf(s.pos, "no field %s", name)
	err.Unknown, err.Field = name, true
	for i := range record.Len() {
		err.Known = append(err.Known, record.Name(i))
	}
	slices.Sort(err.Known)
	return value.Null(), err
}

func (c *compiler) slice(s step) func(*Vars, value.Value) (value.Value, *Error) {
	var ends [2]eval
	for i, n := range []node{s.from, s.to} {
		if n != nil {
			ends[i] = c.compile(n).eval
		}
	}
	return func(v *Vars, a value.Value) (value.Value, *Error) {
		var runes []rune
		size := a.Len()
		switch {
		case isText(a.Kind()):
			if err := v.work(len(textOf(a)) / 8); err != nil {
				return a, placed(err, s.pos)
			}
			runes = []rune(textOf(a))
			size = len(runes)
		case a.Kind() != value.KindList:
			return a, failf(s.pos, "a slice needs a list or a string, found %v", a.Kind())
		}
		at := [2]int{0, size}
		for i, e := range ends {
			if e == nil {
				continue
			}
			n, err := e(v)
			if err != nil {
				return n, err
			}
			if n.Kind() != value.KindInt {
				return n, failf(s.pos, "a slice needs an integer, found %v", n.Kind())
			}
			k := n.Int()
			if k < 0 {
				k += int64(size)
			}
			at[i] = int(min(max(k, 0), int64(size)))
		}
		at[0] = min(at[0], at[1])
		if isText(a.Kind()) {
			return value.String(string(runes[at[0]:at[1]])), nil
		}
		if err := v.makes(at[1] - at[0]); err != nil {
			return a, placed(err, s.pos)
		}
		out := make([]value.Value, 0, at[1]-at[0])
		for i := at[0]; i < at[1]; i++ {
			out = append(out, a.At(i))
		}
		return value.List(out), nil
	}
}

// Functions returns the names of the functions, sorted.
func Functions() []string { return slices.Sorted(maps.Keys(functions)) }
