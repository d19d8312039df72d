package count

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/work"
)

// Options select what is counted. The zero value counts all keyed state.
type Options struct {
	Operators format.Selector
	States    format.Globs
	// At is the time to which timers and TTL are relative.
	At time.Time
	// TTL is the time to live by which entries of states with TTL have expired: a
	// snapshot does not record it. 0: none are looked for.
	TTL time.Duration
	// Partial reports handles that cannot be read in Operator.Unread, instead of ending
	// with the first error.
	Partial bool
	// Jobs is the number of handles, or parts of them, that are read at once; 0 means
	// one per processor. The result does not depend on it.
	Jobs int
}

// Report is the result of Keyed.
type Report struct {
	Operators []*Operator // with keyed state, in file order
	Names     []string    // of all states of these operators, sorted, also of those not selected
}

// Operator is the keyed state of one operator.
type Operator struct {
	*format.Operator
	States []*State // in the order of the streams
	Groups []Group  // by key group; the counted states only
	Unread []error  // with Options.Partial
	// UserCode is set if the operator has raw keyed state that is not timers: only the
	// code that wrote it can read it.
	UserCode bool

	groups int32
}

// Group is the entries of one key group.
type Group struct{ Entries, Bytes int64 }

// State is one state of an operator, in all its subtasks.
type State struct {
	Name string
	Kind string // as in [format.KeyedState]
	Slot format.Slot
	Sum
}

// Timers is the kind of states whose entries are timers.
const Timers = "timers"

// Sum is what is counted of a state.
type Sum struct {
	Entries int64 // of a map, each map key is one
	// Keys is the number of distinct keys; -1 if a key group of timers, or of entries
	// in no order, has more than a million.
	Keys  int64
	Bytes int64 // of keys, namespaces, map keys and values, see format.KeyedEntry.Size
	// Dead is what the files hold beyond the entries, see [format.DeadCounter].
	Dead format.DeadEntries
	// TTL is set if the state has a time to live. Expired are its entries that have
	// expired; a list has if all of its elements have.
	TTL     bool
	Expired Group
	Horizon Horizon // of timers
}

// Horizon is when timers fire, relative to Options.At.
type Horizon struct {
	Overdue, Hour, Day, Later int64
	// Far is timers more than 100 years later: Flink sets the largest time for "never".
	Far              int64
	Earliest, Latest int64 // ms since 1970; undefined without timers
}

// far is a time after which timers never fire, in effect.
const far = 100 * 365 * 24 * time.Hour

// add adds a timer at t, if it is now at, both in ms.
func (h *Horizon) add(t, at int64) {
	if h.total() == 0 {
		h.Earliest, h.Latest = t, t
	}
	h.Earliest, h.Latest = min(h.Earliest, t), max(h.Latest, t)
	switch {
	case t <= at:
		h.Overdue++
	case t <= at+time.Hour.Milliseconds():
		h.Hour++
	case t <= at+24*time.Hour.Milliseconds():
		h.Day++
	case t <= at+far.Milliseconds():
		h.Later++
	default:
		h.Far++
	}
}

func (h *Horizon) total() int64 { return h.Overdue + h.Hour + h.Day + h.Later + h.Far }

func (h *Horizon) merge(o Horizon) {
	switch {
	case o.total() == 0:
		return
	case h.total() == 0:
		*h = o
		return
	}
	h.Earliest, h.Latest = min(h.Earliest, o.Earliest), max(h.Latest, o.Latest)
	h.Overdue += o.Overdue
	h.Hour += o.Hour
	h.Day += o.Day
	h.Later += o.Later
	h.Far += o.Far
}

// merge adds o. It is associative and commutative.
func (s *Sum) merge(o Sum) {
	s.Entries += o.Entries
	if s.Keys < 0 || o.Keys < 0 {
		s.Keys = -1
	} else {
		s.Keys += o.Keys
	}
	s.Bytes += o.Bytes
	s.Dead.Add(o.Dead)
	s.TTL = s.TTL || o.TTL
	s.Expired.Entries += o.Expired.Entries
	s.Expired.Bytes += o.Expired.Bytes
	s.Horizon.merge(o.Horizon)
}

