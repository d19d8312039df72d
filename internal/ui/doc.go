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
//   - Nothing is said by colour alone, and without colour the text is the same.
package ui
