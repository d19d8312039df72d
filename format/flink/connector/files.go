package connector

import (
	"encoding/binary"
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// flinkString is StringUtils.writeString: a uvarint of the length plus one, where 0 is
// null, and a uvarint for each UTF-16 unit.
var flinkString = scalar{
	typ: nullable(stringType),
	get: func(r *reader) value.Value {
		off := r.Offset()
		n := r.uvarint(32)
		switch {
		case r.Err() != nil || n == 0:
			return value.Null()
		case n-1 > uint64(r.Remaining()):
			r.Fail(off, format.ErrTruncated, "cut short: expected a string of %d characters, %d bytes left", n-1, r.Remaining())
			return value.Null()
		}
		units := make([]uint16, n-1)
		for i := range units {
			at := r.Offset()
			u := r.uvarint(32)
			if u > math.MaxUint16 {
				r.Fail(at, format.ErrCorrupt, "character %x has more than 16 bits", u)
				return value.Null()
			}
			units[i] = uint16(u)
		}
		s := fromUTF16(units)
		r.mustBeText(off, s)
		return value.String(s)
	},
	put: func(w *writer, v value.Value) {
		if v.IsNull() {
			w.uvarint(0, 32)
			return
		}
		if !w.expects(v, value.KindString) {
			return
		}
		units := toUTF16(v.Text())
		w.uvarint(uint64(len(units))+1, 32)
		for _, u := range units {
			w.uvarint(uint64(u), 32)
		}
	},
}

// fileSplit is FileSourceSplit (spec flink-connector-states 7.1).
func fileSplit(int32) record {
	text := opt(flinkString)
	path := fields("", field{"scheme", text}, field{"user_info", text}, field{"host", text}, field{"port", i32},
		field{"path", text}, field{"query", text}, field{"fragment", text})
	position := fields("", field{"offset", i64}, field{"records_after_offset", i64})
	return fields("FileSourceSplit", field{"id", utf}, field{"path", opt(path)}, field{"offset", i64}, field{"length", i64},
		field{"modification_time", i64}, field{"file_size", i64}, field{"hosts", listOf(utf, 2)}, field{"position", opt(position)})
}

// fileEnumerator is PendingSplitsCheckpoint: int magic, int version of the splits, int
// splits, int paths, the splits and the paths. All its numbers are little-endian.
func fileEnumerator(int32) record {
	return fields("PendingSplitsCheckpoint", field{"pending", magic{0xdeadbeef, binary.LittleEndian, pendingSplits{}}})
}

type pendingSplits struct{}

var pendingShape = &value.Shape{Names: []string{"version", "splits", "processed_paths"}}

func (pendingSplits) read(r *reader) value.Value {
	version := int32(number(4, binary.LittleEndian).read(r).Int())
	off := r.Offset()
	splits, paths := number(4, binary.LittleEndian).read(r).Int(), number(4, binary.LittleEndian).read(r).Int()
	r.CheckCount(off, int(splits), "splits", 4)
	r.CheckCount(off+4, int(paths), "paths", 4)
	var all, processed []value.Value
	for i := int64(0); i < splits && r.Err() == nil; i++ {
		p := []byte(sized(binary.LittleEndian, false).read(r).Text())
		if r.Err() == nil {
			all = append(all, frame{"split", fileSplits}.body(r, version, p))
		}
	}
	for i := int64(0); i < paths && r.Err() == nil; i++ {
		processed = append(processed, textLE.read(r))
	}
	return value.Record(pendingShape, []value.Value{value.Int(int64(version)), value.List(all), value.List(processed)})
}

func (pendingSplits) write(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok || v.Len() != 3 || !w.expects(v.At(1), value.KindList) || !w.expects(v.At(2), value.KindList) {
		w.fail("expected the fields %q, found %q", pendingShape.Names, names(v))
		return
	}
	le := number(4, binary.LittleEndian)
	splits, paths := v.At(1), v.At(2)
	for _, n := range []int64{int64(version), int64(splits.Len()), int64(paths.Len())} {
		le.write(w, value.Int(n))
	}
	for i := range splits.Len() {
		inner := writer{}
		if own, ok := versionOf(splits.At(i)); !ok || own != version {
			w.fail("split %d: expected version %d", i, version)
			return
		}
		frame{"split", fileSplits}.writeBody(&inner, version, splits.At(i))
		if inner.err != nil {
			w.fail("%v", inner.err)
			return
		}
		sized(binary.LittleEndian, false).write(w, value.Bytes(inner.p))
	}
	for i := range paths.Len() {
		textLE.write(w, paths.At(i))
	}
}

var fileSplits = one("FileSource", 1, fileSplit(1))

// bucketID is the framing of SimpleVersionedStringSerializer, version 1: its length is
// little-endian.
var bucketID = frame{"bucket id", bucketIDs}

var bucketIDs = one("FileSink", 1, fields("BucketId", field{"id", textLE}))

// recoverable is a position in a file that is being written, or the end of one that
// is ready to be committed, by file system (7.3).
var recoverable = frame{"recoverable", recoverables}

var recoverables = func() (all candidates) {
	le := binary.LittleEndian
	local := func(class string, number uint32) record {
		return fields(class, field{"file", magic{number, le, localRecoverable{}}})
	}
	multipart := func(class string, number uint32) record {
		part := fields("", field{"number", number4LE}, field{"etag", textLE})
		return fields(class, field{"upload", magic{number, le, fields("", field{"object", textLE}, field{"upload_id", textLE},
			field{"parts", listLE{part, 8}}, field{"bytes_in_parts", i64le}, field{"incomplete_object", textLE}, field{"incomplete_length", i64le})}})
	}
	uuid := fields("", field{"high", i64}, field{"low", i64})
	gs := []field{{"bucket", utf}, {"object", utf}, {"components", listOf(uuid, 16)}}
	for _, r := range []record{
		local("LocalRecoverable", 0x1e744b57), local("HadoopFsRecoverable", 0xd7436c5e),
		multipart("S3Recoverable", 0x98761432), multipart("OSSRecoverable", 0x98761234),
		fields("NativeS3Recoverable", field{"object", utf}, field{"upload_id", utf}, field{"bytes_in_parts", i64},
			field{"parts", listOf(fields("", field{"number", i32}, field{"etag", utf}), 6)},
			field{"incomplete", opt(fields("", field{"object", utf}, field{"length", i64}))}),
		fields("GSCommitRecoverable", gs...), fields("GSResumeRecoverable", append(gs, field{"position", i64}, field{"closed", boolean})...),
	} {
		all = append(all, one("FileSink", 1, r)...)
	}
	return all
}()

var number4LE = number(4, binary.LittleEndian)

// localRecoverable is long offset, int length of the target, int length of the
// temporary file, and the two paths.
type localRecoverable struct{}

var localShape = &value.Shape{Names: []string{"offset", "target", "temporary_file"}}

func (localRecoverable) read(r *reader) value.Value {
	offset := i64le.read(r)
	off := r.Offset()
	a, b := int(number4LE.read(r).Int()), int(number4LE.read(r).Int())
	r.CheckCount(off, a, "bytes", 1)
	r.CheckCount(off+4, b, "bytes", 1)
	target, temp := string(r.Bytes(max(a, 0), "a path")), string(r.Bytes(max(b, 0), "a path"))
	r.mustBeText(off, target)
	r.mustBeText(off, temp)
	return value.Record(localShape, []value.Value{offset, value.String(target), value.String(temp)})
}

func (localRecoverable) write(w *writer, v value.Value) {
	if v.Len() != 3 || !w.expects(v.At(1), value.KindString) || !w.expects(v.At(2), value.KindString) {
		w.fail("expected the fields %q, found %q", localShape.Names, names(v))
		return
	}
	i64le.write(w, v.At(0))
	number4LE.write(w, value.Int(int64(len(v.At(1).Text()))))
	number4LE.write(w, value.Int(int64(len(v.At(2).Text()))))
	w.p = append(append(w.p, v.At(1).Text()...), v.At(2).Text()...)
}

// listLE is a list whose count is little-endian.
type listLE struct {
	of  layout
	min int
}

func (l listLE) read(r *reader) value.Value {
	n := r.length(binary.LittleEndian, "elements", l.min)
	var all []value.Value
	for i := 0; i < n && r.Err() == nil; i++ {
		all = append(all, l.of.read(r))
	}
	return value.List(all)
}

func (l listLE) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindList) {
		return
	}
	number4LE.write(w, value.Int(int64(v.Len())))
	for i := range v.Len() {
		l.of.write(w, v.At(i))
	}
}

