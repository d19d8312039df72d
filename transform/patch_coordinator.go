package transform

import (
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
)

// patchCoordinator is the state of a coordinator that changes name.
type patchCoordinator struct {
	*PatchedState
	named bool
	data  []byte // new; nil if it stays
}

// coordinator makes a change of the state of a coordinator, which is one value.
func (p *patch) coordinator(ctx context.Context, c *PatchChange) error {
	op, wrong := p.ops[c.Operator], c.checkOp()
	switch {
	case wrong != nil:
	case op == nil:
		wrong = &format.NoMatchError{What: "operator", Want: c.Operator.String()}
	case op.Coordinator == nil:
		wrong = errors.New("the operator has no coordinator state")
	case c.Op != PatchReplace:
		wrong = errors.New("the state of a coordinator is one value, which can be replaced only")
	case c.State != "" || c.Key != nil || c.Subtask > 0 || c.Index > 0: // cat prints the index 0
		wrong = errors.New("the state of a coordinator has no state, subtask, index or key")
	case !c.Value.given():
		wrong = errNoValue
	}
	if wrong != nil {
		p.problem(c.Number, wrong)
		return nil
	}
	st := p.coordinators[op]
	if st == nil {
		st = &patchCoordinator{PatchedState: &PatchedState{Operator: op, Coordinator: true}}
		p.coordinators[op] = st
		p.report.States = append(p.report.States, st.PatchedState)
	}
	if st.named {
		p.problem(c.Number, errors.New("another change is for the same state of a coordinator"))
		return nil
	}
	st.named = true
	stored, err := coordinatorBytes(ctx, p.in, op)
	if err != nil {
		return format.At(format.At(err, "coordinator"), "operator %q", op.Label())
	}
	data, same, err := p.coordinatorChange(stored, c)
	switch {
	case err != nil:
		p.problem(c.Number, err)
	case same:
		st.Same++
	default:
		st.Replaced++
		st.data = data
	}
	return nil
}

// coordinatorChange returns the new bytes of the state of a coordinator, unless it stays
// the same.
func (p *patch) coordinatorChange(stored []byte, c *PatchChange) (data []byte, same bool, err error) {
	var codec value.Codec
	old, err := value.ReadAll(connector.Coordinator(""), stored)
	why, undecoded := connector.NotDecoded(old)
	switch {
	case err != nil:
		why = err.Error()
	case !undecoded || c.Value.JSON != nil:
		codec = connector.Coordinator("")
	}
	data, same, err = p.change(codec, why, stored, c)
	if err != nil || same || codec == nil || p.o.Unchecked {
		return data, same, err
	}
	v, err := value.ReadAll(codec, data)
	if err != nil {
		return nil, false, err
	}
	if undecoded {
		return nil, false, fmt.Errorf("%w: %s", ErrNotChecked, why)
	}
	if why, undecoded := connector.NotDecoded(v); undecoded {
		return nil, false, format.Errorf(format.ErrUnsupported, "the new value would not be decoded: %s", why)
	}
	return data, false, nil
}

// applyCoordinators returns sp with the states of coordinators that changed. Operators are
// found by their id, because other changes made new ones.
func (p *patch) applyCoordinators(sp *format.Savepoint) (*format.Savepoint, error) {
	changed := map[format.OperatorID]format.Stream{}
	for op, st := range p.coordinators {
		if st.data != nil {
			changed[op.ID] = newCoordinator(op, st.data)
		}
	}
	if len(changed) == 0 {
		return sp, nil
	}
	return sp.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		s := changed[op.ID]
		if s == nil {
			return op, nil
		}
		out := *op
		out.Coordinator = s
		return &out, nil
	})
}

// newCoordinator returns data as the state of the coordinator of op, stored as before.
func newCoordinator(op *format.Operator, data []byte) *format.Inline {
	s := &format.Inline{Data: format.NewBytes(data)}
	if old, ok := storedLike(op.Coordinator, int64(len(data))).(*format.Inline); ok {
		s.Name = old.Name
	}
	return s
}
