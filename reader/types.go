package reader

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// OperatorTypes are the types of the states of an operator.
type OperatorTypes struct {
	Keys   []*types.Type // distinct types of keys; usually one, empty without keyed state
	States []StateTypes
	// Unread is the errors of state that could not be read or decoded, see Schema.
	Unread []error
}

// StateTypes are the types of the parts of a state, from Options.Types or from its
// serializers. A part that the state does not have is nil.
type StateTypes struct {
	types.StateSchema
	Namespace *types.Type // nil if it is void
	UserKey   *types.Type // the key of a map, or of broadcast state
	// Value is the value; of list, union and raw state, and of keyed list state, an
	// element; of a map one value; nil for timers. With a time to live it is a list of
	// a time and the value.
	Value *types.Type
	TTL   bool // each value has a time to live
	// Connector is what a connector stores in the state, "" if it is not of one. Its
	// elements are structures of the connector, whatever Value is.
	Connector string
}

// Types returns the types of the managed state of an operator, as recorded in the
// streams of all its subtasks. err is as in Schema.
func (s *Snapshot) Types(ctx context.Context, op *format.Operator) (all OperatorTypes, err error) {
	schema, unread, err := s.Schema(ctx, op)
	if err != nil {
		return all, err
	}
	all.Unread = unread
	o, given := s.valueOptions(), s.given.of(op)
	typ := func(state string, part types.Part, recorded *types.Snapshot) *types.Type {
		of, yes := given.Of(state, part, recorded)
		if of == nil && !yes {
			return nil
		}
		return types.TypeOf(of, o)
	}
	for _, k := range schema.AllKeys() {
		if t := typ("", types.PartKey, k.Snapshot); !slices.ContainsFunc(all.Keys, func(o *types.Type) bool { return o.String() == t.String() }) {
			all.Keys = append(all.Keys, t)
		}
	}
	for _, st := range schema.States {
		name := st.Name.String()
		p := st.Parts()
		t := StateTypes{StateSchema: st, TTL: p.Value.HasTTL(), Namespace: typ(name, types.PartNamespace, p.Namespace), UserKey: typ(name, types.PartUserKey, p.UserKey)}
		if st.Keyed != types.Timers {
			t.Value = typ(name, types.PartValue, p.Value)
		}
		if t.Namespace != nil && t.Namespace.Kind == types.TypeNull {
			t.Namespace = nil
		}
		if _, yes := given.Of(name, types.PartValue, p.Value); !yes && p.Value != nil && st.Keyed == "" && st.Mode != format.ModeBroadcast {
			t.Connector = connector.What(name, p.Value.Raw)
		}
		all.States = append(all.States, t)
	}
	return all, nil
}
