package format

import "context"

// Computed is bytes that are made of other streams each time they are read:
// state in another encoding. It is only a part of a [Concat].
type Computed struct {
	Length int64
	Name   string // Key: computed streams of equal names hold the same bytes
	Maker  Maker
}

// Maker makes the bytes of a [Computed]. It is safe for concurrent use.
type Maker interface {
	// MakeAt fills p with the bytes from off on, reading what it needs from src.
	MakeAt(ctx context.Context, src Source, p []byte, off int64) error
}

func (*Computed) stream() {}

// Size is the number of bytes.
func (s *Computed) Size() int64 { return s.Length }

// Key is the name.
func (s *Computed) Key() StreamKey {
	return StreamKey{Kind: KindComputed, Name: s.Name, Size: s.Length}
}
