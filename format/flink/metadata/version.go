package metadata

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
)

// Version is a version of the _metadata file.
type Version int32

// The versions that are read and written.
const (
	V2 Version = 2
	V3 Version = 3
	V4 Version = 4
	V5 Version = 5
	V6 Version = 6

	// Latest is the newest version.
	Latest = V6
)

// fileMagic starts every _metadata file. Wire format: never change.
const fileMagic = 0x4960672d

// String returns a text such as "v4".
func (v Version) String() string { return fmt.Sprintf("v%d", int32(v)) }

// Releases returns the Flink releases that write the version, such as "1.16–1.20".
func (v Version) Releases() string {
	first, last := flink.WritersOf(int(v))
	if first == last {
		return first.String()
	}
	return first.String() + "–" + last.String()
}

// Valid reports whether the version is read and written.
func (v Version) Valid() bool { return v >= V2 && v <= Latest }

func (v Version) hasNames() bool        { return v >= V5 }
func (v Version) hasCoordinator() bool  { return v >= V3 }
func (v Version) hasChannels() bool     { return v >= V3 }
func (v Version) hasFinished() bool     { return v >= V3 }
func (v Version) hasDeadFields() bool   { return v == V2 }
func (v Version) hasProperties() bool   { return v >= V4 }
func (v Version) hasChannelTypes() bool { return v >= V6 }

// hasLayouts reports whether files of the version come in several layouts.
func (v Version) hasLayouts() bool { return v == V3 }

// HasRelativeFiles reports whether files can be named relative to _metadata.
func (v Version) HasRelativeFiles() bool { return v >= V3 }

// layout distinguishes the layouts of version 3.
type layout struct {
	noSubtask       bool // channel handles without a subtask index
	shortChangelogs bool // short changelog handles
}

func (l layout) readBy(f flink.Facts) bool {
	return (!l.noSubtask || f.Channels.Has(1)) && (!l.shortChangelogs || f.Changelogs.Has(1))
}

// writer returns the release that wrote the layout.
func (l layout) writer() flink.Release {
	first, _ := flink.Lifetime(l.readBy)
	return first
}

// layouts are tried in this order on a version 3 file.
var layouts = [...]layout{{}, {noSubtask: true}, {shortChangelogs: true}, {noSubtask: true, shortChangelogs: true}}

// unsupported returns the error for a version that is not read.
func unsupported(v Version) error {
	known := fmt.Sprintf("spt reads versions %d to %d (Flink %v to %v)", V2, Latest, flink.Oldest(), flink.Latest())
	switch {
	case v == 0 || v == 1:
		return format.Errorf(format.ErrUnsupported, "metadata version %d, written by Flink 1.%d; %s", v, v+1, known)
	case v > Latest && v < 100:
		return format.Errorf(format.ErrUnsupported, "metadata version %d, newer than all known versions; %s", v, known)
	}
	return format.Errorf(format.ErrUnsupported, "metadata version %d, which no release of Flink writes; %s", v, known)
}

// fileWire is the Wire of a Savepoint: version, layout, and the bytes of the
// properties object.
type fileWire struct {
	version Version
	layout  layout
	tail    string
}

func (w fileWire) wire() format.Wire {
	var flags byte
	if w.layout.noSubtask {
		flags |= 1
	}
	if w.layout.shortChangelogs {
		flags |= 2
	}
	return format.Wire([]byte{'F', byte(w.version), flags}) + format.Wire(w.tail)
}

func parseFileWire(w format.Wire) (fileWire, bool) {
	s := string(w)
	if len(s) < 3 || s[0] != 'F' || !Version(s[1]).Valid() || s[2] > 3 {
		return fileWire{}, false
	}
	return fileWire{version: Version(s[1]), layout: layout{s[2]&1 != 0, s[2]&2 != 0}, tail: s[3:]}, true
}

// VersionOf returns the version that a savepoint was read with. ok is false if it
// did not come from Flink.
func VersionOf(sp *format.Savepoint) (v Version, ok bool) {
	w, ok := parseFileWire(sp.Wire)
	return w.version, ok
}

// ParseVersion parses "4" or "v4".
func ParseVersion(s string) (Version, error) {
	for v := V2; v <= Latest; v++ {
		if strings.TrimPrefix(s, "v") == strconv.Itoa(int(v)) {
			return v, nil
		}
	}
	return 0, fmt.Errorf("metadata version %q is not known; available: 2, 3, 4, 5, 6", s)
}
