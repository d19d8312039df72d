package spt.connectors;

import java.io.File;
import java.lang.reflect.Proxy;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.connector.file.sink.FileSinkCommittable;
import org.apache.flink.connector.file.sink.FileSinkCommittableSerializer;
import org.apache.flink.connector.file.sink.compactor.operator.CompactorRequest;
import org.apache.flink.connector.file.sink.compactor.operator.CompactorRequestSerializer;
import org.apache.flink.connector.file.sink.writer.FileWriterBucketState;
import org.apache.flink.connector.file.sink.writer.FileWriterBucketStateSerializer;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.metrics.groups.SinkCommitterMetricGroup;
import org.apache.flink.streaming.api.functions.sink.filesystem.InProgressFileWriter.InProgressFileRecoverable;
import org.apache.flink.streaming.api.functions.sink.filesystem.InProgressFileWriter.PendingFileRecoverable;

/** File sinks, and the committers of Flink's unified sinks. */
public final class Sinks implements Kinds.Catalogue {
    private static final String PART = "org.apache.flink.streaming.api.functions.sink.filesystem.OutputStreamBasedPartFileWriter$OutputStreamBased";
    private static final String LOCAL = "org.apache.flink.core.fs.local.LocalRecoverable";

    /** A file system: the serializer of its recoverables, and what they say. */
    public record FileSystem(SimpleVersionedSerializer<Object> serializer, Kinds.Describe<Object> json) {
        public Object json(Object recoverable) throws Exception {
            return json.of(recoverable, serializer.getVersion());
        }

        public SimpleVersionedSerializer<InProgressFileRecoverable> inProgress() throws Exception {
            return Reflect.serializer(PART + "InProgressFileRecoverableSerializer", serializer);
        }

        public SimpleVersionedSerializer<PendingFileRecoverable> pending() throws Exception {
            return Reflect.serializer(PART + "PendingFileRecoverableSerializer", serializer);
        }

        public Object json(InProgressFileRecoverable file) throws Exception {
            return Json.versioned("InProgressFile", 2, "file", Json.of("path", Json.orNull(Reflect.field(file, "targetPath"), Object::toString), "resume", json(Reflect.field(file, "resumeRecoverable"))));
        }

        public Object json(PendingFileRecoverable file) throws Exception {
            return Json.versioned("PendingFile", 2, "file", Json.of("path", Json.orNull(Reflect.field(file, "targetPath"), Object::toString), "size", Reflect.field(file, "fileSize"),
                    "commit", json(Reflect.field(file, "commitRecoverable"))));
        }

        public Object json(FileSinkCommittable c) throws Exception {
            return Json.versioned("FileSinkCommittable", 2, "committable", Json.of("bucket", c.getBucketId(), "pending", Json.orNull(c.getPendingFile(), this::json),
                    "in_progress_to_clean_up", Json.orNull(c.getInProgressFileToCleanup(), this::json), "compacted_to_clean_up", Json.orNull(c.getCompactedFileToCleanup(), Path::toString)));
        }
    }

    public static InProgressFileRecoverable inProgress(Object recoverable, Path path) throws Exception {
        return (InProgressFileRecoverable) Reflect.make(PART + "InProgressFileRecoverable", recoverable, path);
    }

    public static PendingFileRecoverable pending(Object recoverable, Path path, long size) throws Exception {
        return (PendingFileRecoverable) Reflect.make(PART + "PendingFileRecoverable", recoverable, path, size);
    }

    static FileSystem local() throws Exception {
        return new FileSystem(Reflect.serializer(LOCAL + "Serializer"), Sinks::localJson);
    }

    static Object local(String file, long offset) throws Exception {
        return Reflect.make(LOCAL, new File("/out/2024/" + file), new File("/out/2024/." + file + ".inprogress"), offset);
    }

    private static Object localJson(Object r, int version) throws Exception {
        return Json.versioned("LocalRecoverable", version, "file",
                Json.of("offset", Reflect.call(r, "offset"), "target", Reflect.call(r, "targetFile").toString(), "temporary_file", Reflect.call(r, "tempFile").toString()));
    }

