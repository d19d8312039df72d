import java.util.*;
import java.util.stream.*;
import org.apache.flink.core.fs.Path;
import org.apache.flink.runtime.checkpoint.*;
import org.apache.flink.runtime.state.*;
import org.apache.flink.runtime.state.filesystem.*;
import org.apache.flink.runtime.state.memory.ByteStreamStateHandle;

/**
 * Asks Flink's own classes who gets what, for vectors_test.go. One JSON object
 * a line. Run: java -cp <flink-runtime, flink-core and what they need> Vectors.java SEED CASES
 * Flink 1.5 to 2.3. The offset of element i of state k of old subtask o is
 * o*1000000 + k*1000 + i.
 */
class Vectors {
    static final String AT = "file:/spt-fixtures/a place/sp-1";
    static final String[] NAMES = {"alpha", "pending", "zeta", "SourceReaderState", "_default_", "counts", "offsets", "state",
        "beta", "Aa", "BB", "topic-partition-offset-states", "\u00fc\u2713\ud834\udd1e", "buffered-elements", "a", "b", "c", "d", "e", "f", "g", ""};

    public static void main(String[] args) throws Exception {
        Random r = new Random(Long.parseLong(args[0]));
        for (int i = Integer.parseInt(args[1]); i > 0; i--) {
            System.out.println(oneCase(r));
        }
    }

    static String oneCase(Random r) throws Exception {
        int oldP = r.nextInt(8) == 0 ? 1 + r.nextInt(40) : 1 + r.nextInt(7);
        int newP = r.nextInt(4) == 0 ? oldP : r.nextInt(8) == 0 ? 1 + r.nextInt(40) : 1 + r.nextInt(8);
        int names = r.nextInt(6) == 0 ? 1 + r.nextInt(NAMES.length) : 1 + r.nextInt(5);
        int kinds = r.nextInt(4);
        boolean equal = r.nextInt(8) == 0;
        List<String> pool = new ArrayList<>(Arrays.asList(NAMES));
        Collections.shuffle(pool, r);
        OperatorStateHandle.Mode[] modes = new OperatorStateHandle.Mode[names];
        for (int k = 0; k < names; k++) {
            modes[k] = OperatorStateHandle.Mode.values()[r.nextInt(2) * (1 + r.nextInt(2))];
        }
        List<List<OperatorStateHandle>> old = new ArrayList<>();
        StringBuilder in = new StringBuilder();
        for (int o = 0; o < oldP; o++) {
            in.append(o == 0 ? "" : ",");
            if (r.nextInt(12) == 0) {
                old.add(new ArrayList<>());
                in.append("null");
                continue;
            }
            int id = equal ? r.nextInt(2) : r.nextInt(1000000) * 64 + o;
            StreamStateHandle stream;
            String file;
            switch ((kinds == 3 ? r.nextInt(3) : kinds) % (RELATIVE == null ? 2 : 3)) {
                case 0:
                    file = "inline:h" + id;
                    stream = new ByteStreamStateHandle("h" + id, new byte[0]);
                    break;
                case 1:
                    String path = (id % 2 == 0 ? "s3://Bucket/x//y/" : "hdfs://nn:8020/flink/../z/") + id;
                    file = "absolute:" + path;
                    stream = new FileStateHandle(new Path(path), 1);
                    break;
                default:
                    String name = Integer.toHexString(id) + "-\u00e9";
                    file = "relative:" + name;
                    stream = relative(name);
            }
            List<Integer> order = IntStream.range(0, names).boxed().collect(Collectors.toList());
            Collections.shuffle(order, r);
            order = order.subList(0, r.nextInt(3) == 0 ? r.nextInt(names + 1) : names);
            Map<String, OperatorStateHandle.StateMetaInfo> states = newMap(order.size());
            in.append("{\"file\":").append(text(file)).append(",\"states\":[");
            for (int k = 0; k < order.size(); k++) {
                int at = order.get(k);
                int n = modes[at] == OperatorStateHandle.Mode.BROADCAST ? 1 : Math.max(0, r.nextInt(9) - 2);
                long[] offsets = new long[n];
                for (int i = 0; i < n; i++) {
                    offsets[i] = o * 1000000L + k * 1000L + i;
                }
                states.put(pool.get(at), new OperatorStateHandle.StateMetaInfo(offsets, modes[at]));
                in.append(k == 0 ? "" : ",").append("[").append(text(pool.get(at))).append(",").append(modes[at].ordinal()).append(",").append(n).append("]");
            }
            in.append("]}");
            old.add(new ArrayList<>(List.of(new OperatorStreamStateHandle(states, stream))));
        }
        List<List<OperatorStateHandle>> now = repartition(old, oldP, newP);
        StringBuilder out = new StringBuilder();
        for (List<OperatorStateHandle> sub : now) {
            out.append(out.length() == 0 ? "[" : ",[");
            String comma = "";
            for (OperatorStateHandle h : sub) {
                out.append(comma).append("[");
                comma = "";
                for (Map.Entry<String, OperatorStateHandle.StateMetaInfo> e : h.getStateNameToPartitionOffsets().entrySet()) {
                    out.append(comma).append("[").append(text(e.getKey()));
                    for (long off : e.getValue().getOffsets()) {
                        out.append(",").append(off);
                    }
                    out.append("]");
                    comma = ",";
                }
                out.append("]");
                comma = ",";
            }
            out.append("]");
        }
        return "{\"at\":" + text(AT) + ",\"new\":" + newP + ",\"old\":[" + in + "],\"out\":[" + out + "]}";
    }

