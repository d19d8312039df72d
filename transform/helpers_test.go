package transform

import (
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/writer"
)

// sealed writes a view of a snapshot and opens what was written.
func sealed(t testing.TB, stores storage.Resolver, snap *reader.Snapshot, v format.View, target string) *reader.Snapshot {
	t.Helper()
	if _, err := writer.Write(t.Context(), v, target, &writer.Options{Stores: stores}); err != nil {
		t.Fatal(err)
	}
	return sptest.OpenIn(t, stores, target)
}

// st is one state of a made handle.
type st struct {
	Name     string
	Mode     format.Mode
	Elements []string
}

// nativeHandle makes a handle of native state from elements that are short
// strings: their msgpack form is made by hand.
func nativeHandle(name string, states ...st) *format.OperatorHandle {
	h := &format.OperatorHandle{Codec: format.CodecNative}
	var p []byte
	for _, s := range states {
		offsets := format.OffsetSlice{}
		for _, e := range s.Elements {
			offsets = append(offsets, int64(len(p)))
			p = append(p, packed(e)...)
		}
		h.States = append(h.States, format.NamedState{Name: format.NewText(s.Name), Mode: s.Mode, Offsets: offsets})
	}
	h.Data = &format.Inline{Name: format.NewText(name), Data: format.NewBytes(p)}
	return h
}

// packed is a msgpack string of up to 31 bytes.
func packed(s string) string {
	if len(s) > 31 {
		panic("too long")
	}
	return string([]byte{byte(0xa0 + len(s))}) + s
}

// rawStates is a handle of raw codec: elements one after another.
func rawStates(states ...st) *format.OperatorHandle {
	var all []sptest.State
	for _, s := range states {
		all = append(all, sptest.State(s))
	}
	return sptest.RawHandle(all...)
}

// operatorStates counts the operator states of a kind that subtasks held, each
// once for an operator.
func operatorStates(t *testing.T, all []testenv.KnownSnapshot, kind string) int {
	states := map[string]bool{}
	for _, k := range all {
		for _, op := range sptest.TruthOf(t, k.Dir).Operators {
			for _, s := range op.Subtasks {
				for name, st := range s.OperatorState {
					if st.Kind == kind {
						states[k.Name+"/"+op.ID+"/"+name] = true
					}
				}
			}
		}
	}
	return len(states)
}

// ofShape returns the snapshots of jobs of a shape.
func ofShape(all []testenv.KnownSnapshot, shape string) (some []testenv.KnownSnapshot) {
	for _, k := range all {
		if k.Shape == shape {
			some = append(some, k)
		}
	}
	return some
}
