package transform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/bits"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
)

// ElementsDiff compares the elements of one operator state, whichever subtask
// holds them. Of a broadcast state the elements are the different maps that its
// subtasks hold, however many hold each.
type ElementsDiff struct {
	Old, New int64 // elements, or copies of a broadcast state
	// OldDistinct and NewDistinct count different elements; -1 where that was
	// not necessary: more than three million of them, most of which are the same.
	OldDistinct, NewDistinct int64
	// Added and Removed count elements that come more often in one than in the
	// other, as often as they do.
	Added, Removed int64
	// Factor is k > 0 where both hold the same different elements, and the new
	// one each of them k times as often: above 1 it was multiplied.
	Factor int64
	// Divided is k > 0 where the old one holds each k times as often.
	Divided int64
	// Moved are elements that both hold, in other subtasks; -1: not compared.
	Moved int64
	// AddedList and RemovedList are the first of them that differ, each different
	// one once, in the order of their first appearance.
	AddedList, RemovedList []ElementChange
	// Entries is set where a broadcast state was compared by key.
	Entries *EntriesDiff
}

// ElementChange is an element that comes more often on one side, and where it
// comes first there. Of more than three million elements, subtasks are passed
// over that hold the same as one on the other side.
type ElementChange struct {
	Handle   *format.OperatorHandle
	State    int // in Handle.States
	Subtask  int32
	Index    int64
	Old, New int64 // how often it comes

	part int // number of the subtask among those looked at
}

// Value reads the element from the savepoint whose handle it names.
func (c ElementChange) Value(ctx context.Context, in Input) (p []byte, err error) {
	codec, err := in.Codec(c.Handle.Codec)
	if err != nil {
		return nil, err
	}
	cur, err := codec.Elements(ctx, in.Source, c.Handle, c.Handle.States[c.State].Name.String(), c.Index)
	if err != nil {
		return nil, err
	}
	e, err := cur.Next()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		p = e.Clone().Value
	}
	if cerr := cur.Close(); err == nil {
		err = cerr
	}
	return p, err
}

// EntriesDiff compares the entries of a broadcast state: all that any of its
// maps holds.
type EntriesDiff struct {
	Old, New                int64 // different entries
	Added, Removed, Changed int64 // keys
	// Changes are the first of them, in the order of the keys' texts.
	Changes []EntryChange
}

// EntryChange is a key whose entries differ. A key has several values where
// subtasks hold different maps.
type EntryChange struct {
	Key      string
	Old, New []string // values; none: the key is not there
}

// elementSide is a state in one of the savepoints.
type elementSide struct {
	in    Input
	parts []elementPart
	total int64
}

type elementPart struct {
	h       *format.OperatorHandle
	state   int
	subtask int32
}

func newElementSide(in Input, op *format.Operator, st *summary.State) *elementSide {
	s := &elementSide{in: in}
	subs := slices.Clone(op.Subtasks)
	slices.SortStableFunc(subs, func(a, b *format.Subtask) int { return cmp.Compare(a.Index, b.Index) })
	for _, sub := range subs {
		h := operatorHandle(sub, st.Kind == summary.Raw)
		if h == nil {
			continue
		}
		for k := range h.States {
			if h.States[k].Name.String() == st.Name && h.States[k].Offsets.Len() > 0 {
				s.parts = append(s.parts, elementPart{h, k, sub.Index})
				s.total += h.States[k].Offsets.Len()
			}
		}
	}
	return s
}

// each calls f with every element, in the order of the subtasks.
func (s *elementSide) each(ctx context.Context, f func(part int, e format.Element) error) error {
	for i, p := range s.parts {
		codec, err := s.in.Codec(p.h.Codec)
		if err != nil {
			return err
		}
		if err := format.EachElement(ctx, s.in.Source, codec, p.h, p.h.States[p.state].Name.String(), func(e format.Element) error { return f(i, e) }); err != nil {
			return format.At(err, "subtask %d", p.subtask)
		}
	}
	return nil
}

