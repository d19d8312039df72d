package connectors

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/conformance"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// javaOptions are small: several JVMs run at once.
var javaOptions = []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
	"--add-opens=java.base/java.lang=ALL-UNNAMED", "--add-opens=java.base/java.util=ALL-UNNAMED", "--add-opens=java.base/java.time=ALL-UNNAMED"}

// command returns a command that runs a class of a project.
func command(t *testing.T, project, profile, class string, args ...string) *exec.Cmd {
	t.Helper()
	testenv.Long(t, "runs connectors in a JVM")
	java, classPath, err := conformance.Build(project, profile)
	if errors.Is(err, conformance.ErrUnavailable) {
		testenv.Missing(t, "conformance with connectors", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	all := append(append([]string{}, javaOptions...), "-cp", classPath, class)
	return exec.Command(java, append(all, args...)...)
}

// output runs a command and returns what it prints.
func output(t *testing.T, cmd *exec.Cmd) string {
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

// TestVectorsAreTheConnectors: the vectors that are stored for the tests of the
// package are what the serializers write today. With UPDATE_VECTORS=1 they are written.
func TestVectorsAreTheConnectors(t *testing.T) {
	for _, version := range conformance.Versions() {
		t.Run(string(version), func(t *testing.T) {
			text := output(t, command(t, "connectors", "flink-"+string(version), "spt.connectors.Vectors", "vectors"))
			if os.Getenv("UPDATE_VECTORS") != "" {
				name := filepath.Join(testenv.ModuleRoot(t), "format", "flink", "connector", "testdata", "vectors-"+string(version)+".tsv")
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			now, err := sptest.ParseConnectorVectors(text)
			if err != nil {
				t.Fatal(err)
			}
			stored := sptest.ConnectorVectors(t, string(version))
			if len(now) != len(stored) {
				t.Fatalf("%d vectors, %d are stored", len(now), len(stored))
			}
			same := 0
			for i, x := range now {
				// Sets have another order in each run of Java.
				if was := stored[i]; x.Class != was.Class || x.Version != was.Version || x.Text != was.Text || len(x.Bytes) != len(was.Bytes) {
					t.Errorf("%s %d %s: stored are %s %d %s", x.Class, x.Version, x.Text, was.Class, was.Version, was.Text)
				}
				if bytes.Equal(x.Bytes, stored[i].Bytes) {
					same++
				}
				codec, p := x.In(t)
				v, err := testenv.ReadBack(t, codec, p)
				if err != nil {
					t.Errorf("%s: %v", x.Class, err)
				} else if got, ok := sptest.ConnectorText(v, x.Class); !ok || got != x.Text {
					t.Errorf("%s: %q, expected %q", x.Class, got, x.Text)
				}
			}
			t.Logf("%d vectors read, %d are the stored bytes", len(now), same)
		})
	}
}

// edits are what the serializers must read of vectors after an edit by spt.
func edit(p connector.Position) (connector.Position, bool, error) {
	switch {
	case !p.Settable:
	case p.At == connector.AtOffset:
		p.At = connector.AtEarliest
	default:
		p.At, p.Offset = connector.AtOffset, 4242
	}
	return p, true, nil
}

// TestConnectorsReadWhatSptWrote: after an edit of positions, the serializers read the
// new positions, and all else as before.
func TestConnectorsReadWhatSptWrote(t *testing.T) {
	for _, version := range conformance.Versions() {
		t.Run(string(version), func(t *testing.T) {
			var in strings.Builder
			var want []string
			changed := 0
			for _, x := range sptest.ConnectorVectors(t, string(version)) {
				codec, p := x.In(t)
				v, err := value.ReadAll(codec, p)
				if err != nil {
					t.Fatal(err)
				}
				out, _, err := connector.EditPositions(v, edit)
				if err != nil {
					t.Fatal(err)
				}
				q, err := codec.Append(nil, out)
				if err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(p, q) {
					changed++
				}
				text, ok := sptest.ConnectorText(out, x.Class)
				if !ok {
					t.Fatal(x.Class)
				}
				body := q[len(q)-len(x.Bytes):] // edits of numbers keep the length
				if x.Class == "KafkaCommittable" {
					body = x.Bytes
				}
				fmt.Fprintf(&in, "%s\t%d\t%x\n", x.Class, x.Version, body)
				want = append(want, text)
			}
			cmd := command(t, "connectors", "flink-"+string(version), "spt.connectors.Vectors", "read")
			cmd.Stdin = strings.NewReader(in.String())
			got := strings.Split(strings.TrimRight(output(t, cmd), "\n"), "\n")
			if len(got) != len(want) {
				t.Fatalf("%d answers, %d questions", len(got), len(want))
			}
			for i := range got {
				if got[i] != want[i] {
					t.Errorf("%q, expected %q", got[i], want[i])
				}
			}
			t.Logf("%d structures read by the connectors, %d of them changed", len(got), changed)
			if changed < 10 {
				t.Error("too few were changed")
			}
		})
	}
}
