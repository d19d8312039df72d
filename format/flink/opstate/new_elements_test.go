package opstate_test

import (
	"bytes"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestBuildNew: elements that no handle has are built between the elements of a
// handle, compressed or not, and read back as they were given.
func TestBuildNew(t *testing.T) {
	for _, name := range []string{"flink-2.0-operator", "flink-2.0-operator-files-compressed", "sp-014.spt"} {
		dir := testenv.ModuleRoot(t) + "/testdata/savepoints/" + name
		if name != "sp-014.spt" {
			dir = testenv.Fixture(t, name)
		}
		snap := sptest.Open(t, dir)
		built := 0
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				if sub.Managed == nil {
					continue
				}
				codec, err := snap.Codec(sub.Managed.Codec)
				if err != nil {
					t.Fatal(err)
				}
				metas, err := codec.Describe(t.Context(), snap.Source(), sub.Managed)
				if err != nil {
					t.Fatal(err)
				}
				for _, m := range metas {
					k := -1
					for i, st := range sub.Managed.States {
						if st.Name == m.Name && st.Mode == m.Mode {
							k = i
						}
					}
					n := sub.Managed.States[k].Offsets.Len()
					if m.Mode == format.ModeBroadcast || n < 2 {
						continue
					}
					h := sub.Managed
					fresh := [][]byte{[]byte("new"), bytes.Repeat([]byte("long"), 30_000)}
					if h.Codec == format.CodecNative { // each element is a msgpack value: str of 3, and str 32
						fresh[0] = append([]byte{0xa3}, fresh[0]...)
						fresh[1] = append([]byte{0xdb, 0, 1, 0xd4, 0xc0}, fresh[1]...)
					}
					runs := []format.ElementRun{{Handle: h, State: k, Count: 1}, {New: fresh}, {Handle: h, State: k, First: 1, Count: n - 1}}
					out, err := codec.Build(t.Context(), snap.Source(), []format.StateRuns{{StateMeta: m, Runs: runs}})
					if err != nil {
						t.Fatalf("%s %s: %v", name, m.Name, err)
					}
					before, after := elementsOf(t, snap.Source(), codec, h, m.Name.String()), elementsOf(t, snap.Source(), codec, out, m.Name.String())
					want := append([][]byte{before[0], fresh[0], fresh[1]}, before[1:]...)
					if len(after) != len(want) {
						t.Fatalf("%s %s: %d elements, expected %d", name, m.Name, len(after), len(want))
					}
					for i := range want {
						if !bytes.Equal(after[i], want[i]) {
							t.Errorf("%s %s: element %d is %.20q, expected %.20q", name, m.Name, i, after[i], want[i])
						}
					}
					built++
				}
			}
		}
		if built == 0 {
			t.Errorf("%s: nothing was built", name)
		}
	}
}

func elementsOf(t *testing.T, src format.Source, codec format.OperatorCodec, h *format.OperatorHandle, state string) (all [][]byte) {
	t.Helper()
	err := format.EachElement(t.Context(), src, codec, h, state, func(e format.Element) error {
		all = append(all, bytes.Clone(e.Value))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBuildNewEmpty: an element without bytes is refused where its position would be
// lost.
func TestBuildNewEmpty(t *testing.T) {
	snap := sptest.Open(t, testenv.Fixture(t, "flink-2.0-operator-files-compressed"))
	for _, op := range snap.Operators {
		for _, sub := range op.Subtasks {
			if sub.Managed == nil {
				continue
			}
			codec, err := snap.Codec(sub.Managed.Codec)
			if err != nil {
				t.Fatal(err)
			}
			metas, err := codec.Describe(t.Context(), snap.Source(), sub.Managed)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range metas {
				_, err := codec.Build(t.Context(), snap.Source(), []format.StateRuns{{StateMeta: m, Runs: []format.ElementRun{{New: [][]byte{{}}}}}})
				if err == nil {
					t.Errorf("%s: an element without bytes was built", m.Name)
				}
			}
		}
	}
}
