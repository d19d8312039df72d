package report

import (
	"fmt"
	"iter"
	"strconv"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// Header implements [Rows].
func (r *InspectRows) Header() []string {
	return r.all.withPath("path", append([]string{"operator", "id", "state", "kind", "subtask", "subtasks", "place", "file", "reference", "handles", "parallelism", "max_parallelism", "elements", "key_groups", "bytes", "inline_bytes", "offset_bytes", "missing", "wrong", "status", "type", "compression"}, r.all.countHeader("key_group")...))
}

// Rows implements [Rows].
func (r *InspectRows) Rows() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for i, x := range r.all {
			for k := range r.tables[i] {
				row := &r.tables[i][k]
				cells := row.cells()
				if r.all.counted() {
					cells = append(append(cells, row.group()), row.Count.csv()...)
				}
				if !yield(r.all.withPath(x.Path, cells)) {
					return
				}
			}
		}
	}
}

// group returns the key group of a row, or "".
func (r *InspectRow) group() string {
	if r.KeyGroup == nil {
		return ""
	}
	return strconv.Itoa(*r.KeyGroup)
}

func (r *InspectRow) cells() []string {
	subtask, elements := "", ""
	if r.Subtask != nil {
		subtask = strconv.Itoa(int(*r.Subtask))
	}
	if r.Elements != nil {
		elements = strconv.FormatInt(*r.Elements, 10)
	}
	return []string{r.Operator, r.ID, r.State, r.Kind, subtask, strconv.Itoa(r.Subtasks), r.Place, r.File, r.Reference, strconv.Itoa(r.Handles),
		strconv.Itoa(int(r.Parallelism)), strconv.Itoa(int(r.MaxParallelism)), elements, strconv.FormatInt(r.KeyGroups, 10),
		strconv.FormatInt(r.Bytes, 10), strconv.FormatInt(r.InlineBytes, 10), strconv.FormatInt(r.OffsetBytes, 10), strconv.FormatBool(r.Missing), r.Wrong, r.Status, r.Type, r.Compression}
}

// Document implements [Report].
func (r *InspectRows) Document() *ui.Document {
	var d ui.Document
	for i, x := range r.all {
		r.all.heading(&d, i)
		if x.Problem != "" || len(r.tables[i]) == 0 {
			continue
		}
		d.Add(r.table(r.tables[i], x.wide))
		if r.left[i] > 0 {
			d.Line("… and %s more", ui.Plural(int64(r.left[i]), "row"))
		}
	}
	return &d
}

func (r *InspectRows) table(rows []InspectRow, wide bool) *ui.Table {
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR", Shrink: 2, Cut: ui.CutMiddle},
		ui.Column{Header: "ID"},
		ui.Column{Header: "SUBTASK", Align: ui.Right},
		ui.Column{Header: "STATE", Shrink: 2, Cut: ui.CutMiddle},
		ui.Column{Header: "KIND"},
		ui.Column{Header: "TYPE", Shrink: 2, Min: 10, Drop: 2},
		ui.Column{Header: "PAR/MAX", Align: ui.Right},
		ui.Column{Header: "KEY GROUP", Align: ui.Right},
		ui.Column{Header: "ELEMENTS", Align: ui.Right},
		ui.Column{Header: "KEYS", Align: ui.Right},
		ui.Column{Header: "ENTRY BYTES", Align: ui.Right},
		ui.Column{Header: "DEAD", Align: ui.Right},
		ui.Column{Header: "EXPIRED", Align: ui.Right},
		ui.Column{Header: "PLACE"},
		ui.Column{Header: "HANDLES", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "OFFSETS", Align: ui.Right, Drop: 1},
		ui.Column{Header: "FILE", Shrink: 1, Cut: ui.CutMiddle, Min: 24},
		ui.Column{Header: "REFERENCE", Shrink: 3, Cut: ui.CutMiddle, Min: 16},
		ui.Column{Header: ""},
	)
	for _, row := range rows {
		id, subtask, par, elements, handles, offsets, note := "", "", "", "", "", "", ""
		if wide {
			id = row.ID
		}
		if row.Subtask != nil {
			subtask = strconv.Itoa(int(*row.Subtask))
		}
		if row.Parallelism > 0 {
			par = fmt.Sprintf("%d/%d", row.Parallelism, row.MaxParallelism)
		}
		switch {
		case row.KeyGroups > 0:
			elements = ui.Plural(row.KeyGroups, "key group")
		case row.Elements != nil:
			elements = ui.Count(*row.Elements)
		}
		if row.Handles > 0 {
			handles = ui.Count(int64(row.Handles))
		}
		if row.OffsetBytes > 0 {
			offsets = ui.Bytes(row.OffsetBytes)
		}
		switch {
		case row.Missing:
			note = ui.Bad("missing")
		case row.Status == string(reader.FileRefused), row.Status == string(reader.FileNotChecked):
			note = ui.Look(row.Status)
		case row.Wrong != "":
			note = ui.Bad(row.Wrong)
		}
		state := quoteNonEmpty(row.State)
		if r.by == ByState && row.State == "" {
			state = "(" + row.Kind + ")"
		}
		entries, keys, counted, dead, expired := row.Count.countCells()
		if elements == "" {
			elements = entries
		}
		bytes := ui.Bytes(row.Bytes)
		if row.Count != nil {
			bytes = "" // the files hold many states
		}
		t.Row(quoteNonEmpty(row.Operator), id, subtask, state, row.Kind, ui.Printable(row.Type), par, row.group(), elements, keys, counted, dead, expired, row.Place, handles, bytes, offsets,
			quoteNonEmpty(row.File), quoteNonEmpty(row.Reference), note)
	}
	return t
}

// quoteNonEmpty is [ui.Quote], but for an empty name, which stays empty.
func quoteNonEmpty(s string) string {
	if s == "" {
		return ""
	}
	return ui.Quote(s)
}
