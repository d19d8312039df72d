package conformance

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// rescales are the plans that are held against Flink. Between them every way
// from → to is there for operator state and for keyed state; the snapshots are
// those of cases, where one has the parallelism.
var rescales = []struct {
	of      string  // a case
	options Options // where there is no such case
	to      int
	then    int // another parallelism, at which what was written is restored too
}{
	{of: "operator", to: 4, then: 3}, // 2 → 4
	{of: "operator-files", to: 2, then: 3},
	{of: "operator-compressed", to: 5, then: 2},
	{of: "operator-13-states", to: 3, then: 7},
	{of: "operator-1-inline", options: Options{Shape: "operator", Parallelism: 1, States: 13, Seed: 21}, to: 7, then: 2},
	{of: "operator-7-compressed", options: Options{Shape: "operator", Parallelism: 7, States: 7, Compress: true, InlineThreshold: Bytes(0), Seed: 22}, to: 1, then: 3},
	{of: "operator-4", options: Options{Shape: "operator", Parallelism: 4, Seed: 23}, to: 4, then: 6},
	{of: "operator-checkpoint", to: 3, then: 1},
	{of: "operator-file-merging", to: 3, then: 4},
	{of: "union-inflated", to: 4, then: 3},
	{of: "union-inflated-3", options: Options{Shape: "union-inflated", Parallelism: 3, Elements: 9, Restores: 1, InlineThreshold: Bytes(0), Seed: 24}, to: 5, then: 1},
	{of: "union-inflated-7", options: Options{Shape: "union-inflated", Parallelism: 7, Elements: 8, Restores: 1, Seed: 25}, to: 1, then: 2},
	{of: "union-modulo", to: 2, then: 3},
	{of: "union-modulo-5", options: Options{Shape: "union-modulo", Parallelism: 5, Elements: 21, Restores: 1, Compress: true, Seed: 26}, to: 3, then: 8},
	{of: "tutorial", to: 4, then: 3},
	{of: "tutorial-1", options: Options{Shape: "tutorial", Parallelism: 1, Elements: 20}, to: 7, then: 3},
	{of: "tutorial-3", options: Options{Shape: "tutorial", Parallelism: 3, Elements: 20, InlineThreshold: Bytes(0)}, to: 5, then: 2},
	{of: "tutorial-4", options: Options{Shape: "tutorial", Parallelism: 4, Elements: 20}, to: 4, then: 1},
	{of: "source", to: 5, then: 2},
	{of: "keyed-heap", to: 4, then: 3},
	{of: "keyed-heap-4", options: Options{Shape: "keyed", Parallelism: 4, Elements: 20, Keys: 20, Seed: 27}, to: 2, then: 3},
	{of: "keyed-heap-5", options: Options{Shape: "keyed", Parallelism: 5, Elements: 20, Keys: 20, KeyType: "tuple", Compress: true, InlineThreshold: Bytes(0), Seed: 28}, to: 3, then: 2},
	{of: "keyed-heap-native", to: 4, then: 1},
	{of: "keyed-heap-native-3", options: Options{Shape: "keyed", Format: "native", Parallelism: 3, Elements: 21, Keys: 20, Seed: 29}, to: 5, then: 2},
	{of: "keyed-heap-native-7", options: Options{Shape: "keyed", Format: "native", Parallelism: 7, Elements: 21, Keys: 20, KeyType: "pojo", Compress: true, InlineThreshold: Bytes(0), Seed: 30}, to: 1, then: 4},
	{of: "keyed-rocksdb", to: 4, then: 3},
	{of: "keyed-rocksdb-1", options: Options{Shape: "keyed", Backend: "rocksdb", Parallelism: 1, Elements: 20, Keys: 20, InlineThreshold: Bytes(0), Seed: 31}, to: 7, then: 2},
	{of: "keyed-rocksdb-5", options: Options{Shape: "keyed", Backend: "rocksdb", Parallelism: 5, Elements: 20, Keys: 20, KeyType: "string", Seed: 32}, to: 3, then: 4},
	{of: "keyed-rocksdb-4", options: Options{Shape: "keyed", Backend: "rocksdb", Parallelism: 4, Compress: true, Seed: 33}, to: 4, then: 2},
	{of: "keyed-rocksdb-native", to: 4, then: 3},
	{of: "keyed-changelog", to: 2, then: 3}, // what it has been; see TestRescaleRefused
	{of: "counts-incremental", to: 4, then: 3},
	{of: "counts-file-merging", to: 4, then: 1},
}

