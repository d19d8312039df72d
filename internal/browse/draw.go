package browse

import (
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/internal/ui"
)

const (
	// panelFrom is the width of terminals from which on types are next to the rows.
	panelFrom = 100
	// nameMin is the least width of the names of rows: cells and bars that leave less
	// are left out.
	nameMin = 16
)

// panel returns the width of the types next to the rows, 0 if they are not shown there.
func (b *Browser) panel() int {
	if b.Width < panelFrom || b.view().page.Types == nil {
		return 0
	}
	return b.Width * 2 / 5
}

// listHeight returns the number of rows on the screen: the rest is the path, the
// headers, the message and the keys.
func (b *Browser) listHeight() int { return max(b.Height-4, 1) }

// Screen returns the lines of the screen, at most Height of Width columns. Texts of the
// snapshot are escaped.
func (b *Browser) Screen() []string {
	v := b.view()
	lines := []string{b.bold(ui.Fit(b.path(), b.Width, ui.CutMiddle))}
	if v.page.Text != nil {
		lines = append(lines, "")
		text := v.page.Text(b.Width, b.Color)
		from := min(int(v.top), len(text))
		lines = append(lines, text[from:min(from+b.listHeight(), len(text))]...)
	} else {
		lines = append(lines, b.list(v)...)
	}
	for len(lines) < b.Height-2 {
		lines = append(lines, "")
	}
	// A long message covers rows.
	status := b.status(v)
	lines = lines[:max(b.Height-1-len(status), 0)]
	lines = append(append(lines, status...), b.keys(v))
	return lines[:min(len(lines), max(b.Height, 1))]
}

func (b *Browser) bold(text string) string {
	if b.Color {
		return ui.Bold(text)
	}
	return text
}

// path returns the titles of the pages that led here.
func (b *Browser) path() string {
	var all []string
	for _, v := range b.views {
		all = append(all, v.page.Title)
	}
	return strings.Join(all, " › ")
}

// list returns the headers and the rows.
func (b *Browser) list(v *view) []string {
	panel := b.panel()
	width := b.Width
	if panel > 0 {
		width -= panel + 3
	}
	l := v.layout(width)
	lines := []string{b.bold(l.headers(v.page.Columns))}
	h := b.listHeight()
	for i := v.top; i < v.top+int64(h) && i-v.first < int64(len(v.rows)); i++ {
		if i < v.first {
			continue
		}
		line := l.row(&v.rows[i-v.first], i == v.cursor)
		if i == v.cursor {
			line = b.bold(line)
		}
		lines = append(lines, line)
	}
	if v.problem != "" && len(lines) < h+1 {
		for _, line := range Wrapped("! "+v.problem)(width, b.Color) {
			lines = append(lines, b.tone(ui.Bad, line))
		}
		lines = lines[:min(len(lines), h+1)]
	} else if v.end && len(v.rows) == 0 {
		lines = append(lines, "  nothing here")
	}
	if panel == 0 {
		return lines
	}
	var types []string
	switch {
	case v.types != nil:
		types = v.types(panel, b.Color)
	case v.noTypes != "":
		types = Wrapped("! "+v.noTypes)(panel, b.Color)
	}
	for i := range h + 1 {
		if i == len(lines) {
			lines = append(lines, "")
		}
		side := ""
		if i < len(types) {
			side = types[i]
		}
		lines[i] += strings.Repeat(" ", max(width-ui.Width(lines[i]), 0)) + " │ " + side
	}
	return lines
}

func (b *Browser) tone(tone func(string) string, text string) string {
	if b.Color {
		return tone(text)
	}
	return text
}

// layout is how the rows of a page share the width of a screen.
type layout struct {
	name    int
	cells   []int
	bar     int   // 0: no bars
	largest int64 // of the bars
}

// layout returns the layout for a width.
func (v *view) layout(width int) layout {
	l := layout{name: width - 2}
	for i, c := range v.page.Columns[min(1, len(v.page.Columns)):] {
		w := ui.Width(c)
		for _, r := range v.rows {
			if i < len(r.Cells) {
				w = max(w, ui.Width(ui.Printable(r.Cells[i])))
			}
		}
		if l.name-w-2 < nameMin { // the first are the most important ones
			break
		}
		l.name -= w + 2
		l.cells = append(l.cells, w)
	}
	for _, r := range v.rows {
		l.largest = max(l.largest, r.Bytes)
	}
	if bar := min(width/5, 24); l.largest > 0 && l.name-bar-2 >= nameMin {
		l.name, l.bar = l.name-bar-2, bar
	}
	return l
}

// headers returns the line above the rows.
func (l *layout) headers(columns []string) string {
	if len(columns) == 0 {
		return ""
	}
	line := "  " + ui.Fit(columns[0], l.name, ui.CutEnd)
	for i, w := range l.cells {
		line += "  " + right(columns[i+1], w)
	}
	return strings.TrimRight(line, " ")
}

