package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
)

func testBytes(n int) []byte {
	p := make([]byte, n)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(p)
	return p
}

func open(o Options) *Store {
	if o.pause == 0 {
		o.pause = time.Millisecond
	}
	return New(o)
}

// resolve returns the name of a URL.
func resolve(t testing.TB, s *Store, uri string) string {
	t.Helper()
	_, name, err := s.Resolve(context.Background(), uri)
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func read(s *Store, name string, off, n int64, pin storage.Version) (string, storage.Info, error) {
	body, info, err := s.ReadRange(context.Background(), name, off, n, pin)
	if err != nil {
		return "", info, err
	}
	defer body.Close()
	p, err := io.ReadAll(body)
	return string(p), info, err
}

// files serves one file, in the way of some server.
type files struct {
	mu       sync.Mutex
	data     string
	modified time.Time
	tag      string // "" has none
	ranges   bool
	checks   bool // preconditions
	sent     atomic.Int64
	requests []*http.Request
}

func (f *files) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.requests = append(f.requests, r.Clone(context.Background()))
	if f.tag != "" {
		w.Header().Set("ETag", f.tag)
	}
	if !f.ranges {
		r.Header.Del("Range")
	}
	if !f.checks {
		r.Header.Del("If-Match")
		r.Header.Del("If-Unmodified-Since")
	}
	http.ServeContent(counter{w, &f.sent}, r, "file", f.modified, strings.NewReader(f.data))
}

type counter struct {
	http.ResponseWriter
	n *atomic.Int64
}

func (c counter) Write(p []byte) (int, error) {
	n, err := c.ResponseWriter.Write(p)
	c.n.Add(int64(n))
	return n, err
}

var then = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// What a range has, and what changes are noticed, on servers that differ.
func TestServers(t *testing.T) {
	for name, f := range map[string]*files{
		"all":              {tag: `"1"`, modified: then, ranges: true, checks: true},
		"weak tags":        {tag: `W/"1"`, modified: then, ranges: true, checks: true},
		"no tags":          {modified: then, ranges: true, checks: true},
		"no preconditions": {tag: `"1"`, modified: then, ranges: true},
		"no ranges":        {tag: `"1"`, modified: then, checks: true},
		"nothing but time": {modified: then},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(f)
			defer server.Close()
			s := open(Options{})
			at := resolve(t, s, server.URL+"/digits")
			for _, data := range []string{"0123456789", ""} {
				f.mu.Lock()
				f.data = data
				f.mu.Unlock()
				for _, c := range []struct{ off, n int64 }{
					{0, -1}, {0, 10}, {0, 11}, {3, 4}, {3, -1}, {9, 1}, {9, 1 << 62}, {10, 1}, {11, 5}, {1 << 62, 1 << 62}, {4, 0}, {0, 0},
					{-3, -1}, {-3, 3}, {-3, 2}, {-3, 9}, {-10, 4}, {-20, -1}, {-20, 2},
				} {
					start, end := ranged.Clip(int64(len(data)), c.off, c.n)
					got, info, err := read(s, at, c.off, c.n, "")
					if err != nil || got != data[start:end] {
						t.Errorf("%+v of %d bytes: %q, %v, expected %q", c, len(data), got, err, data[start:end])
					}
					if info.Name != at || info.Size != int64(len(data)) || info.Version == "" || !info.ModTime.Equal(then) {
						t.Errorf("%+v: %+v", c, info)
					}
				}
			}
			f.mu.Lock()
			f.data = "0123456789"
			f.mu.Unlock()
			info, err := s.Stat(context.Background(), at)
			if err != nil || info.Size != 10 {
				t.Fatalf("%+v, %v", info, err)
			}
			if _, _, err := read(s, at, 2, 3, info.Version); err != nil {
				t.Errorf("pinned: %v", err)
			}
			f.mu.Lock()
			f.modified = then.Add(time.Hour)
			f.tag = strings.Replace(f.tag, "1", "2", 1)
			f.mu.Unlock()
			if _, _, err := read(s, at, 2, 3, info.Version); !errors.Is(err, storage.ErrChanged) {
				t.Errorf("a changed file: %v", err)
			}
		})
	}
}

