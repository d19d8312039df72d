package types

import (
	"math"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// The codecs of Flink's runtime, of its CEP library and of its Kafka connector (spec
// flink-serializers B9 and B12, flink-connector-states 5.5): records of other codecs.

func fieldsOf(names ...string) *value.Shape { return &value.Shape{Names: names} }

// nothing is a codec of null that takes no bytes.
type nothing struct{}

func (nothing) skip(r *reader)                 { r.empty(r.Offset(), 1) }
func (nothing) read(r *reader) value.Value     { r.empty(r.Offset(), 1); return value.Null() }
func (nothing) write(w *writer, v value.Value) { w.expects(v, value.KindNull) }
func (nothing) parse(p *parser, n *node) value.Value {
	p.expects(n, jsontext.Null, "null")
	return value.Null()
}

// takesNothing reports whether a codec may read a value from no bytes.
func takesNothing(c codec) bool {
	switch c := c.(type) {
	case nothing:
		return true
	case tuple:
		return !slices.ContainsFunc(c, func(s step) bool { return !takesNothing(s.codec) })
	case record:
		return takesNothing(c.fields)
	case *avroRecord:
		if c.visiting {
			return true
		}
		c.visiting = true
		defer func() { c.visiting = false }()
		return takesNothing(c.fields)
	}
	return false
}

// arrayOf returns the codec of int n and n values.
func arrayOf(one codec) array {
	if takesNothing(one) {
		return array{0, one}
	}
	if s, ok := one.(scalar); ok && s.size > 0 {
		return array{s.size, one}
	}
	return array{1, one}
}

// choice reads a byte that selects a record. Records have different fields.
type choice struct {
	what string
	tags []byte
	of   []record
}

func (c choice) tag(r *reader) record {
	off := r.Offset()
	tag := r.U8()
	i := slices.Index(c.tags, tag)
	if i < 0 {
		r.Fail(off, format.ErrCorrupt, "%s: unknown tag %d", c.what, tag)
		return record{shape: fieldsOf()}
	}
	return c.of[i]
}

func (c choice) skip(r *reader)             { c.tag(r).skip(r) }
func (c choice) read(r *reader) value.Value { return c.tag(r).read(r) }

func (c choice) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindRecord) {
		return
	}
	for i, of := range c.of {
		if slices.Equal(of.shape.Names, v.Shape().Names) {
			w.p = append(w.p, c.tags[i])
			of.write(w, v)
			return
		}
	}
	w.fail("%s: unexpected fields %s", c.what, list(v.Shape().Names))
}

