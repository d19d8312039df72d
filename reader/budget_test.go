package reader_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

// These tests count the requests that an object store would answer: design §6.

// bucket makes options of a store whose names are the s3: URIs.
func bucket(store storage.Storage) reader.Options {
	r := route.New(local.New())
	resolve := func(_ context.Context, uri string) (storage.Storage, string, error) {
		return store, format.CanonicalURI(uri), nil
	}
	r.Add("s3", resolve)
	r.Add("s3a", resolve)
	return reader.Options{Stores: r}
}

// requests are the counts of an object store that are not 0.
func requests(c *storetest.Counting) string {
	var all []string
	for _, kind := range []string{"read", "page", "stat", "commit", "copy", "delete"} {
		if n := c.Counts()[kind]; n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(all, ", ")
}

// wantRequests compares the requests since the last call.
func wantRequests(t *testing.T, c *storetest.Counting, what, want string) {
	t.Helper()
	got := requests(c)
	t.Logf("%s: %s", what, got)
	if got != want {
		t.Errorf("%s: %s, want %s", what, got, want)
	}
	c.Reset()
}

// together lets requests wait until n of them run at once, or all that there are:
// release ends the wait for good.
type together struct {
	mu      sync.Mutex
	waiting int
	n       int
	gate    chan struct{}
}

func newTogether(n int) *together { return &together{n: n, gate: make(chan struct{})} }

func (w *together) wait() {
	w.mu.Lock()
	w.waiting++
	if w.waiting == w.n {
		close(w.gate)
	}
	w.mu.Unlock()
	<-w.gate
}

// A small description takes one request, a large one further ones of 8 MiB, several of
// them at once.
func TestInspectBudget(t *testing.T) {
	small := string(encode(t, model(list(inline("hello"), 0), list(relative("f", 3), 0))))
	c := storetest.NewCounting(inMemory(t, map[string]string{"s3://b/sp/_metadata": small, "s3://b/sp/f": "abc"}))
	snap := open(t, "s3a://b/sp/", bucket(c))
	if _, err := snap.InlineHeaders(ctx, snap.Operators); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(snap.Unchanged(ctx), snap.Close()); err != nil {
		t.Fatal(err)
	}
	wantRequests(t, c, "small", "1 read")

	large := string(encode(t, model(list(inline(strings.Repeat("x", 40<<20)), 0))))
	c = storetest.NewCounting(inMemory(t, map[string]string{"s3://b/sp/_metadata": large}))
	snap = open(t, "s3://b/sp", bucket(c))
	if got := snap.Operators[0].Subtasks[0].Managed.Data.Size(); got != 40<<20 {
		t.Errorf("%d bytes", got)
	}
	wantRequests(t, c, "large", fmt.Sprintf("%d read", 1+(len(large)-1<<20+8<<20-1)/(8<<20)))
}

// The parts of a large description are read at the same time.
func TestInspectReadsTogether(t *testing.T) {
	large := string(encode(t, model(list(inline(strings.Repeat("x", 40<<20)), 0))))
	var mu sync.Mutex
	reads := 0
	parts := newTogether(5)
	c := storetest.NewCounting(inMemory(t, map[string]string{"s3://b/sp/_metadata": large})).WithWait(func(kind, _ string) {
		mu.Lock()
		reads++
		first := reads == 1
		mu.Unlock()
		if !first {
			parts.wait() // for ever, unless all five run at once
		}
	})
	open(t, "s3://b/sp", bucket(c))
	if got := c.MaxRunning(); got != 5 {
		t.Errorf("%d requests at once", got)
	}
}

// A description that is replaced between the requests for its parts is an error.
func TestLargeDescriptionThatChanges(t *testing.T) {
	large := string(encode(t, model(list(inline(strings.Repeat("x", 20<<20)), 0))))
	store := inMemory(t, map[string]string{"s3://b/sp/_metadata": large})
	var once sync.Once
	first := true
	c := storetest.NewCounting(store).WithWait(func(string, string) {
		if first {
			first = false
			return
		}
		once.Do(func() { replace(t, store, "s3://b/sp/_metadata", large[:10<<20]) })
	})
	o := bucket(c)
	if _, err := reader.Open(ctx, "s3://b/sp", &o); !errors.Is(err, format.ErrChanged) {
		t.Errorf("error %v", err)
	}
}

func noise(n int) string {
	b := make([]byte, n)
	for i, x := 0, uint32(n); i < n; i++ {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

// An .spt file is opened in two requests, and an element read in two more.
func TestSPTBudget(t *testing.T) {
	state := noise(24 << 20)
	var offsets []int64
	for off := 0; off < len(state); off += 64 {
		offsets = append(offsets, int64(off))
	}
	store := inMemory(t, map[string]string{
		"s3://b/large.spt": string(pack(t, model(list(inline(state), offsets...)))),
		"s3://b/small.spt": string(pack(t, model(list(inline("hello"), 0)))),
	})
	c := storetest.NewCounting(store)
	open(t, "s3://b/small.spt", bucket(c))
	wantRequests(t, c, "small .spt", "1 read")
	snap := open(t, "s3://b/large.spt", bucket(c))
	wantRequests(t, c, "large .spt", "2 read")
	h := snap.Operators[0].Subtasks[0].Managed
	off, err := format.OffsetAt(ctx, h.States[0].Offsets, 200_000)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 64)
	if _, err := snap.Source().ReadAt(ctx, h.Data, p, off); err != nil || string(p) != state[off:off+64] {
		t.Errorf("%q, %v", p, err)
	}
	if n := c.Count("read"); n > 2 {
		t.Errorf("an element takes %d reads", n)
	}
	wantRequests(t, c, "element", requests(c))
}

// manyFiles is a snapshot with n files next to _metadata and m in a directory of shared
// state, which has others as well.
func manyFiles(t testing.TB, n, m, others int) map[string]string {
	files := map[string]string{}
	var handles []*format.OperatorHandle
	for i := range n {
		name := fmt.Sprintf("f%05d", i)
		files["s3://b/ckpt/0123456789abcdef0123456789abcdef/chk-7/"+name] = "abc"
		handles = append(handles, list(relative(name, 3), 0))
	}
	for i := range m {
		name := fmt.Sprintf("ckpt/0123456789abcdef0123456789abcdef/shared/s%05d", i)
		files["s3://b/"+name] = "abcd"
		handles = append(handles, list(absolute("s3a://b/"+name, 4), 0))
	}
	for i := range others {
		files[fmt.Sprintf("s3://b/ckpt/0123456789abcdef0123456789abcdef/shared/t%05d", i)] = "other"
	}
	sp := model(handles...)
	sp.Operators[0].MaxParallelism = int32(len(handles))
	files["s3://b/ckpt/0123456789abcdef0123456789abcdef/chk-7/_metadata"] = string(encode(t, sp))
	return files
}

const checkpoint = "s3://b/ckpt/0123456789abcdef0123456789abcdef/chk-7"

// Verify lists each directory once. It reads no state and asks for no file.
func TestVerifyRequests(t *testing.T) {
	files := manyFiles(t, 2500, 1500, 2000)
	c := storetest.NewCounting(inMemory(t, files))
	snap := open(t, checkpoint, bucket(c))
	v, err := snap.Verify(ctx, reader.VerifyOptions{}, func(f finding.Finding) { t.Errorf("%+v", f) })
	if err != nil || v.Files != 4000 || v.Unread != 4000 {
		t.Errorf("%+v, %v", v, err)
	}
	wantRequests(t, c, "verify of 2,500 files and 1,500 of 3,500 shared ones", "1 read, 7 page")

	// Files that are missing or too short are found all the same.
	dir := "s3://b/ckpt/0123456789abcdef0123456789abcdef/"
	delete(files, dir+"chk-7/f00007")
	files[dir+"shared/s00009"] = "abc"
	files[dir+"chk-7/left"] = "over"
	c = storetest.NewCounting(inMemory(t, files))
	var got []string
	v, err = open(t, checkpoint, bucket(c)).Verify(ctx, reader.VerifyOptions{}, func(f finding.Finding) { got = append(got, f.Code+" "+f.File) })
	if err != nil || strings.Join(got, ", ") != "file-missing f00007, file-length s3a://b/ckpt/0123456789abcdef0123456789abcdef/shared/s00009, orphan left" {
		t.Errorf("%q, %+v, %v", got, v, err)
	}
	wantRequests(t, c, "verify that finds something", "1 read, 7 page")

	// A single file of a directory is not worth a list, and a snapshot without files takes no request.
	single := map[string]string{"s3://b/sp/_metadata": string(encode(t, model(list(absolute("s3://b/sp/a/x", 1), 0), list(absolute("s3://b/sp/c/x", 1), 0)))), "s3://b/sp/a/x": "x", "s3://b/sp/c/x": "x"}
	c = storetest.NewCounting(inMemory(t, single))
	if _, err := open(t, "s3://b/sp", bucket(c)).Verify(ctx, reader.VerifyOptions{}, nil); err != nil {
		t.Fatal(err)
	}
	wantRequests(t, c, "verify of two directories of one file", "1 read, 1 page, 2 stat")
}

// A snapshot that was replaced before its files were listed is an error, without a
// request of its own.
func TestVerifyReplaced(t *testing.T) {
	files := manyFiles(t, 20, 0, 0)
	store := inMemory(t, files)
	c := storetest.NewCounting(store)
	snap := open(t, checkpoint, bucket(c))
	replace(t, store, checkpoint+"/_metadata", files[checkpoint+"/_metadata"])
	if _, err := snap.Verify(ctx, reader.VerifyOptions{}, nil); !errors.Is(err, format.ErrChanged) {
		t.Errorf("error %v", err)
	}
	wantRequests(t, c, "verify of a snapshot that was replaced", "1 read, 1 page")
}

// With Read, everything is read, each small file in one request.
func TestVerifyReads(t *testing.T) {
	files := manyFiles(t, 100, 0, 0)
	c := storetest.NewCounting(inMemory(t, files))
	v, err := open(t, checkpoint, bucket(c)).Verify(ctx, reader.VerifyOptions{Read: true, DescriptionOnly: true}, nil)
	if err != nil || v.BytesRead != 300 || v.Unread != 0 {
		t.Errorf("%+v, %v", v, err)
	}
	wantRequests(t, c, "verify that reads", "101 read, 1 page")
}

// ls takes one list request per 1,000 directories and one read per snapshot, 16 of them
// at once. It does not keep what it read.
func TestListBudget(t *testing.T) {
	const n = 10_000
	store := mem.New()
	description := string(encode(t, model(list(relative("f", 200_000), 0), list(inline(noise(20_000)), 0))))
	for i := range n {
		storetest.Put(t, store, fmt.Sprintf("s3://b/savepoints/savepoint-%06d/_metadata", i), description)
	}
	c := storetest.NewCounting(store)
	most := uint64(0)
	var mu sync.Mutex
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	k := 0
	entries, err := reader.List(ctx, "s3a://b/savepoints", reader.ListOptions{Options: bucket(c), Opened: func(int) {
		mu.Lock()
		defer mu.Unlock()
		if k++; k%2500 == 0 {
			var m runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&m)
			most = max(most, m.HeapAlloc-before.HeapAlloc)
		}
	}})
	if err != nil || len(entries) != n {
		t.Fatal(len(entries), err)
	}
	for _, e := range entries {
		if e.State != reader.Unchecked || !e.NotLooked || e.NotChecked != 1 || e.ID != 7 || e.Bytes != int64(len(description))+200_000 || e.Time.IsZero() {
			t.Fatalf("%+v", e)
		}
	}
	if !entries[0].Newest || entries[1].Newest {
		t.Error("the newest is not marked")
	}
	wantRequests(t, c, "ls of 10,000 savepoints", "10000 read, 10 page")
	t.Logf("at most %d KiB in use", most>>10)
	if most > n*4<<10 {
		t.Errorf("%d bytes in use, for each snapshot %d", most, most/n)
	}
}

// Sixteen snapshots are opened at once.
func TestListOpensTogether(t *testing.T) {
	files := map[string]string{}
	for i := range 32 {
		files[fmt.Sprintf("s3://b/sp/savepoint-%d/_metadata", i)] = string(encode(t, model(list(inline("x"), 0))))
	}
	half := newTogether(16)
	c := storetest.NewCounting(inMemory(t, files)).WithWait(func(kind, _ string) {
		if kind == "read" {
			half.wait() // for ever, unless sixteen run at once
		}
	})
	if entries, err := reader.List(ctx, "s3://b/sp", reader.ListOptions{Options: bucket(c)}); err != nil || len(entries) != 32 {
		t.Fatal(len(entries), err)
	}
	if got := c.MaxRunning(); got != 16 {
		t.Errorf("%d requests at once", got)
	}
}

// A tree of jobs: a job's directory is listed and not read, a checkpoint read and not
// listed, and a checkpoint without _metadata both.
func TestListTree(t *testing.T) {
	description := string(encode(t, model(list(inline("x"), 0))))
	job := "s3://b/ckpt/0123456789abcdef0123456789abcdef/"
	files := map[string]string{job + "chk-1/_metadata": description, job + "chk-2/_metadata": description, job + "chk-3/half": "x",
		job + "shared/x": "x", job + "taskowned/y": "y", "s3://b/ckpt/a/b/savepoint-1/_metadata": description, "s3://b/ckpt/a/x.spt": string(pack(t, model(list(inline("hello"), 0)))),
		"s3://b/ckpt/cut/_metadata": description[:30], "s3://b/ckpt/text/_metadata": "hello, this is not a snapshot", "s3://b/ckpt/savepoint-9/x": "x"}
	c := storetest.NewCounting(inMemory(t, files))
	entries, err := reader.List(ctx, "s3://b/ckpt/", reader.ListOptions{Options: bucket(c)})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]reader.EntryState{}
	for _, e := range entries {
		got[strings.TrimPrefix(e.Path, "s3://b/ckpt/")] = e.State
	}
	want := map[string]reader.EntryState{"0123456789abcdef0123456789abcdef/chk-1": reader.Complete, "0123456789abcdef0123456789abcdef/chk-2": reader.Complete, "0123456789abcdef0123456789abcdef/chk-3": reader.Incomplete,
		"a/b/savepoint-1": reader.Complete, "a/x.spt": reader.Complete, "cut": reader.Damaged, "text": reader.Damaged, "savepoint-9": reader.Incomplete}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	lists := c.Named("list")
	for _, not := range []string{job + "chk-1/", job + "shared/", "s3://b/ckpt/cut/"} {
		if lists[not] > 0 {
			t.Errorf("%s was listed", not)
		}
	}
	wantRequests(t, c, "ls of a tree", "10 read, 6 page")
}

