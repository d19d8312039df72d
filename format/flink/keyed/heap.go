package keyed

import (
	"encoding/binary"

	"github.com/savepoint-tools/spt/format"
)

// heapCursor reads the format of the heap backend (spec flink-keyed-state 4): per key
// group
//
//	int    number of the key group, never compressed
//	       for each state, in any order:
//	short  state
//	int    n
//	       n times namespace, key and value; of timers long time with flipped sign, key,
//	       namespace
//
// The value of a list is int n and n elements; of a map int n, n times key, bool
// null and, if it is not null, value. Wire format: never change.
type heapCursor struct {
	walk
	states  int // left in the key group
	seen    []bool
	state   int
	entries int32 // left of the state
	pairs   int32 // left of the map

	ns, key []byte // of the map
	stored  []byte
	value   []byte
	used    int
	within  bool
	err     error
}

// heapReads returns an error unless all states can be read: values have no length.
func (o *opened) heapReads() error {
	if o.header.Version == 1 {
		return format.Errorf(format.ErrUnsupported, "keyed state of the heap backend of version 1")
	}
	for i := range o.access {
		a := &o.access[i]
		parts := []*part{&a.key, &a.namespace}
		if !a.timers {
			parts = append(parts, &a.value)
		}
		if a.isMap {
			parts = append(parts, &a.userKey)
		}
		for _, p := range parts {
			if !p.reads() {
				return format.At(format.Errorf(format.ErrUnsupported, "the length of values of %s is not known, and they are stored without it", p.class), "state %q", a.name)
			}
		}
		if a.lengths && !(a.key.known && a.namespace.known) {
			return format.At(format.Errorf(format.ErrUnsupported, "it is not known whether %s and %s have a fixed length", a.key.class, a.namespace.class), "state %q", a.name)
		}
	}
	return nil
}

// Next implements [format.KeyedCursor].
func (c *heapCursor) Next() (e format.KeyedEntry, err error) {
	for c.err == nil {
		if c.closed {
			c.err = errClosed
			break
		}
		c.in.consume(c.used)
		c.used = 0
		if !c.within {
			if c.err = c.start(); c.err != nil {
				break
			}
		}
		ok, err := c.read(&e)
		if err != nil {
			if c.entries > 0 || c.pairs > 0 {
				err = format.At(err, "state %q", c.access[c.state].name)
			}
			c.err = c.at(err)
			break
		}
		if ok {
			return e, nil
		}
	}
	return format.KeyedEntry{}, c.err
}

// start moves to the next key group.
func (c *heapCursor) start() error {
	if err := c.nextGroup(4); err != nil {
		return err
	}
	var p [4]byte
	if _, err := c.in.src.ReadAt(c.in.ctx, c.in.s, p[:], c.in.pos-4); err != nil {
		return c.at(err)
	}
	if n := int32(binary.BigEndian.Uint32(p[:])); n != c.number {
		return c.at(format.Errorf(format.ErrCorrupt, "expected the number of the key group, found %d", n))
	}
	c.within, c.states, c.entries, c.pairs = true, len(c.access), 0, 0
	c.seen = make([]bool, len(c.access))
	return nil
}

// read reads the next entry, or what is between entries.
func (c *heapCursor) read(e *format.KeyedEntry) (bool, error) {
	switch {
	case c.pairs > 0:
		return c.pair(e)
	case c.entries > 0:
		c.entry++
		return c.one(e)
	case c.states > 0:
		p, err := c.in.need(6)
		if err != nil {
			return false, err
		}
		id, n := int(binary.BigEndian.Uint16(p)), int32(binary.BigEndian.Uint32(p[2:]))
		c.in.consume(6)
		if id >= len(c.access) || c.seen[id] {
			return false, format.Errorf(format.ErrCorrupt, "state %d, expected each of %d once", id, len(c.access))
		}
		if n < 0 {
			return false, format.At(format.Errorf(format.ErrCorrupt, "%d entries", n), "state %q", c.access[id].name)
		}
		c.seen[id] = true
		c.state, c.entries = id, n
		c.states--
		return false, nil
	}
	c.within = false
	if end, err := c.in.ended(); err != nil {
		return false, err
	} else if !end {
		return false, format.Errorf(format.ErrCorrupt, "%d bytes or more after the last state of a key group", len(c.in.have()))
	}
	return false, nil
}

