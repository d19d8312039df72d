package metadata_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/sptest"
)

func TestVersionNames(t *testing.T) {
	for in, want := range map[string]metadata.Version{"2": 2, "v2": 2, "3": 3, "v4": 4, "5": 5, "v6": 6} {
		if v, err := metadata.ParseVersion(in); err != nil || v != want {
			t.Errorf("%q: %v, %v", in, v, err)
		}
	}
	for _, bad := range []string{"", "v", "1", "7", "v7", "4x", "vv4", " 4", "+4", "04", "-4", "4.0"} {
		if v, err := metadata.ParseVersion(bad); err == nil {
			t.Errorf("%q: %v", bad, v)
		}
	}
	for v, want := range map[metadata.Version]string{2: "v2 1.3–1.10", 3: "v3 1.11–1.15", 4: "v4 1.16–1.20", 5: "v5 2.0", 6: "v6 2.1–2.3", 7: "v7 "} {
		if got := v.String() + " " + v.Releases(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// fresh is a savepoint that did not come from Flink.
func fresh() *format.Savepoint {
	return &format.Savepoint{ID: 9, Kind: format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatCanonical},
		Operators: []*format.Operator{{Name: format.NewText("n"), UID: format.NewText("u"), ID: format.OperatorIDOf("u"), Parallelism: 1, MaxParallelism: 128,
			Subtasks: []*format.Subtask{{
				Managed:      &format.OperatorHandle{Codec: format.CodecFlink, States: []format.NamedState{{Name: format.NewText("s"), Offsets: format.OffsetSlice{0, 1, 2}}}, Data: vF},
				ManagedKeyed: &format.KeyGroups{Codec: format.CodecFlink, Range: vRange, Offsets: vOffsets, Data: vF, HandleID: format.NewText("id")},
			}}}}}
}

// TestFresh: a model of one's own is written as the latest version and reads
// back as itself.
func TestFresh(t *testing.T) {
	file, err := encode(fresh())
	if err != nil {
		t.Fatal(err)
	}
	got := roundTrip(t, file)
	if d := cmp.Diff(fresh(), got, sameModel); d != "" {
		t.Error(d)
	}
	if v, ok := metadata.VersionOf(got); !ok || v != metadata.Latest {
		t.Errorf("version %v", v)
	}
	if _, ok := metadata.VersionOf(fresh()); ok {
		t.Error("a version of what never was Flink's")
	}
}

func TestWithVersion(t *testing.T) {
	v3 := roundTrip(t, []byte(vector(t, "file.v3")))
	for v := metadata.V4; v <= metadata.V6; v++ {
		up, err := metadata.WithVersion(v3, v)
		if err != nil {
			t.Fatal(err)
		}
		file, err := encode(up)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(v3, roundTrip(t, file), sameModel); d != "" {
			t.Errorf("%s: %s", v, d)
		}
		if !strings.HasSuffix(string(file), nullTail) {
			t.Errorf("%s: properties were made up", v)
		}
	}
	// Between versions with properties, these stay.
	v6 := vector(t, "file.v6")
	v4 := roundTrip(t, []byte("\x49\x60\x67\x2d\x00\x00\x00\x04"+vector(t, "file.v3")[8:]+v6[len(v6)-604:]))
	up, err := metadata.WithVersion(v4, metadata.V5)
	if err != nil {
		t.Fatal(err)
	}
	file, err := encode(up)
	if err != nil || !strings.HasSuffix(string(file), v6[len(v6)-604:]) || file[7] != 5 {
		t.Errorf("%v: the properties changed", err)
	}
	if same, err := metadata.WithVersion(v4, metadata.V4); err != nil || same != v4 {
		t.Errorf("the same version is another savepoint, %v", err)
	}
	for _, v := range []metadata.Version{0, 1, 2, 3, 7} {
		if _, err := metadata.WithVersion(v4, v); !errors.Is(err, format.ErrUnsupported) {
			t.Errorf("to %s: %v", v, err)
		}
	}
	// Layouts that only 1.11 and 1.14 wrote stay where they are.
	for shape, s := range genShapes {
		g, _ := generate(shape, 1)
		odd := s.noSubtask || s.shortChangelogs
		if s.version != 3 || g.wantChannels || g.wantShortLog {
			continue
		}
		if _, err := metadata.WithVersion(roundTrip(t, g.B), metadata.V4); errors.Is(err, format.ErrUnsupported) != odd {
			t.Errorf("%s: %v", s.name, err)
		}
	}
	// A savepoint that did not come from Flink can become any version.
	for v := metadata.V2; v <= metadata.V6; v++ {
		sp, err := metadata.WithVersion(fresh(), v)
		if err != nil {
			t.Fatal(err)
		}
		file, err := encode(sp)
		if err != nil {
			t.Fatal(err)
		}
		if got := roundTrip(t, file); file[7] != byte(v) || got.Operators[0].ID != sp.Operators[0].ID || (got.Kind == sp.Kind) != (v >= metadata.V4) {
			t.Errorf("%s: %v", v, got.Kind)
		}
	}
}

// TestEncodeRefuses: what a version has no place for is refused, and nothing
// is dropped.
func TestEncodeRefuses(t *testing.T) {
	at := func(v metadata.Version, change func(*format.Savepoint)) *format.Savepoint {
		sp, err := metadata.WithVersion(fresh(), v)
		if err != nil {
			t.Fatal(err)
		}
		change(sp)
		return sp
	}
	sub := func(f func(*format.Subtask)) func(*format.Savepoint) {
		return func(sp *format.Savepoint) { f(sp.Operators[0].Subtasks[0]) }
	}
	one := []format.Channel{{}}
	short := "\x09a" // the Wire of in-memory changes in the layout of 1.14
	for _, x := range []struct {
		name string
		sp   *format.Savepoint
		kind error // nil: an internal error
		msg  string
	}{
		{"coordinator in v2", at(2, func(sp *format.Savepoint) { sp.Operators[0].Coordinator = vB }), format.ErrUnsupported, `operator "u": metadata v2 cannot store coordinator state`},
		{"finished operator in v2", at(2, func(sp *format.Savepoint) { sp.Operators[0].Finished, sp.Operators[0].Subtasks = true, nil }), format.ErrUnsupported, "cannot store finished operators"},
		{"finished subtask in v2", at(2, func(sp *format.Savepoint) { sp.Operators[0].Subtasks[0] = &format.Subtask{Index: 4, Finished: true} }), format.ErrUnsupported, `operator "u"/subtask 4: metadata v2 cannot store finished subtasks`},
		{"channels in v2", at(2, sub(func(s *format.Subtask) { s.Input = []*format.ChannelHandle{{Channels: one}} })), format.ErrUnsupported, "cannot store channel state"},
		{"relative file in v2", at(2, sub(func(s *format.Subtask) { s.Managed.Data = vR })), format.ErrUnsupported, "cannot store relative files"},
		{"legacy state in v3", at(3, sub(func(s *format.Subtask) { s.Legacy = []format.Stream{vF} })), format.ErrUnsupported, "cannot store legacy operator state"},
		{"merged channels in v5", at(5, sub(func(s *format.Subtask) { s.Output = []*format.ChannelHandle{{Merged: true, Channels: one}} })), format.ErrUnsupported, "metadata v5 cannot store merged channel handles"},
		{"two channels in a plain handle", at(6, sub(func(s *format.Subtask) { s.Output = []*format.ChannelHandle{{Channels: append(one, one...)}} })), format.ErrCorrupt, "plain channel handle, found 2"},
		{"short changes in v6", at(6, sub(func(s *format.Subtask) { s.ManagedKeyed = &format.ChangelogMemory{Wire: format.Wire(short)} })), format.ErrUnsupported, "layout of Flink 1.14"},
		{"another handle's tag", at(6, sub(func(s *format.Subtask) { s.ManagedKeyed.(*format.KeyGroups).Wire = "\x0b" })), format.ErrCorrupt, "tag 11"},
		{"offsets that are not one per key group", at(6, sub(func(s *format.Subtask) { s.ManagedKeyed.(*format.KeyGroups).Range.Count = 3 })), format.ErrCorrupt, "2 offsets for 3 key groups"},
		{"rope", at(6, sub(func(s *format.Subtask) { s.Managed.Data = &format.Concat{} })), nil, "kind concat cannot be stored in _metadata"},
		{"chunks", at(6, sub(func(s *format.Subtask) { s.Managed.Data = &format.Chunks{} })), nil, "kind chunks"},
		{"finished subtask with state", at(6, sub(func(s *format.Subtask) { s.Finished = true })), format.ErrCorrupt, "finished subtask with state"},
		{"finished operator with subtasks", at(6, func(sp *format.Savepoint) { sp.Operators[0].Finished = true }), format.ErrCorrupt, "finished operator with state"},
		{"name too long", at(6, func(sp *format.Savepoint) { sp.Operators[0].Name = format.NewText(strings.Repeat("x", 65536)) }), nil, "65,535"},
		{"name that is no text", at(6, func(sp *format.Savepoint) { sp.Operators[0].Name = format.NewText("\xff") }), nil, "not valid UTF-8"},
	} {
		_, err := encode(x.sp)
		if err == nil || !strings.Contains(err.Error(), x.msg) || x.kind != nil && !errors.Is(err, x.kind) {
			t.Errorf("%s: %v", x.name, err)
		}
		if _, serr := metadata.Size(x.sp); serr == nil || err != nil && serr.Error() != err.Error() {
			t.Errorf("%s: size: %v", x.name, serr)
		}
	}
}

// stingy takes n bytes and then fails; a negative n takes one byte a call
// less than it is given, without saying so.
type stingy struct {
	left int
	err  error
}

func (w *stingy) Write(p []byte) (int, error) {
	if w.err == nil {
		return len(p) - 1, nil
	}
	if len(p) > w.left {
		n := w.left
		w.left = 0
		return n, w.err
	}
	w.left -= len(p)
	return len(p), nil
}

// TestEncodeFailures: disk full at any place, a writer that breaks its
// promise, and a cancelled context end the writing with that error.
func TestEncodeFailures(t *testing.T) {
	var b bytes.Buffer
	if err := sptest.WriteUnion(&b, sptest.UnionOptions{Subtasks: 3, Elements: 20_000, ElementSize: 20}); err != nil {
		t.Fatal(err)
	}
	sp, err := metadata.Decode(format.NewBytes(b.Bytes()), metadata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	full := errors.New("disk full")
	for n := 0; n < b.Len(); n += 50_000 {
		if err := metadata.Encode(context.Background(), &stingy{n, full}, sp, nil); !errors.Is(err, full) {
			t.Fatalf("full after %d: %v", n, err)
		}
	}
	if err := metadata.Encode(context.Background(), &stingy{b.Len(), full}, sp, nil); err != nil {
		t.Errorf("with just enough room: %v", err)
	}
	if err := metadata.Encode(context.Background(), &stingy{}, sp, nil); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("short writes: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	w := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil })
	if err := metadata.Encode(ctx, w, sp, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestMemory: decoding and writing a large file takes memory for its nodes,
// not for its bytes and offsets.
func TestMemory(t *testing.T) {
	var b bytes.Buffer
	if err := sptest.WriteUnion(&b, sptest.UnionOptions{Subtasks: 4, Elements: 100_000, ElementSize: 50}); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	sp, err := metadata.Decode(format.NewBytes(b.Bytes()), metadata.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := metadata.Size(sp); err != nil || n != int64(b.Len()) {
		t.Fatalf("size %d of %d, %v", n, b.Len(), err)
	}
	if err := metadata.Encode(context.Background(), io.Discard, sp, nil); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
		t.Errorf("%d bytes allocated for a file of %d", n, b.Len())
	}
	var small bytes.Buffer
	if err := sptest.SmallStates(&small, sptest.SmallOptions{Operators: 10, Subtasks: 32, ElementSize: 32}); err != nil {
		t.Fatal(err)
	}
	allocs := testing.AllocsPerRun(5, func() {
		if _, err := metadata.Decode(format.NewBytes(small.Bytes()), metadata.Options{}); err != nil {
			t.Fatal(err)
		}
	})
	if per := allocs / 320; per > 4 {
		t.Errorf("%.1f allocations per subtask", per)
	}
}

// repeating reads every stream as bytes that follow from their position.
type repeating struct{ fail error }

func (s repeating) ReadAt(_ context.Context, _ format.Stream, p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = byte((off + int64(i)) % 251)
	}
	return len(p), s.fail
}

// TestEncodeFrom: chunks and ropes that stand for inline state are written
// with the bytes that the source reads.
func TestEncodeFrom(t *testing.T) {
	as := &format.Inline{Name: format.NewText("n")}
	for _, n := range []int64{0, 1, 1 << 10, 64<<10 - 1, 64 << 10, 128<<10 + 1, 1<<20 + 7} {
		want := make([]byte, n)
		_, _ = repeating{}.ReadAt(context.Background(), nil, want, 0)
		for _, s := range []format.Stream{&format.Chunks{As: as, Length: n}, &format.Concat{As: as, Parts: []format.Part{{N: n}}}} {
			sp := fresh()
			sp.Operators[0].Coordinator = s
			var b bytes.Buffer
			if err := metadata.Encode(context.Background(), &b, sp, repeating{}); err != nil {
				t.Fatal(err)
			}
			if size, err := metadata.Size(sp); err != nil || size != int64(b.Len()) {
				t.Errorf("%T of %d: size %d of %d, %v", s, n, size, b.Len(), err)
			}
			got, ok := roundTrip(t, b.Bytes()).Operators[0].Coordinator.(*format.Inline)
			if !ok || got.Name.String() != "n" || !bytes.Equal(content(got.Data), want) {
				t.Errorf("%T of %d: other bytes", s, n)
			}
			broken := errors.New("broken")
			if err := metadata.Encode(context.Background(), io.Discard, sp, repeating{broken}); n > 0 && !errors.Is(err, broken) {
				t.Errorf("%T of %d: %v", s, n, err)
			}
			if _, err := encode(sp); err == nil || !strings.Contains(err.Error(), "cannot be stored in _metadata") {
				t.Errorf("%T without a source: %v", s, err)
			}
		}
	}
	sp := fresh()
	sp.Operators[0].Coordinator = &format.Chunks{As: as, Length: 1 << 31}
	if err := metadata.Encode(context.Background(), io.Discard, sp, repeating{}); !errors.Is(err, format.ErrUnsupported) {
		t.Errorf("2 GiB inline: %v", err)
	}
}

// TestManyStates: repeated names are found among few states and among many.
func TestManyStates(t *testing.T) {
	for _, n := range []int{2, 63, 64, 65, 66, 200} {
		for _, twice := range []int{-1, 0, n / 3, n - 2} {
			var h sptest.Buf
			h.U8(4).I32(n)
			for i := range n {
				if i == n-1 && twice >= 0 {
					i = twice
				}
				h.UTF(strings.Repeat("s", i+1)).U8(0).I32(0)
			}
			h.U8(0)
			// Two handles: what one holds is nothing to the other.
			file := smallest(4, fill{managed: string(h.B), raw: string(h.B)})
			if twice < 0 {
				roundTrip(t, file)
			} else if e := refused(t, file, format.ErrCorrupt); !strings.Contains(e.Msg, "duplicate state name") {
				t.Errorf("%d states, number %d again: %v", n, twice, e)
			}
		}
	}
}
