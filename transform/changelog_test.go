package transform

import (
	"errors"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
)

// Changes that two new subtasks would share are applied twice by the rescale
// after this one: real Flink did (docs/flink-notes.md). Without changes, or for
// one new subtask, the handle is written.
func TestSharedChangesAreRefused(t *testing.T) {
	changes := []format.KeyedHandle{&format.ChangelogStream{Range: format.KeyGroupRange{First: 0, Count: 64}}}
	for _, c := range []struct {
		name    string
		changes []format.KeyedHandle
		to      int32
		refused bool
	}{
		{"divided, with changes", changes, 4, true},
		{"divided, without changes", nil, 4, false},
		{"whole, with changes", changes, 2, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := &format.Changelog{Range: format.KeyGroupRange{First: 0, Count: 64}, Changes: c.changes}
			dealt, err := assign.Keyed([]format.KeyedHandle{h, nil}, 2, c.to, 128)
			if err != nil {
				t.Fatal(err)
			}
			got, err := keyedState(dealt[0], []*format.Subtask{{ManagedKeyed: h}, {}}, false, nil)
			if c.refused != errors.Is(err, format.ErrUnsupported) || c.refused == (got != nil) {
				t.Errorf("got %v, %v; refused: %v", got, err, c.refused)
			}
		})
	}
}