    @Override
    public void addTo(Kinds kinds) throws Exception {
        FileSystem fs = local();
        List<PendingFileRecoverable> pending = List.of(pending(local("part-ü", 77), new Path("/out/2024/part-ü"), 77), pending(local("", Long.MAX_VALUE), null, -1));
        InProgressFileRecoverable open = inProgress(local("part-1", 0), new Path("/out/2024/part-1"));
        List<FileSinkCommittable> committables = List.of(new FileSinkCommittable("2024", pending.get(0)), new FileSinkCommittable("", pending.get(1)), new FileSinkCommittable("ü", open),
                new FileSinkCommittable("x", new Path("s3://bucket/compacted")));
        FileSinkCommittableSerializer committable = new FileSinkCommittableSerializer(fs.pending(), fs.inProgress());
        kinds.add("FileSinkCommittable", committable, (c, v) -> fs.json(c), committables);

        kinds.add("FileWriterBucketState", new FileWriterBucketStateSerializer(fs.inProgress(), fs.pending()),
                (s, v) -> Json.versioned("FileWriterBucketState", v, "bucket", Json.of("id", bucket(s.getBucketId()), "path", s.getBucketPath().toString(), "creation_time", s.getInProgressFileCreationTime(),
                        "in_progress", Json.orNull((InProgressFileRecoverable) Reflect.call(s, "getInProgressFileRecoverable"), fs::json))),
                List.of(new FileWriterBucketState("2024-ü", new Path("s3://bucket/2024-ü"), 99, open), new FileWriterBucketState("", new Path("/out"), Long.MAX_VALUE, null)));

        CompactorRequestSerializer request = new CompactorRequestSerializer(committable);
        Map<Long, List<CompactorRequest>> requests = new LinkedHashMap<>();
        requests.put(3L, List.of(new CompactorRequest("2024", committables.subList(1, 3), List.of()), new CompactorRequest("", List.of(), committables.subList(0, 1))));
        requests.put(-1L, List.of());
        kinds.add("RemainingRequests", Reflect.<Map<Long, List<CompactorRequest>>>serializer("org.apache.flink.connector.file.sink.compactor.operator.CompactorOperator$RemainingRequestsSerializer", request),
                (all, v) -> Json.versioned("RemainingRequests", v, "requests", Json.list(all.entrySet(), e -> Json.of("checkpoint", e.getKey(), "requests", Json.of("version", request.getVersion(),
                        "requests", Json.list(e.getValue(), r -> Json.versioned("FileSinkCompactRequest", 1, "request", Json.of("bucket", r.getBucketId(), "compact", committables(fs, r.getCommittableToCompact()),
                                "pass_through", committables(fs, r.getCommittableToPassthrough())))))))),
                List.of(requests, Map.of()));

        addCollectors(kinds, committable, committables, c -> fs.json((FileSinkCommittable) c));
    }

    static Object bucket(String id) {
        return Json.versioned("BucketId", 1, "id", id);
    }

    private static Object committables(FileSystem fs, List<FileSinkCommittable> all) throws Exception {
        return Json.of("version", 2, "committables", Json.list(all, fs::json));
    }

    private static final String RUNTIME = "org.apache.flink.streaming.runtime.operators.sink.";

    /** Metrics that nobody reads. */
    private static final Object METRICS =
            Proxy.newProxyInstance(Sinks.class.getClassLoader(), new Class<?>[] {SinkCommitterMetricGroup.class}, (proxy, method, args) -> null);

    /** Committers of committables. */
    private static void addCollectors(Kinds kinds, SimpleVersionedSerializer<?> committable, List<?> committables, Json.Function<Object> json) throws Exception {
        SimpleVersionedSerializer<Object> serializer = Reflect.serializer(RUNTIME + "committables.CommittableCollectorSerializer", committable, 1, 3, METRICS);
        Kinds.Describe<Object> describe = (c, v) -> collector(c, v, json);
        List<Object> collectors = List.of(collector(Map.of()), collector(Map.of(7L, committables.subList(1, 3), Long.MAX_VALUE, List.of())));
        kinds.add("CommittableCollector", serializer, describe, collectors);

        String pack = VERSION > 0 ? RUNTIME : "org.apache.flink.streaming.api.connector.sink2.";
        SimpleVersionedSerializer<Object> global = VERSION > 0 ? Reflect.serializer(pack + "GlobalCommitterSerializer", serializer, committable, METRICS)
                : Reflect.serializer(pack + "GlobalCommitterSerializer", serializer, committable, 1, 3, METRICS);
        kinds.add("GlobalCommittableWrapper", global,
                (w, v) -> Json.versioned("GlobalCommittableWrapper", v, "state", Json.of("global", Json.of("version", committable.getVersion(), "committables", Json.list((Collection<?>) Reflect.call(w, "getGlobalCommittables"), json::apply)),
                        "collector", collector(Reflect.call(w, "getCommittableCollector"), serializer.getVersion(), json))),
                List.of(Reflect.make(pack + "GlobalCommittableWrapper", collectors.get(0), committables.subList(0, 2)), Reflect.make(pack + "GlobalCommittableWrapper", collectors.get(1), List.of())));
    }

