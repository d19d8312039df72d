package transform

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
)

// RenameOptions are the options of Rename.
type RenameOptions struct {
	// UIDs are the new uids, by a selector of the operator; see format.Selector.
	UIDs map[string]string
	// Operators selects the operators whose states are renamed; nil means all.
	Operators format.Selector
	// States are the new names of operator states and keyed states, by the old ones.
	States map[string]string
	// Jobs is the number of subtasks whose keyed state is built at once; 0 means one per
	// processor.
	Jobs int
}

// RenameReport describes what Rename changed.
type RenameReport struct {
	Operators []RenamedOperator
	States    []RenamedState
	// Entries is the number of entries of keyed state that were built again, and Unread
	// the keyed state that may have a state of that name and cannot be read.
	Entries int64
	Unread  []KeptHandle
	// Commits is what a restore would have committed, aborted or resumed of what has
	// another name now: only a job that uses it does.
	Commits []*SinkPending
}

// RenamedOperator is an operator with a new uid.
type RenamedOperator struct {
	Operator *format.Operator // as it was
	UID      string           // new
	ID       format.OperatorID
}

// RenamedState is an operator state or a keyed state with a new name.
type RenamedState struct {
	Operator *format.Operator // as it was
	From, To string
	Handles  int
	Keyed    bool
	// Elements, or entries of keyed state, and their bytes as in [FilteredState].
	Elements, Bytes int64
}

// CollisionError is the error for an edit after which two things would have one
// name.
type CollisionError struct{ Msg string }

func (e *CollisionError) Error() string { return e.Msg }

// Rename changes the uids of operators and the names of their states.
// All renames happen at once, so that two operators or states can be swapped; two
// with one name are a *CollisionError.
//
// The id of an operator becomes Flink's hash of the uid, and the uid is stored if
// the snapshot stores uids or names of operators. A stored name is unchanged: it
// is only displayed. A state is renamed in the handle and in its stream. Keyed state
// in which a state was renamed is canonical, see [Canonical].
func Rename(ctx context.Context, v format.View, o RenameOptions) (format.View, *RenameReport, error) {
	r := &RenameReport{}
	sp, err := r.states(ctx, v, o)
	if err != nil {
		return v, nil, err
	}
	if sp, err = r.operators(v.Savepoint, sp, o.UIDs); err != nil {
		return v, nil, err
	}
	for _, op := range r.Operators {
		if err := addCommits(ctx, &r.Commits, v, op.Operator, every); err != nil {
			return v, nil, err
		}
	}
	for i, st := range r.States {
		if i == 0 || st.Operator != r.States[i-1].Operator {
			if slices.ContainsFunc(r.Operators, func(r RenamedOperator) bool { return r.Operator.ID == st.Operator.ID }) {
				continue // as a whole
			}
			err := addCommits(ctx, &r.Commits, v, st.Operator, func(name string) bool { return renamed(o.States, name) != name })
			if err != nil {
				return v, nil, err
			}
		}
	}
	return v.With(sp), r, nil
}

// operators renames operators of sp, which were selected before the edit.
func (r *RenameReport) operators(before, sp *format.Savepoint, by map[string]string) (*format.Savepoint, error) {
	uids := map[format.OperatorID]string{}
	for want, uid := range by {
		op, err := format.Selector{want}.Operator(before)
		if err != nil {
			return nil, err
		}
		if other, twice := uids[op.ID]; twice && other != uid {
			return nil, fmt.Errorf("operator %q would have the uids %q and %q", op.Label(), other, uid)
		}
		if uid == "" {
			return nil, errors.New("a uid must not be empty")
		}
		uids[op.ID] = uid
	}
	ids := map[format.OperatorID]*format.Operator{}
	for _, op := range before.Operators {
		id := op.ID
		if uid, ok := uids[op.ID]; ok {
			id = format.OperatorIDOf(uid)
		}
		if other := ids[id]; other != nil {
			return nil, &CollisionError{fmt.Sprintf("operators %q and %q would both have the id %s", other.Label(), op.Label(), id)}
		}
		ids[id] = op
	}
	// A version of _metadata stores the uids of all operators or of none.
	named := slices.ContainsFunc(before.Operators, func(op *format.Operator) bool { return op.UID.String() != "" || op.Name.String() != "" })
	return sp.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		uid, ok := uids[op.ID]
		id := format.OperatorIDOf(uid)
		if !ok || id == op.ID && op.UID.String() == uid {
			return op, nil
		}
		c := *op
		c.ID = id
		if named {
			c.UID = format.NewText(uid)
		}
		c.Coordinator = coordinatorOf(op.Coordinator, op.ID, id)
		r.Operators = append(r.Operators, RenamedOperator{op, uid, id})
		return &c, nil
	})
}

