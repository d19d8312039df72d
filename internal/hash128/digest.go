// Package hash128 identifies byte strings, and multisets of them, by digests of
// 128 bits under keys that are drawn again in every run, so that no input can be
// made to collide.
package hash128

import "hash/maphash"

// Digest identifies a string by its bytes.
type Digest struct{ Hi, Lo uint64 }

// Hasher computes digests. Digests of different Hashers have nothing in common.
// It is safe for concurrent use.
type Hasher struct{ a, b maphash.Seed }

// New returns a Hasher with new keys.
func New() Hasher { return Hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

// Sum returns the digest of a string.
func (h Hasher) Sum(p []byte) Digest {
	return Digest{maphash.Bytes(h.a, p), maphash.Bytes(h.b, p)}
}

// Pieces returns a digest to which the bytes of a string are added in pieces.
func (h Hasher) Pieces() *Pieces {
	s := &Pieces{}
	s.a.SetSeed(h.a)
	s.b.SetSeed(h.b)
	return s
}

// Pieces is the digest of a string that comes in pieces.
type Pieces struct{ a, b maphash.Hash }

// Add appends a piece.
func (s *Pieces) Add(p []byte) {
	s.a.Write(p) //nolint:errcheck // never fails
	s.b.Write(p) //nolint:errcheck // never fails
}

// Sum returns the digest of what was added.
func (s *Pieces) Sum() Digest { return Digest{s.a.Sum64(), s.b.Sum64()} }
