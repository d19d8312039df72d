package flink

import (
	"slices"
	"strings"
)

// Package is the prefix of the names of Flink's classes. Classes with another
// prefix belong to users or connectors.
const Package = "org.apache.flink."

// SerializerLifetime returns the first and the last release that have a serializer
// snapshot class, according to the jars of Flink 1.20 to 2.3. ok is false if every
// release from 1.20 on has it, and for classes that are not Flink's. last is zero
// if the latest release has it.
func SerializerLifetime(class string) (first, last Release, ok bool) {
	l, ok := lifetimeOf(class)
	if !ok {
		return 0, 0, false
	}
	first, last = lifetime(l.has)
	return first, last, true
}

// SerializerReleases is SerializerLifetime for the simple name of a class, as it is in
// the name of the class after the last "." and "$". Of several classes with that name
// it returns the widest range.
func SerializerReleases(simple string) (first, last Release) {
	found := false
	for _, c := range serializerClasses {
		if hasSimpleName(c, simple) {
			return 0, 0
		}
	}
	for _, l := range serializerLifetimes {
		if !hasSimpleName(l.class, simple) {
			continue
		}
		a, b := lifetime(l.has)
		if a == Oldest() {
			a = 0
		}
		if !found || a < first {
			first = a
		}
		if !found || b == 0 || last != 0 && b > last {
			last = b
		}
		found = true
	}
	return first, last
}

// SerializerClass returns the name of a serializer snapshot class that a release has, by
// its simple name. Of several, it is the one that programs use which are not SQL.
func SerializerClass(simple string, r Release) (class string, ok bool) {
	find := func(c string, has bool) {
		if has && hasSimpleName(c, simple) && (class == "" || elsewhere(class) && !elsewhere(c)) {
			class = c
		}
	}
	for _, c := range serializerClasses {
		find(c, true)
	}
	for _, l := range serializerLifetimes {
		find(l.class, l.has(r))
	}
	return Package + class, class != ""
}

// elsewhere reports whether a class is one of SQL or of the client for queries.
func elsewhere(class string) bool {
	return strings.HasPrefix(class, "table.") || strings.HasPrefix(class, "queryablestate.")
}

func hasSimpleName(class, simple string) bool {
	rest, ok := strings.CutSuffix(class, simple)
	return ok && (strings.HasSuffix(rest, ".") || strings.HasSuffix(rest, "$"))
}

// serializerLife is the first and the last release of a serializer snapshot class
// that not all releases from 1.20 on have, or of a package of such classes, if it
// ends with a dot.
type serializerLife struct{ class, from, until string }

func (l serializerLife) has(r Release) bool {
	return (l.from == "" || r >= MustRelease(l.from)) && (l.until == "" || r <= MustRelease(l.until))
}

func lifetimeOf(class string) (serializerLife, bool) {
	name, ok := strings.CutPrefix(class, Package)
	if !ok {
		return serializerLife{}, false
	}
	i := slices.IndexFunc(serializerLifetimes, func(l serializerLife) bool { return l.class == name })
	if i < 0 {
		i = slices.IndexFunc(serializerLifetimes, func(l serializerLife) bool {
			return strings.HasSuffix(l.class, ".") && strings.HasPrefix(name, l.class)
		})
	}
	if i < 0 {
		return serializerLife{}, false
	}
	return serializerLifetimes[i], true
}

// UnknownSerializer reports whether no known release of Flink has a serializer
// snapshot class with this name. It is certain for two kinds of names only: names
// in packages whose classes are all listed, and names that differ from a listed
// class in one or two characters. Such a name is probably damaged; near is the
// listed class.
func UnknownSerializer(class string) (near string, unknown bool) {
	name, ours := strings.CutPrefix(class, Package)
	if _, found := slices.BinarySearch(serializerClasses, name); ours && found {
		return "", false
	}
	if _, found := lifetimeOf(class); found {
		return "", false
	}
	for _, c := range serializerClasses {
		if nearlyEqual(class, c) {
			return Package + c, true
		}
	}
	for _, l := range serializerLifetimes {
		if nearlyEqual(class, l.class) {
			return Package + l.class, true
		}
	}
	// Config snapshots ended with Flink 1.7, and not all of them are listed.
	if !ours || strings.Contains(class, "Config") {
		return "", false
	}
	return "", slices.ContainsFunc(corePackages, func(p string) bool { return strings.HasPrefix(name, p) })
}

