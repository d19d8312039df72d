package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// Every command on every .spt file that was made to break one: no panic, no
// "internal error", no exit code 2, and nothing is written for what is refused.
func TestHostileFiles(t *testing.T) {
	const vectors = "../../../format/spt/testdata/vectors"
	text, err := os.ReadFile(filepath.Join(vectors, "index.json"))
	if err != nil {
		t.Fatal(err)
	}
	var index []struct {
		File    string `json:"file"`
		Valid   bool   `json:"valid"`
		Refused string `json:"refused"`
		By      string `json:"by"`
	}
	if err := json.Unmarshal(text, &index); err != nil {
		t.Fatal(err)
	}
	type hostile struct {
		path   string
		refuse int // exit code with which opening is refused; 0: it is opened
		faulty bool
	}
	var files []hostile
	for _, v := range index {
		h := hostile{path: filepath.Join(vectors, filepath.FromSlash(v.File)), faulty: !v.Valid}
		if v.By == "open" {
			if h.refuse = exitInput; v.Refused == "unsupported" {
				h.refuse = exitUnsupported
			}
		}
		files = append(files, h)
	}
	reported, err := filepath.Glob("../../../testdata/hostile/*.spt")
	if err != nil || len(reported) < 8 {
		t.Fatalf("%d files, %v", len(reported), err)
	}
	for _, path := range reported {
		h := hostile{path: path}
		if strings.HasPrefix(filepath.Base(path), "bomb-") {
			h.refuse, h.faulty = exitInput, true
		}
		files = append(files, h)
	}
	stores := route.New(local.New())
	ran := 0
	for _, f := range files {
		dir := realTemp(t)
		in := filepath.Join(dir, filepath.Base(f.path))
		p, err := os.ReadFile(f.path)
		if err != nil {
			t.Fatal(err)
		}
		put(t, in, string(p))
		out := filepath.Join(dir, "out")
		for _, args := range [][]string{
			{"inspect", in}, {"verify", in}, {"check", in}, {"cat", in}, {"diff", in, in}, {"ls", dir},
			{"rescale", in, "--to", "3"}, {"prune-union", in}, {"rescale", in, out, "--to", "3"}, {"convert", in, out}, {"convert", in, out + ".spt"},
			{"drop", in, out, "--operator", "*"},
		} {
			ran++
			code, stderr := runMain(context.Background(), stores, args)
			what := filepath.Base(f.path) + ": " + strings.ReplaceAll(strings.Join(args, " "), dir, "")
			if code == exitFailed || strings.Contains(stderr, "internal error") {
				t.Errorf("%s: exit %d: %s", what, code, stderr)
			}
			list := args[0] == "ls"
			if f.refuse != 0 && !list && code != f.refuse {
				t.Errorf("%s: exit %d, want %d: %s", what, code, f.refuse, stderr)
			}
			if args[0] == "verify" && f.faulty && code == exitOK {
				t.Errorf("%s: sound", what)
			}
			if args[0] == "ls" && code > exitFindings {
				t.Errorf("%s: exit %d: %s", what, code, stderr)
			}
			for _, made := range []string{out, out + ".spt"} {
				if _, err := os.Lstat(made); err == nil {
					if f.refuse != 0 {
						t.Errorf("%s wrote %s", what, filepath.Base(made))
					}
					if err := os.RemoveAll(made); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	if ran < 1400 {
		t.Errorf("%d command lines", ran)
	}
}
