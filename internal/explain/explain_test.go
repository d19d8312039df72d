package explain

import (
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/finding"
)

// TestFindings: every finding says what to do, and nothing else is explained.
func TestFindings(t *testing.T) {
	for _, f := range finding.Catalogue() {
		if todo[f.Code].do == "" {
			t.Errorf("%s: add what to do to todo in findings.go", f.Code)
		}
	}
	for code := range todo {
		if _, ok := finding.Lookup(code); !ok {
			t.Errorf("%s is not a finding", code)
		}
	}
}

// TestEntries: names are unique, texts are sentences that a table can hold, and lead
// only to entries.
func TestEntries(t *testing.T) {
	all := All()
	names := map[Kind]map[string]bool{}
	for _, k := range Kinds() {
		names[k] = map[string]bool{}
	}
	for _, e := range all {
		if names[e.Kind][normal(e.Name)] {
			t.Errorf("two entries %s %q", e.Kind, e.Name)
		}
		names[e.Kind][normal(e.Name)] = true
		for _, text := range []string{e.Meaning, e.Flink, e.Do} {
			if text != "" && !strings.HasSuffix(text, ".") || strings.ContainsAny(text, "|\n") || text != strings.TrimSpace(text) {
				t.Errorf("%s: %q is not a sentence", e.Name, text)
			}
		}
		if e.Meaning == "" || (e.Kind == Term) != (e.By == "") {
			t.Errorf("%+v", e)
		}
		for _, name := range e.See {
			if len(Lookup(name)) == 0 || name == e.Name {
				t.Errorf("%s leads to %q, which is not explained", e.Name, name)
			}
		}
	}
	for _, k := range Kinds() {
		if len(names[k]) < 20 {
			t.Errorf("%d entries of %s", len(names[k]), k)
		}
	}
}

func TestLookup(t *testing.T) {
	for name, want := range map[string]int{"union-multiplied": 2, "Union_Multiplied": 2, "may be multiplied": 1, "UNION STATE": 1, "no such": 0, "": 0, "-": 0} {
		if got := Lookup(name); len(got) != want {
			t.Errorf("%q: %d entries, want %d", name, len(got), want)
		}
	}
}
