package diff

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/tally"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/transform/internal/elements"
)

// KeyedState is the comparison of the entries of one keyed state. An entry is
// identified by its state, key group, key, namespace and map key, a timer also by its
// time, and not by its subtask. If the max parallelisms of the two sides differ, it is
// not identified by its key group.
//
// So a key that is in a wrong key group on one side only (FLINK-40113) is removed and
// added, as it is for the job: Flink does not find a key in another key group.
type KeyedState struct {
	Name, Kind              string
	Added, Removed, Changed int64
	// Changes are the first that are removed, changed and added, up to Options.List of
	// each, in the order of reading: by ranges of key groups, in each by subtask, in each
	// as stored. The order does not depend on Options.Jobs.
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
	d       *differ
	op      *Operator
	slots   []format.Slot
	groups  []int32           // ascending; nil: all
	byGroup bool              // entries are identified by their key group too
	handles [2][]*entryHandle // of each side, by subtask
	states  []*KeyedState
	ids     map[[2]string]int  // of states, by name and kind
	lists   []keyedLists       // by state
	wires   [2]map[string]bool // state meta info and serializer snapshots of keys of each side
	units   []work.Unit
	jobs    int       // units that run at once
	atOnce  bool      // the two sides of a unit are read at once
	memory  int64     // of a table
	free    sync.Pool // of *tally.Counter
}

// entryHandle is a handle whose entries are compared.
type entryHandle struct {
	KeyedAt  // without an entry
	location string
	source   format.Source
	codec    format.KeyedCodec
	ids      []int64 // in keyedEntries.states, by state of the handle
}

// wrap says in an error which handle it is of.
func (h *entryHandle) wrap(err error) error {
	return format.InFile(format.At(err, "subtask %d/%v", h.Subtask.Index, h.Slot), h.location)
}

// A number of an entry has its state in the upper bits.
const stateBits = 48

// leastMemory is the least memory of a table: it holds what most units have. So no more
// than eight units run at once, which also bounds what their cursors take.
const leastMemory = 5 << 20

// entries compares the entries of two sides, and reports whether their states are
// described alike. why is why they cannot be compared.
//
// An entry is 40 bytes: a digest of what identifies it, and 48 bits of the digest of its
// value, with random keys. So a change is overlooked with a probability of 2^-48.
func (d *differ) entries(op *Operator, slots []format.Slot, groups []int32) (states []*KeyedState, alike bool, why, err error) {
	c := &keyedEntries{d: d, op: op, slots: slots, groups: groups, ids: map[[2]string]int{}}
	c.byGroup = op.old.MaxParallelism == op.new.MaxParallelism
	// States have the same numbers on both sides.
	for side := range 2 {
		if why := c.describe(side); why != nil {
			return nil, false, why, d.ctx.Err()
		}
	}
	c.lists = make([]keyedLists, len(c.states))
	c.units = c.divide()
	jobs := elements.Workers(d.o.Jobs)
	c.jobs = max(min(jobs, len(c.units), int(d.memory/(2*leastMemory))), 1)
	c.atOnce, c.memory = c.jobs < jobs, d.memory/int64(2*c.jobs)
	if why := work.Run(d.ctx, work.Options{Jobs: c.jobs}, slices.Values(c.units), c.compare, c.merge); why != nil {
		return nil, false, why, c.mustFail(why)
	}
	return c.states, maps.Equal(c.wires[0], c.wires[1]), nil, c.list()
}

// mustFail returns the errors that end a comparison: others only leave it to bytes.
func (c *keyedEntries) mustFail(err error) error {
	if c.d.ctx.Err() != nil {
		return c.d.ctx.Err()
	}
	var temp *tally.TempError
	if errors.Is(err, format.ErrChanged) || errors.Is(err, tally.ErrTooOften) || errors.As(err, &temp) {
		return err
	}
	var of *format.Error
	if errors.As(err, &of) || errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrCorrupt) {
		return nil
	}
	return err
}

// describe finds the handles of a side and numbers their states.
func (c *keyedEntries) describe(side int) error {
	in, op := c.d.a, c.op.oldRead
	if side == 1 {
		in, op = c.d.b, c.op.newRead
	}
	c.wires[side] = map[string]bool{}
	subs := slices.Clone(op.Subtasks)
	slices.SortStableFunc(subs, func(a, b *format.Subtask) int { return cmp.Compare(a.Index, b.Index) })
	for _, sub := range subs {
		for _, slot := range c.slots {
			h := &entryHandle{location: in.Location, source: in.Source}
			h.Place, h.Handle = format.Place{Operator: op, Subtask: sub, Slot: slot}, keyedIn(sub, slot)
			if h.Handle == nil {
				continue
			}
			var err error
			if h.codec, err = in.KeyedCodec(op, h.Handle); err == nil {
				err = c.number(side, h)
			}
			if err != nil {
				return h.wrap(err)
			}
			c.handles[side] = append(c.handles[side], h)
		}
	}
	return nil
}

// number numbers the states of a handle.
func (c *keyedEntries) number(side int, h *entryHandle) error {
	schema, err := h.codec.Describe(c.d.ctx, h.source, h.Handle)
	if h.Slot == format.SlotManagedKeyed || len(c.slots) == 1 {
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
		h.ids = append(h.ids, int64(c.ids[id]))
	}
	return err
}

