package transform

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
)

// managed returns the redacted operator state of a subtask, or nil.
//
// Elements keep their lengths, so that the handle keeps its offsets: it is the handle
// without compression, with another name for its states.
func (r *redaction) managed(op *format.Operator, sub *format.Subtask, h *format.OperatorHandle) (*format.OperatorHandle, error) {
	if format.SizeOf(h.Data) == 0 && len(h.States) == 0 { // a placeholder, with directories
		if r.o.Names {
			return nil, nil
		}
		return h, nil
	}
	codec, err := r.in.Codec(h.Codec)
	if err != nil {
		return h, err
	}
	gone := map[string]bool{}
	states := map[string]value.ElementCodecs{} // by mode and new name
	key := func(m format.Mode, name string) string { return m.String() + " " + name }
	for i, st := range h.States {
		name := st.Name.String()
		if gone[name] = r.drops(partName(op, name)); gone[name] {
			continue
		}
		codecs, err := r.o.Values(r.ctx, h, i)
		if errors.Is(err, format.ErrUnsupported) {
			codecs.Why, err = err.Error(), nil
		}
		if err != nil {
			return h, err
		}
		states[key(st.Mode, r.stateName(name))] = codecs
	}
	plain, err := rebuildStates(r.ctx, r.in, h, func(s *format.StateRuns) bool {
		old := s.Name.String()
		if name := r.stateName(old); name != old {
			s.Name = format.NewText(name)
		}
		return !gone[old]
	})
	if c, ok := codec.(recompressor); ok && err == nil && plain != nil {
		plain, err = c.Recompress(r.ctx, r.in.Source, plain, false)
	}
	if err != nil {
		for _, st := range h.States {
			if e := r.unsupported(partName(op, st.Name.String()), err); e != nil {
				return h, e
			}
		}
		return h, nil
	}
	if plain == nil {
		return nil, nil
	}
	out := *plain
	out.Merging = nil
	e := &redactedElements{r: r, codec: codec, h: plain}
	at, data := int64(0), int64(0)
	for _, i := range inStream(r.ctx, plain) {
		st := &plain.States[i]
		s := elementsOf{state: i, codecs: states[key(st.Mode, st.Name.String())]}
		if s.at, err = format.OffsetAt(r.ctx, st.Offsets, 0); err != nil {
			return h, err
		}
		if len(e.states) == 0 {
			at, data = s.at, s.at
		}
		n := int64(0)
		if s.at == at || at < 0 {
			at = s.at
			n, err = e.measure(&s)
		} else {
			err = format.Errorf(format.ErrUnsupported, "elements start at %d, expected %d", s.at, at)
		}
		if err != nil {
			part := partName(op, r.originalName(h, st.Name.String()))
			if err := r.unsupported(part, format.At(err, "subtask %d", sub.Index)); err != nil {
				return h, format.At(err, "state %q", st.Name)
			}
			at = -1 // the next state may start anywhere: nothing is written
			continue
		}
		at += n
		e.states = append(e.states, s)
	}
	if len(r.refused) > 0 {
		return h, nil // the snapshot is not written
	}
	size := format.SizeOf(plain.Data)
	if len(e.states) == 0 {
		data = size
	} else if at != size {
		return h, format.Errorf(format.ErrCorrupt, "elements end at %d in a stream of %d bytes", at, size)
	}
	head := format.Part{Of: plain.Data, N: data}
	rope := &format.Concat{Parts: []format.Part{head}}
	if size > data {
		name := fmt.Sprintf("redacted %s %d", op.ID, sub.Index)
		rope = (&sequence{size: size - data, open: e.open}).rope(name, head)
	}
	out.Data = r.stored(rope, h.Data)
	return &out, nil
}

// originalName returns the name of the state that a redacted state has.
func (r *redaction) originalName(h *format.OperatorHandle, name string) string {
	for _, st := range h.States {
		if r.stateName(st.Name.String()) == name {
			return st.Name.String()
		}
	}
	return name
}

// inStream returns the states of a handle that have elements, in the order of their
// bytes.
func inStream(ctx context.Context, h *format.OperatorHandle) (order []int) {
	first := map[int]int64{}
	for i, st := range h.States {
		if st.Offsets == nil || st.Offsets.Len() == 0 {
			continue
		}
		at, err := format.OffsetAt(ctx, st.Offsets, 0)
		if err != nil {
			return nil
		}
		first[i] = at
		k := len(order)
		for k > 0 && first[order[k-1]] > at {
			k--
		}
		order = append(order[:k], append([]int{i}, order[k:]...)...)
	}
	return order
}

