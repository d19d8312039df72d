package assign

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
)

// KeyedSubtask is the keyed state, managed or raw, that one new subtask receives,
// in order.
type KeyedSubtask struct {
	Range  format.KeyGroupRange // the key groups that the subtask owns
	Pieces []KeyedPiece
}

// KeyedPiece is the state that a subtask receives from the handle of one old
// subtask.
type KeyedPiece struct {
	Old int
	// Groups is the range of key groups that the subtask receives.
	Groups format.KeyGroupRange
	// Handle is the old handle, or a part of it: full and savepoint handles are cut
	// to Groups; incremental ones are assigned whole, and the state backend clips
	// them.
	Handle format.KeyedHandle
}

// Keyed redistributes keyed state, managed or raw. old[i] is the handle of old
// subtask i, or nil. At an unchanged parallelism every subtask keeps its handle,
// whatever key groups it holds (spec flink-operator-state B9).
func Keyed(old []format.KeyedHandle, oldParallelism, newParallelism, maxParallelism int32) ([]KeyedSubtask, error) {
	for _, p := range [...]int32{newParallelism, maxParallelism} {
		if err := checkParallelism(int(p)); err != nil {
			return nil, err
		}
	}
	if newParallelism > maxParallelism {
		return nil, fmt.Errorf("%w: %d is more than the max parallelism %d of the state", ErrParallelism, newParallelism, maxParallelism)
	}
	if len(old) != int(oldParallelism) {
		return nil, fmt.Errorf("internal error: %d keyed handles for parallelism %d", len(old), oldParallelism)
	}
	subtasks := make([]KeyedSubtask, newParallelism)
	for i := range subtasks {
		sub := &subtasks[i]
		sub.Range = format.KeyGroupsOf(int32(i), newParallelism, maxParallelism)
		if newParallelism == oldParallelism {
			if h := old[i]; h != nil {
				sub.Pieces = []KeyedPiece{{i, h.KeyGroups(), h}}
			}
			continue
		}
		for k, h := range old {
			if h == nil {
				continue
			}
			piece, err := cut(h, sub.Range)
			if err != nil {
				return nil, format.At(err, "subtask %d", k)
			}
			if piece != nil {
				sub.Pieces = append(sub.Pieces, KeyedPiece{k, h.KeyGroups().Intersect(sub.Range), piece})
			}
		}
	}
	return subtasks, nil
}

// cut returns the part of a handle for a range of key groups, or nil if it has none
// of them. It does not change the sizes that a changelog records.
func cut(h format.KeyedHandle, r format.KeyGroupRange) (format.KeyedHandle, error) {
	if h, ok := h.(*format.ChangelogMemory); ok { // its changes decide, not its range
		for _, change := range h.Changes {
			if change.KeyGroup >= r.First && change.KeyGroup <= r.Last() {
				return h, nil
			}
		}
		return nil, nil
	}
	common := h.KeyGroups().Intersect(r)
	if common.Count <= 0 {
		return nil, nil
	}
	switch h := h.(type) {
	case *format.KeyGroups:
		if common == h.Range {
			return h, nil
		}
		if n := h.Offsets.Len(); n != int64(h.Range.Count) {
			return nil, format.Errorf(format.ErrCorrupt, "%d offsets for %d key groups", n, h.Range.Count)
		}
		c := *h
		c.Range, c.Offsets = common, window{h.Offsets, int64(common.First - h.Range.First), int64(common.Count)}
		return &c, nil
	case *format.Incremental:
		return h, nil
	case *format.Changelog:
		c := *h
		var err error
		c.Range = common
		if c.Materialized, err = cutAll(h.Materialized, r); err == nil {
			c.Changes, err = cutAll(h.Changes, r)
		}
		return &c, err
	case *format.ChangelogStream:
		c := *h
		c.Range = common
		return &c, nil
	}
	return nil, format.Errorf(format.ErrUnsupported, "keyed state of kind %T", h)
}

func cutAll(all []format.KeyedHandle, r format.KeyGroupRange) ([]format.KeyedHandle, error) {
	var cuts []format.KeyedHandle
	for _, h := range all {
		if h == nil {
			continue
		}
		c, err := cut(h, r)
		if err != nil {
			return nil, err
		}
		if c != nil {
			cuts = append(cuts, c)
		}
	}
	return cuts, nil
}

// window is the offsets first … first+n-1 of another array.
type window struct {
	of       format.Offsets
	first, n int64
}

// Len returns the number of offsets.
func (w window) Len() int64 { return w.n }

// Read implements [format.Offsets].
func (w window) Read(ctx context.Context, dst []int64, from int64) (int, error) {
	if from < 0 || from > w.n {
		return 0, fmt.Errorf("internal error: read of offset %d of %d", from, w.n)
	}
	return w.of.Read(ctx, dst[:min(int64(len(dst)), w.n-from)], w.first+from)
}
