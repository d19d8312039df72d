// Package mapcursor walks the map of a broadcast state entry by entry in bounded
// memory: it holds the last part of the map that its source returned, and reads
// more when an entry does not end in it.
package mapcursor

import (
	"bytes"
	"errors"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/limit"
)

// Source returns n bytes of a map from off on, fewer only at the end of the map.
// The bytes are valid until the next call. off does not decrease between calls.
type Source func(off, n int64) ([]byte, error)

// Layout is the encoding of a map: a head with the number of entries, then the
// entries, each a key and a value.
type Layout struct {
	// Head returns the number of entries and the length of the head. The error
	// matches format.ErrTruncated if p ends within the head.
	Head       func(p []byte) (entries int64, n int, err error)
	Key, Value value.Codec
	// Ascending requires each key to be larger than the previous one.
	Ascending bool
}

// step is the number of bytes read at once.
const step = 64 << 10

// Cursor implements [format.MapCursor].
type Cursor struct {
	read   Source
	layout Layout
	most   int64 // limit for the bytes of an entry

	entries, next int64
	off           int64 // of buf in the map
	buf           []byte
	last          []byte // the previous key
	err           error
}

// Open reads the head of a map. Entries of more than most bytes are an error.
func Open(read Source, layout Layout, most int64) (*Cursor, error) {
	c := &Cursor{read: read, layout: layout, most: most}
	n, err := c.whole(func(p []byte) (n int, err error) {
		c.entries, n, err = layout.Head(p)
		return n, err
	})
	c.advance(n)
	return c, err
}

// whole calls f with more and more bytes until it does not return ErrTruncated.
func (c *Cursor) whole(f func(p []byte) (n int, err error)) (int, error) {
	for {
		n, err := f(c.buf)
		if err == nil && int64(n) > c.most {
			return 0, format.Errorf(limit.Value, "an entry of %d bytes, over the limit of %d", n, c.most)
		}
		if err == nil || !value.IsShort(err) {
			return n, c.at(err)
		}
		have := int64(len(c.buf))
		if have > c.most {
			return 0, format.Errorf(limit.Value, "an entry of more than %d bytes, over the limit of %d", have-1, c.most)
		}
		p, rerr := c.read(c.off, min(max(2*have, step), c.most+1))
		if rerr != nil {
			return 0, rerr
		}
		if c.buf = p; int64(len(p)) <= have {
			return 0, c.at(err) // the map ends here
		}
	}
}

// at converts the offset of an error to an offset in the map.
func (c *Cursor) at(err error) error {
	var e *format.Error
	if err != nil && errors.As(err, &e) && e.Offset >= 0 {
		moved := *e
		moved.Offset += c.off
		return &moved
	}
	return err
}

func (c *Cursor) advance(n int) {
	c.buf = c.buf[n:]
	c.off += int64(n)
}

// Next implements [format.MapCursor].
func (c *Cursor) Next() (format.MapEntry, error) {
	if c.err != nil {
		return format.MapEntry{}, c.err
	}
	e, err := c.entry()
	if err != nil {
		if c.err = err; err != io.EOF {
			c.err = format.At(err, "entry %d", c.next)
		}
		return format.MapEntry{}, c.err
	}
	c.next++
	return e, nil
}

func (c *Cursor) entry() (format.MapEntry, error) {
	if c.next == c.entries {
		return format.MapEntry{}, c.end()
	}
	var key int
	n, err := c.whole(func(p []byte) (n int, err error) {
		if key, err = c.layout.Key.Skip(p); err != nil {
			return 0, err
		}
		n, err = c.layout.Value.Skip(p[key:])
		return key + n, err
	})
	if err != nil {
		return format.MapEntry{}, err
	}
	stored := c.buf[:n:n]
	e := format.MapEntry{Index: c.next, Off: c.off, Stored: stored, Key: stored[:key:key], Value: stored[key:]}
	if c.layout.Ascending {
		if c.next > 0 && bytes.Compare(c.last, e.Key) >= 0 {
			return e, format.Errorf(format.ErrCorrupt, "the keys of the map are not in ascending order")
		}
		c.last = append(c.last[:0], e.Key...)
	}
	c.advance(n)
	return e, nil
}

// end returns io.EOF, or an error if bytes follow the last entry.
func (c *Cursor) end() error {
	p := c.buf
	if len(p) == 0 {
		var err error
		if p, err = c.read(c.off, 1); err != nil {
			return err
		}
	}
	if len(p) > 0 {
		e := format.Errorf(format.ErrCorrupt, "trailing bytes after the %d entries of a map", c.entries)
		e.Offset = c.off
		return e
	}
	return io.EOF
}

var errClosed = errors.New("internal error: cursor used after Close")

// Close implements [format.MapCursor].
func (c *Cursor) Close() error {
	c.buf, c.err = nil, errClosed
	return nil
}
