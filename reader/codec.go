package reader

import (
	"context"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/keyed"
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

// KeyedCodec returns the codec of a handle of keyed state of an operator: of Go
// programs, or of Flink. For changes of a changelog, which are read together with the
// materialized state, the error is format.ErrUnsupported.
func (s *Snapshot) KeyedCodec(op *format.Operator, h format.KeyedHandle) (format.KeyedCodec, error) {
	switch h := h.(type) {
	case *format.KeyGroups:
		if h.Codec == format.CodecNative {
			return native.KeyedCodec{}, nil
		}
		return s.keyedCodec(op), nil
	case *format.Incremental, *format.Changelog:
		return s.keyedCodec(op), nil
	}
	return nil, format.Errorf(format.ErrUnsupported, "entries of a keyed handle of type %T", h)
}

func (s *Snapshot) keyedCodec(op *format.Operator) *keyed.Codec {
	return &keyed.Codec{MaxParallelism: op.MaxParallelism, Types: s.valueOptions(), Override: s.given.of(op)}
}

// URI returns the URI of the snapshot's directory, against which relative references
// are resolved.
func (s *Snapshot) URI(ctx context.Context) (string, error) {
	return ability.URI(ctx, s.src.store, s.src.dir, s.Location)
}
