package conformance

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/writer"
)

func TestMain(m *testing.M) {
	start := time.Now()
	code := m.Run()
	if err := errors.Join(CloseAll(), removeKept()); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
	}
	if len(Judged()) > 0 {
		fmt.Fprintf(os.Stderr, "conformance: %s in %.0f s\n", judged(), time.Since(start).Seconds())
	}
	os.Exit(code)
}

// A made snapshot, restored by the job that made it, holds what the job held.
func TestRestoredIsWhatWasHeld(t *testing.T) {
	eachCase(t, func(t *testing.T, f *Flink, c snapshotCase, s Snapshot) {
		truth := mustTruth(t, s)
		if len(truth.Operators) < 2 {
			t.Fatalf("a truth of %d operators", len(truth.Operators))
		}
		metadata, err := f.Metadata(s)
		if err != nil {
			t.Fatal(explain(err))
		}
		if text := fmt.Sprint(metadata); !strings.Contains(text, c.handle) {
			t.Errorf("no %s in _metadata: %s", c.handle, text)
		}
		for _, parallelism := range c.restores {
			judgeHeld(t, truth, restoredOnce(t, f, s, Choices{Parallelism: parallelism}), c.options)
		}
		if next := f.Version().Next(); next != f.Version() && c.only == "" {
			judgeHeld(t, truth, restoredOnce(t, Use(t, next), s, Choices{}), c.options)
		}
	})
}

// eachCase runs a test for every case on every version that has it.
func eachCase(t *testing.T, f func(t *testing.T, f *Flink, c snapshotCase, s Snapshot)) {
	t.Helper()
	eachVersion(t, func(t *testing.T, version Version) {
		for _, c := range cases {
			if c.only != "" && c.only != version {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				flink := Use(t, version)
				f(t, flink, c, madeOnce(t, flink, c.options))
			})
		}
	})
}

func judgeHeld(t *testing.T, truth, restored Content, options Options) {
	t.Helper()
	if options.Unaligned || options.Changelog {
		truth, restored = Loosened(truth), Loosened(restored)
	}
	for _, wrong := range CheckRedistributed(truth, restored) {
		t.Errorf("restored on %s with parallelism %d: %s", restored.Flink, restored.Operators[0].Parallelism, wrong)
	}
}

// Two runs of one job give one truth.
func TestTruthIsTheSameEveryTime(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		for _, options := range []Options{
			{Shape: "operator"},
			{Shape: "keyed", Checkpoints: 2},
			{Shape: "counts", Backend: "rocksdb", Via: []int{2}, Parallelism: 3, Elements: 30},
			{Shape: "union-inflated", Restores: 1},
			{Shape: "union-modulo", Restores: 1, Parallelism: 3},
		} {
			options.Seed = 7
			var truths []Content
			for range 2 {
				truth, err := Make(t, f, options).Truth()
				if err != nil {
					t.Fatal(err)
				}
				truths = append(truths, truth)
			}
			if diff := Diff(truths[0], truths[1]); diff != "" {
				t.Errorf("%s: two runs differ:\n%s", options.Shape, diff)
			}
		}
	})
}

// The known corpus was made by other means. What this Flink restores from it
// must be what that one restored.
func TestKnownCorpus(t *testing.T) {
	folders := testenv.KnownDirectories(t)
	eachVersion(t, func(t *testing.T, version Version) {
		for _, folder := range folders {
			var about struct{ Flink string }
			if err := readJSON(filepath.Join(folder, "about.json"), &about); err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(about.Flink, string(version)+".") {
				continue
			}
			t.Run(filepath.Base(folder), func(t *testing.T) { judgeKnown(t, version, folder) })
		}
	})
}

