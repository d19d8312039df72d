package transform

import (
	"hash/maphash"
	"math/bits"
)

// digest identifies an element by its bytes: 128 bits of two hashes whose keys
// are drawn anew in every run, so that no input can have been made to collide.
type digest struct{ hi, lo uint64 }

// hasher makes digests.
type hasher struct{ a, b maphash.Seed }

func newHasher() hasher { return hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

func (h hasher) sum(p []byte) digest {
	return digest{maphash.Bytes(h.a, p), maphash.Bytes(h.b, p)}
}

// maxTally is how many different elements are counted in one pass: 2 M, which
// take 128 MiB. Of more, each pass counts a part, told apart by their digests.
const maxTally = 2 << 20

// tally counts how often each element comes. It is an open hash table: 32 bytes
// an element.
type tally struct {
	slots []tallySlot
	used  int
	limit int
}

type tallySlot struct {
	key   digest
	count uint64 // times it came; 0: the slot is free
	seen  uint64 // of them, met again so far by whoever goes through a second time
}

func newTally(limit int) *tally { return &tally{slots: make([]tallySlot, 1024), limit: limit} }

// find gives the slot of an element, or the free one where it belongs.
func (t *tally) find(d digest) *tallySlot {
	mask := uint64(len(t.slots) - 1)
	for i := d.lo & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.count == 0 || s.key == d {
			return s
		}
	}
}

// add counts an element. It is false when the table is full.
func (t *tally) add(d digest) (*tallySlot, bool) {
	s := t.find(d)
	if s.count == 0 {
		if t.used >= t.limit {
			return nil, false
		}
		if t.used*2 >= len(t.slots) {
			t.grow()
			s = t.find(d)
		}
		t.used++
		s.key = d
	}
	s.count++
	return s, true
}

func (t *tally) grow() {
	old := t.slots
	t.slots = make([]tallySlot, 2*len(old))
	for _, s := range old {
		if s.count > 0 {
			*t.find(s.key) = s
		}
	}
}

// reset empties the table for the next pass.
func (t *tally) reset() {
	clear(t.slots)
	t.used = 0
}

// pass is which elements a pass counts: those whose digest has the number n in
// its first bits.
type pass struct{ n, of uint64 } // of is a power of two

func (p pass) has(d digest) bool {
	return p.of == 1 || d.hi>>(64-bits.TrailingZeros64(p.of)) == p.n
}

// bitmap is a set of elements by number.
type bitmap []uint64

func newBitmap(n int64) bitmap { return make(bitmap, (n+63)/64) }

func (b bitmap) set(i int64)      { b[i/64] |= 1 << (i % 64) }
func (b bitmap) has(i int64) bool { return b[i/64]>>(i%64)&1 != 0 }

// runs calls f with each run of numbers from first to first+n that are in the
// set, counted from first.
func (b bitmap) runs(first, n int64, f func(at, count int64)) {
	for i := int64(0); i < n; {
		if !b.has(first + i) {
			if (first+i)%64 == 0 && n-i >= 64 && b[(first+i)/64] == 0 {
				i += 64
				continue
			}
			i++
			continue
		}
		at := i
		for i < n && b.has(first+i) {
			i++
		}
		f(at, i-at)
	}
}
