package spt.oracle;

import java.util.Random;
import org.apache.flink.api.common.typeinfo.TypeHint;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;

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
