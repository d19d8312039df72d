package spt.connectors;

import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.streaming.api.functions.sink.filesystem.InProgressFileWriter.InProgressFileRecoverable;
import org.apache.flink.streaming.api.functions.sink.filesystem.InProgressFileWriter.PendingFileRecoverable;
import org.apache.flink.streaming.api.functions.sink.filesystem.bucketassigners.SimpleVersionedStringSerializer;

/** Sinks that Flink 2 does not have: FlinkKafkaProducer, StreamingFileSink. */
public final class Legacy implements Kinds.Catalogue {
    private static final String PRODUCER = "org.apache.flink.streaming.connectors.kafka.FlinkKafkaProducer$";
    private static final String TWO_PHASE = "org.apache.flink.streaming.api.functions.sink.TwoPhaseCommitSinkFunction$";
    private static final String BUCKET = "org.apache.flink.streaming.api.functions.sink.filesystem.BucketState";

    @Override
    public void addTo(Kinds kinds) throws Exception {
        Object context = Reflect.make(PRODUCER + "KafkaTransactionContext", new LinkedHashSet<>(Set.of("prefix-ü")));
        Object idle = Reflect.make(PRODUCER + "KafkaTransactionState", null, -1L, (short) -1, null);
        Object open = holder(Reflect.make(PRODUCER + "KafkaTransactionState", "prefix-ü", Long.MAX_VALUE, Short.MAX_VALUE, null), 99L);
        kinds.addPlain("TwoPhaseCommitState", twoPhase(), (s, v) -> state(s), List.of(
                Reflect.make(TWO_PHASE + "State", open, List.of(), Optional.empty()),
                Reflect.make(TWO_PHASE + "State", holder(idle, Long.MIN_VALUE), List.of(open, open), Optional.of(context))));
        kinds.addPlain("NextTransactionalIdHint", Legacy.serializer(PRODUCER + "NextTransactionalIdHintSerializer"),
                (h, v) -> Json.structure("NextTransactionalIdHint", "next_free_transactional_id", Reflect.field(h, "nextFreeTransactionalId"), "last_parallelism", Reflect.field(h, "lastParallelism")),
                List.of(Reflect.make(PRODUCER + "NextTransactionalIdHint", 3, 12L), Reflect.make(PRODUCER + "NextTransactionalIdHint")));

        Sinks.FileSystem fs = Sinks.local();
        InProgressFileRecoverable now = Sinks.inProgress(Sinks.local("part-1", 5), new Path("/out/2024/part-1"));
        Map<Long, List<PendingFileRecoverable>> pending = new LinkedHashMap<>();
        pending.put(6L, List.of(Sinks.pending(Sinks.local("a", 1), new Path("/out/2024/a"), 1), Sinks.pending(Sinks.local("ü", 2), null, -1)));
        pending.put(7L, List.of());
        SimpleVersionedSerializer<Object> buckets = Reflect.serializer(BUCKET + "Serializer", fs.inProgress(), fs.pending(), SimpleVersionedStringSerializer.INSTANCE);
        kinds.add("BucketState", buckets, (s, v) -> bucket(s, v, fs), List.of(
                Reflect.make(BUCKET, "2024", new Path("/out/2024"), 99L, now, pending), Reflect.make(BUCKET, "", new Path("s3://bucket/ü"), Long.MAX_VALUE, null, Map.of())));
    }

    @SuppressWarnings("unchecked")
    private static TypeSerializer<Object> serializer(String name, Object... args) throws Exception {
        return (TypeSerializer<Object>) Reflect.make(name, args);
    }

    private static TypeSerializer<Object> twoPhase() throws Exception {
        return serializer(TWO_PHASE + "StateSerializer", serializer(PRODUCER + "TransactionStateSerializer"), serializer(PRODUCER + "ContextStateSerializer"));
    }

    private static Object holder(Object transaction, long start) throws Exception {
        return Reflect.make(TWO_PHASE + "TransactionHolder", transaction, start);
    }

    private static Object state(Object s) throws Exception {
        Optional<?> context = (Optional<?>) Reflect.call(s, "getContext");
        return Json.structure("TwoPhaseCommitState", "pending", json(Reflect.call(s, "getPendingTransaction")),
                "pending_commit", Json.list((List<?>) Reflect.call(s, "getPendingCommitTransactions"), Legacy::json),
                "context", Json.orNull(context.orElse(null), c -> Json.of("transactional_ids", Reflect.field(c, "transactionalIds"))));
    }

    private static Object json(Object holder) throws Exception {
        Object t = Reflect.field(holder, "handle");
        return Json.of("transaction", Json.of("transactional_id", Reflect.field(t, "transactionalId"), "producer_id", Reflect.field(t, "producerId"), "epoch", Reflect.field(t, "epoch")),
                "start_ms", Reflect.field(holder, "transactionStartTime"));
    }

    private static Object bucket(Object s, int version, Sinks.FileSystem fs) throws Exception {
        Map<?, ?> pending = (Map<?, ?>) Reflect.call(s, "getPendingFileRecoverablesPerCheckpoint");
        return Json.versioned("BucketState", version, "bucket", Json.of("id", Sinks.bucket((String) Reflect.call(s, "getBucketId")), "path", Reflect.call(s, "getBucketPath").toString(),
                "creation_time", Reflect.call(s, "getInProgressFileCreationTime"),
                "in_progress", Json.orNull((InProgressFileRecoverable) Reflect.call(s, "getInProgressFileRecoverable"), fs::json),
                "pending", Json.of("version", fs.pending().getVersion(), "checkpoints", Json.list(pending.entrySet(),
                        e -> Json.of("checkpoint", e.getKey(), "files", Json.list((List<?>) e.getValue(), f -> fs.json((PendingFileRecoverable) f)))))));
    }
}