// operatorState compares the elements of a state that both savepoints have.
func (d *differ) operatorState(o *OperatorDiff, st *StateDiff) error {
	kind := DiffElements
	if slices.Contains(positionStates, st.New.Name) && st.New.Kind == summary.List {
		kind = DiffOffsets
	}
	broadcast := st.New.Kind == summary.Broadcast
	if d.o.Ignore[kind] || broadcast != (st.Old.Kind == summary.Broadcast) {
		return nil // a map and elements have nothing in common
	}
	a, b := newElementSide(d.a, o.old, st.Old), newElementSide(d.b, o.new, st.New)
	r, err := d.compare(a, b, broadcast, false)
	if err != nil {
		return err
	}
	st.Elements = r
	if broadcast && r.Added+r.Removed > 0 {
		if err := d.byKey(a, b, r); err != nil {
			return err
		}
	}
	if text := r.text(broadcast); text != "" {
		d.add(kind, o, st, "%s", text)
	}
	if !d.o.Placement || d.o.Ignore[DiffPlacement] {
		return nil
	}
	placed, err := d.compare(a, b, false, true)
	if err != nil {
		return err
	}
	// What has no counterpart in its own subtask and has one elsewhere.
	r.Moved = placed.Added - r.Added
	if broadcast {
		r.Moved = placed.Added
	}
	switch {
	case broadcast && placed.Added+placed.Removed > 0:
		d.add(DiffPlacement, o, st, "subtasks hold other copies: %d before, %d now", r.Old, r.New)
	case r.Moved > 0:
		d.add(DiffPlacement, o, st, "%d of %d elements lie in other subtasks", r.Moved, r.New)
	}
	return nil
}

// text says how elements differ; "" if they do not.
func (r *ElementsDiff) text(broadcast bool) string {
	switch {
	case r.Entries != nil:
		e := r.Entries
		if e.Added+e.Removed+e.Changed == 0 {
			return ""
		}
		return "keys: " + counted(e.Added, "added", e.Removed, "removed", e.Changed, "changed")
	case r.Added+r.Removed == 0:
		return ""
	case broadcast:
		return "different maps: " + counted(r.Added, "added", r.Removed, "removed")
	case r.Factor > 1:
		return fmt.Sprintf("%d → %d elements, %d distinct unchanged: multiplied by %d", r.Old, r.New, r.NewDistinct, r.Factor)
	case r.Divided > 1:
		return fmt.Sprintf("%d → %d elements, %d distinct unchanged: divided by %d", r.Old, r.New, r.NewDistinct, r.Divided)
	case r.OldDistinct >= 0 && r.Removed == 0 && r.OldDistinct == r.NewDistinct:
		return fmt.Sprintf("%d → %d elements, %d distinct unchanged: more copies", r.Old, r.New, r.NewDistinct)
	}
	return "elements: " + counted(r.Added, "added", r.Removed, "removed")
}

// diffParts is into how many parts elements are told apart by their digests.
const diffParts = 1 << 12

func diffPart(d digest) int { return int(d.hi >> 52) }

// maxPairs is how many different elements are in memory at once: as many as
// fill three quarters of a table of 96 MiB.
const maxPairs = 3 << 20

// partSum is the sum of the digests of the elements in a part. Two parts of
// equal sums hold the same elements: the keys of the digests are random, so
// others come to the same sum once in 2^100 or so.
type partSum struct {
	n   int64
	sum digest
}

func (s *partSum) add(d digest) {
	var carry uint64
	s.n++
	s.sum.lo, carry = bits.Add64(s.sum.lo, d.lo, 0)
	s.sum.hi, _ = bits.Add64(s.sum.hi, d.hi, carry)
}

