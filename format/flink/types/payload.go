package types

import (
	"errors"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// Payloads: values that take all bytes that are left, whose format is not Flink's.
// Programs store them as byte arrays, or with serializers of their own.

// payloads are the payloads without an argument, by their words.
var payloads = map[string]codec{"json": document{}, "utf8": utf8Codec, "raw": rawCodec, "pickle": pickleCodec{pickleClasses}}

// rest returns the bytes that are left, without reading them.
func (r *reader) rest() []byte {
	p := r.Next(r.Remaining())
	r.Back(len(p))
	return p
}

var (
	utf8Codec = scalar{typ: &Type{Kind: TypeString}, from: stringDataCodec.from,
		over: func(r *reader) { r.Next(r.Remaining()) },
		get: func(r *reader) value.Value {
			p := r.rest()
			for i := 0; i < len(p); {
				c, n := utf8.DecodeRune(p[i:])
				if c == utf8.RuneError && n == 1 {
					r.Fail(r.Offset()+i, format.ErrCorrupt, "text that is not UTF-8")
					return value.Null()
				}
				i += n
			}
			r.Next(len(p))
			return value.String(r.arena.Text(p))
		},
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindString) {
				if !utf8.ValidString(v.Text()) {
					w.fail("the string %q is not UTF-8", v.Text())
				}
				w.p = append(w.p, v.Text()...)
			}
		},
	}
	rawCodec = scalar{typ: &Type{Kind: TypeBytes}, from: bytesCodec.from,
		over: func(r *reader) { r.Next(r.Remaining()) },
		get:  func(r *reader) value.Value { return value.BytesOf(r.arena.Text(r.Next(r.Remaining()))) },
		put: func(w *writer, v value.Value) {
			if w.expects(v, value.KindBytes) {
				w.p = append(w.p, v.Text()...)
			}
		},
	}
)

// document is the codec of JSON documents: objects are records, numbers integers or
// decimals. It reads any JSON, and writes it without white space.
type document struct{}

func (d document) skip(r *reader) { d.read(r) }

func (document) read(r *reader) value.Value {
	if r.Err() != nil {
		return value.Null()
	}
	off := r.Offset()
	n, err := jsontext.Parse(r.rest())
	if err != nil {
		r.adopt(off, err)
		return value.Null()
	}
	p := parser{}
	v := p.document(&n, func(name string) string { return name })
	if p.err != nil {
		r.Fail(off, format.ErrUnsupported, "%v", p.err)
	}
	r.Next(r.Remaining())
	return v
}

func (document) parse(p *parser, n *node) value.Value {
	return p.document(n, func(name string) string {
		if strings.HasPrefix(name, "@@") { // see value.FieldMember
			return name[1:]
		}
		return name
	})
}

func (document) describe(*describer) *Type { return &Type{Kind: TypeAny, Null: true} }

// document converts a document. name returns the name of a field.
func (p *parser) document(n *node, name func(string) string) value.Value {
	switch n.Kind {
	case jsontext.Null:
		return value.Null()
	case jsontext.Bool:
		return value.Bool(n.Text == "true")
	case jsontext.String:
		return value.String(n.Text)
	case jsontext.Number:
		unscaled, scale := p.decimal(n)
		if plain := scale == 0 && n.Text != "-0" && !strings.ContainsAny(n.Text, ".eE"); plain && unscaled.IsInt64() {
			return value.Int(unscaled.Int64())
		} else if plain && unscaled.IsUint64() {
			return value.Uint(unscaled.Uint64())
		}
		return value.Decimal(twosComplement(unscaled), scale)
	}
	all := make([]value.Value, len(n.Parts))
	for i := range all {
		if all[i] = p.document(&n.Parts[i], name); p.err != nil {
			return value.Null()
		}
	}
	if n.Kind == jsontext.Array {
		return value.List(all)
	}
	shape := &value.Shape{Names: make([]string, len(n.Names))}
	for i := range n.Names {
		shape.Names[i] = name(n.Names[i])
	}
	return value.Record(shape, all)
}

func (d document) write(w *writer, v value.Value) {
	switch v.Kind() {
	case value.KindList, value.KindRecord:
		ends := "[]"
		if v.Kind() == value.KindRecord {
			ends = "{}"
		}
		w.p = append(w.p, ends[0])
		for i := range v.Len() {
			if i > 0 {
				w.p = append(w.p, ',')
			}
			if v.Kind() == value.KindRecord {
				w.p = append(value.String(v.Name(i)).AppendJSON(w.p, nil, nil), ':')
			}
			d.write(w, v.At(i))
		}
		w.p = append(w.p, ends[1])
	case value.KindNull, value.KindBool, value.KindInt, value.KindUint, value.KindString, value.KindBigInt, value.KindDecimal:
		w.p = v.WithClass("").AppendJSON(w.p, nil, nil)
	default:
		w.fail("%v is not part of a JSON document", v.Kind())
	}
}

