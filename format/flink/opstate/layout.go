package opstate

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"sort"
	"sync/atomic"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/framed"
)

// layout is the positions of the elements of each state in a stream.
type layout struct {
	head
	size  int64
	spans []span // of states that have elements, in their order in the stream
	at    []int  // state -> index in spans, -1 without elements
	// interleaved: elements of one state are between elements of another. No
	// release writes this, but a reader must not rely on it.
	interleaved bool
}

// span holds the positions of the first and last element of a state.
type span struct {
	state       int
	first, last int64
	data        atomic.Int64 // see dataEnd; 0: not yet known
}

// layout returns the layout of the stream of h, from its first bytes and two
// offsets of each state.
func (c *Codec) layout(ctx context.Context, src format.Source, h *format.OperatorHandle) (*layout, error) {
	if l, ok := c.layouts.Load(h); ok {
		return l.(*layout), nil
	}
	l := &layout{at: make([]int, len(h.States))}
	var err error
	if l.size, err = format.StreamSize(ctx, src, h.Data); err != nil {
		return nil, err
	}
	if h.Codec == format.CodecFlink {
		if l.head, err = readStreamHead(ctx, src, h, l.size); err != nil {
			return nil, err
		}
	}
	n := 0
	for _, s := range h.States {
		if count(s.Offsets) > 0 {
			n++
		}
	}
	l.spans = make([]span, n)
	order := make([]int, 0, n)
	spans := make([]struct{ first, last int64 }, len(h.States))
	for i, s := range h.States {
		n := count(s.Offsets)
		if n == 0 {
			continue
		}
		first, err := format.OffsetAt(ctx, s.Offsets, 0)
		if err != nil {
			return nil, err
		}
		last, err := format.OffsetAt(ctx, s.Offsets, n-1)
		if err != nil {
			return nil, err
		}
		if first < 0 || last < first || last > l.size {
			return nil, format.At(format.Errorf(format.ErrCorrupt, "element offsets %d to %d are outside the stream of %d bytes", first, last, l.size), "state %q", s.Name)
		}
		spans[i].first, spans[i].last = first, last
		order = append(order, i)
	}
	// Order of states at the same position: first states without bytes, then lists
	// before broadcast states, then the order of the envelope.
	rank := make([]int, len(h.States))
	compare := func(a, b int) int {
		return cmp.Or(cmp.Compare(spans[a].first, spans[b].first), cmp.Compare(spans[a].last, spans[b].last),
			cmp.Compare(section(h.States[a].Mode), section(h.States[b].Mode)), cmp.Compare(rank[a], rank[b]))
	}
	fill := func() {
		slices.SortStableFunc(order, compare)
		for k, i := range order {
			l.spans[k].state, l.spans[k].first, l.spans[k].last = i, spans[i].first, spans[i].last
		}
	}
	fill()
	for k := 1; k < len(order); k++ {
		if compare(order[k-1], order[k]) == 0 {
			if err := c.rank(ctx, src, h, l, rank); err != nil {
				return nil, err
			}
			fill()
			break
		}
	}
	for i := range l.at {
		l.at[i] = -1
	}
	for k := range l.spans {
		l.at[l.spans[k].state] = k
		if k > 0 && l.spans[k].first < l.spans[k-1].last {
			l.interleaved = true
		}
	}
	c.layouts.Store(h, l)
	return l, nil
}

// section returns the section of a stream with the states of a mode: 0 for lists
// and unions, 1 for broadcast states.
func section(m format.Mode) int {
	if m == format.ModeBroadcast {
		return 1
	}
	return 0
}

// rank numbers the states of h in the order of its envelope.
func (c *Codec) rank(ctx context.Context, src format.Source, h *format.OperatorHandle, l *layout, rank []int) error {
	if h.Codec == format.CodecRaw {
		return format.Errorf(format.ErrUnsupported, "two raw states have elements at the same position: cannot determine which state they belong to")
	}
	e, err := c.envelope(ctx, src, h, l)
	if err == nil {
		err = e.err
	}
	if err != nil {
		return err
	}
	for i, s := range h.States {
		rank[i] = slices.IndexFunc(e.states, func(o describedState) bool { return o.name == s.Name && o.mode == s.Mode })
	}
	return nil
}

