package connectors

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/conformance"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestVectorsAreTheConnectors: the vectors that are stored for the tests of the
// package are what the serializers write today. With UPDATE_VECTORS=1 they are written.
func TestVectorsAreTheConnectors(t *testing.T) {
	for _, version := range conformance.Versions() {
		t.Run(string(version), func(t *testing.T) {
			text := conformance.Output(t, conformance.Command(t, "connectors", "flink-"+string(version), "spt.connectors.Vectors", "vectors"))
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
			cmd := conformance.Command(t, "connectors", "flink-"+string(version), "spt.connectors.Vectors", "read")
			cmd.Stdin = strings.NewReader(in.String())
			got := strings.Split(strings.TrimRight(conformance.Output(t, cmd), "\n"), "\n")
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
