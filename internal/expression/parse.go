package expression

import (
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format/value"
)

// Bounds of an expression.
const (
	maxText   = 1 << 20 // bytes
	maxHeight = 250     // nodes inside each other
	maxNested = 1000    // expressions that the parser is in
	maxBits   = 1 << 12 // of an integer that is calculated
)

// precedences are the binary operators; the larger number binds tighter.
var precedences = map[string]int{
	"|": 0, "or": 10, "||": 10, "and": 15, "&&": 15,
	"==": 20, "!=": 20, "<": 20, "<=": 20, ">": 20, ">=": 20,
	"in": 20, "matches": 20, "contains": 20, "startsWith": 20, "endsWith": 20,
	"..": 25, "+": 30, "-": 30, "*": 60, "/": 60, "%": 60, "**": 100, "^": 100, "??": 500,
}

var unaries = map[string]int{"not": 50, "!": 50, "-": 90, "+": 90}

// sameOperator are the operators that are other words for one.
var sameOperator = map[string]string{"||": "or", "&&": "and", "!": "not", "^": "**"}

type parser struct {
	lexer   lexer
	now     token
	nested  int
	closure int // predicates around
}

// bail carries an error out of the parser.
type bail struct{ err *Error }

// parse returns the expression of a text.
func parse(text string) (n node, err *Error) {
	if len(text) > maxText {
		return nil, failf(0, "the expression has %d bytes, expected at most %d", len(text), maxText)
	}
	p := parser{lexer: lexer{text: text}}
	defer func() {
		switch e := recover().(type) {
		case nil:
		case bail:
			n, err = nil, e.err
		default:
			panic(e)
		}
	}()
	p.advance()
	n = p.expression(0)
	if p.now.kind != tokenEnd {
		p.unexpected()
	}
	return n, nil
}

func (p *parser) fail(pos int, format string, args ...any) {
	panic(bail{failf(pos, format, args...)})
}

func (p *parser) unexpected() {
	switch p.now.text {
	case ";":
		if p.now.kind == tokenOperator {
			p.fail(p.now.pos, "sequences with ; are not supported")
		}
	case "=":
		if p.now.kind == tokenOperator {
			p.fail(p.now.pos, `unexpected "="; to compare, write ==`)
		}
	}
	p.fail(p.now.pos, "unexpected %v", p.now)
}

func (p *parser) advance() {
	t, err := p.lexer.next()
	if err != nil {
		panic(bail{err})
	}
	p.now = t
}

// take moves past an operator if it is the next token.
func (p *parser) take(op string) bool {
	if !p.now.is(op) {
		return false
	}
	p.advance()
	return true
}

func (p *parser) expect(op string) {
	if !p.take(op) {
		if p.now.kind == tokenEnd {
			p.fail(p.now.pos, "unexpected %v, expected %q", p.now, op)
		}
		p.unexpected()
	}
}

// over returns the spot of a node over others.
func (p *parser) over(pos int, nodes ...node) spot {
	s := spot{pos, 1}
	for _, n := range nodes {
		if n != nil {
			s.deep = max(s.deep, n.height()+1)
		}
	}
	if s.deep > maxHeight {
		p.fail(pos, "the expression is nested more than %d times", maxHeight)
	}
	return s
}

// expression parses what operators of at least a precedence join.
func (p *parser) expression(least int) node {
	if p.nested++; p.nested > maxNested {
		p.fail(p.now.pos, "the expression is nested more than %d times", maxNested)
	}
	defer func() { p.nested-- }()
	left := p.primary()
	before := ""
	for p.now.kind == tokenOperator {
		op, at, lexer := p.now, p.now, p.lexer
		negated := op.text == "not"
		if negated {
			p.advance()
			if op = p.now; op.kind != tokenOperator || !slices.Contains([]string{"in", "contains", "startsWith", "endsWith", "matches"}, op.text) {
				p.unexpected()
			}
		}
		precedence, ok := precedences[op.text]
		if !ok || precedence < least {
			p.now, p.lexer = at, lexer
			break
		}
		if before == "??" && op.text != "??" {
			p.fail(op.pos, "?? and %s need parentheses: (a ?? b) %s c", op.text, op.text)
		}
		before = op.text
		p.advance()
		left = p.binary(left, op, negated, precedence)
	}
	if least == 0 {
		for p.now.is("?") {
			left = p.conditional(left)
		}
	}
	return left
}

