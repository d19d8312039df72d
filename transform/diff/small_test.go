package diff

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/transform"
)

// everything is a savepoint with state of every kind: each call makes the same.
func everything() format.View {
	channel := func(name string) *format.ChannelHandle {
		return &format.ChannelHandle{Channels: []format.Channel{{First: 1, Second: 2, Size: 3, Offsets: format.OffsetSlice{0, 2}}, {First: 1, Second: 3, Size: 3}}, Data: sptest.Inline(name, "abcdef")}
	}
	op := sptest.Operator("op", namedStates("m0", st{"l", format.ModeList, []string{"a", "b"}}), namedStates("m1", st{"l", format.ModeList, []string{"c"}}), nil)
	op.MaxParallelism = 4
	op.Coordinator = sptest.Inline("c", "positions")
	op.Name = format.NewText("name")
	op.Subtasks[0].ManagedKeyed = &format.Changelog{Range: format.KeyGroupRange{Count: 2},
		Materialized: []format.KeyedHandle{sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 0, "a", "b")},
		Changes:      []format.KeyedHandle{&format.ChangelogStream{Range: format.KeyGroupRange{Count: 2}, Streams: []format.OffsetStream{{Offset: 2, Data: sptest.Inline("d", "..change")}}}}}
	op.Subtasks[1].ManagedKeyed = &format.Changelog{Range: format.KeyGroupRange{First: 2, Count: 2},
		Materialized: []format.KeyedHandle{sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 2, "c", "d")}}
	op.Subtasks[1].RawKeyed = rawGroups("r", 2, "c", "d")
	op.Subtasks[0].Input = []*format.ChannelHandle{channel("i")}
	op.Subtasks[1].Output = []*format.ChannelHandle{channel("o")}
	op.Subtasks[0].Legacy = []format.Stream{sptest.Inline("legacy", "old")}
	in := sptest.View(op, sptest.Operator("other", namedStates("n0", st{"x", format.ModeList, []string{"a"}})))
	in.ID = 7
	in.Kind = format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatCanonical}
	in.Masters = []format.MasterState{{Name: format.NewText("hook"), Version: 1, Data: format.NewBytes([]byte("x"))}}
	return in
}

