package types

import (
	"math"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/value"
)

// array reads int n and n values of at least size bytes.
type array struct {
	size int
	one  codec
}

func (a array) skip(r *reader) {
	n := r.Count("elements", a.size)
	if s, ok := a.one.(scalar); ok && s.size == a.size {
		r.Bytes(n*a.size, "the elements of an array")
		return
	}
	for range n {
		if a.one.skip(r); r.Err() != nil {
			return
		}
	}
}

func (a array) read(r *reader) value.Value {
	n := r.Count("elements", a.size)
	all := make([]value.Value, 0, min(n, 4096))
	for range n {
		all = append(all, a.one.read(r))
		if r.Err() != nil {
			return value.Null()
		}
	}
	return value.List(all)
}

func (a array) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindList) || !w.count(v.Len()) {
		return
	}
	for i := range v.Len() {
		a.one.write(w, v.At(i))
	}
}

// count appends a number of parts.
func (w *writer) count(n int) bool {
	if n > math.MaxInt32 {
		w.fail("%d parts: expected up to %d", n, math.MaxInt32)
		return false
	}
	w.int(int64(n), 4)
	return true
}

// present marks a null that is the value of something that is not null. Nested
// marks count.
func (r *reader) present(v value.Value) value.Value {
	if v.IsNull() && r.Err() == nil {
		if v.Variant() == math.MaxUint8 {
			r.other(r.Offset(), "a null with more marks than spt supports")
		}
		return v.WithVariant(v.Variant() + 1)
	}
	return v
}

// absent reports whether v is a null that present did not mark. Otherwise it
// returns v without the mark.
func absent(v value.Value) (inner value.Value, null bool) {
	if !v.IsNull() {
		return v, false
	}
	if v.Variant() == 0 {
		return v, true
	}
	return v.WithVariant(v.Variant() - 1), false
}

// nullIf reads a mark before a value, and no value if the mark equals null.
type nullIf struct {
	null byte
	one  codec
}

func (n nullIf) skip(r *reader) {
	if r.Bool("a null flag") != (n.null == 1) {
		n.one.skip(r)
	}
}

func (n nullIf) read(r *reader) value.Value {
	if r.Bool("a null flag") == (n.null == 1) {
		return value.Null()
	}
	return r.present(n.one.read(r))
}

func (n nullIf) write(w *writer, v value.Value) {
	inner, null := absent(v)
	w.bool(null == (n.null == 1))
	if !null {
		n.one.write(w, inner)
	}
}

// nullable reads a null flag, and a value or the padding of a null.
type nullable struct {
	padding int
	one     codec
}

func (n nullable) skip(r *reader) {
	if r.Bool("a null flag") {
		r.Bytes(n.padding, "the padding of a null")
		return
	}
	n.one.skip(r)
}

func (n nullable) read(r *reader) value.Value {
	if !r.Bool("a null flag") {
		return r.present(n.one.read(r))
	}
	off := r.Offset()
	for _, b := range r.Bytes(n.padding, "the padding of a null") {
		if b != 0 {
			r.other(off, "non-zero padding of a null")
			break
		}
	}
	return value.Null()
}

func (n nullable) write(w *writer, v value.Value) {
	inner, null := absent(v)
	if w.bool(null); !null {
		n.one.write(w, inner)
		return
	}
	w.p = append(w.p, make([]byte, n.padding)...)
}

// mapOf reads int n and n keys and values.
type mapOf struct{ key, value codec }

func (m mapOf) skip(r *reader) {
	for range r.Count("entries", 2) {
		m.key.skip(r)
		if m.value.skip(r); r.Err() != nil {
			return
		}
	}
}

func (m mapOf) read(r *reader) value.Value {
	n := r.Count("entries", 2)
	all := make([]value.Value, 0, 2*min(n, 4096))
	for range n {
		all = append(all, m.key.read(r), m.value.read(r))
		if r.Err() != nil {
			return value.Null()
		}
	}
	return value.Map(all)
}

func (m mapOf) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindMap) || !w.count(v.Len()) {
		return
	}
	for i := range v.Len() {
		m.key.write(w, v.Key(i))
		m.value.write(w, v.At(i))
	}
}

// tuple reads fields without names.
type tuple []codec

func (t tuple) skip(r *reader) {
	for _, f := range t {
		f.skip(r)
	}
}

func (t tuple) read(r *reader) value.Value {
	all := make([]value.Value, len(t))
	for i, f := range t {
		all[i] = f.read(r)
	}
	return value.List(all)
}

