package report

import (
	"bufio"
	"io"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
)

// CatLine is one element of operator state, or one entry of broadcast or keyed state:
// a line of cat. It has one of the fields whose names start with value, except timers.
type CatLine struct {
	Operator  string `json:"operator" jsonschema:"description=uid, else name, else the first digits of the id"`
	ID        string `json:"id"`
	State     string `json:"state"`
	Kind      string `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast,enum=raw,enum=coordinator,enum=value,enum=map,enum=reducing,enum=aggregating,enum=folding,enum=timers"`
	Subtask   int32  `json:"subtask" jsonschema:"description=-1 for the state of a coordinator"`
	Index     int64  `json:"index,omitempty" jsonschema:"description=number of the element, or of the entry, in the subtask; absent for keyed state"`
	Size      int64  `json:"size" jsonschema:"description=bytes of the element, or of the entry, as stored; in keyed state of the key, the namespace, the map key and the value"`
	Count     int64  `json:"count,omitempty" jsonschema:"description=with --distinct: how often it occurs in the state; subtask and index are where it occurs first"`
	KeyGroup  *int32 `json:"key_group,omitempty" jsonschema:"description=of an entry of keyed state"`
	Key       any    `json:"key,omitempty" jsonschema:"description=of an entry of broadcast or keyed state"`
	Namespace any    `json:"namespace,omitempty" jsonschema:"description=of an entry of keyed state, such as a window; absent where the state has none"`
	UserKey   any    `json:"user_key,omitempty" jsonschema:"description=key in the map, of an entry of map state in keyed state"`
	Time      *int64 `json:"time,omitempty" jsonschema:"description=at which a timer fires, in ms since 1970"`
	TTL       any    `json:"ttl_timestamp,omitempty" jsonschema:"description=when a value with a time to live was last updated, in ms since 1970; of list state an array"`
	Value     any    `json:"value,omitempty" jsonschema:"description=of the element\\, if its type is decoded; null is a value. Byte arrays are objects with one of base64, hex, text"`
	Base64    string `json:"value_base64,omitempty" jsonschema:"description=the element as stored"`
	Hex       string `json:"value_hex,omitempty" jsonschema:"description=the element as stored, with --format hex"`
	Text      string `json:"value_text,omitempty" jsonschema:"description=the element as stored, with --format text; what is not printable is escaped"`
	Redacted  string `json:"value_redacted,omitempty" jsonschema:"description=length and hash of the element as stored, with --format redacted"`

	KeyBase64         string `json:"key_base64,omitempty" jsonschema:"description=in keyed state: the key as stored"`
	KeyHex            string `json:"key_hex,omitempty"`
	KeyText           string `json:"key_text,omitempty"`
	KeyRedacted       string `json:"key_redacted,omitempty"`
	NamespaceBase64   string `json:"namespace_base64,omitempty" jsonschema:"description=the namespace as stored"`
	NamespaceHex      string `json:"namespace_hex,omitempty"`
	NamespaceText     string `json:"namespace_text,omitempty"`
	NamespaceRedacted string `json:"namespace_redacted,omitempty"`
	UserKeyBase64     string `json:"user_key_base64,omitempty" jsonschema:"description=the key in the map as stored"`
	UserKeyHex        string `json:"user_key_hex,omitempty"`
	UserKeyText       string `json:"user_key_text,omitempty"`
	UserKeyRedacted   string `json:"user_key_redacted,omitempty"`
	StoredBase64      string `json:"stored_base64,omitempty" jsonschema:"description=key group, key, namespace and key in the map as stored, where they cannot be separated"`
	StoredHex         string `json:"stored_hex,omitempty"`
	StoredText        string `json:"stored_text,omitempty"`
	StoredRedacted    string `json:"stored_redacted,omitempty"`
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
	Count      int64     // with --distinct, else 0
	Keyed      *CatKeyed // set of an entry of keyed state
}

// size returns the bytes of an element or entry.
func (it *CatItem) size() int64 {
	if it.Keyed != nil {
		return it.Keyed.Size
	}
	return int64(len(it.Stored))
}

