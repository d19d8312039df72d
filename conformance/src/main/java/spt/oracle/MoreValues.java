package spt.oracle;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.avro.generic.GenericRecord;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.LongSerializer;
import org.apache.flink.api.common.typeutils.base.StringSerializer;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.typeutils.EitherTypeInfo;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.api.java.typeutils.runtime.NullableSerializer;
import org.apache.flink.formats.avro.typeutils.GenericRecordAvroTypeInfo;
import org.apache.flink.runtime.state.ArrayListSerializer;
import org.apache.flink.runtime.state.JavaSerializer;
import org.apache.flink.runtime.state.ttl.TtlStateFactory;
import org.apache.flink.runtime.state.ttl.TtlValue;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.streaming.runtime.streamrecord.StreamElement;
import org.apache.flink.streaming.runtime.streamrecord.StreamElementSerializer;
import org.apache.flink.streaming.runtime.streamrecord.StreamRecord;
import org.apache.flink.streaming.api.watermark.Watermark;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericArrayData;
import org.apache.flink.table.data.GenericMapData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.runtime.typeutils.ArrayDataSerializer;
import org.apache.flink.table.runtime.typeutils.DecimalDataSerializer;
import org.apache.flink.table.runtime.typeutils.LinkedListSerializer;
import org.apache.flink.table.runtime.typeutils.MapDataSerializer;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.runtime.typeutils.StringDataSerializer;
import org.apache.flink.table.runtime.typeutils.TimestampDataSerializer;
import org.apache.flink.table.types.logical.ArrayType;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.BinaryType;
import org.apache.flink.table.types.logical.BooleanType;
import org.apache.flink.table.types.logical.CharType;
import org.apache.flink.table.types.logical.DateType;
import org.apache.flink.table.types.logical.DayTimeIntervalType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.DoubleType;
import org.apache.flink.table.types.logical.FloatType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LocalZonedTimestampType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.MapType;
import org.apache.flink.table.types.logical.MultisetType;
import org.apache.flink.table.types.logical.RowType;
import org.apache.flink.table.types.logical.SmallIntType;
import org.apache.flink.table.types.logical.TimeType;
import org.apache.flink.table.types.logical.TimestampType;
import org.apache.flink.table.types.logical.TinyIntType;
import org.apache.flink.table.types.logical.VarBinaryType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.table.types.logical.YearMonthIntervalType;
import org.apache.flink.types.Either;
import org.apache.flink.types.RowKind;

/** Values of composites, of Flink SQL and of Avro, with the JSON that docs/json.md defines for them. */
final class MoreValues {
    static void add(List<Serializers.Value> all) throws Exception {
        composites(all);
        sql(all);
        avro(all);
        kryo(all);
    }

    private static <T> void kryo(List<Serializers.Value> all, Class<T> type, T value, String text) throws Exception {
        Serializers.add(all, new GenericTypeInfo<>(type), value, text);
    }

