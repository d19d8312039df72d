package spt.oracle;

import java.math.BigDecimal;
import java.sql.Time;
import java.sql.Timestamp;
import java.time.Instant;
import java.time.LocalDate;
import java.time.LocalDateTime;
import java.time.LocalTime;
import java.time.temporal.ChronoUnit;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSchemaCompatibility;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshotSerializationUtil;
import org.apache.flink.api.common.typeutils.base.VoidSerializer;
import org.apache.flink.api.java.typeutils.EitherTypeInfo;
import org.apache.flink.api.java.typeutils.GenericTypeInfo;
import org.apache.flink.api.java.typeutils.runtime.NullableSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.VoidNamespaceSerializer;
import org.apache.flink.streaming.api.operators.TimerSerializer;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.types.IntValue;
import org.apache.flink.types.LongValue;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;

/** What Flink says of a serializer that takes over from another one. */
final class Serializers {
    /** POJOs whose snapshots can pass for each other's: names of one length. */
    public static class FormA {
        public int id;
        public String name;
    }

    /** A field more. */
    public static class FormB {
        public int id;
        public String name;
        public long more;
    }

    /** A field of another type. */
    public static class FormC {
        public long id;
        public String name;
    }

    /** A field inside that may change. */
    public static class FormD {
        public int id;
        public FormA inner;
    }

    /** Enums whose snapshots can pass for each other's. */
    public enum KindA {
        X, Y
    }

    /** A constant more. */
    public enum KindB {
        X, Y, Z
    }

    /** Another order. */
    public enum KindC {
        Y, X
    }

    /** Snapshots by what they are of. */
    static Map<String, String> all() throws Exception {
        Map<String, TypeSerializer<?>> all = new LinkedHashMap<>();
        TypeInformation<?>[] infos = {
            Types.BOOLEAN, Types.BYTE, Types.SHORT, Types.INT, Types.LONG, Types.FLOAT, Types.DOUBLE, Types.CHAR, Types.STRING, Types.BIG_DEC, Types.BIG_INT,
            Types.SQL_DATE, Types.INSTANT, Types.LOCAL_DATE, Types.PRIMITIVE_ARRAY(Types.BYTE), Types.PRIMITIVE_ARRAY(Types.LONG),
            Types.TUPLE(Types.INT, Types.STRING), Types.TUPLE(Types.INT, Types.LONG), Types.TUPLE(Types.INT, Types.STRING, Types.LONG), Types.TUPLE(Types.INT, Types.TUPLE(Types.INT, Types.STRING)),
            Types.LIST(Types.INT), Types.LIST(Types.LONG), Types.LIST(Types.POJO(FormA.class)), Types.LIST(Types.POJO(FormB.class)),
            Types.MAP(Types.STRING, Types.LONG), Types.MAP(Types.STRING, Types.INT), Types.MAP(Types.INT, Types.LONG),
            Types.ROW(Types.INT, Types.STRING), Types.ROW(Types.INT, Types.LONG), Types.ROW(Types.INT, Types.STRING, Types.LONG),
            Types.OBJECT_ARRAY(Types.INT), Types.OBJECT_ARRAY(Types.STRING), Types.OBJECT_ARRAY(Types.POJO(FormA.class)),
            Types.ENUM(TimeUnit.class), Types.ENUM(KindA.class), Types.ENUM(KindB.class), Types.ENUM(KindC.class),
            Types.POJO(FormA.class), Types.POJO(FormB.class), Types.POJO(FormC.class), Types.POJO(FormD.class), Types.POJO(Values.Item.class),
            new EitherTypeInfo<>(Types.INT, Types.STRING), new EitherTypeInfo<>(Types.INT, Types.LONG),
            new GenericTypeInfo<>(ArrayList.class), new GenericTypeInfo<>(HashMap.class), new GenericTypeInfo<>(FormA.class),
            TypeInformation.of(IntValue.class), TypeInformation.of(LongValue.class),
        };
        for (TypeInformation<?> info : infos) {
            all.put(info.toString(), info.createSerializer(new SerializerConfigImpl()));
        }
        TypeSerializer<Long> longs = Types.LONG.createSerializer(new SerializerConfigImpl());
        all.put("void", VoidSerializer.INSTANCE);
        all.put("timers by long", new TimerSerializer<>(longs, VoidNamespaceSerializer.INSTANCE));
        all.put("timers by string", new TimerSerializer<>(Types.STRING.createSerializer(new SerializerConfigImpl()), VoidNamespaceSerializer.INSTANCE));
        all.put("timers in windows", new TimerSerializer<>(longs, new TimeWindow.Serializer()));
        all.put("nullable, padded", NullableSerializer.wrap(longs, true));
        all.put("nullable", NullableSerializer.wrap(longs, false));
        Map<String, String> hex = new LinkedHashMap<>();
        for (Map.Entry<String, TypeSerializer<?>> e : all.entrySet()) {
            DataOutputSerializer out = new DataOutputSerializer(256);
            write(out, e.getValue().snapshotConfiguration());
            hex.put(e.getKey(), HexFormat.of().formatHex(out.getCopyOfBuffer()));
        }
        return hex;
    }