// A server that ignores ranges sends no more than what is asked for, about.
func TestIgnoresRanges(t *testing.T) {
	size := 256 << 20
	f := &files{modified: then, data: strings.Repeat("0123456789abcdef", size/16)}
	server := httptest.NewServer(f)
	defer server.Close()
	s := open(Options{})
	at := resolve(t, s, server.URL+"/large")
	got, info, err := read(s, at, 0, 1000, "")
	if err != nil || got != f.data[:1000] || info.Size != int64(size) {
		t.Fatalf("%d bytes, %+v, %v", len(got), info, err)
	}
	server.CloseClientConnections()
	server.Close()                            // waits for the handler
	if sent := f.sent.Load(); sent > 32<<20 { // buffers of the system
		t.Errorf("%d bytes sent for 1,000", sent)
	}
	server = httptest.NewServer(f)
	defer server.Close()
	at = resolve(t, s, server.URL+"/large")
	if _, _, err := read(s, at, -8, -1, ""); !errors.Is(err, storage.ErrUnsupported) || !strings.Contains(err.Error(), "ignores ranges") {
		t.Errorf("the end of a large file: %v", err)
	}
}

func TestResolve(t *testing.T) {
	s := open(Options{})
	for _, c := range []struct{ uri, want string }{
		{"https://Host.example/sp/_metadata", "https://host.example/sp/_metadata"},
		{"HTTPS://host.example:443/a//b%20c", "https://host.example/a//b%20c"},
		{"http://host.example:80", "http://host.example"},
		{"http://host.example:8080/", "http://host.example:8080/"},
		{"http://[::1]:8080/x", "http://[::1]:8080/x"},
		{"https://me:SECRET@host.example/sp", "https://host.example/sp"},
		{"https://me:SECRET@host.example/sp/_metadata", "https://host.example/sp/_metadata"},
		{"https://host.example/one?X-Amz-Signature=SECRET", "https://host.example/one"},
		{"https://host.example/one?X-Amz-Signature=SECRET", "https://host.example/one"},
		{"https://host.example/one?id=SECRET2", "https://host.example/one?…2"},
		{"https://host.example/one?id=SECRET3", "https://host.example/one?…3"},
		{"https://host.example/one?id=SECRET2", "https://host.example/one?…2"},
		{"https://host.example/one?…2", "https://host.example/one?…2"}, // a name resolves to itself
		{"https://host.example/one", "https://host.example/one"},
		{"https://other:SECRET@host.example/sp", ""},
		{"https://me:SECRET@other.example/x", "https://other.example/x"},
		{"https://host.example/x#y", ""},
		{"https://host.example/x?a#y", ""},
		{"https:///x", ""},
		{"https:/x", ""},
		{"https://me:SEC%RET@host.example/x", ""},
		{"https://me:SECRET/SECRET@host.example/x", ""},
		{"ftp://host.example/x", ""},
	} {
		_, name, err := s.Resolve(context.Background(), c.uri)
		if c.want == "" {
			if !errors.Is(err, storage.ErrUnsupported) || strings.Contains(err.Error(), "SECRET") || strings.Contains(err.Error(), "SEC%RET") {
				t.Errorf("%s: %q, %v", c.uri, name, err)
			}
			continue
		}
		if err != nil || name != c.want {
			t.Errorf("%s: %q, %v, expected %q", c.uri, name, err, c.want)
		}
	}
}

