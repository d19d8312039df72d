package spt.connectors.other;

import static spt.connectors.other.Cdc.KEY;
import static spt.connectors.other.Cdc.ORDERS;
import static spt.connectors.other.Cdc.PAYMENTS;

import io.debezium.relational.TableId;
import io.debezium.relational.history.TableChanges.TableChange;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.cdc.connectors.mysql.source.assigners.AssignerStatus;
import org.apache.flink.cdc.connectors.mysql.source.assigners.state.BinlogPendingSplitsState;
import org.apache.flink.cdc.connectors.mysql.source.assigners.state.ChunkSplitterState;
import org.apache.flink.cdc.connectors.mysql.source.assigners.state.HybridPendingSplitsState;
import org.apache.flink.cdc.connectors.mysql.source.assigners.state.PendingSplitsState;
import org.apache.flink.cdc.connectors.mysql.source.assigners.state.PendingSplitsStateSerializer;
import org.apache.flink.cdc.connectors.mysql.source.assigners.state.SnapshotPendingSplitsState;
import org.apache.flink.cdc.connectors.mysql.source.offset.BinlogOffset;
import org.apache.flink.cdc.connectors.mysql.source.split.FinishedSnapshotSplitInfo;
import org.apache.flink.cdc.connectors.mysql.source.split.MySqlBinlogSplit;
import org.apache.flink.cdc.connectors.mysql.source.split.MySqlSchemalessSnapshotSplit;
import org.apache.flink.cdc.connectors.mysql.source.split.MySqlSnapshotSplit;
import org.apache.flink.cdc.connectors.mysql.source.split.MySqlSplit;
import org.apache.flink.cdc.connectors.mysql.source.split.MySqlSplitSerializer;
import org.apache.flink.cdc.connectors.mysql.source.utils.SerializerUtils;
import spt.connectors.Json;
import spt.connectors.Kinds;

/** The MySQL connector of Flink CDC. */
public final class MySql implements Kinds.Catalogue {
    @Override
    public void addTo(Kinds kinds) throws Exception {
        BinlogOffset log = BinlogOffset.builder().setBinlogFilePosition("mysql-bin.000003", 154).setGtidSet("a:1-5").setSkipEvents(3).build();
        FinishedSnapshotSplitInfo finished = new FinishedSnapshotSplitInfo(PAYMENTS, "db.payments:0", null, new Object[] {1000L}, log);
        MySqlSnapshotSplit snapshot = new MySqlSnapshotSplit(ORDERS, "db.orders:1", KEY, new Object[] {1000L}, null, null, Map.of(ORDERS, Cdc.change(ORDERS)));
        kinds.add("MySqlSplit", MySqlSplitSerializer.INSTANCE, MySql::json, List.of(
                snapshot, new MySqlSnapshotSplit(PAYMENTS, "", KEY, null, null, log, Map.of()),
                new MySqlBinlogSplit("binlog-split", log, BinlogOffset.ofNonStopping(), List.of(finished), Map.of(PAYMENTS, Cdc.change(PAYMENTS)), 1, true),
                new MySqlBinlogSplit("", BinlogOffset.ofEarliest(), log, List.of(), Map.of(), Integer.MAX_VALUE)));

        MySqlSchemalessSnapshotSplit schemaless = snapshot.toSchemalessSnapshotSplit();
        Map<String, MySqlSchemalessSnapshotSplit> assigned = new LinkedHashMap<>(Map.of("db.orders:1", schemaless));
        SnapshotPendingSplitsState full = new SnapshotPendingSplitsState(List.of(ORDERS, PAYMENTS), List.of(schemaless), assigned, Map.of(ORDERS, Cdc.change(ORDERS)), Map.of("db.orders:0", log),
                AssignerStatus.NEWLY_ADDED_ASSIGNING_FINISHED, List.of(PAYMENTS), true, true, new ChunkSplitterState(ORDERS, ChunkSplitterState.ChunkBound.middleOf(5L), 7));
        SnapshotPendingSplitsState empty = new SnapshotPendingSplitsState(List.of(), List.of(), Map.of(), Map.of(), Map.of(), AssignerStatus.INITIAL_ASSIGNING, List.of(), false, true, ChunkSplitterState.NO_SPLITTING_TABLE_STATE);
        kinds.add("MySqlPendingSplitsState", new PendingSplitsStateSerializer(MySqlSplitSerializer.INSTANCE), MySql::json, List.<PendingSplitsState>of(
                full, empty, new HybridPendingSplitsState(full, false), new HybridPendingSplitsState(empty, true), new BinlogPendingSplitsState(true)));
    }

