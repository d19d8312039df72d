package spt

import (
	"bytes"
	"errors"
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
	"github.com/savepoint-tools/spt/internal/limit"
)

// cursor reads msgpack strictly: each value must be of the type that is asked
// for, and every count is compared with the bytes that are left. What is
// allocated for the file is charged against a budget first. It keeps the first
// error, after which everything reads as zero.
type cursor struct {
	raw     []byte
	at      int
	err     error
	lenient bool              // a newer minor version: unknown keys are skipped
	budget  int64             // bytes that may still be allocated
	memory  int64             // the whole budget
	names   map[string]string // strings seen, so that equal ones share memory
}

func newCursor(raw []byte, lenient bool, budget, memory int64) cursor {
	return cursor{raw: raw, lenient: lenient, budget: budget, memory: memory, names: make(map[string]string)}
}

// fail keeps an error. Its location is the byte of the manifest and the path that
// records and lists add.
func (c *cursor) fail(kind error, text string, args ...any) {
	if c.err == nil {
		c.err = format.Errorf(kind, text+" (manifest byte %d)", append(args, c.at)...)
	}
}

// charge takes n bytes, and what the allocator adds to them, from the budget.
func (c *cursor) charge(n int64) {
	if c.budget -= n + n/8 + 16; c.budget < 0 {
		c.fail(limit.Memory, "opening the file takes more than the limit of %d bytes of memory", c.memory)
	}
}

// left is the number of bytes after the current one.
func (c *cursor) left() int { return len(c.raw) - c.at }

// code is the next value's first byte, not consumed.
func (c *cursor) code() byte {
	if c.err == nil && c.left() == 0 {
		c.fail(format.ErrCorrupt, "the manifest ends in the middle of a value")
	}
	if c.err != nil {
		return 0
	}
	return c.raw[c.at]
}

// head consumes what precedes the content of the next value.
func (c *cursor) head() (size, inside int64) {
	if c.err != nil {
		return 0, 0
	}
	n, size, inside, err := msg.Head(c.raw[c.at:])
	switch {
	case errors.Is(err, msg.ErrShort):
		c.fail(format.ErrCorrupt, "the manifest ends in the middle of a value")
		return 0, 0
	case err != nil:
		c.fail(format.ErrCorrupt, "%v", err)
		return 0, 0
	}
	c.at += n
	return size, inside
}

func (c *cursor) wrong(want string, code byte) {
	c.fail(format.ErrCorrupt, "expected %s, found msgpack code 0x%02x", want, code)
}

// int64 reads an integer of any width.
func (c *cursor) int64() int64 {
	code := c.code()
	switch {
	case c.err != nil:
		return 0
	case code <= 0x7f || code >= 0xe0:
		c.at++
		return int64(int8(code))
	case code < 0xcc || code > 0xd3:
		c.wrong("an integer", code)
		return 0
	}
	size, _ := c.head()
	p := c.take(size)
	if c.err != nil {
		return 0
	}
	u := msg.Uint(p)
	if code >= 0xd0 {
		shift := 64 - 8*size
		return int64(u<<shift) >> shift
	}
	if u > math.MaxInt64 {
		c.fail(format.ErrCorrupt, "%d is out of range", u)
		return 0
	}
	return int64(u)
}

// within reads an integer from a range.
func (c *cursor) within(low, high int64) int64 {
	v := c.int64()
	if c.err == nil && (v < low || v > high) {
		c.fail(format.ErrCorrupt, "%d is not in %d to %d", v, low, high)
		return low
	}
	return v
}

func (c *cursor) bool() bool {
	code := c.code()
	if c.err != nil {
		return false
	}
	if code != 0xc2 && code != 0xc3 {
		c.wrong("true or false", code)
		return false
	}
	c.at++
	return code == 0xc3
}

// take returns the next n bytes, not copied.
func (c *cursor) take(n int64) []byte {
	if c.err != nil {
		return nil
	}
	if n > int64(c.left()) {
		c.fail(format.ErrCorrupt, "%d bytes are claimed and %d are left", n, c.left())
		return nil
	}
	p := c.raw[c.at : c.at+int(n) : c.at+int(n)]
	c.at += int(n)
	return p
}

