package spt.connectors;

import java.util.ArrayList;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.stream.Collectors;
import org.apache.flink.connector.kafka.dynamic.metadata.ClusterMetadata;
import org.apache.flink.connector.kafka.dynamic.metadata.KafkaStream;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumState;
import org.apache.flink.connector.kafka.dynamic.source.enumerator.DynamicKafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplit;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplitSerializer;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.util.InstantiationUtil;
import org.apache.kafka.common.TopicPartition;

/** Sources and sinks of Kafka. */
public final class Kafka implements Kinds.Catalogue {
    private static final String SINK = "org.apache.flink.connector.kafka.sink.";
    private static final int ENUM_VERSION = new KafkaSourceEnumStateSerializer().getVersion();

    static final List<KafkaPartitionSplit> SPLITS = List.of(
            split("orders", 0, 15000), split("orders", 1, -1), split("orders", 2, -2), split("orders", 3, -3),
            new KafkaPartitionSplit(new TopicPartition("tópico-漢字", 2147483647), 7, Long.MAX_VALUE), new KafkaPartitionSplit(new TopicPartition("a.b_c-d", 4), Long.MAX_VALUE - 1));

    @Override
    public void addTo(Kinds kinds) throws Exception {
        kinds.add("KafkaPartitionSplit", new KafkaPartitionSplitSerializer(), (s, v) -> json(s), SPLITS);
        kinds.add("DynamicKafkaSourceSplit", new DynamicKafkaSourceSplitSerializer(),
                (s, v) -> Json.versioned("DynamicKafkaSourceSplit", v, "cluster", s.getKafkaClusterId(), "split", json(s.getKafkaPartitionSplit())),
                SPLITS.stream().map(s -> new DynamicKafkaSourceSplit("cluster-1", s)).collect(Collectors.toList()));
        List<KafkaSourceEnumState> states = states();
        kinds.add("KafkaSourceEnumState", new KafkaSourceEnumStateSerializer(), (s, v) -> json(s), states);
        Map<String, KafkaSourceEnumState> clusters = new LinkedHashMap<>();
        clusters.put("cluster-1", states.get(0));
        clusters.put("ü", states.get(2));
        kinds.add("DynamicKafkaSourceEnumState", new DynamicKafkaSourceEnumStateSerializer(), Kafka::json, List.of(
                new DynamicKafkaSourceEnumState(), new DynamicKafkaSourceEnumState(streams(), clusters)));
        kinds.add("KafkaWriterState", Reflect.serializer(SINK + "KafkaWriterStateSerializer"), Kafka::writer, writers());
        kinds.add("KafkaCommittable", committableSerializer(), (c, v) -> committable(c), committables());
    }

    private static KafkaPartitionSplit split(String topic, int partition, long offset) {
        return new KafkaPartitionSplit(new TopicPartition(topic, partition), offset);
    }

    static Object json(KafkaPartitionSplit s) {
        return Json.versioned("KafkaPartitionSplit", 0, "topic", s.getTopic(), "partition", s.getPartition(), "offset", s.getStartingOffset(), "stopping_offset", s.getStoppingOffset().orElse(null));
    }

    /** An empty state, one without and one with unassigned partitions. */
    static List<KafkaSourceEnumState> states() throws Exception {
        return List.of(state(List.of(), List.of(), false), state(SPLITS.subList(0, 3), List.of(), true), state(SPLITS.subList(0, 2), SPLITS.subList(2, 6), true));
    }

    private static KafkaSourceEnumState state(List<KafkaPartitionSplit> assigned, List<KafkaPartitionSplit> unassigned, boolean finished) throws Exception {
        boolean splits = ENUM_VERSION >= 3;
        return (KafkaSourceEnumState) Reflect.make(KafkaSourceEnumState.class.getName(), splits ? assigned : partitions(assigned), splits ? unassigned : partitions(unassigned), finished);
    }

    private static Set<TopicPartition> partitions(List<KafkaPartitionSplit> splits) {
        return splits.stream().map(KafkaPartitionSplit::getTopicPartition).collect(Collectors.toCollection(LinkedHashSet::new));
    }

    static Object json(KafkaSourceEnumState s) throws Exception {
        List<Object> all = new ArrayList<>();
        if (ENUM_VERSION >= 3) {
            for (String status : List.of("assigned", "unassigned")) {
                for (Object split : (Collection<?>) Reflect.call(s, status + "Splits")) {
                    all.add(Json.of("split", json((KafkaPartitionSplit) split), "status", status));
                }
            }
            return Json.versioned("KafkaSourceEnumState", ENUM_VERSION, "splits", Json.of("version", 0, "splits", all), "initial_discovery_finished", s.initialDiscoveryFinished());
        }
        for (Object p : (Collection<?>) Reflect.call(s, "assignedPartitions")) {
            all.add(Json.of("topic", ((TopicPartition) p).topic(), "partition", ((TopicPartition) p).partition(), "status", "assigned"));
        }
        for (Object p : (Collection<?>) Reflect.call(s, "unassignedInitialPartitions")) {
            all.add(Json.of("topic", ((TopicPartition) p).topic(), "partition", ((TopicPartition) p).partition(), "status", "unassigned"));
        }
        return Json.versioned("KafkaSourceEnumState", ENUM_VERSION, "partitions", all, "initial_discovery_finished", s.initialDiscoveryFinished());
    }