    // What differs between releases.

    static final Class<?> RELATIVE = find("org.apache.flink.runtime.state.filesystem.RelativeFileStateHandle");
    static final Class<?> COLLECTIONS = find("org.apache.flink.util.CollectionUtil");

    static Class<?> find(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    static StreamStateHandle relative(String name) throws Exception {
        return (StreamStateHandle) RELATIVE.getConstructor(Path.class, String.class, long.class)
            .newInstance(new Path(new Path(AT), name), name, 1L);
    }

    @SuppressWarnings("unchecked")
    static <V> Map<String, V> newMap(int n) throws Exception {
        try {
            return (Map<String, V>) COLLECTIONS.getMethod("newHashMapWithExpectedSize", int.class).invoke(null, n);
        } catch (NoSuchMethodException | NullPointerException e) {
            return new HashMap<>(n);
        }
    }

    /** Before 1.8 Flink forgot which subtasks have nothing, and took a short cut outside of the class. */
    @SuppressWarnings("unchecked")
    static List<List<OperatorStateHandle>> repartition(List<List<OperatorStateHandle>> old, int oldP, int newP) throws Exception {
        Object how = RoundRobinOperatorStateRepartitioner.INSTANCE;
        for (java.lang.reflect.Method m : OperatorStateRepartitioner.class.getMethods()) {
            if (m.getName().equals("repartitionState") && m.getParameterCount() == 3) {
                return (List<List<OperatorStateHandle>>) m.invoke(how, old, oldP, newP);
            }
        }
        List<List<OperatorStateHandle>> now = new ArrayList<>();
        for (java.lang.reflect.Method m : StateAssignmentOperation.class.getMethods()) {
            if (m.getName().equals("applyRepartitioner") && m.getParameterCount() == 4) {
                List<OperatorStateHandle> handles = old.stream().flatMap(List::stream).collect(Collectors.toList());
                for (Collection<OperatorStateHandle> sub : (List<Collection<OperatorStateHandle>>) m.invoke(null, how, handles, oldP, newP)) {
                    now.add(new ArrayList<>(sub));
                }
            }
        }
        while (now.size() < newP) {
            now.add(new ArrayList<>());
        }
        return now;
    }

    static String text(String s) {
        StringBuilder b = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            b.append(c < 0x80 ? String.valueOf(c) : String.format("\\u%04x", (int) c));
        }
        return b.append("\"").toString();
    }
}
