package spt.oracle;

import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.Date;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;
import org.apache.avro.generic.GenericRecord;
import org.apache.flink.api.common.state.ListStateDescriptor;
import org.apache.flink.api.common.state.MapStateDescriptor;
import org.apache.flink.api.common.state.OperatorStateStore;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.api.common.typeutils.base.ListSerializer;
import org.apache.flink.api.common.typeutils.base.MapSerializer;
import org.apache.flink.api.java.tuple.Tuple;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;
import org.apache.flink.runtime.state.BackendWritableBroadcastState;
import org.apache.flink.runtime.state.CompositeKeySerializationUtils;
import org.apache.flink.runtime.state.KeyGroupRange;
import org.apache.flink.runtime.state.KeyGroupRangeAssignment;
import org.apache.flink.runtime.state.ListDelimitedSerializer;
import org.apache.flink.runtime.state.OperatorStateHandle;
import org.apache.flink.runtime.state.PartitionableListState;
import org.apache.flink.runtime.state.RegisteredKeyValueStateBackendMetaInfo;
import org.apache.flink.runtime.state.RegisteredPriorityQueueStateBackendMetaInfo;
import org.apache.flink.runtime.state.StateEntry;
import org.apache.flink.runtime.state.VoidNamespace;
import org.apache.flink.runtime.state.heap.HeapPriorityQueueSnapshotRestoreWrapper;
import org.apache.flink.runtime.state.heap.StateTable;
import org.apache.flink.runtime.state.ttl.TtlValue;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.api.operators.InternalTimer;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.table.data.binary.BinaryRowData;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Reads running state backends from the inside and shows all they hold, whether user code asked for it or not. Their fields
 * are private and some of their classes changed packages between versions, hence the reflection.
 */
final class Dump {
    private static final int LONGEST = 512; // bytes shown; of longer arrays length and hash
    private static final String TIMERS = "_timer_state/";

    // ---------------------------------------------------------------- operator state

    static ObjectNode operatorState(Object backend) throws Exception {
        ObjectNode states = Json.object();
        for (Map.Entry<String, PartitionableListState<?>> entry : new TreeMap<>(lists(backend)).entrySet()) {
            PartitionableListState<?> list = entry.getValue();
            ObjectNode state = states.putObject(entry.getKey());
            boolean union = list.getStateMetaInfo().getAssignmentMode() == OperatorStateHandle.Mode.UNION;
            state.put("kind", union ? "union" : "list");
            ArrayNode elements = state.putArray("elements");
            ArrayNode raw = state.putArray("raw");
            for (Object element : list.get()) {
                elements.add(json(element));
                raw.add(hexOrDigest(serialize(list.getStateMetaInfo().getPartitionStateSerializer(), element)));
            }
        }
        for (Map.Entry<String, BackendWritableBroadcastState<?, ?>> entry : new TreeMap<>(broadcasts(backend)).entrySet()) {
            ObjectNode state = states.putObject(entry.getKey());
            state.put("kind", "broadcast");
            Map<Object, Object> pairs = new LinkedHashMap<>();
            entry.getValue().entries().forEach(pair -> pairs.put(pair.getKey(), pair.getValue()));
            state.set("entries", json(pairs));
        }
        return states;
    }

    /** Asks, as user code would, for every state that the backend holds, with the serializer that wrote it. */
    static void askForAll(OperatorStateStore store, Choices choices) throws Exception {
        for (Map.Entry<String, PartitionableListState<?>> entry : new TreeMap<>(lists(store)).entrySet()) {
            if (!choices.asksFor(entry.getKey())) {
                continue;
            }
            PartitionableListState<?> list = entry.getValue();
            ListStateDescriptor<?> descriptor =
                    new ListStateDescriptor<>(entry.getKey(), list.getStateMetaInfo().getPartitionStateSerializer());
            boolean union = list.getStateMetaInfo().getAssignmentMode() == OperatorStateHandle.Mode.UNION;
            if (choices.union(entry.getKey(), union)) {
                store.getUnionListState(descriptor);
            } else {
                store.getListState(descriptor);
            }
        }
        for (Map.Entry<String, BackendWritableBroadcastState<?, ?>> entry : new TreeMap<>(broadcasts(store)).entrySet()) {
            if (choices.asksFor(entry.getKey())) {
                BackendWritableBroadcastState<?, ?> state = entry.getValue();
                store.getBroadcastState(new MapStateDescriptor<>(
                        entry.getKey(), state.getStateMetaInfo().getKeySerializer(), state.getStateMetaInfo().getValueSerializer()));
            }
        }
    }