// digestOf is the digest of an element; with placed that of the element in its
// subtask.
func (d *differ) digestOf(s *elementSide, part int, value []byte, placed bool) digest {
	g := d.hash.sum(value)
	if placed {
		x := (uint64(s.parts[part].subtask) + 1) * 0x9e3779b97f4a7c15
		g.hi = (g.hi ^ x) * 0xd6e8feb86659fd93
		g.hi ^= g.hi >> 32
		g.lo += x * 0xd6e8feb86659fd93
	}
	return g
}

// both walks the two sides at the same time.
func (d *differ) both(a, b *elementSide, f func(ctx context.Context, side int, s *elementSide) error) error {
	g, ctx := errgroup.WithContext(d.ctx)
	for i, s := range []*elementSide{a, b} {
		g.Go(func() error {
			err := f(ctx, i, s)
			return format.InFile(err, s.in.Location)
		})
	}
	return g.Wait()
}

// compare compares two multisets, or with set two sets.
func (d *differ) compare(a, b *elementSide, set, placed bool) (*ElementsDiff, error) {
	c := &comparison{d: d, a: a, b: b, set: set, placed: placed}
	c.r = &ElementsDiff{Old: a.total, New: b.total, Moved: -1}
	whole := a.total+b.total <= int64(d.limit)
	if whole {
		for i := range c.todo {
			c.todo[i] = true
		}
	} else if err := c.sums(); err != nil {
		return nil, err
	}
	if err := c.count(); err != nil {
		return nil, err
	}
	if err := c.recount(); err != nil {
		return nil, err
	}
	r := c.r
	if c.skipped {
		r.OldDistinct, r.NewDistinct = -1, -1
	} else if !set {
		r.Factor, r.Divided = max(c.up, 0), max(c.down, 0)
	}
	return r, nil
}

// comparison is one comparison of two sides.
type comparison struct {
	d           *differ
	a, b        *elementSide
	set, placed bool
	r           *ElementsDiff
	todo        [diffParts]bool // parts that may differ
	skipped     bool            // elements that are the same on both sides were not counted
	// out is subtasks that hold the same elements as one of the other side.
	out [2]*elementSide
	// up and down are by how much the count of every element was multiplied, and
	// divided; 0 before the first.
	up, down int64
}

// sums finds the parts that differ, and the subtasks that hold the same as one
// of the other side and need not be looked at again.
func (c *comparison) sums() error {
	var all, bySubtask [2][]partSum
	err := c.d.both(c.a, c.b, func(ctx context.Context, side int, s *elementSide) error {
		sums, whole := make([]partSum, diffParts), make([]partSum, len(s.parts))
		all[side], bySubtask[side] = sums, whole
		var n int64
		err := s.each(ctx, func(part int, e format.Element) error {
			g := c.d.digestOf(s, part, e.Value, c.placed)
			sums[diffPart(g)].add(g)
			whole[part].add(g)
			n = c.d.tick(n, e.Value)
			return nil
		})
		c.d.progress(n)
		return err
	})
	if err != nil {
		return err
	}
	for i := range c.todo {
		c.todo[i] = all[0][i] != all[1][i]
		c.skipped = c.skipped || !c.todo[i] && all[0][i].n > 0
	}
	lo, hi := min(c.a.total, c.b.total), max(c.a.total, c.b.total)
	if c.set || lo == 0 || lo != hi && hi%lo == 0 {
		return nil // how often each comes is what it may be about
	}
	equal := map[partSum][]int{}
	for i, sum := range bySubtask[0] {
		equal[sum] = append(equal[sum], i)
	}
	var out [2]map[int]bool
	out[0], out[1] = map[int]bool{}, map[int]bool{}
	for i, sum := range bySubtask[1] {
		if free := equal[sum]; len(free) > 0 {
			out[0][free[0]], out[1][i] = true, true
			equal[sum] = free[1:]
		}
	}
	if len(out[0]) > 0 {
		c.skipped = true
		c.a, c.out[0] = c.a.split(out[0])
		c.b, c.out[1] = c.b.split(out[1])
	}
	return nil
}

