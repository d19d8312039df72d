package types

import (
	"maps"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format/flink"
)

// Entry is one serializer of the table, for documents.
type Entry struct {
	Serializer string // simple name of its class, without "Snapshot"
	// Releases are the releases that have this class, according to the jars of Flink
	// 1.20 to 2.3: "to 1.20", "from 2.1", "to 2.3" for all of them.
	Releases string
	Values   string // what its values are, in the words of docs/json.md
	Reason   Reason // why its values are not decoded; "" if they are
	Config   bool   // a config snapshot of Flink 1.3 to 1.6
}

// Catalogue returns all serializers of the table, ordered by name: first those since
// Flink 1.7, then the config snapshots of older releases.
func Catalogue() []Entry {
	var all []Entry
	for _, old := range []bool{false, true} {
		table := known
		if old {
			table = legacy
		}
		for _, name := range slices.Sorted(maps.Keys(table)) {
			k := table[name]
			e := Entry{Serializer: strings.TrimSuffix(name, "Snapshot"), Values: valueTexts[name], Releases: releases(name, old), Config: old}
			if k.value == nil && k.codec == nil {
				if e.Reason = k.why; e.Reason == "" {
					e.Reason = NoLayout
				}
			}
			all = append(all, e)
		}
	}
	return all
}

// releases returns the releases that have a snapshot class.
func releases(name string, old bool) string {
	if old {
		return "1.3 to 1.6"
	}
	first, last := flink.SerializerReleases(name)
	switch {
	case first != 0 && last != 0:
		return first.String() + " to " + last.String()
	case first != 0:
		return "from " + first.String()
	case last != 0:
		return "to " + last.String()
	}
	return "to " + flink.Latest().String()
}

