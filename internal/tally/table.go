package tally

import "github.com/savepoint-tools/spt/internal/hash128"

// Entry is a distinct element and its counts.
type Entry struct {
	hash128.Digest
	First  int64  // number of its first occurrence
	Count  uint32 // occurrences; 0 if the slot is free
	Size   uint32 // bytes of the element
	Groups uint32 // number of groups in which it occurred
	// The first and the last of the groups.
	FirstGroup, LastGroup uint16
}

// MaxCount is the maximum number of occurrences of an element.
const MaxCount = 1<<32 - 1

// table is a hash table with open addressing that is at most three quarters full.
// The first bits of a digest select the slot, and probing never wraps around, so
// that the slots are ordered by digest, except for entries of neighboring slots.
type table struct {
	slots []Entry // 1<<bits slots, and more past the end for the last entries
	bits  uint
	skip  uint // number of leading bits that all digests share
	used  int
}

const (
	minBits = 4
	// mostBits bounds the size of a table, far above the memory of any machine.
	mostBits = 40
	// past is the number of slots after the last one. That many consecutive occupied
	// slots do not occur with random digests; if they do, the table is treated as
	// full.
	past = 1 << 10
)

func newTable(bits, skip uint) *table {
	return &table{slots: make([]Entry, 1<<bits+past), bits: bits, skip: skip}
}

// reuse returns an empty table in the memory of an old one, if that is large
// enough.
func reuse(old *table, bits, skip uint) *table {
	n := 1<<bits + past
	if cap(old.slots) < n {
		return newTable(bits, skip)
	}
	t := &table{slots: old.slots[:n], bits: bits, skip: skip}
	clear(t.slots)
	return t
}

// full reports whether no more entries should be added.
func (t *table) full() bool { return t.used*4 >= 3<<t.bits }

// slot returns the number of the first slot in which a digest may be.
func (t *table) slot(d hash128.Digest) uint64 { return d.Hi << t.skip >> (64 - t.bits) }

// find returns the slot of a digest, or the free slot for it; nil if all are
// occupied.
func (t *table) find(d hash128.Digest) *Entry {
	slots := t.slots[t.slot(d):]
	for i := range slots {
		if e := &slots[i]; e.Count == 0 || e.Digest == d {
			return e
		}
	}
	return nil
}

// add merges an entry into the table; its occurrences are later than the ones in
// the table. It returns false, and changes nothing, if all slots are in use.
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
// table must be cleared before it is used again.
func (t *table) sorted() []Entry {
	n := 0
	for i := range t.slots {
		if t.slots[i].Count == 0 {
			continue
		}
		// Few entries are out of order, and only by a few slots.
		e, p, at := t.slots[i], partOf(t.slots[i].Digest), n
		for ; at > 0 && partOf(t.slots[at-1].Digest) > p; at-- {
			t.slots[at] = t.slots[at-1]
		}
		t.slots[at] = e
		n++
	}
	return t.slots[:n]
}
