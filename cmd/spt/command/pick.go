package command

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/spf13/pflag"
)

// pick chooses operators, states and subtasks.
type pick struct {
	operators, states []string
	subtasks          string
	ranges            [][2]int32

	flag string // that named the operators, for messages; "": --operator
}

// idDigits is how much of an id names an operator: less could as well be a name.
const idDigits = 4

func (p *pick) addFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&p.operators, "operator", nil, "only operators of this uid, name, id or unambiguous beginning of the id (4 digits or more); `NAME` may be a glob; repeatable")
	fs.StringArrayVar(&p.states, "state", nil, "only states of this `NAME`, which may be a glob; repeatable")
	fs.StringVar(&p.subtasks, "subtask", "", "only these subtasks, a `LIST` such as 0,3-5")
}

// validate reads the subtask list and the globs.
func (p *pick) validate() error {
	for _, g := range slices.Concat(p.operators, p.states) {
		if _, err := path.Match(g, ""); err != nil {
			return usagef("%q is not a pattern: %v", g, err)
		}
	}
	if p.subtasks == "" {
		return nil
	}
	for part := range strings.SplitSeq(p.subtasks, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		first, err1 := strconv.ParseInt(lo, 10, 32)
		last, err2 := strconv.ParseInt(hi, 10, 32)
		if err1 != nil || err2 != nil || first < 0 || last < first {
			return usagef("--subtask %s: subtasks are given as 0,3-5", p.subtasks)
		}
		p.ranges = append(p.ranges, [2]int32{int32(first), int32(last)})
	}
	return nil
}

func (p *pick) subtask(i int32) bool {
	return len(p.ranges) == 0 || slices.ContainsFunc(p.ranges, func(r [2]int32) bool { return r[0] <= i && i <= r[1] })
}

func matches(globs []string, name string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(g string) bool {
		if g == name {
			return true
		}
		ok, _ := path.Match(g, name)
		return ok
	})
}

// apply gives the savepoint with the operators and subtasks that were picked.
// States are picked from a summary, for a state's bytes end where its neighbour
// starts. What matches nothing is an error that lists what there is.
func (p *pick) apply(env *Env, sp *format.Savepoint) (*format.Savepoint, error) {
	if len(p.operators)+len(p.ranges) == 0 {
		return sp, nil
	}
	c := *sp
	var err error
	if c.Operators, err = p.pickOperators(env, sp.Operators); err != nil {
		return nil, err
	}
	if len(p.ranges) > 0 {
		found := false
		for i, op := range c.Operators {
			o := *op
			o.Subtasks = nil
			for _, s := range op.Subtasks {
				if p.subtask(s.Index) {
					o.Subtasks = append(o.Subtasks, s)
					found = true
				}
			}
			c.Operators[i] = &o
		}
		if !found {
			return nil, usagef("no operator picked has a subtask in %s", p.subtasks)
		}
	}
	return &c, nil
}

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
				env.learn(want)
			}
			exact := want == op.ID.String() || matches([]string{want}, op.UID.String()) || matches([]string{want}, op.Name.String()) || matches([]string{want}, env.uids[op.ID.String()])
			prefix := len(want) >= idDigits && strings.HasPrefix(op.ID.String(), strings.ToLower(want))
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
			hint := "there is: " + operatorList(env, all)
			if len(want) < idDigits && slices.ContainsFunc(all, func(op *format.Operator) bool { return strings.HasPrefix(op.ID.String(), strings.ToLower(want)) }) {
				hint = fmt.Sprintf("the beginning of an id has at least %d digits; %s", idDigits, hint)
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

const listMost = 12

func operatorList(env *Env, all []*format.Operator) string {
	if len(all) == 0 {
		return "no operator at all"
	}
	var names []string
	for _, op := range all {
		names = append(names, ui.Quote(env.label(op)))
	}
	return shorten(names)
}

// shorten lists names, the first dozen of them.
func shorten(names []string) string {
	if len(names) > listMost {
		return strings.Join(names[:listMost], ", ") + fmt.Sprintf(" and %d more", len(names)-listMost)
	}
	return strings.Join(names, ", ")
}

func (p *pick) any() bool { return len(p.operators)+len(p.states)+len(p.ranges) > 0 }

func addBytes(to *summary.Bytes, b summary.Bytes) {
	to.Inline += b.Inline
	to.Own += b.Own
	to.Shared += b.Shared
	to.Packed += b.Packed
	to.Offsets += b.Offsets
}

// applyStates keeps the rows of the states that were picked, and the operators
// that have one.
func (p *pick) applyStates(env *Env, s *summary.Summary) error {
	if len(p.states) == 0 {
		return nil
	}
	var names []string
	var ops []*summary.Operator
	for _, op := range s.Operators {
		var rows []*summary.State
		for _, st := range op.States {
			if st.Name != "" {
				names = append(names, ui.Quote(env.text(st.Name)))
			}
			if st.Name != "" && matches(p.states, st.Name) {
				rows = append(rows, st)
			}
		}
		if len(rows) > 0 {
			op.States = rows
			ops = append(ops, op)
		}
	}
	if len(ops) == 0 {
		slices.Sort(names)
		hint := "there is: " + shorten(slices.Compact(names))
		if len(names) == 0 {
			hint = "no operator picked has a state with a name"
		}
		return &usageError{fmt.Sprintf("--state %s matches no state", ui.Quote(strings.Join(p.states, ", "))), hint}
	}
	s.Operators = ops
	s.Bytes, s.Subtasks = summary.Bytes{}, 0
	for _, op := range ops {
		op.Bytes = summary.Bytes{}
		for _, st := range op.States {
			addBytes(&op.Bytes, st.Place)
		}
		addBytes(&s.Bytes, op.Bytes)
		s.Subtasks += op.Present
	}
	return nil
}

// listOr lists names, each once and sorted, or says what there is instead.
func listOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	slices.Sort(names)
	return shorten(slices.Compact(names))
}
