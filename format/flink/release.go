package flink

import (
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// table has a row for each line of releases, oldest first, and a column for each
// field of [Facts]. A cell is a list of versions ("1-3,6"), "-" for none, "yes",
// "no", or, for serializers, a count. Sources: spec flink-metadata 3,
// flink-operator-state A3, B2, B4 and B5, flink-keyed-state 2.1 and 2.4,
// flink-serializers A2, and snapshots that these releases wrote.
//
// To add a release, add its row; the tests then report what else is missing.
const table = `
release metadata operator keyed handles  streams  snapshots channels changelogs finished legacy kryo rocksdb prepend keep fill serializers
1.3     2        1-2      1-3   3,5      1,2       1        -        -          no       yes    2    1       no      no   no   0
1.4     2        1-2      1-4   3,5      1,2       1        -        -          no       yes    2    1       no      no   no   0
1.5     2        1-3      1-4   3,5      1,2       1        -        -          no       yes    2    1       no      no   no   0
1.6     2        1-4      1-5   3,5      1,2       1        -        -          no       yes    2    1       yes     no   no   0
1.7     2        1-5      1-6   3,5      1,2       1-2      -        -          no       yes    2    1       yes     no   no   0
1.8     2        1-5      1-6   3,5      1,2       1-2      -        -          no       yes    2    1       yes     yes  no   0
1.9     2        1-5      1-6   3,5      1,2       1-2      -        -          no       yes    2    1       yes     yes  no   0
1.10    2        1-5      1-6   3,5      1,2       1-2      -        -          no       yes    2    1       yes     yes  no   0
1.11    2-3      1-5      1-6   3,5      1,2,6     1-2      1        -          no       no     2    1       yes     yes  no   0
1.12    2-3      1-5      1-6   3,5      1,2,6     1-2      2        -          no       no     2    1       yes     yes  no   0
1.13    2-3      1-5      1-6   3,5,7    1-3,6     1-2      2        -          no       no     2    1       yes     yes  no   0
1.14    2-3      1-5      1-6   3,5,7-10 1-3,6     1-2      2        1          yes      no     2    1       yes     yes  yes  0
1.15    2-3      1-5      1-6   3,5,7-12 1-3,6     1-2      2        2          yes      no     2    1       yes     yes  yes  0
1.16    2-4      1-5      1-6   3,5,7-14 1-3,6     1-2      2        2          yes      no     2    1       yes     yes  yes  0
1.17    2-4      5        6     3,5,7-14 1-3,6     2        2        2          yes      no     2    1       yes     yes  yes  0
1.18    2-4      5-6      6     3,5,7-14 1-3,6     2        2        2          yes      no     2    1       yes     yes  yes  0
1.19    2-4      5-6      6     3,5,7-14 1-3,6     2        2        2          yes      no     2    1       yes     yes  yes  0
1.20    2-4      5-6      6     3,5,7-14 1-3,6,15-16 2      2        2          yes      no     2    1       yes     yes  yes  0
2.0     2-5      5-6      6     3,5,7-14 1-3,6,15-16 2      2        2          yes      no     5    1-2     yes     yes  yes  13
2.1     2-6      5-6      6     3,5,7-14 1-3,6,15-16 2      2-3      2          yes      no     5    1-2     yes     yes  yes  2
2.2     2-6      5-6      6     3,5,7-14 1-3,6,15-16 2      2-3      2          yes      no     5    1-2     yes     yes  yes  1
2.3     2-6      5-6      6     3,5,7-14 1-3,6,15-16 2      2-3      2          yes      no     5    1-2     yes     yes  yes  2
`

// Facts are the versions that a release of Flink reads, and how it restores. Of the
// versions that it reads, it writes the newest.
type Facts struct {
	Metadata      Versions // of _metadata
	OperatorState Versions // that streams of operator state start with
	KeyedState    Versions // that streams of keyed state start with
	KeyedHandles  Versions // tags of keyed handles in _metadata
	Streams       Versions // tags of streams in _metadata
	// Snapshots is the versions of the wrapper of serializer snapshots: version 1,
	// of Flink 1.6 and earlier, contains the serializers as Java objects.
	Snapshots Versions
	// Channels is the layouts of handles of in-flight data: 1 without a subtask
	// index, 2 with one, 3 with several channels in one handle.
	Channels Versions
	// Changelogs is the layouts of changelog handles: 1 short, 2 with sizes and
	// ids.
	Changelogs Versions
	Finished   bool // fully finished operators and subtasks
	Legacy     bool // legacy operator state (before Flink 1.4)

	Kryo Versions // the major version of the library
	// RocksDB is the versions of the files: 2 uses another kind of checksum.
	RocksDB Versions

	// PrependsNames: a state name is prepended to its bucket in the hash map that
	// determines the order of states. 1.6.0 does not do this, 1.6.4 does.
	PrependsNames bool
	// KeepsLists: at an unchanged parallelism, list state stays in its subtask.
	// Earlier releases redistributed all state if there was union state, and
	// otherwise moved it up to fill gaps.
	KeepsLists bool
	// FillsBroadcast: at an unchanged parallelism, subtasks without a broadcast
	// state receive a replica from another subtask.
	FillsBroadcast bool

	// serializers is the number of serializerLifetimes that start with this release
	// or ended before it.
	serializers int
}

// CanonicalSavepoints reports whether keyed state can be marked as canonical.
func (f Facts) CanonicalSavepoints() bool { return f.KeyedHandles.Has(7) }

// HandleIDs reports whether keyed handles can have ids.
func (f Facts) HandleIDs() bool { return f.KeyedHandles.Has(12) }

// MergedFiles reports whether streams can be segments of merged files.
func (f Facts) MergedFiles() bool { return f.Streams.Has(15) }

// MergedChannels reports whether one handle can hold several channels.
func (f Facts) MergedChannels() bool { return f.Channels.Has(3) }

// column is the name of a column and the field that it fills.
type column struct {
	name  string
	field any // *Versions, *bool or *int
}

func (f *Facts) columns() []column {
	return []column{
		{"metadata", &f.Metadata}, {"operator", &f.OperatorState}, {"keyed", &f.KeyedState},
		{"handles", &f.KeyedHandles}, {"streams", &f.Streams}, {"snapshots", &f.Snapshots},
		{"channels", &f.Channels}, {"changelogs", &f.Changelogs}, {"finished", &f.Finished}, {"legacy", &f.Legacy},
		{"kryo", &f.Kryo}, {"rocksdb", &f.RocksDB},
		{"prepend", &f.PrependsNames}, {"keep", &f.KeepsLists}, {"fill", &f.FillsBroadcast},
		{"serializers", &f.serializers},
	}
}

// row is a line of releases: 1.20 is major 1 and minor 20.
type row struct {
	major, minor int
	facts        Facts
}

// rows is the parsed table. The tests detect mistakes in it.
var rows = func() []row {
	rows, err := parseTable(table)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return rows
}()

// parseTable parses the table. Errors name the release and what its row lacks.
func parseTable(text string) ([]row, error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	head := strings.Fields(lines[0])
	var rows []row
	for _, line := range lines[1:] {
		cells := strings.Fields(line)
		r, err := parseRow(head, cells)
		if err != nil {
			return nil, fmt.Errorf("release %s: %w", cells[0], err)
		}
		if n := len(rows); n > 0 && (r.major < rows[n-1].major || r.major == rows[n-1].major && r.minor <= rows[n-1].minor) {
			return nil, fmt.Errorf("release %s: not after the row above it", cells[0])
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func parseRow(head, cells []string) (r row, err error) {
	var ok bool
	if r.major, r.minor, ok = parseName(cells[0]); !ok {
		return r, fmt.Errorf("expected a release such as 1.20")
	}
	var missing []string
	columns := r.facts.columns()
	for i, c := range columns {
		if i+1 >= len(head) || head[i+1] != c.name {
			return r, fmt.Errorf("expected column %s in the head of the table", c.name)
		}
		if i+1 >= len(cells) || cells[i+1] == "?" {
			missing = append(missing, c.name)
		} else if err := c.parse(cells[i+1]); err != nil {
			return r, fmt.Errorf("column %s: %w", c.name, err)
		}
	}
	switch {
	case len(missing) > 0:
		return r, fmt.Errorf("empty column %s", strings.Join(missing, ", "))
	case len(cells) > len(columns)+1:
		return r, fmt.Errorf("expected %[2]d cells, found %[1]d", len(cells), len(columns)+1)
	}
	return r, nil
}

func (c column) parse(cell string) (err error) {
	switch to := c.field.(type) {
	case *bool:
		if *to = cell == "yes"; !*to && cell != "no" {
			return fmt.Errorf("expected yes or no, found %q", cell)
		}
	case *int:
		*to, err = strconv.Atoi(cell)
	case *Versions:
		*to, err = parseVersions(cell)
	}
	return err
}

// Versions is a set of version numbers, or of tags.
type Versions uint64

// Has reports whether v is in the set.
func (s Versions) Has(v int) bool { return v >= 0 && v < 64 && s>>v&1 != 0 }

// Newest returns the largest number in the set, or 0 if it is empty.
func (s Versions) Newest() int { return max(0, bits.Len64(uint64(s))-1) }

// parseVersions parses "1-3,6" or "-".
func parseVersions(text string) (s Versions, err error) {
	if text == "-" {
		return 0, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		first, last, ok := strings.Cut(part, "-")
		if !ok {
			last = first
		}
		a, err1 := strconv.Atoi(first)
		b, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || a < 1 || b < a || b > 63 {
			return 0, fmt.Errorf("expected versions such as 1-3,6, found %q", text)
		}
		for v := a; v <= b; v++ {
			s |= 1 << v
		}
	}
	return s, nil
}

// Release is a line of Flink releases, such as 1.20. Newer releases compare
// greater. The zero value is not a release.
type Release uint8

// Releases returns the known releases, oldest first.
func Releases() []Release {
	all := make([]Release, len(rows))
	for i := range all {
		all[i] = Release(i + 1)
	}
	return all
}

// Oldest returns the oldest known release.
func Oldest() Release { return 1 }

// Latest returns the newest known release.
func Latest() Release { return Release(len(rows)) }

// ParseRelease parses the name of a release, "1.20", or of one of its patch
// releases, "1.20.4".
func ParseRelease(s string) (Release, error) {
	if major, minor, ok := parseName(s); ok {
		for i, r := range rows {
			if r.major == major && r.minor == minor {
				return Release(i + 1), nil
			}
		}
	}
	var lines []string
	for i, r := range rows {
		switch {
		case i == 0 || rows[i-1].major != r.major:
			lines = append(lines, Release(i+1).String())
		case i+1 == len(rows) || rows[i+1].major != r.major:
			lines[len(lines)-1] += " to " + Release(i+1).String()
		}
	}
	return 0, fmt.Errorf("release %q is not known; available: %s", s, strings.Join(lines, ", "))
}

// MustRelease is ParseRelease that panics on errors. It is for tests and constants.
func MustRelease(s string) Release {
	r, err := ParseRelease(s)
	if err != nil {
		panic(err)
	}
	return r
}

// parseName parses "1.20" or "1.20.4".
func parseName(s string) (major, minor int, ok bool) {
	parts := strings.Split(s, ".")
	var n [3]int
	ok = len(parts) == 2 || len(parts) == 3
	for i := 0; ok && i < len(parts); i++ {
		var err error
		n[i], err = strconv.Atoi(parts[i])
		ok = err == nil && n[i] >= 0 && strconv.Itoa(n[i]) == parts[i]
	}
	return n[0], n[1], ok
}

// String returns the name of the release, such as "1.20", and "" for the zero
// value.
func (r Release) String() string {
	if r == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d", rows[r-1].major, rows[r-1].minor)
}

// Facts returns the facts about the release, and for the zero value about the
// latest one.
func (r Release) Facts() Facts {
	if r == 0 {
		r = Latest()
	}
	return rows[r-1].facts
}

// Lifetime returns the first and the last release for whose facts has returns true.
// Both are zero if no release does; last is zero if it is the latest release.
func Lifetime(has func(Facts) bool) (first, last Release) {
	return lifetime(func(r Release) bool { return has(r.Facts()) })
}

func lifetime(has func(Release) bool) (first, last Release) {
	for _, r := range Releases() {
		if has(r) {
			if first == 0 {
				first = r
			}
			last = r
		}
	}
	if last == Latest() {
		last = 0
	}
	return first, last
}

// WritersOf returns the first and the last release that write a version of
// _metadata; both are zero if none does.
func WritersOf(metadata int) (first, last Release) {
	for _, r := range Releases() {
		if r.Facts().Metadata.Newest() == metadata {
			if first == 0 {
				first = r
			}
			last = r
		}
	}
	return first, last
}
