package transform

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
)

// Input is what a transform works on: a savepoint and the way to its bytes.
type Input struct {
	*format.Savepoint
	Source format.Source
	// Codec gives the codec of a handle; an error that matches
	// format.ErrUnsupported where there is none.
	Codec func(format.CodecID) (format.OperatorCodec, error)
}

// elementSizer gives the bytes of runs of elements of one handle, by offsets.
type elementSizer struct {
	h    *format.OperatorHandle
	ends []int64 // of each state
}

// runBytes is the number of bytes of the elements first … first+count-1 of a
// state; envelopes and frames between states are not counted.
func (e *elementSizer) runBytes(ctx context.Context, state int, first, count int64) (int64, error) {
	if count == 0 {
		return 0, nil
	}
	o := e.h.States[state].Offsets
	from, err := format.OffsetAt(ctx, o, first)
	if err != nil {
		return 0, err
	}
	to := e.ends[state]
	if first+count < o.Len() {
		if to, err = format.OffsetAt(ctx, o, first+count); err != nil {
			return 0, err
		}
	}
	return max(to-from, 0), nil
}

// ParallelismError is a parallelism that cannot be.
type ParallelismError struct {
	Operator string
	To, Max  int32
}

func (e *ParallelismError) Error() string {
	return fmt.Sprintf("operator %q cannot run at parallelism %d: its max parallelism is %d", e.Operator, e.To, e.Max)
}

// Hint says where the limit is from.
func (e *ParallelismError) Hint() string {
	return "the snapshot stores the max parallelism of each operator; state that has key groups cannot be spread further"
}

// stateEnds gives where the last element of each state of a handle ends.
func stateEnds(ctx context.Context, h *format.OperatorHandle) ([]int64, error) {
	sizes, err := summary.StateSizes(ctx, h)
	if err != nil {
		return nil, err
	}
	ends := make([]int64, len(sizes))
	for k, st := range h.States {
		if st.Offsets.Len() == 0 {
			continue
		}
		first, err := format.OffsetAt(ctx, st.Offsets, 0)
		if err != nil {
			return nil, err
		}
		ends[k] = first + sizes[k]
	}
	return ends, nil
}
