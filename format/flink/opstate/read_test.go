package opstate_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// forms are all ways to write a stream.
var forms = []how{
	{version: 2}, {version: 3}, {version: 4}, {version: 5}, {version: 6},
	{version: 6, framed: "one header"}, {version: 6, framed: "header per state"}, {version: 0}, {version: 1},
}

func (w how) String() string { return fmt.Sprintf("version %d %s", w.version, w.framed) }

func text(n int, seed byte) string {
	p := make([]byte, n)
	x := uint32(seed) + 1
	for i := range p {
		x = x*1664525 + 1013904223
		p[i] = byte(x >> 24)
	}
	return string(p)
}

// sample is states of all kinds, with elements of sizes around those of a
// chunk, and empty ones in front, between and behind.
func sample(w how) []state {
	states := []state{
		{name: "empty first"},
		{name: "list", elements: []string{"a", "bc", strings.Repeat("x", 1000), "", text(65535, 1), text(65536, 2), text(65537, 3), strings.Repeat("y", 200_000), text(300_000, 4), "z"}},
		{name: "empty between", mode: format.ModeUnion},
		{name: "union", mode: format.ModeUnion, elements: []string{header, "u" + header, text(70_000, 5) + header}},
		{name: "empty last"},
	}
	if w.framed != "" {
		// An empty element of a compressed state has the position of the next,
		// which only a broken release lets happen for others.
		states[1].elements = slices.Delete(states[1].elements, 3, 4)
	}
	if w.version >= 3 || w.version == 0 {
		states = append(states, state{name: "map", mode: format.ModeBroadcast, elements: []string{"\x00\x00\x00\x00"}},
			state{name: "map 2", mode: format.ModeBroadcast, elements: []string{"\x00\x00\x00\x01kv"}})
	}
	return states
}

func TestForms(t *testing.T) {
	for _, w := range forms {
		t.Run(w.String(), func(t *testing.T) {
			want := sample(w)
			h := stream(w, want...)
			src, codec := &memory{}, &opstate.Codec{}
			metas, err := codec.Describe(t.Context(), src, h)
			if err != nil {
				t.Fatal(err)
			}
			if len(metas) != len(want) {
				t.Fatalf("%d states", len(metas))
			}
			if w.version >= 2 {
				for i, m := range metas {
					if m.Name.String() != want[i].name || m.Mode != want[i].mode || len(m.Envelope) == 0 {
						t.Errorf("%d: %+v", i, m)
					}
				}
				schemas, err := codec.Schema(t.Context(), src, h)
				if err != nil || len(schemas) != len(want) {
					t.Fatal(len(schemas), err)
				}
				for i, s := range schemas {
					if (s.Serializer("KEY_SERIALIZER") != nil) != (want[i].mode == format.ModeBroadcast) || s.Serializer("VALUE_SERIALIZER") == nil {
						t.Errorf("%q: %+v", s.Name, s.Serializers)
					}
				}
			}
			for _, s := range want {
				for from := range len(s.elements) + 1 {
					got, err := elements(t.Context(), codec, src, h, s.name, int64(from))
					if err != nil || !slices.Equal(got, s.elements[from:]) {
						t.Fatalf("%q from %d: %d elements, %v", s.name, from, len(got), err)
					}
				}
			}
			built, err := codec.Build(t.Context(), src, runs(t, h, metas))
			if w.version >= 1 && w.version < 5 {
				if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), fmt.Sprintf("version %d", w.version)) {
					t.Fatalf("built: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if string(flatten(built.Data)) != string(flatten(h.Data)) {
				t.Error("what was built differs")
			}
			for _, s := range built.States {
				if !slices.Equal(offsetsOf(t, s.Offsets), offsetsOf(t, find(h, s.Name.String()).Offsets)) {
					t.Errorf("%q: other offsets", s.Name)
				}
			}
		})
	}
}

