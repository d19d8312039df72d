package report

import (
	"fmt"

	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
)

// Prune is the answer of prune-union with OUT.
type Prune struct {
	States         []Union `json:"states"`
	MetadataBefore int64   `json:"metadata_bytes_before,omitempty"`
	MetadataAfter  int64   `json:"metadata_bytes_after,omitempty"`
	Write          *Write  `json:"write"`
}

// NewPrune reports what became of union states by a policy. The cost of a restore is
// that at a parallelism, or if it is 0 at the operator's.
func (r *Run) NewPrune(pruned []*transform.PrunedState, keep transform.Keep, parallelism int32) *Prune {
	res := &Prune{States: []Union{}}
	for _, p := range pruned {
		row := r.newUnion(&p.UnionReport, parallelism)
		after := number.Times(p.Kept, row.restoredAt)
		row.Skipped, row.Kept, row.KeptBytes, row.AssignedAfter = p.Skipped, &p.Kept, &p.BytesAfter, &after
		row.MinKept, row.MaxKept, row.Remaining = p.MinKept, p.MaxKept, p.Remaining()
		row.RemainingWhy = remaining(p, keep)
		res.States = append(res.States, row)
	}
	return res
}

// Skipped names the states that were left as they are though elements repeat.
func (p *Prune) Skipped() []string {
	var all []string
	for i := range p.States {
		s := &p.States[i]
		if s.Skipped != "" && s.of.Verdict != transform.VerdictSound {
			all = append(all, fmt.Sprintf("%s (%s)", s.name(), s.Skipped))
		}
	}
	return all
}

// Document implements [Report].
func (p *Prune) Document() *ui.Document {
	var d ui.Document
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16},
		ui.Column{Header: "ELEMENTS", Align: ui.Right}, ui.Column{Header: "KEPT", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right}, ui.Column{Header: "AFTER", Align: ui.Right}, ui.Column{Header: "", Shrink: 2, Min: 20, Wrap: true},
	)
	for i := range p.States {
		s := &p.States[i]
		note := ""
		if s.Skipped != "" {
			note = ui.Look("left as it is: ") + s.Skipped
		}
		t.Row(s.name(), ui.Count(s.Elements), ui.Count(*s.Kept), ui.Bytes(s.Bytes), ui.Bytes(*s.KeptBytes), note)
	}
	d.Add(t)
	p.appendRemaining(&d)
	if p.MetadataBefore > 0 {
		d.Line("_metadata %s → %s", ui.Bytes(p.MetadataBefore), ui.Bytes(p.MetadataAfter))
	}
	p.Write.appendTo(&d)
	return &d
}

// appendRemaining appends which duplicates remain, and what a restore loads.
func (p *Prune) appendRemaining(d *ui.Document) {
	var before, after, bytesBefore, bytesAfter int64
	for i := range p.States {
		s := &p.States[i]
		before, after = before+s.Assigned, after+*s.AssignedAfter
		bytesBefore += s.AssignedBytes
		bytesAfter += number.Times(*s.KeptBytes, s.restoredAt)
		if s.Skipped == "" && s.of.OneEach() {
			d.Blank()
			d.Remark("%s: %s.", s.name(), s.Why)
		}
		if s.RemainingWhy != "" {
			d.Blank()
			d.Remark("%s: %s.", s.name(), s.RemainingWhy)
		}
	}
	if before != after {
		d.Blank()
		d.Line("a restore loads %s → %s elements, %s → %s, in all subtasks together", ui.Count(before), ui.Count(after), ui.Bytes(bytesBefore), ui.Bytes(bytesAfter))
	}
	for i := range p.States {
		s := &p.States[i]
		if n := number.Times(*s.KeptBytes, s.restoredAt); n >= check.LargeUnion {
			s.appendLarge(d, *s.Kept, n)
		}
	}
}
