package spt.connectors.other;

import java.io.IOException;
import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.core.io.SimpleVersionedSerialization;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.util.InstantiationUtil;
import org.apache.iceberg.BaseCombinedScanTask;
import org.apache.iceberg.BaseFileScanTask;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.DeleteFile;
import org.apache.iceberg.FileScanTask;
import org.apache.iceberg.ManifestFile;
import org.apache.iceberg.ManifestFiles;
import org.apache.iceberg.ManifestWriter;
import org.apache.iceberg.PartitionSpec;
import org.apache.iceberg.PartitionSpecParser;
import org.apache.iceberg.ScanTaskParser;
import org.apache.iceberg.Schema;
import org.apache.iceberg.SchemaParser;
import org.apache.iceberg.expressions.Expressions;
import org.apache.iceberg.expressions.ResidualEvaluator;
import org.apache.iceberg.flink.source.enumerator.IcebergEnumeratorState;
import org.apache.iceberg.flink.source.enumerator.IcebergEnumeratorStateSerializer;
import org.apache.iceberg.flink.source.split.IcebergSourceSplit;
import org.apache.iceberg.flink.source.split.IcebergSourceSplitSerializer;
import org.apache.iceberg.flink.source.split.IcebergSourceSplitState;
import org.apache.iceberg.flink.source.split.IcebergSourceSplitStatus;
import org.apache.iceberg.inmemory.InMemoryOutputFile;
import org.apache.iceberg.io.WriteResult;
import org.apache.iceberg.types.Types;
import spt.connectors.Json;
import spt.connectors.Kinds;
import spt.connectors.Reflect;

/** Iceberg. */
public final class Iceberg implements Kinds.Catalogue {
    private static final String SINK = "org.apache.iceberg.flink.sink.";
    private static final String ENUMERATOR = "org.apache.iceberg.flink.source.enumerator.";
    private static final Schema SCHEMA = new Schema(Types.NestedField.required(1, "id", Types.LongType.get()));

