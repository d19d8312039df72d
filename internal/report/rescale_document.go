package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Document implements [Report]: who gets what of each state, then what deserves a look.
func (r *Rescale) Document() *ui.Document {
	var d ui.Document
	for i := range r.Operators {
		op := &r.Operators[i]
		if op.Left != "" {
			continue
		}
		for k := range op.States {
			r.appendState(&d, op, &op.States[k])
		}
		for _, k := range op.Keyed {
			r.appendKeyed(&d, op, k)
		}
		if op.Order != "" {
			d.Remark("%s: the order of blocks within a subtask is not certain: %s", ui.Quote(op.label), op.Order)
		}
		if op.InFlight {
			d.Remark("%s has in-flight data; where it goes depends on the job's graph and is not in this plan", ui.Quote(op.label))
		}
	}
	r.appendSummary(&d)
	r.appendEnd(&d)
	return &d
}

// Summary returns a report of which operators are rescaled, for a document that goes on
// with what is written.
func (r *Rescale) Summary() Report { return rescaleSummary{r} }

type rescaleSummary struct{ *Rescale }

func (s rescaleSummary) Document() *ui.Document {
	var d ui.Document
	s.appendSummary(&d)
	return &d
}

func (r *Rescale) appendState(d *ui.Document, op *RescaleOperator, st *RescaleState) {
	kind := st.Kind
	if st.Raw {
		kind = "raw"
	}
	what := ui.Plural(st.Elements, "element")
	if st.Kind == "broadcast" {
		what = fmt.Sprintf("%d of %d subtasks with a replica", st.Elements, op.From)
	}
	d.Heading("%s · %s · %s · %s, %s", ui.Quote(op.label), ui.Quote(st.Name), kind, what, ui.Bytes(st.Bytes))
	if st.Kind == "union" && st.Elements > 0 { // all subtasks get the same
		if st.Varies {
			d.Line("  %s in orders that differ between subtasks; this is the order of subtask 0, which OUT gives to all", ui.Look("!"))
		}
		d.Line("  every subtask gets all %s: %s", ui.Count(st.Elements), sourcesText(st.Subtasks[0].Sources))
		d.Line("  %s assigned in total; if the job adds them again, the next snapshots hold %s, %s, %s",
			ui.Count(st.Growth[0]), ui.Count(st.Growth[0]), ui.Count(st.Growth[1]), ui.Count(st.Growth[2]))
		return
	}
	t := ui.NewTable(ui.Column{}, ui.Column{Align: ui.Right}, ui.Column{Align: ui.Right}, ui.Column{Shrink: 1, Min: 14, Wrap: true})
	shown, rest := r.in.subtasks(len(st.Subtasks))
	lo, hi := int64(math.MaxInt64), int64(0)
	for i, sub := range st.Subtasks {
		lo, hi = min(lo, sub.Elements), max(hi, sub.Elements)
		name := fmt.Sprintf("subtask %d", i)
		switch {
		case i >= shown:
		case sub.Elements > 0:
			t.Child(1, name, ui.Count(sub.Elements), ui.Bytes(sub.Bytes), sourcesText(sub.Sources))
		case st.Elements > 0:
			t.Child(1, name, "–", "", ui.Look("! gets nothing"))
		default:
			t.Child(1, name, "–")
		}
	}
	d.Add(t)
	if rest > 0 {
		d.Line("  … %d more subtasks, with %s to %s each (--wide shows them)", rest, ui.Count(lo), ui.Count(hi))
	}
	if st.Empty > 0 && st.Elements > 0 && rest > 0 {
		d.Line("  %s %s get nothing", ui.Look("!"), ui.Plural(int64(st.Empty), "subtask"))
	}
}

func (r *Rescale) appendKeyed(d *ui.Document, op *RescaleOperator, k RescaleKeyed) {
	kind := "keyed"
	if k.Raw {
		kind = "raw keyed"
	}
	d.Heading("%s · %s · %s", ui.Quote(op.label), kind, ui.Plural(int64(op.MaxParallelism), "key group"))
	t := ui.NewTable(ui.Column{}, ui.Column{Align: ui.Right}, ui.Column{}, ui.Column{Shrink: 1, Min: 14, Wrap: true})
	shown, rest := r.in.subtasks(len(k.Subtasks))
	lo, hi := int32(math.MaxInt32), int32(0)
	for i, sub := range k.Subtasks {
		lo, hi = min(lo, sub.Count), max(hi, sub.Count)
		if i >= shown {
			continue
		}
		var from []string
		for _, s := range sub.Sources {
			part := fmt.Sprintf("old %d [%d..%d]", s.Old, s.First, s.First+s.Count-1)
			if s.Whole {
				part += " whole"
			}
			from = append(from, part)
		}
		t.Child(1, fmt.Sprintf("subtask %d", i), ui.Count(int64(sub.Count)), fmt.Sprintf("[%d..%d]", sub.First, sub.First+sub.Count-1), strings.Join(from, ", "))
	}
	d.Add(t)
	if rest > 0 {
		d.Line("  … %d more subtasks (--wide shows them)", rest)
	}
	if hi > lo {
		d.Line("  %d to %d key groups each: the busiest subtask has %.2f times the average", lo, hi, float64(hi)*float64(len(k.Subtasks))/float64(op.MaxParallelism))
	}
}

// subtasksShown is how many subtasks a document lists.
const subtasksShown = 16

