package transform

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// timesOf is how often each element comes.
func timesOf(lists ...string) map[string]int {
	all := map[string]int{}
	for _, e := range chars(strings.Join(lists, "")) {
		all[e]++
	}
	return all
}

// TestPruneRandomOrders: states that restores at several parallelisms multiplied,
// with elements that came more than once before, and in another order in each
// subtask. Each policy keeps exactly the multiset that it promises.
func TestPruneRandomOrders(t *testing.T) {
	rnd := rand.New(rand.NewPCG(21, 22))
	orders := 0
	for range 300 {
		p := []int{2, 3, 4, 10, 12}[rnd.IntN(5)]
		var base []string
		for range 1 + rnd.IntN(12) {
			base = append(base, string(rune('a'+rnd.IntN(9))))
		}
		list := base
		for range rnd.IntN(3) { // restores before the last
			list = slices.Repeat(list, []int{2, 3, 4}[rnd.IntN(3)])
		}
		lists := make([]string, p)
		seen := map[string]bool{}
		for i := range lists {
			mine := slices.Clone(list)
			rnd.Shuffle(len(mine), func(i, j int) { mine[i], mine[j] = mine[j], mine[i] })
			lists[i] = strings.Join(mine, "")
			seen[lists[i]] = true
		}
		if len(seen) > 1 {
			orders++
		}
		had := timesOf(lists...)
		for _, keep := range []Keep{KeepDistinct, KeepCopies, KeepFirstSubtask, KeepModulo} {
			for _, at := range []PlaceKept{PlaceStay, PlaceFirst, PlaceSpread} {
				got, pruned := prune(t, PruneOptions{Keep: keep, Place: at}, lists...)
				if pruned.Verdict != VerdictProduct || pruned.Skipped != "" || pruned.SameOrder != (len(seen) == 1) {
					t.Fatalf("%q: %+v", lists, pruned)
				}
				kept := timesOf(got...)
				lo, hi := len(list)*p, 0
				for e, n := range had {
					want := 1
					switch keep {
					case KeepCopies:
						want = n / int(pruned.Factor)
					case KeepFirstSubtask, KeepModulo:
						want = n / p
					}
					if kept[e] != want {
						t.Errorf("%s of %q keeps %s %d times, not %d", keep, lists, e, kept[e], want)
					}
					lo, hi = min(lo, want), max(hi, want)
					if at == PlaceStay && keep != KeepModulo { // it was in this subtask
						for i := range got {
							if strings.Count(got[i], e) > strings.Count(lists[i], e) {
								t.Errorf("%s of %q: %q holds %s more often than before", keep, lists, got[i], e)
							}
						}
					}
				}
				if len(kept) != len(had) || pruned.MinKept != int64(lo) || pruned.MaxKept != int64(hi) || pruned.Remaining() != int64(len(strings.Join(got, ""))-len(had)) {
					t.Errorf("%s of %q: %d kept, %+v", keep, lists, len(kept), pruned)
				}
				if keep == KeepModulo && at == PlaceStay {
					// Each subtask keeps its share of the first one's list.
					for i := range got {
						var share []string
						for k, e := range chars(lists[0]) {
							if k%p == i {
								share = append(share, e)
							}
						}
						if got[i] != strings.Join(share, "") {
							t.Errorf("modulo of %q: subtask %d keeps %q, not %q", lists, i, got[i], share)
						}
					}
				}
			}
		}
	}
	if orders < 200 {
		t.Errorf("only %d states in several orders", orders)
	}
}

