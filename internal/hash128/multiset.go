package hash128

import "math/bits"

// Multiset is a digest of strings in any order: the sum, modulo 2^128, of their
// digests, and their number. Equal multisets have equal digests. Different
// multisets have equal digests with a probability below 2^-90 for any input,
// because the keys are random. A sum, unlike an exclusive or, does not cancel
// strings that occur an even number of times. Multisets of digests of one Hasher
// are compared with ==.
type Multiset struct {
	N      int64
	hi, lo uint64
}

// Merge adds all strings of another multiset.
func (m *Multiset) Merge(o Multiset) {
	m.N += o.N
	var carry uint64
	m.lo, carry = bits.Add64(m.lo, o.lo, 0)
	m.hi, _ = bits.Add64(m.hi, o.hi, carry)
}

// Add adds a string by its digest.
func (m *Multiset) Add(d Digest) {
	m.N++
	var carry uint64
	m.lo, carry = bits.Add64(m.lo, d.Lo, 0)
	m.hi, _ = bits.Add64(m.hi, d.Hi, carry)
}
