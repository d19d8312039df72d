package tally

import "hash/maphash"

// Digest identifies an element by its bytes: two 64-bit hashes whose keys are
// drawn again in every run, so that no input can be made to collide.
type Digest struct{ Hi, Lo uint64 }

// Hasher computes digests. Digests of different Hashers have nothing in common.
// It is safe for concurrent use.
type Hasher struct{ a, b maphash.Seed }

// NewHasher returns a Hasher with new keys.
func NewHasher() Hasher { return Hasher{maphash.MakeSeed(), maphash.MakeSeed()} }

// Sum returns the digest of an element.
func (h Hasher) Sum(p []byte) Digest {
	return Digest{maphash.Bytes(h.a, p), maphash.Bytes(h.b, p)}
}

// Pieces returns a digest to which the bytes of an element are added in pieces.
func (h Hasher) Pieces() *Pieces {
	s := &Pieces{}
	s.a.SetSeed(h.a)
	s.b.SetSeed(h.b)
	return s
}

// Pieces is the digest of an element that comes in pieces.
type Pieces struct{ a, b maphash.Hash }

// Add appends a piece.
func (s *Pieces) Add(p []byte) {
	s.a.Write(p) //nolint:errcheck // never fails
	s.b.Write(p) //nolint:errcheck // never fails
}

// Sum returns the digest of what was added.
func (s *Pieces) Sum() Digest { return Digest{s.a.Sum64(), s.b.Sum64()} }