// split parts a side into the subtasks that are in the set, and the others.
func (s *elementSide) split(out map[int]bool) (rest, cut *elementSide) {
	rest, cut = &elementSide{in: s.in}, &elementSide{in: s.in}
	for i, p := range s.parts {
		to := rest
		if out[i] {
			to = cut
		}
		to.parts = append(to.parts, p)
		to.total += p.h.States[p.state].Offsets.Len()
	}
	return rest, cut
}

// recount adds to the counts of listed elements how often they come in the
// subtasks that were passed over.
func (c *comparison) recount() error {
	if c.out[0] == nil || len(c.r.AddedList)+len(c.r.RemovedList) == 0 {
		return nil
	}
	listed := map[digest]*ElementChange{}
	for side, list := range [][]ElementChange{c.r.RemovedList, c.r.AddedList} {
		in := c.a.in
		if side == 1 {
			in = c.b.in
		}
		for i := range list {
			p, err := list[i].Value(c.d.ctx, in)
			if err != nil {
				return format.InFile(err, in.Location)
			}
			listed[c.d.hash.sum(p)] = &list[i]
		}
	}
	for side, s := range c.out {
		var n int64
		err := s.each(c.d.ctx, func(_ int, e format.Element) error {
			n = c.d.tick(n, e.Value)
			x := listed[c.d.hash.sum(e.Value)]
			switch {
			case x == nil:
			case side == 0:
				x.Old++
			default:
				x.New++
			}
			return nil
		})
		c.d.progress(n)
		if err != nil {
			return format.InFile(err, s.in.Location)
		}
	}
	return nil
}

// tick adds up what was read and tells of it now and then.
func (d *differ) tick(n int64, value []byte) int64 {
	if n += int64(len(value)); n >= 1<<20 {
		d.progress(n)
		return 0
	}
	return n
}

// count counts the parts that may differ, as many at once as fit.
func (c *comparison) count() error {
	t := c.d.pairs(c.a.total + c.b.total)
	for lo, width := 0, diffParts; lo < diffParts; {
		if !c.todo[lo] {
			lo++
			continue
		}
		hi := min(lo+width, diffParts)
		full, err := c.pass(t, lo, hi)
		if err != nil {
			return err
		}
		if full {
			if width = (hi - lo) / 2; width == 0 {
				return format.Errorf(format.ErrLimit, "more than %d different elements in one part of %d", c.d.limit, diffParts)
			}
			continue
		}
		added, removed := c.account(t)
		if err := c.list(t, lo, hi, added, removed); err != nil {
			return err
		}
		lo = hi
	}
	return nil
}

// pass counts the elements of the parts from lo to hi; full where they do not
// fit.
func (c *comparison) pass(t *pairTable, lo, hi int) (full bool, err error) {
	t.reset()
	var mu sync.Mutex
	var over atomic.Bool
	err = c.d.both(c.a, c.b, func(ctx context.Context, side int, s *elementSide) error {
		batch := make([]digest, 0, 1024)
		put := func() error {
			mu.Lock()
			defer mu.Unlock()
			for _, g := range batch {
				if err := t.add(g, side); err != nil {
					over.Store(true)
					return err
				}
			}
			batch = batch[:0]
			return nil
		}
		var n int64
		err := s.each(ctx, func(part int, e format.Element) error {
			g := c.d.digestOf(s, part, e.Value, c.placed)
			n = c.d.tick(n, e.Value)
			if p := diffPart(g); p < lo || p >= hi || !c.todo[p] {
				return nil
			}
			if batch = append(batch, g); len(batch) < cap(batch) {
				return nil
			}
			if over.Load() {
				return errPairsFull
			}
			return put()
		})
		c.d.progress(n)
		if err == nil {
			err = put()
		}
		return err
	})
	if over.Load() && !t.tooOften {
		return true, nil
	}
	if t.tooOften {
		return false, format.Errorf(format.ErrLimit, "an element that comes more than %d times", maxPairCount)
	}
	return false, err
}