// Keyed counts the entries of keyed state. Options.States may have names that no keyed
// state has; see Report.Names.
func Keyed(ctx context.Context, in format.View, o Options) (*Report, error) {
	chosen, err := o.Operators.Set(in.Savepoint)
	if err != nil {
		return nil, err
	}
	c := &counter{in: in, o: o, at: o.At.UnixMilli()}
	r := &Report{}
	byPosition := map[int]*Operator{}
	names := map[string]bool{}
	units := c.units(chosen)
	err = work.Run(ctx, work.Options{Jobs: o.Jobs}, units, c.run, func(u work.Unit, part *part, err error) error {
		op := byPosition[u.Handle.Operator]
		if op == nil {
			of := in.Operators[u.Handle.Operator]
			op = &Operator{Operator: of, groups: of.MaxParallelism}
			byPosition[u.Handle.Operator] = op
			r.Operators = append(r.Operators, op)
		}
		if err != nil {
			err = format.At(err, "operator %q/subtask %d/%v", op.Label(), u.Handle.Index, u.Handle.Slot)
			if !o.Partial || ctx.Err() != nil || errors.Is(err, format.ErrChanged) {
				return err
			}
			// One error per handle is enough: its parts share a cause.
			if n := len(op.Unread); n == 0 || op.Unread[n-1].Error() != err.Error() {
				op.Unread = append(op.Unread, err)
			}
			return nil
		}
		for _, name := range part.names {
			names[name] = true
		}
		op.merge(part, u.Handle.Slot)
		return nil
	})
	r.Names = slices.Sorted(maps.Keys(names))
	return r, err
}

// merge adds a part of a handle.
func (op *Operator) merge(p *part, slot format.Slot) {
	op.UserCode = op.UserCode || p.user
	for _, s := range p.states {
		i := slices.IndexFunc(op.States, func(o *State) bool { return o.Name == s.Name && o.Kind == s.Kind && o.Slot == slot })
		if i < 0 {
			op.States = append(op.States, &State{Name: s.Name, Kind: s.Kind, Slot: slot})
			i = len(op.States) - 1
		}
		op.States[i].merge(s.Sum)
	}
	if op.Groups == nil && op.groups > 0 {
		op.Groups = make([]Group, min(op.groups, format.MaxKeyGroups))
	}
	for i, g := range p.groups {
		if k := int(p.first) + i; k < len(op.Groups) {
			op.Groups[k].Entries += g.Entries
			op.Groups[k].Bytes += g.Bytes
		}
	}
}

// counter runs the units of a count.
type counter struct {
	in format.View
	o  Options
	at int64 // ms
}

// unitBytes is how many bytes of a handle one unit reads, about.
const unitBytes = 16 << 20

// units yields the handles of keyed state, the large ones in ranges of key groups.
func (c *counter) units(chosen map[*format.Operator]bool) iter.Seq[work.Unit] {
	return func(yield func(work.Unit) bool) {
		for i, op := range c.in.Operators {
			if !chosen[op] {
				continue
			}
			for k, sub := range op.Subtasks {
				for _, h := range []struct {
					slot format.Slot
					h    format.KeyedHandle
				}{{format.SlotManagedKeyed, sub.ManagedKeyed}, {format.SlotRawKeyed, sub.RawKeyed}} {
					if h.h == nil {
						continue
					}
					u := work.Unit{Job: work.CountEntries, State: work.All,
						Handle: work.Handle{Operator: i, Subtask: k, ID: op.ID, Index: sub.Index, Slot: h.slot}}
					for u := range work.KeyGroups(u, h.h, unitBytes) {
						if !yield(u) {
							return
						}
					}
				}
			}
		}
	}
}

// part is what a unit counted.
type part struct {
	names  []string // of all states of the handle
	user   bool     // it is raw keyed state of user code
	states []State
	first  int32
	groups []Group
}

