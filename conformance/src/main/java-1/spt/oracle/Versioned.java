package spt.oracle;

import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.common.functions.RichMapFunction;
import org.apache.flink.core.execution.RestoreMode;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.streaming.api.checkpoint.ListCheckpointed;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;

/** What differs between Flink 1.x and 2.x, as 1.x has it. */
final class Versioned {
    static SingleOutputStreamOperator<Long> listCheckpointed(DataStream<Long> numbers, Options options) {
        return numbers.map(new Remembering());
    }

    /** Keeps all numbers in the state `_default_`. */
    @SuppressWarnings("deprecation")
    private static final class Remembering extends RichMapFunction<Long, Long> implements ListCheckpointed<Long> {
        private final List<Long> numbers = new ArrayList<>();

        @Override
        public Long map(Long number) {
            numbers.add(number);
            return number;
        }

        @Override
        public List<Long> snapshotState(long checkpointId, long timestamp) {
            return numbers;
        }

        @Override
        public void restoreState(List<Long> state) {
            numbers.addAll(state);
        }
    }

    static KeyedStream<Long, Object> asynchronous(KeyedStream<Long, Object> keyed) {
        throw new UnsupportedOperationException("the asynchronous state API came with Flink 2.0");
    }

    static SingleOutputStreamOperator<Long> asynchronousKinds(KeyedStream<Long, Object> keyed, String run) {
        throw new UnsupportedOperationException("the asynchronous state API came with Flink 2.0");
    }

    static SavepointRestoreSettings claim(String snapshot, boolean allowNonRestored) {
        return SavepointRestoreSettings.forPath(snapshot, allowNonRestored, RestoreMode.CLAIM);
    }

    /** An operator state without subtasks, of the same operator. */
    static OperatorState operatorState(OperatorState operator, int parallelism) {
        return new OperatorState(operator.getOperatorID(), parallelism, operator.getMaxParallelism());
    }

    private Versioned() {}
}
