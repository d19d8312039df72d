package summary

import (
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/fileref"
)

// Summary is a savepoint in numbers.
type Summary struct {
	Kind      Kind
	Operators []*Operator // largest first
	Subtasks  int         // entries of all operators
	Files     []File      // largest first
	Bytes     Bytes       // the sum of those of the operators
	// UsedBySeveral is the bytes of files that several operators refer to. They
	// are counted for the first of them, in file order.
	UsedBySeveral int64
}

// Bytes says where state lies. A file that several handles name counts once.
type Bytes struct {
	Inline  int64 // in _metadata itself
	Own     int64 // in files of this snapshot alone
	Shared  int64 // in files that other snapshots may use too
	Packed  int64 // in the chunks of an .spt file, before compression
	Offsets int64 // what _metadata spends on offsets of elements and key groups
}

// State is the bytes of state: everything but the offsets.
func (b Bytes) State() int64 { return b.Inline + b.Own + b.Shared + b.Packed }

// Add adds o.
func (b *Bytes) Add(o Bytes) {
	b.Inline += o.Inline
	b.Own += o.Own
	b.Shared += o.Shared
	b.Packed += o.Packed
	b.Offsets += o.Offsets
}

// Operator is one operator in numbers.
type Operator struct {
	*format.Operator
	Present, Missing, Finished int // subtasks
	Coordinator                int64
	States                     []*State // largest first
	// Framing is the bytes that hold no element: serializer snapshots, headers
	// of compressed streams, and gaps. The headers of keyed streams are in the
	// Framing of their state.
	Framing Bytes
	// Bytes is Framing and the Place of every state.
	Bytes Bytes
}

// State is one state of an operator over all its subtasks, or the handles of
// one kind where states cannot be told apart without reading them.
type State struct {
	Name     string // "" for handles without names
	Kind     StateKind
	Subtasks int   // that hold it
	Elements int64 // list, union: elements; broadcast: copies; -1 where there are none to count
	// Bytes is what the subtasks hold. Place is where that is stored: bytes that
	// several handles refer to are in the Place of one state.
	Bytes int64
	Place Bytes
	// Framing is the part of Place in front of the first key group.
	Framing Bytes
	// KeyGroups is the number of key groups covered, for keyed state: each once,
	// though the handles of a rescaled snapshot may cover more than their subtask
	// has.
	KeyGroups int64
	// Handles is how the state is kept, for keyed state: "full", "savepoint",
	// "incremental", "changelog".
	Handles string
	// Alike: a union state that several subtasks hold, all of the operator, and
	// of which all hold equally many elements of the same lengths, in any order.
	// Reading them shows whether they are the same elements.
	Alike bool
	// MayBeMultiplied: Alike, and a guess without reading files that restores are
	// the reason (see guess in multiplied.go).
	MayBeMultiplied bool
	// SameOrder: Alike, with the lengths in the same order in all subtasks.
	SameOrder bool
	// Compared: Alike, and elements that are inline were compared.
	Compared bool
}

// StateKind says what a row of states is.
type StateKind string

// The kinds.
const (
	List        StateKind = "list"
	Union       StateKind = "union"
	Broadcast   StateKind = "broadcast"
	Raw         StateKind = "raw"
	Keyed       StateKind = "keyed"
	RawKeyed    StateKind = "raw keyed"
	InFlight    StateKind = "in-flight data"
	Coordinator StateKind = "coordinator"
	Legacy      StateKind = "legacy"
)

// File is one file that the snapshot refers to.
type File struct {
	Path     string // as the snapshot writes it
	Relative bool
	Merged   bool // holds segments of several handles
	Bytes    int64
	Handles  int // that name it
	Shared   bool
	// Shortest and Longest are what handles say of the whole file, -1 where none
	// does; Reach is how far segments in it go, -1 where one cannot be. A file of
	// changes (Changelog) is one byte longer than its handles say.
	Shortest, Longest, Reach int64
	Changelog                bool
}

