package ui

import "github.com/fatih/color"

// Bad returns text with the tone of what will fail or lose something. A tone is a mark
// in the text; what writes the text shows it as colour, or removes it: see
// [Document.Write] and [NewLineWriter]. Tones do not nest: the end of the inner one
// ends the outer one too.
func Bad(text string) string { return tone(color.FgRed, text) }

// Look returns text with the tone of what deserves a look.
func Look(text string) string { return tone(color.FgYellow, text) }

// Proved returns text with the tone of what was checked and is right.
func Proved(text string) string { return tone(color.FgGreen, text) }

// Dim returns text with the tone of detail that may be skipped.
func Dim(text string) string { return tone(color.Faint, text) }

// Bold returns text with the tone of a heading.
func Bold(text string) string { return tone(color.Bold, text) }

func tone(a color.Attribute, text string) string {
	if text == "" { // an empty cell stays empty
		return text
	}
	c := color.New(a)
	c.EnableColor() // the library would decide by the terminal of the process
	return c.Sprint(text)
}