    @Override
    public void addTo(Kinds kinds) throws Exception {
        List<IcebergSourceSplit> splits = List.of(split(0, 0, "ü.parquet"), split(0, Long.MAX_VALUE, "a.parquet"), split(1, 20, "a.parquet", "s3://bucket/ü.parquet"));
        for (int v = 1; v <= 3; v++) {
            kinds.add("IcebergSourceSplit", IcebergSourceSplitSerializer.class, older(new IcebergSourceSplitSerializer(false), v), Iceberg::json, splits);
        }
        String position = ENUMERATOR + "IcebergEnumeratorPosition";
        List<IcebergSourceSplitState> pending = List.of(new IcebergSourceSplitState(splits.get(2), IcebergSourceSplitStatus.UNASSIGNED), new IcebergSourceSplitState(splits.get(0), IcebergSourceSplitStatus.COMPLETED));
        IcebergEnumeratorStateSerializer states = new IcebergEnumeratorStateSerializer(false);
        for (int v = 1; v <= 2; v++) {
            kinds.add("IcebergEnumeratorState", IcebergEnumeratorStateSerializer.class, olderStates(states, v), Iceberg::json, List.of(new IcebergEnumeratorState(List.of()), new IcebergEnumeratorState(pending),
                    (IcebergEnumeratorState) Reflect.make(IcebergEnumeratorState.class.getName(), Reflect.make(position, 11L, Long.MAX_VALUE), pending.subList(0, 1), v == 1 ? new int[0] : new int[] {6, 0, Integer.MAX_VALUE}),
                    (IcebergEnumeratorState) Reflect.make(IcebergEnumeratorState.class.getName(), Reflect.make(position, null, null), List.of())));
        }

        byte[] both = manifests("f.parquet", "ü.parquet");
        byte[] data = manifests();
        kinds.add("IcebergCommittable", Reflect.serializer(SINK + "IcebergCommittableSerializer"),
                (c, v) -> Json.versioned("IcebergCommittable", v, "job", Reflect.call(c, "jobId"), "operator", Reflect.call(c, "operatorId"), "checkpoint", Reflect.call(c, "checkpointId"), "manifests", manifests(Reflect.call(c, "manifest"))),
                List.of(Reflect.make(SINK + "IcebergCommittable", both, "job", "operator-ü", 4L), Reflect.make(SINK + "IcebergCommittable", data, "", "", Long.MIN_VALUE)));

        String dynamic = SINK + "dynamic.";
        Object target = Reflect.make(dynamic + "WriteTarget", "db.orders", "main", 1, 2, true, new LinkedHashSet<>(List.of(3, 1)));
        Object plain = Reflect.make(dynamic + "WriteTarget", "ü", "", 0, 0, false, Set.of());
        kinds.add("DynamicCommittable", Reflect.serializer(dynamic + "DynamicCommittableSerializer"),
                (c, v) -> Json.versioned("DynamicCommittable", v, "target", target(Reflect.call(c, "key")), "job", Reflect.call(c, "jobId"), "operator", Reflect.call(c, "operatorId"), "checkpoint", Reflect.call(c, "checkpointId"),
                        "manifests", manifests(Reflect.call(c, "manifest"))),
                List.of(Reflect.make(dynamic + "DynamicCommittable", target, both, "job", "operator", 4L), Reflect.make(dynamic + "DynamicCommittable", plain, data, "", "ü", -1L)));
        kinds.add("DynamicWriteResult", Reflect.serializer(dynamic + "DynamicWriteResultSerializer"),
                (r, v) -> Json.versioned("DynamicWriteResult", v, "target", target(Reflect.call(r, "key")), "result", InstantiationUtil.serializeObject(Reflect.call(r, "writeResult"))),
                List.of(Reflect.make(dynamic + "DynamicWriteResult", target, WriteResult.builder().build()), Reflect.make(dynamic + "DynamicWriteResult", plain, WriteResult.builder().addDataFiles(file("a.parquet")).build())));
    }

    private static DataFile file(String path) {
        return DataFiles.builder(PartitionSpec.unpartitioned()).withPath(path).withFileSizeInBytes(1000).withRecordCount(10).build();
    }

    private static IcebergSourceSplit split(int file, long record, String... paths) {
        List<FileScanTask> tasks = new ArrayList<>();
        for (String path : paths) {
            tasks.add(new BaseFileScanTask(file(path), new DeleteFile[0], SchemaParser.toJson(SCHEMA), PartitionSpecParser.toJson(PartitionSpec.unpartitioned()), ResidualEvaluator.unpartitioned(Expressions.alwaysTrue())));
        }
        return IcebergSourceSplit.fromCombinedScanTask(new BaseCombinedScanTask(tasks), file, record);
    }

    /** Writes an older version with the code that the connector keeps for its own tests, and reads as it does. */
    private static SimpleVersionedSerializer<IcebergSourceSplit> older(IcebergSourceSplitSerializer serializer, int version) {
        return new Older<>(serializer, version, s -> {
            Reflect.set(s, "serializedBytesCache", null); // which knows no version
            return (byte[]) Reflect.call(s, "serializeV" + version);
        });
    }

    private static SimpleVersionedSerializer<IcebergEnumeratorState> olderStates(IcebergEnumeratorStateSerializer serializer, int version) {
        return new Older<>(serializer, version, s -> {
            for (IcebergSourceSplitState split : s.pendingSplits()) {
                Reflect.set(split.split(), "serializedBytesCache", null);
            }
            return (byte[]) Reflect.call(serializer, "serializeV" + version, s);
        });
    }

    private record Older<T>(SimpleVersionedSerializer<T> current, int version, Json.Function<T> write) implements SimpleVersionedSerializer<T> {
        @Override
        public int getVersion() {
            return version;
        }

