package keyed

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"sort"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/framed"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// Recompress returns a handle of canonical keyed state (spec flink-keyed-state 3)
// with its key groups compressed or uncompressed, or h itself if nothing changes.
// The entries and their order stay the same.
//
// It reads all key groups, to determine their new lengths and to check that they
// are in the canonical format. Each read of the new stream reads them again.
//
// It returns ErrUnsupported for state in the format of a backend, in which the
// values of states follow each other without a length.
func Recompress(ctx context.Context, src format.Source, h *format.KeyGroups, compress bool) (*format.KeyGroups, error) {
	if h.Codec != format.CodecFlink || !h.Savepoint {
		return nil, format.Errorf(format.ErrUnsupported, "the state is in the format of a state backend, not in the canonical format")
	}
	if h.Data == nil || h.Data.Size() == 0 {
		return h, nil
	}
	size, err := format.StreamSize(ctx, src, h.Data)
	if err != nil {
		return nil, err
	}
	header, err := ReadHeader(ctx, src, h.Data)
	var unknown *types.UnknownClass
	if err != nil && !errors.As(err, &unknown) {
		return nil, err
	}
	switch {
	case header.Compressed == compress:
		return h, nil
	case header.Version < flagVersion:
		return nil, format.Errorf(format.ErrUnsupported, "keyed state of version %d has no compression flag", header.Version)
	}
	known := err == nil
	groups, err := groupsOf(ctx, h, size)
	if err != nil {
		return nil, err
	}
	first := size
	if len(groups) > 0 {
		first = groups[0].start
	}
	if known && first != header.Size || first > maxHeader || first < 5 {
		return nil, format.Errorf(format.ErrCorrupt, "expected the first key group at %d, the end of the header, found %d", header.Size, first)
	}
	head := make([]byte, first)
	if _, err := src.ReadAt(ctx, h.Data, head, 0); err != nil {
		return nil, err
	}
	if !known {
		// The end of the header is unknown, but a key group cannot start before the
		// position where reading stopped.
		if _, err := parse(head); !errors.As(err, &unknown) {
			return nil, format.Errorf(format.ErrCorrupt, "expected the first key group after the header, found it at %d, within it", first)
		}
	}
	head[4] = 0
	if compress {
		head[4] = 1
	}
	m := &recoder{of: h.Data, compress: compress, base: first, size: size, have: -1}
	offsets := make(format.OffsetSlice, h.Offsets.Len())
	m.end = first
	for _, g := range groups {
		offsets[g.index] = m.end
		if err := m.add(ctx, src, g); err != nil {
			return nil, format.At(err, "key group %d", h.Range.First+int32(g.index))
		}
	}
	parts := []format.Part{format.Literal(head)}
	if n := m.end - first; n > 0 {
		how := "decompressed"
		if compress {
			how = "snappy"
		}
		data := &format.Computed{Length: n, Name: fmt.Sprintf("%s key groups of %v", how, h.Data.Key()), Maker: m}
		parts = append(parts, format.Part{Of: data, N: n})
	}
	c := *h
	c.Offsets, c.Data = offsets, &format.Concat{Parts: parts}
	return &c, nil
}

// group is a key group that has entries.
type group struct {
	index      int64 // in the offsets
	start, end int64
}

// groupsOf returns the key groups with entries, in the order of the stream.
func groupsOf(ctx context.Context, h *format.KeyGroups, size int64) (all []group, err error) {
	if h.Offsets == nil {
		return nil, format.Errorf(format.ErrCorrupt, "the handle has no offsets of key groups")
	}
	err = format.EachOffset(ctx, h.Offsets, func(at int64, run []int64) error {
		for i, v := range run {
			if v == 0 {
				continue
			}
			if v < 0 || v >= size || len(all) > 0 && v <= all[len(all)-1].start {
				return format.Errorf(format.ErrCorrupt, "key group %d starts at %d of %d bytes, not after the key group before it", int64(h.Range.First)+at+int64(i), v, size)
			}
			all = append(all, group{index: at + int64(i), start: v})
		}
		return nil
	})
	for i := range all {
		all[i].end = size
		if i+1 < len(all) {
			all[i].end = all[i+1].start
		}
	}
	return all, err
}

