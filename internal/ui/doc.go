// Package ui is how spt speaks to people and to programs: tables, colour, units, progress, JSON, CSV, and
// the flag values that choose between them.
//
// It knows nothing of savepoints, and decides nothing about them: a command computes a result, and renders
// it here. It never names os.Stdout, the environment or the clock; the caller hands them in.
//
// Two promises hold for everything that is printed through this package:
//
//   - Text that came from a file reaches no terminal raw. [Quote] and [Printable] escape what could move the
//     cursor, recolour the screen or reorder the line; [Table], [CSV] and the JSON writers do so by themselves.
//   - Nothing is said by colour alone, and without colour the text is the same.
//
// A table:
//
//	term := ui.Detect(os.Stdout, ui.ColorAuto, os.Getenv)
//	style := term.Style()
//
//	t := ui.NewTable(
//		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle},
//		ui.Column{Header: "KIND"},
//		ui.Column{Header: "BYTES", Align: ui.Right},
//	)
//	t.Row("paimon-writer", "", ui.Bytes(100_000_000))
//	t.Child(1, "committable-state", style.Look("union"), ui.Bytes(100_000_000))
//	err := t.Write(os.Stdout, term)
package ui
