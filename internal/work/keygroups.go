package work

import (
	"iter"
	"math"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// MaxRanges is the number of units of one keyed handle at most: each reads its header.
const MaxRanges = 64

// KeyGroups yields the units of a keyed handle: consecutive ranges of its key groups,
// in order, of about size bytes each if that is known, and at most 64. u has the job,
// the state and the position of the handle. It reads nothing.
func KeyGroups(u Unit, h format.KeyedHandle, size int64) iter.Seq[Unit] {
	return func(yield func(Unit) bool) {
		u.Parts = Whole(Described(h))
		all := h.KeyGroups()
		n := min(SizeOf(h)/size+1, MaxRanges, int64(all.Count))
		if _, changes := h.(*format.Changelog); changes {
			n = min(n, 1) // all of its changes are read for any key group
		}
		for i := range n {
			first, end := i*int64(all.Count)/n, (i+1)*int64(all.Count)/n
			u.First, u.Count = int64(all.First)+first, end-first
			if !yield(u) {
				return
			}
		}
	}
}

// SizeOf returns the bytes of a handle, as far as they are known. It reads nothing.
func SizeOf(h format.KeyedHandle) (n int64) {
	add := func(size int64) { n += min(size, math.MaxInt64-n) } // a size is only a claim
	switch h := h.(type) {
	case *format.KeyGroups:
		add(format.SizeOf(h.Data))
	case *format.Incremental:
		for _, f := range slices.Concat(h.Shared, h.Private) {
			add(format.SizeOf(f.Data))
		}
	case *format.Changelog:
		for _, part := range slices.Concat(h.Materialized, h.Changes) {
			add(SizeOf(part))
		}
	case *format.ChangelogMemory:
		for _, c := range h.Changes {
			add(int64(c.Data.Len()))
		}
	case *format.ChangelogStream:
		for _, f := range h.Streams {
			add(format.SizeOf(f.Data))
		}
	}
	return n
}

// Groups returns the key groups of a unit of keyed state.
func (u Unit) Groups() format.KeyGroupRange {
	return format.KeyGroupRange{First: int32(u.First), Count: int32(u.Count)}
}
