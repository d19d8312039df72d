package spt.connectors;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.api.common.serialization.SimpleStringSchema;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.connector.base.DeliveryGuarantee;
import org.apache.flink.connector.kafka.sink.KafkaRecordSerializationSchema;
import org.apache.flink.connector.kafka.sink.KafkaSink;
import org.apache.flink.connector.kafka.source.KafkaSource;
import org.apache.flink.connector.kafka.source.enumerator.initializer.OffsetsInitializer;
import org.apache.flink.core.execution.JobClient;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * A job that reads a topic, and with SINK writes what it read to another one, exactly once. It runs until it has read COUNT records, waits a moment for more, takes a
 * savepoint below DIR, prints its path and what was read, and is cancelled.
 *
 * <p>Arguments: BOOTSTRAP TOPIC COUNT DIR FROM SINK; FROM is a savepoint to restore, "-" for none; SINK is "-" or a topic, also the prefix of transactional ids.
 */
public final class Job {
    private static final Queue<String> READ = new ConcurrentLinkedQueue<>();

    /** Keeps what passes: the job runs in this process. */
    private static final class Keep implements MapFunction<String, String> {
        @Override
        public String map(String value) {
            READ.add(value);
            return value;
        }
    }

    public static void main(String[] args) {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        try {
            run(out, args[0], args[1], Integer.parseInt(args[2]), args[3], args[4], args[5]);
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.exit(0); // threads of the cluster stay
    }

    private static void run(PrintStream out, String bootstrap, String topic, int count, String dir, String from, String sink) throws Exception {
        Configuration conf = new Configuration();
        conf.setString("rest.address", "localhost");
        conf.setString("rest.bind-address", "127.0.0.1");
        conf.setString("rest.bind-port", "0");
        conf.setString("jobmanager.bind-host", "127.0.0.1");
        conf.setString("taskmanager.bind-host", "127.0.0.1");
        conf.setString("taskmanager.memory.network.min", "16mb");
        conf.setString("taskmanager.memory.network.max", "16mb");
        conf.setString("execution.checkpointing.storage", "jobmanager"); // only savepoints: no checkpoint commits anything
        conf.setString("restart-strategy.type", "none");
        if (!from.equals("-")) {
            conf.setString("execution.state-recovery.path", from);
            conf.setString("execution.savepoint.path", from);
        }
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, conf);
        KafkaSource<String> source = KafkaSource.<String>builder().setBootstrapServers(bootstrap).setTopics(topic).setGroupId("spt")
                .setStartingOffsets(OffsetsInitializer.earliest()).setValueOnlyDeserializer(new SimpleStringSchema()).build();
        DataStream<String> read = env.fromSource(source, WatermarkStrategy.noWatermarks(), "kafka").uid("orders-source").map(new Keep()).uid("keep");
        if (sink.equals("-")) {
            read.print();
        } else {
            KafkaSink<String> to = KafkaSink.<String>builder().setBootstrapServers(bootstrap).setDeliveryGuarantee(DeliveryGuarantee.EXACTLY_ONCE).setTransactionalIdPrefix(sink)
                    .setProperty("transaction.timeout.ms", "600000")
                    .setRecordSerializer(KafkaRecordSerializationSchema.<String>builder().setTopic(sink).setValueSerializationSchema(new SimpleStringSchema()).build()).build();
            read.sinkTo(to).uid("orders-sink");
        }
        JobClient job = env.executeAsync("orders");
        while (READ.size() < count) {
            if (job.getJobStatus().get().isGloballyTerminalState()) {
                job.getJobExecutionResult().get();
                throw new IllegalStateException("the job ended");
            }
            Thread.sleep(20);
        }
        Thread.sleep(1500); // a record more would come now
        String savepoint = null;
        for (int attempt = 0; savepoint == null; attempt++) {
            try {
                savepoint = job.triggerSavepoint(dir, SavepointFormatType.CANONICAL).get(60, TimeUnit.SECONDS);
            } catch (ExecutionException tooEarly) { // tasks that commit what they restored do not run yet
                if (attempt == 100) {
                    throw tooEarly;
                }
                Thread.sleep(200);
            }
        }
        job.cancel().get(30, TimeUnit.SECONDS);
        out.println("savepoint " + savepoint);
        READ.forEach(record -> out.println("record " + record));
    }
}