    private static Map<String, PartitionableListState<?>> lists(Object backend) throws Exception {
        return field(backend, "registeredOperatorStates");
    }

    private static Map<String, BackendWritableBroadcastState<?, ?>> broadcasts(Object backend) throws Exception {
        return field(backend, "registeredBroadcastStates");
    }

    // ---------------------------------------------------------------- keyed state

    /** A backend with keyed state: one of the classes that have no common interface. */
    record Keyed(Object backend, TypeSerializer<?> keys, KeyGroupRange range, int groups) {}

    /** Puts key_groups, keyed_state and timers of a backend into the subtask. */
    static void keyedState(Keyed watched, ObjectNode subtask) throws Exception {
        subtask.putArray("key_groups")
                .add(watched.range.getStartKeyGroup())
                .add(watched.range.getEndKeyGroup());
        KeyedContent content = new KeyedContent(watched.groups);
        if (has(watched.backend, "registeredKVStates")) {
            heap(watched.backend, content);
        } else {
            rocks(watched, content);
        }
        subtask.set("keyed_state", content.states());
        subtask.set("timers", content.timers());
    }

    private static void heap(Object backend, KeyedContent content) throws Exception {
        Map<String, StateTable<?, ?, ?>> tables = field(backend, "registeredKVStates");
        for (Map.Entry<String, StateTable<?, ?, ?>> entry : tables.entrySet()) {
            StateTable<?, ?, ?> table = entry.getValue();
            content.state(entry.getKey(), StateInfo.of(table.getMetaInfo(), null));
            for (Object row : table) {
                StateEntry<?, ?, ?> e = (StateEntry<?, ?, ?>) row;
                content.entry(entry.getKey(), content.group(e.getKey()), e.getKey(), e.getNamespace(), json(e.getState()));
            }
        }
        heapTimers(field(backend, "priorityQueuesManager"), content);
    }

    private static void heapTimers(Object manager, KeyedContent content) throws Exception {
        if (manager == null) {
            return; // RocksDB keeps the timers itself
        }
        Map<String, HeapPriorityQueueSnapshotRestoreWrapper<?>> queues = field(manager, "registeredPQStates");
        for (Map.Entry<String, HeapPriorityQueueSnapshotRestoreWrapper<?>> entry : queues.entrySet()) {
            content.service(entry.getKey());
            try (CloseableIterator<?> timers = entry.getValue().getPriorityQueue().iterator()) {
                while (timers.hasNext()) {
                    InternalTimer<?, ?> timer = (InternalTimer<?, ?>) timers.next();
                    content.timer(entry.getKey(), content.group(timer.getKey()), timer);
                }
            }
        }
    }

    /** RocksDB and ForSt. */
    private static void rocks(Keyed watched, KeyedContent content) throws Exception {
        Object backend = watched.backend;
        Object db = field(backend, "db");
        int prefix = field(backend, "keyGroupPrefixBytes");
        Map<String, Object> families = field(backend, "kvStateInformation");
        for (Map.Entry<String, Object> entry : families.entrySet()) {
            Object family = field(entry.getValue(), "columnFamilyHandle");
            Object meta = field(entry.getValue(), "metaInfo");
            try (Rows rows = new Rows(db, family)) {
                if (meta instanceof RegisteredPriorityQueueStateBackendMetaInfo) {
                    TypeSerializer<?> timers = ((RegisteredPriorityQueueStateBackendMetaInfo<?>) meta).getElementSerializer();
                    content.service(entry.getKey());
                    for (rows.seekToFirst(); rows.isValid(); rows.next()) {
                        DataInputDeserializer in = new DataInputDeserializer(rows.key());
                        int group = CompositeKeySerializationUtils.readKeyGroup(prefix, in);
                        content.timer(entry.getKey(), group, (InternalTimer<?, ?>) timers.deserialize(in));
                    }
                } else {
                    rocksState(entry.getKey(), StateInfo.of(meta, stateOf(backend, entry.getKey())), watched.keys, prefix, rows, content);
                }
            }
        }
        heapTimers(field(backend, "heapPriorityQueuesManager"), content);
    }

