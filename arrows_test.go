package spt_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/savepoint-tools/spt"

// arrow says what the packages in a folder may import. The longest folder that
// fits counts.
type arrow struct {
	folder string
	own    []string // folders of ours; "format/..." is format and all below it
	not    []string // of everybody else
}

// noOutside is what pure packages do without: no files, network, commands, logs.
var noOutside = []string{"os", "os/...", "io/ioutil", "path/filepath", "net", "net/...", "syscall", "log", "log/...", "embed", "github.com/spf13/...", "github.com/fatih/..."}

// noFiles is what stands above storage does without.
var noFiles = append(slices.Clone(noOutside), "io/fs")

// A storage driver is imported by cmd/spt only.
var (
	driverOwn = []string{"storage", "storage/internal/...", "internal/ability", "internal/conf", "internal/objpath", "internal/ranged", "internal/tempname"}
	driverNot = []string{"log", "log/...", "github.com/spf13/...", "github.com/fatih/..."}
)

// arrows is the layout of the repository. A package that none fits fails the test: a
// new folder says here what it is.
var arrows = []arrow{
	{".", nil, noOutside}, // tests and documents only
	{"format", nil, noOutside},
	{"format/finding", []string{"format"}, noOutside},
	{"format/summary", []string{"format", "internal/hash128", "internal/fileref"}, noOutside},
	{"format/value", []string{"format", "format/internal/jsontext", "internal/jsonstring"}, noOutside},
	{"format/flink", []string{"format", "format/internal/...", "format/value", "format/flink/...", "internal/fingerprint", "internal/limit"}, noOutside},
	{"format/flink/rocksdb", []string{"format", "internal/limit"}, noOutside}, // knows nothing of Flink
	{"format/spt", []string{"format", "format/internal/...", "format/value", "format/spt/...", "internal/limit", "internal/fingerprint"}, noOutside},
	{"storage", []string{"storage/...", "internal/ability", "internal/fault", "internal/objpath", "internal/ranged", "internal/tempname"}, []string{"net", "net/...", "log", "log/...", "github.com/spf13/..."}},
	{"storage/internal/plainhttp", []string{"storage", "storage/internal/retry"}, driverNot},
	{"storage/internal", []string{"storage", "internal/objpath", "internal/ranged"}, []string{"log", "log/...", "github.com/spf13/..."}},
	{"storage/s3", driverOwn, driverNot},
	{"storage/gcs", driverOwn, driverNot},
	{"storage/azure", driverOwn, driverNot},
	{"storage/hdfs", append(slices.Clone(driverOwn), "internal/fault"), driverNot},
	{"storage/web", driverOwn, driverNot},
	{"reader", []string{"format/...", "storage", "storage/local", "storage/route", "internal/ability", "internal/objpath", "internal/ranged", "internal/shell", "internal/tempname", "internal/work", "internal/fileref", "internal/fingerprint", "internal/limit"}, noFiles},
	{"writer", []string{"format/...", "storage", "storage/local", "storage/mem", "storage/route", "reader", "internal/ability", "internal/scratch", "internal/objpath", "internal/ranged", "internal/shell", "internal/tempname", "internal/work", "internal/fileref", "internal/fingerprint", "internal/limit"}, noFiles},
	{"transform", []string{"format", "format/value", "format/finding", "format/summary", "format/flink", "format/flink/connector", "format/flink/metadata", "format/flink/types", "format/flink/assign", "internal/hash128", "internal/number", "internal/objpath", "internal/scratch", "internal/tally", "internal/work", "transform/internal/..."}, noFiles},
	{"transform/diff", []string{"format", "format/summary", "format/flink/connector", "format/flink/types", "internal/hash128", "internal/number", "internal/tally", "transform", "transform/internal/...", "internal/work", "internal/fileref"}, noFiles},
	{"transform/count", []string{"format", "format/value", "internal/work"}, noFiles},
	{"transform/check", []string{"format", "format/finding", "format/summary", "format/flink", "format/flink/types", "internal/number", "transform", "transform/internal/..."}, noFiles},
	{"transform/orphans", []string{"format/...", "storage", "storage/local", "storage/route", "reader", "internal/ability", "internal/fileref", "internal/objpath", "internal/ranged", "internal/tempname"}, noFiles},
	{"transform/internal", []string{"format", "format/value", "format/flink/connector", "format/flink/types", "format/summary", "internal/hash128", "internal/tally", "internal/work", "transform"}, noFiles},
	{"internal/ability", []string{"storage", "internal/objpath", "internal/tempname"}, noFiles},
	{"internal/fileref", []string{"format", "format/finding"}, noOutside},
	{"format/internal", []string{"format", "format/value", "internal/limit"}, noOutside},
	{"internal/fingerprint", []string{"format"}, noOutside},
	{"internal/limit", []string{"format"}, noOutside},
	{"internal/jsonstring", nil, noOutside},
	{"internal/number", nil, noOutside},
	{"internal/objpath", nil, noOutside},
	{"internal/ranged", []string{"storage"}, noFiles},
	{"internal/tempname", nil, []string{"net", "net/...", "log", "log/..."}},
	{"internal/shell", nil, noOutside},
	{"internal/ui", []string{"internal/jsonstring", "internal/number"}, []string{"net", "net/...", "log", "log/..."}},
	{"internal/work", []string{"format"}, noOutside},
	{"internal/hash128", nil, noOutside},
	{"internal/tally", []string{"format", "internal/hash128", "internal/scratch"}, []string{"net", "net/...", "log", "log/..."}},
	{"internal/keyset", []string{"internal/hash128", "internal/scratch"}, []string{"net", "net/...", "log", "log/..."}},
	{"internal/scratch", nil, []string{"net", "net/...", "log", "log/..."}},
	{"internal/fault", nil, noOutside}, // armed by tests only
	{"internal/storetest", []string{"storage/...", "internal/ability", "internal/ranged", "internal/tempname"}, []string{"net", "net/...", "log", "log/...", "github.com/spf13/..."}}, // for tests only
	{"internal/expression", []string{"format/value"}, noOutside},
	{"internal/conf", nil, []string{"net", "net/...", "log", "log/...", "github.com/spf13/..."}},
	{"internal/servertest", []string{"internal/testenv"}, []string{"log", "log/...", "github.com/spf13/..."}},            // for tests only
	{"internal/testenv", []string{"format/value"}, []string{"net", "net/...", "log", "log/...", "github.com/spf13/..."}}, // for tests only
	{"internal/sptest", []string{"format/...", "storage/...", "reader", "writer", "internal/sptest", "internal/testenv"}, []string{"github.com/spf13/..."}},
	{"internal/schema", []string{"format/flink/types", "format/value"}, noOutside},
	{"internal/columns", []string{"format", "format/flink/types", "format/value"}, noFiles},
	{"internal/explain", []string{"format/finding"}, noOutside},
	{"internal/trend", nil, noOutside},
	{"internal/browse", []string{"internal/ui"}, append(slices.Clone(noOutside), "charm.land/...")},
	{"internal/browse/screen", []string{"internal/browse"}, []string{"os", "os/...", "net", "net/...", "log", "log/...", "github.com/spf13/..."}},
	{"internal/watch", []string{"format", "reader", "storage", "internal/report", "internal/trend"}, noFiles},
	{"internal/watch/export", []string{"internal/trend", "internal/watch"}, []string{"os", "os/...", "log", "log/...", "github.com/spf13/..."}},
	{"internal/watch/notify", nil, []string{"os", "os/...", "log", "log/...", "github.com/spf13/..."}},
	{"internal/report", []string{"internal/columns", "internal/schema", "format/...", "storage", "internal/ability", "reader", "writer", "transform/...", "internal/explain", "internal/objpath", "internal/shell", "internal/trend", "internal/ui", "internal/fileref", "internal/number"}, noOutside},
	{"internal/picture", nil, noOutside},
	{"internal/report/html", []string{"format", "internal/number", "internal/picture", "internal/report", "internal/shell", "internal/ui"}, []string{"os", "os/...", "net", "net/...", "log", "log/...", "github.com/spf13/..."}},
	{"cmd/spt", []string{"cmd/spt/command"}, []string{"log", "log/..."}},
	{"cmd/spt/command", []string{"format/...", "storage/...", "reader", "writer", "transform/...", "internal/ability", "internal/browse/...", "internal/conf", "internal/explain", "internal/expression", "internal/hash128", "internal/keyset", "internal/objpath", "internal/shell", "internal/tally", "internal/tempname", "internal/report/...", "internal/ui", "internal/watch/...", "internal/work", "internal/fileref", "internal/limit", "internal/number"}, []string{"net", "net/...", "log", "log/..."}},
	{"cmd/spt/reference", []string{"cmd/spt/command", "internal/report", "format/flink/types"}, []string{"net", "net/...", "log", "log/..."}},
	{"conformance", []string{"conformance", "internal/sptest", "internal/testenv", "format/...", "format/flink/assign", "storage/...", "reader", "writer", "transform/..."}, []string{"github.com/spf13/..."}},
}

