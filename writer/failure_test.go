package writer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"runtime"
	"runtime/metrics"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/fault"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
)

// severalFiles is a snapshot with state in files, beside it and merged, and
// inline.
func severalFiles(t testing.TB) map[string]string {
	t.Helper()
	in := map[string]string{"m": noise(99, 200<<10)}
	var handles []*format.OperatorHandle
	for i := range 4 {
		name := fmt.Sprintf("f%d", i)
		in["sp/"+name] = noise(uint64(i), 300<<10)
		handles = append(handles, handleOf(relative(name, 300<<10), 0, 100000))
	}
	handles = append(handles, merged("in://m", 5, 100<<10, "seg"), handleOf(inlined(noise(5, 50<<10)), 0))
	in["sp/_metadata"] = encoded(t, modelOf(handles...))
	return in
}

func inMem(t testing.TB, files map[string]string) *mem.Store {
	t.Helper()
	s := mem.New()
	for name, data := range files {
		storetest.Put(t, s, name, data)
	}
	return s
}

var errDisk = errors.New("a broken disk")

// Whatever fails: nothing under the target's name, nothing left over, and the
// error is what happened.
func TestFailures(t *testing.T) {
	in := severalFiles(t)
	source := inMem(t, in)
	faults := map[string]func(n int) storetest.Faults{
		"read": func(n int) storetest.Faults { return storetest.Faults{Read: n, Err: errDisk} },
		"broken": func(n int) storetest.Faults {
			return storetest.Faults{Broken: 1 << 30, BreakAfter: int64(n-1) * 30_000, Err: errDisk}
		},
		"create":    func(n int) storetest.Faults { return storetest.Faults{Create: n, Err: errDisk} },
		"write":     func(n int) storetest.Faults { return storetest.Faults{Write: n, Err: errDisk} },
		"commit":    func(n int) storetest.Faults { return storetest.Faults{Commit: n, Err: errDisk} },
		"disk full": func(n int) storetest.Faults { return storetest.Faults{Space: 1 + int64(n-1)*150_000} },
	}
	points := map[string]int{}
	for _, where := range []string{"mem", "local"} {
		for _, target := range []string{"out", "x.spt"} {
			for kind, fault := range faults {
				for n := 1; ; n++ {
					if n > 200 {
						t.Fatalf("%s %s %s never ends", where, target, kind)
					}
					store, dir := storage.Storage(mem.New()), ""
					if where == "local" {
						store, dir = local.New(), folderOf(t, nil)+"/"
					}
					from, to := storage.Storage(source), store
					var wrapped *storetest.Failing
					if kind == "read" || kind == "broken" {
						wrapped = storetest.NewFailing(source, fault(n))
						from = wrapped
					} else {
						wrapped = storetest.NewFailing(store, fault(n))
						to = wrapped
						if where == "local" {
							to = wrapped.WithAbilities()
						}
					}
					snap := openAt(t, "clean://sp", stores("clean", source, "in", source))
					o := Options{Stores: stores("in", from, "out", to), Jobs: 1 + n%3}
					if kind == "read" || kind == "broken" {
						failing, err := readerOf("in://sp", o)
						if err != nil {
							points[kind]++
							continue // it could not even be opened
						}
						snap = failing
					}
					_, err := Write(background, snap.View(), "out://"+dir+target, &o)
					var left []string
					if where == "mem" {
						left = storetest.Names(t, store, "", "")
					} else {
						left = names(tree(t, strings.TrimSuffix(dir, "/")))[1:]
					}
					if err == nil {
						sound(t, openAt(t, "out://"+dir+target, stores("in", source, "out", store)))
						break
					}
					points[kind]++
					want := errDisk
					if kind == "disk full" {
						want = storage.ErrNoSpace
					}
					if !errors.Is(err, want) {
						t.Errorf("%s %s %s %d: %v", where, target, kind, n, err)
					}
					if len(left) != 0 {
						t.Errorf("%s %s %s %d: left over: %v", where, target, kind, n, left)
					}
				}
			}
		}
	}
	for name, data := range in {
		if storetest.Read(t, source, name) != data {
			t.Errorf("%s changed", name)
		}
	}
	t.Logf("points of failure: %v", points)
}

