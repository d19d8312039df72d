package connector

import (
	"unicode/utf16"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/value"
)

func fromUTF16(units []uint16) string {
	for i := 0; i < len(units); i++ {
		if units[i]&0xf800 != 0xd800 {
			continue
		}
		if units[i] >= 0xdc00 || i+1 == len(units) || units[i+1]&0xfc00 != 0xdc00 {
			return "\xff" // half a surrogate pair is not text
		}
		i++
	}
	return string(utf16.Decode(units))
}

func toUTF16(s string) []uint16 { return utf16.Encode([]rune(s)) }

// numberSplit is IteratorSourceSplit of NumberSequenceSource, and of the data
// generator (spec flink-connector-states 7.2).
func numberSplit(int32) record {
	return fields("NumberSequenceSplit", field{"id", utf}, field{"from", i64}, field{"to", i64})
}

func numberEnumerator(int32) record {
	split := numberSplit(1)
	split.class = ""
	return fields("NumberSequenceSplits", field{"splits", listOf(split, 18)})
}

// hybridSplit is HybridSourceSplit (7.2).
func hybridSplit(int32) record {
	return fields("HybridSourceSplit", field{"source", i32}, field{"id", utf}, field{"split", frame{"split", allSplits{}}})
}

func hybridEnumerator(int32) record {
	return fields("HybridSourceEnumeratorState", field{"source", i32}, field{"enumerator", frame{"enumerator state", allEnumerators{}}})
}

// kinesisSplit is KinesisShardSplit (8.2).
func kinesisSplit(v int32) record {
	marker := notNull{fields("", field{"timestamp", opt(i64)}, field{"sequence_number", opt(utf)})}
	return fields("KinesisShardSplit", field{"stream", utf}, field{"shard", utf}, field{"iterator", utf}, field{"marker", opt(marker)},
		since(v >= 1, "parents", listOf(utf, 2)), since(v >= 1, "start_hash_key", utf), since(v >= 1, "end_hash_key", utf),
		since(v >= 2, "finished", boolean))
}

func kinesisEnumerator(v int32) record {
	status := assigned
	if v == 0 {
		status = nil
	}
	return fields("KinesisStreamsSourceEnumeratorState", field{"last_seen_shard", opt(utf)},
		field{"splits", statusList{kinesisSplits, status}})
}

var kinesisSplits = versions("Kinesis", 0, 2, kinesisSplit)

// notNull is a record with at least one field that is not null.
type notNull struct{ record }

func (l notNull) read(r *reader) value.Value {
	off := r.Offset()
	v := l.record.read(r)
	for i := range v.Len() {
		if !v.At(i).IsNull() {
			return v
		}
	}
	r.Fail(off, format.ErrCorrupt, "none of %q is set", l.shape.Names)
	return value.Null()
}

// dynamoSplit is DynamoDbStreamsShardSplit (8.3).
func dynamoSplit(v int32) record {
	marker := notNull{fields("", field{"sequence_number", opt(utf)})}
	child := fields("", field{"shard", utf}, field{"parent", utf}, field{"starting_sequence_number", utf}, field{"ending_sequence_number", opt(utf)})
	return fields("DynamoDbStreamsShardSplit", field{"stream", utf}, field{"shard", utf}, field{"iterator", utf}, field{"marker", opt(marker)},
		field{"parent", opt(utf)}, since(v >= 1, "finished", boolean), since(v >= 2, "children", listOf(child, 7)))
}

func dynamoEnumerator(int32) record {
	return fields("DynamoDbStreamsSourceEnumeratorState",
		field{"splits", statusList{dynamoSplits, []string{"assigned", "unassigned", "finished"}}}, field{"start_timestamp", i64})
}

var dynamoSplits = versions("DynamoDB Streams", 0, 2, dynamoSplit)

// pulsarPartition is a TopicPartition (8.4).
func pulsarPartition(v int32) record {
	hashes := fields("", field{"start", i32}, field{"end", i32})
	ranges := field{"ranges", listOf(hashes, 8)}
	if v == 0 {
		ranges = field{"range", hashes}
	}
	return fields("", field{"topic", utf}, field{"partition", i32}, ranges, since(v == 1, "mode", i32))
}

func pulsarSplit(v int32) record {
	return fields("PulsarPartitionSplit", field{"partition", pulsarPartition(v)}, field{"stop_cursor", bytesOf},
		field{"message_id", opt(bytesOf)}, field{"transaction", opt(fields("", field{"most_bits", i64}, field{"least_bits", i64}))})
}

func pulsarEnumerator(v int32) record {
	return fields("PulsarSourceEnumState", field{"partitions", listOf(pulsarPartition(v-1), 10)})
}

func pulsarCommittable(int32) record {
	return fields("PulsarCommittable", field{"most_bits", i64}, field{"least_bits", i64}, field{"topic", utf})
}

// icebergSplit is IcebergSourceSplit (9.3).
func icebergSplit(v int32) record {
	if v == 1 {
		return fields("IcebergSourceSplit", field{"java", rest{javaBytes}})
	}
	task := layout(utf)
	if v >= 3 {
		task = longUTF
	}
	return fields("IcebergSourceSplit", field{"file_offset", i32}, field{"record_offset", i64}, field{"tasks", listOf(task, 2)})
}

var icebergSplits = versions("Iceberg", 1, 3, icebergSplit)

func icebergEnumerator(v int32) record {
	position := frame{"position", icebergPositions}
	return fields("IcebergEnumeratorState", field{"position", opt(position)}, field{"splits", icebergStatuses{}},
		since(v >= 2, "split_count_history", listOf(i32, 4)))
}

