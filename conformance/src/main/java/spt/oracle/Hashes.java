package spt.oracle;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Date;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.UUID;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.api.java.tuple.Tuple1;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.api.java.tuple.Tuple3;
import org.apache.flink.api.java.typeutils.EitherTypeInfo;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.table.data.DecimalData;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.data.TimestampData;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.table.runtime.typeutils.BinaryRowDataSerializer;
import org.apache.flink.table.runtime.typeutils.DecimalDataSerializer;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.runtime.typeutils.StringDataSerializer;
import org.apache.flink.table.runtime.typeutils.TimestampDataSerializer;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.DecimalType;
import org.apache.flink.table.types.logical.IntType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.types.BooleanValue;
import org.apache.flink.types.ByteValue;
import org.apache.flink.types.CharValue;
import org.apache.flink.types.DoubleValue;
import org.apache.flink.types.Either;
import org.apache.flink.types.FloatValue;
import org.apache.flink.types.IntValue;
import org.apache.flink.types.LongValue;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.types.ShortValue;
import org.apache.flink.types.StringValue;

/** Values of types that can be keys, each with its hash code as text. */
final class Hashes {
    private final List<Serializers.Value> all = new ArrayList<>();
    private final Random random = new Random(7);

    static List<Serializers.Value> all() throws Exception {
        Hashes hashes = new Hashes();
        hashes.numbers();
        hashes.texts();
        hashes.times();
        hashes.composites();
        hashes.rows();
        hashes.sql();
        return hashes.all;
    }

    private <T> void add(TypeInformation<T> info, T value) throws Exception {
        add(info.createSerializer(new SerializerConfigImpl()), value);
    }

    private <T> void add(TypeSerializer<T> serializer, T value) throws Exception {
        Serializers.add(all, serializer, value, Integer.toString(value.hashCode()));
    }

    private void numbers() throws Exception {
        for (boolean b : new boolean[] {true, false}) {
            add(Types.BOOLEAN, b);
            add(TypeInformation.of(BooleanValue.class), new BooleanValue(b));
        }
        long[] longs = new long[24];
        for (int i = 0; i < longs.length; i++) {
            longs[i] = i < 8 ? new long[] {0, 1, -1, 127, -128, Long.MAX_VALUE, Long.MIN_VALUE, 1L << 32}[i] : random.nextLong() >> random.nextInt(60);
        }
        for (long n : longs) {
            add(Types.BYTE, (byte) n);
            add(Types.SHORT, (short) n);
            add(Types.INT, (int) n);
            add(Types.LONG, n);
            add(Types.CHAR, (char) n);
            add(TypeInformation.of(ByteValue.class), new ByteValue((byte) n));
            add(TypeInformation.of(ShortValue.class), new ShortValue((short) n));
            add(TypeInformation.of(IntValue.class), new IntValue((int) n));
            add(TypeInformation.of(LongValue.class), new LongValue(n));
            add(TypeInformation.of(CharValue.class), new CharValue((char) n));
            double[] doubles = {n, n / 3.0, Double.longBitsToDouble(n)};
            for (double d : doubles) {
                add(Types.DOUBLE, d);
                add(Types.FLOAT, (float) d);
                add(TypeInformation.of(DoubleValue.class), new DoubleValue(d));
                add(TypeInformation.of(FloatValue.class), new FloatValue((float) d));
            }
            BigInteger big = BigInteger.valueOf(n);
            for (int i = 0; i < 3; i++) {
                add(Types.BIG_INT, big);
                add(Types.BIG_DEC, new BigDecimal(big, (int) n % 40));
                big = big.multiply(BigInteger.valueOf(random.nextLong()));
            }
        }
        for (double d : new double[] {-0.0, Double.NaN, Double.longBitsToDouble(0xfff8000000000001L), Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY, Double.MIN_VALUE}) {
            add(Types.DOUBLE, d);
            add(Types.FLOAT, (float) d);
            add(TypeInformation.of(DoubleValue.class), new DoubleValue(d));
        }
        for (String s : new String[] {"1.0", "1.00", "-0.5", "0", "0.000", "1E+30", "-9223372036854775808", "-92233720368547758.08"}) {
            add(Types.BIG_DEC, new BigDecimal(s));
        }
    }