// run counts the entries of a unit.
func (c *counter) run(ctx context.Context, u work.Unit) (*part, error) {
	h, err := u.KeyedHandle(c.in.Savepoint)
	if err != nil {
		return nil, err
	}
	op := c.in.Operators[u.Handle.Operator]
	if most := int64(min(op.MaxParallelism, format.MaxKeyGroups)); u.First < 0 || u.Count < 0 || u.First+u.Count > most {
		return nil, format.Errorf(format.ErrCorrupt, "key groups %v, the operator has %d", h.KeyGroups(), most)
	}
	codec, err := c.in.KeyedCodec(op, h)
	if err != nil {
		return nil, err
	}
	schema, err := codec.Describe(ctx, c.in.Source, h)
	if u.Handle.Slot == format.SlotRawKeyed && errors.Is(err, format.ErrUnsupported) {
		return &part{user: true}, nil
	}
	if err != nil {
		return nil, err
	}
	s := scan{counter: c, part: &part{first: int32(u.First), groups: make([]Group, u.Count)}, slots: make([]int, len(schema.States))}
	sel := format.KeyedSelection{Groups: format.KeyGroupRange{First: int32(u.First), Count: int32(u.Count)}, States: []int{}}
	for i, st := range schema.States {
		name := st.Name.String()
		s.part.names = append(s.part.names, name)
		if !c.o.States.Match(name) {
			continue
		}
		s.slots[i] = len(s.part.states)
		s.part.states = append(s.part.states, State{Name: name, Kind: st.Kind})
		sel.States = append(sel.States, i)
	}
	if len(sel.States) == 0 || u.Count == 0 {
		return s.part, nil
	}
	if s.codecs, err = value.EntryCodecsOf(ctx, c.in.Source, codec, h); err != nil {
		return nil, err
	}
	for _, i := range sel.States {
		s.part.states[s.slots[i]].TTL = s.codecs[i].TTL
	}
	cur, err := codec.Entries(ctx, c.in.Source, h, sel)
	if err != nil {
		return nil, err
	}
	err = s.read(ctx, cur, sel.States)
	return s.part, errors.Join(err, cur.Close())
}

// scan counts the entries of a cursor.
type scan struct {
	*counter
	part   *part
	slots  []int // by state of the schema: index in part.states
	codecs []value.EntryCodecs
	last   [][]byte // by index in part.states: the last key
	keys   keys
	sorted bool // equal keys follow each other, but for timers
	group  int32
}

func (s *scan) read(ctx context.Context, cur format.KeyedCursor, states []int) error {
	s.last = make([][]byte, len(s.part.states))
	s.sorted, s.keys = cur.Ordered(), newKeys()
	for n := 0; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		e, err := cur.Next()
		if err == io.EOF {
			break
		}
		if err == nil {
			err = s.add(&e)
		}
		if err != nil {
			return err
		}
	}
	if d, ok := cur.(format.DeadCounter); ok {
		for _, i := range states {
			s.part.states[s.slots[i]].Dead = d.Dead(i)
		}
	}
	return nil
}

func (s *scan) add(e *format.KeyedEntry) error {
	i := s.slots[e.State]
	st := &s.part.states[i]
	size := e.Size()
	st.Entries++
	st.Bytes += size
	at := int64(e.KeyGroup) - int64(s.part.first)
	if at < 0 || at >= int64(len(s.part.groups)) {
		return format.Errorf(format.ErrCorrupt, "an entry of key group %d, expected %d to %d", e.KeyGroup, s.part.first, int(s.part.first)+len(s.part.groups)-1)
	}
	s.part.groups[at].Entries++
	s.part.groups[at].Bytes += size
	s.countKey(st, i, e)
	switch {
	case st.Kind == Timers:
		st.Horizon.add(e.Time, s.at)
	case st.TTL && s.o.TTL > 0:
		codec := &s.codecs[e.State]
		if codec.Value == nil {
			return format.At(codec.Why, "state %q", st.Name)
		}
		_, newest, ok, err := codec.Updated(e.Value)
		if err != nil {
			return format.At(err, "key group %d/state %q", e.KeyGroup, st.Name)
		}
		if ok && newest <= s.at-s.o.TTL.Milliseconds() {
			st.Expired.Entries++
			st.Expired.Bytes += size
		}
	}
	return nil
}

// countKey counts the key of an entry if it is new.
func (s *scan) countKey(st *State, i int, e *format.KeyedEntry) {
	switch {
	case st.Keys < 0:
		return
	case e.Key == nil: // the codec cannot split keys
		st.Keys = -1
		return
	}
	if e.KeyGroup != s.group {
		s.group = e.KeyGroup
		clear(s.last) // a key is in one key group only
		s.keys.clear()
	}
	if last := s.last[i]; last != nil && string(last) == string(e.Key) {
		return
	}
	s.last[i] = append(s.last[i][:0], e.Key...)
	if s.sorted && st.Kind != Timers {
		st.Keys++
		return
	}
	switch fresh, ok := s.keys.add(i, e.Key); {
	case !ok:
		st.Keys = -1
	case fresh:
		st.Keys++
	}
}
