package watch

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

// bench is a store with checkpoint directories, and what reading each of them returns.
type bench struct {
	t        *testing.T
	store    *mem.Store
	down     error // of every list
	reads    map[string]func() (*Checkpoint, error)
	tries    map[string]int
	now      time.Time
	events   []string
	problems []string
	w        *Watcher
}

const at = "s3://b/chk"

func newBench(t *testing.T, o Options) *bench {
	t.Helper()
	b := &bench{t: t, store: mem.New(), reads: map[string]func() (*Checkpoint, error){}, tries: map[string]int{}, now: time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)}
	r := route.New(local.New())
	r.Add("s3", func(_ context.Context, uri string) (storage.Storage, string, error) {
		return listing{b.store, b}, uri, nil
	})
	o.Roots, o.Reader, o.Depth, o.Now = []string{at}, reader.Options{Stores: r}, 2, func() time.Time { return b.now }
	if o.Window == 0 {
		o.Window = 20
	}
	o.Read = func(_ context.Context, path string) (*Checkpoint, error) {
		b.tries[path]++
		return b.reads[path]()
	}
	o.Event = func(e Event) {
		word := "resolved"
		if e.Firing {
			word = "firing"
		}
		b.events = append(b.events, fmt.Sprintf("%s %s %s %d %s", e.Job, e.Rule, word, e.Checkpoint.ID, strings.Join(e.For, ",")))
	}
	o.Problem = func(p Problem) { b.problems = append(b.problems, fmt.Sprint(p.Reason, " ", p.Path, ": ", p.Err)) }
	b.w = New(o)
	return b
}

// listing fails where the bench says so.
type listing struct {
	storage.Storage
	b *bench
}

func (l listing) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	if l.b.down != nil {
		return func(yield func(storage.Info, error) bool) { yield(storage.Info{}, l.b.down) }
	}
	return l.Storage.List(ctx, prefix, delimiter)
}

// put makes the directory of a checkpoint, which was written some minutes after noon.
func (b *bench) put(job string, id int64, minute int, change ...func(*Checkpoint)) string {
	b.t.Helper()
	path := fmt.Sprintf("%s/%s/chk-%d", at, job, id)
	if job == "" {
		path = fmt.Sprintf("%s/chk-%d", at, id)
	}
	storetest.Put(b.t, b.store, path+"/_metadata", "m")
	c := &Checkpoint{Path: path, ID: id, Written: time.Date(2026, 11, 30, 12, minute, 0, 0, time.UTC)}
	for _, f := range change {
		f(c)
	}
	b.reads[path] = func() (*Checkpoint, error) { return c, nil }
	return path
}

// fails makes reading a directory return an error.
func (b *bench) fails(path string, err error) {
	b.reads[path] = func() (*Checkpoint, error) { return nil, err }
}

