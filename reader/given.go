package reader

import (
	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// givenTypes are the types that replace serializers, see Options.Types.
type givenTypes struct {
	types func(op *format.Operator, state string, part types.Part, recorded *types.Snapshot) *types.Snapshot
}

// of returns the types of the states of an operator; nil if none are given.
func (g *givenTypes) of(op *format.Operator) types.Override {
	if g.types == nil || op == nil {
		return nil
	}
	return func(state string, part types.Part, recorded *types.Snapshot) *types.Snapshot {
		return g.types(op, state, part, recorded)
	}
}

// owner returns the operator of a handle, or nil.
func owner(sp *format.Savepoint, h *format.OperatorHandle) *format.Operator {
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			if sub.Managed == h || sub.Raw == h {
				return op
			}
		}
	}
	return nil
}

// givenValues returns the codecs of a state with the given types in place of its
// serializers. ok is false if none is given.
func (s *Snapshot) givenValues(h *format.OperatorHandle, st *format.NamedState, key, val *types.Snapshot) (v Values, ok bool) {
	if s.given.types == nil {
		return v, false
	}
	given := s.given.of(owner(s.Savepoint, h))
	codec := func(part types.Part, recorded *types.Snapshot) value.Codec {
		of, yes := given.Of(st.Name.String(), part, recorded)
		c, err := types.NewCodec(of, s.valueOptions())
		if err != nil {
			if v.Why == "" {
				v.Why = err.Error()
			}
			return nil
		}
		if ok = ok || yes; yes {
			return types.Strict(c, of)
		}
		return c
	}
	value := codec(types.PartValue, val)
	if st.Mode != format.ModeBroadcast {
		v.Element = value
		return v, ok
	}
	v.Value, v.Key = value, codec(types.PartUserKey, key)
	if v.Value == nil || v.Key == nil {
		v.Value, v.Key = nil, nil
	}
	return v, ok
}
