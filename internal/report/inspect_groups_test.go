package report

import (
	"io/fs"
	"path/filepath"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/sptest"
)

// TestGroupBytes: of streams whose key groups have known lengths.
func TestGroupBytes(t *testing.T) {
	shared := func(first int32, offsets ...int64) *format.KeyGroups { // key groups in one file of 100 bytes
		return &format.KeyGroups{Codec: format.CodecFlink, Savepoint: true, Range: format.KeyGroupRange{First: first, Count: int32(len(offsets))},
			Offsets: format.OffsetSlice(offsets), Data: &format.File{Path: format.NewText("f"), Relative: true, Length: 100}}
	}
	for _, test := range []struct {
		name    string
		max     int32
		handles []format.KeyedHandle
		want    []int64
	}{
		{"two subtasks", 5, []format.KeyedHandle{
			sptest.KeyGroupStream(true, format.CodecFlink, "header", 0, "a", "", "ccc"), sptest.KeyGroupStream(true, format.CodecFlink, "header", 3, "dddd", "e"),
		}, []int64{1, 0, 3, 4, 1}},
		{"equal streams", 2, []format.KeyedHandle{
			sptest.KeyGroupStream(false, format.CodecNative, "", 0, "aa"), sptest.KeyGroupStream(false, format.CodecNative, "", 1, "aa"),
		}, []int64{2, 2}},
		{"rescaled: parts of one file", 4, []format.KeyedHandle{shared(0, 10, 20), shared(2, 50, 90)}, []int64{10, 30, 40, 10}},
		{"rescaled: each has all of it", 2, []format.KeyedHandle{shared(0, 10, 20), shared(0, 10, 20)}, []int64{10, 80}},
		{"more key groups than the operator has", 1, []format.KeyedHandle{shared(0, 10, 20)}, []int64{10}},
		{"incremental", 4, []format.KeyedHandle{shared(0, 10, 20), &format.Incremental{}}, nil},
		{"a hostile max parallelism", 1 << 30, []format.KeyedHandle{shared(0, 10, 20)}, nil},
	} {
		got, err := groupBytes(t.Context(), sptest.KeyedOperator(test.max, test.handles...))
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: %v, %v, expected %v", test.name, got, err, test.want)
		}
	}
}

// TestGroupBytesSum: key groups of the savepoints of testdata add up to the bytes of
// their keyed state without headers.
func TestGroupBytesSum(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../../testdata/savepoints", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "_metadata" {
			return err
		}
		snap := sptest.Open(t, filepath.Dir(path))
		sum, err := summary.Of(t.Context(), snap.Savepoint)
		if err != nil {
			return err
		}
		for _, op := range sum.Operators {
			groups, err := groupBytes(t.Context(), op.Operator)
			if err != nil {
				return err
			}
			want, got := int64(0), int64(0)
			for _, st := range op.States {
				if st.Kind == summary.Keyed && groups != nil {
					want += st.Stored.State() - st.Framing.State()
					n++
				}
			}
			for _, b := range groups {
				got += b
			}
			if got != want {
				t.Errorf("%s %s: %d bytes in key groups, expected %d", path, op.Label(), got, want)
			}
		}
		return nil
	})
	if err != nil || n < 10 {
		t.Errorf("%d states, %v", n, err)
	}
}
