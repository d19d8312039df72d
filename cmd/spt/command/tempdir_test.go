package command

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Whatever counts elements for a command does so in the directory and with the jobs
// that the user gave: a call that leaves out the first fills that of the system.
func TestTempDirIsPassedOn(t *testing.T) {
	counting := []string{"transform.UnionOptions", "transform.PruneOptions", "diff.Options", "check.Options"}
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok {
				return true
			}
			sel, ok := lit.Type.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			pkg, ok := sel.X.(*ast.Ident)
			if !ok || !slices.Contains(counting, pkg.Name+"."+sel.Sel.Name) {
				return true
			}
			found[pkg.Name+"."+sel.Sel.Name] = true
			for _, field := range []string{"TempDir", "Jobs"} {
				if !slices.ContainsFunc(lit.Elts, func(e ast.Expr) bool {
					kv, ok := e.(*ast.KeyValueExpr)
					if !ok {
						return false
					}
					key, ok := kv.Key.(*ast.Ident)
					return ok && key.Name == field
				}) {
					t.Errorf("%v: %s.%s without %s", fset.Position(lit.Pos()), pkg.Name, sel.Sel.Name, field)
				}
			}
			return true
		})
	}
	if len(found) != len(counting) {
		t.Errorf("only %v are used", found)
	}
}
