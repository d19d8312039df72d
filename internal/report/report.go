package report

import (
	"fmt"
	"io"
	"iter"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/columns"
	"github.com/savepoint-tools/spt/internal/ui"
)

// Report is an answer. Its JSON is the value itself, unless it is a [JSON].
type Report interface {
	// Document returns the answer for a person.
	Document() *ui.Document
}

// JSON is a [Report] whose JSON is another value.
type JSON interface {
	JSON() any
}

// Lines is a [Report] whose JSON lines are not one line with the value itself.
type Lines interface {
	Lines() iter.Seq[any]
}

// Rows is a [Report] that has rows of comma-separated values.
type Rows interface {
	Header() []string
	// Rows yields as many cells as Header has.
	Rows() iter.Seq[[]string]
}

// Table is a [Report] that has rows of typed columns.
type Table interface {
	Columns() []columns.Column
	// Cells yields as many values as Columns has.
	Cells() iter.Seq[[]value.Value]
}

// Print writes a report to w: for a person on term, or as output says.
func Print(w io.Writer, term ui.Term, output ui.Output, r Report) error {
	switch output {
	case ui.OutputJSON:
		return ui.JSON(w, jsonOf(r))
	case ui.OutputJSONL:
		return printLines(w, r)
	case ui.OutputCSV:
		return printRows(w, r)
	case ui.OutputParquet:
		return printTable(w, r)
	}
	return r.Document().Write(w, term)
}

func jsonOf(r Report) any {
	if v, ok := r.(JSON); ok {
		return v.JSON()
	}
	return r
}

func printLines(w io.Writer, r Report) error {
	l := ui.NewJSONLines(w)
	lines := one(jsonOf(r))
	if m, ok := r.(Lines); ok {
		lines = m.Lines()
	}
	for v := range lines {
		if err := l.Encode(v); err != nil {
			return err
		}
	}
	return l.Flush()
}

func printRows(w io.Writer, r Report) error {
	t, ok := r.(Rows)
	if !ok {
		return fmt.Errorf("internal error: %T has no rows", r)
	}
	c := ui.NewCSV(w, t.Header()...)
	for cells := range t.Rows() {
		if err := c.Row(cells...); err != nil {
			return err
		}
	}
	return c.Flush()
}

func printTable(w io.Writer, r Report) error {
	t, ok := r.(Table)
	if !ok {
		return fmt.Errorf("internal error: %T has no typed columns", r)
	}
	out, err := columns.NewWriter(w, t.Columns())
	if err != nil {
		return err
	}
	for cells := range t.Cells() {
		if err := out.Row(cells); err != nil {
			return err
		}
	}
	return out.Close()
}

func one(v any) iter.Seq[any] {
	return func(yield func(any) bool) { yield(v) }
}

// each yields pointers to the elements of a list, which encode as the elements do.
func each[T any](list []T) iter.Seq[any] {
	return func(yield func(any) bool) {
		for i := range list {
			if !yield(&list[i]) {
				return
			}
		}
	}
}

// rows yields the cells of each element of a list.
func rows[T any](list []T, cells func(*T) []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		for i := range list {
			if !yield(cells(&list[i])) {
				return
			}
		}
	}
}