    /** Values of the JDK's classes in Kryo. */
    private static void kryo(List<Serializers.Value> all) throws Exception {
        String mixed = "[1,\"x\",null,{\"@class\":\"java.lang.Long\",\"@value\":5},true,{\"@class\":\"java.lang.Double\",\"@value\":1.5},{\"@class\":\"java.lang.Short\",\"@value\":-2},"
            + "{\"@class\":\"java.lang.Byte\",\"@value\":-3},{\"@class\":\"java.lang.Float\",\"@value\":0.5},{\"@class\":\"java.lang.Character\",\"@value\":\"é\"}]";
        List<Object> some = new ArrayList<>(Arrays.asList(1, "x", null, 5L, true, 1.5, (short) -2, (byte) -3, 0.5f, 'é'));
        kryo(all, ArrayList.class, (ArrayList) some, mixed);
        kryo(all, Object.class, some, "{\"@class\":\"java.util.ArrayList\",\"@value\":" + mixed + "}");
        kryo(all, ArrayList.class, new ArrayList<>(List.of("a", "bc", "é€𝄞", "", "a string of more than thirty-two characters, in ASCII; and of more than sixty-four, too")), "[\"a\",\"bc\",\"é€𝄞\",\"\",\"a string of more than thirty-two characters, in ASCII; and of more than sixty-four, too\"]");
        kryo(all, ArrayList.class, new ArrayList<>(List.of(1, 2, 300, -70000)), "[1,2,300,-70000]");
        kryo(all, ArrayList.class, new ArrayList<>(), "[]");
        kryo(all, ArrayList.class, new ArrayList<>(Arrays.asList(null, null)), "[null,null]");
        kryo(all, ArrayList.class, new ArrayList<>(Arrays.asList("x", null)), "[\"x\",null]");
        kryo(all, java.util.LinkedList.class, new java.util.LinkedList<>(List.of(1L, Long.MIN_VALUE)), "[{\"@class\":\"java.lang.Long\",\"@value\":1},{\"@class\":\"java.lang.Long\",\"@value\":-9223372036854775808}]");
        kryo(all, java.util.LinkedHashSet.class, new java.util.LinkedHashSet<>(List.of("b", "a")), "[\"b\",\"a\"]");
        kryo(all, java.util.HashSet.class, new java.util.HashSet<>(List.of("b")), "[\"b\"]");
        kryo(all, java.util.ArrayDeque.class, new java.util.ArrayDeque<>(List.of(1, 2)), "[1,2]");
        Map<String, Object> map = new LinkedHashMap<>();
        map.put("a", 1);
        map.put("b", new ArrayList<>(List.of("x")));
        map.put(null, null);
        kryo(all, LinkedHashMap.class, (LinkedHashMap) map, "[[\"a\",1],[\"b\",{\"@class\":\"java.util.ArrayList\",\"@value\":[\"x\"]}],[null,null]]");
        kryo(all, java.util.HashMap.class, new java.util.HashMap<>(Map.of("k", 5L)), "[[\"k\",{\"@class\":\"java.lang.Long\",\"@value\":5}]]");
        kryo(all, java.util.TreeMap.class, new java.util.TreeMap<>(Map.of("k", 5)), "[[\"k\",5]]");
        kryo(all, java.util.TreeSet.class, new java.util.TreeSet<>(List.of("k", "l")), "[\"k\",\"l\"]");
        String twice = new String("twice");
        kryo(all, ArrayList.class, new ArrayList<>(List.of(twice, twice, "other")), "[\"twice\",{\"@class\":\"@reference java.lang.String\",\"@value\":1},\"other\"]");
        kryo(all, BigDecimal.class, new BigDecimal("12.340"), "12.340");
        kryo(all, BigInteger.class, new BigInteger("-1234567890123456789012"), "-1234567890123456789012");
        kryo(all, BigInteger.class, BigInteger.ZERO, "0");
        kryo(all, java.util.Date.class, new java.util.Date(1500), "1970-01-01T00:00:01.5Z");
        kryo(all, java.util.Date.class, new java.util.Date(-1500), "1969-12-31T23:59:58.5Z");
        kryo(all, java.sql.Timestamp.class, java.sql.Timestamp.from(java.time.Instant.parse("2024-02-29T01:02:03.000000004Z")), "2024-02-29T01:02:03.000000004Z");
        kryo(all, java.util.UUID.class, java.util.UUID.fromString("01234567-89ab-cdef-8123-456789abcdef"), "01234567-89ab-cdef-8123-456789abcdef");
        kryo(all, java.net.URI.class, java.net.URI.create("http://x/y"), "http://x/y");
        kryo(all, Object.class, java.time.Instant.parse("2024-02-29T01:02:03.000000004Z"), "{\"@class\":\"java.time.Instant\",\"@value\":\"2024-02-29T01:02:03.000000004Z\"}");
        kryo(all, Object.class, java.time.LocalDate.of(2024, 2, 29), "{\"@class\":\"java.time.LocalDate\",\"@value\":\"2024-02-29\"}");
        kryo(all, Object.class, java.time.LocalTime.of(23, 59, 58, 7), "{\"@class\":\"java.time.LocalTime\",\"@value\":\"23:59:58.000000007\"}");
        kryo(all, Object.class, java.time.LocalTime.of(23, 0), "{\"@class\":\"java.time.LocalTime\",\"@value\":\"23:00:00\"}");
        kryo(all, Object.class, java.time.LocalDateTime.of(2024, 2, 29, 1, 2, 3, 4), "{\"@class\":\"java.time.LocalDateTime\",\"@value\":\"2024-02-29T01:02:03.000000004\"}");
        kryo(all, Object.class, java.time.Duration.ofSeconds(-5, 7), "{\"@class\":\"java.time.Duration\",\"seconds\":-5,\"nanos\":7}");
        kryo(all, Object.class, java.util.Optional.of("x"), "{\"@class\":\"java.util.Optional\",\"value\":\"x\"}");
        kryo(all, Object.class, new int[] {1, -2}, "{\"@class\":\"[I\",\"@value\":[1,-2]}");
        kryo(all, Object.class, new byte[] {1, -2}, "{\"@class\":\"[B\",\"@value\":{\"base64\":\"Af4=\"}}");
        kryo(all, Object.class, new String[] {"a", null}, "{\"@class\":\"[Ljava.lang.String;\",\"@value\":[\"a\",null]}");
        kryo(all, Object.class, new Object[] {"a", 1}, "{\"@class\":\"[Ljava.lang.Object;\",\"@value\":[\"a\",1]}");
        kryo(all, Object.class, java.util.Collections.emptyList(), "{\"@class\":\"java.util.Collections$EmptyList\",\"@value\":null}");
        kryo(all, Object.class, java.util.Collections.singletonList("a"), "{\"@class\":\"java.util.Collections$SingletonList\",\"element\":\"a\"}");
        kryo(all, Object.class, new java.util.concurrent.ConcurrentHashMap<>(Map.of("a", 1)), "{\"@class\":\"java.util.concurrent.ConcurrentHashMap\",\"@value\":[[\"a\",1]]}");
        kryo(all, Object.class, List.of("a", 1), "{\"@class\":\"java.util.ImmutableCollections$List12\",\"@value\":[\"a\",1]}");
        kryo(all, Object.class, new java.util.PriorityQueue<>(List.of(2, 1)), "{\"@class\":\"java.util.PriorityQueue\",\"@value\":[1,2]}");
        kryo(all, Object.class, java.util.Optional.of(5L), "{\"@class\":\"java.util.Optional\",\"value\":{\"@class\":\"java.lang.Long\",\"@value\":5}}");
        kryo(all, Object.class, java.util.Optional.empty(), "{\"@class\":\"java.util.Optional\",\"value\":null}");
        kryo(all, Object.class, java.util.Collections.singletonMap("a", 5L), "{\"@class\":\"java.util.Collections$SingletonMap\",\"key\":\"a\",\"value\":{\"@class\":\"java.lang.Long\",\"@value\":5}}");
        kryo(all, Object.class, new java.util.AbstractMap.SimpleEntry<>("a", null), "{\"@class\":\"java.util.AbstractMap$SimpleEntry\",\"key\":\"a\",\"value\":null}");
        kryo(all, Object.class, java.time.OffsetDateTime.of(2024, 2, 29, 1, 2, 3, 4, java.time.ZoneOffset.ofHoursMinutes(1, 30)), "{\"@class\":\"java.time.OffsetDateTime\",\"dateTime\":\"2024-02-29T01:02:03.000000004\",\"offset\":5400}");
        kryo(all, Object.class, java.time.OffsetDateTime.of(2024, 2, 29, 1, 0, 0, 0, java.time.ZoneOffset.ofHoursMinutesSeconds(-1, -2, -3)), "{\"@class\":\"java.time.OffsetDateTime\",\"dateTime\":\"2024-02-29T01:00:00\",\"offset\":-3723}");
        kryo(all, Object.class, java.time.ZoneId.of("Europe/Berlin"), "{\"@class\":\"java.time.ZoneRegion\",\"@value\":\"Europe/Berlin\"}");
        kryo(all, Object.class, java.time.ZoneOffset.ofHours(-2), "{\"@class\":\"java.time.ZoneOffset\",\"@value\":-7200}");
        kryo(all, Object.class, java.time.Year.of(-5), "{\"@class\":\"java.time.Year\",\"@value\":-5}");
        kryo(all, Object.class, new long[] {1, -2, Long.MIN_VALUE}, "{\"@class\":\"[J\",\"@value\":[1,-2,-9223372036854775808]}");
        kryo(all, Object.class, new double[] {1.5}, "{\"@class\":\"[D\",\"@value\":[1.5]}");
        kryo(all, Object.class, new char[] {'a', 'é'}, "{\"@class\":\"[C\",\"@value\":[\"a\",\"é\"]}");
        kryo(all, Object.class, new Long[] {1L, null}, "{\"@class\":\"[Ljava.lang.Long;\",\"@value\":[1,null]}");
        kryo(all, Object.class, new Double[] {1.5, null}, "{\"@class\":\"[Ljava.lang.Double;\",\"@value\":[1.5,null]}");
        kryo(all, Object.class, new java.sql.Date(1500), "{\"@class\":\"java.sql.Date\",\"@value\":\"1970-01-01T00:00:01.5Z\"}");
        kryo(all, Object.class, java.util.Currency.getInstance("EUR"), "{\"@class\":\"java.util.Currency\",\"@value\":\"EUR\"}");
        kryo(all, Object.class, new java.util.concurrent.ConcurrentSkipListMap<>(Map.of("a", 1)), "{\"@class\":\"java.util.concurrent.ConcurrentSkipListMap\",\"@value\":[[\"a\",1]]}");
        kryo(all, Object.class, new java.util.concurrent.ConcurrentLinkedQueue<>(List.of("a")), "{\"@class\":\"java.util.concurrent.ConcurrentLinkedQueue\",\"@value\":[\"a\"]}");
        kryo(all, Object.class, Tuple2.of("a", 1), "{\"@class\":\"org.apache.flink.api.java.tuple.Tuple2\",\"f0\":\"a\",\"f1\":1}");
    }

