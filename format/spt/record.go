package spt

import (
	"math"
	"reflect"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
	"github.com/savepoint-tools/spt/internal/limit"
)

// This file reads and writes the maps of the manifest from one list of fields per
// map, see tables.go.

// record is a map of the manifest. Its fields are sorted by key.
type record[T any] struct {
	fields []field[T]
	// check returns an error if the fields are inconsistent. It is called for files
	// that are read and savepoints that are written. It may be nil.
	check func(*T) error
}

// field is one entry of a record.
type field[T any] struct {
	key string
	// read reads the value.
	read func(*decoder, *T)
	// write writes the value, after calling e.key. It writes nothing to omit the
	// field.
	write func(*encoder, *T)
	// missing is called if the field is omitted. It may be nil.
	missing func(*decoder, *T)
}

// read reads a record. Keys ascend, so duplicates are detected.
func (r *record[T]) read(d *decoder, v *T) {
	n := d.mapLen()
	next := 0
	var last []byte
	for i := 0; i < n && d.err == nil; i++ {
		key := d.str()
		if d.err == nil && i > 0 && string(key) <= string(last) {
			d.fail(format.ErrCorrupt, "key %q after key %q: keys must ascend and not repeat", key, last)
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

// write writes a record without its zero fields.
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

// value reads and writes the elements of a list.
type value[T any] struct {
	read  func(*decoder, *T)
	write func(*encoder, *T)
}

func (r *record[T]) value() value[T] { return value[T]{r.read, r.write} }

// pointer returns a value that is allocated separately.
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

// alloc allocates a value and charges it to the budget.
func alloc[T any](d *decoder) *T {
	d.charge(int64(reflect.TypeFor[T]().Size()))
	if d.err != nil {
		return nil
	}
	return new(T)
}

// required returns the field with an error if it is missing.
func required[T any](f field[T], text string) field[T] {
	f.missing = func(d *decoder, _ *T) { d.fail(format.ErrCorrupt, "%s", text) }
	return f
}

// integer returns a field of 8, 32 or 64 bits with a range.
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

// names returns a field whose value is one of several names. The first name is for
// 0, which is omitted.
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
			d.fail(format.ErrUnsupported, "unknown kind %q", s)
		},
		write: func(e *encoder, v *T) {
			if i := *at(v); i != 0 {
				e.key(key)
				e.buf = msg.AppendString(e.buf, all[i]) // in range: checked by the record's check
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

// offsetsField returns a field of offsets. After reading it is never nil: a missing
// array is empty.
func offsetsField[T any](at func(*T) *format.Offsets) field[T] {
	return field[T]{
		key:     "offsets",
		read:    func(d *decoder, v *T) { *at(v) = d.offsets() },
		write:   func(e *encoder, v *T) { e.offsets(at(v)) },
		missing: func(_ *decoder, v *T) { *at(v) = noOffsets },
	}
}

// noOffsets is an empty array.
var noOffsets format.Offsets = format.OffsetSlice{}

// pointers returns an optional field that is a record.
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

// lists returns a field that is an array, omitted if empty.
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
		d.fail(of, "%d elements, the limit is %d", n, most)
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

// kind is one implementation of I: its name in the manifest, and how its fields are
// read and written.
type kind[I any] struct {
	name string
	read func(*decoder) I
	// write writes the value if it is of this kind, and reports whether it is.
	write func(*encoder, I) bool
}

// newKind returns a kind whose values are pointers to H.
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

// readKind reads an array of the name of a kind and its fields.
func readKind[I any](d *decoder, what string, all []kind[I]) (v I) {
	if n := d.array(); d.err == nil && n != 2 {
		d.fail(format.ErrCorrupt, "expected %s of 2 parts, found %d", what, n)
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
	d.fail(format.ErrUnsupported, "%s of unknown kind %q", what, name)
	return v
}
