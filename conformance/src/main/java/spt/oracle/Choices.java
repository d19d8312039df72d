package spt.oracle;

import java.io.Serializable;
import java.util.List;
import java.util.Map;

/** How a restoring job differs from the one that made the snapshot. */
public final class Choices implements Serializable {
    public int parallelism; // 0: as in the options
    public boolean allowNonRestored;

    /** Makes the snapshot the job's own: its files may stay in use by later checkpoints. For proceed. */
    public boolean claim;

    /** Lets RocksDB import the files of several handles instead of copying their entries. */
    public boolean ingest;

    /** New uid of an operator, by its uid in the shape. */
    public Map<String, String> uids = Map.of();

    /** "list" or "union", by name of an operator state: how the job asks for it. */
    public Map<String, String> modes = Map.of();

    /**
     * Which operator states the operator `lists` asks for: "shape" those of the shape, "none", "found" every one that the
     * backend holds, with the serializer that wrote it.
     */
    public String register = "shape";

    /** When given, only these states are asked for (operator and keyed). */
    public List<String> only;

    String uid(String uid) {
        return uids.getOrDefault(uid, uid);
    }

    boolean asksFor(String state) {
        return only == null || only.contains(state);
    }

    boolean union(String state, boolean otherwise) {
        String mode = modes.get(state);
        return mode == null ? otherwise : mode.equals("union");
    }
}
