package opstate

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"

	"github.com/savepoint-tools/spt/format"
)

// cursor walks the elements of one state.
type cursor struct {
	name       format.Text
	n          int64
	from, next int64 // the element it was opened at, and the one to come
	max        int64
	compressed bool
	b          *bounds // nil: there is nothing to read
	w          window
	value      []byte
	err        error
	spare      *sync.Pool // takes the buffers back; nil: there are none
}

// buffers are what a cursor reads into. Going through a state opens a cursor for
// each subtask, and a quarter of the state would be garbage.
type buffers struct {
	stream  []byte
	offsets []int64
}

var errClosed = errors.New("internal error: a closed cursor")

// Next gives the next element, valid until the next call. After an error it
// gives that error again.
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
			return nil, format.Errorf(format.ErrLimit, "an element of %d bytes, over the limit of %d", end-start, c.max)
		}
		return c.w.bytes(start, end-start)
	}
	if err := c.b.shared(c.next, c.next == c.from, start, end); err != nil {
		return nil, err
	}
	c.value, err = c.w.inflate(c.value[:0], start, end, c.max)
	return c.value, err
}

// Ordered is true: elements of Flink's states have an order.
func (c *cursor) Ordered() bool { return true }

// Close ends the cursor, and the life of the last element.
func (c *cursor) Close() error {
	if c.spare != nil && cap(c.w.buf) <= readAhead {
		c.spare.Put(&buffers{c.w.buf[:0], c.b.buf[:0]})
		c.spare = nil
	}
	c.w, c.b, c.value = window{}, nil, nil
	if c.err == nil {
		c.err = errClosed
	}
	return nil
}

// readAhead is how much a window reads at once.
const readAhead = 256 << 10

// window holds the part of a stream that a cursor stands in. It moves forward,
// reads ahead, and never past end.
type window struct {
	ctx context.Context
	src format.Source
	s   format.Stream
	end int64
	pos int64 // of buf in the stream
	buf []byte
}

// bytes gives n bytes at off, a view that holds until the next call.
func (w *window) bytes(off, n int64) ([]byte, error) {
	if i := off - w.pos; i >= 0 && i+n <= int64(len(w.buf)) {
		return w.buf[i : i+n : i+n], nil
	}
	return w.load(off, n)
}

func (w *window) load(off, n int64) ([]byte, error) {
	if n > w.end-off {
		return nil, w.corrupt(off, "%d bytes are needed, %d are left", n, w.end-off)
	}
	// What is there already stays.
	have := 0
	if i := off - w.pos; i >= 0 && i < int64(len(w.buf)) {
		have = copy(w.buf, w.buf[i:])
	}
	w.buf, w.pos = w.buf[:have], off
	want := max(n, min(readAhead, w.end-off))
	for int64(len(w.buf)) < want {
		// A length is a claim: memory grows with what was really read.
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
