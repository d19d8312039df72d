package native

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/internal/mapcursor"
)

// Codec reads and builds native operator state. It implements
// [format.OperatorCodec], and is safe for concurrent use.
//
// The stream holds the states of the handle one after another, in their order. Each
// element of a list or union state is one msgpack value; a broadcast state is one
// map whose keys ascend by their bytes. An element ends where the next element of
// the handle starts, the last one at the end of the stream.
type Codec struct{}

var _ format.OperatorCodec = Codec{}

// checkStates returns an error for duplicate names and invalid modes.
func checkStates(n int, state func(int) (format.Text, format.Mode)) error {
	seen := make(map[string]bool, n)
	for i := range n {
		name, mode := state(i)
		if mode > format.ModeBroadcast {
			return format.At(format.Errorf(format.ErrCorrupt, "expected list, union or broadcast, found %v", mode), "state %q", name)
		}
		if seen[name.String()] {
			return format.At(format.Errorf(format.ErrCorrupt, "duplicate state"), "state %q", name)
		}
		seen[name.String()] = true
	}
	return nil
}

func checkHandle(h *format.OperatorHandle) error {
	if h.Codec != format.CodecNative {
		return format.Errorf(format.ErrUnsupported, "state of codec %q is not native", h.Codec)
	}
	return checkStates(len(h.States), func(i int) (format.Text, format.Mode) { return h.States[i].Name, h.States[i].Mode })
}

// Describe returns the states, without an Envelope. It reads nothing, because the
// stream has no envelope.
func (Codec) Describe(_ context.Context, _ format.Source, h *format.OperatorHandle) ([]format.StateMeta, error) {
	if err := checkHandle(h); err != nil {
		return nil, err
	}
	metas := make([]format.StateMeta, len(h.States))
	for i, s := range h.States {
		metas[i] = format.StateMeta{Name: s.Name, Mode: s.Mode}
	}
	return metas, nil
}

// Elements opens a cursor on a state at element from, which may be the one after
// the last. It reads nothing before that element: the first element costs one read
// of offsets, a second one if the next state determines its end, and one read of
// exactly its bytes. The cursor holds one element and reads 64 KiB ahead. It checks
// that elements follow each other and that each is one msgpack value, and, if that
// needs no additional read, that the first element of the handle starts at the
// first byte.
func (Codec) Elements(ctx context.Context, src format.Source, h *format.OperatorHandle, state string, from int64) (format.Cursor, error) {
	if err := checkHandle(h); err != nil {
		return nil, err
	}
	for i := range h.States {
		s := &h.States[i]
		if s.Name.String() != state {
			continue
		}
		first := firstState(h)
		if first >= 0 {
			if _, inMemory := h.States[first].Offsets.(format.OffsetSlice); inMemory {
				if err := checkStart(ctx, h); err != nil {
					return nil, err
				}
			}
		}
		c := &cursor{h: h, i: i, n: count(s.Offsets), next: from, first: first == i}
		if from < 0 || from > c.n {
			return nil, fmt.Errorf("element %[3]d of state %[1]q is out of range: the state has %[2]d", state, c.n, from)
		}
		if s.Mode == format.ModeBroadcast && c.n != 1 {
			return nil, format.At(format.Errorf(format.ErrCorrupt, "expected one element of a broadcast state, its map, found %d", c.n), "state %q", state)
		}
		var err error
		if c.w, err = newWindow(ctx, src, h.Data); err != nil {
			return nil, format.At(err, "state %q", state)
		}
		return c, nil
	}
	return nil, fmt.Errorf("the handle has no state %q", state)
}

// Entries opens a cursor on the map of a broadcast state. The cursor reads 64 KiB
// at a time and holds one entry. It checks that the keys ascend.
func (c Codec) Entries(ctx context.Context, src format.Source, h *format.OperatorHandle, state string) (format.MapCursor, error) {
	elements, err := c.Elements(ctx, src, h, state, 0)
	if err != nil {
		return nil, err
	}
	cur := elements.(*cursor)
	name := h.States[cur.i].Name
	if h.States[cur.i].Mode != format.ModeBroadcast {
		return nil, format.Errorf(format.ErrUnsupported, "state %q: expected broadcast state, found %v state", name, h.States[cur.i].Mode)
	}
	start, end, err := cur.bounds()
	if err != nil {
		return nil, format.At(err, "state %q", name)
	}
	read := func(off, n int64) ([]byte, error) {
		return cur.w.bytes(start+off, min(n, end-start-off))
	}
	m, err := mapcursor.Open(read, mapLayout, cur.w.most)
	return m, format.At(err, "state %q", name)
}

