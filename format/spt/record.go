package spt

import (
	"math"
	"reflect"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
	"github.com/savepoint-tools/spt/internal/limit"
)

// This file is how a map of the manifest is read and written from one list of its
// fields; tables.go has the lists.

// record is a map of the manifest. Its fields are in the order of their keys.
type record[T any] struct {
	fields []field[T]
	// check is what must hold between the fields, in files that are read and in
	// savepoints that are written. It may be nil.
	check func(*T) error
}

// field is one entry of a record.
type field[T any] struct {
	key string
	// read reads the value.
	read func(*decoder, *T)
	// write writes the value, after e.key; it writes nothing where the field is
	// left out.
	write func(*encoder, *T)
	// missing is called where the field is left out. It may be nil.
	missing func(*decoder, *T)
}

// read reads a record. Keys ascend, so none comes twice.
func (r *record[T]) read(d *decoder, v *T) {
	n := d.mapLen()
	next := 0
	var last []byte
	for i := 0; i < n && d.err == nil; i++ {
		key := d.str()
		if d.err == nil && i > 0 && string(key) <= string(last) {
			d.fail(format.ErrCorrupt, "key %q after %q: keys ascend, and come once", key, last)
		}
		if d.err != nil {
			return
		}
		last = key
		for next < len(r.fields) && r.fields[next].key < string(key) {
			r.fields[next].leftOut(d, v)
			next++
		}
		switch {
		case d.err != nil:
			return
		case next < len(r.fields) && r.fields[next].key == string(key):
			r.fields[next].read(d, v)
			next++
		case d.lenient:
			d.skip()
		default:
			d.fail(format.ErrCorrupt, "unknown key %q", key)
		}
		if d.err != nil {
			d.err = format.At(d.err, "%s", key)
		}
	}
	for ; next < len(r.fields); next++ {
		r.fields[next].leftOut(d, v)
	}
	if d.err == nil && r.check != nil {
		d.invalid(r.check(v))
	}
}

func (f *field[T]) leftOut(d *decoder, v *T) {
	if f.missing != nil && d.err == nil {
		f.missing(d, v)
	}
}

// write writes a record, leaving out what is zero.
func (r *record[T]) write(e *encoder, v *T) {
	if r.check != nil {
		if err := r.check(v); err != nil {
			e.fail(err)
			return
		}
	}
	at, outer := len(e.buf), e.keys
	e.keys = 0
	e.buf = append(e.buf, 0x80) // no record has more than 15 fields
	for i := range r.fields {
		r.fields[i].write(e, v)
	}
	e.buf[at] |= e.keys
	e.keys = outer
}

// value is how the elements of a list are read and written.
type value[T any] struct {
	read  func(*decoder, *T)
	write func(*encoder, *T)
}

func (r *record[T]) value() value[T] { return value[T]{r.read, r.write} }

// pointer is a value that is allocated on its own.
func (r *record[T]) pointer() value[*T] {
	return value[*T]{
		read: func(d *decoder, v **T) {
			if *v = alloc[T](d); d.err == nil {
				r.read(d, *v)
			}
		},
		write: func(e *encoder, v **T) { r.write(e, *v) },
	}
}

// alloc allocates a value for the file.
func alloc[T any](d *decoder) *T {
	d.charge(int64(reflect.TypeFor[T]().Size()))
	if d.err != nil {
		return nil
	}
	return new(T)
}

// required is an error for a field that is missing.
func required[T any](f field[T], text string) field[T] {
	f.missing = func(d *decoder, _ *T) { d.fail(format.ErrCorrupt, "%s", text) }
	return f
}

// integer is a field of 8, 32 or 64 bits within a range.
func integer[T any, I ~uint8 | ~int32 | ~int64](key string, at func(*T) *I, low, high int64) field[T] {
	return field[T]{
		key:  key,
		read: func(d *decoder, v *T) { *at(v) = I(d.within(low, high)) },
		write: func(e *encoder, v *T) {
			if i := *at(v); i != 0 {
				e.key(key)
				e.buf = msg.AppendInt(e.buf, int64(i))
			}
		},
	}
}

func int32s[T any, I ~int32](key string, at func(*T) *I) field[T] {
	return integer(key, at, math.MinInt32, math.MaxInt32)
}

func int64s[T any](key string, at func(*T) *int64) field[T] {
	return integer(key, at, math.MinInt64, math.MaxInt64)
}

func booleans[T any](key string, at func(*T) *bool) field[T] {
	return field[T]{
		key:  key,
		read: func(d *decoder, v *T) { *at(v) = d.bool() },
		write: func(e *encoder, v *T) {
			if *at(v) {
				e.key(key)
				e.buf = msg.AppendBool(e.buf, true)
			}
		},
	}
}

func strs[T any, S ~string](key string, at func(*T) *S) field[T] {
	return field[T]{
		key:  key,
		read: func(d *decoder, v *T) { *at(v) = S(d.string()) },
		write: func(e *encoder, v *T) {
			if s := *at(v); s != "" {
				e.key(key)
				e.buf = msg.AppendString(e.buf, string(s))
			}
		},
	}
}

func texts[T any](key string, at func(*T) *format.Text) field[T] {
	return field[T]{
		key:  key,
		read: func(d *decoder, v *T) { *at(v) = d.text() },
		write: func(e *encoder, v *T) {
			t := *at(v)
			raw, ok := t.Raw()
			if !ok && t.String() == "" {
				return
			}
			e.key(key)
			if ok {
				e.buf = msg.AppendArray(e.buf, 2)
			}
			e.buf = msg.AppendString(e.buf, t.String())
			if ok {
				e.buf = msg.AppendBinary(e.buf, []byte(raw))
			}
		},
	}
}

