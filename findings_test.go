package spt_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/finding"
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