// What is requested is what was given, whatever the name is.
func TestRequests(t *testing.T) {
	f := &files{data: "x", tag: `"1"`, ranges: true, modified: then}
	server := httptest.NewServer(f)
	defer server.Close()
	at := func(rest string) string { return server.URL + "/" + rest }
	s := open(Options{})
	for uri, want := range map[string]string{
		at("a//b%20c%2Fd"):    "/a//b%20c%2Fd",
		at("a b/ü/100%/[x]"):  "/a%20b/%C3%BC/100%25/%5Bx%5D",
		at("../x/./y;z,=+&"):  "/../x/./y;z,=+&",
		at("one?a=b/c&d=%2F"): "/one?a=b/c&d=%2F",
		at("one?second"):      "/one?second",
		server.URL:            "/",
	} {
		if _, err := s.Stat(context.Background(), resolve(t, s, uri)); err != nil {
			t.Errorf("%s: %v", uri, err)
		}
		if got := f.requests[len(f.requests)-1].RequestURI; got != want {
			t.Errorf("%s: requested %s, expected %s", uri, got, want)
		}
	}
	before := len(f.requests)
	_, err := s.Stat(context.Background(), resolve(t, s, at("dir?sig=SECRET"))+"/_metadata")
	var e *storage.Error
	if !errors.Is(err, storage.ErrNotExist) || !errors.As(err, &e) || !strings.Contains(e.Hint, "address of one file") || len(f.requests) != before {
		t.Errorf("a directory with a query: %v", err)
	}
	host := strings.TrimPrefix(server.URL, "http://")
	name := resolve(t, s, "http://me:p%40ss@"+host+"/x")
	if _, err := s.Stat(context.Background(), name); err != nil {
		t.Fatal(err)
	}
	if user, password, _ := f.requests[len(f.requests)-1].BasicAuth(); user != "me" || password != "p@ss" {
		t.Errorf("user %q, password %q", user, password)
	}
	a, err := s.Access(context.Background(), name)
	if err != nil || a.Endpoint != server.URL || a.Identity != "me" || a.Credentials != "user in the URL" || !a.Clocked || strings.Contains(fmt.Sprintf("%+v", a), "p@ss") {
		t.Errorf("%+v, %v", a, err)
	}
}

