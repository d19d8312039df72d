package command

import (
	"fmt"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// TestLargeUnion: from 64 MiB on inspect says what a restore hands out of a union
// state whose elements do not look multiplied.
func TestLargeUnion(t *testing.T) {
	for _, c := range []struct {
		subtasks int
		length   int64 // of the state of each subtask
		want     string
	}{
		{1404, 1 << 20, "u of op is large for union state: at a restore each of 1,404 subtasks loads all 7,021 elements, 1.9 TiB in total"},
		{4, 4 << 20, "u of op is large for union state: at a restore each of 4 subtasks loads all 21 elements, 64.0 MiB in total"},
		{4, 4<<20 - 1, ""},
	} {
		op := &format.Operator{UID: format.NewText("op"), ID: format.OperatorIDOf("op"), Parallelism: int32(c.subtasks), MaxParallelism: 2048}
		for i := range c.subtasks {
			offsets := format.OffsetSlice{0, 1, 2, 3, 4}
			if i == 0 {
				offsets = append(offsets, 5)
			}
			op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: &format.OperatorHandle{
				Codec: format.CodecFlink, Data: &format.File{Path: format.NewText(fmt.Sprint("f", i)), Relative: true, Length: c.length},
				States: []format.NamedState{{Name: format.NewText("u"), Mode: format.ModeUnion, Offsets: offsets}},
			}})
		}
		sum, err := summary.Of(t.Context(), &format.Savepoint{Operators: []*format.Operator{op}})
		if err != nil {
			t.Fatal(err)
		}
		env := &Env{}
		r := &InspectResult{Path: "sp", Operators: []InspectOperator{inspectOperator(env, sum.Operators[0], nil)}}
		r.unions(env, sum, nil)
		got := ""
		for _, w := range r.Warnings {
			got += w.Message
			if w.Code != "union_large" || w.Command != "spt prune-union sp" {
				t.Errorf("%+v", w)
			}
		}
		if got != c.want {
			t.Errorf("%q, not %q", got, c.want)
		}
		if n := r.Operators[0].States[0].UnionRestoreBytes; n != c.length*int64(c.subtasks)*int64(c.subtasks) {
			t.Errorf("%d bytes in %d subtasks: %d at a restore", c.length, c.subtasks, n)
		}
	}
}

// TestRemaining: which duplicates a policy leaves, and why.
func TestRemaining(t *testing.T) {
	report := func(subtasks int, distinct, lo, hi, factor, maxFactor int64) transform.UnionReport {
		return transform.UnionReport{Subtasks: subtasks, Distinct: distinct, MinCopies: lo, MaxCopies: hi, Factor: factor, MaxFactor: maxFactor, Verdict: transform.VerdictProduct}
	}
	for _, c := range []struct {
		keep transform.Keep
		p    transform.PrunedState
		want string // parts of the text, separated by …
	}{
		{transform.KeepDistinct, transform.PrunedState{UnionReport: report(2, 10, 4, 4, 4, 4), Kept: 10, MinKept: 1, MaxKept: 1}, ""},
		{transform.KeepCopies, transform.PrunedState{UnionReport: report(2, 10, 4, 4, 4, 4), Kept: 10, MinKept: 1, MaxKept: 1, Divided: 4}, ""},
		{transform.KeepModulo, transform.PrunedState{UnionReport: report(2, 10, 4, 4, 4, 4), Kept: 20, MinKept: 2, MaxKept: 2, Divided: 2},
			"10 duplicates remain: each of 10 elements comes 2 times. The list of each of 2 subtasks holds them: an earlier restore multiplied it. --keep copies divides by 4. --keep distinct keeps one of each"},
		{transform.KeepCopies, transform.PrunedState{UnionReport: report(6, 10, 48, 48, 6, 48), Kept: 80, MinKept: 8, MaxKept: 8, Divided: 6},
			"70 duplicates remain: each of 10 elements comes 8 times. Counts are divided by 6, which restores at parallelism 6 explain. The factor 8 that is left may be restores at other parallelisms (8, 2 × 4 or 2 × 2 × 2), which a snapshot does not record, or the job's own repetitions. --keep distinct keeps one of each"},
		{transform.KeepCopies, transform.PrunedState{UnionReport: report(12, 10, 12, 144, 12, 12), Kept: 100, MinKept: 1, MaxKept: 12, Divided: 12},
			"90 duplicates remain: each of 10 elements comes 1 to 12 times. Some elements come more often than others: they went through more restores, or the job repeats them. --keep distinct keeps one of each"},
		{transform.KeepCopies, transform.PrunedState{UnionReport: report(2, 10, 4, 4, 4, 4), Kept: 40, MinKept: 4, MaxKept: 4, Divided: 1, Skipped: "left"}, ""},
	} {
		if got := remaining(&c.p, c.keep); got != c.want {
			t.Errorf("%s of %+v: %q, not %q", c.keep, c.p, got, c.want)
		}
	}
}

// TestProducts: numbers as products of parallelisms.
func TestProducts(t *testing.T) {
	for n, want := range map[int64]string{
		2: "2", 4: "4 or 2 × 2", 6: "6 or 2 × 3", 7: "7", 8: "8, 2 × 4 or 2 × 2 × 2", 48: "48, 2 × 24, 2 × 2 × 12, …",
		32768: "32768, 2 × 16384, 2 × 2 × 8192, …", 65536: "2 × 32768, 2 × 2 × 16384, 2 × 2 × 2 × 8192, …", 32771: "none that is possible",
	} {
		if got := products(n); got != want {
			t.Errorf("%d: %q, not %q", n, got, want)
		}
	}
	if text := products(1<<32 - 1<<16); !strings.Contains(text, " × ") { // as large as counts can be
		t.Error(text)
	}
}

// TestManyRemarks: of many remarks of one kind three are printed, and counted.
func TestManyRemarks(t *testing.T) {
	r := &InspectResult{}
	for i := range 300 {
		r.Warnings = append(r.Warnings, InspectWarning{Code: "union_large", Message: fmt.Sprintf("state %d is large", i)})
	}
	r.Warnings = append(r.Warnings, InspectWarning{Code: "may_be_multiplied", Message: "another may be multiplied"})
	var b strings.Builder
	env := &Env{Getenv: func(string) string { return "" }}
	if err := r.remarks(env, ui.NewLineWriter(&b, ui.Term{})); err != nil {
		t.Fatal(err)
	}
	want := "\n! state 0 is large.\n! state 1 is large.\n! state 2 is large.\n! another may be multiplied.\n! 297 more of union_large; -o json lists all.\n"
	if b.String() != want {
		t.Errorf("%q, not %q", b.String(), want)
	}
}