// TestDiffOfEachField: one change of one thing is one difference, which says what
// it is; and what is not state, such as the order of operators, is none.
func TestDiffOfEachField(t *testing.T) {
	op := func(in format.View) *format.Operator { return in.Operators[0] }
	changelog := func(in format.View) *format.Changelog { return op(in).Subtasks[0].ManagedKeyed.(*format.Changelog) }
	for _, tt := range []struct {
		what   string
		change func(*format.View)
		want   string
	}{
		{"nothing", func(*format.View) {}, ""},
		{"the order of operators", func(in *format.View) { slices.Reverse(in.Operators) }, ""},
		{"the order of subtasks", func(in *format.View) { slices.Reverse(op(*in).Subtasks) }, ""},
		{"the id", func(in *format.View) { in.ID = 8 }, "id: checkpoint 7 → 8"},
		{"the type", func(in *format.View) { in.Kind.Type = format.TypeSuspendSavepoint }, "kind: savepoint, canonical, changelog, unaligned → savepoint, canonical, taken to stop the job, changelog, unaligned"},
		{"the format", func(in *format.View) { in.Kind.Format = format.FormatNative }, "kind: savepoint, canonical, changelog, unaligned → savepoint, native, changelog, unaligned"},
		{"master states", func(in *format.View) { in.Masters = nil }, "masters: 1 → 0 master states"},
		{"a master state's bytes", func(in *format.View) { in.Masters[0].Data = format.NewBytes([]byte("y")) }, "masters: the master states differ"},
		{"a master state's version", func(in *format.View) { in.Masters[0].Version = 2 }, "masters: the master states differ"},
		{"a master state's name", func(in *format.View) { in.Masters[0].Name = format.NewText("h") }, "masters: the master states differ"},
		{"an operator added", func(in *format.View) { in.Operators = append(in.Operators, sptest.Operator("new", nil)) }, "operators: new added"},
		{"an operator removed", func(in *format.View) { in.Operators = in.Operators[:1] }, "operators: other removed"},
		{"an id that occurs twice", func(in *format.View) { in.Operators = append(in.Operators, in.Operators[1]) }, "operators: other added"},
		{"the uid", func(in *format.View) { op(*in).UID = format.NewText("changed") }, `names: changed uid "op" → "changed"`},
		{"a uid that is not stored any more", func(in *format.View) { op(*in).UID = format.Text{} }, ""},
		{"the name", func(in *format.View) { op(*in).Name = format.NewText("changed") }, `names: op name "name" → "changed"`},
		{"a name that is not stored any more", func(in *format.View) { op(*in).Name = format.Text{} }, ""},
		{"parallelism", func(in *format.View) { op(*in).Parallelism = 4 }, "parallelism: op parallelism 3 → 4; subtasks: op subtasks without an entry 0 → 1"},
		{"max parallelism", func(in *format.View) { op(*in).MaxParallelism = 8 }, "max-parallelism: op max parallelism 4 → 8"},
		{"a subtask that had finished", func(in *format.View) { op(*in).Subtasks[2].Finished = true }, "subtasks: op subtasks that had finished 0 → 1"},
		{"a subtask that is missing", func(in *format.View) { op(*in).Subtasks = op(*in).Subtasks[:2] }, "subtasks: op subtasks without an entry 0 → 1"},
		{"the coordinator", func(in *format.View) { op(*in).Coordinator = sptest.Inline("c", "position!") }, "coordinator: op/ state of the coordinator changed, 9 → 9 bytes"},
		{"a longer coordinator", func(in *format.View) { op(*in).Coordinator = sptest.Inline("c", "positions!") }, "coordinator: op/ state of the coordinator changed, 9 → 10 bytes"},
		{"no coordinator", func(in *format.View) { op(*in).Coordinator = nil }, "coordinator: op/ state of the coordinator removed"},
		{"an element", func(in *format.View) {
			op(*in).Subtasks[0].Managed = namedStates("m0", st{"l", format.ModeList, []string{"a", "z"}})
		}, "elements: op/l elements: 1 added, 1 removed"},
		{"the subtask of an element", func(in *format.View) {
			op(*in).Subtasks[0].Managed, op(*in).Subtasks[1].Managed = op(*in).Subtasks[1].Managed, op(*in).Subtasks[0].Managed
		}, ""},
		{"the mode of a state", func(in *format.View) {
			for _, s := range op(*in).Subtasks[:2] {
				s.Managed.States[0].Mode = format.ModeUnion
			}
		}, "states: op/l mode list → union"},
		{"a key group of a changelog", func(in *format.View) {
			changelog(*in).Materialized = []format.KeyedHandle{sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 0, "a", "z")}
		}, "keyed: op/ key groups: 1 changed, 3 same"},
		{"the description before key groups", func(in *format.View) {
			changelog(*in).Materialized = []format.KeyedHandle{sptest.KeyGroupStream(true, format.CodecFlink, "HEAT", 0, "a", "b")}
		}, "keyed: op/ the description of its states changed in some subtasks: new in subtask 0"},
		{"the description in all subtasks", func(in *format.View) {
			changelog(*in).Materialized = []format.KeyedHandle{sptest.KeyGroupStream(true, format.CodecFlink, "HEAT", 0, "a", "b")}
			op(*in).Subtasks[1].ManagedKeyed.(*format.Changelog).Materialized = []format.KeyedHandle{sptest.KeyGroupStream(true, format.CodecFlink, "HEAT", 2, "c", "d")}
		}, "keyed: op/ the description of its states changed"},
		{"changes before those of the handle", func(in *format.View) {
			changelog(*in).Changes[0].(*format.ChangelogStream).Streams[0].Data = sptest.Inline("d", "::change")
		}, ""},
		{"changes", func(in *format.View) {
			changelog(*in).Changes[0].(*format.ChangelogStream).Streams[0].Data = sptest.Inline("d", "..chance")
		}, "keyed: op/ files: 1 added, 1 removed"},
		{"no changes", func(in *format.View) { changelog(*in).Changes = nil }, "keyed: op/ files: 1 removed"},
		{"a raw key group", func(in *format.View) { op(*in).Subtasks[1].RawKeyed = rawGroups("r", 2, "c", "z") }, "keyed: op/ key groups: 1 changed, 1 same"},
		{"no raw keyed state", func(in *format.View) { op(*in).Subtasks[1].RawKeyed = nil }, "states: op/ raw keyed state removed"},
		{"how keyed state is kept", func(in *format.View) {
			op(*in).Subtasks[1].RawKeyed = &format.Incremental{Range: format.KeyGroupRange{First: 2, Count: 2}, Meta: sptest.Inline("meta", "x")}
		}, "keyed: op/ kept as full → incremental: cannot be compared by its bytes"},
		{"legacy state", func(in *format.View) { op(*in).Subtasks[0].Legacy[0] = sptest.Inline("legacy", "new") }, "legacy: op/ legacy state changed"},
		{"in-flight bytes", func(in *format.View) { op(*in).Subtasks[0].Input[0].Data = sptest.Inline("i", "abcdeF") }, "in-flight: op/ in-flight data changed"},
		{"in-flight channel", func(in *format.View) { op(*in).Subtasks[0].Input[0].Channels[0].First = 9 }, "in-flight: op/ in-flight data changed"},
		{"in-flight subpartition", func(in *format.View) { op(*in).Subtasks[0].Input[0].Channels[1].Second = 9 }, "in-flight: op/ in-flight data changed"},
		{"in-flight size", func(in *format.View) { op(*in).Subtasks[0].Input[0].Channels[0].Size = 9 }, "in-flight: op/ in-flight data changed"},
		{"in-flight offsets", func(in *format.View) { op(*in).Subtasks[0].Input[0].Channels[0].Offsets = format.OffsetSlice{0, 1} }, "in-flight: op/ in-flight data changed"},
		{"the order of channels", func(in *format.View) { slices.Reverse(op(*in).Subtasks[0].Input[0].Channels) }, ""},
		{"the side of in-flight data", func(in *format.View) {
			s := op(*in).Subtasks[0]
			s.Input, s.Output = nil, s.Input
		}, "in-flight: op/ in-flight data changed"},
		{"the subtask of in-flight data", func(in *format.View) {
			s := op(*in).Subtasks
			s[0].Input, s[2].Input = nil, s[0].Input
		}, "in-flight: op/ in-flight data changed"},
		{"no in-flight data", func(in *format.View) { op(*in).Subtasks[0].Input, op(*in).Subtasks[1].Output = nil, nil },
			"kind: savepoint, canonical, changelog, unaligned → savepoint, canonical, changelog; in-flight: op/ in-flight data removed"},
	} {
		a, b := everything(), everything()
		tt.change(&b)
		if got := strings.Join(differences(diffOf(t, a, b, Options{})), "; "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
		back := diffOf(t, b, a, Options{})
		if (len(back.Differences) == 0) != (tt.want == "") {
			t.Errorf("%s, the other way round: %q", tt.what, differences(back))
		}
	}
	// What holds parts of an id that occurs twice is paired in order.
	a, b := everything(), everything()
	a.Operators, b.Operators = append(a.Operators, a.Operators[1]), append(b.Operators, b.Operators[1])
	if d := differences(diffOf(t, a, b, Options{})); len(d) > 0 {
		t.Errorf("an id that occurs twice in both: %q", d)
	}
}

