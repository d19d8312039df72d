package spt.oracle;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.api.common.functions.DefaultOpenContext;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.contrib.streaming.state.EmbeddedRocksDBStateBackend;
import org.apache.flink.runtime.state.hashmap.HashMapStateBackend;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.state.api.functions.KeyedStateReaderFunction;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Times Flink's State Processor API on a snapshot of {@link LargeState}: how long until every entry of its three states has been
 * read, and the processor time of this process meanwhile. Nothing is passed on, so that only reading is timed.
 *
 * <p>Arguments: the snapshot's directory; rocksdb or hashmap, the backend that loads it. Prints one JSON object.
 */
public final class ReadKeyedState {
    private static final AtomicLong ENTRIES = new AtomicLong();

    static final class Reader extends KeyedStateReaderFunction<String, Long> {
        private transient ValueState<String> value;
        private transient ListState<Long> list;
        private transient MapState<String, Long> map;
        private transient long entries;

        /** What Flink 1 calls. It is a method of this class alone in Flink 2. */
        public void open(Configuration parameters) {
            open(DefaultOpenContext.INSTANCE);
        }

        @Override
        public void open(OpenContext context) {
            value = getRuntimeContext().getState(LargeState.VALUE);
            list = getRuntimeContext().getListState(LargeState.LIST);
            map = getRuntimeContext().getMapState(LargeState.MAP);
        }

        @Override
        public void readKey(String key, Context context, Collector<Long> out) throws Exception {
            long found = value.value() == null ? 0 : 1;
            found += list.get().iterator().hasNext() ? 1 : 0;
            for (Map.Entry<String, Long> entry : map.entries()) {
                found += entry.getValue() == null ? 0 : 1;
            }
            entries += found;
        }

        @Override
        public void close() {
            ENTRIES.addAndGet(entries);
        }
    }

    public static void main(String[] args) throws Exception {
        OperatingSystemMXBean system = (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();
        long start = System.nanoTime();
        long cpu = system.getProcessCpuTime();
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        SavepointReader reader = SavepointReader.read(
                env, "file:" + args[0], args[1].equals("hashmap") ? new HashMapStateBackend() : new EmbeddedRocksDBStateBackend());
        reader.readKeyedState(OperatorIdentifier.forUid("large"), new Reader(), Types.STRING, Types.LONG)
                .sinkTo(new DiscardingSink<>());
        env.execute();
        ObjectNode result = Json.object();
        result.put("flink", Runner.flinkVersion());
        result.put("entries", ENTRIES.get());
        result.put("wall_ns", System.nanoTime() - start);
        result.put("cpu_ns", system.getProcessCpuTime() - cpu);
        System.out.println(Json.MAPPER.writeValueAsString(result));
        System.exit(0);
    }

    private ReadKeyedState() {}
}
