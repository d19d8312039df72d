package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// What Flink makes of snapshots that it never writes itself. The answers stand
// in docs/flink-notes.md; if a version answers otherwise, this fails.
func TestCraftedSnapshots(t *testing.T) {
	questions := []struct {
		kind     string
		contains string // of the crafted _metadata as Flink reads it
		options  Options
		restores []int
	}{
		// Relative file handles inside a version-2 _metadata, which knew none.
		{"version-2", `"class":"RelativeFileStateHandle"`, Options{Shape: "operator", InlineThreshold: Bytes(0)}, []int{2, 3}},
		{"version-2", `"class":"RelativeFileStateHandle"`, Options{Shape: "keyed", Format: "native", InlineThreshold: Bytes(0)}, []int{2, 3}},
		// Relative file handles in the shared list of an incremental checkpoint.
		{"shared-relative", `.sst","stream":{"class":"RelativeFileStateHandle"`, Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 2, InlineThreshold: Bytes(0)}, []int{2, 3}},
		// One subtask whose changelog handle names several keyed handles.
		{"changelog-of-many", `"class":"ChangelogStateBackendHandleImpl"`, Options{Shape: "counts", Checkpoint: true, InlineThreshold: Bytes(0)}, []int{1, 2, 3}},
		{"changelog-of-many", `"class":"ChangelogStateBackendHandleImpl"`, Options{Shape: "counts", Checkpoint: true, Parallelism: 3, KeyType: "string"}, []int{1, 2}},
		{"changelog-of-many", `"class":"ChangelogStateBackendHandleImpl"`, Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, InlineThreshold: Bytes(0)}, []int{1, 2, 3}},
		{"changelog-of-many", `"class":"ChangelogStateBackendHandleImpl"`, Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, InlineThreshold: Bytes(0)}, []int{1, 2, 3}},
		{"changelog-of-many", `"class":"ChangelogStateBackendHandleImpl"`, Options{Shape: "keyed"}, []int{1, 2, 3}},
		{"changelog-of-many", `"class":"ChangelogStateBackendHandleImpl"`, Options{Shape: "keyed", Backend: "rocksdb"}, []int{1, 2, 3}},
		{"changelog-of-many", `"class":"ChangelogStateBackendHandleImpl"`, Options{Shape: "keyed", Backend: "rocksdb", Format: "native"}, []int{1, 2, 3}},
	}
	eachVersion(t, func(t *testing.T, version Version) {
		for _, q := range questions {
			name := fmt.Sprintf("%s/%s-%s%s-%v-%v", q.kind, q.options.Shape, q.options.Backend, q.options.Format, q.options.Checkpoint, q.options.Incremental)
			t.Run(name, func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, q.options)
				crafted, err := f.Craft(s, q.kind, t.TempDir())
				if err != nil {
					t.Fatal(explain(err))
				}
				metadata, err := f.Metadata(crafted)
				if err != nil {
					t.Fatal(explain(err))
				}
				if text := fmt.Sprint(metadata); !strings.Contains(text, q.contains) {
					t.Fatalf("no %s in %s", q.contains, text)
				}
				for _, parallelism := range q.restores {
					got, err := f.Restore(crafted, Choices{Parallelism: parallelism})
					if err != nil {
						t.Errorf("parallelism %d: refused: %s", parallelism, explain(err))
						continue
					}
					for _, wrong := range CheckRedistributed(mustTruth(t, s), got) {
						t.Errorf("parallelism %d: %s", parallelism, wrong)
					}
				}
				if q.kind == "changelog-of-many" {
					judgeChangelogOfMany(t, f, s, crafted)
				}
			})
		}
	})
}

// The crafted handle is also taken by a job with changelog on; and a job that
// was restored from it takes checkpoints that can be restored.
func judgeChangelogOfMany(t *testing.T, f *Flink, original, crafted Snapshot) {
	t.Helper()
	on := crafted
	on.Options.Changelog = true
	for _, wrong := range CheckRedistributed(mustTruth(t, original), Restore(t, f, on, Choices{Parallelism: 1})) {
		t.Errorf("changelog on: %s", wrong)
	}
	if !crafted.Options.Checkpoint {
		return
	}
	next, err := f.Proceed(crafted, Choices{Claim: true}, t.TempDir())
	if err != nil {
		t.Fatalf("going on: %s", explain(err))
	}
	for _, wrong := range CheckRedistributed(mustTruth(t, next), Restore(t, f, next, Choices{Parallelism: 3})) {
		t.Errorf("after going on: %s", wrong)
	}
}

// A checkpoint whose shared files are named relatively, restored and claimed:
// what does the next incremental checkpoint say of the files it keeps using?
// They lie beside the old _metadata, not beside the new one.
func TestRelativeSharedFilesAfterClaim(t *testing.T) {
	options := Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 2, InlineThreshold: Bytes(0)}
	eachVersion(t, func(t *testing.T, version Version) {
		for _, relative := range []bool{false, true} {
			for _, claim := range []bool{false, true} {
				t.Run(fmt.Sprintf("relative=%v/claim=%v", relative, claim), func(t *testing.T) {
					f := Use(t, version)
					s := madeOnce(t, f, options)
					if relative {
						crafted, err := f.Craft(s, "shared-relative", t.TempDir())
						if err != nil {
							t.Fatal(explain(err))
						}
						s = crafted
					}
					next, err := f.Proceed(s, Choices{Claim: claim}, t.TempDir())
					if err != nil {
						t.Fatal(explain(err))
					}
					metadata, err := f.Metadata(next)
					if err != nil {
						t.Fatal(explain(err))
					}
					got, err := f.Restore(next, Choices{})
					dangling := strings.Contains(fmt.Sprint(metadata), `.sst","stream":{"class":"RelativeFileStateHandle"`)
					if wantDangling := relative && claim; dangling != wantDangling {
						t.Errorf("relative handles in the shared list of the next checkpoint: %v, want %v", dangling, wantDangling)
					}
					if (err != nil) != dangling || dangling && !strings.Contains(err.Error(), "FileNotFoundException") {
						t.Errorf("dangling: %v, restore: %v", dangling, err)
					}
					if err == nil {
						for _, wrong := range CheckRedistributed(mustTruth(t, next), got) {
							t.Error(wrong)
						}
					}
				})
			}
		}
	})
}

// A changelog checkpoint, restored at 4, claimed, and its next checkpoint
// restored at 3: Flink applies the changes that the subtasks share as often as
// a subtask is handed them, and lists hold their elements twice. spt must not
// write such handles. When a version holds what it held, this fails, and spt
// need not refuse them any more.
func TestSharedChanges(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		s := madeOnce(t, f, caseNamed(t, "keyed-changelog").options)
		next, err := f.Proceed(s, Choices{Parallelism: 4, Claim: true}, t.TempDir())
		if err != nil {
			t.Fatal(explain(err))
		}
		truth := Loosened(mustTruth(t, next))
		if wrong := CheckRedistributed(truth, Loosened(Restore(t, f, next, Choices{Parallelism: 4}))); len(wrong) > 0 {
			t.Errorf("at the same parallelism: %v", wrong)
		}
		wrong := fmt.Sprint(CheckRedistributed(truth, Loosened(Restore(t, f, next, Choices{Parallelism: 3}))))
		if !strings.Contains(wrong, "keyed state or timers differ") {
			t.Errorf("at another parallelism nothing is doubled: %s", wrong)
		}
	})
}
