package report

import (
	"encoding/base64"
	"encoding/json"
	"iter"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/columns"
)

// jsonField returns a column of JSON; nil is null.
func jsonField[T any](name string, get func(*T) any) field[T] {
	return field[T]{name, nil, func(row *T) value.Value {
		v := get(row)
		if v == nil {
			return value.Null()
		}
		text, err := json.Marshal(v)
		if err != nil {
			panic("internal error: " + err.Error()) // it is made of JSON
		}
		return value.String(string(text))
	}}
}

// diffFields are the columns of the lines of [Diff].
var diffFields = fields[DiffLine]{
	textField("kind", func(l *DiffLine) string { return l.Kind }),
	textField("operator", func(l *DiffLine) string { return l.Operator }),
	textField("id", func(l *DiffLine) string { return l.ID }),
	textField("state", func(l *DiffLine) string { return l.State }),
	textField("text", func(l *DiffLine) string { return l.Text }),
	textField("change", func(l *DiffLine) string {
		if l.Element != nil {
			return l.Element.Change
		}
		return l.Change
	}),
	maybeField("old_count", func(l *DiffLine) *int64 {
		if l.Element == nil {
			return nil
		}
		return &l.Element.OldCount
	}),
	maybeField("new_count", func(l *DiffLine) *int64 {
		if l.Element == nil {
			return nil
		}
		return &l.Element.NewCount
	}),
	maybeField("subtask", func(l *DiffLine) *int32 { return l.element().Subtask }),
	maybeField("index", func(l *DiffLine) *int64 { return l.element().Index }),
	jsonField("key", func(l *DiffLine) any { return l.element().Key }),
	jsonField("value", func(l *DiffLine) any { return l.element().Value }),
	{"value_stored", typeBytes, func(l *DiffLine) value.Value {
		text := l.element().Base64
		if text == "" {
			return value.Null()
		}
		p, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			panic("internal error: " + err.Error())
		}
		return value.Bytes(p)
	}},
	textField("value_redacted", func(l *DiffLine) string { return l.element().Redacted }),
	textsField("old_values", func(l *DiffLine) []string { return l.element().Old }),
	textsField("new_values", func(l *DiffLine) []string { return l.element().New }),
	jsonField("before", func(l *DiffLine) any { return l.Before }),
	jsonField("after", func(l *DiffLine) any { return l.After }),
}

// textsField returns a column of lists of texts; an empty list is null.
func textsField[T any](name string, get func(*T) []string) field[T] {
	return field[T]{name, &types.Type{Kind: types.TypeList, Parts: []*types.Type{typeText}}, func(row *T) value.Value {
		texts := get(row)
		if len(texts) == 0 {
			return value.Null()
		}
		all := make([]value.Value, len(texts))
		for i, s := range texts {
			all[i] = value.String(s)
		}
		return value.List(all)
	}}
}

// noElement is in place of what a line does not have.
var noElement DiffElement

func (l *DiffLine) element() *DiffElement {
	if l.Element == nil {
		return &noElement
	}
	return l.Element
}

// Columns implements [Table].
func (r *Diff) Columns() []columns.Column { return diffFields.columns() }

// Cells implements [Table]: the rows are the lines.
func (r *Diff) Cells() iter.Seq[[]value.Value] {
	return func(yield func([]value.Value) bool) {
		for line := range r.lines() {
			for cells := range diffFields.cells([]DiffLine{*line}) {
				if !yield(cells) {
					return
				}
			}
		}
	}
}