// binary parses what follows an operator.
func (p *parser) binary(left node, op token, negated bool, precedence int) node {
	symbol := op.text
	if same, ok := sameOperator[symbol]; ok {
		symbol = same
	}
	switch symbol {
	case "|":
		function := p.now
		if function.kind != tokenName {
			p.unexpected()
		}
		p.advance()
		return p.postfix(p.call(function, []node{left}))
	case "<", "<=", ">", ">=":
		c := &comparison{operands: []node{left}}
		for {
			c.ops, c.places = append(c.ops, op.text), append(c.places, op.pos)
			c.operands = append(c.operands, p.expression(precedence+1))
			if op = p.now; op.kind != tokenOperator || !slices.Contains([]string{"<", "<=", ">", ">="}, op.text) {
				c.spot = p.over(c.places[0], c.operands...)
				return c
			}
			p.advance()
		}
	case "**":
		right := p.expression(precedence)
		return &binary{p.over(op.pos, left, right), symbol, left, right, false}
	}
	right := p.expression(precedence + 1)
	if symbol == "and" || symbol == "or" {
		if l, ok := left.(*logic); ok && l.op == symbol {
			at := p.over(op.pos, right)
			at.deep = max(at.deep, l.deep)
			return &logic{at, symbol, append(l.operands, right)}
		}
		return &logic{p.over(op.pos, left, right), symbol, []node{left, right}}
	}
	return &binary{p.over(op.pos, left, right), symbol, left, right, negated}
}

func (p *parser) conditional(test node) node {
	pos := p.now.pos
	p.advance()
	var yes node
	if !p.now.is(":") {
		yes = p.expression(0)
	}
	p.expect(":")
	no := p.expression(0)
	return &conditional{p.over(pos, test, yes, no), test, yes, no}
}

func (p *parser) primary() node {
	t := p.now
	switch t.kind {
	case tokenNumber:
		p.advance()
		v, err := number(t)
		if err != nil {
			panic(bail{err})
		}
		return p.postfix(&literal{p.over(t.pos), v})
	case tokenText:
		p.advance()
		return p.postfix(&literal{p.over(t.pos), value.String(t.text)})
	case tokenName:
		p.advance()
		return p.postfix(p.named(t))
	case tokenEnd:
		p.unexpected()
	}
	if precedence, ok := unaries[t.text]; ok {
		p.advance()
		op := t.text
		if op == "!" {
			op = "not"
		}
		operand := p.expression(precedence)
		return p.postfix(&unary{p.over(t.pos, operand), op, operand})
	}
	switch t.text {
	case "(":
		p.advance()
		n := p.expression(0)
		p.expect(")")
		return p.postfix(n)
	case "[":
		p.advance()
		var elements []node
		for !p.now.is("]") {
			elements = append(elements, p.expression(0))
			if !p.take(",") {
				break
			}
		}
		p.expect("]")
		return p.postfix(&list{p.over(t.pos, elements...), elements})
	case "#", ".":
		if p.closure == 0 {
			p.fail(t.pos, "%q is the element of a predicate, such as in any(value, {# > 5})", t.text)
		}
		if t.text == "#" {
			end := p.lexer.at
			p.advance()
			if p.now.kind == tokenName && p.now.pos == end {
				p.fail(t.pos, "#%s is not supported", p.now.text)
			}
		}
		return p.postfix(&element{p.over(t.pos)})
	case "{":
		p.fail(t.pos, "map literals are not supported; a list is [1, 2]")
	case "::":
		p.fail(t.pos, ":: is not supported")
	}
	p.unexpected()
	return nil
}

// named is what a name at the start of an operand is.
func (p *parser) named(t token) node {
	switch t.text {
	case "true", "false":
		return &literal{p.over(t.pos), value.Bool(t.text == "true")}
	case "nil", "null":
		return &literal{p.over(t.pos), value.Null()}
	case "$env":
		p.fail(t.pos, "$env is not supported")
	case "let":
		p.fail(t.pos, "variables with let are not supported")
	case "if", "else":
		p.fail(t.pos, "%s is not supported; write a ? b : c", t.text)
	}
	if p.now.is("(") {
		return p.call(t, nil)
	}
	return &name{p.over(t.pos), t.text, 0}
}

