package s3_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/s3"
)

var ctx = context.Background()

// part is the least size of a part.
const part = 5 << 20

// options reach a server of the test.
func options(server *servertest.S3Server) s3.Options {
	env := server.Env()
	return s3.Options{Getenv: func(name string) string { return env[name] }, Pause: time.Millisecond, PartSize: part}
}

func open(t testing.TB, o s3.Options) *s3.Store {
	t.Helper()
	s, err := s3.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// write creates an object in pieces and commits it.
func write(s storage.Storage, name string, data []byte, o storage.CreateOptions) (storage.Info, error) {
	w, err := s.Create(ctx, name, o)
	if err != nil {
		return storage.Info{}, err
	}
	defer w.Abort(ctx) //nolint:errcheck // after an error, which is returned
	for len(data) > 0 {
		n := min(len(data), 1<<20)
		if _, err := w.Write(data[:n]); err != nil {
			return storage.Info{}, err
		}
		data = data[n:]
	}
	return w.Commit(ctx)
}

// noise is data of which no two pages are equal.
func noise(n int) []byte {
	b := make([]byte, n)
	x := uint32(n) | 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

func want(t *testing.T, s storage.Storage, name string, data []byte) {
	t.Helper()
	if got := storetest.Read(t, s, name); got != string(data) {
		t.Errorf("%s: %d bytes, expected %d", name, len(got), len(data))
	}
}

// uploads fails if a bucket has unfinished uploads.
func noUploads(t *testing.T, s *s3.Store, bucket string) {
	t.Helper()
	for l, err := range s.Leftovers(ctx, "s3://"+bucket, 100) {
		t.Errorf("left over: %+v, %v", l, err)
	}
}

func TestS3(t *testing.T) {
	server := servertest.VersityGW(t)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *servertest.S3Server)
	}{
		{"Suite", testSuite},
		{"BusySuite", testBusySuite},
		{"Requests", testRequests},
		{"Copies", testCopies},
		{"LostAnswers", testLostAnswers},
		{"CutBodies", testCutBodies},
		{"Stalled", testStalled},
		{"Multipart", testMultipart},
		{"Leftovers", testLeftovers},
		{"Names", testNames},
		{"Pages", testPages},
		{"Refusals", testRefusals},
		{"Region", testRegion},
		{"Access", testAccess},
		{"Cancelled", testCancelled},
		{"Killed", testKilled}, // last: it restarts the server
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, server) })
	}
}

func testSuite(t *testing.T, server *servertest.S3Server) {
	s, bucket := open(t, options(server)), server.Bucket(t)
	var n atomic.Int64
	storetest.Run(t, func(*testing.T) (storage.Storage, string) { return s, fmt.Sprintf("s3://%s/t%d/", bucket, n.Add(1)) })
	noUploads(t, s, bucket)
}

// The suite passes while the service refuses every third request.
func testBusySuite(t *testing.T, server *servertest.S3Server) {
	p := newProxy(t, server.Endpoint)
	p.set(func(n int, _ *http.Request) fault { return map[bool]fault{true: busy}[n%3 == 0] })
	o := options(server)
	var retries atomic.Int64
	o.Endpoint, o.Retried = p.URL, func(r storage.Retry) {
		retries.Add(1)
		if r.Attempt < 1 || r.Wait <= 0 || r.Name == "" || r.Op == "" || !errors.Is(r.Err, storage.ErrUnavailable) {
			t.Errorf("a retry: %+v", r)
		}
	}
	s, bucket := open(t, o), server.Bucket(t)
	var n atomic.Int64
	storetest.Run(t, func(*testing.T) (storage.Storage, string) { return s, fmt.Sprintf("s3://%s/t%d/", bucket, n.Add(1)) })
	if retries.Load() == 0 {
		t.Error("no request was made again")
	}
	noUploads(t, s, bucket)
}

