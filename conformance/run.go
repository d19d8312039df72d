package conformance

import (
	"bytes"
	"errors"
	"os/exec"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// javaOptions are small: several JVMs run at once.
var javaOptions = []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
	"--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.time=ALL-UNNAMED"}

// Command returns a command that runs a class of a Maven project below conformance, built
// with one of its profiles, in a JVM of its own.
func Command(t testing.TB, project, profile, class string, args ...string) *exec.Cmd {
	t.Helper()
	testenv.Long(t, "runs a JVM")
	java, classPath, err := Build(project, profile)
	if errors.Is(err, ErrUnavailable) {
		testenv.Missing(t, "conformance with "+project, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := append(append([]string{}, javaOptions...), "-cp", classPath, class)
	return exec.Command(java, append(all, args...)...)
}

// Output runs a command and returns what it prints. If it fails, the test fails with the
// end of its log.
func Output(t testing.TB, cmd *exec.Cmd) string {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		log := errs.String()
		t.Fatalf("%v\n%s", err, log[max(0, len(log)-6000):])
	}
	return string(out)
}
