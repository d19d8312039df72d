package spt.oracle;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.Deque;
import java.util.List;
import java.util.Random;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.api.common.state.BroadcastState;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.OperatorStateStore;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.runtime.state.FunctionInitializationContext;
import org.apache.flink.runtime.state.FunctionSnapshotContext;
import org.apache.flink.streaming.api.checkpoint.CheckpointedFunction;
import org.apache.flink.streaming.api.functions.co.BroadcastProcessFunction;
import org.apache.flink.util.Collector;

/** The functions with operator state. Each passes its input on, so that they can stand one behind the other. */
final class OperatorFunctions {
    /** What all of them share: they pass numbers on and know options and choices. */
    private abstract static class Passing extends RichMapFunction<Long, Long> implements CheckpointedFunction {
        final Options options;
        final Choices choices;

        Passing(Options options, Choices choices) {
            this.options = options;
            this.choices = choices;
        }

        <T> ListState<T> list(
                FunctionInitializationContext context, String name, boolean union, TypeInformation<T> type) throws Exception {
            OperatorStateStore store = context.getOperatorStateStore();
            ListStateDescriptor<T> descriptor = new ListStateDescriptor<>(name, type);
            return choices.union(name, union) ? store.getUnionListState(descriptor) : store.getListState(descriptor);
        }

        int subtask() {
            return getRuntimeContext().getTaskInfo().getIndexOfThisSubtask();
        }

        int parallelism() {
            return getRuntimeContext().getTaskInfo().getNumberOfParallelSubtasks();
        }

        @Override
        public Long map(Long number) {
            return number;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {}
    }

    /** Several list states of different types, a union state, and a broadcast state whose content differs per subtask. */
    static final class Lists extends Passing {
        /** In Java's hash order these fall all over the table; two differ from connector states in nothing but content. */
        private static final String[] NAMES = {
            "mid", "state", "alpha", "largest", "zeta", "counts", "beta", "ünïcode-✓", "buffered-elements", "pending", "offsets"
        };

        Lists(Options options, Choices choices) {
            super(options, choices);
        }

        static String name(int state) {
            return state < NAMES.length ? NAMES[state] : "s" + state;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            if (choices.register.equals("none")) {
                return;
            }
            if (choices.register.equals("found")) {
                Dump.askForAll(context.getOperatorStateStore(), choices);
                return;
            }
            boolean fresh = !context.isRestored();
            for (int i = 0; i < options.states; i++) {
                switch (i % 6) {
                    case 0: fill(context, fresh, i, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO,
                            n -> Values.bytes(n, (int) (n % 9))); break;
                    case 1: fill(context, fresh, i, Types.STRING, Values::text); break;
                    case 2: fill(context, fresh, i, Types.LONG, n -> n); break;
                    case 3: fill(context, fresh, i, Types.DOUBLE, n -> n / 4.0); break;
                    case 4: fill(context, fresh, i, Values.NAMED_LONG, n -> Tuple2.of("t" + n, n)); break;
                    default: fill(context, fresh, i, Values.ITEM, Values::item); break;
                }
            }
            if (choices.asksFor("topic-partition-offset-states")) {
                ListState<Tuple2<String, Long>> union =
                        list(context, "topic-partition-offset-states", true, Values.NAMED_LONG);
                for (long n = 0; fresh && n < size(options.states); n++) {
                    union.add(Tuple2.of("topic-" + subtask(), n));
                }
            }
            if (choices.asksFor("blobs") && options.blob > 0) {
                ListState<byte[]> blobs =
                        list(context, "blobs", false, PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO);
                for (int n = 0; fresh && n < 2; n++) {
                    blobs.add(Values.bytes(1000L * options.seed + 10 * subtask() + n, options.blob + n));
                }
            }
            if (choices.asksFor("owner")) {
                BroadcastState<String, Integer> owner = context.getOperatorStateStore()
                        .getBroadcastState(new MapStateDescriptor<>("owner", Types.STRING, Types.INT));
                if (fresh) {
                    owner.put("subtask", subtask());
                    owner.put("twice", 2 * subtask());
                }
            }
        }

        private interface Maker<T> {
            T of(long number);
        }

        private <T> void fill(
                FunctionInitializationContext context, boolean fresh, int state, TypeInformation<T> type, Maker<T> maker)
                throws Exception {
            if (!choices.asksFor(name(state))) {
                return;
            }
            ListState<T> list = list(context, name(state), false, type);
            for (int n = 0; fresh && n < size(state); n++) {
                list.add(maker.of(1_000_000L * state + 10_000L * subtask() + n));
            }
        }

