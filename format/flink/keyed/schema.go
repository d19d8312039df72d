package keyed

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// NewState is a keyed state that no file has.
type NewState struct {
	Name format.Text
	Kind string // value, list, map, reducing, aggregating or types.Timers
	// Namespace and Value are the serializers. Value is the serializer of one element of
	// a list and of one value of a map, whose keys have UserKey. Timers have no Value.
	// They all have Raw, as [types.Recorded] returns them.
	Namespace, UserKey, Value *types.Snapshot
}

// NewSchema returns the schema of a stream of canonical state with these states, for
// Build, as a release writes it. key is the serializer of keys.
func NewSchema(r flink.Release, key *types.Snapshot, states []NewState) (format.KeyedSchema, error) {
	schema := format.KeyedSchema{Wire: encodeWire(maxVersion, key.AppendWrapped(nil))}
	for _, s := range states {
		p, err := s.meta(r, key)
		if err != nil {
			return format.KeyedSchema{}, format.At(err, "state %q", s.Name)
		}
		schema.States = append(schema.States, format.KeyedState{Name: s.Name, Kind: s.Kind, Wire: encodeWire(maxVersion, p)})
	}
	return schema, nil
}

// meta returns the entry of the state in a header, see [state]. The serializers are in
// the order in which Flink writes them.
func (s *NewState) meta(r flink.Release, key *types.Snapshot) (p []byte, err error) {
	val := s.Value
	switch s.Kind {
	case kindOfList:
		val, err = types.Recorded(types.Nesting("List", val), r)
	case kindOfMap:
		val, err = types.Recorded(types.Nesting("Map", s.UserKey, val), r)
	case types.Timers:
		val, err = types.Recorded(types.Nesting("Timer", key, s.Namespace), r)
	}
	if err != nil {
		return nil, err
	}
	if p, err = java.AppendText(nil, s.Name); err != nil {
		return nil, err
	}
	text := func(s string) { // of constants
		p, _ = java.AppendText(p, format.NewText(s))
	}
	number := func(n uint32) { p = binary.BigEndian.AppendUint32(p, n) }
	switch option := strings.ToUpper(s.Kind); {
	case s.Kind == types.Timers:
		number(kindTimers)
		number(0)
		number(1)
	case kindNames[option] == s.Kind && slices.Contains(NewKinds, s.Kind):
		number(kindValue)
		number(1)
		text(typeOption)
		text(option)
		number(2)
	default:
		return nil, format.Errorf(format.ErrUnsupported, "unknown kind %q of keyed state; available: %s", s.Kind, strings.Join(NewKinds, ", "))
	}
	text(valueKey)
	p = val.AppendWrapped(p)
	if s.Kind != types.Timers {
		text(namespaceKey)
		p = s.Namespace.AppendWrapped(p)
	}
	return p, nil
}

// NewKinds are the kinds of a NewState.
var NewKinds = []string{"value", kindOfList, kindOfMap, "reducing", "aggregating", types.Timers}
