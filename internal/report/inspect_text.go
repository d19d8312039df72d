package report

import (
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// Inspects is the answer of inspect: of one snapshot its value, of several a list.
type Inspects []*Inspect

// JSON implements [JSON].
func (all Inspects) JSON() any {
	if len(all) == 1 {
		return all[0]
	}
	return []*Inspect(all)
}

// Lines implements [Lines].
func (all Inspects) Lines() iter.Seq[any] { return each(all) }

// Header implements [Rows].
func (all Inspects) Header() []string {
	return all.withPath("path", append([]string{"operator", "id", "state", "kind", "handles", "subtasks", "parallelism", "max_parallelism", "elements", "key_groups", "bytes", "inline_bytes", "offset_bytes", "may_be_multiplied", "type", "compression"}, all.countHeader()...))
}

// counted reports whether entries were counted.
func (all Inspects) counted() bool {
	return slices.ContainsFunc(all, func(x *Inspect) bool { return x.Counted != nil })
}

// countHeader returns the names of the columns that counting adds.
func (all Inspects) countHeader() []string {
	if !all.counted() {
		return nil
	}
	return countFields.header()
}

// withPath puts the path in front where rows of several snapshots are shown.
func (all Inspects) withPath(path string, cells []string) []string {
	if len(all) == 1 {
		return cells
	}
	return append([]string{path}, cells...)
}

// Rows implements [Rows]: a row for each state.
func (all Inspects) Rows() iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for _, x := range all {
			for i := range x.Operators {
				op := &x.Operators[i]
				for k := range op.States {
					for _, cells := range op.rows(&op.States[k], all.counted()) {
						if !yield(all.withPath(x.Path, cells)) {
							return
						}
					}
				}
			}
		}
	}
}

// rows returns the row of a state and, if entries were counted, of the states in it.
func (op *InspectOperator) rows(st *InspectState, counted bool) [][]string {
	if !counted {
		return [][]string{op.cells(st)}
	}
	var none *InspectEntries
	rows := [][]string{append(op.cells(st), none.csv()...)}
	for _, k := range st.States {
		if k.Count != nil {
			of := InspectState{Name: k.Name, Kind: k.Kind, Type: k.Type, Handles: st.Handles, Subtasks: st.Subtasks}
			rows = append(rows, append(op.cells(&of), k.Count.csv()...))
		}
	}
	return rows
}

func (op *InspectOperator) cells(st *InspectState) []string {
	elements := ""
	if st.Elements != nil {
		elements = strconv.FormatInt(*st.Elements, 10)
	}
	return []string{op.label, op.ID, st.Name, st.Kind, st.Handles, strconv.Itoa(st.Subtasks), strconv.Itoa(int(op.Parallelism)), strconv.Itoa(int(op.MaxParallelism)),
		elements, strconv.FormatInt(st.KeyGroups, 10), strconv.FormatInt(st.Bytes, 10), strconv.FormatInt(st.InlineBytes, 10), strconv.FormatInt(st.OffsetBytes, 10), strconv.FormatBool(st.MayBeMultiplied),
		st.Type, st.Compression}
}

// Empty returns the snapshots without any operator.
func (all Inspects) Empty() (empty []*Inspect) {
	for _, x := range all {
		if len(x.Operators) == 0 && x.Problem == "" {
			empty = append(empty, x)
		}
	}
	return empty
}

// Document implements [Report].
func (all Inspects) Document() *ui.Document {
	var d ui.Document
	for i, x := range all {
		all.heading(&d, i)
		if x.Problem == "" {
			x.appendTo(&d)
		}
	}
	return &d
}

// heading names the snapshot that the following is about, if there are several.
func (all Inspects) heading(d *ui.Document, i int) {
	if len(all) == 1 {
		return
	}
	if i > 0 {
		d.Blank()
	}
	text := ui.Bold(ui.Quote(all[i].Path) + ":")
	if p := all[i].Problem; p != "" {
		text += " " + ui.Bad("not inspected:") + " " + ui.PrintableLines(p)
	}
	d.Line("%s", text)
}

// appendTo appends what the snapshot is, how large and whether it is whole, one
// table, and then what deserves a look.
func (x *Inspect) appendTo(d *ui.Document) {
	if x.Damage != "" {
		d.Line("%s only what precedes the damage is shown", ui.Bad("damaged:"))
	}
	d.Heading("%s", x.what())
	d.Line("%s", x.howMuch())
	if len(x.Operators) > 0 {
		d.Blank()
		x.appendTable(d)
	}
	x.appendCounts(d)
	x.appendSubtasks(d)
	x.appendRemarks(d)
}