// row returns the line of a row.
func (l *layout) row(r *Row, selected bool) string {
	line := "  "
	if selected {
		line = "> "
	}
	text := r.Text
	if r.Problem != "" {
		text = strings.TrimSpace(text + " ! " + r.Problem)
	}
	line += ui.Fit(text, l.name, ui.CutEnd)
	for i, w := range l.cells {
		cell := ""
		if i < len(r.Cells) {
			cell = r.Cells[i]
		}
		line += "  " + right(cell, w)
	}
	if l.bar > 0 && r.Bytes > 0 {
		line += "  " + Bar(r.Bytes, l.largest, l.bar)
	}
	return strings.TrimRight(line, " ")
}

// right returns s at the right of w columns.
func right(s string, w int) string {
	s = ui.Printable(s)
	return strings.Repeat(" ", max(w-ui.Width(s), 0)) + s
}

// Bar returns a bar for n of most, of up to width columns, in eighths of a column. A
// number above 0 has a bar.
func Bar(n, most int64, width int) string {
	eighths := int(float64(n) / float64(max(most, 1)) * float64(width*8))
	if eighths = min(max(eighths, 0), width*8); n > 0 {
		eighths = max(eighths, 1)
	}
	bar := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		bar += string([]rune("▏▎▍▌▋▊▉")[rest-1])
	}
	return bar
}

// maxStatus is how many lines a message has at most.
const maxStatus = 6

// status returns the question, the progress, the message or the position.
func (b *Browser) status(v *view) []string {
	switch {
	case b.asking != nil:
		text := ui.Printable(b.asking.text)
		for room := b.Width - ui.Width(b.asking.label) - 1; text != "" && ui.Width(text) > room; {
			text = text[1:]
			for text != "" && text[0]&0xc0 == 0x80 { // the rest of a character
				text = text[1:]
			}
		}
		return b.line(b.asking.label + text + "█")
	case b.busy != "":
		text := b.busy + "…"
		if n := b.read() - b.since; n > 0 {
			text += " " + ui.Bytes(n) + " read"
		}
		if v.search != nil {
			text += fmt.Sprintf(", row %s", ui.Count(v.search.next))
		}
		return b.line(text + "  (Esc cancels)")
	case b.message != "":
		lines := Wrapped(b.message)(b.Width, b.Color)
		lines = lines[:min(len(lines), maxStatus, max(b.Height-3, 1))]
		if b.bad {
			for i := range lines {
				lines[i] = b.tone(ui.Bad, lines[i])
			}
		}
		return lines
	case v.page.Text != nil:
		n := len(v.page.Text(b.Width, b.Color))
		if n <= b.listHeight() {
			return b.line("")
		}
		return b.line(fmt.Sprintf("lines %d–%d of %d", v.top+1, min(int(v.top)+b.listHeight(), n), n))
	}
	if len(v.rows) == 0 {
		return b.line("")
	}
	of := ""
	switch n := v.first + int64(len(v.rows)); {
	case v.page.Total >= 0:
		of = " of " + ui.Count(v.page.Total)
	case v.end:
		of = " of " + ui.Count(n)
	}
	return b.line("row " + ui.Count(v.cursor+1) + of)
}

// line returns one line, cut to the width of the screen.
func (b *Browser) line(text string) []string {
	return []string{strings.TrimRight(ui.Fit(text, b.Width, ui.CutEnd), " ")}
}

// keys returns the last line: the keys of the page, as many as fit.
func (b *Browser) keys(v *view) string {
	line := ""
	for _, k := range bindings() {
		p := v.page
		off := map[string]bool{"enter": p.Open == nil, "/": p.Rows == nil, "f": p.Lookup == nil, "d": p.Compare == nil, "s": p.Types == nil, "y": p.Command == ""}
		if k.hint == "" || off[k.keys[0]] {
			continue
		}
		next := line
		if next != "" {
			next += "  "
		}
		if next += k.hint; ui.Width(next) > b.Width {
			break
		}
		line = next
	}
	return b.tone(ui.Dim, line)
}

// Wrapped returns a text of words that is broken into lines.
func Wrapped(text string) Text {
	var d ui.Document
	d.Line("%s", text)
	return Rendered(&d)
}

// Rendered returns a document as a text.
func Rendered(d *ui.Document) Text {
	return func(width int, color bool) []string {
		var out strings.Builder
		if err := d.Write(&out, ui.Term{IsTTY: true, Width: width, Color: color}); err != nil {
			return []string{err.Error()} // a builder does not fail
		}
		lines := strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
		var all []string
		for _, line := range lines {
			for ui.Width(line) > width && width > 0 { // a long word of a command
				head := ui.Fit(line, width, ui.CutEnd)
				if !strings.HasSuffix(head, "…") {
					break
				}
				head = strings.TrimSuffix(head, "…")
				all, line = append(all, head), line[len(head):]
			}
			all = append(all, line)
		}
		return all
	}
}
