package rocksdb

import (
	"bytes"
	"context"
	"io"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// Bounds limits a scan to the keys from From up to, but not including, To. A nil
// bound is open.
type Bounds struct{ From, To []byte }

// Entry is a key and its value. Both are valid until the next call of the cursor.
type Entry struct{ Key, Value []byte }

// Counts are what a scan has read.
type Counts struct {
	Keys     int64 // returned
	Entries  int64 // of tables, range tombstones not counted
	Operands int64 // merge operands that are part of a returned value
	// Dead entries are overwritten or deleted, or they delete; DeadBytes are their
	// keys and values.
	Dead, DeadBytes int64
}

// Cursor walks the keys of a column family in ascending order, with their values as
// a running job would see them.
type Cursor struct {
	Counts

	ctx   context.Context
	db    *Database
	name  string
	b     Bounds
	heap  []*source // of internal keys
	cover cover
	most  int64
	err   error

	last    []byte // key of the last entry
	started bool
	shown   bool   // the first source still has the last entry
	held    []byte // operands, newest first
	ends    []int  // of the operands in held
	joined  []byte
}

// source is tables that do not overlap: one of level 0, or all of another level.
type source struct {
	tables []*LiveTable // not opened yet
	cur    *TableCursor // nil: key is only a lower bound of what is in tables[0]
	open   *LiveTable
	ops    string // merge operator of the open table
	key    []byte
	trail  uint64
}

// Scan opens a cursor on the keys of a family within bounds. It opens a table only
// when the cursor reaches its keys.
func (db *Database) Scan(ctx context.Context, f *Family, b Bounds) (*Cursor, error) {
	if f == nil {
		return nil, format.Errorf(format.ErrMissing, "no column family")
	}
	c := &Cursor{ctx: ctx, db: db, name: f.Name, b: b, most: db.o.MaxBlock}
	if c.most <= 0 {
		c.most = 1 << 30
	}
	var level []*LiveTable
	flush := func() {
		if len(level) > 0 {
			c.add(&source{tables: level})
			level = nil
		}
	}
	for i, t := range f.Tables {
		if t.Level == 0 || i > 0 && f.Tables[i-1].Level != t.Level {
			flush()
		}
		if b.From != nil && bytes.Compare(t.bounds.largest, b.From) < 0 || b.To != nil && bytes.Compare(t.bounds.smallest, b.To) >= 0 {
			continue
		}
		level = append(level, t)
	}
	flush()
	return c, nil
}

// add adds a source before its next table.
func (c *Cursor) add(s *source) {
	s.cur, s.key, s.trail = nil, s.tables[0].bounds.smallest, unknownSequence
	if c.b.From != nil && bytes.Compare(s.key, c.b.From) < 0 {
		s.key = c.b.From
	}
	c.heap = append(c.heap, s)
	c.up(len(c.heap) - 1)
}

// less orders by user key, then the newest first; tables that are not opened come
// before their entries.
func less(a, b *source) bool {
	if d := bytes.Compare(a.key, b.key); d != 0 {
		return d < 0
	}
	return a.trail > b.trail
}

func (c *Cursor) up(i int) {
	h := c.heap
	for i > 0 {
		p := (i - 1) / 2
		if !less(h[i], h[p]) {
			return
		}
		h[i], h[p] = h[p], h[i]
		i = p
	}
}

// down restores the heap after the key of its first source has grown.
func (c *Cursor) down() {
	h, i := c.heap, 0
	for {
		k := 2*i + 1
		if k >= len(h) {
			return
		}
		if k+1 < len(h) && less(h[k+1], h[k]) {
			k++
		}
		if !less(h[k], h[i]) {
			return
		}
		h[i], h[k] = h[k], h[i]
		i = k
	}
}

// settle opens the tables at the top of the heap, so that its first source has an
// entry. It returns nil at the end.
func (c *Cursor) settle() (*source, error) {
	for len(c.heap) > 0 {
		s := c.heap[0]
		if s.cur != nil {
			return s, nil
		}
		if err := c.openNext(s); err != nil {
			return nil, err
		}
		if err := c.advance(s); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// openNext opens the next table of a source.
func (c *Cursor) openNext(s *source) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	l := s.tables[0]
	t, err := c.db.Table(c.ctx, l)
	if err != nil {
		return err
	}
	if err := t.in(c.name); err != nil {
		return format.InFile(err, l.Name)
	}
	ranges, err := t.Ranges(c.ctx)
	if err != nil {
		return format.InFile(err, l.Name)
	}
	kept := ranges[:0]
	for _, r := range ranges {
		if r.clip(l.bounds) {
			kept = append(kept, r)
		}
	}
	c.cover.add(flatten(kept))
	s.tables, s.open, s.ops = s.tables[1:], l, t.MergeOperator
	s.cur = t.Scan(c.ctx, c.b.From)
	return nil
}

// advance moves a source, the first of the heap, to its next entry.
func (c *Cursor) advance(s *source) error {
	if s.cur.next() {
		s.key, s.trail = s.cur.key, s.cur.trail
		if c.b.To == nil || bytes.Compare(s.key, c.b.To) < 0 {
			c.Entries++
			if s.cur.first {
				s.cur.first = false
				if bytes.Compare(s.key, s.open.bounds.smallest) < 0 {
					return c.outside(s)
				}
			}
			if len(c.heap) > 1 {
				c.down()
			}
			return nil
		}
		s.tables = nil
	} else if s.cur.err != io.EOF {
		return format.InFile(s.cur.err, s.open.Name)
	} else if !s.cur.first && bytes.Compare(s.key, s.open.bounds.largest) > 0 {
		return c.outside(s)
	}
	n := len(c.heap) - 1
	c.heap[0] = c.heap[n]
	c.heap = c.heap[:n]
	c.down()
	if len(s.tables) > 0 {
		c.add(s)
	}
	return nil
}

func (c *Cursor) outside(s *source) error {
	return format.InFile(corrupt("key %x is outside the range that the MANIFEST records", cutBytes(s.key)), s.open.Name)
}

func cutBytes(p []byte) []byte { return p[:min(len(p), 40)] }

// dead counts an entry that is not part of a value.
func (c *Cursor) dead(s *source) {
	c.Dead++
	c.DeadBytes += int64(len(s.key) + trailer + len(s.cur.value))
}

// Next returns the next key, or io.EOF at the end. After an error it returns that
// error again.
func (c *Cursor) Next() (Entry, error) {
	if c.shown {
		c.shown = false
		c.err = c.advance(c.heap[0])
	}
	for c.err == nil {
		s, err := c.settle()
		if err == nil && s == nil {
			err = io.EOF
		}
		if err != nil {
			c.err = err
			break
		}
		if c.started && bytes.Equal(s.key, c.last) {
			c.dead(s) // older than an entry that was returned
			c.err = c.advance(s)
			continue
		}
		e, ok, err := c.resolve(s)
		if err != nil {
			c.err = err
			break
		}
		if ok {
			c.Keys++
			return e, nil
		}
	}
	return Entry{}, c.err
}

// resolve determines the value of the next key, from its newest entry on. It returns
// false if the key is deleted.
func (c *Cursor) resolve(s *source) (e Entry, ok bool, err error) {
	c.last, c.started = append(c.last[:0], s.key...), true
	if c.cover.deletes(s.key, s.trail>>8) {
		return e, false, nil // all of the key is skipped as older entries
	}
	switch Kind(s.trail) {
	case KindPut:
		c.shown = true
		return Entry{s.key, s.cur.value}, true, nil
	case KindMerge:
		v, err := c.merge(s)
		return Entry{c.last, v}, err == nil, err
	}
	return e, false, nil
}

// operators are the merge operators that are supported: each joins the operands of a
// list, oldest first, with a comma, the delimiter that Flink uses.
var operators = []string{"StringAppendTESTOperator", "StringAppendOperator"}

// delimiter is between the elements of a list. Wire format: never change.
const delimiter = ','

// merge joins the operands of the key and its base.
func (c *Cursor) merge(s *source) ([]byte, error) {
	c.held, c.ends = c.held[:0], c.ends[:0]
	total := int64(0)
	for {
		base := Kind(s.trail) == KindPut
		if !base && !slices.Contains(operators, s.ops) {
			return nil, format.InFile(format.Errorf(format.ErrUnsupported, "values of merge operator %q", s.ops), s.open.Name)
		}
		if total += int64(len(s.cur.value)) + 1; total > c.most+1 {
			return nil, tooLarge("a value", total-1, c.most)
		}
		c.held = append(c.held, s.cur.value...)
		c.ends = append(c.ends, len(c.held))
		if !base {
			c.Operands++
		}
		if err := c.advance(s); err != nil {
			return nil, err
		}
		if base {
			break
		}
		var err error
		if s, err = c.settle(); err != nil {
			return nil, err
		}
		if s == nil || !bytes.Equal(s.key, c.last) || c.cover.deletes(s.key, s.trail>>8) || Kind(s.trail) != KindMerge && Kind(s.trail) != KindPut {
			break
		}
	}
	c.joined = slices.Grow(c.joined[:0], int(total))
	for i := len(c.ends) - 1; i >= 0; i-- {
		from := 0
		if i > 0 {
			from = c.ends[i-1]
		}
		if i < len(c.ends)-1 {
			c.joined = append(c.joined, delimiter)
		}
		c.joined = append(c.joined, c.held[from:c.ends[i]]...)
	}
	return c.joined, nil
}
