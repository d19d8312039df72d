package connector

import (
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/value"
)

// noStop is the stopping offset of a split that has none. Wire format: never change.
const noStop = math.MinInt64

// kafkaSplit is KafkaPartitionSplit, version 0 (spec flink-connector-states 5.1).
//
//	UTF   topic
//	int   partition
//	long  offset of the next record, or a marker
//	long  stopping offset; Long.MIN_VALUE: none
func kafkaSplit(int32) record {
	return fields("KafkaPartitionSplit", field{"topic", utf}, field{"partition", i32}, field{"offset", i64}, field{"stopping_offset", nullAs{i64, noStop}})
}

// Names of the numbers in assignment states. Wire format: never change.
var assigned = []string{"assigned", "unassigned"}

// kafkaEnumerator is KafkaSourceEnumState (5.2).
//
//	version 0:  assignments: int subtasks, int version of the splits,
//	            each: int subtask, int n, n x (int length, split)
//	version 1:  int n, n x (UTF topic, int partition)
//	version 2:  int n, n x (UTF topic, int partition, int status), bool initial discovery finished
//	version 3:  int n, int version of the splits, n x (int length, split, int status), bool
func kafkaEnumerator(version int32) record {
	const class = "KafkaSourceEnumState"
	partition := []field{{"topic", utf}, {"partition", i32}}
	switch version {
	case 0:
		return fields(class, field{"assignments", splitAssignments{}})
	case 1:
		return fields(class, field{"partitions", listOf(fields("", partition...), 6)})
	case 2:
		return fields(class, field{"partitions", listOf(fields("", append(partition, field{"status", enum{i32, assigned}})...), 10)},
			field{"initial_discovery_finished", boolean})
	}
	return fields(class, field{"splits", statusList{allSplits{}, assigned}}, field{"initial_discovery_finished", boolean})
}

// splitAssignments is a count of subtasks before the version of the splits.
type splitAssignments struct{}

var subtaskSplits = &value.Shape{Names: []string{"subtask", "splits"}}

func (splitAssignments) read(r *reader) value.Value {
	off := r.Offset()
	n := int(r.I32())
	version := r.I32()
	r.CheckCount(off, n, "subtasks", 8)
	return readAssignments(r, n, version)
}

func (splitAssignments) write(w *writer, v value.Value) { writeAssignments(w, v) }

// assignmentsShape is the splits of each subtask, of one version.
var assignmentsShape = &value.Shape{Names: []string{"version", "subtasks"}}

func readAssignments(r *reader, n int, version int32) value.Value {
	var subtasks []value.Value
	for i := 0; i < n && r.Err() == nil; i++ {
		subtask := r.I32()
		count := r.Count("splits", 4)
		splits := make([]value.Value, 0, min(count, 1024))
		for range count {
			p := r.Blob("a split")
			if r.Err() != nil {
				break
			}
			splits = append(splits, frame{"split", allSplits{}}.body(r, version, p))
		}
		subtasks = append(subtasks, value.Record(subtaskSplits, []value.Value{value.Int(int64(subtask)), value.List(splits)}))
	}
	return value.Record(assignmentsShape, []value.Value{value.Int(int64(version)), value.List(subtasks)})
}

func writeAssignments(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok || v.Len() != 2 || v.At(1).Kind() != value.KindList {
		w.fail("expected the fields %q, found %q", assignmentsShape.Names, names(v))
		return
	}
	subtasks := v.At(1)
	w.int32(subtasks.Len())
	i32.write(w, v.At(0))
	for i := range subtasks.Len() {
		s := subtasks.At(i)
		if s.Len() != 2 || s.At(1).Kind() != value.KindList {
			w.fail("expected the fields %q, found %q", subtaskSplits.Names, names(s))
			return
		}
		i32.write(w, s.At(0))
		w.int32(s.At(1).Len())
		for k := range s.At(1).Len() {
			if !(frame{"split", allSplits{}}).writeSized(w, version, s.At(1).At(k), "split", k) {
				return
			}
		}
	}
}

// statusList is splits of one version with a status:
//
//	int  n
//	int  version of the splits
//	n x  int length, split, int status
type statusList struct {
	known  set
	status []string // nil: without a status
}

var (
	statusListShape = &value.Shape{Names: []string{"version", "splits"}}
	statusShape     = &value.Shape{Names: []string{"split", "status"}}
)

func (l statusList) read(r *reader) value.Value {
	off := r.Offset()
	n := int(r.I32())
	version := r.I32()
	r.CheckCount(off, n, "splits", 4)
	all := make([]value.Value, 0, max(min(n, 1024), 0))
	for i := 0; i < n && r.Err() == nil; i++ {
		p := r.Blob("a split")
		if r.Err() != nil {
			break
		}
		split := frame{"split", l.known}.body(r, version, p)
		if l.status != nil {
			split = value.Record(statusShape, []value.Value{split, enum{i32, l.status}.read(r)})
		}
		all = append(all, split)
	}
	return value.Record(statusListShape, []value.Value{value.Int(int64(version)), value.List(all)})
}

