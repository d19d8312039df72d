package writer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// BuilderOptions are the options of NewBuilder.
type BuilderOptions struct {
	Stores      storage.Resolver // nil: local files
	ID          int64            // id of the snapshot
	Compression spt.Compression
	Level       int
	Jobs        int // chunks compressed at once; 0 means one per processor
	// SortBytes bounds the memory for sorting a broadcast state or the keyed state of
	// a subtask. 0 means 256 MiB.
	SortBytes int64
	// ReadBack reads the whole file again before it becomes visible.
	ReadBack bool
	// Progress is called with the number of bytes of state added; it may be nil.
	Progress func(n int64)
}

// Builder writes a Go program's own state to an .spt file, step by step: its
// operators one after another, the subtasks of each operator, and the states of
// each subtask. Starting the next part ends the open one: a later call on an
// ended part is an error. The first error is sticky: every later call and Seal
// return it, and nothing is left under the target's name. A program may therefore
// check only the error of Seal; one with much to add should check [Builder.Err]
// occasionally.
//
// Values are encoded by [native.Append] and written immediately, so that memory
// use does not grow with the state. Broadcast and keyed state are buffered to be
// sorted; see [SubtaskBuilder.Keyed]. A Builder and its parts are not safe for
// concurrent use. The same calls produce the same bytes.
type Builder struct {
	plan *Plan // the target
	o    BuilderOptions
	out  *sptFile
	w    *spt.Writer
	sp   *format.Savepoint
	err  error
	done bool // sealed or closed

	op    *OperatorBuilder // open parts
	sub   *SubtaskBuilder
	state openState
	ids   map[format.OperatorID]bool
	buf   []byte
}

// openState is the state to which elements are added.
type openState interface{ end() error }

// NewBuilder starts a file at a location that does not exist yet. ctx applies to
// all writing, up to Seal.
func NewBuilder(ctx context.Context, target string, opts *BuilderOptions) (*Builder, error) {
	var o BuilderOptions
	if opts != nil {
		o = *opts
	}
	if o.Stores == nil {
		o.Stores = route.New(local.New())
	}
	switch {
	case o.ID < 0:
		return nil, invalid("ID %d: expected 0 or more", o.ID)
	case o.SortBytes < 0:
		return nil, invalid("SortBytes %d: expected 0 or more", o.SortBytes)
	}
	if o.SortBytes == 0 {
		o.SortBytes = 256 << 20
	}
	store, name, err := o.Stores.Resolve(ctx, target)
	if err != nil {
		return nil, err
	}
	p := &Plan{Target: target, Family: reader.SPT, store: store, name: objpath.Clean(name)}
	if err := notALink(ctx, store, p.name, target); err != nil {
		return nil, err
	}
	if there, err := p.whatIsThere(ctx); err != nil {
		return nil, err
	} else if there != nothing {
		return nil, &TargetError{target, "it exists", finding.Words(elsewhere)}
	}
	out, err := p.createSPT(ctx, storage.CreateOptions{IfAbsent: true}, o.ReadBack, o.Progress)
	if err != nil {
		return nil, err
	}
	w, err := spt.NewWriter(out, spt.Options{Compression: o.Compression, Level: o.Level, Jobs: o.Jobs, Progress: o.Progress})
	if err != nil {
		return nil, errors.Join(err, out.Abort(context.WithoutCancel(ctx)))
	}
	return &Builder{plan: p, o: o, out: out, w: w, sp: &format.Savepoint{ID: o.ID}, ids: map[format.OperatorID]bool{}}, nil
}

// fail keeps the first error.
func (b *Builder) fail(err error) error {
	if b.err == nil {
		b.err = err
	}
	return b.err
}

// ready returns an error if a call on a part is not possible; open reports
// whether the part is still open.
func (b *Builder) ready(open bool, what string, args ...any) error {
	switch {
	case b.err != nil:
		return b.err
	case b.done:
		return b.fail(errors.New("the builder is already sealed or closed"))
	case !open:
		return b.fail(fmt.Errorf(what+" was ended by a later call", args...))
	}
	return nil
}