// Cancelled at any moment: the same, and the error is the context's.
func TestCancelled(t *testing.T) {
	source := inMem(t, severalFiles(t))
	var cancelled, done int
	for _, where := range []string{"mem", "local"} {
		for _, target := range []string{"out", "x.spt"} {
			for n := 1; n < 200; n++ {
				store, dir := storage.Storage(mem.New()), ""
				if where == "local" {
					store, dir = local.New(), folderOf(t, nil)+"/"
				}
				ctx, cancel := context.WithCancel(background)
				var count atomic.Int64
				tick := func() {
					if count.Add(1) == int64(n) {
						cancel()
					}
				}
				to := storage.Storage(hooks{store, func(string, string) error { tick(); return nil }})
				if l, ok := store.(*local.Store); ok {
					to = moving{l, func(string, string) error { tick(); return nil }}
				}
				o := Options{Stores: stores("in", source, "out", to), Progress: func(int64) { tick() }}
				_, err := Write(ctx, openAt(t, "in://sp", o.Stores).View(), "out://"+dir+target, &o)
				cancel()
				left := storetest.Names(t, store, dir, "")
				if where == "local" {
					left = names(tree(t, strings.TrimSuffix(dir, "/")))[1:]
				}
				if err == nil {
					sound(t, openAt(t, "out://"+dir+target, stores("in", source, "out", store)))
					done++
					if count.Load() < int64(n) {
						break // it is never cancelled any more
					}
					continue
				}
				cancelled++
				if !errors.Is(err, context.Canceled) {
					t.Errorf("%s %s at %d: %v", where, target, n, err)
				}
				if len(left) != 0 {
					t.Errorf("%s %s at %d: left over: %v", where, target, n, left)
				}
			}
		}
	}
	t.Logf("cancelled %d times, done %d times", cancelled, done)
	if cancelled < 20 {
		t.Errorf("cancelled only %d times", cancelled)
	}
}

// An input that shrinks, grows, is replaced or goes while it is copied.
func TestInputThatChanges(t *testing.T) {
	for _, target := range []string{"out", "x.spt"} {
		for name, change := range map[string]func(dir string) error{
			"state shrinks":      func(dir string) error { return os.Truncate(dir+"/sp/f0", 1000) },
			"state grows":        func(dir string) error { return os.Truncate(dir+"/sp/f0", 400<<10) },
			"last state shrinks": func(dir string) error { return os.Truncate(dir+"/sp/f3", 300<<10-1) },
			"last state goes":    func(dir string) error { return os.Remove(dir + "/sp/f3") },
			"last state is another": func(dir string) error {
				return errors.Join(os.WriteFile(dir+"/new", []byte(noise(77, 300<<10)), 0o666), os.Rename(dir+"/new", dir+"/sp/f3"))
			},
			"_metadata shrinks": func(dir string) error { return os.Truncate(dir+"/sp/_metadata", 100) },
			"_metadata goes":    func(dir string) error { return os.Remove(dir + "/sp/_metadata") },
		} {
			t.Run(target+" "+name, func(t *testing.T) {
				dir := folderOf(t, severalFiles(t))
				base := local.New()
				// The change comes with the first bytes of the first state file.
				failing := storetest.NewFailing(base, storetest.Faults{Change: func() {
					if err := change(dir); err != nil {
						t.Error(err)
					}
				}})
				o := Options{Stores: stores(), Jobs: 1}
				late, err := readerOf("late://"+dir+"/sp", Options{Stores: stores("late", switching{base, failing}, "in", prefixed{base, dir + "/"})})
				if err != nil {
					t.Fatal(err)
				}
				out := folderOf(t, nil)
				_, err = Write(background, late.View(), out+"/"+target, &o)
				if !errors.Is(err, format.ErrChanged) {
					t.Errorf("error %v", err)
				}
				if left := names(tree(t, out)); len(left) != 1 {
					t.Errorf("left over: %v", left)
				}
			})
		}
	}
}

// What is read back differs from what was written.
func TestReadBackFindsDamage(t *testing.T) {
	source := inMem(t, severalFiles(t))
	for _, target := range []string{"out", "x.spt"} {
		store := mem.New()
		spoilt := spoiling{store}
		o := Options{Stores: stores("in", source, "out", spoilt)}
		if _, err := Write(background, openAt(t, "in://sp", o.Stores).View(), "out://"+target, &o); err != nil {
			t.Errorf("%s without reading back: %v", target, err)
		}
		store = mem.New()
		o = Options{Stores: stores("in", source, "out", spoiling{store}), ReadBack: true}
		_, err := Write(background, openAt(t, "in://sp", o.Stores).View(), "out://"+target, &o)
		if err == nil {
			t.Errorf("%s: the damage is not seen", target)
		}
		if left := storetest.Names(t, store, "", ""); len(left) != 0 {
			t.Errorf("%s: left over: %v", target, left)
		}
		// And where nothing is spoilt.
		o = Options{Stores: stores("in", source, "out", store), ReadBack: true}
		if r, err := Write(background, openAt(t, "in://sp", o.Stores).View(), "out://"+target, &o); err != nil || !r.ReadBack {
			t.Errorf("%s: %v", target, err)
		}
	}
}

