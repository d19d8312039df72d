package spt

import (
	"bytes"
	"io"
	"math"
	"strconv"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/savepoint-tools/spt/format"
)

// cursor reads msgpack strictly: each value must be of the type that is asked
// for, and every count is held against the bytes that are left. It keeps the
// first error, after which everything reads as zero.
type cursor struct {
	raw     []byte
	r       *bytes.Reader
	d       *msgpack.Decoder
	err     error
	lenient bool              // a newer minor version: unknown keys are passed over
	names   map[string]string // strings seen, so that equal ones share memory
}

func newCursor(raw []byte, lenient bool) cursor {
	r := bytes.NewReader(raw)
	return cursor{raw: raw, r: r, d: msgpack.NewDecoder(r), lenient: lenient, names: make(map[string]string)}
}

// fail keeps an error; the place is said by byte of the manifest, and by the
// path that fields and items put in front.
func (c *cursor) fail(kind error, msg string, args ...any) {
	if c.err == nil {
		e := format.Errorf(kind, msg, args...)
		e.Msg += " (manifest byte " + strconv.Itoa(len(c.raw)-c.r.Len()) + ")"
		c.err = e
	}
}

// check keeps an error of the decoder.
func (c *cursor) check(err error) bool {
	if err == nil {
		return c.err == nil
	}
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		c.fail(format.ErrCorrupt, "the manifest ends in the middle of a value")
	} else {
		c.fail(format.ErrCorrupt, "%v", err)
	}
	return false
}

// code is the next value's first byte, not consumed.
func (c *cursor) code() byte {
	if c.err != nil {
		return 0
	}
	b, err := c.d.PeekCode()
	if !c.check(err) {
		return 0
	}
	return b
}

func (c *cursor) wrong(want string, code byte) {
	c.fail(format.ErrCorrupt, "%s is expected, and a value of code 0x%02x stands there", want, code)
}

// int64 reads an integer of any width.
func (c *cursor) int64() int64 {
	code := c.code()
	switch {
	case c.err != nil:
	case code == msgpcode.Uint64:
		u, err := c.d.DecodeUint64()
		if c.check(err) && u > math.MaxInt64 {
			c.fail(format.ErrCorrupt, "%d is out of range", u)
		}
		return int64(u)
	case msgpcode.IsFixedNum(code), code >= msgpcode.Uint8 && code <= msgpcode.Int64:
		v, err := c.d.DecodeInt64()
		c.check(err)
		return v
	default:
		c.wrong("an integer", code)
	}
	return 0
}

// within reads an integer from a range.
func (c *cursor) within(low, high int64) int64 {
	v := c.int64()
	if v < low || v > high {
		c.fail(format.ErrCorrupt, "%d is not in %d to %d", v, low, high)
		return low
	}
	return v
}

func (c *cursor) int32() int32 { return int32(c.within(math.MinInt32, math.MaxInt32)) }

func (c *cursor) bool() bool {
	switch code := c.code(); {
	case c.err != nil:
	case code == msgpcode.True, code == msgpcode.False:
		v, err := c.d.DecodeBool()
		return c.check(err) && v
	default:
		c.wrong("true or false", code)
	}
	return false
}

// take gives the next n bytes, not copied.
func (c *cursor) take(n int) []byte {
	if c.err != nil {
		return nil
	}
	if n < 0 || n > c.r.Len() {
		c.fail(format.ErrCorrupt, "%d bytes are claimed and %d are left", n, c.r.Len())
		return nil
	}
	at := len(c.raw) - c.r.Len()
	_, err := c.r.Seek(int64(n), io.SeekCurrent)
	c.check(err)
	return c.raw[at : at+n : at+n]
}

// bin reads binary, not copied.
func (c *cursor) bin() []byte {
	code := c.code()
	if c.err != nil {
		return nil
	}
	if code != msgpcode.Bin8 && code != msgpcode.Bin16 && code != msgpcode.Bin32 {
		c.wrong("binary", code)
		return nil
	}
	n, err := c.d.DecodeBytesLen()
	if !c.check(err) {
		return nil
	}
	return c.take(n)
}

// str reads a string. Equal short ones share their memory: names come again in
// every subtask.
func (c *cursor) str() string {
	code := c.code()
	if c.err != nil {
		return ""
	}
	if !isString(code) {
		c.wrong("a string", code)
		return ""
	}
	n, err := c.d.DecodeBytesLen()
	if !c.check(err) {
		return ""
	}
	return c.share(c.take(n))
}

