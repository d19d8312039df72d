package spt.connectors.other;

import io.debezium.document.DocumentWriter;
import io.debezium.relational.Column;
import io.debezium.relational.Table;
import io.debezium.relational.TableId;
import io.debezium.relational.history.TableChanges.TableChange;
import io.debezium.relational.history.TableChanges.TableChangeType;
import java.nio.charset.StandardCharsets;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.cdc.connectors.base.source.assigner.state.HybridPendingSplitsState;
import org.apache.flink.cdc.connectors.base.source.assigner.state.PendingSplitsState;
import org.apache.flink.cdc.connectors.base.source.assigner.state.PendingSplitsStateSerializer;
import org.apache.flink.cdc.connectors.base.source.assigner.state.SnapshotPendingSplitsState;
import org.apache.flink.cdc.connectors.base.source.assigner.state.StreamPendingSplitsState;
import org.apache.flink.cdc.connectors.base.source.meta.offset.Offset;
import org.apache.flink.cdc.connectors.base.source.meta.offset.OffsetFactory;
import org.apache.flink.cdc.connectors.base.source.meta.split.FinishedSnapshotSplitInfo;
import org.apache.flink.cdc.connectors.base.source.meta.split.SchemalessSnapshotSplit;
import org.apache.flink.cdc.connectors.base.source.meta.split.SnapshotSplit;
import org.apache.flink.cdc.connectors.base.source.meta.split.SourceSplitBase;
import org.apache.flink.cdc.connectors.base.source.meta.split.SourceSplitSerializer;
import org.apache.flink.cdc.connectors.base.source.meta.split.StreamSplit;
import org.apache.flink.cdc.connectors.base.utils.SerializerUtils;
import org.apache.flink.cdc.debezium.history.FlinkJsonTableChangeSerializer;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.RowType;
import spt.connectors.Json;
import spt.connectors.Kinds;
import spt.connectors.Reflect;

/** Flink CDC: the connectors that are built on flink-cdc-base. */
public final class Cdc implements Kinds.Catalogue {
    static final TableId ORDERS = new TableId("db", null, "orders");
    static final TableId PAYMENTS = new TableId("db", "public", "payments-ü");
    static final RowType KEY = RowType.of(new org.apache.flink.table.types.logical.LogicalType[] {new BigIntType(false)}, new String[] {"id"});

    /** A position in a change log. */
    public static final class LogOffset extends Offset {
        LogOffset(Map<String, String> offset) {
            this.offset = offset;
        }

        @Override
        public int compareTo(Offset other) {
            return offset.toString().compareTo(other.getOffset().toString());
        }

        @Override
        public boolean equals(Object o) {
            return o instanceof LogOffset && ((LogOffset) o).offset.equals(offset);
        }
    }

    /** A factory of positions. */
    public static final class LogOffsets extends OffsetFactory {
        @Override
        public Offset newOffset(Map<String, String> offset) {
            return new LogOffset(offset);
        }

        @Override
        public Offset newOffset(String filename, Long position) {
            return new LogOffset(Map.of("file", filename, "pos", position.toString()));
        }

        @Override
        public Offset newOffset(Long position) {
            return new LogOffset(Map.of("pos", position.toString()));
        }

        @Override
        public Offset createTimestampOffset(long timestamp) {
            return new LogOffset(Map.of("ts", String.valueOf(timestamp)));
        }

        @Override
        public Offset createInitialOffset() {
            return newOffset(0L);
        }

        @Override
        public Offset createNoStoppingOffset() {
            return newOffset(-1L);
        }
    }

    private static final class Splits extends SourceSplitSerializer {
        @Override
        public OffsetFactory getOffsetFactory() {
            return new LogOffsets();
        }
    }

    static TableChange change(TableId id) {
        return new TableChange(TableChangeType.CREATE, Table.editor().tableId(id).addColumn(Column.editor().name("id").type("BIGINT").jdbcType(-5).position(1).optional(false).create()).setPrimaryKeyNames("id").create());
    }

    @Override
    public void addTo(Kinds kinds) throws Exception {
        Offset log = new LogOffset(Map.of("lsn", "24023128"));
        FinishedSnapshotSplitInfo finished = new FinishedSnapshotSplitInfo(PAYMENTS, "split:0", null, new Object[] {1000L}, log, new LogOffsets());
        SnapshotSplit snapshot = new SnapshotSplit(ORDERS, "split:1", KEY, new Object[] {1000L}, null, null, Map.of(ORDERS, change(ORDERS)));
        SourceSplitSerializer splits = new Splits();
        kinds.add("SourceSplitBase", SourceSplitSerializer.class, splits, Cdc::json, List.of(
                snapshot, new SnapshotSplit(PAYMENTS, "", KEY, null, null, log, Map.of()),
                new StreamSplit("stream-split", log, new LogOffset(Map.of()), List.of(finished), Map.of(PAYMENTS, change(PAYMENTS)), 1, true),
                new StreamSplit("", log, log, List.of(), Map.of(), Integer.MAX_VALUE, false)));

        SchemalessSnapshotSplit schemaless = snapshot.toSchemalessSnapshotSplit();
        Map<String, SchemalessSnapshotSplit> assigned = new LinkedHashMap<>(Map.of("split:1", schemaless));
        SnapshotPendingSplitsState full = (SnapshotPendingSplitsState) Reflect.make(SnapshotPendingSplitsState.class.getName(), List.of(ORDERS, PAYMENTS), List.of(schemaless), assigned,
                Map.of(ORDERS, change(ORDERS)), Map.of("split:0", log), status(3), List.of(PAYMENTS), true, true);
        SnapshotPendingSplitsState empty = (SnapshotPendingSplitsState) Reflect.make(SnapshotPendingSplitsState.class.getName(), List.of(), List.of(), Map.of(), Map.of(), Map.of(), status(0), List.of(), false, true);
        kinds.add("PendingSplitsState", new PendingSplitsStateSerializer(splits), Cdc::json, List.<PendingSplitsState>of(
                full, empty, new HybridPendingSplitsState(full, false), new HybridPendingSplitsState(empty, true), new StreamPendingSplitsState(true)));
    }