// The plan is what Flink hands out from the snapshot at the new parallelism,
// element by element and in order. What is written by the plan hands out the
// same there, and at yet another parallelism holds the same state.
func TestRescale(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		for _, r := range rescales {
			t.Run(fmt.Sprintf("%s-to-%d", r.of, r.to), func(t *testing.T) {
				f := Use(t, version)
				if r.options.Shape == "" {
					r.options = caseNamed(t, r.of).options
				}
				s := madeOnce(t, f, r.options)
				j := &rescaleJudge{f: f, s: s, truth: mustTruth(t, s)}
				plan := j.plan(t, r.to, transform.StrategyFlink)
				fromIn := restoredOnce(t, f, s, Choices{Parallelism: r.to})
				j.handedOut(t, plan, fromIn, false)
				rewritten := j.write(t, plan)
				fromOut := Restore(t, f, rewritten, Choices{Parallelism: r.to})
				j.handedOut(t, plan, fromOut, true)
				j.alike(t, plan, fromIn, fromOut)
				if r.then > 0 {
					j.complete(t, Restore(t, f, rewritten, Choices{Parallelism: r.then}))
				}
			})
		}
	})
}

// The other strategies: Flink leaves list state where it is while the
// parallelism is that of the snapshot, so each subtask is handed its plan.
func TestRescaleByOtherStrategies(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		for _, r := range []struct {
			of       string
			strategy transform.Strategy
			to       int
		}{
			{"operator-compressed", transform.StrategyRoundRobin, 5},
			{"operator-files", transform.StrategyBalancedBytes, 4}, // at its own parallelism
			{"tutorial", transform.StrategyRoundRobin, 3},
			{"operator-13-states", transform.StrategyBalancedBytes, 2},
		} {
			t.Run(fmt.Sprintf("%s-%s-to-%d", r.of, r.strategy, r.to), func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, caseNamed(t, r.of).options)
				j := &rescaleJudge{f: f, s: s, truth: mustTruth(t, s)}
				plan := j.plan(t, r.to, r.strategy)
				j.handedOut(t, plan, Restore(t, f, j.write(t, plan), Choices{Parallelism: r.to}), true)
			})
		}
	})
}

// What cannot be written for the new parallelism is planned, as Flink hands it
// out, and refused; what is left alone restores as it did.
func TestRescaleRefused(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		for _, r := range []struct {
			of string
			to int
		}{
			// A new subtask needs several handles that cannot be merged.
			{"keyed-rocksdb-native", 1},
			{"counts-incremental", 1},
			{"keyed-changelog", 1},
			// New subtasks would share the changes since the last materialization:
			// TestSharedChanges shows what becomes of that.
			{"keyed-changelog", 4},
		} {
			t.Run(fmt.Sprintf("%s-to-%d", r.of, r.to), func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, caseNamed(t, r.of).options)
				j := &rescaleJudge{f: f, s: s, truth: mustTruth(t, s)}
				plan := j.plan(t, r.to, transform.StrategyFlink)
				j.handedOut(t, plan, restoredOnce(t, f, s, Choices{Parallelism: r.to}), false)
				if _, err := plan.Apply(context.Background()); !errors.Is(err, format.ErrUnsupported) {
					t.Errorf("got %v, want %v", err, format.ErrUnsupported)
				}
				j.keyed = transform.KeyedLeave
				j.complete(t, Restore(t, f, j.write(t, j.plan(t, r.to, transform.StrategyFlink)), Choices{Parallelism: 3}))
			})
		}
	})
}

// rescaleJudge holds plans for one snapshot against what Flink does.
type rescaleJudge struct {
	f     *Flink
	s     Snapshot
	truth Content
	keyed transform.KeyedPolicy
}

// plan leaves alone what the job never runs at another parallelism than 1.
func (j *rescaleJudge) plan(t *testing.T, to int, strategy transform.Strategy) *transform.RescalePlan {
	t.Helper()
	return j.planOf(t, opened(t, j.s), to, strategy)
}

