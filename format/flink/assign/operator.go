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

// ErrParallelism is a parallelism that an engine refuses.
var ErrParallelism = errors.New("parallelism not possible")

// maxPieces bounds a plan: union state goes to every subtask, old × new. Flink
// builds as many handles.
const maxPieces = 64 << 20

// Options say by which Flink, and where, a snapshot is restored.
type Options struct {
	// At is the URI of the folder in which the snapshot stands when Flink
	// restores it. A path without a scheme is a local one.
	At string
	// Release is the Flink that restores; zero: a current one.
	Release flink.Release
}

// Plan is what each new subtask is handed of the managed, or of the raw,
// operator state of one operator.
type Plan struct {
	Subtasks []Subtask
	// Undefined says why what Flink does is not certain; "" if it is. But for
	// names that crowd one hash bucket, only the order of pieces is in doubt,
	// not who gets what.
	Undefined string
	// DependsOnPlace: the order of pieces depends on Options.At.
	DependsOnPlace bool
}

// Subtask is what one new subtask is handed, in order. A state's content is the
// concatenation of its shares over the pieces; of a broadcast state, later
// entries replace earlier ones with equal keys.
type Subtask struct {
	Pieces []Piece
	// Lost counts elements that were dealt to this subtask and replaced by
	// those of an equal handle: see the package documentation.
	Lost int64
}

// Piece is what comes of the handle of one old subtask. It has no shares where
// the handle has no states. Slices of shares may be common to several pieces:
// do not write to them.
type Piece struct {
	Old    int
	Shares []Share
}

// Share is the elements First … First+Count-1 of a state of an old handle.
// Count may be 0: Flink opens the handle all the same. A broadcast state has one
// element, its map.
type Share struct {
	State        int // index in the old handle's States
	Name         string
	Mode         format.Mode
	First, Count int64
}

// Operator deals out operator state; managed and raw are dealt each on its own.
// old[i] is the handle of old subtask i, nil where it is finished, missing or
// without state.
func Operator(old []*format.OperatorHandle, newParallelism int, o Options) (*Plan, error) {
	if err := checkParallelism(newParallelism); err != nil {
		return nil, err
	}
	d := &dealer{plan: &Plan{Subtasks: make([]Subtask, newParallelism)}, rules: o.Release.Facts()}
	same := len(old) == newParallelism
	d.keeps = same && o.Release.Facts().KeepsLists
	if err := d.read(old, o.At); err != nil {
		return nil, err
	}
	if same && d.keep() {
		return d.plan, nil
	}
	if err := d.deal(); err != nil {
		return nil, err
	}
	return d.plan, nil
}

func checkParallelism(p int) error {
	if p < 1 || p > format.MaxKeyGroups {
		return fmt.Errorf("%w: %d is not between 1 and %d", ErrParallelism, p, format.MaxKeyGroups)
	}
	return nil
}

// dealer makes one plan.
type dealer struct {
	plan    *Plan
	rules   flink.Facts
	keeps   bool // lists stay where they are
	olds    []oldSubtask
	classes int // of equal handles
	states  [format.ModeBroadcast + 1][]*state
	names   [format.ModeBroadcast + 1]map[string]*state
}

// oldSubtask is the handle of an old subtask.
type oldSubtask struct {
	handle
	class  int     // handles of one class are equal for Flink; -1: no handle
	shared bool    // others are in its class
	shares []Share // all of it, in the order of Flink's map
}

// state is one named state of one mode over all old subtasks.
type state struct {
	name  string
	parts []part
}

// part is what one old subtask has of a state. end is the number of elements
// up to and including it.
type part struct {
	old, state int
	n, end     int64
}

func (s *state) total() int64 { return s.parts[len(s.parts)-1].end }

// share is elements [lo, hi) of the state that lie in p.
func (s *state) share(p part, mode format.Mode, lo, hi int64) Share {
	start := p.end - p.n
	lo = max(lo, start)
	return Share{State: p.state, Name: s.name, Mode: mode, First: lo - start, Count: min(hi, p.end) - lo}
}

func (s *state) whole(p part, mode format.Mode) Share {
	return Share{State: p.state, Name: s.name, Mode: mode, Count: p.n}
}

// read looks at the old handles, and groups their states by mode and name in
// the order in which Flink walks them.
func (d *dealer) read(old []*format.OperatorHandle, at string) error {
	type byHandle struct{ class, first int }
	classes := map[handleKey]byHandle{}
	d.olds = make([]oldSubtask, len(old))
	var order [format.ModeBroadcast + 1]*java.HashMap
	for m := range order {
		capacity := 0
		switch {
		case d.keeps && d.rules.FillsBroadcast:
			capacity = expect(len(old)) // as if there were as many names as subtasks
		case d.keeps:
			capacity = len(old)
		}
		order[m], d.names[m] = java.NewHashMap(capacity), map[string]*state{}
	}
	for i, h := range old {
		d.olds[i].class = -1
		if h == nil {
			continue
		}
		sub := &d.olds[i]
		sub.handle = handleOf(h.Data, i, at)
		c, ok := classes[sub.key]
		if !ok {
			c = byHandle{len(classes), i}
			classes[sub.key] = c
		} else {
			sub.shared, d.olds[c.first].shared = true, true
			d.sameBytes(h.Data, old[c.first].Data)
		}
		sub.class = c.class
		for _, k := range d.walk(h.States) {
			st := h.States[k]
			if st.Mode > format.ModeBroadcast {
				return format.At(format.Errorf(format.ErrUnsupported, "%s", st.Mode), "subtask %d/state %q", i, st.Name)
			}
			s := d.state(st.Name.String(), st.Mode, order[st.Mode])
			p := part{old: i, state: k, n: st.Offsets.Len()}
			p.end = p.n
			if len(s.parts) > 0 {
				p.end += s.total()
			}
			s.parts = append(s.parts, p)
			sub.shares = append(sub.shares, s.whole(p, st.Mode))
		}
	}
	d.classes = len(classes)
	for m, names := range order {
		d.crowded(names, "states")
		d.states[m] = pick(d.states[m], names.Order())
	}
	return nil
}

