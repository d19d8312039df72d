package conformance

import (
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/internal/sptest"
)

// keyedReads are jobs whose keyed state is stored in ways that other jobs of these tests do
// not have.
var keyedReads = []struct {
	name    string
	options Options
	since   Version
}{
	{name: "async forst", since: V2_0, options: Options{Shape: "keyed", Backend: "forst", Asynchronous: true, Checkpoint: true, Incremental: true, Checkpoints: 2, KeyType: "string", Seed: 501}},
	{name: "async forst savepoint", since: V2_0, options: Options{Shape: "keyed", Backend: "forst", Format: "native", Asynchronous: true, KeyType: "string", Seed: 501}},
}

// The keyed state that spt reads is what the running job held.
func TestKeyedReads(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		for _, c := range keyedReads {
			if version < c.since {
				continue
			}
			t.Run(c.name, func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, c.options)
				want := sptest.KeyedTruth(t, filepath.Join(s.Known, "truth.json"))
				snap := opened(t, s)
				for _, op := range snap.Operators {
					got := sptest.ReadKeyed(t, snap.View(), op)
					if diff := sptest.DiffKeyed(want[op.ID.String()], got.States()); diff != "" {
						t.Errorf("operator %q: %s", op.Label(), diff)
					}
					if len(got.Handles) > 0 {
						t.Logf("%s: handles %v, entries %v, key groups with entries %v", op.Label(), got.Handles, got.Entries, got.Groups)
					}
				}
			})
		}
	})
}
