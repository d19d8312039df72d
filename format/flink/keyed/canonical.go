package keyed

import (
	"encoding/binary"

	"github.com/savepoint-tools/spt/format"
)

// canonicalCursor reads the canonical format (spec flink-keyed-state 3.2): per key
// group
//
//	short  state, then entries: int length, key, int length, value. The first bit of a
//	       key marks the last entry of the state
//	short  0xffff
type canonicalCursor struct {
	walk
	state  int // of the current run
	inRun  bool
	within bool // a key group
	used   int  // bytes of the last entry
	err    error
}

// lastOfRun is the bit in the first byte of a key. Wire format: never change.
const lastOfRun = 0x80

// Next implements [format.KeyedCursor].
func (c *canonicalCursor) Next() (e format.KeyedEntry, err error) {
	for c.err == nil {
		if c.closed {
			c.err = errClosed
			break
		}
		c.in.consume(c.used)
		c.used = 0
		if !c.within {
			if c.err = c.nextGroup(0); c.err != nil {
				break
			}
			c.within = true
		}
		ok, err := c.read(&e)
		if err != nil {
			if value := format.At(err, "state %q", c.name()); c.inRun {
				err = value
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

func (c *canonicalCursor) name() format.Text { return c.access[c.state].name }

// read reads the next entry, or what is between entries.
func (c *canonicalCursor) read(e *format.KeyedEntry) (bool, error) {
	if !c.inRun {
		p, err := c.in.need(2)
		if err != nil {
			return false, err
		}
		id := int(binary.BigEndian.Uint16(p))
		c.in.consume(2)
		if id == endOfGroup {
			c.within = false
			if end, err := c.in.ended(); err != nil {
				return false, err
			} else if !end {
				return false, format.Errorf(format.ErrCorrupt, "%d bytes or more after the end of a key group", len(c.in.have()))
			}
			return false, nil
		}
		if id >= len(c.access) {
			return false, format.Errorf(format.ErrCorrupt, "state %d, expected one of %d", id, len(c.access))
		}
		c.state, c.inRun = id, true
	}
	a := &c.access[c.state]
	p, err := c.in.need(4)
	if err != nil {
		return false, err
	}
	k := int(int32(binary.BigEndian.Uint32(p)))
	if k < a.prefix {
		return false, format.Errorf(format.ErrCorrupt, "a key of %d bytes", k)
	}
	if p, err = c.in.need(8 + k); err != nil {
		return false, err
	}
	v := int(int32(binary.BigEndian.Uint32(p[4+k:])))
	if v < 0 {
		return false, format.Errorf(format.ErrCorrupt, "a value of %d bytes", v)
	}
	n := 8 + k + v
	if p, err = c.in.need(n); err != nil {
		return false, err
	}
	c.used = n
	c.entry++
	if p[4]&lastOfRun != 0 {
		p[4] &^= lastOfRun
		c.inRun = false
	}
	if !c.sel.states[c.state] {
		return false, nil
	}
	*e = format.KeyedEntry{KeyGroup: c.number, State: c.state, Stored: p[4 : 4+k : 4+k], Value: p[8+k : n : n]}
	if g := groupOf(e.Stored, a.prefix); g != c.number {
		return false, format.Errorf(format.ErrCorrupt, "a key of key group %d", g)
	}
	if c.sel.whole {
		return true, nil
	}
	if err := a.split(e); err != nil {
		return false, err
	}
	return c.sel.has(e), nil
}

// Ordered returns false: RocksDB writes entries in order, the heap backend does not.
func (c *canonicalCursor) Ordered() bool { return false }

// Close implements [format.KeyedCursor].
func (c *canonicalCursor) Close() error {
	c.closed, c.err, c.in.buf, c.in.file = true, nil, nil, nil
	return nil
}
