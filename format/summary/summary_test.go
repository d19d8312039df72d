package summary_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
)

func text(s string) format.Text { return format.NewText(s) }

func file(path string, relative bool, n int64) *format.File {
	return &format.File{Path: text(path), Relative: relative, Length: n}
}

func named(name string, mode format.Mode, offsets ...int64) format.NamedState {
	return format.NamedState{Name: text(name), Mode: mode, Offsets: format.OffsetSlice(offsets)}
}

func inline(n int) *format.Inline {
	return &format.Inline{Data: format.NewBytes(bytes.Repeat([]byte{7}, n))}
}

func handle(data format.Stream, states ...format.NamedState) *format.OperatorHandle {
	return &format.OperatorHandle{Data: data, States: states}
}

// operator has one subtask for each handle.
func operator(id byte, handles ...*format.OperatorHandle) *format.Operator {
	op := &format.Operator{Parallelism: int32(len(handles)), MaxParallelism: 128}
	op.ID[0] = id
	for i, h := range handles {
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: h})
	}
	return op
}

func savepoint(ops ...*format.Operator) *format.Savepoint { return &format.Savepoint{Operators: ops} }

func TestStateSizes(t *testing.T) {
	tests := []struct {
		name   string
		size   int64 // of the stream
		states []format.NamedState
		want   []int64
	}{
		{"one after another", 100, []format.NamedState{named("a", 0, 10, 20, 30), named("b", 0, 40, 90)}, []int64{30, 60}},
		{"in another order than listed", 100, []format.NamedState{named("b", 0, 40, 90), named("a", 0, 10, 20, 30)}, []int64{60, 30}},
		{"interleaved", 100, []format.NamedState{named("a", 0, 10, 40, 50), named("b", 0, 20, 70)}, []int64{10 + 10 + 20, 20 + 30}},
		{"empty elements", 50, []format.NamedState{named("a", 0, 10, 10, 10), named("b", 0, 10, 10)}, []int64{0, 40}},
		{"empty states", 50, []format.NamedState{named("none", 0), named("a", 0, 10), named("nothing", 0)}, []int64{0, 40, 0}},
		{"last element empty", 50, []format.NamedState{named("a", 0, 10, 50)}, []int64{40}},
		// A compressed stream starts each state anew, with a header of its own
		// before the first element; the header of b counts as the end of a.
		{"a header per state", 130, []format.NamedState{named("a", 0, 10, 30), named("b", 0, 60, 80)}, []int64{50, 70}},
		{"offsets behind the end", 20, []format.NamedState{named("a", 0, 10, 300)}, []int64{10}},
		{"size not known", -1, []format.NamedState{named("a", 0, 10, 20), named("b", 0, 40)}, []int64{30, 0}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := summary.StateSizes(context.Background(), handle(file("f", true, tt.size), tt.states...))
			if err != nil {
				t.Fatal(err)
			}
			for i := range tt.want {
				if got[i] != tt.want[i] {
					t.Fatalf("%v, want %v", got, tt.want)
				}
			}
		})
	}
}

type brokenOffsets struct{ err error }

func (b brokenOffsets) Len() int64                                        { return 3 }
func (b brokenOffsets) Read(context.Context, []int64, int64) (int, error) { return 0, b.err }

func TestOffsetsThatCannotBeRead(t *testing.T) {
	broken := errors.New("broken")
	h := handle(inline(10), format.NamedState{Name: text("a"), Mode: format.ModeUnion, Offsets: brokenOffsets{broken}})
	_, err := summary.Of(context.Background(), savepoint(operator(1, h)))
	if !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
}

