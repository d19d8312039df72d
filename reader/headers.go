package reader

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/spt/native"
)

// Headers describes the states of an operator, as read from the first bytes of
// its managed state streams.
type Headers struct {
	Key    *types.Snapshot // of keyed state; nil if missing or unknown
	States []StateHeader   // distinct by name and kind, in the order of the streams
	// Read is the number of streams read, Compressed the number of those with
	// snappy-framed data, and Skipped the number of streams not read.
	Read, Compressed, Skipped int
	Unread                    []error // errors of streams whose header could not be read
}

// StateHeader describes one state.
type StateHeader struct {
	Raw        bool                // timers in raw keyed state
	Schemas    []types.StateSchema // distinct; never empty
	Streams    int                 // streams that describe it
	Compressed int                 // of them
}

// Name is the name of the state.
func (s *StateHeader) Name() string { return s.Schemas[0].Name.String() }

// Keyed reports whether it is keyed state.
func (s *StateHeader) Keyed() bool { return s.Schemas[0].Keyed != "" }

// headersPerOperator is the number of headers outside _metadata that are read per
// operator: its subtasks nearly always describe the same states.
const headersPerOperator = 16

// streamHead is the number of bytes read at once. Most headers are shorter.
const streamHead = 4 << 10

// Headers reads the headers of the managed state of operators, and of timers in raw
// keyed state. Inline state costs no read; of other state it reads the headers of up to
// 16 subtasks of each operator, spread evenly, most with one small read. Headers
// that cannot be read are in Unread; err is for a context that ended and for a
// file that changed.
func (s *Snapshot) Headers(ctx context.Context, ops []*format.Operator) (map[*format.Operator]*Headers, error) {
	return s.headers(ctx, ops, headersPerOperator)
}

// InlineHeaders is Headers without reads outside the file that describes the snapshot.
func (s *Snapshot) InlineHeaders(ctx context.Context, ops []*format.Operator) (map[*format.Operator]*Headers, error) {
	return s.headers(ctx, ops, 0)
}

