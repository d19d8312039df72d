package opstate

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// Codec reads and builds the operator state of one snapshot, managed and raw. It
// caches the layout of each handle, so all calls must use the same source. The zero
// value is ready to use. A Codec is safe for concurrent use.
type Codec struct {
	// MaxElement is the limit for the bytes of one element. 0 means 1 GiB.
	MaxElement int64

	layouts sync.Map  // *format.OperatorHandle -> *layout
	made    sync.Map  // SHA-256 -> []byte: recompressed maps
	pool    sync.Pool // *buffers of closed cursors
}

// once returns p, or an equal slice of an earlier call: the subtasks' replicas of a
// map are mostly equal.
func (c *Codec) once(p []byte) []byte {
	same, _ := c.made.LoadOrStore(sha256.Sum256(p), p)
	return same.([]byte)
}

var _ format.OperatorCodec = (*Codec)(nil)

// errNoExtent is the reason why envelopes of version 1 are not split.
var errNoExtent = fmt.Errorf("%w: an envelope of version 1, with serializers as Java objects", format.ErrUnsupported)

// maxEnvelope is larger than any envelope.
const maxEnvelope = 64 << 20

// Describe returns the states in the order of the envelope, which is the order of
// their elements and the order that Build keeps: lists before broadcast states. It
// reads the envelope and, of compressed state, a few bytes where states meet. It
// reads no elements.
//
// An envelope with a serializer snapshot of unknown length cannot be split. The
// result then has the states of the handle, in the order of their elements, without
// Envelope. They can still be built, all together.
func (c *Codec) Describe(ctx context.Context, src format.Source, h *format.OperatorHandle) ([]format.StateMeta, error) {
	metas, _, err := c.describe(ctx, src, h)
	return metas, err
}

// Schema returns the serializers of each state, in the order of Describe. If the
// envelope cannot be read to its end, it returns the part before the problem, and
// an error that matches *types.UnknownClass. Raw state has no schema.
func (c *Codec) Schema(ctx context.Context, src format.Source, h *format.OperatorHandle) ([]types.StateSchema, error) {
	_, e, err := c.describe(ctx, src, h)
	if err != nil || e == nil {
		return nil, err
	}
	return e.schemas(), e.err
}

func (e *walked) schemas() []types.StateSchema {
	schemas := make([]types.StateSchema, len(e.states))
	for i, s := range e.states {
		schemas[i] = types.StateSchema{Name: s.name, Mode: s.mode, Serializers: s.serializers}
	}
	return schemas
}

// Header returns the content of the envelope: whether the elements are
// snappy-framed, and the serializers of each state. It reads the first bytes of the
// stream and does not compare them with the handle. If the envelope cannot be read
// to its end, it returns the part before the problem, and an error that matches
// *types.UnknownClass. Raw state has no header.
func (c *Codec) Header(ctx context.Context, src format.Source, h *format.OperatorHandle) (compressed bool, states []types.StateSchema, err error) {
	if err := checkCodec(h); err != nil || !hasStream(h) || h.Codec == format.CodecRaw {
		return false, nil, err
	}
	l, err := c.layout(ctx, src, h)
	if err != nil {
		return false, nil, err
	}
	e, err := c.envelope(ctx, src, h, l)
	if err != nil {
		return l.compressed, nil, err
	}
	return l.compressed, e.schemas(), e.err
}

// Compressed reports whether the elements are snappy-framed in the stream.
func (c *Codec) Compressed(ctx context.Context, src format.Source, h *format.OperatorHandle) (bool, error) {
	if err := checkCodec(h); err != nil || !hasStream(h) {
		return false, err
	}
	l, err := c.layout(ctx, src, h)
	if err != nil {
		return false, err
	}
	return l.compressed, nil
}

func checkCodec(h *format.OperatorHandle) error {
	if h.Codec != format.CodecFlink && h.Codec != format.CodecRaw {
		return format.Errorf(format.ErrUnsupported, "state of codec %q is not Flink's", h.Codec)
	}
	return nil
}

// hasStream reports whether the handle has bytes: a placeholder of file merging has
// none.
func hasStream(h *format.OperatorHandle) bool {
	return len(h.States) > 0 || format.SizeOf(h.Data) > 0
}

// walked is an envelope and the reason why it was not read to its end, or nil.
type walked struct {
	*envelope
	err error
}

func (c *Codec) describe(ctx context.Context, src format.Source, h *format.OperatorHandle) ([]format.StateMeta, *walked, error) {
	if err := checkCodec(h); err != nil || !hasStream(h) {
		return nil, nil, err
	}
	l, err := c.layout(ctx, src, h)
	if err != nil {
		return nil, nil, err
	}
	f := encoding{version: l.version, compressed: l.compressed}
	if h.Codec == format.CodecRaw {
		w, err := f.wire()
		return l.metas(h, w), nil, err
	}
	e, err := c.envelope(ctx, src, h, l)
	if err != nil {
		return nil, nil, err
	}
	if f.headers, err = l.headerPerState(ctx, src, h, e); err != nil {
		return nil, nil, err
	}
	if e.err != nil {
		f.unsplit = &unsplit{states: h.States}
		var u *types.UnknownClass
		if f.unsplit.why = e.err.Error(); errors.As(e.err, &u) {
			f.unsplit.why = u.Error()
		}
		f.unsplit.bytes = make([]byte, e.size)
		if err := readFull(ctx, src, h.Data, f.unsplit.bytes, 0); err != nil {
			return nil, nil, err
		}
		w, err := f.wire()
		return l.metas(h, w), e, err
	}
	w, err := f.wire()
	if err != nil {
		return nil, nil, err
	}
	metas := make([]format.StateMeta, len(e.states))
	for i, s := range e.states {
		metas[i] = format.StateMeta{Name: s.name, Mode: s.mode, Envelope: s.bytes, Encoding: w}
	}
	return metas, e, checkStates(h, e.states)
}

