package conformance

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/cmd/spt/command"
	"github.com/savepoint-tools/spt/format"
)

// spt runs a command line, which must do its work without a finding, and returns what it
// printed.
func spt(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := command.Main(context.Background(), args, &command.Env{
		Stdout: &stdout, Stderr: &stderr,
		Getenv: func(name string) string {
			if name == "SPT_FOLLOW" {
				return "/" // changelogs and what refers to the original
			}
			return ""
		},
		Now: time.Now, Stores: stores,
	})
	if code != 0 {
		t.Fatalf("spt %s: exit code %d\n%s%s", strings.Join(args, " "), code, &stdout, &stderr)
	}
	return stdout.String()
}

// located is how a snapshot that Flink made is named on a command line, with the
// uids of the jobs, which snapshots of Flink 1 do not hold.
func located(t *testing.T, s Snapshot) (in string, flags []string) {
	t.Helper()
	names := filepath.Join(t.TempDir(), "names")
	if err := os.WriteFile(names, []byte("numbers\nlists\nrules\nkeyed\ncounts\nunion\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(s.Dir, s.Path), []string{"--map", "file:" + s.At + "=" + s.Dir, "--names", names}
}

// dropped writes a snapshot without what the flags name, for later merges.
func (j *editJudge) dropped(t *testing.T, flags ...string) (out string, less Snapshot) {
	t.Helper()
	in, common := located(t, j.s)
	out, less = standsFor(t, j.s)
	spt(t, slices.Concat([]string{"drop", in, out, "--operator", j.uid}, common, flags)...)
	return out, less
}

// merged writes what a folder becomes with the operator of another snapshot.
func (j *editJudge) merged(t *testing.T, less string, from Snapshot, flags ...string) Snapshot {
	t.Helper()
	in, common := located(t, from)
	out, both := standsFor(t, j.s)
	spt(t, slices.Concat([]string{"merge", less, out, "--from", in, "--operator", j.uid}, common, flags)...)
	judgeModel(t, j.f, both, openedAt(t, out))
	return both
}

// holdsAs says what differs between a content that is known and one that was
// restored at the same parallelism. The order of blocks follows names of files,
// which a merge may change.
func (j *editJudge) holdsAs(want, got Content) string {
	full := func(_ Operator, _ Subtask, _ string, state OperatorState) (OperatorState, bool) {
		return state, held(state) > 0
	}
	return Diff(withoutOrder(withOperatorStates(want, full)), withoutOrder(withOperatorStates(got, full)))
}

// merges are the kinds of snapshots that merges are judged on, the operator that
// is dropped and comes back, and another parallelism to restore at.
var merges = []struct {
	of, uid string
	other   int
}{
	{"operator", "lists", 4},              // operator state in _metadata
	{"operator-compressed", "lists", 5},   // in files, snappy frames
	{"keyed-heap", "keyed", 4},            // canonical
	{"keyed-rocksdb-native", "keyed", 4},  // native
	{"counts-incremental", "counts", 4},   // incremental checkpoint
	{"operator-file-merging", "lists", 3}, // segments
}

func eachMerge(t *testing.T, f func(t *testing.T, j *editJudge, other int)) {
	t.Helper()
	eachMergeOf(t, "", f)
}

// eachMergeOf is eachMerge for the kinds whose operator has this uid; "": all.
func eachMergeOf(t *testing.T, uid string, f func(t *testing.T, j *editJudge, other int)) {
	t.Helper()
	eachVersion(t, func(t *testing.T, version Version) {
		for _, x := range merges {
			if uid != "" && x.uid != uid {
				continue
			}
			t.Run(x.of, func(t *testing.T) {
				flink := Use(t, version)
				f(t, &editJudge{f: flink, s: madeOnce(t, flink, caseNamed(t, x.of).options), uid: x.uid}, x.other)
			})
		}
	})
}

// An operator that was dropped and is taken over from the original again: all is
// as it was, at the old parallelism and at another. That it was not there in
// between needs no look: a merge replaces nothing.
func TestMergeBack(t *testing.T) {
	eachMerge(t, func(t *testing.T, j *editJudge, other int) {
		out, _ := j.dropped(t)
		j.judgeWhole(t, j.merged(t, out, j.s), other)
	})
}

// judgeWhole holds what was merged against the original.
func (j *editJudge) judgeWhole(t *testing.T, both Snapshot, other int) {
	t.Helper()
	if diff := j.holdsAs(restoredOnce(t, j.f, j.s, Choices{}), Restore(t, j.f, both, Choices{})); diff != "" {
		t.Errorf("(-original +merged):\n%s", diff)
	}
	for _, wrong := range CheckRedistributed(mustTruth(t, j.s), Restore(t, j.f, both, Choices{Parallelism: other})) {
		t.Errorf("parallelism %d: %s", other, wrong)
	}
}

// What was not taken over is missed.
func TestMissingMergeIsNoticed(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		for _, x := range merges {
			if x.of != "operator" && x.of != "keyed-heap" {
				continue
			}
			f := Use(t, version)
			j := &editJudge{f: f, s: madeOnce(t, f, caseNamed(t, x.of).options), uid: x.uid}
			_, less := j.dropped(t)
			got := Restore(t, f, less, Choices{})
			if j.holdsAs(restoredOnce(t, f, j.s, Choices{}), got) == "" || len(CheckRedistributed(mustTruth(t, j.s), got)) == 0 {
				t.Errorf("%s: an operator that is not there went unnoticed", x.of)
			}
		}
	})
}

