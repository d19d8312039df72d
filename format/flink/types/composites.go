package types

import (
	"math"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// array reads int n and n values of at least size bytes.
type array struct {
	size int
	one  codec
}

func (a array) skip(r *reader) {
	n := r.elements(a.size)
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
	return value.List(r.list(r.elements(a.size), a.one))
}

// list reads n values.
func (r *reader) list(n int, one codec) []value.Value {
	if n > growFrom {
		all := make([]value.Value, 0, growFrom)
		for range n {
			all = append(all, one.read(r))
			if r.Err() != nil {
				return nil
			}
		}
		return all
	}
	all := r.arena.Values(n)
	s, ok := one.(scalar)
	for i := range all {
		if !ok || s.op == 0 || !r.quick(s.op, &all[i]) {
			all[i] = one.read(r)
		}
		if r.Err() != nil {
			return nil
		}
	}
	return all
}

// growFrom is the number of parts from which memory grows with what is read.
const growFrom = 4096

// maxEmpty limits the number of values in one that take no bytes.
const maxEmpty = 1 << 20

// elements reads a count of values of at least size bytes; 0 is for values without
// bytes.
func (r *reader) elements(size int) int {
	off := r.Offset()
	if size > 0 {
		return r.Count("elements", size)
	}
	n := int(r.I32())
	if n < 0 {
		r.Fail(off, format.ErrCorrupt, "elements: invalid count %d", n)
	}
	r.empty(off, n)
	if r.Err() != nil {
		return 0
	}
	return n
}

// empty counts values that take no bytes.
func (r *reader) empty(off, n int) {
	if r.without += min(n, maxEmpty+1); r.without > maxEmpty {
		r.Fail(off, format.ErrLimit, "more than %d values without a byte", maxEmpty)
	}
}

func (a array) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindList) || !w.count(v.Len()) {
		return
	}
	for i := range v.Len() {
		a.one.write(w, v.At(i))
	}
}

func (a array) parse(p *parser, n *node) value.Value {
	return value.List(p.list(n, a.one))
}

