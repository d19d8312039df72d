package diff

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/tally"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/transform/internal/elements"
)

// Elements is the comparison of the elements of one operator state, in any
// subtask. The elements of a broadcast state are the distinct maps that its
// subtasks hold.
type Elements struct {
	Old, New int64 // elements, or replicas of a broadcast state
	// OldDistinct and NewDistinct count distinct elements; -1 if not counted, because
	// there are more than three million and most are equal.
	OldDistinct, NewDistinct int64
	// Added and Removed count the occurrences that one side has more than the other.
	Added, Removed int64
	// Factor is k > 0 if both hold the same distinct elements, and the new one each k
	// times as often: above 1 the state was multiplied.
	Factor int64
	// Divided is k > 0 if the old one holds each k times as often.
	Divided int64
	// Moved is the number of elements that both hold in different subtasks; -1 if not
	// compared.
	Moved int64
	// AddedList and RemovedList are the first distinct elements that differ, in the
	// order of their first occurrence.
	AddedList, RemovedList []ElementChange
	// Entries is set if a broadcast state was compared by key.
	Entries *Entries
}

// ElementChange is an element that occurs more often on one side, with its first
// occurrence there. With more than three million elements, subtasks with the same
// elements as one of the other side are skipped.
type ElementChange struct {
	Handle   *format.OperatorHandle
	State    int // in Handle.States
	Subtask  int32
	Index    int64
	Old, New int64 // number of occurrences
}

