package spt

import (
	"container/heap"
	"context"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/format"
)

// readSize is the number of bytes of a stream that are read at once.
const readSize = 1 << 20

// Write writes a savepoint as an .spt file. Streams for which bare returns true,
// and empty segments, remain references; a nil bare stores all. Other streams are
// read from src, once per key, and cut at the starts of states, elements and key
// groups. It returns the savepoint as stored; to read its streams, open the file.
func Write(ctx context.Context, w io.Writer, sp *format.Savepoint, src format.Source, bare func(format.Stream) bool, o Options) (*format.Savepoint, Stats, error) {
	sw, err := NewWriter(w, o)
	if err != nil {
		return nil, Stats{}, err
	}
	c := &copier{
		w: sw, src: src,
		ids:  make(map[format.Stream]any),
		cuts: make(map[any][]boundary),
		made: make(map[any]*format.Chunks),
		as:   make(map[madeAs]*format.Chunks),
	}
	eachBoundary(sp, func(s format.Stream, b boundary) {
		id := c.id(s)
		c.cuts[id] = append(c.cuts[id], b)
	})
	view, err := sp.MapStreams(func(p format.Place, s format.Stream) (format.Stream, error) {
		if _, ok := s.(*format.EmptySegment); ok || bare != nil && bare(s) {
			return s, nil
		}
		chunks, err := c.copy(ctx, s)
		if err != nil {
			return nil, format.At(err, "%s", p)
		}
		return chunks, nil
	})
	if err != nil {
		sw.Close() //nolint:errcheck // err is reported
		return nil, Stats{}, err
	}
	sealed, stats, err := sw.seal(ctx, view)
	if err != nil {
		sw.Close() //nolint:errcheck // err is reported
		return nil, Stats{}, err
	}
	return sealed, stats, sw.Close()
}

// copier copies streams into a file.
type copier struct {
	w    *Writer
	src  format.Source
	ids  map[format.Stream]any // see id
	cuts map[any][]boundary    // by id
	made map[any]*format.Chunks
	as   map[madeAs]*format.Chunks
	buf  []byte
}

// madeAs identifies a copied stream and its origin.
type madeAs struct{ id, as any }

// id returns equal values for streams that are copied once. Inline streams are
// copied individually: their bytes are in memory, and equal chunks are stored once.
func (c *copier) id(s format.Stream) any {
	if _, ok := s.(*format.Inline); ok {
		return s
	}
	id, ok := c.ids[s]
	if !ok {
		id = s.Key()
		c.ids[s] = id
	}
	return id
}

// copy stores a stream, unless a stream with the same bytes is already stored.
func (c *copier) copy(ctx context.Context, s format.Stream) (*format.Chunks, error) {
	as, err := origin(s)
	if err != nil {
		return nil, err
	}
	id := c.id(s)
	key := madeAs{id, asKey(as)}
	if chunks := c.as[key]; chunks != nil {
		return chunks, nil
	}
	chunks := c.made[id]
	if chunks != nil {
		chunks, err = c.w.alias(chunks, as)
	} else {
		chunks, err = c.read(ctx, s, as, c.cuts[id])
	}
	if err != nil {
		return nil, err
	}
	c.made[id], c.as[key] = chunks, chunks
	return chunks, nil
}

// read copies the bytes of a stream.
func (c *copier) read(ctx context.Context, s, as format.Stream, cuts []boundary) (*format.Chunks, error) {
	size := s.Size()
	if sizer, ok := c.src.(format.Sizer); ok {
		var err error
		if size, err = sizer.SizeOf(ctx, s); err != nil {
			return nil, err
		}
	}
	if size < 0 {
		return nil, format.Errorf(format.ErrUnsupported, "the snapshot does not record the length of the stream")
	}
	next := newBoundaries(ctx, cuts)
	b, err := next.next()
	if err != nil {
		return nil, err
	}
	out, err := c.w.Stream(as)
	if err != nil {
		return nil, err
	}
	if c.buf == nil {
		c.buf = make([]byte, readSize)
	}
	for pos := int64(0); pos < size; {
		p := c.buf[:min(size-pos, readSize)]
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if _, err := c.src.ReadAt(ctx, s, p, pos); err != nil {
			return nil, err
		}
		end := pos + int64(len(p))
		for b.at < end {
			if _, err := out.Write(p[:b.at-pos]); err != nil {
				return nil, err
			}
			p, pos = p[b.at-pos:], b.at
			if b.state {
				out.MustCut()
			} else {
				out.MayCut()
			}
			if b, err = next.next(); err != nil {
				return nil, err
			}
		}
		if _, err := out.Write(p); err != nil {
			return nil, err
		}
		pos = end
	}
	return out.Close()
}

// boundary is an array of offsets at which a stream may be cut. If state is set, it
// is of a named state, and the stream must be cut at the first one.
type boundary struct {
	offsets format.Offsets
	state   bool
}

