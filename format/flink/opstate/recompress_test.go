package opstate_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
)

// expanded is the bytes of a recompressed stream, those that are computed read in
// pieces of n.
func expanded(t *testing.T, src format.Source, s format.Stream, n int64) string {
	t.Helper()
	c, ok := s.(*format.Concat)
	if !ok {
		return string(content(t, src, s))
	}
	var all []byte
	for _, part := range c.Parts {
		m, computed := part.Of.(*format.Computed)
		if !computed {
			all = append(all, content(t, src, part.Of)[part.Off:part.Off+part.N]...)
			continue
		}
		p := make([]byte, part.N)
		for off := int64(0); off < part.N; off += n {
			if err := m.Maker.MakeAt(t.Context(), src, p[off:min(off+n, part.N)], off); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, p...)
	}
	return string(all)
}

// TestRecompress compares with a writer that shares nothing with the code: the
// streams are equal, byte for byte, in both directions.
func TestRecompress(t *testing.T) {
	long := strings.Repeat("compressible ", 20000) // several chunks
	for name, states := range map[string][]state{
		"lists":             {{name: "a", elements: []string{"one", "two", ""[:0] + "three"}}, {name: "b", mode: format.ModeUnion, elements: []string{long, "x", long}}},
		"a broadcast state": {{name: "a", elements: []string{"one"}}, {name: "m", mode: format.ModeBroadcast, elements: []string{"\x00\x00\x00\x00"}}},
		"exactly a chunk":   {{name: "a", elements: []string{strings.Repeat("y", 65536), strings.Repeat("y", 65537)}}},
		"states without elements": {
			{name: "none"}, {name: "a", elements: []string{"one"}}, {name: "nothing"},
		},
		"no element at all": {{name: "none"}},
		// The extent of the serializer snapshot is not known.
		"an unknown class": {{name: "a", class: "com.acme.Snapshot", elements: []string{"one", "two"}}},
	} {
		t.Run(name, func(t *testing.T) {
			src := &memory{}
			plain, framed := stream(how{version: 6}, states...), stream(how{version: 6, framed: "one header"}, states...)
			perState := stream(how{version: 6, framed: "header per state"}, states...)
			for _, x := range []struct {
				name     string
				in, want *format.OperatorHandle
				compress bool
			}{{"compressed", plain, framed, true}, {"decompressed", framed, plain, false}, {"of a release before the fix", perState, plain, false}} {
				got, err := (&opstate.Codec{}).Recompress(t.Context(), src, x.in, x.compress)
				if err != nil {
					t.Fatal(x.name, err)
				}
				want := string(content(t, src, x.want.Data))
				for _, n := range []int64{1 << 20, 7} {
					if p := expanded(t, src, got.Data, n); p != want {
						t.Errorf("%s: other bytes: %d, want %d", x.name, len(p), len(want))
					}
				}
				for i, st := range x.want.States {
					if o := got.States[i]; o.Name != st.Name || o.Mode != st.Mode || !slices.Equal(offsetsOf(t, o.Offsets), offsetsOf(t, st.Offsets)) {
						t.Errorf("%s: %q: offsets %v, want %v", x.name, o.Name, offsetsOf(t, o.Offsets), offsetsOf(t, st.Offsets))
					}
				}
			}
			for _, h := range []*format.OperatorHandle{plain, framed} {
				if same, err := (&opstate.Codec{}).Recompress(t.Context(), src, h, h == framed); err != nil || same != h {
					t.Errorf("not the same handle: %v", err)
				}
			}
		})
	}
}

// TestRecompressRefuses: what cannot be, or would lose elements.
func TestRecompressRefuses(t *testing.T) {
	two := state{name: "a", elements: []string{"one", "two"}}
	empty := state{name: "a", elements: []string{"one", "", "two"}}
	broken := stream(how{version: 6, framed: "one header", unflushed: true}, two)
	for _, x := range []struct {
		name     string
		h        *format.OperatorHandle
		compress bool
		kind     error
		text     string
	}{
		{"raw state", stream(how{}, two), true, format.ErrUnsupported, "user code"},
		{"before 1.18", stream(how{version: 5}, two), true, format.ErrUnsupported, "version 5 cannot be compressed"},
		{"an element without bytes", stream(how{version: 6}, empty), true, format.ErrUnsupported, "element 1 has no bytes"},
		{"FLINK-34063", broken, false, format.ErrCorrupt, "FLINK-34063"},
	} {
		if h, err := (&opstate.Codec{}).Recompress(t.Context(), &memory{}, x.h, x.compress); h != nil || !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	// Decompressed, an element without bytes is where it is.
	if h, err := (&opstate.Codec{}).Recompress(t.Context(), &memory{}, stream(how{version: 5}, empty), false); err != nil || len(offsetsOf(t, h.States[0].Offsets)) != 3 {
		t.Error(err)
	}
	// A stream that changed meanwhile.
	plain := stream(how{version: 6}, state{name: "a", elements: []string{strings.Repeat("a", 100)}})
	got, err := (&opstate.Codec{}).Recompress(t.Context(), &memory{}, plain, true)
	if err != nil {
		t.Fatal(err)
	}
	p := content(t, &memory{}, plain.Data)
	for i := len(p) - 100; i < len(p); i++ {
		p[i] = byte(i * 7)
	}
	plain.Data.(*format.Inline).Data = format.NewBytes(p)
	part := got.Data.(*format.Concat).Parts[1]
	if err := part.Of.(*format.Computed).Maker.MakeAt(t.Context(), &memory{}, make([]byte, part.N), 0); !errors.Is(err, format.ErrChanged) {
		t.Errorf("a stream that changed: %v", err)
	}
}