    private static Set<KafkaStream> streams() throws Exception {
        Properties properties = new Properties();
        properties.setProperty("bootstrap.servers", "host-1:9092,host-2:9092");
        Map<String, ClusterMetadata> clusters = new LinkedHashMap<>();
        clusters.put("cluster-1", new ClusterMetadata(new LinkedHashSet<>(List.of("orders", "payments-ü")), properties));
        try {
            clusters.put("cluster-2", (ClusterMetadata) Reflect.make(ClusterMetadata.class.getName(), Set.of("orders"), properties, OffsetsInitializer.earliest(), OffsetsInitializer.latest()));
        } catch (NoSuchMethodException older) {
            clusters.put("cluster-2", new ClusterMetadata(Set.of(), properties));
        }
        return new LinkedHashSet<>(List.of(new KafkaStream("stream-1", clusters), new KafkaStream("without clusters", Map.of())));
    }

    private static Object json(DynamicKafkaSourceEnumState s, int version) throws Exception {
        List<Object> active = new ArrayList<>();
        for (Map.Entry<String, KafkaSourceEnumState> e : s.getClusterEnumeratorStates().entrySet()) {
            active.add(Json.of("cluster", e.getKey(), "enumerator", json(e.getValue())));
        }
        return Json.versioned("DynamicKafkaSourceEnumState", version,
                "streams", Json.list(s.getKafkaStreams(), stream -> Json.of("stream", stream.getStreamId(),
                        "clusters", Json.list(stream.getClusterMetadataMap().entrySet(), e -> cluster(e.getKey(), e.getValue(), version)))),
                "clusters", Json.of("version", ENUM_VERSION, "active", active, "retained", null));
    }

    private static Object cluster(String name, ClusterMetadata c, int version) throws Exception {
        Map<String, Object> json = Json.of("cluster", name, "topics", c.getTopics(), "bootstrap_servers", c.getProperties().getProperty("bootstrap.servers"));
        if (version >= 2) {
            json.put("starting_offsets", Json.orNull(Reflect.call(c, "getStartingOffsetsInitializer"), InstantiationUtil::serializeObject));
            json.put("stopping_offsets", Json.orNull(Reflect.call(c, "getStoppingOffsetsInitializer"), InstantiationUtil::serializeObject));
        }
        return json;
    }

    private static List<Object> writers() throws Exception {
        try {
            return List.of(Reflect.make(SINK + "KafkaWriterState", "prefix-ü"), Reflect.make(SINK + "KafkaWriterState", ""));
        } catch (NoSuchMethodException newer) {
            Object[] ownerships = Class.forName(SINK + "internal.TransactionOwnership").getEnumConstants();
            Object precommitted = Reflect.make(SINK + "internal.CheckpointTransaction", "prefix-0-7", 7L);
            return List.of(Reflect.make(SINK + "KafkaWriterState", "prefix-ü", 0, 2, ownerships[0], List.of()), Reflect.make(SINK + "KafkaWriterState", "prefix", 1, 2, ownerships[1], List.of(precommitted)));
        }
    }

    private static Object writer(Object s, int version) throws Exception {
        Map<String, Object> json = Json.versioned("KafkaWriterState", version, "transactional_id_prefix", Reflect.call(s, "getTransactionalIdPrefix"));
        if (version >= 2) {
            json.put("owned_subtask", Reflect.call(s, "getOwnedSubtaskId"));
            json.put("owned_subtasks", Reflect.call(s, "getTotalNumberOfOwnedSubtasks"));
            json.put("ownership", Reflect.call(s, "getTransactionOwnership"));
            json.put("precommitted", Json.list((Collection<?>) Reflect.call(s, "getPrecommittedTransactionalIds"),
                    t -> Json.of("transactional_id", Reflect.call(t, "getTransactionalId"), "checkpoint", Reflect.call(t, "getCheckpointId"))));
        }
        return json;
    }

    static SimpleVersionedSerializer<Object> committableSerializer() throws Exception {
        return Reflect.serializer(SINK + "KafkaCommittableSerializer");
    }

    static List<Object> committables() throws Exception {
        return List.of(Reflect.make(SINK + "KafkaCommittable", 3456L, (short) 789, "prefix-0-1", null), Reflect.make(SINK + "KafkaCommittable", Long.MAX_VALUE, Short.MIN_VALUE, "ü", null));
    }

    static Object committable(Object c) throws Exception {
        return Json.versioned("KafkaCommittable", 1, "epoch", Reflect.call(c, "getEpoch"), "producer_id", Reflect.call(c, "getProducerId"), "transactional_id", Reflect.call(c, "getTransactionalId"));
    }
}
