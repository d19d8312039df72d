package report

import (
	"bufio"
	"io"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
)

// CatLine is one element of operator state, or one entry of a broadcast state:
// a line of cat. It has one of the fields whose names start with value.
type CatLine struct {
	Operator string `json:"operator" jsonschema:"description=uid, else name, else the first digits of the id"`
	ID       string `json:"id"`
	State    string `json:"state"`
	Kind     string `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast,enum=raw,enum=coordinator"`
	Subtask  int32  `json:"subtask" jsonschema:"description=-1 for the state of a coordinator"`
	Index    int64  `json:"index" jsonschema:"description=number of the element, or of the entry, in the subtask"`
	Size     int64  `json:"size" jsonschema:"description=bytes of the element, or of the entry, as stored"`
	Count    int64  `json:"count,omitempty" jsonschema:"description=with --distinct: how often it occurs in the state; subtask and index are where it occurs first"`
	Key      any    `json:"key,omitempty" jsonschema:"description=of an entry of broadcast state"`
	Value    any    `json:"value,omitempty" jsonschema:"description=of the element\\, if its type is decoded; null is a value. Byte arrays are objects with one of base64, hex, text"`
	Base64   string `json:"value_base64,omitempty" jsonschema:"description=the element as stored"`
	Hex      string `json:"value_hex,omitempty" jsonschema:"description=the element as stored, with --format hex"`
	Text     string `json:"value_text,omitempty" jsonschema:"description=the element as stored, with --format text; what is not printable is escaped"`
	Redacted string `json:"value_redacted,omitempty" jsonschema:"description=length and hash of the element as stored, with --format redacted"`
}

// CatState is a state as cat shows it.
type CatState struct{ Operator, ID, Name, Kind string }

// CatItem is an element, or an entry of a broadcast state.
type CatItem struct {
	State      *CatState
	Subtask    int32
	Index      int64
	Stored     []byte // in the bytes of its codec
	Decoded    bool   // Value, and of an entry Key, are what it means
	Entry      bool
	Key, Value value.Value
	Count      int64  // with --distinct, else 0
	Line       []byte // what a [CatEncoder] made of it; nil: nothing yet
}

// CatOptions is how cat prints elements.
type CatOptions struct {
	Output   ui.Output
	Format   ui.Format
	Distinct bool // with how often each occurs
	Raw      bool // values as they are stored
}

// Decode reports whether values are decoded, rather than printed as stored.
func (o *CatOptions) Decode() bool { return !o.Raw && o.Format != ui.FormatRedacted }

// encoding returns how the value of an element is shown.
func (o *CatOptions) encoding(it *CatItem) string {
	switch {
	case it.Decoded && o.Decode():
		return "json"
	case o.Format == ui.FormatAuto:
		return "base64"
	}
	return o.Format.String()
}

// Text returns the key and the value of an element, and how the value is encoded. The
// key is JSON.
func (o *CatOptions) Text(it *CatItem) (encoding, key, text string) {
	if it.Entry {
		key = string(AppendValue(nil, it.Key, o.Format))
	}
	switch encoding = o.encoding(it); encoding {
	case "json":
		text = string(AppendValue(nil, it.Value, o.Format))
	case "base64":
		text = ui.Value(it.Stored, ui.FormatBase64, 0)
	case "text":
		text = ui.Printable(string(it.Stored))
	default:
		text = ui.Value(it.Stored, o.Format, 0)
	}
	return encoding, key, text
}

// CatWriter prints elements. End writes what is buffered, and if the answer is whole
// what closes it.
type CatWriter interface {
	Item(it *CatItem) error
	End(whole bool) error
}

// NewCatWriter returns a writer to w, in a table as term can show it.
func NewCatWriter(w io.Writer, term ui.Term, o CatOptions) CatWriter {
	switch o.Output {
	case ui.OutputTable:
		return newCatTable(w, term, o)
	case ui.OutputCSV:
		header := []string{"operator", "id", "state", "kind", "subtask", "index", "size", "encoding", "key", "value"}
		if o.Distinct {
			header = slices.Insert(header, 7, "count")
		}
		return &catCSV{o, ui.NewCSV(w, header...)}
	}
	return &catJSON{CatEncoder: *NewCatEncoder(o), w: bufio.NewWriterSize(w, 64<<10)}
}

// catCSV writes comma-separated rows; encoding says what key and value are.
type catCSV struct {
	CatOptions
	w *ui.CSV
}

func (w *catCSV) Item(it *CatItem) error {
	st := it.State
	row := []string{st.Operator, st.ID, st.Name, st.Kind, strconv.Itoa(int(it.Subtask)), strconv.FormatInt(it.Index, 10), strconv.Itoa(len(it.Stored))}
	if w.Distinct {
		row = append(row, strconv.FormatInt(it.Count, 10))
	}
	encoding, key, value := w.Text(it)
	return w.w.Row(append(row, encoding, key, value)...)
}

func (w *catCSV) End(bool) error { return w.w.Flush() }

// catTable holds all rows, which are few.
type catTable struct {
	CatOptions
	t    *ui.Table
	w    io.Writer
	term ui.Term
}

func newCatTable(w io.Writer, term ui.Term, o CatOptions) *catTable {
	return &catTable{o, ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 2, Cut: ui.CutMiddle, Min: 20},
		ui.Column{Header: "SUBTASK", Align: ui.Right}, ui.Column{Header: "INDEX", Align: ui.Right},
		ui.Column{Header: "SIZE", Align: ui.Right}, ui.Column{Header: "COUNT", Align: ui.Right},
		ui.Column{Header: "KEY", Shrink: 1, Min: 8}, ui.Column{Header: "VALUE", Shrink: 1, Min: 16},
	), w, term}
}

func (w *catTable) Item(it *CatItem) error {
	encoding, key, value := w.Text(it)
	if encoding != "json" && encoding != "redacted" {
		value = encoding + " " + value
	}
	count := ""
	if it.Count > 0 {
		count = ui.Count(it.Count)
	}
	w.t.Row(ui.Quote(it.State.Operator)+"/"+ui.Quote(it.State.Name), strconv.Itoa(int(it.Subtask)), strconv.FormatInt(it.Index, 10), ui.Bytes(int64(len(it.Stored))), count, clipped(key), clipped(value))
	return nil
}

func (w *catTable) End(bool) error {
	var d ui.Document
	d.Add(w.t)
	return d.Write(w.w, w.term)
}
