package spt.connectors;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HexFormat;

/**
 * The connectors' own serializers: {@code vectors|read CATALOGUE…}. "vectors" prints a line for each of many structures: class, version, bytes in hex, what they say as
 * JSON, and the artifact of the serializer. "read" reads lines of class, version, bytes and artifact, and prints what the serializer reads in them, or an error.
 */
public final class Vectors {
    public static void main(String[] args) throws Exception {
        PrintStream out = new PrintStream(System.out, true, StandardCharsets.UTF_8);
        Kinds kinds = new Kinds();
        for (String name : Arrays.asList(args).subList(1, args.length)) {
            ((Kinds.Catalogue) Class.forName("spt.connectors." + name).getConstructor().newInstance()).addTo(kinds);
        }
        if (args[0].equals("vectors")) {
            kinds.vectors().forEach(out::println);
            return;
        }
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split("\t", -1);
            try {
                out.println(kinds.read(parts[0], Integer.parseInt(parts[1]), HexFormat.of().parseHex(parts[2]), parts[3]));
            } catch (Throwable failure) {
                out.println("error: " + failure);
            }
        }
    }
}
