package spt.oracle;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * Through this the runner steers a job in its own process: how far the sources may go, and how far the others have come.
 * One gate per job run; functions find theirs by name.
 */
final class Gate {
    private static final Map<String, Gate> GATES = new ConcurrentHashMap<>();

    private final Set<String> arrived = ConcurrentHashMap.newKeySet();
    private final Map<String, AtomicLong> counters = new ConcurrentHashMap<>();
    private volatile int stage;
    private volatile int open;
    private volatile CompletableFuture<Void> moved = new CompletableFuture<>();
    private volatile boolean slow;
    private volatile long watermark = Long.MIN_VALUE;
    private final List<ObjectNode> fired = new ArrayList<>();

    static Gate open(String run) {
        return GATES.computeIfAbsent(run, name -> new Gate());
    }

    static void drop(String run) {
        GATES.remove(run);
    }

    /** Lets the first `splits` splits of each source emit up to the limit of this stage; stage 0 emits nothing. */
    void raise(int newStage, int splits) {
        open = splits; // before the stage, which readers look at first
        stage = newStage;
        wake();
    }

    /** May this split, counted from 0, emit in this stage? */
    boolean opens(int split) {
        return split < open;
    }

    /** Makes the sources look again. */
    synchronized void wake() {
        CompletableFuture<Void> previous = moved;
        moved = new CompletableFuture<>();
        previous.complete(null);
    }

    int stage() {
        return stage;
    }

    /** Completes when the stage next changes. Take it before asking for the stage. */
    CompletableFuture<Void> moved() {
        return moved;
    }

    /** Lets the sources emit a watermark. */
    void watermark(long newWatermark) {
        watermark = newWatermark;
        wake();
    }

    long watermark() {
        return watermark;
    }

    /** A timer fired. */
    void fire(ObjectNode timer) {
        synchronized (fired) {
            fired.add(timer);
        }
        count("fired");
    }

    List<ObjectNode> fired() {
        synchronized (fired) {
            return new ArrayList<>(fired);
        }
    }

    /** A split has been read to the limit of the stage. */
    void arrive(String source, String split, int atStage) {
        arrived.add(source + "/" + split + "@" + atStage);
    }

    long arrivals(String source, int atStage) {
        return arrived.stream().filter(a -> a.startsWith(source + "/") && a.endsWith("@" + atStage)).count();
    }

    void count(String what) {
        counters.computeIfAbsent(what, name -> new AtomicLong()).incrementAndGet();
    }

    long counted(String what) {
        AtomicLong counter = counters.get(what);
        return counter == null ? 0 : counter.get();
    }

    long countedInAll() {
        return counters.values().stream().mapToLong(AtomicLong::get).sum();
    }

    /** While slow, the operator `slow` holds its first record, so that later ones pile up in the channels. */
    void slow(boolean on) {
        slow = on;
    }

    void passSlowly() throws InterruptedException {
        while (slow) {
            Thread.sleep(5);
        }
    }
}
