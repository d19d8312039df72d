package opstate_test

import (
	"encoding/hex"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
)

// The worked bytes of the spec (flink-operator-state A13): a list state counts
// of the longs 1 and 2, and a broadcast state rules with the entry 7: 70.
// 0x00 version 6, 0x04 not compressed, 0x05 one list state, 0xbb one broadcast
// state, 0x1d3 the elements.
const version6 = `
	00 00 00 06 00 00 01 00 06 63 6f 75 6e 74 73 00
	00 00 01 00 00 00 01 00 20 4f 50 45 52 41 54 4f
	52 5f 53 54 41 54 45 5f 44 49 53 54 52 49 42 55
	54 49 4f 4e 5f 4d 4f 44 45 00 10 53 50 4c 49 54
	5f 44 49 53 54 52 49 42 55 54 45 00 00 00 01 00
	10 56 41 4c 55 45 5f 53 45 52 49 41 4c 49 5a 45
	52 00 00 00 02 00 50 6f 72 67 2e 61 70 61 63 68
	65 2e 66 6c 69 6e 6b 2e 61 70 69 2e 63 6f 6d 6d
	6f 6e 2e 74 79 70 65 75 74 69 6c 73 2e 62 61 73
	65 2e 4c 6f 6e 67 53 65 72 69 61 6c 69 7a 65 72
	24 4c 6f 6e 67 53 65 72 69 61 6c 69 7a 65 72 53
	6e 61 70 73 68 6f 74 00 00 00 03 00 01 00 05 72
	75 6c 65 73 00 00 00 02 00 00 00 01 00 20 4f 50
	45 52 41 54 4f 52 5f 53 54 41 54 45 5f 44 49 53
	54 52 49 42 55 54 49 4f 4e 5f 4d 4f 44 45 00 09
	42 52 4f 41 44 43 41 53 54 00 00 00 02 00 10 56
	41 4c 55 45 5f 53 45 52 49 41 4c 49 5a 45 52 00
	00 00 02 00 50 6f 72 67 2e 61 70 61 63 68 65 2e
	66 6c 69 6e 6b 2e 61 70 69 2e 63 6f 6d 6d 6f 6e
	2e 74 79 70 65 75 74 69 6c 73 2e 62 61 73 65 2e
	4c 6f 6e 67 53 65 72 69 61 6c 69 7a 65 72 24 4c
	6f 6e 67 53 65 72 69 61 6c 69 7a 65 72 53 6e 61
	70 73 68 6f 74 00 00 00 03 00 0e 4b 45 59 5f 53
	45 52 49 41 4c 49 5a 45 52 00 00 00 02 00 50 6f
	72 67 2e 61 70 61 63 68 65 2e 66 6c 69 6e 6b 2e
	61 70 69 2e 63 6f 6d 6d 6f 6e 2e 74 79 70 65 75
	74 69 6c 73 2e 62 61 73 65 2e 4c 6f 6e 67 53 65
	72 69 61 6c 69 7a 65 72 24 4c 6f 6e 67 53 65 72
	69 61 6c 69 7a 65 72 53 6e 61 70 73 68 6f 74 00
	00 00 03 00 00 00 00 00 00 00 01 00 00 00 00 00
	00 00 02 00 00 00 01 00 00 00 00 00 00 00 07 00
	00 00 00 00 00 00 46
`

// The elements of the same, compressed, a snappy stream per state.
const framed = `
	ff 06 00 00 73 4e 61 50 70 59
	01 0c 00 00 5e e7 95 05 00 00 00 00 00 00 00 01
	01 0c 00 00 ff c4 7d 27 00 00 00 00 00 00 00 02
	ff 06 00 00 73 4e 61 50 70 59
	01 18 00 00 0f 72 e1 1e 00 00 00 01 00 00 00 00 00 00 00 07 00 00 00 00 00 00 00 46
`

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	p, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// vector is the handle of worked bytes, its states in another order than in
// the stream, as they are in real files.
func vector(p []byte, counts, rules int64) *format.OperatorHandle {
	first := counts + (rules-counts)/2
	return &format.OperatorHandle{Codec: format.CodecFlink, Data: &format.Inline{Data: format.NewBytes(p)}, States: []format.NamedState{
		{Name: format.NewText("rules"), Mode: format.ModeBroadcast, Offsets: format.OffsetSlice{rules}},
		{Name: format.NewText("counts"), Mode: format.ModeList, Offsets: format.OffsetSlice{counts, first}},
	}}
}

