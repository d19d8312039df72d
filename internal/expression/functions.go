package expression

import (
	"cmp"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format/value"
)

// function is one of the language. Its arguments after a list are predicates, or none
// is.
type function struct {
	usage       string
	least, most int // arguments; most is 0 for any number
	predicate   bool
	maps        bool // its predicate is not a condition
	takes       Type
	returns     Type
	one         func(*Vars, value.Value) (value.Value, *Error)
	all         func(*Vars, []value.Value) (value.Value, *Error)
}

const sized = String | parts

var functions = map[string]function{
	"any":    {usage: "any(list, {condition})", least: 2, most: 2, predicate: true, takes: parts, returns: Bool},
	"all":    {usage: "all(list, {condition})", least: 2, most: 2, predicate: true, takes: parts, returns: Bool},
	"none":   {usage: "none(list, {condition})", least: 2, most: 2, predicate: true, takes: parts, returns: Bool},
	"one":    {usage: "one(list, {condition})", least: 2, most: 2, predicate: true, takes: parts, returns: Bool},
	"count":  {usage: "count(list) or count(list, {condition})", least: 1, most: 2, predicate: true, takes: parts, returns: Int},
	"filter": {usage: "filter(list, {condition})", least: 2, most: 2, predicate: true, takes: parts, returns: List},
	"find":   {usage: "find(list, {condition})", least: 2, most: 2, predicate: true, takes: parts, returns: Any},
	"map":    {usage: "map(list, {value})", least: 2, most: 2, predicate: true, maps: true, takes: parts, returns: List},
	"sum":    {usage: "sum(list) or sum(list, {number})", least: 1, most: 2, predicate: true, maps: true, takes: parts, returns: numbers},
	"len":    {usage: "len(value)", least: 1, most: 1, takes: sized, returns: Int, one: length},
	"int":    {usage: "int(value)", least: 1, most: 1, takes: numbers | String, returns: Int, one: toInt},
	"float":  {usage: "float(value)", least: 1, most: 1, takes: numbers | String, returns: Float, one: toFloat},
	"string": {usage: "string(value)", least: 1, most: 1, takes: Any, returns: String, one: toString},
	"type":   {usage: "type(value)", least: 1, most: 1, takes: Any, returns: String, one: typeName},
	"abs":    {usage: "abs(number)", least: 1, most: 1, takes: numbers, returns: numbers, one: absolute},
	"floor":  {usage: "floor(number)", least: 1, most: 1, takes: numbers, returns: numbers, one: rounded("floor", math.Floor)},
	"ceil":   {usage: "ceil(number)", least: 1, most: 1, takes: numbers, returns: numbers, one: rounded("ceil", math.Ceil)},
	"round":  {usage: "round(number)", least: 1, most: 1, takes: numbers, returns: numbers, one: rounded("round", math.Round)},
	"min":    {usage: "min(a, b, …) or min(list)", least: 1, takes: numbers | String | List, returns: numbers | String | Null, all: extreme(-1)},
	"max":    {usage: "max(a, b, …) or max(list)", least: 1, takes: numbers | String | List, returns: numbers | String | Null, all: extreme(1)},
	"lower":  {usage: "lower(string)", least: 1, most: 1, takes: String, returns: String, one: changed("lower", strings.ToLower)},
	"upper":  {usage: "upper(string)", least: 1, most: 1, takes: String, returns: String, one: changed("upper", strings.ToUpper)},
	"trim":   {usage: "trim(string)", least: 1, most: 1, takes: String, returns: String, one: changed("trim", strings.TrimSpace)},
	"first":  {usage: "first(list)", least: 1, most: 1, takes: parts, returns: Any, one: end("first", false)},
	"last":   {usage: "last(list)", least: 1, most: 1, takes: parts, returns: Any, one: end("last", true)},
	"keys":   {usage: "keys(map)", least: 1, most: 1, takes: fields, returns: List, one: inside("keys", true)},
	"values": {usage: "values(map)", least: 1, most: 1, takes: fields, returns: List, one: inside("values", false)},
}

