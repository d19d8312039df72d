package format

import (
	"fmt"
	"math"
	"math/bits"
)

// MaxKeyGroups is the largest max parallelism an engine allows.
const MaxKeyGroups = 32768

// KeyGroupRange is the key groups First … First+Count-1 (spec flink-metadata
// 5.3). Count is a count, not an end.
type KeyGroupRange struct{ First, Count int32 }

// Last is the last key group; First-1 when the range is empty. A range that a
// damaged file claims stops at the largest number there is.
func (r KeyGroupRange) Last() int32 {
	return int32(min(int64(r.First)+int64(r.Count)-1, math.MaxInt32))
}

// String gives "0–63", or "none".
func (r KeyGroupRange) String() string {
	switch {
	case r.Count <= 0:
		return "none"
	case r.Count == 1:
		return fmt.Sprintf("%d", r.First)
	}
	return fmt.Sprintf("%d–%d", r.First, r.Last())
}

// Intersect is the part of r that also lies in o.
func (r KeyGroupRange) Intersect(o KeyGroupRange) KeyGroupRange {
	first, last := int64(max(r.First, o.First)), int64(min(r.Last(), o.Last()))
	if last < first {
		return KeyGroupRange{}
	}
	return KeyGroupRange{First: int32(first), Count: int32(min(last-first+1, math.MaxInt32))}
}

// KeyGroupsOf is the range that subtask i of p owns of max key groups, 0 < p
// <= max <= 32768 (spec flink-operator-state B8).
func KeyGroupsOf(i, p, max int32) KeyGroupRange {
	first := (int64(i)*int64(max) + int64(p) - 1) / int64(p)
	last := ((int64(i)+1)*int64(max) - 1) / int64(p)
	return KeyGroupRange{First: int32(first), Count: int32(last - first + 1)}
}

// KeyGroupOfHash is the key group of a key with this Java hash code among max
// key groups (spec flink-operator-state B8).
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
