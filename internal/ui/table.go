package ui

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

const gap = "  " // between two columns, and per level of indentation

// Align is the side on which a column is flush.
type Align uint8

// Text is flush left, numbers are flush right.
const (
	Left Align = iota
	Right
)

// Column describes one column of a [Table].
type Column struct {
	Header string
	Align  Align
	Shrink int // 0: never shortened. Else, where the terminal is too narrow, higher ones give way first
	Cut    Cut // where the cells of a column that shrinks are cut
	Min    int // columns that a column which shrinks keeps; 0: as many as its header, at least 8
	Drop   int // 0: always shown. Else left out, the highest first, where shrinking does not make a row fit
}

// Table lays out rows in columns. It holds all of them in memory: it is for what a person can read, not for
// elements. A column that is empty in every row is left out, header and all; rows are never wrapped. Cells may
// carry colour (see [Style]); everything else in them that is not printable is escaped.
type Table struct {
	columns []Column
	rows    []row
}

type row struct {
	level int
	cells []string
	line  bool // one text across all columns
}

// NewTable returns an empty table.
func NewTable(columns ...Column) *Table { return &Table{columns: columns} }

// Row adds a row. Cells that are missing at its end are empty.
func (t *Table) Row(cells ...string) { t.Child(0, cells...) }

// Child adds a row whose first cell is indented by level steps of two spaces.
func (t *Table) Child(level int, cells ...string) {
	if len(cells) > len(t.columns) {
		panic(fmt.Sprintf("internal error: %d cells in a table of %d columns", len(cells), len(t.columns)))
	}
	t.rows = append(t.rows, row{level: level, cells: slices.Clone(cells)})
}

// Group adds a line of text across all columns, which heads the rows below it and widens no column.
func (t *Table) Group(text string) { t.rows = append(t.rows, row{cells: []string{text}, line: true}) }

// Write prints the table to w: the headers, if there are any, and the rows. On a terminal no line is wider than
// the terminal: columns shrink in their order, then those that may be left out are, and what is still too wide is cut
// at its end. Elsewhere nothing is cut. A table without rows prints nothing.
func (t *Table) Write(w io.Writer, term Term) error {
	if len(t.rows) == 0 {
		return nil
	}
	cells := t.layout(term)
	widths, headed := t.measure(cells)
	limit := 0
	if term.IsTTY {
		limit = term.Width
		t.fitIn(widths, limit)
	}

	var out strings.Builder
	if headed {
		out.WriteString(term.Style().Bold(t.line(t.headers(), widths, limit)) + "\n")
	}
	for i, r := range t.rows {
		var line string
		if r.line {
			line = fit(cells[i][0], limit)
		} else {
			line = t.line(cells[i], widths, limit)
		}
		out.WriteString(line + "\n")
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// layout returns what each row shows, indented and safe to print.
func (t *Table) layout(term Term) [][]string {
	all := make([][]string, len(t.rows))
	for i, r := range t.rows {
		all[i] = make([]string, max(len(t.columns), 1)) // a group needs its one cell
		for j, c := range r.cells {
			if c = sanitize(c, term.Color); j == 0 && c != "" {
				c = strings.Repeat(gap, r.level) + c
			}
			all[i][j] = c
		}
	}
	return all
}

func (t *Table) headers() []string {
	h := make([]string, len(t.columns))
	for i, c := range t.columns {
		h[i] = sanitize(c.Header, false)
	}
	return h
}

// measure returns the width of each column, 0 for one that is left out, and whether a header is left to show.
func (t *Table) measure(cells [][]string) (widths []int, headed bool) {
	widths = make([]int, len(t.columns))
	for i, r := range t.rows {
		if r.line {
			continue
		}
		for j := range t.columns {
			widths[j] = max(widths[j], Width(cells[i][j]))
		}
	}
	for j, h := range t.headers() {
		if widths[j] > 0 && h != "" {
			widths[j] = max(widths[j], Width(h))
			headed = true
		}
	}
	return widths, headed
}

// fitIn makes widths no more than limit together, as far as columns shrink or may be left out.
func (t *Table) fitIn(widths []int, limit int) {
	full := slices.Clone(widths)
	for !t.shrink(widths, limit) {
		drop := -1
		for j, c := range t.columns {
			if full[j] > 0 && c.Drop > 0 && (drop < 0 || c.Drop > t.columns[drop].Drop) {
				drop = j
			}
		}
		if drop < 0 {
			return
		}
		full[drop] = 0
		copy(widths, full) // the others have more room now
	}
}

// shrink takes from widths what is over limit: from the columns that give way first, and among equals from the
// widest, so that they end alike. It is false where that is not enough.
func (t *Table) shrink(widths []int, limit int) bool {
	over := -len(gap)
	for _, w := range widths {
		if w > 0 {
			over += w + len(gap)
		}
	}
	for over -= limit; over > 0; over-- {
		best := -1
		for j, c := range t.columns {
			if c.Shrink == 0 || widths[j] <= c.floor() {
				continue
			}
			if best < 0 || c.Shrink > t.columns[best].Shrink ||
				c.Shrink == t.columns[best].Shrink && widths[j] > widths[best] {
				best = j
			}
		}
		if best < 0 {
			return false
		}
		widths[best]--
	}
	return true
}

func (c Column) floor() int {
	if c.Min > 0 {
		return c.Min
	}
	return max(8, Width(c.Header))
}

// line joins the cells of the columns that are shown, each in its width.
func (t *Table) line(cells []string, widths []int, limit int) string {
	var b strings.Builder
	for j, c := range t.columns {
		if widths[j] == 0 {
			continue
		}
		if b.Len() > 0 {
			b.WriteString(gap)
		}
		cell := truncate(cells[j], widths[j], c.Cut)
		pad := strings.Repeat(" ", widths[j]-Width(cell))
		if c.Align == Right {
			cell = pad + cell
		} else {
			cell += pad
		}
		b.WriteString(cell)
	}
	return fit(b.String(), limit)
}

func fit(line string, limit int) string {
	line = strings.TrimRight(line, " ")
	if limit > 0 {
		line = truncate(line, limit, CutEnd)
	}
	return line
}
