package spt.connectors.other;

import java.io.IOException;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.util.InstantiationUtil;
import org.apache.paimon.catalog.Identifier;
import org.apache.paimon.data.BinaryRow;
import org.apache.paimon.data.BinaryRowWriter;
import org.apache.paimon.data.BinaryString;
import org.apache.paimon.data.GenericRow;
import org.apache.paimon.data.Timestamp;
import org.apache.paimon.data.serializer.InternalRowSerializer;
import org.apache.paimon.data.serializer.VersionedSerializer;
import org.apache.paimon.flink.sink.WrappedManifestCommittableSerializer;
import org.apache.paimon.flink.source.FileStoreSourceSplit;
import org.apache.paimon.flink.source.FileStoreSourceSplitSerializer;
import org.apache.paimon.flink.source.PendingSplitsCheckpoint;
import org.apache.paimon.flink.source.PendingSplitsCheckpointSerializer;
import org.apache.paimon.index.IndexFileMeta;
import org.apache.paimon.index.IndexFileMetaSerializer;
import org.apache.paimon.io.CompactIncrement;
import org.apache.paimon.io.DataFileMeta;
import org.apache.paimon.io.DataFileMetaSerializer;
import org.apache.paimon.io.DataIncrement;
import org.apache.paimon.io.IndexIncrement;
import org.apache.paimon.manifest.FileSource;
import org.apache.paimon.manifest.ManifestCommittable;
import org.apache.paimon.manifest.ManifestCommittableSerializer;
import org.apache.paimon.manifest.WrappedManifestCommittable;
import org.apache.paimon.stats.SimpleStats;
import org.apache.paimon.table.sink.CommitMessage;
import org.apache.paimon.table.sink.CommitMessageImpl;
import org.apache.paimon.table.sink.CommitMessageSerializer;
import org.apache.paimon.table.source.DataSplit;
import org.apache.paimon.utils.SerializationUtils;
import spt.connectors.Json;
import spt.connectors.Kinds;
import spt.connectors.Reflect;

/** Paimon. */
public final class Paimon implements Kinds.Catalogue {
    @Override
    public void addTo(Kinds kinds) throws Exception {
        DataFileMeta file = made(DataFileMeta.forAppend("data-1.orc", 100, 10, SimpleStats.EMPTY_STATS, 0, 9, 1, List.of("extra"), null, FileSource.APPEND, null, "s3://bucket/external"));
        DataFileMeta other = made(DataFileMeta.forAppend("ü.parquet", Long.MAX_VALUE, 0, SimpleStats.EMPTY_STATS, 0, 0, 0, List.of(), new byte[] {1, 2}, null, List.of("a"), null));
        BinaryRow partition = new BinaryRow(2);
        BinaryRowWriter writer = new BinaryRowWriter(partition);
        writer.writeString(0, BinaryString.fromString("2024-01-01-ü"));
        writer.writeInt(1, 7);
        writer.complete();

        List<FileStoreSourceSplit> splits = List.of(new FileStoreSourceSplit("id-ü", split(BinaryRow.EMPTY_ROW, List.of())), new FileStoreSourceSplit("", split(partition, List.of(file, other)), Long.MAX_VALUE));
        kinds.add("FileStoreSourceSplit", new FileStoreSourceSplitSerializer(), (s, v) -> {
            Map<String, Object> json = Json.versioned("FileStoreSourceSplit", v);
            json.putAll(json(s));
            return json;
        }, splits);
        kinds.add("PaimonPendingSplitsCheckpoint", new PendingSplitsCheckpointSerializer(new FileStoreSourceSplitSerializer()),
                (c, v) -> Json.versioned("PaimonPendingSplitsCheckpoint", v, "splits", Json.list(c.splits(), Paimon::json), "snapshot", c.currentSnapshotId()),
                List.of(new PendingSplitsCheckpoint(splits, 5L), new PendingSplitsCheckpoint(List.of(), null), new PendingSplitsCheckpoint(splits.subList(0, 1), null)));

        CommitMessage full = message(partition, 3, 16, List.of(file, other), List.of(new IndexFileMeta("HASH", "index-1", 20, 5)));
        CommitMessage empty = message(BinaryRow.EMPTY_ROW, 0, null, List.of(), List.of());
        Map<Integer, Long> offsets = new LinkedHashMap<>(Map.of(2, Long.MAX_VALUE));
        Map<String, String> properties = new LinkedHashMap<>(Map.of("key", "ü"));
        List<ManifestCommittable> committables = List.of(new ManifestCommittable(Long.MAX_VALUE, null, Map.of(), List.of()), new ManifestCommittable(4, -1L, offsets, List.of(full, empty), properties));
        kinds.add("ManifestCommittable", ManifestCommittableSerializer.class, flink(new ManifestCommittableSerializer()), (c, v) -> {
            Map<String, Object> json = Json.versioned("ManifestCommittable", v);
            json.putAll(json(c));
            return json;
        }, committables);
        WrappedManifestCommittable wrapped = new WrappedManifestCommittable(4, Long.MIN_VALUE);
        wrapped.putManifestCommittable(Identifier.create("db", "orders-ü"), committables.get(1));
        kinds.add("WrappedManifestCommittable", WrappedManifestCommittableSerializer.class, flink(new WrappedManifestCommittableSerializer()),
                (w, v) -> Json.versioned("WrappedManifestCommittable", v, "checkpoint", w.checkpointId(), "watermark", w.watermark(),
                        "tables", Json.list(w.manifestCommittables().entrySet(), e -> Json.of("table", e.getKey().getFullName(), "committable", json(e.getValue())))),
                List.of(wrapped, new WrappedManifestCommittable(0, 0)));
    }

