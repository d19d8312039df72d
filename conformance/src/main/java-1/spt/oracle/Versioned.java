package spt.oracle;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.core.execution.RestoreMode;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.streaming.api.checkpoint.ListCheckpointed;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;

/** What differs between Flink 1.x and 2.x, as 1.x has it. */
final class Versioned {
    static SingleOutputStreamOperator<Long> listCheckpointed(DataStream<Long> numbers, Options options) {
        return numbers.map(new Remembering());
    }

    /** Keeps all numbers in the state `_default_`. */
    @SuppressWarnings("deprecation")
    private static final class Remembering extends RichMapFunction<Long, Long> implements ListCheckpointed<Long> {
        private final List<Long> numbers = new ArrayList<>();

        @Override
        public Long map(Long number) {
            numbers.add(number);
            return number;
        }

        @Override
        public List<Long> snapshotState(long checkpointId, long timestamp) {
            return numbers;
        }

        @Override
        public void restoreState(List<Long> state) {
            numbers.addAll(state);
        }
    }

    static KeyedStream<Long, Object> asynchronous(KeyedStream<Long, Object> keyed) {
        throw new UnsupportedOperationException("the asynchronous state API came with Flink 2.0");
    }

    static SingleOutputStreamOperator<Long> asynchronousKinds(KeyedStream<Long, Object> keyed, String run) {
        throw new UnsupportedOperationException("the asynchronous state API came with Flink 2.0");
    }

    static SavepointRestoreSettings claim(String snapshot, boolean allowNonRestored) {
        return SavepointRestoreSettings.forPath(snapshot, allowNonRestored, RestoreMode.CLAIM);
    }

    /** An operator state without subtasks, of the same operator. */
    static OperatorState operatorState(OperatorState operator, int parallelism) {
        return new OperatorState(operator.getOperatorID(), parallelism, operator.getMaxParallelism());
    }

    /** Values of Scala, as Twitter's chill writes them. */
    @SuppressWarnings("unchecked")
    static void scala(KryoValues values) throws Exception {
        scala.collection.mutable.Buffer<Object> some = scala.collection.JavaConverters.asScalaBufferConverter(List.<Object>of("a", 1)).asScala();
        scala.collection.immutable.Map<Object, Object> map = (scala.collection.immutable.Map<Object, Object>) (Object) scala.collection.immutable.Map$.MODULE$.empty();
        values.object(map, "[]");
        map = map.$plus(new scala.Tuple2<>("a", 1));
        values.object(map, "[[\"a\",1]]");
        for (int i = 0; i < 4; i++) {
            map = map.$plus(new scala.Tuple2<>(i, scala.Some.apply(i)));
        }
        List<String> entries = new ArrayList<>();
        scala.collection.JavaConverters.mapAsJavaMapConverter(map).asJava().forEach((k, v) -> entries.add(k.equals("a") ? "[\"a\",1]" : "[" + k + ",{\"@class\":\"scala.Some\",\"value\":" + k + "}]"));
        values.object(map, "[" + String.join(",", entries) + "]");
        values.object(scala.Some.apply("x"), "{\"value\":\"x\"}");
        values.object(scala.None$.MODULE$, "null");
        values.object(new scala.util.Left<>("x"), "{\"left\":\"x\"}");
        values.object(new scala.util.Right<>(5), "{\"right\":5}");
        values.object(new scala.util.Success<>(5), "{\"success\":5}");
        values.object(new scala.Tuple1<>("x"), "{\"_1\":\"x\"}");
        values.object(new scala.Tuple2<>("a", null), "{\"_1\":\"a\",\"_2\":null}");
        values.object(new scala.Tuple11<>(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11), "{\"_1\":1,\"_2\":2,\"_3\":3,\"_4\":4,\"_5\":5,\"_6\":6,\"_7\":7,\"_8\":8,\"_9\":9,\"_10\":10,\"_11\":11}");
        values.object(new scala.Tuple2$mcDI$sp(1.5, -2), "{\"_1\":1.5,\"_2\":-2}");
        values.object(new scala.Tuple2$mcJJ$sp(1, -2), "{\"_1\":1,\"_2\":-2}");
        values.object(some.toList(), "[\"a\",1]");
        values.object(scala.collection.immutable.Nil$.MODULE$, "[]");
        values.object(some.toVector(), "[\"a\",1]");
        values.object(some.toSet(), "[\"a\",1]");
        values.object(scala.collection.immutable.Set$.MODULE$.empty(), "null");
        values.object(new scala.collection.mutable.ArrayBuffer<Object>().$plus$eq("a"), "[\"a\"]");
        values.object(new scala.collection.mutable.ListBuffer<Object>().$plus$eq("a"), "[\"a\"]");
        scala.collection.mutable.HashMap<Object, Object> mutable = new scala.collection.mutable.HashMap<>();
        mutable.put("a", 1);
        values.object(mutable, "[[\"a\",1]]");
        values.object(new scala.collection.mutable.BitSet(5).$plus(3), "[3]");
        values.object(new scala.collection.immutable.TreeMap<Object, Object>((scala.math.Ordering<Object>) (Object) scala.math.Ordering.String$.MODULE$).$plus(new scala.Tuple2<>("a", 1)),
            "{\"ordering\":{\"@class\":\"scala.math.Ordering$String$\",\"@value\":null},\"elements\":[[\"a\",1]]}");
        values.object(scala.Symbol$.MODULE$.apply("x"), "\"x\"");
        values.object(scala.runtime.BoxedUnit.UNIT, "null");
        values.object(scala.math.BigInt$.MODULE$.apply("15"), "{\"bigInteger\":{\"@class\":\"java.math.BigInteger\",\"@value\":15}}");
        values.object(scala.collection.JavaConverters.seqAsJavaListConverter(some.toList()).asJava(), "{\"$outer\":{\"@class\":\"scala.collection.convert.Wrappers$\",\"@value\":null},\"underlying\":{\"@class\":\"scala.collection.immutable.$colon$colon\",\"@value\":[\"a\",1]}}");
        values.object(scala.collection.JavaConverters.asJavaIterableConverter(some.toVector()).asJava(), "{\"underlying\":{\"@class\":\"scala.collection.immutable.Vector\",\"@value\":[\"a\",1]}}");
    }

    private Versioned() {}
}
