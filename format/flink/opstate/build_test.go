package opstate_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/opstate"
)

// TestBuildModel: streams built from random runs of several handles hold what
// was asked for, element by element, and again when built from what was built.
func TestBuildModel(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		w := []how{{version: 6}, {version: 5}, {version: 6, framed: "one header"}, {version: 6, framed: "header per state"}, {version: 0}}[seed%5]
		src, codec := &memory{}, &opstate.Codec{}
		var handles []*format.OperatorHandle
		var held []map[string][]string
		names := []string{"list", "union", "map"}
		if w.version == 0 {
			names = names[:1]
		}
		for i := range 4 {
			states := []state{{name: "list"}, {name: "union", mode: format.ModeUnion}, {name: "map", mode: format.ModeBroadcast, elements: []string{"\x00\x00\x00\x09" + noise(r, i*70_000+10)}}}[:len(names)]
			for k := range min(2, len(states)) {
				for j := range r.IntN(100) {
					states[k].elements = append(states[k].elements, strings.Repeat(fmt.Sprintf("%d/%d/%d ", i, k, j), 1+r.IntN(30)))
				}
			}
			handles = append(handles, stream(w, states...))
			held = append(held, map[string][]string{})
			for _, s := range states {
				held[i][s.name] = s.elements
			}
		}
		metas, err := codec.Describe(t.Context(), src, handles[0])
		if err != nil {
			t.Fatal(err)
		}
		for round := range 3 {
			var states []format.StateRuns
			want := map[string][]string{}
			for _, name := range names {
				s := format.StateRuns{StateMeta: metas[slices.Index(names, name)]}
				for range 1 + r.IntN(8) {
					i := r.IntN(len(handles))
					all := held[i][name]
					first := r.IntN(len(all) + 1)
					n := r.IntN(len(all) - first + 1)
					if name == "map" {
						first, n = 0, 1
					}
					k := slices.IndexFunc(handles[i].States, func(s format.NamedState) bool { return s.Name.String() == name })
					s.Runs = append(s.Runs, format.ElementRun{Handle: handles[i], State: k, First: int64(first), Count: int64(n)})
					want[name] = append(want[name], all[first:first+n]...)
					if name == "map" {
						if r.IntN(2) == 0 {
							s.Map = cutAtRandom(r, all[0])
							want[name] = []string{cutFrom(all[0], s.Map)}
						}
						break
					}
				}
				states = append(states, s)
			}
			r.Shuffle(len(states), func(i, j int) { states[i], states[j] = states[j], states[i] })
			h, err := codec.Build(t.Context(), src, states)
			if err != nil {
				t.Fatalf("seed %d round %d: %v", seed, round, err)
			}
			for name, want := range want {
				got, err := elements(t.Context(), codec, src, h, name, 0)
				if err != nil || !slices.Equal(got, want) {
					t.Fatalf("seed %d round %d: %q: %d elements, want %d, %v", seed, round, name, len(got), len(want), err)
				}
				if from := r.IntN(len(want) + 1); from < len(want) {
					if got, err := elements(t.Context(), codec, src, h, name, int64(from)); err != nil || !slices.Equal(got, want[from:]) {
						t.Fatalf("seed %d round %d: %q from %d: %v", seed, round, name, from, err)
					}
				}
				checkRead(t, find(h, name).Offsets, r)
			}
			described, err := codec.Describe(t.Context(), src, h)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range described {
				i := slices.Index(names, m.Name.String())
				if string(m.Envelope) != string(metas[i].Envelope) {
					t.Fatal("another description")
				}
			}
			if last := described[len(described)-1]; w.version > 0 && last.Mode != format.ModeBroadcast {
				t.Errorf("%q after the maps", last.Name)
			}
			handles[round], held[round] = h, want
		}
	}
}

// noise is text that compresses in places.
func noise(r *rand.Rand, n int) string {
	var b strings.Builder
	for b.Len() < n {
		b.WriteString(strings.Repeat(string([]byte{byte(r.Uint32())}), 1+r.IntN(20)))
	}
	return b.String()[:n]
}