// TestDiffHandlesOfPlaces: in what kind of place state is stored is a difference,
// unless one side has none.
func TestDiffHandlesOfPlaces(t *testing.T) {
	in := func(s format.Stream) format.View {
		op := sptest.Operator("op", nil)
		if s != nil {
			op.Subtasks[0].Managed = &format.OperatorHandle{Codec: format.CodecRaw, Data: s, States: []format.NamedState{{Name: format.NewText("l"), Offsets: format.OffsetSlice{}}}}
		}
		return sptest.View(op)
	}
	inline, relative, absolute := format.Stream(sptest.Inline("x", "")), &format.File{Path: format.NewText("f"), Relative: true}, &format.File{Path: format.NewText("/f")}
	chunks := func(as format.Stream) format.Stream { return &format.Chunks{As: as} }
	for _, tt := range []struct {
		a, b format.Stream
		want string
	}{
		{inline, inline, ""},
		{inline, relative, "operator state is stored inline → next to _metadata"},
		{relative, absolute, "operator state is stored next to _metadata → in files elsewhere"},
		{inline, chunks(inline), ""},
		{relative, chunks(relative), ""},
		{relative, chunks(absolute), "operator state is stored next to _metadata → in files elsewhere"},
		{inline, chunks(nil), "operator state is stored inline → in chunks"},
		{inline, &format.Concat{}, ""}, // it is not written yet
		{&format.EmptySegment{}, &format.Segment{Path: format.NewText("/f")}, "operator state is stored nowhere → in merged files"},
	} {
		want := tt.want
		if want != "" {
			want = "handles: op " + want
		}
		if got := strings.Join(differences(diffOf(t, in(tt.a), in(tt.b), Options{})), "; "); got != want {
			t.Errorf("%T → %T: %q, want %q", tt.a, tt.b, got, want)
		}
	}
}

