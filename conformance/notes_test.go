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
	for _, version := range Versions() {
		for _, q := range questions {
			name := fmt.Sprintf("%s/%s/%s-%s%s-%v-%v", version, q.kind, q.options.Shape, q.options.Backend, q.options.Format, q.options.Checkpoint, q.options.Incremental)
			t.Run(name, func(t *testing.T) {
				f := Use(t, version)
				s := Make(t, f, q.options)
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
			})
		}
	}
}
