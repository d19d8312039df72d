package transform

import (
	"context"

	"github.com/savepoint-tools/spt/format"
)

// DropOptions say what goes.
type DropOptions struct {
	// Pick chooses operators; nil: all.
	Pick func(*format.Operator) bool
	// Operators drops the picked operators as a whole. The others keep them.
	Operators bool
	// States drops operator states by name.
	States func(string) bool
	// Coordinators drops the state of coordinators.
	Coordinators bool
	// Channels drops records in flight. They are lost.
	Channels bool
	// Empty drops picked operators that hold no state at all.
	Empty bool
}

// Dropped is what an edit took away.
type Dropped struct {
	Operators    []*format.Operator
	States       []DroppedState // each once for an operator
	Coordinators []*format.Operator
	Channels     []*format.Operator
}

// DroppedState is a state of an operator.
type DroppedState struct {
	Operator *format.Operator
	Name     string
}

// Any is whether anything went.
func (d *Dropped) Any() bool {
	return len(d.Operators)+len(d.States)+len(d.Coordinators)+len(d.Channels) > 0
}

// Drop takes operators, states, coordinators' state or records in flight out of
// a savepoint. Single keyed states are inside files and cannot be taken out of
// them here; an operator as a whole can.
func Drop(ctx context.Context, in Input, o DropOptions) (*format.Savepoint, *Dropped, error) {
	d := &Dropped{}
	c := *in.Savepoint
	c.Operators = nil
	for _, op := range in.Operators {
		picked := o.Pick == nil || o.Pick(op)
		if picked && (o.Operators || o.Empty && hasNoState(op)) {
			d.Operators = append(d.Operators, op)
			continue
		}
		if picked {
			var err error
			if op, err = d.parts(ctx, in, op, o); err != nil {
				return nil, nil, format.At(err, "operator %q", op.Label())
			}
		}
		c.Operators = append(c.Operators, op)
	}
	if !d.Any() {
		return in.Savepoint, d, nil
	}
	return &c, d, nil
}

// parts takes parts of an operator away. It gives op back with an error.
func (d *Dropped) parts(ctx context.Context, in Input, op *format.Operator, o DropOptions) (*format.Operator, error) {
	c := *op
	changed := false
	if o.Coordinators && op.Coordinator != nil {
		c.Coordinator = nil
		d.Coordinators = append(d.Coordinators, op)
		changed = true
	}
	if o.Channels {
		subs := append([]*format.Subtask(nil), c.Subtasks...)
		found := false
		for i, sub := range subs {
			if len(sub.Input)+len(sub.Output) > 0 {
				s := *sub
				s.Input, s.Output = nil, nil
				subs[i] = &s
				found = true
			}
		}
		if found {
			c.Subtasks = subs
			d.Channels = append(d.Channels, op)
			changed = true
		}
	}
	if o.States != nil {
		gone := map[string]bool{}
		out, err := editManagedOf(&c, func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
			keep := true
			for _, st := range h.States {
				keep = keep && !o.States(st.Name.String())
			}
			if keep {
				return h, nil
			}
			return rebuildStates(ctx, in, h, func(s *format.StateRuns) bool {
				if !o.States(s.Name.String()) {
					return true
				}
				if name := s.Name.String(); !gone[name] {
					gone[name] = true
					d.States = append(d.States, DroppedState{op, name})
				}
				return false
			})
		})
		if err != nil {
			return op, err
		}
		if out != &c {
			return out, nil
		}
	}
	if !changed {
		return op, nil
	}
	return &c, nil
}

// hasNoState is whether an operator holds nothing that a job could miss: no
// handle with a stream, no coordinator, no records in flight. One that has
// finished says so, and that is state.
func hasNoState(op *format.Operator) bool {
	if op.Finished || op.Coordinator != nil {
		return false
	}
	for _, s := range op.Subtasks {
		if s.Finished || s.Raw != nil || s.ManagedKeyed != nil || s.RawKeyed != nil || len(s.Input)+len(s.Output)+len(s.Legacy) > 0 {
			return false
		}
		if s.Managed != nil && (s.Managed.Merging == nil || !s.Managed.Merging.Placeholder) {
			return false
		}
	}
	return true
}
