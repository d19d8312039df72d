package storage_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
)

var ctx = context.Background()

// pattern is n bytes of which no two neighbouring windows are alike.
func pattern(n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>8*7 ^ i>>16*13)
	}
	return string(b)
}

func newReader(s storage.Storage, name string) *storage.Reader {
	sched := storage.NewScheduler()
	sched.SetPause(0)
	return sched.NewReader(s, name, "")
}

func collect(t *testing.T, r *storage.Reader, ranges []storage.Range) ([]string, error) {
	t.Helper()
	var got []string
	for p, err := range r.ReadRanges(ctx, ranges) {
		if err != nil {
			return got, err
		}
		got = append(got, string(p))
	}
	return got, nil
}

func TestReaderOneRequest(t *testing.T) {
	s := mem.New()
	storetest.Put(t, s, "x", "0123456789")
	c := storetest.NewCounting(s)
	r := newReader(c, "x")
	head, err := r.ReadRange(ctx, 0, 1<<20)
	if err != nil || string(head) != "0123456789" {
		t.Fatalf("%q, %v", head, err)
	}
	info, err := r.Stat(ctx)
	if err != nil || info.Size != 10 {
		t.Fatalf("%+v, %v", info, err)
	}
	if got := c.Counts(); len(got) != 1 || got["read"] != 1 {
		t.Errorf("requests: %v", got)
	}
	tail, err := r.ReadRange(ctx, -3, 3)
	if err != nil || string(tail) != "789" {
		t.Fatalf("%q, %v", tail, err)
	}
}

func TestReaderReadAt(t *testing.T) {
	s := mem.New()
	storetest.Put(t, s, "x", "0123456789")
	r := newReader(s, "x")
	for _, c := range []struct {
		off  int64
		n    int
		want string
		err  error
	}{{0, 10, "0123456789", nil}, {4, 3, "456", nil}, {8, 2, "89", nil}, {8, 3, "89", io.EOF}, {10, 1, "", io.EOF}, {99, 1, "", io.EOF}, {99, 0, "", nil}} {
		p := make([]byte, c.n)
		n, err := r.ReadAt(ctx, p, c.off)
		if string(p[:n]) != c.want || err != c.err {
			t.Errorf("ReadAt(%d, %d) = %q, %v", c.off, c.n, p[:n], err)
		}
	}
	if _, err := r.ReadAt(ctx, make([]byte, 1), -1); err == nil {
		t.Error("a negative offset is read")
	}
}

func TestReaderResumes(t *testing.T) {
	data := pattern(300_000)
	for name, c := range map[string]struct {
		f     storetest.Faults
		reads int
	}{
		"one byte at a time": {storetest.Faults{OneByte: true}, 1},
		"error":              {storetest.Faults{Broken: 1, BreakAfter: 1000}, 2},
		"silent":             {storetest.Faults{Broken: 3, BreakAfter: 1000, BreakSilently: true}, 4},
		"unexpected EOF":     {storetest.Faults{Broken: 3, BreakAfter: 1000, Err: io.ErrUnexpectedEOF}, 4},
		"before the start":   {storetest.Faults{Broken: 3, BreakAfter: 0}, 4},
		"request":            {storetest.Faults{Read: 1}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.New()
			storetest.Put(t, s, "x", data)
			count := storetest.NewCounting(storetest.NewFailing(s, c.f))
			for _, off := range []int64{5, -299_995} { // a resume must not count from the end again
				got, err := newReader(count, "x").ReadRange(ctx, off, 200_000)
				if err != nil || string(got) != data[5:200_005] {
					t.Fatalf("%d bytes, %v", len(got), err)
				}
			}
			if got := count.Count("read"); got != c.reads+1 { // the second time nothing breaks
				t.Errorf("%d reads, want %d", got, c.reads+1)
			}
			_, written := count.Bytes()
			if read, _ := count.Bytes(); read != 400_000 || written != 0 {
				t.Errorf("%d bytes read: something was read twice", read)
			}
		})
	}
}

func TestReaderGivesUp(t *testing.T) {
	s := mem.New()
	storetest.Put(t, s, "x", pattern(10_000))
	c := storetest.NewCounting(storetest.NewFailing(s, storetest.Faults{Broken: 9, BreakAfter: 10, BreakSilently: true}))
	_, err := newReader(c, "x").ReadRange(ctx, 0, -1)
	if !errors.Is(err, storage.ErrUnavailable) || storage.Classify(err) != storage.Transient {
		t.Errorf("got %v", err)
	}
	if got := c.Count("read"); got != 4 {
		t.Errorf("%d reads, want 1 + 3", got)
	}

	c = storetest.NewCounting(storetest.NewFailing(s, storetest.Faults{Broken: 1, BreakAfter: 10, Err: storage.ErrPermission}))
	_, err = newReader(c, "x").ReadRange(ctx, 0, -1)
	if !errors.Is(err, storage.ErrPermission) || c.Count("read") != 1 {
		t.Errorf("a permanent error: %v after %d reads", err, c.Count("read"))
	}
}