// Operator starts an operator. Flink's hash of the uid is its id.
func (b *Builder) Operator(uid string, parallelism, maxParallelism int32) *OperatorBuilder {
	id := format.OperatorIDOf(uid)
	op := &format.Operator{UID: format.NewText(uid), ID: id, Parallelism: parallelism, MaxParallelism: maxParallelism}
	o := &OperatorBuilder{b: b, op: op, seen: map[int32]bool{}}
	if b.ready(true, "") != nil || b.endOperator() != nil {
		return o
	}
	switch {
	case uid == "":
		b.fail(errors.New("an operator needs a uid"))
	case b.ids[id]:
		b.fail(fmt.Errorf("duplicate operator %q", uid))
	case parallelism < 1 || parallelism > maxParallelism || maxParallelism > format.MaxKeyGroups:
		b.fail(fmt.Errorf("operator %q: parallelism %d of at most %d: expected 1 ≤ parallelism ≤ max parallelism ≤ %d", uid, parallelism, maxParallelism, format.MaxKeyGroups))
	default:
		b.ids[id] = true
		b.sp.Operators = append(b.sp.Operators, op)
		b.op = o
	}
	return o
}

// Err returns the first error, or nil.
func (b *Builder) Err() error { return b.err }

func (b *Builder) endState() error {
	if b.state == nil {
		return nil
	}
	err := b.state.end()
	b.state = nil
	if err != nil {
		return b.fail(err)
	}
	return nil
}

func (b *Builder) endSubtask() error {
	if b.sub == nil {
		return nil
	}
	err := b.sub.endOperatorState() // also ends keyed state
	b.sub = nil
	return err
}

func (b *Builder) endOperator() error {
	err := b.endSubtask()
	b.op = nil
	return err
}

// Seal completes the file and makes it visible.
func (b *Builder) Seal(ctx context.Context) (*Report, error) {
	if err := b.ready(true, ""); err != nil {
		return nil, err
	}
	if err := b.endOperator(); err != nil {
		return nil, err
	}
	report, err := b.seal(ctx)
	if err != nil {
		return nil, b.fail(err)
	}
	b.done = true
	return report, nil
}

func (b *Builder) seal(ctx context.Context) (*Report, error) {
	stats, err := b.w.Seal(ctx, b.sp)
	if err != nil {
		return nil, err
	}
	info, err := b.out.commit(ctx, b.sp)
	if err != nil {
		return nil, err
	}
	return &Report{Plan: b.plan, Written: info.Size, SPT: stats, ReadBack: b.o.ReadBack}, nil
}

// Close releases the builder. Unless Seal succeeded, it removes the file. After a
// successful Seal it does nothing, so it can be deferred.
func (b *Builder) Close() error {
	b.done = true
	b.w.Close() //nolint:errcheck // the error is already recorded
	return b.out.Abort(context.Background())
}

// OperatorBuilder adds the subtasks of one operator.
type OperatorBuilder struct {
	b     *Builder
	op    *format.Operator
	seen  map[int32]bool
	keyed []native.KeyedState // of the first subtask that has keyed state
}

// SetName sets the display name of the operator.
func (o *OperatorBuilder) SetName(name string) error {
	if err := o.ready(); err != nil {
		return err
	}
	o.op.Name = format.NewText(name)
	return nil
}

func (o *OperatorBuilder) ready() error {
	return o.b.ready(o.b.op == o, "operator %q", o.op.UID)
}

// Subtask starts a subtask; subtasks may be added in any order.
func (o *OperatorBuilder) Subtask(index int32) *SubtaskBuilder {
	s := &SubtaskBuilder{o: o, sub: &format.Subtask{Index: index}}
	if o.ready() != nil || o.b.endSubtask() != nil {
		return s
	}
	switch {
	case index < 0 || index >= o.op.Parallelism:
		s.fail(fmt.Errorf("the operator has subtasks 0 to %d", o.op.Parallelism-1))
	case o.seen[index]:
		s.fail(errors.New("duplicate subtask"))
	default:
		o.seen[index] = true
		o.op.Subtasks = append(o.op.Subtasks, s.sub)
		o.b.sub = s
	}
	return s
}

// SubtaskBuilder adds the states of one subtask: first its list, union and
// broadcast states, which keep their order, then its keyed state.
type SubtaskBuilder struct {
	o      *OperatorBuilder
	sub    *format.Subtask
	stream *spt.StreamWriter // of the operator state; nil before it starts and after it ended
	n      int64             // bytes in stream
}

