package diff

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/tally"
)

// KeyedState is the comparison of the entries of one keyed state. An entry is
// identified by its state, key, namespace and map key, a timer also by its time, and
// not by its key group or subtask.
type KeyedState struct {
	Name, Kind              string
	Added, Removed, Changed int64
	// Changes are the first that are removed, changed and added, up to Options.List of
	// each, in the order of reading.
	Changes []KeyedChange
}

// KeyedChange is an entry that differs; Old or New is nil if the side does not have it.
type KeyedChange struct{ Old, New *KeyedAt }

// KeyedAt is an entry and where it is.
type KeyedAt struct {
	format.Place
	Handle format.KeyedHandle
	Entry  format.KeyedEntry // a copy
}

// keyedEntries compares entries, of all key groups or of some.
type keyedEntries struct {
	d      *differ
	op     *Operator
	slots  []format.Slot
	groups []int32 // ascending; nil: all
	states []*KeyedState
	ids    map[[2]string]int  // of states, by name and kind
	lists  []keyedLists       // by state
	wires  [2]map[string]bool // state meta info and serializer snapshots of keys of each side
}

// keyedLists are the numbers of the entries of a state that are listed: on the side
// that has them, of changed entries on both.
type keyedLists struct{ removed, changed, added []numbers }

// numbers are the numbers of an entry on both sides; 0: the side does not have it.
type numbers [2]int64

// A number of an entry has its state in the upper bits.
const stateBits = 48

// entries compares the entries of two sides, and reports whether their states are
// described alike. why is why they cannot be compared.
//
// An entry is 40 bytes: a digest of what identifies it, and 48 bits of the digest of its
// value, with random keys. So a change is overlooked with a probability of 2^-48.
func (d *differ) entries(op *Operator, slots []format.Slot, groups []int32) (states []*KeyedState, alike bool, why, err error) {
	c := &keyedEntries{d: d, op: op, slots: slots, groups: groups, ids: map[[2]string]int{}}
	// States have the same numbers on both sides.
	for side := range 2 {
		if why := c.describe(side); why != nil {
			return nil, false, why, d.ctx.Err()
		}
	}
	var counters [2]*tally.Counter
	for side := range counters {
		counters[side] = tally.New(tally.Options{Memory: d.memory / 2, Dir: d.o.TempDir})
		defer func() { err = cmp.Or(err, counters[side].Close()) }()
	}
	g, ctx := errgroup.WithContext(d.ctx)
	if d.o.Jobs == 1 {
		g.SetLimit(1)
	}
	var failed [2]error
	for side := range counters {
		g.Go(func() error {
			var buf []byte
			failed[side] = c.each(ctx, side, func(number int64, at *KeyedAt) error {
				buf = appendIdentity(buf[:0], number>>stateBits, &at.Entry)
				value := d.hash.Sum(at.Entry.Value).Lo
				return counters[side].Add(tally.Element{Digest: d.hash.Sum(buf), Number: number, Size: int(uint32(value)), Group: uint16(value >> 32)})
			})
			return failed[side]
		})
	}
	if g.Wait() != nil {
		why := failed[0]
		if why == nil || errors.Is(why, context.Canceled) { // the other side ended it
			why = cmp.Or(failed[1], why)
		}
		return nil, false, why, c.mustFail(why)
	}
	c.lists = make([]keyedLists, len(c.states))
	if err := tally.Pair(counters[0], counters[1], c.pair); err != nil {
		return nil, false, nil, err
	}
	return c.states, maps.Equal(c.wires[0], c.wires[1]), nil, c.list()
}

// mustFail returns the errors that end a comparison: others only leave it to bytes.
func (c *keyedEntries) mustFail(err error) error {
	if c.d.ctx.Err() != nil {
		return c.d.ctx.Err()
	}
	if errors.Is(err, format.ErrChanged) || errors.Is(err, tally.ErrTooOften) {
		return err
	}
	var of *format.Error
	if errors.As(err, &of) || errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrCorrupt) {
		return nil
	}
	return err
}

func (c *keyedEntries) side(side int) (format.View, *format.Operator) {
	if side == 0 {
		return c.d.a, c.op.oldRead
	}
	return c.d.b, c.op.newRead
}

// handles calls f with the keyed handles of a side, by subtask.
func (c *keyedEntries) handles(side int, f func(in format.View, at *KeyedAt, codec format.KeyedCodec) error) error {
	in, op := c.side(side)
	subs := slices.Clone(op.Subtasks)
	slices.SortStableFunc(subs, func(a, b *format.Subtask) int { return cmp.Compare(a.Index, b.Index) })
	for _, sub := range subs {
		for _, slot := range c.slots {
			at := &KeyedAt{Place: format.Place{Operator: op, Subtask: sub, Slot: slot}, Handle: keyedIn(sub, slot)}
			if at.Handle == nil {
				continue
			}
			codec, err := in.KeyedCodec(op, at.Handle)
			if err == nil {
				err = f(in, at, codec)
			}
			if err != nil {
				return format.InFile(format.At(err, "subtask %d/%v", sub.Index, at.Slot), in.Location)
			}
		}
	}
	return nil
}

