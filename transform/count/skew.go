package count

import (
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// Skew is how the bytes of the keyed state of an operator are distributed.
type Skew struct {
	Count                     int // key groups, or subtasks
	Largest, Median, Smallest int64
	Index                     int // of the largest
	Sum                       int64
}

// Skew returns how bytes are distributed over the key groups.
func (op *Operator) Skew() Skew {
	all := make([]int64, len(op.Groups))
	for i, g := range op.Groups {
		all[i] = g.Bytes
	}
	return skew(all)
}

// Subtasks returns how bytes would be distributed over the subtasks at another
// parallelism, 1 to the max parallelism.
func (op *Operator) Subtasks(parallelism int32) Skew {
	all := make([]int64, parallelism)
	for i := range all {
		r := format.KeyGroupsOf(int32(i), parallelism, int32(len(op.Groups)))
		for _, g := range op.Groups[r.First : r.First+r.Count] {
			all[i] += g.Bytes
		}
	}
	return skew(all)
}

func skew(all []int64) (s Skew) {
	if len(all) == 0 {
		return s
	}
	for i, n := range all {
		if n > all[s.Index] {
			s.Index = i
		}
		s.Sum += n
	}
	sorted := slices.Sorted(slices.Values(all))
	s.Count = len(all)
	s.Largest, s.Median, s.Smallest = sorted[len(all)-1], sorted[(len(all)-1)/2], sorted[0]
	return s
}
