package keyed

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/framed"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/limit"
)

// inputAhead is the number of bytes that an input reads at once.
const inputAhead = 256 << 10

// input is the bytes of a part of a stream, decompressed, with a buffer that holds
// what was not consumed and refills. It grows only if one entry is larger.
type input struct {
	ctx context.Context
	src format.Source
	s   format.Stream
	max int64 // bytes of an entry

	pos, end int64 // of the stream, not read yet
	framed   bool
	file     []byte // of a framed stream
	fileAt   int    // decompressed up to here
	buf      []byte
	at       int // consumed up to here
}

// open starts on another part of the stream.
func (in *input) open(pos, end int64, compressed bool) {
	in.pos, in.end, in.framed = pos, end, compressed
	in.file, in.fileAt, in.buf, in.at = in.file[:0], 0, in.buf[:0], 0
}

// have returns what is buffered, valid until the next call of need or more.
func (in *input) have() []byte { return in.buf[in.at:] }

// consume moves past n buffered bytes.
func (in *input) consume(n int) { in.at += n }

// offset returns the position in the stream of what is read next, for errors.
func (in *input) offset() int64 {
	if in.framed {
		return in.pos - int64(len(in.file)-in.fileAt)
	}
	return in.pos - int64(len(in.buf)-in.at)
}

// need returns at least n buffered bytes. If the input ends before, the error matches
// ErrTruncated.
func (in *input) need(n int) ([]byte, error) {
	if len(in.buf)-in.at < n {
		if err := in.fill(n); err != nil {
			return nil, err
		}
	}
	return in.buf[in.at:], nil
}

func (in *input) fill(n int) error {
	if int64(n) > in.max {
		return format.Errorf(limit.Value, "an entry of %d bytes, the limit is %d", n, in.max)
	}
	in.buf = in.buf[:copy(in.buf, in.buf[in.at:])]
	in.at = 0
	for len(in.buf) < n {
		have := len(in.buf)
		more, err := in.read()
		if err != nil {
			return err
		}
		if !more {
			e := format.Errorf(format.ErrTruncated, "cut short: expected %d bytes, found %d", n, have)
			e.Offset = in.offset()
			return e
		}
	}
	return nil
}

// ended reports whether everything was consumed.
func (in *input) ended() (bool, error) {
	for len(in.buf) == in.at {
		if more, err := in.read(); !more {
			return err == nil, err
		}
	}
	return false, nil
}

// read appends some bytes to the buffer. It returns false at the end.
func (in *input) read() (bool, error) {
	if in.framed {
		return in.chunk()
	}
	n := min(in.end-in.pos, max(inputAhead, int64(len(in.buf))))
	if n <= 0 {
		return false, nil
	}
	have := len(in.buf)
	in.buf = slices.Grow(in.buf, int(n))[:have+int(n)]
	if _, err := in.src.ReadAt(in.ctx, in.s, in.buf[have:], in.pos); err != nil {
		in.buf = in.buf[:have]
		return false, err
	}
	in.pos += n
	return true, nil
}

// chunk decompresses a chunk of a framed stream.
func (in *input) chunk() (bool, error) {
	if in.pos == in.end && len(in.file) == in.fileAt {
		return false, nil
	}
	p, err := in.raw(framed.HeadSize)
	if err != nil {
		return false, err
	}
	kind, body := framed.Head(p)
	left := in.end - in.offset() - framed.HeadSize
	if err := framed.Check(kind, body, left); err != nil {
		return false, err
	}
	n := framed.HeadSize + int(body)
	if p, err = in.raw(n); err != nil {
		return false, err
	}
	in.buf, err = framed.Decode(in.buf, kind, p[framed.HeadSize:n], in.max+framed.MaxData)
	in.fileAt += n
	return err == nil, err
}

// raw returns at least n bytes of the stream that are not decompressed yet.
func (in *input) raw(n int) ([]byte, error) {
	if have := len(in.file) - in.fileAt; have < n {
		want := min(max(int64(n-have), inputAhead), in.end-in.pos)
		if int64(have)+want < int64(n) {
			return nil, format.Errorf(format.ErrCorrupt, "expected %d bytes of a snappy chunk, found %d", n, int64(have)+want)
		}
		in.file = in.file[:copy(in.file, in.file[in.fileAt:])]
		in.fileAt = 0
		in.file = slices.Grow(in.file, int(want))[:have+int(want)]
		if _, err := in.src.ReadAt(in.ctx, in.s, in.file[have:], in.pos); err != nil {
			in.file = in.file[:have]
			return nil, err
		}
		in.pos += want
	}
	return in.file[in.fileAt:], nil
}

// skip returns the end of the value that starts off bytes after what was consumed,
// and refills as long as the value needs more.
func (in *input) skip(off int, p *part) (int, error) {
	for {
		have, err := in.need(off)
		if err != nil {
			return 0, err
		}
		n, err := p.skip(have[off:])
		if err == nil {
			return off + n, nil
		}
		if !value.IsShort(err) {
			return 0, err
		}
		more, rerr := in.extend()
		if rerr != nil {
			return 0, rerr
		}
		if !more {
			return 0, err
		}
	}
}

// extend doubles what is buffered. It returns false if the input has no more.
func (in *input) extend() (bool, error) {
	have := len(in.buf) - in.at
	if int64(have) >= in.max {
		return false, format.Errorf(limit.Value, "an entry of more than %d bytes, the limit is %d", have, in.max)
	}
	in.buf = in.buf[:copy(in.buf, in.buf[in.at:])]
	in.at = 0
	for want := max(2*have, inputAhead); len(in.buf) < want; {
		more, err := in.read()
		if err != nil {
			return false, err
		}
		if !more {
			break
		}
	}
	return len(in.buf) > have, nil
}
