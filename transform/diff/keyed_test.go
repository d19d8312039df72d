package diff

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/transform"
)

// keyedOnly leaves out the kinds of differences that any rescale makes.
var keyedOnly = Options{Ignore: map[Kind]bool{KindParallelism: true, KindSubtasks: true, KindHandles: true}}

// rawGroups makes raw keyed state: no header, and -1 for "", a key group that was
// not written (spec flink-keyed-state 10.1).
func rawGroups(name string, first int32, groups ...string) *format.KeyGroups {
	h := &format.KeyGroups{Codec: format.CodecRaw, Range: format.KeyGroupRange{First: first, Count: int32(len(groups))}}
	var offsets format.OffsetSlice
	p := ""
	for _, g := range groups {
		if g == "" {
			offsets = append(offsets, -1)
			continue
		}
		offsets = append(offsets, int64(len(p)))
		p += strings.Trim(g, "_") // "_": written, without a byte
	}
	h.Offsets, h.Data = offsets, sptest.Inline(name, p)
	return h
}

// TestKeyGroupExtents: a change of one key group is one difference, in that key
// group, and a rescale is none, wherever key groups without entries are. Native
// state gives them the offset of the next one (docs/format.md), so does
// the "equal" kind; Flink's canonical state has offset 0.
func TestKeyGroupExtents(t *testing.T) {
	kinds := map[string]func(groups ...string) *format.KeyGroups{
		"native": func(g ...string) *format.KeyGroups {
			return sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 0, g...)
		},
		"canonical": func(g ...string) *format.KeyGroups {
			return sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 0, g...)
		},
		"equal": func(g ...string) *format.KeyGroups {
			h := sptest.KeyGroupStream(false, format.CodecFlink, "HEAD", 0, g...)
			h.Savepoint = true
			return h
		},
	}
	shapes := [][]string{
		{"", "", "aa", "", "bb", "cc"}, // leading
		{"aa", "bb", "", "cc", "", ""}, // trailing
		{"", "aa", "", "", "bb", ""},   // both, and between
		{"", "", "", "", "", "a"},
		{"a", "", "", "", "", ""},
		{"", "", "", "", "", ""}, // all
		{"a", "b", "c", "d", "e", "f"},
	}
	for kind, stream := range kinds {
		for _, shape := range shapes {
			base := sptest.View(sptest.KeyedOperator(6, stream(shape...)))
			for to := int32(1); to <= 6; to++ {
				sp, err := plan(t, base, transform.RescaleOptions{To: to}).Apply(t.Context())
				if err != nil {
					t.Fatalf("%s %q to %d: %v", kind, shape, to, err)
				}
				out := sp
				if d := differences(diffOf(t, base, out, keyedOnly)); len(d) > 0 {
					t.Errorf("%s %q to %d: %q", kind, shape, to, d)
				}
			}
			for g := range shape {
				other := slices.Clone(shape)
				want := "key groups: 1 changed"
				switch {
				case shape[g] == "":
					other[g], want = "new", "key groups: 1 added"
				case g%2 == 0:
					other[g], want = "", "key groups: 1 removed"
				default:
					other[g] = "zz"
				}
				held := 0
				for i, s := range shape {
					if i != g && s != "" {
						held++
					}
				}
				if held > 0 {
					want += fmt.Sprintf(", %d same", held)
				}
				d := diffOf(t, base, sptest.View(sptest.KeyedOperator(6, stream(other...))), keyedOnly)
				if got := differences(d); len(got) != 1 || got[0] != "keyed: keyed/ "+want || !slices.Equal(d.Operators[0].States[0].Keyed.Groups, []int32{int32(g)}) {
					t.Errorf("%s %q → %q: %q, want %q", kind, shape, other, got, want)
				}
			}
		}
	}
}

// TestNativeStreamsOfEqualBytes: two subtasks without entries have streams of
// equal bytes, in which all key groups of both start where the header ends. They
// are two streams, although they are stored once in an .spt file.
func TestNativeStreamsOfEqualBytes(t *testing.T) {
	in := func(last string) format.View {
		return sptest.View(sptest.KeyedOperator(6,
			sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 0, "", ""),
			sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 2, "", ""),
			sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 4, "", last)))
	}
	if d := differences(diffOf(t, in("x"), in("y"), keyedOnly)); len(d) != 1 || d[0] != "keyed: keyed/ key groups: 1 changed" {
		t.Errorf("%q", d)
	}
	// No key can be of two key groups, but what cannot be is not read as what is not there.
	two := func(last string) format.View {
		return sptest.View(sptest.KeyedOperator(2, sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 0, "x"), sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 1, last)))
	}
	if d := differences(diffOf(t, two("x"), two("y"), keyedOnly)); len(d) != 1 || d[0] != "keyed: keyed/ key groups: 1 changed, 1 same" {
		t.Errorf("%q", d)
	}
}

