package types

import (
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// kryoElement parses the JSON of an element.
type kryoElement struct {
	codec // not used
	k     *kryoState
}

func (e kryoElement) parse(p *parser, n *node) value.Value { return e.k.parseAny(p, n, "") }

// kryoCollection is the codec of collections. sorted ones have a comparator.
func kryoCollection(sorted bool) func(int) kryoBody {
	return func(version int) kryoBody {
		b := kryoBody{
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				return value.List(p.list(n, kryoElement{k: k}))
			},
			read: func(k *kryoState, r *reader) value.Value { return value.List(k.elements(r, int(r.uvarint()))) },
			write: func(k *kryoState, w *writer, v value.Value) {
				if !w.expects(v, value.KindList) {
					return
				}
				w.uvarint(uint32(v.Len()))
				for i := range v.Len() {
					k.putAny(w, v.At(i), "")
				}
			},
		}
		if version == kryo2 && sorted {
			return sortedBody(b)
		}
		if version == kryo5 {
			b.read = func(k *kryoState, r *reader) value.Value { return k.collection5(r, sorted) }
			b.write = func(k *kryoState, w *writer, v value.Value) { k.putCollection5(w, v, sorted) }
			if sorted {
				b.parse = sortedBody(b).parse
			}
		}
		return b
	}
}

// kryoAsList is the codec of Arrays.asList in Kryo 2: uvarint count, the class of the
// elements of its array, and elements.
func kryoAsList(version int) kryoBody {
	list := kryoCollection(false)(version)
	return kryoBody{
		read: func(k *kryoState, r *reader) value.Value {
			off := r.Offset()
			n := int(r.uvarint())
			class := k.class(r)
			if class == "" {
				r.Fail(off, format.ErrCorrupt, "a list of an array without a class")
			}
			return value.Record(typedShape, []value.Value{value.String(class), value.List(k.elements(r, n))})
		},
		write: func(k *kryoState, w *writer, v value.Value) {
			class, elements := k.putTyped(w, v)
			if w.err != nil {
				return
			}
			w.uvarint(uint32(elements.Len()))
			k.putClass(w, class)
			for i := range elements.Len() {
				k.putAny(w, elements.At(i), "")
			}
		},
		parse: func(k *kryoState, p *parser, n *node) value.Value {
			return p.typed(n, func(string) codec { return kryoParser{k: k, f: list.parse} })
		},
	}
}

// elements reads n classes and objects.
func (k *kryoState) elements(r *reader, n int) []value.Value {
	r.CheckCount(r.Offset(), n, "elements", 1)
	if r.Err() != nil {
		return nil
	}
	all := make([]value.Value, 0, min(n, growFrom))
	for range n {
		if all = append(all, k.any(r, "")); r.Err() != nil {
			return nil
		}
	}
	return all
}

// collection5 reads a flag and the size, plus one, the comparator of a sorted collection,
// and the elements, which have the same class if the flag is set.
func (k *kryoState) collection5(r *reader, sorted bool) value.Value {
	off := r.Offset()
	b := r.U8()
	same := b&0x80 != 0
	n := uint64(b & 0x3f)
	if b&0x40 != 0 {
		n |= r.uvarint64() << 6
	}
	switch {
	case r.Err() != nil:
		return value.Null()
	case n == 0 || n == 1 && same || n > math.MaxInt32 || b&0x40 != 0 && n < 0x40:
		r.other(off, "a collection of another encoding")
		return value.Null()
	}
	var order value.Value
	if sorted {
		order = k.comparator(r)
	}
	return ordered(order, value.List(k.elements5(r, off, int(n)-1, same)))
}

// elements5 reads the elements of a collection at an offset. If same: the class of all
// of them, whether some are null, and objects.
func (k *kryoState) elements5(r *reader, off, size int, same bool) []value.Value {
	if !same {
		all := k.elements(r, size)
		if r.Err() == nil && size > 0 && k.sameClass(all) != "" {
			r.other(off, "a collection with a class for each element")
		}
		return all
	}
	class := k.class(r)
	if class == "" { // all are null
		r.empty(off, size)
		if r.Err() != nil {
			return nil
		}
		return make([]value.Value, size)
	}
	body, ok := k.body(class)
	if !ok {
		r.Fail(off, format.ErrUnsupported, "an object of class %q in Kryo is not decoded", class)
	}
	nulls := r.Bool("a null flag of Kryo")
	r.CheckCount(off, size, "elements", 1)
	if nulls && emptyBodies[class] {
		r.Fail(off, format.ErrUnsupported, "a collection of nulls and of %s in Kryo is not decoded", class)
	}
	if r.Err() != nil || !r.enter() {
		return nil
	}
	defer r.leave()
	all := make([]value.Value, 0, min(size, growFrom))
	found := false
	for range size {
		v := k.object(r, body, nulls)
		null := nulls && v.IsNull()
		if found = found || null; !null {
			v = k.withClass(v, class, "")
		}
		if all = append(all, v); r.Err() != nil {
			return nil
		}
	}
	if found != nulls || k.sameClass(all) == "" {
		r.other(off, "a collection of another encoding")
	}
	return all
}