    private static void composites(List<Serializers.Value> all) throws Exception {
        Map<String, Long> map = new LinkedHashMap<>();
        map.put("a", 1L);
        map.put("b", null);
        Serializers.add(all, Types.MAP(Types.STRING, Types.LONG), map, "[[\"a\",1],[\"b\",null]]");
        Serializers.add(all, Types.LIST(Types.STRING), List.of("", "x", "é€𝄞"), "[\"\",\"x\",\"é€𝄞\"]");
        Serializers.add(all, Types.TUPLE(Types.LONG, Types.STRING, Types.DOUBLE), Tuple3.of(Long.MIN_VALUE, null, Double.NaN), "[-9223372036854775808,null,\"NaN\"]");
        Serializers.add(all, Types.TUPLE(Types.FLOAT, Types.BOOLEAN), Tuple2.of(-0.0f, true), "[-0,true]");
        Serializers.add(all, new EitherTypeInfo<>(Types.INT, Types.STRING), Either.Right("r"), "{\"right\":\"r\"}");
        Serializers.add(all, Types.OBJECT_ARRAY(Types.INT), new Integer[] {1, null, -3}, "[1,null,-3]");
        Serializers.add(all, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO, new byte[] {0, -1}, "{\"base64\":\"AP8=\"}");
        Serializers.add(all, PrimitiveArrayTypeInfo.DOUBLE_PRIMITIVE_ARRAY_TYPE_INFO, new double[] {1.5, Double.NEGATIVE_INFINITY}, "[1.5,\"-Infinity\"]");
        Serializers.add(all, Types.ENUM(TimeUnit.class), TimeUnit.DAYS, "DAYS");
        Serializers.add(all, Types.CHAR, '✓', "✓");
        Serializers.add(all, Types.BIG_INT, new BigInteger("-170141183460469231731687303715884105728"), "-170141183460469231731687303715884105728");
        Serializers.add(all, NullableSerializer.wrap(LongSerializer.INSTANCE, true), null, "null");
        Serializers.add(all, new TtlStateFactory.TtlSerializer<>(LongSerializer.INSTANCE, StringSerializer.INSTANCE), new TtlValue<>("v", 7), "[7,\"v\"]");
        Serializers.add(all, new TimeWindow.Serializer(), new TimeWindow(1, 2), "{\"start\":1,\"end\":2}");
        Serializers.add(all, new StreamElementSerializer<>(StringSerializer.INSTANCE), (StreamElement) new StreamRecord<>("x", 5), "{\"timestamp\":5,\"record\":\"x\"}");
        Serializers.add(all, new StreamElementSerializer<>(StringSerializer.INSTANCE), (StreamElement) new Watermark(9), "{\"watermark\":9}");
        Serializers.add(all, new ArrayListSerializer<>(LongSerializer.INSTANCE), new ArrayList<>(List.of(1L, 2L)), "[1,2]");
        Serializers.add(all, new JavaSerializer<String>(), "java", "java");
        Serializers.add(all, new JavaSerializer<Integer>(), 7, "7");
        Serializers.add(all, new JavaSerializer<Long>(), 7L, "{\"@class\":\"java.lang.Long\",\"@value\":7}");
    }

