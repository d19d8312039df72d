package spt

import (
	"bytes"
	"errors"
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
	"github.com/savepoint-tools/spt/internal/limit"
)

// cursor reads msgpack strictly: each value must have the requested type, and each
// count is compared with the remaining bytes. Memory for the file is charged
// against a budget before it is allocated. The cursor keeps the first error; after
// it, every read returns zero.
type cursor struct {
	raw     []byte
	at      int
	err     error
	lenient bool              // a newer minor version: unknown keys are skipped
	budget  int64             // bytes that may still be allocated
	memory  int64             // the whole budget
	names   map[string]string // strings read so far: equal ones share memory
}

func newCursor(raw []byte, lenient bool, budget, memory int64) cursor {
	return cursor{raw: raw, lenient: lenient, budget: budget, memory: memory, names: make(map[string]string)}
}

// fail records an error with the offset in the manifest. Records and lists add the
// path.
func (c *cursor) fail(kind error, text string, args ...any) {
	if c.err == nil {
		c.err = format.Errorf(kind, text+" (manifest byte %d)", append(args, c.at)...)
	}
}

// charge subtracts n bytes, and the overhead of the allocator, from the budget.
func (c *cursor) charge(n int64) {
	if c.budget -= n + n/8 + 16; c.budget < 0 {
		c.fail(limit.Memory, "opening the file takes more than the limit of %d bytes of memory", c.memory)
	}
}

// left returns the number of remaining bytes.
func (c *cursor) left() int { return len(c.raw) - c.at }

// code returns the first byte of the next value without consuming it.
func (c *cursor) code() byte {
	if c.err == nil && c.left() == 0 {
		c.fail(format.ErrCorrupt, "the manifest ends in the middle of a value")
	}
	if c.err != nil {
		return 0
	}
	return c.raw[c.at]
}

// head consumes the head of the next value: what precedes its content.
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

// within reads an integer in the range [low, high].
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

// take returns the next n bytes as a view.
func (c *cursor) take(n int64) []byte {
	if c.err != nil {
		return nil
	}
	if n > int64(c.left()) {
		c.fail(format.ErrCorrupt, "expected %d bytes, %d left", n, c.left())
		return nil
	}
	p := c.raw[c.at : c.at+int(n) : c.at+int(n)]
	c.at += int(n)
	return p
}

// bin reads a bin as a view.
func (c *cursor) bin() []byte {
	if code := c.code(); c.err == nil && !msg.IsBinary(code) {
		c.wrong("binary", code)
	}
	size, _ := c.head()
	return c.take(size)
}

// str reads a str as a view.
func (c *cursor) str() []byte {
	if code := c.code(); c.err == nil && !msg.IsString(code) {
		c.wrong("a string", code)
	}
	size, _ := c.head()
	return c.take(size)
}

// string reads a string. Equal short strings share memory, because names repeat in
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

// mapEntry is the memory of a map entry, including the unused part of a growing map
// and its discarded tables.
const mapEntry = 160

// text reads a string, or an array of a string and its original bytes.
func (c *cursor) text() format.Text {
	code := c.code()
	if c.err != nil || msg.IsString(code) {
		return format.NewText(c.string())
	}
	if n := c.array(); c.err == nil && n != 2 {
		c.fail(format.ErrCorrupt, "expected a text of 2 parts, found %d", n)
	}
	s := c.string()
	raw := c.share(c.bin())
	if c.err == nil && raw == "" {
		c.fail(format.ErrCorrupt, "the original bytes of a text are empty")
	}
	return format.RawText(s, raw)
}

// bytes reads a bin that becomes part of the model.
func (c *cursor) bytes() format.Bytes {
	p := c.bin()
	c.charge(int64(len(p)))
	if c.err != nil {
		return format.Bytes{}
	}
	return format.NewBytes(bytes.Clone(p))
}

// skipNil consumes the next value if it is nil, and reports whether it was.
func (c *cursor) skipNil() bool {
	if c.code() != msg.Nil || c.err != nil {
		return false
	}
	c.at++
	return true
}

// array reads the length of an array, which is at most the number of remaining
// bytes.
func (c *cursor) array() int {
	if code := c.code(); c.err == nil && !msg.IsArray(code) {
		c.wrong("an array", code)
	}
	_, n := c.head()
	if c.err == nil && n > int64(c.left()) {
		c.fail(format.ErrCorrupt, "an array of %d values, %d bytes left", n, c.left())
	}
	if c.err != nil {
		return 0
	}
	return int(n)
}

// isMap reports whether the next value is a map.
func (c *cursor) isMap() bool { return msg.IsMap(c.code()) && c.err == nil }

// mapLen reads the number of entries of a map, limited by the number of remaining
// bytes.
func (c *cursor) mapLen() int {
	if code := c.code(); c.err == nil && !msg.IsMap(code) {
		c.wrong("a map", code)
	}
	_, n := c.head()
	if c.err == nil && n > int64(c.left()) {
		c.fail(format.ErrCorrupt, "a map of %d entries, %d bytes left", n/2, c.left())
	}
	if c.err != nil {
		return 0
	}
	return int(n / 2)
}

// skip skips a value of any type.
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

// end records an error if bytes follow.
func (c *cursor) end() {
	if n := c.left(); c.err == nil && n > 0 {
		c.fail(format.ErrCorrupt, "%d bytes after the manifest", n)
	}
}
