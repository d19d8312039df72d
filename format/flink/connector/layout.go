package connector

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// layout reads, writes and describes one structure. Readers and writers keep the first
// error.
type layout interface {
	read(r *reader) value.Value
	write(w *writer, v value.Value)
	describe(d *describer) *types.Type
}

// reader reads structures.
type reader struct {
	java.Cursor
	depth  int   // number of frames around the current one
	splits int32 // version of the splits of a CDC enumerator
}

// maxDepth bounds frames in frames. The deepest real structure, a committer of a
// file sink, has six.
const maxDepth = 12

func newReader(p []byte, depth int) *reader { return &reader{Cursor: *java.NewCursor(p), depth: depth} }

// writer appends structures.
type writer struct {
	p      []byte
	err    error
	splits int32 // as in reader
}

func (w *writer) fail(msg string, args ...any) {
	if w.err == nil {
		w.err = format.Errorf(format.ErrUnsupported, msg, args...)
	}
}

// expects reports whether v is of a kind, and records an error if it is not.
func (w *writer) expects(v value.Value, k value.Kind) bool {
	if v.Kind() != k {
		w.fail("expected %v, found %v", k, v.Kind())
	}
	return v.Kind() == k
}

func (w *writer) int32(n int) {
	if n > math.MaxInt32 {
		w.fail("a length of %d, the format allows %d", n, math.MaxInt32)
	}
	w.p = binary.BigEndian.AppendUint32(w.p, uint32(n))
}

// scalar is a layout without parts.
type scalar struct {
	typ *types.Type
	get func(r *reader) value.Value
	put func(w *writer, v value.Value)
}

func (s scalar) read(r *reader) value.Value     { return s.get(r) }
func (s scalar) write(w *writer, v value.Value) { s.put(w, v) }

// number is a signed integer of size bytes.
func number(size int, order binary.ByteOrder) scalar {
	shift := 64 - 8*size
	return scalar{
		typ: intType(8 * size),
		get: func(r *reader) value.Value {
			p := r.Bytes(size, "a number")
			if p == nil {
				return value.Int(0)
			}
			var n uint64
			switch size {
			case 8:
				n = order.Uint64(p)
			case 4:
				n = uint64(order.Uint32(p))
			case 2:
				n = uint64(order.Uint16(p))
			case 1:
				n = uint64(p[0])
			}
			return value.Int(int64(n) << shift >> shift)
		},
		put: func(w *writer, v value.Value) {
			if !w.expects(v, value.KindInt) {
				return
			}
			n := v.Int()
			if n<<shift>>shift != n {
				w.fail("%d does not fit into %d bits", n, 8*size)
				return
			}
			var b [8]byte
			switch size {
			case 8:
				order.PutUint64(b[:], uint64(n))
			case 4:
				order.PutUint32(b[:], uint32(n))
			case 2:
				order.PutUint16(b[:], uint16(n))
			case 1:
				b[0] = byte(n)
			}
			w.p = append(w.p, b[:size]...)
		},
	}
}

var (
	i8    = number(1, binary.BigEndian)
	i16   = number(2, binary.BigEndian)
	i32   = number(4, binary.BigEndian)
	i64   = number(8, binary.BigEndian)
	i64le = number(8, binary.LittleEndian)

	boolean = scalar{
		typ: boolType,
		get: func(r *reader) value.Value { return value.Bool(r.Bool("a boolean")) },
		put: func(w *writer, v value.Value) {
			if !w.expects(v, value.KindBool) {
				return
			}
			if v.Bool() {
				w.p = append(w.p, 1)
			} else {
				w.p = append(w.p, 0)
			}
		},
	}

	// utf is writeUTF: 2-byte length and modified UTF-8.
	utf = scalar{
		typ: stringType,
		get: func(r *reader) value.Value {
			off := r.Offset()
			s := r.Text().String()
			r.mustBeText(off, s)
			return value.String(s)
		},
		put: func(w *writer, v value.Value) {
			if !w.expects(v, value.KindString) {
				return
			}
			p, err := java.AppendText(w.p, format.NewText(v.Text()))
			if err != nil {
				w.fail("%v", err)
				return
			}
			w.p = p
		},
	}

	bytesOf   = sized(binary.BigEndian, false) // int length, bytes
	textOf    = sized(binary.BigEndian, true)  // int length, UTF-8
	textLE    = sized(binary.LittleEndian, true)
	javaBytes = scalar{ // a Java object stream
		typ: bytesType,
		get: func(r *reader) value.Value {
			off := r.Offset()
			java.SkipObject(&r.Cursor)
			return value.Bytes(r.Since(off))
		},
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindBytes) {
				w.p = append(w.p, v.Text()...)
			}
		},
	}
)