// cutAtRandom takes ranges out of a map behind its count.
func cutAtRandom(r *rand.Rand, m string) *format.MapCut {
	cut := &format.MapCut{}
	for at := 4; at < len(m); {
		n := 1 + r.IntN(len(m)-at)
		if r.IntN(2) == 0 {
			cut.Count++
			cut.Ranges = append(cut.Ranges, format.MapRange{Off: int64(at), N: int64(n)})
		}
		at += n
	}
	return cut
}

func cutFrom(m string, cut *format.MapCut) string {
	out := string([]byte{0, 0, 0, byte(cut.Count)})
	for _, c := range cut.Ranges {
		out += m[c.Off : c.Off+c.N]
	}
	return out
}

// checkRead reads random parts of offsets and compares with all of them.
func checkRead(t *testing.T, o format.Offsets, r *rand.Rand) {
	t.Helper()
	all := offsetsOf(t, o)
	if int64(len(all)) != o.Len() {
		t.Fatalf("%d offsets of %d", len(all), o.Len())
	}
	for range 20 {
		from := r.IntN(len(all) + 1)
		dst := make([]int64, r.IntN(len(all)+3))
		n, err := o.Read(t.Context(), dst, int64(from))
		if err != nil || n != min(len(dst), len(all)-from) || !slices.Equal(dst[:n], all[from:from+n]) {
			t.Fatalf("%d offsets from %d of %d: %d, %v", len(dst), from, len(all), n, err)
		}
	}
	if _, err := o.Read(t.Context(), make([]int64, 1), int64(len(all))+1); err == nil {
		t.Fatal("offsets behind the end")
	}
}

// TestCoalesced: neighbours make one range, whatever the runs are.
func TestCoalesced(t *testing.T) {
	var e []string
	for i := range 1000 {
		e = append(e, fmt.Sprint("element ", i))
	}
	for _, w := range []how{{version: 6}, {version: 6, framed: "one header"}} {
		h := stream(w, state{name: "s", elements: e})
		src, codec := &memory{}, &opstate.Codec{}
		metas, err := codec.Describe(t.Context(), src, h)
		if err != nil {
			t.Fatal(err)
		}
		s := format.StateRuns{StateMeta: metas[0]}
		for i := range int64(1000) {
			s.Runs = append(s.Runs, format.ElementRun{Handle: h, First: i, Count: 1}, format.ElementRun{Handle: h, First: i})
		}
		built, err := codec.Build(t.Context(), src, []format.StateRuns{s})
		if err != nil {
			t.Fatal(err)
		}
		if parts := built.Data.(*format.Concat).Parts; len(parts) != 2 || string(flatten(built.Data)) != string(flatten(h.Data)) {
			t.Errorf("%v: %d parts", w, len(parts))
		}
		// Without a change, the offsets are the source's own.
		all, err := codec.Build(t.Context(), src, runs(t, h, metas))
		if err != nil {
			t.Fatal(err)
		}
		if got := all.States[0].Offsets.(format.OffsetSlice); &got[0] != &h.States[0].Offsets.(format.OffsetSlice)[0] {
			t.Error("the offsets were copied")
		}
	}
}

func TestRename(t *testing.T) {
	h := stream(how{version: 6}, state{name: "old", elements: []string{"a"}}, state{name: "other"})
	src, codec := &memory{}, &opstate.Codec{}
	metas, err := codec.Describe(t.Context(), src, h)
	if err != nil {
		t.Fatal(err)
	}
	all := runs(t, h, metas)
	all[0].Name = format.NewText("ein längerer Name")
	built, err := codec.Build(t.Context(), src, all)
	if err != nil {
		t.Fatal(err)
	}
	want := stream(how{version: 6}, state{name: "ein längerer Name", elements: []string{"a"}}, state{name: "other"})
	if string(flatten(built.Data)) != string(flatten(want.Data)) || built.States[0].Name != all[0].Name {
		t.Errorf("%q", flatten(built.Data))
	}
}

