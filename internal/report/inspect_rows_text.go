package report

import (
	"fmt"
	"iter"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/columns"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// fields are the columns of the rows.
func (r *InspectRows) fields() fields[InspectRow] {
	type row = InspectRow
	var all fields[row]
	if len(r.all) > 1 {
		all = fields[row]{textField("path", func(r *row) string { return r.Path })}
	}
	all = append(all,
		textField("operator", func(r *row) string { return r.Operator }),
		textField("id", func(r *row) string { return r.ID }),
		textField("state", func(r *row) string { return r.State }),
		textField("kind", func(r *row) string { return r.Kind }),
		maybeField("subtask", func(r *row) *int32 { return r.Subtask }),
		numberField("subtasks", func(r *row) int { return r.Subtasks }),
		textField("place", func(r *row) string { return r.Place }),
		textField("file", func(r *row) string { return r.File }),
		textField("reference", func(r *row) string { return r.Reference }),
		numberField("handles", func(r *row) int { return r.Handles }),
		numberField("parallelism", func(r *row) int32 { return r.Parallelism }),
		numberField("max_parallelism", func(r *row) int32 { return r.MaxParallelism }),
		maybeField("elements", func(r *row) *int64 { return r.Elements }),
		numberField("key_groups", func(r *row) int64 { return r.KeyGroups }),
		numberField("bytes", func(r *row) int64 { return r.Bytes }),
		numberField("inline_bytes", func(r *row) int64 { return r.InlineBytes }),
		numberField("offset_bytes", func(r *row) int64 { return r.OffsetBytes }),
		boolField("missing", func(r *row) bool { return r.Missing }),
		textField("wrong", func(r *row) string { return r.Wrong }),
		textField("status", func(r *row) string { return r.Status }),
		textField("type", func(r *row) string { return r.Type }),
		textField("compression", func(r *row) string { return r.Compression }),
	)
	if !r.all.counted() {
		return all
	}
	all = append(all, maybeField("key_group", func(r *row) *int { return r.KeyGroup }))
	for _, f := range countFields {
		all = append(all, field[row]{f.name, f.typ, func(r *row) value.Value {
			if r.Count == nil {
				return value.Null()
			}
			return f.cell(r.Count)
		}})
	}
	return all
}

func (r *InspectRows) rows() []InspectRow { return slices.Concat(r.tables...) }

// Header implements [Rows].
func (r *InspectRows) Header() []string { return r.fields().header() }

// Rows implements [Rows].
func (r *InspectRows) Rows() iter.Seq[[]string] { return r.fields().texts(r.rows()) }

// Columns implements [Table].
func (r *InspectRows) Columns() []columns.Column { return r.fields().columns() }

// Cells implements [Table].
func (r *InspectRows) Cells() iter.Seq[[]value.Value] { return r.fields().cells(r.rows()) }

// group returns the key group of a row, or "".
func (r *InspectRow) group() string {
	if r.KeyGroup == nil {
		return ""
	}
	return strconv.Itoa(*r.KeyGroup)
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