// TestPruneReported: a union state that Flink 1.20.0 multiplied at parallelism 12,
// in several orders. What is expected follows from about.json.
func TestPruneReported(t *testing.T) {
	var about struct {
		Options struct{ Parallelism, Elements, Restores int64 }
	}
	data, err := os.ReadFile("../testdata/reported/union-p12/about.json")
	if err == nil {
		err = json.Unmarshal(data, &about)
	}
	if err != nil {
		t.Fatal(err)
	}
	o := about.Options
	if o.Parallelism != 12 || o.Elements != 40 || o.Restores != 1 {
		t.Fatalf("about.json says %+v", o)
	}
	stores := sptest.Stores()
	snap := sptest.OpenIn(t, stores, "../testdata/reported/union-p12/savepoint")
	packed := sealed(t, stores, snap, snap.View(), "mem://in.spt")
	for _, in := range []format.View{snap.View(), packed.View()} {
		for _, keep := range []Keep{KeepDistinct, KeepCopies, KeepFirstSubtask, KeepModulo} {
			for _, at := range []PlaceKept{PlaceStay, PlaceFirst, PlaceSpread} {
				from := snap
				if in.Savepoint == packed.Savepoint {
					from = packed
				}
				sp, all, err := PruneUnion(t.Context(), in, PruneOptions{Keep: keep, Place: at})
				if err != nil || len(all.States) != 1 {
					t.Fatal(err)
				}
				r := all.States[0]
				if r.Verdict != VerdictProduct || r.SameOrder || r.Subtasks != 12 || r.Elements != o.Elements*12 || r.Distinct != o.Elements || r.MinCopies != 12 || r.MaxCopies != 12 || r.Factor != 12 || r.MaxFactor != 12 || r.Kept != o.Elements || r.MaxKept != 1 || r.Skipped != "" {
					t.Errorf("%s: %+v", keep, r)
				}
				out := sealed(t, stores, from, sp, fmt.Sprintf("mem://out-%s-%s-%s", from.Container.Family, keep, at))
				count := map[string]int{}
				for _, u := range unionStates(out.Savepoint, nil) {
					for _, h := range u.handles {
						for _, e := range sptest.Elements(t, out.View(), h, "offsets") {
							count[e]++
						}
					}
				}
				for i := range o.Elements {
					// The shape's elements: "partition-i" and 1000 × seed + i.
					want := fmt.Sprintf("partition-%d", i)
					n := 0
					for e, c := range count {
						if strings.Contains(e, want) && e[len(e)-1] == byte((7000+i)&0xff) {
							n += c
						}
					}
					if n != 1 {
						t.Errorf("%s, %s: %s is there %d times", keep, at, want, n)
					}
				}
				if int64(len(count)) != o.Elements {
					t.Errorf("%s, %s: %d elements", keep, at, len(count))
				}
			}
		}
	}
}

// TestUnionPartPruned: a union state in which two of four subtasks lack one
// element each is not proven to be multiplied, but suspicious.
func TestUnionPartPruned(t *testing.T) {
	in := sptest.Open(t, "../testdata/reported/union-part-pruned").View()
	all, err := DiagnoseUnions(t.Context(), in, UnionOptions{})
	if err != nil || len(all) != 1 {
		t.Fatal(err)
	}
	r := all[0]
	if r.Verdict != VerdictNotSure || !r.Suspicious() || r.Elements != 158 || r.Distinct != 40 || r.MinCopies != 3 || r.MaxCopies != 4 || r.Fewest != 39 || r.Most != 40 || r.Held != 158 || r.Common != 38 || r.Equal {
		t.Errorf("%+v", r)
	}
	for keep, want := range map[Keep]int64{KeepDistinct: 40, KeepCopies: 158, KeepFirstSubtask: 158, KeepModulo: 158} {
		_, pruned, err := PruneUnion(t.Context(), in, PruneOptions{Keep: keep, AcceptUnproven: true})
		if err != nil || pruned.States[0].Kept != want || (pruned.States[0].Skipped == "") != (keep == KeepDistinct) {
			t.Errorf("%s: %v, %+v", keep, err, pruned.States[0])
		}
		_, pruned, err = PruneUnion(t.Context(), in, PruneOptions{Keep: keep})
		if err != nil || pruned.States[0].Skipped == "" || pruned.States[0].Kept != 158 {
			t.Errorf("%s, only what is proven: %v, %+v", keep, err, pruned.States[0])
		}
	}
}