func TestBuildRefused(t *testing.T) {
	src, codec := &memory{}, &opstate.Codec{}
	plain := stream(how{version: 6}, state{name: "s", elements: []string{"a", "b"}}, state{name: "m", mode: format.ModeBroadcast, elements: []string{"m"}})
	framedOne := stream(how{version: 6, framed: "one header"}, state{name: "s", elements: []string{"a", "b"}})
	raw := stream(how{}, state{name: "s", elements: []string{"a", "b"}})
	old := stream(how{version: 3}, state{name: "s", elements: []string{"a", "b"}})
	metas, err := codec.Describe(t.Context(), src, plain)
	if err != nil {
		t.Fatal(err)
	}
	list := slices.IndexFunc(plain.States, func(s format.NamedState) bool { return s.Mode == format.ModeList })
	all := func(f func(s []format.StateRuns) []format.StateRuns) []format.StateRuns {
		return f(runs(t, plain, metas))
	}
	run := func(r format.ElementRun) []format.StateRuns {
		return all(func(s []format.StateRuns) []format.StateRuns { s[0].Runs = []format.ElementRun{r}; return s })
	}
	for _, x := range []struct {
		name   string
		states []format.StateRuns
		kind   error
		text   string
	}{
		{"none", nil, nil, "without states"},
		{"compressed into plain", run(format.ElementRun{Handle: framedOne, Count: 1}), format.ErrUnsupported, "compressed"},
		{"raw into managed", run(format.ElementRun{Handle: raw, Count: 1}), format.ErrUnsupported, "raw"},
		{"old into new", run(format.ElementRun{Handle: old, Count: 1}), format.ErrUnsupported, "version 3"},
		{"native", run(format.ElementRun{Handle: edit(stream(how{version: 6}, state{name: "s", elements: []string{"a"}}), func(h *format.OperatorHandle) { h.Codec = format.CodecNative }), Count: 1}), format.ErrUnsupported, "native"},
		{"a map into a list", run(format.ElementRun{Handle: plain, State: 1 - list, Count: 1}), nil, "broadcast state cannot become"},
		{"too many", run(format.ElementRun{Handle: plain, State: list, First: 1, Count: 2}), nil, "2 elements from 1"},
		{"before the first", run(format.ElementRun{Handle: plain, State: list, First: -1, Count: 2}), nil, "2 elements from -1"},
		{"overflow", run(format.ElementRun{Handle: plain, State: list, First: 1, Count: 1<<63 - 1}), nil, "elements from 1"},
		{"no such state", run(format.ElementRun{Handle: plain, State: 2, Count: 1}), nil, "index out of range"},
		{"no handle", run(format.ElementRun{Count: 1}), nil, "index out of range"},
		{"two maps", all(func(s []format.StateRuns) []format.StateRuns { s[1].Runs = append(s[1].Runs, s[1].Runs...); return s }), nil, "its map, found 2"},
		{"no map", all(func(s []format.StateRuns) []format.StateRuns { s[1].Runs = nil; return s }), nil, "its map, found 0"},
		{"entries of a list", all(func(s []format.StateRuns) []format.StateRuns { s[0].Map = &format.MapCut{}; return s }), nil, "the one map of a broadcast state"},
		{"entries of no map", all(func(s []format.StateRuns) []format.StateRuns { s[1].Map, s[1].Runs = &format.MapCut{}, nil; return s }), nil, "the one map of a broadcast state"},
		{"less than no entries", all(func(s []format.StateRuns) []format.StateRuns { s[1].Map = &format.MapCut{Count: -1}; return s }), nil, "-1 entries"},
		{"entries behind a map", all(func(s []format.StateRuns) []format.StateRuns {
			s[1].Map = &format.MapCut{Count: 1, Ranges: []format.MapRange{{Off: 4, N: 1<<63 - 1}}}
			return s
		}), nil, "entries from 4, 9223372036854775807 bytes, are outside"},
		{"entries that are the count", all(func(s []format.StateRuns) []format.StateRuns {
			s[1].Map = &format.MapCut{Count: 1, Ranges: []format.MapRange{{N: 1}}}
			return s
		}), nil, "entries from 0, 1 bytes, are outside"},
		{"one name twice", all(func(s []format.StateRuns) []format.StateRuns { return append(s, s[0]) }), nil, "duplicate state"},
		{"another mode", all(func(s []format.StateRuns) []format.StateRuns { s[0].Mode = format.ModeBroadcast; return s }), format.ErrCorrupt, "expected states of kind 2, found kind 1"},
		{"another form", all(func(s []format.StateRuns) []format.StateRuns { s[0].Encoding = "\x05\x00"; return s }), format.ErrUnsupported, "cannot share a stream: their streams are of version 5, and of version"},
		{"foreign form", all(func(s []format.StateRuns) []format.StateRuns { s[0].Encoding, s[1].Encoding = "", ""; return s }), format.ErrUnsupported, "invalid encoding of operator state"},
		{"a cut description", all(func(s []format.StateRuns) []format.StateRuns { s[0].Envelope = s[0].Envelope[:20]; return s }), format.ErrTruncated, "cut short"},
	} {
		_, err := codec.Build(t.Context(), src, x.states)
		if err == nil || !strings.Contains(err.Error(), x.text) || (x.kind != nil && !errors.Is(err, x.kind)) {
			t.Errorf("%s: %v", x.name, err)
		}
	}
}

