package spt.oracle;

import java.util.Iterator;
import java.util.List;
import org.apache.flink.api.common.typeinfo.PrimitiveArrayTypeInfo;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;

/**
 * Times Flink's State Processor API on one list or union state: how long until all its elements have been read, the first
 * time in this process and, if asked for, once more.
 *
 * <p>Arguments: the snapshot's folder; the operator's uid, or its id as 32 hexadecimal digits; the state's name; list or union;
 * the type of its elements: bytes, long, string, or named-long (a tuple of both); how many runs, 1 or 2 (default 2). Prints
 * one JSON object.
 */
public final class ReadState {
    public static void main(String[] args) throws Exception {
        ObjectNode result = Json.object();
        result.put("flink", Runner.flinkVersion());
        int runs = args.length > 5 ? Integer.parseInt(args[5]) : 2;
        for (String run : List.of("cold", "warm").subList(0, runs)) {
            long start = System.nanoTime();
            long elements = read(args[0], args[1], args[2], args[3].equals("union"), type(args[4]));
            result.put(run + "_ns", System.nanoTime() - start);
            result.put("elements", elements);
        }
        System.out.println(Json.MAPPER.writeValueAsString(result));
        System.exit(0);
    }

    private static TypeInformation<?> type(String name) {
        switch (name) {
            case "bytes":
                return PrimitiveArrayTypeInfo.BYTE_PRIMITIVE_ARRAY_TYPE_INFO;
            case "long":
                return Types.LONG;
            case "string":
                return Types.STRING;
            case "named-long":
                return Values.NAMED_LONG;
            default:
                throw new IllegalArgumentException("unknown type " + name);
        }
    }

    private static <T> long read(String snapshot, String name, String state, boolean union, TypeInformation<T> type)
            throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        SavepointReader reader = SavepointReader.read(env, "file:" + snapshot);
        OperatorIdentifier operator = name.matches("[0-9a-f]{32}")
                ? OperatorIdentifier.forUidHash(name) : OperatorIdentifier.forUid(name);
        DataStream<T> elements =
                union ? reader.readUnionState(operator, state, type) : reader.readListState(operator, state, type);
        long count = 0;
        try (CloseableIterator<T> all = elements.executeAndCollect()) {
            for (Iterator<T> i = all; i.hasNext(); i.next()) {
                count++;
            }
        }
        return count;
    }

    private ReadState() {}
}