// Four cuts, but with more than 1 MiB between them.
func TestReaderResumesLongStream(t *testing.T) {
	data := pattern(8 << 20)
	s := mem.New()
	storetest.Put(t, s, "x", data)
	f := storetest.NewFailing(s, storetest.Faults{Broken: 5, BreakAfter: 3 << 19, BreakSilently: true})
	body, info, err := newReader(f, "x").Open(ctx, 0, -1)
	if err != nil || info.Size != 8<<20 {
		t.Fatal(info, err)
	}
	var got bytes.Buffer
	if _, err := io.Copy(&got, body); err != nil || got.String() != data {
		t.Fatalf("%d bytes, %v", got.Len(), err)
	}
	if err := body.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := body.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
}

// The object changes in the middle of a read that is then cut.
func TestReaderChanged(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, s storage.Storage){
		"replaced": func(t *testing.T, s storage.Storage) { storetest.Put(t, s, "x", pattern(10_000)) },
		"deleted":  func(t *testing.T, s storage.Storage) { s.Delete(ctx, "x") },
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.New()
			storetest.Put(t, s, "x", pattern(10_000))
			f := storetest.NewFailing(s, storetest.Faults{Broken: 1, BreakAfter: 500, Change: func() { change(t, s) }})
			r := newReader(f, "x")
			_, err := r.ReadRange(ctx, 0, -1)
			if !errors.Is(err, storage.ErrChanged) || storage.Classify(err) != storage.InputChanged {
				t.Errorf("got %v", err)
			}
			if _, err = r.ReadAt(ctx, make([]byte, 1), 0); !errors.Is(err, storage.ErrChanged) {
				t.Errorf("later: %v", err)
			}
		})
	}
	s := mem.New()
	info := storetest.Put(t, s, "x", "old")
	storetest.Put(t, s, "x", "new")
	r := storage.NewReader(s, "x", info.Version)
	if _, err := r.Stat(ctx); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("Stat with a pin: %v", err)
	}
}

func TestReadRanges(t *testing.T) {
	data := pattern(1 << 20)
	s := mem.New()
	storetest.Put(t, s, "x", data)
	for name, c := range map[string]struct {
		ranges []storage.Range
		reads  int
	}{
		"none":        {nil, 0},
		"one":         {[]storage.Range{{7, 9}}, 1},
		"empty":       {[]storage.Range{{7, 0}, {1 << 20, 0}}, 2},
		"all":         {[]storage.Range{{0, 1 << 20}}, 1},
		"touching":    {[]storage.Range{{0, 10}, {10, 10}, {20, 5}}, 1},
		"gap at":      {[]storage.Range{{0, 10}, {10 + 64<<10, 10}}, 1},
		"gap over":    {[]storage.Range{{0, 10}, {11 + 64<<10, 10}}, 2},
		"overlapping": {[]storage.Range{{100, 50}, {120, 10}, {140, 50}, {100, 1}}, 1},
		"backwards":   {[]storage.Range{{500_000, 10}, {100, 10}}, 2},
		"many": {func() (r []storage.Range) {
			for i := range int64(10) {
				r = append(r, storage.Range{Off: (i * 7 % 10) * 100_000, N: i})
			}
			return r
		}(), 10},
	} {
		t.Run(name, func(t *testing.T) {
			count := storetest.NewCounting(s)
			got, err := collect(t, newReader(count, "x"), c.ranges)
			if err != nil || len(got) != len(c.ranges) {
				t.Fatalf("%d of %d, %v", len(got), len(c.ranges), err)
			}
			for i, g := range c.ranges {
				if got[i] != data[g.Off:g.Off+g.N] {
					t.Errorf("range %d is wrong", i)
				}
			}
			if count.Count("read") != c.reads {
				t.Errorf("%d reads, want %d", count.Count("read"), c.reads)
			}
		})
	}
}

// Lengths from a file are claims.
func TestReadRangesPastTheEnd(t *testing.T) {
	s := mem.New()
	storetest.Put(t, s, "x", "0123456789")
	good := storage.Range{Off: 2, N: 3}
	for _, bad := range []storage.Range{
		{0, 11}, {10, 1}, {11, 0}, {0, math.MaxInt64}, {math.MaxInt64, math.MaxInt64}, {5, math.MaxInt64 - 4}, {-1, 1}, {0, -1}, {math.MinInt64, math.MinInt64},
	} {
		for _, ranges := range [][]storage.Range{{bad, good}, {{9, 1}, good, bad}, {bad, {0, 10}, bad}} {
			got, err := collect(t, newReader(s, "x"), ranges)
			if err == nil {
				t.Errorf("%v gives %q", ranges, got)
			} else if bad.Off >= 0 && bad.N >= 0 && !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("%v gives %v", ranges, err)
			}
		}
	}
}

