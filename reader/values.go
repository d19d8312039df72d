package reader

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/format/value"
)

// Values holds the codecs of the values of one state of a handle.
type Values = value.ElementCodecs

// Values returns the codecs of a state of a handle, from the serializer snapshots
// in its stream.
func (s *Snapshot) Values(ctx context.Context, h *format.OperatorHandle, state int) (Values, error) {
	st := &h.States[state]
	switch h.Codec {
	case format.CodecNative:
		if st.Mode == format.ModeBroadcast {
			return Values{Key: native.ValueCodec{}, Value: native.ValueCodec{}}, nil
		}
		return Values{Element: native.ValueCodec{}}, nil
	case format.CodecRaw:
		if v, ok := s.givenValues(h, st, nil, nil); ok {
			return v, nil
		}
		return Values{Why: "raw state does not record its types"}, nil
	}
	schemas, err := s.src.operators.Schema(ctx, s.src, h)
	if err != nil && !errors.Is(err, format.ErrUnsupported) {
		return Values{}, err
	}
	for _, schema := range schemas {
		if schema.Name == st.Name && schema.Mode == st.Mode {
			key, value := schema.Serializer("KEY_SERIALIZER"), schema.Serializer("VALUE_SERIALIZER")
			if v, ok := s.givenValues(h, st, key, value); ok {
				return v, nil
			}
			return s.connectorValues(ctx, h, st, flinkValues(st.Mode, key, value, s.valueOptions())), nil
		}
	}
	if v, ok := s.givenValues(h, st, nil, nil); ok {
		return v, nil
	}
	why := "it has no serializer snapshot"
	if err != nil { // what precedes it was not walked to its end
		why = err.Error()
	}
	return Values{Why: why}, nil
}

// connectorValues returns v, for a state of a connector with the codec of what the
// connector stores in it: to Flink that is bytes.
func (s *Snapshot) connectorValues(ctx context.Context, h *format.OperatorHandle, st *format.NamedState, v Values) Values {
	if st.Mode == format.ModeBroadcast || !connector.Knows(st.Name.String()) {
		return v
	}
	metas, err := s.src.operators.Describe(ctx, s.src, h)
	if err != nil {
		return v // the elements are read by their serializer
	}
	for _, m := range metas {
		if c, ok := connector.Elements(m.Name.String(), m.Envelope); ok && m.Name == st.Name && m.Mode == st.Mode {
			return Values{Element: connector.Or(c, v.Element)}
		}
	}
	return v
}

// valueOptions returns what the version of _metadata tells about values.
func (s *Snapshot) valueOptions() types.Options {
	version, ok := metadata.VersionOf(s.Savepoint)
	if !ok {
		return types.Options{}
	}
	first, last := flink.WritersOf(int(version))
	if first == 0 || first.Facts().Kryo.Newest() != last.Facts().Kryo.Newest() {
		return types.Options{}
	}
	return types.Options{Kryo: first.Facts().Kryo.Newest()}
}

func flinkValues(mode format.Mode, key, value *types.Snapshot, o types.Options) Values {
	v, err := types.NewCodec(value, o)
	if err != nil {
		return Values{Why: err.Error()}
	}
	if mode != format.ModeBroadcast {
		return Values{Element: v}
	}
	k, err := types.NewCodec(key, o)
	if err != nil {
		return Values{Why: err.Error()}
	}
	return Values{Key: k, Value: v}
}
