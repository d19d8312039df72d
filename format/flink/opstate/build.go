package opstate

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/framed"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// Build returns a new handle with the given states, in the given order, list and
// union states before broadcast states. Its stream is a rope: an envelope made of
// the envelopes of the states, and ranges of the streams of the runs. Build reads
// no element, only the first bytes of each handle that a run refers to.
//
// All states must have the same Encoding, and the streams of the runs the same
// compression. The caller must ensure, by comparing Envelopes, that the elements of
// all runs of a state were written with the serializers of its Envelope. A
// different Name renames a state; a different Mode makes a list state a union
// state, or the reverse.
//
// Build returns ErrUnsupported for envelopes before version 5, and if an envelope
// that could not be split is used without all of its states. Wire and Merging of
// the handle are empty.
func (c *Codec) Build(ctx context.Context, src format.Source, states []format.StateRuns) (*format.OperatorHandle, error) {
	if len(states) == 0 {
		return nil, fmt.Errorf("cannot build a handle without states")
	}
	states = slices.Clone(states)
	slices.SortStableFunc(states, func(a, b format.StateRuns) int {
		return section(a.Mode) - section(b.Mode)
	})
	f, err := commonEncoding(states)
	if err != nil {
		return nil, err
	}
	b := &builder{codec: c, ctx: ctx, src: src, encoding: f}
	h := &format.OperatorHandle{Codec: format.CodecFlink, States: make([]format.NamedState, len(states))}
	if f.version == 0 {
		h.Codec = format.CodecRaw
	} else {
		p, err := buildEnvelope(f, states)
		if err != nil {
			return nil, err
		}
		if f.compressed && !f.headers {
			p = append(p, snappyHeader...)
		}
		b.literal(p)
	}
	for i, s := range states {
		offs, err := b.state(s)
		if err != nil {
			return nil, format.At(err, "state %q", s.Name)
		}
		h.States[i] = format.NamedState{Name: s.Name, Mode: s.Mode, Offsets: offs}
	}
	if len(b.parts) < cap(b.parts)/2 {
		b.parts = slices.Clone(b.parts) // adjacent runs were merged
	}
	h.Data = &format.Concat{Parts: b.parts}
	return h, nil
}

// commonEncoding returns the encoding of all states.
func commonEncoding(states []format.StateRuns) (encoding, error) {
	seen := make(map[format.Text]bool, len(states))
	for _, s := range states {
		if s.Encoding != states[0].Encoding {
			return encoding{}, format.Errorf(format.ErrUnsupported, "states %q and %q cannot share a stream: their streams are %s, and %s", states[0].Name, s.Name, describe(states[0].Encoding), describe(s.Encoding))
		}
		if seen[s.Name] {
			return encoding{}, format.Errorf(format.ErrCorrupt, "duplicate state %q in one handle", s.Name)
		}
		seen[s.Name] = true
	}
	f, err := parseEncoding(states[0].Encoding)
	if err != nil {
		return encoding{}, err
	}
	if f.version > 0 && f.version < minWritten {
		return encoding{}, format.Errorf(format.ErrUnsupported, "operator state of version %d contains its serializers as Java objects, which current releases of Flink reject: new streams must have version %d or later", f.version, minWritten)
	}
	if f.unsplit != nil && !f.unsplit.holds(states) {
		return encoding{}, format.Errorf(format.ErrUnsupported, "the envelope of the %d states in a stream cannot be split: %s", len(f.unsplit.states), f.unsplit.why)
	}
	return f, nil
}

// buildEnvelope returns an envelope of the states (see parseEnvelope).
func buildEnvelope(f encoding, states []format.StateRuns) ([]byte, error) {
	if f.unsplit != nil {
		return slices.Clone(f.unsplit.bytes), nil
	}
	p := binary.BigEndian.AppendUint32(nil, uint32(f.version))
	if f.version >= flagVersion {
		p = append(p, 0)
		if f.compressed {
			p[4] = 1
		}
	}
	lists := slices.IndexFunc(states, func(s format.StateRuns) bool { return s.Mode == format.ModeBroadcast })
	if lists < 0 {
		lists = len(states)
	}
	for kind, part := range [...][]format.StateRuns{states[:lists], states[lists:]} {
		if len(part) > math.MaxInt16 {
			return nil, format.Errorf(format.ErrUnsupported, "%d states of one kind, the limit of a stream is %d", len(part), math.MaxInt16)
		}
		p = binary.BigEndian.AppendUint16(p, uint16(len(part)))
		for _, s := range part {
			var err error
			if p, err = appendState(p, f.version, int32(kind)+kindOperator, s.StateMeta); err != nil {
				return nil, format.At(err, "state %q", s.Name)
			}
		}
	}
	return p, nil
}

