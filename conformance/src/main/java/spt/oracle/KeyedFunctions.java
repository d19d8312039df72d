package spt.oracle;

import java.time.Duration;
import java.util.List;
import org.apache.flink.api.common.functions.AggregateFunction;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.AggregatingState;
import org.apache.flink.api.common.state.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ReducingState;
import org.apache.flink.api.common.state.ReducingStateDescriptor;
import org.apache.flink.api.common.state.StateDescriptor;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.functions.KeySelector;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.TimeDomain;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.windowing.WindowFunction;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.types.Row;
import org.apache.flink.util.Collector;

/** The functions with keyed state, and the keys. */
final class KeyedFunctions {
    /** 2100-01-01: processing-time timers that stay where they are. */
    static final long FAR_AWAY = 4_102_444_800_000L;

    /** One state of every kind, three with time to live, timers of both kinds. */
    static final class Kinds extends KeyedProcessFunction<Object, Long, Long> {
        private final Choices choices;
        private final String run;
        private transient ValueState<Long> last;
        private transient ValueState<Values.Item> item;
        private transient ValueState<String> label;
        private transient ListState<Long> numbers;
        private transient ListState<String> words;
        private transient MapState<String, Long> counts;
        private transient MapState<Long, Values.Item> items;
        private transient ReducingState<Long> sum;
        private transient AggregatingState<Long, Double> average;
        private transient ValueState<Long> ttlLast;
        private transient ListState<String> ttlWords;
        private transient MapState<String, Long> ttlCounts;

        Kinds(String run, Choices choices) {
            this.run = run;
            this.choices = choices;
        }

        @Override
        public void open(OpenContext context) {
            last = value("last", Types.LONG, false);
            item = value("item", Values.ITEM, false);
            label = value("label", Types.STRING, false);
            numbers = list("numbers", Types.LONG, false);
            words = list("words", Types.STRING, false);
            counts = map("counts", Types.STRING, Types.LONG, false);
            items = map("items", Types.LONG, Values.ITEM, false);
            if (choices.asksFor("sum")) {
                sum = getRuntimeContext().getReducingState(new ReducingStateDescriptor<>("sum", Long::sum, Types.LONG));
            }
            if (choices.asksFor("average")) {
                average = getRuntimeContext().getAggregatingState(
                        new AggregatingStateDescriptor<>("average", new Average(null, null), Values.SUM_AND_COUNT));
            }
            ttlLast = value("ttl-last", Types.LONG, true);
            ttlWords = list("ttl-words", Types.STRING, true);
            ttlCounts = map("ttl-counts", Types.STRING, Types.LONG, true);
        }

        private <T> ValueState<T> value(String name, TypeInformation<T> type, boolean ttl) {
            return choices.asksFor(name)
                    ? getRuntimeContext().getState(mortal(new ValueStateDescriptor<>(name, type), ttl)) : null;
        }

        private <T> ListState<T> list(String name, TypeInformation<T> type, boolean ttl) {
            return choices.asksFor(name)
                    ? getRuntimeContext().getListState(mortal(new ListStateDescriptor<>(name, type), ttl)) : null;
        }

        private <K, V> MapState<K, V> map(String name, TypeInformation<K> key, TypeInformation<V> value, boolean ttl) {
            return choices.asksFor(name)
                    ? getRuntimeContext().getMapState(mortal(new MapStateDescriptor<>(name, key, value), ttl)) : null;
        }