// Value reads the element from the savepoint whose handle it names.
func (c ElementChange) Value(ctx context.Context, in format.View) (p []byte, err error) {
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

// elementSide is a state in one of the savepoints.
type elementSide struct {
	*elements.Reader
	parts []elements.Part
	total int64
}

func newElementSide(r *elements.Reader, op *format.Operator, st *summary.State) *elementSide {
	s := &elementSide{Reader: r}
	subs := slices.Clone(op.Subtasks)
	slices.SortStableFunc(subs, func(a, b *format.Subtask) int { return cmp.Compare(a.Index, b.Index) })
	for _, sub := range subs {
		h := operatorHandle(sub, st.Kind == summary.Raw)
		if h == nil {
			continue
		}
		for k := range h.States {
			if h.States[k].Name.String() == st.Name && h.States[k].Offsets.Len() > 0 {
				s.parts = append(s.parts, elements.Part{Handle: h, State: k, Subtask: sub.Index})
				s.total += h.States[k].Offsets.Len()
			}
		}
	}
	return s
}

// at says in an error which subtask it is of.
func (s *elementSide) at(part int, err error) error {
	return format.At(err, "subtask %d", s.parts[part].Subtask)
}

// operatorState compares the elements of a state that both savepoints have.
func (d *differ) operatorState(o *Operator, st *State) error {
	kind := KindElements
	if connector.IsPositions(st.New.Name) && st.New.Kind == summary.List {
		kind = KindOffsets
	}
	broadcast := st.New.Kind == summary.Broadcast
	if d.o.Ignore[kind] || broadcast != (st.Old.Kind == summary.Broadcast) {
		return nil // a map cannot be compared with elements
	}
	a, b := newElementSide(d.readers[0], o.oldRead, st.Old), newElementSide(d.readers[1], o.newRead, st.New)
	r, err := d.compare(a, b, broadcast, false)
	if err != nil {
		return err
	}
	st.Elements = r
	if a.total != st.Old.Elements || b.total != st.New.Elements { // not all were read
		r.OldDistinct, r.NewDistinct = -1, -1
	}
	if broadcast && r.Added+r.Removed > 0 {
		if err := d.byKey(a, b, r); err != nil {
			return err
		}
	}
	if text := r.text(broadcast); text != "" {
		d.add(kind, o, st, "%s", text)
	}
	if !d.o.Placement || d.o.Ignore[KindPlacement] {
		return nil
	}
	placed, err := d.compare(a, b, false, true)
	if err != nil {
		return err
	}
	// Elements without a counterpart in their own subtask that have one elsewhere.
	r.Moved = placed.Added - r.Added
	if broadcast {
		r.Moved = placed.Added
	}
	switch {
	case broadcast && placed.Added+placed.Removed > 0:
		d.add(KindPlacement, o, st, "subtasks hold different replicas: %d before, %d now", r.Old, r.New)
	case r.Moved > 0:
		d.add(KindPlacement, o, st, "%d of %d elements are in other subtasks", r.Moved, r.New)
	}
	return nil
}

// text describes how elements differ; "" if they do not.
func (r *Elements) text(broadcast bool) string {
	switch {
	case r.Entries != nil:
		e := r.Entries
		switch {
		case e.Added+e.Removed+e.Changed > 0:
		case e.AddedMaps+e.RemovedMaps > 0:
			return "the same keys, but not in every replica; different maps: " + counted(e.AddedMaps, "added", e.RemovedMaps, "removed")
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

// maxExact is the number of elements of both sides up to which all distinct ones
// are counted. Above it, elements in equal parts are not counted.
const maxExact = 3 << 20

// diffParts is the number of parts into which elements are divided by their
// digests, to find the equal parts.
const diffParts = 1 << 12

func diffPart(d hash128.Digest) int { return int(d.Hi >> 52) }

// The sums of a unit take 100 KB, however many elements it has; sumNotMerged bounds what
// large elements take.
const (
	sumBytes     = 4 << 20
	sumElements  = 1 << 16
	sumNotMerged = 128 << 20
)

// digest returns the digest under which an element is compared, and whether it is:
// only those in parts that may differ are. With placed, equal elements in different
// subtasks have different digests.
func (c *comparison) digest(u work.Unit, g hash128.Digest) (hash128.Digest, bool) {
	if c.placed {
		x := (uint64(u.Handle.Index) + 1) * 0x9e3779b97f4a7c15
		g.Hi = (g.Hi ^ x) * 0xd6e8feb86659fd93
		g.Hi ^= g.Hi >> 32
		g.Lo += x * 0xd6e8feb86659fd93
	}
	return g, c.todo[diffPart(g)]
}

// both calls f for the two sides, at the same time unless there is one job, and with
// the jobs of each.
func (d *differ) both(a, b *elementSide, f func(ctx context.Context, side int, s *elementSide, o elements.Options) error) error {
	jobs := elements.Workers(d.o.Jobs)
	sides := [2]*elementSide{a, b}
	return both(d.ctx, jobs > 1, func(ctx context.Context, side int) error {
		s := sides[side]
		err := f(ctx, side, s, elements.Options{Jobs: max((jobs+1-side)/2, 1), At: s.at})
		return format.InFile(err, s.In.Location)
	})
}

// both calls f for side 0 and side 1, at the same time or one after the other. Which
// error is returned does not depend on which comes first.
func both(ctx context.Context, atOnce bool, f func(ctx context.Context, side int) error) error {
	if !atOnce {
		if err := f(ctx, 0); err != nil {
			return err
		}
		return f(ctx, 1)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var errs [2]error
	var wg sync.WaitGroup
	for side := range errs {
		wg.Go(func() {
			if errs[side] = f(ctx, side); errs[side] != nil && side == 0 {
				cancel()
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs[0], errs[1])
}

// compare compares two multisets, or with set two sets.
func (d *differ) compare(a, b *elementSide, set, placed bool) (*Elements, error) {
	c := &comparison{d: d, a: a, b: b, set: set, placed: placed}
	c.r = &Elements{Old: a.total, New: b.total, Moved: -1}
	for i := range c.todo {
		c.todo[i] = true
	}
	if a.total+b.total > d.exact {
		if err := c.sums(); err != nil {
			return nil, err
		}
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

// comparison is the state of a comparison of two sides.
type comparison struct {
	d           *differ
	a, b        *elementSide
	set, placed bool
	r           *Elements
	todo        [diffParts]bool // parts that may differ
	skipped     bool            // elements that are the same on both sides were not counted
	counts      pairCounts
	// out is the subtasks that hold the same elements as one of the other side.
	out  [2]*elementSide
	free sync.Pool // of *partSums
}

// partSums is the sums of elements in each part of the digests, and of all.
type partSums struct {
	parts [diffParts]hash128.Multiset
	all   hash128.Multiset
}

func (s *partSums) merge(o *partSums) {
	for i := range s.parts {
		s.parts[i].Merge(o.parts[i])
	}
	s.all.Merge(o.all)
}

// sum runs a unit of work.SumElements.
func (c *comparison) sum(ctx context.Context, r *elements.Reader, u work.Unit) (*partSums, error) {
	sums, ok := c.free.Get().(*partSums)
	if !ok {
		sums = &partSums{}
	}
	*sums = partSums{}
	err := r.Each(ctx, u, func(_ format.Element, g hash128.Digest) {
		g, _ = c.digest(u, g)
		sums.parts[diffPart(g)].Add(g)
		sums.all.Add(g)
	})
	return sums, err
}

// sums finds the parts that differ, and the subtasks that hold the same elements
// as one of the other side and need not be read again.
func (c *comparison) sums() error {
	var all [2]partSums
	var bySubtask [2][]hash128.Multiset
	err := c.d.both(c.a, c.b, func(ctx context.Context, side int, s *elementSide, o elements.Options) error {
		bySubtask[side] = make([]hash128.Multiset, len(s.parts))
		o.Job, o.Size, o.Most, o.Bytes = work.SumElements, sumBytes, sumElements, sumNotMerged
		run := func(ctx context.Context, u work.Unit) (*partSums, error) { return c.sum(ctx, s.Reader, u) }
		return elements.Run(ctx, s.Reader, s.parts, o, run, func(part int, sums *partSums) error {
			all[side].merge(sums)
			bySubtask[side][part].Merge(sums.all)
			c.free.Put(sums)
			return nil
		})
	})
	if err != nil {
		return err
	}
	for i := range c.todo {
		c.todo[i] = all[0].parts[i] != all[1].parts[i]
		c.skipped = c.skipped || !c.todo[i] && all[0].parts[i].N > 0
	}
	lo, hi := min(c.a.total, c.b.total), max(c.a.total, c.b.total)
	if c.set || lo == 0 || lo != hi && hi%lo == 0 {
		return nil // the counts of elements may be the difference
	}
	equal := map[hash128.Multiset][]int{}
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

// split divides a side into the subtasks that are in the set, and the others.
func (s *elementSide) split(out map[int]bool) (rest, cut *elementSide) {
	rest, cut = &elementSide{Reader: s.Reader}, &elementSide{Reader: s.Reader}
	for i, p := range s.parts {
		to := rest
		if out[i] {
			to = cut
		}
		to.parts = append(to.parts, p)
		to.total += p.Len()
	}
	return rest, cut
}

// recount adds the occurrences of listed elements in skipped subtasks to their
// counts.
func (c *comparison) recount() error {
	if c.out[0] == nil || len(c.r.AddedList)+len(c.r.RemovedList) == 0 {
		return nil
	}
	listed := map[hash128.Digest]*ElementChange{}
	var parts [diffParts]bool // that have any
	for side, list := range [][]ElementChange{c.r.RemovedList, c.r.AddedList} {
		in := c.d.readers[side].In
		for i := range list {
			p, err := list[i].Value(c.d.ctx, in)
			if err != nil {
				return format.InFile(err, in.Location)
			}
			g := c.d.hash.Sum(p)
			listed[g], parts[diffPart(g)] = &list[i], true
		}
	}
	isListed := func(_ work.Unit, g hash128.Digest) (hash128.Digest, bool) {
		return g, parts[diffPart(g)] && listed[g] != nil
	}
	return c.d.both(c.out[0], c.out[1], func(ctx context.Context, side int, s *elementSide, o elements.Options) error {
		return s.Count(ctx, s.parts, o, isListed, func(_ int, e tally.Element) error {
			if side == 0 {
				listed[e.Digest].Old++
			} else {
				listed[e.Digest].New++
			}
			return nil
		})
	})
}

// count counts the elements in parts that may differ.
func (c *comparison) count() (err error) {
	var counters [2]*tally.Counter
	for side := range counters {
		counters[side] = tally.New(tally.Options{Memory: c.d.memory / 2, Dir: c.d.o.TempDir})
		defer func() { err = cmp.Or(err, counters[side].Close()) }()
	}
	err = c.d.both(c.a, c.b, func(ctx context.Context, side int, s *elementSide, o elements.Options) error {
		return s.Count(ctx, s.parts, o, c.digest, func(_ int, e tally.Element) error { return counters[side].Add(e) })
	})
	if err == nil {
		listed := 0
		if !c.placed {
			listed = c.d.o.List
		}
		err = c.pairs(counters, listed)
	}
	return err
}

// pairs compares how often each element occurs on the two sides, and lists the
// first of those that differ.
func (c *comparison) pairs(counters [2]*tally.Counter, listed int) error {
	var lists [2]firstElements
	for side := range lists {
		lists[side].most = listed
	}
	pairs := 0
	err := tally.Pair(counters[0], counters[1], func(x, y *tally.Entry) error {
		if pairs++; pairs%(1<<16) == 0 {
			if err := c.d.ctx.Err(); err != nil {
				return err
			}
		}
		var n [2]int64
		for side, e := range []*tally.Entry{x, y} {
			if e != nil {
				n[side] = int64(e.Count)
			}
		}
		if c.set {
			n = [2]int64{min(n[0], 1), min(n[1], 1)}
		}
		c.counts.add(n)
		switch {
		case n[0] > n[1]:
			lists[0].add(x.First, n)
		case n[1] > n[0]:
			lists[1].add(y.First, n)
		}
		return nil
	})
	if err != nil {
		return err
	}
	c.r.RemovedList, c.r.AddedList = c.a.changes(lists[0].all()), c.b.changes(lists[1].all())
	return nil
}

// pairCounts holds the counts of a comparison.
type pairCounts struct {
	distinct [2]int64
	// more is the number of occurrences that a side has more than the other.
	more [2]int64
	// up and down are the factors by which the count of every element was multiplied
	// and divided; 0 before the first.
	up, down int64
}

// add counts a distinct element with n occurrences on each side.
func (c *pairCounts) add(n [2]int64) {
	for side := range n {
		if n[side] > 0 {
			c.distinct[side]++
		}
		c.more[side] += max(n[side]-n[1-side], 0)
	}
	c.up, c.down = ratioOf(c.up, n[1], n[0]), ratioOf(c.down, n[0], n[1])
}

// uneven is the ratio of counts without a common ratio.
const uneven = -1

// ratioOf returns the ratio of all counts so far if the ratio of a to b is equal,
// else uneven. 0 means no counts so far.
func ratioOf(soFar, a, b int64) int64 {
	switch {
	case a == 0 || b == 0 || a%b != 0 || soFar != 0 && soFar != a/b:
		return uneven
	}
	return a / b
}

// firstElements keeps the elements with the smallest numbers.
type firstElements struct {
	most  int
	found []firstElement
	past  int64 // if not 0: no element of this number or a larger one is of them
}

type firstElement struct {
	number int64
	n      [2]int64 // occurrences on each side
}

func (f *firstElements) add(number int64, n [2]int64) {
	if f.most == 0 || f.past > 0 && number >= f.past {
		return
	}
	if f.found = append(f.found, firstElement{number, n}); len(f.found) >= 2*f.most+1024 {
		f.found = f.all()
		f.past = f.found[f.most-1].number
	}
}

// all returns them in order.
func (f *firstElements) all() []firstElement {
	slices.SortFunc(f.found, func(x, y firstElement) int { return cmp.Compare(x.number, y.number) })
	return f.found[:min(len(f.found), f.most)]
}

// changes finds elements by their numbers, which ascend.
func (s *elementSide) changes(found []firstElement) []ElementChange {
	var all []ElementChange
	part, start := 0, int64(0)
	for _, f := range found {
		for f.number >= start+s.parts[part].Len() {
			start += s.parts[part].Len()
			part++
		}
		p := s.parts[part]
		all = append(all, ElementChange{p.Handle, p.State, p.Subtask, f.number - start, f.n[0], f.n[1]})
	}
	return all
}
