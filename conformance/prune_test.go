package conformance

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// A multiplied union state, pruned by each policy to each place: restored at the
// old and at another parallelism, every subtask sees exactly the elements that
// the policy keeps, and all other state is what it was.
func TestPrune(t *testing.T) {
	options := caseNamed(t, "union-inflated").options
	eachVersion(t, func(t *testing.T, version Version) {
		for _, keep := range []transform.Keep{transform.KeepDistinct, transform.KeepCopies, transform.KeepFirstSubtask, transform.KeepModulo} {
			for _, place := range []transform.PlaceKept{transform.PlaceStay, transform.PlaceFirst, transform.PlaceSpread} {
				t.Run(fmt.Sprintf("%s-%s", keep, place), func(t *testing.T) {
					f := Use(t, version)
					judgePruned(t, f, madeOnce(t, f, options), keep, place)
				})
			}
		}
	})
}

// The same in compressed files, after restores at two parallelisms: each element
// comes six times, and each subtask of three holds two copies of it.
func TestPruneAfterTwoParallelisms(t *testing.T) {
	options := Options{Shape: "union-inflated", Parallelism: 3, Via: []int{2, 2}, Elements: 7, InlineThreshold: Bytes(0), Compress: true, Seed: 41}
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		s := madeOnce(t, f, options)
		judgePruned(t, f, s, transform.KeepDistinct, transform.PlaceStay)
		judgePruned(t, f, s, transform.KeepFirstSubtask, transform.PlaceSpread)
		// Here it shows which subtask kept which element: in twos, two filters
		// keep the same.
		judgePruned(t, f, s, transform.KeepModulo, transform.PlaceStay)
	})
}

func judgePruned(t *testing.T, f *Flink, s Snapshot, keep transform.Keep, place transform.PlaceKept) {
	t.Helper()
	snap := opened(t, s)
	sp, pruned, err := transform.PruneUnion(context.Background(), inputOf(snap), transform.PruneOptions{Keep: keep, Place: place, AcceptUnproven: true})
	if err != nil {
		t.Fatal(err)
	}
	if len(pruned.States) != 1 || pruned.States[0].Skipped != "" {
		t.Fatalf("pruned %+v", pruned)
	}
	out, rewritten := standsFor(t, s)
	seal(t, snap.With(sp.Savepoint), out, writer.Options{})
	written := openedAt(t, out)
	judgeModel(t, f, rewritten, written)

	union := operatorNamed(t, mustTruth(t, s), "union")
	lists := make([][]string, len(union.Subtasks))
	for i, sub := range union.Subtasks {
		lists[i] = sub.OperatorState["offsets"].Raw
	}
	kept := placed(keptOf(t, lists, keep), place)
	all := slices.Concat(kept...)
	if len(all) == 0 || len(all) >= len(slices.Concat(lists...)) {
		t.Fatalf("%d of %d elements are kept: nothing is shown", len(all), len(slices.Concat(lists...)))
	}

	for _, parallelism := range []int{parallelismOf(s), parallelismOf(s) + 2} {
		// Blocks come in the order of the handles, which a plan for what was
		// written knows; TestRescale shows that such plans are right.
		j := &rescaleJudge{f: f, s: rewritten}
		plan := j.planOf(t, written, parallelism, transform.StrategyFlink)
		restored := Restore(t, f, rewritten, Choices{Parallelism: parallelism})
		for _, sub := range operatorNamed(t, restored, "union").Subtasks {
			var want []string
			for _, source := range unionPlan(t, plan, union.ID).Subtasks[sub.Index].Sources {
				want = append(want, part(kept[source.Old], source)...)
			}
			if !sameBag(want, all) {
				t.Errorf("subtask %d is planned to get other elements than were kept", sub.Index)
			}
			if diff := gocmp.Diff(want, sub.OperatorState["offsets"].Raw); diff != "" {
				t.Errorf("parallelism %d, subtask %d (-kept +Flink):\n%s", parallelism, sub.Index, diff)
			}
		}
		others := func(o Operator, _ Subtask, _ string, state OperatorState) (OperatorState, bool) {
			return state, o.ID != union.ID
		}
		before := restoredOnce(t, f, s, Choices{Parallelism: parallelism})
		compareContent(t, f, s.Options, parallelism, withOperatorStates(before, others), withOperatorStates(restored, others))
	}
}

// keptOf says in the simplest way what a policy keeps of each subtask's list.
func keptOf(t *testing.T, lists [][]string, keep transform.Keep) [][]string {
	t.Helper()
	kept := make([][]string, len(lists))
	total, met := map[string]int{}, map[string]int{}
	for _, e := range slices.Concat(lists...) {
		total[e]++
	}
	fewest := slices.Min(slices.Collect(maps.Values(total)))
	for i, list := range lists {
		for k, e := range list {
			var stays bool
			switch keep {
			case transform.KeepDistinct:
				stays = met[e] == 0
			case transform.KeepCopies: // every element of this shape was there once
				stays = met[e] < total[e]/fewest
			case transform.KeepFirstSubtask:
				stays = i == 0
			case transform.KeepModulo:
				stays = k%len(lists) == i
			}
			if stays {
				kept[i] = append(kept[i], e)
			}
			met[e]++
		}
	}
	return kept
}

// placed moves kept elements to where they are to lie.
func placed(kept [][]string, place transform.PlaceKept) [][]string {
	all := slices.Concat(kept...)
	to := make([][]string, len(kept))
	switch place {
	case transform.PlaceStay:
		return kept
	case transform.PlaceFirst:
		to[0] = all
	case transform.PlaceSpread:
		for i := range to {
			n := len(all) / (len(to) - i)
			if len(all)%(len(to)-i) > 0 {
				n++
			}
			to[i], all = all[:n], all[n:]
		}
	}
	return to
}

func operatorNamed(t *testing.T, c Content, name string) Operator {
	t.Helper()
	for _, o := range c.Operators {
		if o.Name == name {
			return o
		}
	}
	t.Fatalf("no operator %q", name)
	return Operator{}
}

func unionPlan(t *testing.T, plan *transform.RescalePlan, id string) *transform.StatePlan {
	t.Helper()
	for _, op := range plan.Operators {
		if op.Operator.ID.String() == id && len(op.States) == 1 {
			return op.States[0]
		}
	}
	t.Fatal("no plan for the union state")
	return nil
}
