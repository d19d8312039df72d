package expression

import (
	"strings"

	"github.com/savepoint-tools/spt/format/value"
)

// Name is a name that an expression can use.
type Name struct {
	Name string
	Type Type
	// Constant, if not null, is its value always.
	Constant value.Value
}

// Program is a compiled expression that is true or false. It is safe for concurrent
// use.
type Program struct {
	text string
	root node
	test test
	uses []bool
}

// Vars are the values of the names, and the memory of one evaluation at a time.
type Vars struct {
	// Values has the value of each name, in the order of the names. Constants have
	// their own.
	Values []value.Value
	// OpenRecords says that records leave out fields, which are null; otherwise a field
	// that a record does not have is an error.
	OpenRecords bool

	item  value.Value // of the innermost predicate
	steps int
	made  int
}

// Bounds of one evaluation.
const (
	maxSteps  = 1 << 24 // elements looked at, and 64 bytes of a text or 8 of a number each
	maxMade   = 1 << 18 // elements of new lists
	maxString = 1 << 26 // bytes of a new text
)

// Compile compiles an expression that uses these names. The error is an *Error.
func Compile(text string, names []Name) (*Program, error) {
	p, err := compileText(text, names)
	if err != nil {
		err.locate(text)
		return nil, err
	}
	return p, nil
}

func compileText(text string, names []Name) (*Program, *Error) {
	root, err := parse(text)
	if err != nil {
		return nil, err
	}
	c := checker{names: names, uses: make([]bool, len(names))}
	t, err := c.check(root)
	if err != nil {
		return nil, err
	}
	if t&Bool == 0 {
		return nil, failf(root.position(), "the expression is %v, expected true or false", t)
	}
	compiler := compiler{names}
	return &Program{text, root, compiler.test(root, "the expression"), c.uses}, nil
}

// Uses reports whether the expression uses a name, by its number.
func (p *Program) Uses(name int) bool { return p.uses[name] }

// String returns the expression in parentheses that show how it was understood. It
// compiles to the same program.
func (p *Program) String() string {
	var b strings.Builder
	p.root.write(&b)
	return b.String()
}

// Eval reports whether the expression is true; one that is null is not. The error is an *Error: the expression
// does not fit the values.
func (p *Program) Eval(v *Vars) (bool, error) {
	v.steps, v.made = 0, 0
	ok, err := p.test(v)
	if err != nil {
		err.locate(p.text)
		return false, err
	}
	return ok, nil
}

// work counts elements or pieces of texts that are looked at.
func (v *Vars) work(n int) *Error {
	if v.steps += n; v.steps > maxSteps {
		return failf(0, "the expression takes more than %d steps on this value", maxSteps)
	}
	return nil
}

// exactly counts the work with numbers that are more than 64 bits.
func (v *Vars) exactly(numbers ...value.Value) *Error {
	for _, n := range numbers {
		if k := n.Kind(); k == value.KindBigInt || k == value.KindDecimal {
			if err := v.work(4 + len(n.Text())/8); err != nil {
				return err
			}
		}
	}
	return nil
}

// makes counts new elements.
func (v *Vars) makes(n int) *Error {
	if v.made += n; v.made > maxMade || n > maxMade {
		return failf(0, "the expression makes lists of more than %d elements", maxMade)
	}
	return v.work(n)
}

// text returns a new text.
func (v *Vars) text(size int, f func() string) (value.Value, *Error) {
	if size > maxString {
		return value.Value{}, failf(0, "the expression makes a text of more than %d bytes", maxString)
	}
	if err := v.work(size / 64); err != nil {
		return value.Value{}, err
	}
	return value.String(f()), nil
}
