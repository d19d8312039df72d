package diff

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/internal/renames"
)

// Operator is an operator of either savepoint, or of both.
type Operator struct {
	Old, New *summary.Operator // nil if missing
	// Renamed is why New is likely Old under another id; nil if the ids are equal.
	Renamed []string
	// States by how much they grew, then by name.
	States []*State

	old, new *format.Operator // as read from their sources
	// oldRead and newRead are old and new without the state that cannot be read on
	// either side.
	oldRead, newRead *format.Operator
	movedTimers      bool // see timersMoved
}

// Operator returns the operator of the newest savepoint that has it.
func (o *Operator) Operator() *format.Operator {
	if o.new != nil {
		return o.new
	}
	return o.old
}

// Bytes returns the size of the operator before and after.
func (o *Operator) Bytes() (old, now int64) {
	if o.Old != nil {
		old = o.Old.Bytes.State()
	}
	if o.New != nil {
		now = o.New.Bytes.State()
	}
	return old, now
}

// State is a state of either savepoint, or of both.
type State struct {
	Old, New *summary.State // nil if missing
	Elements *Elements      // nil if missing or not compared
	Keyed    *Keyed         // nil if not keyed or not compared
}

// State returns the state of the newest savepoint that has it.
func (s *State) State() *summary.State {
	if s.New != nil {
		return s.New
	}
	return s.Old
}

// Bytes returns the size of the state before and after.
func (s *State) Bytes() (old, now int64) {
	if s.Old != nil {
		old = s.Old.Bytes
	}
	if s.New != nil {
		now = s.New.Bytes
	}
	return old, now
}

func growth(x interface{ Bytes() (int64, int64) }) int64 {
	old, now := x.Bytes()
	return now - old
}

type opFigures struct {
	sum *summary.Operator
	op  *format.Operator
}

// figures returns the summary of a savepoint as stored in its original container,
// so that an .spt file and its original have equal figures.
func figures(ctx context.Context, in format.View) (*summary.Summary, []opFigures, error) {
	sp, err := in.MapStreams(func(_ format.Place, s format.Stream) (format.Stream, error) { return writtenAs(s), nil })
	if err != nil {
		return nil, nil, err
	}
	s, err := summary.Of(ctx, sp)
	if err != nil {
		return nil, nil, err
	}
	byOp := map[*format.Operator]*summary.Operator{}
	for _, op := range s.Operators {
		byOp[op.Operator] = op
	}
	all := make([]opFigures, len(sp.Operators))
	for i, op := range sp.Operators {
		all[i] = opFigures{byOp[op], in.Operators[i]}
	}
	return s, all, nil
}

// writtenAs returns the original stream of chunks of an .spt file, if that refers
// to a file: it records the file's reference and length.
func writtenAs(s format.Stream) format.Stream {
	if c, ok := s.(*format.Chunks); ok && c.As != nil {
		if _, _, ok := format.Reference(c.As); ok {
			return c.As
		}
	}
	return s
}

// renamed finds operators that are likely the same under two ids. If each is on
// one side only, they are one operator in the diff.
func (d *differ) renamed(old, now []opFigures) error {
	schemas := d.o.Schemas
	if d.o.Ignore[KindKeyed] {
		schemas = [2]types.Schemas{} // needs reading headers
	}
	var sides [2][]renames.Side
	for i, all := range [][]opFigures{old, now} {
		for _, f := range all {
			sides[i] = append(sides[i], renames.Of(f.op, f.sum, schemas[i]))
		}
	}
	r, err := renames.Find(d.ctx, sides[0], sides[1])
	if err != nil {
		return err
	}
	d.out.Renames = r
	diffs := map[*format.Operator]*Operator{} // of the compared operators
	for _, o := range d.out.Operators {
		for _, op := range []*format.Operator{o.old, o.new} {
			if op != nil {
				diffs[op] = o
			}
		}
	}
	other := func(n transform.LikelyRename) bool {
		return diffs[n.Operator] == nil && !slices.ContainsFunc(n.From, func(f transform.RenameSource) bool { return diffs[f.Operator] != nil })
	}
	if !slices.ContainsFunc(r.Likely, func(n transform.LikelyRename) bool { return !other(n) }) {
		r.Likely = nil // otherwise reported for all
	}
	r.Open = slices.DeleteFunc(r.Open, other)
	r.Names = slices.DeleteFunc(r.Names, func(n transform.NameChange) bool { return d.o.Ignore[KindNames] || diffs[n.New] == nil })
	for _, n := range r.Likely {
		x, y := diffs[n.From[0].Operator], diffs[n.Operator]
		if x == nil || y == nil || x.New != nil || y.Old != nil {
			continue // not compared, or another operator has the id too
		}
		x.New, x.new, x.Renamed = y.New, y.new, n.From[0].Reasons
		y.New = nil // removed from the list
	}
	if d.o.Ignore[KindOperators] {
		r.Likely, r.Open, r.Skipped = nil, nil, false
	}
	d.out.Operators = slices.DeleteFunc(d.out.Operators, func(o *Operator) bool { return o.Old == nil && o.New == nil })
	return nil
}

// match pairs operators with equal ids.
func (d *differ) match(old, now []opFigures) {
	byID := map[format.OperatorID][]*Operator{}
	for _, f := range old {
		o := &Operator{Old: f.sum, old: f.op}
		byID[f.op.ID] = append(byID[f.op.ID], o)
		d.out.Operators = append(d.out.Operators, o)
	}
	for _, f := range now {
		if free := byID[f.op.ID]; len(free) > 0 {
			free[0].New, free[0].new = f.sum, f.op
			byID[f.op.ID] = free[1:]
			continue
		}
		d.out.Operators = append(d.out.Operators, &Operator{New: f.sum, new: f.op})
	}
}

