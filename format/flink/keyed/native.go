package keyed

import (
	"context"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
)

// openNative reads the header of a snapshot in files of RocksDB (spec
// flink-keyed-state 5): a stream with only a header, and the files of the database.
func (c *Codec) openNative(ctx context.Context, src format.Source, h *format.Incremental) (*opened, error) {
	o, err := c.nativeHeader(ctx, src, h)
	if err != nil {
		return nil, err
	}
	o.cursor = func(ctx context.Context, src format.Source, sel selection) (format.KeyedCursor, error) {
		db, err := c.database(ctx, src, h)
		if err != nil {
			return nil, err
		}
		n := &nativeCursor{ctx: ctx, db: db, access: o.access, sel: sel, group: sel.first - 1}
		for i, a := range o.access {
			if !sel.states[i] {
				continue
			}
			f := db.Family(a.name.String())
			if f == nil {
				if a.timers {
					continue // timers on the heap: a native savepoint has none
				}
				return nil, format.At(format.Errorf(format.ErrCorrupt, "the database has no column family of this name"), "state %q", a.name)
			}
			n.states = append(n.states, scanned{state: i, family: f})
		}
		return n, nil
	}
	return o, nil
}

// database opens the database of a handle.
func (c *Codec) database(ctx context.Context, src format.Source, h *format.Incremental) (*rocksdb.Database, error) {
	files := make([]format.NamedStream, 0, len(h.Shared)+len(h.Private))
	files = append(append(files, h.Shared...), h.Private...)
	return rocksdb.Open(ctx, src, files, c.scanOptions())
}

// nativeHeader reads the stream of a handle, which is only a header.
func (c *Codec) nativeHeader(ctx context.Context, src format.Source, h *format.Incremental) (*opened, error) {
	header, err := ReadHeader(ctx, src, h.Meta)
	if err != nil {
		return nil, err
	}
	size, err := format.StreamSize(ctx, src, h.Meta)
	if err != nil {
		return nil, err
	}
	if header.Size != size {
		return nil, format.Errorf(format.ErrCorrupt, "%d bytes after the header", size-header.Size)
	}
	return c.openWith(header, h.Range), nil
}

// nativeCursor merges the column families of a database by key group. Keys ascend
// within a column family, so the key groups do.
type nativeCursor struct {
	ctx    context.Context
	db     *rocksdb.Database
	access []access
	sel    selection
	states []scanned
	group  int32
	i      int // in states
	opened bool
	entry  int64
	err    error
}

// scanned is the column family of a state and its next entry.
type scanned struct {
	state  int
	family *rocksdb.Family
	cur    *rocksdb.Cursor
	e      rocksdb.Entry
	group  int32              // of e; -1: ended
	taken  bool               // e was returned
	dead   format.DeadEntries // of the scans before cur
}

// Next implements [format.KeyedCursor].
func (c *nativeCursor) Next() (e format.KeyedEntry, err error) {
	for c.err == nil {
		if !c.opened {
			c.open()
			continue
		}
		if c.i == len(c.states) {
			c.nextGroup()
			continue
		}
		s := &c.states[c.i]
		if s.taken {
			c.err = c.advance(s)
			continue
		}
		if s.group != c.group {
			c.i++
			continue
		}
		s.taken = true
		c.entry++
		a := &c.access[s.state]
		e.KeyGroup, e.State, e.Stored, e.Value = s.group, s.state, s.e.Key, s.e.Value
		if c.sel.whole {
			return e, nil
		}
		if err := a.split(&e); err != nil {
			c.err = format.At(err, "key group %d/state %q", s.group, a.name)
			break
		}
		if c.sel.has(&e) {
			return e, nil
		}
		e = format.KeyedEntry{}
	}
	return format.KeyedEntry{}, c.err
}

// open opens a scan per state: of all selected key groups, or of one key in the next
// key group.
func (c *nativeCursor) open() {
	c.opened = true
	first, last := c.sel.first, c.sel.last
	if c.sel.key != nil {
		if c.group++; c.group > last {
			c.err = io.EOF
			return
		}
		first, last = c.group, c.group
	}
	for i := range c.states {
		s := &c.states[i]
		a := &c.access[s.state]
		b := rocksdb.Bounds{From: appendGroup(nil, first, a.prefix), To: after(appendGroup(nil, last, a.prefix))}
		if c.sel.key != nil && !a.timers {
			b.From = append(b.From, c.sel.key...)
			b.To = after(b.From)
		}
		s.dead.Add(s.skipped())
		var err error
		if s.cur, err = c.db.Scan(c.ctx, s.family, b); err == nil {
			err = c.advance(s)
		}
		if err != nil {
			c.err = format.At(err, "state %q", a.name)
			return
		}
	}
	if c.sel.key == nil {
		c.i = len(c.states)
		c.nextGroup()
	} else {
		c.i = 0
	}
}

// after returns the first key that does not start with p, or nil.
func after(p []byte) []byte {
	for i := len(p) - 1; i >= 0; i-- {
		if p[i] < 0xff {
			q := append([]byte(nil), p[:i+1]...)
			q[i]++
			return q
		}
	}
	return nil
}

// advance moves to the next entry of a state.
func (c *nativeCursor) advance(s *scanned) error {
	var err error
	s.e, err = s.cur.Next()
	s.taken, s.group = false, -1
	if err == io.EOF {
		return nil
	}
	a := &c.access[s.state]
	if err == nil {
		if s.group = groupOf(s.e.Key, a.prefix); s.group >= 0 {
			return nil
		}
		err = format.Errorf(format.ErrCorrupt, "a key of %d bytes", len(s.e.Key))
	}
	return format.At(err, "state %q", a.name)
}

// nextGroup moves to the next key group that has an entry.
func (c *nativeCursor) nextGroup() {
	if c.err != nil {
		return
	}
	if c.sel.key != nil {
		c.opened = false // scan the next key group
		return
	}
	next := int32(-1)
	for i := range c.states {
		if s := &c.states[i]; s.group >= 0 && (next < 0 || s.group < next) {
			next = s.group
		}
	}
	if next < 0 {
		c.err = io.EOF
		return
	}
	c.group, c.i = next, 0
}

// Ordered returns true: entries ascend by key group, state and stored key.
func (c *nativeCursor) Ordered() bool { return true }

// Dead implements [format.DeadCounter].
func (c *nativeCursor) Dead(state int) format.DeadEntries {
	for i := range c.states {
		if s := &c.states[i]; s.state == state {
			d := s.dead
			d.Add(s.skipped())
			return d
		}
	}
	return format.DeadEntries{}
}

// skipped returns what the current scan of a state has skipped.
func (s *scanned) skipped() format.DeadEntries {
	if s.cur == nil {
		return format.DeadEntries{}
	}
	return format.DeadEntries{Entries: s.cur.Dead, Bytes: s.cur.DeadBytes}
}

// Close implements [format.KeyedCursor].
func (c *nativeCursor) Close() error {
	c.err, c.states, c.db = errClosed, nil, nil
	return nil
}