// within says whether an import path lies in a pattern.
func within(pattern, imported string) bool {
	if folder, ok := strings.CutSuffix(pattern, "/..."); ok {
		return imported == folder || strings.HasPrefix(imported, folder+"/")
	}
	return imported == pattern
}

func anyWithin(patterns []string, imported string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return within(p, imported) })
}

func arrowOf(folder string) (arrow, bool) {
	best, found := arrow{}, false
	for _, a := range arrows {
		if (a.folder == folder || strings.HasPrefix(folder, a.folder+"/")) && (!found || len(a.folder) > len(best.folder)) {
			best, found = a, true
		}
	}
	return best, found
}

// sources are the files of the product, without tests, by path.
func sources(t *testing.T, mode parser.Mode) (map[string]*ast.File, *token.FileSet) {
	t.Helper()
	files, set := map[string]*ast.File{}, token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if d.IsDir() {
			// tools is a module of its own; the others hold no packages.
			if name != "." && (strings.HasPrefix(d.Name(), ".") || slices.Contains([]string{"testdata", "tools", "target", "docs"}, d.Name())) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(set, name, nil, mode)
		if err != nil {
			return err
		}
		files[name] = f
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("%d files: not the whole project", len(files))
	}
	return files, set
}

// TestArrows: who may import whom.
func TestArrows(t *testing.T) {
	files, _ := sources(t, parser.ImportsOnly)
	for name, f := range files {
		folder := path.Dir(name)
		a, ok := arrowOf(folder)
		if !ok {
			t.Errorf("%s: no rule says what %s may import", name, folder)
			continue
		}
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if ours, ok := strings.CutPrefix(imported, module+"/"); ok {
				if !anyWithin(a.own, ours) {
					t.Errorf("%s imports %s: %s may import of ours only %q", name, ours, a.folder, a.own)
				}
			} else if anyWithin(a.not, imported) && !strings.Contains(folder, "/cmd/") {
				t.Errorf("%s imports %s, which %s does without", name, imported, a.folder)
			}
		}
	}
}

