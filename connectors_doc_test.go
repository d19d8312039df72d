package spt_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/conformance"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/internal/sptest"
)

const connectorsDoc = "docs/connectors.md"

// tableEnd is the mark after a generated table.
const tableEnd = "<!-- end of table -->\n"

// TestConnectorsDocument: docs/connectors.md has every structure of the table, and says
// of each version what judged it.
func TestConnectorsDocument(t *testing.T) {
	generated(t, connectorsDoc, "TestConnectorsDocument", connectorsTable(t))
}

// generated compares the table of a document, between its marks, with what the named
// test makes, or writes it.
func generated(t *testing.T, name, test, table string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	start := "<!-- table: go test . -run " + test + " -update -->\n"
	before, rest, ok1 := strings.Cut(string(text), start)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no table", name)
	}
	want := before + start + table + tableEnd + after
	switch {
	case want == string(text):
	case *update:
		if err := os.WriteFile(name, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	default:
		t.Errorf("%s differs from the table (go test . -run %s -update):\n%s", name, test, firstDifference(string(text), want))
	}
}

// inFiles are structures that are read in real snapshots of the corpus or made by a Kafka
// broker and Flink in conformance, beyond the vectors.
var inFiles = map[string]string{
	"CommittableCollector 2": "broker",
	"KafkaSourceEnumState 1": "snapshots",
	"CommittableCollector 1": "snapshots",
	"KafkaTopicPartition":    "operator states of Flink 1.4 to 1.20",
	"StreamShardMetadata":    "operator states of Flink 1.4 to 1.7",
}

// lines are the lines of Flink that judge.
var lines = func() (all []string) {
	for _, v := range conformance.Versions() {
		all = append(all, string(v))
	}
	return all
}()

// writtenBy returns who wrote vectors: lines of Flink, then artifacts.
func writtenBy(names []string) string {
	of := slices.IndexFunc(names, func(n string) bool { return !slices.Contains(lines, n) })
	if of < 0 {
		of = len(names)
	}
	all := slices.Clone(names[of:])
	if of > 0 {
		all = slices.Insert(all, 0, "Flink "+strings.Join(names[:of], ", "))
	}
	return strings.Join(all, ", ")
}

// connectorsTable returns the table in Markdown.
func connectorsTable(t *testing.T) string {
	t.Helper()
	judged := map[string][]string{} // by class and version
	for _, file := range sptest.ConnectorVectorFiles(t) {
		for _, v := range sptest.ConnectorVectors(t, file) {
			by := file // a line of Flink
			if !slices.Contains(lines, file) {
				by = v.Artifact
			}
			key := fmt.Sprintf("%s %d", v.Class, v.Version)
			if !slices.Contains(judged[key], by) {
				judged[key] = append(judged[key], by)
			}
		}
	}
	used := map[string]bool{}
	// judges returns what judged a version of a class.
	judges := func(key string) string {
		var all []string
		if names := judged[key]; len(names) > 0 {
			all, used[key] = append(all, "own serializer, "+writtenBy(names)), true
		}
		if inFiles[key] != "" {
			all = append(all, inFiles[key])
		}
		return strings.Join(all, ", ")
	}
	var b strings.Builder
	b.WriteString("| connector | structure | stored in | versions | judged |\n|---|---|---|---|---|\n")
	rows, proven := 0, 0
	for _, s := range connector.Structures() {
		state := "`" + s.State + "`"
		if s.State == "" {
			state = "coordinator"
		}
		var versions, by []string
		for _, n := range s.Versions {
			versions = append(versions, fmt.Sprint(n))
			key := fmt.Sprintf("%s %d", s.Class, n)
			if all := judges(key); all != "" {
				by = append(by, fmt.Sprintf("%d: %s", n, all))
			}
		}
		if len(s.Versions) == 0 {
			if all := judges(s.Class + " 0"); all != "" {
				by = append(by, all)
			}
		}
		if inFiles[s.Class] != "" {
			by = append(by, inFiles[s.Class])
		}
		if len(by) > 0 {
			proven++
		}
		if len(versions) == 0 {
			versions = []string{"–"}
		}
		rows++
		fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s |\n", s.Connector, s.Class, state, strings.Join(versions, ", "), strings.Join(by, "; "))
	}
	for key := range judged {
		if !used[key] {
			t.Errorf("a vector of %s, which is not in the table", key)
		}
	}
	if rows < 40 || proven < 30 {
		t.Errorf("%d structures, %d judged", rows, proven)
	}
	return b.String()
}