func (s *SubtaskBuilder) ready() error {
	return s.o.b.ready(s.o.b.sub == s, "operator %q/subtask %d", s.o.op.UID, s.sub.Index)
}

// fail adds the location to an error.
func (s *SubtaskBuilder) fail(err error) error {
	return s.o.b.fail(format.At(err, "operator %q/subtask %d", s.o.op.UID, s.sub.Index))
}

// List starts a state whose elements a restore redistributes among the subtasks.
func (s *SubtaskBuilder) List(name string) *ListBuilder {
	return s.list(name, format.ModeList)
}

// Union starts a state whose elements a restore assigns to every subtask.
func (s *SubtaskBuilder) Union(name string) *ListBuilder {
	return s.list(name, format.ModeUnion)
}

func (s *SubtaskBuilder) list(name string, mode format.Mode) *ListBuilder {
	l := &ListBuilder{s: s, name: name}
	var err error
	if l.i, err = s.start(name, mode); err == nil {
		l.offsets = s.o.b.w.Offsets()
		s.o.b.state = l
	}
	return l
}

// Broadcast starts a state that is a map, equal in every subtask.
func (s *SubtaskBuilder) Broadcast(name string) *BroadcastBuilder {
	m := &BroadcastBuilder{s: s, name: name, sorter: sorter{max: s.o.b.o.SortBytes}}
	var err error
	if m.i, err = s.start(name, format.ModeBroadcast); err == nil {
		s.o.b.state = m
	}
	return m
}

// start adds a named state to the operator state and returns its index.
func (s *SubtaskBuilder) start(name string, mode format.Mode) (int, error) {
	if err := s.ready(); err != nil {
		return 0, err
	}
	if err := s.o.b.endState(); err != nil {
		return 0, err
	}
	if s.sub.ManagedKeyed != nil {
		return 0, s.fail(fmt.Errorf("state %q follows the keyed state, which must be the last of a subtask", name))
	}
	if s.sub.Managed == nil {
		stream, err := s.o.b.w.Stream(nil)
		if err != nil {
			return 0, s.fail(err)
		}
		s.stream, s.sub.Managed = stream, &format.OperatorHandle{Codec: format.CodecNative}
	}
	h := s.sub.Managed
	for _, st := range h.States {
		if st.Name.String() == name {
			return 0, s.fail(fmt.Errorf("duplicate state %q", name))
		}
	}
	h.States = append(h.States, format.NamedState{Name: format.NewText(name), Mode: mode})
	s.stream.MustCut()
	return len(h.States) - 1, nil
}

// endOperatorState ends the open state and the stream of operator state.
func (s *SubtaskBuilder) endOperatorState() error {
	if err := s.o.b.endState(); err != nil {
		return err
	}
	if s.stream == nil {
		return nil
	}
	data, err := s.stream.Close()
	if err != nil {
		return s.fail(err)
	}
	s.stream, s.sub.Managed.Data = nil, data
	return nil
}

func (s *SubtaskBuilder) write(p []byte) error {
	n, err := s.stream.Write(p)
	s.n += int64(n)
	return err
}

func (s *SubtaskBuilder) stateError(i int, err error) error {
	return s.fail(format.At(err, "state %q", s.sub.Managed.States[i].Name))
}

// ListBuilder adds the elements of a list or union state.
type ListBuilder struct {
	s       *SubtaskBuilder
	name    string
	i       int // index of the state
	offsets *spt.OffsetsWriter
}

// Add appends elements. A msgpack.RawMessage is written as is.
func (l *ListBuilder) Add(elements ...any) error {
	s := l.s
	b := s.o.b
	if err := b.ready(b.state == l, "state %q", l.name); err != nil {
		return err
	}
	for _, v := range elements {
		if err := l.add(v); err != nil {
			return s.stateError(l.i, err)
		}
	}
	return nil
}

func (l *ListBuilder) add(v any) error {
	s := l.s
	b := s.o.b
	var err error
	if b.buf, err = native.Append(b.buf[:0], v); err != nil {
		return err
	}
	if err := l.offsets.Add(s.n); err != nil {
		return err
	}
	s.stream.MayCut()
	err = s.write(b.buf)
	b.trim()
	return err
}

