package command

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// CatLine is one element of operator state, or one entry of a broadcast state:
// a line of cat. It has one of the fields whose names start with value.
type CatLine struct {
	Operator string `json:"operator" jsonschema:"description=uid, else name, else the first digits of the id"`
	ID       string `json:"id"`
	State    string `json:"state"`
	Kind     string `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast,enum=raw"`
	Subtask  int32  `json:"subtask"`
	Index    int64  `json:"index" jsonschema:"description=number of the element, or of the entry, in the subtask"`
	Size     int64  `json:"size" jsonschema:"description=bytes of the element, or of the entry, as stored"`
	Count    int64  `json:"count,omitempty" jsonschema:"description=with --distinct: how often it comes in the state; subtask and index are where it comes first"`
	Key      any    `json:"key,omitempty" jsonschema:"description=of an entry of broadcast state"`
	Value    any    `json:"value,omitempty" jsonschema:"description=what the element says, where its type is decoded; null is a value. Byte arrays are objects with one of base64, hex, text"`
	Base64   string `json:"value_base64,omitempty" jsonschema:"description=the element as stored"`
	Hex      string `json:"value_hex,omitempty" jsonschema:"description=the element as stored, with --format hex"`
	Text     string `json:"value_text,omitempty" jsonschema:"description=the element as stored, with --format text; what is not printable is escaped"`
	Redacted string `json:"value_redacted,omitempty" jsonschema:"description=length and hash of the element as stored, with --format redacted"`
}

// catWriter prints elements in one form. end writes what is buffered, and with
// whole what closes the answer.
type catWriter interface {
	line(st *catState, it *catItem) error
	end(whole bool) error
}

func (c *catter) newWriter() catWriter {
	switch c.output {
	case ui.OutputTable:
		return c.newTable()
	case ui.OutputCSV:
		header := []string{"operator", "id", "state", "kind", "subtask", "index", "size", "encoding", "key", "value"}
		if c.distinct {
			header = slices.Insert(header, 7, "count")
		}
		return &catCSV{c, ui.NewCSV(c.env.Stdout, header...), nil}
	}
	return &catJSON{c: c, w: bufio.NewWriterSize(c.env.dataOut(), 64<<10), array: c.output == ui.OutputJSON}
}

// catJSON writes lines without reflection, for there may be very many.
type catJSON struct {
	c     *catter
	w     *bufio.Writer
	array bool // one list of them
	begun bool
	buf   []byte
	part  *catPart
	head  []byte // what the elements of a part have in common
}

func (w *catJSON) line(st *catState, it *catItem) error {
	b := it.line
	if b == nil {
		b = w.append(st, it)
	}
	if w.array && !w.begun {
		b[0] = '['
	}
	w.begun = true
	_, err := w.w.Write(b)
	return err
}

// append returns the line of an element, valid until the next call. In an array it
// begins with the comma after the one before.
func (w *catJSON) append(st *catState, it *catItem) []byte {
	b := w.buf[:0]
	if w.array {
		b = append(b, ",\n  "...)
	}
	if w.part != it.part {
		w.part = it.part
		h := ui.AppendJSON(append(w.head[:0], `{"operator":`...), w.c.name(st.label))
		h = append(append(append(h, `,"id":"`...), st.op.ID.String()...), `","state":`...)
		h = append(append(append(ui.AppendJSON(h, w.c.name(st.name)), `,"kind":"`...), st.kind...), `","subtask":`...)
		w.head = append(strconv.AppendInt(h, int64(it.part.subtask), 10), `,"index":`...)
	}
	b = strconv.AppendInt(append(b, w.head...), it.index, 10)
	b = strconv.AppendInt(append(b, `,"size":`...), int64(len(it.stored)), 10)
	if it.count > 0 {
		b = strconv.AppendInt(append(b, `,"count":`...), it.count, 10)
	}
	if it.entry {
		b = appendValue(append(b, `,"key":`...), it.key, w.c.env.run.Format)
	}
	encoding, quoted := w.c.encoding(it), true
	if b = append(b, `,"value`...); encoding == "json" {
		quoted = false
	} else {
		b = append(append(b, '_'), encoding...)
	}
	if b = append(b, `":`...); quoted {
		b = appendStored(b, it.stored, w.c.env.run.Format)
	} else {
		b = appendValue(b, it.value, w.c.env.run.Format)
	}
	if b = append(b, '}'); !w.array {
		b = append(b, '\n')
	}
	w.buf = b
	return b
}

func (w *catJSON) end(whole bool) error {
	if w.array && whole {
		closing := "\n]\n"
		if !w.begun {
			closing = "[]\n"
		}
		if _, err := w.w.WriteString(closing); err != nil {
			return err
		}
	}
	return w.w.Flush()
}

// encoding is how the value of an element is shown.
func (c *catter) encoding(it *catItem) string {
	f := c.env.run.Format
	switch {
	case it.decoded && c.shown():
		return "json"
	case f == ui.FormatAuto:
		return "base64"
	}
	return f.String()
}

// appendStored appends bytes as a JSON string in a format.
func appendStored(dst, p []byte, f ui.Format) []byte {
	switch f {
	case ui.FormatHex:
		return append(hex.AppendEncode(append(dst, '"'), p), '"')
	case ui.FormatText:
		return ui.AppendJSON(dst, ui.Printable(string(p)))
	case ui.FormatRedacted:
		return ui.AppendJSON(dst, ui.Value(p, f, 0))
	}
	return append(base64.StdEncoding.AppendEncode(append(dst, '"'), p), '"')
}

