package report

import (
	"fmt"
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
)

// UnionRead is what was read of a union state, or why it could not be read.
type UnionRead struct {
	*transform.UnionReport
	Err error
}

// addUnions adds what is known of union states: what a restore loads, and what is or
// looks multiplied.
func (x *Inspect) addUnions(sum *summary.Summary, reads map[*summary.State]UnionRead) {
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
			u := union{op: op, State: st, restored: number.Times(st.Bytes, int64(op.Parallelism)), shared: states[st.Name] > 1}
			u.read, u.known = reads[st]
			if row := x.state(op.ID, x.run.Text(st.Name)); row != nil {
				row.UnionRestoreBytes = u.restored
				row.addUnion(u.read, u.known)
			}
			if w, ok := u.warning(x.run, x.Path); ok {
				x.Warnings = append(x.Warnings, w)
			}
		}
	}
}

// state returns the row of a union state.
func (x *Inspect) state(id format.OperatorID, name string) *InspectState {
	for i := range x.Operators {
		if x.Operators[i].ID != id.String() {
			continue
		}
		for k := range x.Operators[i].States {
			if st := &x.Operators[i].States[k]; st.Name == name && st.Kind == string(summary.Union) {
				return st
			}
		}
	}
	return nil
}

func (s *InspectState) addUnion(read UnionRead, known bool) {
	if !known || read.Err != nil {
		return
	}
	s.Distinct, s.MinCopies, s.MaxCopies, s.Verdict = &read.Distinct, read.MinCopies, read.MaxCopies, string(read.Verdict)
	s.MayBeMultiplied = read.Verdict == transform.VerdictProduct && !read.OneEach() || read.Suspicious()
}

// union is a union state and what is known of it.
type union struct {
	op *summary.Operator
	*summary.State
	restored int64 // bytes that a restore loads into all subtasks together
	shared   bool  // another operator has a union state of the name
	known    bool  // its elements were read, or could not be
	read     UnionRead
}

// warning returns what deserves a look: that the state is or may be multiplied, else
// that its elements repeat, else that it is large.
func (u *union) warning(r *Run, path string) (w InspectWarning, ok bool) {
	name := fmt.Sprintf("%s of %s", ui.Quote(r.Text(u.Name)), ui.Quote(r.Label(u.op.Operator)))
	prune := "spt prune-union " + shell.Quote(path)
	loads := fmt.Sprintf("at a restore every subtask loads all %s, %s in total", ui.Count(u.Elements), ui.Bytes(u.restored))
	grows := fmt.Sprintf("%s; if the job adds them again, the next snapshot holds %s", loads, productText(u.Elements, int64(u.op.Parallelism)))
	read := u.read
	switch {
	case u.known && read.Err != nil:
		return InspectWarning{Code: "union_not_read", Message: fmt.Sprintf("the elements of %s could not be read: %s", name, r.Hide(read.Err.Error())),
			Command: "spt verify " + shell.Quote(path), more: loads}, true
	case u.known && read.OneEach():
		return InspectWarning{Code: "union_repeats", Message: fmt.Sprintf("%s may be multiplied by restores: %s", name, read.Why), Command: prune, more: grows}, true
	case u.known && read.Verdict == transform.VerdictProduct:
		return InspectWarning{Code: "union_multiplied", Message: fmt.Sprintf("%s was multiplied by restores: %s", name, read.Numbers()), Command: prune, more: grows}, true
	case u.known && read.Repeats():
		what := "repeats elements"
		if read.Suspicious() {
			what = "may be multiplied, which is not proven because " + read.Why
		}
		command := prune
		if r.Format != ui.FormatRedacted { // a redacted name chooses nothing
			command = fmt.Sprintf("spt cat %s %s --distinct", shell.Quote(path), selectState(u.op.ID.String(), u.Name, u.shared))
		}
		return InspectWarning{Code: "union_repeats", Message: fmt.Sprintf("%s %s: %s", name, what, read.Numbers()), Command: command, more: loads}, true
	case !u.known && u.MayBeMultiplied:
		n := int64(u.Subtasks)
		order := ""
		if u.SameOrder {
			order = " in the same order"
		}
		if !u.Compared {
			grows += ". Only lengths were compared: subtasks that each write an equal share of their own look the same"
		}
		return InspectWarning{Code: "may_be_multiplied", Message: fmt.Sprintf("%s may be multiplied: %s elements, %s in each of %d subtasks, with the same lengths%s",
			name, ui.Count(u.Elements), ui.Count(u.Elements/n), n, order), Command: prune, more: grows}, true
	case u.restored >= check.LargeUnion:
		return InspectWarning{Code: "union_large", Message: fmt.Sprintf("%s is large for union state: at a restore each of %s loads all %s, %s in total",
			name, ui.Plural(int64(u.op.Parallelism), "subtask"), ui.Plural(u.Elements, "element"), ui.Bytes(u.restored)), Command: prune}, true
	}
	return InspectWarning{}, false
}

// selectState returns the flags that choose a state of an operator, where shared says
// that another operator has a state of the name.
func selectState(id, state string, shared bool) string {
	flags := "--state " + shell.Quote(state)
	if shared {
		flags = "--operator " + id + " " + flags
	}
	return flags
}

// productText returns a product, or "more than 9e18" where an int64 cannot hold it.
func productText(a, b int64) string {
	n := number.Times(a, b)
	if n == math.MaxInt64 {
		return "more than " + ui.Count(n)
	}
	return ui.Count(n)
}