func (l statusList) write(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok || v.Len() != 2 || v.At(1).Kind() != value.KindList {
		w.fail("expected the fields %q, found %q", statusListShape.Names, names(v))
		return
	}
	all := v.At(1)
	w.int32(all.Len())
	i32.write(w, v.At(0))
	for i := range all.Len() {
		split := all.At(i)
		if l.status != nil {
			if split.Len() != 2 {
				w.fail("expected the fields %q, found %q", statusShape.Names, names(split))
				return
			}
			split = split.At(0)
		}
		if !(frame{"split", l.known}).writeSized(w, version, split, "split", i) {
			return
		}
		if l.status != nil {
			enum{i32, l.status}.write(w, all.At(i).At(1))
		}
	}
}

// dynamicKafkaSplit is DynamicKafkaSourceSplit (5.3): the Kafka split fills the rest.
func dynamicKafkaSplit(version int32) record {
	return fields("DynamicKafkaSourceSplit", field{"cluster", utf}, since(version >= 2, "retained_until", opt(i64)),
		field{"split", unsizedFrame{frame{"Kafka split", kafkaSplits}}})
}

var kafkaSplits = one("Kafka", 0, kafkaSplit(0))

// unsizedFrame is a version and bytes up to the end of the structure around them. Bytes
// that are not decoded are an error: any bytes would fit.
type unsizedFrame struct{ frame }

func (f unsizedFrame) read(r *reader) value.Value {
	off := r.Offset()
	version := r.I32()
	p := r.Bytes(r.Remaining(), "a split")
	if r.Err() != nil {
		return value.Null()
	}
	v := f.body(r, version, p)
	if isReason(v) {
		r.Fail(off, format.ErrUnsupported, "%s", v.At(1).Text())
	}
	return v
}

func (f unsizedFrame) write(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok {
		w.fail("expected a record with a version, found the fields %q", names(v))
		return
	}
	w.int32(int(version))
	f.writeBody(w, version, v)
}

// dynamicKafkaEnumerator is DynamicKafkaSourceEnumState (5.3).
func dynamicKafkaEnumerator(version int32) record {
	initializer := opt(bytesOf)
	cluster := fields("", field{"cluster", utf}, field{"topics", listOf(utf, 2)}, field{"bootstrap_servers", utf},
		since(version >= 2, "starting_offsets", initializer), since(version >= 2, "stopping_offsets", initializer))
	return fields("DynamicKafkaSourceEnumState",
		field{"streams", listOf(fields("", field{"stream", utf}, field{"clusters", listOf(cluster, 8)}), 6)},
		field{"clusters", versionedList{frame{"Kafka enumerator state", kafkaEnumerators}, version >= 3}})
}

var kafkaEnumerators = versions("Kafka", 0, 3, kafkaEnumerator)

// versionedList is the enumerator states of the clusters of a dynamic Kafka source:
//
//	int  version of the enumerator states
//	int  n, n x (UTF cluster, int length, state)
//	int  n, n x (UTF cluster, long retained until, int length, state)   since version 3
type versionedList struct {
	frame
	retained bool
}

var (
	clustersShape = &value.Shape{Names: []string{"version", "active", "retained"}}
	activeShape   = &value.Shape{Names: []string{"cluster", "enumerator"}}
	retainedShape = &value.Shape{Names: []string{"cluster", "retained_until", "enumerator"}}
)

func (l versionedList) read(r *reader) value.Value {
	version := r.I32()
	read := func(retained bool) value.Value {
		n := r.Count("clusters", 6)
		var all []value.Value
		for i := 0; i < n && r.Err() == nil; i++ {
			parts, shape := []value.Value{utf.read(r)}, activeShape
			if retained {
				parts, shape = append(parts, i64.read(r)), retainedShape
			}
			p := r.Blob("an enumerator state")
			if r.Err() == nil {
				all = append(all, value.Record(shape, append(parts, l.body(r, version, p))))
			}
		}
		return value.List(all)
	}
	active, retained := read(false), value.Null()
	if l.retained {
		retained = read(true)
	}
	return value.Record(clustersShape, []value.Value{value.Int(int64(version)), active, retained})
}

func (l versionedList) write(w *writer, v value.Value) {
	version, ok := versionOf(v)
	if !ok || v.Len() != 3 {
		w.fail("expected the fields %q, found %q", clustersShape.Names, names(v))
		return
	}
	w.int32(int(version))
	for i := 1; i <= 2 && (i == 1 || l.retained); i++ {
		if !w.expects(v.At(i), value.KindList) {
			return
		}
		w.int32(v.At(i).Len())
		for k := range v.At(i).Len() {
			c := v.At(i).At(k)
			if c.Len() != i+1 {
				w.fail("expected a cluster of %d fields, found %q", i+1, names(c))
				return
			}
			utf.write(w, c.At(0))
			if i == 2 {
				i64.write(w, c.At(1))
			}
			if !l.writeSized(w, version, c.At(i), "enumerator state", k) {
				return
			}
		}
	}
}

