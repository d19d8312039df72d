package spt.oracle;

import java.util.Random;
import org.apache.avro.Schema;
import org.apache.avro.SchemaBuilder;
import org.apache.avro.generic.GenericRecord;
import org.apache.avro.generic.GenericRecordBuilder;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.formats.avro.typeutils.GenericRecordAvroTypeInfo;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.runtime.typeutils.RowDataSerializer;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.types.Row;

/** The values that the jobs put into state: each follows from a number. */
public final class Values {
    /** A POJO. Name and fields stand in snapshots: never change. */
    public static class Item {
        public long id;
        public String name;
        public Integer count;
        public boolean flag;

        public Item() {}

        Item(long id, String name, Integer count, boolean flag) {
            this.id = id;
            this.name = name;
            this.count = count;
            this.flag = flag;
        }

        @Override
        public boolean equals(Object other) {
            return other instanceof Item && ((Item) other).id == id;
        }

        @Override
        public int hashCode() {
            return Long.hashCode(id);
        }
    }

    static final TypeInformation<Tuple2<String, Long>> NAMED_LONG = Types.TUPLE(Types.STRING, Types.LONG);
    static final TypeInformation<Tuple2<Long, Long>> SUM_AND_COUNT = Types.TUPLE(Types.LONG, Types.LONG);
    static final TypeInformation<Item> ITEM = TypeInformation.of(new TypeHint<Item>() {});

    static final TypeInformation<Row> ROW = Types.ROW(Types.STRING, Types.LONG, Types.INT);
    static final InternalTypeInfo<RowData> ROW_DATA = InternalTypeInfo.ofFields(new VarCharType(VarCharType.MAX_LENGTH), new BigIntType());
    private static final Schema SCHEMA = SchemaBuilder.record("Key").namespace("spt").fields().requiredString("name").requiredLong("id").endRecord();
    static final TypeInformation<GenericRecord> RECORD = new GenericRecordAvroTypeInfo(SCHEMA);

    /** In the binary form, whose bytes Flink hashes. The type has one serializer, which threads must not share. */
    static RowData rowData(long n) {
        return ((RowDataSerializer) ROW_DATA.createSerializer(new SerializerConfigImpl()).duplicate()).toBinaryRow(GenericRowData.of(StringData.fromString("key-" + n), n)).copy();
    }

    static GenericRecord record(long n) {
        return new GenericRecordBuilder(SCHEMA).set("name", "key-" + n).set("id", n).build();
    }

    static Item item(long n) {
        return new Item(n, "item-" + n, n % 3 == 0 ? null : (int) (n * 10), n % 2 == 0);
    }

    /** Empty, plain and beyond the basic plane, in turn. */
    static String text(long n) {
        if (n % 7 == 0) {
            return "";
        }
        return (n % 5 == 0 ? "ü✓𝄞-" : "text-") + Long.toString(n * 7919, 36);
    }

    static byte[] bytes(long seed, int length) {
        byte[] bytes = new byte[length];
        new Random(seed).nextBytes(bytes);
        return bytes;
    }

    private Values() {}
}
