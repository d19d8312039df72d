package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

// bucketOf resolves s3: URIs to a store whose names are URIs.
func bucketOf(store storage.Storage) storage.Resolver {
	r := route.New(local.New())
	resolve := func(_ context.Context, uri string) (storage.Storage, string, error) {
		return store, format.CanonicalURI(uri), nil
	}
	r.Add("s3", resolve)
	r.Add("s3a", resolve)
	r.Add("s3p", resolve)
	return r
}

// filesInBucket is a snapshot at s3://b/in with n files next to _metadata.
func filesInBucket(t testing.TB, n int) *mem.Store {
	t.Helper()
	files := map[string]string{}
	var handles []*format.OperatorHandle
	for i := range n {
		name := fmt.Sprintf("f%04d", i)
		files["s3://b/in/"+name] = noise(uint64(i), 100_000+i)
		handles = append(handles, handleOf(relative(name, 100_000+i), 0))
	}
	sp := modelOf(handles...)
	sp.Operators[0].MaxParallelism = int32(max(n, 128))
	files["s3://b/in/_metadata"] = encoded(t, sp)
	return inMem(t, files)
}

// A copy within a bucket moves no state: it takes n copies and, for up to 1,000 files,
// four requests: the description, a list of its directory, a list of the target, and the
// new description.
func TestCopyBudget(t *testing.T) {
	for _, n := range []int{0, 1, 100, 1500} {
		store := filesInBucket(t, n)
		c := storetest.NewCounting(store)
		stores := bucketOf(c.WithCopier())
		snap := openAt(t, "s3a://b/in", stores)
		sp := *snap.Savepoint
		sp.ID++ // an edit
		o := &Options{Stores: stores}
		r, err := Write(background, snap.With(&sp).View(), "s3://b/out", o)
		if err != nil {
			t.Fatal(err)
		}
		lists := 1 + (n+1+999)/1000 // of the target, and of n files and _metadata
		if n == 0 {
			lists = 1
		}
		want := map[string]int{"read": 1, "page": lists, "copy": n, "commit": n + 1, "stat": 0, "delete": 0}
		for kind, k := range want {
			if got := c.Count(kind); got != k {
				t.Errorf("%d files: %d %s requests, want %d", n, got, kind, k)
			}
		}
		read, written := c.Bytes()
		t.Logf("%d files: %d requests, %d bytes read, %d written of %d", n, c.Requests(), read, written, r.Written)
		if size := snap.Container.Size; read != size || written > size+100 {
			t.Errorf("%d files: %d bytes read and %d written, _metadata has %d", n, read, written, size)
		}
		if r.Copied != n || r.Linked != 0 {
			t.Errorf("%+v", r)
		}
		out := openAt(t, "s3://b/out", bucketOf(store))
		if got := sameStreams(t, out, openAt(t, "s3://b/in", bucketOf(store))); got != n {
			t.Errorf("%d streams", got)
		}
		sound(t, out)
	}
}

// References that stay where they are take no request at all.
func TestKeptReferencesBudget(t *testing.T) {
	files := map[string]string{}
	var handles []*format.OperatorHandle
	for i := range 50 {
		name := fmt.Sprintf("s3://b/ckpt/0123456789abcdef0123456789abcdef/shared/f%d", i)
		files[name] = "state"
		handles = append(handles, handleOf(absoluteFile("s3p"+name[2:], 5), 0))
	}
	files["s3://b/ckpt/0123456789abcdef0123456789abcdef/chk-1/_metadata"] = encoded(t, modelOf(handles...))
	c := storetest.NewCounting(inMem(t, files))
	stores := bucketOf(c.WithCopier())
	snap := openAt(t, "s3://b/ckpt/0123456789abcdef0123456789abcdef/chk-1", stores)
	sp := *snap.Savepoint
	sp.ID++
	if _, err := Write(background, snap.With(&sp).View(), "s3://b/out", &Options{Stores: stores, KeepReferences: true, KeepMissing: true}); err != nil {
		t.Fatal(err)
	}
	if got := c.Requests(); got != 3 || c.Count("page") != 1 {
		t.Errorf("%d requests: %v", got, c.Counts())
	}
	// A target that is one of the files is refused all the same, also without a look.
	_, err := Prepare(background, snap.With(&sp).View(), "s3://b/ckpt/0123456789abcdef0123456789abcdef/shared/f7", &Options{Stores: stores, KeepReferences: true, KeepMissing: true})
	refusedTarget(t, err, "a file of the input")
}