// The serializers of part files have two versions; version 2 adds the path, and for a
// file that is ready its size.
var (
	inProgress = frame{"in-progress file", inProgressFiles}
	pending    = frame{"pending file", pendingFiles}

	inProgressFiles = versions("FileSink", 1, 2, func(v int32) record {
		return fields("InProgressFile", field{"file", magic{0xb3a4073d, binary.BigEndian, fields("",
			since(v >= 2, "path", opt(utf)), field{"resume", recoverable})}})
	})
	pendingFiles = versions("FileSink", 1, 2, func(v int32) record {
		return fields("PendingFile", field{"file", magic{0x2c853c89, binary.BigEndian, fields("",
			since(v >= 2, "path", opt(utf)), since(v >= 2, "size", i64), field{"commit", recoverable})}})
	})
)

// fileBucket is FileWriterBucketState, and BucketState of StreamingFileSink (7.3,
// 7.4).
func fileBucket(class string) func(v int32) record {
	return func(v int32) record {
		current, ready := layout(inProgress), layout(versionedGroups{pending})
		if v == 1 {
			current, ready = recoverable, versionedGroups{recoverable}
		}
		return fields(class, field{"bucket", magic{0x1e764b79, binary.BigEndian, fields("",
			field{"id", bucketID}, field{"path", utf}, field{"creation_time", i64}, field{"in_progress", opt(current)},
			since(v <= 2, "pending", ready))}})
	}
}