// TestWrongFile: how long a file may be, by what its handles say.
func TestWrongFile(t *testing.T) {
	seg := func(start, n int64) *format.Segment { return &format.Segment{Path: text("x"), Start: start, Length: n} }
	promise := func(n int64) *format.File { return file("x", true, n) }
	log := func(n int64) format.KeyedHandle {
		return &format.ChangelogStream{Streams: []format.OffsetStream{{Data: promise(n)}}}
	}
	for _, x := range []struct {
		name string
		op   *format.Operator
		size int64
		want string
	}{
		{"right", operator(1, handle(promise(10))), 10, ""},
		{"short", operator(1, handle(promise(10))), 9, "expected 10 bytes, found 9"},
		{"long", operator(1, handle(promise(10))), 11, "expected 10 bytes, found 11"},
		{"nothing said", operator(1, handle(promise(-1))), 5, ""},
		{"two lengths, the longer", operator(1, handle(promise(10)), handle(promise(20))), 10, "expected 20 bytes, found 10"},
		{"two lengths, the shorter", operator(1, handle(promise(20)), handle(promise(10))), 20, "expected 10 bytes, found 20"},
		{"segments", operator(1, handle(seg(0, 5)), handle(seg(5, 5))), 20, ""},
		{"segments that reach too far", operator(1, handle(seg(5, 5)), handle(seg(0, 5))), 9, "expected 10 bytes for its segments, found 9"},
		{"no range", operator(1, handle(seg(-1, 5)), handle(seg(0, 5))), 9, "a segment in it has an invalid range"},
		{"a range that overflows", operator(1, handle(seg(0, 5)), handle(seg(1<<62, 1<<62))), 9, "a segment in it has an invalid range"},
		{"changes", keyedOperator(log(10)), 11, ""},
		{"changes, counted whole", keyedOperator(log(10)), 10, ""},
		{"changes, too long", keyedOperator(log(10)), 12, "expected 10 bytes, found 12"},
	} {
		s := of(t, savepoint(x.op))
		if len(s.Files) != 1 {
			t.Fatalf("%s: %+v", x.name, s.Files)
		}
		if got := s.Files[0].Wrong(x.size); got != x.want {
			t.Errorf("%s: %q, want %q", x.name, got, x.want)
		}
	}
}

func keyedOperator(h format.KeyedHandle) *format.Operator {
	op := operator(1, nil)
	op.Subtasks[0].ManagedKeyed = &format.Changelog{Range: format.KeyGroupRange{Count: 128}, Changes: []format.KeyedHandle{h}}
	return op
}

// Each byte of state is counted in one place, whatever names it.
func TestBytesCountOnce(t *testing.T) {
	shared := file("s3://b/job/shared/x", false, 1000)
	again := file("s3a://b/job/shared/x", false, 1000)
	seg := func(start, n int64) *format.Segment {
		return &format.Segment{Path: text("file:/j/taskowned/m"), Start: start, Length: n}
	}
	keyed := func(data ...format.Stream) *format.Incremental {
		h := &format.Incremental{Range: format.KeyGroupRange{Count: 64}, Meta: inline(5)}
		for _, d := range data {
			h.Shared = append(h.Shared, format.NamedStream{Name: text("1.sst"), Data: d})
		}
		return h
	}
	op := operator(1, handle(file("own", true, 70), named("l", format.ModeList, 10, 20)), handle(file("own", true, 70), named("l", format.ModeList, 10, 20)))
	op.Subtasks[0].ManagedKeyed = keyed(shared, seg(0, 10), seg(10, 30))
	op.Subtasks[1].ManagedKeyed = keyed(again, seg(10, 30), file("file:/elsewhere/y", false, 9))
	other := operator(2, handle(inline(44), named("u", format.ModeUnion, 4)))
	other.Subtasks[0].ManagedKeyed = keyed(shared)
	s := of(t, savepoint(op, other))
	if want := (summary.Bytes{Inline: 5 + 5 + 5 + 44, Own: 70 + 9, Shared: 1000 + 40, Offsets: 8 * 5}); s.Bytes != want {
		t.Errorf("all: %+v, want %+v", s.Bytes, want)
	}
	if want := (summary.Bytes{Inline: 10, Own: 70 + 9, Shared: 1000 + 40, Offsets: 8 * 4}); s.Operators[0].Bytes != want {
		t.Errorf("first operator: %+v, want %+v", s.Operators[0].Bytes, want)
	}
	if want := (summary.Bytes{Inline: 49, Offsets: 8}); s.Operators[1].Bytes != want { // its file is the first operator's too

		t.Errorf("second operator: %+v, want %+v", s.Operators[1].Bytes, want)
	}
	if s.UsedBySeveral != 1000 {
		t.Errorf("%d bytes used by several operators", s.UsedBySeveral)
	}
	want := []summary.File{
		{Path: "s3://b/job/shared/x", Bytes: 1000, Handles: 3, Shared: true, Shortest: 1000, Longest: 1000},
		{Path: "own", Relative: true, Bytes: 70, Handles: 2, Shortest: 70, Longest: 70},
		{Path: "file:/j/taskowned/m", Merged: true, Bytes: 40, Handles: 3, Shared: true, Shortest: -1, Longest: -1, Reach: 40},
		{Path: "file:/elsewhere/y", Bytes: 9, Handles: 1, Shortest: 9, Longest: 9},
	}
	if len(s.Files) != len(want) {
		t.Fatalf("files %+v", s.Files)
	}
	for i := range want {
		if s.Files[i] != want[i] {
			t.Errorf("file %d: %+v, want %+v", i, s.Files[i], want[i])
		}
	}
	// The list is in one file: held twice, there once.
	for _, st := range s.Operators[0].States {
		if st.Kind == summary.List && (st.Elements != 4 || st.Bytes != 120 || st.Stored.Own != 60) {
			t.Errorf("%+v", st)
		}
	}
	if f := s.Operators[0].Framing; f != (summary.Bytes{Own: 10}) { // in front of the first element
		t.Errorf("framing %+v", f)
	}
}