// TestSuspicious: elements that repeat without proof, in the ways in which that
// happens.
func TestSuspicious(t *testing.T) {
	for _, c := range []struct {
		lists               []string
		repeats, suspicious bool
		held, fewest, most  int64
		common              int64
	}{
		{[]string{"abcd", "abcd", "abc", "abd"}, true, true, 14, 3, 4, 2},        // subtasks that lack some
		{[]string{"abcd", "abcde", "abcdf", "abcd"}, true, true, 18, 4, 5, 4},    // subtasks that have more
		{[]string{"abcdefghijkl", "ab", "cd", "ef"}, true, false, 18, 2, 12, 0},  // one is much larger
		{[]string{"aabb", "cd", "ef", "g"}, true, false, 7, 1, 4, 0},             // inside one subtask
		{[]string{"aaaabbbb", "", "", ""}, true, true, 2, 0, 8, 0},               // as after a rescale
		{[]string{"aaaabbbb"}, true, true, 2, 8, 8, 0},                           // one subtask
		{[]string{"a", "a", "b", "a"}, true, false, 4, 1, 1, 0},                  // counters, some of them equal
		{[]string{"abcd", "efgh", "ijkl", "mnop"}, false, false, 16, 4, 4, 0},    // an equal share each
		{[]string{"abcd", "dcba", "abdc", "cdab"}, false, false, 16, 4, 4, 4},    // proven
		{[]string{"abcd", "abcd", "abcd", "abcd", ""}, true, true, 16, 0, 4, 0},  // one subtask holds none
		{[]string{"abcd", "abcd", "abcd", "abcd", "-"}, true, true, 16, 4, 4, 4}, // one does not name it
		{[]string{"abcdabcd", "abcdabcd", "abcd"}, true, true, 12, 4, 8, 4},      // restored by some
		{[]string{"ab", "ba", "ab", "ba", "ab"}, false, false, 10, 2, 2, 2},      // proven
		{[]string{"", "", ""}, false, false, 0, 0, 0, 0},                         // empty
		{[]string{"abcdefgh", "abijklmn", "opqrabst"}, true, true, 24, 8, 8, 2},  // elements of a restore, and more since
		{[]string{"acdefgh", "aijklmn", "opqrast"}, true, false, 21, 7, 7, 1},    // one element that all write
		{[]string{"abcdef", "abcde"}, true, true, 11, 5, 6, 5},                   // one of two lacks one
		{[]string{"abcdefgh", "abijklmn"}, true, false, 16, 8, 8, 2},             // two subtasks: too few to tell
	} {
		var handles []*format.OperatorHandle
		for i, l := range c.lists {
			if l == "-" {
				handles = append(handles, nil)
				continue
			}
			handles = append(handles, nativeHandle(fmt.Sprint("h", i), st{"u", format.ModeUnion, chars(l)}))
		}
		all, err := DiagnoseUnions(t.Context(), sptest.View(sptest.Operator("op", handles...)), UnionOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if r := all[0]; r.Repeats() != c.repeats || r.Suspicious() != c.suspicious || r.Held != c.held || r.Fewest != c.fewest || r.Most != c.most || r.Common != c.common {
			t.Errorf("%q: repeats %t, suspicious %t, %+v", c.lists, r.Repeats(), r.Suspicious(), r)
		}
	}
}

// TestUnionSubtasks: how many subtasks hold the state, of those that could.
func TestUnionSubtasks(t *testing.T) {
	make := func(p int, change func(op *format.Operator)) *UnionReport {
		var handles []*format.OperatorHandle
		for i := range p {
			list := chars("abcde")
			rand.New(rand.NewPCG(uint64(i), 1)).Shuffle(5, func(i, j int) { list[i], list[j] = list[j], list[i] })
			handles = append(handles, nativeHandle(fmt.Sprint("h", i), st{"u", format.ModeUnion, list}))
		}
		op := sptest.Operator("op", handles...)
		change(op)
		all, err := DiagnoseUnions(t.Context(), sptest.View(op), UnionOptions{})
		if err != nil || len(all) != 1 {
			t.Fatal(err)
		}
		return all[0]
	}
	same := func(*format.Operator) {}
	for _, p := range []int{1, 2, 3, 10, 100} {
		r := make(p, same)
		want := VerdictProduct
		if p == 1 {
			want = VerdictSound
		}
		if r.Verdict != want || !r.Equal || r.Factor != int64(p) || r.MaxFactor != int64(p) {
			t.Errorf("%d subtasks: %+v", p, r)
		}
	}
	// A subtask that is fully finished holds nothing, and its absence says nothing.
	if r := make(10, func(op *format.Operator) { op.Subtasks[3].Finished, op.Subtasks[3].Managed = true, nil }); r.Verdict != VerdictProduct || r.Factor != 9 {
		t.Errorf("a finished subtask: %+v", r)
	}
	// Subtasks that the snapshot does not name hold nothing: restores would have
	// given them the elements.
	if r := make(10, func(op *format.Operator) { op.Subtasks = op.Subtasks[:6] }); r.Verdict != VerdictNotSure || !r.Suspicious() || r.Why != "only 6 of 10 subtasks hold it" {
		t.Errorf("subtasks that are not named: %+v", r)
	}
}
