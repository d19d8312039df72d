// Package testenv says what a test needs of the machine, and what becomes of the
// test where that is missing: it is skipped with a line on standard error, and
// with CI=true it fails.
package testenv

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

var said sync.Map // lines on standard error, each once in a process

// Missing ends a test that lacks something of the machine.
func Missing(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s: %v", what, err)
	}
	skip(t, fmt.Sprintf("NOT TESTED, %s: %v", what, err))
}

func skip(t testing.TB, why string) {
	t.Helper()
	if _, before := said.LoadOrStore(why, true); !before {
		fmt.Fprintln(os.Stderr, why)
	}
	t.Skip(why)
}

// CorpusDir is where the corpus of real savepoints is looked for: what SPT_CORPUS
// names, or else shared/corpus beside the project. It may not be there.
func CorpusDir(t testing.TB) string {
	t.Helper()
	if named := os.Getenv("SPT_CORPUS"); named != "" {
		dir, err := filepath.Abs(named)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for parent := filepath.Dir(dir); ; dir, parent = parent, filepath.Dir(parent) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return filepath.Join(parent, "shared", "corpus")
		}
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
	}
}

// Corpus is the folder of the corpus. No script can fetch it, so a test without
// it is skipped also with CI=true, unless SPT_CORPUS names it; .ci/run sets that
// where the corpus is.
func Corpus(t testing.TB) string {
	t.Helper()
	dir := CorpusDir(t)
	_, err := os.Stat(dir)
	if err == nil {
		return dir
	}
	if os.Getenv("SPT_CORPUS") != "" {
		t.Fatalf("SPT_CORPUS: %v", err)
	}
	skip(t, fmt.Sprintf("NO CORPUS, nothing is proved on real savepoints: %v; set SPT_CORPUS", err))
	panic("not reached")
}

// Snapshots are the folders of the corpus that hold a _metadata.
func Snapshots(t testing.TB) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(Corpus(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "_metadata" && !d.IsDir() {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(dirs) < 400 {
		t.Fatalf("%d snapshots: %v", len(dirs), err)
	}
	return dirs
}

// Known is the folder of a snapshot of the corpus whose content is known.
func Known(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(Corpus(t), "known", name, "savepoint")
	if found, _ := filepath.Glob(dir + "/*/chk-*"); len(found) == 1 {
		dir = found[0]
	}
	return dir
}
