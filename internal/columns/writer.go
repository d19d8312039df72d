package columns

import (
	"fmt"
	"io"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress/zstd"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// groupBytes is how much a row group holds before it is compressed.
const groupBytes = 64 << 20

// Rows are written together, because the library is slow with single ones: so many, or
// fewer that hold so many bytes.
const (
	batchRows  = 256
	batchBytes = 1 << 20
	keptValues = 1024 // of a row whose memory is used again
)

// Writer writes a Parquet file, in order and without seeking. After an error all calls
// fail, and the file must not be used: without Close it has no end, so that no reader
// takes a part for the whole. It is not safe for concurrent use.
type Writer struct {
	w       *parquet.GenericWriter[any]
	columns []*column
	names   []string
	values  [][]parquet.Value // of a row, by leaf
	rows    []parquet.Row     // that are not written yet, in memory that is used again
	waiting int               // how many of them there are
	bytes   int64             // in the row group
	behind  int64             // of these, in rows that are not written yet
	most    int64             // bytes of a row group
	err     error
}

// NewWriter returns a writer of a table with these columns, whose names differ.
func NewWriter(w io.Writer, all []Column) (*Writer, error) {
	out := &Writer{most: groupBytes, rows: make([]parquet.Row, batchRows)}
	next := 0
	taken := map[string]bool{}
	for _, c := range all {
		col := &column{node: parquet.JSON(), leaf: textOf}
		if c.Type != nil {
			col = (&builder{leaves: next}).of(c.Type)
		}
		if unique(c.Name, taken) != c.Name {
			return nil, fmt.Errorf("internal error: two columns named %q", c.Name)
		}
		if c.Few {
			col.node = parquet.Encoded(col.node, &parquet.RLEDictionary)
		}
		next = col.number(next, 0, 1)
		out.columns, out.names = append(out.columns, col), append(out.names, c.Name)
	}
	if next > maxLeaves {
		return nil, format.Errorf(format.ErrLimit, "%d columns, the limit is %d", next, maxLeaves)
	}
	out.values = make([][]parquet.Value, next)
	schema := parquet.NewSchema("spt", groupOf(out.names, out.columns))
	out.w = parquet.NewGenericWriter[any](w, schema, parquet.Compression(&zstd.Codec{Level: zstd.SpeedDefault}), parquet.CreatedBy("spt", "", ""),
		parquet.PageBufferSize(1<<20), parquet.DictionaryMaxBytes(1<<20))
	return out, nil
}

// Row adds a row: a value for each column, which is read before Row returns. A value that
// its column cannot hold is a format.ErrUnsupported with the name of the column.
func (w *Writer) Row(cells []value.Value) error {
	if w.err != nil {
		return w.err
	}
	if len(cells) != len(w.columns) {
		w.err = fmt.Errorf("internal error: %d cells in a table of %d columns", len(cells), len(w.columns))
		return w.err
	}
	for i := range w.values {
		w.values[i] = w.values[i][:0]
	}
	for i, c := range w.columns {
		if err := w.put(c, cells[i], 0, 0); err != nil {
			w.err = format.At(err, "column %s", w.names[i])
			return w.err
		}
	}
	row := w.rows[w.waiting][:0]
	size := int64(0)
	for _, leaf := range w.values {
		row = append(row, leaf...)
	}
	for i := range row {
		size += 8
		switch row[i].Kind() {
		case parquet.ByteArray, parquet.FixedLenByteArray:
			size += int64(len(row[i].ByteArray()))
		}
	}
	w.rows[w.waiting] = row
	w.waiting, w.bytes, w.behind = w.waiting+1, w.bytes+size, w.behind+size
	if w.waiting == len(w.rows) || w.behind >= batchBytes || w.bytes >= w.most {
		w.catchUp()
	}
	if w.err == nil && w.bytes >= w.most {
		w.bytes, w.err = 0, w.w.Flush()
	}
	return w.err
}

// catchUp writes the rows that wait.
func (w *Writer) catchUp() {
	_, w.err = w.w.WriteRows(w.rows[:w.waiting])
	for i, row := range w.rows[:w.waiting] {
		if cap(row) > keptValues {
			w.rows[i] = nil
		}
	}
	w.waiting, w.behind = 0, 0
}

// add adds a value of a leaf.
func (w *Writer) add(leaf int, v parquet.Value, repetition, definition int) {
	w.values[leaf] = append(w.values[leaf], v.Level(repetition, definition, leaf))
}

// absent adds a null to each leaf below a column.
func (w *Writer) absent(c *column, repetition, definition int) {
	for i := range c.leaves {
		w.add(c.first+i, parquet.Value{}, repetition, definition)
	}
}

// put adds a value and its parts. repetition is the level at which it begins, definition
// the level of what is around it.
func (w *Writer) put(c *column, v value.Value, repetition, definition int) error {
	if v.IsNull() && !(c.json && v.Variant() > 0 && v.Variant() < value.EncodedNull) { // the JSON of these has a mark
		if definition == c.definition {
			return format.Errorf(format.ErrUnsupported, "null as the key of a map, which Parquet does not have")
		}
		w.absent(c, repetition, definition)
		return nil
	}
	if class := v.Class(); class != "" && !c.json {
		return format.Errorf(format.ErrUnsupported, "a value of the class %q: a column holds values of one class", class)
	}
	switch {
	case c.leaf != nil:
		p, err := c.leaf(v)
		if err != nil {
			return err
		}
		w.add(c.first, p, repetition, c.definition)
		return nil
	case c.kind == types.TypeList:
		return w.each(c, v, value.KindList, repetition, func(i, repetition int) error {
			return w.put(c.parts[0], v.At(i), repetition, c.definition+1)
		})
	case c.kind == types.TypeMap:
		return w.each(c, v, value.KindMap, repetition, func(i, repetition int) error {
			if err := w.put(c.parts[0], v.Key(i), repetition, c.definition+1); err != nil {
				return err
			}
			return w.put(c.parts[1], v.At(i), repetition, c.definition+1)
		})
	}
	return w.fields(c, v, repetition)
}

// each adds the elements of a list or a map.
func (w *Writer) each(c *column, v value.Value, kind value.Kind, repetition int, put func(i, repetition int) error) error {
	if v.Kind() != kind {
		_, err := unfit(v, c.kind.String())
		return err
	}
	if v.Len() == 0 {
		w.absent(c, repetition, c.definition)
	}
	for i := range v.Len() {
		if err := put(i, repetition); err != nil {
			return format.At(err, "%d", i)
		}
		repetition = c.repetition + 1
	}
	return nil
}

// fields adds the fields of a record, a tuple or a row.
func (w *Writer) fields(c *column, v value.Value, repetition int) error {
	n, kind := len(c.parts), value.String("INSERT")
	if c.kinds {
		n--
		if v.Kind() == value.KindRecord && v.Len() == 2 && v.Name(0) == "kind" && v.Name(1) == "fields" {
			kind, v = v.At(0), v.At(1)
		}
	}
	if v.Kind() != value.KindList && v.Kind() != value.KindRecord || v.Len() != n {
		_, err := unfit(v, fmt.Sprintf("%s with %d fields", c.kind, n))
		return err
	}
	for i, p := range c.parts {
		part := kind
		if i < n {
			part = v.At(i)
		}
		if err := w.put(p, part, repetition, c.definition); err != nil {
			return format.At(err, "%s", c.names[i])
		}
	}
	return nil
}

// Close writes the end of the file.
func (w *Writer) Close() error {
	if w.err != nil {
		return w.err
	}
	if w.catchUp(); w.err != nil {
		return w.err
	}
	w.err = w.w.Close()
	return w.err
}
