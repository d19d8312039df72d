package types

import (
	"slices"
	"strings"
)

// NoRelease reports whether no release of Flink up to 2.3 has a serializer
// snapshot class of this name. It is certain of two kinds: names in the packages
// whose classes are all listed, and names that differ from a listed one in one or
// two characters, which near is then: a damaged name. A class of anybody else is
// none of them.
func NoRelease(class string) (near string, none bool) {
	if _, listed := slices.BinarySearch(releasedClasses, strings.TrimPrefix(class, flinkPackage)); listed && strings.HasPrefix(class, flinkPackage) {
		return "", false
	}
	for _, c := range releasedClasses {
		if differences(class, c) <= 2 {
			return flinkPackage + c, true
		}
	}
	// Config snapshots ended with Flink 1.7: not all of them are listed.
	if strings.Contains(class, "Config") {
		return "", false
	}
	return "", slices.ContainsFunc(corePackages, func(p string) bool { return strings.HasPrefix(class, flinkPackage+p) })
}

// differences is the number of bytes in which a class differs from a listed one,
// at least 3 where the lengths do.
func differences(class, listed string) int {
	n := 0
	if len(class) != len(flinkPackage)+len(listed) {
		return 3
	}
	for i := 0; i < len(class) && n < 3; i++ {
		var c byte
		if i < len(flinkPackage) {
			c = flinkPackage[i]
		} else {
			c = listed[i-len(flinkPackage)]
		}
		if c != class[i] {
			n++
		}
	}
	return n
}

// corePackages are those of flink-core, flink-runtime and flink-streaming-java
// that have serializers.
var corePackages = []string{"api.common.typeutils.", "api.java.typeutils.", "runtime.state.", "streaming.api."}

// releasedClasses are serializer snapshot classes below flinkPackage, sorted: all
// in the jars of Flink 1.20, 2.0 and 2.3, and those in snapshots of 1.3 to 2.3.
var releasedClasses = []string{
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
	"api.common.typeutils.base.BitmapSerializer$BitmapSerializerSnapshot",
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
	"api.common.typeutils.base.GenericArraySerializerConfigSnapshot",
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
	"api.common.typeutils.base.SetSerializerSnapshot",
	"api.common.typeutils.base.ShortSerializer$ShortSerializerSnapshot",
	"api.common.typeutils.base.ShortValueSerializer$ShortValueSerializerSnapshot",
	"api.common.typeutils.base.SqlDateSerializer$SqlDateSerializerSnapshot",
	"api.common.typeutils.base.SqlTimeSerializer$SqlTimeSerializerSnapshot",
	"api.common.typeutils.base.SqlTimestampSerializer$SqlTimestampSerializerSnapshot",
	"api.common.typeutils.base.StringSerializer$StringSerializerSnapshot",
	"api.common.typeutils.base.StringValueSerializer$StringValueSerializerSnapshot",
	"api.common.typeutils.base.VariantSerializer$VariantSerializerSnapshot",
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
	"api.java.typeutils.runtime.EitherSerializerSnapshot",
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
	"runtime.state.ttl.TtlAwareSerializerSnapshot",
	"runtime.state.ttl.TtlAwareSerializerSnapshotWrapper",
	"runtime.state.ttl.TtlStateFactory$TtlSerializerSnapshot",
	"runtime.state.v2.ttl.TtlStateFactory$TtlSerializerSnapshot",
	"streaming.api.datastream.CoGroupedStreams$UnionSerializerSnapshot",
	"streaming.api.functions.sink.TwoPhaseCommitSinkFunction$StateSerializerSnapshot",
	"streaming.api.functions.sink.legacy.TwoPhaseCommitSinkFunction$StateSerializerSnapshot",
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
	"table.runtime.operators.sink.SortedLongSerializer$SortedLongSerializerSnapshot",
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
