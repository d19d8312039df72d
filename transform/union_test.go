package transform

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/tally"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/internal/elements"
	"github.com/savepoint-tools/spt/writer"
)

// TestVerdictsKnown: what is said of the union states of real jobs, some of
// which multiplied theirs on purpose.
func TestVerdictsKnown(t *testing.T) {
	verdicts := map[Verdict]int{}
	inflated := 0
	for _, k := range testenv.KnownSnapshots(t) {
		in := sptest.Open(t, k.Location).View()
		var about struct {
			Options struct {
				Shape                             string
				Restores, Parallelism, Elements   int64
				Start_parallelism                 int64
				Compress, File_merging, Unaligned bool
			}
		}
		sptest.LoadJSON(t, k.Dir+"/about.json", &about)
		o := about.Options
		reports, err := DiagnoseUnions(t.Context(), in, UnionOptions{})
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		for _, r := range reports {
			verdicts[r.Verdict]++
			// Counted anew, from what Flink's own backends reported.
			count := map[string]int64{}
			var elements, bytes int64
			var lists [][]string
			for _, op := range sptest.TruthOf(t, k.Dir).Operators {
				if op.ID != r.Operator.ID.String() {
					continue
				}
				for _, s := range op.Subtasks {
					c, ok := s.OperatorState[r.State]
					if !ok {
						continue
					}
					for _, e := range c.Raw {
						count[e]++
						elements++
						bytes += int64(len(e) / 2)
					}
					lists = append(lists, c.Raw)
				}
			}
			equal := len(lists) == int(r.Operator.Parallelism)
			sameOrder := equal
			for _, l := range lists {
				sameOrder = sameOrder && slices.Equal(l, lists[0])
				equal = equal && slices.Equal(sorted(l), sorted(lists[0]))
			}
			lo, hi := int64(math.MaxInt64), int64(0)
			for _, n := range count {
				lo, hi = min(lo, n), max(hi, n)
			}
			if len(count) == 0 {
				lo = 0
			}
			if r.Elements != elements || r.Bytes != bytes || r.Distinct != int64(len(count)) || r.MinCopies != lo || r.MaxCopies != hi || r.Equal != equal || r.SameOrder != sameOrder || r.Subtasks != len(lists) {
				t.Errorf("%s, %s of %s: %+v; counted %d elements of %d bytes, %d different, %d to %d times, equal %t", k.Name, r.State, r.Operator.Label(), r, elements, bytes, len(count), lo, hi, equal)
			}
			switch {
			case o.Shape == "union-inflated":
				inflated++
				// p elements came of one with each restore.
				want := int64(1)
				for range o.Restores {
					want *= o.Parallelism
				}
				if r.Verdict != VerdictProduct || r.Factor != want || r.MinCopies != want || r.MaxCopies != want {
					t.Errorf("%s: %s, factor %d, %d to %d copies; %d restores at %d", k.Name, r.Verdict, r.Factor, r.MinCopies, r.MaxCopies, o.Restores, o.Parallelism)
				}
			case r.Verdict != VerdictSound:
				t.Errorf("%s: %s of %s is %s: %s", k.Name, r.State, r.Operator.Label(), r.Verdict, r.Why)
			}
		}
	}
	t.Logf("%v; %d inflated", verdicts, inflated)
	known := testenv.KnownSnapshots(t)
	testenv.Found(t, "multiplied union states", inflated, operatorStates(t, ofShape(known, "union-inflated"), "union"))
	testenv.Found(t, "union states", inflated+verdicts[VerdictSound], operatorStates(t, known, "union"))
}

