package transform

import (
	"context"
	"fmt"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
)

// ParallelismError is the error for an invalid parallelism.
type ParallelismError struct {
	Operator string
	To, Max  int32
	// Free is set if there is no keyed state, so that the max parallelism can be
	// changed.
	Free bool
}

func (e *ParallelismError) Error() string {
	return fmt.Sprintf("operator %q cannot run at parallelism %d: its max parallelism is %d", e.Operator, e.To, e.Max)
}

// Remedies returns how to allow the parallelism.
func (e *ParallelismError) Remedies() []finding.Remedy {
	max := int32(128) // Flink's default
	for max < e.To && max < format.MaxKeyGroups {
		max *= 2
	}
	if !e.Free {
		return []finding.Remedy{{Words: "the snapshot stores the max parallelism of each operator; move its keys to other key groups first", Action: finding.Regroup, To: strconv.Itoa(int(max))}}
	}
	return []finding.Remedy{{Words: "it has no keyed state, so its max parallelism can be changed", Action: finding.SetMaxParallelism, Operator: e.Operator, To: strconv.Itoa(int(max))}}
}

// sizer computes the size of runs of elements of one handle from their offsets.
type sizer struct {
	h     *format.OperatorHandle
	sizes []int64 // of each state
}

func newSizer(ctx context.Context, h *format.OperatorHandle) (*sizer, error) {
	sizes, err := summary.StateSizes(ctx, h)
	return &sizer{h, sizes}, err
}

// run returns the number of bytes of the elements first … first+count-1 of a
// state, without their serializer snapshots.
func (s *sizer) run(ctx context.Context, state int, first, count int64) (int64, error) {
	o := s.h.States[state].Offsets
	if first == 0 && count == o.Len() {
		return s.sizes[state], nil
	}
	if count == 0 {
		return 0, nil
	}
	from, err := format.OffsetAt(ctx, o, first)
	if err != nil {
		return 0, err
	}
	if first+count < o.Len() {
		to, err := format.OffsetAt(ctx, o, first+count)
		return max(to-from, 0), err
	}
	start, err := format.OffsetAt(ctx, o, 0)
	return max(start+s.sizes[state]-from, 0), err
}
