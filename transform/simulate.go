package transform

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
)

// Simulate plans a rescale of numbered elements, 0 … elements-1, in equal blocks
// in the old subtasks, as list and as union state. There are no file names, so
// blocks are in the order of the old subtasks.
func Simulate(ctx context.Context, elements int64, from, to int32, strategy Strategy) (*RescalePlan, error) {
	if elements < 0 {
		return nil, fmt.Errorf("%d elements", elements)
	}
	if from < 1 || from > format.MaxKeyGroups {
		return nil, fmt.Errorf("%w: %d is not between 1 and %d", assign.ErrParallelism, from, format.MaxKeyGroups)
	}
	op := &format.Operator{ID: format.OperatorIDOf("simulation"), Parallelism: from, MaxParallelism: format.MaxKeyGroups}
	for i := range from {
		n := elements / int64(from)
		if int64(i) < elements%int64(from) {
			n++
		}
		// One byte per element: sizes do not matter in a simulation.
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: i, Managed: &format.OperatorHandle{
			Codec: format.CodecNative,
			States: []format.NamedState{
				{Name: format.NewText("list"), Mode: format.ModeList, Offsets: counting{0, n}},
				{Name: format.NewText("union"), Mode: format.ModeUnion, Offsets: counting{n, n}},
			},
			Data: &format.Concat{Parts: []format.Part{{Of: &format.Inline{}, N: 2 * n}}},
		}})
	}
	return PlanRescale(ctx, format.View{Savepoint: &format.Savepoint{Operators: []*format.Operator{op}}}, RescaleOptions{To: to, Strategy: strategy})
}

// counting is an array of the n offsets first, first+1, ….
type counting struct{ first, n int64 }

// Len returns the number of offsets.
func (s counting) Len() int64 { return s.n }

// Read returns consecutive offsets.
func (s counting) Read(_ context.Context, dst []int64, from int64) (int, error) {
	if from < 0 || from > s.n {
		return 0, fmt.Errorf("internal error: read of offset %d of %d", from, s.n)
	}
	n := int(min(int64(len(dst)), s.n-from))
	for i := range n {
		dst[i] = s.first + from + int64(i)
	}
	return n, nil
}