// CatOptions is how cat prints elements.
type CatOptions struct {
	Output   ui.Output
	Format   ui.Format
	Distinct bool // with how often each occurs
	Raw      bool // values as they are stored
	// Types are the types of the columns of a Parquet file; other outputs need none.
	Types CatTypes
}

// Decode reports whether values are decoded, rather than printed as stored.
func (o *CatOptions) Decode() bool { return !o.Raw && o.Format != ui.FormatRedacted }

// encoding returns how the value of an element is shown.
func (o *CatOptions) encoding(it *CatItem) string {
	if it.Decoded && o.Decode() {
		return "json"
	}
	return o.bytesEncoding()
}

// Text returns the key and the value of an element, and how the value is encoded. The
// key is JSON.
func (o *CatOptions) Text(it *CatItem) (encoding, key, text string) {
	if it.Entry {
		key = string(AppendValue(nil, it.Key, o.Format))
	}
	if encoding = o.encoding(it); encoding == "json" {
		return encoding, key, string(AppendValue(nil, it.Value, o.Format))
	}
	return encoding, key, o.bytesText(it.Stored)
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
		header = append(header, "key_group", "namespace", "user_key", "time", "ttl_timestamp")
		return &catCSV{o, ui.NewCSV(w, header...)}
	case ui.OutputParquet:
		return newCatParquet(w, o)
	}
	return &CatJSON{CatEncoder: *NewCatEncoder(o), w: bufio.NewWriterSize(w, 64<<10)}
}

// catCSV writes comma-separated rows; encoding says what key and value are.
type catCSV struct {
	CatOptions
	w *ui.CSV
}

func (w *catCSV) Item(it *CatItem) error {
	st := it.State
	row := []string{st.Operator, st.ID, st.Name, st.Kind, strconv.Itoa(int(it.Subtask)), it.number(), strconv.FormatInt(it.size(), 10)}
	if w.Distinct {
		row = append(row, strconv.FormatInt(it.Count, 10))
	}
	t := w.rowOf(it)
	return w.w.Row(append(append(row, t.encoding, t.key, t.value), w.row(it.Keyed, t.namespace, t.userKey)...)...)
}

// number returns the number of an element for rows.
func (it *CatItem) number() string {
	if it.Keyed != nil {
		return ""
	}
	return strconv.FormatInt(it.Index, 10)
}

// catTexts are the texts of an element or entry in a row.
type catTexts struct{ encoding, key, namespace, userKey, value string }

func (o *CatOptions) rowOf(it *CatItem) (t catTexts) {
	if it.Keyed != nil {
		t.encoding, t.key, t.namespace, t.userKey, t.value = o.texts(it.Keyed)
	} else {
		t.encoding, t.key, t.value = o.Text(it)
	}
	return t
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
		ui.Column{Header: "KEY GROUP", Align: ui.Right, Drop: 1}, ui.Column{Header: "KEY", Shrink: 1, Min: 8}, ui.Column{Header: "NAMESPACE", Shrink: 1, Min: 8},
		ui.Column{Header: "MAP KEY", Shrink: 1, Min: 8}, ui.Column{Header: "TIME"}, ui.Column{Header: "VALUE", Shrink: 1, Min: 16},
	), w, term}
}

func (w *catTable) Item(it *CatItem) error {
	t := w.rowOf(it)
	if t.encoding != "json" && t.encoding != "redacted" {
		t.value = t.encoding + " " + t.value
	}
	count, group, at := "", "", ""
	if it.Count > 0 {
		count = ui.Count(it.Count)
	}
	if k := it.Keyed; k != nil {
		group = strconv.Itoa(int(k.KeyGroup))
		if k.Timer {
			at = timeOfMillis(k.Time)
		}
	}
	w.t.Row(ui.Quote(it.State.Operator)+"/"+ui.Quote(it.State.Name), strconv.Itoa(int(it.Subtask)), it.number(), ui.Bytes(it.size()), count,
		group, clipped(t.key), clipped(t.namespace), clipped(t.userKey), at, clipped(t.value))
	return nil
}

func (w *catTable) End(bool) error {
	var d ui.Document
	d.Add(w.t)
	return d.Write(w.w, w.term)
}
