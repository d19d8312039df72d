package spt.connectors.other;

import java.io.Serializable;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.connector.base.sink.writer.BufferedRequestState;
import org.apache.flink.connector.base.sink.writer.RequestEntryWrapper;
import org.apache.flink.connector.dynamodb.sink.DynamoDbWriteRequest;
import org.apache.flink.connector.dynamodb.sink.DynamoDbWriteRequestType;
import org.apache.flink.connector.dynamodb.sink.DynamoDbWriterStateSerializer;
import org.apache.flink.connector.firehose.sink.KinesisFirehoseStateSerializer;
import software.amazon.awssdk.core.SdkBytes;
import software.amazon.awssdk.services.dynamodb.model.AttributeValue;
import software.amazon.awssdk.services.firehose.model.Record;
import spt.connectors.Json;
import spt.connectors.Kinds;

/** Asynchronous sinks: DynamoDB and Firehose. */
public final class Aws implements Kinds.Catalogue {
    @Override
    public void addTo(Kinds kinds) {
        Map<String, AttributeValue> inner = new LinkedHashMap<>();
        inner.put("n", AttributeValue.fromN("-12.5"));
        inner.put("null", AttributeValue.fromNul(true));
        Map<String, AttributeValue> item = new LinkedHashMap<>();
        item.put("key-ü", AttributeValue.fromS("漢字"));
        item.put("yes", AttributeValue.fromBool(true));
        item.put("bytes", AttributeValue.fromB(SdkBytes.fromByteArray(new byte[] {0, -1})));
        item.put("strings", AttributeValue.fromSs(List.of("a", "")));
        item.put("numbers", AttributeValue.fromNs(List.of("1", "2")));
        item.put("binaries", AttributeValue.fromBs(List.of(SdkBytes.fromByteArray(new byte[0]), SdkBytes.fromByteArray(new byte[] {7}))));
        item.put("list", AttributeValue.fromL(List.of(AttributeValue.fromM(inner), AttributeValue.fromL(List.of()))));
        item.put("map", AttributeValue.fromM(inner));
        kinds.add("DynamoDbWriterState", new DynamoDbWriterStateSerializer(),
                (s, v) -> Json.versioned("DynamoDbWriterState", v, "requests", Json.list(s.getBufferedRequestEntries(), r -> Json.of("size", r.getSize(),
                        "kind", r.getRequestEntry().getType().name().toLowerCase(), "item", item(r.getRequestEntry().getItem())))),
                List.of(state(request(DynamoDbWriteRequestType.PUT, item), request(DynamoDbWriteRequestType.DELETE, inner)), state(request(DynamoDbWriteRequestType.DELETE, Map.of()))));
        kinds.add("KinesisFirehoseWriterState", new KinesisFirehoseStateSerializer(),
                (s, v) -> Json.versioned("KinesisFirehoseWriterState", v, "requests", Json.list(s.getBufferedRequestEntries(), r -> Json.of("data", r.getRequestEntry().data().asByteArray(), "key", null))),
                List.of(state(record("one"), record("two, ü")), state(record("only"))));
    }

    @SafeVarargs
    private static <T extends Serializable> BufferedRequestState<T> state(RequestEntryWrapper<T>... requests) {
        return new BufferedRequestState<>(List.of(requests));
    }

    private static RequestEntryWrapper<DynamoDbWriteRequest> request(DynamoDbWriteRequestType type, Map<String, AttributeValue> item) {
        return new RequestEntryWrapper<>(DynamoDbWriteRequest.builder().setType(type).setItem(item).build(), 1000);
    }

    private static RequestEntryWrapper<Record> record(String data) {
        SdkBytes bytes = SdkBytes.fromUtf8String(data);
        return new RequestEntryWrapper<>(Record.builder().data(bytes).build(), bytes.asByteArray().length);
    }

    private static Object item(Map<String, AttributeValue> item) throws Exception {
        return Json.list(item.entrySet(), e -> Json.of("name", e.getKey(), "value", json(e.getValue())));
    }

    private static Object json(AttributeValue v) throws Exception {
        switch (v.type()) {
            case S:
                return Json.of("string", v.s());
            case N:
                return Json.of("number", v.n());
            case BOOL:
                return Json.of("boolean", v.bool());
            case NUL:
                return Json.of("null", null);
            case B:
                return Json.of("binary", v.b().asByteArray());
            case SS:
                return Json.of("strings", v.ss());
            case NS:
                return Json.of("numbers", v.ns());
            case BS:
                return Json.of("binaries", Json.list(v.bs(), SdkBytes::asByteArray));
            case L:
                return Json.of("list", Json.list(v.l(), Aws::json));
            default:
                return Json.of("map", item(v.m()));
        }
    }
}