func (l *ListBuilder) end() error {
	o, err := l.offsets.Close()
	if err != nil {
		return l.s.stateError(l.i, err)
	}
	l.s.sub.Managed.States[l.i].Offsets = o
	return nil
}

// trim releases the buffer of a large value.
func (b *Builder) trim() {
	if cap(b.buf) > 1<<20 {
		b.buf = nil
	}
}

// BroadcastBuilder adds the entries of a broadcast state.
type BroadcastBuilder struct {
	s      *SubtaskBuilder
	name   string
	i      int // index of the state
	sorter sorter
}

// Put adds an entry; entries may be added in any order. A duplicate key is an
// error at the end of the state.
func (m *BroadcastBuilder) Put(key, value any) error {
	b := m.s.o.b
	if err := b.ready(b.state == m, "state %q", m.name); err != nil {
		return err
	}
	if err := m.sorter.put(key, value); err != nil {
		return m.s.stateError(m.i, err)
	}
	return nil
}

func (m *BroadcastBuilder) end() error {
	m.s.sub.Managed.States[m.i].Offsets = format.OffsetSlice{m.s.n}
	if err := m.write(); err != nil {
		return m.s.stateError(m.i, err)
	}
	return nil
}

func (m *BroadcastBuilder) write() error {
	if err := m.sorter.sort(); err != nil {
		return err
	}
	if n := len(m.sorter.arena); n > native.MaxValue-8 { // the header and the entries are one value
		return format.Errorf(format.ErrLimit, "a map of %d bytes, over the limit of %d", n, native.MaxValue)
	}
	if err := m.s.write(native.AppendMapHeader(nil, len(m.sorter.entries))); err != nil {
		return err
	}
	for _, e := range m.sorter.entries {
		if err := m.s.write(m.sorter.arena[e.key:e.end]); err != nil { // the namespace is empty
			return err
		}
	}
	return nil
}

// Keyed starts the keyed state of the subtask, which must be its last, and ends
// its operator state. All subtasks of an operator that have keyed state must name
// the same states.
//
// Entries may be added in any order: they are buffered in memory, up to
// BuilderOptions.SortBytes, and sorted at the end. A program that has its keys by
// key group can call [KeyedBuilder.StartKeyGroup]; then only one key group is
// buffered.
func (s *SubtaskBuilder) Keyed(states ...native.KeyedState) *KeyedBuilder {
	k := &KeyedBuilder{
		s: s, states: append([]native.KeyedState{}, states...), names: make(map[string]int, len(states)),
		h:      &format.KeyGroups{Codec: format.CodecNative},
		sorter: sorter{max: s.o.b.o.SortBytes},
	}
	if s.ready() == nil && s.endOperatorState() == nil {
		if err := k.start(); err != nil {
			s.fail(err)
		}
	}
	return k
}

// start begins the stream.
func (k *KeyedBuilder) start() error {
	s, o := k.s, k.s.o
	if s.sub.ManagedKeyed != nil {
		return errors.New("it already has keyed state")
	}
	if _, err := native.AppendHeader(nil, k.states); err != nil {
		return err
	}
	if o.keyed == nil {
		o.keyed = k.states
	}
	if !slices.Equal(o.keyed, k.states) {
		return fmt.Errorf("keyed states %v, expected %v as in another subtask", k.states, o.keyed)
	}
	for i, st := range k.states {
		k.names[st.Name] = i
	}
	k.h.Range = format.KeyGroupsOf(s.sub.Index, o.op.Parallelism, o.op.MaxParallelism)
	k.next = k.h.Range.First
	k.offsets = o.b.w.Offsets()
	var err error
	if k.stream, err = o.b.w.Stream(nil); err != nil {
		return err
	}
	var schema format.KeyedSchema
	for _, st := range k.states {
		schema.States = append(schema.States, format.KeyedState{Name: format.NewText(st.Name), Kind: string(st.Kind)})
	}
	if k.out, err = (native.KeyedCodec{}).Build(context.Background(), schema, k.h.Range, k.stream); err != nil {
		return err
	}
	s.sub.ManagedKeyed, o.b.state = k.h, k
	return nil
}

