package transform

import (
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// Renamed is one operator that a rename changed.
type Renamed struct {
	Operator *format.Operator // as it was
	UID      string           // new
	ID       format.OperatorID
}

// RenameOperators gives operators new uids: their ids are those that Flink
// computes of them, and the uid is stored where the snapshot has uids or names of
// operators at all. Renames happen all at once,
// so operators can swap. Two operators of one id are refused.
//
// A stored name stays: it is a text for people, which Flink does not read.
func RenameOperators(sp *format.Savepoint, uids map[*format.Operator]string) (*format.Savepoint, []Renamed, error) {
	ids := map[format.OperatorID]*format.Operator{}
	for _, op := range sp.Operators {
		id := op.ID
		if uid, ok := uids[op]; ok {
			id = format.OperatorIDOf(uid)
		}
		if other := ids[id]; other != nil {
			return nil, nil, &CollisionError{fmt.Sprintf("operators %q and %q would both have the id %s", other.Label(), op.Label(), id)}
		}
		ids[id] = op
	}
	// A version of _metadata has room for the uids of all operators or of none.
	named := slices.ContainsFunc(sp.Operators, func(op *format.Operator) bool { return op.UID.String() != "" || op.Name.String() != "" })
	var done []Renamed
	out, err := editOperators(sp, func(op *format.Operator) (*format.Operator, error) {
		uid, ok := uids[op]
		if !ok {
			return op, nil
		}
		id := format.OperatorIDOf(uid)
		if uid == "" {
			return nil, fmt.Errorf("an empty uid is none")
		}
		if id == op.ID && op.UID.String() == uid {
			return op, nil
		}
		c := *op
		c.ID = id
		if named {
			c.UID = format.NewText(uid)
		}
		// The name of a coordinator's handle is its operator's id.
		if in, ok := op.Coordinator.(*format.Inline); ok && in.Name.String() == op.ID.String() {
			c.Coordinator = &format.Inline{Name: format.NewText(id.String()), Data: in.Data}
		}
		done = append(done, Renamed{op, uid, id})
		return &c, nil
	})
	return out, done, err
}

// CollisionError is an edit that would give two things one name.
type CollisionError struct{ Msg string }

func (e *CollisionError) Error() string { return e.Msg }

// RenamedState is one operator state that a rename changed.
type RenamedState struct {
	Operator *format.Operator // as it was
	From, To string
	Handles  int
}

// RenameStates gives states of the picked operators new names, in the handle
// and in the stream. All at once, so states can swap; two of one name are
// refused. Keyed state has its names inside its files and is not touched: a name
// that stands nowhere else changes nothing.
func RenameStates(ctx context.Context, in Input, pick func(*format.Operator) bool, names map[string]string) (*format.Savepoint, []RenamedState, error) {
	var done []RenamedState
	note := func(op *format.Operator, from, to string) {
		for i := len(done) - 1; i >= 0 && done[i].Operator == op; i-- { // handles come operator by operator
			if done[i].From == from {
				done[i].Handles++
				return
			}
		}
		done = append(done, RenamedState{Operator: op, From: from, To: to, Handles: 1})
	}
	sp, err := editManaged(in.Savepoint, pick, func(op *format.Operator, h *format.OperatorHandle) (*format.OperatorHandle, error) {
		found := false
		seen := map[string]bool{}
		for _, st := range h.States {
			name := st.Name.String()
			if to, ok := names[name]; ok && to != name {
				found = true
				name = to
			}
			if seen[name] {
				return nil, &CollisionError{fmt.Sprintf("two states would have the name %q", name)}
			}
			seen[name] = true
		}
		if !found {
			return h, nil
		}
		return rebuildStates(ctx, in, h, func(s *format.StateRuns) bool {
			if to, ok := names[s.Name.String()]; ok && to != s.Name.String() {
				note(op, s.Name.String(), to)
				s.Name = format.NewText(to)
			}
			return true
		})
	})
	return sp, done, err
}

// editManaged edits the managed operator handles of picked operators.
func editManaged(sp *format.Savepoint, pick func(*format.Operator) bool, f func(*format.Operator, *format.OperatorHandle) (*format.OperatorHandle, error)) (*format.Savepoint, error) {
	return editOperators(sp, func(op *format.Operator) (*format.Operator, error) {
		if pick != nil && !pick(op) {
			return op, nil
		}
		return editManagedOf(op, func(h *format.OperatorHandle) (*format.OperatorHandle, error) { return f(op, h) })
	})
}

// editManagedOf edits the managed operator handles of one operator.
func editManagedOf(op *format.Operator, f func(*format.OperatorHandle) (*format.OperatorHandle, error)) (*format.Operator, error) {
	var subs []*format.Subtask
	for i, sub := range op.Subtasks {
		if sub.Managed == nil {
			continue
		}
		h, err := f(sub.Managed)
		if err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
		if h == sub.Managed {
			continue
		}
		if subs == nil {
			subs = append(subs, op.Subtasks...)
		}
		s := *sub
		s.Managed = h
		subs[i] = &s
	}
	if subs == nil {
		return op, nil
	}
	c := *op
	c.Subtasks = subs
	return &c, nil
}
