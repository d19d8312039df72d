package connectors

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/conformance"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// catalogues are the classes of the Java side that know the structures, by the file of
// vectors, and the profile of the project that has their connectors.
var catalogues = map[string]struct {
	profile string
	names   []string
}{
	"1.20":  {"flink-1.20", []string{"Kafka", "Sources", "Sinks", "Legacy"}},
	"2.0":   {"flink-2.0", []string{"Kafka", "Sources", "Sinks"}},
	"2.3":   {"flink-2.3", []string{"Kafka", "Sources", "Sinks"}},
	"other": {"other", []string{"other.Pulsar", "other.Iceberg", "other.Paimon", "other.Cdc", "other.MySql", "other.Aws", "other.FileSystems"}},
}

// vectors returns the command of the Java side that writes or reads vectors.
func vectors(t *testing.T, file, verb string) *exec.Cmd {
	c, ok := catalogues[file]
	if !ok {
		t.Fatalf("no connectors of %s", file)
	}
	return conformance.Command(t, "connectors", c.profile, "spt.connectors.Vectors", append([]string{verb}, c.names...)...)
}

// TestVectorsAreTheConnectors: the vectors that are stored for the tests of the
// package are what the serializers write today. With UPDATE_VECTORS=1 they are written.
func TestVectorsAreTheConnectors(t *testing.T) {
	for _, file := range sptest.ConnectorVectorFiles(t) {
		t.Run(file, func(t *testing.T) {
			text := conformance.Output(t, vectors(t, file, "vectors"))
			if os.Getenv("UPDATE_VECTORS") != "" {
				name := filepath.Join(testenv.ModuleRoot(t), "format", "flink", "connector", "testdata", "vectors-"+file+".tsv")
				if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			now, err := sptest.ParseConnectorVectors(text)
			if err != nil {
				t.Fatal(err)
			}
			stored := sptest.ConnectorVectors(t, file)
			if len(now) != len(stored) {
				t.Fatalf("%d vectors, %d are stored", len(now), len(stored))
			}
			same := 0
			for i, x := range now {
				want := sptest.CanonicalJSON(t, x.Class, x.JSON)
				// Sets have another order in each run of Java.
				if was := stored[i]; x.Class != was.Class || x.Version != was.Version || x.Artifact != was.Artifact || len(x.Bytes) != len(was.Bytes) || sptest.CanonicalJSON(t, was.Class, was.JSON) != want {
					t.Errorf("%s %d %s %s: stored are %s %d %s %s", x.Class, x.Version, x.Artifact, x.JSON, was.Class, was.Version, was.Artifact, was.JSON)
				}
				if bytes.Equal(x.Bytes, stored[i].Bytes) {
					same++
				}
				codec, p := x.In(t)
				v, err := testenv.ReadBack(t, codec, p)
				if err != nil {
					t.Errorf("%s: %v", x.Class, err)
				} else if got, ok := sptest.ConnectorJSON(t, v, x.Class); !ok || got != want {
					t.Errorf("%s: %s, expected %s", x.Class, v, x.JSON)
				}
			}
			t.Logf("%d vectors read, %d are the stored bytes", len(now), same)
		})
	}
}

// structural are the fields that an edit of values leaves as they are: their numbers
// and names are of the structure, or have a meaning of their own.
var structural = map[string]bool{
	"version": true, "split_version": true, "status": true, "state": true, "ownership": true, "kind": true, "key_type": true,
	// Lengths and positions that belong to another field.
	"size": true, "incomplete_length": true, "start": true, "end": true, "next_chunk_start": true, "high_watermark": true, "position": true,
	"offset_factory": true, "schema": true, "schemas": true, "tasks": true, "stopping_offset": true, "number": true, "unused": true,
	"file_offset": true, "committables": true, "drained": true, "failed": true, "subtasks_of_checkpoint": true, "port": true, "records_after_offset": true,
}

// edited returns v, the value of a field, with other numbers, names and texts.
func edited(v value.Value, field string) value.Value {
	switch v.Kind() {
	case value.KindInt:
		if !structural[field] && v.Int() >= 0 { // markers are negative
			return value.Int(v.Int() ^ 1)
		}
	case value.KindString:
		// An empty text can mean none; a quoted name has to remain one.
		if text := v.Text(); !structural[field] && text != "" && !strings.ContainsAny(text[len(text)-1:], "\"`") {
			return value.String(text + "2")
		}
	case value.KindRecord:
		return mapped(v, func(i int, p value.Value) value.Value { return edited(p, v.Name(i)) })
	case value.KindList:
		return mapped(v, func(_ int, p value.Value) value.Value { return edited(p, field) })
	}
	return v
}

// editedStructure returns v with other values in the first structure of a class.
func editedStructure(v value.Value, class string) value.Value {
	switch {
	case v.Class() == class:
		return edited(v, "")
	case v.Kind() == value.KindRecord || v.Kind() == value.KindList:
		return mapped(v, func(_ int, p value.Value) value.Value { return editedStructure(p, class) })
	}
	return v
}

// mapped returns a value with other parts.
func mapped(v value.Value, f func(i int, p value.Value) value.Value) value.Value {
	out, err := v.MapParts(func(i int, p value.Value) (value.Value, error) { return f(i, p), nil })
	if err != nil {
		panic(err) // v has parts
	}
	return out
}

// TestConnectorsReadWhatSptWrote: after an edit of all values, the serializers read the
// new values, and all else as before.
func TestConnectorsReadWhatSptWrote(t *testing.T) {
	for _, file := range sptest.ConnectorVectorFiles(t) {
		t.Run(file, func(t *testing.T) {
			var in strings.Builder
			var want, class []string
			changed := 0
			for _, x := range sptest.ConnectorVectors(t, file) {
				codec, p := x.In(t)
				v, err := value.ReadAll(codec, p)
				if err != nil {
					t.Fatal(err)
				}
				out := editedStructure(v, x.Class)
				q, err := codec.Append(nil, out)
				if err != nil {
					t.Fatalf("%s: %v", x.Class, err)
				}
				if !bytes.Equal(p, q) {
					changed++
				}
				text, ok := sptest.ConnectorJSON(t, out, x.Class)
				if !ok {
					t.Fatal(x.Class)
				}
				fmt.Fprintf(&in, "%s\t%d\t%x\t%s\n", x.Class, x.Version, q[len(p)-len(x.Bytes):], x.Artifact)
				want, class = append(want, text), append(class, x.Class)
			}
			cmd := vectors(t, file, "read")
			cmd.Stdin = strings.NewReader(in.String())
			got := strings.Split(strings.TrimRight(conformance.Output(t, cmd), "\n"), "\n")
			if len(got) != len(want) {
				t.Fatalf("%d answers, %d questions", len(got), len(want))
			}
			for i := range got {
				if strings.HasPrefix(got[i], "error") || sptest.CanonicalJSON(t, class[i], got[i]) != want[i] {
					t.Errorf("%s: %s\nexpected\n%s", class[i], got[i], want[i])
				}
			}
			t.Logf("%d structures read by the connectors, %d of them changed", len(got), changed)
			if changed < len(got)/2 {
				t.Error("too few were changed")
			}
		})
	}
}
