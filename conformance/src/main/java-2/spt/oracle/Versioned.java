package spt.oracle;

import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.core.execution.RecoveryClaimMode;
import org.apache.flink.runtime.asyncprocessing.operators.AsyncKeyedProcessOperator;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.datastream.KeyedStream;
import org.apache.flink.streaming.api.datastream.SingleOutputStreamOperator;

/** What differs between Flink 1.x and 2.x, as 2.x has it. */
final class Versioned {
    static SingleOutputStreamOperator<Long> listCheckpointed(DataStream<Long> numbers, Options options) {
        throw new UnsupportedOperationException("ListCheckpointed is gone since Flink 2.0");
    }

    static KeyedStream<Long, Object> asynchronous(KeyedStream<Long, Object> keyed) {
        return keyed.enableAsyncState();
    }

    /** What process does since 2.1: in 2.0 it ignores that the stream is asynchronous. */
    static SingleOutputStreamOperator<Long> asynchronousKinds(KeyedStream<Long, Object> keyed, String run) {
        return keyed.transform("keyed", Types.LONG, new AsyncKeyedProcessOperator<>(new AsynchronousKinds(run)));
    }

    static SavepointRestoreSettings claim(String snapshot, boolean allowNonRestored) {
        return SavepointRestoreSettings.forPath(snapshot, allowNonRestored, RecoveryClaimMode.CLAIM);
    }

    /** An operator state without subtasks, of the same operator. */
    static OperatorState operatorState(OperatorState operator, int parallelism) {
        return new OperatorState(
                operator.getOperatorName().orElse(null), operator.getOperatorUid().orElse(null), operator.getOperatorID(),
                parallelism, operator.getMaxParallelism());
    }

    /** Flink 2.x has no serializers for Scala. */
    static void scala(KryoValues values) {}

    private Versioned() {}
}
