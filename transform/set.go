package transform

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/assign"
)

// SetOptions are the options of Set.
type SetOptions struct {
	// ID is the new id of the checkpoint; nil keeps it.
	ID *int64
	// Operators selects the operators whose states or max parallelism change; nil
	// means all.
	Operators format.Selector
	// Mode is the new mode of the managed list and union states in States; nil keeps
	// their modes. Elements stay in their subtasks: a union state that every subtask
	// held becomes a list with all its elements in every subtask.
	Mode *format.Mode
	// States selects the states whose mode changes; nil means all list and union
	// states.
	States format.Globs
	// MaxParallelism is the new max parallelism of the operators; 0 keeps it.
	MaxParallelism int32
}

// SetReport describes what Set changed.
type SetReport struct {
	OldID          int64 // as it was
	Modes          []*ModeSet
	MaxParallelism []MaxSet
}

// ModeSet is a state whose mode changed.
type ModeSet struct {
	Operator *format.Operator // as it was
	State    string
	From     format.Mode
	Handles  int
	Elements int64
}

// MaxSet is an operator whose max parallelism changed.
type MaxSet struct {
	Operator *format.Operator // as it was
	From     int32
}

// Set sets fields of a savepoint. Broadcast state is a map, not elements:
// changing its mode is an ErrUnsupported. So is changing the max parallelism of
// an operator with keyed state: it is the number of key groups, so keys would
// belong to other key groups.
func Set(ctx context.Context, v format.View, o SetOptions) (format.View, *SetReport, error) {
	switch {
	case o.MaxParallelism < 0 || o.MaxParallelism > format.MaxKeyGroups:
		return v, nil, fmt.Errorf("%w: a max parallelism of %d is not between 1 and %d", assign.ErrParallelism, o.MaxParallelism, format.MaxKeyGroups)
	case o.States != nil && o.Mode == nil:
		return v, nil, errors.New("a selection of States needs the Mode that they get")
	}
	r := &SetReport{OldID: v.ID}
	chosen, err := o.Operators.Set(v.Savepoint)
	if err != nil {
		return v, nil, err
	}
	if o.Mode != nil {
		if *o.Mode != format.ModeList && *o.Mode != format.ModeUnion {
			return v, nil, format.Errorf(format.ErrUnsupported, "the mode of a state cannot be changed to %v", *o.Mode)
		}
		if err := o.States.Check("state", managedStates(v.Savepoint, chosen)); err != nil {
			return v, nil, err
		}
	}
	sp, err := v.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		if !chosen[op] {
			return op, nil
		}
		out := op
		if o.Mode != nil {
			if out, err = r.mode(ctx, v, op, o); err != nil {
				return nil, err
			}
		}
		return r.max(op, out, o.MaxParallelism)
	})
	if err != nil {
		return v, nil, err
	}
	if o.ID != nil && sp.ID != *o.ID {
		c := *sp
		c.ID = *o.ID
		sp = &c
	}
	return v.With(sp), r, nil
}

// mode changes the mode of states of an operator.
func (r *SetReport) mode(ctx context.Context, v format.View, op *format.Operator, o SetOptions) (*format.Operator, error) {
	mode := *o.Mode
	byName := map[string]*ModeSet{}
	return op.MapManaged(func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
		found := false
		for i := range h.States {
			st := &h.States[i]
			name := st.Name.String()
			switch {
			case !o.States.Match(name) || st.Mode == mode || o.States == nil && st.Mode == format.ModeBroadcast:
				continue
			case st.Mode != format.ModeList && st.Mode != format.ModeUnion:
				return nil, format.Errorf(format.ErrUnsupported, "state %q is %v state, whose content cannot become %v state", name, st.Mode, mode)
			}
			found = true
			set := byName[name]
			if set == nil {
				set = &ModeSet{Operator: op, State: name, From: st.Mode}
				byName[name] = set
				r.Modes = append(r.Modes, set)
			}
			set.Handles++
			set.Elements += st.Offsets.Len()
		}
		if !found {
			return h, nil
		}
		return rebuildStates(ctx, v, h, func(s *format.StateRuns) bool {
			if o.States.Match(s.Name.String()) && s.Mode != format.ModeBroadcast {
				s.Mode = mode
			}
			return true
		})
	})
}

// keyGroupsError is the error for another max parallelism of an operator with keyed state.
type keyGroupsError struct{ subtask, from, to int32 }

func (e *keyGroupsError) Error() string {
	return fmt.Sprintf("subtask %d has keyed state, whose key groups depend on the max parallelism %d", e.subtask, e.from)
}
func (e *keyGroupsError) Unwrap() error { return format.ErrUnsupported }

// Remedies returns what the user can do.
func (e *keyGroupsError) Remedies() []finding.Remedy {
	return []finding.Remedy{{Words: "move its keys to their key groups at another max parallelism", Action: finding.Regroup, To: strconv.Itoa(int(e.to))}}
}

// max changes the max parallelism of an operator; out is the operator after
// earlier edits.
func (r *SetReport) max(op, out *format.Operator, max int32) (*format.Operator, error) {
	switch {
	case max == 0 || op.MaxParallelism == max:
		return out, nil
	case max < op.Parallelism:
		return nil, &ParallelismError{Operator: op.Label(), To: op.Parallelism, Max: max}
	}
	for _, sub := range op.Subtasks {
		if sub.ManagedKeyed != nil || sub.RawKeyed != nil {
			return nil, &keyGroupsError{sub.Index, op.MaxParallelism, max}
		}
	}
	c := *out
	c.MaxParallelism = max
	r.MaxParallelism = append(r.MaxParallelism, MaxSet{op, op.MaxParallelism})
	return &c, nil
}