// dataStart returns the start of the first element, or the end of the stream.
func (l *layout) dataStart() int64 {
	if len(l.spans) == 0 {
		return l.size
	}
	return l.spans[0].first
}

// spanEnd returns the start of the next state with elements, or the end of the
// stream.
func (l *layout) spanEnd(k int) int64 {
	if k+1 < len(l.spans) {
		return l.spans[k+1].first
	}
	return l.size
}

// metas returns the states of h in their order in the stream; within a section,
// states without elements are last.
func (l *layout) metas(h *format.OperatorHandle, w format.Wire) []format.StateMeta {
	order := make([]int, len(h.States))
	for i := range order {
		order[i] = i
	}
	place := func(i int) int {
		if l.at[i] < 0 {
			return len(l.spans)
		}
		return l.at[i]
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(section(h.States[a].Mode), section(h.States[b].Mode)), cmp.Compare(place(a), place(b)))
	})
	metas := make([]format.StateMeta, len(order))
	for k, i := range order {
		metas[k] = format.StateMeta{Name: h.States[i].Name, Mode: h.States[i].Mode, Encoding: w}
	}
	return metas
}

// checkGap checks that the elements start where the envelope ends, or after the
// snappy headers there.
func (l *layout) checkGap(ctx context.Context, src format.Source, h *format.OperatorHandle, end int64) error {
	gap := l.dataStart() - end
	n := int64(len(snappyHeader))
	if !l.compressed && gap == 0 {
		return nil
	}
	if !l.compressed || gap%n != 0 || gap > n*int64(max(len(h.States), 1)) {
		return format.Errorf(format.ErrCorrupt, "%d bytes between the envelope, which ends at %d, and the elements", gap, end)
	}
	p := make([]byte, gap)
	if err := readFull(ctx, src, h.Data, p, end); err != nil {
		return err
	}
	if !bytes.Equal(p, bytes.Repeat([]byte(snappyHeader), int(gap/n))) {
		return format.Errorf(format.ErrCorrupt, "expected a snappy stream header at %d, the end of the envelope", end)
	}
	return nil
}

// headerPerState reports whether each state of a compressed stream is a framed
// stream of its own. With one state this makes no difference.
func (l *layout) headerPerState(ctx context.Context, src format.Source, h *format.OperatorHandle, e *walked) (bool, error) {
	if !l.compressed {
		return false, nil
	}
	if l.dataStart()-int64(e.size) > int64(len(snappyHeader)) {
		return true, nil
	}
	for k := range l.spans {
		end, err := l.dataEnd(ctx, src, h, k)
		if err != nil || end < l.spanEnd(k) {
			return err == nil, err
		}
	}
	return false, nil
}

// dataEnd returns the end of the last chunk with data of a state: its spanEnd
// without the snappy headers of the states after it.
func (l *layout) dataEnd(ctx context.Context, src format.Source, h *format.OperatorHandle, k int) (int64, error) {
	s := &l.spans[k]
	end := l.spanEnd(k)
	n := int64(len(snappyHeader))
	if !l.compressed || end-n < s.last {
		return end, nil
	}
	if v := s.data.Load(); v > 0 {
		return v, nil
	}
	var tail [len(snappyHeader)]byte
	if err := readFull(ctx, src, h.Data, tail[:], end-n); err != nil {
		return 0, err
	}
	if string(tail[:]) == snappyHeader {
		// Either a header or the last bytes of an element: walk the chunks.
		w := window{ctx: ctx, src: src, s: h.Data, end: end}
		data := s.last
		for pos := s.last; pos < end; {
			kind, body, err := w.chunk(pos)
			if err != nil {
				return 0, err
			}
			if pos += 4 + body; kind <= framed.Stored {
				data = pos
			}
		}
		end = data
	}
	s.data.Store(end)
	return end, nil
}

// errBroken returns the error for a stream written by a release without the fix.
func errBroken(first, pos int64) error {
	return format.Errorf(ErrSameOffset, "element %d and its neighbor both start at %d and are not empty: written by a Flink 1.18 without the fix for FLINK-34063; the snapshot does not record where the first one ends", first, pos)
}

