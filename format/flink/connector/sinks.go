package connector

import (
	"encoding/binary"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// Magic numbers of committers. Wire format: never change.
const (
	collectorMagic = 0xb91f252c
	globalMagic    = 0xb91f252b
)

var (
	committable = frame{"committable", committables}

	commitStates = []string{"RECEIVED", "RETRY", "FAILED", "COMMITTED"}

	commitRequests = framesOf("request",
		one("Flink", 0, fields("CommitRequest", field{"committable", committable}, field{"retries", i32}, field{"state", enum{i32, commitStates}})))
	subtaskCommits = framesOf("subtask", subtaskCommittables)

	subtaskCommittables = versions("Flink", 0, 2, func(v int32) record {
		return fields("SubtaskCommittables", since(v >= 1, "subtask", i32), field{"requests", commitRequests},
			field{"committables", i32}, since(v < 2, "drained", i32), field{"failed", i32})
	})
	checkpointCommits = framesOf("checkpoint", versions("Flink", 0, 1, func(v int32) record {
		return fields("CheckpointCommittables", field{"checkpoint", i64}, since(v >= 1, "subtasks_of_checkpoint", i32), field{"subtasks", subtaskCommits})
	}))
	plainCommits = framesOf("committable", committables)

	collector = frame{"committer state", collectors}
)

// collectors are the versions of CommittableCollector (spec flink-connector-states
// 6.2). Version 1 is a list of committables of Flink 1.12 to 1.14.
var collectors = append(
	one("Flink", 1, fields("CommittableCollector", field{"committables", magic{collectorMagic, binary.BigEndian, plainCommits}})),
	one("Flink", 2, fields("CommittableCollector", field{"checkpoints", magic{collectorMagic, binary.BigEndian, checkpointCommits}}))...)

// globalCollectors are the versions of the state of a global committer (6.3). Version
// 1 is the bytes of version 1 of a collector.
var globalCollectors = one("Flink", 2, fields("GlobalCommittableWrapper", field{"state", magic{globalMagic, binary.BigEndian, fields("",
	field{"global", opt(plainCommits)}, field{"collector", collector})}}))

// asyncWriter is BufferedRequestState of an asynchronous sink (6.4): long -1, int n,
// n x (long size, request). Only the request differs between sinks.
func asyncWriter(class string, request layout, min int) record {
	return fields(class, field{"requests", afterMinusOne{listOf(request, 8+min)}})
}

// afterMinusOne is a layout after a long -1.
type afterMinusOne struct{ of layout }

func (l afterMinusOne) read(r *reader) value.Value {
	off := r.Offset()
	if n := r.I64(); r.Err() == nil && n != -1 {
		r.Fail(off, format.ErrCorrupt, "expected -1, found %d", n)
	}
	return l.of.read(r)
}

func (l afterMinusOne) write(w *writer, v value.Value) {
	i64.write(w, value.Int(-1))
	l.of.write(w, v)
}

// sizedRequest is long size, size bytes, and what follows them.
type sizedRequest struct{ after layout }

var sizedShape = &value.Shape{Names: []string{"data", "key"}}

func (l sizedRequest) read(r *reader) value.Value {
	off := r.Offset()
	n := r.I64()
	if r.Err() == nil && (n < 0 || n > int64(r.Remaining())) {
		r.Fail(off, format.ErrTruncated, "cut short: expected a request of %d bytes, %d left", n, r.Remaining())
	}
	if r.Err() != nil {
		return value.Null()
	}
	parts := []value.Value{value.Bytes(r.Bytes(int(n), "a request")), value.Null()}
	if l.after != nil {
		parts[1] = l.after.read(r)
	}
	return value.Record(sizedShape, parts)
}

func (l sizedRequest) write(w *writer, v value.Value) {
	if v.Len() != 2 || !w.expects(v.At(0), value.KindBytes) {
		w.fail("expected the fields %q, found %q", sizedShape.Names, names(v))
		return
	}
	i64.write(w, value.Int(int64(len(v.At(0).Text()))))
	w.p = append(w.p, v.At(0).Text()...)
	if l.after != nil {
		l.after.write(w, v.At(1))
	}
}

// charText is UTF-8 whose length is stored as the number of UTF-16 units. Flink reads
// that many bytes, so only ASCII is read back.
var charText = scalar{
	typ: stringType,
	get: func(r *reader) value.Value {
		off := r.Offset()
		s := textOf.read(r)
		for i := range len(s.Text()) {
			if s.Text()[i] >= 0x80 && r.Err() == nil {
				r.Fail(off, format.ErrUnsupported, "a key that is not ASCII, whose length is in characters")
			}
		}
		return s
	},
	put: func(w *writer, v value.Value) {
		for i := range len(v.Text()) {
			if v.Text()[i] >= 0x80 {
				w.fail("a key that is not ASCII")
			}
		}
		textOf.write(w, v)
	},
}

// dynamoRequest is long size, byte kind, and an item.
var dynamoRequest = fields("", field{"size", i64}, field{"kind", enum{i8, []string{"put", "delete"}}}, field{"item", dynamoItem})

var dynamoItem = listOf(fields("", field{"name", utf}, field{"value", dynamoAttribute{}}), 3)

// dynamoValue is a byte type and a body (6.4).
var dynamoValue layout = tagged{"DynamoDB value", []tag{
	tagOf("string", utf), tagOf("number", utf), tagOf("boolean", boolean), tagOf("null", nothing), tagOf("binary", bytesOf),
	tagOf("strings", listOf(utf, 2)), tagOf("numbers", listOf(utf, 2)), tagOf("binaries", listOf(bytesOf, 4)),
	tagOf("list", listOf(dynamoAttribute{}, 1)), tagOf("map", dynamoMap{}),
}}

// dynamoAttribute and dynamoMap are values in values.
type (
	dynamoAttribute struct{}
	dynamoMap       struct{}
)

func (dynamoAttribute) read(r *reader) value.Value     { return dynamoValue.read(r) }
func (dynamoAttribute) write(w *writer, v value.Value) { dynamoValue.write(w, v) }
func (dynamoMap) read(r *reader) value.Value           { return dynamoItem.read(r) }
func (dynamoMap) write(w *writer, v value.Value)       { dynamoItem.write(w, v) }

var nothing = scalar{typ: nullType, get: func(*reader) value.Value { return value.Null() }, put: func(*writer, value.Value) {}}

type tag struct {
	name  string
	of    layout
	shape *value.Shape // of the record
}

func tagOf(name string, of layout) tag { return tag{name, of, &value.Shape{Names: []string{name}}} }

// tagged is a byte that tells which layout follows; its value is a record with one
// field.
type tagged struct {
	what string
	of   []tag
}

func (l tagged) read(r *reader) value.Value {
	off := r.Offset()
	k := int(r.U8())
	if r.Err() == nil && k >= len(l.of) {
		r.Fail(off, format.ErrCorrupt, "%d is not the type of a %s", k, l.what)
	}
	if r.depth++; r.depth > maxNested {
		r.Fail(off, format.ErrLimit, "more than %d values in each other", maxNested)
	}
	if r.Err() != nil {
		return value.Null()
	}
	t := l.of[k]
	v := value.Record(t.shape, []value.Value{t.of.read(r)})
	r.depth--
	return v
}

// maxNested bounds lists and maps in each other: DynamoDB allows 32.
const maxNested = 64

func (l tagged) write(w *writer, v value.Value) {
	for k, t := range l.of {
		if v.Len() == 1 && v.Name(0) == t.name {
			w.p = append(w.p, byte(k))
			t.of.write(w, v.At(0))
			return
		}
	}
	w.fail("expected a %s, found the fields %q", l.what, names(v))
}

// writers are the structures in writer_raw_states.
var writers = concat(
	versions("Kafka", 1, 2, kafkaWriter),
	versions("FileSink", 1, 3, fileBucket("FileWriterBucketState")),
	one("Kinesis", 1, asyncWriter("KinesisStreamsWriterState", sizedRequest{charText}, 4)),
	one("Kinesis Firehose", 1, asyncWriter("KinesisFirehoseWriterState", sizedRequest{}, 0)),
	one("SQS", 1, asyncWriter("SqsWriterState", sizedRequest{charText}, 4)),
	one("DynamoDB", 1, asyncWriter("DynamoDbWriterState", dynamoRequest, 5)),
	one("Iceberg", 0, fields("IcebergWriterState", field{"job", utf}, field{"operator", utf})),
	one("Paimon", 0, fields("PaimonWriterState", field{"commit_user", utf})),
)

// committables are the structures in a committer of a unified sink.
var committables = concat(
	one("Kafka", 1, kafkaCommittable(1)),
	versions("FileSink", 1, 2, fileCommittable),
	one("Pulsar", 1, pulsarCommittable(1)),
	one("Iceberg", 1, fields("IcebergCommittable", field{"job", utf}, field{"operator", utf}, field{"checkpoint", i64}, field{"manifests", inBytes{deltaManifests}})),
	versions("Iceberg", 1, 2, icebergDynamic),
	one("Iceberg", 1, fields("DynamicWriteResult", field{"target", icebergTarget}, field{"result", rest{javaBytes}})),
	one("Iceberg", 1, fields("DynamicWriteResult", field{"table", utf}, field{"branch", utf}, field{"partition_spec", i32}, field{"result", rest{javaBytes}})),
	versions("Paimon", 1, 5, paimonManifest),
	one("Paimon", 1, paimonWrapped),
)

func concat(all ...candidates) (out candidates) {
	for _, c := range all {
		out = append(out, c...)
	}
	return out
}

// icebergTarget is WriteTarget (9.2). Iceberg 1.10 writes it in committables and in
// results; later versions write parts of it, in results without another version.
var icebergTarget = fields("", field{"table", utf}, field{"branch", utf}, field{"schema", i32}, field{"partition_spec", i32}, field{"upsert", boolean},
	field{"equality_fields", listOf(i32, 4)})

// icebergDynamic is DynamicCommittable (9.2).
func icebergDynamic(v int32) record {
	if v == 1 {
		return fields("DynamicCommittable", field{"target", icebergTarget}, field{"job", utf}, field{"operator", utf}, field{"checkpoint", i64}, field{"manifests", inBytes{deltaManifests}})
	}
	return fields("DynamicCommittable", field{"table", utf}, field{"branch", utf}, field{"job", utf}, field{"operator", utf}, field{"checkpoint", i64},
		field{"manifests", listOf(inBytes{deltaManifests}, 4)})
}

// deltaManifests is DeltaManifests (9.1).
var deltaManifests = frame{"delta manifests", manifestVersions}

var manifestVersions = append(
	one("Iceberg", 1, fields("DeltaManifests", field{"data", remaining})),
	one("Iceberg", 2, fields("DeltaManifests", field{"data", bytesOf}, field{"deletes", bytesOf}, field{"referenced_data_files", listOf(utf, 2)}))...)

// remaining is all bytes that are left.
var remaining = scalar{
	typ: bytesType,
	get: func(r *reader) value.Value { return value.Bytes(r.Bytes(r.Remaining(), "bytes")) },
	put: func(w *writer, v value.Value) {
		if w.expects(v, value.KindBytes) {
			w.p = append(w.p, v.Text()...)
		}
	},
}

// icebergCheckpoints is an element of iceberg-files-committer-state (9.1): int n, n x
// (long checkpoint, bool null, int length, delta manifests).
var icebergCheckpoints = fields("IcebergFilesCommitterState", field{"checkpoints",
	listOf(fields("", field{"checkpoint", i64}, field{"manifests", optional{inBytes{deltaManifests}, true}}), 9)})

// paimonManifest is ManifestCommittable (10).
func paimonManifest(v int32) record {
	return fields("ManifestCommittable", field{"identifier", i64}, field{"watermark", optional{i64, true}},
		since(v <= 4, "log_offsets", listOf(fields("", field{"bucket", i32}, field{"offset", i64}), 12)),
		since(v >= 4, "properties", listOf(fields("", field{"key", utf}, field{"value", utf}), 4)),
		field{"messages", paimonMessages{}})
}

// paimonMessages is int version, int n, n commit messages.
type paimonMessages struct{}

var messagesShape = &value.Shape{Names: []string{"version", "messages"}}

func (paimonMessages) read(r *reader) value.Value {
	off := r.Offset()
	version := r.I32()
	of, ok := paimonMessage(version)
	if r.Err() == nil && !ok {
		r.Fail(off, format.ErrUnsupported, "commit messages of version %d are not decoded", version)
	}
	if r.Err() != nil {
		return value.Null()
	}
	return value.Record(messagesShape, []value.Value{value.Int(int64(version)), listOf(of, 8).read(r)})
}

func (paimonMessages) write(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok || v.Len() != 2 {
		w.fail("expected the fields %q, found %q", messagesShape.Names, names(v))
		return
	}
	of, ok := paimonMessage(version)
	if !ok {
		w.fail("commit messages of version %d are not encoded", version)
		return
	}
	w.int32(int(version))
	listOf(of, 8).write(w, v.At(1))
}

// paimonMessageFields are versions of commit messages whose fields differ.
var paimonMessageFields = []int32{3, 7, 10}

// paimonMessage is a CommitMessage (10). Rows are bytes of a BinaryRow; see
// paimonFileName.
func paimonMessage(v int32) (record, bool) {
	rows := listOf(bytesOf, 4)
	head := []field{{"partition", bytesOf}, {"bucket", i32}, since(v >= 7, "total_buckets", opt(i32))}
	switch {
	case v >= 10 && v <= 13:
		for _, name := range []string{"new_files", "deleted_files", "changelog_files", "new_index_files", "deleted_index_files",
			"compact_before", "compact_after", "compact_changelog", "compact_new_index_files", "compact_deleted_index_files"} {
			head = append(head, field{name, rows})
		}
	case v >= 3 && v <= 9:
		for _, name := range []string{"new_files", "deleted_files", "changelog_files", "compact_before", "compact_after", "compact_changelog",
			"new_index_files", "deleted_index_files"} {
			head = append(head, field{name, rows})
		}
	default:
		return record{}, false
	}
	return fields("", head...), true
}

// paimonWrapped is WrappedManifestCommittable (10). The version of the committables in
// it is not stored: it is the one of the release that wrote them.
var paimonWrapped = fields("WrappedManifestCommittable", field{"checkpoint", i64}, field{"watermark", i64},
	field{"tables", listOf(fields("", field{"table", textOf}, field{"committable", inBytes{anyVersion{paimonUnversioned}}}), 8)})

// paimonUnversioned are the versions of ManifestCommittable, newest first, without their
// classes: fields tell them apart.
var paimonUnversioned = func() (all []record) {
	for _, v := range []int32{5, 4, 3} {
		r := paimonManifest(v)
		r.class = ""
		all = append(all, r)
	}
	return all
}()

// anyVersion is the first of the versions of a structure that reads all bytes.
type anyVersion struct{ of []record }

func (l anyVersion) read(r *reader) value.Value {
	base := r.Offset()
	p := r.Bytes(r.Remaining(), "a structure")
	if r.Err() != nil {
		return value.Null()
	}
	var first *reader
	for _, of := range l.of {
		part := r.part(p)
		v := of.read(part)
		if part.end(); part.Err() == nil {
			return v
		}
		if first == nil {
			first = part
		}
	}
	r.Adopt(&first.Cursor, base)
	return value.Null()
}

func (l anyVersion) write(w *writer, v value.Value) {
	fields := names(v)
	for _, of := range l.of {
		if slices.Equal(fields, of.shape.Names) {
			of.write(w, v)
			return
		}
	}
	w.fail("expected the fields %q, found %q", l.of[0].shape.Names, fields)
}

// paimonFileName returns the first field of a row of files, its name: a BinaryRow with
// a null bit per field, and 8 bytes per field; a string is inline or at an offset
// (spec flink-serializers B11).
func paimonFileName(row string) (string, bool) {
	p := []byte(row)
	if len(p) < 8+8*5 {
		return "", false
	}
	word := p[8:16]
	if word[7]&0x80 != 0 {
		if n := int(word[7] & 0x7f); n <= 7 {
			return string(word[:n]), true
		}
		return "", false
	}
	u := binary.LittleEndian.Uint64(word)
	off, n := u>>32, u&0xffffffff
	if off > uint64(len(p)) || n > uint64(len(p))-off || n == 0 || off < 8+8*5 {
		return "", false
	}
	return string(p[off : off+n]), true
}
