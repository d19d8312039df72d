package spt.oracle;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;

/**
 * One request per line on stdin, one answer per line on stdout, both JSON objects.
 *
 * <p>The argument is a folder for scratch files. Nothing else may write to stdout: Flink's log goes where slf4j-simple was told, and System.out is turned to stderr.
 */
public final class Main {
    public static void main(String[] args) throws Exception {
        PrintStream answers = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        System.setOut(System.err);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        try (Runner runner = new Runner(Path.of(args[0]))) {
            for (String line = requests.readLine(); line != null; line = requests.readLine()) {
                JsonNode request = Json.MAPPER.readTree(line);
                if (request.path("command").asText().equals("quit")) {
                    break;
                }
                answers.println(Json.MAPPER.writeValueAsString(answer(runner, request)));
            }
        } catch (Throwable failure) {
            failure.printStackTrace();
            System.exit(1);
        }
        System.exit(0); // no thread of Flink's may keep the process alive
    }

    private static ObjectNode answer(Runner runner, JsonNode request) {
        try {
            return execute(runner, request);
        } catch (Throwable failure) {
            ObjectNode refused = Json.object();
            List<String> causes = Causes.of(failure);
            refused.put("error", causes.get(causes.size() - 1));
            causes.forEach(refused.putArray("causes")::add);
            return refused;
        }
    }

    private static ObjectNode execute(Runner runner, JsonNode request) throws Exception {
        String command = request.path("command").asText();
        switch (command) {
            case "make":
            case "proceed": {
                Path out = Path.of(request.path("out").asText());
                Options options = Json.read(request.path("options"), Options.class);
                Choices choices = Json.read(request.path("choices"), Choices.class);
                Runner.Made made = command.equals("make")
                        ? runner.make(options) : runner.proceed(request.path("snapshot").asText(), options, choices);
                Files.createDirectories(out);
                Json.write(out.resolve("truth.json"), made.truth);
                Json.write(out.resolve("metadata.json"), MetadataDump.of(made.snapshot));
                ObjectNode about = Json.object();
                about.put("flink", Runner.flinkVersion());
                about.put("snapshot", options.remote() ? made.snapshot : Path.of("savepoint").resolve(Path.of(options.at).relativize(Path.of(made.snapshot))).toString());
                about.set("options", Json.MAPPER.valueToTree(options));
                Json.write(out.resolve("about.json"), about);
                return about;
            }
            case "restore": {
                Options options = Json.read(request.path("options"), Options.class);
                Choices choices = Json.read(request.path("choices"), Choices.class);
                ObjectNode answer = Json.object();
                answer.set("restored", runner.restore(request.path("snapshot").asText(), options, choices));
                return answer;
            }
            case "fire": {
                Options options = Json.read(request.path("options"), Options.class);
                Choices choices = Json.read(request.path("choices"), Choices.class);
                ObjectNode answer = Json.object();
                answer.set("fired", runner.fire(
                        request.path("snapshot").asText(), options, choices,
                        List.of(Json.read(request.path("watermarks"), Long[].class)), List.of(Json.read(request.path("counts"), Integer[].class))));
                return answer;
            }
            case "metadata": {
                ObjectNode answer = Json.object();
                answer.set("metadata", MetadataDump.of(request.path("snapshot").asText()));
                return answer;
            }
            case "serializers": {
                ObjectNode answer = Json.object();
                Serializers.all().forEach(answer.putObject("snapshots")::put);
                return answer;
            }
            case "values":
            case "hashes": {
                ObjectNode answer = Json.object();
                for (Serializers.Value value : request.path("command").asText().equals("hashes") ? Hashes.all() : Serializers.values()) {
                    answer.withArray("values").addObject().put("snapshot", value.snapshot()).put("bytes", value.bytes()).put("text", value.text());
                }
                return answer;
            }
            case "reread": {
                ObjectNode answer = Json.object();
                for (JsonNode pair : request.path("values")) {
                    answer.withArray("answers").add(Serializers.reread(pair.path("snapshot").asText(), pair.path("bytes").asText()));
                }
                return answer;
            }
            case "compare": {
                ObjectNode answer = Json.object();
                for (JsonNode pair : request.path("pairs")) {
                    answer.withArray("answers").add(Serializers.compare(pair.path("was").asText(), pair.path("now").asText()));
                }
                return answer;
            }
            case "craft": {
                Craft.rewrite(request.path("kind").asText(), request.path("snapshot").asText());
                return Json.object();
            }
            default:
                throw new IllegalArgumentException("unknown command " + command);
        }
    }
}
