package spt.stateapi;

import java.io.BufferedInputStream;
import java.io.BufferedReader;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.TypeSerializerSnapshot;
import org.apache.flink.api.common.typeutils.base.VoidSerializer;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.core.fs.CloseableRegistry;
import org.apache.flink.core.fs.FileSystem;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataInputViewStreamWrapper;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.checkpoint.Checkpoints;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.checkpoint.OperatorSubtaskState;
import org.apache.flink.runtime.checkpoint.PrioritizedOperatorSubtaskState;
import org.apache.flink.runtime.io.disk.iomanager.IOManager;
import org.apache.flink.runtime.state.ArrayListSerializer;
import org.apache.flink.runtime.state.CheckpointableKeyedStateBackend;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.FullSnapshotResources;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.KeyGroupsStateHandle;
import org.apache.flink.runtime.state.KeyValueStateIterator;
import org.apache.flink.runtime.state.KeyedBackendSerializationProxy;
import org.apache.flink.runtime.state.KeyedStateHandle;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.StateBackendLoader;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot.BackendStateType;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot.CommonOptionsKeys;
import org.apache.flink.runtime.state.metainfo.StateMetaInfoSnapshot.CommonSerializerKeys;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.state.api.runtime.NeverFireProcessingTimeService;
import org.apache.flink.state.api.runtime.SavepointEnvironment;
import org.apache.flink.streaming.api.operators.KeyContext;
import org.apache.flink.streaming.api.operators.StreamTaskStateInitializerImpl;
import org.apache.flink.streaming.api.operators.TimerSerializerSnapshot;
import org.slf4j.LoggerFactory;

/**
 * The keyed state of snapshots as a backend holds it that Flink restored in the environment of the State Processor API. No class of the job is
 * needed: the serializers are those that the snapshot describes.
 *
 * <p>Reads directories from standard input, one in a line, and prints a JSON object for each: an array of its subtasks with keyed state. A
 * subtask has its states and entries, or the reason for which Flink does not restore it.
 */
public final class KeyedEntries {
    private static final ClassLoader LOADER = KeyedEntries.class.getClassLoader();

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        try (BufferedReader snapshots = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line = snapshots.readLine(); line != null; line = snapshots.readLine()) {
                answers.println(of("file:" + line));
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.exit(0); // no thread of Flink's may keep the process alive
    }

    private static ObjectNode of(String uri) throws IOException {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        ArrayNode subtasks = answer.putArray("subtasks");
        try (DataInputStream in = new DataInputStream(new BufferedInputStream(FileSystem.get(URI.create(uri)).open(new Path(uri, "_metadata"))))) {
            for (OperatorState operator : Checkpoints.loadCheckpointMetadata(in, LOADER, uri).getOperatorStates()) {
                for (Map.Entry<Integer, OperatorSubtaskState> subtask : operator.getSubtaskStates().entrySet()) {
                    OperatorSubtaskState state = subtask.getValue();
                    if (!state.getManagedKeyedState().isEmpty() || !state.getRawKeyedState().isEmpty()) {
                        ObjectNode node = subtasks.addObject();
                        node.put("operator", operator.getOperatorID().toHexString()).put("subtask", subtask.getKey());
                        node.setAll(restored(operator, subtask.getKey(), state));
                    }
                }
            }
        }
        return answer;
    }

    /** The state after a restore by the backend that wrote it: the type of a handle does not always tell which. */
    private static ObjectNode restored(OperatorState operator, int subtask, OperatorSubtaskState state) {
        boolean files = state.getManagedKeyedState().stream().anyMatch(h -> h instanceof IncrementalRemoteKeyedStateHandle);
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        for (String backend : files ? List.of("rocksdb") : List.of("hashmap", "rocksdb")) {
            try {
                return restored(operator, subtask, state, backend);
            } catch (Exception | LinkageError failure) {
                Throwable cause = failure;
                while (cause.getCause() != null) {
                    cause = cause.getCause();
                }
                answer.put("refused", cause.toString());
            }
        }
        return answer;
    }

    private static ObjectNode restored(OperatorState operator, int subtask, OperatorSubtaskState state, String type) throws Exception {
        Configuration configuration = new Configuration();
        configuration.setString("state.backend", type);
        configuration.setString("state.backend.rocksdb.memory.managed", "false");
        StateBackend backend = StateBackendLoader.loadStateBackendFromConfig(configuration, LOADER, LoggerFactory.getLogger(KeyedEntries.class));
        SavepointEnvironment environment = Versioned.environment(operator, subtask)
                .setConfiguration(configuration)
                .setSubtaskIndex(subtask)
                .setPrioritizedOperatorSubtaskState(new PrioritizedOperatorSubtaskState.Builder(state, List.of(), 1L).build())
                .build();
        try (CloseableRegistry closing = new CloseableRegistry();
                IOManager closed = environment.getIOManager()) {
            CheckpointableKeyedStateBackend<?> keyed = new StreamTaskStateInitializerImpl(environment, backend).streamOperatorStateContext(
                    operator.getOperatorID(), "read", new NeverFireProcessingTimeService(), new NoKey(), keySerializer(state), closing,
                    UnregisteredMetricsGroup.createOperatorMetricGroup(), 1.0, false).keyedStateBackend();
            try {
                return entries(keyed, operator.getMaxParallelism()).put("backend", type);
            } finally {
                keyed.dispose();
            }
        }
    }