// TestEmptyElements: elements of no bytes are at the position of what follows
// them, be it in the same state, in the next or the end of the stream.
func TestEmptyElements(t *testing.T) {
	for _, w := range []how{{version: 6}, {version: 6, framed: "one header"}, {version: 6, framed: "header per state"}} {
		states := []state{
			{name: "nothings", elements: []string{"", "", ""}},
			{name: "one", elements: []string{"x"}},
			{name: "nothing", elements: []string{""}},
			{name: "nothing more", elements: []string{""}},
			{name: "same place", elements: []string{"last"}},
		}
		for range len(states) {
			h := stream(w, states...)
			codec := &opstate.Codec{}
			for _, s := range states {
				for from := range len(s.elements) {
					got, err := elements(t.Context(), codec, &memory{}, h, s.name, int64(from))
					if err != nil || !slices.Equal(got, s.elements[from:]) {
						t.Errorf("%v: %q from %d: %q, %v", w, s.name, from, got, err)
					}
				}
			}
			metas, err := codec.Describe(t.Context(), &memory{}, h)
			if err != nil {
				t.Fatal(err)
			}
			if built, err := codec.Build(t.Context(), &memory{}, runs(t, h, metas)); err != nil || string(flatten(built.Data)) != string(flatten(h.Data)) {
				t.Errorf("%v: built: %v", w, err)
			}
			states = append(states[1:], states[0])
		}
	}
}

// TestBroken is named after FLINK-34063: elements that share a position.
func TestBroken(t *testing.T) {
	for _, form := range []string{"one header", "header per state"} {
		h := stream(how{version: 6, framed: form, unflushed: true},
			state{name: "small", elements: []string{"a", "b", "c"}},
			state{name: "mixed", elements: []string{text(65536, 1), "b", "c", text(65536, 2), "e"}},
			state{name: "single", elements: []string{"whole"}})
		src, codec := &memory{}, &opstate.Codec{}
		for _, x := range []struct {
			state  string
			from   int64
			broken bool
		}{{"small", 0, true}, {"small", 1, true}, {"small", 2, true}, {"single", 0, false}, {"mixed", 0, true}, {"mixed", 1, true}} {
			_, err := elements(t.Context(), codec, src, h, x.state, x.from)
			if x.broken != errors.Is(err, format.ErrCorrupt) || (err != nil && !strings.Contains(err.Error(), "FLINK-34063")) {
				t.Errorf("%s: %q from %d: %v", form, x.state, x.from, err)
			}
		}
		// All of them can be copied, but not some.
		metas, err := codec.Describe(t.Context(), src, h)
		if err != nil {
			t.Fatal(err)
		}
		all := runs(t, h, metas)
		if built, err := codec.Build(t.Context(), src, all); err != nil || string(flatten(built.Data)) != string(flatten(h.Data)) {
			t.Errorf("%s: %v", form, err)
		}
		for _, r := range [][2]int64{{0, 1}, {0, 2}, {1, 1}, {1, 2}, {2, 1}} {
			all[0].Runs[0].First, all[0].Runs[0].Count = r[0], r[1]
			if _, err := codec.Build(t.Context(), src, all); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "FLINK-34063") {
				t.Errorf("%s: elements %v were copied: %v", form, r, err)
			}
		}
	}
}

// TestInterleaved: a stream as no release writes it, elements of two states in
// turn, is read and built from all the same.
func TestInterleaved(t *testing.T) {
	h := stream(how{version: 6}, state{name: "all", elements: []string{"a", "bb", "ccc", "dddd", "e"}}, state{name: "other", elements: []string{"x"}})
	all := offsetsOf(t, find(h, "all").Offsets)
	x := offsetsOf(t, find(h, "other").Offsets)
	find(h, "all").Offsets = format.OffsetSlice{all[0], all[2], all[4]}
	find(h, "other").Offsets = format.OffsetSlice{all[1], all[3], x[0]}
	src, codec := &memory{}, &opstate.Codec{}
	want := map[string][]string{"all": {"a", "ccc", "e"}, "other": {"bb", "dddd", "x"}}
	for name, want := range want {
		for from := range want {
			got, err := elements(t.Context(), codec, src, h, name, int64(from))
			if err != nil || !slices.Equal(got, want[from:]) {
				t.Errorf("%q from %d: %q, %v", name, from, got, err)
			}
		}
	}
	metas, err := codec.Describe(t.Context(), src, h)
	if err != nil {
		t.Fatal(err)
	}
	built, err := codec.Build(t.Context(), src, runs(t, h, metas))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range want {
		if got, err := elements(t.Context(), codec, src, built, name, 0); err != nil || !slices.Equal(got, want) {
			t.Errorf("built: %q: %q, %v", name, got, err)
		}
	}
}

