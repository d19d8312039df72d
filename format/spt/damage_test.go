package spt_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
)

// small is a savepoint of a few hundred bytes with two states, offsets in a
// chunk, a reference and a key-group handle.
func small() *format.Savepoint {
	offsets := make(format.OffsetSlice, 100)
	for i := range offsets {
		offsets[i] = int64(10 + 5*i)
	}
	data := inline("file:/sp/1", append([]byte("0123456789"), bytes.Repeat([]byte("lorem"), 120)...))
	return &format.Savepoint{ID: 42, Kind: format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatCanonical}, Operators: []*format.Operator{{
		UID: format.NewText("op"), ID: format.OperatorIDOf("op"), Parallelism: 1, MaxParallelism: 128,
		Subtasks: []*format.Subtask{{
			Managed: &format.OperatorHandle{Codec: format.CodecFlink, Data: data, States: []format.NamedState{
				{Name: format.NewText("list"), Offsets: offsets},
				{Name: format.NewText("rules"), Mode: format.ModeBroadcast, Offsets: format.OffsetSlice{510}},
			}},
			ManagedKeyed: &format.KeyGroups{Codec: format.CodecFlink, Range: format.KeyGroupRange{Count: 2}, Offsets: format.OffsetSlice{3, 9}, Data: inline("k", noise(1, 40)), Savepoint: true},
			RawKeyed:     &format.KeyGroups{Data: &format.File{Path: format.NewText("file:/elsewhere/x"), Length: 12}},
		}},
	}}}
}

// readAll reads every stream and offset.
func readAll(f *spt.File) error {
	ctx := context.Background()
	err := f.Savepoint().EachStream(func(_ format.Place, s format.Stream) error {
		if _, ok := s.(*format.Chunks); !ok {
			return nil
		}
		_, err := f.ReadAt(ctx, s, make([]byte, s.Size()), 0)
		return err
	})
	for _, o := range f.Savepoint().Operators {
		for _, s := range o.Subtasks {
			if s.Managed == nil {
				continue
			}
			for _, st := range s.Managed.States {
				_, e := st.Offsets.Read(ctx, make([]int64, st.Offsets.Len()), 0)
				err = errors.Join(err, e)
			}
		}
	}
	return err
}

// plausible fails unless an error is of a kind that damage has, and says where.
func plausible(t *testing.T, what string, at int, err error, size int) {
	t.Helper()
	if !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) && !errors.Is(err, format.ErrLimit) {
		t.Fatalf("%s %d: %v: of no kind", what, at, err)
	}
	var e *format.Error
	if !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(size) {
		t.Fatalf("%s %d: %v: at no plausible place", what, at, err)
	}
}

func TestCutAnywhere(t *testing.T) {
	p := pack(t, small(), source{}, spt.Options{})
	for n := range p {
		_, err := open(p[:n])
		plausible(t, "cut to", n, err, n)
		if n > 0 && !errors.Is(err, spt.ErrNotSealed) {
			t.Fatalf("cut to %d: %v", n, err)
		}
	}
	// The other way round: bytes missing at the start or in the middle.
	for n := range len(p) {
		for _, from := range []int{0, 16, 30} {
			if from+n >= len(p) || n == 0 {
				continue
			}
			_, err := open(append(bytes.Clone(p[:from]), p[from+n:]...))
			plausible(t, "left out", n, err, len(p))
		}
	}
}

func TestEachByteFlipped(t *testing.T) {
	sp := small()
	for _, c := range []spt.Compression{spt.Zstd, spt.S2, spt.None} {
		p := pack(t, sp, source{}, spt.Options{Compression: c})
		harmless := 0
		for i := range p {
			for _, flip := range []byte{0x01, 0x80, 0xff} {
				q := bytes.Clone(p)
				q[i] ^= flip
				f, err := open(q)
				if err != nil {
					plausible(t, "byte", i, err, len(p))
					continue
				}
				findings := 0
				if err := f.Verify(context.Background(), func(e format.Error) {
					plausible(t, "byte", i, &e, len(p))
					findings++
				}); err != nil {
					t.Fatal(err)
				}
				err = readAll(f)
				if (findings > 0) != (err != nil) {
					t.Fatalf("byte %d: %d findings, and reading all: %v", i, findings, err)
				}
				if err != nil {
					plausible(t, "byte", i, err, len(p))
					continue
				}
				harmless++
				sameModel(t, f, sp, source{})
			}
		}
		// A higher minor version is read, and compressed bytes may have bits
		// that change nothing; nothing else may go unnoticed.
		if c == spt.None && harmless != 6 || harmless > 20 {
			t.Errorf("%s: %d flipped bytes went unnoticed", c, harmless)
		}
	}
}

