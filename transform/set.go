package transform

import (
	"context"

	"github.com/savepoint-tools/spt/format"
)

// SetID gives the savepoint another checkpoint id.
func SetID(sp *format.Savepoint, id int64) *format.Savepoint {
	if sp.ID == id {
		return sp
	}
	c := *sp
	c.ID = id
	return &c
}

// ModeSet is a state whose mode changed.
type ModeSet struct {
	Operator *format.Operator // as it was
	State    string
	From     format.Mode
	Handles  int
	Elements int64
}

// SetMode makes list and union states, those of names that state chooses in the
// operators that pick chooses, states of the mode given, in the handles and in
// the streams. Elements stay where they are: what was union state, and maybe the
// same in every subtask, is then in each of them an element of its list.
//
// Broadcast state is one map, not elements: to or from it is an ErrUnsupported.
func SetMode(ctx context.Context, in Input, pick func(*format.Operator) bool, state func(string) bool, mode format.Mode) (*format.Savepoint, []*ModeSet, error) {
	if mode != format.ModeList && mode != format.ModeUnion {
		return nil, nil, format.Errorf(format.ErrUnsupported, "no state can be made %v state", mode)
	}
	var done []*ModeSet
	sp, err := editOperators(in.Savepoint, func(op *format.Operator) (*format.Operator, error) {
		if pick != nil && !pick(op) {
			return op, nil
		}
		byName := map[string]*ModeSet{}
		return editManagedOf(op, func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
			found := false
			for i := range h.States {
				st := &h.States[i]
				name := st.Name.String()
				switch {
				case !state(name) || st.Mode == mode:
					continue
				case st.Mode != format.ModeList && st.Mode != format.ModeUnion:
					return nil, format.Errorf(format.ErrUnsupported, "state %q is %v state: it has no elements that %v state could hold", name, st.Mode, mode)
				}
				found = true
				set := byName[name]
				if set == nil {
					set = &ModeSet{Operator: op, State: name, From: st.Mode}
					byName[name] = set
					done = append(done, set)
				}
				set.Handles++
				set.Elements += st.Offsets.Len()
			}
			if !found {
				return h, nil
			}
			return rebuildStates(ctx, in, h, func(s *format.StateRuns) bool {
				if state(s.Name.String()) {
					s.Mode = mode
				}
				return true
			})
		})
	})
	return sp, done, err
}

// MaxSet is an operator whose max parallelism changed.
type MaxSet struct {
	Operator *format.Operator // as it was
	From     int32
}

// SetMaxParallelism gives the operators that pick chooses another max
// parallelism. It is the number of key groups, so of an operator with keyed
// state it is an ErrUnsupported: every key would belong into another group.
func SetMaxParallelism(sp *format.Savepoint, pick func(*format.Operator) bool, max int32) (*format.Savepoint, []MaxSet, error) {
	var done []MaxSet
	out, err := editOperators(sp, func(op *format.Operator) (*format.Operator, error) {
		switch {
		case pick != nil && !pick(op) || op.MaxParallelism == max:
			return op, nil
		case max < op.Parallelism:
			return nil, &ParallelismError{Operator: op.Label(), To: op.Parallelism, Max: max}
		}
		for _, sub := range op.Subtasks {
			if sub.ManagedKeyed != nil || sub.RawKeyed != nil {
				return nil, format.Errorf(format.ErrUnsupported, "subtask %d holds keyed state, whose keys are in groups by a max parallelism of %d", sub.Index, op.MaxParallelism)
			}
		}
		c := *op
		c.MaxParallelism = max
		done = append(done, MaxSet{op, op.MaxParallelism})
		return &c, nil
	})
	return out, done, err
}
