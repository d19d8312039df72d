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
	"strconv"

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
	// AddedMaps and RemovedMaps are maps that copies hold on one side only, by
	// their entries in whatever order: a copy may have lost what others have.
	AddedMaps, RemovedMaps int64
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
		switch {
		case e.Added+e.Removed+e.Changed > 0:
		case e.AddedMaps+e.RemovedMaps > 0:
			return "the same keys, but not in every copy; different maps: " + counted(e.AddedMaps, "added", e.RemovedMaps, "removed")
		default:
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

// maxExact is up to how many elements, of both sides, all different ones are
// counted. Of more, those in parts that are the same are not.
const maxExact = 3 << 20

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
	if d.counter == nil {
		d.counter = newPairCounter(d.records)
	}
	if a.total+b.total <= d.exact {
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
	r.OldDistinct, r.NewDistinct = c.counts.distinct[0], c.counts.distinct[1]
	r.Removed, r.Added = c.counts.more[0], c.counts.more[1]
	if c.skipped {
		r.OldDistinct, r.NewDistinct = -1, -1
	} else if !set {
		r.Factor, r.Divided = max(c.counts.up, 0), max(c.counts.down, 0)
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
	counts      pairCounts
	// out is subtasks that hold the same elements as one of the other side.
	out [2]*elementSide
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
	var parts [diffParts]bool // that have any
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
			g := c.d.hash.sum(p)
			listed[g], parts[diffPart(g)] = &list[i], true
		}
	}
	return c.d.both(c.out[0], c.out[1], func(ctx context.Context, side int, s *elementSide) error {
		var n int64
		err := s.each(ctx, func(_ int, e format.Element) error {
			n = c.d.tick(n, e.Value)
			g := c.d.hash.sum(e.Value)
			if !parts[diffPart(g)] {
				return nil
			}
			switch x := listed[g]; {
			case x == nil:
			case side == 0:
				x.Old++
			default:
				x.New++
			}
			return nil
		})
		c.d.progress(n)
		return err
	})
}

// tick adds up what was read and tells of it now and then.
func (d *differ) tick(n int64, value []byte) int64 {
	if n += int64(len(value)); n >= 1<<20 {
		d.progress(n)
		return 0
	}
	return n
}

// count counts the parts that may differ, as many in a pass as fit.
func (c *comparison) count() error {
	for lo, width := 0, diffParts; lo < diffParts; {
		if !c.todo[lo] {
			lo++
			continue
		}
		hi, err := c.pass(lo, min(lo+width, diffParts))
		if err != nil {
			return err
		}
		// The first n elements that differ are spread over all parts at random:
		// that so many of them are in one happens once in 2^200 runs or so.
		n := min(c.d.o.List, 64+4*c.d.o.List/diffParts)
		if c.placed {
			n = 0
		}
		counts, err := c.d.counter.count(c.set, n)
		if err != nil {
			return err
		}
		c.counts.merge(counts)
		if err := c.list(counts); err != nil {
			return err
		}
		lo, width = hi, c.d.counter.next()
	}
	return nil
}

// pass collects the elements of the parts from lo to hi, and says up to which
// they fitted.
func (c *comparison) pass(lo, hi int) (int, error) {
	counter := c.d.counter
	counter.start(lo, hi, &c.todo, c.a.total+c.b.total)
	err := c.d.both(c.a, c.b, func(ctx context.Context, side int, s *elementSide) error {
		batch := make([]digest, 0, 1024)
		put := func() error {
			err := counter.add(side, batch)
			batch = batch[:0]
			return err
		}
		var n int64
		err := s.each(ctx, func(part int, e format.Element) error {
			n = c.d.tick(n, e.Value)
			if batch = append(batch, c.d.digestOf(s, part, e.Value, c.placed)); len(batch) < cap(batch) {
				return nil
			}
			return put()
		})
		c.d.progress(n)
		if err == nil {
			err = put()
		}
		return err
	})
	return counter.hi, err
}

