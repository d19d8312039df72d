package sptest

import (
	"testing"

	"github.com/savepoint-tools/spt/reader"
)

// Open opens a snapshot on the local disk and closes it when the test ends.
func Open(t testing.TB, dir string) *reader.Snapshot {
	t.Helper()
	return OpenIn(t, Stores(), dir)
}
