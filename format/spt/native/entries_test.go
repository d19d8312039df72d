package native_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/native"
)

var keyedStates = []native.KeyedState{{Name: "count", Kind: native.KindValue}, {Name: "seen", Kind: native.KindList}, {Name: "by", Kind: native.KindMap}}

// keyed is the key groups 36 to 39 of 128, written by hand; the keys' groups
// are those of TestKeyGroup.
func keyed(t testing.TB) *format.KeyGroups {
	data := unhex(t, `
		93 92 a5 63 6f 75 6e 74 a5 76 61 6c 75 65 // 0  ["count", "value"]
		   92 a4 73 65 65 6e a4 6c 69 73 74       // 14 ["seen", "list"]
		   92 a2 62 79 a3 6d 61 70                // 25 ["by", "map"]
		94 00 01 a1 77 0b                         // 33 group 36: count[1] in "w" = 11
		94 00 01 c0 0a                            // 39   without a namespace 10
		94 01 01 c0 91 0c                         // 44   seen[1] = [12]
		94 00 2a c0 0d                            // 50 group 37: count[42] = 13
		                                          //    group 38 is empty
		94 00 c3 c0 0e                            // 55 group 39: count[true] = 14
		94 02 c3 c0 82 01 c0 a1 78 c0             // 60   by[true] = {1: nil, "x": nil}
	`)
	return &format.KeyGroups{
		Codec: format.CodecNative, Range: format.KeyGroupRange{First: 36, Count: 4},
		Offsets: format.OffsetSlice{33, 50, 55, 55}, Data: inline(data),
	}
}

func entry(group int32, state int, key, namespace, value string, t testing.TB) format.KeyedEntry {
	e := format.KeyedEntry{KeyGroup: group, State: state, Key: unhex(t, key), Value: unhex(t, value)}
	if namespace != "" {
		e.Namespace = unhex(t, namespace)
	}
	return e
}

func keyedEntries(t testing.TB) []format.KeyedEntry {
	return []format.KeyedEntry{
		entry(36, 0, "01", "a177", "0b", t), entry(36, 0, "01", "", "0a", t), entry(36, 1, "01", "", "910c", t),
		entry(37, 0, "2a", "", "0d", t),
		entry(39, 0, "c3", "", "0e", t), entry(39, 2, "c3", "", "8201c0a178c0", t),
	}
}

func TestEntries(t *testing.T) {
	h, want := keyed(t), keyedEntries(t)
	for _, c := range []struct {
		from    int32
		skipped int
	}{{36, 0}, {37, 3}, {38, 4}, {39, 4}, {40, 6}} {
		src := &memory{}
		got, err := readEntries(src, h, c.from)
		if diff := cmp.Diff(want[c.skipped:], got); err != nil || len(got) != len(want)-c.skipped || len(got) > 0 && diff != "" {
			t.Errorf("from %d: %v %s", c.from, err, diff)
		}
		if src.reads > 3 {
			t.Errorf("from %d: %d reads", c.from, src.reads)
		}
	}
	for _, e := range want {
		if g := native.KeyGroup(e.Key, 128); g != e.KeyGroup {
			t.Errorf("key % x is of group %d, and stands in %d", e.Key, g, e.KeyGroup)
		}
	}
	schema, err := native.KeyedCodec{}.Describe(t.Context(), &memory{}, h)
	if err != nil || len(schema.States) != len(keyedStates) {
		t.Fatal(schema, err)
	}
	for i, st := range schema.States {
		if st.Name.String() != keyedStates[i].Name || st.Kind != string(keyedStates[i].Kind) {
			t.Errorf("state %v, want %v", st, keyedStates[i])
		}
	}
	for _, sel := range []format.KeyedSelection{
		{States: []int{0}}, {States: []int{}}, {Key: unhex(t, "01")}, {Key: unhex(t, "c3"), States: []int{2}}, {Groups: format.KeyGroupRange{First: 37, Count: 2}}, {Groups: format.KeyGroupRange{First: 0, Count: 37}, Key: unhex(t, "01")}, {Groups: format.KeyGroupRange{First: 100, Count: 1}},
	} {
		var chosen, got []format.KeyedEntry
		for _, e := range want {
			r := sel.Groups
			if (sel.States == nil || slices.Contains(sel.States, e.State)) && (sel.Key == nil || bytes.Equal(sel.Key, e.Key)) && (r.Count == 0 || e.KeyGroup >= r.First && e.KeyGroup < r.First+r.Count) {
				chosen = append(chosen, e)
			}
		}
		err := format.EachKeyedEntry(t.Context(), &memory{}, native.KeyedCodec{}, h, sel, func(e format.KeyedEntry) error {
			got = append(got, e.Clone())
			return nil
		})
		if diff := cmp.Diff(chosen, got); err != nil || diff != "" {
			t.Errorf("%+v: %v %s", sel, err, diff)
		}
	}
	for _, other := range []format.KeyedHandle{&format.Incremental{}, &format.KeyGroups{Codec: format.CodecFlink}} {
		if _, err := (native.KeyedCodec{}).Entries(t.Context(), &memory{}, other, format.KeyedSelection{}); !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("%T: %v", other, err)
		}
	}
	cur, err := native.KeyedCodec{}.Entries(t.Context(), &memory{}, h, format.KeyedSelection{})
	if err != nil || !cur.Ordered() {
		t.Fatal(err)
	}
	cur.Close()
	if _, err := cur.Next(); err == nil || err == io.EOF {
		t.Errorf("a closed cursor gives %v", err)
	}
}

