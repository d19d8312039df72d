package summary

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math/bits"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Summary is a savepoint in numbers.
type Summary struct {
	Kind      Kind
	Operators []*Operator // largest first
	Subtasks  int         // entries of all operators
	Files     []File      // largest first
	Bytes     Bytes
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

func (b *Bytes) add(o Bytes) {
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
	Bytes                      Bytes
}

// State is one state of an operator over all its subtasks, or the handles of
// one kind where states cannot be told apart without reading them.
type State struct {
	Name     string // "" for handles without names
	Kind     StateKind
	Subtasks int   // that hold it
	Elements int64 // list, union: elements; broadcast: copies; -1 where there are none to count
	Bytes    int64
	Place    Bytes
	// KeyGroups is the number of key groups covered, for keyed state: each once,
	// though the handles of a rescaled snapshot may cover more than their subtask
	// has.
	KeyGroups int64
	// Handles is how the state is kept, for keyed state: "full", "savepoint",
	// "incremental", "changelog".
	Handles string
	// MayBeMultiplied: a union state whose subtasks, more than one, all hold
	// the same number of elements of the same lengths in the same order, and
	// begin with the same bytes where they are inline.
	MayBeMultiplied bool
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
	InFlight    StateKind = "in flight"
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
		if claimed >= 0 && !format.LengthFits(claimed, size, f.Changelog) {
			return fmt.Sprintf("%d bytes are promised, the file has %d", claimed, size)
		}
	}
	switch {
	case f.Reach < 0:
		return "a segment in it has no sound range"
	case f.Reach > size:
		return fmt.Sprintf("segments up to byte %d are promised, the file has %d", f.Reach, size)
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
		s.Bytes.add(o.Bytes)
	}
	slices.SortStableFunc(s.Operators, func(a, b *Operator) int {
		return cmp.Or(cmp.Compare(b.Bytes.State(), a.Bytes.State()), cmp.Compare(a.Label(), b.Label()))
	})
	s.Files = files.list()
	// Files that several operators share were counted for each of them.
	s.Bytes.Own, s.Bytes.Shared = 0, 0
	for _, f := range s.Files {
		if f.Shared {
			s.Bytes.Shared += f.Bytes
		} else {
			s.Bytes.Own += f.Bytes
		}
	}
	return s, nil
}

// measure collects one operator.
type measure struct {
	ctx    context.Context
	files  *fileSet // of the savepoint
	own    *fileSet // of the operator, so that a shared file counts once
	states map[stateID]*State
	order  []*State
	groups map[*State]*groupSet // key groups covered
}

type stateID struct {
	kind StateKind
	name string
}

