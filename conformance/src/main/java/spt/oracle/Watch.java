package spt.oracle;

import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.api.common.TaskInfo;
import org.apache.flink.runtime.state.OperatorStateBackend;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/** The state backends of one run, as the tasks create them. */
final class Watch {
    private static final Map<String, Watch> WATCHES = new ConcurrentHashMap<>();

    /** For example WindowOperator_01203aa9a12dc1ec725e03853dd7c8f2_(1/2). */
    private static final Pattern IDENTIFIER = Pattern.compile(".*_([0-9a-f]{32})_\\(\\d+/\\d+\\)");

    private static final class Subtask {
        OperatorStateBackend operator;
        ObjectNode restored; // what the operator backend held before any user code ran
        Dump.Keyed keyed;
    }

    private static final class Operator {
        int parallelism;
        final TreeMap<Integer, Subtask> subtasks = new TreeMap<>();
    }

    private final Map<String, Operator> operators = new TreeMap<>();

    static Watch of(String run) {
        return WATCHES.computeIfAbsent(run, name -> new Watch());
    }

    static void drop(String run) {
        WATCHES.remove(run);
    }

    private Subtask subtask(String identifier, TaskInfo task) {
        Matcher matcher = IDENTIFIER.matcher(identifier);
        if (!matcher.matches()) {
            throw new IllegalStateException("operator identifier " + identifier);
        }
        Operator operator = operators.computeIfAbsent(matcher.group(1), id -> new Operator());
        operator.parallelism = task.getNumberOfParallelSubtasks();
        return operator.subtasks.computeIfAbsent(task.getIndexOfThisSubtask(), index -> new Subtask());
    }

    synchronized void operator(String identifier, TaskInfo task, OperatorStateBackend backend) throws Exception {
        Subtask subtask = subtask(identifier, task);
        subtask.operator = backend;
        subtask.restored = Dump.operatorState(backend);
    }

    synchronized void keyed(String identifier, TaskInfo task, Dump.Keyed backend) {
        subtask(identifier, task).keyed = backend;
    }

    /**
     * The content of all operators: operator state as it was restored, or as it is now; keyed state as it is now. The tasks
     * must be idle.
     */
    synchronized ObjectNode dump(Options options, Names names, boolean asRestored) throws Exception {
        ObjectNode dump = Json.object();
        dump.put("flink", Runner.flinkVersion());
        dump.put("shape", options.shape);
        ArrayNode array = dump.putArray("operators");
        for (String id : names.sorted(operators.keySet())) {
            Operator operator = operators.get(id);
            ObjectNode shown = array.addObject();
            if (names.uid(id) != null) {
                shown.put("uid", names.uid(id));
            }
            shown.put("name", names.name(id));
            shown.put("id", id);
            shown.put("parallelism", operator.parallelism);
            ArrayNode subtasks = shown.putArray("subtasks");
            for (Map.Entry<Integer, Subtask> entry : operator.subtasks.entrySet()) {
                ObjectNode subtask = subtasks.addObject();
                subtask.put("index", entry.getKey());
                Subtask held = entry.getValue();
                ObjectNode state = Dump.operatorState(held.operator);
                if (asRestored) { // and, without elements, what user code has asked for since
                    state.setAll(held.restored);
                }
                if (!state.isEmpty()) {
                    subtask.set("operator_state", state);
                }
                if (held.keyed != null) {
                    Dump.keyedState(held.keyed, subtask);
                }
            }
        }
        return dump;
    }
}
