package transform

import (
	"runtime"
	"runtime/debug"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestFilterMemory: what a filter takes does not depend on the number of
// elements, but for a bit each and what stays.
func TestFilterMemory(t *testing.T) {
	testenv.Long(t, "reads twenty million elements")
	const subtasks, n = 20, 1_000_000
	in, g := generatedUnion(subtasks, n, false)
	runtime.GC()
	debug.SetGCPercent(50)
	defer debug.SetGCPercent(100)
	sp, all, err := Filter(t.Context(), in, keepIf(func(e FilterElement) (bool, error) { return e.Index%1000 < 2, nil }))
	if err != nil {
		t.Fatal(err)
	}
	if f := all.States[0]; len(all.States) != 1 || f.Kept != subtasks*n/500 || f.Dropped != subtasks*n-f.Kept || f.KeptBytes != f.Kept*generatedSize {
		t.Errorf("%+v", f)
	}
	for i, s := range sp.Operators[0].Subtasks {
		if got := s.Managed.States[0].Offsets.Len(); got != n/500 {
			t.Errorf("subtask %d holds %d elements", i, got)
		}
	}
	t.Logf("%d elements, at most %d MB in use", subtasks*n, g.peak>>20)
	if g.peak == 0 || g.peak > 64<<20 {
		t.Errorf("%d MB in use", g.peak>>20)
	}
}