// The same with single states, which go into the operator that has the others: a
// list state, and then union and broadcast state at once.
func TestMergeState(t *testing.T) {
	eachMergeOf(t, "lists", func(t *testing.T, j *editJudge, other int) {
		for _, names := range [][]string{j.statesOf(t, "list")[:1], {j.statesOf(t, "union")[0], "owner"}} {
			var flags []string
			for _, name := range names {
				flags = append(flags, "--state", name)
			}
			out, _ := j.dropped(t, flags...)
			j.judgeWhole(t, j.merged(t, out, j.s, flags...), other)
		}
	})
}

// The operator of another job of the same shape: it holds what it held there,
// the others what they held here.
func TestMergeOther(t *testing.T) {
	eachMerge(t, func(t *testing.T, j *editJudge, other int) {
		j.judgeOther(t, otherJob(t, j.f, j.s.Options), parallelismOf(j.s), other)
	})
}

// The operator of a snapshot of the Flink before, whose _metadata is of an older
// version.
func TestMergeOfOlderFlink(t *testing.T) {
	for _, version := range Versions() {
		newer := version.Next()
		if newer == version {
			continue
		}
		for _, x := range merges {
			if x.of != "operator" && x.of != "keyed-heap" {
				continue
			}
			t.Run(fmt.Sprintf("%s-into-%s/%s", version, newer, x.of), func(t *testing.T) {
				f, options := Use(t, newer), caseNamed(t, x.of).options
				j := &editJudge{f: f, s: madeOnce(t, f, options), uid: x.uid}
				j.judgeOther(t, otherJob(t, Use(t, version), options), x.other)
			})
		}
	}
}

// otherJob is a snapshot of a job of the same shape that held other things.
func otherJob(t *testing.T, f *Flink, options Options) Snapshot {
	t.Helper()
	options.At, options.Seed, options.Elements = "", options.Seed+50, 25
	return madeOnce(t, f, options)
}

// judgeOther drops the operator, takes that of another snapshot over, and has
// the result restored at some parallelisms.
func (j *editJudge) judgeOther(t *testing.T, b Snapshot, parallelisms ...int) {
	t.Helper()
	mine, theirs := mustTruth(t, j.s), mustTruth(t, b)
	want := withOperator(t, mine, theirs, j.id())
	if Diff(mine, want) == "" || Diff(theirs, want) == "" {
		t.Fatal("both jobs held the same: nothing is shown")
	}
	out, _ := j.dropped(t)
	both := j.merged(t, out, b)
	for _, parallelism := range parallelisms {
		got := Restore(t, j.f, both, Choices{Parallelism: parallelism})
		for _, wrong := range CheckRedistributed(want, got) {
			t.Errorf("parallelism %d: %s", parallelism, wrong)
		}
		for whose, content := range map[string]Content{"this": mine, "that": theirs} {
			if len(CheckRedistributed(content, got)) == 0 {
				t.Errorf("parallelism %d: the judge takes it for the content of %s job alone", parallelism, whose)
			}
		}
	}
}

