package assign

import (
	"slices"

	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// hand collects what one new subtask is given: Flink's map from file handles to
// what is taken of each.
type hand struct {
	d     *dealer
	slots []slot  // in the order of their making
	at    []int32 // class of handles -> 1 + index of its slot
	own   int     // the old subtask whose handle is kept whole; -1: none
	lost  int64
	// records: no share replaces another, so that the hand can be given to
	// others as a whole.
	records bool
}

// slot is one entry of the map.
type slot struct {
	old    int // the first to have come
	shares []Share
	// Where other handles equal this one: whose each share is, and which is
	// that of a name.
	olds []int
	name map[string]int
}

func newHand(d *dealer) *hand { return &hand{d: d, at: make([]int32, d.classes), own: -1} }

// keep takes all of the handle that the subtask had.
func (h *hand) keep(i int) {
	sub := &h.d.olds[i]
	if sub.class < 0 {
		return
	}
	s := h.slot(i)
	if !sub.shared {
		s.shares, h.own = sub.shares, i
		return
	}
	for _, share := range sub.shares {
		h.take(i, share)
	}
}

// slot is the entry for a handle, made if need be.
func (h *hand) slot(old int) *slot {
	at := &h.at[h.d.olds[old].class]
	if *at == 0 {
		h.slots = append(h.slots, slot{old: old})
		*at = int32(len(h.slots))
	}
	return &h.slots[*at-1]
}

// take is given a share of an old handle.
func (h *hand) take(old int, share Share) {
	if old == h.own {
		return // it has it
	}
	s := h.slot(old)
	if !h.d.olds[old].shared {
		s.shares = append(s.shares, share)
		return
	}
	if s.name == nil {
		s.name = map[string]int{}
	}
	i, ok := s.name[share.Name]
	switch {
	case !ok || h.records:
		s.name[share.Name] = len(s.shares)
		s.shares, s.olds = append(s.shares, share), append(s.olds, old)
	case s.olds[i] != old || s.shares[i] != share:
		h.lost += s.shares[i].Count
		s.shares[i], s.olds[i] = share, old
	}
}

// takeAll is given what all are given. Shares of a handle of which the subtask
// has nothing yet are not copied: union state is old times new.
func (h *hand) takeAll(all *hand) {
	for _, s := range all.slots {
		sub := &h.d.olds[s.old]
		if !sub.shared && h.at[sub.class] == 0 {
			h.slot(s.old).shares = slices.Clip(s.shares)
			continue
		}
		for k, share := range s.shares {
			old := s.old
			if sub.shared {
				old = s.olds[k]
			}
			h.take(old, share)
		}
	}
}

// finish is the subtask, in the order of the map; the hand is empty after it.
func (h *hand) finish() Subtask {
	order := java.NewHashMap(0)
	for _, s := range h.slots {
		sub := &h.d.olds[s.old]
		order.Put(sub.hash)
		h.at[sub.class] = 0
		if len(h.slots) > 1 {
			h.d.undefined(sub.unknown)
			h.d.plan.DependsOnPlace = h.d.plan.DependsOnPlace || sub.relative
		}
	}
	h.d.crowded(order, "handles")
	sub := Subtask{Pieces: make([]Piece, 0, len(h.slots)), Lost: h.lost}
	for _, i := range order.Order() {
		sub.Pieces = h.slots[i].pieces(sub.Pieces)
	}
	clear(h.slots)
	h.slots, h.own, h.lost = h.slots[:0], -1, 0
	return sub
}

// pieces appends the pieces of an entry: one, or several where handles that are
// equal for Flink stand in it together.
func (s *slot) pieces(to []Piece) []Piece {
	if s.olds == nil {
		return append(to, Piece{Old: s.old, Shares: s.shares})
	}
	first := len(to)
	for k, share := range s.shares {
		if n := len(to); n == first || to[n-1].Old != s.olds[k] {
			to = append(to, Piece{Old: s.olds[k]})
		}
		last := &to[len(to)-1]
		last.Shares = append(last.Shares, share)
	}
	return to
}
