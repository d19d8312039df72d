package spt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/testenv"
)

func newWriter(t testing.TB, w io.Writer) *spt.Writer {
	t.Helper()
	sw, err := spt.NewWriter(w, spt.Options{Compression: spt.None})
	if err != nil {
		t.Fatal(err)
	}
	return sw
}

// cuts writes a stream by f and tells the lengths of its chunks.
func cuts(t *testing.T, f func(s *spt.StreamWriter)) []int {
	t.Helper()
	var b bytes.Buffer
	w := newWriter(t, &b)
	s, err := w.Stream(nil)
	if err != nil {
		t.Fatal(err)
	}
	f(s)
	c, err := s.Close()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Seal(context.Background(), &format.Savepoint{Operators: []*format.Operator{{Coordinator: c}}}); err != nil {
		t.Fatal(err)
	}
	return spt.ChunkLengths(mustOpen(t, b.Bytes()))
}

// The limits of cutting, by name: nothing is cut before 256 KiB unless it
// must be, and nothing is larger than 4 MiB.
func TestWhereChunksAreCut(t *testing.T) {
	const soft, hard = 256 << 10, 4 << 20
	write := func(n int) func(*spt.StreamWriter) {
		return func(s *spt.StreamWriter) { s.Write(noise(uint64(n), n)) } //nolint:errcheck // Close gives it
	}
	steps := func(do ...any) func(*spt.StreamWriter) {
		return func(s *spt.StreamWriter) {
			for i, d := range do {
				switch d := d.(type) {
				case int:
					s.Write(noise(uint64(i), d)) //nolint:errcheck // Close gives it
				case string:
					if d == "must" {
						s.MustCut()
					} else {
						s.MayCut()
					}
				}
			}
		}
	}
	for _, c := range []struct {
		name string
		do   func(*spt.StreamWriter)
		want []int
	}{
		{"nothing", write(0), []int{}},
		{"one byte", write(1), []int{1}},
		{"soft-1", write(soft - 1), []int{soft - 1}},
		{"soft", write(soft), []int{soft}},
		{"soft+1", write(soft + 1), []int{soft, 1}},
		{"no boundaries", write(3*soft + 5), []int{soft, soft, soft, 5}},
		{"may at soft-1", steps("may", soft-1, "may", 10), []int{soft + 9}},
		{"may at soft", steps("may", soft, "may", 10), []int{soft, 10}},
		{"may at soft+1", steps("may", soft+1, "may", 10), []int{soft + 1, 10}},
		{"hard-1", steps("may", hard-1), []int{hard - 1}},
		{"hard", steps("may", hard), []int{hard}},
		{"hard+1", steps("may", hard+1), []int{hard, 1}},
		{"must anywhere", steps(3, "must", 2, "must", 1), []int{3, 2, 1}},
		{"must twice", steps(3, "must", "must", 2), []int{3, 2}},
		{"must first and last", steps("must", 3, "must"), []int{3}},
		{"header, then states", steps(soft+3, "must", 10), []int{soft, 3, 10}},
		{"elements", steps("must", 100<<10, "may", 100<<10, "may", 100<<10, "may", 100<<10, "may", 1), []int{300 << 10, 100<<10 + 1}},
	} {
		if got := cuts(t, c.do); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: chunks of %v, want %v", c.name, got, c.want)
		}
	}
	// It does not matter in what pieces the bytes come.
	rng := rand.New(rand.NewPCG(3, 4))
	for range 5 {
		sizes, do := []int{}, []any{}
		for range 40 {
			n := rng.IntN(200 << 10)
			do = append(do, n)
			sizes = append(sizes, n)
			if rng.IntN(3) == 0 {
				do = append(do, "may")
			}
		}
		whole := cuts(t, steps(do...))
		pieces := cuts(t, func(s *spt.StreamWriter) {
			for i, d := range do {
				n, ok := d.(int)
				if !ok {
					s.MayCut()
					continue
				}
				for p := noise(uint64(i), n); len(p) > 0; {
					k := min(len(p), 1+rng.IntN(100<<10))
					s.Write(p[:k]) //nolint:errcheck // Close gives it
					p = p[k:]
				}
			}
		})
		if !reflect.DeepEqual(whole, pieces) {
			t.Errorf("%v: chunks of %v, in pieces of %v", sizes, whole, pieces)
		}
	}
}