// withOperator is a content with an operator as it is in another.
func withOperator(t *testing.T, c, other Content, id format.OperatorID) Content {
	t.Helper()
	op := operatorOf(other, id.String())
	if op == nil || holds(op) == 0 {
		t.Fatalf("operator %s holds nothing", id)
	}
	c = without(c, id)
	c.Operators = append(c.Operators, *op)
	return c
}

// applied writes what a recipe makes of a snapshot.
func applied(t *testing.T, f *Flink, s Snapshot, recipe string) Snapshot {
	t.Helper()
	file := filepath.Join(t.TempDir(), "recipe.yaml")
	if err := os.WriteFile(file, []byte(recipe), 0o644); err != nil {
		t.Fatal(err)
	}
	in, common := located(t, s)
	out, rewritten := standsFor(t, s)
	spt(t, slices.Concat([]string{"apply", in, out, "--recipe", file, "--read-back"}, common)...)
	judgeModel(t, f, rewritten, openedAt(t, out))
	return rewritten
}

// checkpointIs fails the test unless Flink reads this id.
func checkpointIs(t *testing.T, f *Flink, s Snapshot, id int64) {
	t.Helper()
	if m, err := f.Metadata(s); err != nil || m.CheckpointID != id {
		t.Errorf("checkpoint %d, want %d; %v", m.CheckpointID, id, err)
	}
}

// renamedBack is a content in which an operator has its old uid again.
func renamedBack(c Content, uid, old string) Content {
	c.Operators = slices.Clone(c.Operators)
	for i, o := range c.Operators {
		if o.ID == format.OperatorIDOf(uid).String() {
			c.Operators[i].ID = format.OperatorIDOf(old).String()
			c.Operators[i].UID = old
		}
	}
	return c
}

// A union state that grew, in one pass pruned, made list state, under a new uid
// and for a new parallelism, and the source gone: each element is handed out
// once, and the source begins anew.
func TestApplyToUnion(t *testing.T) {
	const recipe = `
steps:
  - prune-union: {state: offsets, keep: distinct}
  - rename: {uid: {union: pruned}}
  - drop: {operator: numbers}
  - set: {operator: pruned, state: offsets, mode: list}
  - set: {checkpoint-id: 4242}
  - rescale: {to: 4}
`
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		s := madeOnce(t, f, caseNamed(t, "union-inflated").options)
		rewritten := applied(t, f, s, recipe)
		checkpointIs(t, f, rewritten, 4242)
		asked := Choices{UIDs: map[string]string{"union": "pruned"}, Modes: map[string]string{"offsets": "list"}}

		truth := mustTruth(t, s)
		var stored []string
		for _, sub := range operatorNamed(t, truth, "union").Subtasks {
			stored = append(stored, sub.OperatorState["offsets"].Raw...)
		}
		want := slices.Compact(sorted(stored))
		if len(want) < 10 || len(want) == len(stored) || holds(operatorOf(truth, format.OperatorIDOf("numbers").String())) == 0 {
			t.Fatalf("%d elements, %d of them distinct: nothing is shown", len(stored), len(want))
		}
		for _, parallelism := range []int{4, 3} {
			asked.Parallelism = parallelism
			got := renamedBack(Restore(t, f, rewritten, asked), "pruned", "union")
			if wrong := dealtOut(operatorNamed(t, got, "union"), "offsets", want); wrong != "" {
				t.Errorf("parallelism %d: %s", parallelism, wrong)
			}
			if dealtOut(operatorNamed(t, got, "union"), "offsets", stored) == "" {
				t.Errorf("parallelism %d: the judge takes it for all that was stored", parallelism)
			}
			if n := holds(operatorOf(got, format.OperatorIDOf("numbers").String())); n > 0 {
				t.Errorf("parallelism %d: the dropped source holds %d things", parallelism, n)
			}
		}
		JudgeRefused(t, f, rewritten, Choices{Modes: asked.Modes}, "Cannot map checkpoint/savepoint state for operator "+format.OperatorIDOf("pruned").String())
		asked.Modes = nil
		JudgeRefused(t, f, rewritten, asked, "Incompatible state assignment modes")
	})
}

