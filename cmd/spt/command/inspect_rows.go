package command

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// InspectRow is one row of inspect --by; which fields it has depends on what
// the rows are.
type InspectRow struct {
	Path           string `json:"path,omitempty" jsonschema:"description=the snapshot, where several are shown"`
	Operator       string `json:"operator,omitempty"`
	ID             string `json:"id,omitempty"`
	State          string `json:"state,omitempty"`
	Kind           string `json:"kind,omitempty"`
	Type           string `json:"type,omitempty"`
	Compression    string `json:"compression,omitempty"`
	Subtask        *int32 `json:"subtask,omitempty"`
	Subtasks       int    `json:"subtasks,omitempty"`
	Place          string `json:"place,omitempty" jsonschema:"description=of a handle: inline, relative, absolute, segment, chunks"`
	File           string `json:"file,omitempty"`
	Reference      string `json:"reference,omitempty" jsonschema:"description=name or path that the handle carries; that of inline state names no file"`
	Handles        int    `json:"handles,omitempty"`
	Parallelism    int32  `json:"parallelism,omitempty"`
	MaxParallelism int32  `json:"max_parallelism,omitempty"`
	Elements       *int64 `json:"elements,omitempty"`
	KeyGroups      int64  `json:"key_groups,omitempty"`
	Bytes          int64  `json:"bytes"`
	InlineBytes    int64  `json:"inline_bytes"`
	OffsetBytes    int64  `json:"offset_bytes"`
	Missing        bool   `json:"missing,omitempty"`
	Status         string `json:"status,omitempty" jsonschema:"enum=found,enum=missing,enum=outside,enum=not checked,description=of a file: what is known about it"`
	Wrong          string `json:"wrong,omitempty" jsonschema:"description=of a file: how it is not what the snapshot promises"`
}

// renderBy prints inspect --by: one kind of row, largest first.
func (o *inspectOptions) renderBy(env *Env, all []inspected) error {
	several := len(all) > 1
	header, cells := rowHeader(), rowCells
	if several {
		header = append([]string{"path"}, header...)
		cells = func(r *InspectRow) []string { return append([]string{r.Path}, rowCells(r)...) }
	}
	var shown []InspectRow // of all snapshots
	tables := make([][]InspectRow, len(all))
	left := make([]int, len(all))
	for i, one := range all {
		rows := o.rows(env, one)
		if o.top > 0 && len(rows) > o.top {
			left[i] = len(rows) - o.top
			rows = rows[:o.top]
		}
		if several {
			for k := range rows {
				rows[k].Path = one.Path
			}
		}
		tables[i] = rows
		shown = append(shown, rows...)
	}
	done, err := renderRows(env, env.common.output, shown, header, cells)
	if err != nil {
		return err
	}
	for i, one := range all {
		if !done {
			if err := heading(env, all, i); err != nil {
				return err
			}
		}
		switch {
		case one.Problem != "":
			continue
		case len(tables[i]) == 0:
			if err := env.remark("%s", o.noRow(one.InspectResult)); err != nil {
				return err
			}
			continue
		case done:
			continue
		}
		if err := o.rowsTable(env, tables[i]); err != nil {
			return err
		}
		if left[i] > 0 {
			if _, err := fmt.Fprintf(env.Stdout, "… and %s more\n", ui.Plural(int64(left[i]), "row")); err != nil {
				return err
			}
		}
	}
	return nil
}

// rows are those of one snapshot.
func (o *inspectOptions) rows(env *Env, one inspected) (rows []InspectRow) {
	switch o.by {
	case "operator":
		rows = operatorRows(one.InspectResult)
	case "state":
		rows = stateRows(one.InspectResult)
	case "subtask":
		rows = subtaskRows(env, one.sp)
	case "handle":
		rows = handleRows(env, one.sp)
	case "file":
		rows = fileRows(env, one.InspectResult)
	}
	slices.SortStableFunc(rows, func(a, b InspectRow) int { return cmp.Compare(b.Bytes+b.OffsetBytes, a.Bytes+a.OffsetBytes) })
	return rows
}

// noRow says why there is no row.
func (o *inspectOptions) noRow(r *InspectResult) string {
	text := "no " + o.by + ": nothing to show"
	switch {
	case o.by != "file" || r.Bytes.Total == 0:
	case r.Family == string(reader.SPT):
		text += " (all state is inside the .spt file; --by handle shows it)"
	default:
		text += " (all state is inside _metadata; --by handle shows it)"
	}
	return text
}