// A stream whose handle names no state holds bytes all the same.
func TestHandleWithoutStates(t *testing.T) {
	s := of(t, savepoint(operator(1, handle(inline(33)), handle(&format.EmptySegment{}))))
	if s.Bytes.Inline != 33 || s.Operators[0].Bytes.Inline != 33 {
		t.Errorf("%+v", s.Bytes)
	}
	if op := s.Operators[0]; len(op.States) != 0 || op.Framing.Inline != 33 {
		t.Errorf("%d rows, framing %+v", len(op.States), op.Framing)
	}
}

// The changes of all operators of a task are in one file. Its handles say how
// much of it is whose.
func TestChangelogSharesAFile(t *testing.T) {
	log := func(size int64) *format.Changelog {
		return &format.Changelog{Range: format.KeyGroupRange{Count: 128}, Changes: []format.KeyedHandle{
			&format.ChangelogStream{StateSize: size, Streams: []format.OffsetStream{{Data: file("file:/c/dstl/j/dstl/x", false, 500)}}},
		}}
	}
	a, b := operator(1, nil), operator(2, nil)
	a.Subtasks[0].ManagedKeyed, b.Subtasks[0].ManagedKeyed = log(400), log(1<<62)
	s := of(t, savepoint(a, b))
	if s.Bytes.Shared != 500 || s.Bytes.State() != 500 {
		t.Errorf("%+v", s.Bytes)
	}
	for _, op := range s.Operators {
		want := map[byte]int64{1: 400, 2: 500}[op.ID[0]] // a claim ends with the file
		if got := op.States[0].Bytes; got != want {
			t.Errorf("operator %d: %d bytes, want %d", op.ID[0], got, want)
		}
		// Together they have no more than the file.
		if want, got := map[byte]int64{1: 400, 2: 100}[op.ID[0]], op.Bytes.State(); got != want {
			t.Errorf("operator %d: %d bytes of the file, want %d", op.ID[0], got, want)
		}
	}
	if s.UsedBySeveral != 0 {
		t.Errorf("%d bytes used by several: each has its own", s.UsedBySeveral)
	}
	// What nobody claims is framing of the first.
	b.Subtasks[0].ManagedKeyed = log(30)
	s = of(t, savepoint(a, b))
	for _, op := range s.Operators {
		want := map[byte]int64{1: 70, 2: 0}[op.ID[0]]
		if got := op.Framing.Shared; got != want {
			t.Errorf("operator %d: %d bytes of framing, want %d", op.ID[0], got, want)
		}
	}
	if !s.Kind.Changelog {
		t.Error("not called a changelog")
	}
}

// What precedes the first key group is framing: of a file the first of all handles
// that name it; 0 is an empty key group; of a Go program's state there is none.
func TestFramingOfKeyGroups(t *testing.T) {
	groups := func(data format.Stream, offsets ...int64) *format.KeyGroups {
		return &format.KeyGroups{Codec: format.CodecFlink, Range: format.KeyGroupRange{Count: int32(len(offsets))}, Offsets: format.OffsetSlice(offsets), Data: data}
	}
	native := groups(inline(50), 20, 30)
	native.Codec = format.CodecNative
	for _, x := range []struct {
		name    string
		handles []format.KeyedHandle
		want    int64
	}{
		{"inline", []format.KeyedHandle{groups(inline(50), 20, 30)}, 20},
		{"the first is empty", []format.KeyedHandle{groups(inline(50), 0, 30)}, 30},
		{"all are empty", []format.KeyedHandle{groups(inline(50), 0, 0)}, 50},
		{"one of a Go program", []format.KeyedHandle{native}, 0},
		{"outside", []format.KeyedHandle{groups(inline(50), 70)}, 50},
		{"a file that two handles share", []format.KeyedHandle{groups(file("f", true, 50), 30), groups(file("f", true, 50), 20)}, 20},
		{"two copies", []format.KeyedHandle{groups(inline(50), 30), groups(inline(50), 20)}, 50},
		{"RocksDB", []format.KeyedHandle{&format.Incremental{Meta: inline(7), Private: []format.NamedStream{{Data: inline(9)}}}}, 7},
		{"in a changelog", []format.KeyedHandle{&format.Changelog{Materialized: []format.KeyedHandle{nil, groups(file("f", true, 50), 20)}}}, 20},
	} {
		op := operator(1, make([]*format.OperatorHandle, len(x.handles))...)
		for i, h := range x.handles {
			op.Subtasks[i].ManagedKeyed = h
		}
		s := of(t, savepoint(op))
		if got := s.Operators[0].States[0].Framing.State(); got != x.want {
			t.Errorf("%s: %d bytes, want %d", x.name, got, x.want)
		}
	}
}