func (x *Inspect) appendTable(d *ui.Document) {
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16},
		ui.Column{Header: "ID"},
		ui.Column{Header: "KIND", Drop: 1},
		ui.Column{Header: "TYPE", Shrink: 2, Min: 12, Drop: 4},
		ui.Column{Header: "PAR/MAX", Align: ui.Right, Drop: 2},
		ui.Column{Header: "ELEMENTS", Align: ui.Right},
		ui.Column{Header: "KEYS", Align: ui.Right},
		ui.Column{Header: "ENTRY BYTES", Align: ui.Right},
		ui.Column{Header: "DEAD", Align: ui.Right},
		ui.Column{Header: "EXPIRED", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "SHARE", Align: ui.Right, Drop: 3},
		ui.Column{Header: "OFFSETS", Align: ui.Right, Drop: 5},
		ui.Column{Header: "INLINE", Align: ui.Right, Drop: 6},
	)
	shown := x.Operators
	if x.top > 0 {
		shown = shown[:min(x.top, len(shown))]
	}
	for i := range shown {
		op := &shown[i]
		id := ""
		if x.wide {
			id = op.ID
		}
		t.Row(ui.Quote(op.label), id, op.remark(), "", fmt.Sprintf("%d/%d", op.Parallelism, op.MaxParallelism), "", "", "", "", "", ui.Bytes(op.Bytes.Total), ui.Percent(op.Bytes.Total, x.Bytes.Total))
		for k := range op.States {
			x.appendState(t, op, &op.States[k])
		}
	}
	d.Add(t)
	left, bytes := x.Operators[len(shown):], int64(0)
	for i := range left {
		bytes += left[i].Bytes.Total
	}
	if len(left) > 0 {
		d.Line("%s", ui.Dim(fmt.Sprintf("… and %s more, %s", ui.Plural(int64(len(left)), "operator"), ui.Bytes(bytes))))
	}
}

func (x *Inspect) appendState(t *ui.Table, op *InspectOperator, st *InspectState) {
	name, kind := ui.Quote(st.Name), st.Kind
	if st.Name == "" {
		name = ui.Dim("(" + st.Kind + ")")
		kind = st.Handles
	}
	if st.MayBeMultiplied {
		kind = ui.Look(kind)
	}
	offsets, inline := "", ""
	if st.OffsetBytes > 0 {
		offsets = ui.Bytes(st.OffsetBytes)
	}
	if x.Family == string(reader.Flink) {
		inline = ui.Percent(st.InlineBytes, st.Bytes)
	}
	t.Child(1, name, "", kind, st.typeText(op), "", st.count(), "", "", "", "", ui.Bytes(st.Bytes), "", offsets, inline)
	for _, k := range st.States {
		in := ""
		if k.Namespace != "" {
			in = "in " + ui.Printable(k.Namespace)
		}
		entries, keys, bytes, dead, expired := k.Count.countCells()
		t.Child(2, ui.Quote(k.Name), "", k.Kind, joined(ui.Printable(k.Type), in), "", entries, keys, bytes, dead, expired)
	}
}

// count returns what there is to count in the state.
func (s *InspectState) count() string {
	switch {
	case s.KeyGroups > 0:
		return ui.Plural(s.KeyGroups, "key group")
	case s.Elements == nil:
		return ""
	case s.Kind == "broadcast" && *s.Elements != 1:
		return ui.Count(*s.Elements) + " copies"
	case s.Kind == "broadcast":
		return "1 copy"
	}
	return ui.Count(*s.Elements)
}

func (s *InspectState) typeText(op *InspectOperator) string {
	switch {
	case len(s.States) > 0 && op.KeyType != "":
		return joined("key: "+ui.Printable(op.KeyType), s.Compression)
	case len(s.States) > 0:
		return ui.Printable(s.Type)
	case s.Kind == "keyed" && (op.unread > 0 || op.HeadersSkipped > 0 && op.HeadersRead == 0 || strings.Contains(s.Handles, "changelog")):
		return ui.Dim("names not read") // of changes, or the header was not
	}
	return joined(ui.Printable(s.Type), s.Compression)
}

// joined returns two texts with a comma between them where there are both.
func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ", " + b
}

// Headline returns the first lines of the document: what the snapshot is, and how large it is
// and whether its files are there.
func (x *Inspect) Headline() (what, howMuch string) { return x.what(), x.howMuch() }

// what returns the first line: what the snapshot is.
func (x *Inspect) what() string {
	kind := x.Type
	switch {
	case x.Type == "snapshot" && x.Metadata > 0:
		kind = "savepoint or checkpoint" // before version 4 the file does not say which
	case x.Type == "snapshot":
		kind = "state of a Go program"
	}
	kind = qualified(kind, x.Format, x.Changelog, x.Unaligned)
	if x.Stopped {
		kind += ", taken to stop the job"
	}
	return fmt.Sprintf("%s · checkpoint %s · %s", kind, ui.Count(x.CheckpointID), x.Container)
}

// qualified returns a type of snapshot with what qualifies it.
func qualified(kind, format string, changelog, unaligned bool) string {
	kind = joined(kind, format)
	if changelog {
		kind += ", changelog"
	}
	if unaligned {
		kind += ", unaligned"
	}
	return kind
}