    private static Object status(int i) throws Exception {
        return Class.forName("org.apache.flink.cdc.connectors.base.source.assigner.AssignerStatus").getEnumConstants()[i];
    }

    static final List<String> STATUS = List.of("initial assigning", "initial assigning finished", "newly added assigning", "newly added snapshot finished", "newly added finished");

    private static Object json(SourceSplitBase s, int version) throws Exception {
        if (s.isSnapshotSplit()) {
            SnapshotSplit split = s.asSnapshotSplit();
            return Json.versioned("SourceSplitBase", version, "split", Json.structure("SnapshotSplit", "catalog_before_schema", before(split.getTableId()), "table", split.getTableId().toDoubleQuotedString(), "split", split.splitId(),
                    "key_type", split.getSplitKeyType().asSerializableString(), "start", SerializerUtils.rowToSerializedString(split.getSplitStart()), "end", SerializerUtils.rowToSerializedString(split.getSplitEnd()),
                    "high_watermark", json(split.getHighWatermark()), "schemas", schemas(split.getTableSchemas())));
        }
        StreamSplit split = s.asStreamSplit();
        return Json.versioned("SourceSplitBase", version, "split", Json.structure("ChangeLogSplit", "id", split.splitId(), "unused", "", "start", json(split.getStartingOffset()), "end", json(split.getEndingOffset()),
                "finished_splits", Json.list(split.getFinishedSnapshotSplitInfos(), f -> Json.of("table", f.getTableId().toString(), "split", f.getSplitId(), "start", SerializerUtils.rowToSerializedString(f.getSplitStart()),
                        "end", SerializerUtils.rowToSerializedString(f.getSplitEnd()), "offset_factory", SerializerUtils.rowToSerializedString(f.getOffsetFactory()), "position", json(f.getHighWatermark()),
                        "catalog_before_schema", before(f.getTableId()))),
                "schemas", schemas(split.getTableSchemas()), "total_finished_splits", split.getTotalFinishedSplitSize(), "suspended", split.isSuspended()));
    }

    private static Object schemas(Map<TableId, TableChange> all) throws Exception {
        return Json.list(all.entrySet(), e -> Json.of("catalog_before_schema", before(e.getKey()), "table", e.getKey().toString(), "schema", schema(e.getValue())));
    }

    static String schema(TableChange change) throws Exception {
        return DocumentWriter.defaultWriter().write(new FlinkJsonTableChangeSerializer().toDocument(change));
    }

    private static boolean before(TableId id) {
        return SerializerUtils.shouldUseCatalogBeforeSchema(id);
    }

    private static Object json(Offset offset) throws Exception {
        return offset == null ? null : text(offset.getOffset());
    }

    static String text(Map<String, String> offset) throws Exception {
        return new String(new ObjectMapper().writeValueAsBytes(offset), StandardCharsets.UTF_8);
    }

    private static Object json(PendingSplitsState s, int version) throws Exception {
        Object state;
        if (s instanceof SnapshotPendingSplitsState) {
            state = json("SnapshotPendingSplitsState", (SnapshotPendingSplitsState) s);
        } else if (s instanceof HybridPendingSplitsState) {
            Map<String, Object> hybrid = json("HybridPendingSplitsState", ((HybridPendingSplitsState) s).getSnapshotPendingSplits());
            hybrid.put("change_log_assigned", ((HybridPendingSplitsState) s).isStreamSplitAssigned());
            state = hybrid;
        } else {
            state = Json.structure("StreamPendingSplitsState", "change_log_assigned", ((StreamPendingSplitsState) s).isStreamSplitAssigned());
        }
        return Json.versioned("PendingSplitsState", version, "split_version", new Splits().getVersion(), "state", state);
    }

    private static Map<String, Object> json(String name, SnapshotPendingSplitsState s) throws Exception {
        int version = new Splits().getVersion();
        Json.Function<TableId> table = id -> Json.of("catalog_before_schema", before(id), "table", id.toString());
        // The schemas of splits are with the state.
        Json.Function<SchemalessSnapshotSplit> split = p -> json((SourceSplitBase) p, version);
        return Json.structure(name, "processed_tables", Json.list(s.getAlreadyProcessedTables(), table), "remaining_splits", Json.list(s.getRemainingSplits(), split),
                "assigned_splits", Json.list(s.getAssignedSplits().entrySet(), e -> Json.of("id", e.getKey(), "split", split.apply(e.getValue()))),
                "finished_offsets", Json.list(s.getSplitFinishedOffsets().entrySet(), e -> Json.of("split", e.getKey(), "position", json(e.getValue()))),
                "status", STATUS.get(s.getSnapshotAssignerStatus().getStatusCode()), "remaining_tables", Json.list(s.getRemainingTables(), table), "table_ids_case_sensitive", s.isTableIdCaseSensitive(),
                "schemas", schemas(s.getTableSchemas()));
    }
}
