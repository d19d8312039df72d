package diff

import (
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/transform"
)

// st is one state of a made handle.
type st struct {
	name  string
	mode  format.Mode
	elems []string
}

func plan(t *testing.T, in format.View, o transform.RescaleOptions) *transform.RescalePlan {
	t.Helper()
	p, err := transform.PlanRescale(t.Context(), in, o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// namedStates is rawStates in a stream of its own name.
func namedStates(name string, states ...st) *format.OperatorHandle {
	h := rawStates(states...)
	h.Data.(*format.Inline).Name = format.NewText(name)
	return h
}

// serializer is a snapshot of one of Flink's simple serializers, or of a class
// that is named whole.
func serializer(name string) *types.Snapshot {
	if name == "" {
		return nil
	}
	if !strings.Contains(name, ".") {
		name = "org.apache.flink.api.common.typeutils.base." + name + "SerializerSnapshot"
	}
	return &types.Snapshot{Class: name, Raw: []byte(name)}
}

func ofList(name string, mode format.Mode, of string) types.StateSchema {
	return types.StateSchema{Name: format.NewText(name), Mode: mode, Serializers: []types.Serializer{{Key: "VALUE_SERIALIZER", Snapshot: serializer(of)}}}
}
