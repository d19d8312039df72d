package ui

import "github.com/fatih/color"

// Style marks text by what it means. Its zero value returns every text as it is. Marks do not nest: the end of
// the inner one ends the outer one too. A Style is safe for concurrent use.
type Style struct {
	bad, look, proved, dim, bold *color.Color
}

func newStyle(on bool) Style {
	if !on {
		return Style{}
	}
	mark := func(a color.Attribute) *color.Color {
		c := color.New(a)
		c.EnableColor() // the library's own idea of the terminal is global; ours is not
		return c
	}
	return Style{
		bad:    mark(color.FgRed),
		look:   mark(color.FgYellow),
		proved: mark(color.FgGreen),
		dim:    mark(color.Faint),
		bold:   mark(color.Bold),
	}
}

// Bad marks what will fail or lose something.
func (s Style) Bad(text string) string { return paint(s.bad, text) }

// Look marks what deserves a look.
func (s Style) Look(text string) string { return paint(s.look, text) }

// Proved marks what was checked and is right.
func (s Style) Proved(text string) string { return paint(s.proved, text) }

// Dim marks detail that may be skipped.
func (s Style) Dim(text string) string { return paint(s.dim, text) }

// Bold marks a heading.
func (s Style) Bold(text string) string { return paint(s.bold, text) }

func paint(c *color.Color, text string) string {
	if c == nil || text == "" { // an empty cell stays empty: no marks round nothing
		return text
	}
	return c.Sprint(text)
}
