package report

import (
	"cmp"
	"iter"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// InspectRows is the answer of inspect --by: rows of one kind, of each snapshot the
// largest first.
type InspectRows struct {
	by     string
	all    Inspects
	tables [][]InspectRow // of each snapshot
	left   []int          // rows of each that are not shown
}

// InspectRow is one row of inspect --by; which fields it has depends on what
// the rows are.
type InspectRow struct {
	Path           string          `json:"path,omitempty" jsonschema:"description=the snapshot, where several are shown"`
	Operator       string          `json:"operator,omitempty"`
	ID             string          `json:"id,omitempty"`
	State          string          `json:"state,omitempty"`
	Kind           string          `json:"kind,omitempty"`
	Type           string          `json:"type,omitempty"`
	Compression    string          `json:"compression,omitempty"`
	Subtask        *int32          `json:"subtask,omitempty"`
	Subtasks       int             `json:"subtasks,omitempty"`
	Place          string          `json:"place,omitempty" jsonschema:"description=of a handle: inline, relative, absolute, segment, chunks"`
	File           string          `json:"file,omitempty"`
	Reference      string          `json:"reference,omitempty" jsonschema:"description=name or path that the handle carries; that of inline state names no file"`
	Handles        int             `json:"handles,omitempty"`
	Parallelism    int32           `json:"parallelism,omitempty"`
	MaxParallelism int32           `json:"max_parallelism,omitempty"`
	Elements       *int64          `json:"elements,omitempty"`
	KeyGroups      int64           `json:"key_groups,omitempty"`
	Bytes          int64           `json:"bytes"`
	InlineBytes    int64           `json:"inline_bytes"`
	OffsetBytes    int64           `json:"offset_bytes"`
	KeyGroup       *int            `json:"key_group,omitempty"`
	Count          *InspectEntries `json:"counted,omitempty" jsonschema:"description=with --count"`
	Missing        bool            `json:"missing,omitempty"`
	Status         string          `json:"status,omitempty" jsonschema:"enum=found,enum=missing,enum=outside,enum=not checked,description=of a file: what is known about it"`
	Wrong          string          `json:"wrong,omitempty" jsonschema:"description=of a file: how it is not what the snapshot promises"`
}

// The kinds of rows.
const (
	ByOperator = "operator"
	ByState    = "state"
	BySubtask  = "subtask"
	ByHandle   = "handle"
	ByFile     = "file"
	ByKeyGroup = "key-group" // of snapshots that were counted
)

// NewInspectRows returns rows of one kind, of each snapshot the top largest; 0: all.
func NewInspectRows(by string, top int, all Inspects) *InspectRows {
	r := &InspectRows{by: by, all: all, tables: make([][]InspectRow, len(all)), left: make([]int, len(all))}
	for i, x := range all {
		rows := x.Rows(by)
		if top > 0 && len(rows) > top {
			r.left[i] = len(rows) - top
			rows = rows[:top]
		}
		if len(all) > 1 {
			for k := range rows {
				rows[k].Path = x.Path
			}
		}
		r.tables[i] = rows
	}
	return r
}

// JSON implements [JSON].
func (r *InspectRows) JSON() any { return append([]InspectRow{}, r.rows()...) }

// Lines implements [Lines].
func (r *InspectRows) Lines() iter.Seq[any] { return each(r.rows()) }

// Empty says of each snapshot without a row why it has none.
func (r *InspectRows) Empty() (all []string) {
	for i, x := range r.all {
		if len(r.tables[i]) > 0 || x.Problem != "" {
			continue
		}
		text := "no " + r.by + ": nothing to show"
		if r.by == ByFile && x.Bytes.Total > 0 {
			in := "_metadata"
			if x.Family == string(reader.SPT) {
				in = "the .spt file"
			}
			text += " (all state is inside " + in + "; --by handle shows it)"
		}
		if len(r.all) > 1 {
			text = ui.Quote(x.Path) + ": " + text
		}
		all = append(all, text)
	}
	return all
}

// Rows returns the rows of one kind, largest first.
func (x *Inspect) Rows(by string) (rows []InspectRow) {
	switch by {
	case ByOperator:
		rows = x.operatorRows()
	case ByState:
		rows = x.stateRows()
	case BySubtask:
		rows = x.run.subtaskRows(x.savepoint)
	case ByHandle:
		rows = x.run.handleRows(x.savepoint)
	case ByFile:
		rows = x.fileRows()
	case ByKeyGroup:
		rows = x.keyGroupRows()
	default:
		panic("internal error: rows by " + by)
	}
	slices.SortStableFunc(rows, func(a, b InspectRow) int { return cmp.Compare(b.size(), a.size()) })
	return rows
}

func (x *Inspect) operatorRows() []InspectRow {
	var rows []InspectRow
	for _, op := range x.Operators {
		rows = append(rows, InspectRow{Operator: op.label, ID: op.ID, Parallelism: op.Parallelism, MaxParallelism: op.MaxParallelism,
			Bytes: op.Bytes.Total, InlineBytes: op.Bytes.Inline, OffsetBytes: op.Bytes.Offsets})
	}
	return rows
}

func (x *Inspect) stateRows() []InspectRow {
	var rows []InspectRow
	for _, op := range x.Operators {
		for _, st := range op.States {
			rows = append(rows, InspectRow{Operator: op.label, ID: op.ID, State: st.Name, Kind: st.Kind, Type: st.Type, Compression: st.Compression, Subtasks: st.Subtasks,
				Elements: st.Elements, KeyGroups: st.KeyGroups, Bytes: st.Bytes, InlineBytes: st.InlineBytes, OffsetBytes: st.OffsetBytes})
			for _, k := range st.States {
				if k.Count != nil {
					rows = append(rows, InspectRow{Operator: op.label, ID: op.ID, State: k.Name, Kind: k.Kind, Type: k.Type, Subtasks: st.Subtasks, Count: k.Count})
				}
			}
		}
	}
	return rows
}

// keyGroupRows returns a row for each key group that was counted.
func (x *Inspect) keyGroupRows() []InspectRow {
	var rows []InspectRow
	for _, op := range x.Operators {
		if op.Skew == nil {
			continue
		}
		for i, g := range op.Skew.groups {
			rows = append(rows, InspectRow{Operator: op.label, ID: op.ID, KeyGroup: new(i), Count: &InspectEntries{Entries: g.Entries, Bytes: g.Bytes}})
		}
	}
	return rows
}

// size is by what rows are sorted.
func (r *InspectRow) size() int64 {
	n := r.Bytes + r.OffsetBytes
	if r.Count != nil {
		n += r.Count.Bytes
	}
	return n
}

func (r *Run) subtaskRows(sp *format.Savepoint) []InspectRow {
	index := map[*format.Subtask]int{}
	var rows []InspectRow
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			i := sub.Index
			index[sub] = len(rows)
			rows = append(rows, InspectRow{Operator: r.Label(op), ID: op.ID.String(), Subtask: &i, OffsetBytes: offsetBytes(sub)})
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

func (r *Run) handleRows(sp *format.Savepoint) []InspectRow {
	var rows []InspectRow
	_ = sp.EachStream(func(p format.Place, st format.Stream) error {
		row := InspectRow{Operator: r.Label(p.Operator), ID: p.Operator.ID.String(), Kind: p.Slot.String(), State: r.Text(p.Name),
			Place: format.Kind(st).String(), Bytes: format.SizeOf(st), OffsetBytes: handleOffsets(p, st)}
		if p.Subtask != nil {
			i := p.Subtask.Index
			row.Subtask = &i
		}
		if in, ok := st.(*format.Inline); ok {
			row.InlineBytes = row.Bytes
			row.Reference = r.Text(in.Name.String())
		}
		if path, _, ok := format.Reference(st); ok {
			row.Reference = r.Text(path.String())
		}
		rows = append(rows, row)
		return nil
	})
	return rows
}

func (x *Inspect) fileRows() []InspectRow {
	var rows []InspectRow
	for _, f := range x.files {
		row := InspectRow{File: x.run.Text(f.Path), Handles: f.Handles, Bytes: f.Bytes, Missing: f.Missing(), Status: string(f.Status()), Wrong: f.Wrong, Place: "own"}
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

// offsetBytes returns what _metadata spends on the offsets of a subtask.
func offsetBytes(sub *format.Subtask) int64 {
	n := operatorOffsets(sub.Managed) + operatorOffsets(sub.Raw) + keyedOffsets(sub.ManagedKeyed, nil) + keyedOffsets(sub.RawKeyed, nil)
	for _, h := range slices.Concat(sub.Input, sub.Output) {
		n += channelOffsets(h)
	}
	return n
}

// handleOffsets returns what _metadata spends on the offsets of the handle that a
// stream is in.
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

func operatorOffsets(h *format.OperatorHandle) (n int64) {
	if h != nil {
		for _, st := range h.States {
			n += 8 * st.Offsets.Len()
		}
	}
	return n
}

// keyedOffsets is for the key groups in a stream, or for all of them.
func keyedOffsets(h format.KeyedHandle, in format.Stream) (n int64) {
	format.EachKeyed(h, func(h format.KeyedHandle) {
		if g, ok := h.(*format.KeyGroups); ok && g.Offsets != nil && (in == nil || g.Data == in) {
			n += 8 * g.Offsets.Len()
		}
	})
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
