package spt.stateapi;

import java.util.Map;
import org.apache.flink.api.common.ExecutionConfig;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.api.common.functions.util.RuntimeUDFContext;
import org.apache.flink.metrics.groups.UnregisteredMetricsGroup;
import org.apache.flink.runtime.checkpoint.OperatorState;
import org.apache.flink.runtime.state.IncrementalRemoteKeyedStateHandle;
import org.apache.flink.runtime.state.StreamStateHandle;
import org.apache.flink.state.api.runtime.SavepointEnvironment;

/** What differs between the releases, as 1.16 has it. */
final class Versioned {
    /** The environment of a subtask. */
    static SavepointEnvironment.Builder environment(OperatorState operator, int subtask) {
        ExecutionConfig execution = new ExecutionConfig();
        RuntimeUDFContext context = new RuntimeUDFContext(
                new TaskInfo("read", operator.getMaxParallelism(), subtask, operator.getParallelism(), 0), Versioned.class.getClassLoader(), execution,
                Map.of(), Map.of(), UnregisteredMetricsGroup.createOperatorMetricGroup());
        return new SavepointEnvironment.Builder(context, operator.getMaxParallelism());
    }

    /** The header of RocksDB's files. */
    static StreamStateHandle header(IncrementalRemoteKeyedStateHandle handle) {
        return handle.getMetaStateHandle();
    }

    private Versioned() {}
}
