package transform

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/transform/internal/keygroups"
)

// TestRescaleStreamsOfEqualBytes: two subtasks without entries have streams of
// equal bytes, in which all key groups of both start where the header ends. They
// are two streams, although they are stored once in an .spt file.
func TestRescaleStreamsOfEqualBytes(t *testing.T) {
	in := sptest.View(sptest.KeyedOperator(6,
		sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 0, "", ""),
		sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 2, "", ""),
		sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 4, "", "x")))
	got, err := rescaled(t, in, 1)
	if want := []string{"0–5 HEAD||||||x"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q: %v", got, err)
	}
}

// TestNativeWithoutOffsets: without an array of offsets there are no entries, and
// what a rescale makes has offsets all the same: where the header ends.
func TestNativeWithoutOffsets(t *testing.T) {
	a, b := sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 0), sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 2, "x", "")
	a.Range.Count, a.Offsets = 2, nil
	got, err := rescaled(t, sptest.View(sptest.KeyedOperator(4, a, b)), 1)
	if want := []string{"0–3 HEAD|||x|"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q: %v", got, err)
	}
}

// TestExtentsOutside: a key group that starts or ends outside its stream is corrupt,
// also where only the one before or after it is asked for.
func TestExtentsOutside(t *testing.T) {
	for _, tt := range []struct {
		offsets format.OffsetSlice
		corrupt []bool
	}{
		{format.OffsetSlice{4, 5, 6}, []bool{false, false, false}}, // the last one is empty
		{format.OffsetSlice{4, 400}, []bool{true, true}},
		{format.OffsetSlice{4, 7}, []bool{true, true}},
		{format.OffsetSlice{-4, 5}, []bool{true, false}},
		{format.OffsetSlice{5, 4}, []bool{false, false}}, // in another order
	} {
		h := sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 0, "a", "b") // six bytes
		h.Range.Count, h.Offsets = int32(len(tt.offsets)), tt.offsets
		k, err := keygroups.Locate(t.Context(), []*format.KeyGroups{h}, func(s format.Stream) (int64, error) { return s.Size(), nil })
		if err != nil {
			t.Fatal(err)
		}
		for g, corrupt := range tt.corrupt {
			e, ok, err := k.Extent(h, int32(g))
			if errors.Is(err, format.ErrCorrupt) != corrupt || err == nil && (!ok || e.Start != tt.offsets[g]) {
				t.Errorf("%d, key group %d: %+v, %t, %v", tt.offsets, g, e, ok, err)
			}
		}
	}
}

// TestMergeCanonical: in canonical streams a key group without a byte gets offset 0,
// whatever it had: at the offset that it would have, Flink reads entries. They are
// not merged with full streams of another kind, nor behind a header that is too
// long to be compared.
func TestMergeCanonical(t *testing.T) {
	equal := sptest.KeyGroupStream(false, format.CodecFlink, "HEAD", 0, "", "a", "", "")
	equal.Savepoint = true
	for to, want := range map[int32][]string{
		1: {"0–3 HEAD|none|a|none|none"},
		2: {"0–1 HEAD|none|a", "2–3 HEAD|none|none"},
	} {
		in := sptest.View(sptest.KeyedOperator(4, equal))
		if to == 1 { // else it is one handle, which is taken as it is
			half := *equal
			half.Range.Count, half.Offsets = 2, equal.Offsets.(format.OffsetSlice)[:2]
			rest := *equal
			rest.Range, rest.Offsets = format.KeyGroupRange{First: 2, Count: 2}, equal.Offsets.(format.OffsetSlice)[2:]
			in = sptest.View(sptest.KeyedOperator(4, &half, &rest))
		}
		got, err := rescaled(t, in, to)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("to %d: %q, %v", to, got, err)
		}
	}
	heap := sptest.KeyGroupStream(false, format.CodecFlink, "HEAD", 4, "b")
	if _, err := rescaled(t, sptest.View(sptest.KeyedOperator(5, equal, heap)), 1); !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "different kinds") {
		t.Errorf("canonical and not: %v", err)
	}
	long := &format.KeyGroups{Data: &format.File{Length: 1 << 40}}
	if _, err := keyedHeader(t.Context(), sptest.Memory{}, long, maxKeyedHeader+1); !errors.Is(err, format.ErrLimit) {
		t.Errorf("a long header: %v", err)
	}
}