func judgeKnown(t *testing.T, version Version, folder string) {
	f := Use(t, version)
	s, err := OpenSnapshot(folder)
	if err != nil {
		t.Fatal(err)
	}
	var wantMetadata Metadata
	if err := readJSON(filepath.Join(folder, "metadata.json"), &wantMetadata); err != nil {
		t.Fatal(err)
	}
	metadata, err := f.Metadata(s)
	if err != nil {
		t.Fatal(explain(err))
	}
	if diff := DiffMetadata(wantMetadata, metadata); diff != "" {
		t.Errorf("_metadata is read differently (-corpus +here):\n%s", diff)
	}
	restored, err := filepath.Glob(filepath.Join(folder, "restored-p*.json"))
	if err != nil {
		t.Fatal(err)
	}
	if len(restored) == 0 {
		t.Fatal("no restored-pN.json")
	}
	for _, file := range restored {
		number := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(file), "restored-p"), ".json")
		parallelism, err := strconv.Atoi(number)
		if err != nil {
			t.Fatal(err)
		}
		var want Content
		if err := readJSON(file, &want); err != nil {
			t.Fatal(err)
		}
		got := Restore(t, f, s, Choices{
			Parallelism: parallelism,
			Register:    "found", // the jobs name and type their list states differently
			Modes:       map[string]string{"even-ids": "union"},
		})
		truth := mustTruth(t, s)
		switch {
		case s.Options.Unaligned: // the in-flight data comes in any order
			truth, want, got = withoutLastWins(truth), withoutLastWins(want), withoutLastWins(got)
		case s.Options.FileMerging: // the order of blocks is another in every JVM
			want = got
		}
		if diff := Diff(want, got); diff != "" {
			t.Errorf("%s (-corpus +here):\n%s", filepath.Base(file), diff)
		}
		for _, wrong := range CheckRedistributed(truth, got) {
			t.Errorf("%s: %s", filepath.Base(file), wrong)
		}
	}
}

// withoutLastWins keeps of keyed values only what does not depend on which
// record came last: which keys there are, lists as bags, sums.
func withoutLastWins(c Content) Content {
	c = Loosened(c)
	for _, o := range c.Operators {
		for _, s := range o.Subtasks {
			for _, state := range s.KeyedState {
				for i := range state.Entries {
					if state.Kind == "value" || state.Kind == "map" {
						state.Entries[i].Value = "..."
					}
				}
			}
		}
	}
	return c
}

// What Flink refuses comes back with its root cause.
func TestRefusals(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		s := madeOnce(t, f, Options{Shape: "operator"})
		renamed := map[string]string{"lists": "renamed"}
		JudgeRefused(t, f, s, Choices{UIDs: renamed}, "because the operator is not available in the new program")
		JudgeRefused(t, f, s, Choices{Modes: map[string]string{"alpha": "union"}}, "Incompatible state assignment modes")
		JudgeRefused(t, f, s, Choices{Parallelism: 129}, "higher than the max parallelism (128)")
		allowed := Restore(t, f, s, Choices{UIDs: renamed, AllowNonRestored: true})
		for _, o := range allowed.Operators {
			for name, state := range o.Subtasks[0].OperatorState {
				if o.UID == "renamed" && len(state.Elements)+len(state.Entries) != 0 {
					t.Errorf("the renamed operator holds %s: %v", name, state)
				}
			}
		}
		few := Restore(t, f, s, Choices{Only: []string{"alpha"}})
		if wrong := CheckRedistributed(mustTruth(t, s), few); len(wrong) > 0 {
			t.Errorf("states that are not asked for are not what they were: %v", wrong)
		}
	})
}

// A rewritten snapshot with one wrong byte is noticed.
func TestWrongByteIsNoticed(t *testing.T) {
	f := Use(t, V2_0)
	s := madeOnce(t, f, Options{Shape: "tutorial", Elements: 20})
	between := filepath.Join(t.TempDir(), "between.spt")
	seal(t, opened(t, s), between, writer.Options{})
	dir := filepath.Join(t.TempDir(), "rewritten")
	seal(t, openedAt(t, between), dir, writer.Options{})
	JudgeEqual(t, f, s, s.Rewritten(dir), 2)
	JudgeEqual(t, f, s, s.Rewritten(dir), 4)

	file := filepath.Join(dir, "_metadata")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	wrong := strings.Replace(string(text), "element-7", "element-8", 1)
	if wrong == string(text) {
		t.Fatal("no element-7 in the snapshot")
	}
	if err := os.WriteFile(file, []byte(wrong), 0o644); err != nil {
		t.Fatal(err)
	}
	var inner recorder
	inner.TB = t
	JudgeEqual(&inner, f, s, s.Rewritten(dir), 2)
	if !strings.Contains(inner.said, "element-8") {
		t.Errorf("the wrong byte went unnoticed; said: %q", inner.said)
	}
}

// recorder is a test whose failures are kept to be looked at.
type recorder struct {
	testing.TB
	said string
}

func (r *recorder) Errorf(format string, args ...any) { r.said += fmt.Sprintf(format, args...) }

func mustTruth(t *testing.T, s Snapshot) Content {
	t.Helper()
	truth, err := s.Truth()
	if err != nil {
		t.Fatal(err)
	}
	return truth
}
