package spt.oracle;

import java.time.Duration;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.functions.RuntimeContext;
import org.apache.flink.api.common.state.StateTtlConfig;
import org.apache.flink.api.common.state.v2.AggregatingState;
import org.apache.flink.api.common.state.v2.AggregatingStateDescriptor;
import org.apache.flink.api.common.state.v2.ListState;
import org.apache.flink.api.common.state.v2.ListStateDescriptor;
import org.apache.flink.api.common.state.v2.MapState;
import org.apache.flink.api.common.state.v2.MapStateDescriptor;
import org.apache.flink.api.common.state.v2.ReducingState;
import org.apache.flink.api.common.state.v2.ReducingStateDescriptor;
import org.apache.flink.api.common.state.v2.StateDescriptor;
import org.apache.flink.api.common.state.v2.ValueState;
import org.apache.flink.api.common.state.v2.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.util.Collector;

/** KeyedFunctions.Kinds with the asynchronous API: the same states, values and timers. */
final class AsynchronousKinds extends KeyedProcessFunction<Object, Long, Long> {
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

    AsynchronousKinds(String run) {
        this.run = run;
    }

    @Override
    public void open(OpenContext context) {
        RuntimeContext states = getRuntimeContext();
        last = states.getState(new ValueStateDescriptor<>("last", Types.LONG));
        item = states.getState(new ValueStateDescriptor<>("item", Values.ITEM));
        label = states.getState(new ValueStateDescriptor<>("label", Types.STRING));
        numbers = states.getListState(new ListStateDescriptor<>("numbers", Types.LONG));
        words = states.getListState(new ListStateDescriptor<>("words", Types.STRING));
        counts = map("counts", Types.LONG, false);
        items = states.getMapState(new MapStateDescriptor<>("items", Types.LONG, Values.ITEM));
        sum = states.getReducingState(new ReducingStateDescriptor<>("sum", Long::sum, Types.LONG));
        average = states.getAggregatingState(
                new AggregatingStateDescriptor<>("average", new KeyedFunctions.Average(null, null), Values.SUM_AND_COUNT));
        ttlLast = states.getState(mortal(new ValueStateDescriptor<>("ttl-last", Types.LONG)));
        ttlWords = states.getListState(mortal(new ListStateDescriptor<>("ttl-words", Types.STRING)));
        ttlCounts = map("ttl-counts", Types.LONG, true);
    }

    private <V> MapState<String, V> map(String name, TypeInformation<V> value, boolean ttl) {
        MapStateDescriptor<String, V> descriptor = new MapStateDescriptor<>(name, Types.STRING, value);
        return getRuntimeContext().getMapState(ttl ? mortal(descriptor) : descriptor);
    }

    private static <D extends StateDescriptor<?>> D mortal(D descriptor) {
        descriptor.enableTimeToLive(StateTtlConfig.newBuilder(Duration.ofDays(10_000)).build());
        return descriptor;
    }

    @Override
    public void processElement(Long n, Context context, Collector<Long> out) {
        last.asyncUpdate(n)
                .thenCompose(done -> item.asyncUpdate(Values.item(n)))
                .thenCompose(done -> label.asyncValue())
                .thenCompose(before -> label.asyncUpdate(n % 2 == 0 ? Values.text(n) : before))
                .thenCompose(done -> numbers.asyncAdd(n))
                .thenCompose(done -> words.asyncAdd(Values.text(n)))
                .thenCompose(done -> counts.asyncPut("c" + n % 4, n))
                .thenCompose(done -> items.asyncPut(n % 3, n % 2 == 0 ? null : Values.item(n)))
                .thenCompose(done -> sum.asyncAdd(n))
                .thenCompose(done -> average.asyncAdd(n))
                .thenCompose(done -> ttlLast.asyncUpdate(n))
                .thenCompose(done -> ttlWords.asyncAdd(Values.text(n)))
                .thenCompose(done -> ttlCounts.asyncPut("t" + n % 2, n))
                .thenAccept(done -> {
                    Gate.open(run).count("keyed");
                    out.collect(n);
                });
        context.timerService().registerEventTimeTimer(1_000_000 + n);
        if (n % 3 == 0) {
            context.timerService().registerProcessingTimeTimer(KeyedFunctions.FAR_AWAY + n);
        }
    }

    @Override
    public void onTimer(long timestamp, OnTimerContext context, Collector<Long> out) {
        KeyedFunctions.fired(run, timestamp, context);
    }
}