func operatorRows(r *InspectResult) []InspectRow {
	var rows []InspectRow
	for _, op := range r.Operators {
		rows = append(rows, InspectRow{Operator: op.label, ID: op.ID, Parallelism: op.Parallelism, MaxParallelism: op.MaxParallelism,
			Bytes: op.Bytes.Total, InlineBytes: op.Bytes.Inline, OffsetBytes: op.Bytes.Offsets})
	}
	return rows
}

func stateRows(r *InspectResult) []InspectRow {
	var rows []InspectRow
	for _, op := range r.Operators {
		for _, st := range op.States {
			rows = append(rows, InspectRow{Operator: op.label, ID: op.ID, State: st.Name, Kind: st.Kind, Type: st.Type, Compression: st.Compression, Subtasks: st.Subtasks,
				Elements: st.Elements, KeyGroups: st.KeyGroups, Bytes: st.Bytes, InlineBytes: st.InlineBytes, OffsetBytes: st.OffsetBytes})
		}
	}
	return rows
}

func subtaskRows(env *Env, sp *format.Savepoint) []InspectRow {
	index := map[*format.Subtask]int{}
	var rows []InspectRow
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			i := sub.Index
			index[sub] = len(rows)
			rows = append(rows, InspectRow{Operator: env.run.Label(op), ID: op.ID.String(), Subtask: &i, OffsetBytes: offsetBytes(sub)})
		}
	}
	_ = sp.EachStream(func(p format.Place, st format.Stream) error {
		if p.Subtask != nil {
			row := &rows[index[p.Subtask]]
			n := format.SizeOf(st)
			row.Bytes += n
			row.Handles++
			if format.Kind(st) == format.KindInline {
				row.InlineBytes += n
			}
		}
		return nil
	})
	return rows
}

// offsetBytes is what _metadata spends on the offsets of a subtask.
func offsetBytes(sub *format.Subtask) int64 {
	n := operatorOffsets(sub.Managed) + operatorOffsets(sub.Raw) + keyedOffsets(sub.ManagedKeyed, nil) + keyedOffsets(sub.RawKeyed, nil)
	for _, h := range slices.Concat(sub.Input, sub.Output) {
		n += channelOffsets(h)
	}
	return n
}

func operatorOffsets(h *format.OperatorHandle) (n int64) {
	if h != nil {
		for _, st := range h.States {
			n += 8 * st.Offsets.Len()
		}
	}
	return n
}

// keyedOffsets is for the key groups whose data a stream is, or all of them.
func keyedOffsets(h format.KeyedHandle, of format.Stream) (n int64) {
	switch h := h.(type) {
	case *format.KeyGroups:
		if h.Offsets != nil && (of == nil || h.Data == of) {
			n = 8 * h.Offsets.Len()
		}
	case *format.Changelog:
		for _, inner := range h.Materialized {
			n += keyedOffsets(inner, of)
		}
	}
	return n
}

func channelOffsets(h *format.ChannelHandle) (n int64) {
	for _, c := range h.Channels {
		if c.Offsets != nil {
			n += 8 * c.Offsets.Len()
		}
	}
	return n
}

// handleOffsets is what _metadata spends on the offsets of the handle that a
// stream is of.
func handleOffsets(p format.Place, st format.Stream) int64 {
	sub := p.Subtask
	if sub == nil {
		return 0
	}
	switch p.Slot {
	case format.SlotManaged:
		return operatorOffsets(sub.Managed)
	case format.SlotRaw:
		return operatorOffsets(sub.Raw)
	case format.SlotManagedKeyed:
		return keyedOffsets(sub.ManagedKeyed, st)
	case format.SlotRawKeyed:
		return keyedOffsets(sub.RawKeyed, st)
	}
	for _, h := range slices.Concat(sub.Input, sub.Output) {
		if h.Data == st {
			return channelOffsets(h)
		}
	}
	return 0
}