// recoder computes key groups from the key groups of another stream, in units: to
// compress, 64 KiB of a key group; to decompress, a chunk.
type recoder struct {
	of        format.Stream
	compress  bool
	base, end int64 // in the new stream
	units     []unit

	mu      sync.Mutex // guards the fields below
	have    int        // the unit in enc, or -1
	enc     []byte
	size    int64  // of the old stream
	ahead   []byte // read from there
	aheadAt int64
}

// readAhead is the number of bytes of the old stream that are read at once.
const readAhead = 1 << 20

// bytes returns n bytes at off of the old stream, valid until the next call.
func (m *recoder) bytes(ctx context.Context, src format.Source, off, n int64) ([]byte, error) {
	if i := off - m.aheadAt; i >= 0 && i+n <= int64(len(m.ahead)) {
		return m.ahead[i : i+n], nil
	}
	want := max(n, min(readAhead, m.size-off))
	if int64(cap(m.ahead)) < want {
		m.ahead = make([]byte, want)
	}
	m.ahead, m.aheadAt = m.ahead[:want], off
	if _, err := src.ReadAt(ctx, m.of, m.ahead, off); err != nil {
		m.ahead = m.ahead[:0]
		return nil, err
	}
	return m.ahead[:n], nil
}

// unit is a range of the old stream and its position in the new one.
type unit struct {
	from int64 // in the old stream; a chunk with its head
	at   int64 // in the new stream
	n    int32 // bytes in the old stream
	open bool  // the first of a key group
}

// add adds a key group, and checks that it consists of entries in the canonical
// format.
func (m *recoder) add(ctx context.Context, src format.Source, g group) error {
	r := &groupReader{m: m, ctx: ctx, src: src, pos: g.start, end: g.end, first: true}
	if err := checkEntries(bufio.NewReader(r)); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, r) // chunks without data at the end
	return err
}

// groupReader reads the data of a key group, and records its units.
type groupReader struct {
	m        *recoder
	ctx      context.Context
	src      format.Source
	pos, end int64
	first    bool
	data     []byte // not read yet
}

// Read implements io.Reader.
func (r *groupReader) Read(p []byte) (int, error) {
	for len(r.data) == 0 {
		if r.pos == r.end {
			return 0, io.EOF
		}
		if err := r.ctx.Err(); err != nil {
			return 0, err
		}
		if err := r.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, r.data)
	r.data = r.data[n:]
	return n, nil
}

// next reads a unit.
func (r *groupReader) next() error {
	u := unit{from: r.pos, at: r.m.end, open: r.first}
	if r.m.compress {
		u.n = int32(min(r.end-r.pos, framed.MaxData))
	} else {
		left := r.end - r.pos - framed.HeadSize
		if left < 0 {
			return format.Errorf(format.ErrCorrupt, "expected a snappy chunk, found %d bytes", r.end-r.pos)
		}
		if r.first {
			if err := r.opens(); err != nil {
				return err
			}
		}
		head, err := r.m.bytes(r.ctx, r.src, r.pos, framed.HeadSize)
		if err != nil {
			return err
		}
		kind, body := framed.Head(head)
		if err := framed.Check(kind, body, left); err != nil {
			return err
		}
		if kind == framed.HeaderKind && !r.first {
			return format.Errorf(format.ErrCorrupt, "second snappy stream header in a key group")
		}
		u.n = int32(framed.HeadSize + body)
	}
	data, err := r.m.read(r.ctx, r.src, u)
	if err != nil {
		return err
	}
	r.data = append(r.data[:0], data...)
	r.first = false
	r.pos += int64(u.n)
	n := int64(len(r.m.encode(u, data)))
	if r.m.end > math.MaxInt64-n {
		return format.Errorf(format.ErrLimit, "more than %d bytes", int64(math.MaxInt64))
	}
	if n > 0 {
		r.m.units = append(r.m.units, u)
		r.m.end += n
	}
	return nil
}