func TestRedirects(t *testing.T) {
	target := &files{data: "0123456789", tag: `"1"`, ranges: true, modified: then}
	other := httptest.NewServer(target)
	defer other.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/x?SECRET", http.StatusFound)
	}))
	defer secure.Close()
	var mux http.ServeMux
	mux.HandleFunc("/away", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/x?sig=1", http.StatusTemporaryRedirect)
	})
	mux.HandleFunc("/loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/loop?SECRET", http.StatusFound) })
	mux.HandleFunc("/nowhere", func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusFound) })
	mux.HandleFunc("/same", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/here", http.StatusFound) })
	mux.Handle("/here", target)
	server := httptest.NewServer(&mux)
	defer server.Close()
	s := open(Options{Retries: 1})
	s.client.HTTP().Transport.(*http.Transport).TLSClientConfig = secure.Client().Transport.(*http.Transport).TLSClientConfig
	user := strings.Replace(server.URL, "//", "//me:SECRET@", 1)

	got, _, err := read(s, resolve(t, s, user+"/away?SECRET"), 2, 3, "")
	if err != nil || got != "234" {
		t.Fatalf("%q, %v", got, err)
	}
	last := target.requests[len(target.requests)-1]
	if last.Header.Get("Authorization") != "" || last.Header.Get("Referer") != "" {
		t.Errorf("sent to another host: %v", last.Header)
	}
	if _, _, err = read(s, resolve(t, s, user+"/same"), 0, 1, ""); err != nil || target.requests[len(target.requests)-1].Header.Get("Authorization") == "" {
		t.Errorf("a redirect on the same server: %v", err)
	}
	n := len(target.requests)
	for uri, says := range map[string]string{
		secure.URL + "/x":       "from https to http: redirect refused",
		server.URL + "/loop":    "more than 10 redirects",
		server.URL + "/nowhere": "302 Found",
	} {
		_, _, err := read(s, resolve(t, s, uri), 0, 1, "")
		if !errors.Is(err, storage.ErrUnsupported) || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	if len(target.requests) != n {
		t.Error("a refused redirect was followed")
	}
}

func TestFailures(t *testing.T) {
	ctx := context.Background()
	status, body, header := 200, "", http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(status)
		io.WriteString(w, body)
	}))
	defer server.Close()
	const xmlBody = `<?xml version="1.0"?><Error><Code>AccessDenied</Code><Message>Request has expired</Message><StringToSign>SECRET</StringToSign></Error>`
	signed := server.URL + "/x.spt?X-Amz-Signature=SECRET"
	for _, c := range []struct {
		uri    string
		status int
		body   string
		header http.Header
		kind   error
		says   string
	}{
		{signed, 403, xmlBody, nil, storage.ErrPermission, "AccessDenied: Request has expired"},
		{signed, 403, "<html>SECRET</html>", nil, storage.ErrPermission, "403 Forbidden"},
		{signed, 404, "", nil, storage.ErrNotExist, "404 Not Found"},
		{server.URL + "/x", 401, "", nil, storage.ErrPermission, "https://USER:PASSWORD@HOST/PATH"},
		{server.URL + "/x", 410, "", nil, storage.ErrNotExist, "410"},
		{server.URL + "/x", 405, "", nil, storage.ErrUnsupported, "405"},
		{server.URL + "/x", 503, "", nil, storage.ErrUnavailable, "503"},
		{server.URL + "/x", 429, "", nil, storage.ErrUnavailable, "429"},
		{server.URL + "/x", 200, "x", http.Header{"Content-Encoding": {"gzip"}}, storage.ErrUnsupported, "Content-Encoding gzip"},
		{server.URL + "/x", 206, "x", http.Header{"Content-Range": {"bytes 0-0/*"}}, storage.ErrUnsupported, "expected the size"},
		{server.URL + "/x", 206, "x", http.Header{"Content-Range": {"bytes 5-5/10"}}, storage.ErrUnsupported, "expected bytes from 0, found bytes from 5"},
		{server.URL + "/x", 200, strings.Repeat("x", 100_000), http.Header{"Transfer-Encoding": {"chunked"}}, storage.ErrUnsupported, "does not state the size"},
	} {
		status, body, header = c.status, c.body, c.header
		count := 0
		s := open(Options{Retries: 2, Retried: func(r storage.Retry) {
			count++
			if strings.Contains(fmt.Sprintf("%+v %v", r, r.Err), "SECRET") {
				t.Errorf("a secret in %+v", r)
			}
		}})
		_, _, err := read(s, resolve(t, s, c.uri), 0, 1, "")
		var e *storage.Error
		if !errors.Is(err, c.kind) || !errors.As(err, &e) || !strings.Contains(err.Error()+e.Hint, c.says) || strings.Contains(fmt.Sprintf("%+v", e), "SECRET") {
			t.Errorf("%d: %v", c.status, err)
		}
		if want := map[bool]int{true: 2}[c.kind == storage.ErrUnavailable]; count != want {
			t.Errorf("%d: %d retries, expected %d", c.status, count, want)
		}
	}

	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for name, host := range map[string]string{"silent": silent.Addr().String(), "refuses": fmt.Sprintf("127.0.0.1:%d", servertest.Port(t)), "no TLS": strings.TrimPrefix(server.URL, "http://")} {
		s := open(Options{Retries: 1, silence: 20 * time.Millisecond})
		scheme := "http"
		if name == "no TLS" {
			scheme = "https"
		}
		_, _, err := read(s, resolve(t, s, scheme+"://me:SECRET@"+host+"/x?SECRET"), 0, 1, "")
		if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v", name, err)
		}
	}
	untrusted := httptest.NewUnstartedServer(http.NotFoundHandler())
	untrusted.Config.ErrorLog = log.New(io.Discard, "", 0)
	untrusted.StartTLS()
	defer untrusted.Close()
	retried := 0
	s := open(Options{Retried: func(storage.Retry) { retried++ }})
	if _, _, err := read(s, resolve(t, s, untrusted.URL+"/x?SECRET"), 0, 1, ""); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "certificate") || retried > 0 {
		t.Errorf("an untrusted certificate: %v, %d retries", err, retried)
	}

	s = open(Options{})
	for info, err := range s.List(ctx, server.URL+"/d/", "/") {
		var e *storage.Error
		if !errors.Is(err, storage.ErrUnsupported) || !errors.As(err, &e) || e.Hint == "" {
			t.Errorf("list: %+v, %v", info, err)
		}
	}
	if _, err := s.Create(ctx, server.URL+"/x", storage.CreateOptions{}); !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("create: %v", err)
	}
	if err := s.Delete(ctx, server.URL+"/x"); !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("delete: %v", err)
	}
	if err := s.Delete(ctx); err != nil {
		t.Error(err)
	}
}

