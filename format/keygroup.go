package format

import (
	"fmt"
	"math"
	"math/bits"
)

// MaxKeyGroups is the largest max parallelism that Flink allows.
const MaxKeyGroups = 32768

// KeyGroupRange is the key groups First … First+Count-1 (spec flink-metadata 5.3).
type KeyGroupRange struct{ First, Count int32 }

// Last returns the last key group, or First-1 if the range is empty. The result for
// a range from a damaged file is capped at the largest int32.
func (r KeyGroupRange) Last() int32 {
	return int32(min(int64(r.First)+int64(r.Count)-1, math.MaxInt32))
}

// String returns "0–63", or "none" for an empty range.
func (r KeyGroupRange) String() string {
	switch {
	case r.Count <= 0:
		return "none"
	case r.Count == 1:
		return fmt.Sprintf("%d", r.First)
	}
	return fmt.Sprintf("%d–%d", r.First, r.Last())
}

// Intersect returns the key groups that are in both r and o.
func (r KeyGroupRange) Intersect(o KeyGroupRange) KeyGroupRange {
	first, last := int64(max(r.First, o.First)), int64(min(r.Last(), o.Last()))
	if last < first {
		return KeyGroupRange{}
	}
	return KeyGroupRange{First: int32(first), Count: int32(min(last-first+1, math.MaxInt32))}
}

// KeyGroupsOf returns the range of key groups that subtask i of p owns, of max in
// all, 0 < p <= max <= 32768 (spec flink-operator-state B8).
func KeyGroupsOf(i, p, max int32) KeyGroupRange {
	first := (int64(i)*int64(max) + int64(p) - 1) / int64(p)
	last := ((int64(i)+1)*int64(max) - 1) / int64(p)
	return KeyGroupRange{First: int32(first), Count: int32(last - first + 1)}
}

// KeyGroupOfHash returns the key group, of max, of a key with this Java hash code
// (spec flink-operator-state B8).
func KeyGroupOfHash(hash, max int32) int32 {
	c := uint32(hash) * 0xcc9e2d51
	c = bits.RotateLeft32(c, 15) * 0x1b873593
	c = bits.RotateLeft32(c, 13)*5 + 0xe6546b64
	c ^= 4
	c ^= c >> 16
	c *= 0x85ebca6b
	c ^= c >> 13
	c *= 0xc2b2ae35
	c ^= c >> 16
	n := int32(c)
	switch {
	case n == -1<<31:
		n = 0
	case n < 0:
		n = -n
	}
	return n % max
}