    /** What becomes of state that was written by one when it is restored with the other. */
    static String compare(String was, String now) {
        TypeSerializerSchemaCompatibility<Object> answer;
        try {
            TypeSerializerSnapshot<Object> restored = read(now).restoreSerializer().snapshotConfiguration();
            answer = restored.resolveSchemaCompatibility(read(was));
        } catch (Exception refused) {
            return "refused: " + refused;
        }
        return answer.isIncompatible() ? "refused" : answer.isCompatibleAfterMigration() ? "migrates" : "fits";
    }

    /** A value as Flink wrote it, and as text. */
    record Value(String snapshot, String bytes, String text) {}

    /** Values of types that have a text of their own. */
    static List<Value> values() throws Exception {
        List<Value> all = new ArrayList<>();
        for (String s : new String[] {"0", "1", "10", "-1", "12.3450", "-0.00012", "123456789012345678901234567890.5", "1E+3"}) {
            add(all, Types.BIG_DEC, new BigDecimal(s), s.equals("1E+3") ? "1e3" : new BigDecimal(s).toPlainString());
        }
        add(all, Types.BIG_DEC, null, "null");
        for (String s : new String[] {"1969-12-31T23:59:59.123456789Z", "2024-02-29T01:02:03Z", "-0043-03-15T12:00:00Z"}) {
            Instant at = Instant.parse(s);
            add(all, Types.INSTANT, at, s);
            add(all, TypeInformation.of(java.util.Date.class), java.util.Date.from(at.truncatedTo(ChronoUnit.SECONDS)), at.truncatedTo(ChronoUnit.SECONDS).toString());
            add(all, Types.SQL_TIMESTAMP, Timestamp.from(at), s);
        }
        add(all, Types.INSTANT, null, "null");
        add(all, Types.SQL_DATE, new java.sql.Date(0), "1970-01-01T00:00:00Z");
        add(all, Types.SQL_DATE, null, "null");
        add(all, Types.SQL_TIME, new Time(1000), "1970-01-01T00:00:01Z");
        add(all, Types.LOCAL_DATE, LocalDate.of(2024, 2, 29), "2024-02-29");
        add(all, Types.LOCAL_DATE, LocalDate.of(-1, 12, 1), "-0001-12-01");
        add(all, Types.LOCAL_DATE, null, "null");
        add(all, Types.LOCAL_TIME, LocalTime.of(23, 59, 58, 123456789), "23:59:58.123456789");
        add(all, Types.LOCAL_TIME, LocalTime.MIDNIGHT, "00:00:00");
        add(all, Types.LOCAL_TIME, null, "null");
        add(all, Types.LOCAL_DATE_TIME, LocalDateTime.of(2024, 2, 29, 1, 2, 3, 123456789), "2024-02-29T01:02:03.123456789");
        add(all, Types.LOCAL_DATE_TIME, null, "null");
        TypeInformation<Row> rows = Types.ROW(Types.INT, Types.STRING, Types.INSTANT);
        add(all, rows, Row.of(7, null, Instant.EPOCH), "[7,null,\"1970-01-01T00:00:00Z\"]");
        add(all, rows, Row.ofKind(RowKind.UPDATE_AFTER, null, "x", null), "{\"kind\":\"UPDATE_AFTER\",\"fields\":[null,\"x\",null]}");
        add(all, rows, Row.ofKind(RowKind.DELETE, 1, "", null), "{\"kind\":\"DELETE\",\"fields\":[1,\"\",null]}");
        FormB sub = new FormB();
        sub.id = 3;
        sub.name = "sub";
        add(all, TypeInformation.of(Base.class), new Derived(1, 2), "{\"@class\":\"" + Derived.class.getName() + "\",\"a\":1,\"b\":2}");
        add(all, TypeInformation.of(Base.class), new Base(1), "{\"a\":1}");
        add(all, TypeInformation.of(FormB.class), sub, "{\"id\":3,\"more\":0,\"name\":\"sub\"}");
        MoreValues.add(all);
        KryoValues.add(all);
        return all;
    }

