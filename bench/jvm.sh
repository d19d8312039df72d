# What the benchmarks against Flink share: compile conformance/, run a class of it.
# Needs a JDK and Maven besides what lib.sh needs.
flink=2.3
java=${JAVA_HOME:+$JAVA_HOME/bin/}java
maven() { (cd "$root/conformance" && mvn -B -q "$@" "-Pflink-$flink" process-classes); }
maven -o 2>/dev/null >&2 || maven
classes=$root/conformance/target/flink-$flink
run() {
	"$java" -Xmx3g --add-opens=java.base/java.lang=ALL-UNNAMED --add-opens=java.base/java.util=ALL-UNNAMED \
		-Dorg.slf4j.simpleLogger.defaultLogLevel=error -cp "$classes/classes:$(cat "$classes/classpath.txt")" "$@"
}

# field NAME: a number of a JSON object on stdin, nanoseconds as microseconds.
field() { sed -n "s/.*\"$1\":\([0-9]*\).*/\1/p" | { read -r n && echo $((n / 1000)); }; }
