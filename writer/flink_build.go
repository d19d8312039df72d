package writer

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"
	"math"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/scratch"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

// DuplicateError is the error for entries of one state with the same key. It matches
// format.ErrCorrupt.
type DuplicateError struct {
	Duplicates []Duplicate // the first ones
	More       int64       // number of others
}

// Duplicate is two entries with the same key.
type Duplicate struct {
	Operator, State string
	Key             string // as JSON: key, namespace and map key
	First, Second   int64  // rows
}

// Error implements error.
func (e *DuplicateError) Error() string {
	d := e.Duplicates[0]
	text := fmt.Sprintf("%q/%q: %s is in rows %d and %d", d.Operator, d.State, d.Key, d.First, d.Second)
	if n := e.More + int64(len(e.Duplicates)) - 1; n > 0 {
		text += fmt.Sprintf(", and %d more duplicates", n)
	}
	return text
}

// Is matches format.ErrCorrupt.
func (e *DuplicateError) Is(target error) bool { return target == format.ErrCorrupt }

// maxDuplicates is the number of duplicates in an error.
const maxDuplicates = 20

// View returns the savepoint, for Write and for package transform. It sorts the entries,
// and writes the state to a temporary file. Duplicates are a *DuplicateError.
//
// Nothing can be added after it. The result is valid until the builder is closed.
func (b *FlinkBuilder) View(ctx context.Context) (format.View, error) {
	if b.sorter == nil || b.out != nil {
		return format.View{}, errFlinkBuilt
	}
	f, err := b.build(ctx)
	if err != nil {
		return format.View{}, err
	}
	err = b.sorter.Close()
	b.sorter = nil
	if err != nil {
		return format.View{}, err
	}
	snap, err := b.empty(ctx)
	if err != nil {
		return format.View{}, err
	}
	sp := *snap.Savepoint
	sp.Operators = f.operators
	return snap.With(&sp).View(), nil
}

// empty opens a savepoint without operators.
func (b *FlinkBuilder) empty(ctx context.Context) (*reader.Snapshot, error) {
	sp := &format.Savepoint{ID: b.o.ID, Kind: format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatCanonical}}
	sp, _, err := metadata.ForRelease(sp, b.o.Release)
	if err != nil {
		return nil, err
	}
	store := mem.New()
	w, err := store.Create(ctx, reader.MetadataName, storage.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if err := metadata.Encode(ctx, w, sp, nil); err != nil {
		return nil, errors.Join(err, w.Abort(ctx))
	}
	if _, err := w.Commit(ctx); err != nil {
		return nil, err
	}
	return reader.Open(ctx, reader.MetadataName, &reader.Options{Stores: route.New(store)})
}

// flinkState writes the state of all operators.
type flinkState struct {
	b         *FlinkBuilder
	ctx       context.Context
	out       *bufio.Writer // to the file of the builder
	size      int64         // that was written
	sum       hash.Hash
	bytes     *format.Computed // all that is written
	operators []*format.Operator

	built   []*builtOperator
	done    int // number of operators whose keyed state is complete
	pending pendingEntry
	wrong   DuplicateError
}

// builtOperator is what was written of an operator.
type builtOperator struct {
	lists   map[listPlace]*writtenRange
	maps    []writtenRange // of broadcast states, by their index
	subtask int32          // whose keyed state is being written
	schema  format.KeyedSchema
	keyed   format.KeyedBuilder // nil: not started
	start   int64
	handles []*format.KeyGroups // by subtask
}

// listPlace is a list or union state in a subtask.
type listPlace struct {
	subtask int32
	state   int
}

// writtenRange is a range of the bytes that were written.
type writtenRange struct {
	off, n  int64
	offsets format.OffsetSlice // of elements, from off
	count   int64              // of entries
}

// pendingEntry is the last entry of broadcast or keyed state: what follows can have the
// same key.
type pendingEntry struct {
	set bool
	entryRecord
}

// entryRecord is a record of broadcast or keyed state.
type entryRecord struct {
	key     []byte // all before the number
	value   []byte
	row     int64
	lengths [3]int // of key, namespace and map key, which are the end of key
}