// account adds up the counts of a pass.
func (c *comparison) account(t *pairTable) (added, removed int64) {
	r := c.r
	for i := range t.slots {
		s := &t.slots[i]
		a, b := int64(s.a), int64(s.b)
		if a+b == 0 {
			continue
		}
		if a > 0 {
			r.OldDistinct++
		}
		if b > 0 {
			r.NewDistinct++
		}
		if c.set {
			a, b = min(a, 1), min(b, 1)
			s.a, s.b = uint32(a), uint32(b)
		}
		added += max(b-a, 0)
		removed += max(a-b, 0)
		c.ratio(a, b)
	}
	r.Added += added
	r.Removed += removed
	return added, removed
}

// ratio notes by how much the count of one element was multiplied or divided.
func (c *comparison) ratio(a, b int64) {
	up, down := int64(uneven), int64(uneven)
	if a > 0 && b%a == 0 {
		up = b / a
	}
	if b > 0 && a%b == 0 {
		down = a / b
	}
	note := func(to *int64, k int64) {
		if k == 0 || *to != 0 && *to != k {
			k = uneven
		}
		*to = k
	}
	note(&c.up, up)
	note(&c.down, down)
}

// uneven is the ratio of counts that have none in common.
const uneven = -1

// list finds the first elements of a pass that differ.
func (c *comparison) list(t *pairTable, lo, hi int, added, removed int64) error {
	n := c.d.o.List
	if n == 0 || c.placed {
		return nil
	}
	for side, s := range []*elementSide{c.a, c.b} {
		to, differing := &c.r.RemovedList, removed
		if side == 1 {
			to, differing = &c.r.AddedList, added
		}
		if differing == 0 {
			continue
		}
		found, err := c.listSide(t, lo, hi, side, s)
		if err != nil {
			return format.InFile(err, s.in.Location)
		}
		*to = firstOf(append(*to, found...), n)
	}
	return nil
}

func (c *comparison) listSide(t *pairTable, lo, hi, side int, s *elementSide) (found []ElementChange, err error) {
	var read int64
	err = s.each(c.d.ctx, func(part int, e format.Element) error {
		read = c.d.tick(read, e.Value)
		g := c.d.digestOf(s, part, e.Value, false)
		if p := diffPart(g); p < lo || p >= hi || !c.todo[p] {
			return nil
		}
		slot := t.find(g)
		old, now := int64(slot.a), int64(slot.b&maxPairCount)
		if slot.b&pairListed != 0 || side == 0 && old <= now || side == 1 && now <= old {
			return nil
		}
		slot.b |= pairListed
		p := s.parts[part]
		found = append(found, ElementChange{p.h, p.state, p.subtask, e.Index, old, now, part})
		if len(found) == c.d.o.List {
			return errEnough
		}
		return nil
	})
	c.d.progress(read)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return found, err
}

var errEnough = errors.New("internal error: enough was found")

// firstOf is the first n of elements, in the order of the subtasks.
func firstOf(all []ElementChange, n int) []ElementChange {
	slices.SortFunc(all, func(x, y ElementChange) int {
		return cmp.Or(cmp.Compare(x.part, y.part), cmp.Compare(x.Index, y.Index))
	})
	return all[:min(len(all), n)]
}

// pairTable counts how often each element comes on two sides: 24 bytes an
// element and a third of that free.
type pairTable struct {
	slots    []pairSlot
	used     int
	limit    int
	tooOften bool
}

type pairSlot struct {
	key  digest
	a, b uint32 // both 0: free. The highest bit of b is pairListed
}

const (
	maxPairCount = 1<<31 - 1
	pairListed   = 1 << 31
)

var errPairsFull = errors.New("internal error: the table of pairs is full")

