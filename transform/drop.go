package transform

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
)

// DropOptions are the options of Drop. Operators alone removes whole operators;
// with any other field, only that part of the operators is removed, and nil
// Operators means all.
type DropOptions struct {
	Operators format.Selector
	// States removes operator states and keyed states by name. Timers are keyed states
	// too.
	States format.Globs
	// Coordinators removes the state of coordinators.
	Coordinators bool
	// Channels removes in-flight data. It is lost.
	Channels bool
	// Empty removes operators without any state.
	Empty bool
	// Jobs is the number of subtasks whose keyed state is built at once; 0 means one per
	// processor.
	Jobs int
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
	// Entries is the number of entries of keyed state that were built again, because
	// another state of their operator was removed.
	Entries int64
	// Unread is the keyed state that may have a state of that name and cannot be read.
	Unread []KeptHandle
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
	Keyed    bool
	// Elements, or entries of keyed state, and their bytes as in [FilteredState]. Entries
	// are -1 if they could not be read, and so not counted.
	Elements, Bytes int64
}

// Any reports whether anything was removed.
func (d *DropReport) Any() bool {
	return len(d.Operators)+len(d.States)+len(d.Coordinators)+len(d.Channels) > 0
}

// Drop removes operators, states, coordinators' state or in-flight data. Keyed state
// from which a state was removed is canonical, see [Canonical].
func Drop(ctx context.Context, v format.View, o DropOptions) (format.View, *DropReport, error) {
	if o.whole() && o.Operators == nil {
		return v, nil, errors.New("nothing to drop")
	}
	chosen, err := o.Operators.Set(v.Savepoint)
	if err != nil {
		return v, nil, err
	}
	d := &DropReport{}
	var keyed map[*format.Operator]*keyedOperator
	if o.States != nil {
		if keyed, d.Unread, err = describeKeyedOf(ctx, v, chosen); err != nil {
			return v, nil, err
		}
	}
	if err := o.States.Check("state", append(managedStates(v.Savepoint, chosen), namesOf(keyed)...)); err != nil {
		return v, nil, err
	}
	sp, err := v.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		switch {
		case !chosen[op]:
			return op, nil
		case o.whole() || o.Empty && !op.HasState():
			d.Operators = append(d.Operators, op)
			return nil, addCommits(ctx, &d.Commits, v, op, every)
		}
		return d.parts(ctx, v, op, keyed[op], o)
	})
	if err != nil {
		return v, nil, err
	}
	return v.With(sp), d, nil
}

// parts removes parts of an operator.
func (d *DropReport) parts(ctx context.Context, v format.View, op *format.Operator, keyed *keyedOperator, o DropOptions) (out *format.Operator, err error) {
	out = op
	if keyed != nil {
		if out, err = d.keyed(ctx, keyed, o); err != nil {
			return nil, err
		}
	}
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
	gone := map[string]int{}
	out, err = out.MapManaged(func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
		sizes, err := summary.StateSizes(ctx, h)
		if err != nil {
			return nil, err
		}
		return rebuildWhere(ctx, v, h, o.States.Match, func(s *format.StateRuns) bool {
			name, k := s.Name.String(), s.Runs[0].State
			at, known := gone[name]
			if !known {
				at = len(d.States)
				gone[name] = at
				d.States = append(d.States, DroppedState{Operator: op, Name: name})
			}
			d.States[at].Elements += s.Runs[0].Count
			d.States[at].Bytes += sizes[k]
			return false
		})
	})
	if err == nil && out.Coordinator != nil {
		err = addSplits(ctx, &d.Splits, v, op, out)
	}
	return out, err
}

// keyed removes keyed states of an operator.
func (d *DropReport) keyed(ctx context.Context, k *keyedOperator, o DropOptions) (*format.Operator, error) {
	touches := byName(o.States.Match)
	rebuild := func(count bool) (*format.Operator, int64, error) {
		return k.rebuild(ctx, keyedRebuild{touches: touches, aligned: o.Channels, jobs: o.Jobs, edit: func(*format.Subtask, *keyedSource) (keyedEdit, error) {
			return keyedEdit{state: func(s format.KeyedState) (format.KeyedState, bool) { return s, !touches(s) }, count: count}, nil
		}})
	}
	out, n, err := rebuild(true)
	counted := !damaged(err)
	if !counted { // perhaps only in what goes
		out, n, err = rebuild(false)
	}
	for _, f := range k.filtered(touches) {
		s := DroppedState{Operator: k.op, Name: f.State, Keyed: true, Elements: f.Dropped, Bytes: f.DroppedBytes}
		if !counted {
			s.Elements = -1
		}
		d.States = append(d.States, s)
	}
	d.Entries += n
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
