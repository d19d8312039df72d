package spt.oracle;

import java.util.Iterator;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.state.api.OperatorIdentifier;
import org.apache.flink.state.api.SavepointReader;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.util.CloseableIterator;

/**
 * Times Flink's State Processor API on one list or union state: how long until all its elements have been read, from a warm
 * process.
 *
 * <p>Arguments: the snapshot's folder; the operator's uid; the state's name; list or union; the type of its elements: long,
 * string, or named-long (a tuple of both). Prints one JSON object.
 */
public final class ReadState {
    public static void main(String[] args) throws Exception {
        ObjectNode result = Json.object();
        result.put("flink", Runner.flinkVersion());
        for (String run : new String[] {"cold", "warm"}) {
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

    private static <T> long read(String snapshot, String uid, String state, boolean union, TypeInformation<T> type)
            throws Exception {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(1);
        SavepointReader reader = SavepointReader.read(env, "file:" + snapshot);
        OperatorIdentifier operator = OperatorIdentifier.forUid(uid);
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
