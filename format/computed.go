package format

import "context"

// Computed is bytes derived from other streams at each read, such as state in
// another encoding. It occurs only as a part of a [Concat].
type Computed struct {
	Length int64
	Name   string // the Key: streams with equal names hold the same bytes
	Maker  Maker
}

// Maker computes the bytes of a [Computed]. It is safe for concurrent use.
type Maker interface {
	// MakeAt fills p with the bytes from off on, reading what it needs from src.
	MakeAt(ctx context.Context, src Source, p []byte, off int64) error
}

func (*Computed) stream() {}

// Size returns the number of bytes.
func (s *Computed) Size() int64 { return s.Length }

// Key returns a key made of the name.
func (s *Computed) Key() StreamKey {
	return StreamKey{Kind: KindComputed, Name: s.Name, Size: s.Length}
}
