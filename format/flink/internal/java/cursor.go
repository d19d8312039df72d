package java

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
)

// Cursor reads big-endian primitives from bytes in memory. It keeps the first error;
// every read after it returns zero. Decoders check Err once per structure. Errors
// carry the offset of the field that could not be read.
type Cursor struct {
	p     []byte
	off   int
	err   *format.Error
	names map[string]format.Text
}

// NewCursor returns a cursor at the start of p.
func NewCursor(p []byte) *Cursor { return &Cursor{p: p} }

// Of returns a cursor at the start of p.
func Of(p []byte) Cursor { return Cursor{p: p} }

// Offset returns the position of the next read.
func (c *Cursor) Offset() int { return c.off }

// Remaining returns the number of unread bytes.
func (c *Cursor) Remaining() int { return len(c.p) - c.off }

// Err returns the first error, or nil.
func (c *Cursor) Err() error {
	if c.err == nil {
		return nil
	}
	return c.err
}

// Fail records an error of a kind at offset off, unless there is one already.
func (c *Cursor) Fail(off int, kind error, msg string, args ...any) {
	if c.err == nil {
		c.err = format.Errorf(kind, msg, args...)
		c.err.Offset = int64(off)
	}
}

// take returns the next n bytes as a view, or nil after an error. what describes the
// expected bytes.
func (c *Cursor) take(n int, what string) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > len(c.p)-c.off {
		c.Fail(c.off, format.ErrTruncated, "cut short: expected %s, %s left", what, c.left())
		return nil
	}
	p := c.p[c.off : c.off+n : c.off+n]
	c.off += n
	return p
}

// Next returns the next n bytes as a view. If there are fewer, or after an error, it
// returns nil and reads nothing: a fast path, whose caller then reads step by step.
func (c *Cursor) Next(n int) []byte {
	if c.err != nil || n > len(c.p)-c.off {
		return nil
	}
	c.off += n
	return c.p[c.off-n : c.off]
}

// Back moves back by n bytes, which were read before.
func (c *Cursor) Back(n int) { c.off -= n }

// left returns the number of unread bytes as a text.
func (c *Cursor) left() string {
	switch n := c.Remaining(); n {
	case 0:
		return "nothing"
	case 1:
		return "1 byte"
	default:
		return fmt.Sprintf("%d bytes", n)
	}
}

// U8 reads one byte.
func (c *Cursor) U8() byte {
	if c.err == nil && c.off < len(c.p) {
		b := c.p[c.off]
		c.off++
		return b
	}
	c.take(1, "a byte")
	return 0
}

// Bool reads a byte that must be 0 or 1, the only values that Flink writes.
func (c *Cursor) Bool(what string) bool {
	off := c.off
	b := c.U8()
	if b > 1 {
		c.Fail(off, format.ErrCorrupt, "%s: expected 0 or 1, found %d", what, b)
	}
	return b == 1
}

// U16 reads an unsigned short.
func (c *Cursor) U16() uint16 {
	if p := c.take(2, "a 2-byte number"); p != nil {
		return binary.BigEndian.Uint16(p)
	}
	return 0
}

// I32 reads an int.
func (c *Cursor) I32() int32 {
	if p := c.Next(4); p != nil {
		return int32(binary.BigEndian.Uint32(p))
	}
	c.take(4, "a 4-byte number")
	return 0
}

// I64 reads a long.
func (c *Cursor) I64() int64 {
	if p := c.Next(8); p != nil {
		return int64(binary.BigEndian.Uint64(p))
	}
	c.take(8, "an 8-byte number")
	return 0
}

// Count reads an int that counts things of at least minSize bytes each. A count of
// more than the remaining bytes can hold is an error.
func (c *Cursor) Count(what string, minSize int) int {
	off := c.off
	n := int(c.I32())
	c.CheckCount(off, n, what, minSize)
	if c.err != nil {
		return 0
	}
	return n
}