    /** The state that the job has registered, without what adds the time to live. */
    private static Object stateOf(Object backend, String name) throws Exception {
        Object state = Dump.<Map<String, Object>>field(backend, "keyValueStatesByName").get(name);
        return has(state, "original") ? field(state, "original") : state;
    }

    /** What the meta info of a state says: its kind and serializers. */
    private record StateInfo(String kind, TypeSerializer<?> namespace, TypeSerializer<?> userKey, TypeSerializer<?> value) {
        /**
         * The asynchronous API has meta infos of its own: their serializer is the one of an element or of one value of a map. Flink 2.0 has the one of map keys
         * only in the state itself.
         */
        static StateInfo of(Object meta, Object state) throws Exception {
            String kind = call(meta, "getStateType").toString().toLowerCase(Locale.ROOT);
            TypeSerializer<?> namespace = (TypeSerializer<?>) call(meta, "getNamespaceSerializer");
            TypeSerializer<?> value = (TypeSerializer<?>) call(meta, "getStateSerializer");
            TypeSerializer<?> userKey = null;
            boolean classic = meta instanceof RegisteredKeyValueStateBackendMetaInfo;
            if (classic && value instanceof ListSerializer && kind.equals("list")) {
                value = ((ListSerializer<?>) value).getElementSerializer();
            } else if (classic && value instanceof MapSerializer && kind.equals("map")) {
                userKey = ((MapSerializer<?, ?>) value).getKeySerializer();
                value = ((MapSerializer<?, ?>) value).getValueSerializer();
            } else if (!classic && kind.equals("map")) {
                userKey = has(meta, "userKeySerializerProvider")
                        ? (TypeSerializer<?>) call(meta, "getUserKeySerializer") : field(state, "userKeySerializer");
            }
            return new StateInfo(kind, namespace, userKey, value);
        }
    }

    /** The rows of a column family. ForSt has the classes of RocksDB in a package of its own, hence the reflection. */
    private static final class Rows implements AutoCloseable {
        private final Object rows;

        Rows(Object db, Object family) throws Exception {
            rows = db.getClass().getMethod("newIterator", family.getClass()).invoke(db, family);
        }

        void seekToFirst() throws Exception {
            call(rows, "seekToFirst");
        }

        void next() throws Exception {
            call(rows, "next");
        }

        boolean isValid() throws Exception {
            return (boolean) call(rows, "isValid");
        }

        byte[] key() throws Exception {
            return (byte[]) call(rows, "key");
        }

        byte[] value() throws Exception {
            return (byte[]) call(rows, "value");
        }

        @Override
        public void close() throws Exception {
            call(rows, "close");
        }
    }

    private static void rocksState(
            String name, StateInfo info, TypeSerializer<?> keys, int prefix, Rows rows, KeyedContent content) throws Exception {
        content.state(name, info);
        boolean ambiguous = CompositeKeySerializationUtils.isAmbiguousKeyPossible(keys, info.namespace);
        Map<String, Map<Object, Object>> maps = new LinkedHashMap<>(); // rows of map state, by key and namespace
        for (rows.seekToFirst(); rows.isValid(); rows.next()) {
            DataInputDeserializer in = new DataInputDeserializer(rows.key());
            int group = CompositeKeySerializationUtils.readKeyGroup(prefix, in);
            Object key = CompositeKeySerializationUtils.readKey(keys, in, ambiguous);
            Object namespace = CompositeKeySerializationUtils.readNamespace(info.namespace, in, ambiguous);
            switch (info.kind) {
                case "map": {
                    Object userKey = info.userKey.deserialize(in);
                    DataInputDeserializer value = new DataInputDeserializer(rows.value());
                    Object userValue = value.readBoolean() ? null : info.value.deserialize(value);
                    String at = json(key) + " " + json(namespace);
                    if (!maps.containsKey(at)) {
                        maps.put(at, new LinkedHashMap<>());
                        content.later(name, group, key, namespace, maps.get(at));
                    }
                    maps.get(at).put(userKey, userValue);
                    break;
                }
                case "list": {
                    List<?> list = new ListDelimitedSerializer().deserializeList(rows.value(), info.value);
                    content.entry(name, group, key, namespace, json(list));
                    break;
                }
                default: {
                    Object value = info.value.deserialize(new DataInputDeserializer(rows.value()));
                    content.entry(name, group, key, namespace, json(value));
                }
            }
        }
        content.finish();
    }