// Files are looked for if that is asked for, by listing.
func TestListFiles(t *testing.T) {
	files := manyFiles(t, 30, 10, 50)
	delete(files, checkpoint+"/f00003")
	c := storetest.NewCounting(inMemory(t, files))
	entries, err := reader.List(ctx, "s3://b/ckpt", reader.ListOptions{Options: bucket(c), Files: true})
	if err != nil || len(entries) != 1 || entries[0].State != reader.Incomplete || entries[0].Missing != 1 || entries[0].NotLooked {
		t.Errorf("%+v, %v", entries, err)
	}
	wantRequests(t, c, "ls that looks for files", "1 read, 4 page")
}

// Short reads of a file get what follows, and reads at the same time one request.
func TestWindows(t *testing.T) {
	state := noise(1 << 20)
	c := storetest.NewCounting(inMemory(t, map[string]string{"s3://b/sp/_metadata": string(encode(t, model(list(relative("f", 1<<20), 0), list(relative("g", 1000), 0)))), "s3://b/sp/f": state, "s3://b/sp/g": state[:1000]}))
	snap := open(t, "s3://b/sp", bucket(c))
	f, g := snap.Operators[0].Subtasks[0].Managed.Data, snap.Operators[0].Subtasks[1].Managed.Data
	if err := snap.LookUp(ctx, true); err != nil {
		t.Fatal(err)
	}
	c.Reset()
	read := func(st format.Stream, off, n int) {
		t.Helper()
		p := make([]byte, n)
		if k, err := snap.Source().ReadAt(ctx, st, p, int64(off)); err != nil || k != n || string(p) != state[off:off+n] {
			t.Errorf("%d bytes at %d: %d, %v", n, off, k, err)
		}
	}
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() { read(g, 0, 1000) })
	}
	for i := range 256 {
		read(f, i<<10, 1<<10) // the first 256 KiB
	}
	wg.Wait()
	wantRequests(t, c, "1,000 bytes 20 times, and 256 KiB in pieces", "2 read")
	read(f, 0, 1<<20)
	read(f, 1<<20-10, 10)
	read(f, 1<<20-10, 10)
	read(f, 300<<10, 0)
	wantRequests(t, c, "all of it, and its end", "2 read")
	if _, err := snap.Source().ReadAt(ctx, g, make([]byte, 11), 990); !errors.Is(err, format.ErrTruncated) {
		t.Errorf("past the end: %v", err)
	}
	c.Reset()
	// A reader that gives up does not fail the others.
	over, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := snap.Source().ReadAt(over, f, make([]byte, 10), 600<<10); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	read(f, 600<<10, 10)
}