// CheckCount is Count for a number that was read earlier, at offset off.
func (c *Cursor) CheckCount(off, n int, what string, minSize int) {
	switch {
	case c.err != nil:
	case n < 0:
		c.Fail(off, format.ErrCorrupt, "%s: invalid count %d", what, n)
	case n > c.Remaining()/minSize:
		c.Fail(off, format.ErrTruncated, "cut short: %s: expected %d, at least %d bytes; %s left", what, n, int64(n)*int64(minSize), c.left())
	}
}

// Bytes reads n bytes as a view.
func (c *Cursor) Bytes(n int, what string) []byte {
	if c.err == nil && (n < 0 || n > c.Remaining()) {
		what = fmt.Sprintf("%s of %d bytes", what, n)
	}
	return c.take(n, what)
}

// Blob reads an int length and that many bytes, as a view.
func (c *Cursor) Blob(what string) []byte {
	off := c.off
	n := c.I32()
	if n < 0 {
		c.Fail(off, format.ErrCorrupt, "%s: invalid length %d", what, n)
		return nil
	}
	if c.err == nil && int(n) > c.Remaining() {
		c.Fail(off, format.ErrTruncated, "cut short: expected %d bytes of %s, %s left", n, what, c.left())
		return nil
	}
	return c.take(int(n), what)
}

// Text reads modified UTF-8 with its 2-byte length.
func (c *Cursor) Text() format.Text {
	p, off := c.utf()
	if p == nil {
		return format.Text{}
	}
	t, ok := DecodeText(p)
	if !ok {
		c.Fail(off, format.ErrCorrupt, "a string of %d bytes is not modified UTF-8", len(p))
	}
	return t
}

// Name is Text for strings that repeat: equal ones share memory.
func (c *Cursor) Name() format.Text {
	p, off := c.utf()
	if p == nil {
		return format.Text{}
	}
	if t, ok := c.names[string(p)]; ok {
		return t
	}
	t, ok := DecodeText(p)
	if !ok {
		c.Fail(off, format.ErrCorrupt, "a string of %d bytes is not modified UTF-8", len(p))
		return t
	}
	if c.names == nil {
		c.names = map[string]format.Text{}
	}
	if len(c.names) < 4096 {
		c.names[string(p)] = t
	}
	return t
}

func (c *Cursor) utf() (p []byte, off int) {
	off = c.off
	n := int(c.U16())
	if c.err == nil && n > c.Remaining() {
		c.Fail(off, format.ErrTruncated, "cut short: expected a string of %d bytes, %s left", n, c.left())
		return nil, off
	}
	return c.take(n, "a string"), off
}

// Since returns the bytes read since offset off, as a view.
func (c *Cursor) Since(off int) []byte { return c.p[off:c.off:c.off] }

// Part calls read with the unread bytes, and moves past the bytes that it used.
// Offsets in an error of read count from the first of them.
func Part[T any](c *Cursor, read func(p []byte) (v T, used int, err error)) (v T) {
	if c.err != nil {
		return v
	}
	v, used, err := read(c.p[c.off:])
	part := &Cursor{}
	if err != nil && !errors.As(err, &part.err) {
		part.Fail(used, err, "%v", err)
	}
	c.Adopt(part, c.off)
	c.off += used
	return v
}

// AdoptWhole is Adopt for a part whose length was known: if it ends within a value, the
// input is not cut short but corrupt.
func (c *Cursor) AdoptWhole(part *Cursor, base int) {
	if part.err != nil && errors.Is(part.err, format.ErrTruncated) {
		e := *part.err
		e.Err = format.ErrCorrupt
		part.err = &e
	}
	c.Adopt(part, base)
}

// Adopt records the error of a cursor on a part of the input that starts at base.
func (c *Cursor) Adopt(part *Cursor, base int) {
	if c.err == nil && part.err != nil {
		e := *part.err
		e.Offset += int64(base)
		c.err = &e
	}
}
