package ui

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// pipe, and terminals of some widths.
func screen(width int) Term { return Term{IsTTY: width > 0, Width: width} }

func states() *Table {
	t := NewTable(
		Column{Header: "OPERATOR / STATE", Shrink: 2, Cut: CutMiddle, Min: 10},
		Column{Header: "KIND"},
		Column{Header: "TYPE", Shrink: 1},
		Column{Header: "ELEMENTS", Align: Right},
		Column{Header: "BYTES", Align: Right},
	)
	t.Row("paimon-writer", "", "", "", "95.4 MiB")
	t.Child(1, "committable-state", Look("union"), "bytes", "1,000,000", "95.4 MiB")
	t.Child(1, "bucket-assign", "list", "tuple2<string,int>", "1,204", "19.1 KiB")
	t.Row("注文", "", "", "", "6.1 KiB")
	t.Child(2, "deep", "list", "", "1", "8 B")
	return t
}

func TestTable(t *testing.T) {
	tests := []struct {
		name  string
		term  Term
		build func() *Table
		want  []string
	}{
		{"piped", screen(0), func() *Table { return states() }, []string{
			"OPERATOR / STATE     KIND   TYPE                 ELEMENTS     BYTES",
			"paimon-writer                                              95.4 MiB",
			"  committable-state  union  bytes               1,000,000  95.4 MiB",
			"  bucket-assign      list   tuple2<string,int>      1,204  19.1 KiB",
			"注文                                                        6.1 KiB",
			"    deep             list                               1       8 B",
		}},
		{"80 columns", screen(80), func() *Table { return states() }, []string{
			"OPERATOR / STATE     KIND   TYPE                 ELEMENTS     BYTES",
			"paimon-writer                                              95.4 MiB",
			"  committable-state  union  bytes               1,000,000  95.4 MiB",
			"  bucket-assign      list   tuple2<string,int>      1,204  19.1 KiB",
			"注文                                                        6.1 KiB",
			"    deep             list                               1       8 B",
		}},
		{"60 columns: the first column gives way", screen(60), func() *Table { return states() }, []string{
			"OPERAT…STATE  KIND   TYPE                 ELEMENTS     BYTES",
			"paimon…riter                                        95.4 MiB",
			"  comm…state  union  bytes               1,000,000  95.4 MiB",
			"  buck…ssign  list   tuple2<string,int>      1,204  19.1 KiB",
			"注文                                                 6.1 KiB",
			"    deep      list                               1       8 B",
		}},
		{"46 columns: both, further than they should", screen(46), func() *Table { return states() }, []string{
			"OPER…ATE  KIND   TYPE       ELEMENTS     BYTES",
			"paim…ter                              95.4 MiB",
			"  co…ate  union  bytes     1,000,000  95.4 MiB",
			"  bu…ign  list   tuple2<…      1,204  19.1 KiB",
			"注文                                   6.1 KiB",
			"    deep  list                     1       8 B",
		}},
		{"40 columns: a list, in which no number is cut", screen(40), func() *Table { return states() }, []string{
			"paimon-writer",
			"  bytes 95.4 MiB",
			"  committable-state",
			"    kind union  type bytes",
			"    elements 1,000,000  bytes 95.4 MiB",
			"  bucket-assign",
			"    kind list  type tuple2<string,int>",
			"    elements 1,204  bytes 19.1 KiB",
			"注文",
			"  bytes 6.1 KiB",
			"    deep",
			"      kind list  elements 1  bytes 8 B",
		}},
		{"cells that wrap", screen(30), func() *Table {
			t := NewTable(Column{Header: "NAME"}, Column{Header: "N", Align: Right}, Column{Header: "WHY", Shrink: 1, Min: 8, Wrap: true})
			t.Row("sink", "12", "12 of 30 elements, and 4 more")
			t.Row("source", "3", "short")
			return t
		}, []string{
			"NAME     N  WHY",
			"sink    12  12 of 30 elements,",
			"            and 4 more",
			"source   3  short",
		}},
		{"fits: nothing is left out", screen(24), dropping, []string{
			"NAME    BYTES  OFF  INL",
			"abcdef     10    5    7",
		}},
		{"the name gives way before a column goes", screen(21), dropping, []string{
			"NAME  BYTES  OFF  INL",
			"abc…     10    5    7",
		}},
		{"the highest to be left out goes first, and the name has its room back", screen(19), dropping, []string{
			"NAME    BYTES  INL",
			"abcdef     10    7",
		}},
		{"then the next", screen(14), dropping, []string{
			"NAME    BYTES",
			"abcdef     10",
		}},
		{"too narrow all the same", screen(8), dropping, []string{
			"abcdef",
			"  bytes",
			"  10",
		}},
		{"equal priorities end alike", screen(22), func() *Table {
			t := NewTable(Column{Header: "A", Shrink: 1}, Column{Header: "B", Shrink: 1})
			t.Row(strings.Repeat("a", 30), strings.Repeat("b", 12))
			t.Row("short", "x")
			return t
		}, []string{
			"A           B",
			"aaaaaaaaa…  bbbbbbbbb…",
			"short       x",
		}},
		{"empty columns are left out", screen(80), func() *Table {
			t := NewTable(Column{Header: "A"}, Column{Header: "B"}, Column{Header: "C", Align: Right}, Column{Header: "D"})
			t.Row("", "", "1", "")
			t.Row("x", "", "100")
			return t
		}, []string{
			"A    C",
			"     1",
			"x  100",
		}},
		{"groups, no headers", screen(30), func() *Table {
			t := NewTable(Column{}, Column{Align: Right}, Column{Align: Right}, Column{})
			t.Group("sink · buffered-elements · list · 20 elements")
			t.Child(1, "subtask 0", "7", "75 B", "old 0 [0..6]")
			t.Child(1, "subtask 1", "10", "8 B")
			return t
		}, []string{
			"sink · buffered-elements ·",
			"  list · 20 elements",
			"  subtask 0",
			"    7  75 B  old 0 [0..6]",
			"  subtask 1",
			"    10  8 B",
		}},
		{"no rows", screen(80), func() *Table { return NewTable(Column{Header: "A"}) }, nil},
		{"one column of one", screen(1), func() *Table {
			t := NewTable(Column{Header: "NAME", Shrink: 1, Min: 1})
			t.Row("sink")
			return t
		}, []string{"…", "…"}},
		{"foreign text", screen(0), func() *Table {
			t := NewTable(Column{Header: "NAME"}, Column{Header: "N"})
			t.Row("a\nb\x1b[2J\u202e", "1")
			t.Row("\xff", "2")
			t.Group("g\r\x1b[31m")
			return t
		}, []string{
			"NAME               N",
			`a\nb\x1b[2J\u202e  1`,
			`\xff               2`,
			`g\r`,
		}},
		{"colour is no width", Term{IsTTY: true, Width: 24, Color: true}, func() *Table {
			red := Bad
			t := NewTable(Column{Header: "NAME", Shrink: 1}, Column{Header: "N", Align: Right})
			t.Row(red("missing"), "1")
			t.Row("present-but-much-longer", red("23"))
			return t
		}, []string{
			"\x1b[1mNAME                   N\x1b[22m",
			"\x1b[31mmissing\x1b[0m                1",
			"present-but-much-lo…  \x1b[31m23\x1b[0m",
		}},
		{"no colour where it is not wanted", screen(80), func() *Table {
			t := NewTable(Column{Header: "NAME"})
			t.Row(Bad("missing"))
			return t
		}, []string{"NAME", "missing"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var b strings.Builder
			if err := tt.build().Write(&b, tt.term); err != nil {
				t.Fatal(err)
			}
			var got []string
			for line := range strings.Lines(b.String()) {
				got = append(got, strings.TrimSuffix(line, "\n"))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

// However narrow: no line is wider than the terminal, no number is cut, none ends in a space.
func TestTableFits(t *testing.T) {
	for _, color := range []bool{false, true} {
		for width := 1; width <= 90; width++ {
			var b strings.Builder
			term := Term{IsTTY: true, Width: width, Color: color}
			if err := states().Write(&b, term); err != nil {
				t.Fatal(err)
			}
			lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
			for _, number := range []string{"95.4", "1,000,000", "19.1", "1,204", "6.1"} {
				if width > 12 && !strings.Contains(b.String(), number) {
					t.Errorf("width %d: %s is lost:\n%s", width, number, b.String())
				}
			}
			for _, line := range lines {
				if Width(line) > width || strings.HasSuffix(line, " ") {
					t.Errorf("width %d: %q", width, line)
				}
			}
		}
	}
}

func TestTableKeepsItsRows(t *testing.T) {
	cells := []string{"before"}
	table := NewTable(Column{})
	table.Row(cells...)
	cells[0] = "after"
	var b strings.Builder
	if err := table.Write(&b, Term{}); err != nil || b.String() != "before\n" {
		t.Errorf("got %q, %v", b.String(), err)
	}
}

func TestTableTooManyCells(t *testing.T) {
	defer func() {
		if r := recover(); r == nil || !strings.HasPrefix(r.(string), "internal error") {
			t.Errorf("got %v, want an internal error", r)
		}
	}()
	NewTable(Column{}).Row("a", "b")
}

var errFull = errors.New("no space left")

// full takes n bytes and then fails.
type full struct{ n int }

func (f *full) Write(p []byte) (int, error) {
	if len(p) > f.n {
		return f.n, errFull
	}
	f.n -= len(p)
	return len(p), nil
}

func TestTableWriteFails(t *testing.T) {
	if err := states().Write(&full{10}, Term{}); !errors.Is(err, errFull) {
		t.Errorf("got %v, want %v", err, errFull)
	}
}

// dropping is a table of which two columns may be left out.
func dropping() *Table {
	t := NewTable(Column{Header: "NAME", Shrink: 1, Min: 4}, Column{Header: "BYTES", Align: Right},
		Column{Header: "OFF", Align: Right, Drop: 2}, Column{Header: "INL", Align: Right, Drop: 1})
	t.Row("abcdef", "10", "5", "7")
	return t
}
