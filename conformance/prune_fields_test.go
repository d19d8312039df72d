package conformance

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// Of the elements of one identity, one stays: the latest, or the one with the largest
// value of a field. Every subtask is handed exactly those, at the old and at another
// parallelism. A union state of tuples, and a list state of POJOs that was made one; the
// first element of both is made the largest, so that it is not the latest, too.
func TestPruneByFields(t *testing.T) {
	options := caseNamed(t, "operator-files").options
	tuples := prunedState{name: "topic-partition-offset-states", by: "value[0]", max: "value[1]", first: `["topic-0",1000000]`}
	pojos := prunedState{name: "counts", by: "flag", max: "count", first: `{"count":2000000000,"flag":true,"id":-1,"name":"the largest"}`}
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		s := madeOnce(t, f, options)
		for name, policies := range map[string][2]transform.Keep{
			"latest tuple, largest POJO": {transform.KeepLatestBy, transform.KeepMaxBy},
			"largest tuple, latest POJO": {transform.KeepMaxBy, transform.KeepLatestBy},
		} {
			t.Run(name, func(t *testing.T) {
				j := &editJudge{f: f, s: s, uid: "lists"}
				truth := operatorOf(mustTruth(t, s), j.id().String())
				snap := opened(t, s)
				union := format.ModeUnion
				view, _, err := transform.Set(t.Context(), inputOf(snap), transform.SetOptions{Operators: format.ByID(j.id()), States: format.ByName(pojos.name), Mode: &union})
				if err != nil {
					t.Fatal(err)
				}
				want := map[string][]Value{}
				for i, p := range []prunedState{tuples, pojos} {
					all, at := p.elements(t, truth)
					c := transform.PatchChange{Operator: j.id(), State: p.name, Subtask: at, Value: transform.PatchValue{JSON: []byte(p.first)}}
					view, _, err = transform.Patch(t.Context(), view, transform.PatchOptions{Values: snap.Values, Changes: func(yield func(transform.PatchChange, error) bool) { yield(c, nil) }})
					if err != nil {
						t.Fatal(err)
					}
					o := transform.PruneOptions{Operators: format.ByID(j.id()), States: format.ByName(p.name), Keep: policies[i], By: []string{p.by}, Values: snap.Values}
					if o.Keep == transform.KeepMaxBy {
						o.Max = p.max
					}
					var done *transform.PruneReport
					if view, done, err = transform.PruneUnion(t.Context(), view, o); err != nil {
						t.Fatal(err)
					}
					want[p.name] = p.kept(t, all, policies[i])
					if other := p.kept(t, all, policies[1-i]); len(want[p.name]) < 2 || len(want[p.name]) >= len(all) || slices.Equal(want[p.name], other) {
						t.Fatalf("%s: of %d elements %v stay: nothing is shown", p.name, len(all), want[p.name])
					}
					if len(done.States) != 1 || done.States[0].Kept != int64(len(want[p.name])) {
						t.Errorf("%s: %+v, want %d elements", p.name, done.States, len(want[p.name]))
					}
				}
				rewritten := j.write(t, snap, view.Savepoint, writer.Options{})
				for _, parallelism := range []int{parallelismOf(s), parallelismOf(s) - 2} {
					got := Restore(t, f, rewritten, Choices{Parallelism: parallelism, Modes: map[string]string{pojos.name: "union"}})
					subtasks := operatorOf(got, j.id().String()).Subtasks
					if len(subtasks) != parallelism {
						t.Errorf("%d subtasks, want %d", len(subtasks), parallelism)
					}
					for _, sub := range subtasks {
						for name, want := range want {
							if got := sub.OperatorState[name]; got.Kind != "union" || !sameValues(want, got.Elements) {
								t.Errorf("parallelism %d, subtask %d, %s %s: %v, want %v", parallelism, sub.Index, got.Kind, name, got.Elements, want)
							}
						}
					}
				}
			})
		}
	})
}

// prunedState is a state that is pruned by the fields of its elements.
type prunedState struct {
	name, by, max string
	first         string // what its first element is made
}

// elements returns the elements of all subtasks, the first of them replaced, and the
// subtask that has it.
func (p *prunedState) elements(t *testing.T, truth *Operator) (all []Value, first int32) {
	t.Helper()
	for _, sub := range truth.Subtasks {
		if len(all) == 0 {
			first = int32(sub.Index)
		}
		all = append(all, sub.OperatorState[p.name].Elements...)
	}
	if len(all) == 0 {
		t.Fatalf("%s has no element", p.name)
	}
	all[0] = Value(p.first)
	return all, first
}

// kept says in the simplest way which elements stay: those that no other one replaces.
func (p *prunedState) kept(t *testing.T, all []Value, keep transform.Keep) (kept []Value) {
	t.Helper()
	for i, e := range all {
		id, n := p.fields(t, e)
		replaced := false
		for k, other := range all {
			otherID, m := p.fields(t, other)
			switch {
			case otherID != id || k == i:
			case keep == transform.KeepLatestBy:
				replaced = replaced || k > i
			default:
				replaced = replaced || m > n || m == n && k < i
			}
		}
		if !replaced {
			kept = append(kept, e)
		}
	}
	return kept
}

// fields returns the fields by which elements are pruned. Null is before all numbers.
func (p *prunedState) fields(t *testing.T, element Value) (identity any, n float64) {
	t.Helper()
	var list []any
	var object map[string]any
	var last any
	if json.Unmarshal([]byte(element), &list) == nil {
		identity, last = list[0], list[1]
	} else if err := json.Unmarshal([]byte(element), &object); err != nil {
		t.Fatal(err)
	} else {
		identity, last = object[p.by], object[p.max]
	}
	if last == nil {
		return identity, math.Inf(-1)
	}
	return identity, last.(float64)
}
