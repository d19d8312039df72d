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

// Summary is the numbers of a savepoint.
type Summary struct {
	Kind      Kind
	Operators []*Operator // largest first
	Subtasks  int         // subtask entries of all operators
	Files     []File      // largest first
	Bytes     Bytes       // of all operators
	// UsedBySeveral is the bytes of files that several operators refer to. They are
	// counted for the first of these operators, in file order.
	UsedBySeveral int64
}

// Bytes is the number of bytes by where they are stored. A file that several
// handles refer to counts once.
type Bytes struct {
	Inline  int64 // in _metadata itself
	Own     int64 // in files of this snapshot alone
	Shared  int64 // in files that other snapshots may use too
	Packed  int64 // in the chunks of an .spt file, before compression
	Offsets int64 // offsets of elements and key groups in _metadata
}

// State returns the bytes of state: all but the offsets.
func (b Bytes) State() int64 { return b.Inline + b.Own + b.Shared + b.Packed }

// Add adds o to b.
func (b *Bytes) Add(o Bytes) {
	b.Inline += o.Inline
	b.Own += o.Own
	b.Shared += o.Shared
	b.Packed += o.Packed
	b.Offsets += o.Offsets
}

// Operator is the numbers of one operator.
type Operator struct {
	*format.Operator
	Present, Missing, Finished int // subtasks
	Coordinator                int64
	States                     []*State // largest first
	// Framing is the bytes that belong to no element: serializer snapshots, headers
	// of compressed streams, and gaps. Headers of keyed streams count in the
	// Framing of their state.
	Framing Bytes
	// Bytes is the sum of Framing and the Stored bytes of all states.
	Bytes Bytes
}

// State is the numbers of one state of an operator over all its subtasks. Handles
// whose states cannot be distinguished without reading them are one State per
// kind.
type State struct {
	Name     string // "" for handles without names
	Kind     StateKind
	Subtasks int   // number of subtasks that hold it
	Elements int64 // list, union: elements; broadcast: replicas; -1: not counted
	// Bytes is the number of bytes that the subtasks hold. Stored is where they are
	// stored: bytes that several handles refer to count in the Stored of one state.
	Bytes  int64
	Stored Bytes
	// Framing is the part of Stored before the first key group.
	Framing Bytes
	// KeyGroups is the number of key groups that keyed state covers. Each counts
	// once, although the handles of a rescaled snapshot may cover more than their
	// subtask has.
	KeyGroups int64
	// Handles is the kind of keyed handles: "full", "savepoint", "incremental" or
	// "changelog".
	Handles string
	// Alike: several subtasks, all of the operator, hold this union state, each
	// with equally many elements of the same lengths, in any order. Reading the
	// elements shows whether they are equal.
	Alike bool
	// MayBeMultiplied: Alike, and a guess without reading files that restores
	// multiplied the state (see multiplied.go).
	MayBeMultiplied bool
	// SameOrder: Alike, with the lengths in the same order in all subtasks.
	SameOrder bool
	// Compared: Alike, and inline elements were compared.
	Compared bool
}

// StateKind is the kind of a State.
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

// File is a file that the snapshot refers to.
type File struct {
	Path     string // as in the snapshot
	Relative bool
	Merged   bool // holds segments of several handles
	Bytes    int64
	Handles  int // number of handles that refer to it
	Shared   bool
	// Shortest and Longest are the lengths of the whole file that handles record,
	// -1 if none does. Reach is the end of the last segment in it, -1 if a segment
	// is invalid. A file of changes (Changelog) is one byte longer than its handles
	// record.
	Shortest, Longest, Reach int64
	Changelog                bool
}

// Wrong returns why a file of size bytes cannot be the one that the snapshot refers
// to; "" if it can.
func (f *File) Wrong(size int64) string {
	for _, claimed := range []int64{f.Longest, f.Shortest} {
		if claimed >= 0 && !fileref.LengthFits(claimed, size, f.Changelog) {
			return fmt.Sprintf("expected %d bytes, found %d", claimed, size)
		}
	}
	switch {
	case f.Reach < 0:
		return "a segment in it has an invalid range"
	case f.Reach > size:
		return fmt.Sprintf("expected %d bytes for its segments, found %d", f.Reach, size)
	}
	return ""
}

// Of returns the summary of a savepoint. It reads only offsets that are stored in
// chunks of an .spt file, with ctx.
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
		store(&c.first.Framing, c.stream, c.left) // bytes that no handle claims
	}
	for _, o := range s.Operators {
		o.Bytes = o.Framing
		for _, st := range o.States {
			o.Bytes.Add(st.Stored)
		}
		s.Bytes.Add(o.Bytes)
	}
	slices.SortStableFunc(s.Operators, func(a, b *Operator) int {
		return cmp.Or(cmp.Compare(b.Bytes.State(), a.Bytes.State()), cmp.Compare(a.Label(), b.Label()))
	})
	s.Files, s.UsedBySeveral = files.list(), files.usedBySeveral()
	return s, nil
}

