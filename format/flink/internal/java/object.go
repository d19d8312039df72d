package java

import (
	"encoding/binary"

	"github.com/savepoint-tools/spt/format"
)

// Object stream constants (Java Object Serialization Specification, chapter
// 6). Wire format: never change.
const (
	streamMagic   = 0xaced
	streamVersion = 5

	tcNull           = 0x70
	tcReference      = 0x71
	tcClassDesc      = 0x72
	tcObject         = 0x73
	tcString         = 0x74
	tcArray          = 0x75
	tcClass          = 0x76
	tcBlockData      = 0x77
	tcEndBlockData   = 0x78
	tcBlockDataLong  = 0x7a
	tcLongString     = 0x7c
	tcProxyClassDesc = 0x7d
	tcEnum           = 0x7e

	baseHandle = 0x7e0000

	scWriteMethod    = 0x01
	scSerializable   = 0x02
	scExternalizable = 0x04
	scBlockData      = 0x08

	maxObjectDepth = 64
)

// SkipObject reads one complete Java object stream (header and one object, or null)
// to its end. It parses the grammar and does not know classes, so it detects
// truncated or invalid streams of any class.
func SkipObject(c *Cursor) { readStream(c, false) }

// ReadObject is SkipObject that returns the object. It runs nothing: an object is the
// fields that the stream has, whatever its class would make of them. Objects can
// refer to each other in cycles.
func ReadObject(c *Cursor) *Object { return readStream(c, true) }

func readStream(c *Cursor, build bool) *Object {
	off := c.Offset()
	if magic, version := c.U16(), c.U16(); c.err == nil && (magic != streamMagic || version != streamVersion) {
		c.Fail(off, format.ErrCorrupt, "not a Java object stream: it starts %04x %04x", magic, version)
		return nil
	}
	s := objectReader{c: c, build: build}
	return s.object(0)
}

// ObjectKind is the kind of an object.
type ObjectKind uint8

// The kinds.
const (
	ObjectPlain  ObjectKind = iota // Fields, and Parts written by its class
	ObjectString                   // Text
	ObjectEnum                     // Text: the name of the constant
	ObjectArray                    // Parts, or Data for primitives
	ObjectClass                    // Class is the class that the object represents
	ObjectBlock                    // Data: bytes written by a class
)

// Object is one object of a stream. Null is a nil *Object.
type Object struct {
	Kind   ObjectKind
	Class  string // binary name; of an array as Java writes it: "[I"
	Text   string
	Data   []byte // a view of the input
	Fields []Field
	Parts  []*Object
}

// Field is a field of an object.
type Field struct {
	Name  string
	Owner string // the class that declares it
	Type  byte   // 'I', 'Z', …; 'L' and '[' for objects
	Bits  int64  // of a primitive: a number, or the bits of a float
	Value *Object
}

// Field returns the field with this name that is declared closest to the class of the
// object, or nil.
func (o *Object) Field(name string) *Field {
	if o != nil {
		for i := len(o.Fields) - 1; i >= 0; i-- {
			if o.Fields[i].Name == name {
				return &o.Fields[i]
			}
		}
	}
	return nil
}

// Object returns the object in a field; nil if it is null or absent.
func (o *Object) Object(name string) *Object {
	if f := o.Field(name); f != nil {
		return f.Value
	}
	return nil
}

// Int returns the number in a field, and whether the field is present.
func (o *Object) Int(name string) (n int64, ok bool) {
	if f := o.Field(name); f != nil && f.Type != 'L' && f.Type != '[' {
		return f.Bits, true
	}
	return 0, false
}

type classDesc struct {
	name   string
	flags  byte
	elem   byte // type character of an array's elements, 0 for other classes
	fields []fieldDesc
	super  *classDesc
}

type fieldDesc struct {
	typ  byte
	name string
}

// objectReader keeps the handle table: a class description where a handle names one,
// and objects if they are built.
type objectReader struct {
	c       *Cursor
	build   bool
	handles []handle
}

type handle struct {
	class  *classDesc
	object *Object
}

// object reads one object: content that is neither a block of bytes nor an end mark.
func (s *objectReader) object(depth int) *Object {
	off := s.c.Offset()
	tag, o := s.content(depth)
	switch tag {
	case tcBlockData, tcBlockDataLong, tcEndBlockData:
		s.c.Fail(off, format.ErrCorrupt, "expected a Java object, found tag 0x%02x", tag)
	}
	return o
}

// assign adds an object to the handles. If objects are not built it returns a
// shared one, which must not be read.
func (s *objectReader) assign(kind ObjectKind, class string) *Object {
	o := &skipped
	if s.build {
		o = &Object{Kind: kind, Class: class}
	}
	s.handles = append(s.handles, handle{object: o})
	return o
}