// TestReadBackKeepsWhatItReplaces: a file that does not read back does not replace
// another, also in a store that shows nothing before Commit.
func TestReadBackKeepsWhatItReplaces(t *testing.T) {
	source, store := inMem(t, severalFiles(t)), mem.New()
	first := Options{Stores: stores("in", source, "out", store)}
	if _, err := Write(background, openAt(t, "in://sp", first.Stores).View(), "out://x.spt", &first); err != nil {
		t.Fatal(err)
	}
	before, err := store.Stat(background, "x.spt")
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Stores: stores("in", source, "out", spoiling{store}), ReadBack: true, Overwrite: true}
	if _, err := Write(background, openAt(t, "in://sp", o.Stores).View(), "out://x.spt", &o); !errors.Is(err, format.ErrCorrupt) {
		t.Errorf("the damage is not seen: %v", err)
	}
	after, err := store.Stat(background, "x.spt")
	if err != nil || after != before {
		t.Errorf("%+v, expected %+v: %v", after, before, err)
	}
	if left := storetest.Names(t, store, "", ""); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
	o.Stores = stores("in", source, "out", store)
	r, err := Write(background, openAt(t, "in://sp", o.Stores).View(), "out://x.spt", &o)
	if err != nil || !r.ReadBack {
		t.Fatal(err)
	}
	if after, err := store.Stat(background, "x.spt"); err != nil || after.Version == before.Version || after.Size != r.Written {
		t.Errorf("not replaced: %+v, %v", after, err)
	}
	if left := storetest.Names(t, store, "", ""); len(left) != 1 {
		t.Errorf("left over: %v", left)
	}
	// A Builder reads back in such a store too.
	for _, to := range []storage.Storage{store, spoiling{store}} {
		b, err := NewBuilder(background, "out://own.spt", &BuilderOptions{Stores: stores("out", to), ReadBack: true, Compression: spt.None})
		if err != nil {
			t.Fatal(err)
		}
		l := b.Operator("op", 1, 1).Subtask(0).List("l")
		for range 200 {
			_ = l.Add(noise(1, 100))
		}
		_, err = b.Seal(background)
		if bad := to != storage.Storage(store); (err != nil) != bad {
			t.Errorf("built: %v", err)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		left := storetest.Names(t, store, "", "")
		if want := []string{"own.spt", "x.spt"}; err == nil && !slices.Equal(left, want) || err != nil && !slices.Equal(left, want[1:]) {
			t.Errorf("%v left after %v", left, err)
		}
		if err := store.Delete(background, "own.spt"); err != nil {
			t.Fatal(err)
		}
	}
}

// TestMemory copies and packs streams of gigabytes with a small heap.
func TestMemory(t *testing.T) {
	testenv.Long(t, "writes gigabytes")
	const size = 5 << 29 // 2.5 GiB
	endless := &generated{Store: mem.New(), size: size}
	storetest.Put(t, endless.Store, "sp/_metadata", encoded(t, modelOf(handleOf(&format.File{Path: text("big"), Relative: true, Length: size}, 0, 1<<20, 1<<31))))
	sink := &sinking{Store: mem.New()}
	for _, target := range []string{"out", "x.spt"} {
		o := Options{Stores: stores("in", endless, "out", sink), Compression: spt.S2, Jobs: 2}
		snap := openAt(t, "in://sp", o.Stores)
		before := sink.n.Load()
		runtime.GC() // what other tests left
		stop, most := make(chan struct{}), make(chan uint64)
		go watchHeap(stop, most)
		start := time.Now()
		_, err := Write(background, snap.View(), "out://"+target, &o)
		close(stop)
		live := <-most
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		t.Logf("%s: %d MiB in, %d MiB out, %.1f s, at most %d MiB of live heap", target, size>>20, (sink.n.Load()-before)>>20, time.Since(start).Seconds(), live>>20)
		if live > 64<<20 {
			t.Errorf("%s: %d MiB of live heap", target, live>>20)
		}
	}
}

func watchHeap(stop chan struct{}, most chan uint64) {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	var max uint64
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			most <- max
			return
		case <-tick.C:
			metrics.Read(sample)
			if n := sample[0].Value.Uint64(); n > max {
				max = n
			}
		}
	}
}

// generated is a store in which "sp/big" is endless for all practical purposes.
type generated struct {
	*mem.Store
	size int64
}

func (g *generated) info() storage.Info {
	return storage.Info{Name: "sp/big", Size: g.size, Version: "1"}
}

func (g *generated) Stat(ctx context.Context, name string) (storage.Info, error) {
	if name == "sp/big" {
		return g.info(), nil
	}
	return g.Store.Stat(ctx, name)
}

// List yields it after _metadata.
func (g *generated) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for info, err := range g.Store.List(ctx, prefix, delimiter) {
			if !yield(info, err) {
				return
			}
		}
		yield(g.info(), nil)
	}
}