func wires[T any](at func(*T) *format.Wire) field[T] {
	return field[T]{
		key:  "wire",
		read: func(d *decoder, v *T) { *at(v) = format.Wire(d.share(d.bin())) },
		write: func(e *encoder, v *T) {
			if w := *at(v); w != "" {
				e.key("wire")
				e.buf = msg.AppendBinary(e.buf, []byte(w))
			}
		},
	}
}

func blobs[T any](key string, at func(*T) *format.Bytes) field[T] {
	return field[T]{
		key:  key,
		read: func(d *decoder, v *T) { *at(v) = d.bytes() },
		write: func(e *encoder, v *T) {
			if b := *at(v); b.Len() > 0 {
				e.key(key)
				e.fail(b.View(func(p []byte) error {
					e.buf = msg.AppendBinary(e.buf, p)
					return nil
				}))
			}
		},
	}
}

// names is a field that has one of several names; the first is that of 0, which is
// left out.
func names[T any, V ~uint8](key string, at func(*T) *V, all []string) field[T] {
	return field[T]{
		key: key,
		read: func(d *decoder, v *T) {
			s := d.string()
			for i, name := range all {
				if i > 0 && name == s {
					*at(v) = V(i)
					return
				}
			}
			d.fail(format.ErrUnsupported, "the kind %q", s)
		},
		write: func(e *encoder, v *T) {
			if i := *at(v); i != 0 {
				e.key(key)
				e.buf = msg.AppendString(e.buf, all[i]) // the record's check has compared i with all
			}
		},
	}
}

func streams[T any](key string, at func(*T) *format.Stream) field[T] {
	return field[T]{
		key:  key,
		read: func(d *decoder, v *T) { *at(v) = d.ref() },
		write: func(e *encoder, v *T) {
			if s := *at(v); s != nil {
				e.key(key)
				e.ref(s)
			}
		},
	}
}

// offsetsField is a field of offsets, never nil once it is read: without an array
// there is no entry.
func offsetsField[T any](at func(*T) *format.Offsets) field[T] {
	return field[T]{
		key:     "offsets",
		read:    func(d *decoder, v *T) { *at(v) = d.offsets() },
		write:   func(e *encoder, v *T) { e.offsets(at(v)) },
		missing: func(_ *decoder, v *T) { *at(v) = noOffsets },
	}
}

// noOffsets is an array without entries.
var noOffsets format.Offsets = format.OffsetSlice{}

// pointers is a field that is a record of its own, or not there.
func pointers[T, E any](key string, at func(*T) **E, r *record[E]) field[T] {
	return field[T]{
		key:  key,
		read: func(d *decoder, v *T) { r.pointer().read(d, at(v)) },
		write: func(e *encoder, v *T) {
			if p := *at(v); p != nil {
				e.key(key)
				r.write(e, p)
			}
		},
	}
}

// lists is a field that is an array, left out where it is empty.
func lists[T, E any](key string, at func(*T) *[]E, limit format.Limit, element value[E]) field[T] {
	size := int64(reflect.TypeFor[E]().Size())
	return field[T]{
		key:  key,
		read: func(d *decoder, v *T) { *at(v) = readList(d, limit, size, element.read) },
		write: func(e *encoder, v *T) {
			all := *at(v)
			if len(all) == 0 {
				return
			}
			e.key(key)
			e.buf = msg.AppendArray(e.buf, len(all))
			for i := range all {
				if e.err == nil {
					element.write(e, &all[i])
				}
			}
		},
	}
}

func readList[E any](d *decoder, of format.Limit, size int64, read func(*decoder, *E)) []E {
	n := d.array()
	most := d.limits.Nodes
	switch of {
	case limit.Operators:
		most = d.limits.Operators
	case limit.Subtasks:
		most = d.limits.Subtasks
	}
	if n > most {
		d.fail(of, "%d of them, over the limit of %d", n, most)
	}
	if d.nodes += n; d.nodes > d.limits.Nodes {
		d.fail(limit.Nodes, "more than %d operators, subtasks, handles and streams", d.limits.Nodes)
	}
	if n > 0 {
		d.charge(int64(n) * size)
	}
	if d.err != nil || n == 0 {
		return nil
	}
	all := make([]E, n)
	for i := range all {
		read(d, &all[i])
		if d.err != nil {
			d.err = format.At(d.err, "%d", i)
			return nil
		}
	}
	return all
}

// kind is one of several kinds of I: its name in the manifest, and how its fields
// are read and written.
type kind[I any] struct {
	name string
	read func(*decoder) I
	// write writes the value if it is of this kind.
	write func(*encoder, I) bool
}

// newKind is a kind whose values are pointers to H.
func newKind[I, H any](name string, r *record[H]) kind[I] {
	return kind[I]{
		name: name,
		read: func(d *decoder) I {
			h := alloc[H](d)
			if d.err != nil {
				var none I
				return none
			}
			r.read(d, h)
			return any(h).(I)
		},
		write: func(e *encoder, v I) bool {
			h, ok := any(v).(*H)
			if ok {
				e.buf = msg.AppendArray(e.buf, 2)
				e.buf = msg.AppendString(e.buf, name)
				r.write(e, h)
			}
			return ok
		},
	}
}

// readKind reads an array of a kind's name and its fields.
func readKind[I any](d *decoder, what string, all []kind[I]) (v I) {
	if n := d.array(); d.err == nil && n != 2 {
		d.fail(format.ErrCorrupt, "%s of %d parts", what, n)
	}
	name := d.str()
	if d.err != nil {
		return v
	}
	for i := range all {
		if all[i].name == string(name) {
			return all[i].read(d)
		}
	}
	d.fail(format.ErrUnsupported, "%s of kind %q", what, name)
	return v
}
