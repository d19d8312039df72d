package spt.oracle;

import java.io.Serializable;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** What job runs and how its snapshot is taken. The names are those of about.json. */
public final class Options implements Serializable {
    public String shape = "operator";
    public int parallelism = 2;
    public int maxParallelism = 128;
    public String backend = "hashmap"; // or rocksdb
    public String format = "canonical"; // of a savepoint; or native
    public boolean checkpoint; // a retained checkpoint instead of a savepoint
    public boolean incremental;
    public boolean compress;
    public boolean changelog;
    public boolean unaligned; // with in-flight data
    public boolean fileMerging;
    public boolean heapTimers; // with rocksdb
    public boolean asynchronous; // the asynchronous state API, from 2.0 on
    public Map<String, String> configuration = Map.of(); // more options of the job
    public int checkpoints = 1; // how many are taken, with more elements before each; the last one counts
    public int elements = 6; // emitted before each checkpoint; and the scale of list states
    public int keys = 12;
    public int states = 5; // list states in one operator
    public int restores; // how often the job is restored before the snapshot that counts
    public int startParallelism; // of the first run; 0: as parallelism
    public List<Integer> via; // parallelism of the runs before the last; overrides restores
    public int blob; // size of an element in an extra list state; 0: no such state
    public int inlineThreshold = -1; // bytes; -1: Flink's default
    public int seed = 1;
    public String keyType = "long"; // string, tuple, pojo, row, rowdata, avro
    public String at; // the folder that the snapshot names in its absolute paths; or a URI of another file system, below which it stays

    boolean remote() {
        return at != null && at.contains("://");
    }

    /** The parallelism of the first run: the source is cut into that many splits. */
    int firstParallelism() {
        if (via != null && !via.isEmpty()) {
            return via.get(0);
        }
        return startParallelism > 0 ? startParallelism : parallelism;
    }

    /** The parallelism of every run, the one that counts last. */
    List<Integer> runs() {
        List<Integer> runs = new ArrayList<>();
        if (via != null) {
            runs.addAll(via);
        } else {
            for (int i = 0; i < restores; i++) {
                runs.add(firstParallelism());
            }
        }
        runs.add(parallelism);
        return runs;
    }
}