// state finds a state by its name, or adds it.
func (d *dealer) state(name string, mode format.Mode, order *java.HashMap) *state {
	s, known := d.names[mode][name], true
	if s == nil {
		s, known = &state{name: name}, false
		d.names[mode][name] = s
		d.states[mode] = append(d.states[mode], s)
	}
	switch hash := java.HashString(name); {
	case d.rules.PrependsNames:
		order.ComputeIfAbsent(hash, known)
	case !known:
		order.Put(hash)
	}
	return s
}

// walk is the order in which Flink walks a handle's states: that of the map
// into which it read them. Of a name that stands there twice the last counts.
func (d *dealer) walk(states []format.NamedState) []int {
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
	d.crowded(order, "states")
	return pick(at, order.Order())
}

// expect is the capacity that Flink gives a map for n keys.
func expect(n int) int {
	if n <= 2 {
		return n + 1
	}
	return (4*n + 2) / 3
}

// sameBytes notes where Flink would read the wrong bytes: it keeps the first of
// inline handles with equal names, and its bytes.
func (d *dealer) sameBytes(a, b format.Stream) {
	x, ok1 := a.(*format.Inline)
	y, ok2 := b.(*format.Inline)
	if !ok1 || !ok2 || x == y || d.plan.Undefined != "" {
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
		d.undefined("inline handles have one name and different bytes, of which Flink reads only the first")
	}
}

func (d *dealer) crowded(m *java.HashMap, what string) {
	if m.Trees() {
		d.undefined(fmt.Sprintf("more than eight %s share a hash bucket", what))
	}
}

func (d *dealer) undefined(why string) {
	if d.plan.Undefined == "" {
		d.plan.Undefined = why
	}
}

// keep hands every subtask what it had, where an unchanged parallelism lets
// Flink do so; else it does nothing and returns false.
func (d *dealer) keep() bool {
	if len(d.states[format.ModeUnion]) > 0 || len(d.partlyReported()) > 0 {
		return false
	}
	to := 0
	for i, sub := range d.olds {
		if d.rules.KeepsLists {
			to = i
		}
		if sub.class >= 0 {
			d.plan.Subtasks[to].Pieces = []Piece{{Old: i, Shares: sub.shares}}
			to++ // before 1.8 what stood behind a gap moved up
		}
	}
	return true
}

// partlyReported is the broadcast states that some subtasks do not have: at an
// unchanged parallelism Flink spreads them anew.
func (d *dealer) partlyReported() (partly []*state) {
	if !d.rules.FillsBroadcast {
		return nil
	}
	for _, s := range d.states[format.ModeBroadcast] {
		if len(s.parts) < len(d.olds) {
			partly = append(partly, s)
		}
	}
	return partly
}

// deal deals out everything; with lists kept, only union states and the
// broadcast states that some subtasks lack.
func (d *dealer) deal() error {
	union, broadcast := d.states[format.ModeUnion], d.states[format.ModeBroadcast]
	var blocks []block
	switch {
	case !d.keeps:
		blocks = d.blocks()
	case d.rules.FillsBroadcast:
		union, broadcast = again(union), again(d.partlyReported())
	default:
		broadcast = nil
	}
	everyone := newHand(d)
	everyone.records = true
	for _, s := range union {
		for _, p := range s.parts {
			everyone.take(p.old, s.whole(p, format.ModeUnion))
		}
	}
	if n := len(d.plan.Subtasks); n*len(everyone.slots) > maxPieces {
		return format.Errorf(format.ErrLimit, "union state of %d handles for %d subtasks: a plan of more than %d pieces", len(everyone.slots), n, maxPieces)
	}
	h := newHand(d)
	for i := range d.plan.Subtasks {
		if d.keeps {
			h.keep(i)
		}
		for _, b := range blocks {
			b.give(h, i, len(d.plan.Subtasks))
		}
		h.takeAll(everyone)
		for _, s := range broadcast {
			p := s.parts[i%len(s.parts)]
			h.take(p.old, s.whole(p, format.ModeBroadcast))
		}
		d.plan.Subtasks[i] = h.finish()
	}
	return nil
}

// again is the order of states after Flink has filtered them, in this order,
// into a new map.
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

// block is how one list state is dealt: base elements to everyone, and one more
// to rem of them, counted from start.
type block struct {
	*state
	start, base, rem int64
}

func (d *dealer) blocks() []block {
	p, start := int64(len(d.plan.Subtasks)), int64(0)
	var blocks []block
	for _, s := range d.states[format.ModeList] {
		b := block{s, start, s.total() / p, s.total() % p}
		start = (start + b.rem) % p
		blocks = append(blocks, b)
	}
	return blocks
}

// give gives new subtask i of p its share. A part without elements that lies
// on the way belongs to it.
func (b block) give(h *hand, i, p int) {
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
		// Behind the part with the last element given: the one before wanted
		// no more, and did not look further.
		at = sort.Search(len(b.parts), func(k int) bool { return b.parts[k].end >= lo })
		if b.parts[at].end == lo {
			at++
		}
	}
	for ; lo < hi; at++ {
		part := b.parts[at]
		h.take(part.old, b.share(part, format.ModeList, lo, hi))
		lo = part.end
	}
}
