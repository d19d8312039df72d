// Package msg implements the subset of msgpack that .spt files use: finding the end
// of a value, and the shortest encoding of each type. It does not allocate, and is
// not a general encoder: format/spt/native encodes the values of Go programs.
//
//	n, err := msg.Size(p)
//	p = msg.AppendInt(p, 7)
package msg

import (
	"encoding/binary"
	"errors"
)

var (
	// ErrShort: the bytes end within a value.
	ErrShort = errors.New("the value is cut short")
	// ErrCode: the byte 0xc1, which does not start a value.
	ErrCode = errors.New("the byte 0xc1, which does not start a msgpack value")
)

// Head reads what precedes the content of the value at the start of p: head bytes,
// then size bytes of content, then inside further values that belong to it. The
// content and the values may extend beyond p.
//
//	first byte   meaning                          then
//	00–7f e0–ff  small integer                    nothing
//	80–8f        map of the low 4 bits            that many keys and values
//	90–9f        array of the low 4 bits          that many values
//	a0–bf        string of the low 5 bits         that many bytes
//	c0 c2 c3     nil, false, true                 nothing
//	c1           never used
//	c4 c5 c6     binary                           u8, u16 or u32 length, bytes
//	c7 c8 c9     extension                        u8, u16 or u32 length, a type, bytes
//	ca cb        float                            4, 8 bytes
//	cc–cf d0–d3  unsigned, signed integer         1, 2, 4, 8 bytes
//	d4–d8        extension                        a type, 1, 2, 4, 8, 16 bytes
//	d9 da db     string                           u8, u16 or u32 length, bytes
//	dc dd        array                            u16 or u32 count, values
//	de df        map                              u16 or u32 count, keys and values
//
// All numbers are big-endian. Wire format: never change.
func Head(p []byte) (head int, size, inside int64, err error) {
	if len(p) == 0 {
		return 0, 0, 0, ErrShort
	}
	c := p[0]
	head = 1
	length := func(width int) int64 { // of width bytes after the first
		head += width
		if len(p) < head {
			err = ErrShort
			return 0
		}
		return int64(Uint(p[1:head]))
	}
	switch {
	case c <= 0x7f, c >= 0xe0, c == 0xc0, c == 0xc2, c == 0xc3:
	case c <= 0x8f:
		inside = 2 * int64(c&0x0f)
	case c <= 0x9f:
		inside = int64(c & 0x0f)
	case c <= 0xbf:
		size = int64(c & 0x1f)
	case c == 0xc1:
		err = ErrCode
	case c <= 0xc6:
		size = length(1 << (c - 0xc4))
	case c <= 0xc9:
		size = length(1<<(c-0xc7)) + 1
	case c <= 0xcb:
		size = 4 << (c - 0xca)
	case c <= 0xcf:
		size = 1 << (c - 0xcc)
	case c <= 0xd3:
		size = 1 << (c - 0xd0)
	case c <= 0xd8:
		size = 1 + 1<<(c-0xd4)
	case c <= 0xdb:
		size = length(1 << (c - 0xd9))
	case c <= 0xdd:
		inside = length(2 << (c - 0xdc))
	default:
		inside = 2 * length(2<<(c-0xde))
	}
	if err != nil {
		return 0, 0, 0, err
	}
	return head, size, inside, nil
}

// Uint returns a big-endian integer of up to 8 bytes.
func Uint(p []byte) uint64 {
	var v uint64
	for _, b := range p {
		v = v<<8 | uint64(b)
	}
	return v
}

// Shape returns the length n of the head and content of the value at the start of
// p, and the number of values that follow and belong to it. If the content extends
// beyond p, the error is ErrShort.
func Shape(p []byte) (n int, inside int64, err error) {
	head, size, inside, err := Head(p)
	if err == nil && size > int64(len(p)-head) {
		err = ErrShort
	}
	if err != nil {
		return 0, 0, err
	}
	return head + int(size), inside, nil
}

// Size returns the length of the value at the start of p. It does not recurse,
// because the file determines the depth of nesting.
func Size(p []byte) (int, error) {
	at := 0
	for left := int64(1); left > 0; {
		n, inside, err := Shape(p[at:])
		if err != nil {
			return 0, err
		}
		at += n
		left += inside - 1
		if left > int64(len(p)-at) { // a value is at least one byte
			return 0, ErrShort
		}
	}
	return at, nil
}

// IsMap reports whether a value that starts with c is a map.
func IsMap(c byte) bool { return c&0xf0 == 0x80 || c == 0xde || c == 0xdf }

// IsArray reports whether a value that starts with c is an array.
func IsArray(c byte) bool { return c&0xf0 == 0x90 || c == 0xdc || c == 0xdd }

// IsString reports whether a value that starts with c is a string.
func IsString(c byte) bool { return c&0xe0 == 0xa0 || c >= 0xd9 && c <= 0xdb }

// IsBinary reports whether a value that starts with c is binary.
func IsBinary(c byte) bool { return c >= 0xc4 && c <= 0xc6 }

// Nil is the nil value.
const Nil = 0xc0

// AppendInt appends an integer.
func AppendInt(dst []byte, v int64) []byte {
	switch {
	case v >= 0 && v < 1<<7:
		return append(dst, byte(v))
	case v >= 0 && v < 1<<8:
		return append(dst, 0xcc, byte(v))
	case v >= 0 && v < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(v))
	case v >= 0 && v < 1<<32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(v))
	case v >= 0:
		return binary.BigEndian.AppendUint64(append(dst, 0xcf), uint64(v))
	case v >= -1<<5:
		return append(dst, byte(v))
	case v >= -1<<7:
		return append(dst, 0xd0, byte(v))
	case v >= -1<<15:
		return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(v))
	case v >= -1<<31:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(v))
	}
	return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(v))
}

// AppendBool appends true or false.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 0xc3)
	}
	return append(dst, 0xc2)
}

// AppendString appends a string.
func AppendString(dst []byte, s string) []byte {
	switch n := len(s); {
	case n < 1<<5:
		dst = append(dst, 0xa0|byte(n))
	case n < 1<<8:
		dst = append(dst, 0xd9, byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xda), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n))
	}
	return append(dst, s...)
}

// AppendBinary appends binary.
func AppendBinary(dst, p []byte) []byte {
	switch n := len(p); {
	case n < 1<<8:
		dst = append(dst, 0xc4, byte(n))
	case n < 1<<16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xc5), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xc6), uint32(n))
	}
	return append(dst, p...)
}

// AppendArray appends the head of an array of n values.
func AppendArray(dst []byte, n int) []byte {
	switch {
	case n < 1<<4:
		return append(dst, 0x90|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, 0xdc), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xdd), uint32(n))
}

// AppendMap appends the head of a map of n entries.
func AppendMap(dst []byte, n int) []byte {
	switch {
	case n < 1<<4:
		return append(dst, 0x80|byte(n))
	case n < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, 0xde), uint16(n))
	}
	return binary.BigEndian.AppendUint32(append(dst, 0xdf), uint32(n))
}