func (g *generated) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	if name != "sp/big" {
		return g.Store.ReadRange(ctx, name, off, n, pin)
	}
	start, end := ranged.Clip(g.size, off, n)
	return io.NopCloser(&generating{start, end}), g.info(), nil
}

type generating struct{ pos, end int64 }

var pattern = []byte(noise(1, 1<<20))

func (g *generating) Read(p []byte) (int, error) {
	if g.pos == g.end {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), g.end-g.pos)], pattern[g.pos%int64(len(pattern)):])
	g.pos += int64(n)
	return n, nil
}

// sinking keeps the description of a snapshot and no state.
type sinking struct {
	*mem.Store
	n atomic.Int64
}

func (s *sinking) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	if strings.HasSuffix(name, "_metadata") {
		return s.Store.Create(ctx, name, o)
	}
	return &sunk{s: s, name: name}, nil
}

type sunk struct {
	s    *sinking
	name string
	size int64
}

func (w *sunk) Write(p []byte) (int, error) {
	w.size += int64(len(p))
	w.s.n.Add(int64(len(p)))
	return len(p), nil
}
func (w *sunk) Commit(context.Context) (storage.Info, error) {
	return storage.Info{Name: w.name, Size: w.size, Version: "1"}, nil
}
func (w *sunk) Abort(context.Context) error { return nil }

// Cancelled before each system call that changes the disk, and right after it:
// the target is there and whole, or nothing is.
func TestCancelledAtEachCall(t *testing.T) {
	dir := folderOf(t, severalFiles(t))
	o := Options{Stores: stores("in", prefixed{local.New(), dir + "/"})}
	snap := openAt(t, dir+"/sp", o.Stores)
	out := folderOf(t, nil)
	for _, target := range []string{out + "/out", out + "/x.spt"} {
		cancelled := 0
		for n := int64(1); ; n++ {
			if n > 500 {
				t.Fatal("it never ends")
			}
			ctx, cancel := context.WithCancel(background)
			var calls atomic.Int64
			ctx = fault.With(ctx, func(context.Context, string, string) error {
				if calls.Add(1) == n {
					cancel()
				}
				return nil
			})
			_, err := Write(ctx, snap.View(), target, &o)
			cancel()
			switch {
			case err == nil:
				sound(t, openAt(t, target, o.Stores))
				if err := os.RemoveAll(target); err != nil {
					t.Fatal(err)
				}
			case errors.Is(err, context.Canceled):
				cancelled++
			default:
				t.Errorf("%s at call %d: %v", target, n, err)
			}
			if left := names(tree(t, out)); len(left) != 1 {
				t.Fatalf("%s at call %d: left over: %v", target, n, left)
			}
			if calls.Load() < n {
				t.Logf("%s: %d calls, cancelled at %d of them", target, n-1, cancelled)
				break
			}
		}
		if cancelled < 5 {
			t.Errorf("%s: cancelled only %d times", target, cancelled)
		}
	}
}

// A system call that fails: the target is not there, nothing is left over, and
// the error is what happened.
func TestFailedAtEachCall(t *testing.T) {
	dir := folderOf(t, severalFiles(t))
	o := Options{Stores: stores("in", prefixed{local.New(), dir + "/"}), Jobs: 1}
	snap := openAt(t, dir+"/sp", o.Stores)
	for _, target := range []string{"out", "new/folders/out", "x.spt", "new/folder/x.spt"} {
		failed := map[string]int{}
		for n := int64(1); ; n++ {
			if n > 500 {
				t.Fatal("it never ends")
			}
			out := folderOf(t, nil)
			call, name := "", ""
			var calls atomic.Int64
			ctx := fault.With(background, func(_ context.Context, c, what string) error {
				if calls.Add(1) == n {
					call, name = c, what
					return &os.PathError{Op: c, Path: what, Err: errDisk}
				}
				return nil
			})
			_, err := Write(ctx, snap.View(), out+"/"+target, &o)
			if call == "" {
				if err != nil {
					t.Errorf("%s: %v", target, err)
				}
				break
			}
			failed[call]++
			left := names(tree(t, out))
			if err == nil {
				t.Errorf("%s: %s of %s failed without a word", target, call, name)
			} else if !errors.Is(err, errDisk) {
				t.Errorf("%s: %s of %s: %v", target, call, name, err)
			}
			if _, there := tree(t, out)["/"+target]; there {
				// What is there can only be the whole: its name could not be
				// made durable, and that is said.
				sound(t, openAt(t, out+"/"+target, o.Stores))
				if call != "sync directory" {
					t.Errorf("%s: %s failed, and it is there", target, call)
				}
			} else if len(left) != 1 {
				t.Errorf("%s: %s of %s: left over: %v", target, call, name, left)
			}
		}
		t.Logf("%s: %v", target, failed)
		if len(failed) < 4 {
			t.Errorf("%s: failed at %v", target, failed)
		}
	}
}