// dealtOut says what is wrong unless a list state holds each element once, and
// as many in each subtask, or one more.
func dealtOut(op Operator, name string, want []string) string {
	var all []string
	least, most := -1, 0
	for _, sub := range op.Subtasks {
		state := sub.OperatorState[name]
		if state.Kind != "list" {
			return fmt.Sprintf("subtask %d holds a %q state", sub.Index, state.Kind)
		}
		all = append(all, state.Raw...)
		if n := len(state.Raw); least < 0 || n < least {
			least = n
		}
		most = max(most, len(state.Raw))
	}
	switch {
	case !sameBag(want, all):
		return fmt.Sprintf("%d elements, not the %d that were to stay", len(all), len(want))
	case most-least > 1:
		return fmt.Sprintf("from %d to %d elements in a subtask", least, most)
	}
	return ""
}

// Several states of an operator: one dropped, one made union state, the operator
// renamed, another operator dropped, all for a new parallelism; the rest is as
// it was.
func TestApplyToLists(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		for _, of := range []string{"operator", "operator-compressed"} {
			t.Run(of, func(t *testing.T) {
				f := Use(t, version)
				j := &editJudge{f: f, s: madeOnce(t, f, caseNamed(t, of).options), uid: "lists"}
				lists := j.statesOf(t, "list")
				gone, union := lists[0], lists[1]
				from := parallelismOf(j.s)
				rewritten := applied(t, f, j.s, fmt.Sprintf(`
steps:
  - drop: {operator: rules}
  - drop: {operator: lists, state: [%q]}
  - rename: {uid: {lists: renamed}}
  - set: {operator: renamed, state: %q, mode: union}
  - set: {checkpoint-id: 77}
  - rescale: {from: %d, to: 4}
`, gone, union, from))
				checkpointIs(t, f, rewritten, 77)
				truth := mustTruth(t, j.s)
				rules := format.OperatorIDOf("rules")
				if holds(operatorOf(truth, rules.String())) == 0 {
					t.Fatal("the operator that is dropped held nothing")
				}
				want := withOperatorStates(without(truth, rules), func(o Operator, _ Subtask, name string, state OperatorState) (OperatorState, bool) {
					if o.ID != j.id().String() {
						return state, true
					}
					switch name {
					case union:
						state.Kind = "union"
					case gone: // the job asks for it and finds it empty
						state = OperatorState{Kind: state.Kind}
					}
					return state, true
				})
				for _, parallelism := range []int{4, from} {
					got := renamedBack(Restore(t, f, rewritten, Choices{
						Parallelism: parallelism,
						UIDs:        map[string]string{"lists": "renamed"},
						Modes:       map[string]string{union: "union"},
					}), "renamed", "lists")
					if n := holds(operatorOf(got, rules.String())); n > 0 {
						t.Errorf("parallelism %d: the dropped operator holds %d things", parallelism, n)
					}
					// It was written for 4: there, and back again, it is dealt out anew.
					for _, wrong := range CheckRedistributed(asIfRescaled(want), without(got, rules)) {
						t.Errorf("parallelism %d: %s", parallelism, wrong)
					}
					if len(CheckRedistributed(asIfRescaled(without(truth, rules)), without(got, rules))) == 0 {
						t.Errorf("parallelism %d: the judge takes it for the original", parallelism)
					}
				}
			})
		}
	})
}

// asIfRescaled is a content whose operators have no parallelism, so that none
// counts as the same: what was rescaled has been dealt out anew.
func asIfRescaled(c Content) Content {
	c.Operators = slices.Clone(c.Operators)
	for i := range c.Operators {
		c.Operators[i].Parallelism = 0
	}
	return c
}
