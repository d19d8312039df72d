package transform

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
)

// DropOptions are the options of Drop. Operators alone removes whole operators;
// with any other field, only that part of the operators is removed, and nil
// Operators means all.
type DropOptions struct {
	Operators format.Selector
	// States removes managed operator states by name.
	States format.Globs
	// Coordinators removes the state of coordinators.
	Coordinators bool
	// Channels removes in-flight data. It is lost.
	Channels bool
	// Empty removes operators without any state.
	Empty bool
}

// whole reports whether whole operators are removed.
func (o *DropOptions) whole() bool {
	return o.States == nil && !o.Coordinators && !o.Channels && !o.Empty
}

// DropReport describes what Drop removed.
type DropReport struct {
	Operators    []*format.Operator
	States       []DroppedState // one for each name in an operator
	Coordinators []*format.Operator
	Channels     []*format.Operator
	// Commits is what a restore would have committed, aborted or resumed of what was
	// removed.
	Commits []*SinkPending
	// Splits is the splits that the readers of sources held in what was removed, while
	// the state of their coordinator stays.
	Splits []*RemovedSplits
}

// DroppedState is a state of an operator.
type DroppedState struct {
	Operator *format.Operator
	Name     string
}

// Any reports whether anything was removed.
func (d *DropReport) Any() bool {
	return len(d.Operators)+len(d.States)+len(d.Coordinators)+len(d.Channels) > 0
}

// Drop removes operators, states, coordinators' state or in-flight data. A single
// keyed state is inside files and cannot be removed; the whole operator can.
func Drop(ctx context.Context, v format.View, o DropOptions) (format.View, *DropReport, error) {
	if o.whole() && o.Operators == nil {
		return v, nil, errors.New("nothing to drop")
	}
	chosen, err := o.Operators.Set(v.Savepoint)
	if err != nil {
		return v, nil, err
	}
	if err := o.States.Check("state", managedStates(v.Savepoint, chosen)); err != nil {
		return v, nil, err
	}
	d := &DropReport{}
	sp, err := v.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		switch {
		case !chosen[op]:
			return op, nil
		case o.whole() || o.Empty && !op.HasState():
			d.Operators = append(d.Operators, op)
			return nil, addCommits(ctx, &d.Commits, v, op, every)
		}
		return d.parts(ctx, v, op, o)
	})
	if err != nil {
		return v, nil, err
	}
	return v.With(sp), d, nil
}

// parts removes parts of an operator.
func (d *DropReport) parts(ctx context.Context, v format.View, op *format.Operator, o DropOptions) (out *format.Operator, err error) {
	out = op
	if o.Coordinators && op.Coordinator != nil {
		c := *out
		c.Coordinator = nil
		out = &c
		d.Coordinators = append(d.Coordinators, op)
	}
	if o.Channels && op.HasInFlight() {
		d.Channels = append(d.Channels, op)
		out, err = out.MapSubtasks(func(sub *format.Subtask) (*format.Subtask, error) {
			if len(sub.Input)+len(sub.Output) == 0 {
				return sub, nil
			}
			c := *sub
			c.Input, c.Output = nil, nil
			return &c, nil
		})
		if err != nil {
			return nil, err
		}
	}
	if o.States == nil {
		return out, nil
	}
	if err := addCommits(ctx, &d.Commits, v, op, o.States.Match); err != nil {
		return nil, err
	}
	gone := map[string]bool{}
	out, err = out.MapManaged(func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
		return rebuildWhere(ctx, v, h, o.States.Match, func(s *format.StateRuns) bool {
			if name := s.Name.String(); !gone[name] {
				gone[name] = true
				d.States = append(d.States, DroppedState{op, name})
			}
			return false
		})
	})
	if err == nil && out.Coordinator != nil {
		err = addSplits(ctx, &d.Splits, v, op, out)
	}
	return out, err
}

// managedStates returns the names of the managed operator states of the operators
// in a set.
func managedStates(sp *format.Savepoint, chosen map[*format.Operator]bool) []string {
	var names []string
	for _, op := range sp.Operators {
		if !chosen[op] {
			continue
		}
		for _, sub := range op.Subtasks {
			if sub.Managed != nil {
				for i := range sub.Managed.States {
					names = append(names, sub.Managed.States[i].Name.String())
				}
			}
		}
	}
	return names
}