// TestRawKeyGroups: raw keyed state has no header, so its first key group starts
// at 0, and -1 is one that was not written. Two streams of equal bytes are not
// one stream of twice as many key groups.
func TestRawKeyGroups(t *testing.T) {
	in := func(a, b []string) format.View {
		op := sptest.Operator("raw", nil, nil)
		op.MaxParallelism = 8
		op.Subtasks[0].RawKeyed = rawGroups("a", 0, a...)
		op.Subtasks[1].RawKeyed = rawGroups("b", 4, b...)
		return sptest.View(op)
	}
	base := []string{"aa", "", "_", "bb"}
	for _, tt := range []struct {
		name string
		b    []string
		want string
		at   []int32
	}{
		{"same", []string{"aa", "", "_", "bb"}, "", nil},
		{"the first", []string{"xx", "", "_", "bb"}, "1 changed, 3 same", []int32{4}},
		{"written", []string{"aa", "x", "_", "bb"}, "1 added, 4 same", []int32{5}},
		{"without a byte or not written", []string{"aa", "", "", "bb"}, "", nil},
		{"the last", []string{"aa", "", "_", "bbb"}, "1 changed, 3 same", []int32{7}},
		{"not written any more", []string{"", "", "_", "bb"}, "1 removed, 3 same", []int32{4}},
	} {
		d := diffOf(t, in(base, base), in(base, tt.b), keyedOnly)
		got := differences(d)
		var groups []int32
		for _, st := range d.Operators[0].States {
			groups = st.Keyed.Groups
		}
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || got[0] != "keyed: raw/ key groups: "+tt.want) || !slices.Equal(groups, tt.at) {
			t.Errorf("%s: %q in %v, want %q in %v", tt.name, got, groups, tt.want, tt.at)
		}
	}
	// Rescaled up, the handles name parts of one stream: as one stream, and as
	// copies of it, which inline state becomes in _metadata.
	one := sptest.Operator("raw", nil)
	one.MaxParallelism = 4
	one.Subtasks[0].RawKeyed = rawGroups("a", 0, "aa", "b", "", "ccc")
	whole := sptest.View(one)
	sp, err := plan(t, whole, transform.RescaleOptions{To: 4}).Apply(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	shared := sp
	copied := shared
	copied.Savepoint, err = sp.MapStreams(func(_ format.Place, s format.Stream) (format.Stream, error) {
		c := *s.(*format.Inline)
		return &c, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, out := range map[string]format.View{"shared": shared, "copied": copied} {
		if d := differences(diffOf(t, whole, out, keyedOnly)); len(d) > 0 {
			t.Errorf("%s: %q", name, d)
		}
	}
}

// TestChangelogKeyGroups: key groups inside a changelog are compared like others.
func TestChangelogKeyGroups(t *testing.T) {
	in := func(change string, groups ...string) format.View {
		c := &format.Changelog{Range: format.KeyGroupRange{Count: 4},
			Materialized: []format.KeyedHandle{sptest.KeyGroupStream(false, format.CodecNative, "HEAD", 0, groups...), nil},
			Changes:      []format.KeyedHandle{&format.ChangelogMemory{Range: format.KeyGroupRange{Count: 4}, Changes: []format.Change{{KeyGroup: 1, Data: format.NewBytes([]byte(change))}}}},
		}
		return sptest.View(sptest.KeyedOperator(4, c))
	}
	for _, tt := range []struct {
		a, b format.View
		want string
	}{
		{in("c", "", "a", "", "b"), in("c", "", "a", "", "b"), ""},
		{in("c", "", "a", "", "b"), in("c", "", "a", "", "x"), "key groups: 1 changed, 1 same"},
		{in("c", "", "a", "", "b"), in("d", "", "a", "", "b"), "files: 1 added, 1 removed"},
		{in("c", "", "a", "", ""), in("c", "", "a", "b", ""), "key groups: 1 added, 1 same"},
	} {
		got := differences(diffOf(t, tt.a, tt.b, keyedOnly))
		if tt.want == "" && len(got) > 0 || tt.want != "" && (len(got) != 1 || got[0] != "keyed: keyed/ "+tt.want) {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}
