package opstate_test

import (
	"bytes"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
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

// TestBuildNewEntries: entries that a map does not have are built between its entries,
// compressed or not.
func TestBuildNewEntries(t *testing.T) {
	for _, name := range []string{"flink-2.0-operator", "flink-2.0-operator-files-compressed", "sp-014.spt"} {
		dir := testenv.ModuleRoot(t) + "/testdata/savepoints/" + name
		// In Flink long → string: length + 1, characters; in msgpack a string of 3 and nil.
		fresh := []byte("\x00\x00\x00\x00\x00\x00\x00\x63\x04new")
		if name != "sp-014.spt" {
			dir = testenv.Fixture(t, name)
		} else {
			fresh = []byte("\xa3abc\xc0")
		}
		snap := sptest.Open(t, dir)
		built := 0
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				if h := sub.Managed; h != nil {
					for k := range h.States {
						if h.States[k].Name.String() == "rules" {
							buildNewEntry(t, snap, h, k, fresh)
							built++
						}
					}
				}
			}
		}
		if built == 0 {
			t.Errorf("%s: nothing was built", name)
		}
	}
}

func buildNewEntry(t *testing.T, snap *reader.Snapshot, h *format.OperatorHandle, k int, fresh []byte) {
	codec, err := snap.Codec(h.Codec)
	if err != nil {
		t.Fatal(err)
	}
	metas, err := codec.Describe(t.Context(), snap.Source(), h)
	if err != nil {
		t.Fatal(err)
	}
	entries := func(h *format.OperatorHandle) (all []format.MapEntry) {
		err := format.EachEntry(t.Context(), snap.Source(), codec, h, "rules", func(e format.MapEntry) error {
			e.Stored = bytes.Clone(e.Stored)
			all = append(all, e)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	before := entries(h)
	cut := &format.MapCut{Count: int64(len(before)) + 1, Ranges: []format.MapRange{{New: fresh}}}
	for _, e := range before {
		cut.Ranges = append(cut.Ranges, format.MapRange{Off: e.Off, N: int64(len(e.Stored))})
	}
	for _, m := range metas {
		if m.Name.String() != "rules" {
			continue
		}
		out, err := codec.Build(t.Context(), snap.Source(), []format.StateRuns{{StateMeta: m, Runs: []format.ElementRun{{Handle: h, State: k, Count: 1}}, Map: cut}})
		if err != nil {
			t.Fatal(err)
		}
		after := entries(out)
		if len(after) != len(before)+1 || !bytes.Equal(after[0].Stored, fresh) {
			t.Fatalf("%d entries after %d, the first % x", len(after), len(before), after[0].Stored)
		}
		for i, e := range before {
			if !bytes.Equal(e.Stored, after[i+1].Stored) {
				t.Errorf("entry %d: % x, was % x", i, after[i+1].Stored, e.Stored)
			}
		}
	}
}