// TestVerdicts: each verdict and its reason.
func TestVerdicts(t *testing.T) {
	union := func(lists ...string) *unionState {
		var handles []*format.OperatorHandle
		for i, l := range lists {
			if l == "-" {
				handles = append(handles, nativeHandle(fmt.Sprint("h", i), st{"other", format.ModeList, chars("x")}))
				continue
			}
			handles = append(handles, nativeHandle(fmt.Sprint("h", i), st{"u", format.ModeUnion, chars(l)}))
		}
		return describedUnions(t.Context(), sptest.View(sptest.Operator("op", handles...)), nil)[0]
	}
	for _, c := range []struct {
		lists            []string
		verdict          Verdict
		distinct, factor int64
		lo, hi           int64
		equal            bool
		why              string
	}{
		{[]string{"", ""}, VerdictSound, 0, 1, 0, 0, true, "it holds no element"},
		{[]string{"ab", "cd"}, VerdictSound, 4, 1, 1, 1, false, "every element occurs once"},
		{[]string{"ab", "ab"}, VerdictProduct, 2, 2, 2, 2, true, "all 2 subtasks hold the same list"},
		{[]string{"abab", "abab"}, VerdictProduct, 2, 4, 4, 4, true, "all 2 subtasks hold the same list"},
		{[]string{"aab", "aab"}, VerdictProduct, 2, 2, 2, 4, true, "all 2 subtasks hold the same list"}, // honest repetition
		{[]string{"abc", "abc", "abc"}, VerdictProduct, 3, 3, 3, 3, true, "all 3 subtasks hold the same list"},
		{[]string{"ab", "ba"}, VerdictProduct, 2, 2, 2, 2, true, "all 2 subtasks hold the same elements, not all in the same order"},
		{[]string{"aab", "aba", "baa"}, VerdictProduct, 2, 3, 3, 6, true, "all 3 subtasks hold the same elements, not all in the same order"},
		{[]string{"aab", "abb"}, VerdictNotSure, 2, 1, 3, 3, false, "its subtasks hold different elements"}, // an exclusive or of the elements would be equal
		{[]string{"aab", "ccb"}, VerdictNotSure, 3, 2, 2, 2, false, "its subtasks hold different elements"},
		{[]string{"aabb"}, VerdictNotSure, 2, 1, 2, 2, true, "one subtask holds it all, and repeats elements"},
		{[]string{"ab", "ab", "-"}, VerdictNotSure, 2, 2, 2, 2, false, "only 2 of 3 subtasks hold it"},
		{[]string{"aa", ""}, VerdictNotSure, 1, 2, 2, 2, false, "no element is in two subtasks, and elements repeat inside them"},
		{[]string{"", "aa"}, VerdictNotSure, 1, 2, 2, 2, false, "no element is in two subtasks, and elements repeat inside them"},
		{[]string{"aabb", "cc", "d"}, VerdictNotSure, 4, 1, 1, 2, false, "no element is in two subtasks, and elements repeat inside them"},
		{[]string{"a", "a", "a"}, VerdictProduct, 1, 3, 3, 3, true, "all 3 subtasks hold the same list, one each, which also happens if each subtask writes one equal value"},
	} {
		u := union(c.lists...)
		counted, err := u.count(t.Context(), elements.NewReader(sptest.View(u.op), hash128.New(), nil), 1, tally.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := counted.report
		if r.Verdict != c.verdict || r.Distinct != c.distinct || r.Factor != c.factor || r.MinCopies != c.lo || r.MaxCopies != c.hi || r.Equal != c.equal || r.Why != c.why {
			t.Errorf("%q: %+v", c.lists, r)
		}
	}
}

// prune prunes the one union state of lists, and gives what each subtask holds
// of it; "-" where it does not name the state.
func prune(t *testing.T, o PruneOptions, lists ...string) (got []string, p *PrunedState) {
	t.Helper()
	var handles []*format.OperatorHandle
	for i, l := range lists {
		handles = append(handles, nativeHandle(fmt.Sprint("h", i), st{"s", format.ModeList, chars("mn")}, st{"u", format.ModeUnion, chars(l)}, st{"v", format.ModeUnion, []string{fmt.Sprint("v", i)}}))
	}
	in := sptest.View(sptest.Operator("op", handles...))
	o.States = format.Globs{"u"}
	sp, pruned, err := PruneUnion(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	if len(pruned.States) != 1 {
		t.Fatalf("%d states", len(pruned.States))
	}
	p = pruned.States[0]
	if (p.Skipped != "") != (sp.Savepoint == in.Savepoint) {
		t.Errorf("skipped %q, and the savepoint changed: %t", p.Skipped, sp.Savepoint != in.Savepoint)
	}
	out := sp
	var kept, bytes int64
	for i, s := range sp.Operators[0].Subtasks {
		if stateIndex(s.Managed, format.NewText("u"), format.ModeUnion) < 0 {
			got = append(got, "-")
		} else {
			all := sptest.Elements(t, out, s.Managed, "u")
			got = append(got, letters(all))
			kept += int64(len(all))
			bytes += int64(len(strings.Join(all, "")))
		}
		if rest := letters(sptest.Elements(t, out, s.Managed, "s")) + letters(sptest.Elements(t, out, s.Managed, "v")); rest != fmt.Sprint("mnv", i) {
			t.Errorf("the other states of subtask %d became %q", i, rest)
		}
		if old := handles[i].Data.(*format.Inline); p.Skipped == "" && s.Managed.Data.(*format.Concat).As.(*format.Inline).Name != old.Name {
			t.Errorf("subtask %d: another name of the stream", i)
		}
	}
	if kept != p.Kept || bytes != p.BytesAfter {
		t.Errorf("%d elements of %d bytes stay, %d of %d were said", kept, bytes, p.Kept, p.BytesAfter)
	}
	return got, p
}

// TestPrunePolicies: policies by places, on lists made by hand.
func TestPrunePolicies(t *testing.T) {
	for _, c := range []struct {
		o     PruneOptions
		lists []string
		want  []string
		skip  string
	}{
		{PruneOptions{Keep: KeepDistinct}, []string{"abc", "abc", "abc"}, []string{"abc", "", ""}, ""},
		{PruneOptions{Keep: KeepDistinct, Place: PlaceStay}, []string{"abab", "abab"}, []string{"ab", ""}, ""},
		{PruneOptions{Keep: KeepDistinct, Place: PlaceSpread}, []string{"abcd", "abcd", "abcd"}, []string{"ab", "c", "d"}, ""},
		{PruneOptions{Keep: KeepDistinct, Place: PlaceFirst}, []string{"abcd", "abcd"}, []string{"abcd", ""}, ""},
		{PruneOptions{Keep: KeepDistinct, Compact: true}, []string{"abcd", "abcd"}, []string{"abcd", "-"}, ""},
		{PruneOptions{Keep: KeepDistinct, AcceptUnproven: true}, []string{"ab", "bc", "ca"}, []string{"ab", "c", ""}, ""},
		{PruneOptions{Keep: KeepDistinct, AcceptUnproven: true, Place: PlaceFirst}, []string{"ab", "bc", "cad"}, []string{"abcd", "", ""}, ""},
		{PruneOptions{Keep: KeepDistinct, AcceptUnproven: true, Place: PlaceSpread}, []string{"ab", "bc", "cad"}, []string{"ab", "c", "d"}, ""},
		{PruneOptions{Keep: KeepDistinct, AcceptUnproven: true, Compact: true, Place: PlaceSpread}, []string{"ab", "bc", "cad"}, []string{"abcd", "-", "-"}, ""},
		// Honest repetitions survive.
		{PruneOptions{Keep: KeepCopies}, []string{"aab", "aab"}, []string{"aab", ""}, ""},
		{PruneOptions{Keep: KeepCopies}, []string{"aabaab", "aabaab"}, []string{"aab", ""}, ""},
		{PruneOptions{Keep: KeepDistinct}, []string{"aab", "aab"}, []string{"ab", ""}, ""},
		// In another order.
		{PruneOptions{Keep: KeepDistinct}, []string{"ab", "ba"}, []string{"ab", ""}, ""},
		{PruneOptions{Keep: KeepCopies}, []string{"ab", "ba"}, []string{"ab", ""}, ""},
		{PruneOptions{Keep: KeepFirstSubtask}, []string{"ab", "ba"}, []string{"ab", ""}, ""},
		{PruneOptions{Keep: KeepModulo}, []string{"ab", "ba"}, []string{"a", "b"}, ""}, // by the numbers of its own list, b would be lost
		{PruneOptions{Keep: KeepModulo}, []string{"abcde", "edcba", "cdeab"}, []string{"ad", "be", "c"}, ""},
		{PruneOptions{Keep: KeepModulo, Place: PlaceFirst}, []string{"abcde", "edcba", "cdeab"}, []string{"adbec", "", ""}, ""},
		{PruneOptions{Keep: KeepModulo, Compact: true}, []string{"abcde", "edcba", "cdeab"}, []string{"adbec", "-", "-"}, ""},
		{PruneOptions{Keep: KeepCopies, AcceptUnproven: true}, []string{"aa", "bb"}, []string{"a", "b"}, ""},
		{PruneOptions{Keep: KeepFirstSubtask}, []string{"aab", "aab"}, []string{"aab", ""}, ""},
		{PruneOptions{Keep: KeepFirstSubtask, Place: PlaceSpread}, []string{"abcde", "abcde"}, []string{"abc", "de"}, ""},
		{PruneOptions{Keep: KeepModulo}, []string{"abcdefg", "abcdefg", "abcdefg"}, []string{"adg", "be", "cf"}, ""},
		{PruneOptions{Keep: KeepModulo, Place: PlaceFirst}, []string{"abcde", "abcde"}, []string{"acebd", ""}, ""},
		{PruneOptions{Keep: KeepModulo, Compact: true}, []string{"abcde", "abcde"}, []string{"acebd", "-"}, ""},
		// Left as they are.
		{PruneOptions{Keep: KeepDistinct}, []string{"ab", "cd"}, []string{"ab", "cd"}, "every element occurs once"},
		{PruneOptions{Keep: KeepDistinct, AcceptUnproven: true}, []string{"", ""}, []string{"", ""}, "it holds no element"},
		{PruneOptions{Keep: KeepDistinct}, []string{"ab", "bc"}, []string{"ab", "bc"}, "not proven to be duplicated by restores: its subtasks hold different elements"},
		{PruneOptions{Keep: KeepFirstSubtask, AcceptUnproven: true}, []string{"ab", "bc"}, []string{"ab", "bc"}, "needs subtasks that hold the same"},
		{PruneOptions{Keep: KeepModulo, AcceptUnproven: true}, []string{"ab", "bc"}, []string{"ab", "bc"}, "needs subtasks that hold the same"},
		{PruneOptions{Keep: KeepCopies, AcceptUnproven: true}, []string{"aab", "abb"}, []string{"aab", "abb"}, "no factor to divide by"},
		{PruneOptions{Keep: KeepCopies}, []string{"aab"}, []string{"aab"}, "no factor to divide by"},
		{PruneOptions{Keep: KeepDistinct, AcceptUnproven: true}, []string{"aab"}, []string{"ab"}, ""},
	} {
		got, p := prune(t, c.o, c.lists...)
		if !slices.Equal(got, c.want) || (p.Skipped == "") != (c.skip == "") || !strings.Contains(p.Skipped, c.skip) {
			t.Errorf("%+v of %q: %q (%q), not %q (%q)", c.o, c.lists, got, p.Skipped, c.want, c.skip)
		}
	}
	in := sptest.View(sptest.Operator("op", nativeHandle("a", st{"u", format.ModeUnion, chars("aa")})))
	if _, _, err := PruneUnion(t.Context(), in, PruneOptions{Keep: "least"}); err == nil {
		t.Error("a policy that does not exist")
	}
}

// TestPruneSubtaskOrder: subtasks that stand in a file in another order are
// taken by their index.
func TestPruneSubtaskOrder(t *testing.T) {
	op := sptest.Operator("op", nativeHandle("a", st{"u", format.ModeUnion, chars("abcd")}), nativeHandle("b", st{"u", format.ModeUnion, chars("abcd")}))
	slices.Reverse(op.Subtasks)
	in := sptest.View(op)
	sp, _, err := PruneUnion(t.Context(), in, PruneOptions{Keep: KeepModulo})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sp.Operators[0].Subtasks {
		if got := letters(sptest.Elements(t, sp, s.Managed, "u")); got != []string{"ac", "bd"}[s.Index] {
			t.Errorf("subtask %d holds %q", s.Index, got)
		}
	}
}

// TestCompactDropsHandles: a handle in which nothing is left goes.
func TestCompactDropsHandles(t *testing.T) {
	var handles []*format.OperatorHandle
	for i := range 4 {
		handles = append(handles, nativeHandle(fmt.Sprint("h", i), st{"u", format.ModeUnion, chars("ab")}, st{"v", format.ModeUnion, chars("xyz")}))
	}
	in := sptest.View(sptest.Operator("op", handles...))
	sp, all, err := PruneUnion(t.Context(), in, PruneOptions{Keep: KeepCopies, Compact: true})
	if err != nil || len(all.States) != 2 {
		t.Fatal(err)
	}
	for i, s := range sp.Operators[0].Subtasks {
		switch {
		case i > 0 && s.Managed != nil:
			t.Errorf("subtask %d holds %+v", i, s.Managed)
		case i == 0:
			out := sp
			if got := letters(sptest.Elements(t, out, s.Managed, "u")) + letters(sptest.Elements(t, out, s.Managed, "v")); got != "abxyz" {
				t.Errorf("%q", got)
			}
		}
	}
}

// TestPruneLimits: with a table for few elements, several passes give what one
// gives.
func TestPruneLimits(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 60 {
		p := 1 + rnd.IntN(4)
		var handles []*format.OperatorHandle
		var list []string
		for range rnd.IntN(200) {
			list = append(list, fmt.Sprint("e", rnd.IntN(120)))
		}
		for i := range p {
			mine := list
			if rnd.IntN(4) == 0 {
				mine = append(slices.Clone(list), "more")
			}
			handles = append(handles, nativeHandle(fmt.Sprint("h", i), st{"u", format.ModeUnion, mine}))
		}
		in := sptest.View(sptest.Operator("op", handles...))
		for _, keep := range []Keep{KeepDistinct, KeepCopies} {
			var first *PrunedState
			var content []string
			for _, limit := range []int64{1 << 20, 1000, 48, 12} {
				edits := handleEdits{}
				got, err := describedUnions(t.Context(), in, nil)[0].prune(t.Context(), in, elements.NewReader(in, hash128.New(), nil), PruneOptions{Keep: keep, Place: PlaceStay, AcceptUnproven: true}, tally.Options{Memory: tally.MemoryFor(limit), Dir: t.TempDir()}, edits)
				if err != nil {
					t.Fatal(err)
				}
				sp, err := editHandles(t.Context(), in, edits)
				if err != nil {
					t.Fatal(err)
				}
				var now []string
				for _, s := range sp.Operators[0].Subtasks {
					now = append(now, strings.Join(sptest.Elements(t, in, s.Managed, "u"), ","))
				}
				if first == nil {
					first, content = got, now
				}
				if fmt.Sprint(*first) != fmt.Sprint(*got) || !slices.Equal(content, now) {
					t.Fatalf("%s with a table of %d:\n%+v\nand with a large one\n%+v", keep, limit, got, first)
				}
			}
		}
	}
}

// TestPruneModel: on generated states, each policy against a naive one.
func TestPruneModel(t *testing.T) {
	rnd := rand.New(rand.NewPCG(11, 12))
	done := map[Keep]int{}
	for range 400 {
		p := 2 + rnd.IntN(3)
		// A base list, with honest repetitions, multiplied by restores.
		var list []string
		for range 1 + rnd.IntN(9) {
			list = append(list, string(rune('a'+rnd.IntN(6))))
		}
		base := slices.Clone(list)
		for range rnd.IntN(3) {
			var next []string
			for range p {
				next = append(next, list...)
			}
			list = next
		}
		lists := make([]string, p)
		for i := range lists {
			lists[i] = strings.Join(list, "")
		}
		for _, keep := range []Keep{KeepDistinct, KeepCopies, KeepFirstSubtask, KeepModulo} {
			for _, at := range []PlaceKept{PlaceStay, PlaceFirst, PlaceSpread} {
				got, pruned := prune(t, PruneOptions{Keep: keep, Place: at}, lists...)
				if pruned.Verdict != VerdictProduct {
					t.Fatalf("%q: %+v", lists, pruned)
				}
				var want []string
				switch keep {
				case KeepDistinct:
					for _, e := range base {
						if !slices.Contains(want, e) {
							want = append(want, e)
						}
					}
				case KeepCopies:
					if int64(len(list)*p)/pruned.Factor > int64(len(base)) {
						t.Fatalf("%q: factor %d", lists, pruned.Factor)
					}
					left := map[string]int64{}
					for _, e := range list {
						left[e] += int64(p)
					}
					for e, n := range left {
						left[e] = n / pruned.Factor
					}
					for _, e := range list {
						if left[e] > 0 {
							left[e]--
							want = append(want, e)
						}
					}
				default:
					want = list
				}
				done[keep]++
				all := strings.Join(got, "")
				if keep == KeepModulo {
					a, b := chars(all), slices.Clone(want)
					slices.Sort(a)
					slices.Sort(b)
					if at == PlaceStay {
						for k, e := range list {
							if k/p < len(got[k%p]) && string(got[k%p][k/p]) != e {
								t.Errorf("element %d is not with subtask %d of %q", k, k%p, got)
							}
						}
					}
					all, want = strings.Join(a, ""), b
				}
				if all != strings.Join(want, "") {
					t.Errorf("%s, %s of %q: %q, not %q", keep, at, lists, got, want)
				}
				switch at {
				case PlaceFirst:
					if len(strings.Join(got[1:], "")) > 0 {
						t.Errorf("not all with the first: %q", got)
					}
				case PlaceSpread:
					for i := range got {
						if d := len(got[0]) - len(got[i]); d < 0 || d > 1 {
							t.Errorf("not spread: %q", got)
						}
					}
				}
			}
		}
	}
	t.Log(done)
}

// TestPruneKnown: the multiplied states of real jobs, pruned by every policy,
// written in both families and read again. Everything else is what it was.
func TestPruneKnown(t *testing.T) {
	n := 0
	for _, k := range testenv.KnownSnapshots(t) {
		if !strings.HasPrefix(k.Shape, "union-") && k.Shape != "operator" {
			continue
		}
		stores := sptest.Stores()
		snap := sptest.OpenIn(t, stores, k.Location)
		packed := sealed(t, stores, snap, snap.View(), "mem://in.spt")
		files := func() *reader.Snapshot {
			o := writer.Options{Stores: stores, InlineThreshold: new(int64(1))}
			if _, err := writer.Write(t.Context(), snap.View(), "mem://files", &o); err != nil {
				t.Fatal(err)
			}
			return sptest.OpenIn(t, stores, "mem://files")
		}()
		for form, from := range map[string]*reader.Snapshot{"flink": snap, "spt": packed, "files": files} {
			for _, o := range []PruneOptions{
				{Keep: KeepDistinct}, {Keep: KeepCopies}, {Keep: KeepFirstSubtask}, {Keep: KeepModulo},
				{Keep: KeepDistinct, Place: PlaceSpread}, {Keep: KeepCopies, Place: PlaceFirst}, {Keep: KeepModulo, Compact: true},
			} {
				in := from.View()
				sp, all, err := PruneUnion(t.Context(), in, o)
				if err != nil {
					t.Fatalf("%s: %v", k.Name, err)
				}
				changed := map[string]*PrunedState{}
				for _, p := range all.States {
					if inflated := k.Shape == "union-inflated"; (p.Skipped == "") != inflated {
						t.Errorf("%s: %s is skipped: %q", k.Name, p.State, p.Skipped)
					} else if inflated {
						changed[p.Operator.ID.String()+p.State] = p
					}
				}
				if len(changed) == 0 {
					if sp.Savepoint != from.Savepoint {
						t.Errorf("%s: nothing to do, and another savepoint", k.Name)
					}
					continue
				}
				n++
				for i, target := range []string{"mem://pruned", "mem://pruned.spt"} {
					where := fmt.Sprintf("%s from %s to %d by %+v", k.Name, form, i, o)
					out := sealed(t, stores, from, sp, fmt.Sprintf("%s-%s-%d-%s-%s-%t.spt"[:len("%s-%s-%d-%s-%s-%t")+4*i], target, form, i, o.Keep, o.Place, o.Compact))
					comparePruned(t, where, k, from, out, changed)
					again, second, err := PruneUnion(t.Context(), out.View(), o)
					if err != nil || again.Savepoint != out.Savepoint {
						t.Errorf("%s: pruned twice, it changes again: %v", where, err)
					}
					for _, p := range second.States {
						if p.Skipped == "" {
							t.Errorf("%s: %s is pruned again", where, p.State)
						}
					}
				}
			}
		}
	}
	t.Logf("%d times", n)
	testenv.Found(t, "prunings", n, 3*7*len(ofShape(testenv.KnownSnapshots(t), "union-inflated")))
}

// comparePruned: of changed states each element occurs once, all else is equal.
func comparePruned(t *testing.T, where string, k testenv.KnownSnapshot, from, out *reader.Snapshot, changed map[string]*PrunedState) {
	t.Helper()
	for i, op := range from.Operators {
		for j, old := range op.Subtasks {
			now := out.Operators[i].Subtasks[j]
			if old.Managed == nil {
				continue
			}
			for _, s := range old.Managed.States {
				if changed[op.ID.String()+s.Name.String()] != nil {
					continue
				}
				if a, b := sptest.Elements(t, from.View(), old.Managed, s.Name.String()), sptest.Elements(t, out.View(), now.Managed, s.Name.String()); !slices.Equal(a, b) {
					t.Errorf("%s: %s of subtask %d became %q from %q", where, s.Name, j, b, a)
				}
			}
		}
	}
	for _, p := range changed {
		count := map[string]int{}
		var kept int64
		for _, op := range out.Operators {
			if op.ID != p.Operator.ID {
				continue
			}
			for _, s := range op.Subtasks {
				if s.Managed == nil || stateIndex(s.Managed, format.NewText(p.State), format.ModeUnion) < 0 {
					continue
				}
				for _, e := range sptest.Elements(t, out.View(), s.Managed, p.State) {
					count[sptest.Reported([]byte(e))]++
					kept++
				}
			}
		}
		held := map[string]bool{}
		for _, op := range sptest.TruthOf(t, k.Dir).Operators {
			for _, s := range op.Subtasks {
				if op.ID == p.Operator.ID.String() {
					for _, e := range s.OperatorState[p.State].Raw {
						held[e] = true
					}
				}
			}
		}
		lowest := 1 << 30
		for e, n := range count {
			lowest = min(lowest, n)
			if !held[e] {
				t.Errorf("%s: an element that was not there", where)
			}
		}
		if len(count) != len(held) || kept != p.Kept || lowest < 1 {
			t.Errorf("%s: %d of %d elements, %d in all, said %d", where, len(count), len(held), kept, p.Kept)
		}
	}
}

// TestPruneLeavesPointers: what is not pruned is shared with the input.
func TestPruneLeavesPointers(t *testing.T) {
	pruned := sptest.Operator("pruned", nativeHandle("a", st{"u", format.ModeUnion, chars("ab")}), nativeHandle("b", st{"u", format.ModeUnion, chars("ab")}), nil)
	pruned.Subtasks[2].Finished = true
	other := sptest.Operator("other", nativeHandle("c", st{"u", format.ModeUnion, chars("ab")}), nativeHandle("d", st{"u", format.ModeUnion, chars("cd")}))
	keyed := &format.Incremental{}
	pruned.Subtasks[0].ManagedKeyed = keyed
	in := sptest.View(pruned, other)
	sp, all, err := PruneUnion(t.Context(), in, PruneOptions{Keep: KeepDistinct})
	if err != nil || len(all.States) != 2 || all.States[0].Skipped != "" || all.States[1].Skipped == "" {
		t.Fatalf("%v: %+v", err, all)
	}
	if sp.Savepoint == in.Savepoint || sp.Operators[1] != other || sp.Operators[0] == pruned || sp.Operators[0].Subtasks[2] != pruned.Subtasks[2] || sp.Operators[0].Subtasks[0].ManagedKeyed != keyed {
		t.Error("what was not touched was copied")
	}
	if got := letters(sptest.Elements(t, in, pruned.Subtasks[1].Managed, "u")); got != "ab" {
		t.Errorf("the input became %q", got)
	}
}

// TestUnionDescribedDifferently: equal bytes of different types are no copies,
// and are never put into one stream.
func TestUnionDescribedDifferently(t *testing.T) {
	a, b := nativeHandle("a", st{"u", format.ModeUnion, chars("ab")}), nativeHandle("b", st{"u", format.ModeUnion, chars("ab")})
	in := sptest.View(sptest.Operator("op", a, b))
	in.Codecs = sptest.CodecsFunc(func(id format.CodecID) (format.OperatorCodec, error) {
		c, err := sptest.Codecs()(id)
		return typed{c, map[*format.OperatorHandle]string{a: "int", b: "string"}}, err
	})
	for _, o := range []PruneOptions{{Keep: KeepDistinct, AcceptUnproven: true}, {Keep: KeepCopies}, {Keep: KeepModulo, Place: PlaceFirst, AcceptUnproven: true}, {Keep: KeepDistinct, Compact: true}} {
		sp, all, err := PruneUnion(t.Context(), in, o)
		if err != nil || sp.Savepoint != in.Savepoint || all.States[0].Verdict != VerdictNotSure || all.States[0].Equal || !strings.Contains(all.States[0].Skipped, "different serializer snapshots") {
			t.Errorf("%+v: %v, %+v", o, err, all.States[0])
		}
	}
}

// typed gives states envelopes.
type typed struct {
	format.OperatorCodec
	types map[*format.OperatorHandle]string
}

func (c typed) Describe(ctx context.Context, src format.Source, h *format.OperatorHandle) ([]format.StateMeta, error) {
	metas, err := c.OperatorCodec.Describe(ctx, src, h)
	for i := range metas {
		metas[i].Envelope = []byte(c.types[h])
	}
	return metas, err
}

// TestUnionErrors: an element that cannot be read ends the work, saying where;
// so does a context.
func TestUnionErrors(t *testing.T) {
	broken := nativeHandle("b", st{"u", format.ModeUnion, chars("abc")})
	broken.States[0].Offsets = format.OffsetSlice{0, 1, 900}
	in := sptest.View(sptest.Operator("op", nativeHandle("a", st{"u", format.ModeUnion, chars("abc")}), broken))
	_, err := DiagnoseUnions(t.Context(), in, UnionOptions{})
	if !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), `operator "op"/state "u"`) {
		t.Errorf("%v", err)
	}
	if _, _, err = PruneUnion(t.Context(), in, PruneOptions{Keep: KeepDistinct}); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	in = sptest.View(sptest.Operator("op", nativeHandle("a", st{"u", format.ModeUnion, chars("abc")})))
	if _, err := DiagnoseUnions(ctx, in, UnionOptions{}); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	in.Operators[0].Subtasks[0].Managed.Codec = "other"
	in.Codecs = sptest.CodecsFunc(func(id format.CodecID) (format.OperatorCodec, error) {
		return nil, format.Errorf(format.ErrUnsupported, "codec %q", string(id))
	})
	if _, err := DiagnoseUnions(t.Context(), in, UnionOptions{}); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("%v", err)
	}
}

