package writer

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// Flink restores relative files in the shared list of an incremental
// checkpoint, and breaks the next checkpoint after a CLAIM restore
// (docs/flink-notes.md): whoever makes such a list says so.
func TestRelativeSharedFilesAreRemarkedOn(t *testing.T) {
	stores := route.New(local.New())
	for pattern, want := range map[string]bool{
		"sp-001":         false, // a savepoint
		"sp-002":         false, // relative all along
		"sp-003/*/chk-3": true,
		"sp-013.spt":     true, // the same checkpoint in an .spt
		"flink-*-counts-incremental/savepoint/*/chk-*": true,
	} {
		found, err := filepath.Glob("../testdata/savepoints/" + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s matches nothing: %v", pattern, err)
		}
		for _, name := range found {
			snap, err := reader.Open(context.Background(), name, &reader.Options{Stores: stores})
			if err != nil {
				t.Fatal(err)
			}
			for keep, want := range map[bool]bool{false: want, true: false} {
				p, err := Prepare(context.Background(), snap.View(), filepath.Join(t.TempDir(), "out"), &Options{Stores: stores, KeepReferences: keep})
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Contains(strings.Join(p.Remarks, "\n"), "NO_CLAIM"); got != want {
					t.Errorf("%s, references kept %v: remarks %q", name, keep, p.Remarks)
				}
			}
			if err := snap.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
