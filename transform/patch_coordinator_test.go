package transform_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// TestPatchCoordinator: the coordinator of each Kafka source of the corpus gets another
// topic in its first partition, and nothing else changes; back, the bytes are the same.
func TestPatchCoordinator(t *testing.T) {
	eachKafka(t, func(t *testing.T, snap *reader.Snapshot, s *transform.SourceOffsets) {
		stored := func(v format.View) ([]byte, []byte) {
			t.Helper()
			for _, op := range v.Operators {
				if op.ID == s.Operator.ID {
					p := sptest.Bytes(t, v.Source, op.Coordinator)
					state, err := value.ReadAll(connector.Coordinator(""), p)
					if err != nil {
						t.Fatal(err)
					}
					return p, state.AppendJSON(nil, nil, nil)
				}
			}
			t.Fatal("the operator is gone")
			return nil, nil
		}
		change := func(json []byte) transform.PatchChange {
			return transform.PatchChange{Operator: s.Operator.ID, Coordinator: true, Subtask: transform.AllSubtasks, Index: transform.NoIndex, Value: transform.PatchValue{JSON: json}}
		}
		before, text := stored(snap.View())
		if _, r, err := patched(t.Context(), snap, change(text)); err != nil || r.States[0].Changed() || r.States[0].Same != 1 {
			t.Errorf("the same value: %+v, %v", r, err)
		}
		topic := `"topic":"` + s.Partitions[0].Topic + `"`
		other := bytes.Replace(text, []byte(topic), []byte(`"topic":"another topic"`), 1)
		if bytes.Equal(other, text) {
			t.Fatalf("the coordinator does not list the topic: %s", text)
		}
		v, r, err := patched(t.Context(), snap, change(other))
		if err != nil || len(r.States) != 1 || r.States[0].Replaced != 1 || !r.States[0].Coordinator {
			t.Fatalf("%+v, %v", r, err)
		}
		if _, got := stored(v); !bytes.Equal(got, other) {
			t.Errorf("%s, want %s", got, other)
		}
		after, _ := written(t, v)
		again, _, err := patched(t.Context(), after, change(text))
		if err != nil {
			t.Fatal(err)
		}
		if p, _ := stored(again); !bytes.Equal(p, before) {
			t.Errorf("%x, was %x", p, before)
		}
		for json, want := range map[string]string{
			string(bytes.Replace(text, []byte(topic), []byte(`"topic":5`), 1)): "expected a string",
			"null": "expected",
		} {
			if _, _, err := patched(t.Context(), snap, change([]byte(json))); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", json, err, want)
			}
		}
	})
}
