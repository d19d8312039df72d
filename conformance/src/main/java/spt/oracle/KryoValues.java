package spt.oracle;

import de.javakaffee.kryoserializers.jodatime.JodaDateTimeSerializer;
import de.javakaffee.kryoserializers.jodatime.JodaIntervalSerializer;
import de.javakaffee.kryoserializers.jodatime.JodaLocalDateSerializer;
import de.javakaffee.kryoserializers.jodatime.JodaLocalDateTimeSerializer;
import de.javakaffee.kryoserializers.jodatime.JodaLocalTimeSerializer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.Date;
import java.util.EnumSet;
import java.util.GregorianCalendar;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalInt;
import java.util.OptionalLong;
import java.util.PriorityQueue;
import java.util.TimeZone;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.concurrent.LinkedBlockingDeque;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicIntegerArray;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.AtomicReference;
import java.util.regex.Pattern;
import org.apache.avro.Schema;
import org.apache.avro.generic.GenericData;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.types.Row;
import org.joda.time.DateTime;
import org.joda.time.DateTimeZone;
import org.joda.time.Interval;

/** Values of well-known classes in Kryo, with their JSON. */
final class KryoValues {
    /** An enum that spt does not know. */
    public enum Color {
        RED, GREEN, BLUE
    }

    private final List<Serializers.Value> all;
    private final boolean kryo2 = Runner.flinkVersion().startsWith("1.");

    private KryoValues(List<Serializers.Value> all) {
        this.all = all;
    }

    static void add(List<Serializers.Value> all) throws Exception {
        KryoValues values = new KryoValues(all);
        values.jdk();
        values.sorted();
        values.others();
        values.joda();
        Versioned.scala(values);
    }

    /** An object, and its JSON without the class. */
    void object(Object value, String text) throws Exception {
        Serializers.add(all, new GenericTypeInfo<>(Object.class), value, "{\"@class\":\"" + value.getClass().getName() + "\"," + (text.startsWith("{") && !text.startsWith("{\"base64\"") && !text.startsWith("{\"@class\"") ? text.substring(1) : "\"@value\":" + text + "}"));
    }

    private String either(String two, String five) {
        return kryo2 ? two : five;
    }