// needs is the error of a value that a function does not take.
func needs(function, want string, v value.Value) *Error {
	return failf(0, "%s needs %s, found %v", function, want, v.Kind())
}

// call compiles a function.
func (c *compiler) call(n *call) code {
	f := functions[n.function]
	switch {
	case f.predicate:
		return c.each(n)
	case f.one != nil:
		arg := c.compile(n.args[0])
		return folded(func(v *Vars) (value.Value, *Error) {
			a, err := arg.eval(v)
			if err != nil {
				return a, err
			}
			a, err = f.one(v, a)
			return a, placed(err, n.pos)
		}, arg)
	}
	args := make([]code, len(n.args))
	for i, arg := range n.args {
		args[i] = c.compile(arg)
	}
	return folded(func(v *Vars) (value.Value, *Error) {
		values := make([]value.Value, len(args))
		for i, arg := range args {
			var err *Error
			if values[i], err = arg.eval(v); err != nil {
				return values[i], err
			}
		}
		a, err := f.all(v, values)
		return a, placed(err, n.pos)
	}, args...)
}

// walk calls f for each element of a list, and each entry of a map as a list of its
// key and its value, with the element as #, until it returns false.
func (v *Vars) walk(n *call, list value.Value, f func() (bool, *Error)) *Error {
	if list.Kind() != value.KindList && list.Kind() != value.KindMap {
		return placed(needs(n.function, "a list or a map", list), n.pos)
	}
	around := v.item
	defer func() { v.item = around }()
	for i := range list.Len() {
		if err := v.work(1); err != nil {
			return placed(err, n.pos)
		}
		if list.Kind() == value.KindMap {
			v.item = pair(list, i)
		} else {
			v.item = list.At(i)
		}
		if more, err := f(); err != nil || !more {
			return err
		}
	}
	return nil
}

// quantifier compiles any, all, none and one; nil if it is another function.
func (c *compiler) quantifier(n *call) test {
	switch n.function {
	case "any", "all", "none", "one":
	default:
		return nil
	}
	list, is := c.compile(n.args[0]).eval, c.test(n.args[1], n.function)
	return func(v *Vars) (bool, *Error) {
		a, err := list(v)
		if err != nil {
			return false, err
		}
		yes, no := 0, 0
		err = v.walk(n, a, func() (bool, *Error) {
			ok, err := is(v)
			if ok {
				yes++
			} else {
				no++
			}
			switch n.function {
			case "all":
				return no == 0, err
			case "one":
				return yes < 2, err
			}
			return yes == 0, err
		})
		if err != nil {
			return false, err
		}
		switch n.function {
		case "any":
			return yes > 0, nil
		case "all":
			return no == 0, nil
		case "none":
			return yes == 0, nil
		}
		return yes == 1, nil
	}
}

// each compiles the functions with a predicate.
func (c *compiler) each(n *call) code {
	if is := c.quantifier(n); is != nil {
		return code{eval: func(v *Vars) (value.Value, *Error) {
			ok, err := is(v)
			return value.Bool(ok), err
		}}
	}
	list := c.compile(n.args[0]).eval
	if f := functions[n.function]; f.maps {
		item := eval(func(v *Vars) (value.Value, *Error) { return v.item, nil })
		if len(n.args) == 2 {
			item = c.compile(n.args[1].(*closure).node).eval
		}
		if n.function == "sum" {
			return c.sum(n, list, item)
		}
		return code{eval: func(v *Vars) (value.Value, *Error) {
			a, err := list(v)
			if err != nil {
				return a, err
			}
			var out []value.Value
			err = v.walk(n, a, func() (bool, *Error) {
				e, err := item(v)
				if err == nil {
					err = placed(v.makes(1), n.pos)
				}
				out = append(out, e)
				return true, err
			})
			return value.List(out), err
		}}
	}
	condition := node(&element{spot{n.pos, 1}})
	if len(n.args) == 2 {
		condition = n.args[1]
	}
	is := c.test(condition, n.function)
	return code{eval: func(v *Vars) (value.Value, *Error) {
		a, err := list(v)
		if err != nil {
			return a, err
		}
		var out []value.Value
		count := int64(0)
		err = v.walk(n, a, func() (bool, *Error) {
			ok, err := is(v)
			if !ok || err != nil {
				return true, err
			}
			count++
			if n.function == "count" {
				return true, nil
			}
			out = append(out, v.item)
			return n.function == "filter", placed(v.makes(1), n.pos)
		})
		switch {
		case err != nil:
			return a, err
		case n.function == "count":
			return value.Int(count), nil
		case n.function == "filter":
			return value.List(out), nil
		case len(out) == 0:
			return value.Null(), nil
		}
		return out[0], nil
	}}
}