// TestUnsplit: an envelope with a class that nobody knows. Elements are cut
// all the same, and all states together can be built; but not some of them.
func TestUnsplit(t *testing.T) {
	for _, w := range []how{{version: 5}, {version: 6}, {version: 6, framed: "one header"}, {version: 6, framed: "header per state"}} {
		states := []state{
			{name: "known", elements: []string{"k"}},
			{name: "user's", class: "com.example.MySnapshot", elements: []string{"a", "bb", "ccc"}},
			{name: "behind", mode: format.ModeUnion, elements: []string{"q"}},
			{name: "empty", mode: format.ModeUnion},
			{name: "no bytes", elements: []string{""}},
			{name: "map", mode: format.ModeBroadcast, elements: []string{"m"}},
		}
		h := stream(w, states...)
		src, codec := &memory{}, &opstate.Codec{}
		metas, err := codec.Describe(t.Context(), src, h)
		if err != nil || len(metas) != len(states) || metas[0].Envelope != nil {
			t.Fatalf("%v: %+v, %v", w, metas, err)
		}
		schemas, err := codec.Schema(t.Context(), src, h)
		var unknown *types.UnknownClass
		if !errors.As(err, &unknown) || unknown.Class != "com.example.MySnapshot" || !errors.Is(err, format.ErrUnsupported) ||
			len(schemas) != 1 || schemas[0].Name.String() != "known" {
			t.Errorf("%v: %+v, %v", w, schemas, err)
		}
		for _, s := range states {
			if got, err := elements(t.Context(), codec, src, h, s.name, 0); err != nil || !slices.Equal(got, s.elements) {
				t.Errorf("%v: %q: %q, %v", w, s.name, got, err)
			}
		}
		all := runs(t, h, metas)
		built, err := codec.Build(t.Context(), src, all)
		if err != nil || string(flatten(built.Data)) != string(flatten(h.Data)) {
			t.Fatalf("%v: built: %v", w, err)
		}
		i := slices.IndexFunc(all, func(s format.StateRuns) bool { return s.Name.String() == "user's" })
		all[i].Runs = []format.ElementRun{{Handle: h, State: all[i].Runs[0].State, First: 2, Count: 1}, {Handle: h, State: all[i].Runs[0].State, First: 0, Count: 1}}
		built, err = codec.Build(t.Context(), src, all)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := elements(t.Context(), codec, src, built, "user's", 0); err != nil || !slices.Equal(got, []string{"ccc", "a"}) {
			t.Errorf("%v: %q, %v", w, got, err)
		}
		if _, err := codec.Build(t.Context(), src, all[1:]); !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "com.example.MySnapshot") {
			t.Errorf("%v: an envelope was taken apart: %v", w, err)
		}
		all[0].Name = format.NewText("renamed")
		if _, err := codec.Build(t.Context(), src, all); !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%v: a state was renamed: %v", w, err)
		}
	}
}

