package ui

import (
	"fmt"
	"io"
	"strings"
)

// Document is an answer for a person, as blocks in reading order. It says what is
// shown, not how: a renderer adds colour, widths and line ends. [Document.Write]
// renders text.
//
// The text of a block may carry tones, see [Bad]. Everything else in it that is not
// printable is escaped.
type Document struct{ blocks []Block }

// Block is a part of a [Document]: [Line], *[Table] or [Findings].
type Block interface {
	appendText(b *strings.Builder, term Term) error
}

// Line is one line of text. A terminal that is narrower breaks it, see [Wrap]. Blanks
// in front indent it.
type Line string

// Add appends a block.
func (d *Document) Add(b Block) { d.blocks = append(d.blocks, b) }

// Line appends a line, formatted as by [fmt.Sprintf]. Each line end in it ends a line.
func (d *Document) Line(format string, args ...any) {
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		d.Add(Line(line))
	}
}

// Heading appends a bold line.
func (d *Document) Heading(format string, args ...any) {
	d.Add(Line(Bold(fmt.Sprintf(format, args...))))
}

// Remark appends a line that deserves a look, marked with "!".
func (d *Document) Remark(format string, args ...any) {
	d.Line("%s %s", Look("!"), fmt.Sprintf(format, args...))
}

// Blank appends an empty line.
func (d *Document) Blank() { d.Add(Line("")) }

// Blocks returns the blocks. The caller must not change them.
func (d *Document) Blocks() []Block { return d.blocks }

// Write renders the document as text for term. On a terminal no line is wider than it,
// except for single words of commands; elsewhere nothing is broken or cut.
func (d *Document) Write(w io.Writer, term Term) error {
	var b strings.Builder
	for _, block := range d.blocks {
		if err := block.appendText(&b, term); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func (l Line) appendText(b *strings.Builder, term Term) error {
	b.WriteString(fold(string(l), hangOf(string(l)), term))
	b.WriteByte('\n')
	return nil
}

func (t *Table) appendText(b *strings.Builder, term Term) error { return t.Write(b, term) }
