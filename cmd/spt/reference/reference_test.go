package reference

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const docs = "../../../docs"

// TestDocsAreCurrent fails when a generated file differs, is absent, or is one
// that nothing generates any more.
func TestDocsAreCurrent(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	const cure = "run: cd tools && go run ./gen"
	for _, name := range slices.Sorted(maps.Keys(files)) {
		got, err := os.ReadFile(filepath.Join(docs, name))
		if err != nil {
			t.Errorf("%v; %s", err, cure)
		} else if !bytes.Equal(bytes.ReplaceAll(got, []byte("\r\n"), []byte("\n")), files[name]) {
			t.Errorf("docs/%s differs from the command line; %s", name, cure)
		}
	}
	for _, dir := range Directories() {
		entries, err := os.ReadDir(filepath.Join(docs, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if _, ok := files[dir+"/"+e.Name()]; !ok {
				t.Errorf("docs/%s/%s is not generated; %s", dir, e.Name(), cure)
			}
		}
	}
}

// TestPagesAreWhole: what a page must have, whoever generates it. Whoever reads
// one first looks for an example.
func TestPagesAreWhole(t *testing.T) {
	files, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"inspect", "ls", "cat", "verify", "convert", "rescale", "prune-union", "hash"} {
		page := string(files["cli/"+name+".md"])
		for _, want := range []string{"# spt " + name, "## Examples", "## Flags", "## The answer in JSON", "README.md#flags-of-every-command"} {
			if !strings.Contains(page, want) {
				t.Errorf("cli/%s.md: no %q", name, want)
			}
		}
		if len(files["man/spt-"+name+".1"]) == 0 {
			t.Errorf("no man page of %s", name)
		}
	}
	root := string(files["cli/README.md"])
	for _, want := range []string{"## Exit codes", "| 130 | cancelled |", "[spt inspect](inspect.md)", "`-o, --output table\\|json\\|jsonl\\|csv\\|parquet`"} {
		if !strings.Contains(root, want) {
			t.Errorf("cli/README.md: no %q", want)
		}
	}
}

func TestAnnotate(t *testing.T) {
	var s schema
	if err := s.annotate("enum=raw keyed,enum=list,description=one, two: three"); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(s.Enum, []string{"raw keyed", "list"}) || s.Description != "one, two: three" {
		t.Errorf("%+v", s)
	}
	if err := new(schema).annotate("minimum=3"); err == nil {
		t.Error("an unknown keyword passed")
	}
}
