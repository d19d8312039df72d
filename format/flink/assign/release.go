package assign

import "fmt"

// Release is a line of Flink releases: 1.20 is Release{1, 20}. The zero value
// is a current one. Rules changed with 1.6, 1.8 and 1.14 (spec
// flink-operator-state B2, B4, B5; the releases as tests found them).
type Release struct{ Major, Minor int }

// String is as people write it.
func (r Release) String() string { return fmt.Sprintf("%d.%d", r.Major, r.Minor) }

// AtLeast is whether r is the release major.minor or a newer one.
func (r Release) AtLeast(major, minor int) bool {
	return r == Release{} || r.Major > major || r.Major == major && r.Minor >= minor
}

// prependsNames: a name goes before those in its hash bucket. 1.6.0 did not do
// so yet, 1.6.4 did.
func (r Release) prependsNames() bool { return r.AtLeast(1, 6) }

// keepsLists: list state stays where it is while the parallelism does. Before,
// everything was dealt anew if there was union state, and else gaps closed.
func (r Release) keepsLists() bool { return r.AtLeast(1, 8) }

// spreadsBroadcast: at an unchanged parallelism, subtasks without a broadcast
// state that others have are given it.
func (r Release) spreadsBroadcast() bool { return r.AtLeast(1, 14) }