// Wrong says how a file of size bytes cannot be what the snapshot promises; ""
// if it can.
func (f *File) Wrong(size int64) string {
	for _, claimed := range []int64{f.Longest, f.Shortest} {
		if claimed >= 0 && !fileref.LengthFits(claimed, size, f.Changelog) {
			return fmt.Sprintf("expected %d bytes, the file has %d", claimed, size)
		}
	}
	switch {
	case f.Reach < 0:
		return "a segment in it has no sound range"
	case f.Reach > size:
		return fmt.Sprintf("expected segments up to byte %d, the file has %d", f.Reach, size)
	}
	return ""
}

// Of adds up a savepoint. Only offsets that live in chunks of an .spt are read
// from anywhere; ctx is for those.
func Of(ctx context.Context, sp *format.Savepoint) (*Summary, error) {
	s := &Summary{Kind: KindOf(sp)}
	files := newFileSet()
	for _, op := range sp.Operators {
		o, err := operator(ctx, op, files)
		if err != nil {
			return nil, format.At(err, "operator %q", op.Label())
		}
		s.Operators = append(s.Operators, o)
		s.Subtasks += len(op.Subtasks)
	}
	for _, c := range files.changes {
		placeIn(&c.first.Framing, c.stream, c.left) // what no handle claims
	}
	for _, o := range s.Operators {
		o.Bytes = o.Framing
		for _, st := range o.States {
			o.Bytes.Add(st.Place)
		}
		s.Bytes.Add(o.Bytes)
	}
	slices.SortStableFunc(s.Operators, func(a, b *Operator) int {
		return cmp.Or(cmp.Compare(b.Bytes.State(), a.Bytes.State()), cmp.Compare(a.Label(), b.Label()))
	})
	s.Files, s.UsedBySeveral = files.list(), files.usedBySeveral()
	return s, nil
}

// measure collects one operator.
type measure struct {
	ctx    context.Context
	op     *Operator
	files  *fileSet // of the savepoint
	states map[stateID]*State
	order  []*State
	groups map[*State]*groupSet       // key groups covered
	heads  map[format.StreamKey]int64 // of files of key groups: where the first one starts, of all handles
}

type stateID struct {
	kind StateKind
	name string
}

