package conformance

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/writer"
)

var stores = route.New(local.New())

// opened is the snapshot as spt sees it.
func opened(t *testing.T, s Snapshot) *reader.Snapshot {
	t.Helper()
	// Its absolute references name the place where Flink had it.
	mapping := []format.Mapping{{Old: "file:" + s.At, New: s.Dir}}
	return openedAt(t, filepath.Join(s.Dir, s.Path), mapping...)
}

func openedAt(t *testing.T, path string, mapping ...format.Mapping) *reader.Snapshot {
	t.Helper()
	snap, err := reader.Open(context.Background(), path, &reader.Options{Stores: stores, Map: mapping, Follow: []string{"/"}}) // also what refers to the original
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	})
	return snap
}

// standsFor is a name for what spt makes of a snapshot, and that snapshot: it
// stands for Flink exactly where the original does, so that what Flink orders
// by the hash of paths comes in the same order.
func standsFor(t *testing.T, s Snapshot) (out string, rewritten Snapshot) {
	t.Helper()
	rewritten = s
	rewritten.Dir = filepath.Join(t.TempDir(), "snapshot")
	rewritten.Known = ""
	out = filepath.Join(rewritten.Dir, s.Path)
	if err := os.MkdirAll(filepath.Dir(out), 0o755); err != nil {
		t.Fatal(err)
	}
	return out, rewritten
}

// seal writes a snapshot.
func seal(t *testing.T, snap *reader.Snapshot, out string, o writer.Options) {
	t.Helper()
	o.Stores = stores
	if _, err := writer.Write(context.Background(), snap.View(), out, &o); err != nil {
		t.Fatalf("seal %s: %v", out, err)
	}
}

func inputOf(snap *reader.Snapshot) format.View {
	return format.View{Savepoint: snap.Savepoint, Source: snap.Source(), Codecs: snap}
}

// standsAt is the place where Flink has the snapshot.
func standsAt(s Snapshot) string { return "file:" + filepath.Join(s.At, s.Path) }