func (t tuple) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindList) || !w.parts(v, len(t)) {
		return
	}
	for i, f := range t {
		f.write(w, v.At(i))
	}
}

// record reads fields with names, without a header.
type record struct {
	shape  *value.Shape
	fields []codec
}

func (c record) skip(r *reader) { tuple(c.fields).skip(r) }

func (c record) read(r *reader) value.Value {
	all := make([]value.Value, len(c.fields))
	for i, f := range c.fields {
		all[i] = f.read(r)
	}
	return value.Record(c.shape, all)
}

func (c record) write(w *writer, v value.Value) {
	if w.fields(v, c.shape) {
		for i, f := range c.fields {
			f.write(w, v.At(i))
		}
	}
}

// fields reports whether v is a record with the fields of shape, and records an
// error if it is not.
func (w *writer) fields(v value.Value, shape *value.Shape) bool {
	if !w.expects(v, value.KindRecord) {
		return false
	}
	if v.Shape() != shape && !slices.Equal(v.Shape().Names, shape.Names) {
		w.fail("expected the fields %s, found %s", strings.Join(shape.Names, ", "), strings.Join(v.Shape().Names, ", "))
		return false
	}
	return w.parts(v, len(shape.Names))
}

// rowKinds are the kinds of rows by their numbers.
var rowKinds = [...]string{"INSERT", "UPDATE_BEFORE", "UPDATE_AFTER", "DELETE"}

var changedRow = &value.Shape{Names: []string{"kind", "fields"}}

// row reads a mask and the fields that are not null (spec flink-serializers B8).
// Bits count from the highest bit of the first byte: two bits of the kind, if rows
// have one, the lower one first, and one null bit per field.
type row struct {
	kinds  int // number of bits of the kind
	fields []codec
}

func rowOf(fields []codec, hasKind bool) codec {
	c := row{fields: fields}
	if hasKind {
		c.kinds = 2
	}
	if c.kinds+len(fields) == 0 {
		return nil
	}
	return c
}

func (c row) size() int { return (c.kinds + len(c.fields) + 7) / 8 }

func bit(mask []byte, i int) int { return int(mask[i/8]>>(7-i%8)) & 1 }

func (c row) skip(r *reader) {
	mask := r.Bytes(c.size(), "the mask of a row")
	for i, f := range c.fields {
		if r.Err() != nil {
			return
		}
		if bit(mask, c.kinds+i) == 0 {
			f.skip(r)
		}
	}
}

func (c row) read(r *reader) value.Value {
	off := r.Offset()
	mask := r.Bytes(c.size(), "the mask of a row")
	if r.Err() != nil {
		return value.Null()
	}
	for i := c.kinds + len(c.fields); i < 8*len(mask); i++ {
		if bit(mask, i) != 0 {
			r.other(off, "a row with more null bits than fields")
		}
	}
	all := make([]value.Value, len(c.fields))
	for i, f := range c.fields {
		if bit(mask, c.kinds+i) == 0 {
			all[i] = r.present(f.read(r))
		}
	}
	if c.kinds > 0 {
		if kind := bit(mask, 0) | bit(mask, 1)<<1; kind > 0 {
			return value.Record(changedRow, []value.Value{value.String(rowKinds[kind]), value.List(all)})
		}
	}
	return value.List(all)
}

func (c row) write(w *writer, v value.Value) {
	kind := 0
	if v.Kind() == value.KindRecord && c.kinds > 0 {
		if !w.fields(v, changedRow) {
			return
		}
		name := v.At(0).Text()
		if kind = slices.Index(rowKinds[:], name); kind < 0 {
			w.fail("expected one of the row kinds %s, found %q", strings.Join(rowKinds[:], ", "), name)
			return
		}
		v = v.At(1)
	}
	if !w.expects(v, value.KindList) || !w.parts(v, len(c.fields)) {
		return
	}
	mask := make([]byte, c.size())
	if c.kinds > 0 {
		mask[0] = byte(kind&1<<7 | kind>>1<<6)
	}
	at := len(w.p)
	w.p = append(w.p, mask...)
	for i, f := range c.fields {
		inner, null := absent(v.At(i))
		if null {
			k := c.kinds + i
			w.p[at+k/8] |= 1 << (7 - k%8)
			continue
		}
		f.write(w, inner)
	}
}

var leftShape, rightShape = &value.Shape{Names: []string{"left"}}, &value.Shape{Names: []string{"right"}}

// either reads a flag, and the value of the left or right type.
type either struct{ left, right codec }

func (e either) skip(r *reader) {
	if r.Bool("left") {
		e.left.skip(r)
		return
	}
	e.right.skip(r)
}