// Write cuts at states, elements and key groups; the first named state starts
// a chunk of its own.
func TestWriteCutsAtBoundaries(t *testing.T) {
	data := noise(9, 1_000_000)
	var elements format.OffsetSlice
	for i := int64(50); i < 900_000; i += 1000 {
		elements = append(elements, i)
	}
	sp := &format.Savepoint{Operators: []*format.Operator{{Subtasks: []*format.Subtask{{
		Managed: &format.OperatorHandle{Data: inline("x", data), States: []format.NamedState{
			{Name: format.NewText("late"), Offsets: format.OffsetSlice{900_050, 950_000}},
			{Name: format.NewText("list"), Offsets: elements},
			{Name: format.NewText("none"), Offsets: format.OffsetSlice{}},
		}},
	}}}}}
	f := mustOpen(t, pack(t, sp, source{}, spt.Options{Compression: spt.None}))
	got := spt.ChunkLengths(f)
	// header | elements from 50, each cut at the first multiple of 1000 behind
	// 256 KiB | … | the second state, with its offsets | the array of offsets
	want := []int{50, 263_000, 263_000, 263_000, 111_000, 99_950}
	if len(got) != 7 || !reflect.DeepEqual(got[:6], want) {
		t.Errorf("chunks of %v, want %v and the offsets", got, want)
	}
	sameModel(t, f, sp, source{})
}

// Any element is two reads away once the file is open: its offsets, its chunk.
func TestElementsInTwoReads(t *testing.T) {
	sp, _ := inflated(1, 100_000)
	p := pack(t, sp, source{}, spt.Options{})
	want := sp.Operators[0].Subtasks[0].Managed
	data := content(t, source{}, want.Data)
	all := allOffsets(t, want.States[0].Offsets)
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(5, 6))
	for range 20 {
		m := &memory{p: p}
		f, err := spt.Open(ctx, m, int64(len(p)), format.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if n := m.reads.Load(); n > 2 {
			t.Fatalf("%d reads to open", n)
		}
		m.reads.Store(0)
		i := rng.Int64N(int64(len(all) - 1))
		if i%32768 == 32767 {
			i-- // its end stands in the next chunk of offsets
		}
		h := f.Savepoint().Operators[0].Subtasks[0].Managed
		var at [2]int64
		if _, err := h.States[0].Offsets.Read(ctx, at[:], i); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, at[1]-at[0])
		if _, err := f.ReadAt(ctx, h.Data, got, at[0]); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got, data[all[i]:all[i+1]]) {
			t.Fatalf("element %d differs", i)
		}
		if n := m.reads.Load(); n > 2 {
			t.Fatalf("element %d took %d reads", i, n)
		}
	}
}