    private static Object json(MySqlSplit s, int version) throws Exception {
        if (s.isSnapshotSplit()) {
            MySqlSnapshotSplit split = s.asSnapshotSplit();
            return Json.versioned("MySqlSplit", version, "split", Json.structure("SnapshotSplit", "table", split.getTableId().toQuotedString('`'), "split", split.splitId(),
                    "key_type", split.getSplitKeyType().asSerializableString(), "start", SerializerUtils.rowToSerializedString(split.getSplitStart()), "end", SerializerUtils.rowToSerializedString(split.getSplitEnd()),
                    "high_watermark", json(split.getHighWatermark()), "schemas", schemas(split.getTableSchemas())));
        }
        MySqlBinlogSplit split = s.asBinlogSplit();
        return Json.versioned("MySqlSplit", version, "split", Json.structure("ChangeLogSplit", "id", split.splitId(), "unused", "", "start", json(split.getStartingOffset()), "end", json(split.getEndingOffset()),
                "finished_splits", Json.list(split.getFinishedSnapshotSplitInfos(), f -> Json.of("table", f.getTableId().toString(), "split", f.getSplitId(), "start", SerializerUtils.rowToSerializedString(f.getSplitStart()),
                        "end", SerializerUtils.rowToSerializedString(f.getSplitEnd()), "position", json(f.getHighWatermark()))),
                "schemas", schemas(split.getTableSchemas()), "total_finished_splits", split.getTotalFinishedSplitSize(), "suspended", split.isSuspended()));
    }

    private static Object schemas(Map<TableId, TableChange> all) throws Exception {
        return Json.list(all.entrySet(), e -> Json.of("table", e.getKey().toString(), "schema", Cdc.schema(e.getValue())));
    }

    private static Object json(BinlogOffset offset) throws Exception {
        return offset == null ? null : Cdc.text(offset.getOffset());
    }

    private static Object json(PendingSplitsState s, int version) throws Exception {
        Object state;
        if (s instanceof SnapshotPendingSplitsState) {
            state = json("SnapshotPendingSplitsState", (SnapshotPendingSplitsState) s);
        } else if (s instanceof HybridPendingSplitsState) {
            Map<String, Object> hybrid = json("HybridPendingSplitsState", ((HybridPendingSplitsState) s).getSnapshotPendingSplits());
            hybrid.put("change_log_assigned", ((HybridPendingSplitsState) s).isBinlogSplitAssigned());
            state = hybrid;
        } else {
            state = Json.structure("StreamPendingSplitsState", "change_log_assigned", ((BinlogPendingSplitsState) s).isBinlogSplitAssigned());
        }
        return Json.versioned("MySqlPendingSplitsState", version, "split_version", MySqlSplitSerializer.INSTANCE.getVersion(), "state", state);
    }

    private static Map<String, Object> json(String name, SnapshotPendingSplitsState s) throws Exception {
        int version = MySqlSplitSerializer.INSTANCE.getVersion();
        Json.Function<MySqlSchemalessSnapshotSplit> split = p -> json((MySqlSplit) p, version);
        ChunkSplitterState chunks = s.getChunkSplitterState();
        return Json.structure(name, "processed_tables", Json.list(s.getAlreadyProcessedTables(), TableId::toString), "remaining_splits", Json.list(s.getRemainingSplits(), split),
                "assigned_splits", Json.list(s.getAssignedSplits().entrySet(), e -> Json.of("id", e.getKey(), "split", split.apply(e.getValue()))),
                "finished_offsets", Json.list(s.getSplitFinishedOffsets().entrySet(), e -> Json.of("split", e.getKey(), "position", json(e.getValue()))),
                "status", Cdc.STATUS.get(s.getSnapshotAssignerStatus().getStatusCode()), "remaining_tables", Json.list(s.getRemainingTables(), TableId::toString), "table_ids_case_sensitive", s.isTableIdCaseSensitive(),
                "schemas", schemas(s.getTableSchemas()),
                "splitting_table", Json.orNull(chunks == null ? null : chunks.getCurrentSplittingTableId(), id -> Json.of("table", id.toString(),
                        "next_chunk_start", SerializerUtils.rowToSerializedString(new Object[] {chunks.getNextChunkStart().getValue()}), "next_chunk_id", chunks.getNextChunkId())));
    }
}
