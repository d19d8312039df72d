package diff

import (
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/transform"
)

// st is one state of a made handle.
type st struct {
	Name     string
	Mode     format.Mode
	Elements []string
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