func vectors(t testing.TB) map[string]*format.OperatorHandle {
	t.Helper()
	v6 := unhex(t, version6)
	v5 := append([]byte{0, 0, 0, 5}, v6[5:]...)
	z := append(slices.Clone(v6[:0x1d3]), unhex(t, framed)...)
	z[4] = 1
	perState := vector(z, 477, 519)
	perState.States[1].Offsets = format.OffsetSlice{477, 493}
	header := z[0x1d3 : 0x1d3+10]
	one := slices.Concat(z[:509], z[519:])
	if len(v6) != 503 || len(v5) != 502 || len(z) != 547 || string(header) != "\xff\x06\x00\x00sNaPpY" {
		t.Fatal("the worked bytes are not those of the spec")
	}
	oneHeader := vector(one, 477, 509)
	return map[string]*format.OperatorHandle{
		"version 6":        vector(v6, 467, 483),
		"version 5":        vector(v5, 466, 482),
		"header per state": perState,
		"one header":       oneHeader,
	}
}

func TestVectors(t *testing.T) {
	for name, h := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			src, codec := &memory{}, &opstate.Codec{}
			metas, err := codec.Describe(t.Context(), src, h)
			if err != nil {
				t.Fatal(err)
			}
			if len(metas) != 2 || metas[0].Name.String() != "counts" || metas[0].Mode != format.ModeList ||
				metas[1].Name.String() != "rules" || metas[1].Mode != format.ModeBroadcast {
				t.Fatalf("%+v", metas)
			}
			v6 := unhex(t, version6)
			if string(metas[0].Envelope) != string(v6[0x07:0xbb]) || string(metas[1].Envelope) != string(v6[0xbd:0x1d3]) {
				t.Error("the descriptions are not verbatim")
			}
			if z, err := codec.Compressed(t.Context(), src, h); err != nil || z != strings.Contains(name, "header") {
				t.Error(z, err)
			}
			schemas, err := codec.Schema(t.Context(), src, h)
			const long = "org.apache.flink.api.common.typeutils.base.LongSerializer$LongSerializerSnapshot"
			if err != nil || len(schemas) != 2 || schemas[0].Serializer("VALUE_SERIALIZER").Class != long ||
				schemas[0].Serializer("KEY_SERIALIZER") != nil || schemas[1].Serializer("KEY_SERIALIZER").Version != 3 {
				t.Errorf("%+v, %v", schemas, err)
			}
			got, err := elements(t.Context(), codec, src, h, "counts", 0)
			if err != nil || !slices.Equal(got, []string{i64(1), i64(2)}) {
				t.Errorf("%q, %v", got, err)
			}
			got, err = elements(t.Context(), codec, src, h, "counts", 1)
			if err != nil || !slices.Equal(got, []string{i64(2)}) {
				t.Errorf("%q, %v", got, err)
			}
			got, err = elements(t.Context(), codec, src, h, "rules", 0)
			if err != nil || !slices.Equal(got, []string{"\x00\x00\x00\x01" + i64(7) + i64(70)}) {
				t.Errorf("%q, %v", got, err)
			}
			for _, at := range []int64{2, 3, -1} {
				got, err := elements(t.Context(), codec, src, h, "counts", at)
				if len(got) > 0 || (err == nil) != (at == 2) {
					t.Errorf("from %d: %q, %v", at, got, err)
				}
			}
			if _, err := codec.Elements(t.Context(), src, h, "nothing", 0); err == nil {
				t.Error("a state that is not there")
			}
			// From itself comes the same; and what was built can be read, and
			// built from, like any other.
			for range 2 {
				built, err := codec.Build(t.Context(), src, runs(t, h, metas))
				if err != nil {
					t.Fatal(err)
				}
				if string(flatten(built.Data)) != string(flatten(h.Data)) {
					t.Fatal("what was built differs")
				}
				if len(built.States) != 2 || built.States[0].Name != metas[0].Name || built.States[1].Name != metas[1].Name ||
					!slices.Equal(offsetsOf(t, built.States[0].Offsets), offsetsOf(t, find(h, "counts").Offsets)) ||
					!slices.Equal(offsetsOf(t, built.States[1].Offsets), offsetsOf(t, find(h, "rules").Offsets)) {
					t.Fatalf("%+v", built.States)
				}
				h = built
				if metas, err = codec.Describe(t.Context(), src, h); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

func find(h *format.OperatorHandle, name string) *format.NamedState {
	for i := range h.States {
		if h.States[i].Name.String() == name {
			return &h.States[i]
		}
	}
	return nil
}
