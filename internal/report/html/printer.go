package html

import (
	"bufio"
	"fmt"
	"html"
	"strings"
)

// printer writes HTML. The text of markup is part of this program; all else is escaped.
// It keeps the first error.
//
// It is not html/template, with which the linker keeps every method of every type in the
// program: that is a third of the binary.
type printer struct{ w *bufio.Writer }

// markup is HTML with {} for each argument, in a text or in an attribute in quotes.
type markup string

// put writes markup with its arguments, escaped.
func (o *printer) put(m markup, args ...any) {
	rest := string(m)
	for _, arg := range args {
		before, after, ok := strings.Cut(rest, "{}")
		if !ok {
			panic("internal error: too many arguments of " + string(m))
		}
		o.raw(before)
		o.raw(html.EscapeString(fmt.Sprint(arg)))
		rest = after
	}
	if strings.Contains(rest, "{}") {
		panic("internal error: too few arguments of " + string(m))
	}
	o.raw(rest)
}

// raw writes text as it is.
func (o *printer) raw(s string) {
	o.w.WriteString(s) //nolint:errcheck // Flush returns the first error
}