func (s *Snapshot) headers(ctx context.Context, ops []*format.Operator, most int) (map[*format.Operator]*Headers, error) {
	all := make(map[*format.Operator]*Headers, len(ops))
	var reads []*headerRead
	for _, op := range ops {
		h := &Headers{}
		all[op] = h
		mine := headerReads(op)
		outside := 0
		for _, r := range mine {
			if !r.inline() {
				outside++
			}
		}
		k := 0
		for _, r := range mine {
			if !r.inline() {
				k++
				// Select the indexes k of n at which k*most/n increases.
				if outside > most && k*most/outside == (k-1)*most/outside {
					h.Skipped++
					continue
				}
			}
			r.to = h
			reads = append(reads, r)
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelLookups)
	for _, r := range reads {
		if r.inline() {
			r.read(gctx, s.src) // no read to wait for
			continue
		}
		g.Go(func() error {
			r.read(gctx, s.src)
			return nil
		})
	}
	_ = g.Wait() // returns no error
	for _, r := range reads {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := storageKind(r.err); errors.Is(err, format.ErrChanged) {
			return nil, err
		}
		r.to.add(r)
	}
	return all, nil
}

// headerRead is a stream whose header is read.
type headerRead struct {
	to       *Headers
	at       format.Place
	operator *format.OperatorHandle // or
	keyed    format.Stream          // or
	groups   *format.KeyGroups      // raw keyed state, or keyed state of a Go program

	key        *types.Snapshot
	states     []types.StateSchema
	compressed bool
	err        error
}

// headerReads are the streams of an operator that have a header.
func headerReads(op *format.Operator) (all []*headerRead) {
	for _, sub := range op.Subtasks {
		if h := sub.Managed; h != nil && h.Codec == format.CodecFlink && format.SizeOf(h.Data) > 0 {
			all = append(all, &headerRead{operator: h, at: format.Place{Operator: op, Subtask: sub, Slot: format.SlotManaged}})
		}
		for _, st := range keyedHeaders(nil, sub.ManagedKeyed) {
			all = append(all, &headerRead{keyed: st, at: format.Place{Operator: op, Subtask: sub, Slot: format.SlotManagedKeyed}})
		}
		if h, ok := sub.ManagedKeyed.(*format.KeyGroups); ok && h.Codec == format.CodecNative && format.SizeOf(h.Data) > 0 {
			all = append(all, &headerRead{groups: h, at: format.Place{Operator: op, Subtask: sub, Slot: format.SlotManagedKeyed}})
		}
		if h, ok := sub.RawKeyed.(*format.KeyGroups); ok && h.Codec == format.CodecRaw && format.SizeOf(h.Data) > 0 {
			all = append(all, &headerRead{groups: h, at: format.Place{Operator: op, Subtask: sub, Slot: format.SlotRawKeyed}})
		}
	}
	return all
}

// keyedHeaders appends the streams of a keyed handle that begin with a header.
func keyedHeaders(to []format.Stream, h format.KeyedHandle) []format.Stream {
	var st format.Stream
	switch h := h.(type) {
	case *format.KeyGroups:
		if h.Codec == format.CodecFlink {
			st = h.Data
		}
	case *format.Incremental:
		st = h.Meta
	case *format.Changelog:
		for _, inner := range h.Materialized {
			to = keyedHeaders(to, inner)
		}
	}
	if st == nil || st.Size() == 0 { // a placeholder
		return to
	}
	return append(to, st)
}

func (r *headerRead) stream() format.Stream {
	switch {
	case r.operator != nil:
		return r.operator.Data
	case r.groups != nil:
		return r.groups.Data
	}
	return r.keyed
}

func (r *headerRead) inline() bool { return format.Kind(r.stream()) == format.KindInline }

func (r *headerRead) read(ctx context.Context, src *source) {
	if r.operator != nil {
		r.compressed, r.states, r.err = src.operators.Header(ctx, &headSource{source: src, of: r.stream()}, r.operator)
		return
	}
	if r.groups != nil {
		r.readGroups(ctx, src)
		return
	}
	header, err := keyed.ReadHeader(ctx, src, r.keyed)
	if r.err = err; header != nil {
		r.key, r.states, r.compressed = header.Key, header.States, header.Compressed
	}
}

// raw reports whether it is raw keyed state.
func (r *headerRead) raw() bool { return r.groups != nil && r.groups.Codec == format.CodecRaw }

// readGroups reads the timers of raw keyed state, or the states of a Go program.
func (r *headerRead) readGroups(ctx context.Context, src *source) {
	if r.raw() {
		codec := &keyed.Codec{MaxParallelism: r.at.Operator.MaxParallelism}
		schema, err := codec.Schema(ctx, src, r.groups)
		if r.states = schema.States; !errors.Is(err, format.ErrUnsupported) { // bytes of user code have no header
			r.err = err
		}
		return
	}
	schema, err := native.KeyedCodec{}.Describe(ctx, src, r.groups)
	r.err = err
	for _, st := range schema.States {
		r.states = append(r.states, types.StateSchema{Name: st.Name, Keyed: st.Kind})
	}
}

func (h *Headers) add(r *headerRead) {
	if r.err != nil {
		h.Unread = append(h.Unread, format.At(r.err, "%v", r.at))
	} else {
		h.Read++
	}
	compressed := 0
	if r.compressed {
		compressed = 1
	}
	h.Compressed += compressed
	if h.Key == nil {
		h.Key = r.key
	}
	for _, schema := range r.states {
		i := slices.IndexFunc(h.States, func(st StateHeader) bool {
			return st.Raw == r.raw() && st.Schemas[0].Name == schema.Name && st.Schemas[0].Kind() == schema.Kind()
		})
		if i < 0 {
			i = len(h.States)
			h.States = append(h.States, StateHeader{Raw: r.raw()})
		}
		st := &h.States[i]
		st.Streams++
		st.Compressed += compressed
		if !slices.ContainsFunc(st.Schemas, func(other types.StateSchema) bool { return sameSchema(&schema, &other) }) {
			st.Schemas = append(st.Schemas, schema)
		}
	}
}

// headSource reads the first bytes of one stream once.
type headSource struct {
	*source
	of   format.Stream
	head []byte
}

// ReadAt implements format.Source.
func (s *headSource) ReadAt(ctx context.Context, st format.Stream, p []byte, off int64) (int, error) {
	if st != s.of || off < 0 || off+int64(len(p)) > streamHead {
		return s.source.ReadAt(ctx, st, p, off)
	}
	if s.head == nil {
		size, err := format.StreamSize(ctx, s.source, st)
		if err != nil {
			return 0, err
		}
		head := make([]byte, min(size, streamHead))
		if _, err := s.source.ReadAt(ctx, st, head, 0); err != nil {
			return 0, err
		}
		s.head = head
	}
	if off+int64(len(p)) > int64(len(s.head)) {
		return s.source.ReadAt(ctx, st, p, off) // which returns its length
	}
	return copy(p, s.head[off:]), nil
}
