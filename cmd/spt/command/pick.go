package command

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
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
	operatorFlag(fs, &p.operators, "only these operators")
	stateFlag(fs, &p.states, "only these states")
	fs.StringVar(&p.subtasks, "subtask", "", "only the subtasks in `LIST`, such as 0,3-5")
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
	return len(globs) == 0 || slices.ContainsFunc(globs, func(g string) bool { return globMatches(g, name) })
}

func globMatches(glob, name string) bool { return format.Globs{glob}.Match(name) }

// unmatched is the first of wanted that fits none of names; ok is false where
// each fits one.
func unmatched(wanted, names []string, match func(want, name string) bool) (first string, ok bool) {
	for _, want := range wanted {
		if !slices.ContainsFunc(names, func(name string) bool { return match(want, name) }) {
			return want, true
		}
	}
	return "", false
}

// checkGlobs is an error if one of the globs of --state matches none of names,
// which are those of what.
func (e *Env) checkGlobs(globs, names []string, what, none string) error {
	want, miss := unmatched(globs, names, globMatches)
	if !miss {
		return nil
	}
	return &usageError{fmt.Sprintf("--state %s matches no %s", ui.Quote(want), what), e.available(want, names, none)}
}

// shown is names as they are shown, quoted.
func (e *Env) shown(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = ui.Quote(e.run.Text(name))
	}
	return out
}

// checkStates is an error if something that a flag asks for matches no operator
// state of the operators that were chosen; one of format.ErrUnsupported where it
// is keyed state that was meant.
func (e *Env) checkStates(ctx context.Context, snap *reader.Snapshot, flag string, wanted []string, match func(want, name string) bool, chosen func(*format.Operator) bool) error {
	var names []string
	for _, op := range snap.Operators {
		if !chosen(op) {
			continue
		}
		for _, sub := range op.Subtasks {
			if sub.Managed == nil {
				continue
			}
			for i := range sub.Managed.States {
				names = append(names, sub.Managed.States[i].Name.String())
			}
		}
	}
	want, miss := unmatched(wanted, names, match)
	if !miss {
		return nil
	}
	keyed := false
	for _, op := range snap.Operators {
		if !chosen(op) || !op.HasKeyed() {
			continue
		}
		keyed = true
		schema, _, err := snap.Schema(ctx, op) // what cannot be read is not found
		if err != nil {
			return err
		}
		for _, st := range schema.States {
			if name := st.Name.String(); st.Keyed != "" && match(want, name) {
				return keyedError(fmt.Sprintf("%s %s: %s of %s is keyed state, which is stored in files that hold all keyed state of the operator", flag, ui.Quote(want), ui.Quote(e.run.Text(name)), ui.Quote(e.run.Label(op))))
			}
		}
	}
	none := "no operator state"
	if keyed {
		none += ", only keyed state"
	}
	return &usageError{fmt.Sprintf("%s %s matches no operator state", flag, ui.Quote(want)), e.available(want, names, none)}
}

// keyedError refuses an edit of keyed state.
func keyedError(msg string) error {
	return &hintedError{format.Errorf(format.ErrUnsupported, "%s", msg), "its operator can be dropped, renamed or merged as a whole"}
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
				env.run.LearnUID(want)
			}
			exact := want == op.ID.String() || matches([]string{want}, op.UID.String()) || matches([]string{want}, op.Name.String()) || matches([]string{want}, env.run.Learned(op.ID.String()))
			if op.UID.String() == "" && op.Name.String() == "" && env.run.Learned(op.ID.String()) == "" {
				exact = exact || globMatches(want, op.ID.String())
			}
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
			var names []string
			for _, op := range all {
				names = append(names, op.UID.String(), op.Name.String(), env.run.Learned(op.ID.String()))
			}
			hint := env.meant(want, names) + "available: " + operatorList(env, all)
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

const listMost = 12 // as report.Shorten

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

func (p *pick) any() bool { return len(p.operators)+len(p.states)+len(p.ranges) > 0 }

// applyStates keeps the rows of the states that were picked, and the operators
// that have one.
func (p *pick) applyStates(env *Env, s *summary.Summary, headers map[*format.Operator]*reader.Headers) error {
	if len(p.states) == 0 {
		return nil
	}
	var names []string
	var ops []*summary.Operator
	for _, op := range s.Operators {
		var rows []*summary.State
		for _, st := range op.States {
			if st.Name != "" {
				names = append(names, st.Name)
			}
			keyed := st.Kind == summary.Keyed && p.keyedStates(headers[op.Operator], &names)
			if keyed || st.Name != "" && matches(p.states, st.Name) {
				rows = append(rows, st)
			}
		}
		if len(rows) > 0 {
			op.States = rows
			ops = append(ops, op)
		}
	}
	if err := env.checkGlobs(p.states, names, "state", "no operator picked has a state with a name"); err != nil {
		return err
	}
	s.Operators = ops
	s.Bytes, s.Subtasks = summary.Bytes{}, 0
	for _, op := range ops {
		op.Framing, op.Bytes = summary.Bytes{}, summary.Bytes{}
		for _, st := range op.States {
			op.Bytes.Add(st.Place)
		}
		s.Bytes.Add(op.Bytes)
		s.Subtasks += op.Present
	}
	return nil
}

// keyedStates keeps of the headers of an operator the keyed states that were
// picked, and reports whether there are any. It adds the names of all.
func (p *pick) keyedStates(h *reader.Headers, names *[]string) bool {
	if h == nil {
		return false
	}
	var kept []reader.StateHeader
	found := false
	for _, st := range h.States {
		if st.Keyed() {
			*names = append(*names, st.Name())
			if !matches(p.states, st.Name()) {
				continue
			}
			found = true
		}
		kept = append(kept, st)
	}
	h.States = kept
	return found
}

// listOr lists names, each once and sorted, or says what there is instead.
func listOr(names []string, none string) string {
	if len(names) == 0 {
		return none
	}
	slices.Sort(names)
	return report.Shorten(slices.Compact(names))
}