// mapLayout is the layout of a msgpack map whose keys ascend by their bytes.
var mapLayout = mapcursor.Layout{Head: mapHead, Key: ValueCodec{}, Value: ValueCodec{}, Ascending: true}

func mapHead(p []byte) (entries int64, n int, err error) {
	if len(p) > 0 && !isMap(p[0]) {
		return 0, 0, errNoMap(p[0])
	}
	n, inside, err := shape(p)
	return inside / 2, n, truncated(err, len(p))
}

func count(o format.Offsets) int64 {
	if o == nil {
		return 0
	}
	return o.Len()
}

// aheadOffsets is the number of offsets per read, after the first.
const aheadOffsets = 512

// cursor walks one state.
type cursor struct {
	h    *format.OperatorHandle
	i    int   // index of the state
	n    int64 // number of elements
	next int64 // index of the next element
	// first: no earlier state has elements, so element 0 starts the stream.
	first bool
	w     *window
	run   []int64 // offsets from element next on
	err   error
}

var errClosed = errors.New("internal error: cursor used after Close")

// Next implements [format.Cursor]. After an error it returns that error again.
func (c *cursor) Next() (format.Element, error) {
	if c.err == nil && c.next == c.n {
		c.err = io.EOF
	}
	if c.err != nil {
		return format.Element{}, c.err
	}
	value, err := c.value()
	if err != nil {
		c.err = format.At(err, "state %q/element %d", c.h.States[c.i].Name, c.next)
		return format.Element{}, c.err
	}
	e := format.Element{Index: c.next, Value: value}
	c.next++
	return e, nil
}

func (c *cursor) value() ([]byte, error) {
	start, end, err := c.bounds()
	if err != nil {
		return nil, err
	}
	p, err := c.w.bytes(start, end-start)
	if err == nil {
		err = check(p)
	}
	if err == nil && c.h.States[c.i].Mode == format.ModeBroadcast {
		err = checkMap(p)
	}
	return p, err
}

// bounds returns the range of the next element, within the stream.
func (c *cursor) bounds() (start, end int64, err error) {
	start, end, err = c.extent()
	switch {
	case err != nil:
	case c.first && c.next == 0 && start > 0:
		err = errBefore(start)
	case start < 0 || start >= end || end > c.w.size:
		err = errRange(start, end, c.w.size)
	}
	return start, end, err
}

func errRange(start, end, size int64) error {
	if start >= 0 && start >= end {
		return format.Errorf(format.ErrCorrupt, "range [%d, %d) is empty", start, end)
	}
	return format.Errorf(format.ErrCorrupt, "range [%d, %d) is outside the stream (%d bytes)", start, end, size)
}

// extent returns where the next element starts and ends.
func (c *cursor) extent() (start, end int64, err error) {
	o := c.h.States[c.i].Offsets
	if len(c.run) < 2 && c.next+int64(len(c.run)) < c.n {
		// At first, read only the offsets that one element needs.
		size := 2
		if c.run != nil {
			size = aheadOffsets
		}
		buf := make([]int64, min(int64(size), c.n-c.next))
		k, err := o.Read(c.w.ctx, buf, c.next)
		if err != nil {
			return 0, 0, err
		}
		if k < len(buf) {
			return 0, 0, fmt.Errorf("internal error: %d offsets end at %d", c.n, c.next+int64(k))
		}
		c.run = buf
	}
	start = c.run[0]
	c.run = c.run[1:]
	if len(c.run) > 0 {
		return start, c.run[0], nil
	}
	end, err = c.stateEnd()
	return start, end, err
}

// stateEnd returns the start of the next state that has elements, or the end of the
// stream.
func (c *cursor) stateEnd() (int64, error) {
	for _, s := range c.h.States[c.i+1:] {
		if count(s.Offsets) > 0 {
			return format.OffsetAt(c.w.ctx, s.Offsets, 0)
		}
	}
	return c.w.size, nil
}

// Ordered returns true: elements are stored in the order in which they were added.
func (c *cursor) Ordered() bool { return true }

// Close implements [format.Cursor].
func (c *cursor) Close() error {
	c.w.buf, c.err = nil, errClosed
	return nil
}

// stateParts is the content of one state as ranges of streams, one per element. A
// broadcast state has one, its map.
type stateParts struct {
	format.StateMeta
	Elements []format.Part
}

// Build returns a handle with the states, in this order, made of elements of other
// native handles. Its offsets take 8 bytes per element in memory.
func (Codec) Build(ctx context.Context, _ format.Source, states []format.StateRuns) (*format.OperatorHandle, error) {
	parts := make([]stateParts, len(states))
	for i, s := range states {
		parts[i].StateMeta = s.StateMeta
		var err error
		for _, r := range s.Runs {
			if parts[i].Elements, err = appendRun(ctx, parts[i].Elements, r); err != nil {
				return nil, format.At(err, "state %q", s.Name)
			}
		}
		if s.Map != nil {
			if parts[i].Elements, err = cutMap(s.Mode, parts[i].Elements, s.Map); err != nil {
				return nil, format.At(err, "state %q", s.Name)
			}
		}
	}
	return assemble(parts)
}