// nearlyEqual reports whether a class has the length of a listed one and differs
// from it in at most two bytes.
func nearlyEqual(class, listed string) bool {
	if len(class) != len(Package)+len(listed) {
		return false
	}
	n := 0
	for i := 0; i < len(class) && n < 3; i++ {
		c := Package[min(i, len(Package)-1)]
		if i >= len(Package) {
			c = listed[i-len(Package)]
		}
		if c != class[i] {
			n++
		}
	}
	return n < 3
}

// corePackages are the packages of flink-core, flink-runtime and
// flink-streaming-java that have serializers.
var corePackages = []string{"api.common.typeutils.", "api.java.typeutils.", "runtime.state.", "streaming.api."}

// serializerLifetimes are from the jars of Flink 1.20 to 2.3.
var serializerLifetimes = []serializerLife{
	{"api.scala.", "", "1.20"},
	{"api.common.typeutils.base.GenericArraySerializerConfigSnapshot", "", "1.20"},
	{"api.java.typeutils.runtime.EitherSerializerSnapshot", "", "1.20"},
	{"cep.nfa.NFA$MigratedNFASerializerSnapshot", "", "1.20"},
	{"cep.nfa.SharedBuffer$SharedBufferSerializerSnapshot", "", "1.20"},
	{"cep.nfa.sharedbuffer.SharedBufferNode$SharedBufferNodeSerializer$SharedBufferNodeSerializerSnapshot", "", "1.20"},
	{"formats.avro.typeutils.AvroSerializer$AvroSchemaSerializerConfigSnapshot", "", "1.20"},
	{"streaming.api.functions.sink.TwoPhaseCommitSinkFunction$StateSerializerSnapshot", "", "1.20"},
	{"api.common.typeutils.base.SetSerializerSnapshot", "2.0", ""},
	{"runtime.state.ttl.TtlAwareSerializerSnapshot", "2.0", ""},
	{"runtime.state.v2.ttl.TtlStateFactory$TtlSerializerSnapshot", "2.0", ""},
	{"streaming.api.functions.sink.legacy.TwoPhaseCommitSinkFunction$StateSerializerSnapshot", "2.0", ""},
	{"table.api.typeutils.", "2.0", ""},
	{"table.runtime.operators.window.GlobalWindow$Serializer$GlobalWindowSerializerSnapshot", "2.1", ""},
	{"api.common.typeutils.base.VariantSerializer$VariantSerializerSnapshot", "2.1", ""},
	{"table.runtime.sequencedmultisetstate.linked.", "2.2", ""},
	{"api.common.typeutils.base.BitmapSerializer$BitmapSerializerSnapshot", "2.3", ""},
	{"table.runtime.operators.sink.SortedLongSerializer$SortedLongSerializerSnapshot", "2.3", ""},
}