func (f *flinkState) entry(p []byte) (e entryRecord) {
	tail := p[len(p)-trailer:]
	e.row = int64(binary.BigEndian.Uint64(tail))
	n := headSize + 2
	if p[sectionAt] == sectionKeyed {
		n = keyedAt
		if f.state(p).state.Kind == types.Timers {
			n += 8
		}
	}
	for i := range e.lengths {
		e.lengths[i] = int(binary.BigEndian.Uint32(tail[8+4*i:]))
		n += e.lengths[i]
	}
	e.key, e.value = p[:n], p[n+8:len(p)-trailer]
	return e
}

// parts returns key, namespace and map key.
func (e *entryRecord) parts() (all [3][]byte) {
	p := e.key[len(e.key)-e.lengths[0]-e.lengths[1]-e.lengths[2]:]
	for i, n := range e.lengths {
		all[i], p = p[:n:n], p[n:]
	}
	return all
}

// time returns the time of a timer.
func (e *entryRecord) time() int64 {
	return int64(binary.BigEndian.Uint64(e.key[keyedAt:]) ^ timerSign)
}

// build writes the state to a temporary file, in the order of the records.
func (b *FlinkBuilder) build(ctx context.Context) (*flinkState, error) {
	f := &flinkState{b: b, ctx: ctx, sum: sha256.New(), bytes: &format.Computed{Maker: b}}
	for _, o := range b.operators {
		w := &builtOperator{lists: map[listPlace]*writtenRange{}, maps: make([]writtenRange, len(o.states))}
		if len(o.keyed) > 0 {
			var states []keyed.NewState
			for _, s := range o.keyed {
				states = append(states, keyed.NewState{Name: format.NewText(s.state.Name), Kind: s.state.Kind, Namespace: s.namespace.snapshot, UserKey: s.mapKey.snapshot, Value: s.values.snapshot})
			}
			var err error
			if w.schema, err = keyed.NewSchema(b.o.Release, o.key.snapshot, states); err != nil {
				return nil, err
			}
		}
		f.built = append(f.built, w)
	}
	var err error
	if b.out, err = scratch.Create(b.o.TempDir, "spt-create-*.tmp"); err != nil {
		return nil, err
	}
	f.out = bufio.NewWriterSize(b.out, 256<<10)
	if err := f.records(); err != nil {
		return nil, err
	}
	if err := f.finish(len(b.operators)); err != nil {
		return nil, err
	}
	if len(f.wrong.Duplicates) > 0 {
		return nil, &f.wrong
	}
	for i, o := range b.operators {
		op, err := f.operator(o, f.built[i])
		if err != nil {
			return nil, format.At(err, "operator %q", o.op.Label())
		}
		f.operators = append(f.operators, op)
	}
	if err := f.out.Flush(); err != nil {
		return nil, &scratch.Error{Err: err}
	}
	f.bytes.Length, f.bytes.Name = f.size, fmt.Sprintf("created %x", f.sum.Sum(nil))
	return f, nil
}

// Write appends bytes of state.
func (f *flinkState) Write(p []byte) (int, error) {
	f.sum.Write(p)
	n, err := f.out.Write(p)
	f.size += int64(n)
	if err != nil {
		err = &scratch.Error{Err: err}
	}
	return n, err
}

// MakeAt implements [format.Maker].
func (b *FlinkBuilder) MakeAt(_ context.Context, _ format.Source, p []byte, off int64) error {
	if b.out == nil {
		return errFlinkBuilt
	}
	n, err := b.out.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if errors.Is(err, io.EOF) {
		err = io.ErrUnexpectedEOF
	}
	return &scratch.Error{Err: err}
}

// records writes all records.
func (f *flinkState) records() error {
	for c, n := f.b.sorter.Records(0, 0), 0; ; n++ {
		_, p, err := c.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil && n%4096 == 0 {
			err = f.ctx.Err()
		}
		if err == nil {
			err = f.record(p)
		}
		if err != nil {
			return err
		}
	}
}

// record writes one record, or keeps it for the next one to be compared with.
func (f *flinkState) record(record []byte) error {
	if err := f.finish(f.index(record)); err != nil {
		return err
	}
	if record[sectionAt] == sectionLists {
		return f.element(record)
	}
	e, p := f.entry(record), &f.pending
	switch {
	case !p.set || !bytes.Equal(p.key, e.key):
		if err := f.flush(); err != nil {
			return err
		}
		p.set, p.row, p.lengths = true, e.row, e.lengths
		p.key, p.value = append(p.key[:0], e.key...), append(p.value[:0], e.value...)
	case f.state(e.key).state.Elements:
		p.value = append(append(p.value, ','), e.value...)
		if len(p.value) > maxEntry {
			return format.Errorf(format.ErrLimit, "a list of more than %d bytes", maxEntry)
		}
	case f.b.o.LastWins:
		p.value = append(p.value[:0], e.value...)
	case e.key[sectionAt] == sectionBroadcast && bytes.Equal(p.value, e.value):
		// a replica
	case len(f.wrong.Duplicates) == maxDuplicates:
		f.wrong.More++
	default:
		f.wrong.Duplicates = append(f.wrong.Duplicates, f.duplicate(&p.entryRecord, &e))
	}
	return nil
}

