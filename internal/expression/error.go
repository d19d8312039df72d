package expression

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// Error is an expression that is not valid, or that does not fit a value.
type Error struct {
	Text         string // what is wrong, without its position
	Line, Column int    // from 1; the column counts characters
	// Unknown is the name, function or field that does not exist, and Known are those
	// that do. Field reports that it is a field of a value.
	Unknown string
	Known   []string
	Field   bool

	pos int // bytes before it
}

// Error returns the text, the known names of a field, and the position.
func (e *Error) Error() string {
	text := e.Text
	if e.Field {
		text += "; available: " + strings.Join(e.Known, ", ")
	}
	return text + " " + e.Position()
}

// Position returns the position in parentheses: "(column 7)".
func (e *Error) Position() string {
	if e.Line > 1 {
		return fmt.Sprintf("(line %d, column %d)", e.Line, e.Column)
	}
	return fmt.Sprintf("(column %d)", e.Column)
}

func failf(pos int, format string, args ...any) *Error {
	return &Error{Text: fmt.Sprintf(format, args...), pos: pos}
}

// locate sets the line and the column.
func (e *Error) locate(text string) {
	before := text[:min(e.pos, len(text))]
	e.Line = strings.Count(before, "\n") + 1
	e.Column = utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
}