// SubtaskOf returns the subtask that owns a key.
func (o *OperatorBuilder) SubtaskOf(key any) (int32, error) {
	if o.b.err != nil {
		return 0, o.b.err // an operator that was refused has no subtasks
	}
	p, err := native.Marshal(key)
	if err != nil {
		return 0, err
	}
	return o.owner(native.KeyGroup(p, o.op.MaxParallelism)), nil
}

// owner returns the subtask to which format.KeyGroupsOf assigns a key group.
func (o *OperatorBuilder) owner(group int32) int32 {
	return int32(int64(group) * int64(o.op.Parallelism) / int64(o.op.MaxParallelism))
}

// KeyedBuilder adds the entries of a subtask's keyed state.
type KeyedBuilder struct {
	s       *SubtaskBuilder
	states  []native.KeyedState
	names   map[string]int
	h       *format.KeyGroups
	stream  *spt.StreamWriter
	out     format.KeyedBuilder // writes to stream
	offsets *spt.OffsetsWriter
	next    int32 // first key group not written yet
	started bool  // StartKeyGroup was called: entries are of key group next
	sorter  sorter
}

func (k *KeyedBuilder) ready() error {
	b := k.s.o.b
	return b.ready(b.state == k, "the keyed state of operator %q/subtask %d", k.s.o.op.UID, k.s.sub.Index)
}

// Put adds an entry of a state; a nil namespace means no namespace. The key must
// belong to the subtask. A duplicate key and namespace are an error when their
// key group is written.
func (k *KeyedBuilder) Put(state string, key, namespace, value any) error {
	if err := k.ready(); err != nil {
		return err
	}
	if err := k.put(state, key, namespace, value); err != nil {
		return k.s.fail(format.At(err, "keyed state %q", state))
	}
	return nil
}

func (k *KeyedBuilder) put(state string, key, namespace, value any) error {
	i, ok := k.names[state]
	if !ok {
		return fmt.Errorf("expected one of %v", k.states)
	}
	e, err := k.sorter.add(key, namespace, value)
	if err != nil {
		return err
	}
	if err := k.states[i].Kind.Check(k.sorter.arena[e.value:e.end]); err != nil {
		return err
	}
	o := k.s.o
	e.state, e.group = i, native.KeyGroup(k.sorter.arena[e.key:e.namespace], o.op.MaxParallelism)
	if owner := o.owner(e.group); owner != k.s.sub.Index {
		return fmt.Errorf("key %s belongs to key group %d of subtask %d; this subtask has %v", k.sorter.show(e), e.group, owner, k.h.Range)
	}
	if k.started && e.group != k.next {
		return fmt.Errorf("key %s belongs to key group %d, expected %d", k.sorter.show(e), e.group, k.next)
	}
	k.sorter.entries = append(k.sorter.entries, e)
	return nil
}

// StartKeyGroup starts a key group: the next entries belong to it, and earlier
// key groups are complete. Key groups must ascend, and the first call must
// precede any Put; key groups may be skipped.
func (k *KeyedBuilder) StartKeyGroup(group int32) error {
	if err := k.ready(); err != nil {
		return err
	}
	switch {
	case group < k.h.Range.First || group > k.h.Range.Last():
		return k.s.fail(fmt.Errorf("key group %d belongs to subtask %d; this subtask has %v", group, k.s.o.owner(group), k.h.Range))
	case k.started && group <= k.next:
		return k.s.fail(fmt.Errorf("key group %d started after %d: expected ascending key groups", group, k.next))
	case !k.started && len(k.sorter.entries) > 0:
		return k.s.fail(fmt.Errorf("key group %d started after entries of any key group were added", group))
	}
	if err := k.flush(group); err != nil {
		return k.s.fail(err)
	}
	k.started = true
	return nil
}

