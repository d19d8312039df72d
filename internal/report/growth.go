package report

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Growth is the answer of prune-union without IN: union state after 0, 1, … restores.
type Growth []GrowthRow

// GrowthRow is union state after some restores.
type GrowthRow struct {
	Restores   int   `json:"restores"`
	PerSubtask int64 `json:"elements_per_subtask"`
	Kept       int64 `json:"elements_kept_once" jsonschema:"description=in the snapshot, if subtasks together keep each element once"`
	Readded    int64 `json:"elements_readded" jsonschema:"description=in the snapshot, if every subtask adds again what it gets"`
	Assigned   int64 `json:"elements_assigned" jsonschema:"description=to all subtasks by the next restore, of what was added again"`

	parallelism int32
}

// NewGrowth reports how union state of some elements grows if a job at a parallelism adds
// again what it gets.
func NewGrowth(elements int64, parallelism int32, restores int) Growth {
	var all Growth
	n := elements
	for i := 0; i <= restores; i++ {
		next := number.Times(n, int64(parallelism))
		all = append(all, GrowthRow{i, n / int64(parallelism), elements, n, next, parallelism})
		n = next
	}
	return all
}

// Document implements [Report].
func (all Growth) Document() *ui.Document {
	var d ui.Document
	d.Line("union state of %s, restored at parallelism %d", ui.Plural(all[0].Kept, "element"), all[0].parallelism)
	d.Blank()
	t := ui.NewTable(ui.Column{Header: "RESTORES", Align: ui.Right}, ui.Column{Header: "KEPT ONCE", Align: ui.Right}, ui.Column{Header: "ADDED AGAIN", Align: ui.Right}, ui.Column{Header: "THEN ASSIGNED", Align: ui.Right})
	for _, r := range all {
		t.Row(strconv.Itoa(r.Restores), ui.Count(r.Kept), ui.Count(r.Readded), ui.Count(r.Assigned))
	}
	d.Add(t)
	d.Blank()
	d.Line("KEPT ONCE: each subtask keeps a share of what it gets, as by index %% parallelism.")
	d.Line("ADDED AGAIN: every subtask adds all that it gets; the snapshot holds that much.")
	return &d
}

// Lines implements [Lines].
func (all Growth) Lines() iter.Seq[any] { return each(all) }

// Header implements [Rows].
func (all Growth) Header() []string {
	return []string{"restores", "elements_kept_once", "elements_readded", "elements_assigned"}
}

// Rows implements [Rows].
func (all Growth) Rows() iter.Seq[[]string] {
	return rows(all, func(r *GrowthRow) []string {
		return []string{strconv.Itoa(r.Restores), fmt.Sprint(r.Kept), fmt.Sprint(r.Readded), fmt.Sprint(r.Assigned)}
	})
}
