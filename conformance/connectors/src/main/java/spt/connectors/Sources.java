package spt.connectors;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource.NumberSequenceSplit;
import org.apache.flink.connector.base.source.hybrid.HybridSourceEnumeratorState;
import org.apache.flink.connector.base.source.hybrid.HybridSourceEnumeratorStateSerializer;
import org.apache.flink.connector.base.source.hybrid.HybridSourceSplit;
import org.apache.flink.connector.base.source.hybrid.HybridSourceSplitSerializer;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.FileSourceSplitSerializer;
import org.apache.flink.connector.file.src.PendingSplitsCheckpoint;
import org.apache.flink.connector.file.src.PendingSplitsCheckpointSerializer;
import org.apache.flink.connector.file.src.util.CheckpointedPosition;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.fs.Path;

/** Sources that Flink itself has: numbers, files, hybrid sources. */
public final class Sources implements Kinds.Catalogue {
    private static final List<FileSourceSplit> FILES = List.of(
            new FileSourceSplit("0000000001", new Path("file:///data/in/a.csv"), 0, 100, 1700000000000L, 100),
            new FileSourceSplit("0000000002", new Path("hdfs://nn:8020/data/ü.csv"), 50, 100, 1, 150, new String[] {"h1", "h2"}, new CheckpointedPosition(60, 5)),
            new FileSourceSplit("x", new Path("/plain"), 0, 1, 2, 3, new String[0], new CheckpointedPosition(CheckpointedPosition.NO_OFFSET, 9)));

    @Override
    public void addTo(Kinds kinds) throws Exception {
        NumberSequenceSource numbers = new NumberSequenceSource(0, 1);
        kinds.add("NumberSequenceSplit", numbers.getSplitSerializer(), (s, v) -> Json.versioned("NumberSequenceSplit", v, "id", s.splitId(), "from", s.from(), "to", s.to()),
                List.of(new NumberSequenceSplit("1", 10, 19), new NumberSequenceSplit("two", -5, Long.MAX_VALUE), new NumberSequenceSplit("", Long.MIN_VALUE, 0)));
        kinds.add("NumberSequenceSplits", numbers.getEnumeratorCheckpointSerializer(),
                (all, v) -> Json.versioned("NumberSequenceSplits", v, "splits", Json.list(all, s -> Json.of("id", s.splitId(), "from", s.from(), "to", s.to()))),
                List.of(List.of(new NumberSequenceSplit("3", 4, 9), new NumberSequenceSplit("4", 10, 12))));
        kinds.add("HybridSourceSplit", new HybridSourceSplitSerializer(),
                (s, v) -> Json.versioned("HybridSourceSplit", v, "source", s.sourceIndex(), "id", s.splitId(),
                        "split", Kafka.json(new KafkaPartitionSplitSerializer().deserialize(s.wrappedSplitSerializerVersion(), s.wrappedSplitBytes()))),
                List.of(new HybridSourceSplit(1, new KafkaPartitionSplitSerializer().serialize(Kafka.SPLITS.get(0)), 0, "orders-0")));
        kinds.add("HybridSourceEnumeratorState", new HybridSourceEnumeratorStateSerializer(),
                (s, v) -> Json.versioned("HybridSourceEnumeratorState", v, "source", s.getCurrentSourceIndex(),
                        "enumerator", Kafka.json(new KafkaSourceEnumStateSerializer().deserialize(s.getWrappedStateSerializerVersion(), s.getWrappedState()))),
                hybrid());
        kinds.add("FileSourceSplit", FileSourceSplitSerializer.INSTANCE, (s, v) -> json(s), FILES);
        kinds.add("PendingSplitsCheckpoint", new PendingSplitsCheckpointSerializer<>(FileSourceSplitSerializer.INSTANCE),
                (c, v) -> Json.versioned("PendingSplitsCheckpoint", v, "pending", Json.of("version", 1, "splits", Json.list(c.getSplits(), Sources::json),
                        "processed_paths", Json.list(c.getAlreadyProcessedPaths(), Path::toString))),
                List.of(PendingSplitsCheckpoint.fromCollectionSnapshot(FILES, List.of(new Path("file:/data/done/b.csv"), new Path("s3://bucket/ü"))),
                        PendingSplitsCheckpoint.fromCollectionSnapshot(List.of(FILES.get(0))), PendingSplitsCheckpoint.fromCollectionSnapshot(List.<FileSourceSplit>of())));
    }

    private static List<HybridSourceEnumeratorState> hybrid() throws Exception {
        KafkaSourceEnumStateSerializer kafka = new KafkaSourceEnumStateSerializer();
        List<HybridSourceEnumeratorState> all = new ArrayList<>();
        for (KafkaSourceEnumState s : Kafka.states().subList(1, 3)) {
            all.add((HybridSourceEnumeratorState) Reflect.make(HybridSourceEnumeratorState.class.getName(), all.size(), kafka.serialize(s), kafka.getVersion()));
        }
        return all;
    }

    private static Object json(FileSourceSplit s) throws Exception {
        java.net.URI path = s.path().toUri();
        return Json.versioned("FileSourceSplit", 1, "id", s.splitId(),
                "path", Json.of("scheme", path.getScheme(), "user_info", path.getUserInfo(), "host", path.getHost(), "port", path.getPort(), "path", path.getPath(), "query", path.getQuery(), "fragment", path.getFragment()),
                "offset", s.offset(), "length", s.length(), "modification_time", s.fileModificationTime(), "file_size", s.fileSize(), "hosts", List.of(s.hostnames()),
                "position", Json.orNull(s.getReaderPosition().orElse(null), p -> Json.of("offset", p.getOffset(), "records_after_offset", p.getRecordsAfterOffset())));
    }
}