// Verify goes on after the first finding, and says whose chunk it is.
func TestVerifyFindsAll(t *testing.T) {
	sp := small()
	p := pack(t, sp, source{}, spt.Options{Compression: spt.None})
	verify(t, mustOpen(t, bytes.Clone(p)))
	for _, s := range []string{"01234", "lorem"} {
		i := bytes.Index(p, []byte(s))
		p[i] ^= 1
	}
	i := bytes.Index(p, noise(1, 40)[3:])
	p[i+20] ^= 1
	f := mustOpen(t, p)
	var got []string
	if err := f.Verify(context.Background(), func(e format.Error) { got = append(got, e.Error()) }); err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 {
		t.Fatalf("%d findings:\n%s", len(got), strings.Join(got, "\n"))
	}
	for i, want := range []string{`operator "op"/subtask 0/operator state`, `operator "op"/subtask 0/operator state`, `operator "op"/subtask 0/keyed state`} {
		if !strings.Contains(got[i], want) || !strings.Contains(got[i], "checksum") {
			t.Errorf("%s: want %s", got[i], want)
		}
	}
}

func TestFailures(t *testing.T) {
	ctx := context.Background()
	sp, _ := inflated(2, 20_000)
	p := pack(t, sp, source{}, spt.Options{})
	boom := errors.New("boom")
	// A disk that is full at any time.
	for n := 0; n < len(p); n += 1 + len(p)/50 {
		w := &failing{n: n, err: boom}
		if _, _, err := spt.Write(ctx, w, sp, source{}, nil, spt.Options{}); !errors.Is(err, boom) {
			t.Errorf("writer failing at %d: %v", n, err)
		}
	}
	// A source that fails.
	for n := range int64(4) {
		if _, _, err := spt.Write(ctx, io.Discard, sp, &failingSource{left: n, err: boom}, nil, spt.Options{}); !errors.Is(err, boom) {
			t.Errorf("source failing at read %d: %v", n, err)
		} else if !strings.Contains(err.Error(), "operator state") {
			t.Errorf("no place in %v", err)
		}
	}
	// Somebody who has seen enough.
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	var out bytes.Buffer
	if _, _, err := spt.Write(cancelled, &out, sp, source{}, nil, spt.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if f, err := open(out.Bytes()); err == nil {
		t.Errorf("what a cancelled Write leaves can be opened: %v", f.Stats())
	}
	f := mustOpen(t, p)
	s := f.Savepoint().Operators[0].Subtasks[0].Managed.Data
	if _, err := f.ReadAt(cancelled, s, make([]byte, 10), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if err := f.Verify(cancelled, func(format.Error) {}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := f.ReadAt(ctx, s, make([]byte, 10), 0); err != nil {
		t.Errorf("after a cancelled read: %v", err)
	}
	// A reader that fails, or gives less than it was asked for.
	for n := range int64(3) {
		r := &failingReader{memory: memory{p: p}, left: n, err: boom}
		f, err := spt.Open(ctx, r, int64(len(p)), format.Limits{})
		if err == nil {
			err = f.Verify(ctx, func(format.Error) {})
		}
		if !errors.Is(err, boom) {
			t.Errorf("reader failing at read %d: %v", n, err)
		}
	}
	if _, err := spt.Open(ctx, shortReader{p}, int64(len(p)), format.Limits{}); !errors.Is(err, format.ErrTruncated) {
		t.Errorf("short reads: %v", err)
	}
}

type failing struct {
	n   int
	err error
}

func (w *failing) Write(p []byte) (int, error) {
	if w.n -= len(p); w.n < 0 {
		return 0, w.err
	}
	return len(p), nil
}

type failingSource struct {
	left int64
	err  error
}

func (s *failingSource) ReadAt(ctx context.Context, st format.Stream, p []byte, off int64) (int, error) {
	if s.left--; s.left < 0 {
		return 0, s.err
	}
	return source{}.ReadAt(ctx, st, p, off)
}

type failingReader struct {
	memory
	left int64
	err  error
}

func (r *failingReader) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if r.left--; r.left < 0 {
		return 0, r.err
	}
	return r.memory.ReadAt(ctx, p, off)
}

type shortReader struct{ p []byte }

func (r shortReader) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	return copy(p[:1], r.p[off:]), nil
}
