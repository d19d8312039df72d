package report

import (
	"iter"
	"time"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/columns"
)

// field is a column of rows of a type: a cell of comma-separated values, and a typed
// column. A null is an empty cell.
type field[T any] struct {
	name string
	typ  *types.Type // nil: JSON, see columns.Column
	cell func(row *T) value.Value
}

// The types of columns.
var (
	typeText   = &types.Type{Kind: types.TypeString}
	typeBytes  = &types.Type{Kind: types.TypeBytes}
	typeNumber = &types.Type{Kind: types.TypeInt, Bits: 64}
	typeBool   = &types.Type{Kind: types.TypeBool}
	typeTime   = &types.Type{Kind: types.TypeInstant, Precision: 6}
	typeJSON   = &types.Type{Kind: types.TypeAny}
)

// textField returns a column of texts; "" is null.
func textField[T any](name string, get func(*T) string) field[T] {
	return field[T]{name, typeText, func(row *T) value.Value {
		if s := get(row); s != "" {
			return value.String(s)
		}
		return value.Null()
	}}
}

func boolField[T any](name string, get func(*T) bool) field[T] {
	return field[T]{name, typeBool, func(row *T) value.Value { return value.Bool(get(row)) }}
}

func numberField[T any, N int | int32 | int64](name string, get func(*T) N) field[T] {
	return field[T]{name, typeNumber, func(row *T) value.Value { return value.Int(int64(get(row))) }}
}

// maybeField returns a column of numbers that can be missing.
func maybeField[T any, N int | int32 | int64](name string, get func(*T) *N) field[T] {
	return field[T]{name, typeNumber, func(row *T) value.Value {
		if n := get(row); n != nil {
			return value.Int(int64(*n))
		}
		return value.Null()
	}}
}

// timeField returns a column of times that can be missing, to the microsecond.
func timeField[T any](name string, get func(*T) *time.Time) field[T] {
	return field[T]{name, typeTime, func(row *T) value.Value {
		t := get(row)
		if t == nil {
			return value.Null()
		}
		micro := t.Truncate(time.Microsecond)
		return value.Instant(micro.Unix(), int32(micro.Nanosecond()))
	}}
}

// fields are the columns of rows of a type.
type fields[T any] []field[T]

func (all fields[T]) header() []string {
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].name
	}
	return names
}

// text returns the cells of a row as text: times in whole seconds.
func (all fields[T]) text(row *T) []string {
	cells := make([]string, len(all))
	for i := range all {
		switch v := all[i].cell(row); v.Kind() {
		case value.KindNull:
		case value.KindInstant:
			cells[i] = v.Time().Format(time.RFC3339)
		default:
			cells[i] = v.String()
		}
	}
	return cells
}

func (all fields[T]) texts(list []T) iter.Seq[[]string] { return rows(list, all.text) }

func (all fields[T]) columns() []columns.Column {
	c := make([]columns.Column, len(all))
	for i := range all {
		c[i] = columns.Column{Name: all[i].name, Type: all[i].typ}
	}
	return c
}

// cells yields the values of each row, in memory that is used again.
func (all fields[T]) cells(list []T) iter.Seq[[]value.Value] {
	return func(yield func([]value.Value) bool) {
		cells := make([]value.Value, len(all))
		for i := range list {
			for k := range all {
				cells[k] = all[k].cell(&list[i])
			}
			if !yield(cells) {
				return
			}
		}
	}
}