func isString(code byte) bool {
	return msgpcode.IsFixedString(code) || code == msgpcode.Str8 || code == msgpcode.Str16 || code == msgpcode.Str32
}

func (c *cursor) share(p []byte) string {
	if len(p) > 256 {
		return string(p)
	}
	s, ok := c.names[string(p)]
	if !ok {
		s = string(p)
		if len(c.names) < 1<<16 {
			c.names[s] = s
		}
	}
	return s
}

// text reads a string, or an array of a string and the bytes it was written
// with.
func (c *cursor) text() format.Text {
	code := c.code()
	if c.err != nil || isString(code) {
		return format.NewText(c.str())
	}
	if n := c.array(); c.err == nil && n != 2 {
		c.fail(format.ErrCorrupt, "a text of %d parts", n)
	}
	s := c.str()
	raw := c.share(c.bin())
	if c.err == nil && raw == "" {
		c.fail(format.ErrCorrupt, "a text whose own bytes are empty")
	}
	return format.RawText(s, raw)
}

func (c *cursor) wire() format.Wire { return format.Wire(c.share(c.bin())) }

// bytes reads binary that is part of the model.
func (c *cursor) bytes() format.Bytes { return format.NewBytes(bytes.Clone(c.bin())) }

// skipNil is true, and the value consumed, if it is nil.
func (c *cursor) skipNil() bool {
	if c.code() != msgpcode.Nil || c.err != nil {
		return false
	}
	return c.check(c.d.DecodeNil())
}

// array reads the length of an array, no more than there are bytes.
func (c *cursor) array() int {
	code := c.code()
	if c.err != nil {
		return 0
	}
	if !isArray(code) {
		c.wrong("an array", code)
		return 0
	}
	n, err := c.d.DecodeArrayLen()
	if c.check(err) && n > c.r.Len() {
		c.fail(format.ErrCorrupt, "an array of %d with %d bytes left", n, c.r.Len())
	}
	if c.err != nil {
		return 0
	}
	return n
}

func isArray(code byte) bool {
	return msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32
}

// isMap tells whether the next value is a map.
func (c *cursor) isMap() bool {
	code := c.code()
	return c.err == nil && (msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32)
}

// fields reads a map. f reads the value of a key that it knows, and says false
// to one that it does not. Keys ascend, so none comes twice.
func (c *cursor) fields(f func(key string) bool) {
	if !c.isMap() {
		c.wrong("a map", c.code())
		return
	}
	n, err := c.d.DecodeMapLen()
	if c.check(err) && n > c.r.Len()/2 {
		c.fail(format.ErrCorrupt, "a map of %d with %d bytes left", n, c.r.Len())
	}
	last := ""
	for i := 0; i < n && c.err == nil; i++ {
		key := c.str()
		switch {
		case c.err != nil:
		case i > 0 && key <= last:
			c.fail(format.ErrCorrupt, "key %q after %q: keys ascend, and come once", key, last)
		case f(key):
		case c.lenient:
			c.skip()
		default:
			c.fail(format.ErrCorrupt, "unknown key %q", key)
		}
		if c.err != nil {
			c.err = format.At(c.err, "%s", key)
		}
		last = key
	}
}

// skip passes over one value of any type. It does not recurse: the depth of
// what it skips is the file's.
func (c *cursor) skip() {
	for left := 1; left > 0 && c.err == nil; left-- {
		switch code := c.code(); {
		case c.err != nil:
		case c.isMap():
			n, err := c.d.DecodeMapLen()
			if c.check(err) && n > c.r.Len()/2 {
				c.fail(format.ErrCorrupt, "a map of %d with %d bytes left", n, c.r.Len())
			}
			left += 2 * n
		case isArray(code):
			left += c.array()
		case isString(code), code == msgpcode.Bin8, code == msgpcode.Bin16, code == msgpcode.Bin32:
			n, err := c.d.DecodeBytesLen()
			if c.check(err) {
				c.take(n)
			}
		case msgpcode.IsExt(code):
			_, n, err := c.d.DecodeExtHeader()
			if c.check(err) {
				c.take(n)
			}
		default:
			c.check(c.d.Skip())
		}
	}
}

// end fails if anything follows.
func (c *cursor) end() {
	if n := c.r.Len(); c.err == nil && n > 0 {
		c.fail(format.ErrCorrupt, "%d bytes behind the manifest", n)
	}
}
