package spt.oracle;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Times Flink's own loader on a _metadata file: once cold (the first load of this process, classes included), then warm.
 *
 * <p>Arguments: the snapshot's folder; how many warm loads (default 9, may be 0). Prints one JSON object; warm is the median.
 * What the start of the process costs, whoever starts it has to measure.
 */
public final class LoadMetadata {
    public static void main(String[] args) throws Exception {
        Path snapshot = Path.of(args[0]);
        int times = args.length > 1 ? Integer.parseInt(args[1]) : 9;
        long cold = load(snapshot);
        long[] warm = new long[times];
        for (int i = 0; i < times; i++) {
            warm[i] = load(snapshot);
        }
        Arrays.sort(warm);
        ObjectNode result = Json.object();
        result.put("flink", Runner.flinkVersion());
        result.put("bytes", Files.size(snapshot.resolve("_metadata")));
        result.put("cold_ns", cold);
        if (times > 0) {
            result.put("warm_ns", warm[times / 2]);
        }
        System.out.println(Json.MAPPER.writeValueAsString(result));
    }

    private static long load(Path snapshot) throws Exception {
        long start = System.nanoTime();
        if (MetadataDump.load(snapshot).getOperatorStates().isEmpty()) {
            throw new IllegalStateException("nothing in it");
        }
        return System.nanoTime() - start;
    }

    private LoadMetadata() {}
}