// testRequests counts requests.
func testRequests(t *testing.T, server *servertest.S3Server) {
	p := newProxy(t, server.Endpoint)
	o := options(server)
	o.Endpoint = p.URL
	s, bucket := open(t, o), server.Bucket(t)
	name := "s3://" + bucket + "/a/x"
	data := noise(2*part + 100)
	var info storage.Info
	for _, c := range []struct {
		what     string
		do       func() error
		expected string // of the methods
	}{
		{"create", func() (err error) {
			info, err = write(s, name, []byte("hello"), storage.CreateOptions{IfAbsent: true})
			return err
		}, "PUT"},
		{"read", func() error { return read(s, name, 1, 2) }, "GET"},
		{"read the end", func() error { return read(s, name, -3, -1) }, "GET"},
		{"stat", func() error { _, err := s.Stat(ctx, name); return err }, "GET"},
		{"list", func() error { storetest.Names(t, s, "s3://"+bucket+"/a/", "/"); return nil }, "GET"},
		{"create a copy", func() error { return copyTo(s, name+"2", name, info, storage.CreateOptions{Size: info.Size}) }, "PUT"},
		{"create in parts", func() error { _, err := write(s, name+"3", data, storage.CreateOptions{IfAbsent: true}); return err }, "POST PUT PUT PUT POST"},
		{"delete", func() error { return s.Delete(ctx, name, name+"2", name+"3") }, "DELETE DELETE DELETE"},
		{"resolve", func() error { _, _, err := s.Resolve(ctx, "s3a://"+bucket+"/x"); return err }, ""},
	} {
		p.set(nil)
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.what, err)
		}
		var got []string
		for _, r := range p.seen() {
			got = append(got, strings.Fields(r)[0])
		}
		if strings.Join(got, " ") != c.expected {
			t.Errorf("%s: requests %q, expected %q", c.what, p.seen(), c.expected)
		}
	}
}

func read(s storage.Storage, name string, off, n int64) error {
	rc, _, err := s.ReadRange(ctx, name, off, n, "")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, rc)
	return errors.Join(err, rc.Close())
}

func copyTo(s *s3.Store, to, from string, info storage.Info, o storage.CreateOptions) error {
	w, err := s.Create(ctx, to, o)
	if err != nil {
		return err
	}
	defer w.Abort(ctx) //nolint:errcheck // after an error, which is returned
	if err := s.CopyRange(ctx, w, s, from, 0, -1, info.Version); err != nil {
		return err
	}
	made, err := w.Commit(ctx)
	if err == nil && (made.Size != info.Size || made.Version == "") {
		err = fmt.Errorf("made %+v of %+v", made, info)
	}
	return err
}