// A read that is cut off resumes, and a context ends it.
func TestCutOff(t *testing.T) {
	data := testBytes(300_000)
	f := &files{data: string(data), tag: `"1"`, ranges: true, checks: true, modified: then}
	var n atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if n.Add(1) <= 2 {
			answer := httptest.NewRecorder()
			f.ServeHTTP(answer, r)
			for k, v := range answer.Header() {
				w.Header()[k] = v
			}
			w.WriteHeader(answer.Code)
			w.Write(answer.Body.Bytes()[:answer.Body.Len()/2])
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		f.ServeHTTP(w, r)
	}))
	defer server.Close()
	s := open(Options{})
	at := resolve(t, s, server.URL+"/x?sig=SECRET")
	got, err := ranged.NewReader(s, at, "").ReadRange(context.Background(), 0, -1)
	if err != nil || !bytes.Equal(got, data) || n.Load() != 3 {
		t.Fatalf("%d bytes in %d requests, %v", len(got), n.Load(), err)
	}
	if f.requests[1].Header.Get("If-Match") != `"1"` {
		t.Error("the second read is not pinned")
	}
	ctx, cancel := context.WithCancel(context.Background())
	body, _, err := s.ReadRange(ctx, at, 0, -1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	cancel()
	if _, err := body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if _, _, err := s.ReadRange(ctx, at, 0, 1, ""); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// The server that everybody has at hand ignores ranges.
func TestPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		testenv.Missing(t, "python3", err)
	}
	dir := t.TempDir()
	data := testBytes(100_000)
	if err := os.WriteFile(filepath.Join(dir, "x"), data, 0o600); err != nil {
		t.Fatal(err)
	}
	port := fmt.Sprint(servertest.Port(t))
	cmd := exec.Command(python, "-m", "http.server", "--bind", "127.0.0.1", port)
	cmd.Dir = dir
	s := open(Options{})
	at := resolve(t, s, "http://127.0.0.1:"+port+"/x")
	servertest.Start(t, cmd, func() error {
		resp, err := http.Get(at)
		if err == nil {
			err = resp.Body.Close()
		}
		return err
	})
	for _, c := range []struct{ off, n int64 }{{0, 10}, {50_000, 10}, {-8, -1}, {0, -1}} {
		start, end := ranged.Clip(int64(len(data)), c.off, c.n)
		got, info, err := read(s, at, c.off, c.n, "")
		if err != nil || got != string(data[start:end]) || info.Size != int64(len(data)) || info.Version == "" {
			t.Errorf("%+v: %d bytes, %+v, %v", c, len(got), info, err)
		}
	}
	if _, err := s.Stat(context.Background(), at+"y"); !errors.Is(err, storage.ErrNotExist) {
		t.Error(err)
	}
}
