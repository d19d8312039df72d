// Package report builds the answers of commands: the values that -o json prints, whose
// schemas are in docs/schema, and from the same values the documents for people and
// the rows of CSV. Package ui renders them; package command decides which to print and
// which exit code follows.
//
// An answer is a struct or a slice that implements [Report]. Names in JSON are a
// promise: fields are added, not renamed. What only the document shows is in
// unexported fields.
//
//	r := report.NewWrite(run, "sp-001", plan)
//	err := report.Print(os.Stdout, term, ui.OutputTable, r)
package report
