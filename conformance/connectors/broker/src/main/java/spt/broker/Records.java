package spt.broker;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.StringDeserializer;
import org.apache.kafka.common.serialization.StringSerializer;

/**
 * Topics and records of a broker.
 *
 * <pre>
 * BOOTSTRAP create TOPIC PARTITIONS
 * BOOTSTRAP produce TOPIC PARTITIONS FROM TO    records P-I to each partition P
 * BOOTSTRAP count TOPIC PARTITIONS ISOLATION    prints how many records a reader of the isolation level sees
 * </pre>
 */
public final class Records {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        String topic = args[2];
        int partitions = Integer.parseInt(args[3]);
        Map<String, Object> conf = Map.of("bootstrap.servers", args[0], "default.api.timeout.ms", "10000", "request.timeout.ms", "5000");
        switch (args[1]) {
            case "create":
                try (Admin admin = Admin.create(conf)) {
                    admin.createTopics(List.of(new NewTopic(topic, Optional.of(partitions), Optional.empty()))).all().get();
                }
                break;
            case "produce":
                try (KafkaProducer<String, String> producer = new KafkaProducer<>(Map.of("bootstrap.servers", args[0]), new StringSerializer(), new StringSerializer())) {
                    for (int i = Integer.parseInt(args[4]); i < Integer.parseInt(args[5]); i++) {
                        for (int p = 0; p < partitions; p++) {
                            producer.send(new ProducerRecord<>(topic, p, null, p + "-" + i));
                        }
                    }
                }
                break;
            case "count":
                out.println(count(args[0], topic, partitions, args[4]));
                break;
            default:
                throw new IllegalArgumentException(args[1]);
        }
    }

    private static int count(String bootstrap, String topic, int partitions, String isolation) {
        Map<String, Object> conf = Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation, "auto.offset.reset", "earliest");
        try (KafkaConsumer<String, String> consumer = new KafkaConsumer<>(conf, new StringDeserializer(), new StringDeserializer())) {
            List<TopicPartition> all = java.util.stream.IntStream.range(0, partitions).mapToObj(p -> new TopicPartition(topic, p)).collect(Collectors.toList());
            consumer.assign(all);
            consumer.seekToBeginning(all);
            // Of a reader of committed records, the end is the last stable offset.
            Map<TopicPartition, Long> ends = consumer.endOffsets(all);
            int n = 0;
            while (ends.entrySet().stream().anyMatch(e -> consumer.position(e.getKey()) < e.getValue())) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(200))) {
                    n++;
                }
            }
            return n;
        }
    }
}
