package spt.connectors;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Constructor;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Collection;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.connector.base.source.hybrid.HybridSourceSplit;
import org.apache.flink.connector.base.source.hybrid.HybridSourceSplitSerializer;
import org.apache.flink.connector.file.src.FileSourceSplit;
import org.apache.flink.connector.file.src.FileSourceSplitSerializer;
import org.apache.flink.connector.file.src.PendingSplitsCheckpoint;
import org.apache.flink.connector.file.src.PendingSplitsCheckpointSerializer;
import org.apache.flink.connector.file.src.util.CheckpointedPosition;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplit;
import org.apache.flink.connector.kafka.dynamic.source.split.DynamicKafkaSourceSplitSerializer;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumState;
import org.apache.flink.connector.kafka.source.enumerator.KafkaSourceEnumStateSerializer;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplit;
import org.apache.flink.connector.kafka.source.split.KafkaPartitionSplitSerializer;
import org.apache.flink.core.fs.Path;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.kafka.common.TopicPartition;

/**
 * The connectors' own serializers. "vectors" prints a line for each of many structures: class, version, bytes in hex, and what they say. "read" reads lines of class,
 * version and bytes, and prints what the serializer reads in them, or an error.
 */
public final class Vectors {
    /** A serializer and how its objects are described. */
    private record Kind<T>(SimpleVersionedSerializer<T> serializer, Describe<T> describe, List<T> samples) {
        String vector(String name, T sample) throws Exception {
            return String.join("\t", name, String.valueOf(serializer.getVersion()), HexFormat.of().formatHex(serializer.serialize(sample)), describe.of(sample));
        }

        String read(int version, byte[] bytes) throws Exception {
            return describe.of(serializer.deserialize(version, bytes));
        }
    }

    private interface Describe<T> {
        String of(T value) throws Exception;
    }