// withoutVersion returns the state meta info of a state, or the serializer snapshot of
// keys, without the version of the header.
func withoutVersion(w format.Wire) string { return string(w[min(4, len(w)):]) }

// unitEntries is the comparison of the entries of a unit.
type unitEntries struct {
	c      *keyedEntries
	states []stateEntries // as in keyedEntries
}

// stateEntries is what differs in a state: counts, and the first entries if they are
// listed, by change.
type stateEntries struct {
	counts [changes]int64
	lists  [changes][]numbers
}

// The changes of an entry, in the order in which they are listed.
const (
	removed = iota
	changed
	added
	changes
)

// compare runs a unit of work.CompareEntries.
func (c *keyedEntries) compare(ctx context.Context, u work.Unit) (_ *unitEntries, err error) {
	var counters [2]*tally.Counter
	for side := range counters {
		counters[side] = c.counter()
		defer func() {
			if err = cmp.Or(err, counters[side].Reset()); err == nil {
				c.free.Put(counters[side])
			}
		}()
	}
	err = both(ctx, c.atOnce, func(ctx context.Context, side int) error { return c.count(ctx, side, u, counters[side]) })
	if err != nil {
		return nil, err
	}
	r, pairs := &unitEntries{c, make([]stateEntries, len(c.states))}, 0
	err = tally.Pair(counters[0], counters[1], func(x, y *tally.Entry) error {
		if pairs++; pairs%(1<<16) == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		r.pair(x, y)
		return nil
	})
	return r, err
}

// counter returns an empty Counter.
func (c *keyedEntries) counter() *tally.Counter {
	if free, ok := c.free.Get().(*tally.Counter); ok {
		return free
	}
	return tally.New(tally.Options{Memory: c.memory, Dir: c.d.o.TempDir})
}

// count counts the entries of a unit on one side.
func (c *keyedEntries) count(ctx context.Context, side int, u work.Unit, to *tally.Counter) error {
	var buf []byte
	batch := make([]tally.Element, 0, 256)
	err := c.each(ctx, side, u, func(number int64, _ *entryHandle, e *format.KeyedEntry) error {
		buf = c.appendIdentity(buf[:0], number>>stateBits, e)
		value := c.d.hash.Sum(e.Value).Lo
		batch = append(batch, tally.Element{Digest: c.d.hash.Sum(buf), Number: number, Size: int(uint32(value)), Group: uint16(value >> 32)})
		if len(batch) < cap(batch) {
			return nil
		}
		err := to.AddAll(batch)
		batch = batch[:0]
		return err
	})
	if err != nil {
		return err
	}
	return to.AddAll(batch)
}

// progressBytes is how many bytes are read between two calls of Options.Progress.
const progressBytes = 64 << 10

// each calls f with the entries of a unit on one side and their numbers, which ascend
// within a state and start at 1. The entry is valid until f returns.
func (c *keyedEntries) each(ctx context.Context, side int, u work.Unit, f func(number int64, h *entryHandle, e *format.KeyedEntry) error) error {
	number, read := int64(0), int64(0)
	var entry format.KeyedEntry // one for all: f gets its address
	for _, h := range c.handles[side] {
		for _, sel := range c.selections(u, h.Handle) {
			err := format.EachKeyedEntry(ctx, h.source, h.codec, h.Handle, sel, func(e format.KeyedEntry) error {
				if e.Key == nil {
					return format.Errorf(format.ErrUnsupported, "keys of state %q are not decoded", c.states[h.ids[e.State]].Name)
				}
				if read += e.Size(); read >= progressBytes {
					c.d.progress(read)
					read = 0
				}
				number++
				entry = e
				return f(h.ids[e.State]<<stateBits|number, h, &entry)
			})
			if err != nil {
				return h.wrap(err)
			}
		}
	}
	c.d.progress(read)
	return nil
}

// appendIdentity appends what identifies an entry.
func (c *keyedEntries) appendIdentity(p []byte, state int64, e *format.KeyedEntry) []byte {
	p = binary.AppendUvarint(p, uint64(state))
	if c.byGroup {
		p = binary.BigEndian.AppendUint32(p, uint32(e.KeyGroup))
	}
	p = binary.BigEndian.AppendUint64(p, uint64(e.Time))
	for _, part := range [][]byte{e.Key, e.Namespace} {
		p = append(binary.AppendUvarint(p, uint64(len(part))), part...)
	}
	return append(p, e.UserKey...)
}

// pair counts an entry by its entries in the counters.
func (r *unitEntries) pair(x, y *tally.Entry) {
	var n numbers
	how := changed
	switch {
	case y == nil:
		how, n[0] = removed, x.First
	case x == nil:
		how, n[1] = added, y.First
	case x.Size == y.Size && x.FirstGroup == y.FirstGroup && x.Count == y.Count:
		return
	default:
		n = numbers{x.First, y.First}
	}
	st := &r.states[max(n[0], n[1])>>stateBits]
	st.counts[how]++
	if most := r.c.d.o.List; most > 0 {
		st.lists[how] = keep(st.lists[how], n, how, most)
	}
}

// merge adds what differs in the next unit.
func (c *keyedEntries) merge(u work.Unit, r *unitEntries, err error) error {
	if err != nil {
		return err
	}
	for i, st := range c.states {
		n := &r.states[i].counts
		st.Removed += n[removed]
		st.Changed += n[changed]
		st.Added += n[added]
		c.lists[i].add(u, &r.states[i], c.d.o.List)
	}
	return nil
}
