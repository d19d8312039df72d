package report

import (
	"fmt"

	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// Simulation is the answer of rescale without a snapshot.
type Simulation struct {
	*Rescale
	elements int64
	from     int32
}

// NewSimulation reports a plan for numbered elements in from subtasks.
func (r *Run) NewSimulation(p *transform.RescalePlan, elements int64, from int32, wide bool) Simulation {
	res := r.NewRescale(p, RescaleInput{Wide: wide})
	op := &res.Operators[0]
	op.ID, op.MaxParallelism, op.label = "", 0, "simulated"
	return Simulation{res, elements, from}
}

// Document implements [Report]: list and union state side by side.
func (s Simulation) Document() *ui.Document {
	var list, union RescaleState
	for _, st := range s.Operators[0].States {
		if st.Kind == "list" {
			list = st
		} else {
			union = st
		}
	}
	var d ui.Document
	d.Line("%s in %s %s, restored with %d", ui.Plural(s.elements, "element"), ui.Plural(int64(s.from), "subtask"), s.shares(), s.To)
	d.Blank()
	title := "list state (even split)"
	if s.Strategy != string(transform.StrategyFlink) {
		title = "list state (" + s.Strategy + ")"
	}
	t := ui.NewTable(ui.Column{Header: title}, ui.Column{Align: ui.Right}, ui.Column{Shrink: 1, Min: 14, Wrap: true}, ui.Column{Header: "union state", Align: ui.Right}, ui.Column{Drop: 1})
	shown, rest := s.in.subtasks(len(list.Subtasks))
	var sum int64
	for i, sub := range list.Subtasks {
		sum += sub.Elements
		if i < shown {
			t.Row(fmt.Sprintf("subtask %d", i), ui.Count(sub.Elements), sourcesText(sub.Sources), ui.Count(union.Subtasks[i].Elements), "everything")
		}
	}
	if rest > 0 {
		t.Row(fmt.Sprintf("… %d more", rest))
	}
	t.Row("", ui.Count(sum), "", ui.Count(union.Growth[0]))
	d.Add(t)
	d.Blank()
	d.Line("Union state is assigned ×%d; ×%s after the next restore if every subtask adds again what it gets.", s.To, ui.Count(number.Times(int64(s.To), int64(s.To))))
	if list.Empty > 0 {
		d.Line("%s get nothing of the list.", ui.Plural(int64(list.Empty), "subtask"))
	}
	return &d
}

// shares says how many elements are in an old subtask.
func (s Simulation) shares() string {
	each := s.elements / int64(s.from)
	switch {
	case s.from == 1:
		return "with all of them"
	case s.elements%int64(s.from) != 0:
		return fmt.Sprintf("of %s or %s", ui.Count(each), ui.Count(each+1))
	}
	return "of " + ui.Count(each)
}
