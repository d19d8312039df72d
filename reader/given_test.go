package reader_test

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
)

// textCodec is a codec of a user: all bytes, as a text.
type textCodec struct{}

func (textCodec) Skip(p []byte) (int, error) { return len(p), nil }
func (textCodec) Read(p []byte) (value.Value, int, error) {
	if len(p) == 15 {
		return value.Value{}, 0, format.Errorf(format.ErrUnsupported, "15 bytes")
	}
	return value.String(string(p)), len(p), nil
}
func (textCodec) Append(dst []byte, v value.Value) ([]byte, error) {
	return append(dst, v.Text()...), nil
}

// TestGivenTypes: a codec that the caller registers reads the values of its state.
func TestGivenTypes(t *testing.T) {
	sp := filepath.Join(testenv.ModuleRoot(t), "testdata", "savepoints", "sp-001")
	snap, err := reader.Open(t.Context(), sp, &reader.Options{Types: func(op *format.Operator, state string, part types.Part, recorded *types.Snapshot) *types.Snapshot {
		if op != nil && state == "buffered-elements" && part == types.PartValue && recorded != nil {
			return types.Given("text", textCodec{})
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	for _, op := range snap.Operators {
		for _, sub := range op.Subtasks {
			if sub.Managed == nil {
				continue
			}
			for k := range sub.Managed.States {
				v, err := snap.Values(t.Context(), sub.Managed, k)
				if err != nil {
					t.Fatal(err)
				}
				one, _, err := v.Element.Read([]byte("\x00\x00\x00\x00\x00\x00\x00\x07"))
				if given := sub.Managed.States[k].Name.String() == "buffered-elements"; given != (err == nil && one.Kind() == value.KindString) {
					t.Errorf("%s: %v, %v", sub.Managed.States[k].Name, one, err)
				} else if given {
					if _, _, err := v.Element.Read(make([]byte, 15)); !errors.Is(err, format.ErrCorrupt) {
						t.Errorf("bytes that are not of the type: %v", err)
					}
				}
			}
		}
		all, err := snap.Types(t.Context(), op)
		if err != nil {
			t.Fatal(err)
		}
		for _, st := range all.States {
			if st.Name.String() == "buffered-elements" && st.Value.String() != "text" {
				t.Errorf("it has the type %s", st.Value)
			}
		}
	}
}