    /** The serializer of keys as the header of a stream describes it. Without one there can only be timers, which have serializers of their own. */
    private static TypeSerializer<?> keySerializer(OperatorSubtaskState state) throws IOException {
        if (state.getManagedKeyedState().isEmpty()) {
            return VoidSerializer.INSTANCE;
        }
        KeyedStateHandle handle = state.getManagedKeyedState().iterator().next();
        KeyedBackendSerializationProxy<?> header = new KeyedBackendSerializationProxy<>(LOADER);
        try (InputStream in = handle instanceof KeyGroupsStateHandle
                ? ((KeyGroupsStateHandle) handle).openInputStream()
                : Versioned.header((IncrementalRemoteKeyedStateHandle) handle).openInputStream()) {
            header.read(new DataInputViewStreamWrapper(in));
        }
        return header.getKeySerializerSnapshot().restoreSerializer();
    }

    /** The states of a backend, and its entries as a canonical savepoint holds them. */
    private static <K> ObjectNode entries(CheckpointableKeyedStateBackend<K> backend, int maxParallelism) throws Exception {
        ObjectNode node = JsonNodeFactory.instance.objectNode();
        registerLists(backend);
        FullSnapshotResources<K> all = backend.savepoint().getSnapshotResources();
        try (KeyValueStateIterator i = all.createKVStateIterator()) {
            List<StateMetaInfoSnapshot> states = all.getMetaInfoSnapshots();
            for (StateMetaInfoSnapshot s : states) {
                node.withArray("states").addObject().put("name", s.getName()).put("kind", timers(s) ? "timers" : s.getOption(CommonOptionsKeys.KEYED_STATE_TYPE).toLowerCase());
            }
            int prefix = CompositeKeySerializationUtils.computeRequiredBytesInKeyGroupPrefix(maxParallelism);
            for (; i.isValid(); i.next()) {
                StateMetaInfoSnapshot s = states.get(i.kvStateId());
                ObjectNode entry = node.withArray("entries").addObject();
                entry.put("state", s.getName()).put("key_group", i.keyGroup());
                entry.put("stored", hex(i.key(), 0, i.key().length)).put("value", hex(i.value(), 0, i.value().length));
                split(entry, s, backend.getKeySerializer(), i.key(), prefix);
            }
        } finally {
            all.release();
        }
        return node;
    }

    /** Registers lists as the job does that has them: the heap of Flink 1.3 and 1.4 described lists by a serializer that no savepoint is made with. */
    private static <K> void registerLists(CheckpointableKeyedStateBackend<K> backend) throws Exception {
        FullSnapshotResources<K> all = backend.savepoint().getSnapshotResources();
        all.release();
        for (StateMetaInfoSnapshot s : all.getMetaInfoSnapshots()) {
            TypeSerializerSnapshot<?> described = s.getTypeSerializerSnapshot(CommonSerializerKeys.VALUE_SERIALIZER);
            if (!timers(s) && described.restoreSerializer() instanceof ArrayListSerializer) {
                TypeSerializer<?> element = ((ArrayListSerializer<?>) described.restoreSerializer()).getElementSerializer();
                TypeSerializer<?> namespaces = s.getTypeSerializerSnapshot(CommonSerializerKeys.NAMESPACE_SERIALIZER).restoreSerializer();
                backend.getOrCreateKeyedState(namespaces, new ListStateDescriptor<>(s.getName(), element));
            }
        }
    }

    private static boolean timers(StateMetaInfoSnapshot s) {
        return s.getBackendStateType() == BackendStateType.PRIORITY_QUEUE;
    }

    /** Adds the parts of a stored key. Where they end the serializers tell, by what they read. */
    private static void split(ObjectNode entry, StateMetaInfoSnapshot s, TypeSerializer<?> keys, byte[] stored, int prefix) throws IOException {
        DataInputDeserializer in = new DataInputDeserializer(stored);
        in.skipBytesToRead(prefix);
        if (timers(s)) {
            entry.put("time", in.readLong() ^ Long.MIN_VALUE);
            int at = in.getPosition();
            ((TimerSerializerSnapshot<?, ?>) s.getTypeSerializerSnapshot(CommonSerializerKeys.VALUE_SERIALIZER)).getNestedSerializerSnapshots()[0]
                    .restoreSerializer().deserialize(in);
            entry.put("key", hex(stored, at, in.getPosition())).put("namespace", hex(stored, in.getPosition(), stored.length));
            return;
        }
        TypeSerializerSnapshot<?> described = s.getTypeSerializerSnapshot(CommonSerializerKeys.NAMESPACE_SERIALIZER);
        TypeSerializer<?> namespaces = described.restoreSerializer();
        boolean lengths = CompositeKeySerializationUtils.isAmbiguousKeyPossible(keys, namespaces);
        int at = in.getPosition();
        keys.deserialize(in);
        entry.put("key", hex(stored, at, in.getPosition()));
        if (lengths) {
            CompositeKeySerializationUtils.readVariableIntBytes(in, in.getPosition() - at);
        }
        at = in.getPosition();
        namespaces.deserialize(in);
        entry.put("namespace", hex(stored, at, in.getPosition()));
        if (lengths) {
            CompositeKeySerializationUtils.readVariableIntBytes(in, in.getPosition() - at);
        }
        entry.put("user_key", hex(stored, in.getPosition(), stored.length));
    }

    private static String hex(byte[] bytes, int from, int to) {
        return HexFormat.of().formatHex(bytes, from, to);
    }

    /** The operator, which has no current key. */
    private static final class NoKey implements KeyContext {
        @Override
        public void setCurrentKey(Object key) {}

        @Override
        public Object getCurrentKey() {
            return null;
        }
    }

    private KeyedEntries() {}
}
