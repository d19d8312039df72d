package spt.oracle;

import java.io.Serializable;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Deque;
import java.util.Iterator;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import org.apache.flink.api.common.eventtime.Watermark;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.connector.source.Boundedness;
import org.apache.flink.api.connector.source.ReaderOutput;
import org.apache.flink.api.connector.source.Source;
import org.apache.flink.api.connector.source.SourceReader;
import org.apache.flink.api.connector.source.SourceReaderContext;
import org.apache.flink.api.connector.source.SplitEnumerator;
import org.apache.flink.api.connector.source.SplitEnumeratorContext;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource.NumberSequenceSplit;
import org.apache.flink.api.connector.source.lib.NumberSequenceSource;
import org.apache.flink.api.java.typeutils.ResultTypeQueryable;
import org.apache.flink.core.io.InputStatus;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * Numbers in splits, as Flink's own number source stores them, but who reads which split is fixed (split i, subtask i) and
 * the gate says how far. Splits beyond the parallelism stay in the coordinator.
 */
final class NumberSource
        implements Source<Long, NumberSequenceSplit, Collection<NumberSequenceSplit>>, ResultTypeQueryable<Long> {
    /** What the source holds: `splits` ranges, of which each stage reads `perStage` numbers. */
    static final class Plan implements Serializable {
        final String run;
        final String name;
        final int splits;
        final long perStage;
        final int stages;

        Plan(String run, String name, int splits, long perStage, int stages) {
            this.run = run;
            this.name = name;
            this.splits = splits;
            this.perStage = perStage;
            this.stages = stages;
        }

        /** Two stages more than the job reads: one for a job that proceeds, and a rest in every split. */
        long start(int split) {
            return split * perStage * (stages + 2);
        }

        long limit(String splitId, int stage) {
            return start(Integer.parseInt(splitId) - 1) + perStage * stage;
        }
    }

    private final Plan plan;
    private final NumberSequenceSource serializers = new NumberSequenceSource(0, 1);

    NumberSource(Plan plan) {
        this.plan = plan;
    }

    @Override
    public Boundedness getBoundedness() {
        return Boundedness.CONTINUOUS_UNBOUNDED;
    }

    @Override
    public SourceReader<Long, NumberSequenceSplit> createReader(SourceReaderContext context) {
        return new Reader(plan);
    }

    @Override
    public SplitEnumerator<NumberSequenceSplit, Collection<NumberSequenceSplit>> createEnumerator(
            SplitEnumeratorContext<NumberSequenceSplit> context) {
        List<NumberSequenceSplit> splits = new ArrayList<>();
        for (int i = 0; i < plan.splits; i++) {
            splits.add(new NumberSequenceSplit(String.valueOf(i + 1), plan.start(i), plan.start(i + 1) - 1));
        }
        return new Enumerator(context, splits, true);
    }

    @Override
    public SplitEnumerator<NumberSequenceSplit, Collection<NumberSequenceSplit>> restoreEnumerator(
            SplitEnumeratorContext<NumberSequenceSplit> context, Collection<NumberSequenceSplit> unassigned) {
        return new Enumerator(context, new ArrayList<>(unassigned), false);
    }

    @Override
    public SimpleVersionedSerializer<NumberSequenceSplit> getSplitSerializer() {
        return serializers.getSplitSerializer();
    }

    @Override
    public SimpleVersionedSerializer<Collection<NumberSequenceSplit>> getEnumeratorCheckpointSerializer() {
        return serializers.getEnumeratorCheckpointSerializer();
    }

    @Override
    public TypeInformation<Long> getProducedType() {
        return Types.LONG;
    }

    private static final class Enumerator
            implements SplitEnumerator<NumberSequenceSplit, Collection<NumberSequenceSplit>> {
        private final SplitEnumeratorContext<NumberSequenceSplit> context;
        private final List<NumberSequenceSplit> unassigned;
        private final boolean assigns;

        Enumerator(SplitEnumeratorContext<NumberSequenceSplit> context, List<NumberSequenceSplit> splits, boolean assigns) {
            this.context = context;
            this.unassigned = splits;
            this.assigns = assigns;
        }

        @Override
        public void addReader(int subtask) {
            if (!assigns) {
                return;
            }
            Iterator<NumberSequenceSplit> splits = unassigned.iterator();
            while (splits.hasNext()) {
                NumberSequenceSplit split = splits.next();
                if (split.splitId().equals(String.valueOf(subtask + 1))) {
                    splits.remove();
                    context.assignSplit(split, subtask);
                }
            }
        }

        @Override
        public void addSplitsBack(List<NumberSequenceSplit> splits, int subtask) {
            unassigned.addAll(splits);
        }

        @Override
        public Collection<NumberSequenceSplit> snapshotState(long checkpointId) {
            return new ArrayList<>(unassigned);
        }

        @Override
        public void start() {}

        @Override
        public void handleSplitRequest(int subtask, String host) {}

        @Override
        public void close() {}
    }

    private static final class Reader implements SourceReader<Long, NumberSequenceSplit> {
        /** A split and the next number to read from it. */
        private static final class Position {
            final NumberSequenceSplit split;
            long next;

            Position(NumberSequenceSplit split) {
                this.split = split;
                this.next = split.from();
            }
        }

        private final Plan plan;
        private final Gate gate;
        private final Deque<Position> positions = new ArrayDeque<>();
        private CompletableFuture<Void> available = CompletableFuture.completedFuture(null);
        private long watermark = Long.MIN_VALUE;

        Reader(Plan plan) {
            this.plan = plan;
            this.gate = Gate.open(plan.run);
        }

        @Override
        public InputStatus pollNext(ReaderOutput<Long> output) {
            CompletableFuture<Void> moved = gate.moved();
            int stage = gate.stage();
            if (gate.watermark() > watermark) {
                watermark = gate.watermark();
                output.emitWatermark(new Watermark(watermark));
            }
            for (Position position : positions) {
                if (!gate.opens(Integer.parseInt(position.split.splitId()) - 1)) {
                    continue;
                }
                if (position.next < plan.limit(position.split.splitId(), stage)) {
                    // 100 ms apart: ten numbers fall into one window of a second
                    output.collect(position.next, position.next * 100);
                    position.next++;
                    return InputStatus.MORE_AVAILABLE;
                }
                if (stage > 0) {
                    gate.arrive(plan.name, position.split.splitId(), stage);
                }
            }
            available = moved;
            return InputStatus.NOTHING_AVAILABLE;
        }

        @Override
        public CompletableFuture<Void> isAvailable() {
            return available;
        }

        @Override
        public void addSplits(List<NumberSequenceSplit> splits) {
            splits.forEach(split -> positions.add(new Position(split)));
            available = CompletableFuture.completedFuture(null);
            gate.wake(); // this reader may be waiting because it had nothing
        }

        @Override
        public List<NumberSequenceSplit> snapshotState(long checkpointId) {
            List<NumberSequenceSplit> rest = new ArrayList<>();
            for (Position position : positions) {
                rest.add(new NumberSequenceSplit(position.split.splitId(), position.next, position.split.to()));
            }
            gate.count("source-snapshots");
            return rest;
        }

        @Override
        public void start() {}

        @Override
        public void notifyNoMoreSplits() {}

        @Override
        public void close() {}
    }
}