func (c choice) parse(p *parser, n *node) value.Value {
	if !p.expects(n, jsontext.Object, "an object") {
		return value.Null()
	}
	best := c.of[0]
	for _, of := range c.of {
		if slices.Equal(sorted(of.shape.Names), sorted(n.Names)) {
			best = of
		}
	}
	return best.parse(p, n)
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func timerOf(n []codec) codec { return record{timerShape, tupleOf(kept{timerTime}, n[0], n[1])} }

func bufferEntryOf(n []codec) codec {
	return record{fieldsOf("joined", "element"), tupleOf(boolCodec, n[0])}
}

func unionOf(n []codec) codec {
	return choice{"a union of two streams", []byte{1, 2}, []record{{fieldsOf("one"), tupleOf(n[0])}, {fieldsOf("two"), tupleOf(n[1])}}}
}

func tryOf(n []codec) codec {
	return choice{"a try", []byte{1, 0}, []record{{fieldsOf("success"), tupleOf(n[0])}, {fieldsOf("failure"), tupleOf(n[1])}}}
}

func optionOf(n []codec) codec { return nullIf{0, n[0]} }

func streamElementOf(n []codec) codec {
	element := n[0]
	marker := record{fieldsOf("markedTime", "operatorLower", "operatorUpper", "subtask"), tupleOf(longCodec, longCodec, longCodec, intCodec)}
	return choice{"a stream element", []byte{0, 1, 2, 3, 4, 5, 6}, []record{
		{fieldsOf("timestamp", "record"), tupleOf(longCodec, element)},
		{fieldsOf("record"), tupleOf(element)},
		{fieldsOf("watermark"), tupleOf(longCodec)},
		{fieldsOf("latencyMarker"), tupleOf(marker)},
		{fieldsOf("status"), tupleOf(intCodec)},
		{fieldsOf("backlog"), tupleOf(boolCodec)},
		{fieldsOf("subpartition", "watermark"), tupleOf(intCodec, longCodec)},
	}}
}

// twoPhase is the codec of the state of TwoPhaseCommitSinkFunction.
func twoPhase(_ *maker, s *Snapshot, n []codec) codec {
	holder, context := record{fieldsOf("transaction", "startTime"), tupleOf(n[0], longCodec)}, n[1]
	pending := codec(holder)
	if s.Version == 3 || s.mark {
		pending = nullIf{0, holder}
	}
	return record{fieldsOf("pending", "pendingCommits", "context"), tupleOf(pending, array{8, holder}, nullIf{0, context})}
}

// utfCodec reads modified UTF-8 with its 2-byte length.
var utfCodec = scalar{typ: &Type{Kind: TypeString},
	over: func(r *reader) { r.Bytes(int(r.U16()), "a string") },
	get: func(r *reader) value.Value {
		off := r.Offset()
		t := r.Text()
		if _, raw := t.Raw(); raw {
			r.other(off, "a string that is not in its shortest encoding")
		}
		return value.String(t.String())
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
	from: func(p *parser, n *node) value.Value { return value.String(p.str(n)) },
}

var (
	kafkaTransaction = record{fieldsOf("transactionalId", "producerId", "epoch"), tupleOf(nullIf{0, utfCodec}, longCodec, shortCodec)}
	kafkaContext     = record{fieldsOf("transactionalIds"), tupleOf(array{2, utfCodec})}
	kafkaHint        = record{fieldsOf("nextFreeTransactionalId", "lastParallelism"), tupleOf(longCodec, intCodec)}

	deweyCodec   = array{4, intCodec}
	eventIDCodec = record{fieldsOf("id", "timestamp"), tupleOf(intCodec, longCodec)}
)

func nodeIDOf(event codec) codec {
	return nullIf{0, record{fieldsOf("event", "page"), tupleOf(event, stringCodec)}}
}

func lockableOf(one codec) codec {
	return record{fieldsOf("references", "value"), tupleOf(intCodec, one)}
}

func nfaStateOf(s *Snapshot, version, node, event codec) codec {
	names, fields := []string{"state", "node", "version", "startTime"}, []codec{stringCodec, node, version, longCodec}
	if s.mark {
		names, fields = append(names, "previousTime"), append(fields, longCodec)
	}
	state := array{8, record{fieldsOf(append(names, "startEvent")...), tupleOf(append(fields, nullIf{0, event})...)}}
	return record{fieldsOf("partialMatches", "completedMatches"), tupleOf(state, state)}
}

// linkedList reads int n, a mask of nulls, and the elements that are not null.
type linkedList struct{ one codec }

func (l linkedList) mask(r *reader) (mask []byte, n int) {
	off := r.Offset()
	n = int(r.I32())
	if n < 0 {
		r.Fail(off, format.ErrCorrupt, "elements: invalid count %d", n)
	}
	mask = r.Bytes((n+7)/8, "the mask of a list")
	if r.Err() != nil {
		return nil, 0
	}
	return mask, n
}

func (l linkedList) skip(r *reader) {
	mask, n := l.mask(r)
	for i := range n {
		if bit(mask, i) == 0 {
			l.one.skip(r)
		}
		if r.Err() != nil {
			return
		}
	}
}

func (l linkedList) read(r *reader) value.Value {
	off := r.Offset()
	mask, n := l.mask(r)
	for i := n; i < 8*len(mask); i++ {
		if bit(mask, i) != 0 {
			r.other(off, "a list with more null bits than elements")
		}
	}
	all := make([]value.Value, 0, min(n, growFrom))
	for i := range n {
		v := value.Null()
		if bit(mask, i) == 0 {
			v = r.present(l.one.read(r))
		}
		if all = append(all, v); r.Err() != nil {
			return value.Null()
		}
	}
	return value.List(all)
}

func (l linkedList) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindList) || !w.count(v.Len()) {
		return
	}
	at := len(w.p)
	w.p = append(w.p, make([]byte, (v.Len()+7)/8)...)
	for i := range v.Len() {
		inner, null := absent(v.At(i))
		if null {
			w.p[at+i/8] |= 1 << (7 - i%8)
			continue
		}
		l.one.write(w, inner)
	}
}

func (l linkedList) parse(p *parser, n *node) value.Value {
	return value.List(p.list(n, nullIf{1, l.one}))
}

func enumOf(_ *maker, s *Snapshot, _ []codec) codec {
	if hasDuplicates(s.Names) {
		return nil
	}
	return enum(s.Names)
}

