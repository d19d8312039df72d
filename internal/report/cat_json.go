package report

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"strconv"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
)

// CatEncoder makes JSON of elements without reflection, because there may be very many.
type CatEncoder struct {
	CatOptions
	state   *CatState // of head
	subtask int32     // the same
	head    []byte    // what the elements of a state in a subtask have in common
}

// NewCatEncoder returns an encoder.
func NewCatEncoder(o CatOptions) *CatEncoder { return &CatEncoder{CatOptions: o} }

// Append appends the line of an element. In an array it begins with the comma after the
// element before.
func (e *CatEncoder) Append(b []byte, it *CatItem) []byte {
	array := e.Output == ui.OutputJSON
	if array {
		b = append(b, ",\n  "...)
	}
	if st := it.State; e.state != st || e.subtask != it.Subtask {
		e.state, e.subtask = st, it.Subtask
		h := ui.AppendJSON(append(e.head[:0], `{"operator":`...), st.Operator)
		h = append(append(append(h, `,"id":"`...), st.ID...), `","state":`...)
		h = append(append(append(ui.AppendJSON(h, st.Name), `,"kind":"`...), st.Kind...), `","subtask":`...)
		e.head = strconv.AppendInt(h, int64(it.Subtask), 10)
	}
	b = append(b, e.head...)
	if it.Keyed != nil {
		b = e.appendKeyed(b, it.Keyed, it.Count)
	} else {
		b = e.appendElement(b, it)
	}
	if b = append(b, '}'); !array {
		b = append(b, '\n')
	}
	return b
}

// appendElement appends the members of an element, or of an entry of broadcast state.
func (e *CatEncoder) appendElement(b []byte, it *CatItem) []byte {
	b = strconv.AppendInt(append(b, `,"index":`...), it.Index, 10)
	b = strconv.AppendInt(append(b, `,"size":`...), int64(len(it.Stored)), 10)
	if it.Count > 0 {
		b = strconv.AppendInt(append(b, `,"count":`...), it.Count, 10)
	}
	if it.Entry {
		b = AppendValue(append(b, `,"key":`...), it.Key, e.Format)
	}
	b = append(b, `,"value`...)
	if encoding := e.encoding(it); encoding == "json" {
		return AppendValue(append(b, `":`...), it.Value, e.Format)
	} else {
		b = append(append(append(b, '_'), encoding...), `":`...)
		return appendStored(b, it.Stored, e.Format)
	}
}

// CatJSON writes lines, or an array of them.
type CatJSON struct {
	CatEncoder
	w     *bufio.Writer
	line  []byte
	begun bool
}

// Item implements [CatWriter].
func (w *CatJSON) Item(it *CatItem) error {
	w.line = w.Append(w.line[:0], it)
	return w.Lines(w.line)
}

// Lines writes what a [CatEncoder] made of elements: one or more. It may change p.
func (w *CatJSON) Lines(p []byte) error {
	if !w.begun && w.Output == ui.OutputJSON {
		p[0] = '['
	}
	w.begun = true
	_, err := w.w.Write(p)
	return err
}

// End implements [CatWriter].
func (w *CatJSON) End(whole bool) error {
	if w.Output == ui.OutputJSON && whole {
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

// AppendValue appends a value as JSON. Bytes, which JSON does not have, are an object
// that says how they are written.
func AppendValue(dst []byte, v value.Value, f ui.Format) []byte {
	return v.AppendJSON(dst, ui.AppendJSON, func(dst, p []byte) []byte {
		name := f.String()
		if f == ui.FormatAuto {
			name = "base64"
		}
		dst = append(append(append(dst, `{"`...), name...), `":`...)
		return append(appendStored(dst, p, f), '}')
	})
}
