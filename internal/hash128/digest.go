// Package hash128 identifies byte strings, and multisets of them, by digests of
// 128 bits with random keys that are new in every process, so that no input can
// be crafted to collide. Digests must not be stored.
package hash128

import "hash/maphash"

// Digest identifies a string by its bytes.
type Digest struct{ Hi, Lo uint64 }

// Hasher computes digests. Digests of different Hashers cannot be compared. It is
// safe for concurrent use.
type Hasher struct{ a, b maphash.Seed }

// New returns a Hasher with new keys.
func New() Hasher { return Hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

// Sum returns the digest of a string.
func (h Hasher) Sum(p []byte) Digest {
	return Digest{maphash.Bytes(h.a, p), maphash.Bytes(h.b, p)}
}

// Pieces returns a digest of a string whose bytes are added in pieces.
func (h Hasher) Pieces() *Pieces {
	s := &Pieces{}
	s.a.SetSeed(h.a)
	s.b.SetSeed(h.b)
	return s
}

// Pieces computes the digest of a string that is added in pieces.
type Pieces struct{ a, b maphash.Hash }

// Add appends a piece.
func (s *Pieces) Add(p []byte) {
	s.a.Write(p) //nolint:errcheck // never fails
	s.b.Write(p) //nolint:errcheck // never fails
}

// Sum returns the digest of what was added.
func (s *Pieces) Sum() Digest { return Digest{s.a.Sum64(), s.b.Sum64()} }
