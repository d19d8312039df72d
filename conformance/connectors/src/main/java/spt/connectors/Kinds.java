package spt.connectors;

import java.util.ArrayList;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.core.io.SimpleVersionedSerializer;
import org.apache.flink.core.memory.DataInputDeserializer;
import org.apache.flink.core.memory.DataOutputSerializer;

/** The structures of connectors: their serializers, what their objects say, and many objects. */
public final class Kinds {
    /** Adds the structures of some connectors. */
    public interface Catalogue {
        void addTo(Kinds kinds) throws Exception;
    }

    /** What an object says, in the shape of docs/json.md, as a structure of a version. */
    public interface Describe<T> {
        Object of(T value, int version) throws Exception;
    }

    private record Kind<T>(String name, String artifact, SimpleVersionedSerializer<T> serializer, Describe<T> describe, List<T> samples) {
        void vectors(List<String> lines) throws Exception {
            int version = serializer.getVersion();
            for (T sample : samples) {
                lines.add(String.join("\t", name, String.valueOf(version), HexFormat.of().formatHex(serializer.serialize(sample)), Json.text(describe.of(sample, version)), artifact));
            }
        }

        String read(int version, byte[] bytes) throws Exception {
            return Json.text(describe.of(serializer.deserialize(version, bytes), version));
        }
    }

    private final Map<String, Kind<?>> kinds = new LinkedHashMap<>();

    /** Adds a structure. Several versions of it can be added. */
    public <T> void add(String name, SimpleVersionedSerializer<T> serializer, Describe<T> describe, List<? extends T> samples) {
        add(name, serializer.getClass(), serializer, describe, samples);
    }

    /** Adds a structure that is stored without a version, by a serializer of its state. */
    public <T> void addPlain(String name, TypeSerializer<T> serializer, Describe<T> describe, List<T> samples) {
        add(name, serializer.getClass(), new SimpleVersionedSerializer<T>() {
            @Override
            public int getVersion() {
                return 0;
            }

            @Override
            public byte[] serialize(T value) throws java.io.IOException {
                DataOutputSerializer out = new DataOutputSerializer(64);
                serializer.serialize(value, out);
                return out.getCopyOfBuffer();
            }

            @Override
            public T deserialize(int version, byte[] bytes) throws java.io.IOException {
                return serializer.deserialize(new DataInputDeserializer(bytes));
            }
        }, describe, samples);
    }

    /** Adds a structure whose serializer is adapted: owner is the class of the connector that does the work. */
    public <T> void add(String name, Class<?> owner, SimpleVersionedSerializer<T> serializer, Describe<T> describe, List<? extends T> samples) {
        String file = owner.getProtectionDomain().getCodeSource().getLocation().getPath();
        String artifact = file.substring(file.lastIndexOf('/') + 1).replaceAll("\\.jar$", "");
        kinds.put(key(name, serializer.getVersion(), artifact), new Kind<>(name, artifact, serializer, describe, new ArrayList<>(samples)));
    }

    List<String> vectors() throws Exception {
        List<String> lines = new ArrayList<>();
        for (Kind<?> kind : kinds.values()) {
            kind.vectors(lines);
        }
        return lines;
    }

    String read(String name, int version, byte[] bytes, String artifact) throws Exception {
        return kinds.get(key(name, version, artifact)).read(version, bytes);
    }

    private static String key(String name, int version, String artifact) {
        return String.join(" ", name, String.valueOf(version), artifact);
    }
}