    /** A collector of committables by checkpoint; the requests have different states and counts of retries. */
    private static Object collector(Map<Long, List<?>> checkpoints) throws Exception {
        boolean subtasksAreStored = VERSION > 0;
        Object[] states = Class.forName(RUNTIME + "committables.CommitRequestState").getEnumConstants();
        Map<Long, Object> all = new LinkedHashMap<>();
        for (Map.Entry<Long, List<?>> e : checkpoints.entrySet()) {
            long checkpoint = e.getKey();
            Map<Integer, Object> subtasks = new LinkedHashMap<>();
            for (int subtask : subtasksAreStored ? List.of(0, 2) : List.of(1)) {
                List<Object> requests = new ArrayList<>();
                for (Object committable : e.getValue()) {
                    requests.add(Reflect.make(RUNTIME + "committables.CommitRequestImpl", committable, requests.size(), states[requests.size() % states.length], METRICS));
                }
                // requests, expected, drained, failed
                subtasks.put(subtask, Reflect.make(RUNTIME + "committables.SubtaskCommittableManager", requests, requests.size() + 3, subtasksAreStored ? 0 : 2, 1, subtask, checkpoint, METRICS));
            }
            String manager = RUNTIME + "committables.CheckpointCommittableManagerImpl";
            all.put(checkpoint, subtasksAreStored ? Reflect.make(manager, subtasks, 3, checkpoint, METRICS) : Reflect.make(manager, subtasks, 1, 3, checkpoint, METRICS));
        }
        String collector = RUNTIME + "committables.CommittableCollector";
        return subtasksAreStored ? Reflect.make(collector, all, METRICS) : Reflect.make(collector, all, 1, 3, METRICS);
    }

    private static Object collector(Object collector, int version, Json.Function<Object> json) throws Exception {
        List<Object> checkpoints = Json.list(new TreeMap<>((Map<?, ?>) Reflect.field(collector, "checkpointCommittables")).values(), c -> {
            Map<String, Object> checkpoint = Json.versioned("CheckpointCommittables", VERSION, "checkpoint", Reflect.field(c, "checkpointId"));
            if (VERSION > 0) {
                checkpoint.put("subtasks_of_checkpoint", Reflect.field(c, "numberOfSubtasks"));
            }
            checkpoint.put("subtasks", Json.of("version", SUBTASK_VERSION, "subtasks", Json.list(new TreeMap<>((Map<?, ?>) Reflect.field(c, "subtasksCommittableManagers")).values(), s -> subtask(s, json))));
            return checkpoint;
        });
        return Json.versioned("CommittableCollector", version, "checkpoints", Json.of("version", VERSION, "checkpoints", checkpoints));
    }

    private static Object subtask(Object s, Json.Function<Object> json) throws Exception {
        Map<String, Object> subtask = Json.versioned("SubtaskCommittables", SUBTASK_VERSION);
        if (SUBTASK_VERSION > 0) {
            subtask.put("subtask", Reflect.field(s, "subtaskId"));
        }
        subtask.put("requests", Json.of("version", 0, "requests", Json.list((Iterable<?>) Reflect.field(s, "requests"), r -> Json.versioned("CommitRequest", 0, "committable", json.apply(Reflect.call(r, "getCommittable")),
                "retries", Reflect.call(r, "getNumberOfRetries"), "state", Reflect.call(r, "getState")))));
        subtask.put("committables", Reflect.call(s, "getNumCommittables"));
        if (SUBTASK_VERSION < 2) {
            subtask.put("drained", Reflect.field(s, "numDrained"));
        }
        subtask.put("failed", Reflect.field(s, "numFailed"));
        return subtask;
    }

    /** The version of the committables of a checkpoint: 0 up to Flink 1.20.0, whose collectors know their own subtask. */
    private static final int VERSION = Reflect.exists(RUNTIME + "GlobalCommitterSerializer") ? 1 : 0;
    private static final int SUBTASK_VERSION = VERSION == 0 ? 0 : 2;
}