    private void jdk() throws Exception {
        object(OptionalInt.of(5), "5");
        object(OptionalInt.empty(), "null");
        object(OptionalLong.of(-5), "-5");
        object(OptionalLong.empty(), "null");
        object(OptionalDouble.of(1.5), "1.5");
        object(OptionalDouble.empty(), "null");
        object(TimeUnit.SECONDS, "\"SECONDS\"");
        object(java.time.DayOfWeek.FRIDAY, "\"FRIDAY\"");
        object(java.time.temporal.ChronoUnit.FOREVER, "\"FOREVER\"");
        object(java.math.RoundingMode.HALF_EVEN, "\"HALF_EVEN\"");
        object(new ArrayList<>(Arrays.asList(java.time.Month.MAY, null)), "[{\"@class\":\"java.time.Month\",\"@value\":\"MAY\"},null]");
        object(EnumSet.of(TimeUnit.SECONDS, TimeUnit.DAYS), "{\"type\":\"java.util.concurrent.TimeUnit\",\"elements\":[\"SECONDS\",\"DAYS\"]}");
        object(EnumSet.of(Color.RED, Color.BLUE), "{\"type\":\"spt.oracle.KryoValues$Color\",\"elements\":[0,2]}");
        object(EnumSet.noneOf(Character.UnicodeScript.class), "{\"type\":\"java.lang.Character$UnicodeScript\",\"elements\":[]}");
        object(BitSet.valueOf(new long[] {5, Long.MIN_VALUE}), "{\"base64\":\"BQAAAAAAAAAAAAAAAAAAgA==\"}");
        object(new BitSet(), either("{\"base64\":\"AAAAAAAAAAA=\"}", "{\"base64\":\"\"}"));
        object(Pattern.compile("a.*", Pattern.CASE_INSENSITIVE), either("\"a.*\"", "{\"pattern\":\"a.*\",\"flags\":2}"));
        object(new Locale("de", "DE", "POSIX"), either("{\"country\":\"DE\",\"extensions\":\"\",\"language\":\"de\",\"script\":\"\",\"variant\":\"POSIX\"}", "{\"language\":\"de\",\"country\":\"DE\",\"variant\":\"POSIX\"}"));
        object(Locale.ROOT, either("{\"country\":\"\",\"extensions\":\"\",\"language\":\"\",\"script\":\"\",\"variant\":\"\"}", "{\"language\":\"\",\"country\":\"\",\"variant\":\"\"}"));
        object(new AtomicInteger(5), "5");
        object(new AtomicLong(-5), "-5");
        object(new AtomicBoolean(true), "1");
        object(new AtomicReference<>("x"), "{\"value\":\"x\"}");
        object(new AtomicIntegerArray(new int[] {1, -2}), "[1,-2]");
        object(new AtomicLongArray(new long[] {1, -2}), "[1,-2]");
        object(new StringBuilder("ab"), "\"ab\"");
        object(new StringBuffer("é"), "\"é\"");
        object(java.net.InetSocketAddress.createUnresolved("host", 80), "{\"host\":\"host\",\"port\":80}");
        object(TimeZone.getTimeZone("Europe/Berlin"), "\"Europe/Berlin\"");
        GregorianCalendar calendar = new GregorianCalendar(TimeZone.getTimeZone("Europe/Berlin"), Locale.ROOT);
        calendar.setTimeInMillis(-1500);
        object(calendar, "{\"timeZone\":\"Europe/Berlin\",\"time\":\"1969-12-31T23:59:58.5Z\",\"lenient\":true,\"firstDayOfWeek\":1,\"minimalDaysInFirstWeek\":1,\"gregorianChange\":-12219292800000}");
        object(new LinkedBlockingDeque<>(List.of("a")), "[\"a\"]");
        object(new java.util.concurrent.CopyOnWriteArraySet<>(List.of("a")), "[\"a\"]");
        object(new java.util.IdentityHashMap<>(Map.of("a", 1)), "[[\"a\",1]]");
        object(Collections.synchronizedMap(new TreeMap<>(Map.of("a", 1))), "[[\"a\",1]]");
        object(new int[][] {{1}, {2, 3}, null}, "[[1],[2,3],null]");
        object(new String[][] {{"a"}, null}, "[[\"a\"],null]");
        object(new UUID[] {new UUID(1, 2), null}, "[\"00000000-0000-0001-0000-000000000002\",null]");
        object(new Date[] {new Date(5), null}, "[{\"@class\":\"java.util.Date\",\"@value\":\"1970-01-01T00:00:00.005Z\"},null]");
        object(new List[] {new ArrayList<>(List.of("a"))}, "[{\"@class\":\"java.util.ArrayList\",\"@value\":[\"a\"]}]");
    }

    private void sorted() throws Exception {
        String reverse = "{\"comparator\":{\"@class\":\"java.util.Collections$ReverseComparator\",\"@value\":null},\"elements\":";
        PriorityQueue<Integer> queue = new PriorityQueue<>(Collections.reverseOrder());
        object(queue, reverse + "[]}");
        queue.addAll(List.of(1, 2));
        object(queue, reverse + "[2,1]}");
        TreeMap<String, Integer> map = new TreeMap<>(String.CASE_INSENSITIVE_ORDER);
        map.put("a", 1);
        object(map, "{\"comparator\":{\"@class\":\"java.lang.String$CaseInsensitiveComparator\",\"@value\":null},\"elements\":[[\"a\",1]]}");
        TreeSet<String> set = new TreeSet<>(Collections.reverseOrder(String.CASE_INSENSITIVE_ORDER));
        set.addAll(List.of("a", "B"));
        object(set, "{\"comparator\":{\"@class\":\"java.util.Collections$ReverseComparator2\",\"comparator\":{\"@class\":\"java.lang.String$CaseInsensitiveComparator\",\"@value\":null}},\"elements\":[\"B\",\"a\"]}");
        TreeMap<String, Integer> nulls = new TreeMap<>(java.util.Comparator.nullsFirst(java.util.Comparator.<String>naturalOrder()));
        nulls.put("a", 1);
        object(nulls, "{\"comparator\":{\"@class\":\"java.util.Comparators$NullComparator\",\"nullFirst\":true,\"comparator\":{\"@class\":\"java.util.Comparators$NaturalOrderComparator\",\"@value\":\"INSTANCE\"}},\"elements\":[[\"a\",1]]}");
        object(new TreeSet<>(), "[]");
        object(new PriorityQueue<>(), "[]");
    }