        static <D extends StateDescriptor<?, ?>> D mortal(D descriptor, boolean ttl) {
            if (ttl) {
                descriptor.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(10_000)).build());
            }
            return descriptor;
        }

        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            last.update(n);
            item.update(Values.item(n));
            if (n % 2 == 0) {
                label.update(Values.text(n));
            }
            numbers.add(n);
            words.add(Values.text(n));
            counts.put("c" + n % 4, n);
            items.put(n % 3, n % 2 == 0 ? null : Values.item(n));
            sum.add(n);
            average.add(n);
            ttlLast.update(n);
            ttlWords.add(Values.text(n));
            ttlCounts.put("t" + n % 2, n);
            context.timerService().registerEventTimeTimer(1_000_000 + n);
            if (n % 3 == 0) {
                context.timerService().registerProcessingTimeTimer(FAR_AWAY + n);
            }
            Gate.open(run).count("keyed");
            out.collect(n);
        }

        @Override
        public void onTimer(long timestamp, OnTimerContext context, Collector<Long> out) {
            fired(run, timestamp, context);
        }
    }

    /** Tells the gate that a timer fired. */
    static void fired(String run, long timestamp, KeyedProcessFunction<Object, Long, Long>.OnTimerContext context) {
        ObjectNode timer = Json.object();
        timer.put("operator", "keyed");
        timer.put("domain", context.timeDomain() == TimeDomain.EVENT_TIME ? "event" : "processing");
        timer.set("key", Dump.json(context.getCurrentKey()));
        timer.put("timestamp", timestamp);
        Gate.open(run).fire(timer);
    }

    /** Tells the gate of a window that its timer fired, with its key and average. */
    static final class Closed implements WindowFunction<Double, Double, Object, TimeWindow> {
        private final String run;

        Closed(String run) {
            this.run = run;
        }

        @Override
        public void apply(Object key, TimeWindow window, Iterable<Double> averages, Collector<Double> out) {
            for (Double average : averages) {
                ObjectNode timer = Json.object();
                timer.put("operator", "window");
                timer.put("domain", "event");
                timer.set("key", Dump.json(key));
                timer.put("timestamp", window.maxTimestamp());
                timer.put("value", average);
                Gate.open(run).fire(timer);
                out.collect(average);
            }
        }
    }

    /** What Kinds lacks: the other kinds with time to live, maps with nulls, and states without entries. */
    static final class More extends KeyedProcessFunction<Object, Long, Long> {
        private static final List<String> WITHOUT_ENTRIES = List.of("never", "cleared");
        private final String run;
        private transient ReducingState<Long> ttlSum;
        private transient AggregatingState<Long, Double> ttlAverage;
        private transient MapState<Long, Values.Item> ttlItems;
        private transient MapState<String, String> nulls;
        private transient ValueState<Long> value;
        private transient ListState<Long> list;
        private transient MapState<Long, Long> map;

        More(String run) {
            this.run = run;
        }

        @Override
        public void open(OpenContext context) {
            RuntimeContext states = getRuntimeContext();
            ttlSum = states.getReducingState(Kinds.mortal(new ReducingStateDescriptor<>("ttl-sum", Long::sum, Types.LONG), true));
            ttlAverage = states.getAggregatingState(Kinds.mortal(
                    new AggregatingStateDescriptor<>("ttl-average", new Average(null, null), Values.SUM_AND_COUNT), true));
            ttlItems = states.getMapState(Kinds.mortal(new MapStateDescriptor<>("ttl-items", Types.LONG, Values.ITEM), true));
            nulls = states.getMapState(new MapStateDescriptor<>("nulls", Types.STRING, Types.STRING));
            for (String name : WITHOUT_ENTRIES) { // of the last name they are written and cleared
                value = states.getState(new ValueStateDescriptor<>(name + "-value", Types.LONG));
                list = states.getListState(new ListStateDescriptor<>(name + "-list", Types.LONG));
                map = states.getMapState(new MapStateDescriptor<>(name + "-map", Types.LONG, Types.LONG));
                states.getReducingState(new ReducingStateDescriptor<>(name + "-sum", Long::sum, Types.LONG));
            }
        }

        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            ttlSum.add(n);
            ttlAverage.add(n);
            ttlItems.put(n % 3, n % 2 == 0 ? null : Values.item(n));
            nulls.put("n" + n % 5, n % 2 == 0 ? null : Values.text(n));
            value.update(n);
            list.add(n);
            map.put(n, n);
            value.clear();
            list.clear();
            map.clear();
            Gate.open(run).count("keyed");
            out.collect(n);
        }
    }

    /** Three kinds and timers: small. */
    static final class Counts extends KeyedProcessFunction<Object, Long, Long> {
        private final Choices choices;
        private final String run;
        private transient ValueState<Long> count;
        private transient ListState<String> words;
        private transient MapState<String, Long> last;

        Counts(String run, Choices choices) {
            this.run = run;
            this.choices = choices;
        }

        @Override
        public void open(OpenContext context) {
            if (choices.asksFor("count")) {
                count = getRuntimeContext().getState(new ValueStateDescriptor<>("count", Types.LONG));
            }
            if (choices.asksFor("words")) {
                words = getRuntimeContext().getListState(new ListStateDescriptor<>("words", Types.STRING));
            }
            if (choices.asksFor("last")) {
                last = getRuntimeContext().getMapState(new MapStateDescriptor<>("last", Types.STRING, Types.LONG));
            }
        }

        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            Long before = count.value();
            count.update(before == null ? 1 : before + 1);
            words.add(Values.text(n));
            last.put("n" + n % 3, n);
            context.timerService().registerEventTimeTimer(5_000_000 - n);
            Gate.open(run).count("keyed");
            out.collect(n);
        }
    }

    /** Sum and count. With a run it counts what the window took. */
    static final class Average implements AggregateFunction<Long, Tuple2<Long, Long>, Double> {
        private final String run;
        private final String counter;

        Average(String run, String counter) {
            this.run = run;
            this.counter = counter;
        }

        @Override
        public Tuple2<Long, Long> createAccumulator() {
            return Tuple2.of(0L, 0L);
        }

        @Override
        public Tuple2<Long, Long> add(Long n, Tuple2<Long, Long> sum) {
            if (run != null) {
                Gate.open(run).count(counter);
            }
            return Tuple2.of(sum.f0 + n, sum.f1 + 1);
        }

        @Override
        public Double getResult(Tuple2<Long, Long> sum) {
            return (double) sum.f0 / sum.f1;
        }

        @Override
        public Tuple2<Long, Long> merge(Tuple2<Long, Long> a, Tuple2<Long, Long> b) {
            return Tuple2.of(a.f0 + b.f0, a.f1 + b.f1);
        }
    }

    /** Passes numbers on, holding the first for as long as the gate says. */
    static final class Slow extends RichMapFunction<Long, Long> {
        private final String run;

        Slow(String run) {
            this.run = run;
        }

        @Override
        public Long map(Long number) throws Exception {
            Gate.open(run).passSlowly();
            return number;
        }
    }

    /** The key of a number, in the type that the options name. */
    @SuppressWarnings("unchecked")
    static <K> KeySelector<Long, K> key(Options options) {
        int keys = options.keys;
        switch (options.keyType) {
            case "long":
                return n -> (K) Long.valueOf(n % keys - keys / 2);
            case "string":
                return n -> (K) (n % keys == 0 ? "" : "key-" + n % keys);
            case "tuple":
                return n -> (K) Tuple2.of("k" + n % keys % 3, n % keys);
            case "pojo":
                return n -> (K) new Values.Item(n % keys, "key-" + n % keys, (int) (n % keys), false);
            case "row":
                return n -> (K) Row.of("key-" + n % keys, n % keys, n % keys % 3 == 0 ? null : (int) (n % keys));
            case "rowdata":
                return n -> (K) Values.rowData(n % keys);
            case "avro":
                return n -> (K) Values.record(n % keys);
            default:
                throw new IllegalArgumentException("unknown key type " + options.keyType);
        }
    }

    @SuppressWarnings("unchecked")
    static <K> TypeInformation<K> keyType(Options options) {
        switch (options.keyType) {
            case "long":
                return (TypeInformation<K>) Types.LONG;
            case "string":
                return (TypeInformation<K>) Types.STRING;
            case "tuple":
                return (TypeInformation<K>) Values.NAMED_LONG;
            case "row":
                return (TypeInformation<K>) Values.ROW;
            case "rowdata":
                return (TypeInformation<K>) Values.ROW_DATA;
            case "avro":
                return (TypeInformation<K>) Values.RECORD;
            default:
                return (TypeInformation<K>) Values.ITEM;
        }
    }

    private KeyedFunctions() {}
}
