package java

import "github.com/savepoint-tools/spt/format"

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
func SkipObject(c *Cursor) {
	off := c.Offset()
	if magic, version := c.U16(), c.U16(); c.err == nil && (magic != streamMagic || version != streamVersion) {
		c.Fail(off, format.ErrCorrupt, "not a Java object stream: it starts %04x %04x", magic, version)
		return
	}
	s := objectSkipper{c: c}
	s.object(0)
}

type classDesc struct {
	flags  byte
	elem   byte   // type character of an array's elements, 0 for other classes
	fields []byte // type characters
	super  *classDesc
}

// objectSkipper keeps the handle table: a class description where a handle
// names one, nil for everything else.
type objectSkipper struct {
	c       *Cursor
	handles []*classDesc
}

// object skips one object: content that is neither a block of bytes nor an end mark.
func (s *objectSkipper) object(depth int) {
	off := s.c.Offset()
	switch tag := s.content(depth); tag {
	case tcBlockData, tcBlockDataLong, tcEndBlockData:
		s.c.Fail(off, format.ErrCorrupt, "expected a Java object, found tag 0x%02x", tag)
	}
}

// content skips one element of the grammar and returns its tag.
func (s *objectSkipper) content(depth int) byte {
	c := s.c
	off := c.Offset()
	if depth > maxObjectDepth {
		c.Fail(off, format.ErrLimit, "Java objects nested more than %d deep", maxObjectDepth)
		return 0
	}
	tag := c.U8()
	if c.err != nil {
		return 0
	}
	switch tag {
	case tcNull, tcEndBlockData:
	case tcReference:
		s.reference(off)
	case tcClassDesc, tcProxyClassDesc:
		s.newClass(tag, depth)
	case tcClass:
		s.classDesc(depth + 1)
		s.handles = append(s.handles, nil)
	case tcString:
		c.Bytes(int(c.U16()), "a Java string")
		s.handles = append(s.handles, nil)
	case tcLongString:
		n := c.I64()
		if n < 0 {
			c.Fail(off, format.ErrCorrupt, "a Java string of %d bytes", n)
			return tag
		}
		if n > int64(c.Remaining()) {
			c.Fail(off, format.ErrTruncated, "cut short: expected a Java string of %d bytes, %d left", n, c.Remaining())
			return tag
		}
		c.Bytes(int(n), "a Java string")
		s.handles = append(s.handles, nil)
	case tcEnum:
		s.classDesc(depth + 1)
		s.handles = append(s.handles, nil)
		s.object(depth + 1) // the constant's name
	case tcArray:
		s.array(off, depth)
	case tcObject:
		d := s.classDesc(depth + 1)
		s.handles = append(s.handles, nil)
		s.classData(off, d, depth)
	case tcBlockData:
		c.Bytes(int(c.U8()), "a Java data block")
	case tcBlockDataLong:
		c.Blob("a Java data block")
	default:
		c.Fail(off, format.ErrCorrupt, "unknown tag 0x%02x in a Java object", tag)
	}
	return tag
}

func (s *objectSkipper) reference(off int) *classDesc {
	h := int(s.c.I32()) - baseHandle
	if s.c.err != nil {
		return nil
	}
	if h < 0 || h >= len(s.handles) {
		s.c.Fail(off, format.ErrCorrupt, "a Java object refers to handle %d of %d", h, len(s.handles))
		return nil
	}
	return s.handles[h]
}

// classDesc reads a class description: new, referred to, or null.
func (s *objectSkipper) classDesc(depth int) *classDesc {
	c := s.c
	off := c.Offset()
	switch tag := c.U8(); {
	case c.err != nil || tag == tcNull:
		return nil
	case tag == tcReference:
		d := s.reference(off)
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

func (s *objectSkipper) newClass(tag byte, depth int) *classDesc {
	c := s.c
	if depth > maxObjectDepth {
		c.Fail(c.Offset(), format.ErrLimit, "Java classes nested more than %d deep", maxObjectDepth)
		return nil
	}
	d := &classDesc{}
	if tag == tcProxyClassDesc {
		d.flags = scSerializable
		s.handles = append(s.handles, d)
		for range c.Count("interfaces of a Java proxy", 2) {
			c.Bytes(int(c.U16()), "an interface name")
		}
	} else {
		if name := c.Bytes(int(c.U16()), "a class name"); len(name) > 1 && name[0] == '[' {
			d.elem = name[1]
		}
		c.I64() // serialVersionUID
		s.handles = append(s.handles, d)
		d.flags = c.U8()
		n := int(c.U16())
		for range n {
			off := c.Offset()
			t := c.U8()
			c.Bytes(int(c.U16()), "a field name")
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
			d.fields = append(d.fields, t)
		}
	}
	s.annotation(depth)
	d.super = s.classDesc(depth + 1)
	return d
}

// annotation skips objects and blocks up to the end marker.
func (s *objectSkipper) annotation(depth int) {
	for s.c.err == nil {
		if s.content(depth+1) == tcEndBlockData {
			return
		}
	}
}

func (s *objectSkipper) classData(off int, d *classDesc, depth int) {
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
		switch {
		case d.flags&scSerializable != 0:
			for _, t := range d.fields {
				s.value(t, depth)
			}
			if d.flags&scWriteMethod != 0 {
				s.annotation(depth)
			}
		case d.flags&scExternalizable != 0 && d.flags&scBlockData != 0:
			s.annotation(depth)
		case d.flags&scExternalizable != 0:
			c.Fail(off, format.ErrUnsupported, "the end of a Java object is known only to its class")
		}
	}
}

func (s *objectSkipper) value(t byte, depth int) {
	c := s.c
	if n := primitiveSize(t); n > 0 {
		c.Bytes(n, "a Java field")
		return
	}
	s.object(depth + 1)
}

func (s *objectSkipper) array(off, depth int) {
	c := s.c
	d := s.classDesc(depth + 1)
	s.handles = append(s.handles, nil)
	if d == nil || d.elem == 0 {
		c.Fail(off, format.ErrCorrupt, "the class of a Java array is not an array class")
		return
	}
	size := primitiveSize(d.elem)
	n := c.Count("a Java array", max(size, 1))
	if size > 0 {
		c.Bytes(n*size, "a Java array")
		return
	}
	for i := 0; i < n && c.err == nil; i++ {
		s.object(depth + 1)
	}
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