    /** What Flink writes after it has read the bytes with the serializer of the snapshot, or "refused: " and why. */
    static String reread(String snapshot, String bytes) {
        try {
            TypeSerializer<Object> serializer = read(snapshot).restoreSerializer();
            DataInputDeserializer in = new DataInputDeserializer(HexFormat.of().parseHex(bytes));
            Object value = serializer.deserialize(in);
            if (in.available() > 0) {
                return "refused: " + in.available() + " bytes are left";
            }
            DataOutputSerializer out = new DataOutputSerializer(64);
            serializer.serialize(value, out);
            return HexFormat.of().formatHex(out.getCopyOfBuffer());
        } catch (Exception | LinkageError refused) {
            return "refused: " + refused;
        }
    }

    /** A POJO that has a subclass. */
    public static class Base {
        public int a;

        public Base() {}

        Base(int a) {
            this.a = a;
        }
    }

    /** The subclass, which nobody registered. */
    public static class Derived extends Base {
        public int b;

        public Derived() {}

        Derived(int a, int b) {
            super(a);
            this.b = b;
        }
    }

    static <T> void add(List<Value> all, TypeInformation<T> info, T value, String text) throws Exception {
        add(all, info.createSerializer(new SerializerConfigImpl()), value, text);
    }

    static <T> void add(List<Value> all, TypeSerializer<T> serializer, T value, String text) throws Exception {
        DataOutputSerializer bytes = new DataOutputSerializer(64);
        serializer.serialize(value, bytes);
        DataOutputSerializer snapshot = new DataOutputSerializer(256); // after it: it names the subclasses that were met
        write(snapshot, serializer.snapshotConfiguration());
        all.add(new Value(HexFormat.of().formatHex(snapshot.getCopyOfBuffer()), HexFormat.of().formatHex(bytes.getCopyOfBuffer()), text));
    }

    private static <T> void write(DataOutputSerializer out, TypeSerializerSnapshot<T> snapshot) throws Exception {
        out.writeInt(2); // the wrapper's version
        TypeSerializerSnapshot.writeVersionedSnapshot(out, snapshot);
    }

    private static TypeSerializerSnapshot<Object> read(String hex) throws Exception {
        return TypeSerializerSnapshotSerializationUtil.readSerializerSnapshot(new DataInputDeserializer(HexFormat.of().parseHex(hex)), Serializers.class.getClassLoader());
    }

    private Serializers() {}
}