func (j *rescaleJudge) planOf(t *testing.T, snap *reader.Snapshot, to int, strategy transform.Strategy) *transform.RescalePlan {
	t.Helper()
	plan, err := transform.PlanRescale(context.Background(), inputOf(snap), transform.RescaleOptions{
		To:        int32(to),
		At:        standsAt(j.s),
		Strategy:  strategy,
		Keyed:     j.keyed,
		Operators: allBut(snap, "rule-numbers"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return plan
}

// allBut chooses all operators but that of a uid.
func allBut(snap *reader.Snapshot, uid string) format.Selector {
	sel := format.ByID()
	for _, op := range snap.Operators {
		if op.ID != format.OperatorIDOf(uid) {
			sel = append(sel, op.ID.String())
		}
	}
	return sel
}

// write writes the snapshot in its new shape, to stand where the old one does.
func (j *rescaleJudge) write(t *testing.T, plan *transform.RescalePlan) Snapshot {
	t.Helper()
	sp, err := plan.Apply(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	out, rewritten := standsFor(t, j.s)
	seal(t, opened(t, j.s).With(sp.Savepoint), out, writer.Options{})
	judgeModel(t, j.f, rewritten, openedAt(t, out))
	return rewritten
}

// handedOut compares a plan with what each subtask was handed, from the
// snapshot itself or from what was written by the plan. What the plan says is
// looked up in the truth of the old subtasks.
func (j *rescaleJudge) handedOut(t *testing.T, plan *transform.RescalePlan, restored Content, written bool) {
	t.Helper()
	compared := 0
	for _, op := range plan.Operators {
		if op.Left != "" {
			continue
		}
		before, after := operatorOf(j.truth, op.Operator.ID.String()), operatorOf(restored, op.Operator.ID.String())
		if before == nil || after == nil {
			continue // it has no state that a function could hold: a sink, or the source's coordinator alone
		}
		if after.Parallelism != int(op.To) {
			t.Fatalf("%s runs at %d, planned was %d", after.Name, after.Parallelism, op.To)
		}
		for i, sub := range after.Subtasks {
			planned := map[string]OperatorState{}
			for _, st := range op.States {
				as := i
				if written && st.Mode == format.ModeUnion && stored(plan, op) {
					as = 0
				}
				if state := gathered(before, st, as); held(state) > 0 {
					planned[st.Name] = state
				}
			}
			compared += len(planned)
			want, got := statesOnly(planned), statesOnly(sub.OperatorState)
			if op.Order != "" { // the plan says that it does not know
				want, got = withoutOrder(want), withoutOrder(got)
			}
			if diff := Diff(want, got); diff != "" {
				t.Errorf("%s, subtask %d of %d on Flink %s (-plan +Flink):\n%s", before.Name, i, op.To, j.f.Version(), diff)
			}
		}
		for _, k := range op.Keyed {
			if !k.Raw {
				j.keyedHandedOut(t, before, after, k.Subtasks)
				compared++
			}
		}
	}
	if compared == 0 {
		t.Error("the plan says nothing that could be compared")
	}
}

// stored reports whether union state of an operator is stored once, in the order of
// subtask 0. Where handles share a bucket of Flink's hash map, other subtasks
// would have been handed the blocks in another order, which one list cannot be.
func stored(plan *transform.RescalePlan, op *transform.OperatorPlan) bool {
	return op.Left == "" && (op.From != op.To || plan.Strategy != transform.StrategyFlink)
}

// gathered is what the plan gives new subtask i of a state.
func gathered(before *Operator, st *transform.StatePlan, i int) OperatorState {
	state := OperatorState{Kind: st.Mode.String()}
	for _, source := range st.Subtasks[i].Sources {
		old := before.Subtasks[source.Old].OperatorState[st.Name]
		if st.Mode == format.ModeBroadcast {
			state.Entries = old.Entries // a later copy replaces an earlier one
			continue
		}
		state.Elements = append(state.Elements, part(old.Elements, source)...)
		state.Raw = append(state.Raw, part(old.Raw, source)...)
	}
	return state
}

// part is the elements of a source that are there: a wrong plan shows as a
// difference.
func part[T any](all []T, source transform.ElementSource) []T {
	first := min(source.First, int64(len(all)))
	return all[first:min(first+source.Count, int64(len(all)))]
}

func held(state OperatorState) int { return len(state.Elements) + len(state.Entries) }

// statesOnly is a content of nothing but these states; those that hold nothing
// are left out: a job asks for them, or does not.
func statesOnly(states map[string]OperatorState) Content {
	full := map[string]OperatorState{}
	for name, state := range states {
		if held(state) > 0 {
			full[name] = state
		}
	}
	return Content{Operators: []Operator{{Subtasks: []Subtask{{OperatorState: full}}}}}
}

func operatorOf(c Content, id string) *Operator {
	for i := range c.Operators {
		if c.Operators[i].ID == id {
			return &c.Operators[i]
		}
	}
	return nil
}

// keyedHandedOut: each subtask owns the key groups of the plan, the pieces of
// the plan cover what was stored of them, and it holds what all old subtasks
// held of them.
func (j *rescaleJudge) keyedHandedOut(t *testing.T, before, after *Operator, planned []assign.KeyedSubtask) {
	t.Helper()
	for i, sub := range after.Subtasks {
		want := []int{int(planned[i].Range.First), int(planned[i].Range.Last())}
		if !slices.Equal(want, sub.KeyGroups) {
			t.Errorf("%s, subtask %d has key groups %v, planned were %v", after.Name, i, sub.KeyGroups, want)
			continue
		}
		var covered []int
		for _, piece := range planned[i].Pieces {
			for g := piece.Groups.First; g <= piece.Groups.Last(); g++ {
				covered = append(covered, int(g))
			}
		}
		slices.Sort(covered)
		var stored []string
		for _, old := range before.Subtasks {
			for _, line := range groupLines(old) {
				if line.group < want[0] || line.group > want[1] {
					continue
				}
				stored = append(stored, line.text)
				if _, ok := slices.BinarySearch(covered, line.group); !ok {
					t.Errorf("%s, subtask %d: key group %d has state, and no piece of the plan covers it", after.Name, i, line.group)
				}
			}
		}
		var now []string
		for _, line := range groupLines(sub) {
			now = append(now, line.text)
		}
		if !sameBag(stored, now) {
			t.Errorf("%s, subtask %d: its keyed state or timers are not those of its key groups", after.Name, i)
		}
	}
}

type groupLine struct {
	group int
	text  string
}

// groupLines is keyed state and timers of a subtask, an entry a line.
func groupLines(s Subtask) []groupLine {
	var lines []groupLine
	for name, state := range s.KeyedState {
		for _, e := range state.Entries {
			e.Value = loosenedValue(e.Value, state)
			lines = append(lines, groupLine{e.KeyGroup, fmt.Sprint(name, " ", state.Kind, " ", e)})
		}
	}
	for service, timers := range s.Timers {
		for _, timer := range timers.Event {
			lines = append(lines, groupLine{timer.KeyGroup, fmt.Sprint(service, " event ", timer)})
		}
		for _, timer := range timers.Processing {
			lines = append(lines, groupLine{timer.KeyGroup, fmt.Sprint(service, " processing ", timer)})
		}
	}
	return lines
}

// alike compares two restores at one parallelism: of the snapshot, and of what
// was written by the plan.
func (j *rescaleJudge) alike(t *testing.T, plan *transform.RescalePlan, fromIn, fromOut Content) {
	t.Helper()
	full := func(_ Operator, _ Subtask, _ string, state OperatorState) (OperatorState, bool) {
		return state, held(state) > 0
	}
	fromIn, fromOut = withOperatorStates(fromIn, full), withOperatorStates(fromOut, full)
	for _, op := range plan.Operators {
		if stored(plan, op) {
			fromIn = withOperatorStates(fromIn, func(o Operator, _ Subtask, name string, state OperatorState) (OperatorState, bool) {
				if o.ID == op.Operator.ID.String() && state.Kind == "union" {
					state = o.Subtasks[0].OperatorState[name]
				}
				return state, true
			})
		}
		if op.Order != "" {
			fromIn, fromOut = withoutOrder(fromIn), withoutOrder(fromOut)
		}
	}
	compareContent(t, j.f, j.s.Options, int(plan.To), fromIn, fromOut)
}

// complete holds what was restored at yet another parallelism against the truth.
func (j *rescaleJudge) complete(t *testing.T, restored Content) {
	t.Helper()
	truth := j.truth
	if j.s.Options.Changelog {
		truth, restored = Loosened(truth), Loosened(restored)
	}
	for _, wrong := range CheckRedistributed(truth, restored) {
		t.Errorf("restored with parallelism %d: %s", restored.Operators[0].Parallelism, wrong)
	}
}

// RocksDB's incremental handles are handed out whole, so that after 2 → 4 two
// subtasks hold the same files. Restored at yet another parallelism that is no
// harm where entries are copied, Flink's default; where files are imported,
// RocksDB refuses those that overlap, from 2.0 on.
func TestSharedIncrementalHandles(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		s := madeOnce(t, f, caseNamed(t, "counts-incremental").options)
		j := &rescaleJudge{f: f, s: s, truth: mustTruth(t, s)}
		j.complete(t, Restore(t, f, s, Choices{Parallelism: 3, Ingest: true}))
		rewritten := j.write(t, j.plan(t, 4, transform.StrategyFlink))
		j.complete(t, Restore(t, f, rewritten, Choices{Parallelism: 4, Ingest: true}))
		j.complete(t, Restore(t, f, rewritten, Choices{Parallelism: 3}))
		if version == V1_20 {
			j.complete(t, Restore(t, f, rewritten, Choices{Parallelism: 3, Ingest: true}))
		} else {
			JudgeRefused(t, f, rewritten, Choices{Parallelism: 3, Ingest: true}, "CFs have overlapping ranges")
		}
	})
}

// What a rescale would look like that puts the several handles which a new
// subtask needs into one changelog handle (tag 14) instead of refusing: Flink
// restores it at that and at other parallelisms, with changelog off and on.
func TestSeveralHandlesForOneSubtask(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		for _, r := range []struct {
			of   string
			to   int
			then []int
		}{
			{"counts-rescaled", 2, []int{3, 1}},
			{"counts-incremental", 3, []int{2, 4}}, // old handles in more than one new subtask
			{"keyed-rocksdb-native", 3, []int{2}},
		} {
			t.Run(fmt.Sprintf("%s-to-%d", r.of, r.to), func(t *testing.T) {
				f := Use(t, version)
				s := madeOnce(t, f, caseNamed(t, r.of).options)
				j := &rescaleJudge{f: f, s: s, truth: mustTruth(t, s)}
				snap := opened(t, s)
				out, rewritten := standsFor(t, s)
				seal(t, snap.With(inChangelogs(t, snap, j.plan(t, r.to, transform.StrategyFlink))), out, writer.Options{})
				for _, parallelism := range append([]int{r.to}, r.then...) {
					j.complete(t, Restore(t, f, rewritten, Choices{Parallelism: parallelism}))
				}
				if s.Options.Checkpoint {
					rewritten.Options.Changelog = true
					j.complete(t, Restore(t, f, rewritten, Choices{Parallelism: r.to}))
				}
			})
		}
	})
}

// inChangelogs gives operators with keyed state the plan's parallelism: each
// new subtask gets all handles of its plan in one changelog handle.
func inChangelogs(t *testing.T, snap *reader.Snapshot, plan *transform.RescalePlan) *format.Savepoint {
	t.Helper()
	sp := *snap.Savepoint
	sp.Operators = slices.Clone(sp.Operators)
	for i, op := range plan.Operators {
		if len(op.Keyed) == 0 {
			continue
		}
		c := *op.Operator
		c.Parallelism, c.Subtasks = op.To, nil
		for k, dealt := range op.Keyed[0].Subtasks {
			if c.Subtasks = append(c.Subtasks, &format.Subtask{Index: int32(k)}); len(dealt.Pieces) == 0 {
				continue
			}
			h := &format.Changelog{
				Range: dealt.Range, CheckpointID: sp.ID,
				HandleID: format.NewText(fmt.Sprintf("5b7f0000-0000-4000-8000-%012d", 1000*i+k)),
			}
			for _, piece := range dealt.Pieces {
				h.Materialized = append(h.Materialized, piece.Handle)
			}
			c.Subtasks[k].ManagedKeyed = h
		}
		sp.Operators[i] = &c
	}
	return &sp
}
