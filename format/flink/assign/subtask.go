package assign

import (
	"slices"

	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// assignment collects the state that one new subtask receives: Flink's map from
// file handles to the shares of each.
type assignment struct {
	r       *redistribution
	entries []entry // in the order of insertion
	index   []int32 // class of handles -> 1 + index of its entry
	own     int     // the old subtask whose handle is kept whole; -1: none
	lost    int64
	// shared: the assignment is added to others as a whole, so its shares do not
	// replace each other.
	shared bool
}

// entry is an entry of the map.
type entry struct {
	old    int // the first old subtask that was added
	shares []Share
	// Set if other handles equal this one: the old subtask of each share, and the
	// index of the share of a name.
	olds   []int
	byName map[string]int
}

func newAssignment(r *redistribution) *assignment {
	return &assignment{r: r, index: make([]int32, r.classes), own: -1}
}

// keep adds all of the handle that old subtask i had.
func (a *assignment) keep(i int) {
	sub := &a.r.olds[i]
	if sub.class < 0 {
		return
	}
	e := a.entry(i)
	if !sub.shared {
		e.shares, a.own = sub.shares, i
		return
	}
	for _, share := range sub.shares {
		a.add(i, share)
	}
}

// entry returns the entry of the handle of an old subtask, which it inserts if
// necessary.
func (a *assignment) entry(old int) *entry {
	at := &a.index[a.r.olds[old].class]
	if *at == 0 {
		a.entries = append(a.entries, entry{old: old})
		*at = int32(len(a.entries))
	}
	return &a.entries[*at-1]
}

// add adds a share of an old handle.
func (a *assignment) add(old int, share Share) {
	if old == a.own {
		return // already added
	}
	e := a.entry(old)
	if !a.r.olds[old].shared {
		e.shares = append(e.shares, share)
		return
	}
	if e.byName == nil {
		e.byName = map[string]int{}
	}
	i, ok := e.byName[share.Name]
	switch {
	case !ok || a.shared:
		e.byName[share.Name] = len(e.shares)
		e.shares, e.olds = append(e.shares, share), append(e.olds, old)
	case e.olds[i] != old || e.shares[i] != share:
		a.lost += e.shares[i].Count
		e.shares[i], e.olds[i] = share, old
	}
}

// addAll adds the state that every subtask receives. The shares of a handle that is
// not yet in the assignment are not copied, because union state is old × new
// shares.
func (a *assignment) addAll(all *assignment) {
	for _, e := range all.entries {
		sub := &a.r.olds[e.old]
		if !sub.shared && a.index[sub.class] == 0 {
			a.entry(e.old).shares = slices.Clip(e.shares)
			continue
		}
		for k, share := range e.shares {
			old := e.old
			if sub.shared {
				old = e.olds[k]
			}
			a.add(old, share)
		}
	}
}

// finish returns the subtask, in the order of the map, and empties the assignment.
func (a *assignment) finish() Subtask {
	order := java.NewHashMap(0)
	for _, e := range a.entries {
		sub := &a.r.olds[e.old]
		order.Put(sub.hash)
		a.index[sub.class] = 0
		if len(a.entries) > 1 {
			a.r.undefined(sub.unknown)
			a.r.plan.DependsOnLocation = a.r.plan.DependsOnLocation || sub.relative
		}
	}
	a.r.checkOrder(order, "handles")
	sub := Subtask{Pieces: make([]Piece, 0, len(a.entries)), Lost: a.lost}
	for _, i := range order.Order() {
		sub.Pieces = a.entries[i].pieces(sub.Pieces)
	}
	clear(a.entries)
	a.entries, a.own, a.lost = a.entries[:0], -1, 0
	return sub
}

// pieces appends the pieces of an entry: one, or several if handles that are equal
// for Flink share the entry.
func (e *entry) pieces(to []Piece) []Piece {
	if e.olds == nil {
		return append(to, Piece{Old: e.old, Shares: e.shares})
	}
	first := len(to)
	for k, share := range e.shares {
		if n := len(to); n == first || to[n-1].Old != e.olds[k] {
			to = append(to, Piece{Old: e.olds[k]})
		}
		last := &to[len(to)-1]
		last.Shares = append(last.Shares, share)
	}
	return to
}
