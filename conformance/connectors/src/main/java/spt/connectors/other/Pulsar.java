package spt.connectors.other;

import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.apache.flink.connector.pulsar.sink.committer.PulsarCommittable;
import org.apache.flink.connector.pulsar.sink.committer.PulsarCommittableSerializer;
import org.apache.flink.connector.pulsar.source.enumerator.PulsarSourceEnumState;
import org.apache.flink.connector.pulsar.source.enumerator.PulsarSourceEnumStateSerializer;
import org.apache.flink.connector.pulsar.source.enumerator.cursor.StopCursor;
import org.apache.flink.connector.pulsar.source.enumerator.topic.TopicPartition;
import org.apache.flink.connector.pulsar.source.enumerator.topic.TopicRange;
import org.apache.flink.connector.pulsar.source.split.PulsarPartitionSplit;
import org.apache.flink.connector.pulsar.source.split.PulsarPartitionSplitSerializer;
import org.apache.flink.util.InstantiationUtil;
import org.apache.pulsar.client.api.MessageId;
import org.apache.pulsar.client.api.transaction.TxnID;
import org.apache.pulsar.client.impl.MessageIdImpl;
import spt.connectors.Json;
import spt.connectors.Kinds;

/** Pulsar. */
public final class Pulsar implements Kinds.Catalogue {
    private static final TopicPartition PARTITION = new TopicPartition("persistent://tenant/space/orders-ü", 3, List.of(new TopicRange(0, 99), new TopicRange(200, 65535)));
    private static final TopicPartition WHOLE = new TopicPartition("orders");

    @Override
    public void addTo(Kinds kinds) {
        MessageId id = new MessageIdImpl(12, Long.MAX_VALUE, 3);
        kinds.add("PulsarPartitionSplit", PulsarPartitionSplitSerializer.INSTANCE, Pulsar::json, List.of(
                new PulsarPartitionSplit(PARTITION, StopCursor.never()), new PulsarPartitionSplit(WHOLE, StopCursor.atPublishTime(1700000000000L), id, null),
                new PulsarPartitionSplit(PARTITION, StopCursor.afterMessageId(id), null, new TxnID(Long.MIN_VALUE, 7)), new PulsarPartitionSplit(WHOLE, StopCursor.never(), id, new TxnID(-1, 0))));
        kinds.add("PulsarSourceEnumState", PulsarSourceEnumStateSerializer.INSTANCE, (s, v) -> Json.versioned("PulsarSourceEnumState", v, "partitions", Json.list(s.getAppendedPartitions(), Pulsar::json)),
                List.of(PulsarSourceEnumState.initialState(), new PulsarSourceEnumState(new LinkedHashSet<>(List.of(PARTITION, WHOLE))), new PulsarSourceEnumState(Set.of(WHOLE))));
        kinds.add("PulsarCommittable", new PulsarCommittableSerializer(),
                (c, v) -> Json.versioned("PulsarCommittable", v, "most_bits", c.getTxnID().getMostSigBits(), "least_bits", c.getTxnID().getLeastSigBits(), "topic", c.getTopic()),
                List.of(new PulsarCommittable(new TxnID(Long.MIN_VALUE, 7), "persistent://a/b/ü"), new PulsarCommittable(new TxnID(0, Long.MAX_VALUE), "")));
    }

    private static Object json(PulsarPartitionSplit s, int version) throws Exception {
        return Json.versioned("PulsarPartitionSplit", version, "partition", json(s.getPartition()), "stop_cursor", InstantiationUtil.serializeObject(s.getStopCursor()),
                "message_id", Json.orNull(s.getLatestConsumedId(), MessageId::toByteArray),
                "transaction", Json.orNull(s.getUncommittedTransactionId(), t -> Json.of("most_bits", t.getMostSigBits(), "least_bits", t.getLeastSigBits())));
    }

    private static Object json(TopicPartition p) throws Exception {
        return Json.of("topic", p.getTopic(), "partition", p.getPartitionId(), "ranges", Json.list(p.getRanges(), r -> Json.of("start", r.getStart(), "end", r.getEnd())));
    }
}
