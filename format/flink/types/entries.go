package types

import (
	"bytes"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// ListCodec is NewCodec of list state in an entry of keyed state: the elements, which
// s describes, joined by commas (spec flink-keyed-state 3.7). The list is all of the
// bytes. It is not empty: an entry without elements is not stored.
func ListCodec(s *Snapshot, o Options) (value.Codec, error) {
	return outside(s, o, func(c codec) codec { return joined{c} })
}

// MapValueCodec is NewCodec of the value in one entry of map state: a null flag, then
// the value, which s describes (spec flink-keyed-state 3.7). After the flag of a null
// is nothing, or what the serializer writes for null, which is all of the other bytes.
func MapValueCodec(s *Snapshot, o Options) (value.Codec, error) {
	return outside(s, o, func(c codec) codec { return mapValue{c} })
}

// outside returns a codec around the codec of a snapshot.
func outside(s *Snapshot, o Options, f func(codec) codec) (value.Codec, error) {
	c, err := NewCodec(s, o)
	if err != nil {
		return nil, err
	}
	return export(f(c.(exported).codec)), nil
}

// joined reads values with a comma between them up to the end.
type joined struct{ one codec }

func (j joined) skip(r *reader) { j.each(r, func() { j.one.skip(r) }) }

func (j joined) read(r *reader) value.Value {
	all := r.arena.Values(1)[:0]
	j.each(r, func() {
		if len(all) == cap(all) {
			all = append(r.arena.Values(2 * len(all))[:0], all...)
		}
		all = append(all, j.one.read(r))
	})
	return value.List(all)
}

func (j joined) each(r *reader, one func()) {
	for {
		start := r.Offset()
		one()
		if r.Offset() == start {
			r.empty(start, 1)
		}
		off := r.Offset()
		if r.Err() != nil || r.Remaining() == 0 {
			return
		}
		if b := r.U8(); b != ',' {
			r.Fail(off, format.ErrCorrupt, "expected a comma after an element of a list, found %#02x", b)
			return
		}
	}
}

func (j joined) write(w *writer, v value.Value) {
	if !w.expects(v, value.KindList) {
		return
	}
	if v.Len() == 0 {
		w.fail("an empty list: an entry without elements is not stored")
		return
	}
	for i := range v.Len() {
		if i > 0 {
			w.p = append(w.p, ',')
		}
		j.one.write(w, v.At(i))
	}
}

func (j joined) parse(p *parser, n *node) value.Value { return value.List(p.list(n, j.one)) }

// mapValue reads a value after its null flag. A null of variant EncodedNull has the
// flag only.
type mapValue struct{ one codec }

func (m mapValue) skip(r *reader) {
	if r.Bool("a null flag") {
		r.Bytes(r.Remaining(), "a null")
		return
	}
	m.one.skip(r)
}

func (m mapValue) read(r *reader) value.Value {
	if !r.Bool("a null flag") {
		return r.present(m.one.read(r))
	}
	off := r.Offset()
	rest := r.Bytes(r.Remaining(), "a null")
	if bytes.Equal(rest, m.null()) {
		return value.Null()
	}
	if len(rest) > 0 {
		r.other(off, "a null followed by bytes of another value")
	}
	return value.Null().WithVariant(value.EncodedNull)
}

// null returns what the serializer writes for null: nothing if it does not.
func (m mapValue) null() []byte {
	var w writer
	if m.one.write(&w, value.Null()); w.err != nil {
		return nil
	}
	return w.p
}

func (m mapValue) write(w *writer, v value.Value) {
	inner, null := absent(v)
	if w.bool(null); !null {
		m.one.write(w, inner)
		return
	}
	if v.Variant() != value.EncodedNull {
		w.p = append(w.p, m.null()...)
	}
}

func (m mapValue) parse(p *parser, n *node) value.Value { return p.optional(m.one, n) }
