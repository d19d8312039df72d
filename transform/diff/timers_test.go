package diff_test

import (
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/diff"
)

// rawTimers returns the number of handles of raw keyed state of a savepoint.
func rawTimers(v format.View) (n int) {
	for _, op := range v.Operators {
		for _, sub := range op.Subtasks {
			if sub.RawKeyed != nil {
				n++
			}
		}
	}
	return n
}

// TestRawTimers: snapshots by real Flink whose timers are raw keyed state equal themselves
// in the canonical format, where timers are managed state, on either side. With a timer
// less they do not.
func TestRawTimers(t *testing.T) {
	moved, less := 0, 0
	for _, dir := range testenv.Snapshots(t) {
		snap, err := reader.Open(t.Context(), dir, &reader.Options{})
		if err != nil {
			continue // other tests say so
		}
		v := snap.View()
		if rawTimers(v) == 0 {
			continue
		}
		canonical, _, err := transform.Canonical(t.Context(), v, transform.CanonicalOptions{})
		if err != nil || rawTimers(canonical) == rawTimers(v) {
			continue // another test says why
		}
		moved++
		compare := func(a, b format.View) []diff.Difference {
			r, err := diff.Savepoints(t.Context(), a, b, diff.Options{Ignore: map[diff.Kind]bool{diff.KindHandles: true, diff.KindSnapshot: true}})
			if err != nil {
				t.Fatalf("%s: %v", dir, err)
			}
			return r.Differences
		}
		if all := compare(v, canonical); len(all) > 0 {
			t.Errorf("%s: canonical: %+v", dir, all)
		}
		if all := compare(canonical, v); len(all) > 0 {
			t.Errorf("%s: from canonical: %+v", dir, all)
		}
		gone := 0
		fewer, _, err := transform.Filter(t.Context(), canonical, transform.FilterOptions{
			Keyed: func(s format.KeyedState) bool { return s.Kind == types.Timers },
			Jobs:  1,
			KeepEntries: func(transform.FilterHandle) (func(*format.KeyedEntry) (bool, error), error) {
				return func(*format.KeyedEntry) (bool, error) { gone++; return gone > 1, nil }, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		if gone == 0 {
			continue
		}
		less++
		all := compare(v, fewer)
		if len(all) != 1 || all[0].Keyed == nil || all[0].Keyed.Kind != types.Timers || all[0].Keyed.Removed != 1 || all[0].Keyed.Added+all[0].Keyed.Changed != 0 {
			t.Errorf("%s: a timer less: %+v", dir, all)
		}
	}
	testenv.Some(t, "snapshots with raw timers", moved, moved > 0 && less > 0)
	t.Logf("%d snapshots, %d with a timer", moved, less)
}