func handleRows(env *Env, sp *format.Savepoint) []InspectRow {
	var rows []InspectRow
	_ = sp.EachStream(func(p format.Place, st format.Stream) error {
		row := InspectRow{Operator: env.run.Label(p.Operator), ID: p.Operator.ID.String(), Kind: p.Slot.String(), State: env.run.Text(p.Name),
			Place: format.Kind(st).String(), Bytes: format.SizeOf(st), OffsetBytes: handleOffsets(p, st)}
		if p.Subtask != nil {
			i := p.Subtask.Index
			row.Subtask = &i
		}
		if in, ok := st.(*format.Inline); ok {
			row.InlineBytes = row.Bytes
			row.Reference = env.run.Text(in.Name.String())
		}
		if path, _, ok := format.Reference(st); ok {
			row.Reference = env.run.Text(path.String())
		}
		rows = append(rows, row)
		return nil
	})
	return rows
}

func fileRows(env *Env, r *InspectResult) []InspectRow {
	var rows []InspectRow
	for _, f := range r.files {
		row := InspectRow{File: env.run.Text(f.Path), Handles: f.Handles, Bytes: f.Bytes, Missing: f.Missing(), Status: string(f.Status()), Wrong: f.Wrong, Place: "own"}
		switch {
		case f.Merged:
			row.Place = "merged"
		case f.Shared:
			row.Place = "shared"
		}
		rows = append(rows, row)
	}
	return rows
}

func rowHeader() []string {
	return []string{"operator", "id", "state", "kind", "subtask", "subtasks", "place", "file", "reference", "handles", "parallelism", "max_parallelism", "elements", "key_groups", "bytes", "inline_bytes", "offset_bytes", "missing", "wrong", "status", "type", "compression"}
}

func rowCells(r *InspectRow) []string {
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

func (o *inspectOptions) rowsTable(env *Env, rows []InspectRow) error {
	term := env.term()
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR", Shrink: 2, Cut: ui.CutMiddle},
		ui.Column{Header: "ID"},
		ui.Column{Header: "SUBTASK", Align: ui.Right},
		ui.Column{Header: "STATE", Shrink: 2, Cut: ui.CutMiddle},
		ui.Column{Header: "KIND"},
		ui.Column{Header: "TYPE", Shrink: 2, Min: 10, Drop: 2},
		ui.Column{Header: "PAR/MAX", Align: ui.Right},
		ui.Column{Header: "ELEMENTS", Align: ui.Right},
		ui.Column{Header: "PLACE"},
		ui.Column{Header: "HANDLES", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "OFFSETS", Align: ui.Right, Drop: 1},
		ui.Column{Header: "FILE", Shrink: 1, Cut: ui.CutMiddle, Min: 24},
		ui.Column{Header: "REFERENCE", Shrink: 3, Cut: ui.CutMiddle, Min: 16},
		ui.Column{Header: ""},
	)
	for _, r := range rows {
		id, subtask, par, elements, handles, offsets, note := "", "", "", "", "", "", ""
		if o.wide {
			id = r.ID
		}
		if r.Subtask != nil {
			subtask = strconv.Itoa(int(*r.Subtask))
		}
		if r.Parallelism > 0 {
			par = fmt.Sprintf("%d/%d", r.Parallelism, r.MaxParallelism)
		}
		switch {
		case r.KeyGroups > 0:
			elements = ui.Plural(r.KeyGroups, "key group")
		case r.Elements != nil:
			elements = ui.Count(*r.Elements)
		}
		if r.Handles > 0 {
			handles = ui.Count(int64(r.Handles))
		}
		if r.OffsetBytes > 0 {
			offsets = ui.Bytes(r.OffsetBytes)
		}
		switch {
		case r.Missing:
			note = ui.Bad("missing")
		case r.Status == string(reader.FileRefused), r.Status == string(reader.FileNotChecked):
			note = ui.Look(r.Status)
		case r.Wrong != "":
			note = ui.Bad(r.Wrong)
		}
		state := quoteNonEmpty(r.State)
		if o.by == "state" && r.State == "" {
			state = "(" + r.Kind + ")"
		}
		t.Row(quoteNonEmpty(r.Operator), id, subtask, state, r.Kind, ui.Printable(r.Type), par, elements, r.Place, handles, ui.Bytes(r.Bytes), offsets,
			quoteNonEmpty(r.File), quoteNonEmpty(r.Reference), note)
	}
	return t.Write(env.Stdout, term)
}

// quoteNonEmpty is ui.Quote for cells: an empty one stays empty.
func quoteNonEmpty(s string) string {
	if s == "" {
		return ""
	}
	return ui.Quote(s)
}