// opens checks that a key group starts with a snappy stream header. State backends
// write the number of the key group first.
func (r *groupReader) opens() error {
	n := int64(len(framed.Header))
	if r.end-r.pos >= n {
		p, err := r.m.bytes(r.ctx, r.src, r.pos, n)
		if err != nil || string(p) == framed.Header {
			return err
		}
	}
	return errNotCanonical()
}

func errNotCanonical() error {
	return format.Errorf(format.ErrUnsupported, "its entries are not in the canonical format")
}

// read returns the data of a unit, valid until the next call.
func (m *recoder) read(ctx context.Context, src format.Source, u unit) ([]byte, error) {
	p, err := m.bytes(ctx, src, u.from, int64(u.n))
	if err != nil || m.compress {
		return p, err
	}
	kind, _ := framed.Head(p)
	return framed.Decode(nil, kind, p[framed.HeadSize:], framed.MaxData)
}

// encode returns the bytes of a unit in the new stream.
func (m *recoder) encode(u unit, data []byte) []byte {
	if !m.compress {
		return data
	}
	var p []byte
	if u.open {
		p = append(p, framed.Header...)
	}
	return framed.Append(p, data)
}

// MakeAt implements format.Maker.
func (m *recoder) MakeAt(ctx context.Context, src format.Source, p []byte, off int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := m.base + off; len(p) > 0; {
		k := sort.Search(len(m.units), func(k int) bool { return m.units[k].at > at }) - 1
		if k < 0 || at >= m.end {
			return fmt.Errorf("internal error: byte %d of the key groups from %d to %d", at, m.base, m.end)
		}
		u := m.units[k]
		if m.have != k {
			m.have = -1
			data, err := m.read(ctx, src, u)
			if err != nil {
				return err
			}
			m.enc = append(m.enc[:0], m.encode(u, data)...)
			end := m.end
			if k+1 < len(m.units) {
				end = m.units[k+1].at
			}
			if int64(len(m.enc)) != end-u.at {
				return format.Errorf(format.ErrChanged, "%d bytes at %d have changed", u.n, u.from)
			}
			m.have = k
		}
		n := copy(p, m.enc[at-u.at:])
		p, at = p[n:], at+int64(n)
	}
	return nil
}

// endOfGroup follows the last entry of a key group. Wire format: never change.
const endOfGroup = 0xffff

// checkEntries walks the entries of a key group (spec 3.2): runs of short state
// id and entries of key and value, each int length and bytes; the first bit of a
// key marks the last entry of a run.
func checkEntries(r *bufio.Reader) error {
	wrong := func(err error) error {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			return errNotCanonical()
		}
		return err
	}
	var b [4]byte
	length := func(least int32) (int, error) {
		if _, err := io.ReadFull(r, b[:4]); err != nil {
			return 0, wrong(err)
		}
		n := int32(binary.BigEndian.Uint32(b[:4]))
		if n < least {
			return 0, wrong(io.EOF)
		}
		return int(n), nil
	}
	for {
		if _, err := io.ReadFull(r, b[:2]); err != nil {
			return wrong(err)
		}
		if binary.BigEndian.Uint16(b[:2]) == endOfGroup {
			if _, err := r.ReadByte(); err != io.EOF {
				if err == nil {
					err = io.ErrUnexpectedEOF // bytes after the end
				}
				return wrong(err)
			}
			return nil
		}
		for last := false; !last; {
			n, err := length(1)
			if err != nil {
				return err
			}
			first, err := r.ReadByte()
			if err != nil {
				return wrong(err)
			}
			last = first&0x80 != 0
			if _, err := r.Discard(n - 1); err != nil {
				return wrong(err)
			}
			if n, err = length(0); err != nil {
				return err
			}
			if _, err := r.Discard(n); err != nil {
				return wrong(err)
			}
		}
	}
}
