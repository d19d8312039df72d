package spt.oracle;

import java.util.ArrayList;
import java.util.Collection;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.state.api.runtime.OperatorIDGenerator;
import org.apache.flink.streaming.api.graph.StreamGraph;
import org.apache.flink.streaming.api.graph.StreamNode;

/** Uids and names of a job's operators, by operator id. */
final class Names {
    private final Map<String, String> uids = new LinkedHashMap<>();
    private final Map<String, String> names = new HashMap<>();
    private final List<String> unnamed = new ArrayList<>();

    Names(StreamGraph graph) {
        graph.getStreamNodes().stream()
                .sorted(Comparator.comparingInt(StreamNode::getId))
                .forEach(node -> {
                    String uid = node.getTransformationUID();
                    if (uid == null) {
                        unnamed.add(node.getOperatorName());
                        return;
                    }
                    String id = OperatorIDGenerator.fromUid(uid).toHexString();
                    uids.put(id, uid);
                    names.put(id, node.getOperatorName());
                });
    }

    String uid(String id) {
        return uids.get(id);
    }

    /** A shape has at most one operator without uid, so its name is known though its id is not. */
    String name(String id) {
        return names.getOrDefault(id, String.join(", ", unnamed));
    }

    /** In the order of the job, operators without uid last. */
    List<String> sorted(Collection<String> ids) {
        List<String> sorted = new ArrayList<>(ids);
        List<String> order = new ArrayList<>(uids.keySet());
        sorted.sort(Comparator.comparingInt((String id) -> order.contains(id) ? order.indexOf(id) : order.size()));
        return sorted;
    }
}