func (c *compiler) sum(n *call, list, item eval) code {
	return code{eval: func(v *Vars) (value.Value, *Error) {
		a, err := list(v)
		if err != nil {
			return a, err
		}
		total := value.Int(0)
		err = v.walk(n, a, func() (bool, *Error) {
			e, err := item(v)
			if err != nil {
				return false, err
			}
			if !isNumber(e.Kind()) {
				return false, placed(needs("sum", "numbers", e), n.pos)
			}
			total, err = arithmetic("+", total, e)
			return true, placed(err, n.pos)
		})
		return total, err
	}}
}

func length(v *Vars, a value.Value) (value.Value, *Error) {
	switch k := a.Kind(); {
	case isText(k):
		text := textOf(a)
		return value.Int(int64(utf8.RuneCountInString(text))), v.work(len(text) / 64)
	case k == value.KindList || k == value.KindMap || k == value.KindRecord:
		return value.Int(int64(a.Len())), nil
	}
	return a, needs("len", "a string, a list or a map", a)
}

func toInt(_ *Vars, a value.Value) (value.Value, *Error) {
	switch k := a.Kind(); {
	case isInteger(k):
		return a, nil
	case isFloat(k):
		if f := a.Float(); !math.IsNaN(f) && !math.IsInf(f, 0) {
			whole, _ := big.NewFloat(f).Int(nil)
			return integer(whole), nil
		}
		return a, failf(0, "int of NaN or of an infinity")
	case k == value.KindDecimal:
		d := exact(a)
		switch {
		case d.scale > digitsOf(d.unscaled):
			return value.Int(0), nil
		case d.scale < -maxExponent:
			return a, tooLarge()
		case d.scale <= 0:
			return integer(d.at(0)), nil
		}
		one := decimal{big.NewInt(1), 0}
		return integer(new(big.Int).Quo(d.unscaled, one.at(d.scale))), nil
	case k == value.KindString || k == value.KindBytes:
		if len(a.Text()) <= maxBits/4 {
			if n, ok := new(big.Int).SetString(strings.TrimSpace(a.Text()), 10); ok {
				return integer(n), nil
			}
		}
		return a, failf(0, "int of a string that is not an integer")
	}
	return a, needs("int", "a number or a string", a)
}

func toFloat(_ *Vars, a value.Value) (value.Value, *Error) {
	switch k := a.Kind(); {
	case isNumber(k):
		return float(floatOf(a)), nil
	case k == value.KindString || k == value.KindBytes:
		f, err := strconv.ParseFloat(strings.TrimSpace(a.Text()), 64)
		if err != nil {
			return a, failf(0, "float of a string that is not a number")
		}
		return float(f), nil
	}
	return a, needs("float", "a number or a string", a)
}

func toString(v *Vars, a value.Value) (value.Value, *Error) {
	size, err := v.size(a)
	if err != nil {
		return a, err
	}
	return v.text(size, a.String)
}