// call parses the arguments of a function.
func (p *parser) call(function token, args []node) node {
	f, ok := functions[function.text]
	if !ok {
		e := failf(function.pos, "function %s is not supported", function.text)
		e.Unknown, e.Known = function.text, Functions()
		panic(bail{e})
	}
	p.expect("(")
	for !p.now.is(")") {
		if f.predicate && len(args) == 1 {
			args = append(args, p.predicate())
		} else {
			args = append(args, p.expression(0))
		}
		if !p.take(",") {
			break
		}
	}
	p.expect(")")
	switch {
	case len(args) < f.least:
		p.fail(function.pos, "%s has too few arguments: expected %s", function.text, f.usage)
	case f.most > 0 && len(args) > f.most:
		p.fail(function.pos, "%s has too many arguments: expected %s", function.text, f.usage)
	}
	return &call{p.over(function.pos, args...), function.text, args}
}

func (p *parser) predicate() node {
	pos := p.now.pos
	braces := p.take("{")
	p.closure++
	n := p.expression(0)
	p.closure--
	if braces {
		p.expect("}")
	}
	return &closure{p.over(pos, n), n}
}

// postfix parses what looks into a value.
func (p *parser) postfix(base node) node {
	var steps []step
	for {
		pos := p.now.pos
		s := step{pos: pos, optional: p.now.is("?.")}
		switch {
		case p.take("."), s.optional && p.takeNext():
			if s.optional && p.take("[") {
				p.subscript(&s)
				break
			}
			field := p.now
			if field.kind != tokenName && !(field.kind == tokenOperator && wordOperators[field.text]) {
				p.fail(field.pos, "expected the name of a field, found %v", field)
			}
			p.advance()
			if p.now.is("(") {
				p.fail(field.pos, "methods are not supported: %s()", field.text)
			}
			s.pos, s.key = field.pos, &literal{p.over(field.pos), value.String(field.text)}
		case p.take("["):
			p.subscript(&s)
		default:
			if len(steps) == 0 {
				return base
			}
			if inner, ok := base.(*path); ok {
				base, steps = inner.base, append(inner.steps, steps...)
			}
			nodes := []node{base}
			for _, s := range steps {
				for _, n := range []node{s.key, s.from, s.to} {
					if n != nil {
						nodes = append(nodes, n)
					}
				}
			}
			return &path{p.over(base.position(), nodes...), base, steps}
		}
		steps = append(steps, s)
	}
}

func (p *parser) takeNext() bool {
	p.advance()
	return true
}

// subscript parses what follows a [.
func (p *parser) subscript(s *step) {
	if !p.now.is(":") {
		s.pos = p.now.pos
		s.key = p.expression(0)
	}
	if p.take(":") {
		s.slice, s.from, s.key = true, s.key, nil
		if !p.now.is("]") {
			s.to = p.expression(0)
		}
	}
	p.expect("]")
}

// number returns the value of a number as written. One whose digits a float does not
// have is a decimal.
func number(t token) (value.Value, *Error) {
	bad := func() (value.Value, *Error) { return value.Value{}, failf(t.pos, "%.40q is not a number", t.text) }
	text := strings.ReplaceAll(t.text, "_", "")
	based := len(text) > 1 && strings.Contains("xXoObB", text[1:2])
	if based || !strings.ContainsAny(text, ".eE") {
		if len(text) > maxBits/4 {
			return value.Value{}, failf(t.pos, "a number of %d digits", len(text))
		}
		base := 10
		if based {
			base = 0
		}
		n, ok := new(big.Int).SetString(text, base)
		if !ok || n.BitLen() > maxBits {
			return bad()
		}
		return integer(n), nil
	}
	if len(text) > maxBits/4 {
		return value.Value{}, failf(t.pos, "a number of %d digits", len(text))
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return bad()
	}
	exact, ok := decimalOf(text)
	if !ok {
		return bad()
	}
	if shortest, _ := decimalOf(strconv.FormatFloat(f, 'e', -1, 64)); exact.compare(shortest) == 0 {
		return float(f), nil
	}
	return exact.value(), nil
}
