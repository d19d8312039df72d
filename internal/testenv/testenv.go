// Package testenv finds what a test needs on the machine. If that is missing, the
// test is skipped with a line on standard error; with CI=true it fails.
//
// Tests that read the corpus run on any directory of the same layout: its
// manifest.json or its snapshots state what they must find; see [Found].
package testenv

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

var said sync.Map // lines already written to standard error

// Missing ends a test that needs something that the machine does not have.
func Missing(t testing.TB, what string, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s: %v", what, err)
	}
	NotTested(t, fmt.Sprintf("NOT TESTED, %s: %v", what, err))
}

// Long skips a test with -short, with one line on standard error that says what it
// takes. CI runs every test without -short once.
func Long(t testing.TB, takes string) {
	t.Helper()
	if testing.Short() {
		NotTested(t, fmt.Sprintf("NOT TESTED with -short, %s: it %s", t.Name(), takes))
	}
}

// NotTested skips a test, with one line on standard error, if the system or
// the corpus cannot have what the test needs; see [Missing] for what can be installed.
func NotTested(t testing.TB, why string) {
	t.Helper()
	warn(why)
	t.Skip(why)
}

// warn writes a line on standard error, once in a process.
func warn(line string) {
	if _, before := said.LoadOrStore(line, true); !before {
		fmt.Fprintln(os.Stderr, line)
	}
}

// CorpusDir returns the directory of the corpus of real savepoints: the value of
// SPT_CORPUS, or else shared/corpus next to the project. It may not exist.
func CorpusDir(t testing.TB) string {
	t.Helper()
	if named := os.Getenv("SPT_CORPUS"); named != "" {
		dir, err := filepath.Abs(named)
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	return filepath.Join(filepath.Dir(ModuleRoot(t)), "shared", "corpus")
}

// Corpus returns the directory of the corpus. It cannot be downloaded, so without
// it a test is skipped even with CI=true, unless SPT_CORPUS names it; .ci/run
// sets that if the corpus exists.
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
	NotTested(t, fmt.Sprintf("NO CORPUS, nothing is tested on real savepoints: %v; set SPT_CORPUS", err))
	panic("not reached")
}

// Counts is the manifest.json of a corpus.
type Counts struct {
	Snapshots         int `json:"snapshots"` // directories with a _metadata
	Serializers       int `json:"serializers"`
	OperatorSnapshots int `json:"operator-snapshots"`
	Known             int `json:"known"`
	Restores          int `json:"restores"` // restored-pN.json files of the known snapshots
}

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
	if c == (Counts{}) {
		t.Fatal("manifest.json counts nothing")
	}
	return c
}

// Found fails a test that did not find exactly as many things in the corpus as
// the manifest, the snapshots or their recorded truth state. The expected number
// must not come from the code under test. If it is 0, the corpus has nothing of
// this kind, and a line on standard error reports that.
func Found[N int | int64](t testing.TB, what string, found, expected N) {
	t.Helper()
	switch {
	case found != expected:
		t.Errorf("%s: found %d, expected %d", what, found, expected)
	case expected == 0:
		warn(fmt.Sprintf("NOT TESTED by %s: this corpus has no %s", t.Name(), what))
	}
}

// Some fails a test that found nothing of a kind that the corpus has.
func Some[N int | int64](t testing.TB, what string, found N, present bool) {
	t.Helper()
	Found(t, what, min(found, 1), map[bool]N{true: 1}[present])
}

// Snapshots returns the directories of the corpus that hold a _metadata, as many as
// its manifest counts.
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
	if len(dirs) == 0 {
		NotTested(t, "NOT TESTED: this corpus has no snapshots")
	}
	return dirs
}

// Options are the options of the job of a known snapshot, from its about.json.
type Options struct {
	Base                                                    string `json:"at"` // the directory that absolute references name
	Shape, Format, Backend                                  string
	Checkpoint, Incremental, Compress, Changelog, Unaligned bool
	FileMerging                                             bool  `json:"file_merging"`
	InlineThreshold                                         int64 `json:"inline_threshold"` // -1: Flink's own
}

// KnownSnapshot is a snapshot whose content is recorded next to it, in truth.json,
// metadata.json and restored-pN.json.
type KnownSnapshot struct {
	Name, Dir string // the directory of the records
	Location  string // of the snapshot: the directory of its _metadata
	At        string // the URI from which Flink restored it
	Flink     string // the release that wrote it
	Options
}

// KnownSnapshots returns the known snapshots of the corpus, as many as its manifest
// counts.
func KnownSnapshots(t testing.TB) (all []KnownSnapshot) {
	t.Helper()
	abouts, err := filepath.Glob(filepath.Join(Corpus(t), "known", "*", "about.json"))
	if want := Manifest(t).Known; err != nil || len(abouts) != want {
		t.Fatalf("%d known snapshots, expected %d: %v", len(abouts), want, err)
	}
	if len(abouts) == 0 {
		NotTested(t, "NOT TESTED: this corpus has no known snapshots")
	}
	for _, file := range abouts {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var about struct {
			Flink, Snapshot string
			Options         Options
		}
		if err := json.Unmarshal(text, &about); err != nil || about.Snapshot == "" {
			t.Fatalf("%s: %v", file, err)
		}
		dir := filepath.Dir(file)
		all = append(all, KnownSnapshot{
			Name: filepath.Base(dir), Dir: dir, Location: filepath.Join(dir, filepath.FromSlash(about.Snapshot)),
			At: "file:" + about.Options.Base + strings.TrimPrefix(about.Snapshot, "savepoint"), Flink: about.Flink, Options: about.Options,
		})
	}
	return all
}

// KnownDirectories returns the directories of the known snapshots.
func KnownDirectories(t testing.TB) (dirs []string) {
	t.Helper()
	for _, k := range KnownSnapshots(t) {
		dirs = append(dirs, k.Dir)
	}
	return dirs
}

// AnyKnown returns a known snapshot whose options match. If the corpus has none,
// it skips the test.
func AnyKnown(t testing.TB, what string, fit func(KnownSnapshot) bool) KnownSnapshot {
	t.Helper()
	all := KnownSnapshots(t)
	i := slices.IndexFunc(all, fit)
	if i < 0 {
		NotTested(t, "NOT TESTED: this corpus has no known snapshot "+what)
	}
	return all[i]
}

// Fixture returns the directory of a snapshot in testdata/savepoints: the one with
// its _metadata.
func Fixture(t testing.TB, name string) string {
	t.Helper()
	dir := filepath.Join(ModuleRoot(t), "testdata", "savepoints", name)
	for _, pattern := range []string{"_metadata", "savepoint/_metadata", "*/chk-*/_metadata", "savepoint/*/chk-*/_metadata"} {
		if found, _ := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern))); len(found) == 1 {
			return filepath.Dir(found[0])
		}
	}
	t.Fatalf("no snapshot in %s", dir)
	return ""
}

// ModuleRoot returns the directory of the go.mod above the test.
func ModuleRoot(t testing.TB) string {
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
