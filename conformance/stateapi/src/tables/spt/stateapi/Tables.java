package spt.stateapi;

import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.JsonNodeFactory;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.types.Row;
import org.apache.flink.util.CloseableIterator;

/**
 * Creates tables by SQL and selects all of their rows.
 *
 * <p>Reads an array of CREATE TABLE statements from standard input as JSON, and prints a JSON object for each, one in a line: its rows, or the
 * reason for which Flink does not run it.
 */
public final class Tables {
    private static final ObjectMapper MAPPER = new ObjectMapper();
    private static final Pattern NAME = Pattern.compile("(?m)^CREATE TABLE (`(?:[^`]|``)*`)");

    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        try {
            Configuration configuration = new Configuration();
            configuration.setString("parallelism.default", "1");
            configuration.setString("execution.runtime-mode", "BATCH");
            TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.newInstance().withConfiguration(configuration).inBatchMode().build());
            for (JsonNode statement : MAPPER.readTree(System.in)) {
                answers.println(MAPPER.writeValueAsString(answer(tables, statement.asText())));
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.exit(0); // no thread of Flink's may keep the process alive
    }

    private static ObjectNode answer(TableEnvironment tables, String statement) {
        ObjectNode answer = JsonNodeFactory.instance.objectNode();
        try {
            Matcher name = NAME.matcher(statement);
            if (!name.find()) {
                throw new IllegalArgumentException("no CREATE TABLE in " + statement);
            }
            tables.executeSql("DROP TABLE IF EXISTS " + name.group(1));
            tables.executeSql(statement);
            ArrayNode rows = answer.putArray("rows");
            try (CloseableIterator<Row> all = tables.executeSql("SELECT * FROM " + name.group(1)).collect()) {
                while (all.hasNext()) {
                    rows.add(json(all.next()));
                }
            }
        } catch (Exception refused) {
            Throwable cause = refused;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            answer.put("refused", cause.toString());
        }
        return answer;
    }

    /**
     * A value of SQL: rows as objects, but rows of tuples, whose fields are f0, f1, …, as arrays; maps as arrays of key and value; what JSON
     * does not have as text.
     */
    private static JsonNode json(Object value) {
        JsonNodeFactory nodes = JsonNodeFactory.instance;
        if (value instanceof Row && ((Row) value).getFieldNames(true).contains("f0")) {
            ArrayNode row = nodes.arrayNode();
            for (int i = 0; i < ((Row) value).getArity(); i++) {
                row.add(json(((Row) value).getField(i)));
            }
            return row;
        } else if (value instanceof Row) {
            ObjectNode row = nodes.objectNode();
            for (String name : ((Row) value).getFieldNames(true)) {
                row.set(name, json(((Row) value).getField(name)));
            }
            return row;
        } else if (value instanceof Object[]) {
            ArrayNode array = nodes.arrayNode();
            Arrays.stream((Object[]) value).map(Tables::json).forEach(array::add);
            return array;
        } else if (value instanceof Map) {
            ArrayNode map = nodes.arrayNode();
            ((Map<?, ?>) value).forEach((k, v) -> map.addArray().add(json(k)).add(json(v)));
            return map;
        } else if (value instanceof byte[]) {
            return nodes.textNode(Base64.getEncoder().encodeToString((byte[]) value));
        } else if (value == null || value instanceof Number || value instanceof Boolean) {
            return MAPPER.valueToTree(value);
        }
        return nodes.textNode(value.toString());
    }

    private Tables() {}
}