// mustBeText records an error for a string that is not Unicode text.
func (r *reader) mustBeText(off int, s string) {
	if r.Err() == nil && !utf8.ValidString(s) {
		r.Fail(off, format.ErrUnsupported, "a string that is not UTF-8")
	}
}

// length reads the length or count of things of at least min bytes.
func (r *reader) length(order binary.ByteOrder, what string, min int) int {
	off := r.Offset()
	p := r.Bytes(4, "a length")
	if p == nil {
		return 0
	}
	n := int(int32(order.Uint32(p)))
	r.CheckCount(off, n, what, min)
	if r.Err() != nil {
		return 0
	}
	return n
}

// sized is a byte array or a text with an int length.
func sized(order binary.ByteOrder, text bool) scalar {
	typ := bytesType
	if text {
		typ = stringType
	}
	return scalar{
		typ: typ,
		get: func(r *reader) value.Value {
			n := r.length(order, "bytes", 1)
			off := r.Offset()
			p := r.Bytes(n, "bytes")
			if !text {
				return value.Bytes(p)
			}
			r.mustBeText(off, string(p))
			return value.String(string(p))
		},
		put: func(w *writer, v value.Value) {
			kind := value.KindBytes
			if text {
				kind = value.KindString
			}
			if !w.expects(v, kind) {
				return
			}
			if len(v.Text()) > math.MaxInt32 {
				w.fail("%d bytes, the format allows %d", len(v.Text()), math.MaxInt32)
				return
			}
			var b [4]byte
			order.PutUint32(b[:], uint32(len(v.Text())))
			w.p = append(append(w.p, b[:]...), v.Text()...)
		},
	}
}

// enum is a number with names.
type enum struct {
	of    layout
	names []string // by number
}

func (e enum) read(r *reader) value.Value {
	off := r.Offset()
	n := e.of.read(r).Int()
	if r.Err() == nil && (n < 0 || n >= int64(len(e.names))) {
		r.Fail(off, format.ErrCorrupt, "expected 0 to %d, found %d", len(e.names)-1, n)
	}
	if r.Err() != nil {
		return value.Null()
	}
	return value.String(e.names[n])
}

func (e enum) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindString) {
		return
	}
	for i, name := range e.names {
		if name == v.Text() {
			e.of.write(w, value.Int(int64(i)))
			return
		}
	}
	w.fail("expected one of %q, found %q", e.names, v.Text())
}

// field is a named part of a record. An omitted field has no bytes in a version of
// the structure, and is not in the record.
type field struct {
	name string
	of   layout
}

// since returns the field if a condition on the version holds, otherwise an omitted
// field.
func since(ok bool, name string, of layout) field {
	if !ok {
		return field{}
	}
	return field{name, of}
}

// record is fields in their order. A record with a class is the root of a structure,
// and its values carry the class.
type record struct {
	class string
	shape *value.Shape
	of    []layout
}

func fields(class string, all ...field) record {
	r := record{class: class, shape: &value.Shape{}}
	for _, f := range all {
		if f.of != nil {
			r.shape.Names = append(r.shape.Names, f.name)
			r.of = append(r.of, f.of)
		}
	}
	return r
}

func (l record) read(r *reader) value.Value {
	parts := make([]value.Value, len(l.of))
	for i, f := range l.of {
		parts[i] = f.read(r)
		if r.Err() != nil {
			return value.Null()
		}
	}
	return l.value(parts)
}

// value returns a record of parts. It keeps parts.
func (l record) value(parts []value.Value) value.Value {
	v := value.Record(l.shape, parts)
	if l.class != "" {
		v = v.WithClass(l.class)
	}
	return v
}

