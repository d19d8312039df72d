package assign

import (
	"bytes"
	"errors"
	"fmt"
	"sort"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// ErrParallelism matches errors about a parallelism that Flink rejects.
var ErrParallelism = errors.New("parallelism not possible")

// maxPieces limits a plan: every new subtask receives the union state of every old
// one, old × new pieces.
const maxPieces = 64 << 20

// Options describe the restore.
type Options struct {
	// At is the URI of the directory from which Flink restores the snapshot. A
	// path without a scheme is local.
	At string
	// Release is the release of Flink that restores; zero: the latest.
	Release flink.Release
}

// Plan is the operator state of one operator, managed or raw, that each new subtask
// receives.
type Plan struct {
	Subtasks []Subtask
	// Undefined is the reason why Flink's result is not certain; "" if it is. Unless
	// more than eight names share a hash bucket, only the order of pieces is
	// uncertain, not which subtask gets what.
	Undefined string
	// DependsOnLocation: the order of pieces depends on Options.At.
	DependsOnLocation bool
}

// Subtask is the state that one new subtask receives, in order. The content of a
// state is the concatenation of its shares over the pieces; in a broadcast state,
// later entries replace earlier ones with equal keys.
type Subtask struct {
	Pieces []Piece
	// Lost counts the elements that were assigned to this subtask and then replaced
	// by the elements of an equal handle: see the package documentation.
	Lost int64
}

// Piece is the state that a subtask receives from the handle of one old subtask. It
// has no shares if the handle has no states. Pieces may share a slice of shares: do
// not write to it.
type Piece struct {
	Old    int
	Shares []Share
}

// Share is the elements First … First+Count-1 of a state of an old handle. Count may
// be 0: Flink opens the handle nevertheless. A broadcast state has one element, its
// map.
type Share struct {
	State        int // index in the old handle's States
	Name         string
	Mode         format.Mode
	First, Count int64
}

// Operator redistributes operator state, managed or raw. old[i] is the handle of
// old subtask i, nil if the subtask is finished, missing or without state.
func Operator(old []*format.OperatorHandle, newParallelism int, o Options) (*Plan, error) {
	if err := checkParallelism(newParallelism); err != nil {
		return nil, err
	}
	r := &redistribution{plan: &Plan{Subtasks: make([]Subtask, newParallelism)}, rules: o.Release.Facts()}
	same := len(old) == newParallelism
	r.keeps = same && o.Release.Facts().KeepsLists
	if err := r.read(old, o.At); err != nil {
		return nil, err
	}
	if same && r.keep() {
		return r.plan, nil
	}
	if err := r.redistribute(); err != nil {
		return nil, err
	}
	return r.plan, nil
}

func checkParallelism(p int) error {
	if p < 1 || p > format.MaxKeyGroups {
		return fmt.Errorf("%w: %d is not between 1 and %d", ErrParallelism, p, format.MaxKeyGroups)
	}
	return nil
}

// redistribution computes one plan.
type redistribution struct {
	plan    *Plan
	rules   flink.Facts
	keeps   bool // lists stay in their subtasks
	olds    []oldSubtask
	classes int // of equal handles
	states  [format.ModeBroadcast + 1][]*state
	names   [format.ModeBroadcast + 1]map[string]*state
}

// oldSubtask is the handle of an old subtask.
type oldSubtask struct {
	handle
	class  int     // handles of one class are equal for Flink; -1: no handle
	shared bool    // other handles are in its class
	shares []Share // the whole handle, in the order of Flink's map
}

// state is one named state of one mode over all old subtasks.
type state struct {
	name  string
	parts []part
}

// part is the elements of a state in one old subtask. end is the number of elements
// up to and including them.
type part struct {
	old, state int
	n, end     int64
}

func (s *state) total() int64 { return s.parts[len(s.parts)-1].end }

// share returns the elements [lo, hi) of the state that are in p.
func (s *state) share(p part, mode format.Mode, lo, hi int64) Share {
	start := p.end - p.n
	lo = max(lo, start)
	return Share{State: p.state, Name: s.name, Mode: mode, First: lo - start, Count: min(hi, p.end) - lo}
}

func (s *state) whole(p part, mode format.Mode) Share {
	return Share{State: p.state, Name: s.name, Mode: mode, Count: p.n}
}

// read groups the states of the old handles by mode and name, in the order in which
// Flink walks them.
func (r *redistribution) read(old []*format.OperatorHandle, at string) error {
	type byHandle struct{ class, first int }
	classes := map[handleKey]byHandle{}
	r.olds = make([]oldSubtask, len(old))
	var order [format.ModeBroadcast + 1]*java.HashMap
	for m := range order {
		capacity := 0
		switch {
		case r.keeps && r.rules.FillsBroadcast:
			capacity = expect(len(old)) // as if there were as many names as subtasks
		case r.keeps:
			capacity = len(old)
		}
		order[m], r.names[m] = java.NewHashMap(capacity), map[string]*state{}
	}
	for i, h := range old {
		r.olds[i].class = -1
		if h == nil {
			continue
		}
		sub := &r.olds[i]
		sub.handle = handleOf(h.Data, i, at)
		c, ok := classes[sub.key]
		if !ok {
			c = byHandle{len(classes), i}
			classes[sub.key] = c
		} else {
			sub.shared, r.olds[c.first].shared = true, true
			r.sameBytes(h.Data, old[c.first].Data)
		}
		sub.class = c.class
		for _, k := range r.walk(h.States) {
			st := h.States[k]
			if st.Mode > format.ModeBroadcast {
				return format.At(format.Errorf(format.ErrUnsupported, "%s", st.Mode), "subtask %d/state %q", i, st.Name)
			}
			s := r.state(st.Name.String(), st.Mode, order[st.Mode])
			p := part{old: i, state: k, n: st.Offsets.Len()}
			p.end = p.n
			if len(s.parts) > 0 {
				p.end += s.total()
			}
			s.parts = append(s.parts, p)
			sub.shares = append(sub.shares, s.whole(p, st.Mode))
		}
	}
	r.classes = len(classes)
	for m, names := range order {
		r.checkOrder(names, "states")
		r.states[m] = pick(r.states[m], names.Order())
	}
	return nil
}

// state returns the state with a name, which it adds if necessary.
func (r *redistribution) state(name string, mode format.Mode, order *java.HashMap) *state {
	s, known := r.names[mode][name], true
	if s == nil {
		s, known = &state{name: name}, false
		r.names[mode][name] = s
		r.states[mode] = append(r.states[mode], s)
	}
	switch hash := java.HashString(name); {
	case r.rules.PrependsNames:
		order.ComputeIfAbsent(hash, known)
	case !known:
		order.Put(hash)
	}
	return s
}

// walk returns the order in which Flink walks the states of a handle: the iteration
// order of the map into which it read them. If two states have the same name, the
// last one counts.
func (r *redistribution) walk(states []format.NamedState) []int {
	order := java.NewHashMap(expect(len(states)))
	last := make(map[string]int, len(states))
	var at []int
	for k, st := range states {
		name := st.Name.String()
		if i, ok := last[name]; ok {
			at[i] = k
			continue
		}
		last[name] = len(at)
		at = append(at, k)
		order.Put(java.HashString(name))
	}
	r.checkOrder(order, "states")
	return pick(at, order.Order())
}

// expect returns the initial capacity of Flink's map for n keys.
func expect(n int) int {
	if n <= 2 {
		return n + 1
	}
	return (4*n + 2) / 3
}

// sameBytes reports as undefined that Flink would read the wrong bytes: of inline
// handles with equal names it keeps the first, and its bytes.
func (r *redistribution) sameBytes(a, b format.Stream) {
	x, ok1 := a.(*format.Inline)
	y, ok2 := b.(*format.Inline)
	if !ok1 || !ok2 || x == y || r.plan.Undefined != "" {
		return
	}
	same := false
	err := x.Data.View(func(p []byte) error {
		return y.Data.View(func(q []byte) error {
			same = bytes.Equal(p, q)
			return nil
		})
	})
	if err != nil || !same {
		r.undefined("inline handles have the same name but different bytes, and Flink reads only the bytes of the first")
	}
}

// checkOrder reports the order of a map as undefined if Java converted one of its
// buckets to a tree.
func (r *redistribution) checkOrder(m *java.HashMap, what string) {
	if m.Trees() {
		r.undefined(fmt.Sprintf("more than eight %s share a hash bucket", what))
	}
}

func (r *redistribution) undefined(why string) {
	if r.plan.Undefined == "" {
		r.plan.Undefined = why
	}
}

// keep assigns to every subtask what it had, if Flink does so at an unchanged
// parallelism, and reports whether it does.
func (r *redistribution) keep() bool {
	if len(r.states[format.ModeUnion]) > 0 || len(r.partlyReported()) > 0 {
		return false
	}
	to := 0
	for i, sub := range r.olds {
		if r.rules.KeepsLists {
			to = i
		}
		if sub.class >= 0 {
			r.plan.Subtasks[to].Pieces = []Piece{{Old: i, Shares: sub.shares}}
			to++ // without KeepsLists, what follows a gap moves up
		}
	}
	return true
}

// partlyReported returns the broadcast states that some subtasks do not have: Flink
// redistributes them even at an unchanged parallelism.
func (r *redistribution) partlyReported() (partly []*state) {
	if !r.rules.FillsBroadcast {
		return nil
	}
	for _, s := range r.states[format.ModeBroadcast] {
		if len(s.parts) < len(r.olds) {
			partly = append(partly, s)
		}
	}
	return partly
}

// redistribute assigns all state; if lists are kept, only union states and the
// broadcast states that some subtasks lack.
func (r *redistribution) redistribute() error {
	union, broadcast := r.states[format.ModeUnion], r.states[format.ModeBroadcast]
	var blocks []block
	switch {
	case !r.keeps:
		blocks = r.blocks()
	case r.rules.FillsBroadcast:
		union, broadcast = again(union), again(r.partlyReported())
	default:
		broadcast = nil
	}
	everyone := newAssignment(r)
	everyone.shared = true
	for _, s := range union {
		for _, p := range s.parts {
			everyone.add(p.old, s.whole(p, format.ModeUnion))
		}
	}
	if n := len(r.plan.Subtasks); n*len(everyone.entries) > maxPieces {
		return format.Errorf(format.ErrLimit, "union state of %d handles for %d subtasks needs a plan of more than %d pieces", len(everyone.entries), n, maxPieces)
	}
	a := newAssignment(r)
	for i := range r.plan.Subtasks {
		if r.keeps {
			a.keep(i)
		}
		for _, b := range blocks {
			b.assign(a, i, len(r.plan.Subtasks))
		}
		a.addAll(everyone)
		for _, s := range broadcast {
			p := s.parts[i%len(s.parts)]
			a.add(p.old, s.whole(p, format.ModeBroadcast))
		}
		r.plan.Subtasks[i] = a.finish()
	}
	return nil
}

// again returns the states in the order that they have after Flink has filtered
// them, in this order, into a new map.
func again(states []*state) []*state {
	m := java.NewHashMap(0)
	for _, s := range states {
		m.Put(java.HashString(s.name))
	}
	return pick(states, m.Order())
}

func pick[T any](all []T, order []int) []T {
	picked := make([]T, len(order))
	for i, k := range order {
		picked[i] = all[k]
	}
	return picked
}

// block is how one list state is split: every subtask gets base elements, and rem
// of them, counted from start, one more.
type block struct {
	*state
	start, base, rem int64
}

func (r *redistribution) blocks() []block {
	p, start := int64(len(r.plan.Subtasks)), int64(0)
	var blocks []block
	for _, s := range r.states[format.ModeList] {
		b := block{s, start, s.total() / p, s.total() % p}
		start = (start + b.rem) % p
		blocks = append(blocks, b)
	}
	return blocks
}

// assign adds the share of new subtask i of p. An empty part between two parts of
// the share belongs to it.
func (b block) assign(a *assignment, i, p int) {
	turn := (int64(i) - b.start + int64(p)) % int64(p)
	lo := turn*b.base + min(turn, b.rem)
	hi := lo + b.base
	if turn < b.rem {
		hi++
	}
	if lo == hi {
		return
	}
	at := 0
	if lo > 0 {
		// Start after the part with the last element assigned: the subtask before
		// got no more, and stopped there.
		at = sort.Search(len(b.parts), func(k int) bool { return b.parts[k].end >= lo })
		if b.parts[at].end == lo {
			at++
		}
	}
	for ; lo < hi; at++ {
		part := b.parts[at]
		a.add(part.old, b.share(part, format.ModeList, lo, hi))
		lo = part.end
	}
}
