package tally

import "github.com/savepoint-tools/spt/internal/hash128"

// Entry is one distinct element and how often it occurred.
type Entry struct {
	hash128.Digest
	First  int64  // number under which it was added first
	Count  uint32 // 0: the slot is free
	Size   uint32 // bytes of the element
	Groups uint32 // in how many groups it occurred
	// The first and the last of these.
	FirstGroup, LastGroup uint16
}

// MaxCount is how often one element may occur.
const MaxCount = 1<<32 - 1

// table is an open hash table that is at most three quarters full. Entries are
// placed by the first bits of their digests and never wrap around, so that going
// through the slots is going through the digests, but for entries of neighboring
// slots.
type table struct {
	slots []Entry // 1<<bits, and those past the end that the last ones may take
	bits  uint
	skip  uint // first bits of the digests that all entries have in common
	used  int
}

const (
	minBits = 4
	// mostBits is the size of the largest table, far more than a machine has memory
	// for.
	mostBits = 40
	// past is how many slots follow the last one. A run of as many slots without a
	// free one does not occur with random digests; if it does, the table counts as
	// full.
	past = 1 << 10
)

func newTable(bits, skip uint) *table {
	return &table{slots: make([]Entry, 1<<bits+past), bits: bits, skip: skip}
}

// reuse returns an empty table in the memory of an old one, if that is enough.
func reuse(old *table, bits, skip uint) *table {
	n := 1<<bits + past
	if cap(old.slots) < n {
		return newTable(bits, skip)
	}
	t := &table{slots: old.slots[:n], bits: bits, skip: skip}
	clear(t.slots)
	return t
}

// full reports whether no other entry should be added.
func (t *table) full() bool { return t.used*4 >= 3<<t.bits }

// find returns the slot of a digest, or the free one where it belongs; nil if
// there is none.
func (t *table) find(d hash128.Digest) *Entry {
	slots := t.slots[d.Hi<<t.skip>>(64-t.bits):]
	for i := range slots {
		if e := &slots[i]; e.Count == 0 || e.Digest == d {
			return e
		}
	}
	return nil
}

// add merges an entry into the table, of an element that was added after those in
// the table. It reports false, and changes nothing, if there is no room.
func (t *table) add(x *Entry) (ok bool, err error) {
	e := t.find(x.Digest)
	switch {
	case e == nil:
		return false, nil
	case e.Count == 0:
		if t.full() {
			return false, nil
		}
		t.used++
		*e = *x
		return true, nil
	case x.Count > MaxCount-e.Count:
		return false, ErrTooOften
	}
	e.Count += x.Count
	e.Groups += x.Groups
	if e.LastGroup == x.FirstGroup {
		e.Groups--
	}
	e.LastGroup = x.LastGroup
	return true, nil
}

// visit calls f with the entry of an element.
func (t *table) visit(d hash128.Digest, number int64, f func(number int64, e *Entry)) error {
	e := t.find(d)
	if e == nil || e.Count == 0 {
		return ErrNotCounted
	}
	f(number, e)
	return nil
}

// grow doubles the table.
func (t *table) grow() {
	next := newTable(t.bits+1, t.skip)
	for i := range t.slots {
		if e := &t.slots[i]; e.Count > 0 {
			*next.find(e.Digest) = *e
		}
	}
	next.used = t.used
	*t = *next
}

// clear empties the table and keeps its memory.
func (t *table) clear() {
	clear(t.slots)
	t.used = 0
}

// sorted moves the entries to the front, ordered by part, and returns them. The
// table is of no use until it is cleared.
func (t *table) sorted() []Entry {
	n := 0
	for i := range t.slots {
		if t.slots[i].Count == 0 {
			continue
		}
		// Few are out of order, and by a few slots.
		e, p, at := t.slots[i], partOf(t.slots[i].Digest), n
		for ; at > 0 && partOf(t.slots[at-1].Digest) > p; at-- {
			t.slots[at] = t.slots[at-1]
		}
		t.slots[at] = e
		n++
	}
	return t.slots[:n]
}