// size returns about how long the text of a value is.
func (v *Vars) size(a value.Value) (int, *Error) {
	size := 24 + 2*len(a.Text())
	for i := range a.Len() {
		if err := v.work(1); err != nil {
			return 0, err
		}
		n, err := v.size(a.At(i))
		if err == nil && a.Kind() == value.KindMap {
			var k int
			k, err = v.size(a.Key(i))
			n += k
		}
		if size += n; err != nil || size > maxString {
			return size, err
		}
	}
	return size, nil
}

func typeName(_ *Vars, a value.Value) (value.Value, *Error) {
	switch typeOf(a) {
	case Null:
		return value.String("nil"), nil
	case Bool:
		return value.String("bool"), nil
	case Int:
		return value.String("int"), nil
	case Float:
		return value.String("float"), nil
	case String:
		return value.String("string"), nil
	case List:
		return value.String("array"), nil
	}
	return value.String("map"), nil
}

func absolute(_ *Vars, a value.Value) (value.Value, *Error) {
	if !isNumber(a.Kind()) {
		return a, needs("abs", "a number", a)
	}
	if sign(a) < 0 {
		return negate(a)
	}
	return a, nil
}

func rounded(name string, round func(float64) float64) func(*Vars, value.Value) (value.Value, *Error) {
	return func(_ *Vars, a value.Value) (value.Value, *Error) {
		switch k := a.Kind(); {
		case isInteger(k):
			return a, nil
		case isNumber(k):
			return float(round(floatOf(a))), nil
		}
		return a, needs(name, "a number", a)
	}
}

// extreme returns the least or the greatest of numbers or of texts; of an empty list,
// null.
func extreme(want int) func(*Vars, []value.Value) (value.Value, *Error) {
	return func(v *Vars, args []value.Value) (best value.Value, err *Error) {
		found := false
		add := func(a value.Value) *Error {
			if !isNumber(a.Kind()) && !isText(a.Kind()) {
				return failf(0, "min and max need numbers or strings, found %v", a.Kind())
			}
			if !found {
				best, found = a, true
				return nil
			}
			c, isOrdered, err := ordered(a, best)
			if err == nil && isOrdered && cmp.Compare(c, 0) == want {
				best = a
			}
			return err
		}
		for _, a := range args {
			if a.Kind() != value.KindList {
				if err := add(a); err != nil {
					return best, err
				}
				continue
			}
			if err := v.work(a.Len()); err != nil {
				return best, err
			}
			for i := range a.Len() {
				if err := add(a.At(i)); err != nil {
					return best, err
				}
			}
		}
		return best, nil
	}
}

func changed(name string, change func(string) string) func(*Vars, value.Value) (value.Value, *Error) {
	return func(v *Vars, a value.Value) (value.Value, *Error) {
		if !isText(a.Kind()) {
			return a, needs(name, "a string", a)
		}
		text := textOf(a)
		return v.text(len(text), func() string { return change(text) })
	}
}

func end(name string, last bool) func(*Vars, value.Value) (value.Value, *Error) {
	return func(_ *Vars, a value.Value) (value.Value, *Error) {
		switch {
		case a.Kind() != value.KindList:
			return a, needs(name, "a list", a)
		case a.Len() == 0:
			return value.Null(), nil
		case last:
			return a.At(a.Len() - 1), nil
		}
		return a.At(0), nil
	}
}

// inside returns the keys or the values of a map or a record.
func inside(name string, keys bool) func(*Vars, value.Value) (value.Value, *Error) {
	return func(v *Vars, a value.Value) (value.Value, *Error) {
		if a.Kind() != value.KindMap && a.Kind() != value.KindRecord {
			return a, needs(name, "a map or a record", a)
		}
		if err := v.makes(a.Len()); err != nil {
			return a, err
		}
		out := make([]value.Value, a.Len())
		for i := range out {
			switch {
			case !keys:
				out[i] = a.At(i)
			case a.Kind() == value.KindMap:
				out[i] = a.Key(i)
			default:
				out[i] = value.String(a.Name(i))
			}
		}
		return value.List(out), nil
	}
}