// pairs gives the table, made large enough for as many of n elements as the
// limit allows, all of which may be different.
func (d *differ) pairs(n int64) *pairTable {
	size := 1024
	for int64(size)*3/4 < min(n, int64(d.limit)) {
		size *= 2
	}
	if d.table == nil || len(d.table.slots) < size {
		d.table = &pairTable{slots: make([]pairSlot, size), limit: d.limit}
	}
	return d.table
}

// find gives the slot of an element, or the free one where it belongs.
func (t *pairTable) find(d digest) *pairSlot {
	mask := uint64(len(t.slots) - 1)
	for i := d.lo & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.a|s.b == 0 || s.key == d {
			return s
		}
	}
}

// add counts an element on a side.
func (t *pairTable) add(d digest, side int) error {
	s := t.find(d)
	if s.a|s.b == 0 {
		if t.used >= t.limit {
			return errPairsFull
		}
		t.used++
		s.key = d
	}
	n := &s.a
	if side == 1 {
		n = &s.b
	}
	if *n == maxPairCount {
		t.tooOften = true
		return errPairsFull
	}
	*n++
	return nil
}

// reset empties the table for the next pass.
func (t *pairTable) reset() {
	clear(t.slots)
	t.used = 0
}

// maxMaps is how many bytes of different maps of a broadcast state are taken
// apart; what is larger is compared as whole maps.
const maxMaps = 64 << 20

// byKey compares a broadcast state whose maps differ by key, where its types
// are known and its maps are not too large for that.
func (d *differ) byKey(a, b *elementSide, r *ElementsDiff) error {
	if d.o.Entries == nil {
		return nil
	}
	var all [2]map[string][]string // values by key
	for side, s := range []*elementSide{a, b} {
		entries, ok, err := d.entriesOf(side, s)
		if err != nil || !ok {
			return format.InFile(err, s.in.Location)
		}
		all[side] = entries
	}
	e := &EntriesDiff{}
	keys := slices.Sorted(maps.Keys(all[0]))
	for k := range all[1] {
		if _, both := all[0][k]; !both {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	for _, k := range keys {
		old, now := all[0][k], all[1][k]
		e.Old += int64(len(old))
		e.New += int64(len(now))
		switch {
		case slices.Equal(old, now):
			continue
		case len(old) == 0:
			e.Added++
		case len(now) == 0:
			e.Removed++
		default:
			e.Changed++
		}
		if len(e.Changes) < d.o.List {
			e.Changes = append(e.Changes, EntryChange{k, old, now})
		}
	}
	r.Entries = e
	return nil
}

// entriesOf is the values of each key in any of the maps, sorted. It is not ok
// where the maps cannot be taken apart.
func (d *differ) entriesOf(side int, s *elementSide) (entries map[string][]string, ok bool, err error) {
	seen := map[digest]bool{}
	entries = map[string][]string{}
	left := int64(maxMaps)
	decoders := make([]func([]byte) ([]MapEntry, error), len(s.parts))
	for i, p := range s.parts {
		if decoders[i], err = d.o.Entries(d.ctx, side, p.h, p.state); err != nil || decoders[i] == nil {
			return nil, false, err
		}
	}
	err = s.each(d.ctx, func(part int, e format.Element) error {
		g := d.hash.sum(e.Value)
		if seen[g] {
			return nil
		}
		seen[g] = true
		if left -= int64(len(e.Value)); left < 0 {
			return errEnough
		}
		pairs, err := decoders[part](e.Value)
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if values := entries[p.Key]; !slices.Contains(values, p.Value) {
				entries[p.Key] = append(values, p.Value)
			}
		}
		return nil
	})
	if errors.Is(err, errEnough) || errors.Is(err, format.ErrUnsupported) {
		return nil, false, nil
	}
	for _, values := range entries {
		slices.Sort(values)
	}
	return entries, true, err
}