// placed is a source that knows where its files are, and counts what it reads.
type placed struct {
	sptest.Memory
	files map[string]string // place by path; "": missing
	bytes map[string]string // by place
	blind bool              // it cannot tell places
	read  int
}

func (p *placed) PlaceOf(_ context.Context, s format.Stream) (string, error) {
	path, _, ok := format.Reference(s)
	if !ok || p.blind {
		return "", nil
	}
	place := p.files[path.String()]
	if place == "" {
		return "", format.Errorf(format.ErrMissing, "file %s", path)
	}
	return place, nil
}

func (p *placed) ReadAt(ctx context.Context, s format.Stream, b []byte, off int64) (int, error) {
	path, _, ok := format.Reference(s)
	if !ok {
		return p.Memory.ReadAt(ctx, s, b, off)
	}
	p.read++
	data := p.bytes[p.files[path.String()]]
	if off+int64(len(b)) > int64(len(data)) {
		return 0, format.Errorf(format.ErrMissing, "file %s", path)
	}
	return copy(b, data[off:]), nil
}

// TestDiffSharedFiles: files of one absolute reference are the same without being
// read where they are one file, or where neither side has them, which is counted;
// they are read where the sides find different files, or only one has it.
func TestDiffSharedFiles(t *testing.T) {
	var relative, blind bool
	in := func(n int64, place, data string) (format.View, *placed) {
		h := &format.Incremental{Range: format.KeyGroupRange{Count: 128}, Meta: sptest.Inline("meta", "m"),
			Shared: []format.NamedStream{{Name: format.NewText("1.sst"), Data: &format.File{Path: format.NewText("/shared/f"), Relative: relative, Length: n}}}}
		in := sptest.View(sptest.IncrementalOperator("op", h))
		src := &placed{files: map[string]string{"/shared/f": place}, bytes: map[string]string{place: data}, blind: blind}
		in.Source = src
		return in, src
	}
	for _, tt := range []struct {
		what                   string
		place, other, old, now string
		want                   string // "err": an error
		read                   bool
		absent, byReference    int64
	}{
		{"one file", "p", "p", "abc", "abc", "", false, 0, 1},
		{"neither has it", "", "", "abc", "abc", "", false, 1, 0},
		{"two files of the same bytes", "p", "q", "abc", "abc", "", true, 0, 0},
		{"two files of other bytes", "p", "q", "abc", "abd", "keyed: op/ files: 1 added, 1 removed, 1 same", true, 0, 0},
		{"only the old one has it", "p", "", "abc", "", "err", false, 0, 0},
		{"only the new one has it", "", "p", "", "abc", "err", false, 0, 0},
		{"places that cannot be told, the same", "p", "p", "abc", "abc", "", true, 0, 0},
		{"places that cannot be told", "p", "p", "abc", "abd", "keyed: op/ files: 1 added, 1 removed, 1 same", true, 0, 0},
		{"a relative name says nothing", "p", "q", "abc", "abd", "keyed: op/ files: 1 added, 1 removed, 1 same", true, 0, 0},
		{"a relative name that neither has, in one folder", "", "", "", "", "", false, 1, 0},
	} {
		relative, blind = strings.HasPrefix(tt.what, "a relative"), strings.HasPrefix(tt.what, "places")
		a, src := in(3, tt.place, tt.old)
		b, other := in(3, tt.other, tt.now)
		d, err := Savepoints(t.Context(), a, b, Options{})
		if (err != nil) != (tt.want == "err") {
			t.Errorf("%s: %v", tt.what, err)
		}
		if err != nil {
			continue
		}
		k := d.Operators[0].States[0].Keyed
		if got := strings.Join(differences(d), "; "); got != tt.want || (src.read+other.read > 0) != tt.read || d.Absent != tt.absent || k.ByReference != tt.byReference {
			t.Errorf("%s: %q, %d reads, %d absent, %d by reference", tt.what, got, src.read+other.read, d.Absent, k.ByReference)
		}
	}
}