// TestRefused: what must be an error, of the right kind.
func TestRefused(t *testing.T) {
	list := state{name: "s", elements: []string{"a", "b"}}
	for _, x := range []struct {
		name string
		h    *format.OperatorHandle
		kind error
		text string
	}{
		{"version 7", stream(how{version: 7}, list), format.ErrUnsupported, "unknown version 7 of operator state; supported: 1 to 6"},
		{"version -1", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { set(h, 0, 0x80) }), format.ErrUnsupported, "supported: 1 to 6"},
		{"another codec", &format.OperatorHandle{Codec: format.CodecNative, States: make([]format.NamedState, 1)}, format.ErrUnsupported, "native"},
		{"no stream", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { h.Data = nil }), format.ErrCorrupt, "without a stream"},
		{"no bytes", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { h.Data = &format.EmptySegment{} }), format.ErrTruncated, "cut short"},
		{"offset behind the end", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { h.States[0].Offsets = format.OffsetSlice{200, 1 << 40} }), format.ErrCorrupt, "are outside the stream of"},
		{"offset -1", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { h.States[0].Offsets = format.OffsetSlice{-1, 210} }), format.ErrCorrupt, "element offsets -1 to"},
		{"offsets go back", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) {
			o := h.States[0].Offsets.(format.OffsetSlice)
			h.States[0].Offsets = format.OffsetSlice{o[0], o[1] + 1, o[0] + 1, o[1]}
		}), format.ErrCorrupt, "element 1"},
		{"last before first", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { h.States[0].Offsets = format.OffsetSlice{210, 200} }), format.ErrCorrupt, "element offsets 210 to 200"},
		{"offset far away", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { h.States[0].Offsets = format.OffsetSlice{200, 1 << 40, 210} }), format.ErrCorrupt, "before the next state"},
		{"length unknown", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { h.Data = &format.File{Length: -1} }), format.ErrUnsupported, "length of the stream"},
		{"two maps", stream(how{version: 6}, state{name: "s", mode: format.ModeBroadcast, elements: []string{"a", "b"}}), format.ErrCorrupt, "its map, found 2"},
		{"raw states at one place", stream(how{}, state{name: "s", elements: []string{""}}, state{name: "t", elements: []string{"x"}}), format.ErrUnsupported, "same position"},
		{"chunk of another kind", edit(stream(how{version: 6, framed: "one header"}, list), func(h *format.OperatorHandle) { set(h, int(find(h, "s").Offsets.(format.OffsetSlice)[0]), 0x81) }), format.ErrUnsupported, "kind 0x81"},
		{"checksum", edit(stream(how{version: 6, framed: "one header"}, list), func(h *format.OperatorHandle) { flip(h, -1) }), format.ErrCorrupt, "checksum"},
	} {
		_, err := elements(t.Context(), &opstate.Codec{}, &memory{}, x.h, nameOf(x.h), 0)
		if !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	for _, x := range []struct {
		name string
		h    *format.OperatorHandle
		text string
	}{
		{"a state more", edit(stream(how{version: 6}, list, state{name: "t"}), func(h *format.OperatorHandle) { h.States = h.States[1:] }), `the stream has state "t", which its handle does not have`},
		{"a state less", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) {
			h.States = append(h.States, format.NamedState{Name: format.NewText("t")})
		}), "the stream has 1 states, its handle has 2"},
		{"another mode", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { h.States[0].Mode = format.ModeUnion }), "is list in its stream but union in its handle"},
		{"a gap", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { h.States[0].Offsets = h.States[0].Offsets.(format.OffsetSlice)[1:] }), "1 bytes between"},
		{"a gap without snappy", edit(stream(how{version: 6, framed: "one header"}, list), func(h *format.OperatorHandle) { flip(h, -28) }), "expected a snappy stream"},
		{"compression flag", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { set(h, 4, 2) }), "expected 0 or 1"},
		{"two serializers of a list", edit(stream(how{version: 3}, list), func(h *format.OperatorHandle) {
			var o out
			o.p = append(o.p, "\x00\x00\x00\x03\x00\x01\x00\x01s\x00"...)
			o.block(2)
			o.i16(0)
			h.Data = &format.Inline{Data: format.NewBytes(append(o.p, "ab"...))}
			h.States[0].Offsets = format.OffsetSlice{int64(len(o.p)), int64(len(o.p)) + 1}
		}), "expected 1 serializers, found 2"},
		{"negative count", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { set(h, 5, 0x80) }), "invalid count of states -32767"},
		{"unknown mode", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { set(h, 0x36, 'X') }), `unknown mode "XPLIT_DISTRIBUTE"`},
		{"another kind", edit(stream(how{version: 6}, list), func(h *format.OperatorHandle) { set(h, 13, 2) }), "expected states of kind 1, found kind 2"},
	} {
		if _, err := (&opstate.Codec{}).Describe(t.Context(), &memory{}, x.h); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

func nameOf(h *format.OperatorHandle) string { return h.States[0].Name.String() }

func edit(h *format.OperatorHandle, f func(*format.OperatorHandle)) *format.OperatorHandle {
	f(h)
	return h
}

func set(h *format.OperatorHandle, at int, v byte) {
	p := flatten(h.Data)
	p[at] = v
	h.Data = &format.Inline{Data: format.NewBytes(p)}
}

func flip(h *format.OperatorHandle, at int) {
	p := flatten(h.Data)
	if at < 0 {
		at += len(p)
	}
	set(h, at, p[at]^0x40)
}

// TestLimit: an element as large as the limit is read, one byte more is not.
func TestLimit(t *testing.T) {
	for _, w := range []how{{version: 6}, {version: 6, framed: "one header"}} {
		for n, ok := range map[int]bool{99_999: true, 100_000: true, 100_001: false} {
			h := stream(w, state{name: "s", elements: []string{strings.Repeat("x", n)}})
			_, err := elements(t.Context(), &opstate.Codec{MaxElement: 100_000}, &memory{}, h, "s", 0)
			if (err == nil) != ok || (!ok && !errors.Is(err, format.ErrLimit)) {
				t.Errorf("%v: %d bytes: %v", w, n, err)
			}
		}
	}
}

// TestErrorsStay: a cursor that failed, or ended, does so again; a closed one
// gives nothing.
func TestErrorsStay(t *testing.T) {
	h := stream(how{version: 6}, state{name: "s", elements: []string{"a", "b"}})
	codec := &opstate.Codec{}
	fault := errors.New("the disk is gone")
	src := &memory{}
	cur, err := codec.Elements(t.Context(), src, h, "s", 0)
	if err != nil {
		t.Fatal(err)
	}
	src.fail = fault
	for range 2 {
		if _, err := cur.Next(); !errors.Is(err, fault) || !strings.Contains(err.Error(), `state "s"/element 0`) {
			t.Fatal(err)
		}
		src.fail = nil
	}
	cur, _ = codec.Elements(t.Context(), src, h, "s", 2)
	for range 2 {
		if _, err := cur.Next(); err != io.EOF {
			t.Fatal(err)
		}
	}
	if !cur.Ordered() {
		t.Error("the order of a list is defined")
	}
	cur, _ = codec.Elements(t.Context(), src, h, "s", 0)
	if err := cur.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := cur.Next(); err == nil || err == io.EOF {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := elements(ctx, codec, src, h, "s", 0); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestPlaceholder: a handle of file merging without state is not read.
func TestPlaceholder(t *testing.T) {
	h := &format.OperatorHandle{Codec: format.CodecFlink, Data: &format.EmptySegment{}, Merging: &format.FileMerging{Placeholder: true}}
	src := &memory{}
	metas, err := (&opstate.Codec{}).Describe(t.Context(), src, h)
	if err != nil || len(metas) > 0 || src.reads.Load() > 0 {
		t.Error(metas, err, src.reads.Load())
	}
}

// TestLongClass: a class name as long as can be, of characters that Java alone
// can write, is named all the same.
func TestLongClass(t *testing.T) {
	for _, class := range []string{strings.Repeat("x", 65535), strings.Repeat("\u20ac", 500), "\xed\xa0\x80"} {
		h := stream(how{version: 6}, state{name: "s", class: class, elements: []string{"a"}})
		metas, err := (&opstate.Codec{}).Describe(t.Context(), &memory{}, h)
		if err != nil {
			t.Errorf("%d bytes: %v", len(class), err)
			continue
		}
		if built, err := (&opstate.Codec{}).Build(t.Context(), &memory{}, runs(t, h, metas)); err != nil || string(flatten(built.Data)) != string(flatten(h.Data)) {
			t.Error(err)
		}
	}
}

// TestChunks: chunks that cannot be.
func TestChunks(t *testing.T) {
	head := stream(how{version: 6, framed: "one header"}, state{name: "s"})
	good := string(chunk("abc"))
	for _, x := range []struct {
		name, data string
		kind       error
		text       string
	}{
		{"good", good, nil, ""},
		{"header between", good + header + good, nil, ""},
		{"header of another length", "\xff\x05\x00\x00sNaPp" + good, format.ErrCorrupt, "stream header of 5"},
		{"header of other bytes", "\xff\x06\x00\x00sNaPpy" + good, format.ErrCorrupt, "invalid snappy stream header"},
		{"too short for a checksum", "\x01\x03\x00\x00abc", format.ErrCorrupt, "chunk of 3 bytes"},
		{"too long", "\x01\xff\xff\xff" + strings.Repeat("x", 0xffffff), format.ErrCorrupt, "chunk of 16777215 bytes"},
		{"stored, over 64 KiB", "\x01\x05\x00\x01" + strings.Repeat("x", 65541), format.ErrCorrupt, "65537 bytes of data"},
		{"past the end", "\x01\x80\x00\x00abcdefg", format.ErrCorrupt, "expected a snappy chunk of 128 bytes, found 7"},
		{"no snappy", "\x00\x08\x00\x00aaaa\x03\xff\xff\xff", format.ErrCorrupt, "invalid data in a snappy chunk"},
		{"a length of nothing", "\x00\x05\x00\x00aaaa\xff", format.ErrCorrupt, "invalid data in a snappy chunk"},
		{"half a head", good + "\x01\x00", format.ErrCorrupt, "expected a snappy chunk, found 2 bytes"},
		{"reserved", "\x02\x04\x00\x00aaaa", format.ErrCorrupt, "unknown kind 0x02"},
		{"skippable", "\xfe\x04\x00\x00aaaa", format.ErrUnsupported, "kind 0xfe"},
	} {
		p := append(flatten(head.Data), x.data...)
		h := &format.OperatorHandle{Codec: format.CodecFlink, Data: &format.Inline{Data: format.NewBytes(p)},
			States: []format.NamedState{{Name: format.NewText("s"), Offsets: format.OffsetSlice{head.Data.Size()}}}}
		got, err := elements(t.Context(), &opstate.Codec{}, &memory{}, h, "s", 0)
		if x.kind == nil {
			if err != nil || got[0] != strings.Repeat("abc", strings.Count(x.data, good)) {
				t.Errorf("%s: %q, %v", x.name, got, err)
			}
			continue
		}
		if !errors.Is(err, x.kind) || !strings.Contains(err.Error(), x.text) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
	// A chunk that reaches into the next element.
	h := stream(how{version: 6, framed: "one header"}, state{name: "s", elements: []string{"abc", "def"}})
	h.States[0].Offsets.(format.OffsetSlice)[1] -= 2
	if _, err := elements(t.Context(), &opstate.Codec{}, &memory{}, h, "s", 0); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), "2 bytes into the next element") {
		t.Error(err)
	}
}

// TestHeaderPerState: it shows in a second header before the first element,
// between elements, or behind the last.
func TestHeaderPerState(t *testing.T) {
	for _, states := range [][]state{
		{{name: "a"}, {name: "b", elements: []string{"x"}}},
		{{name: "a", elements: []string{"x"}}, {name: "b", elements: []string{"x"}}},
		{{name: "a", elements: []string{"x"}}, {name: "b"}},
		{{name: "a"}, {name: "b"}},
	} {
		h := stream(how{version: 6, framed: "header per state"}, states...)
		codec := &opstate.Codec{}
		metas, err := codec.Describe(t.Context(), &memory{}, h)
		if err != nil {
			t.Fatal(err)
		}
		if built, err := codec.Build(t.Context(), &memory{}, runs(t, h, metas)); err != nil || string(flatten(built.Data)) != string(flatten(h.Data)) {
			t.Errorf("%d and %d elements: what was built differs, %v", len(states[0].elements), len(states[1].elements), err)
		}
	}
}
