package work

import (
	"slices"

	"github.com/savepoint-tools/spt/format"
)

const (
	// groupBytes is how many bytes of a handle of keyed state one unit reads, about.
	groupBytes = 16 << 20
	// maxRanges is the number of units of one handle at most: each reads its header.
	maxRanges = 64
)

// KeyGroups yields a unit for each range of key groups of a handle: several of a large
// handle, one of a changelog, all of whose changes are read for any key group. It
// returns false if yield does.
func KeyGroups(u Unit, h format.KeyedHandle, yield func(Unit) bool) bool {
	all := h.KeyGroups()
	n := min(bytesOf(h)/groupBytes+1, maxRanges, max(int64(all.Count), 1))
	for i := range n {
		first, end := i*int64(all.Count)/n, (i+1)*int64(all.Count)/n
		u.First, u.Count = int64(all.First)+first, end-first
		if !yield(u) {
			return false
		}
	}
	return true
}

// bytesOf returns the bytes of a handle, 0 for a changelog.
func bytesOf(h format.KeyedHandle) (n int64) {
	switch h := h.(type) {
	case *format.KeyGroups:
		return format.SizeOf(h.Data)
	case *format.Incremental:
		for _, f := range slices.Concat(h.Shared, h.Private) {
			n += format.SizeOf(f.Data)
		}
	}
	return n
}