// flush writes the key groups before end.
func (k *KeyedBuilder) flush(end int32) error {
	if err := k.sorter.sort(); err != nil {
		return err
	}
	entries := k.sorter.entries
	for ; k.next < end; k.next++ {
		k.stream.MayCut()
		for len(entries) > 0 && entries[0].group == k.next {
			e, p := entries[0], k.sorter.arena
			entry := format.KeyedEntry{KeyGroup: e.group, State: e.state, Key: p[e.key:e.namespace], Value: p[e.value:e.end]}
			if e.namespace < e.value {
				entry.Namespace = p[e.namespace:e.value]
			}
			if err := k.out.Add(entry); err != nil {
				return err
			}
			entries = entries[1:]
		}
	}
	k.sorter.reset()
	return nil
}

func (k *KeyedBuilder) end() error {
	err := k.flush(k.h.Range.Last() + 1)
	if err == nil {
		var built *format.KeyGroups
		if built, err = k.out.Handle(); err == nil {
			err = format.EachOffset(context.Background(), built.Offsets, func(_ int64, run []int64) error {
				for _, at := range run {
					if err := k.offsets.Add(at); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
	if err == nil {
		k.h.Offsets, err = k.offsets.Close()
	}
	if err == nil {
		var data *format.Chunks
		if data, err = k.stream.Close(); err == nil {
			k.h.Data = data
		}
	}
	if err != nil {
		return k.s.fail(format.At(err, "keyed state"))
	}
	return nil
}

// sorter buffers encoded entries and sorts them.
type sorter struct {
	max     int64
	arena   []byte
	entries []sortEntry
}

// sortEntry is an entry in the arena: the offsets of its key, namespace and
// value, which are contiguous, and its end.
type sortEntry struct {
	group                      int32
	state                      int
	key, namespace, value, end int
}

const sortEntrySize = 48

// put adds an entry without a namespace.
func (s *sorter) put(key, value any) error {
	e, err := s.add(key, noNamespace{}, value)
	if err == nil {
		s.entries = append(s.entries, e)
	}
	return err
}

// noNamespace means no namespace; a nil namespace is encoded as msgpack's nil.
type noNamespace struct{}

// add encodes an entry into the arena; the caller appends it to entries.
func (s *sorter) add(key, namespace, value any) (sortEntry, error) {
	e := sortEntry{key: len(s.arena)}
	var err error
	if s.arena, err = native.Append(s.arena, key); err != nil {
		return e, fmt.Errorf("the key: %w", err)
	}
	e.namespace = len(s.arena)
	if _, none := namespace.(noNamespace); !none {
		if s.arena, err = native.Append(s.arena, namespace); err != nil {
			return e, fmt.Errorf("the namespace: %w", err)
		}
	}
	e.value = len(s.arena)
	if s.arena, err = native.Append(s.arena, value); err != nil {
		return e, fmt.Errorf("the value: %w", err)
	}
	e.end = len(s.arena)
	if n := e.end - e.key; n > native.MaxValue-8 { // with its prefix
		return e, format.Errorf(format.ErrLimit, "an entry of %d bytes, over the limit of %d", n, native.MaxValue)
	}
	if n := int64(len(s.arena)) + sortEntrySize*int64(len(s.entries)+1); n > s.max {
		return e, format.Errorf(format.ErrLimit, "sorting %d entries needs more than the %d bytes of BuilderOptions.SortBytes", len(s.entries)+1, s.max)
	}
	return e, nil
}

func (s *sorter) sort() error {
	p := s.arena
	compare := func(a, b sortEntry) int {
		return cmp.Or(
			cmp.Compare(a.group, b.group), cmp.Compare(a.state, b.state),
			bytes.Compare(p[a.key:a.namespace], p[b.key:b.namespace]),
			bytes.Compare(p[a.namespace:a.value], p[b.namespace:b.value]))
	}
	slices.SortFunc(s.entries, compare)
	for i := 1; i < len(s.entries); i++ {
		if compare(s.entries[i-1], s.entries[i]) == 0 {
			return fmt.Errorf("duplicate key %s", s.show(s.entries[i]))
		}
	}
	return nil
}

// show returns the start of a key for an error.
func (s *sorter) show(e sortEntry) string {
	key := s.arena[e.key:e.namespace]
	if len(key) > 32 {
		return fmt.Sprintf("% x… (%d bytes)", key[:32], len(key))
	}
	return fmt.Sprintf("% x", key)
}

func (s *sorter) reset() { s.arena, s.entries = s.arena[:0], s.entries[:0] }
