package opstate

import (
	"context"
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/internal/framed"
)

// Recompress returns the handle with its elements compressed or uncompressed, in
// the same order and with the same envelope, or h itself if nothing changes. The
// new stream has the layout of Flink 1.18.1 and later: one snappy stream, in which
// every element starts a chunk.
//
// It reads all elements to determine their new lengths; each read of the new stream
// reads them again. Wire and Merging of the handle do not change.
//
// It returns ErrUnsupported for raw state, for envelopes before version 6, and for
// elements without bytes in a compressed stream: they cannot be distinguished from
// elements whose start was lost (FLINK-34063).
func (c *Codec) Recompress(ctx context.Context, src format.Source, h *format.OperatorHandle, compress bool) (*format.OperatorHandle, error) {
	if err := checkCodec(h); err != nil {
		return nil, err
	}
	if !hasStream(h) {
		return h, nil
	}
	if h.Codec == format.CodecRaw {
		return nil, format.Errorf(format.ErrUnsupported, "raw state is bytes of user code, which Flink does not compress")
	}
	l, err := c.layout(ctx, src, h)
	if err != nil {
		return nil, err
	}
	switch {
	case l.compressed == compress:
		return h, nil
	case l.version < flagVersion:
		first, _ := flink.Lifetime(func(f flink.Facts) bool { return f.OperatorState.Has(flagVersion) })
		return nil, format.Errorf(format.ErrUnsupported, "operator state of version %d cannot be compressed: this needs version %[3]d, of Flink %[2]v and later", l.version, first, flagVersion)
	case l.interleaved:
		return nil, format.Errorf(format.ErrUnsupported, "elements of different states are interleaved, which Flink does not write")
	}
	e, err := c.envelope(ctx, src, h, l)
	if err != nil {
		return nil, err
	}
	head := make([]byte, e.size, e.size+len(snappyHeader))
	if err := readFull(ctx, src, h.Data, head, 0); err != nil {
		return nil, err
	}
	head[4] = 0
	if compress {
		head[4] = 1
		head = append(head, snappyHeader...)
	}
	m := &recoder{codec: c, h: h, compress: compress, base: int64(len(head)), open: -1, have: -1}
	at := m.base
	out := *h
	out.States = make([]format.NamedState, len(h.States))
	for i, s := range h.States {
		out.States[i] = format.NamedState{Name: s.Name, Mode: s.Mode, Offsets: format.OffsetSlice(nil)}
	}
	for k := range l.spans {
		i := l.spans[k].state
		var offs format.OffsetSlice // grows as elements are read: a count is a claim
		err := m.each(ctx, src, i, func(p []byte) error {
			if len(p) == 0 && compress {
				return format.Errorf(format.ErrUnsupported, "element %d has no bytes: a compressed stream cannot store its position", len(offs))
			}
			offs = append(offs, at)
			if at += int64(len(m.encode(p))); at < 0 {
				return format.Errorf(format.ErrLimit, "more than %d bytes", int64(math.MaxInt64))
			}
			return nil
		})
		if err != nil {
			return nil, format.At(err, "state %q", h.States[i].Name)
		}
		out.States[i].Offsets = offs
		m.spans = append(m.spans, recoded{i, offs})
	}
	m.end = at
	parts := []format.Part{format.Literal(head)}
	if n := at - m.base; n > 0 {
		how := "decompressed"
		if compress {
			how = "snappy"
		}
		data := &format.Computed{Length: n, Name: fmt.Sprintf("%s elements of %v", how, h.Data.Key()), Maker: m}
		parts = append(parts, format.Part{Of: data, N: n})
	}
	out.Data = &format.Concat{Parts: parts}
	return &out, nil
}

// recoder computes the data section of a stream from the elements of a handle.
type recoder struct {
	codec     *Codec
	h         *format.OperatorHandle
	compress  bool
	base, end int64     // range of the data in the new stream
	spans     []recoded // in stream order

	mu   sync.Mutex // guards the fields below
	open int        // the span that cur walks, or -1
	ctx  context.Context
	src  format.Source
	cur  *cursor
	have int // the span of the element in enc, or -1
	elem int64
	buf  []byte // buffer of encode
	enc  []byte // the encoded element
}

// recoded is a state and the starts of its elements in the new stream.
type recoded struct {
	state   int
	offsets format.OffsetSlice
}

// each calls f with the elements of a state.
func (m *recoder) each(ctx context.Context, src format.Source, state int, f func(p []byte) error) error {
	cur, err := m.codec.open(ctx, src, m.h, state, 0)
	if err != nil {
		return err
	}
	return format.EachIn(ctx, cur, func(e format.Element) error { return f(e.Value) })
}

// encode returns the bytes of an element in the new stream, valid until the next
// call.
func (m *recoder) encode(p []byte) []byte {
	if !m.compress {
		return p
	}
	m.buf = framed.Append(m.buf[:0], p)
	return m.buf
}

// MakeAt implements format.Maker.
func (m *recoder) MakeAt(ctx context.Context, src format.Source, p []byte, off int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for at := m.base + off; len(p) > 0; {
		k := sort.Search(len(m.spans), func(k int) bool { return m.spans[k].offsets[0] > at }) - 1
		if k < 0 || at >= m.end {
			return fmt.Errorf("internal error: byte %d of the data from %d to %d", at, m.base, m.end)
		}
		s := m.spans[k]
		// Of several elements at the same position, only the last has bytes.
		i := int64(sort.Search(len(s.offsets), func(i int) bool { return s.offsets[i] > at })) - 1
		if err := m.element(ctx, src, k, i); err != nil {
			return err
		}
		skip := at - s.offsets[i]
		n := copy(p, m.enc[skip:])
		p, at = p[n:], at+int64(n)
	}
	return nil
}

// element sets enc to the bytes of element i of a span.
func (m *recoder) element(ctx context.Context, src format.Source, k int, i int64) error {
	if m.have == k && m.elem == i {
		return nil
	}
	m.have = -1
	if m.open != k || m.ctx != ctx || m.src != src || m.cur.next != i {
		m.close()
		cur, err := m.codec.open(ctx, src, m.h, m.spans[k].state, i)
		if err != nil {
			return err
		}
		m.open, m.ctx, m.src, m.cur = k, ctx, src, cur
	}
	e, err := m.cur.Next()
	if err != nil {
		m.close()
		return err
	}
	m.enc = append(m.enc[:0], m.encode(e.Value)...)
	end := m.end
	if o := m.spans[k].offsets; i+1 < int64(len(o)) {
		end = o[i+1]
	} else if k+1 < len(m.spans) {
		end = m.spans[k+1].offsets[0]
	}
	if want := end - m.spans[k].offsets[i]; int64(len(m.enc)) != want {
		return format.Errorf(format.ErrChanged, "element %d has changed: expected %d bytes for its %d, found %d", i, want, len(e.Value), len(m.enc))
	}
	m.have, m.elem = k, i
	return nil
}

func (m *recoder) close() {
	if m.cur != nil {
		_ = m.cur.Close() // read only
	}
	m.open, m.cur, m.ctx, m.src = -1, nil, nil, nil
}
