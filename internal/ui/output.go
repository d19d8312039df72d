package ui

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/internal/jsonstring"
)

// JSON writes v to w: indented, its line ended. HTML means nothing here, so <, > and & stay as they are; characters
// that are not printable are escaped, which changes no value. Text that is not UTF-8 must be made so by the caller,
// because JSON cannot hold it: encoding/json writes U+FFFD instead.
func JSON(w io.Writer, v any) error {
	p, err := encode(v, "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(p)
	return err
}

func encode(v any, indent string) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("json: %w", err)
	}
	return escapeJSON(b.Bytes()), nil
}

// escapeJSON writes what is not printable as \uXXXX. encoding/json does so below U+0020 only, and U+009B starts an
// escape sequence as ESC does. Outside of strings JSON has line ends and printable ASCII, so strings are all it changes.
func escapeJSON(p []byte) []byte {
	var out []byte
	from := 0 // start of what was not copied yet
	for i := 0; i < len(p); {
		r, n := utf8.DecodeRune(p[i:])
		if invalid := r == utf8.RuneError && n == 1; invalid || r >= 0x7f && !unicode.IsPrint(r) {
			out = append(out, p[from:i]...)
			if hi, lo := utf16.EncodeRune(r); hi != utf8.RuneError {
				out = fmt.Appendf(out, `\u%04x\u%04x`, hi, lo)
			} else {
				out = fmt.Appendf(out, `\u%04x`, r)
			}
			from = i + n
		}
		i += n
	}
	if from == 0 {
		return p
	}
	return append(out, p[from:]...)
}

// JSONLines writes one JSON value a line, as [JSON] does but without indentation. It buffers: what was encoded is
// written for sure only when Flush has returned nil. After a failed write everything fails. Not safe for concurrent
// use.
type JSONLines struct{ w *bufio.Writer }

// NewJSONLines returns an encoder that writes to w.
func NewJSONLines(w io.Writer) *JSONLines { return &JSONLines{bufio.NewWriterSize(w, 64<<10)} }

// Encode adds v as one line. A value that cannot be encoded adds nothing.
func (j *JSONLines) Encode(v any) error {
	p, err := encode(v, "")
	if err != nil {
		return err
	}
	_, err = j.w.Write(p)
	return err
}

// Flush writes what is buffered.
func (j *JSONLines) Flush() error { return j.w.Flush() }

// CSV writes comma-separated rows under a header. What is not printable in a cell is escaped as [Printable] does it,
// so that each row is one line; JSON has the exact text. It buffers, and fails, as [JSONLines] does.
type CSV struct {
	w     *csv.Writer
	width int
	err   error
}

// NewCSV returns a writer to w, its header already buffered.
func NewCSV(w io.Writer, header ...string) *CSV {
	c := &CSV{w: csv.NewWriter(w), width: len(header)}
	c.err = c.w.Write(header)
	return c
}

// Row adds a row, which must have a cell for each name in the header.
func (c *CSV) Row(cells ...string) error {
	if c.err != nil {
		return c.err
	}
	if len(cells) != c.width {
		c.err = fmt.Errorf("internal error: csv row of %d cells under a header of %d", len(cells), c.width)
		return c.err
	}
	safe := make([]string, len(cells))
	for i, s := range cells {
		safe[i] = Printable(s)
	}
	c.err = c.w.Write(safe)
	return c.err
}

// Flush writes what is buffered, and returns the first error there was.
func (c *CSV) Flush() error {
	c.w.Flush()
	if c.err == nil {
		c.err = c.w.Error()
	}
	return c.err
}

// AppendJSON appends s as a JSON string, as [JSON] writes it. It is for callers that write many, because encoding/json is slow.
func AppendJSON(dst []byte, s string) []byte { return jsonstring.Append(dst, s, true) }