// describe numbers the states of a side.
func (c *keyedEntries) describe(side int) error {
	c.wires[side] = map[string]bool{}
	return c.handles(side, func(in format.View, at *KeyedAt, codec format.KeyedCodec) error {
		schema, err := codec.Describe(c.d.ctx, in.Source, at.Handle)
		if at.Slot == format.SlotManagedKeyed || len(c.slots) == 1 {
			c.wires[side]["key "+withoutVersion(schema.Wire)] = true
		}
		for _, st := range schema.States {
			id := [2]string{st.Name.String(), st.Kind}
			if len(c.slots) == 1 || st.Kind != types.Timers { // raw timers are described otherwise
				c.wires[side]["state "+id[1]+" "+id[0]+" "+withoutVersion(st.Wire)] = true
			}
			if _, known := c.ids[id]; !known {
				c.ids[id] = len(c.states)
				c.states = append(c.states, &KeyedState{Name: id[0], Kind: id[1]})
			}
		}
		return err
	})
}

// withoutVersion returns the state meta info of a state, or the serializer snapshot of
// keys, without the version of the header.
func withoutVersion(w format.Wire) string { return string(w[min(4, len(w)):]) }

// each calls f with the entries of a side and their numbers, which ascend within a
// state and start at 1. The entry is valid until f returns.
func (c *keyedEntries) each(ctx context.Context, side int, f func(number int64, at *KeyedAt) error) error {
	number := int64(0)
	return c.handles(side, func(in format.View, at *KeyedAt, codec format.KeyedCodec) error {
		schema, err := codec.Describe(ctx, in.Source, at.Handle)
		if err != nil {
			return err
		}
		ids := make([]int64, len(schema.States))
		for i, st := range schema.States {
			ids[i] = int64(c.ids[[2]string{st.Name.String(), st.Kind}])
		}
		for _, sel := range c.selections(at.Handle) {
			err := format.EachKeyedEntry(ctx, in.Source, codec, at.Handle, sel, func(e format.KeyedEntry) error {
				if e.Key == nil {
					return format.Errorf(format.ErrUnsupported, "keys of state %q are not decoded", schema.States[e.State].Name)
				}
				number++
				at.Entry = e
				c.d.progress(e.Size())
				return f(ids[e.State]<<stateBits|number, at)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// selections are the key groups of a handle that are compared, in runs.
func (c *keyedEntries) selections(h format.KeyedHandle) (all []format.KeyedSelection) {
	if c.groups == nil {
		return []format.KeyedSelection{{}}
	}
	r := h.KeyGroups()
	for _, g := range c.groups {
		if g < r.First || g > r.Last() {
			continue
		}
		if n := len(all) - 1; n >= 0 && all[n].Groups.Last()+1 == g {
			all[n].Groups.Count++
			continue
		}
		all = append(all, format.KeyedSelection{Groups: format.KeyGroupRange{First: g, Count: 1}})
	}
	return all
}

// appendIdentity appends what identifies an entry.
func appendIdentity(p []byte, state int64, e *format.KeyedEntry) []byte {
	p = binary.AppendUvarint(p, uint64(state))
	p = binary.BigEndian.AppendUint64(p, uint64(e.Time))
	for _, part := range [][]byte{e.Key, e.Namespace} {
		p = append(binary.AppendUvarint(p, uint64(len(part))), part...)
	}
	return append(p, e.UserKey...)
}

// pair counts an entry by its entries in the counters.
func (c *keyedEntries) pair(x, y *tally.Entry) error {
	has := func(e *tally.Entry) int64 {
		if e == nil {
			return 0
		}
		return e.First
	}
	n := numbers{has(x), has(y)}
	state := max(n[0], n[1]) >> stateBits
	st, l := c.states[state], &c.lists[state]
	switch {
	case y == nil:
		st.Removed++
		l.removed = c.keep(l.removed, n, 0)
	case x == nil:
		st.Added++
		l.added = c.keep(l.added, n, 1)
	case x.Size != y.Size || x.FirstGroup != y.FirstGroup || x.Count != y.Count:
		st.Changed++
		l.changed = c.keep(l.changed, n, 1)
	}
	return nil
}

// keep adds an entry to the first ones of a side.
func (c *keyedEntries) keep(all []numbers, n numbers, side int) []numbers {
	if c.d.o.List == 0 {
		return nil
	}
	if all = append(all, n); len(all) >= 2*c.d.o.List+1024 {
		all = firstOf(all, side, c.d.o.List)
	}
	return all
}

func firstOf(all []numbers, side, most int) []numbers {
	slices.SortFunc(all, func(a, b numbers) int { return cmp.Compare(a[side], b[side]) })
	return all[:min(most, len(all))]
}

// list reads the entries that are listed.
func (c *keyedEntries) list() error {
	var wanted [2]map[int64]**KeyedAt
	wanted[0], wanted[1] = map[int64]**KeyedAt{}, map[int64]**KeyedAt{}
	for i, st := range c.states {
		l, most := &c.lists[i], c.d.o.List
		first := slices.Concat(firstOf(l.removed, 0, most), firstOf(l.changed, 1, most), firstOf(l.added, 1, most))
		st.Changes = make([]KeyedChange, len(first))
		for k, n := range first {
			for side, to := range []**KeyedAt{&st.Changes[k].Old, &st.Changes[k].New} {
				if n[side] != 0 {
					wanted[side][n[side]] = to
				}
			}
		}
	}
	for side := range wanted {
		if len(wanted[side]) == 0 {
			continue
		}
		err := c.each(c.d.ctx, side, func(number int64, at *KeyedAt) error {
			to, ok := wanted[side][number]
			if !ok {
				return nil
			}
			found := *at
			found.Entry = at.Entry.Clone()
			*to = &found
			if delete(wanted[side], number); len(wanted[side]) == 0 {
				return errEnough
			}
			return nil
		})
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if len(wanted[side]) > 0 {
			return format.Errorf(format.ErrChanged, "entries of keyed state that were read before are missing")
		}
	}
	return nil
}
