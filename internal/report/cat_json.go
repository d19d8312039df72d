package report

import (
	"bufio"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strconv"
	"time"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// CatEncoder makes JSON of elements without reflection, because there may be very many.
type CatEncoder struct {
	CatOptions
	buf     []byte
	state   *CatState // of head
	subtask int32     // the same
	head    []byte    // what the elements of a state in a subtask have in common
}

// NewCatEncoder returns an encoder.
func NewCatEncoder(o CatOptions) *CatEncoder { return &CatEncoder{CatOptions: o} }

// Encode returns the line of an element, valid until the next call. In an array it
// begins with the comma after the element before.
func (e *CatEncoder) Encode(it *CatItem) []byte {
	b := e.buf[:0]
	array := e.Output == ui.OutputJSON
	if array {
		b = append(b, ",\n  "...)
	}
	if st := it.State; e.state != st || e.subtask != it.Subtask {
		e.state, e.subtask = st, it.Subtask
		h := ui.AppendJSON(append(e.head[:0], `{"operator":`...), st.Operator)
		h = append(append(append(h, `,"id":"`...), st.ID...), `","state":`...)
		h = append(append(append(ui.AppendJSON(h, st.Name), `,"kind":"`...), st.Kind...), `","subtask":`...)
		e.head = append(strconv.AppendInt(h, int64(it.Subtask), 10), `,"index":`...)
	}
	b = strconv.AppendInt(append(b, e.head...), it.Index, 10)
	b = strconv.AppendInt(append(b, `,"size":`...), int64(len(it.Stored)), 10)
	if it.Count > 0 {
		b = strconv.AppendInt(append(b, `,"count":`...), it.Count, 10)
	}
	if it.Entry {
		b = AppendValue(append(b, `,"key":`...), it.Key, e.Format)
	}
	b = append(b, `,"value`...)
	if encoding := e.encoding(it); encoding == "json" {
		b = AppendValue(append(b, `":`...), it.Value, e.Format)
	} else {
		b = append(append(append(b, '_'), encoding...), `":`...)
		b = appendStored(b, it.Stored, e.Format)
	}
	if b = append(b, '}'); !array {
		b = append(b, '\n')
	}
	e.buf = b
	return b
}

// catJSON writes lines, or an array of them.
type catJSON struct {
	CatEncoder
	w     *bufio.Writer
	begun bool
}

func (w *catJSON) Item(it *CatItem) error {
	b := it.Line
	if b == nil {
		b = w.Encode(it)
	}
	if !w.begun && w.Output == ui.OutputJSON {
		b[0] = '['
	}
	w.begun = true
	_, err := w.w.Write(b)
	return err
}

func (w *catJSON) End(whole bool) error {
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
// that says how they are written; maps whose keys need not be text are arrays
// of pairs; NaN and the infinities are strings.
func AppendValue(dst []byte, v any, f ui.Format) []byte {
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
			dst = AppendValue(dst, e, f)
		}
		return append(dst, ']')
	case map[string]any:
		dst = append(dst, '{')
		for i, k := range slices.Sorted(maps.Keys(v)) {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(ui.AppendJSON(dst, k), ':')
			dst = AppendValue(dst, v[k], f)
		}
		return append(dst, '}')
	case reader.Pairs:
		return AppendValue(dst, [][2]any(v), f)
	case [][2]any:
		dst = append(dst, '[')
		for i, e := range v {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = AppendValue(append(dst, '['), e[0], f)
			dst = append(AppendValue(append(dst, ','), e[1], f), ']')
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