// testCopies: copies are made by the service, and conditions hold for them.
func testCopies(t *testing.T, server *servertest.S3Server) {
	p := newProxy(t, server.Endpoint)
	o := options(server)
	o.Endpoint = p.URL
	s, bucket, other := open(t, o), server.Bucket(t), server.Bucket(t)
	src := "s3://" + bucket + "/src"
	data := noise(2*part + 12345)
	info, err := write(s, src, data, storage.CreateOptions{Size: int64(len(data))})
	if err != nil {
		t.Fatal(err)
	}
	to := "s3://" + other + "/dst"
	absent := storage.CreateOptions{IfAbsent: true, Size: info.Size}
	p.set(func(_ int, r *http.Request) fault {
		if r.ContentLength > 1<<20 {
			t.Errorf("%s %s sends %d bytes", r.Method, r.URL, r.ContentLength)
		}
		return none
	})
	for i := range 3 { // the first finds out whether a copy can be conditional
		name := fmt.Sprintf("%s%d", to, i)
		if err := copyTo(s, name, src, info, absent); err != nil {
			t.Fatal(err)
		}
		want(t, s, name, data)
		err := copyTo(s, name, src, info, absent)
		if !errors.Is(err, storage.ErrExist) {
			t.Errorf("a copy onto an object: %v, expected ErrExist", err)
		}
		want(t, s, name, data)
	}
	dst, err := s.Stat(ctx, to+"0")
	if err != nil {
		t.Fatal(err)
	}
	if err := copyTo(s, to+"0", src, info, storage.CreateOptions{Replace: dst.Version, Size: info.Size}); err != nil {
		t.Error(err)
	}
	if err := copyTo(s, to+"0", src, info, storage.CreateOptions{Replace: "another", Size: info.Size}); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("a copy onto another version: %v, expected ErrChanged", err)
	}
	for _, o := range []storage.CreateOptions{{Size: info.Size}, absent} {
		changed := info
		changed.Version = "0123456789abcdef0123456789abcdef"
		err := copyTo(s, to+"new", src, changed, o)
		var of *storage.Error
		if !errors.Is(err, storage.ErrChanged) || !errors.As(err, &of) || of.Name != src {
			t.Errorf("a copy of a changed object: %v, expected ErrChanged of %s", err, src)
		}
		if err := copyTo(s, to+"new", src+"missing", info, o); !errors.Is(err, storage.ErrNotExist) {
			t.Errorf("a copy of a missing object: %v, expected ErrNotExist", err)
		}
	}
	if _, err := s.Stat(ctx, to+"new"); !errors.Is(err, storage.ErrNotExist) {
		t.Errorf("a failed copy is there: %v", err)
	}
	p.set(nil)
	// Ranges and bytes, in one object.
	w, err := s.Create(ctx, to+"mixed", storage.CreateOptions{IfAbsent: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort(ctx) //nolint:errcheck // after a failed test
	expected := append([]byte("head"), data[100:100+part+7]...)
	if _, err := io.WriteString(w, "head"); err != nil {
		t.Fatal(err)
	}
	if err := ranged.CopyRange(ctx, s, w, s, src, 100, part+7, info.Version); err != nil {
		t.Fatal(err)
	}
	if err := ranged.CopyRange(ctx, s, w, s, src, 0, -1, info.Version); err != nil {
		t.Fatal(err)
	}
	expected = append(expected, data...)
	if _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	want(t, s, to+"mixed", expected)
	noUploads(t, s, other)
}

// testLostAnswers: the server does what was asked, and the answer is lost.
func testLostAnswers(t *testing.T, server *servertest.S3Server) {
	p := newProxy(t, server.Endpoint)
	o := options(server)
	o.Endpoint = p.URL
	s, bucket := open(t, o), server.Bucket(t)
	large := noise(2*part + 1)
	src := "s3://" + bucket + "/src"
	info, err := write(s, src, []byte("source"), storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := copyTo(s, src+"-first", src, info, storage.CreateOptions{IfAbsent: true, Size: info.Size}); err != nil {
		t.Fatal(err)
	}
	lose := func(method string, with func(*http.Request) bool) {
		done := false
		p.set(func(_ int, r *http.Request) fault {
			if !done && r.Method == method && with(r) {
				done = true
				return lost
			}
			return none
		})
	}
	any := func(*http.Request) bool { return true }
	has := func(q string) func(*http.Request) bool {
		return func(r *http.Request) bool { return r.URL.Query().Has(q) }
	}
	n := 0
	for what, do := range map[string]func(name string, o storage.CreateOptions) ([]byte, error){
		"one request": func(name string, o storage.CreateOptions) ([]byte, error) {
			lose(http.MethodPut, any)
			_, err := write(s, name, []byte("mine"), o)
			return []byte("mine"), err
		},
		"the end of parts": func(name string, o storage.CreateOptions) ([]byte, error) {
			lose(http.MethodPost, has("uploadId"))
			_, err := write(s, name, large, o)
			return large, err
		},
		"a part": func(name string, o storage.CreateOptions) ([]byte, error) {
			lose(http.MethodPut, has("partNumber"))
			_, err := write(s, name, large, o)
			return large, err
		},
		"a copy": func(name string, o storage.CreateOptions) ([]byte, error) {
			o.Size = info.Size
			lose(http.MethodPut, any)
			return []byte("source"), copyTo(s, name, src, info, o)
		},
	} {
		for _, o := range []storage.CreateOptions{{}, {IfAbsent: true}, {Replace: "old"}} {
			n++
			name := fmt.Sprintf("s3://%s/x%d", bucket, n)
			if o.Replace != "" {
				p.set(nil)
				o.Replace = storetest.Put(t, s, name, "old").Version
			}
			data, err := do(name, o)
			if err != nil {
				t.Errorf("%s, %+v: %v", what, o, err)
				continue
			}
			p.set(nil)
			want(t, s, name, data)
		}
	}
	// The object that is there is another writer's.
	taken := "s3://" + bucket + "/taken"
	storetest.Put(t, s, taken, "of others")
	for _, data := range [][]byte{[]byte("mine"), large} {
		lose(http.MethodPut, any)
		if _, err := write(s, taken, data, storage.CreateOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
			t.Errorf("%v, expected ErrExist", err)
		}
		p.set(nil)
		want(t, s, taken, []byte("of others"))
	}
	// A deletion that was done.
	lose(http.MethodDelete, any)
	if err := s.Delete(ctx, taken); err != nil {
		t.Error(err)
	}
	noUploads(t, s, bucket)
}

// testCutBodies: a reader resumes at its byte.
func testCutBodies(t *testing.T, server *servertest.S3Server) {
	p := newProxy(t, server.Endpoint)
	o := options(server)
	o.Endpoint = p.URL
	s, bucket := open(t, o), server.Bucket(t)
	name, data := "s3://"+bucket+"/x", noise(1<<20)
	info, err := write(s, name, data, storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	p.set(func(int, *http.Request) fault { return cut })
	rc, _, err := s.ReadRange(ctx, name, 0, -1, "")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(rc)
	if !errors.Is(err, storage.ErrUnavailable) || len(got) == 0 || !bytes.HasPrefix(data, got) {
		t.Errorf("a body that was cut: %d bytes, %v", len(got), err)
	}
	rc.Close() //nolint:errcheck // it failed already
	p.set(func(n int, _ *http.Request) fault { return map[bool]fault{true: cut}[n < 4] })
	if got, err = ranged.NewReader(s, name, "").ReadRange(ctx, 0, info.Size); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	// It changes meanwhile.
	p.set(func(n int, _ *http.Request) fault { return map[bool]fault{true: cut}[n == 1] })
	body, _, err := ranged.NewReader(s, name, "").Open(ctx, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close() //nolint:errcheck // it was read
	if _, err := io.ReadFull(body, make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	direct := open(t, options(server))
	storetest.Put(t, direct, name, "another")
	if _, err := io.Copy(io.Discard, body); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("%v, expected ErrChanged", err)
	}
}

// testStalled: a service that stops answering ends in an error.
func testStalled(t *testing.T, server *servertest.S3Server) {
	p := newProxy(t, server.Endpoint)
	o := options(server)
	o.Endpoint, o.Idle, o.Retries = p.URL, 50*time.Millisecond, 2
	s, bucket := open(t, o), server.Bucket(t)
	name := "s3://" + bucket + "/x"
	if _, err := write(s, name, noise(1<<20), storage.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	p.set(func(int, *http.Request) fault { return stall })
	if err := read(s, name, 0, -1); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "no byte for 50ms") {
		t.Errorf("%v, expected ErrUnavailable", err)
	}
	silent := http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })}
	defer silent.Close() //nolint:errcheck // of a test
	o.Endpoint = serve(t, &silent)
	o.Transport = &http.Transport{ResponseHeaderTimeout: 50 * time.Millisecond}
	s = open(t, o)
	if _, err := s.Stat(ctx, name); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "timeout awaiting response headers") {
		t.Errorf("%v, expected ErrUnavailable", err)
	}
}

