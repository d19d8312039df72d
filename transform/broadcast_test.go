package transform

import (
	"encoding/json"
	"maps"
	"testing"

	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestBroadcastsKnown: the copies of broadcast states of real jobs, against
// what each subtask held.
func TestBroadcastsKnown(t *testing.T) {
	equal, differ := 0, 0
	for _, k := range testenv.KnownSnapshots(t) {
		reports, err := DiagnoseBroadcasts(t.Context(), sptest.Open(t, k.Location).View(), UnionOptions{})
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		for _, r := range reports {
			text := map[int32]string{}
			for _, op := range sptest.TruthOf(t, k.Dir).Operators {
				for _, s := range op.Subtasks {
					if c, ok := s.OperatorState[r.State]; ok && op.ID == r.Operator.ID.String() {
						p, err := json.Marshal(c.Entries)
						if err != nil {
							t.Fatal(err)
						}
						text[s.Index] = string(p)
					}
				}
			}
			held := maps.Clone(text)
			different := map[string]bool{}
			for _, c := range held {
				different[c] = true
			}
			var bytes int64
			for _, v := range r.Versions {
				bytes += v.Bytes * int64(len(v.Subtasks))
				for _, sub := range v.Subtasks {
					if held[sub] != held[v.Subtasks[0]] || text[sub] == "" {
						t.Errorf("%s, %s: subtasks %v are said to hold the same", k.Name, r.State, v.Subtasks)
					}
					delete(text, sub)
				}
			}
			if len(text) > 0 || bytes != r.Bytes || len(r.Versions) != len(different) {
				t.Errorf("%s, %s: %+v", k.Name, r.State, r)
			}
			if len(r.Versions) == 1 {
				equal++
			} else {
				differ++
			}
		}
	}
	t.Logf("%d states with equal copies, %d with different ones", equal, differ)
	testenv.Found(t, "broadcast states", equal+differ, operatorStates(t, testenv.KnownSnapshots(t), "broadcast"))
}