        /** From none to twice the elements, differing by state and subtask. */
        private int size(int state) {
            return new Random(31L * options.seed + 1009L * state + subtask()).nextInt(2 * options.elements + 1);
        }
    }

    /** A broadcast state as users write it: filled from a broadcast stream, equal in all subtasks. */
    static final class Rules extends BroadcastProcessFunction<Long, Long, Long> {
        static final MapStateDescriptor<Long, String> RULES = new MapStateDescriptor<>("rules", Types.LONG, Types.STRING);
        private final String run;

        Rules(String run) {
            this.run = run;
        }

        @Override
        public void processElement(Long number, ReadOnlyContext context, Collector<Long> out) {
            out.collect(number);
        }

        @Override
        public void processBroadcastElement(Long number, Context context, Collector<Long> out) throws Exception {
            context.getBroadcastState(RULES).put(number, "rule-" + number);
            Gate.open(run).count("rules");
        }
    }

    /** Stands in the job without uid. */
    static final class Seen extends Passing {
        Seen(Options options, Choices choices) {
            super(options, choices);
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            ListState<Long> seen = list(context, "seen", false, Types.LONG);
            if (!context.isRestored()) {
                seen.add((long) subtask());
            }
        }
    }

    /** Union state that is handled wrongly (every subtask re-adds all it was handed) or rightly (index modulo parallelism). */
    static final class Union extends Passing {
        private final boolean modulo;
        private final boolean sorted;

        Union(Options options, Choices choices, boolean modulo, boolean sorted) {
            super(options, choices);
            this.modulo = modulo;
            this.sorted = sorted;
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            ListState<Tuple2<String, Long>> state = list(context, "offsets", true, Values.NAMED_LONG);
            List<Tuple2<String, Long>> mine = new ArrayList<>();
            if (context.isRestored()) {
                // The order in which Flink hands the blocks over follows the hash of random file names. Sorted, the
                // truth of a job is the same every time, and all subtasks count alike.
                List<Tuple2<String, Long>> handed = new ArrayList<>();
                state.get().forEach(handed::add);
                if (sorted) {
                    handed.sort(Comparator.comparing((Tuple2<String, Long> element) -> element.f1));
                }
                int index = 0;
                for (Tuple2<String, Long> element : handed) {
                    if (!modulo || index % parallelism() == subtask()) {
                        mine.add(element);
                    }
                    index++;
                }
            } else {
                for (int i = subtask(); i < options.elements; i += parallelism()) {
                    mine.add(Tuple2.of("partition-" + i, 1000L * options.seed + i));
                }
                Collections.shuffle(mine, new Random(options.seed + subtask()));
            }
            state.update(mine);
        }
    }

    /** The tutorials' sink: buffers elements and writes the buffer at every checkpoint. */
    static final class BufferingSink extends Passing {
        private final List<Tuple2<String, Integer>> buffer = new ArrayList<>();
        private transient ListState<Tuple2<String, Integer>> state;

        BufferingSink(Options options, Choices choices) {
            super(options, choices);
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            state = list(context, "buffered-elements", false, Types.TUPLE(Types.STRING, Types.INT));
            state.get().forEach(buffer::add);
        }

        @Override
        public Long map(Long number) {
            buffer.add(Tuple2.of("element-" + number, number.intValue()));
            return number;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            state.update(buffer);
        }
    }

    /** The tutorials' logger: remembers the last ten even ids. */
    static final class EvenIdLogger extends Passing {
        private final Deque<Long> last = new ArrayDeque<>();
        private transient ListState<Long> state;

        EvenIdLogger(Options options, Choices choices) {
            super(options, choices);
        }

        @Override
        public void initializeState(FunctionInitializationContext context) throws Exception {
            state = list(context, "even-ids", false, Types.LONG);
            state.get().forEach(last::addLast);
        }

        @Override
        public Long map(Long number) {
            if (number % 2 == 0) {
                last.addLast(number);
                if (last.size() > 10) {
                    last.removeFirst();
                }
            }
            return number;
        }

        @Override
        public void snapshotState(FunctionSnapshotContext context) throws Exception {
            state.update(new ArrayList<>(last));
        }
    }

    private OperatorFunctions() {}
}