// TestListDigest: lists that differ in order, in length, or in where one
// element ends are told apart; equal ones are not.
func TestListDigest(t *testing.T) {
	h := hash128.New()
	sum := func(list ...string) uint64 {
		var l listDigest
		l.hash.SetSeed(orderSeed)
		for _, e := range list {
			l.add(h.Sum([]byte(e)))
		}
		return l.sum()
	}
	seen := map[uint64][]string{}
	for _, list := range [][]string{{}, {""}, {"", ""}, {"a"}, {"b"}, {"a", "b"}, {"b", "a"}, {"ab"}, {"a", "a"}, {"a", "a", "a"}, {"a", "", "b"}, {"", "a", "b"}} {
		if other, ok := seen[sum(list...)]; ok {
			t.Errorf("%q is taken for %q", list, other)
		}
		seen[sum(list...)] = list
		if sum(list...) != sum(slices.Clone(list)...) {
			t.Errorf("%q is not itself", list)
		}
	}
	// Elements that lie far apart change places: a sum of multiples of powers
	// of one number would lose most of its bits here.
	long := make([]string, 1<<17)
	for i := range long {
		long[i] = fmt.Sprint(i)
	}
	before := sum(long...)
	long[0], long[1<<16] = long[1<<16], long[0]
	if sum(long...) == before {
		t.Error("two elements changed places unnoticed")
	}
}

