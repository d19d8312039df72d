package expression

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format/value"
)

// node is a part of an expression.
type node interface {
	position() int
	// height is the number of nodes on the longest way down, this one included.
	height() int
	write(b *strings.Builder)
}

// spot is what all nodes have.
type spot struct{ pos, deep int }

func (s spot) position() int { return s.pos }
func (s spot) height() int   { return s.deep }

type (
	literal struct {
		spot
		value value.Value
	}
	list struct {
		spot
		elements []node
	}
	name struct {
		spot
		name  string
		index int // in the names; set by the check
	}
	element struct{ spot } // # of a predicate
	unary   struct {
		spot
		op   string // "not", "-", "+"
		node node
	}
	binary struct {
		spot
		op          string
		left, right node
		negated     bool // not in, not contains, …
	}
	// comparison is a chain of <, <=, >, >=: a < b <= c.
	comparison struct {
		spot
		ops      []string // by operand after the first
		places   []int
		operands []node
	}
	// logic is and, or of any number of operands.
	logic struct {
		spot
		op       string
		operands []node
	}
	conditional struct {
		spot
		test, yes, no node // yes is nil in test ?: no
	}
	// path looks into a value.
	path struct {
		spot
		base  node
		steps []step
	}
	call struct {
		spot
		function string
		args     []node
	}
	// closure is the predicate of a call.
	closure struct {
		spot
		node node
	}
)

// step is one [key] or .name, or a slice.
type step struct {
	pos      int
	key      node
	slice    bool
	from, to node // of a slice; nil: the end
	optional bool
}

func (n *literal) write(b *strings.Builder) { printLiteral(b, n.value) }

func (n *list) write(b *strings.Builder) { printAll(b, "[", n.elements, ", ", "]") }

func (n *name) write(b *strings.Builder) { b.WriteString(n.name) }

func (n *element) write(b *strings.Builder) { b.WriteByte('#') }

func (n *unary) write(b *strings.Builder) {
	b.WriteString("(" + n.op + " ")
	n.node.write(b)
	b.WriteByte(')')
}

func (n *binary) write(b *strings.Builder) {
	b.WriteByte('(')
	n.left.write(b)
	b.WriteByte(' ')
	if n.negated {
		b.WriteString("not ")
	}
	b.WriteString(n.op + " ")
	n.right.write(b)
	b.WriteByte(')')
}

func (n *comparison) write(b *strings.Builder) {
	b.WriteByte('(')
	for i, operand := range n.operands {
		if i > 0 {
			b.WriteString(" " + n.ops[i-1] + " ")
		}
		operand.write(b)
	}
	b.WriteByte(')')
}

func (n *logic) write(b *strings.Builder) { printAll(b, "(", n.operands, " "+n.op+" ", ")") }

func (n *conditional) write(b *strings.Builder) {
	b.WriteByte('(')
	n.test.write(b)
	b.WriteString(" ? ")
	if n.yes != nil {
		n.yes.write(b)
		b.WriteByte(' ')
	}
	b.WriteString(": ")
	n.no.write(b)
	b.WriteByte(')')
}

func (n *path) write(b *strings.Builder) {
	n.base.write(b)
	for _, s := range n.steps {
		if s.optional {
			b.WriteString("?.")
		}
		b.WriteByte('[')
		if s.slice {
			if s.from != nil {
				s.from.write(b)
			}
			b.WriteByte(':')
			if s.to != nil {
				s.to.write(b)
			}
		} else {
			s.key.write(b)
		}
		b.WriteByte(']')
	}
}

func (n *call) write(b *strings.Builder) { printAll(b, n.function+"(", n.args, ", ", ")") }

func (n *closure) write(b *strings.Builder) {
	b.WriteByte('{')
	n.node.write(b)
	b.WriteByte('}')
}

func printAll(b *strings.Builder, open string, nodes []node, between, end string) {
	b.WriteString(open)
	for i, n := range nodes {
		if i > 0 {
			b.WriteString(between)
		}
		n.write(b)
	}
	b.WriteString(end)
}

func printLiteral(b *strings.Builder, v value.Value) {
	switch v.Kind() {
	case value.KindNull:
		b.WriteString("nil")
	case value.KindFloat64:
		text := strconv.FormatFloat(v.Float(), 'g', -1, 64)
		b.WriteString(text)
		if !strings.ContainsAny(text, ".e") {
			b.WriteString(".0")
		}
	case value.KindDecimal:
		b.WriteString(v.BigInt().String() + "e" + strconv.Itoa(-int(v.Scale())))
	case value.KindString:
		printText(b, v.Text())
	default:
		b.WriteString(v.String())
	}
}

// printText prints a text whose escapes the lexer knows.
func printText(b *strings.Builder, text string) {
	if utf8.ValidString(text) {
		b.WriteString(strconv.QuoteToGraphic(text))
		return
	}
	b.WriteString(`b"`)
	for _, c := range []byte(text) {
		if c < ' ' || c > '~' || c == '"' || c == '\\' {
			const digits = "0123456789abcdef"
			b.WriteString(`\x` + string([]byte{digits[c>>4], digits[c&15]}))
		} else {
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
}