// Every range of a stream of many chunks, through the cache and past it, and
// from several goroutines.
func TestReadAnywhere(t *testing.T) {
	data := noise(7, 2_000_000)
	copy(data[1_100_000:], data[100_000:900_000]) // some of it is stored once
	sp := &format.Savepoint{Operators: []*format.Operator{{Coordinator: inline("x", data)}}}
	f := mustOpen(t, pack(t, sp, source{}, spt.Options{}))
	s := f.Savepoint().Operators[0].Coordinator
	done := make(chan error)
	const readers = 4
	for r := range uint64(readers) {
		go func() {
			rng := rand.New(rand.NewPCG(r, 1))
			for range 100 {
				off := rng.IntN(len(data) + 1)
				p := make([]byte, rng.IntN(len(data)-off+1))
				n, err := f.ReadAt(context.Background(), s, p, int64(off))
				if err != nil || n != len(p) || !bytes.Equal(p, data[off:off+n]) {
					done <- fmt.Errorf("%d+%d: %d, %v", off, len(p), n, err)
					return
				}
			}
			done <- nil
		}()
	}
	for range readers {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct{ off, n int64 }{{-1, 1}, {0, int64(len(data)) + 1}, {int64(len(data)) + 1, 0}, {1<<63 - 1, 1}} {
		if _, err := f.ReadAt(context.Background(), s, make([]byte, c.n), c.off); !errors.Is(err, format.ErrTruncated) {
			t.Errorf("%d+%d: %v", c.off, c.n, err)
		}
	}
	other := mustOpen(t, pack(t, small(), source{}, spt.Options{}))
	for _, foreign := range []format.Stream{&format.File{}, inline("x", nil), &format.Chunks{Index: 99}, &format.Chunks{Index: -1}, other.Savepoint().Operators[0].Subtasks[0].Managed.Data, nil} {
		if _, err := f.ReadAt(context.Background(), foreign, nil, 0); err == nil {
			t.Errorf("read from %T of another place", foreign)
		}
	}
}

func TestOffsetsOfAllSizes(t *testing.T) {
	rng := rand.New(rand.NewPCG(8, 8))
	kinds := map[string]func(i int) int64{
		"equal":      func(int) int64 { return 77 },
		"ascending":  func(i int) int64 { return int64(i) * 13 },
		"random":     func(int) int64 { return int64(rng.Uint64()) },
		"extremes":   func(i int) int64 { return -1<<63 + int64(i%2)*(1<<63-1)*2 },
		"descending": func(i int) int64 { return -int64(i) * 300 },
	}
	for _, n := range []int{0, 1, 15, 16, 17, 63, 64, 65, 1023, 1024, 1025, 32767, 32768, 32769, 70_000} {
		var b bytes.Buffer
		w := newWriter(t, &b)
		op := &format.Operator{Subtasks: []*format.Subtask{{Managed: &format.OperatorHandle{Data: &format.EmptySegment{}}}}}
		var want [][]int64
		for _, f := range kinds {
			o := w.Offsets()
			var all []int64
			for i := range n {
				all = append(all, f(i))
			}
			for p := all; len(p) > 0; {
				k := min(len(p), 1+rng.IntN(3000))
				if err := o.Add(p[:k]...); err != nil {
					t.Fatal(err)
				}
				p = p[k:]
			}
			stored, err := o.Close()
			if err != nil || stored.Len() != int64(n) {
				t.Fatal(stored, err)
			}
			op.Subtasks[0].Managed.States = append(op.Subtasks[0].Managed.States, format.NamedState{Name: format.NewText(fmt.Sprint(len(want))), Offsets: stored})
			want = append(want, all)
		}
		if _, err := w.Seal(context.Background(), &format.Savepoint{Operators: []*format.Operator{op}}); err != nil {
			t.Fatal(err)
		}
		f := mustOpen(t, b.Bytes())
		verify(t, f)
		for k, st := range f.Savepoint().Operators[0].Subtasks[0].Managed.States {
			if got := allOffsets(t, st.Offsets); len(got) != n || n > 0 && !reflect.DeepEqual(got, want[k]) {
				t.Errorf("%d offsets: read back %d others", n, len(got))
			}
			for range 20 {
				from := rng.IntN(n + 1)
				dst := make([]int64, rng.IntN(3000))
				m, err := st.Offsets.Read(context.Background(), dst, int64(from))
				if err != nil || m != min(len(dst), n-from) || !reflect.DeepEqual(append([]int64{}, dst[:m]...), append([]int64{}, want[k][from:from+m]...)) {
					t.Fatalf("%d offsets, from %d: %d, %v", n, from, m, err)
				}
			}
			if _, err := st.Offsets.Read(context.Background(), nil, int64(n)+1); err == nil {
				t.Errorf("read behind %d offsets", n)
			}
		}
	}
}

func TestCallsOutOfOrder(t *testing.T) {
	ctx := context.Background()
	sp := &format.Savepoint{}
	stream := func(t *testing.T, w *spt.Writer) *spt.StreamWriter {
		s, err := w.Stream(nil)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	for name, f := range map[string]func(t *testing.T, w *spt.Writer) error{
		"two streams": func(t *testing.T, w *spt.Writer) error {
			stream(t, w)
			_, err := w.Stream(nil)
			return err
		},
		"seal with a stream open": func(t *testing.T, w *spt.Writer) error {
			stream(t, w)
			_, err := w.Seal(ctx, sp)
			return err
		},
		"seal with offsets open": func(t *testing.T, w *spt.Writer) error {
			w.Offsets()
			_, err := w.Seal(ctx, sp)
			return err
		},
		"write to a closed stream": func(t *testing.T, w *spt.Writer) error {
			s := stream(t, w)
			if _, err := s.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := s.Write([]byte{1})
			return err
		},
		"close a stream twice": func(t *testing.T, w *spt.Writer) error {
			s := stream(t, w)
			if _, err := s.Close(); err != nil {
				t.Fatal(err)
			}
			_, err := s.Close()
			return err
		},
		"add to closed offsets": func(t *testing.T, w *spt.Writer) error {
			o := w.Offsets()
			if _, err := o.Close(); err != nil {
				t.Fatal(err)
			}
			return o.Add(1)
		},
		"stream from a placeholder": func(t *testing.T, w *spt.Writer) error {
			_, err := w.Stream(&format.EmptySegment{})
			return err
		},
		"stream not written": func(t *testing.T, w *spt.Writer) error {
			_, err := w.Seal(ctx, &format.Savepoint{Operators: []*format.Operator{{Coordinator: inline("x", nil)}}})
			return err
		},
		"stream of another file": func(t *testing.T, w *spt.Writer) error {
			_, err := w.Seal(ctx, &format.Savepoint{Operators: []*format.Operator{{Coordinator: &format.Chunks{}}}})
			return err
		},
		"a kind that is none": func(t *testing.T, w *spt.Writer) error {
			_, err := w.Seal(ctx, &format.Savepoint{Kind: format.SnapshotKind{Type: 99}})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := newWriter(t, &b)
			err := f(t, w)
			if err == nil || !strings.Contains(err.Error(), "internal error") {
				t.Fatalf("%v", err)
			}
			// From then on nothing works, and no file comes of it.
			if _, again := w.Seal(ctx, sp); again != err {
				t.Errorf("Seal after it: %v", again)
			}
			if again := w.Close(); again != err {
				t.Errorf("Close after it: %v", again)
			}
			if _, err := open(b.Bytes()); err == nil {
				t.Error("what was written can be opened")
			}
		})
	}
	w := newWriter(t, io.Discard)
	if _, err := w.Seal(ctx, sp); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Errorf("Close after Seal: %v", err)
	}
	if _, err := w.Seal(ctx, sp); err == nil {
		t.Error("sealed twice")
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []spt.Options{{Compression: "gzip"}, {Level: 23}, {Level: -1}, {Compression: spt.S2, Level: 4}, {Compression: spt.None, Level: 1}, {Jobs: -1}} {
		if _, err := spt.NewWriter(io.Discard, o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
	sp, n := inflated(1, 20_000)
	var last int
	for _, o := range []spt.Options{{Level: 1}, {Level: 22}, {Compression: spt.S2}, {Compression: spt.S2, Level: 3}, {Compression: spt.None}} {
		var told int64
		o.Progress = func(k int64) { told += k }
		p := pack(t, sp, source{}, o)
		if told != n {
			t.Errorf("%+v: told of %d bytes of %d", o.Compression, told, n)
		}
		if len(p) == last {
			t.Errorf("%+v: the level makes no difference", o.Compression)
		}
		last = len(p)
		f := mustOpen(t, p)
		sameModel(t, f, sp, source{})
		verify(t, f)
	}
	for s, want := range map[string]spt.Compression{"": spt.Zstd, "zstd": spt.Zstd, "s2": spt.S2, "none": spt.None} {
		if c, err := spt.ParseCompression(s); c != want || err != nil {
			t.Errorf("%q is %q, %v", s, c, err)
		}
	}
}

// What Seal returns is what a fresh Open gives, apart from reading it.
func TestWriteGivesTheSealedModel(t *testing.T) {
	var b bytes.Buffer
	sealed, st, err := spt.Write(context.Background(), &b, small(), source{}, absolute, spt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	f := mustOpen(t, b.Bytes())
	if st != f.Stats() {
		t.Errorf("stats %+v, and read %+v", st, f.Stats())
	}
	var a, c []string
	sealed.EachStream(func(p format.Place, s format.Stream) error { //nolint:errcheck // only ours
		a = append(a, fmt.Sprint(p, s.Key()))
		return nil
	})
	f.Savepoint().EachStream(func(p format.Place, s format.Stream) error { //nolint:errcheck // only ours
		c = append(c, fmt.Sprint(p, s.Key()))
		return nil
	})
	if !reflect.DeepEqual(a, c) || len(a) != 3 {
		t.Errorf("%q, and read %q", a, c)
	}
	if _, err := sealed.Operators[0].Subtasks[0].Managed.States[0].Offsets.Read(context.Background(), make([]int64, 1), 0); err == nil {
		t.Error("offsets are read without a file")
	}
}

// hugeSource gives streams that were never anywhere: numbered blocks.
type hugeSource struct{}

func (hugeSource) ReadAt(_ context.Context, _ format.Stream, p []byte, off int64) (int, error) {
	for i := range p {
		p[i] = 0
	}
	for i := (4096 - off%4096) % 4096; i < int64(len(p)); i += 4096 {
		copy(p[i:], fmt.Sprint(off+i))
	}
	return len(p), nil
}

// hugeOffsets is an array that was never anywhere.
type hugeOffsets struct{ n, step int64 }

func (o hugeOffsets) Len() int64 { return o.n }
func (o hugeOffsets) Read(_ context.Context, dst []int64, from int64) (int, error) {
	n := min(int64(len(dst)), o.n-from)
	for i := range n {
		dst[i] = (from + i) * o.step
	}
	return int(n), nil
}

// State is larger than memory: 3 GiB with twelve million offsets go through
// with a live heap of a few chunks.
func TestHeapStaysSmall(t *testing.T) {
	testenv.Long(t, "writes 3 GiB")
	const size = 3 << 30
	sp := &format.Savepoint{Operators: []*format.Operator{{Subtasks: []*format.Subtask{{Managed: &format.OperatorHandle{
		Data:   &format.File{Path: format.NewText("huge"), Relative: true, Length: size},
		States: []format.NamedState{{Offsets: hugeOffsets{n: size / 256, step: 256}}},
	}}}}}}
	var base, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&base)
	var most uint64
	var done, next int64
	o := spt.Options{Compression: spt.S2, Jobs: 2, Progress: func(n int64) {
		if done += n; done > next {
			next = done + 256<<20
			runtime.GC()
			runtime.ReadMemStats(&now)
			most = max(most, now.HeapAlloc)
		}
	}}
	_, st, err := spt.Write(context.Background(), io.Discard, sp, hugeSource{}, nil, o)
	if err != nil {
		t.Fatal(err)
	}
	if st.RawBytes < size {
		t.Errorf("%d bytes were kept of %d that all differ", st.RawBytes, int64(size))
	}
	if grown := int64(most) - int64(base.HeapAlloc); grown > 32<<20 {
		t.Errorf("the live heap grew by %d bytes", grown)
	} else {
		t.Logf("%d bytes: the live heap grew by %d", int64(size), grown)
	}
}

// A savepoint that no reader would take is not sealed.
func TestOverTheLimits(t *testing.T) {
	var h format.KeyedHandle = &format.KeyGroups{Data: &format.EmptySegment{}}
	for range 20 {
		h = &format.Changelog{Materialized: []format.KeyedHandle{h}}
	}
	sp := &format.Savepoint{Operators: []*format.Operator{{Subtasks: []*format.Subtask{{ManagedKeyed: h}}}}}
	if _, _, err := spt.Write(context.Background(), io.Discard, sp, source{}, nil, spt.Options{}); !errors.Is(err, format.ErrLimit) || strings.Contains(err.Error(), "internal") {
		t.Errorf("%v", err)
	}
}

// wide is a savepoint of many operators and subtasks with little state.
func wide(operators, subtasks int) *format.Savepoint {
	sp := &format.Savepoint{}
	for i := range operators {
		op := &format.Operator{ID: format.OperatorIDOf(fmt.Sprint(i)), Parallelism: int32(subtasks), MaxParallelism: 128}
		for j := range subtasks {
			op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(j), Managed: &format.OperatorHandle{
				Codec:  format.CodecFlink,
				States: []format.NamedState{{Name: format.NewText("state"), Offsets: format.OffsetSlice{2, 4}}},
				Data:   inline(fmt.Sprintf("file:/sp/%d/%d", i, j), fmt.Appendf(nil, "%4d%4d", i, j)),
			}})
		}
		sp.Operators = append(sp.Operators, op)
	}
	return sp
}

// How many reads it takes to open a file: they are requests to a far store.
func TestReadsToOpen(t *testing.T) {
	big, _ := inflated(1, 20_000)
	for _, c := range []struct {
		name string
		sp   *format.Savepoint
		most int64
	}{{"small", small(), 1}, {"large", big, 2}, {"manifest over 64 KiB", wide(1000, 10), 3}} {
		p := pack(t, c.sp, source{}, spt.Options{})
		m := &memory{p: p}
		f, err := spt.Open(context.Background(), m, int64(len(p)), format.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if n := m.reads.Load(); n != c.most {
			t.Errorf("%s: %d reads for a file of %d bytes, want %d", c.name, n, len(p), c.most)
		}
		sameModel(t, f, c.sp, source{})
	}
}