        @Override
        public byte[] serialize(T value) throws IOException {
            try {
                return (byte[]) write.apply(value);
            } catch (Exception e) {
                throw new IOException(e);
            }
        }

        @Override
        public T deserialize(int version, byte[] bytes) throws IOException {
            return current.deserialize(version, bytes);
        }
    }

    private static Object json(IcebergSourceSplit s, int version) throws Exception {
        if (version == 1) {
            return Json.versioned("IcebergSourceSplit", version, "java", InstantiationUtil.serializeObject(s));
        }
        return Json.versioned("IcebergSourceSplit", version, "file_offset", s.fileOffset(), "record_offset", s.recordOffset(), "tasks", Json.list(s.task().files(), ScanTaskParser::toJson));
    }

    private static Object json(IcebergEnumeratorState s, int version) throws Exception {
        int splits = new IcebergSourceSplitSerializer(false).getVersion();
        Map<String, Object> json = Json.versioned("IcebergEnumeratorState", version,
                "position", Json.orNull((Object) s.lastEnumeratedPosition(), p -> Json.versioned("IcebergEnumeratorPosition", 1, "snapshot", Reflect.call(p, "snapshotId"), "timestamp_ms", Reflect.call(p, "snapshotTimestampMs"))),
                "splits", Json.of("version", splits, "splits", Json.list(s.pendingSplits(), p -> Json.of("split", json(p.split(), splits), "status", p.status()))));
        if (version >= 2) {
            List<Object> counts = new ArrayList<>();
            for (int count : s.enumerationSplitCountHistory()) {
                counts.add(count);
            }
            json.put("split_count_history", counts);
        }
        return json;
    }

    /** The manifests of a checkpoint as the sink keeps them: with delete manifests if they refer to data files. */
    private static byte[] manifests(String... referenced) throws Exception {
        ManifestWriter<DataFile> data = ManifestFiles.write(2, PartitionSpec.unpartitioned(), new InMemoryOutputFile("data.avro"), 5L);
        data.add(file("f.parquet"));
        data.close();
        ManifestFile deletes = null;
        if (referenced.length > 0) {
            ManifestWriter<DeleteFile> writer = ManifestFiles.writeDeleteManifest(2, PartitionSpec.unpartitioned(), new InMemoryOutputFile("deletes.avro"), 5L);
            writer.close();
            deletes = writer.toManifestFile();
        }
        Object manifests = Reflect.make(SINK + "DeltaManifests", data.toManifestFile(), deletes, referenced);
        return SimpleVersionedSerialization.writeVersionAndSerialize(Reflect.serializer(SINK + "DeltaManifestsSerializer"), manifests);
    }

    private static Object manifests(Object bytes) throws Exception {
        SimpleVersionedSerializer<Object> serializer = Reflect.serializer(SINK + "DeltaManifestsSerializer");
        Object m = SimpleVersionedSerialization.readVersionAndDeSerialize(serializer, (byte[]) bytes);
        return Json.versioned("DeltaManifests", serializer.getVersion(), "data", encoded(Reflect.call(m, "dataManifest")), "deletes", encoded(Reflect.call(m, "deleteManifest")),
                "referenced_data_files", List.of((Object[]) Reflect.call(m, "referencedDataFiles")));
    }

    private static byte[] encoded(Object manifest) throws Exception {
        return manifest == null ? new byte[0] : ManifestFiles.encode((ManifestFile) manifest);
    }

    private static Object target(Object t) throws Exception {
        return Json.of("table", Reflect.call(t, "tableName"), "branch", Reflect.call(t, "branch"), "schema", Reflect.call(t, "schemaId"), "partition_spec", Reflect.call(t, "specId"), "upsert", Reflect.call(t, "upsertMode"),
                "equality_fields", new ArrayList<>((Collection<?>) Reflect.call(t, "equalityFields")));
    }
}