// TestFlat: what is built from ropes refers to what they are made of, and
// neighbours meet again.
func TestFlat(t *testing.T) {
	var e []string
	for i := range 100 {
		e = append(e, fmt.Sprint("element ", i))
	}
	first := stream(how{version: 6}, state{name: "s", elements: e})
	src, codec := &memory{}, &opstate.Codec{}
	h := first
	step := func(r ...format.ElementRun) *format.Concat {
		metas, err := codec.Describe(t.Context(), src, h)
		if err != nil {
			t.Fatal(err)
		}
		for i := range r {
			r[i].Handle = h
		}
		if h, err = codec.Build(t.Context(), src, []format.StateRuns{{StateMeta: metas[0], Runs: r}}); err != nil {
			t.Fatal(err)
		}
		return h.Data.(*format.Concat)
	}
	step(format.ElementRun{First: 50, Count: 50}, format.ElementRun{Count: 50})
	step(format.ElementRun{First: 10, Count: 80}) // 60…99, 0…39
	data := step(format.ElementRun{First: 40, Count: 40}, format.ElementRun{First: 1, Count: 39})
	if len(data.Parts) != 3 {
		t.Errorf("%d parts", len(data.Parts))
	}
	for _, p := range data.Parts[1:] {
		if p.Of != first.Data {
			t.Errorf("a part of %T", p.Of)
		}
	}
	got, err := elements(t.Context(), codec, src, h, "s", 0)
	if want := slices.Concat(e[:40], e[61:100]); err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v", got, err)
	}
	// Back together, it is one range.
	if data = step(format.ElementRun{Count: 40}); len(data.Parts) != 2 {
		t.Errorf("%d parts", len(data.Parts))
	}
}

