package command

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// table is inspect for people: what it is, how big and whether it is whole,
// one table, then what deserves a look.
func (o *inspectOptions) table(env *Env, r *InspectResult) error {
	term := env.term()
	w := env.Stdout
	if r.Damage != "" {
		if _, err := fmt.Fprintf(w, "%s only what precedes the damage is shown\n", ui.Bad("damaged:")); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "%s\n%s\n", ui.Bold(r.what()), r.howMuch()); err != nil {
		return err
	}
	if len(r.Operators) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16},
		ui.Column{Header: "ID"},
		ui.Column{Header: "KIND", Drop: 1},
		ui.Column{Header: "TYPE", Shrink: 2, Min: 12, Drop: 4},
		ui.Column{Header: "PAR/MAX", Align: ui.Right, Drop: 2},
		ui.Column{Header: "ELEMENTS", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "SHARE", Align: ui.Right, Drop: 3},
		ui.Column{Header: "OFFSETS", Align: ui.Right, Drop: 5},
		ui.Column{Header: "INLINE", Align: ui.Right, Drop: 6},
	)
	left, leftBytes := 0, int64(0)
	for i, op := range r.Operators {
		if o.top > 0 && i >= o.top {
			left++
			leftBytes += op.Bytes.Total
			continue
		}
		id := ""
		if o.wide {
			id = op.ID
		}
		t.Row(ui.Quote(op.label), id, op.remark(), "", fmt.Sprintf("%d/%d", op.Parallelism, op.MaxParallelism), "", ui.Bytes(op.Bytes.Total), ui.Percent(op.Bytes.Total, r.Bytes.Total))
		for _, st := range op.States {
			name, kind := ui.Quote(st.Name), st.Kind
			if st.Name == "" {
				name = ui.Dim("(" + st.Kind + ")")
				kind = st.Handles
			}
			elements := ""
			switch {
			case st.KeyGroups > 0:
				elements = ui.Plural(st.KeyGroups, "key group")
			case st.Elements != nil && st.Kind == "broadcast":
				elements = ui.Plural(*st.Elements, "copy")
				if *st.Elements != 1 {
					elements = ui.Count(*st.Elements) + " copies"
				}
			case st.Elements != nil:
				elements = ui.Count(*st.Elements)
			}
			offsets := ""
			if st.OffsetBytes > 0 {
				offsets = ui.Bytes(st.OffsetBytes)
			}
			inline := ""
			if r.Family == string(reader.Flink) {
				inline = ui.Percent(st.InlineBytes, st.Bytes)
			}
			if st.MayBeMultiplied {
				kind = ui.Look(kind)
			}
			typ := ui.Printable(st.Type)
			if st.Compression != "" && len(st.States) == 0 {
				typ = strings.TrimPrefix(typ+", "+st.Compression, ", ")
			}
			if st.Kind == "keyed" && len(st.States) == 0 && (op.unread > 0 || strings.Contains(st.Handles, "changelog")) {
				typ = ui.Dim("names not read") // of changes, or the header could not be
			}
			if len(st.States) > 0 && op.KeyType != "" {
				typ = "key: " + ui.Printable(op.KeyType)
				if st.Compression != "" {
					typ += ", " + st.Compression
				}
			}
			t.Child(1, name, "", kind, typ, "", elements, ui.Bytes(st.Bytes), "", offsets, inline)
			for _, k := range st.States {
				typ := ui.Printable(k.Type)
				if k.Namespace != "" {
					typ = strings.TrimPrefix(typ+", in "+ui.Printable(k.Namespace), ", ")
				}
				t.Child(2, ui.Quote(k.Name), "", k.Kind, typ)
			}
		}
	}
	if err := t.Write(w, term); err != nil {
		return err
	}
	if left > 0 {
		if _, err := fmt.Fprintf(w, "%s\n", ui.Dim(fmt.Sprintf("… and %s more, %s", ui.Plural(int64(left), "operator"), ui.Bytes(leftBytes)))); err != nil {
			return err
		}
	}
	return r.remarks(env, w)
}

// what is the first line: what is this?
func (r *InspectResult) what() string {
	kind := r.Type
	switch {
	case r.Type == "snapshot" && r.Metadata > 0:
		kind = "savepoint or checkpoint" // before version 4 the file does not say which
	case r.Type == "snapshot":
		kind = "state of a Go program"
	}
	if r.Format != "" {
		kind += ", " + r.Format
	}
	if r.Changelog {
		kind += ", changelog"
	}
	if r.Unaligned {
		kind += ", unaligned"
	}
	if r.Stopped {
		kind += ", taken to stop the job"
	}
	return fmt.Sprintf("%s · checkpoint %s · %s", kind, ui.Count(r.CheckpointID), r.Container)
}