// bin reads binary, not copied.
func (c *cursor) bin() []byte {
	if code := c.code(); c.err == nil && !msg.IsBinary(code) {
		c.wrong("binary", code)
	}
	size, _ := c.head()
	return c.take(size)
}

// str reads a string, not copied.
func (c *cursor) str() []byte {
	if code := c.code(); c.err == nil && !msg.IsString(code) {
		c.wrong("a string", code)
	}
	size, _ := c.head()
	return c.take(size)
}

// string reads a string. Equal short ones share their memory: names come again in
// every subtask.
func (c *cursor) string() string { return c.share(c.str()) }

func (c *cursor) share(p []byte) string {
	if len(p) == 0 {
		return ""
	}
	if len(p) <= 256 {
		if s, ok := c.names[string(p)]; ok {
			return s
		}
	}
	c.charge(int64(len(p)))
	if c.err != nil {
		return ""
	}
	s := string(p)
	if len(p) <= 256 && len(c.names) < 1<<16 {
		c.charge(mapEntry)
		c.names[s] = s
	}
	return s
}

// mapEntry is what an entry of a map takes, with the room that a growing map has
// and leaves behind.
const mapEntry = 160

// text reads a string, or an array of a string and the bytes it was written
// with.
func (c *cursor) text() format.Text {
	code := c.code()
	if c.err != nil || msg.IsString(code) {
		return format.NewText(c.string())
	}
	if n := c.array(); c.err == nil && n != 2 {
		c.fail(format.ErrCorrupt, "a text of %d parts", n)
	}
	s := c.string()
	raw := c.share(c.bin())
	if c.err == nil && raw == "" {
		c.fail(format.ErrCorrupt, "a text whose own bytes are empty")
	}
	return format.RawText(s, raw)
}

// bytes reads binary that is part of the model.
func (c *cursor) bytes() format.Bytes {
	p := c.bin()
	c.charge(int64(len(p)))
	if c.err != nil {
		return format.Bytes{}
	}
	return format.NewBytes(bytes.Clone(p))
}

// skipNil is true, and the value consumed, if it is nil.
func (c *cursor) skipNil() bool {
	if c.code() != msg.Nil || c.err != nil {
		return false
	}
	c.at++
	return true
}

// array reads the length of an array, no more than there are bytes.
func (c *cursor) array() int {
	if code := c.code(); c.err == nil && !msg.IsArray(code) {
		c.wrong("an array", code)
	}
	_, n := c.head()
	if c.err == nil && n > int64(c.left()) {
		c.fail(format.ErrCorrupt, "an array of %d with %d bytes left", n, c.left())
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

// isMap reports whether the next value is a map.
func (c *cursor) isMap() bool { return msg.IsMap(c.code()) && c.err == nil }

// mapLen reads the number of entries of a map, no more than there are bytes for.
func (c *cursor) mapLen() int {
	if code := c.code(); c.err == nil && !msg.IsMap(code) {
		c.wrong("a map", code)
	}
	_, n := c.head()
	if c.err == nil && n > int64(c.left()) {
		c.fail(format.ErrCorrupt, "a map of %d with %d bytes left", n/2, c.left())
	}
	if c.err != nil {
		return 0
	}
	return int(n / 2)
}

// skip passes over one value of any type.
func (c *cursor) skip() {
	if c.err != nil {
		return
	}
	n, err := msg.Size(c.raw[c.at:])
	switch {
	case errors.Is(err, msg.ErrShort):
		c.fail(format.ErrCorrupt, "the manifest ends in the middle of a value")
	case err != nil:
		c.fail(format.ErrCorrupt, "%v", err)
	default:
		c.at += n
	}
}

// end fails if anything follows.
func (c *cursor) end() {
	if n := c.left(); c.err == nil && n > 0 {
		c.fail(format.ErrCorrupt, "%d bytes after the manifest", n)
	}
}
