package transform

import (
	"hash/maphash"
	"math/bits"
	"slices"
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

// pieces makes the digest of bytes that come in pieces.
func (h hasher) pieces() *pieces {
	s := &pieces{}
	s.a.SetSeed(h.a)
	s.b.SetSeed(h.b)
	return s
}

type pieces struct{ a, b maphash.Hash }

func (s *pieces) add(p []byte) {
	s.a.Write(p) //nolint:errcheck // never fails
	s.b.Write(p) //nolint:errcheck // never fails
}

func (s *pieces) sum() digest { return digest{s.a.Sum64(), s.b.Sum64()} }

// maxTally is how many different elements are counted in one pass: 3 M, which
// take 96 MiB. Of more, each pass counts a part, told apart by their digests.
const maxTally = 3 << 20

// tally counts how often each element comes. It is an open hash table of 24
// bytes a slot, at most three quarters full.
type tally struct {
	slots []tallySlot
	used  int
	limit int
}

type tallySlot struct {
	key   digest
	count uint32 // times it came, up to mostTimes; 0: the slot is free
	seen  uint32 // for the caller: of a second walk, times met; of a census, the last subtask
}

const mostTimes = 1<<32 - 1

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

// warm looks at the slots of many elements at once, so that the memory they lie
// in comes together and not one after another. The sum has no meaning.
func (t *tally) warm(all []elementMet) (sum uint32) {
	mask := uint64(len(t.slots) - 1)
	for i := range all {
		sum += t.slots[all[i].d.lo&mask].count
	}
	return sum
}

// elementMet is an element that was met.
type elementMet struct {
	d      digest
	number int64
	size   int
	// subtask that holds it, by its index among the handles.
	subtask int
}

// add counts an element and returns how often it came so far. ok is false when
// the table is full.
func (t *tally) add(d digest) (count uint32, ok bool) {
	s := t.slot(d)
	if s == nil {
		return 0, false
	}
	return s.count, true
}

// slot counts an element and returns its slot, valid until the next call, or nil
// when the table is full.
func (t *tally) slot(d digest) *tallySlot {
	s := t.find(d)
	if s.count == 0 {
		if t.used >= t.limit {
			return nil
		}
		if t.used*4 >= len(t.slots)*3 {
			t.grow()
			s = t.find(d)
		}
		t.used++
		s.key = d
	}
	if s.count < mostTimes {
		s.count++
	}
	return s
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

// bitmap is a set of elements by number. It grows as it is filled.
type bitmap []uint64

func (b *bitmap) set(i int64) {
	w := int(i / 64)
	if w >= len(*b) {
		*b = slices.Grow(*b, w+1-len(*b))
		*b = (*b)[:cap(*b)]
	}
	(*b)[w] |= 1 << (i % 64)
}

// word is the 64 numbers from 64*w on.
func (b bitmap) word(w int64) uint64 {
	if w >= int64(len(b)) {
		return 0
	}
	return b[w]
}

// runs calls f with each run of numbers from first to first+n that are in the
// set, counted from first.
func (b bitmap) runs(first, n int64, f func(at, count int64)) {
	end := first + n
	for i := first; i < end; {
		rest := b.word(i/64) >> (i % 64)
		if rest == 0 {
			i += 64 - i%64
			continue
		}
		i += int64(bits.TrailingZeros64(rest))
		at := i
		for i < end {
			ones := int64(bits.TrailingZeros64(^(b.word(i/64) >> (i % 64))))
			if i += ones; ones == 0 || i%64 != 0 {
				break
			}
		}
		if i = min(i, end); i > at {
			f(at-first, i-at)
		}
	}
}