// howMuch is the second line: how big, and is it whole?
func (r *InspectResult) howMuch() string {
	operators := ui.Plural(int64(r.OperatorCount), "operator")
	if r.Picked {
		operators = "picked: " + operators
	}
	parts := []string{operators, ui.Plural(int64(r.SubtaskCount), "subtask")}
	var where []string
	b := r.Bytes
	if r.Family == string(reader.SPT) {
		where = append(where, fmt.Sprintf("stored in %s", ui.Bytes(r.Size)))
	}
	if b.Inline > 0 {
		where = append(where, ui.Bytes(b.Inline)+" inline in _metadata")
	}
	if r.FileCount > 0 {
		text := fmt.Sprintf("%s in %s", ui.Bytes(b.OwnFiles+b.SharedFiles), ui.Plural(int64(r.FileCount), "file"))
		if b.SharedFiles > 0 {
			text += fmt.Sprintf(" (%s shared)", ui.Bytes(b.SharedFiles))
		}
		switch n := len(r.MissingFiles); {
		case n > 0:
			text += fmt.Sprintf(", %d of them (%s) missing", n, ui.Bytes(b.Unreachable))
		case len(r.NotChecked) == 0:
			text += ", none missing"
		}
		if n := len(r.NotChecked); n > 0 {
			text += fmt.Sprintf(", %d not checked (%s)", n, whyNot(r.NotChecked))
		}
		if n := len(r.OutsideFiles); n > 0 {
			text += fmt.Sprintf(", %d outside the snapshot", n)
		}
		if n := len(r.WrongFiles); n > 0 {
			text += fmt.Sprintf(", %d not of the recorded length", n)
		}
		where = append(where, text)
	}
	total := ui.Bytes(b.Total)
	if len(where) > 0 {
		total += ": " + strings.Join(where, ", ")
	}
	if r.compressed() {
		total += " · " + snappyName
	}
	return strings.Join(append(parts, total), " · ")
}

// compressed reports whether some state is compressed by Flink.
func (r *InspectResult) compressed() bool {
	return slices.ContainsFunc(r.Operators, func(op InspectOperator) bool { return op.Compression != "" })
}

// remark is what is out of the ordinary with an operator's subtasks.
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

// maxAlike is how many remarks of one code are printed.
const maxAlike = 3

// remarks end the answer: what deserves a look, and the command that helps.
func (r *InspectResult) remarks(env *Env, w io.Writer) error {
	var b strings.Builder
	if r.MovedFiles > 0 {
		fmt.Fprintf(&b, "%s found under the folder of the snapshot or its job, not where the references point\n", ui.Plural(int64(r.MovedFiles), "file"))
	}
	if r.usedBySeveral > 0 && !r.Picked {
		fmt.Fprintf(&b, "%s of it in files that several operators use, counted for the first of them.\n", ui.Bytes(r.usedBySeveral))
	}
	b.WriteString(r.headersText())
	if len(r.MasterStates) > 0 {
		fmt.Fprintf(&b, "%s: %s\n", ui.Plural(int64(len(r.MasterStates)), "master state"), report.Shorten(quoteAll(r.MasterStates)))
	}
	seen := map[string]int{}
	for _, m := range r.Warnings {
		if seen[m.Code]++; seen[m.Code] > maxAlike {
			continue
		}
		mark := ui.Look("!")
		if m.Code == "missing_files" || m.Code == "wrong_files" {
			mark = ui.Bad("!")
		}
		fmt.Fprintf(&b, "%s %s.\n", mark, m.Message)
		if m.more != "" {
			fmt.Fprintf(&b, "  %s.\n", strings.ToUpper(m.more[:1])+m.more[1:])
		}
		if m.Command != "" {
			fmt.Fprintf(&b, "  %s\n", m.Command)
		}
	}
	for _, code := range slices.Sorted(maps.Keys(seen)) {
		if n := seen[code] - maxAlike; n > 0 {
			fmt.Fprintf(&b, "%s %s more of %s; -o json lists all.\n", ui.Look("!"), ui.Count(int64(n)), code)
		}
	}
	if g := r.FailIf; g != nil && g.Holds {
		fmt.Fprintf(&b, "%s %s holds for %s.\n", ui.Bad("!"), g.Expression, report.Shorten(quoteAll(g.For)))
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s", b.String())
	return err
}

// headersText says which headers could not be read.
func (r *InspectResult) headersText() string {
	var in []string
	n, why := 0, ""
	for _, op := range r.Operators {
		if len(op.HeadersUnread) == 0 {
			continue
		}
		if n == 0 {
			why = op.HeadersUnread[0]
		}
		n += len(op.HeadersUnread)
		in = append(in, ui.Quote(op.label))
	}
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%s of state could not be read to the end, so names or types may be missing for %s: %s\n", ui.Plural(int64(n), "header"), report.Shorten(in), ui.Printable(why))
}
