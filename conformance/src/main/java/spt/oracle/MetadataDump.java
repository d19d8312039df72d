package spt.oracle;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.URI;
import java.nio.file.Path;
import java.util.Collection;
import java.util.Map;
import java.util.TreeMap;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.StateObject;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateBackendHandle;
import org.apache.flink.runtime.state.filemerging.SegmentFileStateHandle;
import org.apache.flink.runtime.state.filesystem.FileStateHandle;
import org.apache.flink.runtime.state.filesystem.RelativeFileStateHandle;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/** A _metadata file as Flink's own reader sees it. */
final class MetadataDump {
    static CheckpointMetadata load(Path directory) throws IOException {
        return load("file:" + directory);
    }

    private static CheckpointMetadata load(String uri) throws IOException {
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(FileSystem.get(URI.create(uri)).open(metadataOf(uri))))) {
            return Checkpoints.loadCheckpointMetadata(in, MetadataDump.class.getClassLoader(), uri);
        }
    }

    private static org.apache.flink.core.fs.Path metadataOf(String uri) {
        return new org.apache.flink.core.fs.Path(uri, "_metadata");
    }

    static boolean hasChannelState(Path directory) throws IOException {
        return load(directory).getOperatorStates().stream()
                .flatMap(operator -> operator.getStates().stream())
                .anyMatch(state -> !state.getInputChannelState().isEmpty() || !state.getResultSubpartitionState().isEmpty());
    }

    static ObjectNode of(String snapshot) throws IOException {
        String uri = snapshot.contains("://") ? snapshot : "file:" + snapshot;
        CheckpointMetadata metadata = load(uri);
        ObjectNode dump = Json.object();
        dump.put("checkpoint_id", metadata.getCheckpointId());
        dump.put("size", FileSystem.get(URI.create(uri)).getFileStatus(metadataOf(uri)).getLen());
        ArrayNode operators = dump.putArray("operators");
        for (OperatorState operator : metadata.getOperatorStates()) {
            ObjectNode node = operators.addObject();
            node.put("id", operator.getOperatorID().toHexString());
            node.put("parallelism", operator.getParallelism());
            node.put("max_parallelism", operator.getMaxParallelism());
            if (operator.getCoordinatorState() != null) {
                node.put("coordinator_bytes", operator.getCoordinatorState().getStateSize());
            }
            ObjectNode subtasks = node.putObject("subtasks");
            for (Map.Entry<Integer, OperatorSubtaskState> e : new TreeMap<>(operator.getSubtaskStates()).entrySet()) {
                ObjectNode subtask = subtasks.putObject(String.valueOf(e.getKey()));
                OperatorSubtaskState state = e.getValue();
                put(subtask, "managed_operator", state.getManagedOperatorState());
                put(subtask, "raw_operator", state.getRawOperatorState());
                put(subtask, "managed_keyed", state.getManagedKeyedState());
                put(subtask, "raw_keyed", state.getRawKeyedState());
                put(subtask, "input_channel", state.getInputChannelState());
                put(subtask, "result_subpartition", state.getResultSubpartitionState());
            }
        }
        return dump;
    }

    private static void put(ObjectNode subtask, String slot, Collection<? extends StateObject> handles) {
        if (!handles.isEmpty()) {
            ArrayNode array = subtask.putArray(slot);
            handles.forEach(handle -> array.add(handle(handle)));
        }
    }

    private static ObjectNode handle(StateObject handle) {
        ObjectNode node = Json.object();
        node.put("class", handle.getClass().getSimpleName());
        if (handle instanceof OperatorStateHandle) {
            ArrayNode states = node.putArray("states");
            ((OperatorStateHandle) handle).getStateNameToPartitionOffsets().forEach((name, meta) -> {
                ObjectNode state = states.addObject();
                state.put("name", name);
                state.put("mode", meta.getDistributionMode().name());
                ArrayNode offsets = state.putArray("offsets");
                for (long offset : meta.getOffsets()) {
                    offsets.add(offset);
                }
            });
            node.set("stream", stream(((OperatorStateHandle) handle).getDelegateStateHandle()));
            return node;
        }
        if (handle instanceof KeyedStateHandle) {
            keyed(node, (KeyedStateHandle) handle);
            return node;
        }
        node.put("size", handle.getStateSize());
        return node;
    }

    private static void keyed(ObjectNode node, KeyedStateHandle handle) {
        KeyGroupRange range = handle.getKeyGroupRange();
        node.putArray("key_groups").add(range.getStartKeyGroup()).add(range.getEndKeyGroup());
        node.put("size", handle.getStateSize());
        if (handle instanceof KeyGroupsStateHandle) {
            KeyGroupsStateHandle groups = (KeyGroupsStateHandle) handle;
            ArrayNode offsets = node.putArray("offsets");
            for (int group : range) {
                offsets.add(groups.getOffsetForKeyGroup(group));
            }
            node.set("stream", stream(groups.getDelegateStateHandle()));
        } else if (handle instanceof IncrementalRemoteKeyedStateHandle) {
            IncrementalRemoteKeyedStateHandle incremental = (IncrementalRemoteKeyedStateHandle) handle;
            node.put("checkpoint_id", incremental.getCheckpointId());
            node.set("meta", stream(incremental.getMetaDataStateHandle()));
            files(node.putArray("shared"), incremental.getSharedState());
            files(node.putArray("private"), incremental.getPrivateState());
        } else if (handle instanceof ChangelogStateBackendHandle) {
            ChangelogStateBackendHandle changelog = (ChangelogStateBackendHandle) handle;
            ArrayNode materialized = node.putArray("materialized");
            changelog.getMaterializedStateHandles().forEach(h -> materialized.add(handle(h)));
            ArrayNode changes = node.putArray("changes");
            changelog.getNonMaterializedStateHandles().forEach(h -> changes.add(handle(h)));
        }
    }

    private static void files(ArrayNode array, Collection<IncrementalKeyedStateHandle.HandleAndLocalPath> files) {
        files.forEach(file -> {
            ObjectNode node = array.addObject();
            node.put("local_path", file.getLocalPath());
            node.set("stream", stream(file.getHandle()));
        });
    }

    private static ObjectNode stream(StreamStateHandle stream) {
        ObjectNode node = Json.object();
        node.put("class", stream.getClass().getSimpleName());
        node.put("size", stream.getStateSize());
        if (stream instanceof ByteStreamStateHandle) {
            node.put("name", ((ByteStreamStateHandle) stream).getHandleName());
        } else if (stream instanceof SegmentFileStateHandle) {
            node.put("text", stream.toString());
        } else if (stream instanceof RelativeFileStateHandle) {
            node.put("path", ((RelativeFileStateHandle) stream).getRelativePath());
        } else if (stream instanceof FileStateHandle) {
            node.put("path", ((FileStateHandle) stream).getFilePath().toString());
        }
        return node;
    }

    private MetadataDump() {}
}