// valueTexts describe values by their snapshot class.
var valueTexts = func() map[string]string {
	m := map[string]string{
		"ListSerializerSnapshot": "array", "ArrayListSerializerSnapshot": "array", "SetSerializerSnapshot": "array", "LinkedListSerializerSnapshot": "array; elements can be null",
		"GenericArraySerializerSnapshot": "array; elements can be null", "GenericArraySerializerConfigSnapshot": "array; elements can be null", "TraversableSerializerSnapshot": "array; elements can be null",
		"MapSerializerSnapshot": "array of [key, value]", "SortedMapSerializerSnapshot": "array of [key, value]", "NullAwareMapSerializerSnapshot": "array of [key, value]; keys can be null",
		"ListViewSerializerSnapshot": "array", "MapViewSerializerSnapshot": "array of [key, value]",
		"TupleSerializerSnapshot": "array of its fields", "ScalaCaseClassSerializerSnapshot": "array of its fields", "Tuple2CaseClassSerializerSnapshot": "array of its fields",
		"RowSerializerSnapshot": "array of its fields; `kind` and `fields` if it is not an INSERT", "TtlSerializerSnapshot": "array of the time of the last access (ms) and the value",
		"NullableSerializerSnapshot": "the value or null", "ScalaOptionSerializerSnapshot": "the value or null",
		"JavaEitherSerializerSnapshot": "object with `left` or `right`", "EitherSerializerSnapshot": "object with `left` or `right`", "ScalaEitherSerializerSnapshot": "object with `left` or `right`",
		"ScalaTrySerializerSnapshot": "object with `success` or `failure`", "UnionSerializerSnapshot": "object with `one` or `two`",
		"TimerSerializerSnapshot": "object: `timestamp`, `key`, `namespace`", "BufferEntrySerializerSnapshot": "object: `joined`, `element`",
		"StreamElementSerializerSnapshot": "object: `record` with or without `timestamp`, `watermark`, …", "StateSerializerSnapshot": "object: `pending`, `pendingCommits`, `context`",
		"ExternalSerializerSnapshot": "as the internal serializer", "RawValueDataSerializerSnapshot": "as the inner serializer", "WindowKeySerializerSnapshot": "object: `window`, `key`",
		"NFAStateSerializerSnapshot": "object: `partialMatches`, `completedMatches`", "NodeIdSerializerSnapshot": "object: `event`, `page`; or null", "SharedBufferEdgeSerializerSnapshot": "object: `node`, `version`",
		"SharedBufferNodeSerializerSnapshot": "array of edges", "SharedBufferNodeSerializerSnapshotV2": "array of objects: `references`, `value`", "LockableTypeSerializerSnapshot": "object: `references`, `value`",
		"EnumSerializerSnapshot": "name of the constant", "ScalaEnumSerializerSnapshot": "name of the constant", "PojoSerializerSnapshot": "object of its fields, or null; `@class` for a subclass",
		"AvroSerializerSnapshot": "by the schema", "TtlAwareSerializerSnapshot": "as the serializer in it", "KryoSerializerSnapshot": "by class; see below",
		"RowDataSerializerSnapshot": "array of its fields; `kind` and `fields` if it is not an INSERT", "BinaryRowDataSerializerSnapshot": "bytes: the snapshot does not have the types of the fields",
		"ArrayDataSerializerSnapshot": "array", "MapDataSerializerSnapshot": "array of [key, value]", "DecimalSerializerSnapshot": "number", "TimestampDataSerializerSnapshot": "timestamp without a zone",
		"CopyableValueSerializerSnapshot": "", "ValueSerializerSnapshot": "", "WritableSerializerSnapshot": "",
		"MetaSqnInfoSerializerSnapshot": "", "RowSqnInfoSerializerSnapshot": "", "NodeSerializerSnapshot": "", "RowDataKeySerializerSnapshot": "",

		"ParameterlessTypeSerializerConfig": "as the serializer that it names", "CollectionSerializerConfigSnapshot": "array", "MapSerializerConfigSnapshot": "array of [key, value]",
		"EitherSerializerConfigSnapshot": "object with `left` or `right`", "RowSerializerConfigSnapshot": "array of its fields", "NullableSerializerConfigSnapshot": "the value or null",
		"TimerSerializerConfigSnapshot": "object: `timestamp`, `key`, `namespace`", "UnionSerializerConfigSnapshot": "object with `one` or `two`", "BufferEntrySerializerConfigSnapshot": "object: `joined`, `element`",
		"StreamElementSerializerConfigSnapshot": "object: `record` with or without `timestamp`, `watermark`, …", "ScalaOptionSerializerConfigSnapshot": "the value or null",
		"ScalaTrySerializerConfigSnapshot": "object with `success` or `failure`", "TraversableSerializerConfigSnapshot": "array; elements can be null", "StateSerializerConfigSnapshot": "object: `pending`, `pendingCommits`, `context`",
		"ConfigSnapshot": "with a time to live: array of the time of the last access (ms) and the value", "TupleSerializerConfigSnapshot": "array of its fields", "GenericArraySerializerConfigSnapshot ": "",
		"EnumSerializerConfigSnapshot": "name of the constant", "ScalaEnumSerializerConfigSnapshot": "name of the constant", "CopyableValueSerializerConfigSnapshot": "", "WritableSerializerConfigSnapshot": "",
		"KryoSerializerConfigSnapshot": "by class; see below", "ValueSerializerConfigSnapshot": "", "AvroSchemaSerializerConfigSnapshot": "by the schema", "PojoSerializerConfigSnapshot": "object of its fields, or null; `@class` for a subclass",
	}
	delete(m, "GenericArraySerializerConfigSnapshot ")
	for name, text := range map[string]string{
		"Boolean": "true or false", "Byte": "number", "Short": "number", "Int": "number", "Long": "number", "Float": "number; NaN and infinities are strings", "Double": "number; NaN and infinities are strings",
		"Char": "string", "String": "string or null", "BooleanValue": "true or false", "ByteValue": "number", "ShortValue": "number", "IntValue": "number", "LongValue": "number",
		"FloatValue": "number; NaN and infinities are strings", "DoubleValue": "number; NaN and infinities are strings", "CharValue": "string", "StringValue": "string",
		"BigInt": "number or null", "BigDec": "number or null", "Date": "instant or null", "SqlDate": "instant or null", "SqlTime": "instant or null", "SqlTimestamp": "instant or null", "Instant": "instant or null",
		"LocalDate": "date or null", "LocalTime": "time of day or null", "LocalDateTime": "timestamp without a zone, or null",
		"Void": "null", "VoidNamespace": "null", "GlobalWindow": "null", "Unit": "null", "Null": "null", "Tuple0": "null", "NullValue": "null",
		"BooleanPrimitiveArray": "array", "BytePrimitiveArray": "bytes", "ShortPrimitiveArray": "array", "IntPrimitiveArray": "array", "LongPrimitiveArray": "array", "FloatPrimitiveArray": "array",
		"DoublePrimitiveArray": "array", "CharPrimitiveArray": "array", "StringArray": "array; elements can be null", "TimeWindow": "object: `start`, `end` (ms)", "CountWindow": "number",
		"Java": "string, number, boolean, null; other objects are bytes with their class", "StringData": "string", "DeweyNumber": "array of numbers", "EventId": "object: `id`, `timestamp`",
		"Variant": "object: `value`, `metadata`, both bytes", "Bitmap": "bytes: a serialized RoaringBitmap", "SortedLong": "number",
		"TransactionState": "object: `transactionalId`, `producerId`, `epoch`", "ContextState": "object: `transactionalIds`", "NextTransactionalIdHint": "object: `nextFreeTransactionalId`, `lastParallelism`",
	} {
		m[name+"SerializerSnapshot"] = text
	}
	return m
}()
