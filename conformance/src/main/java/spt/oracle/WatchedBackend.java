package spt.oracle;

import java.io.IOException;
import org.apache.flink.configuration.ConfigOption;
import org.apache.flink.configuration.ConfigOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.ReadableConfig;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.state.AsyncKeyedStateBackend;
import org.apache.flink.runtime.state.CheckpointableKeyedStateBackend;
import org.apache.flink.runtime.state.KeyedStateBackendParametersImpl;
import org.apache.flink.runtime.state.OperatorStateBackend;
import org.apache.flink.runtime.state.StateBackend;
import org.apache.flink.runtime.state.StateBackendFactory;
import org.apache.flink.runtime.state.StateBackendLoader;
import org.apache.flink.util.FlinkException;
import org.slf4j.LoggerFactory;

/**
 * Hands out the backends of a real state backend and tells the run's watch about each: so the content of every operator is
 * seen, those without user code included, as Flink restored it. Time to live runs on a clock that stands still, so that
 * the truth of a job is the same every time.
 */
public final class WatchedBackend implements StateBackend {
    static final ConfigOption<String> REAL = ConfigOptions.key("spt.backend").stringType().noDefaultValue();
    static final ConfigOption<String> RUN = ConfigOptions.key("spt.run").stringType().noDefaultValue();

    /** 2026-01-01. */
    private static final long NOW = 1_767_225_600_000L;

    private final StateBackend real;
    private final String run;

    private WatchedBackend(StateBackend real, String run) {
        this.real = real;
        this.run = run;
    }

    /** Named in the job's configuration as its state backend. */
    public static final class Factory implements StateBackendFactory<WatchedBackend> {
        @Override
        public WatchedBackend createFromConfig(ReadableConfig config, ClassLoader loader) throws IOException {
            Configuration realConfig = ((Configuration) config).clone();
            realConfig.set(StateBackendOptions.STATE_BACKEND, config.get(REAL));
            try {
                StateBackend real = StateBackendLoader.loadStateBackendFromConfig(
                        realConfig, loader, LoggerFactory.getLogger(WatchedBackend.class));
                return new WatchedBackend(real, config.get(RUN));
            } catch (FlinkException e) {
                throw new IOException(e);
            }
        }
    }

    @Override
    public OperatorStateBackend createOperatorStateBackend(OperatorStateBackendParameters parameters) throws Exception {
        OperatorStateBackend backend = real.createOperatorStateBackend(parameters);
        Watch.of(run).operator(parameters.getOperatorIdentifier(), parameters.getEnv().getTaskInfo(), backend);
        return backend;
    }

    @Override
    public <K> CheckpointableKeyedStateBackend<K> createKeyedStateBackend(KeyedStateBackendParameters<K> parameters)
            throws Exception {
        CheckpointableKeyedStateBackend<K> backend = real.createKeyedStateBackend(
                new KeyedStateBackendParametersImpl<>(parameters).setTtlTimeProvider(() -> NOW));
        watch(parameters, backend);
        return backend;
    }

    /** A raw type, for 1.20 declares one; it never calls this. */
    @Override
    @SuppressWarnings({"rawtypes", "unchecked"})
    public <K> AsyncKeyedStateBackend createAsyncKeyedStateBackend(KeyedStateBackendParameters<K> parameters) throws Exception {
        AsyncKeyedStateBackend backend = real.createAsyncKeyedStateBackend(
                new KeyedStateBackendParametersImpl<>(parameters).setTtlTimeProvider(() -> NOW));
        watch(parameters, backend);
        return backend;
    }

    private void watch(KeyedStateBackendParameters<?> parameters, Object backend) {
        Watch.of(run).keyed(
                parameters.getOperatorIdentifier(), parameters.getEnv().getTaskInfo(),
                new Dump.Keyed(backend, parameters.getKeySerializer(), parameters.getKeyGroupRange(), parameters.getNumberOfKeyGroups()));
    }

    @Override
    public boolean supportsAsyncKeyedStateBackend() {
        return real.supportsAsyncKeyedStateBackend();
    }

    @Override
    public boolean useManagedMemory() {
        return real.useManagedMemory();
    }

    @Override
    public boolean supportsNoClaimRestoreMode() {
        return real.supportsNoClaimRestoreMode();
    }

    @Override
    public boolean supportsSavepointFormat(SavepointFormatType type) {
        return real.supportsSavepointFormat(type);
    }
}
