package check

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/internal/sptest"
)

// TestRenamesReported: uids that the planner shifted, and keyed operators whose
// uids were exchanged (testdata/reported).
func TestRenamesReported(t *testing.T) {
	// The names of the uids alone tell nothing of what is whose.
	r, err := Run(t.Context(), sptest.Open(t, "../../testdata/reported/shifted-ids/old").View(), Options{Job: JobOfNames([]string{"1_source", "2_source", "3_source"})})
	if err != nil || len(r.Renames.Likely) != 0 || len(r.Renames.Open) != 1 || r.Renames.Open[0].From[0].Operator.Label() != "5_source" {
		t.Errorf("%+v: %v", r.Renames, err)
	}
	old, like := sptest.Open(t, "../../testdata/reported/swapped-keyed/old"), sptest.Open(t, "../../testdata/reported/swapped-keyed/like")
	r, err = Run(t.Context(), old.View(), Options{Schema: old.Schema, Like: &Like{Savepoint: like.Savepoint, Schema: like.Schema}})
	if err != nil {
		t.Fatal(err)
	}
	if x := cmp.Diff([]string{"warning all-state-unread 01203aa9", "warning all-state-unread e7beec23"}, codes(r)); x != "" {
		t.Errorf("-want +got\n%s", x)
	}
	for _, f := range r.Findings {
		if other := map[string]string{"01203aa9": "e7beec23", "e7beec23": "01203aa9"}[f.Operator.Label()]; !strings.Contains(fmt.Sprint(f.Advice), fmt.Sprintf("%q", other)) {
			t.Errorf("%s: %v", f.Operator.Label(), f.Advice)
		}
	}
}