    private String text() {
        StringBuilder s = new StringBuilder();
        int limit = new int[] {0x80, 0x800, 0x10000}[random.nextInt(3)];
        for (int n = random.nextInt(40); n > 0; n--) {
            s.append((char) random.nextInt(limit)); // lone surrogates, too
        }
        return s.toString();
    }

    private void texts() throws Exception {
        List<String> texts = new ArrayList<>(List.of("", "a", "user-17", "größe", "日本語", "\ud83d\ude00", "\ud83d", "\ude00x", "\u0000", "polygenelubricants"));
        for (int i = 0; i < 30; i++) {
            texts.add(text());
        }
        for (String s : texts) {
            add(Types.STRING, s);
            add(TypeInformation.of(StringValue.class), new StringValue(s));
        }
        for (String s : new String[] {"", "a", "ab", "abc", "abcd", "user-17", "größe", "日本語", "\ud83d\ude00 smile"}) {
            add(StringDataSerializer.INSTANCE, StringData.fromString(s));
        }
        for (int i = 0; i < 10; i++) {
            add(new GenericTypeInfo<>(UUID.class), new UUID(random.nextLong(), random.nextLong()));
        }
    }

    private void times() throws Exception {
        for (String s : new String[] {"1969-12-31T23:59:59.123456789Z", "2024-02-29T01:02:03.5Z", "-0043-03-15T12:00:00Z", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999999999Z", "+12345-01-01T00:00:00Z"}) {
            Instant at = Instant.parse(s);
            LocalDateTime local = LocalDateTime.ofEpochSecond(at.getEpochSecond(), at.getNano(), java.time.ZoneOffset.UTC);
            add(Types.INSTANT, at);
            add(TypeInformation.of(Date.class), new Date(at.toEpochMilli()));
            add(Types.SQL_DATE, new java.sql.Date(at.toEpochMilli()));
            add(Types.SQL_TIME, new Time(at.toEpochMilli()));
            add(Types.SQL_TIMESTAMP, Timestamp.from(at));
            add(Types.LOCAL_DATE, local.toLocalDate());
            add(Types.LOCAL_TIME, local.toLocalTime());
            add(Types.LOCAL_DATE_TIME, local);
            add(new TimestampDataSerializer(9), TimestampData.fromInstant(at));
            add(new TimestampDataSerializer(3), TimestampData.fromEpochMillis(at.toEpochMilli()));
        }
        add(Types.LOCAL_DATE, LocalDate.MIN);
        add(Types.LOCAL_DATE, LocalDate.MAX);
        add(Types.LOCAL_TIME, LocalTime.MAX);
        add(Types.INSTANT, Instant.MIN);
        add(Types.INSTANT, Instant.MAX);
    }

    private void composites() throws Exception {
        TypeInformation<Tuple2<Integer, String>> pair = Types.TUPLE(Types.INT, Types.STRING);
        add(Types.<Tuple1<Long>>TUPLE(Types.LONG), Tuple1.of(-5L));
        for (int i = 0; i < 10; i++) {
            add(pair, Tuple2.of(random.nextInt(), text()));
            add(Types.<Tuple3<Tuple2<Integer, String>, Double, List<Long>>>TUPLE(pair, Types.DOUBLE, Types.LIST(Types.LONG)), Tuple3.of(Tuple2.of(i, text()), random.nextDouble(), Arrays.asList(1L, random.nextLong())));
        }
        add(pair, Tuple2.of(1, null)); // a string has a null
        Tuple most = Tuple.newInstance(25);
        TypeInformation<?>[] ints = new TypeInformation<?>[25];
        for (int i = 0; i < 25; i++) {
            ints[i] = Types.INT;
            most.setField(random.nextInt(), i);
        }
        add(Types.<Tuple>TUPLE(ints), most);
        add(Types.LIST(Types.STRING), new ArrayList<>(List.of()));
        add(Types.LIST(Types.STRING), new ArrayList<>(List.of("a", "", "b")));
        Map<String, Long> three = two();
        three.put("", 1L << 40);
        add(Types.MAP(Types.STRING, Types.LONG), three);
        Map<String, Long> nulls = new LinkedHashMap<>();
        nulls.put("x", null);
        add(Types.MAP(Types.STRING, Types.LONG), nulls);
        add(new EitherTypeInfo<>(Types.INT, Types.STRING), Either.Left(7));
        add(new EitherTypeInfo<>(Types.INT, Types.STRING), Either.Right("seven"));
    }

    private void rows() throws Exception {
        TypeInformation<Row> rows = Types.ROW(Types.INT, Types.STRING, Types.INSTANT);
        add(rows, Row.of(7, null, Instant.EPOCH));
        add(rows, Row.of(null, null, null));
        add(rows, Row.of(-7, "größe", Instant.MAX));
        for (RowKind kind : RowKind.values()) {
            add(rows, Row.ofKind(kind, 1, "x", null));
        }
        add(Types.ROW(Types.LONG, rows), Row.of(5L, Row.of(1, "in", null)));
        add(Types.ROW(Types.PRIMITIVE_ARRAY(Types.BYTE)), Row.of((Object) new byte[] {1, -2, 3}));
        add(Types.ROW(Types.PRIMITIVE_ARRAY(Types.BOOLEAN)), Row.of((Object) new boolean[] {true, false}));
        add(Types.ROW(Types.PRIMITIVE_ARRAY(Types.SHORT)), Row.of((Object) new short[] {1, -2, 3}));
        add(Types.ROW(Types.PRIMITIVE_ARRAY(Types.INT)), Row.of((Object) new int[] {1, -2, 3}));
        add(Types.ROW(Types.PRIMITIVE_ARRAY(Types.LONG)), Row.of((Object) new long[] {1, -2, 1L << 40}));
        add(Types.ROW(Types.PRIMITIVE_ARRAY(Types.FLOAT)), Row.of((Object) new float[] {1, -0f, Float.NaN}));
        add(Types.ROW(Types.PRIMITIVE_ARRAY(Types.DOUBLE)), Row.of((Object) new double[] {1, -0.0, Double.NaN}));
        add(Types.ROW(Types.PRIMITIVE_ARRAY(Types.CHAR)), Row.of((Object) new char[] {'a', '\ud83d'}));
        add(Types.ROW(Types.OBJECT_ARRAY(Types.STRING)), Row.of((Object) new String[] {"a", null}));
        add(Types.ROW(Types.OBJECT_ARRAY(Types.LONG)), Row.of((Object) new Long[] {1L, null, -1L}));
        add(Types.ROW(Types.LIST(Types.STRING)), Row.of(new ArrayList<>(List.of("a", "b"))));
        add(Types.ROW(Types.LIST(Types.LIST(Types.LONG))), Row.of(new ArrayList<>(List.of(new ArrayList<>(List.of(1L, 2L))))));
        add(Types.ROW(Types.MAP(Types.STRING, Types.LONG)), Row.of(two()));
        add(Types.ROW(Types.TUPLE(Types.INT, Types.STRING), Types.BIG_DEC), Row.of(Tuple2.of(1, "t"), new BigDecimal("-1.50")));
    }

    private void sql() throws Exception {
        LogicalType[] types = {new IntType(), new VarCharType(100), new BigIntType(), new DecimalType(30, 2)};
        RowDataSerializer rows = new RowDataSerializer(types);
        for (int i = 0; i < 12; i++) {
            GenericRowData row = GenericRowData.of(random.nextInt(), StringData.fromString("key-" + i + "x".repeat(i)), random.nextLong(), DecimalData.fromBigDecimal(new BigDecimal(random.nextInt()).movePointLeft(2), 30, 2));
            if (i % 4 == 1) {
                row.setField(i % 3, null);
            }
            BinaryRowData binary = rows.toBinaryRow(row).copy();
            add((TypeSerializer) rows, (RowData) binary);
            add(new BinaryRowDataSerializer(types.length), binary);
        }
        BinaryRowData empty = new RowDataSerializer(new LogicalType[0]).toBinaryRow(new GenericRowData(0)).copy();
        add(new BinaryRowDataSerializer(0), empty);
        for (String s : new String[] {"1.50", "-0.01", "123456789012345678901234.56"}) {
            add(new DecimalDataSerializer(30, 2), DecimalData.fromBigDecimal(new BigDecimal(s), 30, 2));
        }
        add(new DecimalDataSerializer(10, 2), DecimalData.fromBigDecimal(new BigDecimal("-12.34"), 10, 2));
    }

    /** Returns a map in an order of its own: that of Map.of differs between JVMs. */
    private static Map<String, Long> two() {
        Map<String, Long> map = new LinkedHashMap<>();
        map.put("a", 1L);
        map.put("b", -1L);
        return map;
    }
}
