package format

import (
	"hash/maphash"
	"math/bits"
)

// Multiset is a digest of byte strings whose order does not count: the sum,
// modulo 2^128, of digests of 128 bits, and how many there are. Equal multisets
// have equal digests. Of multisets that differ, the digests are equal with a
// probability below 2^-90, whatever the input, because the keys are random. A sum,
// unlike an exclusive or, keeps strings that come an even number of times.
// Digests of one MultisetHash are compared with ==.
type Multiset struct {
	N      int64
	hi, lo uint64
}

// Add adds a string by its 128-bit digest.
func (m *Multiset) Add(hi, lo uint64) {
	m.N++
	var carry uint64
	m.lo, carry = bits.Add64(m.lo, lo, 0)
	m.hi, _ = bits.Add64(m.hi, hi, carry)
}

// MultisetHash makes 128-bit digests of two hashes with random keys.
type MultisetHash struct{ a, b maphash.Seed }

// NewMultisetHash returns a hash with new keys.
func NewMultisetHash() MultisetHash { return MultisetHash{maphash.MakeSeed(), maphash.MakeSeed()} }

// Sum returns the digest of a string.
func (h MultisetHash) Sum(p []byte) (hi, lo uint64) {
	return maphash.Bytes(h.a, p), maphash.Bytes(h.b, p)
}