    private static final String KAFKA = "org.apache.flink.connector.kafka.";

    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Map<String, Kind<?>> kinds = kinds();
        if (args[0].equals("vectors")) {
            for (Map.Entry<String, Kind<?>> e : kinds.entrySet()) {
                printAll(out, e.getKey(), e.getValue());
            }
            return;
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t");
            try {
                out.println(kinds.get(parts[0]).read(Integer.parseInt(parts[1]), HexFormat.of().parseHex(parts[2])));
            } catch (Throwable failure) {
                out.println("error: " + failure);
            }
        }
    }

    private static <T> void printAll(PrintStream out, String name, Kind<T> kind) throws Exception {
        for (T sample : kind.samples()) {
            out.println(kind.vector(name, sample));
        }
    }

    private static Map<String, Kind<?>> kinds() throws Exception {
        Map<String, Kind<?>> kinds = new LinkedHashMap<>();
        List<KafkaPartitionSplit> splits = List.of(
                split("orders", 0, 15000), split("orders", 1, -1), split("orders", 2, -2), split("orders", 3, -3),
                new KafkaPartitionSplit(new TopicPartition("tópico-漢字", 2147483647), 7, Long.MAX_VALUE), new KafkaPartitionSplit(new TopicPartition("a.b_c-d", 4), Long.MAX_VALUE - 1));
        kinds.put("KafkaPartitionSplit", new Kind<>(new KafkaPartitionSplitSerializer(), Vectors::text, splits));
        kinds.put("DynamicKafkaSourceSplit", new Kind<>(new DynamicKafkaSourceSplitSerializer(), s -> s.getKafkaClusterId() + " " + text(s.getKafkaPartitionSplit()),
                splits.stream().map(s -> new DynamicKafkaSourceSplit("cluster-1", s)).collect(Collectors.toList())));
        kinds.put("KafkaSourceEnumState", new Kind<>(new KafkaSourceEnumStateSerializer(), Vectors::text, List.of(
                enumState(List.of(), List.of(), false), enumState(splits.subList(0, 3), List.of(), true), enumState(splits.subList(0, 2), splits.subList(2, 6), true))));
        kinds.put("KafkaWriterState", writer());
        kinds.put("KafkaCommittable", committable());
        kinds.put("NumberSequenceSplit", new Kind<>(numbers().getSplitSerializer(), s -> s.splitId() + " " + s.from() + ".." + s.to(),
                List.of(new NumberSequenceSource.NumberSequenceSplit("1", 10, 19), new NumberSequenceSource.NumberSequenceSplit("two", -5, Long.MAX_VALUE))));
        kinds.put("NumberSequenceSplits", new Kind<>(numbers().getEnumeratorCheckpointSerializer(),
                all -> all.stream().map(s -> s.splitId() + " " + s.from() + ".." + s.to()).collect(Collectors.joining(", ")),
                List.of(List.of(new NumberSequenceSource.NumberSequenceSplit("3", 4, 9), new NumberSequenceSource.NumberSequenceSplit("4", 10, 12)))));
        kinds.put("HybridSourceSplit", new Kind<>(new HybridSourceSplitSerializer(),
                s -> s.sourceIndex() + " " + s.splitId() + " " + text(new KafkaPartitionSplitSerializer().deserialize(s.wrappedSplitSerializerVersion(), s.wrappedSplitBytes())),
                List.of(new HybridSourceSplit(1, new KafkaPartitionSplitSerializer().serialize(splits.get(0)), 0, "orders-0"))));
        List<FileSourceSplit> files = List.of(
                new FileSourceSplit("0000000001", new Path("file:///data/in/a.csv"), 0, 100, 1700000000000L, 100),
                new FileSourceSplit("0000000002", new Path("hdfs://nn:8020/data/ü.csv"), 50, 100, 1, 150, new String[] {"h1", "h2"}, new CheckpointedPosition(60, 5)),
                new FileSourceSplit("x", new Path("/plain"), 0, 1, 2, 3, new String[0], new CheckpointedPosition(CheckpointedPosition.NO_OFFSET, 9)));
        kinds.put("FileSourceSplit", new Kind<>(FileSourceSplitSerializer.INSTANCE, Vectors::text, files));
        kinds.put("PendingSplitsCheckpoint", new Kind<>(new PendingSplitsCheckpointSerializer<>(FileSourceSplitSerializer.INSTANCE),
                c -> c.getSplits().stream().map(Vectors::text).collect(Collectors.joining(", ")) + " | " + c.getAlreadyProcessedPaths().stream().map(Path::toString).collect(Collectors.joining(", ")),
                List.of(PendingSplitsCheckpoint.fromCollectionSnapshot(files, List.of(new Path("file:/data/done/b.csv"), new Path("s3://bucket/ü"))),
                        PendingSplitsCheckpoint.fromCollectionSnapshot(List.of(files.get(0))))));
        return kinds;
    }

    private static NumberSequenceSource numbers() {
        return new NumberSequenceSource(0, 1);
    }

    private static KafkaPartitionSplit split(String topic, int partition, long offset) {
        return new KafkaPartitionSplit(new TopicPartition(topic, partition), offset);
    }

    private static String text(KafkaPartitionSplit s) {
        return s.getTopic() + "/" + s.getPartition() + "@" + s.getStartingOffset() + s.getStoppingOffset().map(stop -> ".." + stop).orElse("");
    }

    private static String text(FileSourceSplit s) {
        return String.join(" ", s.splitId(), s.path().toString(), String.valueOf(s.offset()), String.valueOf(s.length()), String.valueOf(s.fileModificationTime()), String.valueOf(s.fileSize()),
                String.join("+", s.hostnames()), s.getReaderPosition().map(p -> p.getOffset() + "+" + p.getRecordsAfterOffset()).orElse("-"));
    }

    private static KafkaSourceEnumState enumState(List<KafkaPartitionSplit> assigned, List<KafkaPartitionSplit> unassigned, boolean finished) throws Exception {
        for (Constructor<?> c : KafkaSourceEnumState.class.getConstructors()) {
            if (c.getParameterCount() != 3) {
                continue;
            }
            if (c.getParameterTypes()[0] == Set.class) {
                return (KafkaSourceEnumState) c.newInstance(partitions(assigned), partitions(unassigned), finished);
            }
            return (KafkaSourceEnumState) c.newInstance(assigned, unassigned, finished);
        }
        throw new IllegalStateException("no known constructor");
    }

    private static Set<TopicPartition> partitions(List<KafkaPartitionSplit> splits) {
        return splits.stream().map(KafkaPartitionSplit::getTopicPartition).collect(Collectors.toCollection(LinkedHashSet::new));
    }

    private static String text(KafkaSourceEnumState s) throws Exception {
        return all(s, "assignedPartitions", "assignedSplits") + " | " + all(s, "unassignedInitialPartitions", "unassignedSplits") + " | " + s.initialDiscoveryFinished();
    }

    private static Collection<String> all(KafkaSourceEnumState s, String partitions, String splits) throws Exception {
        Collection<?> found;
        try {
            found = (Collection<?>) s.getClass().getMethod(splits).invoke(s);
        } catch (NoSuchMethodException older) {
            found = (Collection<?>) s.getClass().getMethod(partitions).invoke(s);
        }
        Collection<String> texts = new TreeSet<>();
        for (Object o : found) {
            texts.add(o instanceof KafkaPartitionSplit ? text((KafkaPartitionSplit) o) : ((TopicPartition) o).topic() + "/" + ((TopicPartition) o).partition());
        }
        return texts;
    }

    private static Object get(Object o, String method) throws Exception {
        Method m = o.getClass().getMethod(method);
        m.setAccessible(true);
        return m.invoke(o);
    }

    @SuppressWarnings("unchecked")
    private static <T> SimpleVersionedSerializer<T> serializer(String name) throws Exception {
        Constructor<?> c = Class.forName(KAFKA + name).getDeclaredConstructor();
        c.setAccessible(true);
        return (SimpleVersionedSerializer<T>) c.newInstance();
    }

    private static Kind<Object> writer() throws Exception {
        Constructor<?> c = Class.forName(KAFKA + "sink.KafkaWriterState").getDeclaredConstructors()[0];
        c.setAccessible(true);
        List<Object> samples = new ArrayList<>();
        if (c.getParameterCount() == 1) {
            samples.add(c.newInstance("prefix-ü"));
        } else {
            Class<?> transaction = Class.forName(KAFKA + "sink.internal.CheckpointTransaction");
            Object[] ownerships = Class.forName(KAFKA + "sink.internal.TransactionOwnership").getEnumConstants();
            Object precommitted = transaction.getConstructor(String.class, long.class).newInstance("prefix-0-7", 7L);
            samples.add(c.newInstance("prefix-ü", 0, 2, ownerships[0], List.of()));
            samples.add(c.newInstance("prefix", 1, 2, ownerships[1], List.of(precommitted)));
        }
        return new Kind<>(serializer("sink.KafkaWriterStateSerializer"), s -> {
            String text = (String) get(s, "getTransactionalIdPrefix");
            try {
                text += " " + get(s, "getOwnedSubtaskId") + "/" + get(s, "getTotalNumberOfOwnedSubtasks") + " " + get(s, "getTransactionOwnership");
                for (Object t : (Collection<?>) get(s, "getPrecommittedTransactionalIds")) {
                    text += " " + get(t, "getTransactionalId") + "@" + get(t, "getCheckpointId");
                }
            } catch (NoSuchMethodException older) {
                // version 1 has the prefix only
            }
            return text;
        }, samples);
    }

    private static Kind<Object> committable() throws Exception {
        for (Constructor<?> c : Class.forName(KAFKA + "sink.KafkaCommittable").getDeclaredConstructors()) {
            if (c.getParameterCount() == 4) {
                c.setAccessible(true);
                List<Object> samples = List.of(c.newInstance(3456L, (short) 789, "prefix-0-1", null), c.newInstance(Long.MAX_VALUE, Short.MIN_VALUE, "ü", null));
                return new Kind<>(serializer("sink.KafkaCommittableSerializer"), s -> get(s, "getTransactionalId") + " " + get(s, "getProducerId") + " " + get(s, "getEpoch"), samples);
            }
        }
        throw new IllegalStateException("no known constructor");
    }
}
