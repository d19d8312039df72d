package gcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
)

// retries collects what a store reports.
type retries struct {
	mu  sync.Mutex
	all []storage.Retry
}

func (r *retries) add(one storage.Retry) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, one)
}

func (r *retries) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

// every returns faults of the n-th request of each k.
func every(k int, how fault, kinds ...string) func(int, string) fault {
	seen := 0
	return func(_ int, kind string) fault {
		if len(kinds) > 0 && !strings.Contains(strings.Join(kinds, " "), kind) {
			return none
		}
		if seen++; seen%k == 0 {
			return how
		}
		return none
	}
}

// testBytes returns n bytes.
func testBytes(n int) []byte {
	p := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(p)
	return p
}

// write writes an object in pieces.
func write(s storage.Storage, name string, p []byte, o storage.CreateOptions) (storage.Info, error) {
	ctx := context.Background()
	w, err := s.Create(ctx, name, o)
	if err != nil {
		return storage.Info{}, err
	}
	for len(p) > 0 {
		n := min(100_000, len(p))
		if _, err := w.Write(p[:n]); err != nil {
			return storage.Info{}, errors.Join(err, w.Abort(ctx))
		}
		p = p[n:]
	}
	info, err := w.Commit(ctx)
	if err != nil {
		return info, errors.Join(err, w.Abort(ctx))
	}
	return info, nil
}

// The whole suite passes while requests fail, or answers are lost.
func TestStoreWithFaults(t *testing.T) {
	server := servertest.StartFakeGCS(t)
	server.Bucket(t, "bucket")
	for name, c := range map[string]struct {
		part  int64
		fault func() func(int, string) fault
	}{
		"503 on every third":           {0, func() func(int, string) fault { return every(3, refused) }},
		"503 on every third, in parts": {chunk, func() func(int, string) fault { return every(3, refused) }},
		"rate limit":                   {0, func() func(int, string) fault { return every(3, limited) }},
		"lost answers":                 {0, func() func(int, string) fault { return every(3, lost) }},
		"lost answers, in parts":       {chunk, func() func(int, string) fault { return every(2, lost) }},
		"answers cut off":              {0, func() func(int, string) fault { return every(3, cut, "put", "list", "stat", "part", "rewrite") }},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFront(t, server)
			n := 0
			var seen retries
			storetest.Run(t, func(t *testing.T) (storage.Storage, string) {
				n++
				f.set(func() { f.fault, f.log = c.fault(), nil })
				return open(t, f.URL, Options{part: c.part, Retried: seen.add}), fmt.Sprintf("gs://bucket/%s %d/", name, n)
			})
			if seen.count() < 20 {
				t.Errorf("only %d retries reported", seen.count())
			}
			for _, r := range seen.all {
				if r.Op == "" || !strings.HasPrefix(r.Name, "gs://bucket/") || r.Attempt < 1 || !errors.Is(r.Err, storage.ErrUnavailable) {
					t.Fatalf("%+v", r)
				}
			}
		})
	}
}

// Large objects arrive whole, whatever the service keeps of each part.
func TestResumable(t *testing.T) {
	server := servertest.StartFakeGCS(t)
	server.Bucket(t, "bucket")
	f := newFront(t, server)
	for _, size := range []int{2 * chunk, 2*chunk + 1, 3*chunk - 1, 4 * chunk, 7*chunk + 12345} {
		for name, c := range map[string]struct {
			keep  int64
			fault func(int, string) fault
		}{
			"all":           {},
			"one chunk":     {keep: chunk},
			"lost":          {fault: every(2, lost, "part")},
			"lost and half": {keep: chunk, fault: every(3, lost, "part", "status")},
			"refused":       {fault: every(3, refused, "part", "status")},
		} {
			f.set(func() { f.keep, f.fault, f.log = c.keep, c.fault, nil })
			s := open(t, f.URL, Options{part: 2 * chunk})
			object := fmt.Sprintf("gs://bucket/resumable/%d %s", size, name)
			data := testBytes(size)
			info, err := write(s, object, data, storage.CreateOptions{IfAbsent: true})
			if err != nil {
				t.Errorf("%s, %d: %v", name, size, err)
				continue
			}
			f.set(func() { f.fault = nil })
			if got := storetest.Read(t, s, object); got != string(data) || info.Size != int64(size) {
				t.Errorf("%s, %d: other bytes", name, size)
			}
			_, err = write(s, object, data, storage.CreateOptions{IfAbsent: true})
			if !errors.Is(err, storage.ErrExist) {
				t.Errorf("%s, %d: the second creation: %v", name, size, err)
			}
		}
	}
}