// testMultipart: what fails is removed.
func testMultipart(t *testing.T, server *servertest.S3Server) {
	s, bucket := open(t, options(server)), server.Bucket(t)
	name, data := "s3://"+bucket+"/dir/x", noise(3*part)
	storetest.Put(t, s, name, "there")
	if _, err := write(s, name, data, storage.CreateOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
		t.Errorf("%v, expected ErrExist", err)
	}
	if _, err := write(s, name, data, storage.CreateOptions{Replace: "another"}); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("%v, expected ErrChanged", err)
	}
	want(t, s, name, []byte("there"))
	noUploads(t, s, bucket)
	const racing = 4
	var wins atomic.Int64
	var wait sync.WaitGroup
	for range racing {
		wait.Go(func() {
			switch _, err := write(s, name+"2", data, storage.CreateOptions{IfAbsent: true}); {
			case err == nil:
				wins.Add(1)
			case !errors.Is(err, storage.ErrExist):
				t.Errorf("%v, expected ErrExist", err)
			}
		})
	}
	wait.Wait()
	if wins.Load() != 1 {
		t.Errorf("%d of %d creators succeed", wins.Load(), racing)
	}
	want(t, s, name+"2", data)
	noUploads(t, s, bucket)
}

// testLeftovers: unfinished uploads are found, and exactly those that are named removed.
func testLeftovers(t *testing.T, server *servertest.S3Server) {
	s, bucket := open(t, options(server)), server.Bucket(t)
	root := "s3://" + bucket + "/jobs"
	var writers []storage.Writer
	for _, name := range []string{"/a/x", "/a/x", "/b/c/y"} {
		w, err := s.Create(ctx, root+name, storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(noise(2 * part)); err != nil {
			t.Fatal(err)
		}
		writers = append(writers, w)
	}
	storetest.Put(t, s, root+"/a/.spt-tmp-0123456789ab-z", "left")
	storetest.Put(t, s, root+"/a/z", "not left")
	find := func(depth int) (all []ability.Leftover) {
		for l, err := range s.Leftovers(ctx, root, depth) {
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, l)
		}
		return all
	}
	// A part is sent when more follows it: wait until it is there.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		sent := 0
		for _, l := range find(9) {
			if l.Upload != "" && l.Bytes == part {
				sent++
			}
		}
		if sent == 3 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", find(9))
		}
	}
	all := find(9)
	var names []string
	for _, l := range all {
		names = append(names, strings.TrimPrefix(l.Name, root))
		if l.ModTime.IsZero() || time.Since(l.ModTime) > time.Hour || l.Foreign != "" || l.Files != 1 {
			t.Errorf("%+v", l)
		}
	}
	if expected := []string{"/a/.spt-tmp-0123456789ab-z", "/a/x", "/a/x", "/b/c/y"}; !slices.Equal(names, expected) {
		t.Fatalf("%q, expected %q", names, expected)
	}
	if got := find(1); len(got) != 3 {
		t.Errorf("down to one directory: %+v", got)
	}
	for _, l := range []ability.Leftover{all[0], all[1]} {
		if err := s.RemoveLeftover(ctx, l); err != nil {
			t.Fatal(err)
		}
	}
	if got := find(9); len(got) != 2 || got[0].Upload != all[2].Upload {
		t.Errorf("%+v", got)
	}
	if err := s.RemoveLeftover(ctx, all[1]); !errors.Is(err, storage.ErrChanged) {
		t.Errorf("an upload that has ended: %v, expected ErrChanged", err)
	}
	if err := s.RemoveLeftover(ctx, ability.Leftover{Name: root + "/a/z", Bytes: 8}); err == nil {
		t.Error("an object that is not a leftover is removed")
	}
	for _, w := range writers {
		if err := w.Abort(ctx); err != nil {
			t.Error(err)
		}
	}
	noUploads(t, s, bucket)
}

