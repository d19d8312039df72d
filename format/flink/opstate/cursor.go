package opstate

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/savepoint-tools/spt/format"
)

// cursor reads the elements of one state in order.
type cursor struct {
	name       format.Text
	n          int64
	from, next int64 // the first element, and the next one
	max        int64
	compressed bool
	b          *bounds // nil if there is nothing to read
	w          window
	value      []byte
	err        error
	pool       *sync.Pool // for returning the buffers; may be nil
}

// buffers are the buffers of a cursor. Reading a state opens a cursor for each
// subtask: without reuse, a quarter of the state would become garbage.
type buffers struct {
	stream  []byte
	offsets []int64
}

var errClosed = errors.New("internal error: cursor used after Close")

// Next returns the next element, valid until the next call. After an error it returns
// that error again.
func (c *cursor) Next() (format.Element, error) {
	if c.err != nil {
		return format.Element{}, c.err
	}
	if c.next == c.n {
		c.err = io.EOF
		return format.Element{}, c.err
	}
	p, err := c.read()
	if err != nil {
		c.err = format.At(err, "state %q/element %d", c.name, c.next)
		return format.Element{}, c.err
	}
	e := format.Element{Index: c.next, Value: p}
	c.next++
	return e, nil
}

func (c *cursor) read() ([]byte, error) {
	start, end, err := c.b.extent(c.next)
	if err != nil {
		return nil, err
	}
	if !c.compressed {
		if end-start > c.max {
			return nil, format.Errorf(format.ErrLimit, "an element of %d bytes, the limit is %d", end-start, c.max)
		}
		return c.w.bytes(start, end-start)
	}
	if err := c.b.shared(c.next, c.next == c.from, start, end); err != nil {
		return nil, err
	}
	c.value, err = c.w.inflate(c.value[:0], start, end, c.max)
	return c.value, err
}

// Ordered returns true: the elements of Flink's states are ordered.
func (c *cursor) Ordered() bool { return true }

// Close ends the cursor and invalidates the last element.
func (c *cursor) Close() error {
	if c.pool != nil && cap(c.w.buf) <= readAhead {
		c.pool.Put(&buffers{c.w.buf[:0], c.b.buf[:0]})
		c.pool = nil
	}
	c.w, c.b, c.value = window{}, nil, nil
	if c.err == nil {
		c.err = errClosed
	}
	return nil
}

// readAhead is the number of bytes that a window reads at once.
const readAhead = 256 << 10

// window holds the part of a stream that a cursor reads. It moves forward, reads
// ahead, and never past end.
type window struct {
	ctx context.Context
	src format.Source
	s   format.Stream
	end int64
	pos int64 // offset of buf in the stream
	buf []byte
}

// bytes returns n bytes at off, a view that is valid until the next call.
func (w *window) bytes(off, n int64) ([]byte, error) {
	if i := off - w.pos; i >= 0 && i+n <= int64(len(w.buf)) {
		return w.buf[i : i+n : i+n], nil
	}
	return w.load(off, n)
}

func (w *window) load(off, n int64) ([]byte, error) {
	if n > w.end-off {
		return nil, w.corrupt(off, "expected %d bytes, found %d", n, w.end-off)
	}
	// Keep the bytes that are already buffered.
	have := 0
	if i := off - w.pos; i >= 0 && i < int64(len(w.buf)) {
		have = copy(w.buf, w.buf[i:])
	}
	w.buf, w.pos = w.buf[:have], off
	want := max(n, min(readAhead, w.end-off))
	for int64(len(w.buf)) < want {
		// A length is a claim: allocate in steps, as bytes are actually read.
		have := len(w.buf)
		step := int(min(want-int64(have), max(readAhead, int64(have))))
		w.buf = slices.Grow(w.buf, step)[:have+step]
		if err := readFull(w.ctx, w.src, w.s, w.buf[have:], off+int64(have)); err != nil {
			w.buf = w.buf[:0]
			return nil, err
		}
	}
	return w.buf[:n:n], nil
}
