package diff

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/work"
)

// numbers are the numbers of an entry in its unit on both sides; 0: the side does not
// have it.
type numbers [2]int64

// keyedLists are the entries of a state that are listed, by change.
type keyedLists [changes][]listedEntry

// listedEntry is an entry that is listed, until it is read.
type listedEntry struct {
	first int64 // key group of its unit
	numbers
}

// keep adds an entry to the first ones of a change.
func keep(all []numbers, n numbers, how, most int) []numbers {
	if all = append(all, n); len(all) >= 2*most+1024 {
		all = firstOf(all, how, most)
	}
	return all
}

// firstOf returns the first entries of a change: in the order of the new side, if that
// has them.
func firstOf(all []numbers, how, most int) []numbers {
	side := 1
	if how == removed {
		side = 0
	}
	slices.SortFunc(all, func(a, b numbers) int { return cmp.Compare(a[side], b[side]) })
	return all[:min(most, len(all))]
}

// add adds the first entries of the next unit, as long as there are fewer than most.
func (l *keyedLists) add(u work.Unit, st *stateEntries, most int) {
	for how := range l {
		for _, n := range firstOf(st.lists[how], how, most-len(l[how])) {
			l[how] = append(l[how], listedEntry{u.First, n})
		}
	}
}

// wantedEntries are where entries of a unit are listed, by side and number.
type wantedEntries [2]map[int64]**KeyedAt

// list reads the entries that are listed.
func (c *keyedEntries) list() error {
	wanted := map[int64]*wantedEntries{} // by first key group
	for i, st := range c.states {
		listed := slices.Concat(c.lists[i][:]...)
		st.Changes = make([]KeyedChange, len(listed))
		for k, e := range listed {
			w := wanted[e.first]
			if w == nil {
				w = &wantedEntries{{}, {}}
				wanted[e.first] = w
			}
			for side, to := range []**KeyedAt{&st.Changes[k].Old, &st.Changes[k].New} {
				if e.numbers[side] != 0 {
					w[side][e.numbers[side]] = to
				}
			}
		}
	}
	units := slices.DeleteFunc(slices.Clone(c.units), func(u work.Unit) bool { return wanted[u.First] == nil })
	read := func(ctx context.Context, u work.Unit) (struct{}, error) {
		return struct{}{}, both(ctx, c.atOnce, func(ctx context.Context, side int) error { return c.read(ctx, side, u, wanted[u.First][side]) })
	}
	return work.Run(c.d.ctx, work.Options{Jobs: c.jobs}, slices.Values(units), read, func(_ work.Unit, _ struct{}, err error) error { return err })
}

// read reads the wanted entries of a unit on one side.
func (c *keyedEntries) read(ctx context.Context, side int, u work.Unit, wanted map[int64]**KeyedAt) error {
	if len(wanted) == 0 {
		return nil
	}
	err := c.each(ctx, side, u, func(number int64, h *entryHandle, e *format.KeyedEntry) error {
		to, ok := wanted[number]
		if !ok {
			return nil
		}
		found := h.KeyedAt
		found.Entry = e.Clone()
		*to = &found
		if delete(wanted, number); len(wanted) == 0 {
			return errEnough
		}
		return nil
	})
	switch {
	case err != nil && !errors.Is(err, errEnough):
		return err
	case len(wanted) > 0:
		return format.Errorf(format.ErrChanged, "entries of keyed state that were read before are missing")
	}
	return nil
}