// list finds the first elements of a pass that differ.
func (c *comparison) list(counts *pairCounts) error {
	if c.placed || c.d.o.List == 0 {
		return nil
	}
	return c.d.both(c.a, c.b, func(ctx context.Context, side int, s *elementSide) error {
		if counts.more[side] == 0 {
			return nil
		}
		to := &c.r.RemovedList
		if side == 1 {
			to = &c.r.AddedList
		}
		found, err := c.listSide(ctx, s, &c.d.counter.first[side], *to)
		*to = firstOf(append(*to, found...), c.d.o.List)
		return err
	})
}

// listSide goes through a side until it has met enough of the elements in first,
// or all that come before the last one listed so far.
func (c *comparison) listSide(ctx context.Context, s *elementSide, first *[diffParts][]pairSlot, listed []ElementChange) (found []ElementChange, err error) {
	var read int64
	left := 0
	for _, p := range first {
		left += len(p)
	}
	left = min(left, c.d.o.List)
	last := ElementChange{part: len(s.parts)}
	if n := len(listed); n == c.d.o.List {
		last = listed[n-1]
	}
	err = s.each(ctx, func(part int, e format.Element) error {
		if len(found) == left || part > last.part || part == last.part && e.Index > last.Index {
			return errEnough
		}
		read = c.d.tick(read, e.Value)
		g := c.d.digestOf(s, part, e.Value, false)
		of := &first[diffPart(g)]
		for i, x := range *of {
			if x.key == g.lo {
				// One that is there twice is listed once.
				(*of)[i] = (*of)[len(*of)-1]
				*of = (*of)[:len(*of)-1]
				p := s.parts[part]
				found = append(found, ElementChange{p.h, p.state, p.subtask, e.Index, int64(x.n[0]), int64(x.n[1]), part})
				break
			}
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
	var copies [2]map[digest]bool
	for side, s := range []*elementSide{a, b} {
		entries, copiesOf, ok, err := d.entriesOf(side, s)
		if err != nil || !ok {
			return format.InFile(err, s.in.Location)
		}
		all[side], copies[side] = entries, copiesOf
	}
	e := &EntriesDiff{AddedMaps: without(copies[1], copies[0]), RemovedMaps: without(copies[0], copies[1])}
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

// without counts what is in the one set and not in the other.
func without(a, b map[digest]bool) (n int64) {
	for d := range a {
		if !b[d] {
			n++
		}
	}
	return n
}

// entriesOf is the values of each key in any of the maps, sorted, and the
// different maps by the sums of their entries. It is not ok where the maps cannot
// be taken apart.
func (d *differ) entriesOf(side int, s *elementSide) (entries map[string][]string, copies map[digest]bool, ok bool, err error) {
	seen := map[digest]bool{}
	copies = map[digest]bool{}
	entries = map[string][]string{}
	left := int64(maxMaps)
	decoders := make([]func([]byte) ([]MapEntry, error), len(s.parts))
	for i, p := range s.parts {
		if decoders[i], err = d.o.Entries(d.ctx, side, p.h, p.state); err != nil || decoders[i] == nil {
			return nil, nil, false, err
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
		var sum partSum
		for _, p := range pairs {
			one := d.hash.pieces()
			one.add(strconv.AppendInt(nil, int64(len(p.Key)), 10))
			one.add([]byte(" " + p.Key + p.Value))
			sum.add(one.sum())
			if values := entries[p.Key]; !slices.Contains(values, p.Value) {
				entries[p.Key] = append(values, p.Value)
			}
		}
		copies[sum.sum] = true
		return nil
	})
	if errors.Is(err, errEnough) || errors.Is(err, format.ErrUnsupported) {
		return nil, nil, false, nil
	}
	for _, values := range entries {
		slices.Sort(values)
	}
	return entries, copies, true, err
}
