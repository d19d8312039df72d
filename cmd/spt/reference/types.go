package reference

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format/flink/types"
)

// Exception is a kind of values that are not decoded, of the values that Flink's own
// upgrade tests wrote.
type Exception struct {
	Reason types.Reason
	What   string
	Count  int
}

// Exceptions are the values of Flink's upgrade tests that are not decoded, of
// UpgradeValues. A test counts them.
var Exceptions = []Exception{
	{types.UserCode, "`ValueSerializer`, `CopyableValueSerializer` and `WritableSerializer` of classes of the tests", 30},
	{types.UserKryo, "`KryoSerializer` of classes of the tests", 40},
}

// UpgradeValues is the number of values of Flink's upgrade tests, of releases 1.7 to
// 2.3.
const UpgradeValues = 885

// typesPage returns docs/types.md.
func typesPage() string {
	var b strings.Builder
	b.WriteString(`<!-- Generated from the table of serializers: cd tools && go run ./gen -->

# Serializers

spt reads and writes the values of these serializers. They are recognized by the class
of their snapshot, in any package of Flink, because classes move between releases.
Values are written back to the same bytes; [json.md](json.md) describes their JSON.

A composite is decoded if all serializers in it are. Bytes that Flink reads but does
not write, such as a boolean of 2, are not decoded: they could not be written back.

`)
	read := 0
	missing := 0
	for _, e := range Exceptions {
		missing += e.Count
	}
	for _, old := range []bool{false, true} {
		if old {
			b.WriteString("\n## Config snapshots\n\nFlink 1.3 to 1.6 wrote the serializer as a Java object, which is parsed and never run,\nand a config snapshot. Releases up to 1.16 read it.\n\n")
		} else {
			b.WriteString("## Serializer snapshots\n\nSnapshots have these classes since Flink 1.7, or since the serializer exists; the column\nis from the jars of Flink 1.20 to 2.3. \"To 2.3\" are all of them.\n\n")
		}
		b.WriteString("| serializer | releases | JSON of a value | read and written |\n|---|---|---|---|\n")
		for _, e := range types.Catalogue() {
			if e.Config != old {
				continue
			}
			status := "yes"
			if e.Reason != "" {
				status = "no: " + string(e.Reason)
			} else {
				read++
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Serializer, e.Releases, strings.ReplaceAll(e.Values, "|", "\\|"), status)
		}
	}
	fmt.Fprintf(&b, `
## What is not decoded

The upgrade tests of Flink 1.7 to 2.3 have %d values, one for each serializer and
release. spt decodes %d of them and writes them back to the same bytes (%.1f %%). The
others are these:

| count | values | reason |
|---|---|---|
`, UpgradeValues, UpgradeValues-missing, 100*float64(UpgradeValues-missing)/UpgradeValues)
	for _, e := range Exceptions {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", e.Count, e.What, e.Reason)
	}
	b.WriteString(`
A value that is not decoded is shown as bytes, with its serializer and the reason, and
is copied unchanged.

These serializers are decoded only in part:

* ` + "`JavaSerializer`" + `: strings, boxed primitives and null are decoded. Another object is the
  bytes of its stream, with the name of its class. Streams are parsed, and nothing in
  them is run.
* ` + "`BinaryRowDataSerializer`" + `: its snapshot has the number of fields and not their types, so
  a row is bytes. ` + "`RowDataSerializer`" + ` has the types.
* ` + "`KryoSerializer`" + `: a value starts with its class, and every object in it must be of the
  [classes](#classes-in-kryo) below. Kryo 2 (Flink 1.x) and Kryo 5 (Flink 2.x) write
  different bytes, and snapshots do not say which: the version of ` + "`_metadata`" + ` does.
* ` + "`VariantSerializer` and `BitmapSerializer`" + `: the binary encodings of variants and of
  RoaringBitmap are bytes.
* ` + "`BytePrimitiveArraySerializer`" + `: PyFlink stores pickles in byte arrays, and snapshots do
  not say so. [type-language.md](type-language.md) shows how to read them.
* Raw SQL types are decoded if their serializer is one of Flink's; otherwise they are bytes.

## Classes in Kryo

| classes | JSON of an object |
|---|---|
| strings, ` + "`StringBuilder`, `StringBuffer`" + `, boxed primitives, ` + "`BigInteger`, `BigDecimal`" + ` | string, number, boolean |
| ` + "`AtomicInteger`, `AtomicLong`, `AtomicBoolean`" + ` (0 or 1), ` + "`AtomicIntegerArray`, `AtomicLongArray`" + ` | number, array |
| ` + "`Date`, `java.sql.Date`, `Time`, `Timestamp`, `Instant`" + ` | instant |
| the other classes of ` + "`java.time`, `Calendar`, `TimeZone`" + ` | date, time, or object of the fields |
| ` + "`UUID`, `URI`, `URL`, `Currency`, `Locale`, `Pattern`, `InetSocketAddress`" + `, charsets in Kryo 5 | string, or object of the fields |
| ` + "`Optional`, `AtomicReference`" + ` | object: ` + "`value`" + ` |
| ` + "`OptionalInt`, `OptionalLong`, `OptionalDouble`" + ` | number or null |
| lists, sets, queues, maps and entries of ` + "`java.util`" + `, also unmodifiable and synchronized ones | array |
| sorted sets, maps and queues with a comparator of the JDK | object: ` + "`comparator`, `elements`" + ` |
| ` + "`Arrays.asList`" + ` in Kryo 2, ` + "`EnumSet`" + ` | object: ` + "`type`, `elements`" + ` |
| ` + "`BitSet`" + ` | bytes, the lowest bit first |
| ` + "`TimeUnit`, `ChronoUnit`, `DayOfWeek`, `Month`, `RoundingMode`, `RowKind`" + ` | name of the constant |
| arrays of primitives and of these classes | array; ` + "`byte[]`" + ` is bytes |
| Flink's ` + "`Tuple1` to `Tuple25`, `Row`, `TimeWindow`, `KafkaTopicPartition`" + ` | object of the fields |
| Avro's ` + "`GenericData.Array`" + ` | array in Kryo 2; in Kryo 5 object: ` + "`schema`, `avro`" + ` (bytes) |
| Joda's ` + "`DateTime`, `Interval`, `LocalDate`, `LocalTime`, `LocalDateTime`" + ` in the serializers of kryo-serializers, with ISO's calendar but for the first two | date, time, or object of the fields |
| Joda's ` + "`Instant`, `Duration`, `Days`" + ` and others as Kryo writes them, ` + "`DateTime` and `Interval`" + ` in UTC | instant, number, or object of the fields |
| Scala's ` + "`Some`, `None`, `Left`, `Right`, `Success`" + ` and tuples | object, null |
| in Kryo 2, Scala's lists, vectors, sets, buffers and maps, sorted ones with the orderings of strings and numbers, and wrappers of collections | array, or object: ` + "`ordering`, `elements`" + ` |
| exceptions, classes with Kryo's or Flink's ` + "`JavaSerializer`, `SimpleDateFormat`" + ` | bytes of their Java stream |
| messages of Protobuf and Thrift in the serializers of Twitter's chill | bytes |

The bytes of an enum have the ordinal of a constant, and neither its name nor that the class
is an enum: a constant of a job's own enum is not decoded, and an ` + "`EnumSet`" + ` of them has
ordinals. Scala 2.12 with flink-scala on the class path wrote the classes of Scala. A default
serializer (` + "`addDefaultKryoSerializer`" + `) is known to apply to its class only; one for a class of
the JDK, Scala or Flink that others extend leaves the values bytes.
`)
	return b.String()
}