// A file that is read on takes ever fewer requests, up to 2 MiB each, and two readers in
// one file get no byte twice.
func TestWindowsGrow(t *testing.T) {
	const size, piece = 8 << 20, 256 << 10
	state := noise(size)
	c := storetest.NewCounting(inMemory(t, map[string]string{"s3://b/sp/_metadata": string(encode(t, model(list(relative("f", size), 0)))), "s3://b/sp/f": state}))
	snap := open(t, "s3://b/sp", bucket(c))
	f := snap.Operators[0].Subtasks[0].Managed.Data
	if err := snap.LookUp(ctx, true); err != nil {
		t.Fatal(err)
	}
	c.Reset()
	read := func(off int) {
		t.Helper()
		p := make([]byte, piece)
		if _, err := snap.Source().ReadAt(ctx, f, p, int64(off)); err != nil || string(p) != state[off:off+piece] {
			t.Errorf("at %d: %v", off, err)
		}
	}
	read(size / 2)
	for off := 0; off < size; off += piece {
		read(off)
	}
	if n, _ := c.Bytes(); n != size {
		t.Errorf("%d bytes were read, expected %d", n, size)
	}
	// In KiB: 256 in the middle; 256, 1024, 2048 and 768 up to it; 1024, 2048 and 768.
	wantRequests(t, c, "8 MiB in pieces of 256 KiB", "8 read")
}

