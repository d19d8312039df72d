package types

import (
	"fmt"

	"github.com/savepoint-tools/spt/format/value"
)

// The classes that are known. A body is added by the file that has its codec.

// kryoBodies are the known classes.
var kryoBodies = func() map[string]func(version int) kryoBody {
	m := map[string]func(int) kryoBody{
		"java.lang.String":  kryoString,
		"java.lang.Integer": kryoFunc(true, kryoInt.get, kryoInt.put, kryoInt.from), "java.lang.Long": kryoFunc(true, kryoLong.get, kryoLong.put, kryoLong.from),
		"java.math.BigInteger": kryoFunc(false, kryoBig.get, kryoBig.put, kryoBig.from), "java.math.BigDecimal": kryoFunc(false, kryoDecimal.get, kryoDecimal.put, kryoDecimal.from),
		"java.util.Date": kryoFunc(false, kryoDate.get, kryoDate.put, kryoDate.from), "java.sql.Timestamp": kryoTimestamp, "java.util.UUID": kryoUUID, "java.net.URI": kryoString, "java.net.URL": kryoString, "java.util.Currency": kryoString,
		"java.sql.Date": kryoFunc(false, kryoDate.get, kryoDate.put, kryoDate.from), "java.sql.Time": kryoFunc(false, kryoDate.get, kryoDate.put, kryoDate.from),
		"org.apache.flink.streaming.connectors.kafka.internals.KafkaTopicPartition": kryoFields([]string{"cachedHash", "partition", "topic"}, intField, intField, textField),
	}
	for class, c := range map[string]scalar{"java.lang.Boolean": boolCodec, "java.lang.Byte": byteCodec, "java.lang.Short": shortCodec, "java.lang.Character": charCodec, "java.lang.Float": floatCodec, "java.lang.Double": doubleCodec} {
		m[class] = func(version int) kryoBody { return kryoScalar(version, c, true) }
	}
	for _, class := range []string{"ArrayList", "LinkedList", "Vector", "HashSet", "LinkedHashSet", "ArrayDeque", "ImmutableCollections$List12", "ImmutableCollections$ListN", "ImmutableCollections$Set12", "ImmutableCollections$SetN", "concurrent.CopyOnWriteArrayList",
		"Stack", "Collections$UnmodifiableCollection", "Collections$UnmodifiableList", "Collections$UnmodifiableRandomAccessList", "Collections$UnmodifiableSet", "Collections$UnmodifiableSortedSet", "Collections$UnmodifiableNavigableSet",
		"Collections$SynchronizedCollection", "Collections$SynchronizedList", "Collections$SynchronizedRandomAccessList", "Collections$SynchronizedSet", "Collections$SynchronizedSortedSet", "Collections$SynchronizedNavigableSet",
		"Collections$SetFromMap", "Collections$CopiesList", "ArrayList$SubList", "HashMap$KeySet", "HashMap$Values", "LinkedHashMap$LinkedKeySet", "LinkedHashMap$LinkedValues",
		"concurrent.ConcurrentLinkedQueue", "concurrent.LinkedBlockingQueue", "concurrent.ConcurrentSkipListSet", "concurrent.ConcurrentLinkedDeque", "concurrent.LinkedBlockingDeque", "concurrent.ArrayBlockingQueue",
		"concurrent.CopyOnWriteArraySet", "concurrent.ConcurrentHashMap$KeySetView"} {
		m["java.util."+class] = kryoCollection(false)
	}
	for _, class := range []string{"HashMap", "LinkedHashMap", "concurrent.ConcurrentHashMap", "Hashtable", "Properties", "WeakHashMap", "IdentityHashMap", "EnumMap", "ImmutableCollections$Map1", "ImmutableCollections$MapN",
		"Collections$UnmodifiableMap", "Collections$UnmodifiableSortedMap", "Collections$UnmodifiableNavigableMap", "Collections$UnmodifiableNavigableMap$EmptyNavigableMap",
		"Collections$SynchronizedMap", "Collections$SynchronizedSortedMap", "Collections$SynchronizedNavigableMap"} {
		m["java.util."+class] = kryoMap(false)
	}
	m[asList] = byVersion(kryoAsList, kryoCollection(false))
	m["java.util.concurrent.ConcurrentSkipListMap"] = byVersion(kryoMap(false), kryoMap(true))
	for _, class := range []string{"Collections$SingletonMap", "AbstractMap$SimpleEntry", "AbstractMap$SimpleImmutableEntry", "KeyValueHolder"} {
		m["java.util."+class] = kryoFields([]string{"key", "value"}, anyField, anyField)
	}
	for _, class := range []string{"Collections$SingletonList", "Collections$SingletonSet"} {
		m["java.util."+class] = kryoFields([]string{"element"}, anyField)
	}
	m["java.util.Optional"] = kryoFields([]string{"value"}, anyField)
	m["java.time.Instant"] = kryoTime(value.KindInstant, (*reader).kryoInstant2, (*reader).kryoInstant5, (*writer).kryoInstant2, (*writer).kryoInstant5)
	m["java.time.LocalDate"] = kryoTime(value.KindDate, func(r *reader) value.Value { return dateOf(r.kryoDate2()) }, func(r *reader) value.Value { return dateOf(r.kryoDate5()) }, (*writer).kryoDate2, (*writer).kryoDate5)
	m["java.time.LocalTime"] = kryoTime(value.KindTimeOfDay, func(r *reader) value.Value { return timeOf(r.kryoClock2(value.Civil{})) }, func(r *reader) value.Value { return timeOf(r.kryoClock5(value.Civil{})) }, (*writer).kryoClock2, (*writer).kryoClock5)
	m["java.time.LocalDateTime"], m["java.time.Duration"] = kryoDateTime, kryoDuration
	addTimes(m)
	for array, class := range map[string]string{"[I": "Integer", "[J": "Long", "[S": "Short", "[C": "Character", "[F": "Float", "[D": "Double", "[Z": "Boolean"} {
		m[array] = kryoArray(m["java.lang."+class])
	}
	m["[B"] = kryoFunc(false, func(r *reader) value.Value {
		return value.Bytes(r.Bytes(int(r.uvarint())-1, "a byte array"))
	}, func(w *writer, v value.Value) {
		if w.expects(v, value.KindBytes) {
			w.uvarint(uint32(len(v.Text())) + 1)
			w.p = append(w.p, v.Text()...)
		}
	}, bytesCodec.from)
	m["java.util.TreeSet"], m["java.util.PriorityQueue"], m["java.util.TreeMap"] = kryoCollection(true), kryoCollection(true), kryoMap(true)
	for class := range emptyBodies {
		m[class] = kryoFunc(false, func(*reader) value.Value { return value.Null() }, func(w *writer, v value.Value) { w.expects(v, value.KindNull) }, nothing{}.parse)
	}
	for n := 1; n <= 25; n++ {
		m[fmt.Sprintf("org.apache.flink.api.java.tuple.Tuple%d", n)] = tupleBody(n)
	}
	addJDK(m)
	addScala(m)
	addJoda(m)
	return m
}()