// howMuch returns the second line: how large the snapshot is and whether it is whole.
func (x *Inspect) howMuch() string {
	operators := ui.Plural(int64(x.OperatorCount), "operator")
	if x.Picked {
		operators = "picked: " + operators
	}
	var where []string
	if x.Family == string(reader.SPT) {
		where = append(where, fmt.Sprintf("stored in %s", ui.Bytes(x.Size)))
	}
	if x.Bytes.Inline > 0 {
		where = append(where, ui.Bytes(x.Bytes.Inline)+" inline in _metadata")
	}
	if x.FileCount > 0 {
		where = append(where, x.inFiles())
	}
	total := ui.Bytes(x.Bytes.Total)
	if len(where) > 0 {
		total += ": " + strings.Join(where, ", ")
	}
	if slices.ContainsFunc(x.Operators, func(op InspectOperator) bool { return op.Compression != "" }) {
		total += " · " + Snappy
	}
	return strings.Join([]string{operators, ui.Plural(int64(x.SubtaskCount), "subtask"), total}, " · ")
}

func (x *Inspect) inFiles() string {
	b := x.Bytes
	text := fmt.Sprintf("%s in %s", ui.Bytes(b.OwnFiles+b.SharedFiles), ui.Plural(int64(x.FileCount), "file"))
	if b.SharedFiles > 0 {
		text += fmt.Sprintf(" (%s shared)", ui.Bytes(b.SharedFiles))
	}
	switch n := len(x.MissingFiles); {
	case n > 0:
		text += fmt.Sprintf(", %d of them (%s) missing", n, ui.Bytes(b.Unreachable))
	case len(x.NotChecked) == 0:
		text += ", none missing"
	}
	if n := len(x.NotChecked); n > 0 {
		text += fmt.Sprintf(", %d not checked (%s)", n, reasons(x.NotChecked))
	}
	if n := len(x.OutsideFiles); n > 0 {
		text += fmt.Sprintf(", %d outside the snapshot", n)
	}
	if n := len(x.WrongFiles); n > 0 {
		text += fmt.Sprintf(", %d not of the recorded length", n)
	}
	return text
}

// remark returns what is out of the ordinary with the subtasks of an operator.
func (op *InspectOperator) remark() string {
	switch {
	case op.FinishedSubtasks > 0 && op.FinishedSubtasks == int(op.Parallelism):
		return ui.Dim("finished")
	case op.FinishedSubtasks > 0:
		return ui.Dim(fmt.Sprintf("%d finished", op.FinishedSubtasks))
	case op.MissingSubtasks > 0:
		return ui.Look(fmt.Sprintf("%d without state", op.MissingSubtasks))
	}
	return ""
}

// maxAlike is how many warnings of one code are shown.
const maxAlike = 3

// appendRemarks appends what deserves a look, and the commands that help.
func (x *Inspect) appendRemarks(to *ui.Document) {
	var d ui.Document
	if x.MovedFiles > 0 {
		d.Line("%s found under the directory of the snapshot or its job, not where the references point", ui.Plural(int64(x.MovedFiles), "file"))
	}
	if x.usedBySeveral > 0 && !x.Picked {
		d.Line("%s of it in files that several operators use, counted for the first of them.", ui.Bytes(x.usedBySeveral))
	}
	x.appendUnreadHeaders(&d)
	if len(x.MasterStates) > 0 {
		d.Line("%s: %s", ui.Plural(int64(len(x.MasterStates)), "master state"), ShortenQuoted(x.MasterStates))
	}
	seen := map[string]int{}
	for i := range x.Warnings {
		w := &x.Warnings[i]
		if seen[w.Code]++; seen[w.Code] <= maxAlike {
			w.appendTo(&d)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(seen)) {
		if n := seen[code] - maxAlike; n > 0 {
			d.Remark("%s more of %s; -o json lists all.", ui.Count(int64(n)), code)
		}
	}
	if g := x.FailIf; g != nil && g.Holds {
		d.Line("%s %s holds for %s.", ui.Bad("!"), g.Expression, ShortenQuoted(g.For))
	}
	if len(d.Blocks()) == 0 {
		return
	}
	to.Blank()
	for _, b := range d.Blocks() {
		to.Add(b)
	}
}

func (w *InspectWarning) appendTo(d *ui.Document) {
	mark := ui.Look("!")
	if w.Code == "missing_files" || w.Code == "wrong_files" {
		mark = ui.Bad("!")
	}
	d.Line("%s %s.", mark, w.Message)
	if w.more != "" {
		d.Line("  %s.", strings.ToUpper(w.more[:1])+w.more[1:])
	}
	if w.Command != "" {
		d.Line("  %s", w.Command)
	}
}

// appendUnreadHeaders says which headers could not be read.
func (x *Inspect) appendUnreadHeaders(d *ui.Document) {
	var in, why []string
	for _, op := range x.Operators {
		if len(op.HeadersUnread) > 0 {
			why = append(why, op.HeadersUnread...)
			in = append(in, ui.Quote(op.label))
		}
	}
	if len(why) > 0 {
		d.Line("%s of state could not be read to the end, so names or types may be missing for %s: %s", ui.Plural(int64(len(why)), "header"), Shorten(in), ui.Printable(why[0]))
	}
}