// A failed upload leaves nothing, neither an object nor a session.
func TestFailedUpload(t *testing.T) {
	server := servertest.StartFakeGCS(t)
	server.Bucket(t, "bucket")
	f := newFront(t, server)
	for _, kind := range []string{"put", "begin", "part", "commit"} {
		t.Run(kind, func(t *testing.T) {
			broken := false
			f.set(func() {
				f.log = nil
				f.sessions = map[string]*session{}
				f.fault = func(_ int, k string) fault {
					broken = broken || k == kind || kind == "commit" && k == "part" && len(f.log) > 3
					if broken && k != "cancel" {
						return refused
					}
					return none
				}
			})
			size := 3*chunk + 1
			if kind == "put" {
				size = 10
			}
			s := open(t, f.URL, Options{part: chunk, Retries: 2})
			object := "gs://bucket/failed/" + kind
			ctx := context.Background()
			w, err := s.Create(ctx, object, storage.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if _, err = w.Write(testBytes(size)); err == nil {
				_, err = w.Commit(ctx)
			}
			if !errors.Is(err, storage.ErrUnavailable) {
				t.Fatal(err)
			}
			f.set(func() { f.fault = nil })
			if err := w.Abort(ctx); err != nil {
				t.Error(err)
			}
			if names := storetest.Names(t, s, "gs://bucket/failed/", ""); len(names) > 0 {
				t.Errorf("left: %q", names)
			}
			open := 0
			for id, s := range f.sessions {
				if strings.Contains(fmt.Sprintf("%v %+v", err, err), id) {
					t.Errorf("the session in %v", err)
				}
				if !s.ended {
					open++
				}
			}
			if open > 0 || (kind == "part" || kind == "commit") && len(f.sessions) == 0 {
				t.Errorf("%d of %d sessions left open", open, len(f.sessions))
			}
		})
	}
}

// An object whose upload ended with a lost answer is removed by Abort, but not one of
// others.
func TestAbortOwn(t *testing.T) {
	server := servertest.StartFakeGCS(t)
	server.Bucket(t, "bucket")
	f := newFront(t, server)
	s := open(t, f.URL, Options{Retries: -1})
	ctx := context.Background()
	for _, theirs := range []bool{false, true} {
		f.set(func() { f.fault = every(1, lost, "put") })
		w, err := s.Create(ctx, "gs://bucket/own", storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = w.Write([]byte("mine"))
		if _, err := w.Commit(ctx); !errors.Is(err, storage.ErrUnavailable) {
			t.Fatal(err)
		}
		f.set(func() { f.fault = nil })
		if got := storetest.Read(t, s, "gs://bucket/own"); got != "mine" {
			t.Fatal(got)
		}
		want := ""
		if theirs {
			storetest.Put(t, s, "gs://bucket/own", "theirs")
			want = "gs://bucket/own"
		}
		if err := w.Abort(ctx); err != nil {
			t.Fatal(err)
		}
		if names := storetest.Names(t, s, "gs://bucket/own", ""); strings.Join(names, " ") != want {
			t.Errorf("%q, expected %q", names, want)
		}
	}
}

// A read that is cut off resumes, pinned to its version.
func TestReadCutOff(t *testing.T) {
	server := servertest.StartFakeGCS(t)
	server.Bucket(t, "bucket")
	f := newFront(t, server)
	s := open(t, f.URL, Options{})
	data := testBytes(300_000)
	storetest.Put(t, s, "gs://bucket/x", string(data))
	f.set(func() {
		f.log = nil
		f.fault = func(n int, _ string) fault {
			if n <= 2 {
				return cut
			}
			return none
		}
	})
	got, err := ranged.NewReader(s, "gs://bucket/x", "").ReadRange(context.Background(), 0, -1)
	if err != nil || !bytes.Equal(got, data) {
		t.Fatalf("%d bytes, %v", len(got), err)
	}
	if c := f.counts(); c != "read:3" {
		t.Errorf("requests: %s", c)
	}
	changed := true
	f.set(func() {
		f.fault = func(int, string) fault {
			if changed {
				changed = false
				return cut
			}
			return none
		}
	})
	body, _, err := ranged.NewReader(s, "gs://bucket/x", "").Open(context.Background(), 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	storetest.Put(t, open(t, server.URL, Options{}), "gs://bucket/x", string(data))
	if _, err := io.ReadAll(body); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("a change in the middle: %v", err)
	}
}

// The requests of each operation.
func TestRequests(t *testing.T) {
	server := servertest.StartFakeGCS(t)
	server.Bucket(t, "bucket")
	server.Bucket(t, "other")
	f := newFront(t, server)
	s := open(t, f.URL, Options{part: chunk})
	ctx := context.Background()
	expect := func(what, want string) {
		t.Helper()
		if got := f.counts(); got != want {
			t.Errorf("%s: requests %q, expected %q", what, got, want)
		}
	}
	small, err := write(s, "gs://bucket/d/small", testBytes(1000), storage.CreateOptions{IfAbsent: true})
	if err != nil {
		t.Fatal(err)
	}
	expect("create", "put:1")
	large, err := write(s, "gs://bucket/d/large", testBytes(3*chunk+1), storage.CreateOptions{IfAbsent: true})
	if err != nil {
		t.Fatal(err)
	}
	expect("create in parts", "begin:1 part:4")
	if _, err := write(s, "gs://bucket/d/large", testBytes(3*chunk), storage.CreateOptions{Replace: large.Version}); err != nil {
		t.Fatal(err)
	}
	expect("replace in whole parts", "begin:1 part:3 status:1") // which completes it
	body, _, err := s.ReadRange(ctx, small.Name, 10, 10, small.Version)
	if err != nil {
		t.Fatal(err)
	}
	body.Close()
	expect("read", "read:1")
	if _, err := s.Stat(ctx, small.Name); err != nil {
		t.Fatal(err)
	}
	expect("stat", "stat:1")
	if err := s.Delete(ctx, "gs://bucket/missing"); err != nil {
		t.Fatal(err)
	}
	expect("delete", "delete:1")

	// A whole copy, to another bucket: nothing before Commit.
	f.set(func() { f.steps = 2 })
	w, err := s.Create(ctx, "gs://other/copy", storage.CreateOptions{Size: small.Size, IfAbsent: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := ranged.CopyRange(ctx, s, w, s, small.Name, 0, -1, small.Version); err != nil {
		t.Fatal(err)
	}
	expect("copy before Commit", "")
	info, err := w.Commit(ctx)
	if err != nil || info.Size != small.Size {
		t.Fatalf("%+v, %v", info, err)
	}
	expect("copy", "rewrite:3")
	if got := storetest.Read(t, s, "gs://other/copy"); got != string(testBytes(1000)) {
		t.Error("the copy has other bytes")
	}
	f.counts()

	copyWhole := func(o storage.CreateOptions, pin storage.Version) error {
		w, err := s.Create(ctx, "gs://other/copy", o)
		if err != nil {
			t.Fatal(err)
		}
		defer w.Abort(ctx)
		if err := ranged.CopyRange(ctx, s, w, s, small.Name, 0, -1, pin); err != nil {
			return err
		}
		_, err = w.Commit(ctx)
		return err
	}
	if err := copyWhole(storage.CreateOptions{Size: small.Size, IfAbsent: true}, small.Version); !errors.Is(err, storage.ErrExist) {
		t.Errorf("a copy onto an object: %v", err)
	}
	if err := copyWhole(storage.CreateOptions{Size: small.Size, Replace: info.Version}, small.Version); err != nil {
		t.Errorf("a copy that replaces: %v", err)
	}
	if err := copyWhole(storage.CreateOptions{Size: small.Size}, "12345"); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("a copy of another version: %v", err)
	}
	f.set(func() { f.steps, f.fault = 0, every(1, lost, "rewrite") })
	once := true
	f.set(func() {
		f.fault = func(_ int, kind string) fault {
			if kind == "rewrite" && once {
				once = false
				return lost
			}
			return none
		}
	})
	if err := s.Delete(ctx, "gs://other/copy"); err != nil {
		t.Fatal(err)
	}
	if err := copyWhole(storage.CreateOptions{Size: small.Size, IfAbsent: true}, small.Version); err != nil {
		t.Errorf("a copy whose answer is lost: %v", err)
	}
	f.counts()

	// Pages, in which names and prefixes come in one order.
	f.set(func() { f.pageSize = "2" })
	for _, name := range []string{"a", "b/1", "b/2", "c", "d/", "d/1", "e/x/y", "f"} {
		storetest.Put(t, s, "gs://bucket/list/"+name, "")
	}
	f.counts()
	if got := strings.Join(storetest.Names(t, s, "gs://bucket/list/", "/"), " "); got != strings.ReplaceAll("L/a L/b/ L/c L/d/ L/e/ L/f", "L", "gs://bucket/list") {
		t.Errorf("listed %s", got)
	}
	expect("list", "list:2")                                                                                       // fake-gcs-server counts no prefixes, Google does
	if got := strings.Join(storetest.Names(t, s, "gs://bucket/list/d/", ""), " "); got != "gs://bucket/list/d/1" { // without its marker
		t.Errorf("listed %s", got)
	}
}

func TestUnavailable(t *testing.T) {
	ctx := context.Background()
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and never answers
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	refuses := fmt.Sprintf("http://127.0.0.1:%d", servertest.Port(t))
	for name, url := range map[string]string{"silent": "http://" + silent.Addr().String(), "refuses": refuses} {
		var seen retries
		s := open(t, url, Options{Retries: 2, Retried: seen.add, silence: 20 * time.Millisecond})
		_, _, err := s.ReadRange(ctx, "gs://bucket/x", 0, 1, "")
		if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || seen.count() != 2 {
			t.Errorf("%s: %v, %d retries", name, err, seen.count())
		}
	}
	// The end of the context ends the waiting.
	ended, cancel := context.WithCancel(ctx)
	s := open(t, refuses, Options{pause: time.Hour, Deadline: 100 * time.Hour, Retried: func(storage.Retry) { cancel() }})
	if _, err := s.Stat(ended, "gs://bucket/x"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestMissingBucket(t *testing.T) {
	server := servertest.StartFakeGCS(t)
	s := open(t, server.URL, Options{})
	ctx := context.Background()
	_, err := s.Stat(ctx, "gs://missing/x")
	if !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("stat: %v", err)
	}
	_, err = write(s, "gs://missing/x", nil, storage.CreateOptions{IfAbsent: true})
	if !errors.Is(err, errNoBucket) {
		t.Errorf("create: %v", err)
	}
	for _, err = range s.List(ctx, "gs://missing/", "/") {
	}
	if !errors.Is(err, errNoBucket) || !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("list: %v", err)
	}
	// A bucket is not an object.
	if _, _, err := s.ReadRange(ctx, "gs://missing", 0, 1, ""); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("a bucket: %v", err)
	}
}