// foreign is the codec of a payload that a codec of another package reads.
type foreign struct{ of value.Codec }

// adopt records the error of a codec of another package that read from offset off.
func (r *reader) adopt(off int, err error) {
	e, ok := err.(*format.Error) // not wrapped: a wrapper adds context
	if !ok {
		e = &format.Error{Offset: -1, Msg: err.Error()}
	}
	kind := format.ErrUnsupported
	for _, k := range []error{format.ErrTruncated, format.ErrCorrupt, format.ErrLimit} {
		if errors.Is(err, k) {
			kind = k
			break
		}
	}
	r.Fail(off+int(max(0, min(e.Offset, math.MaxInt32))), kind, "%s", e.Msg)
}

func (f foreign) skip(r *reader) {
	if r.Err() != nil {
		return
	}
	n, err := f.of.Skip(r.rest())
	f.end(r, n, err)
}

func (f foreign) read(r *reader) value.Value {
	if r.Err() != nil {
		return value.Null()
	}
	v, n, err := f.of.Read(r.rest())
	f.end(r, n, err)
	return v
}

// end moves past the n bytes that the codec read.
func (f foreign) end(r *reader, n int, err error) {
	if err != nil {
		r.adopt(r.Offset(), err)
		return
	}
	r.Bytes(n, "a payload")
}

func (f foreign) write(w *writer, v value.Value) {
	if w.err == nil {
		w.p, w.err = f.of.Append(w.p, v)
	}
}

func (f foreign) parse(p *parser, n *node) value.Value {
	v, err := value.FromJSON(f.of, appendNode(nil, n))
	if j := (*value.JSONError)(nil); errors.As(err, &j) {
		p.path = append(p.path, j.Path)
		p.fail("%s", j.Problem)
		p.path = p.path[:len(p.path)-1]
	} else if err != nil {
		p.fail("%v", err)
	}
	return v
}

func (f foreign) describe(*describer) *Type {
	if c, ok := f.of.(interface{ Type() *Type }); ok {
		t := *c.Type()
		return &t
	}
	return &Type{Kind: TypeAny, Null: true}
}

// appendNode appends the JSON that a node was read from.
func appendNode(dst []byte, n *node) []byte {
	switch n.Kind {
	case jsontext.Null:
		return append(dst, "null"...)
	case jsontext.String:
		return value.String(n.Text).AppendJSON(dst, nil, nil)
	case jsontext.Array, jsontext.Object:
		ends := "[]"
		if n.Kind == jsontext.Object {
			ends = "{}"
		}
		dst = append(dst, ends[0])
		for i := range n.Parts {
			if i > 0 {
				dst = append(dst, ',')
			}
			if n.Kind == jsontext.Object {
				dst = append(value.String(n.Names[i]).AppendJSON(dst, nil, nil), ':')
			}
			dst = appendNode(dst, &n.Parts[i])
		}
		return append(dst, ends[1])
	}
	return append(dst, n.Text...)
}

// FromJSON returns the value that p, which is one JSON value, represents, for codecs of
// other packages: see [value.JSONCodec].
func (t *Type) FromJSON(p []byte) (value.Value, error) {
	n, err := jsontext.Parse(p)
	if err != nil {
		return value.Value{}, err
	}
	var ps parser
	v := parserOf(t, map[string]*avroRecord{}).parse(&ps, &n)
	if ps.err != nil {
		return value.Value{}, ps.err
	}
	return v, nil
}

// parserOf returns a codec that only parses the JSON of a type.
func parserOf(t *Type, named map[string]*avroRecord) codec {
	all := make([]codec, len(t.Parts))
	var c *avroRecord
	if t.Kind == TypeRecord {
		c = &avroRecord{name: t.Class}
		named[t.Class] = c
	}
	for i, p := range t.Parts {
		all[i] = parserOf(p, named)
	}
	switch t.Kind {
	case TypeRecord:
		c.record = record{fieldsOf(t.Names...), tupleOf(all...)}
		return c
	case TypeRef:
		if c := named[t.Class]; c != nil {
			return c
		}
	case TypeOptional:
		return nullIf{1, all[0]}
	case TypeList:
		return array{1, all[0]}
	case TypeMap:
		return mapOf{all[0], all[1]}
	case TypeBool:
		return boolCodec
	case TypeInt:
		return integer(t.Bits / 8)
	case TypeFloat:
		if t.Bits == 32 {
			return floatCodec
		}
		return doubleCodec
	case TypeString:
		return stringDataCodec
	case TypeBytes:
		return bytesCodec
	}
	return document{}
}