// TestBitmapRuns: against a slice of booleans.
func TestBitmapRuns(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	for range 500 {
		n := int64(1 + rnd.IntN(400))
		density := rnd.IntN(11)
		var b bitmap
		want := make([]bool, n)
		for i := range want {
			if rnd.IntN(10) < density {
				want[i] = true
				b.set(int64(i))
			}
		}
		from := rnd.Int64N(n)
		count := rnd.Int64N(n - from + 1)
		got := make([]bool, count)
		end := int64(-1)
		b.runs(from, count, func(at, n int64) {
			if n <= 0 || at <= end {
				t.Fatalf("a run of %d at %d after one that ends at %d", n, at, end)
			}
			end = at + n
			for i := range n {
				got[at+i] = true
			}
		})
		if d := cmp.Diff(want[from:from+count], got); d != "" {
			t.Fatalf("%d from %d: %s", count, from, d)
		}
	}
}

// TestPruneForms: union states of every form that Flink writes (compressed, in
// files, in merged files, several in a handle, among thirteen others) are
// multiplied as a restore would have done, written, and pruned again: each
// subtask then is handed what it would have been handed before.
func TestPruneForms(t *testing.T) {
	for _, orders := range []bool{false, true} {
		pruneForms(t, orders)
	}
}

// pruneForms multiplies and prunes; with orders, the blocks of each subtask come in
// another order, as Flink assigns them from about 10 subtasks on.
func pruneForms(t *testing.T, orders bool) {
	forms, several, handles, manyElements, merged := map[string]int{}, 0, 0, false, false
	for _, k := range testenv.KnownSnapshots(t) {
		if k.Shape != "operator" && k.Shape != "tutorial" {
			continue
		}
		handles += heldStates(t, k, "union")
		merged = merged || k.FileMerging
		for _, op := range sptest.TruthOf(t, k.Dir).Operators {
			for _, s := range op.Subtasks {
				for _, st := range s.OperatorState {
					manyElements = manyElements || st.Kind == "union" && len(st.Raw) > 1 && len(op.Subtasks) > 1
				}
			}
		}
		stores := sptest.Stores()
		snap := sptest.OpenIn(t, stores, k.Location)
		in := snap.View()
		edits := handleEdits{}
		want := map[string][]string{}
		for _, u := range unionStates(snap.Savepoint, nil) {
			var runs []format.ElementRun
			for i, h := range u.handles {
				runs = append(runs, whole(h, u.states[i]))
				want[u.op.ID.String()+u.name.String()] = append(want[u.op.ID.String()+u.name.String()], sptest.Elements(t, in, h, u.name.String())...)
			}
			for i, h := range u.handles {
				mine := runs
				if n := i % len(runs); orders {
					mine = slices.Concat(runs[n:], runs[:n])
				}
				edits.add(h, u.states[i], stateEdit{runs: mine})
				forms[fmt.Sprint(format.Kind(h.Data))]++
			}
		}
		sp, err := editHandles(t.Context(), in, edits)
		if err != nil {
			t.Fatalf("%s: %v", k.Name, err)
		}
		for _, target := range []string{"mem://inflated", "mem://inflated.spt"} {
			big := sealed(t, stores, snap, in.With(sp), target)
			for i, o := range []PruneOptions{{Keep: KeepDistinct}, {Keep: KeepCopies, Place: PlaceFirst}, {Keep: KeepFirstSubtask, Place: PlaceSpread}, {Keep: KeepCopies, Compact: true}, {Keep: KeepModulo}} {
				pruned, all, err := PruneUnion(t.Context(), big.View(), o)
				if err != nil {
					t.Fatalf("%s: %v", k.Name, err)
				}
				for _, p := range all.States {
					if p.Equal && !p.SameOrder {
						several++
					}
					if n := int64(len(want[p.Operator.ID.String()+p.State])); p.Elements != n*int64(p.Operator.Parallelism) || n > 0 && p.Operator.Parallelism > 1 && (p.Verdict != VerdictProduct || p.Factor != int64(p.Operator.Parallelism) || p.Kept != n) {
						t.Errorf("%s, %s: %+v; %d elements before", k.Name, p.State, p, n)
					}
				}
				out := sealed(t, stores, big, pruned, fmt.Sprintf("mem://pruned-%d%s", i, strings.TrimPrefix(target, "mem://inflated")))
				for _, p := range all.States {
					var got []string
					for _, s := range unionStates(out.Savepoint, func(op *format.Operator, state string) bool {
						return op.ID == p.Operator.ID && state == p.State
					}) {
						for _, h := range s.handles {
							got = append(got, sptest.Elements(t, out.View(), h, p.State)...)
						}
					}
					w := want[p.Operator.ID.String()+p.State]
					if o.Keep == KeepModulo {
						got, w = sorted(got), sorted(w)
					}
					if !slices.Equal(got, w) {
						t.Errorf("%s, %s by %+v:\n%q\nnot\n%q", k.Name, p.State, o, got, w)
					}
				}
				for i, op := range snap.Operators {
					for j, old := range op.Subtasks {
						if old.Managed == nil {
							continue
						}
						for _, s := range old.Managed.States {
							if s.Mode == format.ModeUnion {
								continue
							}
							if a, b := sptest.Elements(t, in, old.Managed, s.Name.String()), sptest.Elements(t, out.View(), out.Operators[i].Subtasks[j].Managed, s.Name.String()); !slices.Equal(a, b) {
								t.Errorf("%s: %s of subtask %d became %q from %q", k.Name, s.Name, j, b, a)
							}
						}
					}
				}
			}
		}
	}
	t.Log(forms, several)
	if !orders && several > 0 || orders && several == 0 && manyElements {
		t.Errorf("%d states in several orders", several)
	}
	testenv.Found(t, "union states in handles", forms["inline"]+forms["relative"]+forms["absolute"]+forms["segment"]+forms["empty"], handles)
	testenv.Some(t, "union states in merged files", forms["segment"], merged)
}