// finish completes the keyed state of the operators before one, since streams are written
// one after the other.
func (f *flinkState) finish(before int) error {
	if f.done >= before {
		return nil
	}
	if err := f.flush(); err != nil {
		return err
	}
	for ; f.done < before; f.done++ {
		o, w := f.b.operators[f.done], f.built[f.done]
		for len(o.keyed) > 0 && len(w.handles) < int(o.op.Parallelism) {
			if err := f.nextSubtask(o, w); err != nil {
				return format.At(err, "operator %q", o.op.Label())
			}
		}
	}
	return nil
}

// index returns the index of the operator of a record.
func (f *flinkState) index(record []byte) int { return int(binary.BigEndian.Uint32(record)) }

// state returns the state of a record of broadcast or keyed state.
func (f *flinkState) state(record []byte) *FlinkStateBuilder {
	o := f.b.operators[f.index(record)]
	if record[sectionAt] == sectionBroadcast {
		return o.states[binary.BigEndian.Uint16(record[headSize:])]
	}
	return o.keyed[binary.BigEndian.Uint16(record[groupAt+2:])]
}

func (f *flinkState) duplicate(first, second *entryRecord) Duplicate {
	s := f.state(first.key)
	d := Duplicate{Operator: s.o.op.Label(), State: s.state.Name, First: first.row, Second: second.row}
	c, parts := s.Codecs(), first.parts()
	var text []string
	for i, part := range []part{{what: "key", codec: c.Key}, {what: "namespace", codec: c.Namespace}, {what: "map key", codec: c.UserKey}} {
		if part.codec == nil {
			continue
		}
		if v, err := value.ReadAll(part.codec, parts[i]); err == nil {
			text = append(text, part.what+" "+string(v.AppendJSON(nil, nil, nil)))
		}
	}
	if s.state.Kind == types.Timers {
		text = append(text, fmt.Sprintf("time %d", first.time()))
	}
	d.Key = strings.Join(text, ", ")
	return d
}

// element writes an element of a list or union state.
func (f *flinkState) element(record []byte) error {
	w := f.built[f.index(record)]
	at := listPlace{int32(binary.BigEndian.Uint32(record[headSize:])), int(binary.BigEndian.Uint16(record[headSize+4:]))}
	x := w.lists[at]
	if x == nil {
		x = &writtenRange{off: f.size}
		w.lists[at] = x
	}
	element := record[headSize+4+2+8:]
	x.offsets = append(x.offsets, x.n)
	x.n += int64(len(element))
	_, err := f.Write(element)
	return err
}

// flush writes the pending entry.
func (f *flinkState) flush() error {
	p := &f.pending
	if !p.set {
		return nil
	}
	p.set = false
	w, s, parts := f.built[f.index(p.key)], f.state(p.key), p.parts()
	if !s.keyed {
		x := &w.maps[s.index]
		if x.count == 0 {
			x.off = f.size
		}
		if x.count++; x.count > math.MaxInt32 {
			return format.Errorf(format.ErrLimit, "more than %d entries of broadcast state %q", math.MaxInt32, s.state.Name)
		}
		x.n += int64(len(parts[0]) + len(p.value))
		if _, err := f.Write(parts[0]); err != nil {
			return err
		}
		_, err := f.Write(p.value)
		return err
	}
	e := format.KeyedEntry{KeyGroup: int32(binary.BigEndian.Uint16(p.key[groupAt:])), State: s.index, Key: parts[0], Namespace: parts[1], Value: p.value}
	if s.mapKey.codec != nil {
		e.UserKey = parts[2]
	}
	if s.state.Kind == types.Timers {
		e.Time = p.time()
	}
	for w.keyed == nil || format.KeyGroupsOf(w.subtask, s.o.op.Parallelism, s.o.op.MaxParallelism).Last() < e.KeyGroup {
		if err := f.nextSubtask(s.o, w); err != nil {
			return err
		}
	}
	return format.At(w.keyed.Add(e), "state %q", s.state.Name)
}

