package assign

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// handle determines the position of an old handle in Flink's hash maps of handles
// (spec flink-operator-state B3).
type handle struct {
	// key is equal for handles that are equal for Flink.
	key      handleKey
	hash     int32
	relative bool
	// unknown is the reason why Flink's hash is unknown; "" if it is known.
	unknown string
}

type handleKey struct {
	kind        format.StreamKind
	name        string
	start, size int64
	scope       format.Scope
	logical     string
	n           int // if nothing else is known: 1 + the old subtask
}

// handleOf returns the handle for the stream of old subtask i.
func handleOf(s format.Stream, i int, at string) handle {
	switch s := s.(type) {
	case nil:
		return handle{} // a null key has the hash 0
	case *format.Inline:
		name := s.Name.String()
		return handle{key: handleKey{kind: format.KindInline, name: name}, hash: 31 * java.HashString(name)}
	case *format.File:
		return fileOf(s, i, at)
	case *format.Segment:
		return handle{
			key: handleKey{
				kind: format.KindSegment, name: pathKey(s.Path.String()), start: s.Start, size: s.Length,
				scope: s.Scope, logical: s.LogicalID.String(),
			},
			unknown: "state is stored in merged files, whose handles have a different hash in every JVM",
		}
	case *format.EmptySegment:
		return handle{key: handleKey{kind: format.KindEmpty}, unknown: "placeholders of file merging have a different hash in every JVM"}
	case *format.Chunks:
		if s.As != nil {
			return handleOf(s.As, i, at)
		}
	case *format.Concat:
		if s.As != nil {
			return handleOf(s.As, i, at)
		}
	}
	return handle{key: handleKey{n: i + 1}, unknown: "handles do not yet have a name that Flink could hash"}
}

func fileOf(s *format.File, i int, at string) handle {
	path := s.Path.String()
	if !s.Relative {
		u, err := parsePath(path)
		if err != nil {
			return handle{key: handleKey{n: i + 1}, unknown: err.Error()}
		}
		return handle{key: handleKey{kind: format.KindAbsolute, name: u.key()}, hash: u.hash()}
	}
	h := handle{key: handleKey{kind: format.KindRelative, name: path}, relative: true}
	if at == "" {
		h.unknown = "files are relative to an unknown location"
		return h
	}
	if strings.HasPrefix(at, "/") {
		at = "file:" + at // Flink completes a path without a scheme
	}
	u, err := parsePath(at + "/" + path)
	if err != nil {
		h.unknown = err.Error()
		return h
	}
	h.hash = 17*u.hash() + java.HashString(path)
	return h
}

func pathKey(path string) string {
	if u, err := parsePath(path); err == nil {
		return u.key()
	}
	return fmt.Sprintf("%q", path)
}