// outside are the ways out that only Env may take.
var outside = map[string][]string{
	"os":  {"*"},
	"fmt": {"Print", "Printf", "Println", "Scan", "Scanf", "Scanln"},
	"time": {
		"Now", "Since", "Until", "After", "Tick", "NewTicker", "NewTimer", "Sleep",
	},
}

// TestCommandsUseEnv: a command reads, writes and looks through Env alone, or no
// test could stand in its place.
func TestCommandsUseEnv(t *testing.T) {
	files, set := sources(t, parser.SkipObjectResolution)
	calls := 0
	for name, f := range files {
		if path.Dir(name) != "cmd/spt/command" {
			continue
		}
		for _, decl := range f.Decls {
			fn, isFunc := decl.(*ast.FuncDecl)
			if isFunc && fn.Name.Name == "init" {
				t.Errorf("%s: an init", set.Position(fn.Pos()))
			}
			allowed := name == "cmd/spt/command/env.go" && (!isFunc || fn.Name.Name == "OSEnv")
			ast.Inspect(decl, func(n ast.Node) bool {
				sel, ok := n.(*ast.SelectorExpr)
				if !ok {
					return true
				}
				pkg, ok := sel.X.(*ast.Ident)
				if !ok {
					return true
				}
				calls++
				banned := outside[pkg.Name]
				if !allowed && (slices.Contains(banned, "*") || slices.Contains(banned, sel.Sel.Name)) {
					t.Errorf("%s: %s.%s goes past Env", set.Position(sel.Pos()), pkg.Name, sel.Sel.Name)
				}
				return true
			})
		}
	}
	if calls == 0 {
		t.Fatal("nothing looked at")
	}
}

// libraries are the packages whose texts name no command and no flag of spt: they
// return remedies, and internal/report words them.
var libraries = []string{"format", "reader", "writer", "transform", "storage"}

// TestLibrariesNameNoCommands: only commands know the names of commands and flags.
func TestLibrariesNameNoCommands(t *testing.T) {
	files, set := sources(t, parser.SkipObjectResolution)
	names := map[string]bool{}
	for name, f := range files {
		if path.Dir(name) != "cmd/spt/command" {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if kv, ok := n.(*ast.KeyValueExpr); ok {
				key, _ := kv.Key.(*ast.Ident)
				if use, ok := kv.Value.(*ast.BasicLit); ok && key != nil && key.Name == "Use" {
					text, err := strconv.Unquote(use.Value)
					if err != nil {
						t.Fatal(err)
					}
					names[strings.Fields(text)[0]] = true
				}
			}
			return true
		})
	}
	if !names["inspect"] || !names["prune-union"] || len(names) < 20 {
		t.Fatalf("the commands are not all found: %v", names)
	}
	command := regexp.MustCompile(`(?:^|[^.\w])spt ([a-z-]+)`)
	flag := regexp.MustCompile(`(?:^|[^-\w])(--[a-z][\w-]*|SPT_[A-Z]+)`)
	texts := 0
	for name, f := range files {
		folder, _, _ := strings.Cut(name, "/")
		if !slices.Contains(libraries, folder) {
			continue
		}
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return true
			}
			texts++
			text, err := strconv.Unquote(lit.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range command.FindAllStringSubmatch(text, -1) {
				if names[m[1]] {
					t.Errorf("%s: %q names the command %s", set.Position(lit.Pos()), text, m[1])
				}
			}
			for _, m := range flag.FindAllStringSubmatch(text, -1) {
				if m[1] != "--allowNonRestoredState" { // Flink's own
					t.Errorf("%s: %q names the flag or variable %s", set.Position(lit.Pos()), text, m[1])
				}
			}
			return true
		})
	}
	if texts < 1000 {
		t.Fatalf("%d texts: not all libraries", texts)
	}
}