func operator(ctx context.Context, op *format.Operator, files *fileSet) (*Operator, error) {
	o := &Operator{Operator: op}
	m := &measure{ctx: ctx, op: o, files: files, states: map[stateID]*State{}, heads: map[format.StreamKey]int64{}}
	for _, sub := range op.Subtasks {
		if err := m.findHeads(sub.ManagedKeyed); err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
	}
	for _, sub := range op.Subtasks {
		if sub.Finished {
			o.Finished++
			continue
		}
		o.Present++
		if err := m.subtask(sub); err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
	}
	if op.Finished {
		o.Finished = int(op.Parallelism)
	}
	o.Missing = max(int(op.Parallelism)-o.Present-o.Finished, 0)
	if op.Coordinator != nil {
		o.Coordinator = format.SizeOf(op.Coordinator)
		st := m.state(Coordinator, "")
		st.Elements = -1
		m.stream(st, op.Coordinator)
	}
	if err := m.unions(op, o); err != nil {
		return nil, err
	}
	slices.SortStableFunc(m.order, func(a, b *State) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	o.States = m.order
	return o, nil
}

func (m *measure) state(kind StateKind, name string) *State {
	id := stateID{kind, name}
	st := m.states[id]
	if st == nil {
		st = &State{Kind: kind, Name: name}
		m.states[id] = st
		m.order = append(m.order, st)
	}
	return st
}

func (m *measure) subtask(sub *format.Subtask) error {
	if h := sub.Managed; h != nil {
		if err := m.operatorHandle(h, false); err != nil {
			return err
		}
	}
	if h := sub.Raw; h != nil {
		if err := m.operatorHandle(h, true); err != nil {
			return err
		}
	}
	if err := m.keyed(Keyed, sub.ManagedKeyed); err != nil {
		return err
	}
	if err := m.keyed(RawKeyed, sub.RawKeyed); err != nil {
		return err
	}
	if n := len(sub.Input) + len(sub.Output); n > 0 {
		st := m.state(InFlight, "")
		st.Subtasks++
		st.Elements = -1
		for _, h := range slices.Concat(sub.Input, sub.Output) {
			m.stream(st, h.Data)
			for _, c := range h.Channels {
				st.Place.Offsets += 8 * offsetCount(c.Offsets)
			}
		}
	}
	if len(sub.Legacy) > 0 {
		st := m.state(Legacy, "")
		st.Subtasks++
		st.Elements = -1
		for _, s := range sub.Legacy {
			m.stream(st, s)
		}
	}
	return nil
}

func kindOfMode(mode format.Mode, raw bool) StateKind {
	switch {
	case raw:
		return Raw
	case mode == format.ModeUnion:
		return Union
	case mode == format.ModeBroadcast:
		return Broadcast
	}
	return List
}

func (m *measure) operatorHandle(h *format.OperatorHandle, raw bool) error {
	sizes, err := StateSizes(m.ctx, h)
	if err != nil {
		return err
	}
	// Handles may share a file. Its bytes are in one place then, however many
	// states are in it.
	fresh := m.file(h.Data)
	var named int64
	for i, s := range h.States {
		st := m.state(kindOfMode(s.Mode, raw), s.Name.String())
		st.Subtasks++
		st.Elements += s.Offsets.Len()
		st.Bytes += sizes[i]
		st.Place.Offsets += 8 * s.Offsets.Len()
		named += sizes[i]
		if fresh {
			m.place(st, h.Data, sizes[i])
		}
	}
	rest := format.SizeOf(h.Data) - named
	switch {
	case rest <= 0 || !fresh:
	case raw: // bytes of user code in front of its first partition
		st := m.state(Raw, rawName(h))
		st.Bytes += rest
		m.place(st, h.Data, rest)
	default:
		placeIn(&m.op.Framing, h.Data, rest)
	}
	return nil
}

// rawName is the state that the bytes of a raw handle belong to.
func rawName(h *format.OperatorHandle) string {
	if len(h.States) == 0 {
		return ""
	}
	return h.States[0].Name.String()
}

// keyed adds a keyed handle to the row of its kind.
func (m *measure) keyed(kind StateKind, h format.KeyedHandle) error {
	if h == nil {
		return nil
	}
	st := m.state(kind, "")
	st.Subtasks++
	st.Elements = -1
	st.KeyGroups += m.cover(st, h.KeyGroups())
	if how := handleWord(h); st.Handles == "" {
		st.Handles = how
	} else if !strings.Contains(st.Handles, how) {
		st.Handles += "+" + how
	}
	return m.keyedStreams(st, h)
}

// groupSet is a set of key groups.
type groupSet [format.MaxKeyGroups / 64]uint64

// cover adds a range to the key groups of a state and says how many are new.
func (m *measure) cover(st *State, r format.KeyGroupRange) (fresh int64) {
	set := m.groups[st]
	if set == nil {
		set = &groupSet{}
		if m.groups == nil {
			m.groups = map[*State]*groupSet{}
		}
		m.groups[st] = set
	}
	first, end := int64(max(r.First, 0)), min(int64(r.First)+int64(r.Count), format.MaxKeyGroups)
	for g := first; g < end; g = (g/64 + 1) * 64 {
		mask := ^uint64(0) << (g % 64)
		if left := end - g/64*64; left < 64 {
			mask &= 1<<left - 1
		}
		word := &set[g/64]
		fresh += int64(bits.OnesCount64(mask &^ *word))
		*word |= mask
	}
	return fresh
}

func handleWord(h format.KeyedHandle) string {
	switch h := h.(type) {
	case *format.KeyGroups:
		if h.Savepoint {
			return "savepoint"
		}
		return "full"
	case *format.Incremental:
		return "incremental"
	}
	return "changelog"
}

func (m *measure) keyedStreams(st *State, h format.KeyedHandle) error {
	switch h := h.(type) {
	case *format.KeyGroups:
		if n := m.placeOnce(st, h.Data); n > 0 {
			st.Bytes += n
			head, err := m.head(h)
			if err != nil {
				return err
			}
			if st.Kind == Keyed {
				placeIn(&st.Framing, h.Data, min(head, n))
			}
		}
		st.Place.Offsets += 8 * offsetCount(h.Offsets)
	case *format.Incremental:
		if n := m.placeOnce(st, h.Meta); n > 0 {
			st.Bytes += n
			placeIn(&st.Framing, h.Meta, n) // serializer snapshots and nothing else
		}
		for _, f := range h.Shared {
			m.stream(st, f.Data)
		}
		for _, f := range h.Private {
			m.stream(st, f.Data)
		}
	case *format.Changelog:
		for _, c := range slices.Concat(h.Materialized, h.Changes) {
			if c == nil {
				continue
			}
			if err := m.keyedStreams(st, c); err != nil {
				return err
			}
		}
	case *format.ChangelogMemory:
		for _, c := range h.Changes {
			st.Place.Inline += int64(c.Data.Len())
			st.Bytes += int64(c.Data.Len())
		}
	case *format.ChangelogStream:
		// The changes of many operators are in one file. Which part of it is of
		// this state only the handle says, so a claim ends with the file.
		left := max(h.StateSize, 0)
		var most int64
		for _, s := range h.Streams {
			n := m.files.take(m.op, s.Data, left)
			left -= n
			m.place(st, s.Data, n)
			most += format.SizeOf(s.Data)
		}
		st.Bytes += min(max(h.StateSize, 0), most)
	}
	return nil
}

// findHeads notes where the first key group of each file starts: a handle of
// a rescaled snapshot names only some of the key groups in its file.
func (m *measure) findHeads(h format.KeyedHandle) error {
	switch h := h.(type) {
	case *format.KeyGroups:
		if _, _, ok := format.Reference(h.Data); !ok {
			return nil
		}
		n, err := m.firstGroup(h)
		if err != nil {
			return err
		}
		key := h.Data.Key()
		if have, ok := m.heads[key]; !ok || n < have {
			m.heads[key] = n
		}
	case *format.Changelog:
		for _, c := range h.Materialized {
			if err := m.findHeads(c); err != nil {
				return err
			}
		}
	}
	return nil
}

// head is where the first key group in the stream of h starts.
func (m *measure) head(h *format.KeyGroups) (int64, error) {
	if _, _, ok := format.Reference(h.Data); ok {
		return m.heads[h.Data.Key()], nil
	}
	return m.firstGroup(h)
}

// firstGroup is where the first key group of a handle starts, or the end of the
// stream if all are empty. In Flink's streams offset 0 means an empty key group.
func (m *measure) firstGroup(h *format.KeyGroups) (int64, error) {
	if h.Codec != format.CodecFlink || h.Offsets == nil {
		return 0, nil
	}
	first := format.SizeOf(h.Data)
	err := format.EachOffset(m.ctx, h.Offsets, func(_ int64, run []int64) error {
		for _, v := range run {
			if v > 0 && v < first {
				first = v
			}
		}
		return nil
	})
	return first, err
}

// stream adds a whole stream to a state, unless it is a file that was counted
// before.
func (m *measure) stream(st *State, s format.Stream) {
	st.Bytes += m.placeOnce(st, s)
}

func (m *measure) placeOnce(st *State, s format.Stream) int64 {
	if !m.file(s) {
		return 0
	}
	n := format.SizeOf(s)
	m.place(st, s, n)
	return n
}

// file records a stream and reports whether its bytes were not counted yet.
func (m *measure) file(s format.Stream) (fresh bool) {
	return s != nil && m.files.add(m.op, s)
}

func (m *measure) place(st *State, s format.Stream, n int64) { placeIn(&st.Place, s, n) }

// placeIn adds n bytes of s to where they are stored.
func placeIn(to *Bytes, s format.Stream, n int64) {
	switch format.Kind(s) {
	case format.KindInline, format.KindConcat:
		to.Inline += n
	case format.KindChunks:
		to.Packed += n
	case format.KindRelative, format.KindAbsolute, format.KindSegment:
		if isShared(s) {
			to.Shared += n
		} else {
			to.Own += n
		}
	}
}

func offsetCount(o format.Offsets) int64 {
	if o == nil {
		return 0
	}
	return o.Len()
}

// isShared reports whether a file may belong to other snapshots too: it stands in a
// folder that Flink shares between checkpoints (spec flink-metadata 7.1), or in
// that of the changelog, whose files serve until the next materialization.
func isShared(s format.Stream) bool {
	path, relative, ok := format.Reference(s)
	if !ok || relative {
		return false
	}
	p := path.String()
	return strings.Contains(p, "/shared/") || strings.Contains(p, "/taskowned/") || strings.Contains(p, "/dstl/")
}
