package spt.oracle;

import java.io.IOException;
import java.io.Reader;
import java.net.URI;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.Properties;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.BooleanSupplier;
import java.util.stream.Stream;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.CheckpointType;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.runtime.execution.ExecutionState;
import org.apache.flink.runtime.executiongraph.AccessExecutionGraph;
import org.apache.flink.runtime.executiongraph.AccessExecutionVertex;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.runtime.util.EnvironmentInformation;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.graph.StreamGraph;

/** One cluster in this process, and jobs on it, one after the other. */
final class Runner implements AutoCloseable {
    private static final long PATIENCE = 300_000; // milliseconds for any one step: only a process that hangs takes that long
    private static final int SLOTS = 40;

    private final MiniCluster cluster;
    private final Path scratch;
    private final AtomicLong runs = new AtomicLong();

    /** In the scratch folder lie RocksDB's working directories, whose names get into its files. */
    Runner(Path scratch) throws Exception {
        this.scratch = Files.createDirectories(scratch);
        Configuration configuration = new Configuration();
        configuration.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(16));
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MIN, MemorySize.ofMebiBytes(64));
        configuration.set(TaskManagerOptions.NETWORK_MEMORY_MAX, MemorySize.ofMebiBytes(64));
        listenOnLoopbackOnly(configuration);
        configuration.setString("io.tmp.dirs", scratch.toString());
        configuration.setString("state.changelog.storage", "filesystem");
        configuration.setString("dstl.dfs.base-path", scratch.resolve("changelog").toUri().toString());
        String more = System.getProperty("spt.configuration");
        if (more != null) { // of file systems
            Properties properties = new Properties();
            try (Reader reader = Files.newBufferedReader(Path.of(more))) {
                properties.load(reader);
            }
            properties.stringPropertyNames().forEach(key -> configuration.setString(key, properties.getProperty(key)));
            FileSystem.initialize(configuration, null);
        }
        cluster = new MiniCluster(new MiniClusterConfiguration.Builder()
                .setConfiguration(configuration)
                .setNumTaskManagers(1)
                .setNumSlotsPerTaskManager(SLOTS)
                .build());
        cluster.start();
    }

    /**
     * Anybody who reaches the REST port can run code here, so every socket that Flink opens is bound to the loopback address. An "address" option is only what Flink
     * tells others; the "bind" options decide where it listens. TestListensOnLoopbackOnly reads the sockets of this process.
     */
    static void listenOnLoopbackOnly(Configuration configuration) {
        configuration.setString("rest.bind-port", "0"); // any free one: several versions run at once
        for (String option : new String[] {
            "rest.address", "rest.bind-address", "jobmanager.rpc.address", "jobmanager.bind-host", "taskmanager.host", "taskmanager.bind-host"
        }) {
            configuration.setString(option, "127.0.0.1");
        }
    }

    static String flinkVersion() {
        return EnvironmentInformation.getVersion();
    }

    /** A snapshot, where it stands, and what the job held. */
    static final class Made {
        final String snapshot;
        final ObjectNode truth;

        Made(String snapshot, ObjectNode truth) {
            this.snapshot = snapshot;
            this.truth = truth;
        }
    }

    /** Runs the job of the options, restoring it as often as they say, and leaves its last snapshot in options.at. */
    Made make(Options options) throws Exception {
        if (!options.remote() && Files.exists(FixtureFileSystem.stored(Path.of(options.at)))) {
            throw new IOException(options.at + " exists");
        }
        List<Integer> parallelisms = options.runs();
        String previous = null;
        Made made = null;
        for (int run = 0; run < parallelisms.size(); run++) {
            boolean last = run == parallelisms.size() - 1;
            Choices choices = new Choices();
            choices.parallelism = parallelisms.get(run);
            SavepointRestoreSettings from = previous == null
                    ? SavepointRestoreSettings.none() : SavepointRestoreSettings.forPath(previous, false);
            try (Job job = new Job(options, choices, from)) {
                made = job.snapshot(run * options.checkpoints + 1, options.checkpoints);
            }
            previous = made.snapshot;
            if (!last && !options.checkpoint && !options.remote()) { // the next savepoint wants the place
                Path aside = scratch.resolve("previous-" + runs.get());
                move(Path.of(previous), aside);
                previous = aside.toString();
            }
        }
        return made;
    }

    /** Restores the job from a snapshot and shows what Flink handed to each subtask. */
    ObjectNode restore(String snapshot, Options options, Choices choices) throws Exception {
        try (Job job = new Job(options, choices, SavepointRestoreSettings.forPath(snapshot, choices.allowNonRestored))) {
            if (options.unaligned) {
                job.settle();
            }
            return job.dump(true);
        }
    }

    /**
     * Restores the job from a snapshot, and lets time pass: one watermark after the other. Shows for each which timers fired since the one before. Without watermarks, only
     * timers of processing time in the past fire. The counts say for how many to wait; more than that are seen too.
     */
    ArrayNode fire(String snapshot, Options options, Choices choices, List<Long> watermarks, List<Integer> counts) throws Exception {
        ArrayNode steps = Json.array();
        try (Job job = new Job(options, choices, SavepointRestoreSettings.forPath(snapshot, choices.allowNonRestored))) {
            int before = 0;
            for (int i = 0; i < watermarks.size(); i++) {
                List<ObjectNode> fired = job.fire(watermarks.get(i), before + counts.get(i));
                ArrayNode step = steps.addArray();
                fired.subList(before, fired.size()).forEach(step::add);
                before = fired.size();
            }
        }
        return steps;
    }

    /** Restores the job from a snapshot that stands in options.at, lets it go on, and takes its next snapshot there. */
    Made proceed(String snapshot, Options options, Choices choices) throws Exception {
        if (!options.checkpoint) {
            throw new IllegalArgumentException("a savepoint would take the place of the snapshot it comes from");
        }
        SavepointRestoreSettings from = choices.claim
                ? Versioned.claim(snapshot, choices.allowNonRestored)
                : SavepointRestoreSettings.forPath(snapshot, choices.allowNonRestored);
        try (Job job = new Job(options, choices, from)) {
            return job.snapshot(options.runs().size() * options.checkpoints + 1, 1);
        }
    }

    @Override
    public void close() throws Exception {
        cluster.close();
        delete(scratch);
    }

    /** A job that runs. */
    private final class Job implements AutoCloseable {
        private final Options options;
        private final String run;
        private final Gate gate;
        private final Shapes shapes;
        private final Names names;
        private final JobID id;

        Job(Options options, Choices choices, SavepointRestoreSettings from) throws Exception {
            this.options = options;
            long number = runs.incrementAndGet();
            run = "run-" + number;
            id = new JobID(0, number);
            gate = Gate.open(run);
            Configuration configuration = configuration(choices);
            StreamExecutionEnvironment env = new StreamExecutionEnvironment(configuration);
            env.configure(configuration);
            env.setParallelism(choices.parallelism > 0 ? choices.parallelism : options.parallelism);
            env.setMaxParallelism(options.maxParallelism);
            shapes = new Shapes(env, options, choices, run);
            shapes.build();
            StreamGraph graph = env.getStreamGraph();
            names = new Names(graph);
            JobGraph job = graph.getJobGraph(Runner.class.getClassLoader(), id);
            job.setSavepointRestoreSettings(from);
            try {
                cluster.submitJob(job).get();
                await("all tasks running", this::running);
            } catch (Throwable failure) {
                close();
                throw failure;
            }
        }

        private Configuration configuration(Choices choices) {
            Configuration c = new Configuration();
            c.setString("state.backend.type", WatchedBackend.Factory.class.getName());
            c.set(WatchedBackend.REAL, options.backend);
            c.set(WatchedBackend.RUN, run);
            c.setString("state.backend.incremental", String.valueOf(options.incremental));
            c.setString("execution.checkpointing.incremental", String.valueOf(options.incremental));
            c.setString("state.backend.rocksdb.memory.managed", "false");
            c.setString("state.backend.forst.memory.managed", "false");
            c.setString("execution.async-state.active-buffer-size", "1"); // else each access waits a second for more
            c.setString("state.backend.rocksdb.use-ingest-db-restore-mode", String.valueOf(choices.ingest));
            c.setString("state.backend.rocksdb.timer-service.factory", options.heapTimers ? "HEAP" : "ROCKSDB");
            c.setString("state.backend.rocksdb.localdir", scratch.resolve("rocksdb").toString());
            c.setString("state.backend.changelog.enabled", String.valueOf(options.changelog));
            c.setString("state.changelog.enabled", String.valueOf(options.changelog));
            c.setString("execution.checkpointing.snapshot-compression", String.valueOf(options.compress));
            c.setString("execution.checkpointing.file-merging.enabled", String.valueOf(options.fileMerging));
            if (options.unaligned) { // counts only where checkpoints are on; so far apart that only ours is taken
                c.setString("execution.checkpointing.unaligned.enabled", "true");
                c.setString("execution.checkpointing.interval", "20 d");
            }
            c.setString("execution.checkpointing.externalized-checkpoint-retention", "RETAIN_ON_CANCELLATION");
            c.setString("execution.checkpointing.storage", "filesystem"); // named, for else the threshold is not read
            boolean inPlace = options.checkpoint && options.at != null;
            c.setString("execution.checkpointing.dir", inPlace && options.remote() ? options.at : "file:" + (inPlace ? options.at : scratch.resolve("checkpoints")));
            if (options.inlineThreshold >= 0) {
                c.setString("execution.checkpointing.data-inline-threshold", options.inlineThreshold + " b");
            }
            c.setString("restart-strategy.type", "none");
            options.configuration.forEach(c::setString);
            return c;
        }

        private boolean running() {
            try {
                AccessExecutionGraph graph = cluster.getExecutionGraph(id).get();
                if (graph.getState() == JobStatus.FAILED || graph.getState() == JobStatus.FAILING) {
                    throw new JobFailed(graph.getFailureInfo() == null ? null
                            : graph.getFailureInfo().getException());
                }
                for (AccessExecutionVertex vertex : graph.getAllExecutionVertices()) {
                    if (vertex.getExecutionState() != ExecutionState.RUNNING) {
                        return false;
                    }
                }
                return graph.getState() == JobStatus.RUNNING;
            } catch (ExecutionException | InterruptedException e) {
                throw new JobFailed(e);
            }
        }

        /** Lets the sources emit what each stage adds, takes a snapshot after each, and shows what the job then holds. */
        Made snapshot(int firstStage, int stages) throws Exception {
            String snapshot = null;
            if (options.unaligned) {
                passFirstCheckpoint();
            }
            for (int i = 0; i < stages; i++) {
                int stage = firstStage + i;
                emit(stage);
                snapshot = options.checkpoint ? checkpoint() : savepoint();
            }
            if (options.unaligned) {
                if (!MetadataDump.hasChannelState(Path.of(snapshot))) {
                    throw new NothingInFlight();
                }
                settle();
            }
            return new Made(snapshot, dump(false));
        }

        /**
         * Lets the sources emit what this stage adds. Where keys meet, one split goes after the other, each when the records of the
         * one before have arrived: so the same record is the last one every time. Not with in-flight data, which is a race.
         */
        private void emit(int stage) {
            gate.slow(options.unaligned);
            int most = shapes.sources.values().stream().mapToInt(Integer::intValue).max().getAsInt();
            boolean inTurn = shapes.keyedOperators.length > 0 && !options.unaligned;
            long[] before = Arrays.stream(shapes.keyedOperators).mapToLong(gate::counted).toArray();
            for (int open = inTurn ? 1 : most; open <= most; open++) {
                int opened = open;
                gate.raise(stage, opened);
                shapes.sources.forEach((source, splits) -> await(
                        source + " emitting", () -> gate.arrivals(source, stage) >= Math.min(opened, splits)));
                for (int i = 0; inTurn && i < before.length; i++) {
                    long expected = before[i] + opened * shapes.perStage;
                    String operator = shapes.keyedOperators[i];
                    await("records in " + operator, () -> gate.counted(operator) >= expected);
                }
            }
        }

        /** Some versions take a periodic checkpoint at once. It must be over before records are held in the channels. */
        private void passFirstCheckpoint() throws Exception {
            cluster.triggerCheckpoint(id, CheckpointType.CONFIGURED).get(PATIENCE, TimeUnit.MILLISECONDS);
            await("no checkpoint under way", () -> {
                try {
                    return cluster.getExecutionGraph(id).get().getCheckpointStatsSnapshot().getCounts()
                            .getNumberOfInProgressCheckpoints() == 0;
                } catch (ExecutionException | InterruptedException e) {
                    throw new JobFailed(e);
                }
            });
        }

        private String savepoint() throws Exception {
            Path at = options.remote() ? null : Path.of(options.at);
            String written = cluster.triggerSavepoint(
                            id, at == null ? options.at : "file:" + at.getParent(), false,
                            SavepointFormatType.valueOf(options.format.toUpperCase(Locale.ROOT)))
                    .get(PATIENCE, TimeUnit.MILLISECONDS);
            if (at == null) {
                return written;
            }
            if (Files.exists(FixtureFileSystem.stored(at))) { // an earlier one of this run
                delete(FixtureFileSystem.stored(at));
            }
            move(Path.of(URI.create(written)), at);
            return at.toString();
        }

        private String checkpoint() throws Exception {
            long before = gate.counted("source-snapshots");
            CompletableFuture<Long> pending =
                    cluster.triggerCheckpoint(id, CheckpointType.CONFIGURED);
            if (options.unaligned) { // once the barriers are on their way, let the held record go
                int readers = options.parallelism;
                await("sources taking part", () -> gate.counted("source-snapshots") >= before + readers);
                Thread.sleep(200);
                gate.slow(false);
            }
            long checkpoint = pending.get(PATIENCE, TimeUnit.MILLISECONDS);
            return options.at.replace("_entropy_/", "") + "/" + id.toHexString() + "/chk-" + checkpoint; // Flink leaves the marker out where _metadata is
        }

        /**
         * Waits until the in-flight data has arrived: nothing was counted between 100 looks. Looks are counted, not time, because on a busy machine the whole
         * process may stand still for longer than any pause.
         */
        void settle() throws InterruptedException {
            long[] seen = {gate.countedInAll(), 0};
            await("quiet", () -> {
                long now = gate.countedInAll();
                seen[1] = now == seen[0] ? seen[1] + 1 : 0;
                seen[0] = now;
                return seen[1] >= 100;
            });
        }

        /** Emits a watermark, waits for as many timers as are expected, but not forever, and for those that come with them. */
        List<ObjectNode> fire(long watermark, int expected) throws Exception {
            gate.watermark(watermark);
            for (int look = 0; look < 500 && gate.fired().size() < expected; look++) {
                Thread.sleep(10);
            }
            // Its barriers come after the watermark. A changelog takes no first checkpoint of its own after a restore, but a savepoint.
            cluster.triggerSavepoint(id, "file:" + scratch.resolve("barriers"), false, SavepointFormatType.CANONICAL).get(PATIENCE, TimeUnit.MILLISECONDS);
            return gate.fired();
        }

        ObjectNode dump(boolean asRestored) throws Exception {
            return Watch.of(run).dump(options, names, asRestored);
        }

        @Override
        public void close() throws Exception {
            try {
                gate.slow(false);
                cluster.cancelJob(id).get(PATIENCE, TimeUnit.MILLISECONDS);
                cluster.requestJobResult(id).get(PATIENCE, TimeUnit.MILLISECONDS);
            } catch (ExecutionException e) {
                // it never started, or is over already
            } finally {
                Gate.drop(run);
                Watch.drop(run);
            }
        }
    }

    /** The records had arrived before the checkpoint: chance. Make it again. */
    static final class NothingInFlight extends Exception {
        NothingInFlight() {
            super("no records were in flight");
        }
    }

    private static final class JobFailed extends RuntimeException {
        JobFailed(Throwable cause) {
            super("the job failed", cause);
        }
    }

    static void await(String what, BooleanSupplier condition) {
        long deadline = System.currentTimeMillis() + PATIENCE;
        while (!condition.getAsBoolean()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException(new TimeoutException("waited too long for: " + what));
            }
            try {
                Thread.sleep(10);
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new IllegalStateException(e);
            }
        }
    }

    private static void move(Path namedFrom, Path namedTo) throws IOException {
        Path from = FixtureFileSystem.stored(namedFrom);
        Path to = FixtureFileSystem.stored(namedTo);
        try (Stream<Path> files = Files.walk(from)) {
            for (Path file : (Iterable<Path>) files::iterator) {
                Path target = to.resolve(from.relativize(file).toString());
                if (Files.isDirectory(file)) {
                    Files.createDirectories(target);
                } else {
                    Files.copy(file, target);
                }
            }
        }
        delete(from);
    }

    private static void delete(Path tree) throws IOException {
        try (Stream<Path> files = Files.walk(tree)) {
            for (Path file : (Iterable<Path>) files.sorted(Comparator.reverseOrder())::iterator) {
                Files.deleteIfExists(file);
            }
        }
    }
}