// one reads the next entry of a state, or the start of a map.
func (c *heapCursor) one(e *format.KeyedEntry) (bool, error) {
	a := &c.access[c.state]
	*e = format.KeyedEntry{KeyGroup: c.number, State: c.state}
	if a.timers {
		return c.timer(a, e)
	}
	ns, err := c.in.skip(0, &a.namespace)
	if err != nil {
		return false, format.At(err, "namespace")
	}
	key, err := c.in.skip(ns, &a.key)
	if err != nil {
		return false, format.At(err, "key")
	}
	if a.isMap {
		p, err := c.in.need(key + 4)
		if err != nil {
			return false, err
		}
		n := int32(binary.BigEndian.Uint32(p[key:]))
		if n < 0 {
			return false, format.Errorf(format.ErrCorrupt, "a map of %d entries", n)
		}
		c.ns, c.key = append(c.ns[:0], p[:ns]...), append(c.key[:0], p[ns:key]...)
		c.in.consume(key + 4)
		c.entries--
		c.pairs = n
		return false, nil
	}
	var end int
	if a.isList {
		end, err = c.list(a, key)
	} else {
		end, err = c.in.skip(key, &a.value)
	}
	if err != nil {
		return false, format.At(err, "value")
	}
	p := c.in.have()
	c.used = end
	c.entries--
	e.Namespace, e.Key, e.Value = p[:ns], p[ns:key], p[key:end]
	if a.isList {
		if e.Value = c.value; len(c.value) == 0 {
			return false, nil // Flink writes no empty lists
		}
	}
	return c.emit(a, e), nil
}

// list reads a list after off bytes, and joins its elements in value.
func (c *heapCursor) list(a *access, off int) (int, error) {
	p, err := c.in.need(off + 4)
	if err != nil {
		return 0, err
	}
	n := int32(binary.BigEndian.Uint32(p[off:]))
	if n < 0 {
		return 0, format.Errorf(format.ErrCorrupt, "a list of %d elements", n)
	}
	c.value = c.value[:0]
	off += 4
	for i := range n {
		end, err := c.in.skip(off, &a.value)
		if err != nil {
			return 0, format.At(err, "element %d", i)
		}
		if i > 0 {
			c.value = append(c.value, delimiter)
		}
		c.value = append(c.value, c.in.have()[off:end]...)
		off = end
	}
	return off, nil
}

// delimiter is between the elements of a list. Wire format: never change.
const delimiter = ','

// pair reads the next entry of a map.
func (c *heapCursor) pair(e *format.KeyedEntry) (bool, error) {
	a := &c.access[c.state]
	key, err := c.in.skip(0, &a.userKey)
	if err != nil {
		return false, format.At(err, "map key")
	}
	p, err := c.in.need(key + 1)
	if err != nil {
		return false, err
	}
	if p[key] > 1 {
		return false, format.Errorf(format.ErrCorrupt, "a null flag of a map value: expected 0 or 1, found %d", p[key])
	}
	end := key + 1
	if p[key] == 0 {
		if end, err = c.in.skip(end, &a.value); err != nil {
			return false, format.At(err, "map value")
		}
		p = c.in.have()
	}
	c.used = end
	c.pairs--
	*e = format.KeyedEntry{KeyGroup: c.number, State: c.state, Namespace: c.ns, Key: c.key, UserKey: p[:key:key], Value: p[key:end]}
	return c.emit(a, e), nil
}

func (c *heapCursor) timer(a *access, e *format.KeyedEntry) (bool, error) {
	key, err := c.in.skip(8, &a.key)
	if err != nil {
		return false, format.At(err, "key")
	}
	end, err := c.in.skip(key, &a.namespace)
	if err != nil {
		return false, format.At(err, "namespace")
	}
	p := c.in.have()
	c.used = end
	c.entries--
	e.Time = int64(binary.BigEndian.Uint64(p)) ^ signBit
	e.Key, e.Namespace = p[8:key], p[key:end]
	return c.emit(a, e), nil
}

// emit completes an entry. It returns false if it is not selected.
func (c *heapCursor) emit(a *access, e *format.KeyedEntry) bool {
	if !c.sel.states[c.state] || !c.sel.has(e) {
		return false
	}
	c.stored = a.join(e, c.stored)
	return true
}

// Ordered returns false: entries are in the order of a hash table.
func (c *heapCursor) Ordered() bool { return false }

// Close implements [format.KeyedCursor].
func (c *heapCursor) Close() error {
	c.closed, c.err, c.in.buf, c.in.file = true, nil, nil, nil
	return nil
}
