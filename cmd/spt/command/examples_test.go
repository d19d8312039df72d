package command

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// word is a word of a command line: quoted, or without blanks.
var word = regexp.MustCompile(`'[^']*'|[^' ]+`)

// TestHelpExamples runs the examples of the help that name savepoints of
// testdata: as they stand, in a folder that holds these. One may find something
// (exit 1), none may fail.
func TestHelpExamples(t *testing.T) {
	fixtures, err := filepath.Abs("../../../testdata/savepoints")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	entries, err := os.ReadDir(fixtures)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(fixtures, e.Name()), filepath.Join(dir, e.Name())); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	run := 0
	for _, c := range New(OSEnv()).Commands() {
		for line := range strings.SplitSeq(c.Example, "\n") {
			line, _, _ = strings.Cut(line, " | ")
			line, _, _ = strings.Cut(line, " && ")
			var args []string
			for _, w := range word.FindAllString(line, -1) {
				if w == ">" {
					break
				}
				args = append(args, strings.Trim(w, "'"))
			}
			if len(args) > 0 {
				args = args[1:] // but the program
			}
			if !isOfFixtures(args) {
				continue
			}
			run++
			var out, errs bytes.Buffer
			env := OSEnv()
			env.Stdout, env.Stderr, env.Getenv = &out, &errs, func(string) string { return "" }
			if code := Main(t.Context(), args, env); code > 1 || code == 1 && c.Name() != "diff" && c.Name() != "inspect" {
				t.Errorf("%s: exit %d\n%s", strings.TrimSpace(line), code, errs.String())
			}
			for _, name := range []string{"small", "smaller", "fewer", "both", "renamed", "swapped", "sp-small", "renumbered", "as-list", "wider", "sp-001-p3", "pruned"} {
				if err := os.RemoveAll(name); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("%d examples", run)
	if run < 27 {
		t.Error("that is less than there is")
	}
}

// isOfFixtures: all that it reads is a savepoint of testdata, or was written by
// an example before it.
func isOfFixtures(args []string) bool {
	found := false
	for _, a := range args {
		switch {
		case strings.HasPrefix(a, "chk-"), strings.HasPrefix(a, "/data/"), strings.HasSuffix(a, ".txt"), strings.HasSuffix(a, ".yaml"), strings.HasSuffix(a, ".json"), strings.HasPrefix(a, "savepoints/"), strings.HasPrefix(a, "sp-2."):
			return false
		case strings.HasPrefix(a, "sp-0"), strings.HasPrefix(a, "flink-"):
			found = true
		}
	}
	return found
}