// appendState appends the envelope entry of one state, with its name and mode.
func appendState(p []byte, version, kind int32, m format.StateMeta) ([]byte, error) {
	c := java.NewCursor(m.Envelope)
	s := readState(c, version, kind)
	if err := c.Err(); err != nil {
		return nil, err
	}
	if n := c.Remaining(); n > 0 {
		return nil, format.Errorf(format.ErrUnsupported, "%d bytes after the end of its entry in the envelope", n)
	}
	nameEnd := 2 + int(binary.BigEndian.Uint16(m.Envelope))
	var err error
	if s.name == m.Name {
		p = append(p, m.Envelope[:nameEnd]...)
	} else if p, err = java.AppendText(p, m.Name); err != nil {
		return nil, err
	}
	if s.mode == m.Mode {
		return append(p, m.Envelope[nameEnd:]...), nil
	}
	p = append(p, m.Envelope[nameEnd:s.modeAt[0]]...)
	if p, err = java.AppendText(p, format.NewText(optionOf(m.Mode))); err != nil {
		return nil, err
	}
	return append(p, m.Envelope[s.modeAt[1]:]...), nil
}

// builder builds a rope.
type builder struct {
	codec    *Codec
	ctx      context.Context
	src      format.Source
	encoding encoding
	parts    []format.Part
	size     int64
	at       lookup
	ends     map[*format.Concat][]int64 // ends of the parts of ropes that runs refer to
}

// lookup is a window on the offsets of the state that was used last, because most
// runs follow each other.
type lookup struct {
	of ofState
	b  *bounds
	l  *layout
}

type ofState struct {
	h     *format.OperatorHandle
	state int
}

func (b *builder) literal(p []byte) {
	b.parts = append(b.parts, format.Literal(p))
	b.size += int64(len(p))
}

func (b *builder) add(s format.Stream, off, n int64) {
	if n == 0 {
		return
	}
	if c, ok := s.(*format.Concat); ok {
		b.flatten(c, off, n)
		return
	}
	b.size += n
	if k := len(b.parts) - 1; k >= 0 {
		if p := &b.parts[k]; p.Of == s && p.Off+p.N == off {
			p.N += n
			return
		}
	}
	b.parts = append(b.parts, format.Part{Of: s, Off: off, N: n})
}

// flatten adds a range of a rope as ranges of the parts of the rope, so that
// repeated edits read as fast as one.
func (b *builder) flatten(c *format.Concat, off, n int64) {
	ends, ok := b.ends[c]
	if !ok {
		end := int64(0)
		for _, p := range c.Parts {
			end += p.N
			ends = append(ends, end)
		}
		if b.ends == nil {
			b.ends = map[*format.Concat][]int64{}
		}
		b.ends[c] = ends
	}
	for k := sort.Search(len(ends), func(k int) bool { return ends[k] > off }); n > 0; k++ {
		p := c.Parts[k]
		skip := off - (ends[k] - p.N)
		take := min(n, p.N-skip)
		b.add(p.Of, p.Off+skip, take)
		off, n = off+take, n-take
	}
}

// state adds one state to the rope and returns the offsets of its elements.
func (b *builder) state(s format.StateRuns) (format.Offsets, error) {
	if b.encoding.headers {
		b.literal([]byte(snappyHeader))
	}
	offs := &offsets{}
	if s.Map != nil {
		return offs, b.cut(s, offs)
	}
	b.parts = slices.Grow(b.parts, len(s.Runs)) // at most; adjacent runs are merged
	for _, r := range s.Runs {
		if err := b.run(s.Mode, r, offs); err != nil {
			return nil, err
		}
	}
	if s.Mode == format.ModeBroadcast && offs.Len() != 1 {
		return nil, format.Errorf(format.ErrCorrupt, "expected one element of a broadcast state, its map, found %d", offs.Len())
	}
	return offs.simplest(), nil
}

func (b *builder) run(mode format.Mode, r format.ElementRun, offs *offsets) error {
	if r.New != nil {
		return b.elements(mode, r.New, offs)
	}
	if r.Count == 0 {
		return nil
	}
	if r.Handle == nil || r.State < 0 || r.State >= len(r.Handle.States) {
		return fmt.Errorf("a run refers to a state index out of range")
	}
	s := &r.Handle.States[r.State]
	n := count(s.Offsets)
	if r.First < 0 || r.Count < 0 || r.First > n || r.Count > n-r.First {
		return format.Errorf(format.ErrCorrupt, "run of %d elements from %d is outside the %d elements", r.Count, r.First, n)
	}
	if (s.Mode == format.ModeBroadcast) != (mode == format.ModeBroadcast) {
		return format.Errorf(format.ErrCorrupt, "elements of a %v state cannot become elements of a %v state", s.Mode, mode)
	}
	if b.at.b == nil || b.at.of != (ofState{r.Handle, r.State}) {
		if err := b.lookAt(r); err != nil {
			return err
		}
	}
	if b.at.l.interleaved {
		return b.single(r, offs)
	}
	start, end, err := b.extent(r)
	if err != nil {
		return err
	}
	delta := b.size - start
	if r.Count < shortRun {
		for i := r.First; i < r.First+r.Count; i++ {
			v, err := b.at.b.offset(i)
			if err != nil {
				return err
			}
			if v < start || v > end {
				return errOutside(i, v, start, end)
			}
			offs.single(v + delta)
		}
	} else {
		offs.add(segment{of: s.Offsets, first: r.First, n: r.Count, delta: delta, start: start, end: end})
	}
	b.add(r.Handle.Data, start, end-start)
	return nil
}

