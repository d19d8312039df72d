package reader

import (
	"context"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/ability"
)

// Codec returns the codec that reads and builds handles of the given codec. An
// unknown codec is format.ErrUnsupported.
func (s *Snapshot) Codec(id format.CodecID) (format.OperatorCodec, error) {
	switch id {
	case format.CodecFlink, format.CodecRaw:
		return &s.src.operators, nil
	case format.CodecNative:
		return native.Codec{}, nil
	}
	return nil, format.Errorf(format.ErrUnsupported, "operator state of codec %q", string(id))
}

// KeyedCodec returns the codec of a handle of keyed state. Only state of Go
// programs is supported; for Flink's keyed state, whose entries are not read yet,
// the error is format.ErrUnsupported.
func (s *Snapshot) KeyedCodec(h format.KeyedHandle) (format.KeyedCodec, error) {
	if g, ok := h.(*format.KeyGroups); ok && g.Codec == format.CodecNative {
		return native.KeyedCodec{}, nil
	}
	return nil, format.Errorf(format.ErrUnsupported, "entries of this keyed state")
}

// URI returns the URI of the snapshot's directory, against which relative references
// are resolved.
func (s *Snapshot) URI(ctx context.Context) (string, error) {
	return ability.URI(ctx, s.src.store, s.src.dir, s.Location)
}