// list converts the elements of an array.
func (p *parser) list(n *node, one codec) []value.Value {
	if !p.expects(n, jsontext.Array, "an array") {
		return nil
	}
	all := make([]value.Value, len(n.Parts))
	for i := range all {
		all[i] = p.element(one, n, i)
	}
	return all
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
		if v.Variant() >= value.EncodedNull-1 {
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
	if v.Variant() == 0 || v.Variant() == value.EncodedNull {
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

func (n nullIf) parse(p *parser, j *node) value.Value { return p.optional(n.one, j) }

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

func (n nullable) parse(p *parser, j *node) value.Value { return p.optional(n.one, j) }

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
	if n <= growFrom/2 {
		all := r.arena.Values(2 * n)
		for i := 0; i < len(all); i += 2 {
			all[i], all[i+1] = m.key.read(r), m.value.read(r)
			if r.Err() != nil {
				return value.Null()
			}
		}
		return value.Map(all)
	}
	all := make([]value.Value, 0, growFrom)
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

func (m mapOf) parse(p *parser, n *node) value.Value { return value.Map(p.pairs(n, m.key, m.value)) }

// pairs converts an array of pairs. An object has keys that are strings.
func (p *parser) pairs(n *node, key, val codec) []value.Value {
	var all []value.Value
	if n.Kind == jsontext.Object {
		for i, name := range n.Names {
			all = append(all, p.field(key, &node{Kind: jsontext.String, Text: name}, name), p.field(val, &n.Parts[i], name))
		}
		return all
	}
	if !p.expects(n, jsontext.Array, "an array of [key, value]") {
		return nil
	}
	for i := range n.Parts {
		pair := &n.Parts[i]
		if pair.Kind != jsontext.Array || len(pair.Parts) != 2 {
			p.path = append(p.path, "["+strconv.Itoa(i)+"]")
			p.fail("expected [key, value], found %s", found(pair))
			return nil
		}
		step := "[" + strconv.Itoa(i) + "]"
		all = append(all, p.part(key, &pair.Parts[0], step+"[0]"), p.part(val, &pair.Parts[1], step+"[1]"))
	}
	return all
}

// tuple reads fields without names.
type tuple []step

func tupleOf(fields ...codec) tuple { return stepsOf(fields) }

func (t tuple) skip(r *reader) {
	for i := range t {
		s := &t[i]
		if n := opSize[s.op]; n > 0 && r.Next(n) != nil {
			continue
		}
		s.codec.skip(r)
	}
}

func (t tuple) read(r *reader) value.Value { return value.List(t.parts(r)) }

// parts reads the fields.
func (t tuple) parts(r *reader) []value.Value {
	all := r.arena.Values(len(t))
	for i := range t {
		s := &t[i]
		if s.op != 0 && r.quick(s.op, &all[i]) {
			continue
		}
		all[i] = s.codec.read(r)
	}
	return all
}

func (t tuple) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindList) || !w.parts(v, len(t)) {
		return
	}
	t.writeParts(w, v)
}

func (t tuple) writeParts(w *writer, v value.Value) {
	for i := range t {
		if f := v.At(i); t[i].op == 0 || !w.quick(t[i].op, f, false) {
			t[i].codec.write(w, f)
		}
	}
}

func (t tuple) parse(p *parser, n *node) value.Value {
	if p.expects(n, jsontext.Array, "an array") && len(n.Parts) != len(t) {
		p.fail("expected %d elements, found %d", len(t), len(n.Parts))
	}
	all := make([]value.Value, len(t))
	for i := range t {
		if p.err == nil {
			all[i] = p.element(t[i].codec, n, i)
		}
	}
	return value.List(all)
}

// record reads fields with names, without a header.
type record struct {
	shape  *value.Shape
	fields tuple
}

func (c record) skip(r *reader) { c.fields.skip(r) }

func (c record) read(r *reader) value.Value { return value.Record(c.shape, c.fields.parts(r)) }

func (c record) write(w *writer, v value.Value) {
	if w.fields(v, c.shape) {
		c.fields.writeParts(w, v)
	}
}

func (c record) parse(p *parser, n *node) value.Value {
	members := p.members(n, c.shape.Names)
	all := make([]value.Value, len(c.fields))
	for i := range members {
		all[i] = p.field(c.fields[i].codec, members[i], c.shape.Names[i])
	}
	return value.Record(c.shape, all)
}

// fields reports whether v is a record with the fields of shape, and records an
// error if it is not.
func (w *writer) fields(v value.Value, shape *value.Shape) bool {
	if !w.expects(v, value.KindRecord) {
		return false
	}
	if v.Shape() != shape && !slices.Equal(v.Shape().Names, shape.Names) {
		w.fail("expected the fields %s, found %s", list(shape.Names), list(v.Shape().Names))
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
	all := r.arena.Values(len(c.fields))
	for i, f := range c.fields {
		if bit(mask, c.kinds+i) == 0 {
			all[i] = r.present(f.read(r))
		}
	}
	if c.kinds > 0 {
		return withKind(bit(mask, 0)|bit(mask, 1)<<1, value.List(all))
	}
	return value.List(all)
}

// withKind returns a row of a kind: its fields if it is an INSERT.
func withKind(kind int, fields value.Value) value.Value {
	if kind == 0 {
		return fields
	}
	return value.Record(changedRow, []value.Value{value.String(rowKinds[kind]), fields})
}

// kindOf returns the kind of a row and its fields, which are a list or a record.
func (w *writer) kindOf(v value.Value) (kind int, fields value.Value) {
	if v.Shape() == nil || v.Shape() != changedRow && !slices.Equal(v.Shape().Names, changedRow.Names) {
		return 0, v
	}
	if k := slices.Index(rowKinds[:], v.At(0).Text()); k >= 0 {
		return k, v.At(1)
	}
	w.fail("expected one of the row kinds %s, found %q", list(rowKinds[:]), v.At(0).Text())
	return 0, v
}

// kinded converts a row with a kind, {"kind": …, "fields": …}, or its fields.
func (p *parser) kinded(n *node, fields func(n *node) value.Value) value.Value {
	if n.Kind != jsontext.Object || member(n, "kind") == nil || member(n, "fields") == nil || len(n.Names) != 2 {
		return fields(n)
	}
	name := p.field(enum(rowKinds[:]), member(n, "kind"), "kind")
	p.path = append(p.path, ".fields")
	v := fields(member(n, "fields"))
	if p.err == nil {
		p.path = p.path[:len(p.path)-1]
	}
	return value.Record(changedRow, []value.Value{name, v})
}

// parseFields converts the fields of a row, which can be null.
func (c row) parseFields(p *parser, n *node) value.Value {
	all := make([]codec, len(c.fields))
	for i, f := range c.fields {
		all[i] = nullIf{1, f}
	}
	return tupleOf(all...).parse(p, n)
}

func (c row) parse(p *parser, n *node) value.Value {
	if c.kinds == 0 {
		return c.parseFields(p, n)
	}
	return p.kinded(n, func(n *node) value.Value { return c.parseFields(p, n) })
}

func (c row) write(w *writer, v value.Value) {
	kind := 0
	if c.kinds > 0 {
		kind, v = w.kindOf(v)
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

func (e either) parse(p *parser, n *node) value.Value {
	if left := member(n, "left"); left != nil && len(n.Names) == 1 {
		return value.Record(leftShape, []value.Value{p.field(e.left, left, "left")})
	}
	if right := member(n, "right"); right != nil && len(n.Names) == 1 {
		return value.Record(rightShape, []value.Value{p.field(e.right, right, "right")})
	}
	return p.fail(`expected {"left": …} or {"right": …}, found %s`, found(n))
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
	fields     tuple // each with its null flag
	steps      []step
	subclasses []string // registered ones first
	registered int
	subs       []codec // codecs of subclasses, or nil
}

func (s *Snapshot) pojo(m *maker, fields []codec) codec {
	if len(fields) != len(s.Names) {
		return nil
	}
	c := pojoOf{s.Type, &value.Shape{Names: s.Names}, make(tuple, len(fields)), stepsOf(fields), s.subclasses, s.registered, make([]codec, len(s.Subclasses))}
	for i, f := range fields {
		c.fields[i].codec = nullIf{1, f}
	}
	for i, sub := range s.Subclasses {
		c.subs[i] = m.optional(sub)
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
		c.skipFields(r)
	}
}

func (c pojoOf) skipFields(r *reader) {
	for i := range c.steps {
		s := &c.steps[i]
		if n := 1 + opSize[s.op]; n > 1 {
			if p := r.Next(n); p != nil {
				if p[0] == 0 {
					continue
				}
				r.Back(n)
			}
		}
		if !r.Bool("a null flag") {
			s.codec.skip(r)
		}
		if r.Err() != nil {
			return
		}
	}
}

func (c pojoOf) read(r *reader) value.Value {
	flags, sub := c.flags(r)
	switch {
	case r.Err() != nil || flags == pojoNull:
		return value.Null()
	case sub < 0:
		return c.plain(r)
	}
	off := r.Offset()
	v := c.subs[sub].read(r)
	if v.Class() != "" {
		r.Fail(off, format.ErrUnsupported, "an object of subclass %q that is of class %q is not decoded", c.subclasses[sub], v.Class())
	}
	return v.WithClass(c.subclasses[sub])
}

// plain reads the fields.
func (c pojoOf) plain(r *reader) value.Value {
	all := r.arena.Values(len(c.steps))
	for i := range c.steps {
		s := &c.steps[i]
		if s.op != 0 && r.quickPresent(s.op, &all[i]) {
			continue
		}
		if !r.Bool("a null flag") {
			all[i] = r.present(s.codec.read(r))
		}
		if r.Err() != nil {
			return value.Null()
		}
	}
	return value.Record(c.shape, all)
}

func (c pojoOf) parse(p *parser, n *node) value.Value {
	if n.Kind == jsontext.Null {
		return value.Null()
	}
	class, inner := classed(n)
	if class == "" {
		return record{c.shape, c.fields}.parse(p, n)
	}
	sub := slices.Index(c.subclasses, class)
	if sub < 0 || sub >= len(c.subs) || c.subs[sub] == nil {
		return p.fail("%q is not a known subclass of %q", class, c.class)
	}
	return c.subs[sub].parse(p, inner).WithClass(class)
}

func (c pojoOf) write(w *writer, v value.Value) {
	class := v.Class()
	switch {
	case v.IsNull() && class == "":
		w.p = append(w.p, pojoNull)
		return
	case class == "":
		w.p = append(w.p, pojoPlain)
		if !w.fields(v, c.shape) {
			return
		}
		for i := range c.steps {
			if f := v.At(i); c.steps[i].op == 0 || !w.quick(c.steps[i].op, f, true) {
				c.fields[i].codec.write(w, f)
			}
		}
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