// A file that operators share was packed into an .spt once for each handle that
// names it, and is one file all the same.
func TestPackedFilesCountOnce(t *testing.T) {
	packed := func(as format.Stream, n int64) *format.Chunks { return &format.Chunks{As: as, Length: n} }
	a := operator(1, handle(packed(file("file:/j/shared/x", false, 70), 70), named("l", format.ModeList, 10)))
	b := operator(2, handle(packed(file("file:///j/shared/x", false, 70), 70), named("l", format.ModeList, 10)), handle(packed(&format.Inline{}, 5)), handle(packed(&format.Inline{}, 5)))
	s := of(t, savepoint(a, b))
	if s.Bytes.Packed != 80 || s.Operators[0].Bytes.Packed != 70 {
		t.Errorf("%+v, the largest operator %+v", s.Bytes, s.Operators[0].Bytes)
	}
}

// Key groups count once, whatever handles cover them.
func TestKeyGroupsCountOnce(t *testing.T) {
	op := operator(1, nil, nil, nil, nil)
	for i, r := range []format.KeyGroupRange{{First: 0, Count: 64}, {First: 0, Count: 65}, {First: 100, Count: 128}, {First: 32700, Count: 1 << 30}} {
		op.Subtasks[i].ManagedKeyed = &format.Incremental{Range: r, Meta: inline(5)}
	}
	s := of(t, savepoint(op))
	if got := s.Operators[0].States[0].KeyGroups; got != 65+128+68 {
		t.Errorf("%d key groups", got)
	}
}

