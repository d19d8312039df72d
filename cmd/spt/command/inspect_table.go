package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// table is inspect for people: what it is, how big and whether it is whole,
// one table, then what deserves a look.
func (o *inspectOptions) table(env *Env, r *InspectResult) error {
	term := env.term()
	style := term.Style()
	w := env.Stdout
	if r.Damage != "" {
		if _, err := fmt.Fprintf(w, "%s only what stands before the damage is shown\n", style.Bad("damaged:")); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintf(w, "%s\n%s\n", style.Bold(r.what()), r.howMuch()); err != nil {
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
		ui.Column{Header: "PAR/MAX", Align: ui.Right, Drop: 2},
		ui.Column{Header: "ELEMENTS", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right},
		ui.Column{Header: "OFFSETS", Align: ui.Right, Drop: 4},
		ui.Column{Header: "INLINE", Align: ui.Right, Drop: 3},
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
		t.Row(ui.Quote(op.label), id, op.remark(style), fmt.Sprintf("%d/%d", op.Parallelism, op.MaxParallelism), "", ui.Bytes(op.Bytes.Total))
		for _, st := range op.States {
			name, kind := ui.Quote(st.Name), st.Kind
			if st.Name == "" {
				name = style.Dim("(" + st.Kind + ")")
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
				kind = style.Look(kind)
			}
			t.Child(1, name, "", kind, "", elements, ui.Bytes(st.Bytes), offsets, inline)
		}
	}
	if err := t.Write(w, term); err != nil {
		return err
	}
	if left > 0 {
		if _, err := fmt.Fprintf(w, "%s\n", style.Dim(fmt.Sprintf("… and %s more, %s", ui.Plural(int64(left), "operator"), ui.Bytes(leftBytes)))); err != nil {
			return err
		}
	}
	return r.remarks(env, w, style)
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
			text += fmt.Sprintf(", %d not as long as promised", n)
		}
		where = append(where, text)
	}
	total := ui.Bytes(b.Total)
	if len(where) > 0 {
		total += ": " + strings.Join(where, ", ")
	}
	return strings.Join(append(parts, total), " · ")
}

// remark is what is out of the ordinary with an operator's subtasks.
func (op *InspectOperator) remark(style ui.Style) string {
	switch {
	case op.FinishedSubtasks > 0 && op.FinishedSubtasks == int(op.Parallelism):
		return style.Dim("finished")
	case op.FinishedSubtasks > 0:
		return style.Dim(fmt.Sprintf("%d finished", op.FinishedSubtasks))
	case op.MissingSubtasks > 0:
		return style.Look(fmt.Sprintf("%d without state", op.MissingSubtasks))
	}
	return ""
}

// remarks end the answer: what deserves a look, and the command that helps.
func (r *InspectResult) remarks(env *Env, w io.Writer, style ui.Style) error {
	var b strings.Builder
	if r.MovedFiles > 0 {
		fmt.Fprintf(&b, "%s found under the folder of the snapshot or its job, not where the references point\n", ui.Plural(int64(r.MovedFiles), "file"))
	}
	shared := -r.Bytes.Total
	for _, op := range r.Operators {
		shared += op.Bytes.Total
	}
	if shared > 0 {
		fmt.Fprintf(&b, "Files that several operators use are counted for each: the operators add up to %s more than there is.\n", ui.Bytes(shared))
	}
	if len(r.MasterStates) > 0 {
		fmt.Fprintf(&b, "%s: %s\n", ui.Plural(int64(len(r.MasterStates)), "master state"), shorten(quoteAll(r.MasterStates)))
	}
	for _, m := range r.Warnings {
		mark := style.Look("!")
		if m.Code == "missing_files" || m.Code == "wrong_files" {
			mark = style.Bad("!")
		}
		fmt.Fprintf(&b, "%s %s.\n", mark, m.Message)
		if m.more != "" {
			fmt.Fprintf(&b, "  %s.\n", strings.ToUpper(m.more[:1])+m.more[1:])
		}
		if m.Command != "" {
			fmt.Fprintf(&b, "  %s\n", m.Command)
		}
	}
	if g := r.FailIf; g != nil && g.Holds {
		fmt.Fprintf(&b, "%s %s holds for %s.\n", style.Bad("!"), g.Expression, shorten(quoteAll(g.For)))
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(w, "\n%s", b.String())
	return err
}