    private static void sql(List<Serializers.Value> all) throws Exception {
        LogicalType row = RowType.of(new LogicalType[] {new BigIntType(), new VarCharType(100)}, new String[] {"id", "name"});
        LogicalType[] types = {
            new BooleanType(), new TinyIntType(), new SmallIntType(), new IntType(), new BigIntType(), new FloatType(), new DoubleType(),
            new CharType(3), new VarCharType(VarCharType.MAX_LENGTH), new BinaryType(2), new VarBinaryType(100),
            new DecimalType(10, 2), new DecimalType(38, 10), new DateType(), new TimeType(3),
            new TimestampType(3), new TimestampType(9), new LocalZonedTimestampType(3), new LocalZonedTimestampType(6),
            new YearMonthIntervalType(YearMonthIntervalType.YearMonthResolution.YEAR_TO_MONTH), new DayTimeIntervalType(DayTimeIntervalType.DayTimeResolution.DAY_TO_SECOND),
            new ArrayType(new IntType()), new ArrayType(new VarCharType(20)), new MapType(new VarCharType(20), new DoubleType()), new MultisetType(new VarCharType(5)), row,
            new ArrayType(new TimestampType(9)), new ArrayType(new DecimalType(30, 1)), new ArrayType(row),
        };
        GenericRowData full = new GenericRowData(types.length);
        Object[] fields = {
            true, (byte) -1, (short) 300, -70000, 1L << 40, 1.5f, Double.NaN,
            StringData.fromString("abc"), StringData.fromString("longer than seven"), new byte[] {1, 2}, new byte[] {1, 2, 3, 4, 5, 6, 7, 8, 9},
            DecimalData.fromBigDecimal(new BigDecimal("-12.34"), 10, 2), DecimalData.fromBigDecimal(new BigDecimal("1234567890123456789012345678.0123456789"), 38, 10), 19782, 3_600_001,
            TimestampData.fromEpochMillis(1500), TimestampData.fromEpochMillis(-1, 7), TimestampData.fromEpochMillis(0), TimestampData.fromEpochMillis(1, 500_000),
            14, 86_400_000L,
            new GenericArrayData(new Integer[] {1, null, 3}), new GenericArrayData(new Object[] {StringData.fromString("short"), null, StringData.fromString("more than seven")}),
            new GenericMapData(Map.of(StringData.fromString("k"), 2.5)), new GenericMapData(Map.of(StringData.fromString("m"), 2)),
            GenericRowData.of(7L, StringData.fromString("seven")),
            new GenericArrayData(new Object[] {TimestampData.fromEpochMillis(5, 6), null}), new GenericArrayData(new Object[] {null, DecimalData.fromBigDecimal(new BigDecimal("0.5"), 30, 1)}),
            new GenericArrayData(new Object[] {GenericRowData.of(1L, null), GenericRowData.ofKind(RowKind.DELETE, null, StringData.fromString("x"))}),
        };
        for (int i = 0; i < fields.length; i++) {
            full.setField(i, fields[i]);
        }
        String text = "[true,-1,300,-70000,1099511627776,1.5,\"NaN\",\"abc\",\"longer than seven\",{\"base64\":\"AQI=\"},{\"base64\":\"AQIDBAUGBwgJ\"},"
            + "-12.34,1234567890123456789012345678.0123456789,\"2024-02-29\",\"01:00:00.001\","
            + "\"1970-01-01T00:00:01.5\",\"1969-12-31T23:59:59.999000007\",\"1970-01-01T00:00:00Z\",\"1970-01-01T00:00:00.0015Z\",14,86400000,"
            + "[1,null,3],[\"short\",null,\"more than seven\"],[[\"k\",2.5]],[[\"m\",2]],{\"id\":7,\"name\":\"seven\"},"
            + "[\"1970-01-01T00:00:00.005000006\",null],[null,0.5],[{\"id\":1,\"name\":null},{\"kind\":\"DELETE\",\"fields\":{\"id\":null,\"name\":\"x\"}}]]";
        RowDataSerializer rows = new RowDataSerializer(types);
        Serializers.add(all, (TypeSerializer<RowData>) rows, full, text);
        StringBuilder nulls = new StringBuilder("{\"kind\":\"UPDATE_AFTER\",\"fields\":[null");
        for (int i = 1; i < types.length; i++) {
            nulls.append(",null");
        }
        GenericRowData empty = new GenericRowData(types.length);
        empty.setRowKind(RowKind.UPDATE_AFTER);
        Serializers.add(all, (TypeSerializer<RowData>) rows, empty, nulls + "]}");
        Serializers.add(all, StringDataSerializer.INSTANCE, StringData.fromString("é"), "é");
        Serializers.add(all, new DecimalDataSerializer(30, 3), DecimalData.fromBigDecimal(new BigDecimal("-1.5"), 30, 3), "-1.500");
        Serializers.add(all, new TimestampDataSerializer(6), TimestampData.fromEpochMillis(1, 1000), "1970-01-01T00:00:00.001001");
        Serializers.add(all, new ArrayDataSerializer(new VarCharType(10)), new GenericArrayData(new Object[] {StringData.fromString("x"), null}), "[\"x\",null]");
        Serializers.add(all, new MapDataSerializer(new IntType(), new ArrayType(new BigIntType())), new GenericMapData(Map.of(5, new GenericArrayData(new Long[] {1L, null}))), "[[5,[1,null]]]");
        java.util.LinkedList<Long> linked = new java.util.LinkedList<>(Arrays.asList(1L, null, 3L));
        Serializers.add(all, new LinkedListSerializer<>(LongSerializer.INSTANCE), linked, "[1,null,3]");
    }