var skipped Object

// content reads one element of the grammar and returns its tag.
func (s *objectReader) content(depth int) (tag byte, o *Object) {
	c := s.c
	off := c.Offset()
	if depth > maxObjectDepth {
		c.Fail(off, format.ErrLimit, "Java objects nested more than %d deep", maxObjectDepth)
		return 0, nil
	}
	tag = c.U8()
	if c.err != nil {
		return 0, nil
	}
	switch tag {
	case tcNull, tcEndBlockData:
	case tcReference:
		o = s.reference(off).object
	case tcClassDesc, tcProxyClassDesc:
		s.newClass(tag, depth)
	case tcClass:
		d := s.classDesc(depth + 1)
		o = s.assign(ObjectClass, d.named())
	case tcString:
		o = s.text(c.Bytes(int(c.U16()), "a Java string"))
	case tcLongString:
		n := c.I64()
		if n < 0 {
			c.Fail(off, format.ErrCorrupt, "a Java string of %d bytes", n)
			return tag, nil
		}
		if n > int64(c.Remaining()) {
			c.Fail(off, format.ErrTruncated, "cut short: expected a Java string of %d bytes, %d left", n, c.Remaining())
			return tag, nil
		}
		o = s.text(c.Bytes(int(n), "a Java string"))
	case tcEnum:
		d := s.classDesc(depth + 1)
		o = s.assign(ObjectEnum, d.named())
		name := s.object(depth + 1) // the constant's name
		if s.build && name != nil {
			o.Text = name.Text
		}
	case tcArray:
		o = s.array(off, depth)
	case tcObject:
		d := s.classDesc(depth + 1)
		o = s.assign(ObjectPlain, d.named())
		s.classData(off, d, o, depth)
	case tcBlockData:
		o = s.block(c.Bytes(int(c.U8()), "a Java data block"))
	case tcBlockDataLong:
		o = s.block(c.Blob("a Java data block"))
	default:
		c.Fail(off, format.ErrCorrupt, "unknown tag 0x%02x in a Java object", tag)
	}
	return tag, o
}

func (d *classDesc) named() string {
	if d == nil {
		return ""
	}
	return d.name
}

func (s *objectReader) text(p []byte) *Object {
	o := s.assign(ObjectString, "java.lang.String")
	if s.build {
		t, _ := DecodeText(p)
		o.Text = t.String()
	}
	return o
}

func (s *objectReader) block(p []byte) *Object {
	if !s.build {
		return nil
	}
	return &Object{Kind: ObjectBlock, Data: p}
}

func (s *objectReader) reference(off int) handle {
	h := int(s.c.I32()) - baseHandle
	if s.c.err != nil {
		return handle{}
	}
	if h < 0 || h >= len(s.handles) {
		s.c.Fail(off, format.ErrCorrupt, "a Java object refers to handle %d of %d", h, len(s.handles))
		return handle{}
	}
	return s.handles[h]
}

// classDesc reads a class description: new, referred to, or null.
func (s *objectReader) classDesc(depth int) *classDesc {
	c := s.c
	off := c.Offset()
	switch tag := c.U8(); {
	case c.err != nil || tag == tcNull:
		return nil
	case tag == tcReference:
		d := s.reference(off).class
		if d == nil {
			c.Fail(off, format.ErrCorrupt, "a Java object refers to a handle that is not a class")
		}
		return d
	case tag == tcClassDesc || tag == tcProxyClassDesc:
		return s.newClass(tag, depth)
	default:
		c.Fail(off, format.ErrCorrupt, "expected a Java class, found tag 0x%02x", tag)
		return nil
	}
}

func (s *objectReader) newClass(tag byte, depth int) *classDesc {
	c := s.c
	if depth > maxObjectDepth {
		c.Fail(c.Offset(), format.ErrLimit, "Java classes nested more than %d deep", maxObjectDepth)
		return nil
	}
	d := &classDesc{}
	if tag == tcProxyClassDesc {
		d.flags = scSerializable
		s.handles = append(s.handles, handle{class: d})
		for range c.Count("interfaces of a Java proxy", 2) {
			c.Bytes(int(c.U16()), "an interface name")
		}
	} else {
		name := c.Bytes(int(c.U16()), "a class name")
		if len(name) > 1 && name[0] == '[' {
			d.elem = name[1]
		}
		d.name = s.name(name)
		c.I64() // serialVersionUID
		s.handles = append(s.handles, handle{class: d})
		d.flags = c.U8()
		n := int(c.U16())
		for range n {
			off := c.Offset()
			t := c.U8()
			name := c.Bytes(int(c.U16()), "a field name")
			switch t {
			case 'B', 'C', 'D', 'F', 'I', 'J', 'S', 'Z':
			case 'L', '[':
				s.object(depth + 1) // the field's type
			default:
				c.Fail(off, format.ErrCorrupt, "unknown type 0x%02x of a Java field", t)
			}
			if c.err != nil {
				return d
			}
			d.fields = append(d.fields, fieldDesc{t, s.name(name)})
		}
	}
	s.annotation(depth)
	d.super = s.classDesc(depth + 1)
	return d
}