func scalaEnumOf(_ *maker, s *Snapshot, _ []codec) codec {
	ids := slices.Clone(s.numbers)
	if slices.Sort(ids); hasDuplicates(s.Names) || len(s.numbers) != len(s.Names) || len(slices.Compact(ids)) < len(s.Names) {
		return nil
	}
	return scalaEnum{s.Names, s.numbers}
}

// variantCodec reads int size of the value, int size of the metadata, and both: the
// binary encoding of variants, which is not decoded further.
type variantCodec struct{}

var variantShape = fieldsOf("value", "metadata")

func (variantCodec) sizes(r *reader) (value, metadata int) {
	off := r.Offset()
	v, m := r.I32(), r.I32()
	if v < 0 || m < 0 {
		r.Fail(off, format.ErrCorrupt, "a variant of %d and %d bytes", v, m)
		return 0, 0
	}
	return int(v), int(m)
}

func (c variantCodec) skip(r *reader) {
	v, m := c.sizes(r)
	r.Bytes(v+m, "a variant")
}

func (c variantCodec) read(r *reader) value.Value {
	v, m := c.sizes(r)
	return value.Record(variantShape, []value.Value{value.Bytes(r.Bytes(v, "the value of a variant")), value.Bytes(r.Bytes(m, "the metadata of a variant"))})
}

func (c variantCodec) write(w *writer, v value.Value) {
	if !w.fields(v, variantShape) {
		return
	}
	for i := range 2 {
		if p := v.At(i); w.expects(p, value.KindBytes) {
			w.int(int64(len(p.Text())), 4)
		}
	}
	w.p = append(append(w.p, v.At(0).Text()...), v.At(1).Text()...)
}

func (variantCodec) parse(p *parser, n *node) value.Value {
	return record{variantShape, tupleOf(bytesCodec, bytesCodec)}.parse(p, n)
}

// scalaEnum is a codec of the constants of Scala's enumerations: int id.
type scalaEnum struct {
	names enum
	ids   []int32
}

func (e scalaEnum) skip(r *reader) { r.Bytes(4, "a constant") }

func (e scalaEnum) read(r *reader) value.Value {
	off := r.Offset()
	id := r.I32()
	if r.Err() != nil {
		return value.Null()
	}
	i := slices.Index(e.ids, id)
	if i < 0 {
		r.Fail(off, format.ErrCorrupt, "the enumeration has no constant with id %d", id)
		return value.Null()
	}
	return value.String(e.names[i])
}

func (e scalaEnum) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindString) {
		return
	}
	i := slices.Index(e.names, v.Text())
	if i < 0 {
		w.fail("the enumeration has no constant %q", v.Text())
		return
	}
	w.int(int64(e.ids[i]), 4)
}

func (e scalaEnum) parse(p *parser, n *node) value.Value { return e.names.parse(p, n) }

// sized reads int length and a value of that many bytes.
type sized struct{ one codec }

func (s sized) skip(r *reader) { r.Blob("a framed value") }

func (s sized) read(r *reader) value.Value {
	at := r.Offset() + 4
	p := r.Blob("a framed value")
	if r.Err() != nil {
		return value.Null()
	}
	return r.within(p, at, s.one)
}

// within reads a value that is all of p, a part of the input from offset at.
func (r *reader) within(p []byte, at int, one codec) value.Value {
	part := &reader{Cursor: java.Of(p), arena: r.arena, without: r.without, depth: r.depth}
	v := one.read(part)
	if part.Err() == nil && part.Remaining() > 0 {
		part.Fail(part.Offset(), format.ErrCorrupt, "%d bytes after a value", part.Remaining())
	}
	r.without = part.without
	r.AdoptWhole(&part.Cursor, at)
	return v
}

func (s sized) write(w *writer, v value.Value) {
	at := len(w.p)
	w.int(0, 4)
	s.one.write(w, v)
	w.setLength(at)
}

// setLength writes the number of bytes after the int at offset at into it.
func (w *writer) setLength(at int) {
	n := len(w.p) - at - 4
	if n > math.MaxInt32 {
		w.fail("%d bytes: expected up to %d", n, math.MaxInt32)
		return
	}
	w.p[at], w.p[at+1], w.p[at+2], w.p[at+3] = byte(n>>24), byte(n>>16), byte(n>>8), byte(n)
}

func (s sized) parse(p *parser, n *node) value.Value { return s.one.parse(p, n) }
