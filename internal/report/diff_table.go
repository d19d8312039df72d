package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform/diff"
)

// Document implements [Report]: whether the snapshots are the same, their sizes, and
// what differs, by how much it grew.
func (r *Diff) Document() *ui.Document {
	var d ui.Document
	d.Heading("%s", r.verdict())
	d.Add(r.facts())
	if rows := r.rows(); len(rows) > 0 {
		d.Blank()
		d.Add(diffTable(rows))
	}
	var end ui.Document
	r.appendRemarks(&end)
	if len(end.Blocks()) > 0 {
		d.Blank()
	}
	for _, b := range end.Blocks() {
		d.Add(b)
	}
	return &d
}

func (r *Diff) verdict() string {
	what := "same"
	if r.Absent+r.NotChecked > 0 {
		what = "same in what was compared"
	}
	switch {
	case r.Same && len(r.Differ) > 0:
		what = "same state, another checkpoint"
	case !r.Same:
		kinds := slices.DeleteFunc(slices.Clone(r.Differ), func(k string) bool { return k == string(diff.KindID) })
		what = "different: " + strings.Join(kinds, ", ")
	}
	if len(r.Ignored) > 0 {
		what += " (not compared: " + strings.Join(r.Ignored, ", ") + ")"
	}
	return what
}

// facts are the differences of the snapshots as a whole.
func (r *Diff) facts() *ui.Table {
	t := ui.NewTable(ui.Column{}, ui.Column{Shrink: 1, Wrap: true})
	if r.Old.CheckpointID != r.New.CheckpointID {
		t.Row("checkpoint", fmt.Sprintf("%s → %s", ui.Count(r.Old.CheckpointID), ui.Count(r.New.CheckpointID)))
	}
	for _, l := range r.Differences {
		if l.ID == "" && l.Kind != string(diff.KindID) {
			t.Row(l.Kind, l.Text)
		}
	}
	t.Row("operators", r.Counts.text())
	size := ui.Bytes(r.New.Bytes)
	if r.Old.Bytes != r.New.Bytes {
		size = fmt.Sprintf("%s → %s (%s)", ui.Bytes(r.Old.Bytes), ui.Bytes(r.New.Bytes), ui.Ratio(r.New.Bytes, r.Old.Bytes))
	}
	t.Row("size", size)
	return t
}

