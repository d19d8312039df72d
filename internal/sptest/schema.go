package sptest

import (
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// Serializer returns a snapshot of one of Flink's simple serializers, such as
// "Long", or of a class with a full name; nil if the name is "".
func Serializer(name string) *types.Snapshot {
	if name == "" {
		return nil
	}
	if !strings.Contains(name, ".") {
		name = "org.apache.flink.api.common.typeutils.base." + name + "SerializerSnapshot"
	}
	return &types.Snapshot{Class: name, Raw: []byte(name)}
}

// StateSchema returns an operator state whose elements have a serializer.
func StateSchema(name string, mode format.Mode, serializer string) types.StateSchema {
	return types.StateSchema{Name: format.NewText(name), Mode: mode, Serializers: []types.Serializer{{Key: "VALUE_SERIALIZER", Snapshot: Serializer(serializer)}}}
}

// KeyedSchema returns a keyed state whose values have a serializer.
func KeyedSchema(name, kind, serializer string) types.StateSchema {
	s := StateSchema(name, 0, serializer)
	s.Keyed = kind
	s.Serializers = append(s.Serializers, types.Serializer{Key: "NAMESPACE_SERIALIZER", Snapshot: Serializer("VoidNamespace")})
	return s
}
