package spt.connectors;

import java.util.Collection;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;

/** Values in the shape of docs/json.md: records with a class and a version, bytes as base64. */
public final class Json {
    private Json() {}

    /** A record of names and values in turn. */
    public static Map<String, Object> of(Object... fields) {
        Map<String, Object> record = new LinkedHashMap<>();
        for (int i = 0; i < fields.length; i += 2) {
            record.put((String) fields[i], fields[i + 1]);
        }
        return record;
    }

    /** A structure of a class. */
    public static Map<String, Object> structure(String name, Object... fields) {
        Map<String, Object> record = of("@class", name);
        record.putAll(of(fields));
        return record;
    }

    /** A structure of a class, of a version of its serializer. */
    public static Map<String, Object> versioned(String name, int version, Object... fields) {
        Map<String, Object> record = of("@class", name, "version", version);
        record.putAll(of(fields));
        return record;
    }

    /** A function that may fail. */
    public interface Function<T> {
        Object apply(T value) throws Exception;
    }

    /** The values of a list, one by one. */
    public static <T> List<Object> list(Iterable<T> all, Function<T> of) throws Exception {
        List<Object> values = new java.util.ArrayList<>();
        for (T t : all) {
            values.add(of.apply(t));
        }
        return values;
    }

    /** What a function returns for a value, or null. */
    public static <T> Object orNull(T value, Function<T> of) throws Exception {
        return value == null ? null : of.apply(value);
    }

    public static String text(Object value) {
        if (value instanceof Map) {
            return ((Map<?, ?>) value).entrySet().stream().map(e -> quoted((String) e.getKey()) + ":" + text(e.getValue())).collect(Collectors.joining(",", "{", "}"));
        }
        if (value instanceof Collection) {
            return ((Collection<?>) value).stream().map(Json::text).collect(Collectors.joining(",", "[", "]"));
        }
        if (value instanceof byte[]) {
            return text(of("base64", Base64.getEncoder().encodeToString((byte[]) value)));
        }
        if (value == null || value instanceof Number || value instanceof Boolean) {
            return String.valueOf(value);
        }
        return quoted(value.toString());
    }

    private static String quoted(String s) {
        StringBuilder text = new StringBuilder("\"");
        for (char c : s.toCharArray()) {
            if (c == '"' || c == '\\') {
                text.append('\\').append(c);
            } else if (c < 0x20) {
                text.append(String.format("\\u%04x", (int) c));
            } else {
                text.append(c);
            }
        }
        return text.append('"').toString();
    }
}
