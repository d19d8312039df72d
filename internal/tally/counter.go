package tally

import (
	"encoding/binary"
	"errors"
	"runtime"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// Options are the options of New. The zero value is usable.
type Options struct {
	// Memory is the maximum size of the table in bytes; 0 means 80 MiB, which hold
	// 1.5 million distinct elements. While the table grows, it takes half as much
	// again.
	Memory int64
	// Dir is the directory of temporary files; "" means the system's. Close removes
	// them; on most systems they have no name at all.
	Dir string
	// InMemory makes Add fail with ErrFull if it would need a temporary file.
	InMemory bool
}

// MemoryFor returns the Memory that holds the given number of distinct elements,
// at most the size of the largest table.
func MemoryFor(distinct int64) int64 {
	bits := uint(minBits)
	for bits < mostBits && 3<<bits/4 < distinct {
		bits++
	}
	return entrySize << bits
}

const entrySize = 40 // bytes, in memory and in a temporary file

// ErrTooOften is returned if an element occurs more than MaxCount times. It
// matches format.ErrLimit.
var ErrTooOften error = &countError{format.ErrLimit, "an element occurs more than 4294967295 times"}

// ErrFull is returned by Add of a Counter with Options.InMemory.
var ErrFull = errors.New("too many distinct elements for memory")

// ErrNotCounted is returned by Replay for an element that was not added. It
// matches format.ErrChanged.
var ErrNotCounted error = &countError{format.ErrChanged, "an element was not present when elements were counted"}

// countError is an error with its own text that matches a kind.
type countError struct {
	kind error
	msg  string
}

func (e *countError) Error() string { return e.msg }

// Unwrap returns the kind.
func (e *countError) Unwrap() error { return e.kind }

// Counter counts elements. It must not be used by several goroutines at once.
type Counter struct {
	o       Options
	maxBits uint
	table   *table
	spill   *scratch
	entries int64 // of all runs of spill
	added   int64 // elements since the table was empty
	sealed  bool  // all entries are in spill
	ahead   uint32
}

// New returns an empty Counter. The caller closes it.
func New(o Options) *Counter {
	if o.Memory <= 0 {
		o.Memory = MemoryFor(3 << 19)
	}
	c := &Counter{o: o, maxBits: minBits}
	for entrySize<<(c.maxBits+1) <= o.Memory && c.maxBits < mostBits {
		c.maxBits++
	}
	c.table = newTable(min(c.maxBits, 10), 0)
	return c
}

// Close removes temporary files.
func (c *Counter) Close() error {
	s := c.spill
	c.spill = nil
	if s == nil {
		return nil
	}
	return s.close()
}

// Reset makes c empty again, as New does, but for the table, whose memory stays in use.
func (c *Counter) Reset() error {
	err := c.Close()
	c.table = reuse(c.table, min(c.table.bits, c.maxBits), 0)
	c.entries, c.added, c.sealed = 0, 0, false
	return err
}

// Element is one occurrence of an element.
type Element struct {
	hash128.Digest
	Number int64 // identifies the occurrence; ascending
	// Group is a part of the whole, such as a subtask, for Entry.Groups; ascending.
	Group uint16
	Size  int
}

// Add counts an element.
func (c *Counter) Add(e Element) error {
	x := Entry{Digest: e.Digest, First: e.Number, Count: 1, Size: uint32(e.Size), Groups: 1, FirstGroup: e.Group, LastGroup: e.Group}
	for {
		ok, err := c.table.add(&x)
		if ok || err != nil {
			c.added++
			return err
		}
		if c.table.bits < c.maxBits {
			c.table.grow()
			continue
		}
		if c.o.InMemory {
			return ErrFull
		}
		few := c.added < 2*int64(c.table.used)
		if err := c.write(); err != nil {
			return err
		}
		if few && c.maxBits > cachedBits {
			// Few elements repeat here, and a small table is faster than a large one.
			c.maxBits = cachedBits
			c.table = newTable(cachedBits, 0)
			runtime.GC() // else the heap grows to twice what the large one took
		}
	}
}

// AddAll counts elements in order. With a few dozen or more it is faster than to Add
// each: reads of the table, which often miss the processor's cache, overlap.
func (c *Counter) AddAll(all []Element) error {
	const few = 64
	for len(all) > 0 {
		next := all[:min(len(all), few)]
		all = all[len(next):]
		t := c.table
		for i := range next {
			c.ahead += t.slots[t.slot(next[i].Digest)].Count // the sum has no meaning
		}
		for i := range next {
			if err := c.Add(next[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// cachedBits is the size of a table that stays in a processor's cache: 4 MiB.
const cachedBits = 17

// Find returns the entry of an element, or nil if it was not added. The caller
// may change its Size. If the Counter has made a temporary file, it returns nil.
func (c *Counter) Find(d hash128.Digest) *Entry {
	e := c.table.find(d)
	if c.spill != nil || e == nil || e.Count == 0 {
		return nil
	}
	return e
}

// Spilled reports whether entries were written to a temporary file.
func (c *Counter) Spilled() bool { return c.spill != nil }

// write moves the entries of the table to the temporary file.
func (c *Counter) write() error {
	if c.spill == nil {
		s, err := newScratch(c.o.Dir)
		if err != nil {
			return err
		}
		c.spill = s
	}
	all := c.table.sorted()
	err := c.spill.append(len(all), entrySize, func(i int) hash128.Digest { return all[i].Digest }, func(i int, p []byte) { all[i].put(p) })
	c.entries += int64(len(all))
	c.added = 0
	c.table.clear()
	return err
}

func (e *Entry) put(p []byte) {
	binary.LittleEndian.PutUint64(p, e.Hi)
	binary.LittleEndian.PutUint64(p[8:], e.Lo)
	binary.LittleEndian.PutUint64(p[16:], uint64(e.First))
	binary.LittleEndian.PutUint32(p[24:], e.Count)
	binary.LittleEndian.PutUint32(p[28:], e.Size)
	binary.LittleEndian.PutUint32(p[32:], e.Groups)
	binary.LittleEndian.PutUint16(p[36:], e.FirstGroup)
	binary.LittleEndian.PutUint16(p[38:], e.LastGroup)
}

func (e *Entry) take(p []byte) {
	e.Hi = binary.LittleEndian.Uint64(p)
	e.Lo = binary.LittleEndian.Uint64(p[8:])
	e.First = int64(binary.LittleEndian.Uint64(p[16:]))
	e.Count = binary.LittleEndian.Uint32(p[24:])
	e.Size = binary.LittleEndian.Uint32(p[28:])
	e.Groups = binary.LittleEndian.Uint32(p[32:])
	e.FirstGroup = binary.LittleEndian.Uint16(p[36:])
	e.LastGroup = binary.LittleEndian.Uint16(p[38:])
}

// Each calls f with every distinct element once, in no particular order. The
// entry is valid until f returns. Nothing can be added afterwards.
func (c *Counter) Each(f func(e *Entry) error) error {
	return c.tables(func(t *table, _, _ int) error {
		for i := range t.slots {
			if e := &t.slots[i]; e.Count > 0 {
				if err := f(e); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Pair calls f with every distinct element of two Counters once, in no particular
// order, and with its entries in both; nil where it does not occur. The Counters
// have digests of the same Hasher. Nothing can be added to them afterwards.
func Pair(a, b *Counter, f func(x, y *Entry) error) error {
	if a.spill == nil && b.spill == nil {
		return pair(a.table, b.table, f)
	}
	for _, c := range []*Counter{a, b} {
		if err := c.seal(); err != nil {
			return err
		}
	}
	return divide(a.entries+b.entries, func(lo, hi int, skip uint) error {
		for _, c := range []*Counter{a, b} {
			if err := c.load(lo, hi, skip); err != nil {
				return err
			}
		}
		return pair(a.table, b.table, f)
	})
}

func pair(a, b *table, f func(x, y *Entry) error) error {
	for i := range a.slots {
		x := &a.slots[i]
		if x.Count == 0 {
			continue
		}
		y := b.find(x.Digest)
		if y != nil && y.Count == 0 {
			y = nil
		}
		if err := f(x, y); err != nil {
			return err
		}
	}
	for i := range b.slots {
		y := &b.slots[i]
		if y.Count == 0 {
			continue
		}
		if x := a.find(y.Digest); x == nil || x.Count == 0 {
			if err := f(nil, y); err != nil {
				return err
			}
		}
	}
	return nil
}

// tables calls f with tables that together hold every entry once, and with the
// parts that each of them holds.
func (c *Counter) tables(f func(t *table, lo, hi int) error) error {
	if c.spill == nil {
		return f(c.table, 0, parts)
	}
	if err := c.seal(); err != nil {
		return err
	}
	return divide(c.entries, func(lo, hi int, skip uint) error {
		if err := c.load(lo, hi, skip); err != nil {
			return err
		}
		return f(c.table, lo, hi)
	})
}

// seal writes the entries that are not yet in the temporary file.
func (c *Counter) seal() error {
	if c.sealed {
		return nil
	}
	c.sealed = true
	return c.write()
}

// smallTable is how many entries are brought together at once: their table stays
// in a processor's cache.
const smallTable = 3 << (cachedBits - 2)

// divide calls f with ranges of parts of about smallTable entries each. The
// digests of a range have the first skip bits in common.
func divide(entries int64, f func(lo, hi int, skip uint) error) error {
	skip := uint(0)
	for skip < partBits && entries>>skip > smallTable {
		skip++
	}
	width := parts >> skip
	for lo := 0; lo < parts; lo += width {
		if err := f(lo, lo+width, skip); err != nil {
			return err
		}
	}
	return nil
}

// load merges the entries of the parts from lo to hi in the table.
func (c *Counter) load(lo, hi int, skip uint) error {
	n := int64(0) // at most
	for i := range c.spill.runs {
		n += c.spill.runs[i][hi] - c.spill.runs[i][lo]
	}
	bits := uint(minBits)
	for 3<<bits <= n/entrySize*4 { // room for them
		bits++
	}
	c.table = reuse(c.table, bits, skip)
	var e Entry
	return c.spill.read(lo, hi, entrySize, func(p []byte) error {
		for ; len(p) > 0; p = p[entrySize:] {
			e.take(p)
			if ok, err := c.table.add(&e); err != nil {
				return err
			} else if !ok {
				return errNoRoom
			}
		}
		return nil
	})
}

// errNoRoom does not occur with random digests; see past.
var errNoRoom = errors.New("internal error: no room in a table that was made for its entries")

// Replay calls f with every element again and with its entry, after calling
// prepare with the entry; both may change its Size, but nothing else. each must
// call visit with the elements that were added, in the order of their numbers.
// Elements of one entry are passed in order; entries are in no particular order.
func (c *Counter) Replay(each func(visit func(d hash128.Digest, number int64) error) error, prepare func(e *Entry), f func(number int64, e *Entry)) error {
	if c.spill == nil {
		for i := range c.table.slots {
			if e := &c.table.slots[i]; e.Count > 0 {
				prepare(e)
			}
		}
		return each(func(d hash128.Digest, number int64) error { return c.table.visit(d, number, f) })
	}
	s, err := newScratch(c.o.Dir)
	if err != nil {
		return err
	}
	err = c.replay(s, each, prepare, f)
	return errors.Join(err, s.close())
}
