package reader

import (
	"context"
	"errors"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/spt/native"
)

// Values reads the values of one state of a handle: Decode the elements of
// list, union and raw state, Entries the map of broadcast state. Where they are
// nil, values are not decoded, and Why says why.
//
// Values are what types.Decoder and native.Decode make of them: numbers of
// their width, strings, bool, nil, []byte, []any, map[string]any, [Pairs] and
// [][2]any for maps whose keys are not strings, *big.Int, [Decimal], time.Time. A value
// that is sound and still not decoded is a format.ErrUnsupported.
type Values struct {
	Decode  func(p []byte) (any, error)
	Entries func(p []byte) ([]format.Entry, error)
	Why     string
}

// Pairs is the entries of a map in the order of the file.
type Pairs = types.Pairs

// Decimal is a decimal number.
type Decimal = types.Decimal

// Values tells how the values of a state of a handle are read, by what its
// stream says of them.
func (s *Snapshot) Values(ctx context.Context, h *format.OperatorHandle, state int) (Values, error) {
	st := &h.States[state]
	switch h.Codec {
	case format.CodecNative:
		if st.Mode == format.ModeBroadcast {
			return Values{Entries: native.DecodeMap}, nil
		}
		return Values{Decode: native.Decode}, nil
	case format.CodecRaw:
		return Values{Why: "raw state says nothing of its types"}, nil
	}
	schemas, err := s.src.operators.Schema(ctx, s.src, h)
	if err != nil && !errors.Is(err, format.ErrUnsupported) {
		return Values{}, err
	}
	for _, schema := range schemas {
		if schema.Name == st.Name && schema.Mode == st.Mode {
			key, value := schema.Serializer("KEY_SERIALIZER"), schema.Serializer("VALUE_SERIALIZER")
			return flinkValues(st.Mode, key, value), nil
		}
	}
	why := "its serializer is not described"
	if err != nil { // what precedes it was not walked to its end
		why = err.Error()
	}
	return Values{Why: why}, nil
}

func flinkValues(mode format.Mode, key, value *types.Snapshot) Values {
	if mode != format.ModeBroadcast {
		if decode, ok := types.Decoder(value); ok {
			return Values{Decode: decode}
		}
		return Values{Why: notDecoded(value)}
	}
	decode, ok := types.MapDecoder(key, value)
	if !ok {
		why := notDecoded(value)
		if _, ok := types.Decoder(key); !ok {
			why = notDecoded(key)
		}
		return Values{Why: why}
	}
	return Values{Entries: decode}
}

// notDecoded names the serializer whose values are not decoded: of a composite
// the one inside that is the reason.
func notDecoded(s *types.Snapshot) string {
	if s == nil {
		return "its serializer is not described"
	}
	for _, n := range s.Nested {
		if n != nil {
			if _, ok := types.Decoder(n); !ok {
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
