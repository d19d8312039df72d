// Package connector decodes and encodes what Flink's connectors store in operator
// state and in the state of their coordinators: read positions of sources,
// transactions and files of sinks. A connector's serializer is not in the snapshot,
// only its version, so the package knows the structures by the names of states and by
// their bytes (spec flink-connector-states).
//
//	if codec, ok := connector.Elements(meta.Name.String(), meta.Envelope); ok {
//		v, err := value.ReadAll(codec, element)
//		for p := range connector.Positions(v) { … }
//	}
//
// It does not read snapshots, and knows nothing about operators.
package connector

import (
	"bytes"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// exported converts a layout to a value.Codec.
type exported struct{ of layout }

// Skip implements [value.Codec].
func (c exported) Skip(p []byte) (int, error) {
	_, n, err := c.Read(p)
	return n, err
}

// Read implements [value.Codec]. Bytes that the connector reads but does not write are
// an ErrUnsupported.
func (c exported) Read(p []byte) (value.Value, int, error) {
	r := newReader(p, 0)
	v := c.of.read(r)
	if err := r.Err(); err != nil {
		return value.Value{}, 0, err
	}
	n := r.Offset()
	again, err := c.Append(nil, v)
	if err != nil {
		return value.Value{}, 0, err
	}
	if !bytes.Equal(again, p[:n]) {
		return value.Value{}, 0, format.Errorf(format.ErrUnsupported, "bytes that the connector does not write are not decoded")
	}
	return v, n, nil
}

// Append implements [value.Codec].
func (c exported) Append(dst []byte, v value.Value) ([]byte, error) {
	w := &writer{p: dst}
	if c.of.write(w, v); w.err != nil {
		return dst, w.err
	}
	return w.p, nil
}

// coordinatorState is the state of the coordinator of a source (spec
// flink-connector-states 4). Version 0, of Flink 1.11 and 1.12, has assignments after
// the state of the enumerator, which later releases ignore.
type coordinatorState struct{ connector string }

const coordinatorVersion = 1

var coordinatorShape = &value.Shape{Names: []string{"coordinator_version", "enumerator", "assignments"}}

func (c coordinatorState) read(r *reader) value.Value {
	off := r.Offset()
	version := r.I32()
	if r.Err() == nil && version != 0 && version != coordinatorVersion {
		r.Fail(off, format.ErrUnsupported, "version %d of the state of a coordinator is not decoded; known are 0 and %d", version, coordinatorVersion)
	}
	parts := []value.Value{value.Int(int64(version)), frame{"enumerator state", c}.read(r), value.Null()}
	if version == 0 && r.Err() == nil {
		parts[2] = readTracker(r)
	}
	r.end()
	return value.Record(coordinatorShape, parts).WithClass("SourceCoordinator")
}

// candidates returns the enumerators of the connector, or all.
func (c coordinatorState) candidates() (all candidates) {
	if c.connector == "" {
		return enumerators
	}
	for _, e := range enumerators {
		if e.connector == c.connector {
			all = append(all, e)
		}
	}
	return all
}

func (coordinatorState) write(w *writer, v value.Value) {
	if v.Len() != 3 || !w.expects(v.At(0), value.KindInt) {
		w.fail("expected the fields %q, found %q", coordinatorShape.Names, names(v))
		return
	}
	i32.write(w, v.At(0))
	frame{"enumerator state", allEnumerators{}}.write(w, v.At(1))
	if v.At(0).Int() == 0 {
		writeTracker(w, v.At(2))
	}
}

// The assignments since a checkpoint: int version of the splits, int checkpoints, each
// long id, int subtasks, each int subtask, int n, n x (int length, split).
var (
	trackerShape    = &value.Shape{Names: []string{"version", "checkpoints"}}
	trackedShape    = &value.Shape{Names: []string{"checkpoint", "subtasks"}}
	trackedSubtasks = listOf(fields("", field{"subtask", i32}, field{"splits", listOf(bytesOf, 4)}), 8)
)

func readTracker(r *reader) value.Value {
	version := i32.read(r)
	checkpoints := listOf(record{"", trackedShape, []layout{i64, trackedSubtasks}}, 12).read(r)
	return value.Record(trackerShape, []value.Value{version, checkpoints})
}

func writeTracker(w *writer, v value.Value) {
	if v.Len() != 2 {
		w.fail("expected the fields %q, found %q", trackerShape.Names, names(v))
		return
	}
	i32.write(w, v.At(0))
	listOf(record{"", trackedShape, []layout{i64, trackedSubtasks}}, 12).write(w, v.At(1))
}

// Coordinator returns the codec of the state of the coordinator of a source with the
// FLIP-27 interface. Its value is a record with the class SourceCoordinator. connector
// is the connector of the source, as in its positions; "": any, and then a state without
// splits is not decoded if several connectors could have written it.
func Coordinator(connector string) value.Codec { return exported{coordinatorState{connector}} }