// coordinatorOf returns the state of a coordinator whose operator gets another
// id: its handle is named after the id, also in an .spt file.
func coordinatorOf(s format.Stream, old, id format.OperatorID) format.Stream {
	switch s := s.(type) {
	case *format.Inline:
		if s.Name.String() == old.String() {
			return &format.Inline{Name: format.NewText(id.String()), Data: s.Data}
		}
	case *format.Chunks:
		if as := coordinatorOf(s.As, old, id); as != s.As {
			c := *s
			c.As = as
			return &c
		}
	}
	return s
}

// states renames states.
func (r *RenameReport) states(ctx context.Context, v format.View, o RenameOptions) (*format.Savepoint, error) {
	chosen, err := o.Operators.Set(v.Savepoint)
	if err != nil || len(o.States) == 0 {
		return v.Savepoint, err
	}
	var wanted format.Globs
	for name := range o.States {
		wanted = append(wanted, name)
	}
	slices.Sort(wanted)
	keyed, unread, err := describeKeyedOf(ctx, v, chosen)
	if err != nil {
		return nil, err
	}
	r.Unread = unread
	if err := wanted.Check("state", append(managedStates(v.Savepoint, chosen), namesOf(keyed)...)); err != nil {
		return nil, err
	}
	return v.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		if !chosen[op] {
			return op, nil
		}
		out := op
		if k := keyed[op]; k != nil {
			if out, err = r.keyed(ctx, k, o.States, o.Jobs); err != nil {
				return nil, err
			}
		}
		return out.MapManaged(func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
			sizes, err := summary.StateSizes(ctx, h)
			if err != nil {
				return nil, err
			}
			seen := map[string]bool{}
			for _, st := range h.States {
				name := renamed(o.States, st.Name.String())
				if seen[name] {
					return nil, &CollisionError{fmt.Sprintf("two states would have the name %q", name)}
				}
				seen[name] = true
			}
			changes := func(name string) bool { return renamed(o.States, name) != name }
			return rebuildWhere(ctx, v, h, changes, func(s *format.StateRuns) bool {
				from := s.Name.String()
				s.Name = format.NewText(o.States[from])
				r.note(RenamedState{Operator: op, From: from, To: o.States[from], Elements: s.Runs[0].Count, Bytes: sizes[s.Runs[0].State]})
				return true
			})
		})
	})
}

// keyed renames keyed states of an operator.
func (r *RenameReport) keyed(ctx context.Context, k *keyedOperator, names map[string]string, jobs int) (*format.Operator, error) {
	changes := func(name string) bool { return renamed(names, name) != name }
	seen := map[string]bool{}
	for _, name := range k.names() {
		if name = renamed(names, name); seen[name] {
			return nil, &CollisionError{fmt.Sprintf("two keyed states would have the name %q", name)}
		}
		seen[name] = true
	}
	out, n, err := k.rebuild(ctx, keyedRebuild{touches: byName(changes), jobs: jobs, edit: func(*format.Subtask, *keyedSource) (keyedEdit, error) {
		return keyedEdit{state: func(s format.KeyedState) (format.KeyedState, bool) {
			if from := s.Name.String(); changes(from) {
				s.Name = format.NewText(names[from])
			}
			return s, true
		}}, nil
	}})
	if err != nil {
		return nil, err
	}
	k.eachCount(func(st format.KeyedState, c *keyedCount) {
		if from := st.Name.String(); changes(from) {
			r.note(RenamedState{Operator: k.op, From: from, To: names[from], Keyed: true, Elements: c.entries, Bytes: c.bytes})
		}
	})
	r.Entries += n
	return out, nil
}

// renamed returns the new name of a state.
func renamed(names map[string]string, name string) string {
	if to, ok := names[name]; ok {
		return to
	}
	return name
}

// note counts a handle in which a state was renamed. It is called operator by
// operator.
func (r *RenameReport) note(s RenamedState) {
	for i := len(r.States) - 1; i >= 0 && r.States[i].Operator == s.Operator; i-- {
		if r.States[i].From == s.From && r.States[i].Keyed == s.Keyed {
			r.States[i].Handles++
			r.States[i].Elements += s.Elements
			r.States[i].Bytes += s.Bytes
			return
		}
	}
	s.Handles = 1
	r.States = append(r.States, s)
}
