package sptest

import (
	"testing"

	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// Open opens a snapshot on the local disk, until the test ends.
func Open(t testing.TB, dir string) *reader.Snapshot {
	t.Helper()
	snap, err := reader.Open(t.Context(), dir, &reader.Options{Stores: route.New(local.New())})
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