// TestPlaceOf: what is rebuilt keeps its name, so that it keeps its order.
func TestPlaceOf(t *testing.T) {
	name := format.NewText("n")
	for _, c := range []struct{ old, want format.Stream }{
		{&format.Inline{Name: name, Data: format.NewBytes([]byte("x"))}, &format.Inline{Name: name}},
		{&format.File{Path: name, Relative: true, Length: 1}, &format.File{Path: name, Relative: true, Length: 9}},
		{&format.File{Path: name, Length: 1}, &format.File{Path: name, Length: 9}},
		{&format.Segment{Path: format.NewText("file:/x"), LogicalID: name}, &format.File{Path: name, Relative: true, Length: 9}},
		{&format.Chunks{As: &format.Inline{Name: name}}, &format.Inline{Name: name}},
		{&format.Concat{As: &format.Inline{Name: name}}, &format.Inline{Name: name}},
		{&format.Chunks{}, nil},
		{nil, nil},
	} {
		if got := storedLike(c.old, 9); (got == nil) != (c.want == nil) || got != nil && (fmt.Sprintf("%T", got) != fmt.Sprintf("%T", c.want) || got.Key() != c.want.Key() || got.Size() != c.want.Size()) {
			t.Errorf("%T becomes %+v, not %+v", c.old, got, c.want)
		}
	}
}