// checkStates compares the states of the envelope and the handle, which Flink
// writes equally to both.
func checkStates(h *format.OperatorHandle, states []describedState) error {
	for _, s := range states {
		i := slices.IndexFunc(h.States, func(o format.NamedState) bool {
			return o.Name == s.name && (o.Mode == format.ModeBroadcast) == (s.mode == format.ModeBroadcast)
		})
		if i < 0 {
			return format.Errorf(ErrStates, "the stream has state %q, which its handle does not have", s.name)
		}
		if h.States[i].Mode != s.mode {
			return format.Errorf(ErrStates, "state %q is %v in its stream but %v in its handle", s.name, s.mode, h.States[i].Mode)
		}
	}
	if len(h.States) != len(states) {
		return format.Errorf(ErrStates, "the stream has %d states, its handle has %d", len(states), len(h.States))
	}
	return nil
}

// envelope reads the envelope in growing steps, at most up to the first element.
func (c *Codec) envelope(ctx context.Context, src format.Source, h *format.OperatorHandle, l *layout) (*walked, error) {
	limit := l.dataStart()
	var p []byte
	for want := int64(4 << 10); ; want *= 2 {
		have := int64(len(p))
		n := min(want, limit)
		p = slices.Grow(p, int(n-have))[:n]
		if err := readFull(ctx, src, h.Data, p[have:], have); err != nil {
			return nil, err
		}
		e, err := parseEnvelope(p)
		if err == nil {
			return &walked{envelope: e}, l.checkGap(ctx, src, h, int64(e.size))
		}
		var u *types.UnknownClass
		if errors.As(err, &u) || errors.Is(err, errNoExtent) {
			return c.whole(ctx, src, h, l, e, err)
		}
		if n == limit || !errors.Is(err, format.ErrTruncated) {
			return nil, err
		}
		if n >= maxEnvelope {
			return nil, format.Errorf(format.ErrLimit, "the envelope is larger than %d bytes", n)
		}
	}
}

// whole determines the end of an envelope that cannot be read to its end: the first
// element, or the snappy headers before it.
func (c *Codec) whole(ctx context.Context, src format.Source, h *format.OperatorHandle, l *layout, e *envelope, why error) (*walked, error) {
	end := l.dataStart()
	for l.compressed && end >= int64(len(snappyHeader)) {
		var b [len(snappyHeader)]byte
		if err := readFull(ctx, src, h.Data, b[:], end-int64(len(b))); err != nil {
			return nil, err
		}
		if !bytes.Equal(b[:], []byte(snappyHeader)) {
			break
		}
		end -= int64(len(b))
	}
	if end > maxEnvelope {
		return nil, format.Errorf(format.ErrLimit, "the envelope has %d bytes", end)
	}
	if n := len(e.states); n > 0 && e.size == 0 {
		e.states = e.states[:n-1] // the state that was not read to its end
	}
	e.size = int(end)
	return &walked{e, why}, nil
}

// Elements opens a cursor on one state at an element, which may be the one after
// the last. It reads nothing before that element except, the first time, a few
// bytes at the start of the stream. The cursor reads 256 KiB ahead and holds one
// element.
func (c *Codec) Elements(ctx context.Context, src format.Source, h *format.OperatorHandle, state string, from int64) (format.Cursor, error) {
	if err := checkCodec(h); err != nil {
		return nil, err
	}
	for i := range h.States {
		if h.States[i].Name.String() == state {
			cur, err := c.open(ctx, src, h, i, from)
			if err != nil {
				return nil, format.At(err, "state %q", state)
			}
			return cur, nil
		}
	}
	return nil, errNoState(state)
}

func (c *Codec) open(ctx context.Context, src format.Source, h *format.OperatorHandle, i int, from int64) (*cursor, error) {
	s := &h.States[i]
	n := count(s.Offsets)
	if from < 0 || from > n {
		return nil, fmt.Errorf("element %[2]d is out of range: the state has %[1]d", n, from)
	}
	if s.Mode == format.ModeBroadcast && n != 1 {
		return nil, format.Errorf(format.ErrCorrupt, "expected one element of a broadcast state, its map, found %d", n)
	}
	cur := &cursor{name: s.Name, n: n, from: from, next: from, max: c.MaxElement}
	if cur.max == 0 {
		cur.max = 1 << 30
	}
	if from == n {
		return cur, nil
	}
	l, err := c.layout(ctx, src, h)
	if err != nil {
		return nil, err
	}
	cur.compressed = l.compressed
	cur.b = l.bounds(ctx, src, h, i)
	cur.w = window{ctx: ctx, src: src, s: h.Data, end: cur.b.limit}
	cur.pool = &c.pool
	if b, ok := c.pool.Get().(*buffers); ok {
		cur.w.buf, cur.b.buf = b.stream, b.offsets
	}
	return cur, nil
}

func count(o format.Offsets) int64 {
	if o == nil {
		return 0
	}
	return o.Len()
}

// readFull fills p with the bytes at off.
func readFull(ctx context.Context, src format.Source, s format.Stream, p []byte, off int64) error {
	if len(p) == 0 {
		return nil
	}
	_, err := src.ReadAt(ctx, s, p, off)
	return err
}

// readStreamHead reads the first bytes of a stream.
func readStreamHead(ctx context.Context, src format.Source, h *format.OperatorHandle, size int64) (head, error) {
	p := make([]byte, min(5, size))
	if err := readFull(ctx, src, h.Data, p, 0); err != nil {
		return head{}, err
	}
	c := java.NewCursor(p)
	v := readHead(c)
	return v, c.Err()
}