// TestDiffPlacementOfKeyGroups: with Placement, key groups that another subtask
// covers are counted.
func TestDiffPlacementOfKeyGroups(t *testing.T) {
	in := sptest.View(sptest.KeyedOperator(6, sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 0, "a", "b", "c", "d", "e", "f")))
	for to, want := range map[int32]int64{1: 0, 2: 3, 3: 4, 6: 5} {
		sp, err := plan(t, in, transform.RescaleOptions{To: to}).Apply(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		out := sp
		o := keyedOnly
		o.Placement = true
		d := diffOf(t, in, out, o)
		text := ""
		if want > 0 {
			text = fmt.Sprintf("placement: keyed/ %d of 6 key groups are in other subtasks", want)
		}
		if got := strings.Join(differences(d), "; "); got != text || d.Operators[0].States[0].Keyed.MovedGroups != want {
			t.Errorf("to %d: %q, want %q", to, got, text)
		}
	}
}

// TestDiffOneFileTwice: that two handles name one file says that their key groups
// are the same only where they start at the same position of it.
func TestDiffOneFileTwice(t *testing.T) {
	in := func(offsets ...int64) format.View {
		h := &format.KeyGroups{Codec: format.CodecFlink, Savepoint: true, Range: format.KeyGroupRange{Count: int32(len(offsets))}, Offsets: format.OffsetSlice(offsets),
			Data: &format.File{Path: format.NewText("/f"), Length: 8}}
		in := sptest.View(sptest.KeyedOperator(int32(len(offsets)), h))
		in.Source = &placed{files: map[string]string{"/f": "p"}, bytes: map[string]string{"p": "HEADaabb"}}
		return in
	}
	for _, tt := range []struct {
		a, b format.View
		want string
	}{
		{in(4, 6), in(4, 6), ""},
		{in(4, 6), in(6, 4), "keyed: keyed/ key groups: 2 changed"},
		{in(4, 6, 0), in(4, 0, 6), "keyed: keyed/ key groups: 1 added, 1 removed, 1 same"},
	} {
		if got := strings.Join(differences(diffOf(t, tt.a, tt.b, Options{})), "; "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestDiffPartsOfAKeyGroup: a key group that several handles hold parts of is the
// same where all its parts are.
func TestDiffPartsOfAKeyGroup(t *testing.T) {
	in := func(groups ...string) format.View {
		var all []format.KeyedHandle
		for _, g := range groups {
			all = append(all, sptest.KeyGroupStream(true, format.CodecFlink, "HEAD", 0, g))
		}
		return sptest.View(sptest.KeyedOperator(1, all...))
	}
	for _, tt := range []struct {
		a, b format.View
		want string
	}{
		{in("x", "y"), in("x", "y"), ""},
		{in("x"), in("x", "y"), "keyed: keyed/ key groups: 1 changed"},
		{in("x", "y"), in("x"), "keyed: keyed/ key groups: 1 changed"},
		{in("x", "y"), in("x", "z"), "keyed: keyed/ key groups: 1 changed"},
	} {
		if got := strings.Join(differences(diffOf(t, tt.a, tt.b, keyedOnly)), "; "); got != tt.want {
			t.Errorf("%q, want %q", got, tt.want)
		}
	}
}

// TestDiffPartsInOneStream: two handles hold parts of a key group that lie in one
// stream.
func TestDiffPartsInOneStream(t *testing.T) {
	in := func(data string) format.View {
		a := &format.KeyGroups{Codec: format.CodecFlink, Savepoint: true, Range: format.KeyGroupRange{Count: 1}, Offsets: format.OffsetSlice{4}, Data: sptest.Inline("x", data)}
		b := *a
		b.Offsets = format.OffsetSlice{5}
		return sptest.View(sptest.KeyedOperator(1, a, &b))
	}
	for _, other := range []string{"HEADxb", "HEADax"} {
		if got := differences(diffOf(t, in("HEADab"), in(other), keyedOnly)); !slices.Equal(got, []string{"keyed: keyed/ key groups: 1 changed"}) {
			t.Errorf("%s: %q", other, got)
		}
	}
}

// chunked is a source of chunks, by their index, that counts what it reads.
type chunked struct {
	data []string
	read int
}

func (c *chunked) ReadAt(_ context.Context, s format.Stream, p []byte, off int64) (int, error) {
	c.read++
	return copy(p, c.data[s.(*format.Chunks).Index][off:]), nil
}

// TestDiffDigests: chunks of equal digests are the same and not read; those
// without a digest are read.
func TestDiffDigests(t *testing.T) {
	in := func(digest, data string) (format.View, *chunked) {
		op := sptest.Operator("op", nil)
		op.Coordinator = &format.Chunks{Length: int64(len(data)), Digest: digest}
		in, c := sptest.View(op), &chunked{data: []string{data}}
		in.Source = c
		return in, c
	}
	for _, tt := range []struct {
		a, b, old, now string
		same, read     bool
	}{
		{"d", "d", "abc", "abc", true, false},
		{"d", "e", "abc", "abc", true, true},
		{"d", "e", "abc", "abd", false, true},
		{"", "", "abc", "abd", false, true},
		{"", "", "abc", "abc", true, true},
		{"d", "e", "abc", "abcd", false, false}, // told by their lengths
	} {
		a, x := in(tt.a, tt.old)
		b, y := in(tt.b, tt.now)
		d := diffOf(t, a, b, Options{})
		if d.Same() != tt.same || (x.read+y.read > 0) != tt.read || (d.ByDigest > 0) != (tt.a == tt.b && tt.a != "") {
			t.Errorf("%+v: %q, %d reads, %d bytes by digest", tt, differences(d), x.read+y.read, d.ByDigest)
		}
	}
}

// TestDiffFilesOfOtherLengths: a file as long as none of the other side is not
// read.
func TestDiffFilesOfOtherLengths(t *testing.T) {
	in := func(path, data string) (format.View, *placed) {
		h := &format.Incremental{Range: format.KeyGroupRange{Count: 128}, Meta: sptest.Inline("meta", "m"),
			Shared: []format.NamedStream{{Name: format.NewText("1.sst"), Data: &format.File{Path: format.NewText(path), Length: int64(len(data))}}}}
		in := sptest.View(sptest.IncrementalOperator("op", h))
		src := &placed{files: map[string]string{path: path}, bytes: map[string]string{path: data}}
		in.Source = src
		return in, src
	}
	for _, tt := range []struct {
		old, now, want string
		read           bool
	}{
		{"abc", "abcd", "keyed: op/ files: 1 added, 1 removed, 1 same", false},
		{"abc", "abd", "keyed: op/ files: 1 added, 1 removed, 1 same", true},
		{"abc", "abc", "", true},
	} {
		a, x := in("/a", tt.old)
		b, y := in("/b", tt.now)
		if got := strings.Join(differences(diffOf(t, a, b, Options{})), "; "); got != tt.want || (x.read+y.read > 0) != tt.read {
			t.Errorf("%q → %q: %q, %d reads", tt.old, tt.now, got, x.read+y.read)
		}
	}
}
