package keyed

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"io"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// Operations of a change. Wire format: never change.
//
//	byte   operation
//	       of opMetadata: int version, an entry of the header; of state that is not
//	       timers bool TTL and a Java object, bool default and a value; short number,
//	       byte kind of the state
//	       of others: short number of the state; if it is not timers key and
//	       namespace; what the operation takes:
//
//	opSet, opSetInternal  value, list: int n, elements
//	opAdd                 list or map: int n, elements or entries
//	opMergeNamespaces     namespace, int n, n namespaces
//	opAddElement          element of a list; key and value of a map; of timers int n,
//	                      n timers
//	opAddOrUpdate         key and value of a map, which is not null
//	opRemoveElement       key of a map; timer
const (
	opClear           = 0
	opSet             = 1
	opSetInternal     = 2
	opAdd             = 3
	opMergeNamespaces = 4
	opAddElement      = 5
	opAddOrUpdate     = 6
	opRemoveElement   = 7
	opMetadata        = 8
)

// metadataGroup is the key group of changes that register states.
const metadataGroup = -1

// changes are the changes of a changelog since it was materialized.
type changes struct {
	c       *Codec
	handles []format.KeyedHandle
	ids     map[uint16]int // number of a state in the changes: index in the header
}

// each calls f with each change, in order. The change is valid until f returns.
func (l *changes) each(ctx context.Context, src format.Source, f func(group int32, change []byte) error) error {
	for i, h := range l.handles {
		var err error
		switch h := h.(type) {
		case *format.ChangelogMemory:
			for _, ch := range h.Changes {
				if err = ch.Data.View(func(p []byte) error { return f(ch.KeyGroup, p) }); err != nil {
					break
				}
			}
		case *format.ChangelogStream:
			for _, s := range h.Streams {
				if err = l.stream(ctx, src, s, f); err != nil {
					break
				}
			}
		case nil:
		default:
			err = format.Errorf(format.ErrUnsupported, "changes in a handle of type %T", h)
		}
		if err != nil {
			return format.At(err, "changes[%d]", i)
		}
	}
	return nil
}

// stream reads the changes at an offset of a file:
//
//	bool  compressed, of the file; offsets count from after it, once decompressed
//	      at the offset:
//	int   number of key groups; for each
//	int   n
//	int   key group
//	      n times int length, change
func (l *changes) stream(ctx context.Context, src format.Source, s format.OffsetStream, f func(group int32, change []byte) error) error {
	// Flink records a length that is one byte too short.
	size, err := actualSize(ctx, src, s.Data)
	if err != nil {
		return err
	}
	var flag [1]byte
	if _, err := src.ReadAt(ctx, s.Data, flag[:], 0); err != nil {
		return err
	}
	in := &input{ctx: ctx, src: src, s: s.Data, max: l.c.max()}
	if flag[0] > 1 || s.Offset < 0 {
		return format.Errorf(format.ErrCorrupt, "a file of changes at offset %d with flag %d", s.Offset, flag[0])
	}
	at := int64(1)
	if flag[0] == 0 {
		if s.Offset > size-1 {
			return format.Errorf(format.ErrCorrupt, "changes at %d of %d bytes", s.Offset, size-1)
		}
		at += s.Offset
	}
	in.open(at, size, flag[0] == 1)
	for left := s.Offset; flag[0] == 1 && left > 0; {
		if _, err := in.need(1); err != nil {
			return err
		}
		n := min(left, int64(len(in.have())))
		in.consume(int(n))
		left -= n
	}
	number := func() (int32, error) {
		p, err := in.need(4)
		if err != nil {
			return 0, err
		}
		in.consume(4)
		return int32(binary.BigEndian.Uint32(p)), nil
	}
	groups, err := number()
	if err != nil {
		return err
	}
	for range groups {
		n, err := number()
		if err != nil {
			return err
		}
		group, err := number()
		if err != nil {
			return err
		}
		for range n {
			k, err := number()
			if err != nil {
				return err
			}
			if k < 0 {
				return format.Errorf(format.ErrCorrupt, "a change of %d bytes", k)
			}
			p, err := in.need(int(k))
			if err != nil {
				return err
			}
			if err := f(group, p[:k:k]); err != nil {
				return err
			}
			in.consume(int(k))
		}
	}
	return nil
}

