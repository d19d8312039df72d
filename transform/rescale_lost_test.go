package transform

import (
	"errors"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// Where two old subtasks name their state alike, Flink takes what comes of the
// second for what came of the first, and elements are lost. A rescale must not do
// as Flink does there, and not write something else either.
func TestRescaleRefusesWhatFlinkLoses(t *testing.T) {
	apply := func(a, b *format.OperatorHandle) error {
		t.Helper()
		in := sptest.View(sptest.Operator("x", a, b), sptest.Operator("y", nativeHandle("o", st{"s", format.ModeList, []string{"9"}})))
		p, err := PlanRescale(t.Context(), in, RescaleOptions{To: 1})
		if err != nil {
			t.Fatal(err)
		}
		_, err = p.Apply(t.Context())
		return err
	}
	three := []string{"1", "2", "3"}
	err := apply(nativeHandle("n", st{"s", format.ModeList, three}), nativeHandle("n", st{"s", format.ModeList, three}))
	if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "Flink loses 3 elements") {
		t.Errorf("error %v", err)
	}
	if err := apply(nativeHandle("n", st{"s", format.ModeList, three}), nativeHandle("m", st{"s", format.ModeList, three})); err != nil {
		t.Errorf("names of their own: %v", err)
	}
}
