package spt.oracle;

import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.streaming.api.windowing.assigners.EventTimeSessionWindows;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.assigners.WindowAssigner;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;

/** Builds the job of a shape. */
final class Shapes {
    private final StreamExecutionEnvironment env;
    private final Options options;
    private final Choices choices;
    private final String run;

    /** How many splits each source reads, by the source's name: the runner waits for them. */
    final Map<String, Integer> sources = new LinkedHashMap<>();

    /** How many numbers a split of the source `numbers` adds in a stage. */
    long perStage;

    /** The counters in the gate of the operators with keyed state: each counts every number. */
    String[] keyedOperators = {};

    Shapes(StreamExecutionEnvironment env, Options options, Choices choices, String run) {
        this.env = env;
        this.options = options;
        this.choices = choices;
        this.run = run;
    }

    void build() {
        int first = options.firstParallelism();
        if (options.shape.equals("source")) {
            // two splits that no reader gets: state of the coordinator
            sink(numbers("numbers", first, first + 2, env.getParallelism()), "sink");
            return;
        }
        DataStream<Long> numbers = numbers("numbers", first, first, env.getParallelism());
        switch (options.shape) {
            case "operator": {
                DataStream<Long> lists = named(numbers.map(new OperatorFunctions.Lists(options, choices)), "lists");
                DataStream<Long> ruleNumbers = numbers("rule-numbers", 1, 1, 1);
                DataStream<Long> ruled = named(
                        lists.connect(ruleNumbers.broadcast(OperatorFunctions.Rules.RULES))
                                .process(new OperatorFunctions.Rules(run)),
                        "rules");
                sink(ruled.map(new OperatorFunctions.Seen(options, choices)).name("nameless"), "sink");
                break;
            }
            case "union-inflated":
            case "union-readded":
            case "union-modulo": {
                boolean modulo = options.shape.equals("union-modulo");
                boolean sorted = !options.shape.equals("union-readded");
                sink(named(numbers.map(new OperatorFunctions.Union(options, choices, modulo, sorted)), "union"), "sink");
                break;
            }
            case "tutorial": {
                DataStream<Long> logged =
                        named(numbers.map(new OperatorFunctions.EvenIdLogger(options, choices)), "even-id-logger");
                sink(named(logged.map(new OperatorFunctions.BufferingSink(options, choices)), "buffering-sink"), "sink");
                break;
            }
            case "keyed": {
                keyedOperators = new String[] {"keyed", "window"};
                KeyedStream<Long, Object> keyed = keyed(numbers);
                if (options.asynchronous) {
                    keyed = Versioned.asynchronous(keyed);
                    sink(named(Versioned.asynchronousKinds(keyed, run), "keyed"), "sink");
                } else {
                    sink(named(keyed.process(new KeyedFunctions.Kinds(run, choices)), "keyed"), "sink");
                }
                sink(averages(keyed, "window", TumblingEventTimeWindows.of(Duration.ofSeconds(1))), "window-sink");
                break;
            }
            case "keyed-more": { // a key sees every twelfth number, 1.2 s apart: some sessions have one number, some several
                keyedOperators = new String[] {"keyed", "sessions"};
                KeyedStream<Long, Object> keyed = keyed(numbers);
                sink(named(keyed.process(new KeyedFunctions.More(run)), "keyed"), "sink");
                sink(averages(keyed, "sessions", EventTimeSessionWindows.withGap(Duration.ofMillis(1500))), "sessions-sink");
                break;
            }
            case "counts": {
                keyedOperators = new String[] {"keyed"};
                KeyedStream<Long, Object> keyed = keyed(numbers);
                sink(named(keyed.process(new KeyedFunctions.Counts(run, choices)), "counts"), "sink");
                break;
            }
            case "list-checkpointed":
                sink(named(Versioned.listCheckpointed(numbers, options), "list-checkpointed"), "sink");
                break;
            default:
                throw new IllegalArgumentException("unknown shape " + options.shape);
        }
    }

    /** A source that hands `read` of its `splits` splits to readers; options.elements numbers per stage over all of them. */
    private DataStream<Long> numbers(String name, int read, int splits, int parallelism) {
        int stages = options.runs().size() * options.checkpoints;
        long perStage = Math.max(1, options.elements / read);
        sources.put(name, read);
        if (name.equals("numbers")) {
            this.perStage = perStage;
        }
        return env.fromSource(
                        new NumberSource(new NumberSource.Plan(run, name, splits, perStage, stages)),
                        WatermarkStrategy.noWatermarks(), name)
                .setParallelism(parallelism)
                .uid(choices.uid(name));
    }

    private KeyedStream<Long, Object> keyed(DataStream<Long> numbers) {
        return slowed(numbers).keyBy(KeyedFunctions.key(options), KeyedFunctions.keyType(options));
    }

    /** The average of each key and window. */
    private DataStream<Double> averages(KeyedStream<Long, Object> keyed, String name, WindowAssigner<Object, TimeWindow> windows) {
        return named(
                keyed.window(windows).aggregate(
                        new KeyedFunctions.Average(run, name), new KeyedFunctions.Closed(run), Values.SUM_AND_COUNT, Types.DOUBLE),
                name);
    }

    /** With in-flight data: a channel, then an operator that lets it pile up. */
    private DataStream<Long> slowed(DataStream<Long> numbers) {
        return options.unaligned ? named(numbers.rebalance().map(new KeyedFunctions.Slow(run)), "slow") : numbers;
    }

    private <T> DataStream<T> named(SingleOutputStreamOperator<T> stream, String uid) {
        return stream.name(uid).uid(choices.uid(uid));
    }

    private <T> void sink(DataStream<T> stream, String uid) {
        stream.sinkTo(new DiscardingSink<>()).uid(choices.uid(uid));
    }
}
