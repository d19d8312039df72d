package spt.oracle;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.StateObjectCollection;
import org.apache.flink.runtime.checkpoint.metadata.CheckpointMetadata;
import org.apache.flink.runtime.checkpoint.metadata.MetadataV2Serializer;
import org.apache.flink.runtime.checkpoint.metadata.MetadataV2V3SerializerBase;
import org.apache.flink.runtime.state.IncrementalKeyedStateHandle.HandleAndLocalPath;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.runtime.state.changelog.ChangelogStateBackendHandle.ChangelogStateBackendHandleImpl;
import org.apache.flink.runtime.state.filesystem.FileStateHandle;
import org.apache.flink.runtime.state.filesystem.RelativeFileStateHandle;

/** Rewrites a snapshot in place, with Flink's own classes, into forms that Flink never writes itself: will it restore them? */
final class Craft {
    static void rewrite(String kind, String snapshot) throws IOException {
        Path directory = Path.of(snapshot);
        CheckpointMetadata metadata = MetadataDump.load(directory);
        switch (kind) {
            case "version-2":
                try (DataOutputStream out = open(directory)) {
                    out.writeInt(Checkpoints.HEADER_MAGIC_NUMBER);
                    out.writeInt(MetadataV2Serializer.VERSION);
                    new Version2().serializeMetadata(metadata, out);
                }
                return;
            case "shared-relative":
                for (OperatorState operator : metadata.getOperatorStates()) {
                    for (int i = 0; i < operator.getParallelism(); i++) {
                        KeyedStateHandle keyed = keyed(operator, i);
                        if (keyed instanceof IncrementalRemoteKeyedStateHandle) {
                            operator.putState(i, withKeyed(operator.getState(i),
                                    relative((IncrementalRemoteKeyedStateHandle) keyed, directory)));
                        }
                    }
                }
                break;
            case "changelog-of-many": {
                List<OperatorState> operators = new ArrayList<>();
                for (OperatorState operator : metadata.getOperatorStates()) {
                    operators.add(keyed(operator, 0) == null ? operator : joined(operator));
                }
                metadata = new CheckpointMetadata(metadata.getCheckpointId(), operators, metadata.getMasterStates(),
                        metadata.getCheckpointProperties());
                break;
            }
            default:
                throw new IllegalArgumentException("unknown kind " + kind);
        }
        try (DataOutputStream out = open(directory)) {
            Checkpoints.storeCheckpointMetadata(metadata, out);
        }
    }

    private static DataOutputStream open(Path directory) throws IOException {
        return new DataOutputStream(Files.newOutputStream(FixtureFileSystem.stored(directory).resolve("_metadata")));
    }

    private static KeyedStateHandle keyed(OperatorState operator, int subtask) {
        OperatorSubtaskState state = operator.getState(subtask);
        return state == null || state.getManagedKeyedState().isEmpty() ? null : state.getManagedKeyedState().iterator().next();
    }

    private static OperatorSubtaskState withKeyed(OperatorSubtaskState state, KeyedStateHandle keyed) {
        return state.toBuilder().setManagedKeyedState(StateObjectCollection.singleton(keyed)).build();
    }

    /** Puts the shared files beside _metadata, and says so. */
    private static IncrementalRemoteKeyedStateHandle relative(IncrementalRemoteKeyedStateHandle handle, Path directory)
            throws IOException {
        List<HandleAndLocalPath> shared = new ArrayList<>();
        for (HandleAndLocalPath file : handle.getSharedState()) {
            StreamStateHandle stream = file.getHandle();
            if (stream instanceof FileStateHandle && !(stream instanceof RelativeFileStateHandle)) {
                FileStateHandle old = (FileStateHandle) stream;
                String name = old.getFilePath().getName();
                Path target = directory.resolve(name);
                if (!Files.exists(FixtureFileSystem.stored(target))) {
                    Files.move(FixtureFileSystem.stored(old.getFilePath().getPath()), FixtureFileSystem.stored(target));
                }
                stream = new RelativeFileStateHandle(
                        new org.apache.flink.core.fs.Path("file:" + target), name, old.getStateSize());
            }
            shared.add(HandleAndLocalPath.of(stream, file.getLocalPath()));
        }
        return IncrementalRemoteKeyedStateHandle.restore(
                handle.getBackendIdentifier(), handle.getKeyGroupRange(), handle.getCheckpointId(), shared,
                handle.getPrivateState(), handle.getMetaDataStateHandle(), handle.getCheckpointedSize(),
                handle.getStateHandleId());
    }

    /** All subtasks of the operator become one, whose keyed handle is a changelog handle over theirs. */
    private static OperatorState joined(OperatorState operator) {
        List<KeyedStateHandle> handles = new ArrayList<>();
        for (int i = 0; i < operator.getParallelism(); i++) {
            handles.add(keyed(operator, i));
        }
        KeyGroupRange all = KeyGroupRange.of(0, operator.getMaxParallelism() - 1);
        OperatorState joined = Versioned.operatorState(operator, 1);
        joined.putState(0, OperatorSubtaskState.builder()
                .setManagedKeyedState(StateObjectCollection.singleton(
                        new ChangelogStateBackendHandleImpl(handles, List.of(), all, 0L, 0L, 0L)))
                .build());
        return joined;
    }

    /** Flink reads version 2 but no longer writes it. The handles are written by Flink's code, what is around them here. */
    private static final class Version2 extends MetadataV2V3SerializerBase {
        @Override
        protected void serializeMetadata(CheckpointMetadata metadata, DataOutputStream out) throws IOException {
            super.serializeMetadata(metadata, out); // makes it visible to Craft
        }

        @Override
        protected void serializeOperatorState(OperatorState operator, DataOutputStream out) throws IOException {
            out.writeLong(operator.getOperatorID().getLowerPart());
            out.writeLong(operator.getOperatorID().getUpperPart());
            out.writeInt(operator.getParallelism());
            out.writeInt(operator.getMaxParallelism());
            out.writeInt(1); // chain length, dead
            out.writeInt(operator.getNumberCollectedStates());
            for (Map.Entry<Integer, OperatorSubtaskState> subtask : operator.getSubtaskStates().entrySet()) {
                out.writeInt(subtask.getKey());
                out.writeLong(-1); // duration, dead
                out.writeInt(0); // no handles of Flink 1.1
                serializeSubtaskState(subtask.getValue(), out);
            }
        }

        @Override
        protected OperatorState deserializeOperatorState(DataInputStream in, DeserializationContext context) {
            throw new UnsupportedOperationException();
        }
    }

    private Craft() {}
}
