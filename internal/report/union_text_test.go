package report

import (
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/transform"
)

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