// elements adds elements that no handle has.
func (b *builder) elements(mode format.Mode, all [][]byte, offs *offsets) error {
	if mode == format.ModeBroadcast {
		return format.Errorf(format.ErrUnsupported, "the map of a broadcast state cannot be replaced by elements")
	}
	for i, p := range all {
		offs.single(b.size)
		switch {
		case !b.encoding.compressed:
			b.literal(slices.Clone(p))
		case len(p) == 0: // see FLINK-34063
			return format.Errorf(format.ErrUnsupported, "new element %d has no bytes: a compressed stream cannot store its position", i)
		default:
			b.literal(framed.Append(nil, p))
		}
	}
	return nil
}

func (b *builder) lookAt(r format.ElementRun) error {
	if err := checkCodec(r.Handle); err != nil {
		return err
	}
	l, err := b.codec.layout(b.ctx, b.src, r.Handle)
	if err != nil {
		return err
	}
	switch raw := r.Handle.Codec == format.CodecRaw; {
	case raw != (b.encoding.version == 0):
		return format.Errorf(format.ErrUnsupported, "elements of raw and of managed state cannot share a stream")
	case !raw && l.version < minWritten:
		return format.Errorf(format.ErrUnsupported, "elements of operator state of version %d cannot be stored in a stream of version %d", l.version, b.encoding.version)
	case l.compressed != b.encoding.compressed:
		return format.Errorf(format.ErrUnsupported, "compressed and uncompressed elements cannot share a stream")
	}
	b.at = lookup{ofState{r.Handle, r.State}, l.bounds(b.ctx, b.src, r.Handle, r.State), l}
	return nil
}

// cut adds the new content of the map of a broadcast state (spec flink-operator-state
// A6: int count, then keys and values). A compressed map is compressed again and
// held in memory.
func (b *builder) cut(s format.StateRuns, offs *offsets) error {
	if s.Mode != format.ModeBroadcast || len(s.Runs) != 1 || s.Runs[0].Count != 1 {
		return fmt.Errorf("entries can only be changed in the one map of a broadcast state")
	}
	r := s.Runs[0]
	if r.Handle == nil || r.State < 0 || r.State >= len(r.Handle.States) || r.Handle.States[r.State].Mode != format.ModeBroadcast {
		return fmt.Errorf("a run refers to a broadcast state index out of range")
	}
	if s.Map.Count < 0 || s.Map.Count > math.MaxInt32 {
		return fmt.Errorf("%d entries, the limit of a map is %d", s.Map.Count, math.MaxInt32)
	}
	if err := b.lookAt(r); err != nil {
		return err
	}
	count := binary.BigEndian.AppendUint32(nil, uint32(s.Map.Count))
	offs.single(b.size)
	if b.encoding.compressed {
		return b.cutCompressed(r, s.Map, count)
	}
	start, end, err := b.at.b.extent(r.First)
	if err != nil {
		return err
	}
	b.literal(count)
	for _, e := range s.Map.Ranges {
		if e.New != nil {
			b.literal(slices.Clone(e.New))
			continue
		}
		if e.Off < 4 || e.N < 0 || e.N > end-start-e.Off {
			return errOutsideMap(e, end-start)
		}
		b.add(r.Handle.Data, start+e.Off, e.N)
	}
	return nil
}

func (b *builder) cutCompressed(r format.ElementRun, m *format.MapCut, p []byte) error {
	cur, err := b.codec.open(b.ctx, b.src, r.Handle, r.State, r.First)
	if err != nil {
		return err
	}
	defer cur.Close() //nolint:errcheck // read only
	whole, err := cur.Next()
	if err != nil {
		return err
	}
	for _, e := range m.Ranges {
		if e.New != nil {
			p = append(p, e.New...)
			continue
		}
		n := int64(len(whole.Value))
		if e.Off < 4 || e.N < 0 || e.N > n-e.Off {
			return errOutsideMap(e, n)
		}
		p = append(p, whole.Value[e.Off:e.Off+e.N]...)
	}
	b.literal(b.codec.once(framed.Append(nil, p)))
	return nil
}

