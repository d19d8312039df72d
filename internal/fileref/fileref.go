// Package fileref has functions on a snapshot's references to files that reading,
// writing and reporting share.
package fileref

import (
	"context"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
)

// IsPlain reports whether a relative reference is a bare name, the only kind that
// Flink writes. Any other could lead out of the snapshot.
func IsPlain(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00")
}

// EachAbsolute calls f for every handle that names an absolute location, in file
// order. Such handles prevent moving the snapshot as a directory.
func EachAbsolute(sp *format.Savepoint, f func(p format.Place, path string)) {
	_ = sp.EachStream(func(p format.Place, st format.Stream) error {
		if path, relative, ok := format.Reference(st); ok && !relative {
			f(p, path.String())
		}
		return nil
	})
}

// BackendFiles returns the relative references of files that RocksDB wrote. If
// only some of them are missing, the checkpoint refers to files of a savepoint as
// if they were its own: FLINK-39964.
func BackendFiles(ops []*format.Operator) map[string]bool {
	names := map[string]bool{}
	for _, op := range ops {
		for _, sub := range op.Subtasks {
			format.EachKeyed(sub.ManagedKeyed, func(h format.KeyedHandle) {
				i, ok := h.(*format.Incremental)
				if !ok {
					return
				}
				for _, list := range [][]format.NamedStream{i.Shared, i.Private} {
					for _, f := range list {
						if path, relative, ok := format.Reference(f.Data); ok && relative {
							names[path.String()] = true
						}
					}
				}
			})
		}
	}
	return names
}

// ClaimedNative explains the effect of FLINK-39964.
const ClaimedNative = "the checkpoint refers to files of the native savepoint that its job was restored from with CLAIM as if they were next to it, which is a bug of Flink (FLINK-39964)"

// AllowOutside returns how to allow reading files below the prefixes.
func AllowOutside(prefixes ...string) []finding.Remedy {
	if len(prefixes) == 0 {
		return finding.Words("what is outside the snapshot cannot be read")
	}
	return []finding.Remedy{{Words: "if the snapshot may read there", Action: finding.ReadOutside, Locations: prefixes}}
}

// LengthFits reports whether a file of size bytes matches a handle that records a
// length of claimed; changelog is set for a file of changes.
func LengthFits(claimed, size int64, changelog bool) bool {
	return size == claimed || changelog && size == claimed+1
}

// Locator is an optional ability of a Source: where the bytes of a stream are
// stored. Streams with equal locations hold the same bytes. It returns "" if the
// location is unknown, and an error that matches ErrMissing if the bytes are not
// found.
type Locator interface {
	PlaceOf(ctx context.Context, s format.Stream) (string, error)
}
