package ranged_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/internal/ranged"
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

func newReader(s storage.Storage, name string) *ranged.Reader {
	sched := ranged.NewScheduler()
	sched.SetPause(0)
	return sched.NewReader(s, name, "")
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
	if !errors.Is(err, storage.ErrUnavailable) || ranged.Classify(err) != ranged.Transient {
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
			if !errors.Is(err, storage.ErrChanged) || ranged.Classify(err) != ranged.InputChanged {
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
	r := ranged.NewReader(s, "x", info.Version)
	if _, err := r.Stat(ctx); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("Stat with a pin: %v", err)
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
	sched := ranged.NewScheduler()
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

func TestCopyRangeResumes(t *testing.T) {
	data := pattern(3 << 20)
	s, dst := mem.New(), mem.New()
	storetest.Put(t, s, "x", data)
	f := storetest.NewFailing(s, storetest.Faults{Broken: 2, BreakAfter: 1 << 20, BreakSilently: true})
	w, err := dst.Create(ctx, "y", storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := ranged.CopyRange(ctx, dst, w, f, "x", 0, -1, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if storetest.Read(t, dst, "y") != data {
		t.Error("the copy is wrong")
	}
}