// measure collects the numbers of one operator.
type measure struct {
	ctx    context.Context
	op     *Operator
	files  *fileSet // of the savepoint
	states map[stateID]*State
	order  []*State
	groups map[*State]*groupSet       // key groups covered
	heads  map[format.StreamKey]int64 // by file: start of the first key group of all handles
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
				st.Stored.Offsets += 8 * offsetCount(c.Offsets)
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
	// Handles may share a file, whose bytes count once, whatever the number of
	// states in it.
	fresh := m.file(h.Data)
	var named int64
	for i, s := range h.States {
		st := m.state(kindOfMode(s.Mode, raw), s.Name.String())
		st.Subtasks++
		st.Elements += s.Offsets.Len()
		st.Bytes += sizes[i]
		st.Stored.Offsets += 8 * s.Offsets.Len()
		named += sizes[i]
		if fresh {
			m.store(st, h.Data, sizes[i])
		}
	}
	rest := format.SizeOf(h.Data) - named
	switch {
	case rest <= 0 || !fresh:
	case raw: // bytes of user code before its first partition
		st := m.state(Raw, rawName(h))
		st.Bytes += rest
		m.store(st, h.Data, rest)
	default:
		store(&m.op.Framing, h.Data, rest)
	}
	return nil
}

// rawName returns the name of the state that the bytes of a raw handle count for.
func rawName(h *format.OperatorHandle) string {
	if len(h.States) == 0 {
		return ""
	}
	return h.States[0].Name.String()
}

// keyed adds a keyed handle to the state of its kind.
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

// cover adds a range to the key groups of a state and returns the number of new
// ones.
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
		if n := m.storeOnce(st, h.Data); n > 0 {
			st.Bytes += n
			head, err := m.head(h)
			if err != nil {
				return err
			}
			if st.Kind == Keyed {
				store(&st.Framing, h.Data, min(head, n))
			}
		}
		st.Stored.Offsets += 8 * offsetCount(h.Offsets)
	case *format.Incremental:
		if n := m.storeOnce(st, h.Meta); n > 0 {
			st.Bytes += n
			store(&st.Framing, h.Meta, n) // only serializer snapshots
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
			st.Stored.Inline += int64(c.Data.Len())
			st.Bytes += int64(c.Data.Len())
		}
	case *format.ChangelogStream:
		// A file holds the changes of many operators. Only the handle records which
		// bytes are in this state, so a claim is limited by the size of the file.
		left := max(h.StateSize, 0)
		var most int64
		for _, s := range h.Streams {
			n := m.files.take(m.op, s.Data, left)
			left -= n
			m.store(st, s.Data, n)
			most += format.SizeOf(s.Data)
		}
		st.Bytes += min(max(h.StateSize, 0), most)
	}
	return nil
}

// findHeads records where the first key group of each file starts: a handle of a
// rescaled snapshot covers only some of the key groups in its file.
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

// head returns the start of the first key group in the stream of h.
func (m *measure) head(h *format.KeyGroups) (int64, error) {
	if _, _, ok := format.Reference(h.Data); ok {
		return m.heads[h.Data.Key()], nil
	}
	return m.firstGroup(h)
}

// firstGroup returns the start of the first key group of a handle, or the end of
// the stream if all are empty. In Flink's streams offset 0 means an empty key
// group.
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

// stream adds a whole stream to a state, unless it is a file that is already
// counted.
func (m *measure) stream(st *State, s format.Stream) {
	st.Bytes += m.storeOnce(st, s)
}

func (m *measure) storeOnce(st *State, s format.Stream) int64 {
	if !m.file(s) {
		return 0
	}
	n := format.SizeOf(s)
	m.store(st, s, n)
	return n
}

// file records a stream and reports whether its bytes are not yet counted.
func (m *measure) file(s format.Stream) (fresh bool) {
	return s != nil && m.files.add(m.op, s)
}

func (m *measure) store(st *State, s format.Stream, n int64) { store(&st.Stored, s, n) }

// store adds n bytes of s by where they are stored.
func store(to *Bytes, s format.Stream, n int64) {
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

// isShared reports whether other snapshots may refer to a file: it is in a
// directory that Flink shares between checkpoints (spec flink-metadata 7.1), or in
// the directory of the changelog, whose files are used until the next
// materialization.
func isShared(s format.Stream) bool {
	path, relative, ok := format.Reference(s)
	if !ok || relative {
		return false
	}
	p := path.String()
	return strings.Contains(p, "/shared/") || strings.Contains(p, "/taskowned/") || strings.Contains(p, "/dstl/")
}