    /** The same file, made at a time that does not change from run to run. */
    private static DataFileMeta made(DataFileMeta file) {
        DataFileMetaSerializer serializer = new DataFileMetaSerializer();
        GenericRow row = (GenericRow) serializer.toRow(file);
        row.setField(DataFileMeta.SCHEMA.getFieldIndex("_CREATION_TIME"), Timestamp.fromEpochMillis(1_700_000_000_123L));
        return serializer.fromRow(row);
    }

    private static DataSplit split(BinaryRow partition, List<DataFileMeta> files) {
        return DataSplit.builder().withSnapshot(3).withPartition(partition).withBucket(2).withBucketPath("/warehouse/orders/bucket-2").withTotalBuckets(4).withDataFiles(files).build();
    }

    private static CommitMessage message(BinaryRow partition, int bucket, Integer buckets, List<DataFileMeta> files, List<IndexFileMeta> index) throws Exception {
        return (CommitMessage) Reflect.make(CommitMessageImpl.class.getName(), partition, bucket, buckets, new DataIncrement(files, List.of(), List.of()), new CompactIncrement(List.of(), files, List.of()), new IndexIncrement(index));
    }

    private static Map<String, Object> json(FileStoreSourceSplit s) throws Exception {
        return Json.of("id", s.splitId(), "split", InstantiationUtil.serializeObject(s.split()), "records_to_skip", s.recordsToSkip());
    }

    private static Map<String, Object> json(ManifestCommittable c) throws Exception {
        return Json.of("identifier", c.identifier(), "watermark", c.watermark(), "log_offsets", Json.list(c.logOffsets().entrySet(), e -> Json.of("bucket", e.getKey(), "offset", e.getValue())),
                "properties", Json.list(c.properties().entrySet(), e -> Json.of("key", e.getKey(), "value", e.getValue())),
                "messages", Json.of("version", new CommitMessageSerializer().getVersion(), "messages", Json.list(c.fileCommittables(), m -> json((CommitMessageImpl) m))));
    }

    private static Object json(CommitMessageImpl m) throws Exception {
        DataIncrement data = m.newFilesIncrement();
        CompactIncrement compact = m.compactIncrement();
        return Json.of("partition", SerializationUtils.serializeBinaryRow(m.partition()), "bucket", m.bucket(), "total_buckets", m.totalBuckets(),
                "new_files", rows(data.newFiles()), "deleted_files", rows(data.deletedFiles()), "changelog_files", rows(data.changelogFiles()),
                "compact_before", rows(compact.compactBefore()), "compact_after", rows(compact.compactAfter()), "compact_changelog", rows(compact.changelogFiles()),
                "new_index_files", index(m.indexIncrement().newIndexFiles()), "deleted_index_files", index(m.indexIncrement().deletedIndexFiles()));
    }

    private static Object rows(List<DataFileMeta> files) throws Exception {
        return Json.list(files, f -> new InternalRowSerializer(DataFileMeta.SCHEMA).toBinaryRow(new DataFileMetaSerializer().toRow(f)).toBytes());
    }

    private static Object index(List<IndexFileMeta> files) throws Exception {
        return Json.list(files, f -> new InternalRowSerializer(IndexFileMeta.SCHEMA).toBinaryRow(new IndexFileMetaSerializer().toRow(f)).toBytes());
    }

    /** A serializer of Paimon as one of Flink. */
    private static <T> SimpleVersionedSerializer<T> flink(VersionedSerializer<T> serializer) {
        return new SimpleVersionedSerializer<>() {
            @Override
            public int getVersion() {
                return serializer.getVersion();
            }

            @Override
            public byte[] serialize(T value) throws IOException {
                return serializer.serialize(value);
            }

            @Override
            public T deserialize(int version, byte[] bytes) throws IOException {
                return serializer.deserialize(version, bytes);
            }
        };
    }
}
