package assign

import (
	"fmt"
	"strconv"
	"strings"
)

// Release is a line of Flink releases: 1.20 is Release{1, 20}. The zero value
// is a current one. Rules changed with 1.6, 1.8 and 1.14 (spec
// flink-operator-state B2, B4, B5; the releases as tests found them).
type Release struct{ Major, Minor int }

// String is as people write it.
func (r Release) String() string { return fmt.Sprintf("%d.%d", r.Major, r.Minor) }

// last is the last release of each major version that is known, first the first.
var first, last = map[int]int{1: 3, 2: 0}, map[int]int{1: 20, 2: 3}

// Releases returns the releases that are known, oldest first.
func Releases() []Release {
	var all []Release
	for major := 1; major <= len(first); major++ {
		for minor := first[major]; minor <= last[major]; minor++ {
			all = append(all, Release{major, minor})
		}
	}
	return all
}

// ParseRelease reads a release that is known, "1.20", or a patch of one, "1.20.4".
func ParseRelease(s string) (Release, error) {
	parts := strings.Split(s, ".")
	var n [3]int
	ok := len(parts) == 2 || len(parts) == 3
	for i := 0; ok && i < len(parts); i++ {
		var err error
		n[i], err = strconv.Atoi(parts[i])
		ok = err == nil && n[i] >= 0 && strconv.Itoa(n[i]) == parts[i]
	}
	r := Release{n[0], n[1]}
	if newest, known := last[r.Major]; !ok || !known || r.Minor < first[r.Major] || r.Minor > newest {
		return Release{}, fmt.Errorf("release %q: one of 1.3 to 1.20 and 2.0 to 2.3", s)
	}
	return r, nil
}

// AtLeast reports whether r is the release major.minor or a newer one.
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