// The service copies 16 files at once, whatever Jobs is by default; files that pass
// through this process are written four at a time.
func TestServiceCopiesTogether(t *testing.T) {
	for _, x := range []struct {
		jobs, want int
		copier     bool
	}{{0, 16, true}, {2, 2, true}, {0, 4, false}} {
		store := filesInBucket(t, 64)
		var mu sync.Mutex
		waiting := 0
		gate := make(chan struct{})
		c := storetest.NewCounting(store).WithWait(func(kind, name string) {
			if kind != "commit" || strings.HasSuffix(name, "_metadata") {
				return
			}
			mu.Lock()
			if waiting++; waiting == x.want {
				close(gate)
			}
			mu.Unlock()
			<-gate // for ever, unless as many run at once
		})
		to := storage.Storage(c)
		if x.copier {
			to = c.WithCopier()
		}
		stores := bucketOf(to)
		if _, err := Write(background, openAt(t, "s3://b/in", stores).View(), "s3://b/out", &Options{Stores: stores, Jobs: x.jobs}); err != nil {
			t.Fatal(err)
		}
		if got := c.MaxRunning(); got != x.want && x.jobs > 0 {
			t.Errorf("%+v: %d at once", x, got)
		}
	}
}

// A rope of large ranges is copied range by range, what is between them is written.
func TestServiceRope(t *testing.T) {
	big := noise(1, 12<<20)
	files := map[string]string{"s3://b/in/f": big, "s3://b/in/g": noise(2, 6<<20), "s3://b/in/_metadata": encoded(t, modelOf(handleOf(relative("f", 12<<20), 0), handleOf(relative("g", 6<<20), 0)))}
	store := inMem(t, files)
	c := storetest.NewCounting(store)
	stores := bucketOf(c.WithCopier())
	snap := openAt(t, "s3://b/in", stores)
	subs := snap.Operators[0].Subtasks
	f, g := subs[0].Managed.Data, subs[1].Managed.Data
	inner := &format.Concat{Parts: []format.Part{{Of: f, Off: 100, N: 6 << 20}, {Of: g, Off: 0, N: 6 << 20}}}
	rope := &format.Concat{As: f, Parts: []format.Part{
		{Of: inlined("head"), N: 4}, {Of: inner, Off: 10, N: inner.Size() - 20}, {Of: f, Off: 5, N: 1000}, {Of: f, Off: 5000, N: 7}, {Of: f, Off: 1 << 20, N: 8 << 20},
	}}
	var want strings.Builder
	want.WriteString("head" + big[110:100+6<<20] + files["s3://b/in/g"][:6<<20-10] + big[5:1005] + big[5000:5007] + big[1<<20:9<<20])
	sp := modelOf(handleOf(rope, 0))
	for _, readBack := range []bool{false, true} {
		c.Reset()
		out := fmt.Sprintf("s3://b/out-%v", readBack)
		r, err := Write(background, snap.With(sp).View(), out, &Options{Stores: stores, ReadBack: readBack})
		if err != nil {
			t.Fatal(err)
		}
		name := ""
		for _, n := range storetest.Names(t, store, out+"/", "") {
			if !strings.HasSuffix(n, "_metadata") {
				name = n
			}
		}
		if got := storetest.Read(t, store, name); got != want.String() {
			t.Errorf("the rope is %d bytes, want %d", len(got), want.Len())
		}
		if c.Count("copy") != 3 || r.Copied != 1 {
			t.Errorf("%v, %+v", c.Counts(), r)
		}
		if read, _ := c.Bytes(); !readBack && read > 2<<20 || readBack && read < 2*int64(want.Len()) {
			t.Errorf("%d bytes read", read)
		}
	}
}

// miscopying copies other bytes than were asked for.
type miscopying struct{ *mem.Store }

func (m miscopying) CopyRange(ctx context.Context, w storage.Writer, _ storage.Storage, name string, off, n int64, pin storage.Version) error {
	body, info, err := m.ReadRange(ctx, name, off, n, pin)
	if err != nil {
		return err
	}
	defer body.Close()
	p, err := io.ReadAll(body)
	if err != nil {
		return err
	}
	p[info.Size/2] ^= 1
	_, err = w.Write(p)
	return err
}

// Reading back compares what the service copied with the input.
func TestReadBackOfServiceCopies(t *testing.T) {
	store := filesInBucket(t, 5)
	stores := bucketOf(miscopying{store})
	snap := openAt(t, "s3://b/in", stores)
	_, err := Write(background, snap.View(), "s3://b/out", &Options{Stores: stores, ReadBack: true})
	if err == nil || !strings.Contains(err.Error(), "what the service copied") {
		t.Errorf("error %v", err)
	}
	if left := storetest.Names(t, store, "s3://b/out", ""); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	stores = bucketOf(store)
	if r, err := Write(background, openAt(t, "s3://b/in", stores).View(), "s3://b/out", &Options{Stores: stores, ReadBack: true}); err != nil || r.Copied != 5 || !r.ReadBack {
		t.Errorf("%+v, %v", r, err)
	}
}