// appendRun appends the ranges of the elements of a run.
func appendRun(ctx context.Context, parts []format.Part, r format.ElementRun) ([]format.Part, error) {
	for i, p := range r.New {
		if len(p) == 0 {
			return nil, fmt.Errorf("new element %d has no bytes", i)
		}
		parts = append(parts, format.Literal(slices.Clone(p)))
	}
	if r.New != nil || r.Count == 0 {
		return parts, nil
	}
	if err := checkHandle(r.Handle); err != nil {
		return nil, err
	}
	if r.State < 0 || r.State >= len(r.Handle.States) {
		return nil, errors.New("run refers to a state index out of range")
	}
	c := &cursor{h: r.Handle, i: r.State, n: count(r.Handle.States[r.State].Offsets), next: r.First, w: &window{ctx: ctx, size: format.SizeOf(r.Handle.Data)}}
	if r.First < 0 || r.Count < 0 || r.First > c.n || r.Count > c.n-r.First {
		return nil, format.Errorf(format.ErrCorrupt, "run of %d elements from %d is outside the %d elements", r.Count, r.First, c.n)
	}
	for range r.Count {
		start, end, err := c.extent()
		if err != nil {
			return nil, err
		}
		if start < 0 || start >= end || end > c.w.size {
			return nil, format.At(errRange(start, end, c.w.size), "element %d", c.next)
		}
		parts = append(parts, format.Part{Of: r.Handle.Data, Off: start, N: end - start})
		c.next++
	}
	return parts, nil
}

// cutMap returns a map with the entries of m.
func cutMap(mode format.Mode, elements []format.Part, m *format.MapCut) ([]format.Part, error) {
	if mode != format.ModeBroadcast || len(elements) != 1 || m.Count < 0 || m.Count > math.MaxUint32 {
		return nil, fmt.Errorf("cannot keep %d entries of %d elements of a %v state: expected the map of a broadcast state", m.Count, len(elements), mode)
	}
	whole := elements[0]
	head := AppendMapHeader(nil, int(m.Count))
	rope := &format.Concat{Parts: []format.Part{format.Literal(head)}}
	for _, e := range m.Ranges {
		if e.New != nil {
			rope.Parts = addPart(rope.Parts, format.Literal(slices.Clone(e.New)))
			continue
		}
		if e.Off < 1 || e.N < 0 || e.N > whole.N-e.Off {
			return nil, fmt.Errorf("entries from %d, %d bytes, are outside the map of %d bytes", e.Off, e.N, whole.N)
		}
		rope.Parts = addPart(rope.Parts, format.Part{Of: whole.Of, Off: whole.Off + e.Off, N: e.N})
	}
	return []format.Part{{Of: rope, N: rope.Size()}}, nil
}

// assemble returns a handle with the states, in this order. Its Data is a rope of
// the parts; adjacent parts of a stream are merged.
func assemble(states []stateParts) (*format.OperatorHandle, error) {
	err := checkStates(len(states), func(i int) (format.Text, format.Mode) { return states[i].Name, states[i].Mode })
	if err != nil {
		return nil, err
	}
	h := &format.OperatorHandle{Codec: format.CodecNative}
	rope := &format.Concat{}
	var at int64
	for _, s := range states {
		if s.Mode == format.ModeBroadcast && len(s.Elements) != 1 {
			return nil, format.At(format.Errorf(format.ErrCorrupt, "expected one map for a broadcast state, found %d", len(s.Elements)), "state %q", s.Name)
		}
		offsets := make(format.OffsetSlice, 0, len(s.Elements))
		for i, p := range s.Elements {
			if p.N <= 0 {
				return nil, format.At(fmt.Errorf("an element of %d bytes is not a msgpack value", p.N), "state %q/element %d", s.Name, i)
			}
			offsets = append(offsets, at)
			at += p.N
			rope.Parts = addPart(rope.Parts, p)
		}
		h.States = append(h.States, format.NamedState{Name: s.Name, Mode: s.Mode, Offsets: offsets})
	}
	h.Data = rope
	return h, nil
}

// addPart appends a part to a rope.
func addPart(parts []format.Part, p format.Part) []format.Part {
	if k := len(parts) - 1; k >= 0 && parts[k].Of == p.Of && parts[k].Off+parts[k].N == p.Off {
		parts[k].N += p.N
		return parts
	}
	return append(parts, p)
}
