package command

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
)

func (p *pick) pickOperators(env *Env, all []*format.Operator) ([]*format.Operator, error) {
	if len(p.operators) == 0 {
		return slices.Clone(all), nil
	}
	flag := cmp.Or(p.flag, "--operator")
	keep := map[*format.Operator]bool{}
	for _, want := range p.operators {
		n, byPrefix := 0, 0
		id := format.OperatorIDOf(want)
		for _, op := range all {
			if id == op.ID { // the uid itself, which files before Flink 2.0 do not hold
				env.run.LearnUID(want)
			}
			exact, prefix := env.isOperator(op, want)
			if exact || prefix {
				keep[op] = true
				n++
			}
			if prefix && !exact {
				byPrefix++
			}
		}
		if byPrefix > 1 {
			return nil, &usageError{fmt.Sprintf("%s %s is the beginning of %d ids", flag, ui.Quote(want), byPrefix), "give more digits"}
		}
		if n == 0 {
			var names []string
			for _, op := range all {
				names = append(names, op.UID.String(), op.Name.String(), env.run.Learned(op.ID.String()))
			}
			hint := env.meant(want, names) + "available: " + operatorList(env, all)
			if len(want) < idDigits && slices.ContainsFunc(all, func(op *format.Operator) bool { return strings.HasPrefix(op.ID.String(), strings.ToLower(want)) }) {
				hint = fmt.Sprintf("the beginning of an id must have at least %d digits; %s", idDigits, hint)
			}
			return nil, &usageError{fmt.Sprintf("%s %s matches no operator", flag, ui.Quote(want)), hint}
		}
	}
	var out []*format.Operator
	for _, op := range all {
		if keep[op] {
			out = append(out, op)
		}
	}
	return out, nil
}

// isOperator reports whether want is a name of an operator, exactly or by a glob, or the
// beginning of its id.
func (e *Env) isOperator(op *format.Operator, want string) (exact, prefix bool) {
	exact = want == op.ID.String() || globMatches(want, op.UID.String()) || globMatches(want, op.Name.String()) || globMatches(want, e.run.Learned(op.ID.String()))
	if op.UID.String() == "" && op.Name.String() == "" && e.run.Learned(op.ID.String()) == "" {
		exact = exact || globMatches(want, op.ID.String())
	}
	return exact, len(want) >= idDigits && strings.HasPrefix(op.ID.String(), strings.ToLower(want))
}

// selectorOf is a Selector of the operators that a choice has made.
func selectorOf(all []*format.Operator, chosen func(*format.Operator) bool) format.Selector {
	sel := format.ByID()
	for _, op := range all {
		if chosen(op) {
			sel = append(sel, op.ID.String())
		}
	}
	return sel
}

// among reports whether an operator is one of these.
func among(ops []*format.Operator) func(*format.Operator) bool {
	in := make(map[*format.Operator]bool, len(ops))
	for _, op := range ops {
		in[op] = true
	}
	return func(op *format.Operator) bool { return in[op] }
}

func operatorList(env *Env, all []*format.Operator) string {
	if len(all) == 0 {
		return "no operator at all"
	}
	var names []string
	for _, op := range all {
		names = append(names, ui.Quote(env.run.Label(op)))
	}
	return report.Shorten(names)
}