// name returns a name if objects are built.
func (s *objectReader) name(p []byte) string {
	if !s.build {
		return ""
	}
	t, _ := DecodeText(p)
	return t.String()
}

// annotation reads objects and blocks up to the end marker.
func (s *objectReader) annotation(depth int) (all []*Object) {
	for s.c.err == nil {
		tag, o := s.content(depth + 1)
		if tag == tcEndBlockData {
			break
		}
		if s.build {
			all = append(all, o)
		}
	}
	return all
}

func (s *objectReader) classData(off int, d *classDesc, o *Object, depth int) {
	c := s.c
	var chain []*classDesc
	for ; d != nil; d = d.super {
		chain = append(chain, d)
		if len(chain) > maxObjectDepth {
			c.Fail(off, format.ErrLimit, "a Java class with more than %d ancestors", maxObjectDepth)
			return
		}
	}
	for i := len(chain) - 1; i >= 0 && c.err == nil; i-- {
		d := chain[i]
		var written []*Object
		switch {
		case d.flags&scSerializable != 0:
			fields := d.fields
			if d.flags&scWriteMethod != 0 && c.atBlock() {
				fields = nil // its writeObject writes data in place of them
			}
			for _, f := range fields {
				field := s.value(f, depth)
				if s.build {
					field.Owner = d.name
					o.Fields = append(o.Fields, field)
				}
			}
			if d.flags&scWriteMethod != 0 {
				written = s.annotation(depth)
			}
		case d.flags&scExternalizable != 0 && d.flags&scBlockData != 0:
			written = s.annotation(depth)
		case d.flags&scExternalizable != 0:
			c.Fail(off, format.ErrUnsupported, "the end of a Java object is known only to its class")
		}
		if s.build {
			o.Parts = append(o.Parts, written...)
		}
	}
}

// atBlock reports whether a block of data follows: its tag, its length, and after it
// another tag. A field cannot begin like this, unless it is a number that looks like one.
func (c *Cursor) atBlock() bool {
	p := c.p[c.off:]
	n := 0
	switch {
	case len(p) > 2 && p[0] == tcBlockData:
		n = 2 + int(p[1])
	case len(p) > 5 && p[0] == tcBlockDataLong:
		n = 5 + int(binary.BigEndian.Uint32(p[1:]))
	}
	return n > 0 && n < len(p) && p[n] >= tcNull && p[n] <= tcEnum
}

func (s *objectReader) value(f fieldDesc, depth int) Field {
	c := s.c
	out := Field{Name: f.name, Type: f.typ}
	n := primitiveSize(f.typ)
	if n == 0 {
		out.Value = s.object(depth + 1)
		return out
	}
	for _, b := range c.Bytes(n, "a Java field") {
		out.Bits = out.Bits<<8 | int64(b)
	}
	switch f.typ {
	case 'B', 'S', 'I':
		shift := 64 - 8*n
		out.Bits = out.Bits << shift >> shift
	}
	return out
}

func (s *objectReader) array(off, depth int) *Object {
	c := s.c
	d := s.classDesc(depth + 1)
	o := s.assign(ObjectArray, d.named())
	if d == nil || d.elem == 0 {
		c.Fail(off, format.ErrCorrupt, "the class of a Java array is not an array class")
		return o
	}
	size := primitiveSize(d.elem)
	n := c.Count("a Java array", max(size, 1))
	if size > 0 {
		p := c.Bytes(n*size, "a Java array")
		if s.build {
			o.Data = p
		}
		return o
	}
	for i := 0; i < n && c.err == nil; i++ {
		if e := s.object(depth + 1); s.build {
			o.Parts = append(o.Parts, e)
		}
	}
	return o
}

func primitiveSize(t byte) int {
	switch t {
	case 'B', 'Z':
		return 1
	case 'C', 'S':
		return 2
	case 'F', 'I':
		return 4
	case 'D', 'J':
		return 8
	}
	return 0
}