// appendValue appends a value as JSON. Bytes, which JSON has not, are an object
// that says how they are written; maps whose keys need not be text are arrays
// of pairs; NaN and the infinities are strings.
func appendValue(dst []byte, v any, f ui.Format) []byte {
	switch v := v.(type) {
	case nil:
		return append(dst, "null"...)
	case bool:
		return strconv.AppendBool(dst, v)
	case string:
		return ui.AppendJSON(dst, v)
	case int8:
		return strconv.AppendInt(dst, int64(v), 10)
	case int16:
		return strconv.AppendInt(dst, int64(v), 10)
	case int32:
		return strconv.AppendInt(dst, int64(v), 10)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case uint64:
		return strconv.AppendUint(dst, v, 10)
	case float32:
		return appendFloat(dst, float64(v), 32)
	case float64:
		return appendFloat(dst, v, 64)
	case []byte:
		name := f.String()
		if f == ui.FormatAuto {
			name = "base64"
		}
		dst = append(append(append(dst, `{"`...), name...), `":`...)
		return append(appendStored(dst, v, f), '}')
	case []any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(dst, e, f)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(ui.AppendJSON(dst, k), ':')
			dst = appendValue(dst, v[k], f)
		}
		return append(dst, '}')
	case reader.Pairs:
		return appendValue(dst, [][2]any(v), f)
	case [][2]any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendValue(append(dst, '['), e[0], f)
			dst = append(appendValue(append(dst, ','), e[1], f), ']')
		}
		return append(dst, ']')
	case *big.Int:
		return v.Append(dst, 10)
	case reader.Decimal:
		return append(dst, v.String()...)
	case time.Time:
		return ui.AppendJSON(dst, v.Format(time.RFC3339Nano))
	}
	panic(fmt.Sprintf("internal error: a value of type %T", v))
}

// appendFloat appends the shortest digits that mean v, as JavaScript has them.
func appendFloat(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, `"NaN"`...)
	case math.IsInf(v, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(v, -1):
		return append(dst, `"-Infinity"`...)
	}
	form := byte('f')
	if a := math.Abs(v); a != 0 && (a < 1e-6 || a >= 1e21) {
		form = 'e'
	}
	return strconv.AppendFloat(dst, v, form, -1, bits)
}

// catCSV writes comma-separated rows; encoding says what key and value are.
type catCSV struct {
	c   *catter
	w   *ui.CSV
	buf []byte
}

func (w *catCSV) line(st *catState, it *catItem) error {
	key, value := w.c.cells(it)
	row := []string{w.c.name(st.label), st.op.ID.String(), w.c.name(st.name), st.kind, strconv.Itoa(int(it.part.subtask)),
		strconv.FormatInt(it.index, 10), strconv.Itoa(len(it.stored))}
	if w.c.distinct {
		row = append(row, strconv.FormatInt(it.count, 10))
	}
	return w.w.Row(append(row, w.c.encoding(it), key, value)...)
}

func (w *catCSV) end(bool) error { return w.w.Flush() }

// cells are key and value for a row.
func (c *catter) cells(it *catItem) (key, value string) {
	f := c.env.run.Format
	if it.entry {
		key = string(appendValue(nil, it.key, f))
	}
	switch enc := c.encoding(it); {
	case enc == "json":
		value = string(appendValue(nil, it.value, f))
	case enc == "base64":
		value = ui.Value(it.stored, ui.FormatBase64, 0)
	case enc == "text":
		value = ui.Printable(string(it.stored))
	default:
		value = ui.Value(it.stored, f, 0)
	}
	return key, value
}

// catTable holds rows for people, of whom none reads very many.
type catTable struct {
	c *catter
	t *ui.Table
}

// cellMost is how much of a value a table shows, in characters.
const cellMost = 120

func (c *catter) newTable() *catTable {
	return &catTable{c, ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 2, Cut: ui.CutMiddle, Min: 20},
		ui.Column{Header: "SUBTASK", Align: ui.Right}, ui.Column{Header: "INDEX", Align: ui.Right},
		ui.Column{Header: "SIZE", Align: ui.Right}, ui.Column{Header: "COUNT", Align: ui.Right},
		ui.Column{Header: "KEY", Shrink: 1, Min: 8}, ui.Column{Header: "VALUE", Shrink: 1, Min: 16},
	)}
}

func (w *catTable) line(st *catState, it *catItem) error {
	key, value := w.c.cells(it)
	if enc := w.c.encoding(it); enc != "json" && enc != "redacted" {
		value = enc + " " + value
	}
	count := ""
	if it.count > 0 {
		count = ui.Count(it.count)
	}
	w.t.Row(ui.Quote(w.c.name(st.label))+"/"+ui.Quote(w.c.name(st.name)), strconv.Itoa(int(it.part.subtask)), strconv.FormatInt(it.index, 10), ui.Bytes(int64(len(it.stored))), count, clipped(key), clipped(value))
	return nil
}

func (w *catTable) end(bool) error {
	var out io.Writer = w.c.env.Stdout
	return w.t.Write(out, w.c.env.term())
}

// clipped is the beginning of a text.
func clipped(s string) string {
	if utf8.RuneCountInString(s) <= cellMost {
		return s
	}
	n := 0
	for i := range s {
		if n == cellMost-1 {
			return s[:i] + "…"
		}
		n++
	}
	return s
}