// eachBoundary calls add with the boundaries of all streams of a savepoint.
func eachBoundary(sp *format.Savepoint, add func(format.Stream, boundary)) {
	var stream func(format.Stream, boundary)
	stream = func(s format.Stream, b boundary) {
		if kg, ok := s.(*format.KeyGroupStream); ok {
			stream(kg.Data, boundary{offsets: kg.Offsets})
			stream(kg.Data, b)
			return
		}
		if s != nil && b.offsets != nil && b.offsets.Len() > 0 {
			add(s, b)
		}
	}
	operator := func(h *format.OperatorHandle) {
		if h == nil {
			return
		}
		for i := range h.States {
			stream(h.Data, boundary{offsets: h.States[i].Offsets, state: true})
		}
	}
	var keyed func(format.KeyedHandle)
	keyed = func(h format.KeyedHandle) {
		switch h := h.(type) {
		case *format.KeyGroups:
			stream(h.Data, boundary{offsets: h.Offsets})
		case *format.Changelog:
			for _, m := range h.Materialized {
				keyed(m)
			}
			for _, m := range h.Changes {
				keyed(m)
			}
		case *format.ChangelogStream:
			for _, s := range h.Streams {
				stream(s.Data, boundary{offsets: format.OffsetSlice{s.Offset}})
			}
		}
	}
	for _, o := range sp.Operators {
		stream(o.Coordinator, boundary{})
		for _, s := range o.Subtasks {
			operator(s.Managed)
			operator(s.Raw)
			keyed(s.ManagedKeyed)
			keyed(s.RawKeyed)
			for _, dir := range [...][]*format.ChannelHandle{s.Input, s.Output} {
				for _, h := range dir {
					for i := range h.Channels {
						stream(h.Data, boundary{offsets: h.Channels[i].Offsets})
					}
				}
			}
			for _, l := range s.Legacy {
				stream(l, boundary{})
			}
		}
	}
}

// boundaries merges the boundaries of a stream into one ascending sequence. It
// skips offsets that do not ascend within their array, which only makes chunks
// larger.
type boundaries struct {
	ctx  context.Context
	heap []*positions
	last int64
}

// positions walks one array of boundaries.
type positions struct {
	boundary
	at    int64   // the current offset
	all   []int64 // buffer
	buf   []int64 // remaining part of all
	next  int64   // index in the array of the first offset after buf
	first bool    // at is the first offset of the array
}

// cutAt is an offset at which to cut; at the end, it is larger than any stream.
type cutAt struct {
	at    int64
	state bool
}

func newBoundaries(ctx context.Context, all []boundary) *boundaries {
	b := &boundaries{ctx: ctx, last: 0}
	for _, a := range all {
		b.heap = append(b.heap, &positions{boundary: a, at: -1}) // before the first offset: to be advanced
	}
	return b
}

// next returns the next offset to cut at, after 0.
func (b *boundaries) next() (cutAt, error) {
	for len(b.heap) > 0 {
		p := b.heap[0]
		c := cutAt{at: p.at, state: p.state && p.first}
		more, err := p.advance(b.ctx)
		if err != nil {
			return cutAt{}, err
		}
		if more {
			heap.Fix(b, 0)
		} else {
			heap.Pop(b)
		}
		// If two states start at the same offset, the second is skipped, unless it
		// makes the cut mandatory.
		if c.at > b.last || c.at == b.last && c.state && c.at > 0 {
			b.last = c.at
			return c, nil
		}
	}
	return cutAt{at: 1<<63 - 1}, nil
}

func (p *positions) advance(ctx context.Context) (bool, error) {
	if len(p.buf) == 0 {
		left := p.offsets.Len() - p.next
		if left == 0 {
			return false, nil
		}
		if p.all == nil {
			p.all = make([]int64, min(left, 512))
		}
		n, err := p.offsets.Read(ctx, p.all, p.next)
		if err == nil && n == 0 {
			err = fmt.Errorf("internal error: %d offsets end at %d", p.offsets.Len(), p.next)
		}
		if err != nil {
			return false, err
		}
		p.first = p.next == 0
		p.buf = p.all[:n]
		p.next += int64(n)
	} else {
		p.first = false
	}
	p.at, p.buf = p.buf[0], p.buf[1:]
	return true, nil
}

// Len, Less, Swap, Push and Pop are heap.Interface.
func (b *boundaries) Len() int           { return len(b.heap) }
func (b *boundaries) Less(i, j int) bool { return b.heap[i].at < b.heap[j].at }
func (b *boundaries) Swap(i, j int)      { b.heap[i], b.heap[j] = b.heap[j], b.heap[i] }

// Push is required by heap.Interface but not called: all arrays are added at the
// start.
func (b *boundaries) Push(x any) { b.heap = append(b.heap, x.(*positions)) }

// Pop removes the last array.
func (b *boundaries) Pop() any {
	k := len(b.heap) - 1
	p := b.heap[k]
	b.heap = b.heap[:k]
	return p
}
