// Package ui shows answers to people and to programs: documents, tables, tones, units,
// progress, JSON, CSV, and the flag values that choose between them.
//
// It knows nothing about savepoints: package report builds what is shown. It never names
// os.Stdout, the environment or the clock; the caller passes them.
//
// An answer for a person is a [Document] of lines, tables and findings. What renders it
// decides about colour and widths, so that the same document can be rendered elsewhere:
//
//	var d ui.Document
//	d.Heading("savepoint, 3 operators")
//	t := ui.NewTable(
//		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle},
//		ui.Column{Header: "KIND"},
//		ui.Column{Header: "BYTES", Align: ui.Right},
//	)
//	t.Row("paimon-writer", "", ui.Bytes(100_000_000))
//	t.Child(1, "committable-state", ui.Look("union"), ui.Bytes(100_000_000))
//	d.Add(t)
//	err := d.Write(os.Stdout, ui.Detect(os.Stdout, ui.ColorAuto, os.Getenv))
//
// Two rules hold for everything that is printed through this package:
//
//   - Text from a file reaches no terminal raw. [Quote] and [Printable] escape what could
//     move the cursor, recolour the screen or reorder the line; [Table], [CSV] and the
//     JSON writers do so by themselves.
//   - Colour alone means nothing, and without colour the text is the same.
//
// Libraries do what they can do under these rules: numbers and times (go-humanize), widths
// of characters (go-runewidth), colour (fatih/color), and terminals (isatty, which detects
// Cygwin terminals too, and x/term, which measures them). Tried, and not used:
//
//   - sizes of go-humanize round 1,023.97 KiB to "1024 KiB", and have either no decimal or a
//     number of digits, so a column of sizes is not aligned at its point;
//   - tables of go-pretty cut every line at the width of the terminal, numbers too; tables of
//     lipgloss shorten columns, and can neither leave one out nor become a list. Both fill
//     lines with blanks to the end. [Table] does what a narrow terminal and a pipe need;
//   - progress of mpb is drawn by a goroutine and prints one line after another where it is
//     not a terminal; progressbar reads its own clock and shows a rate from the first
//     byte on. Both are several times as large as [Progress].
package ui