func TestMayBeMultipliedOnlyWhereAllAreEqual(t *testing.T) {
	u := func(n int, offsets ...int64) *format.OperatorHandle {
		return handle(inline(n), named("u", format.ModeUnion, offsets...))
	}
	tests := []struct {
		name string
		op   *format.Operator
		want bool
	}{
		{"equal", operator(1, u(40, 10, 20), u(40, 10, 20)), true},
		{"equal, further behind", operator(1, u(40, 10, 20), u(45, 15, 25)), true},
		{"other bytes", operator(1, u(40, 10, 20), handle(&format.Inline{Data: format.NewBytes(append(bytes.Repeat([]byte{7}, 39), 1))}, named("u", format.ModeUnion, 10, 20))), false},
		{"other bytes before the state", operator(1, u(40, 10, 20), handle(&format.Inline{Data: format.NewBytes(append([]byte{1}, bytes.Repeat([]byte{7}, 39)...))}, named("u", format.ModeUnion, 10, 20))), true},
		{"bytes that are not inline", operator(1, u(40, 10, 20), handle(file("f", true, 40), named("u", format.ModeUnion, 10, 20))), true},
		{"one subtask", operator(1, u(40, 10, 20)), false},
		{"no elements", operator(1, u(40), u(40)), false},
		{"other count", operator(1, u(40, 10, 20), u(40, 10, 20, 30)), false},
		{"other lengths", operator(1, u(40, 10, 20), u(40, 10, 21)), false},
		{"other last length", operator(1, u(40, 10, 20), u(41, 10, 20)), false},
		{"third differs", operator(1, u(40, 10, 20), u(40, 10, 20), u(40, 10, 12)), false},
		{"one subtask holds nothing", operator(1, u(40, 10, 20), u(40, 10, 20), nil), false},
		{"a list", operator(1, handle(inline(40), named("l", format.ModeList, 10, 20)), handle(inline(40), named("l", format.ModeList, 10, 20))), false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got bool
			for _, st := range of(t, savepoint(tt.op)).Operators[0].States {
				got = got || st.MayBeMultiplied
			}
			if got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}

// Longer arrays than are compared at a time.
func TestLongUnions(t *testing.T) {
	long := func(n, odd int) format.OffsetSlice {
		o := make(format.OffsetSlice, n)
		for i := range o {
			o[i] = int64(i * 4)
			if i == odd {
				o[i]--
			}
		}
		return o
	}
	for _, odd := range []int{-1, 1, 4095, 4096, 8191, 9999} {
		a := handle(inline(40000), format.NamedState{Name: text("u"), Mode: format.ModeUnion, Offsets: long(10000, -1)})
		b := handle(inline(40000), format.NamedState{Name: text("u"), Mode: format.ModeUnion, Offsets: long(10000, odd)})
		if got := of(t, savepoint(operator(1, a, b))).Operators[0].States[0].MayBeMultiplied; got != (odd < 0) {
			t.Errorf("element %d differs: %v", odd, got)
		}
	}
}

func TestSubtasksThatAreFinishedOrMissing(t *testing.T) {
	op := operator(1, handle(inline(9), named("l", format.ModeList, 0)), nil)
	op.Parallelism = 5
	op.Subtasks = append(op.Subtasks, &format.Subtask{Index: 2, Finished: true})
	all := &format.Operator{Parallelism: 3, MaxParallelism: 8, Finished: true}
	s := of(t, savepoint(op, all))
	if o := s.Operators[0]; o.Present != 2 || o.Finished != 1 || o.Missing != 2 {
		t.Errorf("%d present, %d finished, %d missing", o.Present, o.Finished, o.Missing)
	}
	if o := s.Operators[1]; o.Present != 0 || o.Finished != 3 || o.Missing != 0 {
		t.Errorf("%d present, %d finished, %d missing", o.Present, o.Finished, o.Missing)
	}
}

func TestLargestFirst(t *testing.T) {
	s := of(t, savepoint(
		operator(1, handle(inline(100), named("small", format.ModeList, 0), named("large", format.ModeList, 10))),
		operator(2, handle(file("f", true, 900), named("x", format.ModeList, 0))),
	))
	if s.Operators[0].ID[0] != 2 || s.Operators[1].States[0].Name != "large" {
		t.Errorf("operators %v first, state %q first", s.Operators[0].ID, s.Operators[1].States[0].Name)
	}
}

func TestKindOfWhatFilesDoNotSay(t *testing.T) {
	full, canonical, incremental := &format.KeyGroups{}, &format.KeyGroups{Savepoint: true}, &format.Incremental{}
	tests := []struct {
		name  string
		said  format.SnapshotKind
		keyed []format.KeyedHandle
		want  summary.Kind
	}{
		{"nothing", format.SnapshotKind{}, nil, summary.Kind{Type: "snapshot"}},
		{"full handles", format.SnapshotKind{}, []format.KeyedHandle{full}, summary.Kind{Type: "snapshot"}},
		{"savepoint handles", format.SnapshotKind{}, []format.KeyedHandle{canonical, canonical}, summary.Kind{Type: "savepoint"}},
		{"both", format.SnapshotKind{}, []format.KeyedHandle{canonical, full}, summary.Kind{Type: "snapshot"}},
		{"incremental handles", format.SnapshotKind{}, []format.KeyedHandle{incremental}, summary.Kind{Type: "snapshot", Format: "incremental"}},
		{"inside a changelog", format.SnapshotKind{Type: format.TypeCheckpoint}, []format.KeyedHandle{&format.Changelog{Materialized: []format.KeyedHandle{incremental, nil}}},
			summary.Kind{Type: "checkpoint", Format: "incremental", Changelog: true}},
		{"full by its word", format.SnapshotKind{Type: format.TypeFullCheckpoint}, nil, summary.Kind{Type: "checkpoint", Format: "full"}},
		{"stopped", format.SnapshotKind{Type: format.TypeTerminateSavepoint, Format: format.FormatNative}, []format.KeyedHandle{incremental},
			summary.Kind{Type: "savepoint", Format: "native", Stopped: true}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			op := &format.Operator{Parallelism: 2, MaxParallelism: 2}
			for i, h := range tt.keyed {
				op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), ManagedKeyed: h})
			}
			if got := summary.KindOf(&format.Savepoint{Kind: tt.said, Operators: []*format.Operator{op}}); got != tt.want {
				t.Errorf("%+v, want %+v", got, tt.want)
			}
		})
	}
}