// bounds determines where elements start and end.
type bounds struct {
	ctx   context.Context
	o     format.Offsets
	n     int64
	buf   []int64 // offsets of the elements from base on
	base  int64
	end   int64 // of the last element
	limit int64 // the end of the state
	peers []*bounds
	seen  int64 // as a peer: the next offset to compare
	// data returns the end of the last chunk with data; nil if not compressed.
	data func() (int64, error)
}

func (l *layout) bounds(ctx context.Context, src format.Source, h *format.OperatorHandle, state int) *bounds {
	k := l.at[state]
	b := &bounds{ctx: ctx, o: h.States[state].Offsets, n: h.States[state].Offsets.Len(), end: l.spanEnd(k)}
	if l.compressed {
		b.data = func() (int64, error) { return l.dataEnd(ctx, src, h, k) }
	}
	if l.interleaved {
		b.end = l.size
		for k := range l.spans {
			if other := l.spans[k].state; other != state {
				o := h.States[other].Offsets
				b.peers = append(b.peers, &bounds{ctx: ctx, o: o, n: o.Len(), seen: -1})
			}
		}
		if l.compressed {
			b.data = func() (int64, error) { return l.size, nil }
		}
	}
	b.limit = b.end
	return b
}

// offset returns where element i starts.
func (b *bounds) offset(i int64) (int64, error) {
	if k := i - b.base; k >= 0 && k < int64(len(b.buf)) {
		return b.buf[k], nil
	}
	size := int64(64) // one element needs few
	if len(b.buf) > 1 && i-b.base >= int64(len(b.buf))-1 && i-b.base <= int64(len(b.buf)) {
		size = 4096 // sequential access
	}
	if size = min(size, b.n-i); int64(cap(b.buf)) < size {
		b.buf = make([]int64, size)
	}
	b.buf, b.base = b.buf[:size], i
	k, err := b.o.Read(b.ctx, b.buf, i)
	if err != nil {
		b.buf = b.buf[:0]
		return 0, err
	}
	if b.buf = b.buf[:k]; k == 0 {
		return 0, errOffsets
	}
	return b.buf[0], nil
}

var errOffsets = errors.New("internal error: offsets end early")

// extent returns where element i starts and ends.
func (b *bounds) extent(i int64) (start, end int64, err error) {
	if start, err = b.offset(i); err != nil {
		return 0, 0, err
	}
	end = b.end
	if i+1 < b.n {
		// The refill invalidates the buffer, but start is already copied.
		if end, err = b.offset(i + 1); err != nil {
			return 0, 0, err
		}
	}
	for _, p := range b.peers {
		o, err := p.above(start)
		if err != nil {
			return 0, 0, err
		}
		if o >= 0 {
			end = min(end, o)
		}
	}
	if start < 0 || end < start || end > b.limit {
		return 0, 0, format.Errorf(format.ErrCorrupt, "bytes %d to %d are outside the %d bytes before the next state", start, end, b.limit)
	}
	return start, end, nil
}

// shared returns an error if element i has data but starts where a neighbor does,
// which occurs only in broken compressed streams. A sequential walk detects this; a
// cursor opened here must check the previous element.
func (b *bounds) shared(i int64, opened bool, start, end int64) error {
	if b.data == nil {
		return nil
	}
	same := start == end
	if !same && opened && i > 0 {
		prev, err := format.OffsetAt(b.ctx, b.o, i-1)
		if err != nil {
			return err
		}
		same = prev == start
	}
	if !same {
		return nil
	}
	data, err := b.data()
	if err == nil && data != start {
		err = errBroken(i, start)
	}
	return err
}

// above returns the first offset larger than pos, or -1. pos must not decrease
// between calls.
func (b *bounds) above(pos int64) (int64, error) {
	if b.seen < 0 {
		var err error
		b.seen = int64(sort.Search(int(b.n), func(i int) bool {
			v, e := format.OffsetAt(b.ctx, b.o, int64(i))
			if e != nil {
				err = e
			}
			return v > pos
		}))
		if err != nil {
			return 0, err
		}
	}
	for ; b.seen < b.n; b.seen++ {
		v, err := b.offset(b.seen)
		if err != nil || v > pos {
			return v, err
		}
	}
	return -1, nil
}
