package command

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
)

// unionReports are what --deep read of union states. A state that could not be
// read has an error instead.
type unionReports map[*summary.State]unionRead

type unionRead struct {
	*transform.UnionReport
	err error
}

// readUnions reads the elements of all union states. What cannot be read is part
// of the answer; unread is the first such error.
func readUnions(ctx context.Context, env *Env, snap *reader.Snapshot, sum *summary.Summary) (reports unionReports, unread, err error) {
	reports = unionReports{}
	stop := env.reading("reading", someState(ctx, snap, statesOf(snap.Savepoint, func(_ *format.Operator, st *format.NamedState) bool { return st.Mode == format.ModeUnion })))
	defer stop()
	type stateOf struct {
		op   *format.Operator
		name string
	}
	states := map[stateOf]*summary.State{}
	in := snap.View()
	in.Savepoint = &format.Savepoint{Location: snap.Location}
	for _, op := range sum.Operators {
		in.Operators = append(in.Operators, op.Operator)
		for _, st := range op.States {
			if st.Kind == summary.Union && st.Elements > 0 {
				states[stateOf{op.Operator, st.Name}] = st
			}
		}
	}
	all, err := transform.DiagnoseUnions(ctx, in, transform.UnionOptions{Partial: true, TempDir: env.common.tmp})
	if err != nil {
		return nil, nil, inContainer(err, snap)
	}
	for _, r := range all {
		st := states[stateOf{r.Operator, r.State}]
		if st == nil {
			continue
		}
		reports[st] = unionRead{UnionReport: r, err: r.Err}
		unread = cmp.Or(unread, r.Err)
	}
	return reports, inContainer(unread, snap), nil
}

// unions adds what is known of union states: what a restore loads, and what
// looks or is multiplied. reports is nil without --deep.
func (r *InspectResult) unions(env *Env, sum *summary.Summary, reports unionReports) {
	states := map[string]int{} // how many operators have a union state of the name
	for _, op := range sum.Operators {
		for _, st := range op.States {
			if st.Kind == summary.Union {
				states[st.Name]++
			}
		}
	}
	for _, op := range sum.Operators {
		for _, st := range op.States {
			if st.Kind != summary.Union || st.Elements == 0 {
				continue
			}
			handed := transform.Capped(st.Bytes, int64(op.Parallelism))
			read, known := reports[st]
			if row := r.state(op, env.run.Text(st.Name)); row != nil {
				row.UnionRestoreBytes = handed
				row.union(read, known)
			}
			if w, ok := unionWarning(env, r.Path, op, st, read, known, handed, states[st.Name] > 1); ok {
				r.Warnings = append(r.Warnings, w)
			}
		}
	}
}

// state finds the row of a union state.
func (r *InspectResult) state(op *summary.Operator, name string) *InspectState {
	for i := range r.Operators {
		if r.Operators[i].ID != op.ID.String() {
			continue
		}
		for k := range r.Operators[i].States {
			if st := &r.Operators[i].States[k]; st.Name == name && st.Kind == string(summary.Union) {
				return st
			}
		}
	}
	return nil
}

// union adds what was read to the row of a state.
func (s *InspectState) union(read unionRead, known bool) {
	if !known || read.err != nil {
		return
	}
	s.Distinct, s.MinCopies, s.MaxCopies, s.Verdict = &read.Distinct, read.MinCopies, read.MaxCopies, string(read.Verdict)
	s.MayBeMultiplied = read.Verdict == transform.VerdictProduct && !read.OneEach() || read.Suspicious()
}

// unionWarning is what deserves a look with a union state: that it is or may be
// multiplied, else that its elements repeat, else that it is large. shared reports
// whether another operator has a union state of that name.
func unionWarning(env *Env, path string, op *summary.Operator, st *summary.State, read unionRead, known bool, handed int64, shared bool) (InspectWarning, bool) {
	name := fmt.Sprintf("%s of %s", ui.Quote(env.run.Text(st.Name)), ui.Quote(env.run.Label(op.Operator)))
	prune := "spt prune-union " + shell.Quote(path)
	loads := fmt.Sprintf("at a restore every subtask loads all %s, %s in total", ui.Count(st.Elements), ui.Bytes(handed))
	next := productText(st.Elements, int64(op.Parallelism))
	grows := fmt.Sprintf("%s; if the job adds them again, the next snapshot holds %s", loads, next)
	switch {
	case known && read.err != nil:
		return InspectWarning{Code: "union_not_read", Message: fmt.Sprintf("the elements of %s could not be read: %s", name, env.run.Hide(read.err.Error())),
			Command: "spt verify " + shell.Quote(path), more: loads}, true
	case known && read.OneEach():
		return InspectWarning{Code: "union_repeats", Message: fmt.Sprintf("%s may be multiplied by restores: %s", name, read.Why), Command: prune, more: grows}, true
	case known && read.Verdict == transform.VerdictProduct:
		return InspectWarning{Code: "union_multiplied", Message: fmt.Sprintf("%s was multiplied by restores: %s", name, read.Numbers()), Command: prune, more: grows}, true
	case known && read.Repeats():
		what := "repeats elements"
		if read.Suspicious() {
			what = "may be multiplied, which is not proven because " + read.Why
		}
		command := prune
		if env.run.Format != ui.FormatRedacted { // a redacted name chooses nothing
			command = fmt.Sprintf("spt cat %s %s --distinct", shell.Quote(path), chosen(op.ID.String(), env.run.Text(st.Name), shared))
		}
		return InspectWarning{Code: "union_repeats", Message: fmt.Sprintf("%s %s: %s", name, what, read.Numbers()), Command: command, more: loads}, true
	case !known && st.MayBeMultiplied:
		n := int64(st.Subtasks)
		order := ""
		if st.SameOrder {
			order = " in the same order"
		}
		if !st.Compared {
			grows += ". Only lengths were compared: subtasks that each write an equal share of their own look the same"
		}
		return InspectWarning{Code: "may_be_multiplied", Message: fmt.Sprintf("%s may be multiplied: %s elements, %s in each of %d subtasks, with the same lengths%s",
			name, ui.Count(st.Elements), ui.Count(st.Elements/n), n, order), Command: prune, more: grows}, true
	case handed >= check.LargeUnion:
		return InspectWarning{Code: "union_large", Message: fmt.Sprintf("%s is large for union state: at a restore each of %s loads all %s, %s in total",
			name, ui.Plural(int64(op.Parallelism), "subtask"), ui.Plural(st.Elements, "element"), ui.Bytes(handed)), Command: prune}, true
	}
	return InspectWarning{}, false
}

// productText is a product for people, or "more than 9e18" where an int64 cannot
// hold it.
func productText(a, b int64) string {
	n := transform.Capped(a, b)
	if n == math.MaxInt64 {
		return "more than " + ui.Count(n)
	}
	return ui.Count(n)
}