// gate is a store whose reads wait, and which knows how many do at once.
type gate struct {
	storage.Storage
	mu            sync.Mutex
	now, most     int
	arrived, open chan struct{}
}

func (g *gate) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	g.mu.Lock()
	g.now++
	g.most = max(g.most, g.now)
	g.mu.Unlock()
	g.arrived <- struct{}{}
	<-g.open
	g.mu.Lock()
	g.now--
	g.mu.Unlock()
	return g.Storage.ReadRange(ctx, name, off, n, pin)
}

func TestSchedulerBound(t *testing.T) {
	s := mem.New()
	info := storetest.Put(t, s, "x", pattern(100))
	g := &gate{Storage: s, arrived: make(chan struct{}, 100), open: make(chan struct{})}
	sched := storage.NewScheduler()
	var wait sync.WaitGroup
	for i := range int64(50) {
		wait.Go(func() {
			if _, err := sched.NewReader(g, "x", info.Version).ReadRange(ctx, i, 1); err != nil {
				t.Error(err)
			}
		})
	}
	for range 16 {
		<-g.arrived
	}
	close(g.open)
	wait.Wait()
	if g.most > 16 {
		t.Errorf("%d in flight", g.most)
	}
}

// ReadRanges keeps 16 requests going, and stops when its consumer does.
func TestReadRangesAhead(t *testing.T) {
	s := mem.New()
	storetest.Put(t, s, "x", pattern(4<<20))
	g := &gate{Storage: s, arrived: make(chan struct{}, 100), open: make(chan struct{}, 1)}
	r := newReader(g, "x")
	g.open <- struct{}{}
	if _, err := r.ReadRange(ctx, 0, 1); err != nil {
		t.Fatal(err)
	}
	<-g.arrived
	var ranges []storage.Range
	for i := range int64(40) {
		ranges = append(ranges, storage.Range{Off: i * 100_000, N: 10})
	}
	go func() {
		for range 16 {
			<-g.arrived
		}
		close(g.open)
	}()
	for _, err := range r.ReadRanges(ctx, ranges) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
	if g.most != 16 {
		t.Errorf("%d in flight, want 16", g.most)
	}
	if n := len(g.arrived); n > 1 {
		t.Errorf("%d reads were begun for nothing", n)
	}
}

func TestCopyRangeResumes(t *testing.T) {
	data := pattern(3 << 20)
	s, dst := mem.New(), mem.New()
	storetest.Put(t, s, "x", data)
	f := storetest.NewFailing(s, storetest.Faults{Broken: 2, BreakAfter: 1 << 20, BreakSilently: true})
	w, err := dst.Create(ctx, "y", storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := storage.CopyRange(ctx, dst, w, f, "x", 0, -1, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if storetest.Read(t, dst, "y") != data {
		t.Error("the copy is wrong")
	}
}

// endless is a store of one object of 1 TiB, all zeros.
type endless struct{ storage.Storage }

func (endless) ReadRange(_ context.Context, name string, off, n int64, _ storage.Version) (io.ReadCloser, storage.Info, error) {
	info := storage.Info{Name: name, Size: 1 << 40, Version: "1"}
	start, end := storage.Clip(info.Size, off, n)
	return io.NopCloser(io.LimitReader(zeros{}, end-start)), info, nil
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// However much is asked for, no more than 64 MiB are read ahead.
func TestReadRangesMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &gate{Storage: endless{}, arrived: make(chan struct{}, 100), open: make(chan struct{}, 1)}
		r := newReader(g, "x")
		g.open <- struct{}{}
		if _, err := r.ReadRange(ctx, 0, 1); err != nil {
			t.Fatal(err)
		}
		var ranges []storage.Range
		for i := range int64(6) {
			ranges = append(ranges, storage.Range{Off: i << 30, N: 20 << 20})
		}
		go func() {
			synctest.Wait() // until all reads that are begun wait at the gate
			g.mu.Lock()
			if g.now != 3 {
				t.Errorf("%d reads at once, want 3", g.now)
			}
			g.mu.Unlock()
			close(g.open)
		}()
		n := 0
		for p, err := range r.ReadRanges(ctx, ranges) {
			if err != nil || len(p) != 20<<20 {
				t.Fatal(len(p), err)
			}
			n++
		}
		if n != 6 || g.most != 3 {
			t.Errorf("%d ranges, %d reads at once, want 6 and 3", n, g.most)
		}
	})
}
