package native_test

import (
	"bytes"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
)

// fuzzOffsets makes small ascending or descending offsets of any bytes.
func fuzzOffsets(p []byte) (o format.OffsetSlice) {
	at := int64(0)
	for _, b := range p[:min(len(p), 100)] {
		at += int64(int8(b))
		o = append(o, at)
	}
	return o
}

// What is accepted is whole msgpack values that lie one behind the other:
// built again they give the same bytes.
func FuzzElements(f *testing.F) {
	h, _ := sample(f)
	data := make([]byte, h.Data.Size())
	if _, err := (&memory{}).read(h.Data, data, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(data, []byte{0, 1, 3}, []byte{7, 1, 3}, []byte{14})
	f.Add(data[14:21], []byte{}, []byte{}, []byte{0})
	f.Add([]byte{0xdd, 0xff, 0xff, 0xff, 0xff}, []byte{0}, []byte{}, []byte{})
	f.Fuzz(func(t *testing.T, data, list, union, rules []byte) {
		h := &format.OperatorHandle{Codec: format.CodecNative, Data: inline(data), States: []format.NamedState{
			{Name: format.NewText("list"), Mode: format.ModeList, Offsets: fuzzOffsets(list)},
			{Name: format.NewText("union"), Mode: format.ModeUnion, Offsets: fuzzOffsets(union)},
			{Name: format.NewText("rules"), Mode: format.ModeBroadcast, Offsets: fuzzOffsets(rules)},
		}}
		var states []native.StateParts
		start := int64(-1)
		for _, s := range h.States {
			got, err := readState(&memory{}, h, s.Name.String(), 0)
			if err != nil {
				return
			}
			if len(got) > 0 && start < 0 {
				start = s.Offsets.(format.OffsetSlice)[0]
			}
			p := native.StateParts{StateMeta: format.StateMeta{Name: s.Name, Mode: s.Mode}}
			for _, e := range got {
				p.Elements = append(p.Elements, format.Literal(e))
			}
			states = append(states, p)
		}
		built, err := native.Assemble(states)
		if err != nil {
			t.Fatalf("what was read cannot be built: %v", err)
		}
		again := make([]byte, built.Data.Size())
		if _, err := (&memory{}).read(built.Data, again, 0); err != nil {
			t.Fatal(err)
		}
		if want := data[start:]; !bytes.Equal(again, want) {
			t.Errorf("built again: % x, want % x", again, want)
		}
	})
}

func FuzzEntries(f *testing.F) {
	h := keyed(f)
	data := make([]byte, h.Data.Size())
	if _, err := (&memory{}).read(h.Data, data, 0); err != nil {
		f.Fatal(err)
	}
	f.Add(data, []byte{33, 17, 5, 0})
	f.Add(data[:33], []byte{33})
	f.Fuzz(func(t *testing.T, data, offsets []byte) {
		o := fuzzOffsets(offsets)
		h := &format.KeyGroups{Codec: format.CodecNative, Range: format.KeyGroupRange{First: 7, Count: int32(len(o))}, Offsets: o, Data: inline(data)}
		entries, err := readEntries(&memory{}, h, 7)
		if err != nil || len(o) == 0 {
			return
		}
		schema, err := native.KeyedCodec{}.Describe(t.Context(), &memory{}, h)
		if err != nil {
			t.Fatal(err)
		}
		var w bytes.Buffer
		b, err := native.KeyedCodec{}.Build(t.Context(), schema, h.Range, &w)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := b.Add(e); err != nil {
				t.Fatal(err)
			}
		}
		built, err := b.Handle()
		if err != nil {
			t.Fatal(err)
		}
		again, starts := w.Bytes(), built.Offsets.(format.OffsetSlice)
		if !bytes.Equal(again, data) {
			t.Errorf("written again: % x, want % x", again, data)
		}
		for i := range o {
			if starts[i] != o[i] {
				t.Errorf("key group %d at %d, was at %d", i, starts[i], o[i])
			}
		}
	})
}
