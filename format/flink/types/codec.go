package types

import (
	"slices"
	"strings"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/value"
)

// CodecOf returns the codec of the values written with the serializer that s
// describes. ok is false if such values are not decoded.
//
// Numbers are integers, floats, big integers and decimals; a char and a string are
// strings, byte[] is bytes, null and void are null. Tuples, lists, sets, arrays and
// rows are lists, maps are maps. A POJO is a record of its fields in the order of
// the serializer; an instance of a subclass has a class. An enum is the name of its
// constant. java.util.Date and Instant are instants; a date or time without a zone
// is of one of the kinds for those in package value. A value with a time to live is
// a list of the time (ms) and the value. Left or right of an either is a record
// with one field, "left" or "right"; a window is a record of "start" and "end"
// (ms), a timer of "timestamp", "key" and "namespace", and a row that is not an
// INSERT of its "kind" and "fields".
func CodecOf(s *Snapshot) (c value.Codec, ok bool) {
	c, err := NewCodec(s, Options{})
	return c, err == nil
}

// Options are facts about values that serializer snapshots do not record.
type Options struct {
	// Kryo is the version of Kryo that wrote the values: 2 in Flink 1.x, 5 in Flink
	// 2.x; 0 if it is not known, then values in Kryo are not decoded.
	Kryo int
}

// NewCodec is CodecOf with options, and with the reason why values are not decoded,
// which is a *NotDecoded.
func NewCodec(s *Snapshot, o Options) (value.Codec, error) {
	m := &maker{options: o}
	m.of = func(s *Snapshot) codec { return codecOf(m, s) }
	inner := m.of(s)
	if inner == nil {
		if m.why == nil {
			m.fail(s, Damaged)
		}
		return nil, m.why
	}
	return export(inner), nil
}

// Reason is a reason why the values of a serializer are not decoded.
type Reason string

// The reasons.
const (
	NoSnapshot Reason = "its serializer snapshot is missing"
	UserCode   Reason = "its bytes are written by user code"
	UserKryo   Reason = "Kryo writes the fields of a user class without their names and types"
	Damaged    Reason = "its serializer snapshot is not valid"
	NoLayout   Reason = "its layout is not known"
)

// NotDecoded is the error for a serializer whose values are not decoded. It matches
// format.ErrUnsupported.
type NotDecoded struct {
	Serializer string // name of the serializer: "KryoSerializer", or its class; "" if unknown
	Type       string // class of the values, if it is recorded
	Reason     Reason
}

// Error implements error.
func (e *NotDecoded) Error() string {
	switch {
	case e.Serializer == "":
		return string(e.Reason)
	case e.Type == "":
		return e.Serializer + ": " + string(e.Reason)
	}
	return e.Serializer + " of " + e.Type + ": " + string(e.Reason)
}

// Unwrap returns format.ErrUnsupported.
func (e *NotDecoded) Unwrap() error { return format.ErrUnsupported }

// maker makes codecs. It keeps the first reason why it made none.
type maker struct {
	of      func(*Snapshot) codec // codecOf; a field, because tables refer to it
	options Options
	why     *NotDecoded

	described map[*Snapshot]*described // not nil: codecs are made to be described, see TypeOf
}

// fail records a reason, unless there is one already, and returns nil.
func (m *maker) fail(s *Snapshot, why Reason) codec {
	if m.why == nil {
		m.why = &NotDecoded{Reason: why}
		if s != nil {
			m.why.Serializer, m.why.Type = serializerName(s.Class), s.Type
		}
	}
	return nil
}

// serializerName returns the name of a serializer for users: the simple name of one of
// Flink's.
func serializerName(class string) string {
	if strings.HasPrefix(class, flinkPackage) {
		class = simpleName(class)
	}
	return strings.TrimSuffix(class, "Snapshot")
}

// optional returns the codec of a snapshot that not all values need, or nil.
func (m *maker) optional(s *Snapshot) codec {
	why := m.why
	c := m.of(s)
	m.why = why
	return c
}

// codec reads and writes the values of one serializer. Readers and writers keep the
// first error. Counts are bounded by the bytes that are left; values that take no
// bytes are counted, see reader.empty.
type codec interface {
	skip(r *reader)
	read(r *reader) value.Value
	write(w *writer, v value.Value)
	parse(p *parser, n *node) value.Value
	describe(d *describer) *Type
}

// exported converts a codec to a value.Codec.
type exported struct {
	codec
	op op // of a primitive, which is read without a reader
}

func export(c codec) exported {
	s, _ := c.(scalar)
	return exported{c, s.op}
}

// reader reads values.
type reader struct {
	java.Cursor
	arena   *value.Arena
	own     value.Arena
	without int // number of values without a byte
	depth   int // of recursive values

	freeParts *parts // that are not used, linked
}

// maxRecursion limits the nesting of values whose type refers to itself.
const maxRecursion = 200

// enter reports whether a value of a recursive type may be nested further. leave
// must follow if it may.
func (r *reader) enter() bool {
	if r.depth++; r.depth > maxRecursion {
		r.Fail(r.Offset(), format.ErrLimit, "a value nested more than %d deep", maxRecursion)
	}
	return r.Err() == nil
}

