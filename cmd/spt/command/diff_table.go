package command

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform/diff"
)

// diffRow is what is said of one state, or of one operator as a whole.
type diffRow struct {
	name       string
	old, now   int64
	sized      bool // old and now are what it is about
	text       []string
	multiplied bool
	elements   []DiffElement
	groups     []int32
}

// table is diff for people: the verdict, how big, then what differs, what grew
// most first.
func (r *differ) table(res *DiffResult) error {
	term := r.env.term()
	if _, err := fmt.Fprintln(r.env.Stdout, ui.Bold(verdict(res))); err != nil {
		return err
	}
	facts := ui.NewTable(ui.Column{}, ui.Column{Shrink: 1, Wrap: true})
	if res.Old.CheckpointID != res.New.CheckpointID {
		facts.Row("checkpoint", fmt.Sprintf("%s → %s", ui.Count(res.Old.CheckpointID), ui.Count(res.New.CheckpointID)))
	}
	for _, l := range res.Differences {
		if l.ID == "" && l.Kind != string(diff.KindID) {
			facts.Row(l.Kind, l.Text)
		}
	}
	facts.Row("operators", operatorCounts(res))
	size := ui.Bytes(res.New.Bytes)
	if res.Old.Bytes != res.New.Bytes {
		size = fmt.Sprintf("%s → %s (%s)", ui.Bytes(res.Old.Bytes), ui.Bytes(res.New.Bytes), ui.Ratio(res.New.Bytes, res.Old.Bytes))
	}
	facts.Row("size", size)
	if err := facts.Write(r.env.Stdout, term); err != nil {
		return err
	}
	rows := diffRows(res)
	if len(rows) > 0 {
		if _, err := fmt.Fprintln(r.env.Stdout); err != nil {
			return err
		}
	}
	t := ui.NewTable(ui.Column{Align: ui.Right}, ui.Column{Align: ui.Right}, ui.Column{Shrink: 1, Cut: ui.CutMiddle, Min: 16}, ui.Column{Shrink: 2, Min: 24, Wrap: true})
	for _, row := range rows {
		ratio, grown := "", ""
		if row.sized && row.old != row.now {
			ratio, grown = ui.Ratio(row.now, row.old), ui.Signed(row.now-row.old, ui.Bytes)
			if row.old == 0 || row.now == 0 {
				ratio = ""
			}
		}
		text := strings.Join(row.text, "; ")
		if row.multiplied {
			text = ui.Look(text)
		}
		t.Row(ratio, grown, row.name, text)
		for _, e := range row.elements {
			t.Row("", "", "", elementText(e))
		}
		if n := len(row.groups); n > 0 {
			t.Row("", "", "", "key groups "+groupList(row.groups))
		}
	}
	if err := t.Write(r.env.Stdout, term); err != nil {
		return err
	}
	return r.remarks(res)
}

// verdict is the first line: is it the same?
func verdict(res *DiffResult) string {
	what := "same"
	if res.Absent+res.NotChecked > 0 {
		what = "same in what was compared"
	}
	switch {
	case res.Same && len(res.Differ) > 0:
		what = "same state, another checkpoint"
	case !res.Same:
		kinds := slices.DeleteFunc(slices.Clone(res.Differ), func(k string) bool { return k == string(diff.KindID) })
		what = "different: " + strings.Join(kinds, ", ")
	}
	if len(res.Ignored) > 0 {
		what += " (not compared: " + strings.Join(res.Ignored, ", ") + ")"
	}
	return what
}

func operatorCounts(res *DiffResult) string {
	var parts []string
	c := res.Counts
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

// diffRows are the rows of all states and operators that differ or grew, what
// grew most first.
func diffRows(res *DiffResult) []diffRow {
	var rows []diffRow
	for i := range res.Operators {
		op := &res.Operators[i]
		whole := diffRow{name: ui.Quote(op.label), old: op.OldBytes, now: op.NewBytes, sized: op.Change == "added" || op.Change == "removed", text: op.texts}
		if len(whole.text) > 0 {
			rows = append(rows, whole)
		}
		if whole.sized {
			continue // its states came or went with it
		}
		for k := range op.States {
			st := &op.States[k]
			name := ui.Quote(st.Name)
			if st.Name == "" {
				name = "(" + cmp.Or(st.NewKind, st.OldKind) + ")"
			}
			row := diffRow{name: ui.Quote(op.label) + "/" + name, old: st.OldBytes, now: st.NewBytes, sized: true, text: st.texts, multiplied: st.MultipliedBy > 1, elements: st.Elements}
			if st.Keyed != nil {
				row.groups = st.Keyed.Groups
			}
			switch {
			case len(row.text) == 0 && row.old == row.now:
				continue
			case len(row.text) == 0 && st.NewKind == "broadcast" && st.Added != nil:
				row.text = []string{fmt.Sprintf("the same, %d → %d copies", *st.OldElements, *st.NewElements)}
			case len(row.text) == 0 && (st.Added != nil || st.Keyed != nil):
				row.text = []string{"the same in other bytes"}
			}
			rows = append(rows, row)
		}
	}
	slices.SortStableFunc(rows, func(a, b diffRow) int { return cmp.Compare(b.growth(), a.growth()) })
	return rows
}

func (r diffRow) growth() int64 {
	if !r.sized {
		return 0
	}
	return r.now - r.old
}

// elementText is an element that differs: its sign, how often, and what it says.
func elementText(e DiffElement) string {
	sign := map[string]string{"added": "+", "removed": "-", "changed": "~"}[e.Change]
	text := sign + " " + clipped(e.shown)
	if e.Subtask != nil && (e.OldCount > 1 || e.NewCount > 1) {
		text += fmt.Sprintf("  (%s → %s times)", ui.Count(e.OldCount), ui.Count(e.NewCount))
	}
	return ui.Printable(text)
}

// groupList names key groups, runs of them in short.
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
	return report.Shorten(parts)
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

// remarks end the answer: what was not looked at, and the commands that help.
func (r *differ) remarks(res *DiffResult) error {
	var b strings.Builder
	b.WriteString(res.suggested.nameText() + res.suggested.text())
	for _, op := range res.Operators {
		for _, st := range op.States {
			if st.MultipliedBy > 1 && st.NewKind == "union" {
				fmt.Fprintf(&b, "%s %s of %s was multiplied: every element comes %s times as often as before, and none is new.\n  spt prune-union %s\n",
					ui.Look("!"), ui.Quote(st.Name), ui.Quote(op.label), ui.Count(st.MultipliedBy), shell.Quote(res.New.Path))
			}
		}
	}
	if res.KeyedByBytes {
		b.WriteString("Keyed state is compared by the bytes of key groups and files, not by its entries.\n")
	}
	if res.Absent > 0 {
		fmt.Fprintf(&b, "%s %s that both name, and neither has: what is in them was not compared.\n", ui.Look("!"), ui.Plural(res.Absent, "file"))
	}
	if res.NotChecked > 0 {
		fmt.Fprintf(&b, "%s %s that both name, and nobody could look for: what is in them was not compared.\n", ui.Look("!"), ui.Plural(res.NotChecked, "file"))
	}
	if res.ByDigest > 0 {
		fmt.Fprintf(&b, "%s of both .spt files have the same checksums and were not read: spt verify reads them.\n", ui.Bytes(res.ByDigest))
	}
	if b.Len() == 0 {
		return nil
	}
	_, err := fmt.Fprintf(r.env.Stdout, "\n%s", b.String())
	return err
}
