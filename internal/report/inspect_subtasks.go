package report

import (
	"cmp"
	"slices"

	"github.com/savepoint-tools/spt/internal/ui"
)

// appendSubtasks appends, with --wide, how the bytes of each operator of several subtasks
// are distributed over them: a bar for each, or the largest of neighbours if they are many.
func (x *Inspect) appendSubtasks(d *ui.Document) {
	if !x.wide {
		return
	}
	held := map[string][]int64{}
	rows := x.run.subtaskRows(x.savepoint)
	slices.SortStableFunc(rows, func(a, b InspectRow) int { return cmp.Compare(*a.Subtask, *b.Subtask) })
	for _, row := range rows {
		held[row.ID] = append(held[row.ID], row.Bytes)
	}
	t := ui.NewTable(
		ui.Column{Header: "BYTES BY SUBTASK", Shrink: 1, Cut: ui.CutMiddle, Min: 16}, ui.Column{},
		ui.Column{Header: "LARGEST", Align: ui.Right}, ui.Column{Header: "SMALLEST", Align: ui.Right, Drop: 1},
	)
	shown := x.Operators
	if x.top > 0 {
		shown = shown[:min(x.top, len(shown))]
	}
	some := false
	for i := range shown {
		bytes := held[shown[i].ID]
		if len(bytes) < 2 || shown[i].Bytes.Total == 0 {
			continue
		}
		some = true
		largest, smallest := bytes[0], bytes[0]
		for _, n := range bytes {
			largest, smallest = max(largest, n), min(smallest, n)
		}
		t.Row(ui.Quote(shown[i].label), sparkOf(bytes, sparkGroups), ui.Bytes(largest), ui.Bytes(smallest))
	}
	if some {
		d.Blank()
		d.Add(t)
	}
}
