package keyed

import (
	"cmp"
	"context"
	"io"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// openChangelog reads the headers of the materialized handles, which may be several
// after a rescale, and the states that the changes register (spec flink-keyed-state
// 8).
func (c *Codec) openChangelog(ctx context.Context, src format.Source, h *format.Changelog) (*opened, error) {
	var parts []*opened
	for i, m := range h.Materialized {
		if m == nil {
			continue
		}
		o, err := c.open(ctx, src, m)
		if err != nil {
			return nil, format.At(err, "materialized[%d]", i)
		}
		parts = append(parts, o)
	}
	j, err := joinHeaders(parts)
	if err != nil {
		return nil, err
	}
	if len(h.Changes) == 0 {
		o := c.openWith(j.header, h.Range)
		o.cursor = j.cursor
		return o, nil
	}
	// The changes register every state before its first change.
	l := &changes{c: c, handles: h.Changes, ids: map[uint16]int{}}
	if err := l.states(ctx, src, j.header); err != nil {
		return nil, err
	}
	if err := c.keySerializer(j.header); err != nil {
		return nil, err
	}
	o := c.openWith(j.header, h.Range)
	o.cursor = func(ctx context.Context, src format.Source, sel selection) (format.KeyedCursor, error) {
		return l.cursor(ctx, src, o, j, sel)
	}
	return o, nil
}

// Registered returns the serializers of the states that the changes of a changelog
// register. It reads all changes. The serializer of keys is nil if no state contains it.
func (c *Codec) Registered(ctx context.Context, src format.Source, h *format.Changelog) (types.Schema, error) {
	header := &Header{Version: maxVersion}
	l := &changes{c: c, handles: h.Changes, ids: map[uint16]int{}}
	err := l.states(ctx, src, header)
	header.Schema.Key = keyOfTimers(header.States)
	return header.Schema, err
}

// keyOfTimers returns the serializer of keys in that of timers, or nil.
func keyOfTimers(states []types.StateSchema) *types.Snapshot {
	for i := range states {
		if v := states[i].Serializer(valueKey); states[i].Keyed == types.Timers && v != nil && len(v.Nested) == 2 {
			return v.Nested[0]
		}
	}
	return nil
}

// keySerializer sets the serializer of keys of a header that has none: changes do
// not record it, but the serializer of timers contains it.
func (c *Codec) keySerializer(h *Header) error {
	if h.Key != nil {
		return nil
	}
	key := c.Key
	if key == nil {
		key = keyOfTimers(h.States)
	}
	if key == nil {
		return format.Errorf(format.ErrUnsupported, "the changelog does not record the serializer of keys: it has no materialized state and no timers")
	}
	h.Key, h.key = key, wrapped(key)
	return nil
}

// joined is several handles whose states have one numbering.
type joined struct {
	header *Header
	parts  []*opened
	// states are, for each part, the index in header of each of its states.
	states [][]int
}

// joinHeaders numbers the states of several headers: two states are the same if they
// have one name and are both timers, or both not.
func joinHeaders(parts []*opened) (*joined, error) {
	j := &joined{parts: parts, header: &Header{Version: maxVersion}}
	for i, p := range parts {
		if i == 0 {
			j.header.Version, j.header.Key, j.header.key = p.header.Version, p.header.Key, p.header.key
		}
		switch {
		case p.header.Version != j.header.Version:
			return nil, format.Errorf(format.ErrUnsupported, "keyed state of versions %d and %d in one handle", j.header.Version, p.header.Version)
		case string(p.header.key) != string(j.header.key):
			return nil, format.Errorf(format.ErrUnsupported, "two serializers of keys in one handle")
		}
		index := make([]int, len(p.header.States))
		for k, s := range p.header.States {
			index[k] = j.header.add(s, p.header.meta[k])
		}
		j.states = append(j.states, index)
	}
	return j, nil
}

// add returns the index of a state, which it appends unless it is there.
func (h *Header) add(s types.StateSchema, meta []byte) int {
	at := slices.IndexFunc(h.States, func(o types.StateSchema) bool {
		return o.Name == s.Name && (o.Keyed == types.Timers) == (s.Keyed == types.Timers)
	})
	if at < 0 {
		at = len(h.States)
		h.States, h.meta = append(h.States, s), append(h.meta, meta)
	}
	return at
}

// cursor returns the entries of the parts, by key group. The key groups of the parts
// must not overlap.
func (j *joined) cursor(ctx context.Context, src format.Source, sel selection) (format.KeyedCursor, error) {
	order := make([]int, 0, len(j.parts))
	for i, p := range j.parts {
		if p.groups.Count > 0 && p.groups.First <= sel.last && p.groups.Last() >= sel.first {
			order = append(order, i)
		}
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(j.parts[a].groups.First, j.parts[b].groups.First) })
	for i := 1; i < len(order); i++ {
		if both := j.parts[order[i-1]].groups.Intersect(j.parts[order[i]].groups); both.Count > 0 {
			return nil, format.Errorf(format.ErrUnsupported, "key groups %v are in two handles of one subtask", both)
		}
	}
	return &chain{ctx: ctx, src: src, j: j, order: order, sel: sel, dead: map[int]format.DeadEntries{}}, nil
}

// chain returns the entries of one handle after the other.
type chain struct {
	ctx    context.Context
	src    format.Source
	j      *joined
	order  []int
	sel    selection
	cur    format.KeyedCursor
	states []int
	dead   map[int]format.DeadEntries // of the handles before cur
	err    error
}

// Next implements [format.KeyedCursor].
func (c *chain) Next() (format.KeyedEntry, error) {
	for c.err == nil {
		if c.cur == nil {
			c.err = c.open()
			continue
		}
		e, err := c.cur.Next()
		if err == nil {
			e.State = c.states[e.State]
			return e, nil
		}
		if c.err = err; err == io.EOF {
			for _, at := range c.states {
				c.dead[at] = c.Dead(at)
			}
			c.err = c.cur.Close()
			c.cur = nil
		}
	}
	return format.KeyedEntry{}, c.err
}

func (c *chain) open() error {
	if len(c.order) == 0 {
		return io.EOF
	}
	i := c.order[0]
	c.order = c.order[1:]
	p := c.j.parts[i]
	sel := c.sel
	sel.first, sel.last = max(sel.first, p.groups.First), min(sel.last, p.groups.Last())
	c.states = c.j.states[i]
	sel.states = make([]bool, len(c.states))
	for k, at := range c.states {
		sel.states[k] = at < len(c.sel.states) && c.sel.states[at]
	}
	var err error
	c.cur, err = p.cursor(c.ctx, c.src, sel)
	return err
}

// Dead implements [format.DeadCounter].
func (c *chain) Dead(state int) format.DeadEntries {
	d := c.dead[state]
	if cur, ok := c.cur.(format.DeadCounter); ok {
		if i := slices.Index(c.states, state); i >= 0 {
			d.Add(cur.Dead(i))
		}
	}
	return d
}

// Ordered returns false: whether the parts are ordered depends on their encoding.
func (c *chain) Ordered() bool { return false }

// Close implements [format.KeyedCursor].
func (c *chain) Close() (err error) {
	if c.cur != nil {
		err = c.cur.Close()
	}
	c.cur, c.err = nil, errClosed
	return err
}
