// Package testenv says what a test needs of the machine, and what becomes of the
// test where that is missing: it is skipped with a line on standard error, and
// with CI=true it fails.
package testenv

import (
	"encoding/json"
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
	NotTested(t, fmt.Sprintf("NOT TESTED, %s: %v", what, err))
}

// NotTested skips a test, with one line on standard error, for what a system or a
// corpus does not have by its nature; see [Missing] for what can be installed.
func NotTested(t testing.TB, why string) {
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
	return filepath.Join(filepath.Dir(moduleRoot(t)), "shared", "corpus")
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
	NotTested(t, fmt.Sprintf("NO CORPUS, nothing is proved on real savepoints: %v; set SPT_CORPUS", err))
	panic("not reached")
}

// Counts are what the manifest.json of a corpus says is in it.
type Counts struct {
	Snapshots         int `json:"snapshots"` // directories with a _metadata
	Serializers       int `json:"serializers"`
	OperatorSnapshots int `json:"operator-snapshots"`
	Known             int `json:"known"`
	Restores          int `json:"restores"` // restored-pN.json of the known ones
}

// reference is the corpus that the tests were written with.
var reference = Counts{Snapshots: 424, Serializers: 885, OperatorSnapshots: 215, Known: 52, Restores: 98}

// Manifest returns the counts of the corpus.
func Manifest(t testing.TB) Counts {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Corpus(t), "manifest.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c Counts
	if err := json.Unmarshal(text, &c); err != nil {
		t.Fatalf("manifest.json: %v", err)
	}
	if c.Snapshots == 0 {
		t.Fatal("manifest.json counts no snapshots")
	}
	return c
}

// Least returns the least that a test must have found in the corpus: n in the one
// that the test was written with, and elsewhere in another directory of the same
// layout, of whose content only the manifest is known beforehand.
func Least[N int | int64](t testing.TB, n, elsewhere N) N {
	t.Helper()
	if Manifest(t) == reference {
		return n
	}
	return elsewhere
}

// Snapshots returns the directories of the corpus that hold a _metadata, as many as
// its manifest says.
func Snapshots(t testing.TB) (dirs []string) {
	t.Helper()
	err := filepath.WalkDir(Corpus(t), func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "_metadata" && !d.IsDir() {
			dirs = append(dirs, filepath.Dir(path))
		}
		return err
	})
	if want := Manifest(t).Snapshots; err != nil || len(dirs) != want {
		t.Fatalf("%d snapshots, expected %d: %v", len(dirs), want, err)
	}
	return dirs
}

// KnownFolders returns the directories of the corpus whose content is known, as many
// as its manifest says. Each holds about.json, truth.json and savepoint/.
func KnownFolders(t testing.TB) []string {
	t.Helper()
	abouts, err := filepath.Glob(filepath.Join(Corpus(t), "known", "*", "about.json"))
	if want := Manifest(t).Known; err != nil || len(abouts) != want {
		t.Fatalf("%d known snapshots, expected %d: %v", len(abouts), want, err)
	}
	dirs := make([]string, len(abouts))
	for i, about := range abouts {
		dirs[i] = filepath.Dir(about)
	}
	return dirs
}

// Known returns the directory of a known snapshot of the corpus the tests were
// written with. Another corpus may not have it: the test is skipped then.
func Known(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(Corpus(t), "known", name, "savepoint")
	if found, _ := filepath.Glob(dir + "/*/chk-*"); len(found) == 1 {
		dir = found[0]
	}
	if _, err := os.Stat(dir); err != nil && Manifest(t) != reference {
		NotTested(t, fmt.Sprintf("NOT TESTED: this corpus has no known/%s", name))
	}
	return dir
}

// Fixture returns the directory of a snapshot in testdata/savepoints: the one with
// its _metadata.
func Fixture(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(moduleRoot(t), "testdata", "savepoints", name)
	for _, pattern := range []string{"_metadata", "savepoint/_metadata", "*/chk-*/_metadata", "savepoint/*/chk-*/_metadata"} {
		if found, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern))); len(found) == 1 {
			return filepath.Dir(found[0])
		}
	}
	t.Fatalf("no snapshot in %s", dir)
	return ""
}

func moduleRoot(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if filepath.Dir(dir) == dir {
			t.Fatal("no go.mod above the test")
		}
	}
}
