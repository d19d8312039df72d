package spt_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"strconv"
	"testing"
)

// releaseTexts are the files outside of format/flink whose texts name a release of
// Flink, and why they cannot ask its table.
var releaseTexts = map[string]string{
	"format/flink/release.go":         "the table",
	"format/flink/serializers.go":     "the table of serializers",
	"format/finding/catalogue.go":     "texts of docs, which a test compares",
	"internal/explain/findings.go":    "texts of docs/findings.md",
	"internal/explain/terms.go":       "texts of docs/findings.md",
	"format/flink/opstate/layout.go":  "FLINK-34063 is a fault of single patches",
	"conformance/version.go":          "what is installed to judge with",
	"writer/plan.go":                  "FLINK-39964 is a fault of single patches",
	"cmd/spt/reference/types.go":      "text of docs/types.md",
	"format/flink/types/catalogue.go": "text of docs/types.md",
	"cmd/spt/command/root.go":         "help",
	"cmd/spt/command/rename.go":       "help",
	"cmd/spt/command/convert.go":      "help",
	"cmd/spt/command/check.go":        "help",
}

// TestReleases: rules that depend on a release ask the table of format/flink. No
// other code names one, but for the texts of releaseTexts.
func TestReleases(t *testing.T) {
	release := regexp.MustCompile(`\b(1\.([3-9]|1[0-9]|20)|2\.[0-9])\b`)
	files, set := sources(t, parser.SkipObjectResolution)
	used := map[string]bool{}
	for name, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.BasicLit:
				text, err := strconv.Unquote(n.Value)
				if n.Kind != token.STRING || err != nil || !release.MatchString(text) {
					break
				}
				used[name] = true
				if releaseTexts[name] == "" {
					t.Errorf("%s: %q names a release: ask format/flink", set.Position(n.Pos()), release.FindString(text))
				}
			case *ast.CallExpr:
				if fun, ok := n.Fun.(*ast.SelectorExpr); ok && (fun.Sel.Name == "MustRelease" || fun.Sel.Name == "Release") {
					if pkg, ok := fun.X.(*ast.Ident); ok && pkg.Name == "flink" {
						t.Errorf("%s: makes a release: ask format/flink", set.Position(n.Pos()))
					}
				}
			}
			return true
		})
	}
	for name := range releaseTexts {
		if !used[name] {
			t.Errorf("%s names no release: remove it from releaseTexts", name)
		}
	}
}