func (c DiffCounts) text() string {
	var parts []string
	for _, n := range []struct {
		n    int
		what string
	}{{c.Same, "same"}, {c.Changed, "changed"}, {c.Renamed, "likely renamed"}, {c.Added, "added"}, {c.Removed, "removed"}} {
		if n.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s", ui.Count(int64(n.n)), n.what))
		}
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// diffRow is what is shown of one state, or of one operator as a whole.
type diffRow struct {
	name       string
	old, now   int64
	sized      bool // old and now are the sizes of what the row is about
	text       []string
	multiplied bool
	elements   []DiffElement
	groups     []int32
	entries    []string // of keyed state
}

// rows returns rows of all states and operators that differ or grew, by growth.
func (r *Diff) rows() []diffRow {
	var rows []diffRow
	for i := range r.Operators {
		op := &r.Operators[i]
		whole := diffRow{name: ui.Quote(op.label), old: op.OldBytes, now: op.NewBytes, text: op.texts}
		whole.sized = op.Change == operatorAdded || op.Change == operatorRemoved
		if len(whole.text) > 0 {
			rows = append(rows, whole)
		}
		if whole.sized {
			continue // its states were added or removed with it
		}
		for k := range op.States {
			if row, differs := op.States[k].row(op.label); differs {
				rows = append(rows, row)
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b diffRow) int { return cmp.Compare(b.growth(), a.growth()) })
	return rows
}

// row returns the row of a state of an operator, and whether there is anything to show.
func (st *DiffState) row(operator string) (row diffRow, differs bool) {
	name := ui.Quote(st.Name)
	if st.Name == "" {
		name = "(" + cmp.Or(st.NewKind, st.OldKind) + ")"
	}
	row = diffRow{name: ui.Quote(operator) + "/" + name, old: st.OldBytes, now: st.NewBytes, sized: true, text: st.texts, multiplied: st.MultipliedBy > 1, elements: st.Elements}
	if st.Keyed != nil {
		if len(st.Keyed.Entries) == 0 {
			row.groups = st.Keyed.Groups
		}
		for _, e := range st.entries() {
			row.entries = append(row.entries, changeSigns[e.Change]+" "+ui.Printable(clipped(e.shown)))
		}
	}
	switch {
	case len(row.text) > 0:
	case row.old == row.now:
		return row, false
	case st.NewKind == "broadcast" && st.Added != nil:
		row.text = []string{fmt.Sprintf("the same, %d → %d replicas", *st.OldElements, *st.NewElements)}
	case st.OldKind+st.NewKind == string(summary.RawKeyed): // on one side, and no difference
		row.text = []string{"timers, compared with the keyed state"}
	case st.Added != nil || st.Keyed != nil:
		row.text = []string{"the same in other bytes"}
	}
	return row, true
}

func (r diffRow) growth() int64 {
	if !r.sized {
		return 0
	}
	return r.now - r.old
}

func diffTable(rows []diffRow) *ui.Table {
	t := ui.NewTable(ui.Column{Align: ui.Right}, ui.Column{Align: ui.Right}, ui.Column{Shrink: 1, Cut: ui.CutMiddle, Min: 16}, ui.Column{Shrink: 2, Min: 24, Wrap: true})
	for _, row := range rows {
		ratio, grown := "", ""
		if n := row.growth(); n != 0 {
			grown = ui.Signed(n, ui.Bytes)
			if row.old != 0 && row.now != 0 {
				ratio = ui.Ratio(row.now, row.old)
			}
		}
		texts := row.text
		if joined := strings.Join(texts, "; "); ui.Width(joined) <= textMost {
			texts = []string{joined}
		}
		name := row.name
		for _, text := range texts {
			if row.multiplied {
				text = ui.Look(text)
			}
			t.Row(ratio, grown, name, text)
			ratio, grown, name = "", "", ""
		}
		for _, e := range row.elements {
			t.Row("", "", "", e.text())
		}
		for _, e := range row.entries {
			t.Row("", "", "", e)
		}
		if len(row.groups) > 0 {
			t.Row("", "", "", "key groups "+groupList(row.groups))
		}
	}
	return t
}

// textMost is the width up to which several texts about a state are in one line.
const textMost = 80

// changeSigns are the signs of changes.
var changeSigns = map[string]string{"added": "+", "removed": "-", "changed": "~"}

// text returns a sign, the value, and how often it occurs.
func (e *DiffElement) text() string {
	text := changeSigns[e.Change] + " " + clipped(e.shown)
	if e.Subtask != nil && (e.OldCount > 1 || e.NewCount > 1) {
		text += fmt.Sprintf("  (%s → %s times)", ui.Count(e.OldCount), ui.Count(e.NewCount))
	}
	return ui.Printable(text)
}

// cellMost is how much of a value a table shows, in characters.
const cellMost = 120

// clipped returns the beginning of a text.
func clipped(s string) string {
	if utf8.RuneCountInString(s) <= cellMost {
		return s
	}
	n := 0
	for i := range s {
		if n == cellMost-1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}

// groupList lists key groups as ranges.
func groupList(all []int32) string {
	var parts []string
	for i := 0; i < len(all); {
		k := i
		for k+1 < len(all) && all[k+1] == all[k]+1 {
			k++
		}
		parts = append(parts, format.KeyGroupRange{First: all[i], Count: all[k] - all[i] + 1}.String())
		i = k + 1
	}
	return Shorten(parts)
}

// grouped separates the thousands of the numbers in a text.
func grouped(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		i := strings.IndexAny(s, "0123456789")
		if i < 0 {
			break
		}
		b.WriteString(s[:i])
		s = s[i:]
		digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
		if n, err := strconv.ParseInt(digits, 10, 64); err == nil {
			b.WriteString(ui.Count(n))
		} else {
			b.WriteString(digits)
		}
		s = s[len(digits):]
	}
	return b.String() + s
}

// appendRemarks appends what was not compared, and the commands that help.
func (r *Diff) appendRemarks(d *ui.Document) {
	r.suggested.appendNames(d)
	r.suggested.appendTo(d)
	for _, op := range r.Operators {
		for _, st := range op.States {
			if st.MultipliedBy > 1 && st.NewKind == "union" {
				d.Remark("%s of %s was multiplied: every element comes %s times as often as before, and none is new.\n  spt prune-union %s",
					ui.Quote(st.Name), ui.Quote(op.label), ui.Count(st.MultipliedBy), shell.Quote(r.New.Path))
			}
		}
	}
	for _, op := range r.Operators {
		for _, st := range op.States {
			if st.Keyed != nil && st.Keyed.NotCompared != "" {
				d.Remark("Entries of the keyed state of %s were not compared: %s", ui.Quote(op.label), st.Keyed.NotCompared)
			}
		}
	}
	if r.Absent > 0 {
		d.Remark("%s that both name, and neither has: what is in them was not compared.", ui.Plural(r.Absent, "file"))
	}
	if r.NotChecked > 0 {
		d.Remark("%s that both name, and nobody could look for: what is in them was not compared.", ui.Plural(r.NotChecked, "file"))
	}
	if r.ByDigest > 0 {
		d.Line("%s of both .spt files have the same checksums and were not read: spt verify reads them.", ui.Bytes(r.ByDigest))
	}
}
