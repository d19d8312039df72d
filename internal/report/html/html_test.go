package html

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
)

// TestName: names are cut in the middle, and never hold control characters.
func TestName(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"orders", "orders"},
		{"", `""`},
		{"a\x1b[2J", `"a\x1b[2J"`},
		{strings.Repeat("ü", 90), strings.Repeat("ü", 90)},
		{strings.Repeat("a", 60) + strings.Repeat("b", 40), strings.Repeat("a", 60) + "…" + strings.Repeat("b", 30)},
	} {
		if got := name(test.name); got != test.want {
			t.Errorf("%q, expected %q", got, test.want)
		}
	}
}

// TestAdvices: each line of advice is words, a command, or both.
func TestAdvices(t *testing.T) {
	got := advices("if there is a copy:  spt verify sp --map .=DIR\nécrire\n")
	want := []advice{{"If there is a copy", "spt verify sp --map .=DIR"}, {"Écrire", ""}}
	if !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}

// TestNote: findings that are alike are one note with examples.
func TestNote(t *testing.T) {
	var all ui.Findings
	for i := range 5 {
		all = append(all, ui.Finding{Level: ui.LevelError, Kind: "file-missing", Place: fmt.Sprintf("subtask %d", i), Text: "file is missing"})
	}
	groups := all.Alike()
	if len(groups) != 1 {
		t.Fatalf("%d groups", len(groups))
	}
	n := newNote(groups[0])
	if n.Text != "5 times: file is missing" || !slices.Equal(n.Examples, []string{"subtask 0", "subtask 1", "subtask 2", "… and 2 more"}) {
		t.Errorf("%q %q", n.Text, n.Examples)
	}
	if last := n.Advice[len(n.Advice)-1]; last.Command != "spt explain file-missing" {
		t.Errorf("advice %v", n.Advice)
	}
}

// TestArrange: tiles after the largest become one, with their bytes.
func TestArrange(t *testing.T) {
	var tiles []tile
	for i := range 10 {
		tiles = append(tiles, newTile(fmt.Sprint(i), "own", int64(i)))
	}
	got := arrange(tiles, 3, "file")
	var labels []string
	area := 0.0
	for _, tl := range got {
		labels = append(labels, tl.Label+" "+tl.Size)
		area += tl.Area()
	}
	if want := []string{"9 9 B", "8 8 B", "7 7 B", "6 more files 21 B"}; !slices.Equal(labels, want) {
		t.Errorf("%q, expected %q", labels, want)
	}
	if area < 9999 || area > 10001 {
		t.Errorf("area %g of 100 by 100", area)
	}
}

// TestGroups: cells hold several key groups where there are many, and add up to all bytes.
func TestGroups(t *testing.T) {
	k := report.KeyGroups{Operator: "op", Parallelism: 3, Bytes: make([]int64, 1000)}
	k.Bytes[999] = 5 << 10
	k.Bytes[0] = 1 << 10
	g := newGroups(0, k)
	if g.Each != 4 || len(g.Cells) != 250 || g.Cells[249].Text != "key groups 996–999: 5.0 KiB" || g.Cells[249].Shade != shades || g.Cells[1].Shade != 0 {
		t.Errorf("%d cells of %d, last %v", len(g.Cells), g.Each, g.Cells[len(g.Cells)-1])
	}
	if want := "largest subtask 5.0 KiB (2), median 1.0 KiB, smallest 0 B"; g.Subtasks != want {
		t.Errorf("%q, expected %q", g.Subtasks, want)
	}
}

// TestSchemaBounds: a type that nests, or has many parts, does not make the page long.
func TestSchemaBounds(t *testing.T) {
	deep := &report.SchemaType{Text: "deepest"}
	for range 100 {
		deep = &report.SchemaType{Text: "list", Element: deep}
	}
	wide := &report.SchemaType{Text: "record"}
	for i := range 10_000 {
		wide.Fields = append(wide.Fields, report.SchemaField{Name: fmt.Sprint("f", i), Type: &report.SchemaType{Text: "long"}})
	}
	var count func(n *node) int
	count = func(n *node) int {
		sum := 1
		for _, p := range n.Parts {
			sum += count(p)
		}
		return sum
	}
	s := &report.Schema{}
	for range 1000 {
		s.Operators = append(s.Operators, report.SchemaOperator{Operator: "op", Keys: []*report.SchemaType{deep}, States: []report.SchemaState{{State: "s", Value: wide}}})
	}
	out := newSchema(s)
	if n := count(out.Operators[0].Keys[0]); n != maxDepth+1 {
		t.Errorf("%d nodes of a deep type", n)
	}
	if n := count(out.Operators[0].States[0].Tree[0]); n != maxLabels+2 {
		t.Errorf("%d nodes of a wide type", n)
	}
	if len(out.Operators) > 100 || !strings.Contains(out.Left, "more operators") {
		t.Errorf("%d operators, then %q", len(out.Operators), out.Left)
	}
}