// Parts of a rope that are less than 256 KiB apart are read at once, others at the same
// time.
func TestRopeBudget(t *testing.T) {
	state := noise(8 << 20)
	c := storetest.NewCounting(inMemory(t, map[string]string{"s3://b/sp/_metadata": string(encode(t, model(list(relative("f", 8<<20), 0)))), "s3://b/sp/f": state}))
	snap := open(t, "s3://b/sp", bucket(c))
	f := snap.Operators[0].Subtasks[0].Managed.Data
	c.Reset()
	rope := &format.Concat{}
	var want strings.Builder
	for _, off := range []int64{0, 200 << 10, 400 << 10, 2 << 20, 2<<20 + 250<<10, 5 << 20} {
		rope.Parts = append(rope.Parts, format.Part{Of: f, Off: off, N: 1000})
		want.WriteString(state[off : off+1000])
	}
	p := make([]byte, rope.Size())
	if _, err := snap.Source().ReadAt(ctx, rope, p, 0); err != nil || string(p) != want.String() {
		t.Errorf("%v", err)
	}
	wantRequests(t, c, "six ranges of one file", "3 read, 1 page")
	if _, err := io.ReadAll(io.NewSectionReader(at{snap, rope}, 500, 3000)); err != nil {
		t.Error(err)
	}
}

// at reads a stream as an io.ReaderAt.
type at struct {
	snap *reader.Snapshot
	st   format.Stream
}

func (a at) ReadAt(p []byte, off int64) (int, error) {
	n := min(int64(len(p)), a.st.Size()-off)
	k, err := a.snap.Source().ReadAt(ctx, a.st, p[:n], off)
	if err == nil && k < len(p) {
		err = io.EOF
	}
	return k, err
}