// serializerClasses are the other serializer snapshot classes in Package, sorted:
// those in the jars of Flink 1.20, 2.0 and 2.3, and those in snapshots of 1.3 to
// 2.3.
var serializerClasses = []string{
	"api.common.typeutils.CompositeTypeSerializerSnapshot",
	"api.common.typeutils.GenericTypeSerializerSnapshot",
	"api.common.typeutils.LegacySerializerSnapshotTransformer",
	"api.common.typeutils.ParameterlessTypeSerializerConfig",
	"api.common.typeutils.SimpleTypeSerializerSnapshot",
	"api.common.typeutils.SingleThreadAccessCheckingTypeSerializer$SingleThreadAccessCheckingTypeSerializerSnapshot",
	"api.common.typeutils.TypeSerializerSnapshot",
	"api.common.typeutils.TypeSerializerSnapshotSerializationUtil",
	"api.common.typeutils.TypeSerializerSnapshotSerializationUtil$TypeSerializerSnapshotSerializationProxy",
	"api.common.typeutils.base.BigDecSerializer$BigDecSerializerSnapshot",
	"api.common.typeutils.base.BigIntSerializer$BigIntSerializerSnapshot",
	"api.common.typeutils.base.BooleanSerializer$BooleanSerializerSnapshot",
	"api.common.typeutils.base.BooleanValueSerializer$BooleanValueSerializerSnapshot",
	"api.common.typeutils.base.ByteSerializer$ByteSerializerSnapshot",
	"api.common.typeutils.base.ByteValueSerializer$ByteValueSerializerSnapshot",
	"api.common.typeutils.base.CharSerializer$CharSerializerSnapshot",
	"api.common.typeutils.base.CharValueSerializer$CharValueSerializerSnapshot",
	"api.common.typeutils.base.CollectionSerializerConfigSnapshot",
	"api.common.typeutils.base.DateSerializer$DateSerializerSnapshot",
	"api.common.typeutils.base.DoubleSerializer$DoubleSerializerSnapshot",
	"api.common.typeutils.base.DoubleValueSerializer$DoubleValueSerializerSnapshot",
	"api.common.typeutils.base.EnumSerializer$EnumSerializerSnapshot",
	"api.common.typeutils.base.FloatSerializer$FloatSerializerSnapshot",
	"api.common.typeutils.base.FloatValueSerializer$FloatValueSerializerSnapshot",
	"api.common.typeutils.base.GenericArraySerializerSnapshot",
	"api.common.typeutils.base.InstantSerializer$InstantSerializerSnapshot",
	"api.common.typeutils.base.IntSerializer$IntSerializerSnapshot",
	"api.common.typeutils.base.IntValueSerializer$IntValueSerializerSnapshot",
	"api.common.typeutils.base.ListSerializerSnapshot",
	"api.common.typeutils.base.LocalDateSerializer$LocalDateSerializerSnapshot",
	"api.common.typeutils.base.LocalDateTimeSerializer$LocalDateTimeSerializerSnapshot",
	"api.common.typeutils.base.LocalTimeSerializer$LocalTimeSerializerSnapshot",
	"api.common.typeutils.base.LongSerializer$LongSerializerSnapshot",
	"api.common.typeutils.base.LongValueSerializer$LongValueSerializerSnapshot",
	"api.common.typeutils.base.MapSerializerSnapshot",
	"api.common.typeutils.base.NullValueSerializer$NullValueSerializerSnapshot",
	"api.common.typeutils.base.ShortSerializer$ShortSerializerSnapshot",
	"api.common.typeutils.base.ShortValueSerializer$ShortValueSerializerSnapshot",
	"api.common.typeutils.base.SqlDateSerializer$SqlDateSerializerSnapshot",
	"api.common.typeutils.base.SqlTimeSerializer$SqlTimeSerializerSnapshot",
	"api.common.typeutils.base.SqlTimestampSerializer$SqlTimestampSerializerSnapshot",
	"api.common.typeutils.base.StringSerializer$StringSerializerSnapshot",
	"api.common.typeutils.base.StringValueSerializer$StringValueSerializerSnapshot",
	"api.common.typeutils.base.VoidSerializer$VoidSerializerSnapshot",
	"api.common.typeutils.base.array.BooleanPrimitiveArraySerializer$BooleanPrimitiveArraySerializerSnapshot",
	"api.common.typeutils.base.array.BytePrimitiveArraySerializer$BytePrimitiveArraySerializerSnapshot",
	"api.common.typeutils.base.array.CharPrimitiveArraySerializer$CharPrimitiveArraySerializerSnapshot",
	"api.common.typeutils.base.array.DoublePrimitiveArraySerializer$DoublePrimitiveArraySerializerSnapshot",
	"api.common.typeutils.base.array.FloatPrimitiveArraySerializer$FloatPrimitiveArraySerializerSnapshot",
	"api.common.typeutils.base.array.IntPrimitiveArraySerializer$IntPrimitiveArraySerializerSnapshot",
	"api.common.typeutils.base.array.LongPrimitiveArraySerializer$LongPrimitiveArraySerializerSnapshot",
	"api.common.typeutils.base.array.ShortPrimitiveArraySerializer$ShortPrimitiveArraySerializerSnapshot",
	"api.common.typeutils.base.array.StringArraySerializer$StringArraySerializerSnapshot",
	"api.java.typeutils.runtime.CopyableValueSerializer$CopyableValueSerializerSnapshot",
	"api.java.typeutils.runtime.EitherSerializerConfigSnapshot",
	"api.java.typeutils.runtime.JavaEitherSerializerSnapshot",
	"api.java.typeutils.runtime.NullableSerializer$NullableSerializerSnapshot",
	"api.java.typeutils.runtime.PojoSerializer$PojoSerializerConfigSnapshot",
	"api.java.typeutils.runtime.PojoSerializerSnapshot",
	"api.java.typeutils.runtime.PojoSerializerSnapshotData",
	"api.java.typeutils.runtime.RowSerializer$RowSerializerSnapshot",
	"api.java.typeutils.runtime.Tuple0SerializerSnapshot",
	"api.java.typeutils.runtime.TupleSerializerConfigSnapshot",
	"api.java.typeutils.runtime.TupleSerializerSnapshot",
	"api.java.typeutils.runtime.ValueSerializer$ValueSerializerSnapshot",
	"api.java.typeutils.runtime.WritableSerializer$WritableSerializerSnapshot",
	"api.java.typeutils.runtime.kryo.KryoSerializer$KryoSerializerConfigSnapshot",
	"api.java.typeutils.runtime.kryo.KryoSerializerSnapshot",
	"api.java.typeutils.runtime.kryo.KryoSerializerSnapshotData",
	"api.scala.typeutils.EnumValueSerializer$ScalaEnumSerializerConfigSnapshot",
	"api.scala.typeutils.ScalaEitherSerializerSnapshot",
	"api.scala.typeutils.ScalaOptionSerializerConfigSnapshot",
	"api.scala.typeutils.ScalaTrySerializerConfigSnapshot",
	"api.scala.typeutils.TraversableSerializerConfigSnapshot",
	"cep.nfa.DeweyNumber$DeweyNumberSerializer$DeweyNumberSerializerSnapshot",
	"cep.nfa.NFAStateSerializerSnapshot",
	"cep.nfa.sharedbuffer.EventId$EventIdSerializer$EventIdSerializerSnapshot",
	"cep.nfa.sharedbuffer.LockableTypeSerializerSnapshot",
	"cep.nfa.sharedbuffer.NodeId$NodeIdSerializer$NodeIdSerializerSnapshot",
	"cep.nfa.sharedbuffer.SharedBufferEdge$SharedBufferEdgeSerializer$SharedBufferEdgeSerializerSnapshot",
	"cep.nfa.sharedbuffer.SharedBufferNodeSerializerSnapshotV2",
	"formats.avro.typeutils.AvroSerializerSnapshot",
	"queryablestate.client.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot",
	"runtime.state.ArrayListSerializerSnapshot",
	"runtime.state.JavaSerializer$JavaSerializerSnapshot",
	"runtime.state.VoidNamespaceSerializer$VoidNamespaceSerializerSnapshot",
	"runtime.state.ttl.TtlAwareSerializerSnapshotWrapper",
	"runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot",
	"streaming.api.datastream.CoGroupedStreams$UnionSerializerSnapshot",
	"streaming.api.operators.TimerSerializerSnapshot",
	"streaming.api.operators.co.IntervalJoinOperator$BufferEntrySerializerSnapshot",
	"streaming.api.windowing.windows.GlobalWindow$Serializer$GlobalWindowSerializerSnapshot",
	"streaming.api.windowing.windows.TimeWindow$Serializer$TimeWindowSerializerSnapshot",
	"streaming.connectors.kafka.FlinkKafkaProducer$ContextStateSerializer$ContextStateSerializerSnapshot",
	"streaming.connectors.kafka.FlinkKafkaProducer$NextTransactionalIdHintSerializer$NextTransactionalIdHintSerializerSnapshot",
	"streaming.connectors.kafka.FlinkKafkaProducer$TransactionStateSerializer$TransactionStateSerializerSnapshot",
	"streaming.runtime.streamrecord.StreamElementSerializer$StreamElementSerializerSnapshot",
	"table.api.typeutils.ScalaCaseClassSerializerSnapshot",
	"table.api.typeutils.ScalaEitherSerializerSnapshot",
	"table.api.typeutils.ScalaEnumSerializerSnapshot",
	"table.api.typeutils.ScalaOptionSerializerSnapshot",
	"table.api.typeutils.ScalaTrySerializerSnapshot",
	"table.api.typeutils.TraversableSerializerSnapshot",
	"table.dataview.ListViewSerializerSnapshot",
	"table.dataview.MapViewSerializerSnapshot",
	"table.dataview.NullSerializer$NullSerializerSnapshot",
	"table.runtime.operators.window.TimeWindow$Serializer$TimeWindowSerializerSnapshot",
	"table.runtime.typeutils.ArrayDataSerializer$ArrayDataSerializerSnapshot",
	"table.runtime.typeutils.DecimalDataSerializer$DecimalSerializerSnapshot",
	"table.runtime.typeutils.ExternalSerializer$ExternalSerializerSnapshot",
	"table.runtime.typeutils.LinkedListSerializer$LinkedListSerializerSnapshot",
	"table.runtime.typeutils.MapDataSerializer$MapDataSerializerSnapshot",
	"table.runtime.typeutils.RawValueDataSerializer$RawValueDataSerializerSnapshot",
	"table.runtime.typeutils.RowDataSerializer$RowDataSerializerSnapshot",
	"table.runtime.typeutils.SortedMapSerializerSnapshot",
	"table.runtime.typeutils.StringDataSerializer$StringDataSerializerSnapshot",
	"table.runtime.typeutils.TimestampDataSerializer$TimestampDataSerializerSnapshot",
}
