package types

import (
	"bytes"
	"encoding/hex"
	"slices"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/internal/jsontext"
	"github.com/savepoint-tools/spt/format/value"
)

// The values of Flink's JavaSerializer: Java object streams. Strings, boxed primitives
// and null are decoded; every other object is the bytes of its stream with the name of
// its class. Streams are parsed, and nothing in them is run.

// boxedType is a class whose objects are primitives.
type boxedType struct {
	class string
	one   scalar
	head  []byte // of a stream: all but the primitive
	bare  bool   // the JSON of a value does not need the class
}

func head(s string) []byte {
	p, err := hex.DecodeString("aced0005" + s)
	if err != nil {
		panic("internal error: " + err.Error())
	}
	return p
}

const numberClass = "7872" + "00106a6176612e6c616e672e4e756d626572" + "86ac951d0b94e08b" + "020000" + "7870"

// boxed are the classes of boxed primitives. Wire format: never change.
var boxed = []boxedType{
	{"java.lang.Integer", intCodec, head("7372" + "00116a6176612e6c616e672e496e7465676572" + "12e2a0a4f7818738" + "020001" + "49000576616c7565" + numberClass), true},
	{"java.lang.Boolean", boolCodec, head("7372" + "00116a6176612e6c616e672e426f6f6c65616e" + "cd207280d59cfaee" + "020001" + "5a000576616c7565" + "7870"), true},
	{"java.lang.Long", longCodec, head("7372" + "000e6a6176612e6c616e672e4c6f6e67" + "3b8be490cc8f23df" + "020001" + "4a000576616c7565" + numberClass), false},
	{"java.lang.Short", shortCodec, head("7372" + "000f6a6176612e6c616e672e53686f7274" + "684d37133460da52" + "020001" + "53000576616c7565" + numberClass), false},
	{"java.lang.Byte", byteCodec, head("7372" + "000e6a6176612e6c616e672e42797465" + "9c4e6084ee50f51c" + "020001" + "42000576616c7565" + numberClass), false},
	{"java.lang.Float", floatCodec, head("7372" + "000f6a6176612e6c616e672e466c6f6174" + "daedc9a2db3cf0ec" + "020001" + "46000576616c7565" + numberClass), false},
	{"java.lang.Double", doubleCodec, head("7372" + "00106a6176612e6c616e672e446f75626c65" + "80b3c24a296bfb04" + "020001" + "44000576616c7565" + numberClass), false},
	{"java.lang.Character", charCodec, head("7372" + "00136a6176612e6c616e672e436861726163746572" + "348b47d96b1a2678" + "020001" + "43000576616c7565" + "7870"), false},
}

var (
	javaNull   = head("70")
	javaString = head("74") // then UTF
)

// javaStream reads a Java object stream.
type javaStream struct{}

func (javaStream) skip(r *reader) { java.SkipObject(&r.Cursor) }

func (javaStream) read(r *reader) value.Value {
	off := r.Offset()
	o := java.ReadObject(&r.Cursor)
	if r.Err() != nil {
		return value.Null()
	}
	p := r.Since(off)
	if v, ok := plainObject(p); ok {
		return v
	}
	class := ""
	if o != nil {
		class = o.Class
	}
	if class == "" || !utf8.ValidString(class) {
		r.Fail(off, format.ErrUnsupported, "a Java object without a class is not decoded")
		return value.Null()
	}
	return value.Bytes(p).WithClass(class)
}

// plainObject returns the value of a stream of a string, a primitive or null that is
// as Java writes it.
func plainObject(p []byte) (value.Value, bool) {
	if bytes.Equal(p, javaNull) {
		return value.Null(), true
	}
	one := func(head []byte, c scalar) (value.Value, bool) {
		if !bytes.HasPrefix(p, head) {
			return value.Null(), false
		}
		r := &reader{Cursor: java.Of(p[len(head):]), arena: new(value.Arena)}
		v := c.get(r)
		return v, r.Err() == nil && r.Remaining() == 0
	}
	if v, ok := one(javaString, utfCodec); ok {
		return v, true
	}
	for _, b := range boxed {
		if v, ok := one(b.head, b.one); ok {
			if !b.bare {
				v = v.WithClass(b.class)
			}
			return v, true
		}
	}
	return value.Null(), false
}

func (javaStream) write(w *writer, v value.Value) {
	class := v.Class()
	switch {
	case v.IsNull() && class == "":
		w.p = append(w.p, javaNull...)
	case v.Kind() == value.KindString && class == "":
		w.p = append(w.p, javaString...)
		utfCodec.put(w, v)
	case v.Kind() == value.KindBytes && class != "":
		w.p = append(w.p, v.Text()...)
	default:
		i := slices.IndexFunc(boxed, func(b boxedType) bool {
			return class == b.class && !b.bare || class == "" && b.bare && (v.Kind() == value.KindBool) == (b.one.op == opBool)
		})
		if i < 0 {
			w.fail("%v of class %q cannot be written as a Java object", v.Kind(), class)
			return
		}
		w.p = append(w.p, boxed[i].head...)
		boxed[i].one.put(w, v.WithClass(""))
	}
}

func (javaStream) parse(p *parser, n *node) value.Value {
	class, inner := classed(n)
	switch {
	case class == "" && n.Kind == jsontext.Null:
		return value.Null()
	case class == "" && n.Kind == jsontext.String:
		return value.String(n.Text)
	case class == "" && n.Kind == jsontext.Bool:
		return boolCodec.from(p, n)
	case class == "":
		return intCodec.from(p, n)
	}
	for _, b := range boxed {
		if b.class == class {
			if v := b.one.from(p, inner); b.bare {
				return v
			} else {
				return v.WithClass(class)
			}
		}
	}
	stream := p.bytes(inner)
	c := java.NewCursor(stream)
	o := java.ReadObject(c)
	if p.err == nil && (c.Err() != nil || c.Remaining() > 0 || o == nil || o.Class != class) {
		return p.fail("expected the Java object stream of a %s", class)
	}
	if v, ok := plainObject(stream); ok {
		return v
	}
	return value.Bytes(stream).WithClass(class)
}