// The input that changes: before its files were looked up, and while they are copied, it
// is an error; afterwards the result is the snapshot that was opened.
func TestServiceCopyOfInputThatChanges(t *testing.T) {
	put := func(t *testing.T, s *mem.Store, name, data string) {
		t.Helper()
		if err := s.Delete(background, name); err != nil {
			t.Fatal(err)
		}
		storetest.Put(t, s, name, data)
	}
	for name, change := range map[string]func(t *testing.T, s *mem.Store){
		"description": func(t *testing.T, s *mem.Store) {
			put(t, s, "s3://b/in/_metadata", storetest.Read(t, s, "s3://b/in/_metadata"))
		},
		"file": func(t *testing.T, s *mem.Store) { put(t, s, "s3://b/in/f0002", noise(9, 100_002)) },
		"gone": func(t *testing.T, s *mem.Store) { _ = s.Delete(background, "s3://b/in/f0002") },
	} {
		for _, when := range []string{"opened", "planned"} {
			store := filesInBucket(t, 5)
			before := objects(t, store, "s3://b/in/")
			stores := bucketOf(store)
			snap := openAt(t, "s3://b/in", stores)
			if when == "opened" && name != "description" {
				continue // then it is the file, or missing
			}
			var plan *Plan
			var err error
			if when == "planned" {
				if plan, err = Prepare(background, snap.View(), "s3://b/out", &Options{Stores: stores}); err != nil {
					t.Fatal(err)
				}
			}
			change(t, store)
			if plan == nil {
				plan, err = Prepare(background, snap.View(), "s3://b/out", &Options{Stores: stores})
			}
			if err == nil {
				_, err = plan.Write(background)
			}
			left := objects(t, store, "s3://b/out/")
			if name == "description" && when == "planned" {
				// _metadata is copied as it is here, at the version that was opened.
				if !errors.Is(err, storage.ErrChanged) && (err != nil || left["_metadata"] != before["_metadata"]) {
					t.Errorf("%s %s: %v", name, when, err)
				}
				continue
			}
			if !errors.Is(err, format.ErrChanged) && !errors.Is(err, storage.ErrChanged) && !errors.Is(err, storage.ErrNotExist) {
				t.Errorf("%s %s: %v", name, when, err)
			}
			if len(left) > 0 {
				t.Errorf("%s %s: left over: %v", name, when, names(left))
			}
		}
	}
}

// Whatever request fails, or whatever answer is lost: the target is not there or whole,
// and nothing is deleted that this run did not write.
func TestServiceCopyFailures(t *testing.T) {
	const n = 12
	points := map[string]int{}
	for kind, fault := range map[string]func(k int) storetest.Faults{
		"copy":                       func(k int) storetest.Faults { return storetest.Faults{Copy: k, Err: errDisk} },
		"create":                     func(k int) storetest.Faults { return storetest.Faults{Create: k, Err: errDisk} },
		"commit":                     func(k int) storetest.Faults { return storetest.Faults{Commit: k, Err: errDisk} },
		"lost":                       func(k int) storetest.Faults { return storetest.Faults{Lost: k, Err: errDisk} },
		"lost, and the deletion too": func(k int) storetest.Faults { return storetest.Faults{Lost: k, Delete: 1, Err: errDisk} },
	} {
		for k := 1; ; k++ {
			if k > 100 {
				t.Fatal("it never ends")
			}
			store := filesInBucket(t, n)
			storetest.Put(t, store, "s3://b/other", "not ours")
			// Of another writer, in the directory of the target: an object store lists it
			// only after the target was checked.
			foreign := "s3://b/out/foreign"
			stores := bucketOf(storetest.NewFailing(store, fault(k)).WithCopier())
			plan, err := Prepare(background, openAt(t, "s3://b/in", bucketOf(store)).View(), "s3://b/out", &Options{Stores: stores, Jobs: 1 + k%4})
			if err != nil {
				t.Fatal(err)
			}
			storetest.Put(t, store, foreign, "not ours")
			before := objects(t, store, "s3://b/in/")
			_, err = plan.Write(background)
			if got := storetest.Read(t, store, foreign); got != "not ours" {
				t.Errorf("%s %d: %q", kind, k, got)
			}
			if after := objects(t, store, "s3://b/in/"); !slices.Equal(names(before), names(after)) {
				t.Errorf("%s %d: the input has %v", kind, k, names(after))
			}
			left := objects(t, store, "s3://b/out/")
			if err == nil {
				sameStreams(t, openAt(t, "s3://b/out", bucketOf(store)), openAt(t, "s3://b/in", bucketOf(store)))
				break
			}
			points[kind]++
			if !errors.Is(err, errDisk) {
				t.Errorf("%s %d: %v", kind, k, err)
			}
			_, whole := left["_metadata"]
			switch {
			case whole && kind == "lost, and the deletion too":
				sameStreams(t, openAt(t, "s3://b/out", bucketOf(store)), openAt(t, "s3://b/in", bucketOf(store)))
				if !strings.Contains(err.Error(), "may exist") {
					t.Errorf("%s %d: %v", kind, k, err)
				}
			case whole:
				t.Errorf("%s %d: the target is there after %v", kind, k, err)
			case len(left) != 1 && kind != "lost, and the deletion too":
				t.Errorf("%s %d: left over: %v", kind, k, names(left))
			case len(left) > 2 || len(left) == 2 && !strings.Contains(err.Error(), "could not be removed"):
				t.Errorf("%s %d: left over: %v, %v", kind, k, names(left), err)
			}
		}
	}
	t.Logf("points of failure: %v", points)
	if points["copy"] != n || points["lost"] != n+1 {
		t.Errorf("points of failure: %v", points)
	}
}