// redactedElements computes the elements of a handle.
type redactedElements struct {
	r      *redaction
	codec  format.OperatorCodec
	h      *format.OperatorHandle
	states []elementsOf // in the order of the stream
}

// elementsOf is a state of a handle.
type elementsOf struct {
	state  int
	codecs value.ElementCodecs
	at     int64 // of the first element, or of the map of a broadcast state
	head   int64 // bytes of a map before its first entry
}

// mapHead is the number of entries before the entries of a map. Wire format: never
// change.
const mapHead = 4

// measure reads all elements of a state, and returns the number of their bytes.
func (e *redactedElements) measure(s *elementsOf) (n int64, err error) {
	if e.h.States[s.state].Mode == format.ModeBroadcast {
		if e.h.Codec != format.CodecFlink {
			return 0, format.Errorf(format.ErrUnsupported, "broadcast state that Flink did not write")
		}
		s.head = mapHead
	}
	next, stop, err := e.openState(e.r.ctx, e.r.in.Source, s)
	if err != nil {
		return 0, err
	}
	defer func() {
		if serr := stop(); err == nil {
			err = serr
		}
	}()
	for {
		p, err := next(e.r.ctx)
		if err == io.EOF {
			return n, nil
		}
		if err != nil {
			return n, err
		}
		if e.r.report.Elements++; e.r.report.Elements%4096 == 0 && e.r.ctx.Err() != nil {
			return n, e.r.ctx.Err()
		}
		n += int64(len(p))
	}
}

func notDecoded(why string) error {
	return format.Errorf(format.ErrUnsupported, "it is not decoded: %s", why)
}

// open implements the open of a sequence.
func (e *redactedElements) open(ctx context.Context, src format.Source) (func(context.Context) ([]byte, error), func() error, error) {
	k := 0
	var next func(context.Context) ([]byte, error)
	stop := func() error { return nil }
	return func(ctx context.Context) ([]byte, error) {
		for {
			if next == nil {
				if k == len(e.states) {
					return nil, io.EOF
				}
				var err error
				if next, stop, err = e.openState(ctx, src, &e.states[k]); err != nil {
					stop = func() error { return nil }
					return nil, err
				}
				k++
			}
			p, err := next(ctx)
			if err != io.EOF {
				return p, err
			}
			err = stop()
			next, stop = nil, func() error { return nil }
			if err != nil {
				return nil, err
			}
		}
	}, func() error { return stop() }, nil
}

// openState returns the functions that return the elements of a state, or the head and
// the entries of a map, and that end the reading.
func (e *redactedElements) openState(ctx context.Context, src format.Source, s *elementsOf) (func(context.Context) ([]byte, error), func() error, error) {
	name := e.h.States[s.state].Name.String()
	ctx = context.WithoutCancel(ctx)
	var out []byte
	if s.head == 0 {
		if s.codecs.Element == nil {
			return nil, nil, notDecoded(s.codecs.Why)
		}
		cur, err := e.codec.Elements(ctx, src, e.h, name, 0)
		if err != nil {
			return nil, nil, err
		}
		return func(context.Context) ([]byte, error) {
			el, err := cur.Next()
			if err != nil {
				return nil, err
			}
			out, err = e.r.replace(out[:0], s.codecs.Element, el.Value, e.r.mask)
			return out, format.At(err, "element %d", el.Index)
		}, cur.Close, nil
	}
	if s.codecs.Key == nil || s.codecs.Value == nil {
		return nil, nil, notDecoded(s.codecs.Why)
	}
	cur, err := e.codec.Entries(ctx, src, e.h, name)
	if err != nil {
		return nil, nil, err
	}
	headDone := false
	return func(ctx context.Context) ([]byte, error) {
		if !headDone {
			headDone = true
			out = append(out[:0], make([]byte, s.head)...)
			_, err := src.ReadAt(ctx, e.h.Data, out, s.at)
			return out, err
		}
		en, err := cur.Next()
		if err != nil {
			return nil, err
		}
		if len(en.Stored) != len(en.Key)+len(en.Value) {
			return nil, format.Errorf(format.ErrUnsupported, "an entry with bytes besides its key and value")
		}
		if out, err = e.r.replace(out[:0], s.codecs.Key, en.Key, e.r.mask); err == nil {
			out, err = e.r.replace(out, s.codecs.Value, en.Value, e.r.mask)
		}
		return out, format.At(err, "entry %d", en.Index)
	}, cur.Close, nil
}
