package native

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/limit"
)

const (
	readAhead = 64 << 10 // bytes read beyond the request, after the first read
	readStep  = 1 << 20  // step in which a buffer grows for a claimed length
)

// window reads a stream, mostly forwards. Its first read requests only the bytes
// needed, so that a single element costs one range; later reads read ahead.
type window struct {
	ctx   context.Context
	src   format.Source
	data  format.Stream
	size  int64
	most  int64 // limit for the bytes of a value
	at    int64 // position of buf in the stream
	buf   []byte
	ahead bool // later reads read ahead
}

// ValueLimiter is optionally implemented by a [format.Source]. It limits the bytes
// of one value more strictly than [MaxValue]: in a small file, a few repeated
// chunks can hold a large value.
type ValueLimiter interface{ MaxValue() int64 }

func tooLarge(what string, n, most int64) error {
	return format.Errorf(limit.Value, "%s of %d bytes, the limit is %d", what, n, most)
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
		return nil, format.Errorf(format.ErrUnsupported, "the length of a native state stream is unknown")
	}
	return w, nil
}

// bytes returns the bytes [off, off+n), which must be within the stream, valid
// until the next call.
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
			w.buf = make([]byte, 0, readAhead) // frees the buffer of a large value
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

// buffered returns the number of buffered bytes at off.
func (w *window) buffered(off int64) int64 {
	if off < w.at {
		return 0
	}
	return max(0, w.at+int64(len(w.buf))-off)
}