// actualSize returns the size of a stream itself, not the recorded one.
func actualSize(ctx context.Context, src format.Source, s format.Stream) (int64, error) {
	if z, ok := src.(format.Sizer); ok && s != nil {
		return z.SizeOf(ctx, s)
	}
	return format.StreamSize(ctx, src, s)
}

// states registers the states of the changes in a header.
func (l *changes) states(ctx context.Context, src format.Source, h *Header) error {
	return l.each(ctx, src, func(group int32, change []byte) error {
		if group != metadataGroup {
			return nil
		}
		c := java.NewCursor(bytes.Clone(change))
		if op := c.U8(); c.Err() == nil && op != opMetadata {
			c.Fail(0, format.ErrCorrupt, "operation %d on no key group", op)
		}
		c.I32() // of the entry; 6 and later are equal
		at := c.Offset()
		s := state(c, maxVersion)
		if err := c.Err(); err != nil {
			return err
		}
		meta := c.Since(at)
		if c.Remaining() < 3 {
			return format.Errorf(format.ErrCorrupt, "state %q is registered without a number", s.Name)
		}
		l.ids[binary.BigEndian.Uint16(change[len(change)-3:])] = h.add(s, meta)
		return nil
	})
}

// overlay is what the changes make of the entries of one key and namespace, or of
// one timer.
type overlay struct {
	state  int
	stored []byte // without map key
	e      format.KeyedEntry

	reset  bool   // what was materialized no longer counts
	exists bool   // of values and timers
	value  []byte // of values; of lists what is appended
	pairs  map[string]*pair
	done   bool // was returned
}

// pair is an entry of a map; a nil value is removed.
type pair struct {
	value []byte
	done  bool
}

// changed returns materialized entries with the changes applied.
type changed struct {
	base    format.KeyedCursor
	access  []access
	sel     selection
	by      map[string]*overlay
	rest    []*overlay // by key group, state and stored key
	next    format.KeyedEntry
	pending bool // next is read and not returned
	more    []format.KeyedEntry
	key     []byte
	buf     []byte
	end     bool
	err     error
}

func (l *changes) cursor(ctx context.Context, src format.Source, o *opened, j *joined, sel selection) (format.KeyedCursor, error) {
	for i := range o.access {
		a := &o.access[i]
		if !a.key.reads() || !a.namespace.reads() || !a.splits {
			return nil, format.At(format.Errorf(format.ErrUnsupported, "keys of %s and %s are not split", a.key.class, a.namespace.class), "state %q", a.name)
		}
	}
	r := &replay{l: l, o: o, sel: sel, by: map[string]*overlay{}, lookup: func(ov *overlay) ([]byte, error) {
		return materialized(ctx, src, j, ov)
	}}
	if err := l.each(ctx, src, r.apply); err != nil {
		return nil, err
	}
	sel.whole = false // changes are looked up by the parts of entries
	base, err := j.cursor(ctx, src, sel)
	if err != nil {
		return nil, err
	}
	c := &changed{base: base, access: o.access, sel: sel, by: r.by}
	for _, ov := range r.by {
		c.rest = append(c.rest, ov)
	}
	slices.SortFunc(c.rest, func(a, b *overlay) int {
		return cmp.Or(cmp.Compare(a.e.KeyGroup, b.e.KeyGroup), cmp.Compare(a.state, b.state), bytes.Compare(a.stored, b.stored))
	})
	return c, nil
}