// TestConcurrent: one codec, many readers of the same handles.
func TestConcurrent(t *testing.T) {
	w := how{version: 6, framed: "header per state"}
	want := sample(w)
	h := stream(w, want...)
	src, codec := &memory{}, &opstate.Codec{}
	done := make(chan error)
	for range 8 {
		go func() {
			metas, err := codec.Describe(t.Context(), src, h)
			if err == nil {
				_, err = codec.Build(t.Context(), src, runs(t, h, metas))
			}
			for _, s := range want {
				got, eerr := elements(t.Context(), codec, src, h, s.name, 0)
				if eerr == nil && !slices.Equal(got, s.elements) {
					eerr = fmt.Errorf("%q: %d elements", s.name, len(got))
				}
				err = errors.Join(err, eerr)
			}
			done <- err
		}()
	}
	for range 8 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// TestModeChanged: what is built with another mode is, byte for byte, what a
// writer makes of a state of that mode.
func TestModeChanged(t *testing.T) {
	for _, w := range []how{{version: 5}, {version: 6}, {version: 6, framed: "one header"}, {version: 6, framed: "header per state"}} {
		states := func(a, b format.Mode, name string) []state {
			return []state{{name: "first", mode: a, elements: []string{"x", "yy"}}, {name: name, mode: b, elements: []string{"z"}}, {name: "m", mode: format.ModeBroadcast, elements: []string{"map"}}}
		}
		in := stream(w, states(format.ModeList, format.ModeUnion, "second")...)
		want := stream(w, states(format.ModeUnion, format.ModeList, "renamed")...)
		src, codec := &memory{}, &opstate.Codec{}
		metas, err := codec.Describe(t.Context(), src, in)
		if err != nil {
			t.Fatal(err)
		}
		r := runs(t, in, metas)
		r[0].Mode, r[1].Mode, r[1].Name = format.ModeUnion, format.ModeList, format.NewText("renamed")
		got, err := codec.Build(t.Context(), src, r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(content(t, src, got.Data), content(t, src, want.Data)) {
			t.Errorf("%v:\n%x\n%x", w, content(t, src, got.Data), content(t, src, want.Data))
		}
		if _, err := codec.Describe(t.Context(), src, got); err != nil {
			t.Error(err)
		}
		if got.States[0].Mode != format.ModeUnion || got.States[1].Mode != format.ModeList {
			t.Errorf("%v, %v", got.States[0].Mode, got.States[1].Mode)
		}
	}
}

// TestModeOfUnknown: the mode of a state whose description was not walked to its
// end cannot be changed.
func TestModeOfUnknown(t *testing.T) {
	in := stream(how{version: 6}, state{name: "s", class: "org.example.Unknown", elements: []string{"a"}})
	src, codec := &memory{}, &opstate.Codec{}
	metas, err := codec.Describe(t.Context(), src, in)
	if err != nil {
		t.Fatal(err)
	}
	r := runs(t, in, metas)
	r[0].Mode = format.ModeUnion
	if _, err := codec.Build(t.Context(), src, r); !errors.Is(err, format.ErrUnsupported) {
		t.Error(err)
	}
}

// TestFormFor: streams become what a writer of the older version makes of the
// same states, also where their description cannot be taken apart.
func TestFormFor(t *testing.T) {
	for _, class := range []string{"", "org.example.Unknown"} {
		states := []state{{name: "s", class: class, elements: []string{"a", "bb"}}}
		in, want := stream(how{version: 6}, states...), stream(how{version: 5}, states...)
		src, codec := &memory{}, &opstate.Codec{}
		metas, err := codec.Describe(t.Context(), src, in)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range []flink.Release{0, flink.MustRelease("2.3"), flink.MustRelease("1.18")} {
			if w, err := codec.EncodingFor(metas[0].Encoding, r); err != nil || w != metas[0].Encoding {
				t.Errorf("%v: another form, %v", r, err)
			}
		}
		r := runs(t, in, metas)
		if r[0].Encoding, err = codec.EncodingFor(metas[0].Encoding, flink.MustRelease("1.17")); err != nil {
			t.Fatal(err)
		}
		got, err := codec.Build(t.Context(), src, r)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(content(t, src, got.Data), content(t, src, want.Data)) {
			t.Errorf("%q:\n%x\n%x", class, content(t, src, got.Data), content(t, src, want.Data))
		}
		if all, err := elements(t.Context(), codec, src, got, "s", 0); err != nil || !slices.Equal(all, []string{"a", "bb"}) {
			t.Errorf("%q, %v", all, err)
		}
	}
	for _, x := range []struct {
		w    how
		to   flink.Release
		text string // "": as it is
	}{
		{how{version: 6, framed: "one header"}, flink.MustRelease("1.17"), "compressed"},
		{how{version: 6, framed: "one header"}, flink.MustRelease("1.18"), ""},
		{how{version: 6}, flink.MustRelease("1.6"), "as Java objects"},
		{how{version: 5}, flink.MustRelease("1.5"), "as Java objects"},
		{how{version: 5}, flink.MustRelease("1.7"), ""},
		{how{version: 4}, flink.MustRelease("1.17"), "rejects"},
		{how{version: 4}, flink.MustRelease("2.0"), "rejects"},
		{how{version: 4}, flink.MustRelease("1.16"), ""},
		{how{version: 4}, flink.MustRelease("1.6"), ""},
		{how{version: 3}, flink.MustRelease("1.5"), ""},
		{how{version: 2}, flink.MustRelease("1.3"), ""},
		{how{version: 0}, flink.MustRelease("1.3"), ""}, // raw
	} {
		h := stream(x.w, state{name: "s", elements: []string{"a"}})
		src, codec := &memory{}, &opstate.Codec{}
		metas, err := codec.Describe(t.Context(), src, h)
		if err != nil {
			t.Fatal(err)
		}
		w, err := codec.EncodingFor(metas[0].Encoding, x.to)
		switch {
		case x.text == "" && (err != nil || w != metas[0].Encoding):
			t.Errorf("%v for %v: %v", x.w, x.to, err)
		case x.text != "" && (!errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), x.text)):
			t.Errorf("%v for %v: %v", x.w, x.to, err)
		}
	}
}