// testNames: keys are opaque, and one object has one name.
func testNames(t *testing.T, server *servertest.S3Server) {
	s, bucket := open(t, options(server)), server.Bucket(t)
	for _, key := range []string{"a b+c%25/ü=1/_metadata", "q?x#y&z", "quote'\"", "日本/語", "dots/./x", strings.Repeat("k", 200) + "/" + strings.Repeat("l", 200)} {
		name := "s3://" + bucket + "/" + key
		storetest.Put(t, s, name, key)
		want(t, s, name, []byte(key))
		if key == "dots/./x" { // a file system knows no such name
			continue
		}
		if got := storetest.Names(t, s, name, ""); !slices.Equal(got, []string{name}) {
			t.Errorf("%q is listed as %q", name, got)
		}
		info, err := s.Stat(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		if err := copyTo(s, name+"-copy", name, info, storage.CreateOptions{Size: info.Size}); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
	for uri, expected := range map[string]string{
		"s3://b/k": "s3://b/k", "s3a://b/k/": "s3://b/k/", "s3p://b//k": "s3://b//k", "S3://b/%41": "s3://b/%41", "s3://b": "s3://b/",
		"s3:/b/k": "", "s3://": "", "s3:///k": "", "s3://user:secret@b/k": "", "gs://b/k": "", "oss://b/k": "",
	} {
		_, name, err := s.Resolve(ctx, uri)
		if name != expected || (err == nil) != (expected != "") {
			t.Errorf("%s: %q, %v, expected %q", uri, name, err, expected)
		}
		if err != nil && strings.Contains(err.Error(), "secret") {
			t.Errorf("%v", err)
		}
	}
}

func testPages(t *testing.T, server *servertest.S3Server) {
	s, bucket := open(t, options(server)), server.Bucket(t)
	const files = 2345
	dir := filepath.Join(server.Dir, bucket, "many")
	for i := range files {
		sub := filepath.Join(dir, fmt.Sprintf("d%d", i%1200))
		if err := os.MkdirAll(sub, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("f%d", i)), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	root := "s3://" + bucket + "/many/"
	for delimiter, expected := range map[string]int{"": files, "/": 1200} {
		names := storetest.Names(t, s, root, delimiter)
		if len(names) != expected || !slices.IsSorted(names) {
			t.Errorf("delimiter %q: %d names, expected %d; sorted: %v", delimiter, len(names), expected, slices.IsSorted(names))
		}
	}
}

// testRefusals: what is wrong, and what can be done.
func testRefusals(t *testing.T, server *servertest.S3Server) {
	bucket := server.Bucket(t)
	storetest.Put(t, open(t, options(server)), "s3://"+bucket+"/x", "x")
	userSecret := server.User(t, "reader")
	with := func(env ...string) s3.Options {
		o := options(server)
		get := o.Getenv
		o.Getenv = func(name string) string {
			for i := 0; i < len(env); i += 2 {
				if env[i] == name {
					return env[i+1]
				}
			}
			return get(name)
		}
		return o
	}
	closed := fmt.Sprintf("http://127.0.0.1:%d", servertest.Port(t))
	const wrongSecret, token = "wrong/secret+of-test", "a-session-token-of-the-test"
	for _, c := range []struct {
		what    string
		o       s3.Options
		name    string
		kind    error
		setting storage.Setting
		text    string
	}{
		{"wrong secret", with("AWS_SECRET_ACCESS_KEY", wrongSecret), bucket + "/x", storage.ErrPermission, storage.SettingCredentials, "SignatureDoesNotMatch"},
		{"wrong key", with("AWS_ACCESS_KEY_ID", "AKIAWRONG"), bucket + "/x", storage.ErrPermission, storage.SettingCredentials, "InvalidAccessKeyId"},
		{"not permitted", with("AWS_ACCESS_KEY_ID", "reader", "AWS_SECRET_ACCESS_KEY", userSecret), bucket + "/x", storage.ErrPermission, storage.SettingCredentials, "AccessDenied"},
		{"anonymous", s3.Options{Endpoint: server.Endpoint, Anonymous: true}, bucket + "/x", storage.ErrPermission, storage.SettingCredentials, "AccessDenied"},
		{"missing key", options(server), bucket + "/y", storage.ErrNotExist, "", "NoSuchKey"},
		{"missing bucket", options(server), "no-such-bucket/x", storage.ErrNotExist, storage.SettingEndpoint, "NoSuchBucket"},
		{"nobody listens", with("AWS_ENDPOINT_URL_S3", closed), bucket + "/x", storage.ErrUnavailable, storage.SettingEndpoint, "refused"},
		{"no TLS", with("AWS_ENDPOINT_URL_S3", strings.Replace(server.Endpoint, "http:", "https:", 1)), bucket + "/x", nil, storage.SettingEndpoint, "TLS"},
		{"half of a key", with("AWS_SECRET_ACCESS_KEY", ""), bucket + "/x", nil, storage.SettingCredentials, "only one of AWS_ACCESS_KEY_ID"},
		{"no credentials", with("AWS_SECRET_ACCESS_KEY", "", "AWS_ACCESS_KEY_ID", ""), bucket + "/x", nil, storage.SettingCredentials, "no credentials were found"},
		{"no such profile", with("AWS_PROFILE", "nobody", "HOME", t.TempDir()), bucket + "/x", nil, storage.SettingCredentials, `profile "nobody"`},
		{"no URL", with("AWS_ENDPOINT_URL_S3", "https://u:"+wrongSecret+"@h"), bucket + "/x", nil, storage.SettingEndpoint, "AWS_ENDPOINT_URL_S3"},
		{"a token", with("AWS_SESSION_TOKEN", token, "AWS_SECRET_ACCESS_KEY", wrongSecret), bucket + "/x", storage.ErrPermission, storage.SettingCredentials, "InvalidToken"},
	} {
		s := open(t, c.o)
		name := "s3://" + c.name
		list := func() (err error) {
			for _, err = range s.List(ctx, name, "") {
			}
			return err
		}
		_, err := s.Stat(ctx, name)
		for op, err := range map[string]error{"stat": err, "read": read(s, name, 0, 1), "list": list(), "delete": s.Delete(ctx, name)} {
			if c.what == "missing key" && op != "stat" && op != "read" {
				continue
			}
			var of *storage.Error
			if !errors.As(err, &of) || c.kind != nil && !errors.Is(err, c.kind) || of.Setting != c.setting || !strings.Contains(err.Error(), c.text) || of.Setting != "" && of.Hint == "" && c.kind != nil {
				t.Errorf("%s, %s: %v, %+v\nexpected %v, setting %q and %q", c.what, op, err, of, c.kind, c.setting, c.text)
				continue
			}
			for _, secret := range []string{server.SecretKey, userSecret, wrongSecret, token} {
				if strings.Contains(err.Error()+of.Hint, secret) {
					t.Errorf("%s, %s: a secret in %v", c.what, op, err)
				}
			}
		}
	}
}

// testRegion: the region that the service names is used.
func testRegion(t *testing.T, server *servertest.S3Server) {
	p := newProxy(t, server.Endpoint)
	o := options(server)
	o.Endpoint, o.Region = p.URL, "eu-central-1"
	s, bucket := open(t, o), server.Bucket(t)
	storetest.Put(t, s, "s3://"+bucket+"/x", "x")
	p.set(nil)
	want(t, s, "s3://"+bucket+"/x", []byte("x"))
	if got := p.seen(); len(got) != 1 {
		t.Errorf("requests %q, expected one: the region is remembered", got)
	}
	a, err := s.Access(ctx, "s3://"+bucket+"/")
	if err != nil || a.Region != "us-east-1" {
		t.Errorf("%+v, %v", a, err)
	}
}

func testAccess(t *testing.T, server *servertest.S3Server) {
	s, bucket := open(t, options(server)), server.Bucket(t)
	a, err := s.Access(ctx, "s3://"+bucket+"/dir/")
	if err != nil {
		t.Fatal(err)
	}
	if a.Service != "S3" || a.Endpoint != server.Endpoint || a.Region != "us-east-1" || a.Credentials != "AWS_ACCESS_KEY_ID in the environment" || a.Identity != "access key "+server.AccessKey || !a.Clocked || a.Clock.Abs() > time.Minute {
		t.Errorf("%+v", a)
	}
	if text := fmt.Sprintf("%+v", a); strings.Contains(text, server.SecretKey) || !strings.Contains(text, "AWS_ENDPOINT_URL_S3") || !strings.Contains(text, "by path") {
		t.Error(text)
	}
	o := options(server)
	o.Endpoint = fmt.Sprintf("http://127.0.0.1:%d", servertest.Port(t))
	if a, err := open(t, o).Access(ctx, "s3://"+bucket+"/"); !errors.Is(err, storage.ErrUnavailable) || a.Endpoint != o.Endpoint {
		t.Errorf("%+v, %v", a, err)
	}
}

// testCancelled: an end of the context stays one, and nothing is left.
func testCancelled(t *testing.T, server *servertest.S3Server) {
	p := newProxy(t, server.Endpoint)
	o := options(server)
	o.Endpoint, o.Pause = p.URL, time.Hour
	s, bucket := open(t, o), server.Bucket(t)
	name := "s3://" + bucket + "/x"
	ending, cancel := context.WithCancel(ctx)
	w, err := s.Create(ending, name, storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(noise(3 * part)); err != nil {
		t.Fatal(err)
	}
	p.set(func(int, *http.Request) fault { cancel(); return busy }) // while it waits to try again
	if _, err := w.Commit(ending); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, expected Canceled", err)
	}
	p.set(nil)
	if err := w.Abort(ending); err != nil {
		t.Error(err)
	}
	noUploads(t, s, bucket)
}

// testKilled: the server dies while an object is written, and comes back.
func testKilled(t *testing.T, server *servertest.S3Server) {
	o := options(server)
	o.Pause, o.Retries = 50*time.Millisecond, 100
	var once sync.Once
	o.Retried = func(storage.Retry) { once.Do(server.Restart) }
	s, bucket := open(t, o), server.Bucket(t)
	name, data := "s3://"+bucket+"/x", noise(4*part+1)
	w, err := s.Create(ctx, name, storage.CreateOptions{IfAbsent: true, Size: int64(len(data))})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort(ctx) //nolint:errcheck // after a failed test
	for i, piece := range [][]byte{data[:2*part+1], data[2*part+1:]} {
		if i == 1 {
			server.Kill()
		}
		if _, err := w.Write(piece); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	want(t, s, name, data)
	noUploads(t, s, bucket)
}
