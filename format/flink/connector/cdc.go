package connector

import (
	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// cdcDialect is the differences between the MySQL connector and the connectors that
// are built on flink-cdc-base (spec flink-connector-states 11.1 to 11.3).
type cdcDialect struct {
	connector         string
	split, enumerator int32 // current versions
	base              bool
}

var (
	mysqlCDC = cdcDialect{"MySQL CDC", 4, 5, false}
	baseCDC  = cdcDialect{"Flink CDC", 6, 8, true}
)

// position is the position in a change log: bool present, then in version 1 UTF file
// and long position, later int length and a JSON object of strings.
func (d cdcDialect) position(v int32) layout {
	if v == 1 {
		return opt(fields("", field{"file", utf}, field{"position", i64}))
	}
	return opt(textOf)
}

// schemas is table ids, each with a table change document in JSON.
func (d cdcDialect) schemas(v int32) layout {
	text := layout(textOf)
	if v == 1 {
		text = utf
	}
	return listOf(fields("", since(d.base, "catalog_before_schema", boolean), field{"table", utf}, field{"schema", text}), 4)
}

// finished is a snapshot split that was read before the change log.
func (d cdcDialect) finished(v int32) layout {
	return fields("", field{"table", utf}, field{"split", utf}, field{"start", utf}, field{"end", utf},
		since(d.base, "offset_factory", utf), field{"position", d.position(v)}, since(d.base && v >= 4, "catalog_before_schema", boolean))
}

func (d cdcDialect) snapshotSplit(v int32) record {
	return fields("SnapshotSplit", since(d.base && v >= 4, "catalog_before_schema", boolean), field{"table", utf}, field{"split", utf},
		field{"key_type", utf}, field{"start", utf}, field{"end", utf}, field{"high_watermark", d.position(v)}, field{"schemas", d.schemas(v)})
}

// changeSplit is the split of the change log. Its unused text is empty. Flink CDC up
// to 2.2 wrote version 4 without its last flag.
func (d cdcDialect) changeSplit(v int32) record {
	tail := []field{}
	if d.base {
		tail = append(tail, since(v >= 5, "suspended", boolean), since(v >= 6, "snapshot_completed", boolean))
	} else {
		tail = append(tail, since(v >= 4, "suspended", atEnd{boolean}))
	}
	return fields("ChangeLogSplit", append([]field{{"id", utf}, {"unused", utf}, {"start", d.position(v)}, {"end", d.position(v)},
		{"finished_splits", listOf(d.finished(v), 9)}, {"schemas", d.schemas(v)}, since(v >= 3, "total_finished_splits", i32)}, tail...)...)
}

// atEnd is a value that may be missing at the end of the bytes; then it is null.
type atEnd struct{ of layout }

func (l atEnd) read(r *reader) value.Value {
	if r.Remaining() == 0 {
		return value.Null()
	}
	return l.of.read(r)
}

func (l atEnd) write(w *writer, v value.Value) {
	if !v.IsNull() {
		l.of.write(w, v)
	}
}

// eitherKind is an int that tells which record follows, by number; the value of the
// record carries its class.
type eitherKind struct{ of map[int32]record }

func (l eitherKind) read(r *reader) value.Value {
	off := r.Offset()
	kind := r.I32()
	of, ok := l.of[kind]
	if r.Err() == nil && !ok {
		r.Fail(off, format.ErrCorrupt, "%d is not the number of a structure", kind)
	}
	if r.Err() != nil {
		return value.Null()
	}
	return of.read(r)
}

func (l eitherKind) write(w *writer, v value.Value) {
	for kind, of := range l.of {
		if of.class == v.Class() {
			w.int32(int(kind))
			of.write(w, v)
			return
		}
	}
	w.fail("%q is not one of the structures", v.Class())
}

func (d cdcDialect) splitOf(v int32) record {
	class := "SourceSplitBase"
	if !d.base {
		class = "MySqlSplit"
	}
	return fields(class, field{"split", eitherKind{map[int32]record{1: d.snapshotSplit(v), 2: d.changeSplit(v)}}})
}

func (d cdcDialect) splits() candidates { return versions(d.connector, 1, d.split, d.splitOf) }

var (
	mysqlSplits = mysqlCDC.splits()
	baseSplits  = baseCDC.splits()
)

var assignerStatus = []string{"initial assigning", "initial assigning finished", "newly added assigning", "newly added snapshot finished", "newly added finished"}

// tableIDs is a list of table ids.
func (d cdcDialect) tableIDs(v int32) layout {
	if d.base && v >= 5 {
		return listOf(fields("", field{"catalog_before_schema", boolean}, field{"table", utf}), 3)
	}
	return listOf(utf, 2)
}

// snapshotState is the state of the assigner of snapshot splits. The version of the
// splits is read before it.
func (d cdcDialect) snapshotState(v int32) []field {
	status := layout(enum{i32, assignerStatus})
	before := since(v >= 3, "status", status)
	if d.base && v < 6 || v < 3 {
		before = field{"assigner_finished", boolean}
	}
	split := cdcSplit{d}
	next := opt(fields("", field{"table", utf}, field{"next_chunk_start", utf}, field{"next_chunk_id", i32}))
	chunk := int32(5)
	if d.base {
		chunk = 8
	}
	return []field{
		{"processed_tables", d.tableIDs(v)}, {"remaining_splits", listOf(split, 4)},
		{"assigned_splits", listOf(fields("", field{"id", utf}, field{"split", split}), 6)},
		{"finished_offsets", listOf(fields("", field{"split", utf}, field{"position", d.enumeratorPosition(v)}), 3)},
		before,
		since(v >= 3, "remaining_tables", d.tableIDs(v)), since(v >= 3, "table_ids_case_sensitive", boolean),
		since(v >= 4, "schemas", d.schemas(2)),
		since(d.base && v >= 7, "finished_checkpoints", listOf(fields("", field{"split", utf}, field{"checkpoint", i64}), 10)),
		since(v >= chunk, "splitting_table", next),
	}
}

// enumeratorPosition is the position of an enumerator of a version: version 1 has
// the layout of that version.
func (d cdcDialect) enumeratorPosition(v int32) layout { return d.position(min(v, 2)) }

// cdcSplit is a split in the state of an enumerator, of the version in its field
// before; the reader of the enumerator sets it.
type cdcSplit struct{ d cdcDialect }

func (l cdcSplit) read(r *reader) value.Value {
	p := r.Blob("a split")
	if r.Err() != nil {
		return value.Null()
	}
	return frame{"split", l.known()}.body(r, r.splits, p)
}

func (l cdcSplit) known() set {
	if l.d.base {
		return baseSplits
	}
	return mysqlSplits
}

func (l cdcSplit) write(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok {
		w.fail("expected a record with a version, found the fields %q", names(v))
		return
	}
	if version != w.splits {
		w.fail("expected a split of version %d, found %d", w.splits, version)
		return
	}
	w.sized(func() { frame{"split", l.known()}.writeBody(w, version, v) })
}

// setVersion is the int that is the version of the splits after it.
type setVersion struct{}

func (setVersion) read(r *reader) value.Value {
	r.splits = r.I32()
	return value.Int(int64(r.splits))
}

func (setVersion) write(w *writer, v value.Value) {
	i32.write(w, v)
	w.splits = int32(v.Int())
}

// enumeratorOf is PendingSplitsState.
func (d cdcDialect) enumeratorOf(v int32) record {
	class := "PendingSplitsState"
	if !d.base {
		class = "MySqlPendingSplitsState"
	}
	changes := field{"change_log_assigned", boolean}
	return fields(class, field{"split_version", setVersion{}}, field{"state", eitherKind{map[int32]record{
		1: fields("SnapshotPendingSplitsState", d.snapshotState(v)...),
		2: fields("StreamPendingSplitsState", changes),
		3: fields("HybridPendingSplitsState", append(d.snapshotState(v), changes)...),
	}}})
}