    /** Gathers keyed state and timers, then shows them sorted: the order in a backend means nothing. */
    private static final class KeyedContent {
        private final TreeMap<String, ObjectNode> heads = new TreeMap<>();
        private final Map<String, List<ObjectNode>> entries = new LinkedHashMap<>();
        private final TreeMap<String, TreeMap<String, List<ObjectNode>>> services = new TreeMap<>();
        private final List<Runnable> unfinished = new ArrayList<>();

        private final int groups;

        KeyedContent(int groups) {
            this.groups = groups;
        }

        int group(Object key) {
            return KeyGroupRangeAssignment.assignToKeyGroup(key, groups);
        }

        void state(String name, StateInfo info) {
            ObjectNode head = Json.object();
            head.put("kind", info.kind);
            if (info.value.getClass().getName().endsWith(".ttl.TtlStateFactory$TtlSerializer")) { // of either API
                head.put("ttl", true);
            }
            heads.put(name, head);
            entries.put(name, new ArrayList<>());
        }

        void entry(String name, int group, Object key, Object namespace, JsonNode value) throws Exception {
            ObjectNode entry = place(group, key, namespace);
            entry.set("value", value);
            entries.get(name).add(entry);
        }

        /** An entry whose map is still being filled. */
        void later(String name, int group, Object key, Object namespace, Map<Object, Object> value) throws Exception {
            ObjectNode entry = place(group, key, namespace);
            entries.get(name).add(entry);
            unfinished.add(() -> entry.set("value", json(value)));
        }

        void finish() {
            unfinished.forEach(Runnable::run);
            unfinished.clear();
        }

        void service(String state) {
            services.computeIfAbsent(serviceName(state), name -> {
                TreeMap<String, List<ObjectNode>> both = new TreeMap<>();
                both.put("event", new ArrayList<>());
                both.put("processing", new ArrayList<>());
                return both;
            });
        }

        void timer(String state, int group, InternalTimer<?, ?> timer) throws Exception {
            ObjectNode entry = place(group, timer.getKey(), timer.getNamespace());
            entry.put("timestamp", timer.getTimestamp());
            String kind = state.startsWith(TIMERS + "event_") ? "event" : "processing";
            services.get(serviceName(state)).get(kind).add(entry);
        }

        private static String serviceName(String state) {
            return state.substring(state.indexOf('_', TIMERS.length()) + 1);
        }

        private static ObjectNode place(int group, Object key, Object namespace) {
            ObjectNode entry = Json.object();
            entry.put("key_group", group);
            entry.set("key", json(key));
            entry.set("namespace", json(namespace));
            return entry;
        }

        ObjectNode states() {
            ObjectNode states = Json.object();
            heads.forEach((name, head) -> {
                sorted(entries.get(name)).forEach(head.putArray("entries")::add);
                states.set(name, head);
            });
            return states;
        }

        ObjectNode timers() {
            ObjectNode timers = Json.object();
            services.forEach((service, kinds) -> {
                ObjectNode node = timers.putObject(service);
                kinds.forEach((kind, list) -> sorted(list).forEach(node.putArray(kind)::add));
            });
            return timers;
        }

        private static List<ObjectNode> sorted(List<ObjectNode> list) {
            list.sort(Comparator.comparingInt((ObjectNode e) -> e.get("key_group").asInt()).thenComparing(ObjectNode::toString));
            return list;
        }
    }

    // ---------------------------------------------------------------- values

