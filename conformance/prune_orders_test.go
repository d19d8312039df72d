package conformance

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// From about 10 subtasks on, Flink assigns the handles of a union state to some
// subtasks in another order than to the others, and the lists that they write
// back are equal as multisets only. Such states are proven to be multiplied,
// every policy prunes them, and Flink then hands every subtask each element once.
func TestPruneOrdersDiffer(t *testing.T) {
	for _, c := range []struct {
		options  Options
		restored []int // at these parallelisms
	}{
		{Options{Shape: "union-readded", Parallelism: 12, Elements: 40, Restores: 1, Seed: 51}, []int{12, 7, 3}},
		{Options{Shape: "union-readded", Parallelism: 40, Elements: 80, Restores: 1, Seed: 52}, []int{40, 3}},
		{Options{Shape: "union-readded", Parallelism: 12, Elements: 24, Restores: 1, Seed: 53, InlineThreshold: Bytes(0), Compress: true}, []int{12, 16}},
	} {
		options := c.options
		t.Run(fmt.Sprintf("p%d-compressed-%t", options.Parallelism, options.Compress), func(t *testing.T) {
			eachVersion(t, func(t *testing.T, version Version) {
				f := Use(t, version)
				// File names are random, and with them which handles share a bucket of
				// Flink's hash map: of 12 handles some do in all but 1 of 300 snapshots.
				for try := range 4 {
					s := Make(t, f, options)
					if lists := unionLists(t, s); len(ordersOf(lists)) > 1 {
						judgeOnce(t, f, s, lists, c.restored)
						return
					}
					t.Logf("snapshot %d: all subtasks hold the elements in one order", try)
				}
				t.Fatal("no snapshot in which the orders differ")
			})
		})
	}
}

// unionLists is what each subtask holds, in order.
func unionLists(t *testing.T, s Snapshot) (lists [][]string) {
	t.Helper()
	for _, sub := range operatorNamed(t, mustTruth(t, s), "union").Subtasks {
		lists = append(lists, sub.OperatorState["offsets"].Raw)
	}
	return lists
}

// ordersOf is the number of subtasks that hold each list.
func ordersOf(lists [][]string) map[string]int {
	orders := map[string]int{}
	for _, list := range lists {
		orders[fmt.Sprint(list)]++
	}
	return orders
}

// judgeOnce prunes a union state that one restore multiplied by every policy, and
// restores it at these parallelisms.
func judgeOnce(t *testing.T, f *Flink, s Snapshot, lists [][]string, restored []int) {
	t.Helper()
	p := parallelismOf(s)
	union := operatorNamed(t, mustTruth(t, s), "union")
	want := slices.Compact(slices.Sorted(slices.Values(slices.Concat(lists...)))) // each element once
	t.Logf("%d subtasks, %d orders, %d different elements", len(lists), len(ordersOf(lists)), len(want))
	if len(lists) != p || len(want) != s.Options.Elements {
		t.Fatalf("%d subtasks hold %d different elements, %d and %d were made", len(lists), len(want), p, s.Options.Elements)
	}
	for i, list := range lists {
		if sorted := slices.Sorted(slices.Values(list)); !slices.Equal(sorted, want) {
			t.Fatalf("subtask %d holds other elements", i)
		}
	}

	snap := opened(t, s)
	for _, keep := range []transform.Keep{transform.KeepDistinct, transform.KeepCopies, transform.KeepFirstSubtask, transform.KeepModulo} {
		t.Run(string(keep), func(t *testing.T) {
			sp, pruned, err := transform.PruneUnion(context.Background(), inputOf(snap), transform.PruneOptions{Keep: keep})
			if err != nil {
				t.Fatal(err)
			}
			if r := pruned.States[0]; len(pruned.States) != 1 || r.Verdict != transform.VerdictProduct || r.Skipped != "" || !r.Equal || r.SameOrder || r.Factor != int64(p) || r.Kept != int64(len(want)) {
				t.Fatalf("pruned %+v", r)
			}
			out, rewritten := standsFor(t, s)
			seal(t, snap.With(sp.Savepoint), out, writer.Options{})
			others := func(o Operator, _ Subtask, _ string, state OperatorState) (OperatorState, bool) {
				return state, o.ID != union.ID
			}
			for _, parallelism := range restored {
				content := Restore(t, f, rewritten, Choices{Parallelism: parallelism})
				subtasks := operatorNamed(t, content, "union").Subtasks
				if len(subtasks) != parallelism {
					t.Fatalf("%d of %d subtasks", len(subtasks), parallelism)
				}
				for _, sub := range subtasks {
					if got := slices.Sorted(slices.Values(sub.OperatorState["offsets"].Raw)); !slices.Equal(got, want) {
						t.Errorf("parallelism %d, subtask %d is handed %d elements, not each of %d once", parallelism, sub.Index, len(got), len(want))
					}
				}
				before := restoredOnce(t, f, s, Choices{Parallelism: parallelism})
				compareContent(t, f, s.Options, parallelism, withOperatorStates(before, others), withOperatorStates(content, others))
			}
		})
	}
}

// Restores at parallelisms 2, 4 and 6: each element comes 48 times, which is no
// power of 6. Dividing by what is proven leaves 8 of each; one list holds 8 too.
func TestPruneAfterThreeParallelisms(t *testing.T) {
	options := Options{Shape: "union-readded", Parallelism: 6, Via: []int{2, 2, 4}, Elements: 6, Seed: 54}
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		s := Make(t, f, options)
		want := slices.Compact(slices.Sorted(slices.Values(slices.Concat(unionLists(t, s)...))))
		if len(want) != options.Elements {
			t.Fatalf("%d different elements", len(want))
		}
		snap := opened(t, s)
		for keep, copies := range map[transform.Keep]int{transform.KeepDistinct: 1, transform.KeepCopies: 8, transform.KeepFirstSubtask: 8, transform.KeepModulo: 8} {
			sp, pruned, err := transform.PruneUnion(context.Background(), inputOf(snap), transform.PruneOptions{Keep: keep})
			if err != nil {
				t.Fatal(err)
			}
			if r := pruned.States[0]; r.Verdict != transform.VerdictProduct || r.MinCopies != 48 || r.MaxCopies != 48 || r.Factor != 6 || r.MaxFactor != 48 ||
				r.MinKept != int64(copies) || r.MaxKept != int64(copies) || r.Remaining() != int64(copies-1)*r.Distinct {
				t.Errorf("%s: %+v", keep, r)
			}
			out, rewritten := standsFor(t, s)
			seal(t, snap.With(sp.Savepoint), out, writer.Options{})
			for _, sub := range operatorNamed(t, Restore(t, f, rewritten, Choices{Parallelism: 6}), "union").Subtasks {
				if got := slices.Sorted(slices.Values(sub.OperatorState["offsets"].Raw)); !slices.Equal(got, slices.Sorted(slices.Values(slices.Repeat(want, copies)))) {
					t.Errorf("%s: subtask %d is handed %d elements, not each of %d %d times", keep, sub.Index, len(got), len(want), copies)
				}
			}
		}
	})
}
