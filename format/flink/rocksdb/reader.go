package rocksdb

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// maxAhead is the number of bytes that a sequential reader reads at once.
const maxAhead = 256 << 10

// blocks reads the blocks of one table: exactly the block that is asked for, and
// more and more ahead while they follow each other.
type blocks struct {
	ctx   context.Context
	src   format.Source
	s     format.Stream
	end   int64 // of what may be read
	most  int64 // bytes of a block once decompressed
	f     *footer
	dict  *dictionary
	buf   []byte // of the file, from pos on
	pos   int64
	last  int64 // end of the last read
	ahead int64
	data  []byte // decompressed
}

// bytes returns n bytes at off of the file, valid until the next call.
func (r *blocks) bytes(off, n int64) ([]byte, error) {
	if i := off - r.pos; i >= 0 && i+n <= int64(len(r.buf)) {
		r.last = off + n
		return r.buf[i : i+n : i+n], nil
	}
	if off == r.last {
		r.ahead = min(max(2*r.ahead, 4*n, 16<<10), maxAhead)
	} else {
		r.ahead = 0
	}
	have := 0
	if i := off - r.pos; i >= 0 && i < int64(len(r.buf)) {
		have = copy(r.buf, r.buf[i:])
	}
	r.buf, r.pos = r.buf[:have], off
	want := int(min(max(n, r.ahead), r.end-off))
	for have < want {
		// A size is a claim: allocate in steps, as bytes are actually read.
		step := min(want-have, max(maxAhead, have))
		r.buf = slices.Grow(r.buf, step)[:have+step]
		if _, err := r.src.ReadAt(r.ctx, r.s, r.buf[have:], off+int64(have)); err != nil {
			r.buf = r.buf[:0]
			return nil, err
		}
		have += step
	}
	r.last = off + n
	return r.buf[:n:n], nil
}

// load returns the data of a block after its checksum was compared. It is valid until
// the next call.
func (r *blocks) load(h handle) ([]byte, error) {
	p, _, err := r.read(h)
	return p, err
}

// read is load, and returns how the block is compressed.
func (r *blocks) read(h handle) (_ []byte, c Compression, err error) {
	defer func() { err = atBlock(err, h) }()
	if !h.within(r.end) {
		return nil, 0, corrupt("a block of %d bytes is outside the table of %d", h.size, r.end)
	}
	if int64(h.size) > r.most {
		return nil, 0, tooLarge("a block", int64(h.size), r.most)
	}
	p, err := r.bytes(int64(h.off), int64(h.size)+trailerSize)
	if err != nil {
		return nil, 0, err
	}
	if err := r.check(p, h); err != nil {
		return nil, 0, err
	}
	p, c = p[:h.size:h.size], Compression(p[h.size])
	if c == CompressionNone {
		return p, c, nil
	}
	out, err := inflateBlock(r.data, p, c, r.f.version, r.dict, r.most)
	if err != nil {
		return nil, c, err
	}
	r.data = out
	return out, c, nil
}

// ErrChecksum matches the error for a block that does not match its checksum. The
// error matches format.ErrCorrupt as well.
var ErrChecksum = fmt.Errorf("a block does not match its checksum: %w", format.ErrCorrupt)

// check compares the checksum of a block with its trailer.
func (r *blocks) check(p []byte, h handle) error {
	n := h.size + 1
	want := binary.LittleEndian.Uint32(p[n:])
	if got := r.f.sum(p[:n], h.off); got != want {
		return format.Errorf(ErrChecksum, "expected checksum %08x of a block of %d bytes, found %08x", want, h.size, got)
	}
	return nil
}

// atBlock adds the offset of a block to an error.
func atBlock(err error, h handle) error {
	e, ok := err.(*format.Error)
	if !ok || e.Offset >= 0 {
		return err
	}
	c := *e
	c.Offset = int64(h.off)
	return &c
}
