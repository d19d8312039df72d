package spt.oracle;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
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

    private static <T> void write(DataOutputSerializer out, TypeSerializerSnapshot<T> snapshot) throws Exception {
        out.writeInt(2); // the wrapper's version
        TypeSerializerSnapshot.writeVersionedSnapshot(out, snapshot);
    }

    private static TypeSerializerSnapshot<Object> read(String hex) throws Exception {
        return TypeSerializerSnapshotSerializationUtil.readSerializerSnapshot(new DataInputDeserializer(HexFormat.of().parseHex(hex)), Serializers.class.getClassLoader());
    }

    private Serializers() {}
}