func (l record) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindRecord) {
		return
	}
	if v.Len() != len(l.of) {
		w.fail("expected the %d fields %q, found %d", len(l.of), l.shape.Names, v.Len())
		return
	}
	for i, f := range l.of {
		if v.Name(i) != l.shape.Names[i] {
			w.fail("expected field %q, found %q", l.shape.Names[i], v.Name(i))
			return
		}
		f.write(w, v.At(i))
	}
}

// list is an int count and elements of at least min bytes each.
type list struct {
	of  layout
	min int
}

func listOf(of layout, min int) list { return list{of, min} }

func (l list) read(r *reader) value.Value {
	n := r.length(binary.BigEndian, "elements", l.min)
	all := make([]value.Value, 0, min(n, 1024))
	for range n {
		all = append(all, l.of.read(r))
		if r.Err() != nil {
			return value.Null()
		}
	}
	return value.List(all)
}

func (l list) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindList) {
		return
	}
	w.int32(v.Len())
	for i := range v.Len() {
		l.of.write(w, v.At(i))
	}
}

// optional is a boolean that is true if a value follows; otherwise null. If absent is
// set, the boolean is true for null.
type optional struct {
	of     layout
	absent bool
}

func opt(of layout) optional { return optional{of: of} }

func (l optional) read(r *reader) value.Value {
	if r.Bool("whether a value follows") == l.absent {
		return value.Null()
	}
	return l.of.read(r)
}

func (l optional) write(w *writer, v value.Value) {
	boolean.write(w, value.Bool(v.IsNull() == l.absent))
	if !v.IsNull() {
		l.of.write(w, v)
	}
}

// nullAs is a layout in which one number means null, such as "none".
type nullAs struct {
	of   layout
	null int64
}

func (l nullAs) read(r *reader) value.Value {
	v := l.of.read(r)
	if v.Kind() == value.KindInt && v.Int() == l.null {
		return value.Null()
	}
	return v
}

func (l nullAs) write(w *writer, v value.Value) {
	if v.IsNull() {
		v = value.Int(l.null)
	}
	l.of.write(w, v)
}

// magic is a fixed number in front of a layout.
type magic struct {
	number uint32
	order  binary.ByteOrder
	of     layout
}

func (l magic) read(r *reader) value.Value {
	off := r.Offset()
	p := r.Bytes(4, "a magic number")
	if p == nil {
		return value.Null()
	}
	if n := l.order.Uint32(p); n != l.number {
		r.Fail(off, format.ErrCorrupt, "expected the magic number %08x, found %08x", l.number, n)
		return value.Null()
	}
	return l.of.read(r)
}

func (l magic) write(w *writer, v value.Value) {
	var b [4]byte
	l.order.PutUint32(b[:], l.number)
	w.p = append(w.p, b[:]...)
	l.of.write(w, v)
}

// inBytes is a layout that fills an int length and its bytes.
type inBytes struct{ of layout }

func (l inBytes) read(r *reader) value.Value {
	base := r.Offset() + 4
	p := r.Blob("a structure")
	if r.Err() != nil {
		return value.Null()
	}
	part := r.part(p)
	v := l.of.read(part)
	part.end()
	r.Adopt(&part.Cursor, base)
	return v
}

// part returns a reader of bytes that r has read.
func (r *reader) part(p []byte) *reader {
	part := newReader(p, r.depth+1)
	if part.depth > maxDepth {
		part.Fail(0, format.ErrLimit, "more than %d structures in each other", maxDepth)
	}
	return part
}

// end records an error unless all bytes are read.
func (r *reader) end() {
	if r.Remaining() > 0 {
		r.Fail(r.Offset(), format.ErrCorrupt, "%d trailing bytes", r.Remaining())
	}
}

func (l inBytes) write(w *writer, v value.Value) { w.sized(func() { l.of.write(w, v) }) }

// sized appends an int length and the bytes that f appends.
func (w *writer) sized(f func()) {
	at := len(w.p)
	w.int32(0)
	f()
	n := len(w.p) - at - 4
	if n > math.MaxInt32 {
		w.fail("%d bytes, the format allows %d", n, math.MaxInt32)
		return
	}
	binary.BigEndian.PutUint32(w.p[at:], uint32(n))
}

// rest is the bytes up to the end of the structure around it.
type rest struct{ of layout }

func (l rest) read(r *reader) value.Value {
	v := l.of.read(r)
	r.end()
	return v
}

func (l rest) write(w *writer, v value.Value) { l.of.write(w, v) }
