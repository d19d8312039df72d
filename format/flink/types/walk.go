package types

import (
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// Snapshot is one serializer snapshot and the snapshots nested in it.
type Snapshot struct {
	Class   string // binary name of the snapshot class
	Version int32  // for a composite: its outer version
	Type    string // class of the values, if the body has it
	// Names are the constants of an enum in the order of their numbers, the fields
	// of a POJO, or the registrations of a Kryo serializer.
	Names []string
	// Nested are the nested snapshots in the order of the values: elements, key and
	// value, fields. One is nil if the file omits it.
	Nested []*Snapshot
	// Subclasses are the registered subclasses of a POJO, then the others.
	Subclasses []*Snapshot
	// Raw is the snapshot from its class name to its end: a view of the input.
	Raw []byte
	// Unknown: the class is not in the table. Such a snapshot is accepted only
	// within a frame with a length, and Raw extends to the end of the frame.
	Unknown bool

	// Old: a config snapshot, as releases before 1.7 wrote them and releases up to
	// 1.16 wrapped them. Newer releases do not read it (FLINK-29807).
	Old bool

	numbers     []int32
	serializers []string          // of the registrations in Names, "" for Kryo's
	defaults    map[string]string // serializers of Kryo for classes and those that extend them
	serializer  []byte            // next to a config snapshot, the serializer as a Java object
	parsed      *java.Object      // the serializer itself, without a snapshot
	objects     [][]byte          // Java objects: SQL types, serializers
	text        string            // an Avro schema, or the source of a builder
	mark        bool
	sql         []*logical // instead of objects, of a type that was parsed
	given       codec      // of a type that was parsed and that is not Flink's
	subclasses  []string   // names of Subclasses
	registered  int
}

// UnknownClass is the error for a snapshot whose end is unknown, because its class,
// or this version of it, is not in the table. It matches format.ErrUnsupported.
type UnknownClass struct {
	Class   string
	Version int32
}

// Error implements error.
func (e *UnknownClass) Error() string {
	return fmt.Sprintf("cannot determine the length of serializer snapshot %q version %d", e.Class, e.Version)
}

// Unwrap returns format.ErrUnsupported.
func (e *UnknownClass) Unwrap() error { return format.ErrUnsupported }

// Numbers on disk. Wire format: never change.
const (
	wrapperOld       = 1
	wrapperNew       = 2
	adapterVersion   = 0x7a53c4f0
	compositeMagic   = 911108
	compositeVersion = 3
	delegateMagic    = 1333245
	delegateVersion  = 1
	optionalMapMagic = 0x000004f2c69a3d70

	maxDepth = 64
)

// Skip reads one serializer snapshot in its wrapper (spec A2):
//
//	int  2   then  UTF class, int version, body     Flink 1.7 and later
//	int  1   then  UTF class, body with its version Flink 1.4 to 1.6
//
// It returns the snapshot and how many bytes of p it takes. The snapshot is a view
// of p.
func Skip(p []byte) (s *Snapshot, n int, err error) {
	w := &walker{c: java.NewCursor(p)}
	s = w.wrapper(0)
	return s, w.c.Offset(), w.c.Err()
}

// SkipVersioned is Skip for a snapshot without a wrapper: UTF class, int version,
// body.
func SkipVersioned(p []byte) (s *Snapshot, n int, err error) {
	w := &walker{c: java.NewCursor(p)}
	s = w.versioned(0)
	return s, w.c.Offset(), w.c.Err()
}

// SkipBlock reads serializers and their snapshots as Flink 1.3 to 1.6 wrote them
// (spec A10): offset tables and one blob, of known length. It returns the
// snapshots and how many bytes of p they take.
func SkipBlock(p []byte) (all []*Snapshot, n int, err error) {
	w := &walker{c: java.NewCursor(p)}
	all = w.block(0)
	return all, w.c.Offset(), w.c.Err()
}

// SkipSerializer reads a serializer as a Java object stream, without a snapshot: what
// Flink before 1.4.1 wrote for timers (spec flink-keyed-state 10.2). The class of the
// result is the class of the serializer. It returns how many bytes of p it takes.
func SkipSerializer(p []byte) (*Snapshot, int, error) {
	c := java.NewCursor(p)
	s := serializerOf(java.ReadObject(c), 0)
	s.Raw = c.Since(0)
	return s, c.Offset(), c.Err()
}

type walker struct{ c *java.Cursor }

func (w *walker) deep(depth int) bool {
	if depth > maxDepth {
		w.c.Fail(w.c.Offset(), format.ErrLimit, "serializer snapshots nested more than %d deep", maxDepth)
	}
	return w.c.Err() != nil
}

func (w *walker) wrapper(depth int) *Snapshot {
	off := w.c.Offset()
	switch v := w.c.I32(); {
	case w.c.Err() != nil:
	case v == wrapperNew:
		return w.versioned(depth)
	case v == wrapperOld:
		return w.config(depth)
	default:
		w.c.Fail(off, format.ErrCorrupt, "expected wrapper version 1 or 2 of a serializer snapshot, found %d", v)
	}
	return nil
}

// versioned reads class, version and body.
func (w *walker) versioned(depth int) *Snapshot {
	c, off := w.c, w.c.Offset()
	s := &Snapshot{Class: c.Name().String()}
	s.Version = c.I32()
	if w.deep(depth) {
		return s
	}
	if s.Version == adapterVersion {
		s.serializer = w.serializer()
		w.configBody(s, off, depth)
	} else if k, ok := lookup(known, s.Class); ok {
		w.body(s, k, off, depth)
	} else {
		w.unknown(s, off)
	}
	s.Raw = c.Since(off)
	return s
}

func (w *walker) unknown(s *Snapshot, off int) {
	s.Unknown = true
	u := &UnknownClass{s.Class, s.Version}
	w.c.Fail(off, u, "%v", u)
}

func (w *walker) body(s *Snapshot, k class, off, depth int) {
	c := w.c
	if k.body == composite {
		// Flink 1.7 had no version of the base layout: the number is the outer
		// version already.
		if s.Version == compositeVersion {
			at := c.Offset()
			if m := c.I32(); c.Err() == nil && m != compositeMagic {
				c.Fail(at, format.ErrCorrupt, "serializer snapshot %q: expected magic 0x%x, found 0x%x", s.Class, compositeMagic, uint32(m))
			}
			s.Version = c.I32()
		} else if s.Version != 1 && s.Version != 2 {
			w.unknown(s, off)
		}
	}
	if c.Err() == nil && (s.Version < k.min || s.Version > k.max) {
		w.unknown(s, off)
	}
	if c.Err() != nil {
		return
	}
	switch k.body {
	case simple:
		if s.Version == 2 {
			c.Text()
		}
	case generic:
		s.Type = c.Text().String()
	case fields:
		w.outer(s, k.outer, depth)
	case composite:
		if s.Version >= k.from {
			w.outer(s, k.outer, depth)
		}
		w.delegate(s, k.nested, depth)
	case genericArray7:
		s.Type = c.Text().String()
		w.delegate(s, k.nested, depth)
	case sortedMap:
		java.SkipObject(c)
		w.delegate(s, k.nested, depth)
	case rowData:
		n := c.Count("logical types of a row", 5)
		for range n {
			w.object(s)
		}
		w.delegate(s, n, depth)
	case wrapped:
		w.outer(s, k.outer, depth)
		s.Nested = []*Snapshot{w.versioned(depth + 1)}
	case avro:
		if s.Version == 3 {
			s.Type = w.vstring()
			s.text = w.vstring()
		} else {
			if s.Version == 2 {
				s.Type = c.Text().String()
			}
			s.text = c.Text().String()
		}
	case pojo:
		w.pojo(s, depth)
	case kryo:
		s.Type = c.Text().String()
		s.Names = w.optionalMap(func(_ string, p []byte, _ int) { s.serializers = append(s.serializers, registered(p)) })
		s.defaults = map[string]string{}
		w.optionalMap(func(class string, p []byte, _ int) { s.defaults[class] = registeredObject(java.NewCursor(p)) })
		w.optionalMap(func(class string, p []byte, _ int) { s.defaults[class] = java.NewCursor(p).Text().String() })
	}
}

// object reads a Java object.
func (w *walker) object(s *Snapshot) {
	off := w.c.Offset()
	java.SkipObject(w.c)
	s.objects = append(s.objects, w.c.Since(off))
}

// outer reads items by their letters; see outer in table.go, and for legacy bodies
// B (a block), K (Kryo registrations), P (a table of a POJO).
func (w *walker) outer(s *Snapshot, items outer, depth int) {
	c := w.c
	for _, item := range items {
		switch item {
		case 't':
			s.Type = c.Text().String()
		case 's':
			s.text = c.Text().String()
		case 'n':
			s.numbers = append(s.numbers, c.I32())
		case 'b':
			s.mark = c.Bool("a flag of " + s.Class)
		case 'j':
			w.object(s)
		case 'l':
			c.Blob("bytes of " + s.Class)
		case 'e', 'E':
			size := 2
			if item == 'E' {
				size = 6
			}
			for range c.Count("enum constants", size) {
				s.Names = append(s.Names, c.Text().String())
				if item == 'E' {
					s.numbers = append(s.numbers, c.I32())
				}
			}
		case 'B':
			s.Nested = w.block(depth + 1)
		case 'K':
			for range c.Count("registrations", 8) {
				s.Names = append(s.Names, c.Text().String())
				from := c.Offset()
				w.registration()
				s.serializers = append(s.serializers, registered(c.Since(from)))
			}
		case 'P':
			w.pojoTable(s, depth)
		}
	}
}

// delegate reads the nested snapshots: int magic, int 1, int count, snapshots.
func (w *walker) delegate(s *Snapshot, want, depth int) {
	c, off := w.c, w.c.Offset()
	if m, v := c.I32(), c.I32(); c.Err() == nil && (m != delegateMagic || v != delegateVersion) {
		c.Fail(off, format.ErrCorrupt, "nested serializer snapshots: expected 0x%x version %d, found 0x%x version %d", delegateMagic, delegateVersion, uint32(m), v)
	}
	off = c.Offset()
	n := c.Count("nested serializer snapshots", 6)
	if c.Err() == nil && want >= 0 && n != want {
		c.Fail(off, format.ErrCorrupt, "serializer snapshot %q: expected %d nested ones, found %d", s.Class, want, n)
	}
	if c.Err() != nil {
		return
	}
	for range n {
		s.Nested = append(s.Nested, w.versioned(depth+1))
		if c.Err() != nil {
			return
		}
	}
}

// framed reads p, which starts at off and must end with the snapshot. If the class
// is unknown, the frame is the snapshot.
func (w *walker) framed(p []byte, off int, walk func(*walker) *Snapshot) *Snapshot {
	part := &walker{c: java.NewCursor(p)}
	s := walk(part)
	err := part.c.Err()
	if u := (*UnknownClass)(nil); errors.As(err, &u) {
		return &Snapshot{Class: u.Class, Version: u.Version, Raw: p, Unknown: true}
	}
	if err == nil && part.c.Remaining() > 0 {
		part.c.Fail(part.c.Offset(), format.ErrCorrupt, "%d bytes after a serializer snapshot", part.c.Remaining())
	}
	w.c.Adopt(part.c, off)
	return s
}

func (w *walker) pojo(s *Snapshot, depth int) {
	s.Type = w.c.Text().String()
	nested := func(to *[]*Snapshot) func(string, []byte, int) {
		return func(_ string, value []byte, off int) {
			if value == nil {
				*to = append(*to, nil)
				return
			}
			*to = append(*to, w.framed(value, off, func(p *walker) *Snapshot { return p.versioned(depth + 1) }))
		}
	}
	s.Names = w.optionalMap(nested(&s.Nested))
	s.subclasses = w.optionalMap(nested(&s.Subclasses))
	s.registered = len(s.subclasses)
	s.subclasses = append(s.subclasses, w.optionalMap(nested(&s.Subclasses))...)
}

// optionalMap reads long magic, int count, and for each entry UTF name, a key and a
// value: bool present, then int length and bytes. It calls value with the bytes of
// each value, or nil.
func (w *walker) optionalMap(value func(name string, p []byte, off int)) []string {
	c, off := w.c, w.c.Offset()
	if m := c.I64(); c.Err() == nil && m != optionalMapMagic {
		c.Fail(off, format.ErrCorrupt, "a map of optional entries: expected magic 0x%x, found 0x%x", uint64(optionalMapMagic), uint64(m))
	}
	n := c.Count("optional entries", 4)
	var names []string
	for range n {
		names = append(names, c.Text().String())
		if c.Bool("a presence flag") {
			c.Blob("a key")
		}
		var p []byte
		var at int
		if c.Bool("a presence flag") {
			at = c.Offset() + 4
			p = c.Blob("a value")
		}
		if c.Err() != nil {
			return names
		}
		value(names[len(names)-1], p, at)
	}
	return names
}

// registered returns the class of the serializer of a registration, "" if it is
// Kryo's, or "?".
func registered(p []byte) string {
	c := java.NewCursor(p)
	c.Text()
	switch kind := c.I32(); {
	case c.Err() == nil && kind == 0:
		return ""
	case c.Err() == nil && kind == 1:
		return c.Text().String()
	case c.Err() == nil && kind == 2:
		return registeredObject(c)
	}
	return "?"
}

// registeredObject returns the class of the serializer in the Java object that wraps it
// in a registration, or "?".
func registeredObject(c *java.Cursor) string {
	if o := java.ReadObject(c).Object("serializer"); c.Err() == nil && o != nil {
		return o.Class
	}
	return "?"
}

// registration reads the rest of a Kryo registration: UTF class, int kind, and UTF
// class or a Java object by kind.
func (w *walker) registration() {
	c := w.c
	c.Text()
	off := c.Offset()
	switch kind := c.I32(); {
	case c.Err() != nil || kind == 0:
	case kind == 1:
		c.Text()
	case kind == 2:
		java.SkipObject(c)
	default:
		c.Fail(off, format.ErrCorrupt, "unknown kind %d of a Kryo registration", kind)
	}
}

// config reads a config snapshot in wrapper version 1: UTF class, body. Other
// classes have class, version and body.
func (w *walker) config(depth int) *Snapshot {
	c, off := w.c, w.c.Offset()
	s := &Snapshot{Class: c.Name().String()}
	if w.deep(depth) {
		return s
	}
	if _, ok := lookup(legacy, s.Class); ok {
		w.configBody(s, off, depth)
	} else if k, ok := lookup(known, s.Class); ok {
		s.Version = c.I32()
		w.body(s, k, off, depth)
	} else {
		s.Version = c.I32()
		w.unknown(s, off)
	}
	s.Raw = c.Since(off)
	return s
}

func (w *walker) configBody(s *Snapshot, off, depth int) {
	s.Old = true
	k, ok := lookup(legacy, s.Class)
	s.Version = w.c.I32()
	if w.c.Err() != nil {
		return
	}
	if !ok || s.Version < k.min || s.Version > 2 {
		w.unknown(s, off)
		return
	}
	w.outer(s, k.outer, depth)
}

// serializer reads a serializer object: int 1, int length, Java object.
func (w *walker) serializer() []byte {
	off := w.c.Offset()
	if v := w.c.I32(); w.c.Err() == nil && v != 1 {
		w.c.Fail(off, format.ErrCorrupt, "expected a serializer object of version 1, found %d", v)
	}
	return w.c.Blob("a serializer object")
}

// block reads int n, n times two int offsets (serializer, snapshot), int length, and
// the blob that the offsets refer to.
func (w *walker) block(depth int) []*Snapshot {
	c := w.c
	if w.deep(depth) {
		return nil
	}
	at := c.Offset()
	n := c.Count("serializers", 8)
	offs := make([]int, 0, 2*n+1)
	for range 2 * n {
		offs = append(offs, int(c.I32()))
	}
	base := c.Offset() + 4
	blob := c.Blob("serializers")
	offs = append(offs, len(blob))
	if c.Err() == nil && offs[0] != 0 {
		c.Fail(at, format.ErrCorrupt, "expected the first of %d serializers at 0, found %d", n, offs[0])
	}
	var all []*Snapshot
	for i := 0; i < n && c.Err() == nil; i++ {
		a, b, end := offs[2*i], offs[2*i+1], offs[2*i+2]
		if a > b || b > end || end > len(blob) {
			c.Fail(at, format.ErrCorrupt, "serializer %d has invalid offsets %d, %d and %d in %d bytes", i, a, b, end, len(blob))
			return all
		}
		var serializer []byte
		w.framed(blob[a:b], base+a, func(p *walker) *Snapshot { serializer = p.serializer(); return nil })
		s := w.framed(blob[b:end], base+b, func(p *walker) *Snapshot { return p.wrapper(depth + 1) })
		all = append(all, s.with(serializer))
	}
	return all
}

// pojoTable reads one of the three tables of an old POJO snapshot: a block with a
// name before each entry.
func (w *walker) pojoTable(s *Snapshot, depth int) {
	c := w.c
	n := c.Count("entries of a POJO", 8)
	offs := make([]int, 0, 2*n)
	for range 2 * n {
		offs = append(offs, int(c.I32()))
	}
	base := c.Offset() + 4
	blob := java.NewCursor(c.Blob("entries of a POJO"))
	for i := 0; i < n && c.Err() == nil && blob.Err() == nil; i++ {
		s.Names = append(s.Names, blob.Text().String())
		p := &walker{c: blob}
		if blob.Offset() != offs[2*i] {
			blob.Fail(blob.Offset(), format.ErrCorrupt, "entry %d of a POJO has invalid offset %d", i, offs[2*i])
		}
		serializer := p.serializer()
		if blob.Err() == nil && blob.Offset() != offs[2*i+1] {
			blob.Fail(blob.Offset(), format.ErrCorrupt, "the snapshot of entry %d of a POJO has invalid offset %d", i, offs[2*i+1])
		}
		s.Nested = append(s.Nested, p.wrapper(depth+1).with(serializer))
	}
	s.numbers = append(s.numbers, int32(n))
	if blob.Err() == nil && blob.Remaining() > 0 {
		blob.Fail(blob.Offset(), format.ErrCorrupt, "%d bytes after the entries of a POJO", blob.Remaining())
	}
	c.Adopt(blob, base)
}

// with adds the serializer object that a file has next to a config snapshot.
func (s *Snapshot) with(serializer []byte) *Snapshot {
	if s != nil {
		s.serializer = serializer
	}
	return s
}

// vstring reads a string as StringSerializer writes it; null is "".
func (w *walker) vstring() string {
	r := reader{Cursor: *w.c}
	r.arena = &r.own
	v := stringCodec.get(&r)
	*w.c = r.Cursor
	return v.Text()
}
