package reader

import (
	"context"
	"errors"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/format/value"
)

// Values holds the codecs of the values of one state of a handle: Element for the
// elements of list, union and raw state, Key and Value for the entries of
// broadcast state. If they are nil, values are not decoded, and Why is the
// reason.
type Values struct {
	Element    value.Codec
	Key, Value value.Codec
	Why        string
}

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
		return Values{Why: "raw state does not record its types"}, nil
	}
	schemas, err := s.src.operators.Schema(ctx, s.src, h)
	if err != nil && !errors.Is(err, format.ErrUnsupported) {
		return Values{}, err
	}
	for _, schema := range schemas {
		if schema.Name == st.Name && schema.Mode == st.Mode {
			key, value := schema.Serializer("KEY_SERIALIZER"), schema.Serializer("VALUE_SERIALIZER")
			return s.connectorValues(ctx, h, st, flinkValues(st.Mode, key, value)), nil
		}
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

func flinkValues(mode format.Mode, key, value *types.Snapshot) Values {
	v, ok := types.CodecOf(value)
	if !ok {
		return Values{Why: notDecoded(value)}
	}
	if mode != format.ModeBroadcast {
		return Values{Element: v}
	}
	k, ok := types.CodecOf(key)
	if !ok {
		return Values{Why: notDecoded(key)}
	}
	return Values{Key: k, Value: v}
}

// notDecoded names the serializer whose values are not decoded: for a composite,
// the nested one that is the reason.
func notDecoded(s *types.Snapshot) string {
	if s == nil {
		return "it has no serializer snapshot"
	}
	for _, n := range s.Nested {
		if n != nil {
			if _, ok := types.CodecOf(n); !ok {
				return notDecoded(n)
			}
		}
	}
	name := strings.TrimSuffix(s.Class[strings.LastIndexAny(s.Class, ".$")+1:], "Snapshot")
	if s.Type != "" {
		name += " of " + s.Type
	}
	return name
}
