package report

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// remaining says how many duplicates a policy leaves, why, and what removes them;
// "" where it leaves none.
func remaining(p *transform.PrunedState, keep transform.Keep) string {
	n := p.Remaining()
	if p.Skipped != "" || n <= 0 || p.Divided == 0 {
		return ""
	}
	text := fmt.Sprintf("%s remain: each of %s comes %s", ui.Plural(n, "duplicate"), ui.Plural(p.Distinct, "element"), timesText(p.MinKept, p.MaxKept))
	rest := p.MaxFactor / p.Divided
	switch proven := p.Factor / p.Divided; {
	case proven > 1:
		text += fmt.Sprintf(". The list of each of %d subtasks holds them: an earlier restore multiplied it. --keep copies divides by %s", p.Subtasks, ui.Count(p.Factor))
	case rest > 1:
		text += fmt.Sprintf(". Counts are divided by %s, which restores at parallelism %d explain. The factor %s that is left may be restores at other parallelisms (%s), which a snapshot does not record, or the job's own repetitions",
			ui.Count(p.Divided), p.Subtasks, ui.Count(rest), products(rest))
	}
	if p.MinKept != p.MaxKept {
		text += ". Some elements come more often than others: they went through more restores, or the job repeats them"
	}
	return text + ". --keep distinct keeps one of each"
}

// timesText says how often elements occur: "2 times", "1 to 3 times".
func timesText(lo, hi int64) string {
	switch {
	case lo == hi && lo == 1:
		return "once"
	case lo == hi:
		return ui.Count(lo) + " times"
	}
	return ui.Count(lo) + " to " + ui.Count(hi) + " times"
}

// factorText explains how often elements occur in a state that restores multiplied. It
// has no lines where restores at the state's parallelism explain all counts.
func factorText(r *transform.UnionReport) (lines []string) {
	if rest := r.MaxFactor / r.Factor; rest > 1 {
		lines = append(lines, fmt.Sprintf("Every count is a multiple of %s. Restores at parallelism %d explain a factor of %s; the other %s may be restores at other parallelisms (%s), which a snapshot does not record, or the job's own repetitions.",
			ui.Count(r.MaxFactor), r.Subtasks, ui.Count(r.Factor), ui.Count(rest), products(rest)))
	}
	if r.MinCopies != r.MaxCopies {
		lines = append(lines, "Some elements come more often than others: they went through more restores, or the job repeats them; --keep copies keeps that difference.")
	}
	return lines
}

// maxProducts is how many products are listed.
const maxProducts = 3

// products lists ways to write a number as parallelisms of restores: "8, 2 × 4 or
// 2 × 2 × 2".
func products(n int64) string {
	var all []string
	var find func(prefix string, n, least int64)
	find = func(prefix string, n, least int64) {
		if n <= format.MaxKeyGroups {
			all = append(all, prefix+strconv.FormatInt(n, 10))
		}
		for d := least; d*d <= n && d <= format.MaxKeyGroups && len(all) <= maxProducts; d++ {
			if n%d == 0 {
				find(prefix+strconv.FormatInt(d, 10)+" × ", n/d, d)
			}
		}
	}
	find("", n, 2)
	switch {
	case len(all) == 0:
		return "none that is possible"
	case len(all) == 1:
		return all[0]
	case len(all) > maxProducts:
		return strings.Join(all[:maxProducts], ", ") + ", …"
	}
	return strings.Join(all[:len(all)-1], ", ") + " or " + all[len(all)-1]
}
