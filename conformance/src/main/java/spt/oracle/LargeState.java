package spt.oracle;

import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.OpenContext;
import org.apache.flink.api.common.state.ListState;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapState;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.ValueState;
import org.apache.flink.api.common.state.ValueStateDescriptor;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.CheckpointType;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.KeyedProcessFunction;
import org.apache.flink.streaming.api.functions.sink.v2.DiscardingSink;
import org.apache.flink.util.Collector;

/**
 * Makes snapshots of one job with much keyed state in RocksDB, for benchmarks: an operator "large" with four entries for each
 * key (a value, a list of two numbers, a map of two entries). After a first checkpoint a tenth of the keys is written again.
 *
 * <p>Arguments: an empty directory; the number of keys, a multiple of 10; the length of a value, of which half is random; and
 * the snapshots to make there: native, canonical, incremental (a checkpoint). Prints the directory of each.
 */
public final class LargeState {
    private static final int PATIENCE = 5; // minutes for a snapshot

    static final ValueStateDescriptor<String> VALUE = new ValueStateDescriptor<>("value", Types.STRING);
    static final ListStateDescriptor<Long> LIST = new ListStateDescriptor<>("list", Types.LONG);
    static final MapStateDescriptor<String, Long> MAP = new MapStateDescriptor<>("map", Types.STRING, Types.LONG);

    static final class Fill extends KeyedProcessFunction<String, Long, Long> {
        private final String run;
        private final int length;
        private transient ValueState<String> value;
        private transient ListState<Long> list;
        private transient MapState<String, Long> map;

        Fill(String run, int length) {
            this.run = run;
            this.length = length;
        }

        @Override
        public void open(OpenContext context) {
            value = getRuntimeContext().getState(VALUE);
            list = getRuntimeContext().getListState(LIST);
            map = getRuntimeContext().getMapState(MAP);
        }

        @Override
        public void processElement(Long n, Context context, Collector<Long> out) throws Exception {
            value.update(text(n, length));
            list.add(n);
            list.add(-n);
            map.put("first", n);
            map.put("second", n / 2);
            Gate.open(run).count("large");
        }

        private static String text(long n, int length) {
            byte[] random = Values.bytes(n, length / 2);
            char[] text = new char[length];
            for (int i = 0; i < length; i++) {
                text[i] = i < random.length ? (char) (' ' + (random[i] & 63)) : 'x';
            }
            return new String(text);
        }
    }

    public static void main(String[] args) throws Exception {
        Path at = Path.of(args[0]).toAbsolutePath();
        long keys = Long.parseLong(args[1]);
        long again = keys / 10;
        Configuration configuration = new Configuration();
        configuration.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(128));
        Runner.listenOnLoopbackOnly(configuration);
        configuration.setString("io.tmp.dirs", at.resolve("scratch").toString());
        configuration.setString("state.backend.type", "rocksdb");
        configuration.setString("execution.checkpointing.incremental", "true");
        configuration.setString("execution.checkpointing.dir", at.toUri().toString());
        configuration.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
        String run = "large";
        Gate gate = Gate.open(run);
        StreamExecutionEnvironment env = new StreamExecutionEnvironment(configuration);
        env.setParallelism(2);
        env.setMaxParallelism(128);
        env.fromSource(new NumberSource(new NumberSource.Plan(run, "numbers", 1, again, 11)), WatermarkStrategy.noWatermarks(), "numbers")
                .setParallelism(1)
                .uid("numbers")
                .keyBy(n -> String.format("user-%08d", n % keys), Types.STRING)
                .process(new Fill(run, Integer.parseInt(args[2])))
                .uid("large")
                .sinkTo(new DiscardingSink<>())
                .uid("sink");
        JobID id = new JobID(0, 1);
        try (MiniCluster cluster = new MiniCluster(new MiniClusterConfiguration.Builder().setConfiguration(configuration).setNumSlotsPerTaskManager(2).build())) {
            cluster.start();
            cluster.submitJob(env.getStreamGraph().getJobGraph(LargeState.class.getClassLoader(), id)).get();
            gate.raise(10, 1);
            Runner.await("all keys", () -> gate.counted("large") >= keys);
            checkpoint(cluster, id);
            gate.raise(11, 1);
            Runner.await("a tenth of them again", () -> gate.counted("large") >= keys + again);
            for (String kind : List.of(args).subList(3, args.length)) {
                Path made = at.resolve(kind);
                if (kind.equals("incremental")) {
                    made = at.resolve(id.toHexString()).resolve("chk-" + checkpoint(cluster, id));
                } else {
                    SavepointFormatType format = SavepointFormatType.valueOf(kind.toUpperCase(Locale.ROOT));
                    String written = cluster.triggerSavepoint(id, at.toUri().toString(), false, format).get(PATIENCE, TimeUnit.MINUTES);
                    Files.move(Path.of(URI.create(written)), made);
                }
                System.out.println(made);
            }
            cluster.cancelJob(id).get();
            cluster.requestJobResult(id).get();
        }
        System.exit(0);
    }

    private static long checkpoint(MiniCluster cluster, JobID id) throws Exception {
        return cluster.triggerCheckpoint(id, CheckpointType.CONFIGURED).get(PATIENCE, TimeUnit.MINUTES);
    }

    private LargeState() {}
}