var icebergPositions = one("Iceberg", 1, fields("IcebergEnumeratorPosition", field{"snapshot", opt(i64)}, field{"timestamp_ms", opt(i64)}))

// icebergStatuses is int version of the splits, int n, n x (int length, split, UTF
// status).
type icebergStatuses struct{}

func (icebergStatuses) read(r *reader) value.Value {
	version := r.I32()
	n := r.Count("splits", 6)
	var all []value.Value
	for i := 0; i < n && r.Err() == nil; i++ {
		if p := r.Blob("a split"); r.Err() == nil {
			split := frame{"split", icebergSplits}.body(r, version, p)
			all = append(all, value.Record(statusShape, []value.Value{split, utf.read(r)}))
		}
	}
	return value.Record(statusListShape, []value.Value{value.Int(int64(version)), value.List(all)})
}

func (icebergStatuses) write(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok || v.Len() != 2 || !w.expects(v.At(1), value.KindList) {
		w.fail("expected the fields %q, found %q", statusListShape.Names, names(v))
		return
	}
	w.int32(int(version))
	w.int32(v.At(1).Len())
	for i := range v.At(1).Len() {
		e := v.At(1).At(i)
		if e.Len() != 2 {
			w.fail("expected the fields %q, found %q", statusShape.Names, names(e))
			return
		}
		if !(frame{"split", icebergSplits}).writeSized(w, version, e.At(0), "split", i) {
			return
		}
		utf.write(w, e.At(1))
	}
}

// longUTF is modified UTF-8 with a 4-byte length.
var longUTF = scalar{
	typ: stringType,
	get: func(r *reader) value.Value {
		off := r.Offset()
		p := r.Blob("a string")
		t, ok := java.DecodeText(p)
		if r.Err() == nil && !ok {
			r.Fail(off, format.ErrCorrupt, "a string that is not modified UTF-8")
		}
		r.mustBeText(off, t.String())
		return value.String(t.String())
	},
	put: func(w *writer, v value.Value) {
		if !w.expects(v, value.KindString) {
			return
		}
		w.sized(func() {
			p, ok := java.EncodeText(w.p, v.Text())
			if !ok {
				w.fail("a string that is not UTF-8")
			}
			w.p = p
		})
	},
}

// paimonSplit is FileStoreSourceSplit (10).
func paimonSplit(int32) record {
	return fields("FileStoreSourceSplit", field{"id", utf}, field{"split", javaBytes}, field{"records_to_skip", i64})
}

func paimonEnumerator(int32) record {
	return fields("PaimonPendingSplitsCheckpoint", field{"splits", listOf(inBytes{paimonSplitBody}, 4)}, field{"snapshot", nullAs{i64, -1}})
}

var paimonSplitBody = func() record {
	r := paimonSplit(1)
	r.class = ""
	return r
}()

// legacyKinesisPosition is an element of FlinkKinesisConsumer (8.1): a tuple of a
// POJO StreamShardMetadata and a SequenceNumber written by Kryo. Kryo writes the
// fields in the order of their names.
//
//	byte 02       flags of the POJO: no subclass
//	8 fields      bool null, else string
//	varint        class id
//	byte 01       a new object
//	zz varint     cached hash
//	byte 01       a new object
//	string        sequence number, as Kryo writes it
//	zz varlong    sub-sequence number
type legacyKinesisPosition struct{}

var legacyKinesisShape = &value.Shape{Names: []string{"adjacent_parent_shard", "ending_hash_key", "ending_sequence_number", "parent_shard",
	"shard", "starting_hash_key", "starting_sequence_number", "stream", "sequence_number", "sub_sequence_number"}}

const kinesisStrings = 8

func (legacyKinesisPosition) read(r *reader) value.Value {
	off := r.Offset()
	if b := r.U8(); r.Err() == nil && b != 2 {
		r.Fail(off, format.ErrUnsupported, "expected the flags 02 of a StreamShardMetadata, found %02x", b)
	}
	parts := make([]value.Value, 0, kinesisStrings+2)
	for range kinesisStrings {
		parts = append(parts, optional{flinkString, true}.read(r))
	}
	class := r.kryoStart()
	off = r.Offset()
	hash := int32(r.zigzag(32))
	r.newObject()
	number := r.kryoString()
	sub := r.zigzag(64)
	if r.Err() == nil && hash != kinesisHash(number, sub) {
		r.Fail(off, format.ErrUnsupported, "a cached hash that is not the hash of the sequence number")
	}
	parts = append(parts, value.String(number), value.Int(sub))
	return value.Record(legacyKinesisShape, parts).WithClass("StreamShardMetadata").WithVariant(class)
}

func kinesisHash(number string, sub int64) int32 {
	return 37 * (java.HashString(number) + int32(sub^int64(uint64(sub)>>32)))
}

func (legacyKinesisPosition) write(w *writer, v value.Value) {
	if v.Len() != len(legacyKinesisShape.Names) {
		w.fail("expected the fields %q, found %q", legacyKinesisShape.Names, names(v))
		return
	}
	w.p = append(w.p, 2)
	for i := range kinesisStrings {
		optional{flinkString, true}.write(w, v.At(i))
	}
	number, sub := v.At(kinesisStrings), v.At(kinesisStrings+1)
	if !w.expects(number, value.KindString) || !w.expects(sub, value.KindInt) {
		return
	}
	w.p = append(w.p, v.Variant()^kryoClass, 1)
	w.zigzag(int64(kinesisHash(number.Text(), sub.Int())), 32)
	w.p = append(w.p, 1)
	w.kryoString(number.Text())
	w.zigzag(sub.Int(), 64)
}