// kafkaWriter is KafkaWriterState (5.6).
func kafkaWriter(version int32) record {
	return fields("KafkaWriterState", field{"transactional_id_prefix", utf},
		since(version >= 2, "owned_subtask", i32), since(version >= 2, "owned_subtasks", i32),
		since(version >= 2, "ownership", enum{i32, []string{"IMPLICIT_BY_SUBTASK_ID", "EXPLICIT_BY_WRITER_STATE"}}),
		since(version >= 2, "precommitted", listOf(fields("", field{"transactional_id", utf}, field{"checkpoint", i64}), 10)))
}

// kafkaCommittable is KafkaCommittable (5.6).
func kafkaCommittable(int32) record {
	return fields("KafkaCommittable", field{"epoch", i16}, field{"producer_id", i64}, field{"transactional_id", utf})
}

// legacyKafkaPosition is an element of FlinkKafkaConsumer (5.4): a tuple of a
// KafkaTopicPartition written by Kryo, and the offset of the last record that was
// read. Kryo writes the fields in the order of their names.
//
//	varint       class id
//	byte 01      a new object
//	zz varint    cached hash: 31 * topic.hashCode() + partition
//	zz varint    partition
//	byte 01      a new object
//	string       topic, as Kryo writes it
//	long         offset
//
// The class id is the variant of the value, as the difference to 87, the id in all
// files that are known.
type legacyKafkaPosition struct{}

const kryoClass = 87 // id 85, plus 2. Wire format: never change.

var legacyKafkaShape = &value.Shape{Names: []string{"topic", "partition", "offset"}}

func (legacyKafkaPosition) read(r *reader) value.Value {
	class := r.kryoStart()
	hash := r.zigzag(32)
	partition := r.zigzag(32)
	r.newObject()
	off := r.Offset()
	topic := r.kryoString()
	offset := r.I64()
	if r.Err() == nil && int32(hash) != kafkaHash(topic, int32(partition)) {
		r.Fail(off, format.ErrUnsupported, "a cached hash that is not the hash of the topic and the partition")
	}
	return value.Record(legacyKafkaShape, []value.Value{value.String(topic), value.Int(partition), value.Int(offset)}).WithClass("KafkaTopicPartition").WithVariant(class)
}

func kafkaHash(topic string, partition int32) int32 { return 31*java.HashString(topic) + partition }

func (legacyKafkaPosition) write(w *writer, v value.Value) {
	if v.Len() != 3 || !w.expects(v.At(0), value.KindString) || !w.expects(v.At(1), value.KindInt) {
		w.fail("expected the fields %q, found %q", legacyKafkaShape.Names, names(v))
		return
	}
	partition := v.At(1).Int()
	if int64(int32(partition)) != partition {
		w.fail("partition %d does not fit into 32 bits", partition)
	}
	w.p = append(w.p, v.Variant()^kryoClass, 1)
	w.zigzag(int64(kafkaHash(v.At(0).Text(), int32(partition))), 32)
	w.zigzag(partition, 32)
	w.p = append(w.p, 1)
	w.kryoString(v.At(0).Text())
	i64.write(w, v.At(2))
}

// kafkaHint is an element of next-transactional-id-hint-v2 of FlinkKafkaProducer
// (5.5).
var kafkaHint = fields("NextTransactionalIdHint", field{"next_free_transactional_id", i64}, field{"last_parallelism", i32})

// kafkaTransactions is the state of the two-phase commit of FlinkKafkaProducer (5.5).
// Since Flink 1.14 the pending transaction may be null.
func kafkaTransactions(nullable bool) record {
	transaction := fields("", field{"transactional_id", opt(utf)}, field{"producer_id", i64}, field{"epoch", i16})
	holder := fields("", field{"transaction", transaction}, field{"start_ms", i64})
	pending := layout(holder)
	if nullable {
		pending = opt(holder)
	}
	return fields("TwoPhaseCommitState", field{"pending", pending}, field{"pending_commit", listOf(holder, 19)},
		field{"context", opt(fields("", field{"transactional_ids", listOf(utf, 2)}))})
}

// kafkaTransactionsEither reads the state of either version; the newer one is the
// preferred variant.
type kafkaTransactionsEither struct{}

var kafkaTransactionsNew, kafkaTransactionsOld = kafkaTransactions(true), kafkaTransactions(false)

func (kafkaTransactionsEither) read(r *reader) value.Value {
	p := r.Bytes(r.Remaining(), "a state")
	for variant, l := range []record{kafkaTransactionsNew, kafkaTransactionsOld} {
		part := r.part(p)
		v := l.read(part)
		part.end()
		if part.Err() == nil {
			return v.WithVariant(uint8(variant))
		}
		if variant == 1 {
			r.Adopt(&part.Cursor, 0)
		}
	}
	return value.Null()
}

func (kafkaTransactionsEither) write(w *writer, v value.Value) {
	if v.Variant() == 1 {
		kafkaTransactionsOld.write(w, v)
	} else {
		kafkaTransactionsNew.write(w, v)
	}
}