// sameClass returns the class of all elements that are not null, "" if they differ; a
// list of nulls has the class "null".
func (k *kryoState) sameClass(all []value.Value) string {
	class := ""
	for _, v := range all {
		if v.IsNull() && v.Class() == "" {
			continue
		}
		c := k.classOf(v, "")
		if class != "" && c != class {
			return ""
		}
		class = c
	}
	if class == "" {
		return "null"
	}
	return class
}

func (k *kryoState) putCollection5(w *writer, v value.Value, sorted bool) {
	var order value.Value
	if sorted {
		order, v = unordered(v)
	}
	if !w.expects(v, value.KindList) {
		return
	}
	n := uint32(v.Len()) + 1
	if n == 1 {
		if w.p = append(w.p, 1); sorted {
			k.putComparator(w, order)
		}
		return
	}
	all := make([]value.Value, v.Len())
	nulls := false
	for i := range all {
		all[i] = v.At(i)
		nulls = nulls || all[i].IsNull() && all[i].Class() == ""
	}
	class := k.sameClass(all)
	flag := byte(0x80)
	if class == "" {
		flag = 0
	}
	if n < 0x40 {
		w.p = append(w.p, flag|byte(n))
	} else {
		w.p = append(w.p, flag|0x40|byte(n&0x3f))
		w.uvarint(n >> 6)
	}
	if sorted {
		k.putComparator(w, order)
	}
	switch class {
	case "":
		for _, e := range all {
			k.putAny(w, e, "")
		}
		return
	case "null":
		w.p = append(w.p, 0)
		return
	}
	body, ok := k.body(class)
	if !ok || nulls && emptyBodies[class] {
		w.fail("class %q cannot be written in Kryo", class)
		return
	}
	k.putClass(w, class)
	w.bool(nulls)
	if w.depth++; w.depth > maxRecursion {
		w.fail("a value nested more than %d deep", maxRecursion)
		return
	}
	for _, e := range all {
		if nulls && e.IsNull() && e.Class() == "" {
			w.p = append(w.p, 0)
			continue
		}
		k.putObject(w, body, e, nulls)
	}
	w.depth--
}

// kryoMap is the codec of maps: size, in Kryo 5 plus one, and keys and values; sorted
// ones have a comparator, in Kryo 2 before the size.
func kryoMap(sorted bool) func(int) kryoBody {
	return func(version int) kryoBody {
		b := kryoBody{
			read: func(k *kryoState, r *reader) value.Value {
				off := r.Offset()
				n := int(r.uvarint())
				var order value.Value
				if version == kryo5 {
					if n--; n < 0 {
						r.other(off, "a null map")
						return value.Null()
					}
					if sorted {
						order = k.comparator(r)
					}
				}
				r.CheckCount(off, n, "entries", 2)
				return ordered(order, value.Map(k.elements(r, 2*n)))
			},
			write: func(k *kryoState, w *writer, v value.Value) {
				var order value.Value
				if sorted && version == kryo5 {
					order, v = unordered(v)
				}
				if !w.expects(v, value.KindMap) {
					return
				}
				n := uint32(v.Len())
				if version == kryo5 {
					n++
				}
				if w.uvarint(n); sorted && version == kryo5 {
					k.putComparator(w, order)
				}
				for i := range v.Len() {
					k.putAny(w, v.Key(i), "")
					k.putAny(w, v.At(i), "")
				}
			},
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				return value.Map(p.pairs(n, kryoElement{k: k}, kryoElement{k: k}))
			},
		}
		switch {
		case sorted && version == kryo2:
			return sortedBody(b)
		case sorted:
			b.parse = sortedBody(b).parse
		}
		return b
	}
}

// kryoArray is the codec of arrays of primitives: uvarint length, plus one, and
// elements.
func kryoArray(one func(version int) kryoBody) func(int) kryoBody {
	return func(version int) kryoBody {
		b := one(version)
		return kryoBody{
			read: func(k *kryoState, r *reader) value.Value {
				off := r.Offset()
				n := int(r.uvarint()) - 1
				if n < 0 {
					r.other(off, "a null array")
				}
				r.CheckCount(off, n, "elements", 1)
				if r.Err() != nil {
					return value.Null()
				}
				all := make([]value.Value, 0, min(n, growFrom))
				for range n {
					if all = append(all, b.read(k, r)); r.Err() != nil {
						return value.Null()
					}
				}
				return value.List(all)
			},
			write: func(k *kryoState, w *writer, v value.Value) {
				if w.expects(v, value.KindList) {
					w.uvarint(uint32(v.Len()) + 1)
					for i := range v.Len() {
						b.write(k, w, v.At(i))
					}
				}
			},
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				return value.List(p.list(n, kryoParser{k: k, f: b.parse}))
			},
		}
	}
}