    private static void avro(List<Serializers.Value> all) throws Exception {
        Schema schema = new Schema.Parser().parse("{\"type\":\"record\",\"name\":\"R\",\"namespace\":\"n\",\"fields\":["
            + "{\"name\":\"i\",\"type\":\"int\"},{\"name\":\"l\",\"type\":\"long\"},{\"name\":\"b\",\"type\":\"boolean\"},{\"name\":\"d\",\"type\":\"double\"},{\"name\":\"f\",\"type\":\"float\"},"
            + "{\"name\":\"s\",\"type\":\"string\"},{\"name\":\"y\",\"type\":\"bytes\"},{\"name\":\"e\",\"type\":{\"type\":\"enum\",\"name\":\"E\",\"symbols\":[\"A\",\"B\"]}},"
            + "{\"name\":\"x\",\"type\":{\"type\":\"fixed\",\"name\":\"F\",\"size\":2}},{\"name\":\"o\",\"type\":[\"null\",\"string\"]},{\"name\":\"u\",\"type\":[\"null\",\"string\",\"long\"]},"
            + "{\"name\":\"a\",\"type\":{\"type\":\"array\",\"items\":\"long\"}},{\"name\":\"m\",\"type\":{\"type\":\"map\",\"values\":\"string\"}},"
            + "{\"name\":\"t\",\"type\":{\"type\":\"long\",\"logicalType\":\"timestamp-millis\"}},{\"name\":\"day\",\"type\":{\"type\":\"int\",\"logicalType\":\"date\"}},"
            + "{\"name\":\"c\",\"type\":{\"type\":\"bytes\",\"logicalType\":\"decimal\",\"precision\":10,\"scale\":2}},"
            + "{\"name\":\"next\",\"type\":[\"null\",\"R\"]}]}");
        GenericRecord inner = record(schema, null, Map.of());
        GenericRecord outer = record(schema, inner, Map.of("k", "v"));
        String innerText = "{\"i\":-1,\"l\":2,\"b\":true,\"d\":0.5,\"f\":1.5,\"s\":\"é\",\"y\":{\"base64\":\"AQ==\"},\"e\":\"B\",\"x\":{\"base64\":\"CAk=\"},\"o\":null,\"u\":{\"long\":5},\"a\":[1,2,3],\"m\":%s,"
            + "\"t\":\"1970-01-01T00:00:01.5Z\",\"day\":\"2024-02-29\",\"c\":-0.05,\"next\":%s}";
        Serializers.add(all, new GenericRecordAvroTypeInfo(schema), outer, String.format(innerText, "[[\"k\",\"v\"]]", String.format(innerText, "[]", "null")));
    }

    private static GenericRecord record(Schema schema, GenericRecord next, Map<String, String> map) {
        GenericRecord r = new GenericData.Record(schema);
        r.put("i", -1);
        r.put("l", 2L);
        r.put("b", true);
        r.put("d", 0.5);
        r.put("f", 1.5f);
        r.put("s", "é");
        r.put("y", ByteBuffer.wrap(new byte[] {1}));
        r.put("e", new GenericData.EnumSymbol(schema.getField("e").schema(), "B"));
        r.put("x", new GenericData.Fixed(schema.getField("x").schema(), new byte[] {8, 9}));
        r.put("o", null);
        r.put("u", 5L);
        r.put("a", List.of(1L, 2L, 3L));
        r.put("m", map);
        r.put("t", 1500L);
        r.put("day", 19782);
        r.put("c", ByteBuffer.wrap(new byte[] {-5}));
        r.put("next", next);
        return r;
    }

    private MoreValues() {}
}