func (r *reader) leave() { r.depth-- }

// start prepares for another value.
func (r *reader) start(p []byte) {
	r.Cursor = java.Of(p)
	r.arena, r.without, r.depth = &r.own, 0, 0
}

var readers = sync.Pool{New: func() any { return new(reader) }}

// Type returns the type of the values.
func (c exported) Type() *Type { return c.describe(&describer{}) }

// Skip implements [value.Codec].
func (c exported) Skip(p []byte) (int, error) {
	if n := c.op.length(p); n > 0 {
		return n, nil
	}
	r := readers.Get().(*reader)
	defer readers.Put(r)
	r.start(p)
	c.skip(r)
	return r.Offset(), r.Err()
}

// Read implements [value.Codec].
func (c exported) Read(p []byte) (v value.Value, n int, err error) {
	if n = c.op.length(p); n > 0 {
		if c.op == opText {
			return value.String(string(text(p[:n]))), n, nil
		}
		set(c.op, p, &v)
		return v, n, nil
	}
	r := readers.Get().(*reader)
	r.start(p)
	n, err = c.end(r, &v)
	return v, n, err
}

// ReadIn implements [value.ArenaCodec].
func (c exported) ReadIn(a *value.Arena, p []byte, v *value.Value) (int, error) {
	if n := c.op.length(p); n > 0 {
		if c.op == opText {
			*v = value.String(a.Text(text(p[:n])))
			return n, nil
		}
		*v = value.Value{}
		set(c.op, p, v)
		return n, nil
	}
	r := readers.Get().(*reader)
	r.start(p)
	r.arena = a
	return c.end(r, v)
}

// end reads the value and returns the reader to the pool.
func (c exported) end(r *reader, v *value.Value) (n int, err error) {
	*v = c.read(r)
	if n, err = r.Offset(), r.Err(); err != nil {
		*v, n = value.Value{}, 0
	}
	r.start(nil)
	readers.Put(r)
	return n, err
}

// Append implements [value.Codec].
func (c exported) Append(dst []byte, v value.Value) ([]byte, error) {
	w := writers.Get().(*writer)
	defer writers.Put(w)
	w.p, w.err, w.depth = dst, nil, 0
	c.write(w, v)
	p := w.p
	w.p = nil
	if w.err != nil {
		return dst, w.err
	}
	return p, nil
}

var writers = sync.Pool{New: func() any { return new(writer) }}

// other records an error for bytes that Flink reads but does not write.
func (r *reader) other(off int, what string) {
	r.Fail(off, format.ErrUnsupported, "%s, which Flink does not write, is not decoded", what)
}

// writer appends values.
type writer struct {
	p     []byte
	err   error
	depth int // of recursive values
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

// fits returns an integer, and whether v is one that fits into size bytes. It records an
// error if it is not.
func (w *writer) fits(v value.Value, size int) (n int64, ok bool) {
	if !w.expects(v, value.KindInt) {
		return 0, false
	}
	shift := 64 - 8*size
	if n = v.Int(); n<<shift>>shift != n {
		w.fail("%d does not fit into %d bits", n, 8*size)
		return 0, false
	}
	return n, true
}

// parts reports whether v has n parts, the number of its type, and records an error
// if it does not.
func (w *writer) parts(v value.Value, n int) bool {
	if v.Len() != n {
		w.fail("expected %v of %d parts, found %d", v.Kind(), n, v.Len())
	}
	return v.Len() == n
}

// codecOf returns the codec of a snapshot, or nil.
func codecOf(m *maker, s *Snapshot) codec {
	if m.described == nil {
		return makeCodecOf(m, s)
	}
	if c := m.described[s]; c != nil {
		return c
	}
	why := m.why
	m.why = nil
	c := &described{codec: makeCodecOf(m, s), s: s, why: m.why}
	m.why = why
	if inner, ok := c.codec.(*described); ok { // one that is the same as the one in it
		c = inner
	} else if s != nil {
		for _, n := range s.Nested {
			c.nested = append(c.nested, m.of(n))
		}
	}
	m.described[s] = c
	return c
}

func makeCodecOf(m *maker, s *Snapshot) codec {
	switch {
	case s == nil:
		return m.fail(s, NoSnapshot)
	case s.given != nil:
		return s.given
	case s.Unknown:
		return m.fail(s, UserCode)
	case s.Old:
		return legacyCodec(m, s)
	}
	k, ok := lookup(known, s.Class)
	switch {
	case !ok:
		return m.fail(s, UserCode)
	case k.value != nil:
		return k.value
	case k.codec == nil:
		if k.why == "" {
			return m.fail(s, NoLayout)
		}
		return m.fail(s, k.why)
	}
	var nested []codec
	if !k.alone {
		if nested, ok = m.nested(s.Nested); !ok {
			return nil
		}
	}
	c := k.codec(m, s, nested)
	if c == nil {
		m.fail(s, Damaged)
	}
	return c
}

func hasDuplicates(names []string) bool {
	sorted := slices.Sorted(slices.Values(names))
	return len(slices.Compact(sorted)) < len(names)
}