    static JsonNode json(Object value) {
        JsonNodeFactory make = JsonNodeFactory.instance;
        if (value == null || value instanceof VoidNamespace) {
            return make.nullNode();
        } else if (value instanceof Long) {
            return make.numberNode((Long) value);
        } else if (value instanceof Integer) {
            return make.numberNode((Integer) value);
        } else if (value instanceof Double) {
            return make.numberNode((Double) value);
        } else if (value instanceof Boolean) {
            return make.booleanNode((Boolean) value);
        } else if (value instanceof Date) {
            return make.numberNode(((Date) value).getTime());
        } else if (value instanceof String) {
            return make.textNode((String) value);
        } else if (value instanceof byte[]) {
            byte[] bytes = (byte[]) value;
            return Json.object().put(bytes.length > LONGEST ? "digest" : "hex", hexOrDigest(bytes));
        } else if (value instanceof Tuple) {
            ArrayNode fields = Json.array();
            Tuple tuple = (Tuple) value;
            for (int i = 0; i < tuple.getArity(); i++) {
                fields.add(json(tuple.getField(i)));
            }
            return fields;
        } else if (value instanceof List) {
            ArrayNode elements = Json.array();
            ((List<?>) value).forEach(element -> elements.add(json(element)));
            return elements;
        } else if (value instanceof Map) {
            List<ArrayNode> pairs = new ArrayList<>();
            ((Map<?, ?>) value).forEach((k, v) -> pairs.add(Json.array().add(json(k)).add(json(v))));
            pairs.sort(Comparator.comparing(ArrayNode::toString));
            return Json.array().addAll(pairs);
        } else if (value instanceof TtlValue) {
            ObjectNode mortal = Json.object();
            mortal.put("ttl_timestamp", ((TtlValue<?>) value).getLastAccessTimestamp());
            mortal.set("value", json(((TtlValue<?>) value).getUserValue()));
            return mortal;
        } else if (value instanceof Row) {
            ArrayNode fields = Json.array();
            Row row = (Row) value;
            for (int i = 0; i < row.getArity(); i++) {
                fields.add(json(row.getField(i)));
            }
            return fields;
        } else if (value instanceof BinaryRowData) {
            return Json.array().add(((BinaryRowData) value).getString(0).toString()).add(((BinaryRowData) value).getLong(1)); // as Values.rowData makes them
        } else if (value instanceof GenericRecord) {
            ObjectNode fields = Json.object();
            GenericRecord record = (GenericRecord) value;
            record.getSchema().getFields().forEach(f -> fields.set(f.name(), json(record.get(f.pos()))));
            return fields;
        } else if (value instanceof CharSequence) {
            return make.textNode(value.toString()); // Avro's
        } else if (value instanceof TimeWindow) {
            return Json.object().put("start", ((TimeWindow) value).getStart()).put("end", ((TimeWindow) value).getEnd());
        }
        return pojo(value);
    }

    private static ObjectNode pojo(Object value) {
        ObjectNode fields = Json.object();
        try {
            for (Field field : value.getClass().getFields()) {
                if (!Modifier.isStatic(field.getModifiers())) {
                    fields.set(field.getName(), json(field.get(value)));
                }
            }
        } catch (IllegalAccessException e) {
            throw new IllegalStateException(e);
        }
        if (fields.isEmpty()) {
            throw new IllegalStateException("no way to show a " + value.getClass().getName());
        }
        return fields;
    }

    @SuppressWarnings({"unchecked", "rawtypes"})
    private static byte[] serialize(TypeSerializer serializer, Object value) throws Exception {
        DataOutputSerializer out = new DataOutputSerializer(64);
        serializer.serialize(value, out);
        return out.getCopyOfBuffer();
    }

    private static String hexOrDigest(byte[] bytes) {
        if (bytes.length <= LONGEST) {
            return hex(bytes);
        }
        try {
            return bytes.length + " bytes, sha256 " + hex(MessageDigest.getInstance("SHA-256").digest(bytes));
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }

    private static String hex(byte[] bytes) {
        return HexFormat.of().formatHex(bytes);
    }

    // ---------------------------------------------------------------- reflection

    private static boolean has(Object object, String name) {
        return object != null && find(object.getClass(), name) != null;
    }

    private static Object call(Object object, String method) throws Exception {
        Method found = object.getClass().getMethod(method);
        found.setAccessible(true);
        return found.invoke(object);
    }

    @SuppressWarnings("unchecked")
    private static <T> T field(Object object, String name) throws Exception {
        Field field = find(object.getClass(), name);
        if (field == null) {
            throw new NoSuchFieldException(object.getClass().getName() + "." + name);
        }
        field.setAccessible(true);
        return (T) field.get(object);
    }

    private static Field find(Class<?> type, String name) {
        for (Class<?> c = type; c != null; c = c.getSuperclass()) {
            try {
                return c.getDeclaredField(name);
            } catch (NoSuchFieldException e) {
                // look in the class above
            }
        }
        return null;
    }

    private Dump() {}
}