    private void others() throws Exception {
        object(Row.of(1, "x"), "{\"fieldByName\":null,\"fieldByPosition\":{\"@class\":\"[Ljava.lang.Object;\",\"@value\":[1,\"x\"]},\"kind\":\"INSERT\",\"positionByName\":null}");
        object(new TimeWindow(1, 2), "{\"end\":2,\"start\":1}");
        object(new GenericData.Array<>(Schema.createArray(Schema.create(Schema.Type.STRING)), List.of("a", "b")),
            either("[\"a\",\"b\"]", "{\"schema\":\"{\\\"type\\\":\\\"array\\\",\\\"items\\\":\\\"string\\\"}\",\"avro\":{\"base64\":\"BAJhAmIA\"}}"));
        if (!kryo2) {
            object(java.nio.charset.StandardCharsets.UTF_8, "\"UTF-8\"");
        }
    }

    private void joda() throws Exception {
        SerializerConfigImpl config = new SerializerConfigImpl();
        config.registerTypeWithKryoSerializer(DateTime.class, JodaDateTimeSerializer.class);
        config.registerTypeWithKryoSerializer(org.joda.time.LocalDate.class, JodaLocalDateSerializer.class);
        config.addDefaultKryoSerializer(Interval.class, JodaIntervalSerializer.class);
        config.addDefaultKryoSerializer(org.joda.time.LocalTime.class, JodaLocalTimeSerializer.class);
        config.addDefaultKryoSerializer(org.joda.time.LocalDateTime.class, JodaLocalDateTimeSerializer.class);
        DateTimeZone berlin = DateTimeZone.forID("Europe/Berlin");
        joda(config, DateTime.class, new DateTime(-1500, berlin), "{\"time\":\"1969-12-31T23:59:58.5Z\",\"chronology\":\"\",\"zone\":\"Europe/Berlin\"}");
        joda(config, DateTime.class, new DateTime(1500, org.joda.time.chrono.BuddhistChronology.getInstanceUTC()), "{\"time\":\"1970-01-01T00:00:01.5Z\",\"chronology\":\"BUDDHIST\",\"zone\":\"UTC\"}");
        joda(config, Interval.class, new Interval(1500, 2500, DateTimeZone.UTC), "{\"start\":\"1970-01-01T00:00:01.5Z\",\"end\":\"1970-01-01T00:00:02.5Z\",\"chronology\":\"\"}");
        joda(config, org.joda.time.LocalDate.class, new org.joda.time.LocalDate(2024, 2, 29), "2024-02-29");
        joda(config, org.joda.time.LocalTime.class, new org.joda.time.LocalTime(23, 2, 3, 4), "23:02:03.004");
        joda(config, org.joda.time.LocalDateTime.class, new org.joda.time.LocalDateTime(2024, 2, 29, 1, 2, 3, 4), "2024-02-29T01:02:03.004");
        object(new org.joda.time.Instant(-1500), "\"1969-12-31T23:59:58.5Z\"");
        object(new org.joda.time.Duration(1500), "1500");
        object(org.joda.time.Days.days(2), "2");
        object(DateTimeZone.UTC, "{\"iID\":\"UTC\"}");
        object(new DateTime(1500, DateTimeZone.UTC), "{\"iChronology\":{\"@class\":\"org.joda.time.chrono.ISOChronology\",\"iBase\":{\"@class\":\"org.joda.time.chrono.GregorianChronology\",\"iBase\":null,\"iMinDaysInFirstWeek\":4,\"iParam\":null},\"iParam\":null},\"iMillis\":\"1970-01-01T00:00:01.5Z\"}");
    }

    private <T> void joda(SerializerConfigImpl config, Class<T> type, T value, String text) throws Exception {
        Serializers.add(all, new GenericTypeInfo<>(type).createSerializer(config), value, text);
    }
}