func (b *bench) remove(path string) {
	b.t.Helper()
	if err := b.store.Delete(b.t.Context(), path+"/_metadata"); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) look() []Problem {
	b.t.Helper()
	all, err := b.w.Look(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return all
}

// job returns the status of the only job.
func (b *bench) job() Job {
	b.t.Helper()
	jobs := b.w.Status()[0].Jobs
	if len(jobs) != 1 {
		b.t.Fatalf("%d jobs", len(jobs))
	}
	return jobs[0]
}

var (
	notThere   = &storage.Error{Op: "read", Name: "x", Err: storage.ErrNotExist}
	corrupt    = format.Errorf(format.ErrCorrupt, "cut")
	errOffline = errors.New("no route to host")
)

func TestReadsEachOnce(t *testing.T) {
	b := newBench(t, Options{})
	if problems := b.look(); len(problems) > 0 || len(b.w.Status()[0].Jobs) > 0 {
		t.Errorf("a root that does not exist: %v", problems)
	}
	one := b.put("", 1, 1)
	b.look()
	two := b.put("", 2, 2)
	b.look()
	b.look()
	if b.tries[one] != 1 || b.tries[two] != 1 {
		t.Errorf("reads: %v", b.tries)
	}
	j := b.job()
	if j.Newest.ID != 2 || j.First.ID != 1 || j.Directories != 2 || j.Span.Checkpoints != 1 || j.Span.Seconds != 60 {
		t.Errorf("%+v", j)
	}
	if s := b.w.Status()[0]; s.Reads != 2 || !s.LastSuccess.Equal(b.now) {
		t.Errorf("%+v", s)
	}
}

func TestJobsOfARoot(t *testing.T) {
	b := newBench(t, Options{})
	b.put("prod/orders", 7, 1)
	b.put("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 3, 2)
	b.put("savepoint-a1b2/x", 1, 3)   // a savepoint's own directories are not searched
	b.put("one/two/three", 4, 4)      // below --depth
	b.put("prod/orders/shared", 5, 5) // next to chk-7
	b.look()
	var got []string
	for _, j := range b.w.Status()[0].Jobs {
		got = append(got, fmt.Sprint(j.Name, " ", j.Newest.ID))
	}
	if want := []string{"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa 3", "prod/orders 7"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A directory above the newest is a checkpoint that is being written: it is tried at
// every look. One below it failed, and is tried less and less often.
func TestDirectoriesWithoutMetadata(t *testing.T) {
	b := newBench(t, Options{})
	failed, running := b.put("", 1, 1), b.put("", 3, 3)
	b.put("", 2, 2)
	b.fails(failed, notThere)
	b.fails(running, notThere)
	for range 200 {
		if problems := b.look(); len(problems) > 0 {
			t.Fatal(problems)
		}
	}
	if b.tries[running] != 200 {
		t.Errorf("%d tries of a checkpoint that is being written", b.tries[running])
	}
	if n := b.tries[failed]; n < 5 || n > 10 { // 1, 2, 4, … looks, at most 64
		t.Errorf("%d tries of one that failed", n)
	}
	b.put("", 3, 3)
	b.look()
	if j := b.job(); j.Newest.ID != 3 {
		t.Errorf("newest %d", j.Newest.ID)
	}
}

func TestHalfWritten(t *testing.T) {
	b := newBench(t, Options{})
	b.put("", 1, 1)
	half := b.put("", 2, 2)
	b.fails(half, corrupt)
	b.look()
	if len(b.problems) > 0 || b.job().Newest.ID != 1 || b.job().Damaged != 0 {
		t.Errorf("%v, %+v", b.problems, b.job())
	}
	for range 20 {
		b.look()
	}
	if want := []string{"damaged " + half + ": " + corrupt.Error()}; !slices.Equal(b.problems, want) || b.job().Damaged != 1 || b.w.Status()[0].Errors[Damaged] != 1 {
		t.Errorf("%q, %+v", b.problems, b.w.Status()[0])
	}
	if b.tries[half] > 8 {
		t.Errorf("%d tries", b.tries[half])
	}
	b.put("", 2, 2)
	for range 70 {
		b.look()
	}
	if j := b.job(); j.Newest.ID != 2 || j.Damaged != 0 {
		t.Errorf("written to the end: %+v", j)
	}

	once := newBench(t, Options{Tries: 1})
	once.fails(once.put("", 1, 1), corrupt)
	if problems := once.look(); len(problems) != 1 || problems[0].Reason != Damaged {
		t.Errorf("one look only: %v", problems)
	}
}

func TestRemoved(t *testing.T) {
	b := newBench(t, Options{})
	b.put("", 1, 1)
	two := b.put("", 2, 2)
	b.look()
	b.remove(two)
	b.look()
	if j := b.job(); j.Newest.ID != 1 || j.First.ID != 1 || j.Span.Checkpoints != 0 {
		t.Errorf("%+v", j)
	}
	b.put("", 3, 3)
	b.look()
	if j := b.job(); j.Newest.ID != 3 || j.First.ID != 1 || j.Span.Checkpoints != 2 {
		t.Errorf("what was removed is remembered: %+v", j)
	}
	b.remove(at + "/chk-1")
	b.remove(at + "/chk-3")
	b.look()
	if s := b.w.Status()[0]; len(s.Jobs) != 0 {
		t.Errorf("%+v", s)
	}
}

// A job that starts again without its history begins with chk-1.
func TestIDsBeginAgain(t *testing.T) {
	b := newBench(t, Options{})
	b.put("", 99, 1)
	b.put("", 100, 2)
	b.look()
	b.put("", 1, 3)
	b.look()
	if j := b.job(); j.Newest.ID != 1 || j.Span.Checkpoints != 2 {
		t.Errorf("%+v", j)
	}
}

func TestMissingFiles(t *testing.T) {
	b := newBench(t, Options{})
	b.put("", 1, 1)
	b.put("", 2, 2, func(c *Checkpoint) { c.MissingFiles = 1 })
	b.look()
	if j := b.job(); j.Newest.ID != 2 || j.Complete.ID != 1 {
		t.Errorf("newest %d, complete %d", j.Newest.ID, j.Complete.ID)
	}
}

func TestManyAtTheFirstLook(t *testing.T) {
	b := newBench(t, Options{Window: 5})
	for id := range int64(100) {
		b.put("", id, int(id)/2)
	}
	b.look()
	b.look()
	if len(b.tries) != 5 || b.job().First.ID != 95 {
		t.Errorf("reads: %v", b.tries)
	}
	for id := range int64(20) {
		b.put("", 100+id, 55)
	}
	b.look()
	if len(b.w.roots[0].jobs[""].history) != 5 || b.job().First.ID != 115 {
		t.Errorf("%+v", b.job())
	}
}

func TestUnreachable(t *testing.T) {
	b := newBench(t, Options{})
	path := b.put("", 1, 1)
	b.look()
	b.down = errOffline
	pauses := []time.Duration{}
	for range 8 {
		b.look()
		pauses = append(pauses, b.w.pause(b.w.roots[0], 30*time.Second))
	}
	m := time.Minute
	if want := []time.Duration{m, 2 * m, 4 * m, 8 * m, 10 * m, 10 * m, 10 * m, 10 * m}; !slices.Equal(pauses, want) {
		t.Errorf("pauses %v", pauses)
	}
	if s := b.w.Status()[0]; s.Errors[List] != 8 || s.Jobs[0].Newest.ID != 1 {
		t.Errorf("what was known is kept: %+v", s)
	}
	b.down = nil
	b.fails(b.put("", 2, 2), errOffline)
	b.look()
	if s := b.w.Status()[0]; s.Errors[Read] != 1 {
		t.Errorf("%+v", s)
	}
	b.put("", 2, 2)
	b.look()
	b.look()
	want := []string{"list : no route to host", "read " + at + "/chk-2: no route to host", "list : <nil>"}
	if !slices.Equal(b.problems, want) {
		t.Errorf("problems %q", b.problems)
	}
	if got := b.w.pause(b.w.roots[0], 30*time.Second); got != 30*time.Second || b.tries[path] != 1 {
		t.Errorf("pause %v, reads %v", got, b.tries)
	}
}

func TestEvents(t *testing.T) {
	b := newBench(t, Options{Rules: []Rule{{Name: "large"}, {Name: "old", OlderThan: 10 * time.Minute}}})
	holds := func(c *Checkpoint) { c.Holds = map[string][]string{"large": {"op/a"}} }
	look := func(minute int, want ...string) {
		t.Helper()
		b.events, b.now = nil, time.Date(2026, 11, 30, 12, minute, 0, 0, time.UTC)
		b.look()
		if !slices.Equal(b.events, want) {
			t.Errorf("minute %d: %q, want %q", minute, b.events, want)
		}
	}
	b.put("", 1, 1)
	look(2)
	b.put("", 2, 2, holds)
	look(3, " large firing 2 op/a")
	look(4)
	b.put("", 3, 3, holds)
	look(5)
	look(14, " old firing 3 "+at+"/chk-3")
	look(2, " old resolved 3 "+at+"/chk-3") // the clock was set back
	b.put("", 4, 14)
	look(15, " large resolved 4 op/a")
	b.put("", 5, 40, func(c *Checkpoint) { c.WrongFiles = 1 })
	look(41, " old firing 5 "+at+"/chk-5")
	if j := b.job(); !slices.Equal(j.Firing, []string{"old"}) {
		t.Errorf("firing %v", j.Firing)
	}
}

func TestOrphansNowAndThen(t *testing.T) {
	calls := 0
	var fail error
	b := newBench(t, Options{OrphansEvery: time.Hour, Orphans: func(_ context.Context, _ string) (Orphans, error) {
		calls++
		return Orphans{Files: 2, Bytes: 30}, fail
	}})
	for _, x := range []struct{ minute, calls int }{{0, 1}, {30, 1}, {59, 1}, {61, 2}, {10, 3}} { // the last: the clock was set back
		b.now = time.Date(2026, 11, 30, 12, x.minute, 0, 0, time.UTC)
		if b.look(); calls != x.calls {
			t.Errorf("minute %d: %d searches, want %d", x.minute, calls, x.calls)
		}
	}
	if o := b.w.Status()[0].Orphans; *o != (Orphans{2, 30}) {
		t.Errorf("%+v", o)
	}
	fail, b.now = errors.New("unlisted"), b.now.Add(2*time.Hour)
	b.look()
	if s := b.w.Status()[0]; s.Orphans != nil || s.Errors[Search] != 1 {
		t.Errorf("%+v", s)
	}
}

// Run goes on after failures, and ends with its context.
func TestRun(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	var pauses []time.Duration
	b := newBench(t, Options{Wait: func(_ context.Context, d time.Duration) error {
		pauses = append(pauses, d)
		if len(pauses) == 3 {
			cancel()
		}
		return ctx.Err()
	}})
	b.down = errOffline
	b.w.Run(ctx, 10*time.Second, func() { looks++ })
	if looks != 3 || len(pauses) != 3 {
		t.Fatalf("%d looks, pauses %v", looks, pauses)
	}
	for i, middle := range []time.Duration{20 * time.Second, 40 * time.Second, 80 * time.Second} {
		if d := pauses[i]; d < middle*9/10 || d > middle*11/10 {
			t.Errorf("pause %d: %v, want about %v", i, d, middle)
		}
	}
}

// The end of the context is not a failure of the store.
func TestCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	b := newBench(t, Options{})
	path := b.put("", 1, 1)
	b.reads[path] = func() (*Checkpoint, error) {
		cancel()
		return nil, ctx.Err()
	}
	if problems, err := b.w.Look(ctx); len(problems) > 0 || !errors.Is(err, context.Canceled) || len(b.problems) > 0 {
		t.Errorf("%v, %v, %v", problems, err, b.problems)
	}
}