func (in *RescaleInput) subtasks(n int) (shown, rest int) {
	if in.Wide || n <= subtasksShown {
		return n, 0
	}
	return subtasksShown - 4, n - subtasksShown + 4
}

// sourcesText says where elements come from: "old 0 [5..9], old 1 [0..4]".
func sourcesText(all []RescaleSource) string {
	const most = 6
	var parts []string
	for i, s := range all {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %s more", ui.Plural(int64(len(all)-most), "block")))
			break
		}
		if s.Count == 1 {
			parts = append(parts, fmt.Sprintf("old %d [%d]", s.Old, s.First))
		} else {
			parts = append(parts, fmt.Sprintf("old %d [%d..%d]", s.Old, s.First, s.First+s.Count-1))
		}
	}
	return strings.Join(parts, ", ")
}

// appendSummary says which operators are rescaled, and which are left alone.
func (r *Rescale) appendSummary(d *ui.Document) {
	highest := r.highest()
	rescaled := 0
	var left []string
	for _, op := range r.Operators {
		if op.Left == "" {
			rescaled++
		} else {
			left = append(left, fmt.Sprintf("%s (%s)", ui.Quote(op.label), op.Left))
		}
	}
	text := fmt.Sprintf("%d of %s rescaled to %d.", rescaled, ui.Plural(int64(len(r.Operators)), "operator"), r.To)
	for _, limit := range slices.Sorted(maps.Keys(highest)) {
		text += fmt.Sprintf(" Highest legal parallelism: %d (%s).", limit, Shorten(highest[limit]))
	}
	d.Line("%s", text)
	if len(left) > 0 {
		d.Line("Left alone: %s.", Shorten(left))
	}
	for _, text := range r.Remarks {
		d.Remark("%s.", text)
	}
}

// highest returns the labels of operators that are rescaled by their max parallelism.
func (r *Rescale) highest() map[int32][]string {
	all := map[int32][]string{}
	for _, op := range r.Operators {
		if op.Left == "" {
			all[op.MaxParallelism] = append(all[op.MaxParallelism], ui.Quote(op.label))
		}
	}
	return all
}

// addRemarks adds what is to be known before the result is restored.
func (r *Rescale) addRemarks(run *Run) {
	var whole []string
	for _, op := range r.Operators {
		if op.Left == "" && slices.ContainsFunc(op.Keyed, RescaleKeyed.sharedWhole) {
			whole = append(whole, ui.Quote(op.label))
		}
	}
	if len(whole) > 0 {
		r.Remarks = append(r.Remarks, "several subtasks of "+Shorten(whole)+" get one incremental handle as a whole, and clip it: with state.backend.rocksdb.use-ingest-db-restore-mode, Flink 2 refuses to restore what is written at yet another parallelism")
	}
	for _, m := range r.in.Multiplied {
		r.Remarks = append(r.Remarks, fmt.Sprintf("%s/%s may be multiplied by restores: prune it before (spt prune-union), because nothing proves it after a rescale", ui.Quote(run.Label(m.Operator)), ui.Quote(run.Text(m.State))))
	}
}

// sharedWhole reports whether several new subtasks are assigned one incremental handle:
// each holds all of it, and Flink clips it when it restores.
func (k RescaleKeyed) sharedWhole() bool {
	assigned := map[int32]int{}
	for _, sub := range k.Subtasks {
		for _, s := range sub.Sources {
			if s.Whole {
				if assigned[s.Old]++; assigned[s.Old] > 1 {
					return true
				}
			}
		}
	}
	return false
}

// UndefinedOrders says of which operators OUT has one of several orders that Flink
// could assign.
func (r *Rescale) UndefinedOrders() []string {
	var all []string
	for _, op := range r.Operators {
		if op.Left == "" && op.Order != "" {
			all = append(all, fmt.Sprintf("%s: Flink's order of blocks within a subtask is not defined, and OUT has one of those that are possible: %s", ui.Quote(op.label), op.Order))
		}
	}
	return all
}

// appendEnd says what the plan depends on, and how it is written, if it can be.
func (r *Rescale) appendEnd(d *ui.Document) {
	if slices.ContainsFunc(r.Operators, func(op RescaleOperator) bool { return op.Left == "" && op.PlaceOrder }) {
		d.Line("The order of blocks holds for a restore from %s; --at sets another location.", ui.Quote(r.At))
	}
	if r.in.Suggest {
		for _, limit := range slices.Sorted(maps.Keys(r.highest())) {
			d.Line("With %d key groups, these parallelisms near %d give every subtask as many: %s.", limit, r.To, evenParallelisms(limit, r.To))
		}
	}
	if r.Refused == "" {
		d.Line("%s To write it:  spt rescale %s %s --to %d%s", ui.Dim("Nothing written."), shell.Quote(r.Input), OutLike(r.Input), r.To, r.in.Flags)
		return
	}
	d.Remark("Flink can do this, spt cannot write it: %s", ui.PrintableLines(r.Refused))
	if r.hint != "" {
		d.Line("  %s", ui.PrintableLines(r.hint))
	}
}

// evenParallelisms lists the divisors of the number of key groups around p.
func evenParallelisms(groups, p int32) string {
	var below, above []string
	for d := p; d >= 1 && len(below) < 3; d-- {
		if groups%d == 0 {
			below = append([]string{fmt.Sprint(d)}, below...)
		}
	}
	for d := p + 1; d <= groups && len(above) < 3; d++ {
		if groups%d == 0 {
			above = append(above, fmt.Sprint(d))
		}
	}
	return strings.Join(append(below, above...), ", ")
}