// versionedGroups is the files of checkpoints:
//
//	int  version of the files
//	int  checkpoints, each: long id, int n, n x (int length, file)
type versionedGroups struct{ frame }

var (
	groupsShape = &value.Shape{Names: []string{"version", "checkpoints"}}
	groupShape  = &value.Shape{Names: []string{"checkpoint", "files"}}
)

func (l versionedGroups) read(r *reader) value.Value {
	version := r.I32()
	n := r.Count("checkpoints", 12)
	var all []value.Value
	for i := 0; i < n && r.Err() == nil; i++ {
		id, k := r.I64(), r.Count("files", 4)
		var files []value.Value
		for ; k > 0 && r.Err() == nil; k-- {
			if p := r.Blob("a file"); r.Err() == nil {
				files = append(files, l.body(r, version, p))
			}
		}
		all = append(all, value.Record(groupShape, []value.Value{value.Int(id), value.List(files)}))
	}
	return value.Record(groupsShape, []value.Value{value.Int(int64(version)), value.List(all)})
}

func (l versionedGroups) write(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok || v.Len() != 2 || !w.expects(v.At(1), value.KindList) {
		w.fail("expected the fields %q, found %q", groupsShape.Names, names(v))
		return
	}
	w.int32(int(version))
	w.int32(v.At(1).Len())
	for i := range v.At(1).Len() {
		g := v.At(1).At(i)
		if g.Len() != 2 || !w.expects(g.At(1), value.KindList) {
			w.fail("expected the fields %q, found %q", groupShape.Names, names(g))
			return
		}
		i64.write(w, g.At(0))
		w.int32(g.At(1).Len())
		for k := range g.At(1).Len() {
			if !l.writeSized(w, version, g.At(1).At(k), "file", k) {
				return
			}
		}
	}
}

// fileCommittable is FileSinkCommittable (7.3).
func fileCommittable(v int32) record {
	return fields("FileSinkCommittable", field{"committable", magic{0x1e765c80, binary.BigEndian, fields("",
		since(v >= 2, "bucket", utf), field{"pending", opt(pending)}, field{"in_progress_to_clean_up", opt(inProgress)},
		since(v >= 2, "compacted_to_clean_up", opt(utf)))}})
}

// compactRequest and compactRequests are the requests of a compactor (7.5).
var (
	compactFiles    = framesOf("committable", fileCommittables)
	compactRequests = framesOf("request",
		one("FileSink", 1, fields("FileSinkCompactRequest", field{"request", magic{0x2fc61e19, binary.BigEndian, fields("",
			field{"bucket", utf}, field{"compact", compactFiles}, field{"pass_through", compactFiles})}})))
	fileCommittables = versions("FileSink", 1, 2, fileCommittable)
)

func remainingRequests(int32) record {
	return fields("RemainingRequests", field{"requests", magic{0xa946be83, binary.BigEndian,
		listOf(fields("", field{"checkpoint", i64}, field{"requests", compactRequests}), 16)}})
}
