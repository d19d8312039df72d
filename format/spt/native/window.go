package native

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/limit"
)

const (
	readAhead = 64 << 10 // bytes read beyond what is asked for, in sequence
	readStep  = 1 << 20  // a buffer grows by so much for bytes that are only claimed
)

// window reads a stream, mostly forwards. Its first read requests no more than
// needed, so that one element costs one range; later ones read ahead.
type window struct {
	ctx   context.Context
	src   format.Source
	data  format.Stream
	size  int64
	most  int64 // bytes of a value
	at    int64 // position of buf in the stream
	buf   []byte
	ahead bool // later reads read ahead
}

// ValueLimiter is a [format.Source] that bounds the bytes of one value more tightly
// than [MaxValue]: in a small file, a few chunks that repeat can make a large one.
type ValueLimiter interface{ MaxValue() int64 }

func tooLarge(what string, n, most int64) error {
	return format.Errorf(limit.Value, "%s of %d bytes, over the limit of %d", what, n, most)
}

func newWindow(ctx context.Context, src format.Source, data format.Stream) (*window, error) {
	w := &window{ctx: ctx, src: src, data: data, most: MaxValue}
	if l, ok := src.(ValueLimiter); ok {
		w.most = min(w.most, l.MaxValue())
	}
	if data != nil {
		w.size = data.Size()
	}
	if w.size < 0 {
		return nil, format.Errorf(format.ErrUnsupported, "a stream of native state whose length is not known")
	}
	return w, nil
}

// bytes returns the bytes [off, off+n) of the stream, which must be in it. They are
// valid until the next call.
func (w *window) bytes(off, n int64) ([]byte, error) {
	if n > w.most {
		return nil, tooLarge("a value", n, w.most)
	}
	if off < w.at || off > w.at+int64(len(w.buf)) {
		w.at, w.buf = off, w.buf[:0]
	}
	skip := off - w.at
	if have := int64(len(w.buf)) - skip; have < n {
		rest := w.buf[skip:]
		if cap(w.buf) > readStep && n <= readStep && len(rest) <= readStep {
			w.buf = make([]byte, 0, readAhead) // releases what a large value needed
		}
		w.buf = append(w.buf[:0], rest...)
		w.at, skip = off, 0
		want := n
		if w.ahead {
			want = min(max(n, readAhead), w.size-off)
		}
		w.ahead = true
		for have < want {
			step := min(want-have, readStep)
			w.buf = slices.Grow(w.buf, int(step))
			if _, err := w.src.ReadAt(w.ctx, w.data, w.buf[have:have+step], off+have); err != nil {
				w.buf = w.buf[:0]
				return nil, err
			}
			have += step
			w.buf = w.buf[:have]
		}
	}
	return w.buf[skip : skip+n : skip+n], nil
}

// buffered is the number of bytes at off that are available without reading.
func (w *window) buffered(off int64) int64 {
	if off < w.at {
		return 0
	}
	return max(0, w.at+int64(len(w.buf))-off)
}