func (e either) read(r *reader) value.Value {
	if r.Bool("left") {
		return value.Record(leftShape, []value.Value{e.left.read(r)})
	}
	return value.Record(rightShape, []value.Value{e.right.read(r)})
}

func (e either) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindRecord) {
		return
	}
	if left, ok := v.Field("left"); ok && v.Len() == 1 {
		w.bool(true)
		e.left.write(w, left)
		return
	}
	if w.fields(v, rightShape) {
		w.bool(false)
		e.right.write(w, v.At(0))
	}
}

// Flags of an object. Wire format: never change.
const (
	pojoNull   = 1 // nothing follows
	pojoPlain  = 2 // per field a null flag and a value
	pojoNamed  = 4 // UTF class, a value of that subclass
	pojoTagged = 8 // byte number of a registered subclass, a value of that subclass
)

// pojoOf is the codec of objects: byte flags, then the content by flags.
type pojoOf struct {
	class      string
	shape      *value.Shape
	fields     []codec
	subclasses []string // registered ones first
	registered int
	subs       []codec // codecs of subclasses, or nil
}

func (s *Snapshot) pojo(fields []codec) codec {
	c := pojoOf{s.Type, &value.Shape{Names: s.Names}, make([]codec, len(fields)), s.subclasses, s.registered, make([]codec, len(s.Subclasses))}
	for i, f := range fields {
		c.fields[i] = nullIf{1, f}
	}
	for i, sub := range s.Subclasses {
		c.subs[i] = codecOf(sub)
	}
	return c
}

// flags reads the head of an object: its flags and the number of its subclass.
func (c pojoOf) flags(r *reader) (flags byte, sub int) {
	off := r.Offset()
	flags = r.U8()
	sub = -1
	switch flags {
	case pojoNull, pojoPlain:
		return flags, sub
	case pojoNamed:
		name := r.Text()
		if _, raw := name.Raw(); !raw {
			if i := slices.Index(c.subclasses, name.String()); i >= c.registered {
				sub = i
			}
		}
	case pojoTagged:
		if i := int(r.U8()); i < c.registered && slices.Index(c.subclasses, c.subclasses[i]) == i {
			sub = i
		}
	default:
		r.Fail(off, format.ErrCorrupt, "invalid flags 0x%02x of an object", flags)
	}
	switch {
	case r.Err() != nil:
	case sub < 0 || sub >= len(c.subs):
		r.Fail(off, format.ErrUnsupported, "an object of an unregistered subclass of %q without a snapshot is not decoded", c.class)
	case c.subs[sub] == nil:
		r.Fail(off, format.ErrUnsupported, "an object of subclass %q is not decoded", c.subclasses[sub])
	}
	return flags, sub
}

func (c pojoOf) skip(r *reader) {
	flags, sub := c.flags(r)
	switch {
	case r.Err() != nil || flags == pojoNull:
	case sub >= 0:
		c.subs[sub].skip(r)
	default:
		tuple(c.fields).skip(r)
	}
}

func (c pojoOf) read(r *reader) value.Value {
	flags, sub := c.flags(r)
	switch {
	case r.Err() != nil || flags == pojoNull:
		return value.Null()
	case sub < 0:
		return record{c.shape, c.fields}.read(r)
	}
	off := r.Offset()
	v := c.subs[sub].read(r)
	if k := v.Kind(); v.Class() != "" || v.Variant() != 0 || k != value.KindNull && k != value.KindRecord && k != value.KindList {
		r.Fail(off, format.ErrUnsupported, "an object of subclass %q that is %v is not decoded", c.subclasses[sub], k)
	}
	return v.WithClass(c.subclasses[sub])
}

func (c pojoOf) write(w *writer, v value.Value) {
	class := v.Class()
	switch {
	case v.IsNull() && class == "":
		w.p = append(w.p, pojoNull)
		return
	case class == "":
		w.p = append(w.p, pojoPlain)
		record{c.shape, c.fields}.write(w, v)
		return
	}
	sub := slices.Index(c.subclasses, class)
	if sub < 0 || sub >= len(c.subs) || c.subs[sub] == nil {
		w.fail("%q is not a known subclass of %q", class, c.class)
		return
	}
	if sub < c.registered {
		w.p = append(w.p, pojoTagged, byte(sub))
	} else {
		p, err := java.AppendText(append(w.p, pojoNamed), format.NewText(class))
		if err != nil {
			w.fail("class: %v", err)
			return
		}
		w.p = p
	}
	c.subs[sub].write(w, v.WithClass(""))
}