// TestKeyedBuild: the builder writes the same bytes, and refuses entries out of
// order.
func TestKeyedBuild(t *testing.T) {
	h, entries := keyed(t), keyedEntries(t)
	schema, err := native.KeyedCodec{}.Describe(t.Context(), &memory{}, h)
	if err != nil {
		t.Fatal(err)
	}
	build := func(entries ...format.KeyedEntry) ([]byte, *format.KeyGroups, error) {
		var w bytes.Buffer
		b, err := native.KeyedCodec{}.Build(t.Context(), schema, h.Range, &w)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if err := b.Add(e); err != nil {
				return nil, nil, err
			}
		}
		built, err := b.Handle()
		return w.Bytes(), built, err
	}
	want := make([]byte, h.Data.Size())
	if _, err := (&memory{}).read(h.Data, want, 0); err != nil {
		t.Fatal(err)
	}
	data, built, err := build(entries...)
	if err != nil || !bytes.Equal(data, want) || cmp.Diff(h.Offsets, built.Offsets) != "" || built.Range != h.Range || built.Codec != format.CodecNative || built.Data != nil {
		t.Errorf("% x %+v %v", data, built, err)
	}
	bad := func(change func(e *format.KeyedEntry)) format.KeyedEntry {
		e := entries[2].Clone()
		change(&e)
		return e
	}
	for want, list := range map[string][]format.KeyedEntry{
		"after an entry of key group 37": {entries[3], entries[0]}, "must ascend": {entries[1], entries[1]}, "ascend by state": {entries[2], entries[0]},
		"is outside 36": {bad(func(e *format.KeyedEntry) { e.KeyGroup = 40 })}, "state 3 is out of range: the schema has 3": {bad(func(e *format.KeyedEntry) { e.State = 3 })},
		"one value": {bad(func(e *format.KeyedEntry) { e.UserKey = []byte{1} })}, "expected an array": {bad(func(e *format.KeyedEntry) { e.Value = []byte{1} })},
		"does not end": {bad(func(e *format.KeyedEntry) { e.Value = []byte{0x91} })}, "after an entry": {bad(func(e *format.KeyedEntry) { e.Value = []byte{0x90, 1} })},
	} {
		if _, _, err := build(list...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// The same bytes, made by the functions that write.
func TestAppendEntry(t *testing.T) {
	h := keyed(t)
	want := make([]byte, h.Data.Size())
	if _, err := (&memory{}).read(h.Data, want, 0); err != nil {
		t.Fatal(err)
	}
	got, err := native.AppendHeader(nil, keyedStates)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range keyedEntries(t) {
		got = native.AppendEntry(got, e.State, e.Key, e.Namespace, e.Value)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("% x\nwant\n% x", got, want)
	}
	for _, i := range []struct {
		state int
		want  string
	}{{127, "94 7f 01 c0 02"}, {128, "94 cc 80 01 c0 02"}, {255, "94 cc ff 01 c0 02"}, {256, "94 cd 01 00 01 c0 02"}, {65535, "94 cd ff ff 01 c0 02"}} {
		if got := native.AppendEntry(nil, i.state, []byte{1}, nil, []byte{2}); !bytes.Equal(got, unhex(t, i.want)) {
			t.Errorf("state %d: % x", i.state, got)
		}
	}
	for name, bad := range map[string][]native.KeyedState{
		"a kind that is none": {{Name: "a", Kind: "set"}},
		"no kind":             {{Name: "a"}},
		"one name twice":      {{Name: "a", Kind: "map"}, {Name: "a", Kind: "list"}},
		"a long name":         {{Name: strings.Repeat("x", 1<<24), Kind: "map"}},
		"limit+1":             make([]native.KeyedState, 1<<16+1),
	} {
		if _, err := native.AppendHeader(nil, bad); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// Many states, whose index takes one, two and three bytes.
func TestManyKeyedStates(t *testing.T) {
	var states []native.KeyedState
	for i := range 1000 {
		states = append(states, native.KeyedState{Name: fmt.Sprint("state ", i, strings.Repeat("x", i)), Kind: native.KindValue})
	}
	data, err := native.AppendHeader(nil, states)
	if err != nil {
		t.Fatal(err)
	}
	h := &format.KeyGroups{Codec: format.CodecNative, Range: format.KeyGroupRange{Count: 1}, Offsets: format.OffsetSlice{int64(len(data))}}
	for i := range states {
		data = native.AppendEntry(data, i, []byte{1}, nil, []byte{2})
	}
	h.Data = inline(data)
	got, err := readEntries(&memory{}, h, 0)
	if err != nil || len(got) != 1000 {
		t.Fatalf("%d entries, %v", len(got), err)
	}
	for i, e := range got {
		if e.State != i {
			t.Errorf("entry %d is of state %d", i, e.State)
		}
	}
}

func TestEntriesRefuses(t *testing.T) {
	replace := func(at int, by string) func(*format.KeyGroups) {
		return func(h *format.KeyGroups) {
			data := make([]byte, h.Data.Size())
			if _, err := (&memory{}).read(h.Data, data, 0); err != nil {
				t.Fatal(err)
			}
			copy(data[at:], unhex(t, by))
			h.Data = inline(data)
		}
	}
	offsets := func(o ...int64) func(*format.KeyGroups) {
		return func(h *format.KeyGroups) { h.Offsets = format.OffsetSlice(o) }
	}
	for name, c := range map[string]struct {
		change func(*format.KeyGroups)
		from   int32
		kind   error
		want   string
	}{
		"other codec": {func(h *format.KeyGroups) { h.Codec = "flink" }, 36, format.ErrUnsupported, `codec "flink"`},
		"savepoint":   {func(h *format.KeyGroups) { h.Savepoint = true }, 36, format.ErrUnsupported, "not native"},
		"few offsets": {offsets(33, 50, 55), 36, format.ErrCorrupt, "3 offsets for 4 key groups"},
		"no offsets":  {func(h *format.KeyGroups) { h.Offsets = nil }, 36, format.ErrCorrupt, "0 offsets for 4"},
		"no stream":   {func(h *format.KeyGroups) { h.Data = nil }, 36, format.ErrCorrupt, "header: range [0, 33) is outside the stream (0 bytes)"},
		"no size":     {func(h *format.KeyGroups) { h.Data = &format.File{Length: -1} }, 36, format.ErrUnsupported, "is unknown"},

		"no header":    {offsets(0, 50, 55, 55), 36, format.ErrCorrupt, "header: range [0, 0) is empty"},
		"short header": {offsets(32, 50, 55, 55), 36, format.ErrCorrupt, "header: a msgpack value does not end within its 32"},
		"header, limit+1": {func(h *format.KeyGroups) {
			h.Data, h.Offsets = inline(make([]byte, 1<<24+1)), format.OffsetSlice{1<<24 + 1, 1<<24 + 1, 1<<24 + 1, 1<<24 + 1}
		}, 36, format.ErrLimit, "header: 16777217 bytes"},
		"header, limit": {func(h *format.KeyGroups) {
			h.Data, h.Offsets = inline(make([]byte, 1<<24)), format.OffsetSlice{1 << 24, 1 << 24, 1 << 24, 1 << 24}
		}, 36, format.ErrCorrupt, "header: 16777215 bytes after"},
		"long header": {offsets(34, 50, 55, 55), 36, format.ErrCorrupt, "header: 1 bytes after"},
		"no array": {func(h *format.KeyGroups) {
			h.Data = inline(bytes.Repeat([]byte{0}, 70))
			h.Offsets = format.OffsetSlice{1, 1, 1, 1}
		}, 36, format.ErrCorrupt, "an array of at most"},
		"array of three":  {replace(1, "93 a5 63 6f 75 6e 74 a5 76 61 6c 75 65 c0 92 a4 73 65 65 6e a4 6c 69 73 74 92 a2 62 79 a2 6d 61"), 36, format.ErrCorrupt, "state 0 of the header is not an array of two"},
		"a name of bytes": {replace(1, "92 c4 04 63 6f 75 6e"), 36, format.ErrCorrupt, "the name of state 0 is not a string"},
		"a kind of bytes": {replace(8, "c4 04"), 36, format.ErrCorrupt, "the kind of state 0 is not a string"},
		"a longer form":   {replace(1, "92 d9 04 63 6f 75 6e"), 36, format.ErrCorrupt, "header: it is not in the shortest encoding"},
		"no such kind":    {replace(26, "a2 62 79 a3 73 65 74"), 36, format.ErrCorrupt, `state "by": expected kind value, list or map, found "set"`},
		"a name twice":    {replace(15, "a4 63 6f 75 6e"), 36, nil, ""}, // a control: "coun" is another name

		"descending":     {offsets(33, 55, 50, 55), 37, format.ErrCorrupt, "key group 37: range [55, 50) is outside the key groups (33 to 70)"},
		"into header":    {offsets(33, 10, 55, 55), 37, format.ErrCorrupt, "key group 37: range [10, 55) is outside the key groups (33 to 70)"},
		"beyond":         {offsets(33, 50, 55, 71), 39, format.ErrCorrupt, "key group 39: range [71, 70) is outside the key groups (33 to 70)"},
		"half an entry":  {offsets(33, 48, 55, 55), 36, format.ErrCorrupt, "key group 36/entry 2: an entry does not end within the remaining 4 bytes"},
		"no entry":       {replace(39, "93"), 36, format.ErrCorrupt, "key group 36/entry 1: expected an array of 4, found msgpack code"},
		"no such state":  {replace(51, "03"), 37, format.ErrCorrupt, "key group 37/entry 0: expected the index of one of 3 states, found 03"},
		"negative state": {replace(51, "ff"), 37, format.ErrCorrupt, "found ff"},
		"long index":     {replace(55, "94 cc 00 c3 c0 0e"), 39, format.ErrCorrupt, "found cc 00"},
		"list, no array": {replace(44, "94 01 01 c0 a1"), 36, format.ErrCorrupt, `state "seen": expected an array, found msgpack code`},
		"map, no map":    {replace(60, "94 02 c3 c0 94"), 39, format.ErrCorrupt, `state "by": expected a map, found msgpack code`},
		"map unordered":  {replace(64, "82 a1 78 c0 01 c0"), 39, format.ErrCorrupt, "are not in ascending order"},
		"states unordered": {func(h *format.KeyGroups) {
			replace(33, "94 01 01 c0 90 94 00 01 c0 0a 94 00 01 c0 0a c0")(h)
		}, 36, format.ErrCorrupt, "key group 36/entry 1: entries are not in the order of state, key and namespace"},
		"namespaces unordered": {replace(33, "94 00 01 c0 0a 94 00 01 a1 77 0b"), 36, format.ErrCorrupt, "key group 36/entry 1: entries are not in the order of state, key and namespace"},
		"no msgpack":           {replace(35, "c1"), 36, format.ErrCorrupt, "key group 36/entry 0: the byte 0xc1"},
		"an entry twice":       {replace(60, "94 00 c3 c0 0e 94 00 c3 c0"), 39, format.ErrCorrupt, "key group 39/entry 1: entries are not in the order of state, key and namespace"},
	} {
		h := keyed(t)
		c.change(h)
		_, err := readEntries(&memory{}, h, c.from)
		if c.want == "" && c.kind == nil {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestEntriesDamaged(t *testing.T) {
	h := keyed(t)
	data := make([]byte, h.Data.Size())
	if _, err := (&memory{}).read(h.Data, data, 0); err != nil {
		t.Fatal(err)
	}
	for n := range data {
		c := *h
		c.Data = inline(data[:n])
		got, err := readEntries(&memory{}, &c, 36)
		if n == 55 || n == 60 { // between entries of the last key group: what is left is whole
			if err != nil || len(got) != 4+(n-55)/5 {
				t.Errorf("cut to %d: %d entries, %v", n, len(got), err)
			}
			continue
		}
		wantKind(t, err, fmt.Sprintf("cut to %d", n), format.ErrCorrupt)
	}
	for i := range data {
		for bit := range 8 {
			flipped := bytes.Clone(data)
			flipped[i] ^= 1 << bit
			c := *h
			c.Data = inline(flipped)
			got, err := readEntries(&memory{}, &c, 36)
			if err != nil {
				wantKind(t, err, fmt.Sprintf("bit %d of byte %d", bit, i), format.ErrCorrupt)
			} else if i == 0 || data[i] == 0x94 {
				t.Errorf("bit %d of byte %d: %d entries", bit, i, len(got))
			}
		}
	}
}

// Entries larger than the buffers, between small ones.
func TestLargeEntries(t *testing.T) {
	data, err := native.AppendHeader(nil, keyedStates)
	if err != nil {
		t.Fatal(err)
	}
	h := &format.KeyGroups{Codec: format.CodecNative, Range: format.KeyGroupRange{First: 5, Count: 3}}
	var values [][]byte
	var offsets format.OffsetSlice
	for i, n := range []int{1, 64<<10 - 9, 64 << 10, 1 << 20, 3 << 20, 2, 3, 70_000, 5} {
		if i%3 == 0 {
			offsets = append(offsets, int64(len(data)))
		}
		v := mustMarshal(t, bytes.Repeat([]byte{byte(i)}, n))
		values = append(values, v)
		data = native.AppendEntry(data, 0, []byte{byte(i)}, nil, v)
	}
	h.Offsets, h.Data = offsets, inline(data)
	for from := range int32(4) {
		src := &memory{}
		got, err := readEntries(src, h, 5+from)
		if err != nil || len(got) != len(values)-3*int(from) {
			t.Fatalf("from %d: %d entries, %v", from, len(got), err)
		}
		for i, e := range got {
			if j := i + 3*int(from); !bytes.Equal(e.Value, values[j]) || e.Key[0] != byte(j) || e.KeyGroup != int32(5+j/3) {
				t.Errorf("from %d: entry %d is of key % x in %d", from, i, e.Key, e.KeyGroup)
			}
		}
		if src.reads > 40 {
			t.Errorf("from %d: %d reads", from, src.reads)
		}
	}
}

func TestNoKeyGroups(t *testing.T) {
	got, err := readEntries(&memory{}, &format.KeyGroups{Codec: format.CodecNative}, 0)
	if err != nil || len(got) != 0 {
		t.Errorf("%d, %v", len(got), err)
	}
}
