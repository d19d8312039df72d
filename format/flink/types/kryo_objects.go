package types

import (
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// kryoFramed is the codec of Protobuf and Thrift in the serializers of Twitter's
// chill: uvarint length and bytes.
var kryoFramed = kryoFunc(false, func(r *reader) value.Value {
	return value.Bytes(r.Bytes(int(r.uvarint()), "a message"))
}, func(w *writer, v value.Value) {
	if w.expects(v, value.KindBytes) {
		w.uvarint(uint32(len(v.Text())))
		w.p = append(w.p, v.Text()...)
	}
}, bytesCodec.from)

// kryoJavaObject is the codec of a class whose objects are Java object streams.
func kryoJavaObject(class string, version int) kryoBody {
	return kryoFunc(false, func(r *reader) value.Value {
		off := r.Offset()
		v := javaStream{}.read(r)
		if r.Err() == nil && v.Class() != class {
			r.Fail(off, format.ErrCorrupt, "expected a Java object of class %q, found %q", class, v.Class())
		}
		return v
	}, func(w *writer, v value.Value) {
		if w.expects(v, value.KindBytes) {
			w.p = append(w.p, v.Text()...)
		}
	}, func(p *parser, n *node) value.Value { return value.Bytes(p.bytes(n)) })(version)
}

// kryoFields is the codec of classes whose fields are written one after the other.
func kryoFields(names []string, fields ...kryoField) func(int) kryoBody {
	shape := &value.Shape{Names: names}
	return func(version int) kryoBody {
		return kryoBody{
			read: func(k *kryoState, r *reader) value.Value {
				all := r.arena.Values(len(fields))
				for i, f := range fields {
					all[i] = f.read(k, r)
				}
				return value.Record(shape, all)
			},
			write: func(k *kryoState, w *writer, v value.Value) {
				if w.fields(v, shape) {
					for i, f := range fields {
						f.write(k, w, v.At(i))
					}
				}
			},
			parse: func(k *kryoState, p *parser, n *node) value.Value {
				members := p.members(n, names)
				all := make([]value.Value, len(fields))
				for i := range members {
					all[i] = p.field(kryoParser{k: k, f: fields[i].parse}, members[i], names[i])
				}
				return value.Record(shape, all)
			},
		}
	}
}

type kryoField struct {
	read  func(k *kryoState, r *reader) value.Value
	write func(k *kryoState, w *writer, v value.Value)
	parse func(k *kryoState, p *parser, n *node) value.Value
}

type kryoParser struct {
	codec // not used
	k     *kryoState
	f     func(k *kryoState, p *parser, n *node) value.Value
}

func (c kryoParser) parse(p *parser, n *node) value.Value { return c.f(c.k, p, n) }

var (
	anyField = fieldOfAny()
	intField = kryoField{
		func(_ *kryoState, r *reader) value.Value { return kryoInt.get(r) },
		func(_ *kryoState, w *writer, v value.Value) { kryoInt.put(w, v) },
		func(_ *kryoState, p *parser, n *node) value.Value { return kryoInt.from(p, n) },
	}
	textField = finalField("java.lang.String", kryoString)
)

// fieldOfAny is a field whose objects have their class.
func fieldOfAny() kryoField {
	return kryoField{
		func(k *kryoState, r *reader) value.Value { return k.any(r, "") },
		func(k *kryoState, w *writer, v value.Value) { k.putAny(w, v, "") },
		func(k *kryoState, p *parser, n *node) value.Value { return k.parseAny(p, n, "") },
	}
}

// finalField is a field whose objects are of one class, or null.
func finalField(class string, body func(int) kryoBody) kryoField {
	return kryoField{
		func(k *kryoState, r *reader) value.Value {
			v := k.object(r, body(k.version), true)
			return k.withClass(v, class, class)
		},
		func(k *kryoState, w *writer, v value.Value) { k.putObject(w, body(k.version), v, true) },
		func(k *kryoState, p *parser, n *node) value.Value {
			if n.Kind == jsontext.Null {
				return value.Null()
			}
			if of, inner := classed(n); of == referenceClass+class {
				return kryoReference(p, inner, of)
			}
			return body(k.version).parse(k, p, n)
		},
	}
}

// tupleBody is the codec of tuples, whose fields are in the order of their names.
func tupleBody(n int) func(int) kryoBody {
	var names []string
	fields := make([]kryoField, n)
	for i := range n {
		names = append(names, fmt.Sprintf("f%d", i))
		fields[i] = anyField
	}
	slices.Sort(names)
	return kryoFields(names, fields...)
}

// fieldBody is a field as the content of an object.
func fieldBody(f kryoField) func(int) kryoBody {
	return func(int) kryoBody { return kryoBody{read: f.read, write: f.write, parse: f.parse} }
}