func errOutsideMap(e format.MapRange, size int64) error {
	return fmt.Errorf("entries from %d, %d bytes, are outside the map of %d bytes", e.Off, e.N, size)
}

// extent returns where the bytes of a run start and end.
func (b *builder) extent(r format.ElementRun) (start, end int64, err error) {
	w := b.at.b
	last := r.First + r.Count - 1
	start, next, err := w.extent(r.First)
	if err != nil {
		return 0, 0, err
	}
	from := start
	end = next
	if r.Count > 1 {
		if from, end, err = w.extent(last); err != nil {
			return 0, 0, err
		}
	}
	if from < start {
		return 0, 0, errOutside(last, from, start, end)
	}
	if w.data == nil {
		return start, end, nil
	}
	if last == w.n-1 {
		if end, err = w.data(); err != nil {
			return 0, 0, err
		}
	}
	// A run may contain several elements at the same broken position, but not end
	// between them.
	if err := w.shared(r.First, true, start, math.MaxInt64); err != nil {
		return 0, 0, err
	}
	if last < w.n-1 {
		if err := w.shared(last, false, from, end); err != nil {
			return 0, 0, err
		}
	}
	return start, end, nil
}

// single adds a run element by element.
func (b *builder) single(r format.ElementRun, offs *offsets) error {
	for i := r.First; i < r.First+r.Count; i++ {
		start, end, err := b.at.b.extent(i)
		if err == nil {
			err = b.at.b.shared(i, i == r.First, start, end)
		}
		if err != nil {
			return err
		}
		offs.single(b.size)
		b.add(r.Handle.Data, start, end-start)
	}
	return nil
}

func errOutside(i, v, start, end int64) error {
	return format.Errorf(format.ErrCorrupt, "element %d starts at %d, outside the bytes %d to %d of its neighbors", i, v, start, end)
}

// shortRun is the length from which a run refers to the offsets of its handle
// instead of copying them.
const shortRun = 16

// offsets are the offsets of a built state: ranges of the offsets of other handles,
// shifted. Long ranges use no memory of their own.
type offsets struct {
	segs []segment
	ends []int64 // number of offsets up to the end of each segment
}

type segment struct {
	of         format.Offsets
	first, n   int64
	delta      int64 // added to each offset
	start, end int64 // bounds of the original offsets
}

func (o *offsets) add(s segment) {
	o.ends = append(o.ends, o.Len()+s.n)
	o.segs = append(o.segs, s)
}

// single appends one offset.
func (o *offsets) single(v int64) {
	if k := len(o.segs) - 1; k >= 0 {
		if p, ok := o.segs[k].of.(*format.OffsetSlice); ok {
			*p = append(*p, v)
			o.segs[k].n++
			o.ends[k]++
			return
		}
	}
	o.add(segment{of: &format.OffsetSlice{v}, n: 1, end: math.MaxInt64})
}

// simplest returns the source of o if o does not change it, otherwise o.
func (o *offsets) simplest() format.Offsets {
	switch len(o.segs) {
	case 0:
		return format.OffsetSlice(nil)
	case 1:
		s := o.segs[0]
		if p, ok := s.of.(*format.OffsetSlice); ok {
			return *p
		}
		if s.delta == 0 && s.n == s.of.Len() {
			return s.of
		}
	}
	return o
}

// Len returns the number of offsets.
func (o *offsets) Len() int64 {
	if len(o.ends) == 0 {
		return 0
	}
	return o.ends[len(o.ends)-1]
}

// Read implements [format.Offsets].
func (o *offsets) Read(ctx context.Context, dst []int64, from int64) (int, error) {
	if from < 0 || from > o.Len() {
		return 0, fmt.Errorf("internal error: read of offset %d of %d", from, o.Len())
	}
	k := sort.Search(len(o.ends), func(k int) bool { return o.ends[k] > from })
	done := 0
	for ; k < len(o.segs) && done < len(dst); k++ {
		s := &o.segs[k]
		skip := from + int64(done) - (o.ends[k] - s.n)
		part := dst[done:min(int64(len(dst)), int64(done)+s.n-skip)]
		for len(part) > 0 {
			n, err := s.of.Read(ctx, part, s.first+skip)
			if err != nil {
				return done, err
			}
			if n == 0 {
				return done, errOffsets
			}
			for i, v := range part[:n] {
				if v < s.start || v > s.end {
					return done, errOutside(s.first+skip+int64(i), v, s.start, s.end)
				}
				part[i] = v + s.delta
			}
			part, skip, done = part[n:], skip+int64(n), done+n
		}
	}
	return done, nil
}
