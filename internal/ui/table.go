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
	Shrink int  // 0: never shortened. Else, where the terminal is too narrow, higher ones give way first
	Cut    Cut  // where the cells of a column that shrinks are cut
	Min    int  // columns that a column which shrinks keeps; 0: as many as its header, at least 8
	Drop   int  // 0: always shown. Else left out, the highest first, where shrinking does not make a row fit
	Wrap   bool // of a column that shrinks: cells go on in the next line instead of being cut
}

// Table lays out rows in columns. It holds all of them in memory: it is for what a person can read, not for
// elements. A column that is empty in every row is left out, header and all. Cells may carry tones (see [Bad]);
// everything else in them that is not printable is escaped.
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
// the terminal: columns shrink in their order, then those that may be left out are, then columns shrink below what
// they should keep. Where that is not enough, each row is printed as a list under its first cell. Only columns that
// shrink are cut, so no number is. Elsewhere nothing is cut. A table without rows prints nothing.
func (t *Table) Write(w io.Writer, term Term) error {
	if len(t.rows) == 0 {
		return nil
	}
	cells := t.layout(term)
	widths, headed := t.measure(cells)
	limit := 0
	fits := true
	if term.IsTTY {
		limit = term.Width
		fits = t.fitIn(widths, limit)
	}

	var out strings.Builder
	if headed && fits {
		out.WriteString(sanitize(Bold(t.lines(t.headers(), widths, limit)[0]), term.Color) + "\n")
	}
	for i, r := range t.rows {
		var lines []string
		switch {
		case r.line:
			lines = []string{fold(strings.TrimRight(cells[i][0], " "), hangOf(cells[i][0]), term)}
		case fits:
			lines = t.lines(cells[i], widths, limit)
		default:
			lines = t.list(cells[i], widths, r.level, limit)
		}
		out.WriteString(strings.Join(lines, "\n") + "\n")
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

// fitIn makes widths no more than limit together, as far as columns shrink or may be left out, and reports whether
// they are.
func (t *Table) fitIn(widths []int, limit int) bool {
	full := slices.Clone(widths)
	for !t.shrink(widths, limit, Column.floor) {
		drop := -1
		for j, c := range t.columns {
			if full[j] > 0 && c.Drop > 0 && (drop < 0 || c.Drop > t.columns[drop].Drop) {
				drop = j
			}
		}
		if drop < 0 {
			return t.shrink(widths, limit, func(c Column) int { return min(c.floor(), leastWidth) })
		}
		full[drop] = 0
		copy(widths, full) // the others have more room now
	}
	return true
}

// leastWidth is what a column that shrinks keeps of a name, whatever it should.
const leastWidth = 8

// shrink takes from widths what is over limit: from the columns that give way first, and among equals from the
// widest, so that they end alike. It is false where that is not enough.
func (t *Table) shrink(widths []int, limit int, floor func(Column) int) bool {
	over := -len(gap)
	for _, w := range widths {
		if w > 0 {
			over += w + len(gap)
		}
	}
	for over -= limit; over > 0; over-- {
		best := -1
		for j, c := range t.columns {
			if c.Shrink == 0 || widths[j] <= floor(c) {
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

// lines joins the cells of the columns that are shown, each in its width. There are several where a cell wraps.
func (t *Table) lines(cells []string, widths []int, limit int) []string {
	parts := make([][]string, len(cells))
	n := 1
	for j, c := range t.columns {
		if widths[j] == 0 {
			continue
		}
		if c.Wrap {
			parts[j] = breakText(words(cells[j]), 0, 0, widths[j])
		} else {
			parts[j] = []string{truncate(cells[j], widths[j], c.Cut)}
		}
		n = max(n, len(parts[j]))
	}
	all := make([]string, n)
	for i := range all {
		var b strings.Builder
		for j, c := range t.columns {
			if widths[j] == 0 {
				continue
			}
			if b.Len() > 0 {
				b.WriteString(gap)
			}
			cell := ""
			if i < len(parts[j]) {
				cell = parts[j][i]
			}
			pad := strings.Repeat(" ", max(widths[j]-Width(cell), 0))
			if c.Align == Right {
				cell = pad + cell
			} else {
				cell += pad
			}
			b.WriteString(cell)
		}
		all[i] = fit(b.String(), limit)
	}
	return all
}

// list is a row for a terminal that is too narrow for columns: its first cell, and the others with their headers.
func (t *Table) list(cells []string, widths []int, level, limit int) (lines []string) {
	indent := min((level+1)*len(gap), limit/2)
	var all []word
	for j, c := range t.columns {
		cell := strings.TrimSpace(cells[j])
		if widths[j] == 0 || cell == "" {
			continue
		}
		if j == 0 {
			lines = append(lines, strings.TrimRight(truncate(cells[j], limit, c.Cut), " "))
			continue
		}
		text := strings.TrimSpace(strings.ToLower(sanitize(c.Header, false)) + " " + cell)
		if Width(text) <= limit-indent {
			all = append(all, word{len(gap), text}) // in one piece
			continue
		}
		for i, w := range words(text) {
			if i == 0 {
				w.blanks = len(gap)
			}
			all = append(all, w)
		}
	}
	if len(all) > 0 {
		lines = append(lines, breakText(all, indent, indent, limit)...)
	}
	return lines
}

func fit(line string, limit int) string {
	line = strings.TrimRight(line, " ")
	if limit > 0 {
		line = truncate(line, limit, CutEnd)
	}
	return line
}