// emptyBodies are classes whose objects take no bytes. An object is null with the class.
var emptyBodies = map[string]bool{
	"java.util.Collections$EmptyList": true, "java.util.Collections$EmptySet": true, "java.util.Collections$EmptyMap": true,
	"java.util.Collections$ReverseComparator": true, "java.lang.String$CaseInsensitiveComparator": true, "java.time.chrono.IsoChronology": true,
	"scala.None$": true, "scala.collection.immutable.Set$EmptySet$": true, "scala.runtime.BoxedUnit": true, "scala.collection.convert.Wrappers$": true,
	"scala.math.Ordering$String$": true, "scala.math.Ordering$Int$": true, "scala.math.Ordering$Long$": true, "scala.math.Ordering$Double$": true,
}

// kryoOpen are classes whose objects may be of other classes, which may be known.
var kryoOpen = map[string]bool{
	"java.lang.Object": true, "java.io.Serializable": true, "java.lang.Comparable": true, "java.lang.Number": true, "java.lang.CharSequence": true, "java.lang.Throwable": true, "java.lang.Iterable": true,
	"java.util.Collection": true, "java.util.List": true, "java.util.Set": true, "java.util.Map": true, "java.util.SortedMap": true, "java.util.SortedSet": true, "java.util.Queue": true, "java.util.Deque": true,
	"java.util.EnumSet": true, "java.util.TimeZone": true, "java.util.Calendar": true, "java.util.Map$Entry": true, "java.time.ZoneId": true, "java.nio.charset.Charset": true, "org.joda.time.DateTimeZone": true,
	"scala.Option": true, "scala.util.Either": true, "scala.util.Try": true, "scala.Product": true,
	"scala.collection.Seq": true, "scala.collection.immutable.Seq": true, "scala.collection.immutable.List": true, "scala.collection.Map": true, "scala.collection.immutable.Map": true, "scala.collection.mutable.Map": true,
	"scala.collection.Set": true, "scala.collection.immutable.Set": true, "scala.collection.mutable.Set": true, "scala.collection.mutable.Buffer": true, "scala.collection.Iterable": true, "scala.collection.Traversable": true,
}
