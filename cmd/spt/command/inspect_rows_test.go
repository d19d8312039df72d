package command

import (
	"testing"

	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestRowsAddUp: what the rows of inspect --by say of offsets is what the whole
// has, in every real snapshot.
func TestRowsAddUp(t *testing.T) {
	snapshots, offsets := 0, int64(0)
	for _, dir := range testenv.Snapshots(t) {
		env := OSEnv()
		snap, err := env.open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := summary.Of(t.Context(), snap.Savepoint)
		if err != nil {
			t.Fatal(err)
		}
		for by, rows := range map[string][]InspectRow{"subtask": subtaskRows(env, snap.Savepoint), "handle": handleRows(env, snap.Savepoint)} {
			sum := int64(0)
			for _, r := range rows {
				sum += r.OffsetBytes
			}
			if sum != s.Bytes.Offsets {
				t.Errorf("%s: offsets of %d bytes by %s, %d in all", dir, sum, by, s.Bytes.Offsets)
			}
		}
		snapshots++
		offsets += s.Bytes.Offsets
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d snapshots, offsets of %d bytes", snapshots, offsets)
	if snapshots != testenv.Manifest(t).Snapshots || offsets < testenv.Least[int64](t, 10_000, 1) {
		t.Error("that is less than there is")
	}
}