// nextSubtask ends the keyed state of a subtask, if one was started, and starts the next,
// if there is one.
func (f *flinkState) nextSubtask(o *FlinkOperatorBuilder, w *builtOperator) error {
	if w.keyed != nil {
		h, err := w.keyed.Handle()
		if err != nil {
			return err
		}
		h.Data = f.stream(o, w.subtask, "keyed", []format.Part{{Of: f.bytes, Off: w.start, N: f.size - w.start}})
		w.handles = append(w.handles, h)
		w.keyed = nil
	}
	w.subtask = int32(len(w.handles))
	if w.subtask == o.op.Parallelism {
		return nil
	}
	codec := &keyed.Codec{MaxParallelism: o.op.MaxParallelism}
	w.start = f.size
	var err error
	w.keyed, err = codec.Build(f.ctx, w.schema, format.KeyGroupsOf(w.subtask, o.op.Parallelism, o.op.MaxParallelism), f)
	return err
}

// operator returns an operator with its state.
func (f *flinkState) operator(o *FlinkOperatorBuilder, w *builtOperator) (*format.Operator, error) {
	op := *o.op
	states := o.inOrder()
	var envelope []byte
	if len(states) > 0 {
		var all []format.StateMeta
		for _, s := range states {
			m, err := s.meta()
			if err != nil {
				return nil, format.At(err, "state %q", s.state.Name)
			}
			all = append(all, m)
		}
		var err error
		if envelope, err = opstate.NewEnvelope(all); err != nil {
			return nil, err
		}
	}
	for i := range op.Parallelism {
		sub := &format.Subtask{Index: i}
		if len(states) > 0 {
			sub.Managed = f.managed(o, w, states, i, envelope)
		}
		if len(w.handles) > 0 {
			sub.ManagedKeyed = w.handles[i]
		}
		op.Subtasks = append(op.Subtasks, sub)
	}
	return &op, nil
}

// inOrder returns the states of an operator: list and union states before broadcast
// states.
func (o *FlinkOperatorBuilder) inOrder() []*FlinkStateBuilder {
	var lists, maps []*FlinkStateBuilder
	for _, s := range o.states {
		if s.mode == format.ModeBroadcast {
			maps = append(maps, s)
		} else {
			lists = append(lists, s)
		}
	}
	return append(lists, maps...)
}

// managed returns the operator state of a subtask.
func (f *flinkState) managed(o *FlinkOperatorBuilder, w *builtOperator, states []*FlinkStateBuilder, subtask int32, envelope []byte) *format.OperatorHandle {
	h := &format.OperatorHandle{Codec: format.CodecFlink}
	parts := []format.Part{format.Literal(envelope)}
	size := int64(len(envelope))
	add := func(p format.Part) {
		if p.N > 0 {
			parts, size = append(parts, p), size+p.N
		}
	}
	for _, s := range states {
		st := format.NamedState{Name: format.NewText(s.state.Name), Mode: s.mode, Offsets: format.OffsetSlice(nil)}
		if s.mode == format.ModeBroadcast {
			x := &w.maps[s.index]
			st.Offsets = format.OffsetSlice{size}
			add(format.Literal(binary.BigEndian.AppendUint32(nil, uint32(x.count))))
			add(format.Part{Of: f.bytes, Off: x.off, N: x.n})
		} else if x := w.lists[listPlace{subtask, s.index}]; x != nil {
			for i := range x.offsets {
				x.offsets[i] += size
			}
			st.Offsets = x.offsets
			add(format.Part{Of: f.bytes, Off: x.off, N: x.n})
		}
		h.States = append(h.States, st)
	}
	h.Data = f.stream(o, subtask, "operator", parts)
	return h
}

// inlineState is the size up to which Flink stores state in _metadata by default, see
// its option execution.checkpointing.data-inline-threshold.
const inlineState = 20 << 10

// stream returns a stream that is stored as Flink stores state of its size.
func (f *flinkState) stream(o *FlinkOperatorBuilder, subtask int32, what string, parts []format.Part) *format.Concat {
	s := &format.Concat{Parts: parts}
	if n := s.Size(); n > inlineState {
		s.As = &format.File{Path: format.NewText(fmt.Sprintf("%s-%d-%s", o.op.ID, subtask, what)), Relative: true, Length: n}
	}
	return s
}