// materialized returns the materialized value of an overlay's key and namespace.
func materialized(ctx context.Context, src format.Source, j *joined, ov *overlay) (value []byte, err error) {
	sel := selection{first: ov.e.KeyGroup, last: ov.e.KeyGroup, states: make([]bool, ov.state+1), key: ov.e.Key}
	sel.states[ov.state] = true
	cur, err := j.cursor(ctx, src, sel)
	if err != nil {
		return nil, err
	}
	defer cur.Close() //nolint:errcheck // nothing was written
	for {
		e, err := cur.Next()
		if err == io.EOF {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		if bytes.Equal(e.Stored, ov.stored) {
			return bytes.Clone(e.Value), nil
		}
	}
}

// replay collects changes by key and namespace.
type replay struct {
	l      *changes
	o      *opened
	sel    selection
	by     map[string]*overlay
	lookup func(*overlay) ([]byte, error)
	name   []byte
}

// apply applies one change.
func (r *replay) apply(group int32, change []byte) error {
	if group == metadataGroup || group < r.sel.first || group > r.sel.last {
		return nil
	}
	if len(change) < 3 {
		return format.Errorf(format.ErrCorrupt, "a change of %d bytes", len(change))
	}
	op, p := change[0], change[3:]
	id := binary.BigEndian.Uint16(change[1:])
	at, ok := r.l.ids[id]
	if !ok {
		return format.Errorf(format.ErrCorrupt, "a change of state %d, which is not registered", id)
	}
	if !r.sel.states[at] {
		return nil
	}
	a := &r.o.access[at]
	c := &parts{p: p}
	if a.timers {
		r.timers(a, at, group, op, c)
	} else {
		e := format.KeyedEntry{KeyGroup: group, State: at}
		e.Key = c.take(&a.key)
		e.Namespace = c.take(&a.namespace)
		if c.err == nil && (r.sel.key == nil || bytes.Equal(r.sel.key, e.Key)) {
			r.change(a, r.overlay(a, at, e), op, c)
		} else {
			c.p = nil
		}
	}
	if c.err == nil && len(c.p) > 0 {
		c.err = format.Errorf(format.ErrCorrupt, "%d bytes after a change of operation %d", len(c.p), op)
	}
	return format.At(c.err, "key group %d/state %q", group, a.name)
}

// overlay returns the overlay of a key and namespace, or of a timer.
func (r *replay) overlay(a *access, state int, e format.KeyedEntry) *overlay {
	r.name = a.join(&e, r.name)
	name := string(binary.BigEndian.AppendUint16(nil, uint16(state))) + string(r.name)
	ov := r.by[name]
	if ov == nil {
		ov = &overlay{state: state, e: e.Clone()}
		ov.stored = ov.e.Stored
		if a.isMap {
			ov.pairs = map[string]*pair{}
		}
		r.by[name] = ov
	}
	return ov
}

func errOperation(op byte) error {
	return format.Errorf(format.ErrCorrupt, "operation %d on state of this kind", op)
}

func (r *replay) timers(a *access, state int, group int32, op byte, c *parts) {
	n := int32(1)
	switch op {
	case opAddElement:
		n = c.number("timers")
	case opRemoveElement:
	default:
		c.fail(errOperation(op))
	}
	for i := int32(0); i < n && c.err == nil; i++ {
		t := c.bytes(8)
		e := format.KeyedEntry{KeyGroup: group, State: state}
		e.Key, e.Namespace = c.take(&a.key), c.take(&a.namespace)
		if c.err != nil {
			return
		}
		e.Time = int64(binary.BigEndian.Uint64(t)) ^ signBit
		if r.sel.key == nil || bytes.Equal(r.sel.key, e.Key) {
			ov := r.overlay(a, state, e)
			ov.reset, ov.exists = true, op == opAddElement
		}
	}
}

// change applies a change to a key and namespace.
func (r *replay) change(a *access, ov *overlay, op byte, c *parts) {
	set := func(v []byte, exists bool) { ov.reset, ov.exists, ov.value = true, exists, bytes.Clone(v) }
	switch {
	case op == opClear:
		set(nil, false)
		clear(ov.pairs)
	case a.isMap && op == opAdd:
		for n := c.number("entries of a map"); n > 0 && c.err == nil; n-- {
			key := c.take(&a.userKey)
			c.mapValue(a, ov, key, c.flag())
		}
	case a.isMap && (op == opAddElement || op == opAddOrUpdate):
		c.mapValue(a, ov, c.take(&a.userKey), false)
	case a.isMap && op == opRemoveElement:
		if key := c.take(&a.userKey); c.err == nil {
			ov.pairs[string(key)] = &pair{}
		}
	case a.isMap:
		c.fail(errOperation(op))
	case a.isList && (op == opSet || op == opSetInternal):
		v := c.list(a, nil)
		set(v, len(v) > 0)
	case a.isList && op == opAdd:
		ov.value = c.list(a, ov.value)
	case a.isList && op == opAddElement:
		ov.value = joinLists(ov.value, c.take(&a.value))
	case a.isList && op == opMergeNamespaces:
		r.merge(a, ov, c)
	case op == opMergeNamespaces:
		c.fail(format.Errorf(format.ErrUnsupported, "a change that merges namespaces by a function of the job"))
	case !a.isList && (op == opSet || op == opSetInternal):
		set(c.take(&a.value), true)
	default:
		c.fail(errOperation(op))
	}
}

// merge appends the lists of other namespaces to the list of a namespace, and
// removes them.
func (r *replay) merge(a *access, ov *overlay, c *parts) {
	e := ov.e
	e.Namespace = c.take(&a.namespace)
	n := c.number("namespaces")
	if c.err != nil {
		return
	}
	target := r.overlay(a, ov.state, e)
	for i := int32(0); i < n && c.err == nil; i++ {
		e := ov.e
		if e.Namespace = c.take(&a.namespace); c.err != nil {
			return
		}
		from := r.overlay(a, ov.state, e)
		v := from.value
		if !from.reset {
			before, err := r.lookup(from)
			if err != nil {
				c.fail(err)
				return
			}
			v = joinLists(before, v)
		}
		target.value = joinLists(target.value, v)
		from.reset, from.exists, from.value = true, false, nil
	}
}

// joinLists appends the elements of list b to list a.
func joinLists(a, b []byte) []byte {
	if len(a) > 0 && len(b) > 0 {
		a = append(a, delimiter)
	}
	return append(a, b...)
}

// parts reads what an operation takes, and keeps the first error.
type parts struct {
	p   []byte
	err error
}

func (c *parts) fail(err error) {
	if c.err == nil {
		c.err = err
	}
	c.p = nil
}

func (c *parts) bytes(n int) []byte {
	if c.err == nil && len(c.p) < n {
		c.fail(format.Errorf(format.ErrCorrupt, "a change ends too early: expected %d bytes, found %d", n, len(c.p)))
	}
	if c.err != nil {
		return nil
	}
	v := c.p[:n:n]
	c.p = c.p[n:]
	return v
}

func (c *parts) take(p *part) []byte {
	if c.err != nil {
		return nil
	}
	n, err := p.skip(c.p)
	if err != nil {
		c.fail(cutKey(err))
		return nil
	}
	return c.bytes(n)
}

func (c *parts) number(what string) int32 {
	p := c.bytes(4)
	if c.err != nil {
		return 0
	}
	n := int32(binary.BigEndian.Uint32(p))
	if n < 0 {
		c.fail(format.Errorf(format.ErrCorrupt, "%d %s", n, what))
	}
	return n
}

func (c *parts) flag() bool {
	p := c.bytes(1)
	if c.err == nil && p[0] > 1 {
		c.fail(format.Errorf(format.ErrCorrupt, "a null flag: expected 0 or 1, found %d", p[0]))
	}
	return c.err == nil && p[0] == 1
}

// list appends the elements of a list to dst.
func (c *parts) list(a *access, dst []byte) []byte {
	for n := c.number("elements of a list"); n > 0 && c.err == nil; n-- {
		dst = joinLists(dst, c.take(&a.value))
	}
	return dst
}

// mapValue sets the value of a map key. A null that is put alone has no flag in a
// changelog, only what the serializer writes for it.
func (c *parts) mapValue(a *access, ov *overlay, key []byte, null bool) {
	v := []byte{1}
	if !null {
		p := c.take(&a.value)
		if c.err == nil && !a.value.null(p) {
			v[0] = 0
		}
		v = append(v, p...)
	}
	if c.err == nil {
		ov.pairs[string(key)] = &pair{value: v}
	}
}

// Next implements [format.KeyedCursor].
func (c *changed) Next() (format.KeyedEntry, error) {
	for c.err == nil {
		if len(c.more) > 0 {
			e := c.more[0]
			c.more = c.more[1:]
			return e, nil
		}
		if !c.pending && !c.end {
			e, err := c.base.Next()
			if err == io.EOF {
				c.end = true
			} else if err != nil {
				c.err = err
				break
			}
			c.next, c.pending = e, err == nil
		}
		// What is new in a key group comes after what was materialized.
		if len(c.rest) > 0 && (c.end || c.rest[0].e.KeyGroup < c.next.KeyGroup) {
			ov := c.rest[0]
			c.rest = c.rest[1:]
			c.added(ov)
			continue
		}
		if c.end {
			c.err = io.EOF
			break
		}
		c.pending = false
		if e, ok := c.replaced(c.next); ok {
			return e, nil
		}
	}
	return format.KeyedEntry{}, c.err
}

// replaced returns a materialized entry as the changes left it.
func (c *changed) replaced(e format.KeyedEntry) (format.KeyedEntry, bool) {
	a := &c.access[e.State]
	c.key = binary.BigEndian.AppendUint16(c.key[:0], uint16(e.State))
	c.key = append(c.key, e.Stored[:len(e.Stored)-len(e.UserKey)]...)
	ov := c.by[string(c.key)]
	if ov == nil {
		return e, true
	}
	if a.isMap {
		p := ov.pairs[string(e.UserKey)]
		switch {
		case p == nil:
			return e, !ov.reset
		case p.done || p.value == nil:
			return e, false
		}
		e.Value, p.done = p.value, true
		return e, true
	}
	if ov.done {
		return e, false
	}
	ov.done = true
	switch {
	case a.isList && !ov.reset:
		c.buf = joinLists(append(c.buf[:0], e.Value...), ov.value)
		e.Value = c.buf
		return e, true
	case a.isList:
		e.Value = ov.value
		return e, len(ov.value) > 0
	case ov.exists:
		if !a.timers {
			e.Value = ov.value
		}
		return e, true
	}
	return e, false
}

// added queues the entries of an overlay that were not materialized.
func (c *changed) added(ov *overlay) {
	a := &c.access[ov.state]
	e := ov.e
	e.State, e.Stored = ov.state, ov.stored
	switch {
	case a.isMap:
		var keys []string
		for k, p := range ov.pairs {
			if p.value != nil && !p.done {
				keys = append(keys, k)
			}
		}
		slices.SortFunc(keys, strings.Compare)
		for _, k := range keys {
			m := e
			m.UserKey, m.Value = []byte(k), ov.pairs[k].value
			a.join(&m, nil)
			c.more = append(c.more, m)
		}
		return
	case ov.done, a.isList && len(ov.value) == 0, !a.isList && !ov.exists:
		return
	}
	e.Value = ov.value
	c.more = append(c.more, e)
}

// Dead implements [format.DeadCounter], of what was materialized.
func (c *changed) Dead(state int) format.DeadEntries {
	if base, ok := c.base.(format.DeadCounter); ok {
		return base.Dead(state)
	}
	return format.DeadEntries{}
}

// Ordered returns false: what is new comes after what was materialized.
func (c *changed) Ordered() bool { return false }

// Close implements [format.KeyedCursor].
func (c *changed) Close() error {
	c.err, c.by, c.rest, c.more = errClosed, nil, nil, nil
	return c.base.Close()
}
