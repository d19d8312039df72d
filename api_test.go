package spt_test

import (
	"bytes"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// apiFile lists what the public packages export, one line each, sorted.
const apiFile = "docs/api.txt"

// TestAPI compares what the public packages export with docs/api.txt. An exported
// name is a promise, so adding, changing or removing one is a line in a diff.
func TestAPI(t *testing.T) {
	got, names := exportedAPI(t)
	if len(got) < 100 {
		t.Fatalf("%d lines: not the whole API", len(got))
	}
	if *update {
		if err := os.WriteFile(apiFile, []byte(strings.Join(got, "\n")+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(apiFile)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	added, removed := without(got, want), without(want, got)
	if len(added)+len(removed) > 0 {
		t.Errorf("the exported API differs from %s (go test -run TestAPI . -update, then read the diff)\nadded:\n%s\nremoved:\n%s",
			apiFile, strings.Join(added, "\n"), strings.Join(removed, "\n"))
	} else if !slices.Equal(got, want) {
		t.Errorf("%s is not sorted, or has a line twice", apiFile)
	}
	total := 0
	for _, pkg := range slices.Sorted(maps.Keys(names)) {
		total += names[pkg]
		t.Logf("%-24s %4d top-level names", pkg, names[pkg])
	}
	t.Logf("%d packages, %d top-level names, %d lines", len(names), total, len(got))
}

// without returns the lines of a that are not in b, each with an indent.
func without(a, b []string) (lines []string) {
	for _, line := range a {
		if !slices.Contains(b, line) {
			lines = append(lines, "  "+line)
		}
	}
	return lines
}

// private reports whether no user can, or should, import a package of this module.
func private(folder string) bool {
	parts := strings.Split(folder, "/")
	return slices.Contains(parts, "internal") || slices.Contains([]string{"cmd", "conformance", "tools", "testdata"}, parts[0])
}

// exportedAPI returns the sorted lines of all public packages, and the number of
// top-level names of each. It reads the compiler's export data, as an importing
// package does.
func exportedAPI(t *testing.T) ([]string, map[string]int) {
	t.Helper()
	cmd := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	exports := map[string]string{}
	var public []string
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		exports[path] = file
		if folder, ours := strings.CutPrefix(path, module+"/"); ours && file != "" && !private(folder) { // a directory of tests exports nothing
			public = append(public, path)
		}
	}
	imp := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	var lines []string
	names := map[string]int{}
	for _, path := range public {
		pkg, err := imp.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		w := apiWriter{pkg: pkg}
		folder := strings.TrimPrefix(path, module+"/")
		for _, name := range pkg.Scope().Names() {
			if token.IsExported(name) {
				names[folder]++
				w.object(pkg.Scope().Lookup(name))
			}
		}
		for _, line := range w.lines {
			lines = append(lines, "pkg "+folder+", "+line)
		}
	}
	slices.Sort(lines)
	return lines, names
}

// apiWriter collects the lines of one package.
type apiWriter struct {
	pkg   *types.Package
	lines []string
}

func (w *apiWriter) addf(format string, args ...any) {
	w.lines = append(w.lines, fmt.Sprintf(format, args...))
}

// text returns a type as a user of the package reads it: types of the package
// itself without qualifier, others with the last element of their import path.
func (w *apiWriter) text(t types.Type) string {
	return types.TypeString(t, func(p *types.Package) string {
		if p == w.pkg {
			return ""
		}
		return p.Name()
	})
}

// signature returns the parameters and results without their names, which no
// caller depends on.
func (w *apiWriter) signature(s *types.Signature) string {
	unnamed := func(tuple *types.Tuple) *types.Tuple {
		var vars []*types.Var
		for v := range tuple.Variables() {
			vars = append(vars, types.NewParam(token.NoPos, nil, "", v.Type()))
		}
		return types.NewTuple(vars...)
	}
	var params []*types.TypeParam
	for p := range s.TypeParams().TypeParams() {
		params = append(params, p)
	}
	plain := types.NewSignatureType(nil, nil, nil, unnamed(s.Params()), unnamed(s.Results()), s.Variadic())
	return w.typeParams(params) + strings.TrimPrefix(w.text(plain), "func")
}

func (w *apiWriter) typeParams(params []*types.TypeParam) string {
	var all []string
	for _, p := range params {
		all = append(all, p.Obj().Name()+" "+w.text(p.Constraint()))
	}
	if all == nil {
		return ""
	}
	return "[" + strings.Join(all, ", ") + "]"
}

func (w *apiWriter) object(obj types.Object) {
	switch obj := obj.(type) {
	case *types.Const:
		w.addf("const %s %s = %s", obj.Name(), w.text(obj.Type()), obj.Val().ExactString())
	case *types.Var:
		w.addf("var %s %s", obj.Name(), w.text(obj.Type()))
	case *types.Func:
		w.addf("func %s%s", obj.Name(), w.signature(obj.Signature()))
	case *types.TypeName:
		w.typeName(obj)
	}
}

func (w *apiWriter) typeName(obj *types.TypeName) {
	if obj.IsAlias() {
		w.addf("type %s = %s", obj.Name(), w.text(types.Unalias(obj.Type())))
		named, ok := types.Unalias(obj.Type()).(*types.Named)
		// What a user can reach only under this name is listed under it.
		if ok && named.Obj().Pkg() != nil && private(strings.TrimPrefix(named.Obj().Pkg().Path(), module+"/")) {
			w.members(obj.Name(), named)
		}
		return
	}
	named := obj.Type().(*types.Named)
	var params []*types.TypeParam
	for p := range named.TypeParams().TypeParams() {
		params = append(params, p)
	}
	name := obj.Name() + w.typeParams(params)
	switch u := named.Underlying().(type) {
	case *types.Struct:
		w.addf("type %s struct", name)
	case *types.Interface:
		sealed := ""
		for m := range u.Methods() {
			if !m.Exported() {
				sealed = ", sealed"
			}
		}
		if u.IsMethodSet() {
			w.addf("type %s interface%s", name, sealed)
		} else {
			w.addf("type %s %s", name, w.text(u))
		}
	default:
		w.addf("type %s %s", name, w.text(u))
	}
	w.members(obj.Name(), named)
}

// members lists the fields and methods of a type.
func (w *apiWriter) members(name string, named *types.Named) {
	switch u := named.Underlying().(type) {
	case *types.Struct:
		w.fields(name, u)
	case *types.Interface:
		for m := range u.Methods() {
			if m.Exported() {
				w.addf("type %s interface, %s%s", name, m.Name(), w.signature(m.Signature()))
			}
		}
		return
	}
	for sel := range types.NewMethodSet(types.NewPointer(named)).Methods() {
		m := sel.Obj().(*types.Func)
		if !m.Exported() || !hidden(named, sel.Index()) {
			continue
		}
		receiver := "*" + name
		if types.NewMethodSet(named).Lookup(m.Pkg(), m.Name()) != nil {
			receiver = name
		}
		w.addf("method (%s) %s%s", receiver, m.Name(), w.signature(m.Signature()))
	}
}

// hidden reports whether a method is the type's own, or is promoted through
// embedded fields that are all unexported, so that no other line shows it.
func hidden(t types.Type, index []int) bool {
	for _, i := range index[:len(index)-1] {
		if p, ok := t.Underlying().(*types.Pointer); ok {
			t = p.Elem()
		}
		f := t.Underlying().(*types.Struct).Field(i)
		if f.Exported() {
			return false
		}
		t = f.Type()
	}
	return true
}

func (w *apiWriter) fields(name string, s *types.Struct) {
	for f := range s.Fields() {
		switch {
		case f.Exported() && f.Embedded():
			w.addf("type %s struct, embedded %s", name, w.text(f.Type()))
		case f.Exported():
			w.addf("type %s struct, %s %s", name, f.Name(), w.text(f.Type()))
		case f.Embedded():
			t := f.Type()
			if p, ok := t.Underlying().(*types.Pointer); ok {
				t = p.Elem()
			}
			if inner, ok := t.Underlying().(*types.Struct); ok {
				w.fields(name, inner)
			}
		}
	}
}