// stateGroup is the kind of a state, regardless of its mode.
func stateGroup(k summary.StateKind) summary.StateKind {
	switch k {
	case summary.Union, summary.Broadcast:
		return summary.List
	}
	return k
}

type stateKey struct {
	group summary.StateKind
	name  string
}

// matchStates pairs states with equal names.
func (o *Operator) matchStates() {
	byKey := map[stateKey]*State{}
	each := func(op *summary.Operator, set func(*State, *summary.State)) {
		if op == nil {
			return
		}
		for _, st := range op.States {
			key := stateKey{stateGroup(st.Kind), st.Name}
			s := byKey[key]
			if s == nil {
				s = &State{}
				byKey[key] = s
				o.States = append(o.States, s)
			}
			set(s, st)
		}
	}
	each(o.Old, func(s *State, st *summary.State) { s.Old = st })
	each(o.New, func(s *State, st *summary.State) { s.New = st })
	slices.SortStableFunc(o.States, func(x, y *State) int {
		return cmp.Or(cmp.Compare(growth(y), growth(x)), cmp.Compare(x.State().Name, y.State().Name), cmp.Compare(x.State().Kind, y.State().Kind))
	})
}

// operator compares the two sides of an operator.
func (d *differ) operator(o *Operator) error {
	switch {
	case o.Old == nil:
		d.add(KindOperators, o, nil, "added")
		return nil
	case o.New == nil:
		d.add(KindOperators, o, nil, "removed")
		return nil
	case o.Renamed != nil:
		d.add(KindOperators, o, nil, "likely renamed from %q: %s", o.old.Label(), strings.Join(o.Renamed, ", "))
	default:
		for _, n := range []struct {
			what     string
			old, now format.Text
		}{{"uid", o.old.UID, o.new.UID}, {"name", o.old.Name, o.new.Name}} {
			// Releases before 2.0 store neither.
			if n.old.String() != "" && n.now.String() != "" && n.old.String() != n.now.String() {
				d.add(KindNames, o, nil, "%s %q → %q", n.what, n.old.String(), n.now.String())
			}
		}
	}
	if o.old.Parallelism != o.new.Parallelism {
		d.add(KindParallelism, o, nil, "parallelism %d → %d", o.old.Parallelism, o.new.Parallelism)
	}
	if o.old.MaxParallelism != o.new.MaxParallelism {
		d.add(KindMaxParallelism, o, nil, "max parallelism %d → %d", o.old.MaxParallelism, o.new.MaxParallelism)
	}
	if x, y := o.Old.Finished, o.New.Finished; x != y {
		d.add(KindSubtasks, o, nil, "subtasks that had finished %d → %d", x, y)
	}
	if x, y := o.Old.Missing, o.New.Missing; x != y {
		d.add(KindSubtasks, o, nil, "subtasks without an entry %d → %d", x, y)
	}
	var err error
	if o.oldRead, o.newRead, err = d.readable(o); err != nil {
		return err
	}
	o.movedTimers = d.timersMoved(o)
	for _, st := range o.States {
		if err := d.state(o, st); err != nil {
			if st.State().Name != "" {
				return err // the codec names the state
			}
			return format.At(err, "%s", st.State().Kind)
		}
	}
	d.handles(o)
	return nil
}

func (d *differ) state(o *Operator, st *State) error {
	kind := st.State().Kind
	if kind == summary.Coordinator {
		return d.coordinator(o, st)
	}
	if st.State().Name == "" && kind != summary.Keyed && kind != summary.RawKeyed && kind != summary.InFlight && kind != summary.Legacy {
		return nil // the envelope of a handle without states
	}
	switch {
	case kind == summary.InFlight:
		return d.inFlight(o, st)
	case o.movedTimers && kind == summary.RawKeyed: // compared with the managed state
		return nil
	case o.movedTimers && kind == summary.Keyed:
		return d.keyed(o, st)
	case st.Old == nil:
		d.add(KindStates, o, st, "%s state added", kind)
		return nil
	case st.New == nil:
		d.add(KindStates, o, st, "%s state removed", kind)
		return nil
	case st.Old.Kind != st.New.Kind:
		d.add(KindStates, o, st, "mode %s → %s", st.Old.Kind, st.New.Kind)
	}
	switch kind {
	case summary.Keyed, summary.RawKeyed:
		return d.keyed(o, st)
	case summary.Legacy:
		return d.legacy(o, st)
	}
	if err := d.operatorState(o, st); err != nil {
		return err
	}
	return d.types(o, st)
}

// coordinator compares the bytes of the coordinator's state.
func (d *differ) coordinator(o *Operator, st *State) error {
	if d.o.Ignore[KindCoordinator] {
		return nil
	}
	switch {
	case o.old.Coordinator == nil:
		d.add(KindCoordinator, o, st, "state of the coordinator added")
		return nil
	case o.new.Coordinator == nil:
		d.add(KindCoordinator, o, st, "state of the coordinator removed")
		return nil
	}
	same, err := d.sameBytes(o.old.Coordinator, o.new.Coordinator)
	if err == nil && !same {
		d.add(KindCoordinator, o, st, "state of the coordinator changed, %d → %d bytes", st.Old.Bytes, st.New.Bytes)
	}
	return err
}

func operatorHandle(sub *format.Subtask, raw bool) *format.OperatorHandle {
	switch {
	case sub.Finished:
		return nil
	case raw:
		return sub.Raw
	}
	return sub.Managed
}
