package spt_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/cmd/spt/command"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/explain"
)

// emitted finds the codes of findings in source text: the Code of a finding, what
// is assigned to one, and the arguments of the functions that make them.
var emitted = []*regexp.Regexp{
	regexp.MustCompile(`Finding\{[^}\n]*\bCode: "([a-z-]+)"`),
	regexp.MustCompile(`\b(?:f|found|g)\.Code(?:, f\.Advice|, f\.Message)* = "([a-z-]+)"`),
	regexp.MustCompile(`\.Severity, f\.Code(?:, f\.Message)? = [\w.]+, "([a-z-]+)"`),
	regexp.MustCompile(`\bv\.report\([\w.]+, "([a-z-]+)"`),
	regexp.MustCompile(`\badd\((?:f, )?(?:finding\.\w+|severity), "([a-z-]+)"`),
}

// TestCatalogue: every code that is emitted anywhere is in the catalogue, each in
// the catalogue is emitted, and by a test.
func TestCatalogue(t *testing.T) {
	sources, tests := map[string]string{}, strings.Builder{}
	for _, root := range []string{"format/finding", "reader", "transform", "internal/report", "cmd/spt"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			p, err := os.ReadFile(name)
			switch {
			case err != nil:
				return err
			case strings.HasSuffix(name, "_test.go"), strings.HasSuffix(name, ".txtar"):
				tests.Write(p)
			case strings.HasSuffix(name, ".go"):
				sources[name] = string(p)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	codes := map[string]string{}
	for name, text := range sources {
		for _, re := range emitted {
			for _, m := range re.FindAllStringSubmatch(text, -1) {
				codes[m[1]] = name
			}
		}
	}
	all := finding.Catalogue()
	if !slices.IsSortedFunc(all, func(a, b finding.Entry) int { return strings.Compare(a.Code, b.Code) }) {
		t.Error("the catalogue is not sorted")
	}
	doc, err := os.ReadFile("docs/findings.md")
	if err != nil {
		t.Fatal(err)
	}
	for code, name := range codes {
		if _, ok := finding.Lookup(code); !ok {
			t.Errorf("%s emits %q, which is not in the catalogue", name, code)
		}
	}
	for _, e := range all {
		if codes[e.Code] == "" {
			t.Errorf("nothing emits %q", e.Code)
		}
		if !strings.HasSuffix(e.Meaning, ".") || !strings.HasSuffix(e.Flink, ".") {
			t.Errorf("%q: not sentences", e.Code)
		}
		asserted := regexp.MustCompile(`"` + e.Code + `"|(error|warning|note) ` + e.Code + `\b|,` + e.Code + `,`)
		if !asserted.MatchString(tests.String()) {
			t.Errorf("no test expects %q", e.Code)
		}
		if row := "| `" + e.Code + "` | " + e.Meaning + " | " + e.Flink + " |"; !strings.Contains(string(doc), row) {
			t.Errorf("docs/findings.md lacks the row\n%s", row)
		}
	}
	t.Logf("%d codes", len(all))
}

// TestFindingsDocument: docs/findings.md has what spt explain prints.
func TestFindingsDocument(t *testing.T) {
	var b strings.Builder
	for _, kind := range explain.Kinds() {
		head := map[explain.Kind]string{
			explain.Finding: "| code | meaning | what Flink does | what to do |\n|---|---|---|---|\n",
			explain.Verdict: "\n## Verdicts\n\nResults, states of snapshots and files, and warnings of other commands.\n\n| verdict | of | meaning | what Flink does | what to do |\n|---|---|---|---|---|\n",
			explain.Term:    "\n## Terms\n\n| term | meaning | what Flink does | what to do |\n|---|---|---|---|\n",
		}[kind]
		b.WriteString(head)
		for _, e := range explain.All() {
			switch {
			case e.Kind != kind:
			case kind == explain.Verdict:
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", e.Name, e.By, e.Meaning, e.Flink, e.Do)
			case kind == explain.Finding:
				fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", e.Name, e.Meaning, e.Flink, e.Do)
			default:
				fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", e.Name, e.Meaning, e.Flink, e.Do)
			}
		}
	}
	generated(t, "docs/findings.md", "TestFindingsDocument", b.String())
}

// TestExplanations: every verdict, state and warning that commands print is explained,
// and the commands and flags that explanations name exist.
func TestExplanations(t *testing.T) {
	need := func(name, where string) {
		if len(explain.Lookup(name)) == 0 {
			t.Errorf("%s: nothing explains %q", where, name)
		}
	}
	for _, x := range []struct{ schema, property string }{
		{"inspect", "verdict"}, {"prune-union-states", "verdict"}, {"ls", "state"}, {"offsets", "trouble"}, {"pending", "restore"}, {"orphans", "kept"},
	} {
		text, err := os.ReadFile("docs/schema/" + x.schema + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var schema struct {
			Properties map[string]struct{ Enum []string }
			Defs       map[string]struct {
				Properties map[string]struct{ Enum []string }
			} `json:"$defs"`
		}
		if err := json.Unmarshal(text, &schema); err != nil {
			t.Fatal(err)
		}
		words := schema.Properties[x.property].Enum
		for _, def := range schema.Defs {
			words = append(words, def.Properties[x.property].Enum...)
		}
		if len(words) == 0 {
			t.Errorf("%s has no words of %s", x.schema, x.property)
		}
		for _, word := range words {
			need(word, x.schema)
		}
	}
	warnings := 0
	sources, err := filepath.Glob("internal/report/inspect*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range sources {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`InspectWarning\{\s*Code: +"([a-z_]+)"`).FindAllStringSubmatch(string(text), -1) {
			warnings++
			need(m[1], name)
		}
	}
	if warnings < 9 {
		t.Errorf("%d warnings", warnings)
	}

	root := command.New(command.OSEnv())
	flags := map[string]bool{"allowNonRestoredState": true} // Flink's own
	for _, c := range append(root.Commands(), root) {
		c.Flags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
		c.InheritedFlags().VisitAll(func(f *pflag.Flag) { flags[f.Name] = true })
	}
	named := 0
	for _, e := range explain.All() {
		for _, text := range []string{e.By, e.Meaning, e.Flink, e.Do} {
			for _, m := range regexp.MustCompile(`\bspt ([a-z][a-z-]*)((?: [A-Z.a-z]+(?:=[A-Z]+)?| --[a-z-]+)*)`).FindAllStringSubmatch(text, -1) {
				named++
				c, _, err := root.Find([]string{m[1]})
				if err != nil {
					t.Errorf("%s: no command %s", e.Name, m[1])
					continue
				}
				for _, f := range regexp.MustCompile(`--([a-z-]+)`).FindAllStringSubmatch(m[2], -1) {
					if c.Flags().Lookup(f[1]) == nil && c.InheritedFlags().Lookup(f[1]) == nil {
						t.Errorf("%s: spt %s has no flag --%s", e.Name, m[1], f[1])
					}
				}
			}
			for _, m := range regexp.MustCompile(`--([a-zA-Z-]+)`).FindAllStringSubmatch(text, -1) {
				if !flags[m[1]] {
					t.Errorf("%s: no flag --%s", e.Name, m[1])
				}
			}
		}
	}
	if named < 50 {
		t.Errorf("%d commands named", named)
	}
}
