package opstate

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// Kinds of format.ErrCorrupt.
var (
	// ErrStates matches the error for a stream whose states differ from its handle.
	ErrStates = fmt.Errorf("%w: states differ", format.ErrCorrupt)
	// ErrSameOffset matches compressed elements whose ends are not known
	// (FLINK-34063).
	ErrSameOffset = fmt.Errorf("%w: elements at the same offset", format.ErrCorrupt)
)

// Check is Schema that also reports the errors that a cursor over the elements of h
// would return, as far as the offsets and the first bytes of the stream show them.
// In addition to what Schema reads, it reads a few bytes at the end of each
// compressed state, but no element. Each reported error names a state; the other
// states are checked too.
func (c *Codec) Check(ctx context.Context, src format.Source, h *format.OperatorHandle, report func(error)) ([]types.StateSchema, error) {
	_, e, err := c.describe(ctx, src, h)
	if err != nil || !hasStream(h) {
		return nil, err
	}
	l, err := c.layout(ctx, src, h)
	if err != nil {
		return nil, err
	}
	for i, s := range h.States {
		if !l.compressed || l.at[i] < 0 {
			continue
		}
		if err := l.checkShared(ctx, src, h, i); err != nil {
			report(format.At(err, "state %q", s.Name))
		}
	}
	if e == nil {
		return nil, nil
	}
	return e.schemas(), e.err
}

// checkShared returns an error for the first element of a state that has data but
// starts where its neighbor does.
func (l *layout) checkShared(ctx context.Context, src format.Source, h *format.OperatorHandle, state int) error {
	b := l.bounds(ctx, src, h, state)
	last := int64(-1)
	return format.EachOffset(ctx, b.o, func(first int64, run []int64) error {
		for i, pos := range run {
			if pos == last {
				if err := b.shared(first+int64(i)-1, false, pos, pos); err != nil {
					return err
				}
			}
			last = pos
		}
		return nil
	})
}