func operator(ctx context.Context, op *format.Operator, files *fileSet) (*Operator, error) {
	m := &measure{ctx: ctx, files: files, own: newFileSet(), states: map[stateID]*State{}}
	o := &Operator{Operator: op}
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
	for _, st := range m.order {
		o.Bytes.add(st.Place)
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
	m.keyed(Keyed, sub.ManagedKeyed)
	m.keyed(RawKeyed, sub.RawKeyed)
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
	// What stands before the first element describes the states. It belongs to
	// the operator, in proportion to nothing: count it with the first state, or
	// with one that has no name where the handle has none.
	if rest := format.SizeOf(h.Data) - named; rest > 0 && fresh {
		kind, name := kindOfMode(format.ModeList, raw), ""
		if len(h.States) > 0 {
			kind, name = kindOfMode(h.States[0].Mode, raw), h.States[0].Name.String()
		}
		m.place(m.state(kind, name), h.Data, rest)
	}
	return nil
}

// keyed adds a keyed handle to the row of its kind.
func (m *measure) keyed(kind StateKind, h format.KeyedHandle) {
	if h == nil {
		return
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
	m.keyedStreams(st, h)
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

func (m *measure) keyedStreams(st *State, h format.KeyedHandle) {
	switch h := h.(type) {
	case *format.KeyGroups:
		m.stream(st, h.Data)
		st.Place.Offsets += 8 * offsetCount(h.Offsets)
	case *format.Incremental:
		m.stream(st, h.Meta)
		for _, f := range h.Shared {
			m.stream(st, f.Data)
		}
		for _, f := range h.Private {
			m.stream(st, f.Data)
		}
	case *format.Changelog:
		for _, c := range h.Materialized {
			if c != nil {
				m.keyedStreams(st, c)
			}
		}
		for _, c := range h.Changes {
			if c != nil {
				m.keyedStreams(st, c)
			}
		}
	case *format.ChangelogMemory:
		for _, c := range h.Changes {
			st.Place.Inline += int64(c.Data.Len())
			st.Bytes += int64(c.Data.Len())
		}
	case *format.ChangelogStream:
		// The changes of many operators are in one file: it lies where it lies,
		// but what is this state's part of it only the handle says.
		var most int64
		for _, s := range h.Streams {
			m.placeOnce(st, s.Data)
			m.files.changelog(s.Data)
			most += format.SizeOf(s.Data)
		}
		st.Bytes += min(max(h.StateSize, 0), most)
	}
}

// stream adds a whole stream to a state, unless it is a file that the operator
// has already.
func (m *measure) stream(st *State, s format.Stream) {
	st.Bytes += m.placeOnce(st, s)
}

// placeOnce is stream for the place alone. It gives the number of bytes.
func (m *measure) placeOnce(st *State, s format.Stream) int64 {
	if !m.file(s) {
		return 0
	}
	n := format.SizeOf(s)
	m.place(st, s, n)
	return n
}

// file records the file of an operator handle, whose bytes are placed by state,
// and says whether the operator did not have it yet.
func (m *measure) file(s format.Stream) (fresh bool) {
	if s == nil {
		return false
	}
	m.files.add(s)
	return m.own.add(s)
}

func (m *measure) place(st *State, s format.Stream, n int64) {
	switch format.Kind(s) {
	case format.KindInline, format.KindConcat:
		st.Place.Inline += n
	case format.KindChunks:
		st.Place.Packed += n
	case format.KindRelative, format.KindAbsolute, format.KindSegment:
		if isShared(s) {
			st.Place.Shared += n
		} else {
			st.Place.Own += n
		}
	}
}

func offsetCount(o format.Offsets) int64 {
	if o == nil {
		return 0
	}
	return o.Len()
}

// unions looks for union states that a restore may have multiplied.
func (m *measure) unions(op *format.Operator, o *Operator) error {
	for _, st := range m.order {
		if st.Kind != Union || st.Subtasks < 2 || st.Subtasks != o.Present || st.Elements == 0 {
			continue
		}
		equal, err := lookAlike(m.ctx, op, st.Name)
		if err != nil {
			return format.At(err, "state %q", st.Name)
		}
		st.MayBeMultiplied = equal
	}
	return nil
}

// lookAlike compares a state in all subtasks: the lengths of its elements, and
// the first bytes of those that are inline, which cost nothing.
func lookAlike(ctx context.Context, op *format.Operator, name string) (bool, error) {
	var first format.Offsets
	var firstSize int64
	var firstData format.Stream
	for _, sub := range op.Subtasks {
		if sub.Finished || sub.Managed == nil {
			continue
		}
		h := sub.Managed
		for i, s := range h.States {
			if s.Name.String() != name {
				continue
			}
			sizes, err := StateSizes(ctx, h)
			if err != nil {
				return false, err
			}
			if first == nil {
				first, firstSize, firstData = s.Offsets, sizes[i], h.Data
				break
			}
			if s.Offsets.Len() != first.Len() || sizes[i] != firstSize {
				return false, nil
			}
			if same, err := sameSteps(ctx, first, s.Offsets); err != nil || !same {
				return false, err
			}
			if same, err := sameStart(ctx, firstData, first, h.Data, s.Offsets, firstSize); err != nil || !same {
				return false, err
			}
			break
		}
	}
	return first != nil, nil
}

// maxStart is how many bytes of inline states are compared.
const maxStart = 64 << 10

// sameStart is whether two states of size bytes begin alike, as far as that can
// be seen without reading a file.
func sameStart(ctx context.Context, a format.Stream, ao format.Offsets, b format.Stream, bo format.Offsets, size int64) (bool, error) {
	x, xok := a.(*format.Inline)
	y, yok := b.(*format.Inline)
	if !xok || !yok {
		return true, nil
	}
	var parts [2][]byte
	for i, s := range []struct {
		data *format.Inline
		o    format.Offsets
	}{{x, ao}, {y, bo}} {
		at, err := format.OffsetAt(ctx, s.o, 0)
		if err != nil {
			return false, err
		}
		p := make([]byte, min(size, maxStart))
		n, err := s.data.Data.ReadAt(p, at)
		if err != nil {
			return false, err
		}
		parts[i] = p[:n]
	}
	return bytes.Equal(parts[0], parts[1]), nil
}

// sameSteps is whether two offset arrays of one length differ by a constant.
func sameSteps(ctx context.Context, a, b format.Offsets) (bool, error) {
	if format.OneArray(a, b) {
		return true, nil
	}
	ab, aok := a.(*format.OffsetBytes)
	bb, bok := b.(*format.OffsetBytes)
	if aok && bok {
		equal := false
		err := ab.Data.View(func(p []byte) error {
			return bb.Data.View(func(q []byte) error {
				equal = bytes.Equal(p, q)
				return nil
			})
		})
		if err != nil || equal {
			return equal, err
		}
	}
	var shift int64
	buf := make([]int64, min(a.Len(), 4096))
	same := true
	err := format.EachOffset(ctx, a, func(at int64, run []int64) error {
		for len(run) > 0 && same {
			n, err := b.Read(ctx, buf[:min(len(run), len(buf))], at)
			if err != nil {
				return err
			}
			if at == 0 && n > 0 {
				shift = buf[0] - run[0]
			}
			for i, v := range buf[:n] {
				if v-run[i] != shift {
					same = false
				}
			}
			at += int64(n)
			run = run[n:]
		}
		return nil
	})
	return same, err
}

// isShared is whether a file may belong to other snapshots too: it stands in a
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
