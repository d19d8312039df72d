package azure

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// proxy forwards requests to an emulator, except for the faults.
type proxy struct {
	*httptest.Server
	forward http.Handler
	mu      sync.Mutex
	calls   []string
	hook    func(w http.ResponseWriter, r *http.Request) bool // reports whether it answered
}

func newProxy(t *testing.T, a *servertest.Azurite) *proxy {
	t.Helper()
	target, err := url.Parse(a.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	p := &proxy{forward: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.URL.RawPath = r.In.URL.RawPath // as it was signed
	}}}
	p.Server = httptest.NewServer(p)
	t.Cleanup(p.Close)
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	call := r.Method
	if comp := r.URL.Query().Get("comp"); comp != "" {
		call += " " + comp
	}
	if r.Header.Get(headerCopySource) != "" {
		call += " from"
	}
	p.mu.Lock()
	p.calls = append(p.calls, call)
	hook := p.hook
	p.mu.Unlock()
	if hook == nil || !hook(w, r) {
		p.forward.ServeHTTP(w, r)
	}
}

// set sets the fault and forgets the calls.
func (p *proxy) set(hook func(http.ResponseWriter, *http.Request) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hook, p.calls = hook, nil
}

func (p *proxy) want(t *testing.T, what string, calls ...string) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if got := strings.Join(p.calls, ", "); got != strings.Join(calls, ", ") {
		t.Errorf("%s: %s, expected %s", what, got, strings.Join(calls, ", "))
	}
	p.calls = nil
}

// store returns a store behind the proxy that retries quickly.
func (p *proxy) store(a *servertest.Azurite, o Options) *Store {
	o.Endpoint, o.Pause = p.URL+"/"+a.Account, time.Millisecond
	return byKey(a, o)
}

// answerWith answers as the service does.
func answerWith(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("x-ms-error-code", code)
	w.WriteHeader(status)
	_ = xml.NewEncoder(w).Encode(struct {
		XMLName       xml.Name `xml:"Error"`
		Code, Message string
	}{Code: code, Message: message + "\nRequestId:1\nTime:2"})
}

// lose lets the server do a request, and loses its answer.
func (p *proxy) lose(w http.ResponseWriter, r *http.Request) {
	p.forward.ServeHTTP(httptest.NewRecorder(), r)
	panic(http.ErrAbortHandler)
}

// want checks the kind of an error, and that no text of it has a secret.
func want(t *testing.T, err, kind error, secrets ...string) *storage.Error {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("error %v, expected %v", err, kind)
	}
	var e *storage.Error
	if !errors.As(err, &e) {
		t.Fatalf("%#v is not a *storage.Error", err)
	}
	for _, secret := range append(secrets, "sig=") {
		if text := fmt.Sprintf("%v %+v %s", err, err, e.Hint); secret != "" && strings.Contains(strings.ReplaceAll(text, "sig=…", ""), secret) {
			t.Errorf("a secret is in %s", text)
		}
	}
	return e
}

func write(s storage.Storage, name string, o storage.CreateOptions, pieces ...string) (storage.Writer, error) {
	w, err := s.Create(context.Background(), name, o)
	if err != nil {
		return nil, err
	}
	for _, p := range pieces {
		if _, err := io.WriteString(w, p); err != nil {
			return w, err
		}
	}
	_, err = w.Commit(context.Background())
	return w, err
}

func testRequests(t *testing.T, a *servertest.Azurite) {
	p := newProxy(t, a)
	s := p.store(a, Options{PartSize: 4})
	name := unused(a) + "x"
	ctx := t.Context()
	if _, err := write(s, name, storage.CreateOptions{}, "0123"); err != nil {
		t.Fatal(err)
	}
	p.want(t, "a small object", "PUT")
	if _, err := write(s, name, storage.CreateOptions{Size: 10}, "0123", "456789"); err != nil {
		t.Fatal(err)
	}
	p.want(t, "an object of three blocks", "PUT block", "PUT block", "PUT block", "PUT blocklist")
	info, err := s.Stat(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	p.want(t, "stat", "HEAD")
	for _, c := range []struct {
		off, n int64
		text   string
		calls  []string
	}{
		{0, -1, "0123456789", []string{"GET"}},
		{2, 3, "234", []string{"GET"}},
		{-3, -1, "789", []string{"HEAD", "GET"}},
		{20, 1, "", []string{"GET", "HEAD"}},
	} {
		rc, got, err := s.ReadRange(ctx, name, c.off, c.n, info.Version)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(rc)
		if err := errors.Join(err, rc.Close()); err != nil {
			t.Fatal(err)
		}
		if string(text) != c.text || got != info {
			t.Errorf("%d, %d: %q, %+v", c.off, c.n, text, got)
		}
		p.want(t, fmt.Sprintf("read %d, %d", c.off, c.n), c.calls...)
	}
	storetest.Names(t, s, name, "/")
	p.want(t, "list", "GET list")
	if err := s.Delete(ctx, name, name+"2"); err != nil {
		t.Fatal(err)
	}
	p.want(t, "delete", "DELETE", "DELETE")
}

// The whole suite succeeds while every third request is refused.
func testBusyService(t *testing.T, a *servertest.Azurite) {
	p := newProxy(t, a)
	var n, retries atomic.Int64
	p.set(func(w http.ResponseWriter, r *http.Request) bool {
		if n.Add(1)%3 != 0 {
			return false
		}
		answerWith(w, http.StatusServiceUnavailable, "ServerBusy", "The server is busy.")
		return true
	})
	s := p.store(a, Options{PartSize: 64 << 10, Retried: func(r storage.Retry) {
		retries.Add(1)
		if !errors.Is(r.Err, storage.ErrUnavailable) || r.Op == "" || r.Name == "" || r.Attempt < 1 || !strings.Contains(r.Err.Error(), "503 ServerBusy") {
			t.Errorf("%+v", r)
		}
	}})
	storetest.Run(t, func(*testing.T) (storage.Storage, string) { return s, unused(a) })
	if retries.Load() == 0 {
		t.Error("no request was made again")
	}
}

func testAttempts(t *testing.T, a *servertest.Azurite) {
	p := newProxy(t, a)
	p.set(func(w http.ResponseWriter, r *http.Request) bool {
		answerWith(w, http.StatusInternalServerError, "InternalError", "")
		return true
	})
	_, err := p.store(a, Options{Retries: 3}).Stat(t.Context(), base(a)+"x")
	want(t, err, storage.ErrUnavailable)
	p.want(t, "three attempts", "HEAD", "HEAD", "HEAD")
}

// A write whose answer is lost is made again, and refused. It succeeded.
func testLostAnswer(t *testing.T, a *servertest.Azurite) {
	p := newProxy(t, a)
	s := p.store(a, Options{PartSize: 512 << 10})
	big := strings.Repeat("0123456789abcdef", 100<<10)
	src := storetest.Put(t, s, unused(a)+"src", big)
	for _, o := range []storage.CreateOptions{{}, {IfAbsent: true}, {Replace: "set"}} {
		for _, kind := range []string{"small", "large", "copy"} {
			name := unused(a) + "x"
			if o.Replace != "" {
				o.Replace = storetest.Put(t, s, name, "old").Version
			}
			var lost atomic.Bool
			p.set(func(w http.ResponseWriter, r *http.Request) bool {
				final := r.URL.Query().Get("comp") == "blocklist" || r.URL.Query().Get("comp") == ""
				if r.Method == http.MethodPut && final && lost.CompareAndSwap(false, true) {
					p.lose(w, r)
				}
				return false
			})
			text := "small"
			var err error
			switch kind {
			case "small":
				_, err = write(s, name, o, text)
			case "large":
				text = big
				_, err = write(s, name, o, text)
			case "copy":
				text = big
				o := o
				o.Size = src.Size
				var w storage.Writer
				if w, err = s.Create(t.Context(), name, o); err == nil {
					if err = s.CopyRange(t.Context(), w, s, src.Name, 0, -1, src.Version); err == nil {
						_, err = w.Commit(t.Context())
					}
				}
			}
			p.set(nil)
			if err != nil || !lost.Load() {
				t.Fatalf("%s %+v: lost %v, %v", kind, o, lost.Load(), err)
			}
			if storetest.Read(t, s, name) != text {
				t.Errorf("%s %+v: other content", kind, o)
			}
		}
	}
}

// An upload that fails leaves nothing that can be seen, even if its last request
// succeeded and no answer came.
func testAbort(t *testing.T, a *servertest.Azurite) {
	p := newProxy(t, a)
	for what, hook := range map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"refused": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				answerWith(w, http.StatusForbidden, "AuthorizationPermissionMismatch", "This request is not authorized.")
			}
			return r.Method == http.MethodPut
		},
		"blocks refused": func(w http.ResponseWriter, r *http.Request) bool {
			if r.URL.Query().Get("comp") != "block" {
				return false
			}
			answerWith(w, http.StatusBadRequest, "InvalidBlobOrBlock", "The specified blob or block content is invalid.")
			return true
		},
		"all answers lost": func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method == http.MethodPut {
				p.lose(w, r)
			}
			return false
		},
	} {
		for _, text := range []string{"x", "0123456789"} {
			if what == "blocks refused" && text == "x" {
				continue
			}
			s := p.store(a, Options{PartSize: 4, Retries: 2})
			prefix := unused(a)
			p.set(hook)
			w, err := write(s, prefix+"x", storage.CreateOptions{IfAbsent: true}, text)
			if err == nil && what != "all answers lost" {
				t.Errorf("%s: no error", what)
			}
			if err == nil { // the second attempt was told that the object exists, and it is its own
				continue
			}
			want(t, err, err, a.Key)
			if err := w.Abort(t.Context()); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			p.set(nil)
			if names := storetest.Names(t, s, prefix, ""); len(names) > 0 {
				t.Errorf("%s: left %v", what, names)
			}
		}
	}
}

// Another program commits the same name while blocks are sent.
func testOvertaken(t *testing.T, a *servertest.Azurite) {
	s := byKey(a, Options{PartSize: 4})
	for o, kind := range map[storage.CreateOptions]error{{IfAbsent: true}: storage.ErrExist, {Replace: "set"}: storage.ErrChanged} {
		name := unused(a) + "x"
		if o.Replace != "" {
			o.Replace = storetest.Put(t, s, name, "old").Version
		}
		w, err := s.Create(t.Context(), name, o)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, "0123456789"); err != nil {
			t.Fatal(err)
		}
		storetest.Put(t, s, name, "of others")
		_, err = w.Commit(t.Context())
		want(t, err, kind)
		if err := w.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := storetest.Read(t, s, name); got != "of others" {
			t.Errorf("%+v: %q", o, got)
		}
	}
}

// A body that is cut off is ErrUnavailable, and resumed by a ranged.Reader.
func testCutBody(t *testing.T, a *servertest.Azurite) {
	p := newProxy(t, a)
	s := p.store(a, Options{})
	text := strings.Repeat("0123456789", 20<<10)
	name := unused(a) + "x"
	storetest.Put(t, s, name, text)
	var n atomic.Int64
	cut := func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodGet || n.Add(1) > 2 {
			return false
		}
		rec := httptest.NewRecorder()
		p.forward.ServeHTTP(rec, r)
		for k, v := range rec.Header() {
			w.Header()[k] = v
		}
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	p.set(cut)
	rc, _, err := s.ReadRange(t.Context(), name, 0, -1, "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.ReadAll(rc)
	want(t, err, storage.ErrUnavailable)
	rc.Close()
	n.Store(0)
	body, _, err := ranged.NewReader(s, name, "").Open(t.Context(), 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	if got, err := io.ReadAll(body); err != nil || string(got) != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// A service that does not answer, or stops in the middle, is given up.
func testHangingService(t *testing.T, a *servertest.Azurite) {
	p := newProxy(t, a)
	s := p.store(a, Options{Idle: 300 * time.Millisecond, Retries: 1})
	name := unused(a) + "x"
	storetest.Put(t, s, name, "0123456789")
	p.set(func(w http.ResponseWriter, r *http.Request) bool {
		_, _ = io.Copy(io.Discard, r.Body) // else the end of the connection is not seen
		<-r.Context().Done()
		return true
	})
	_, err := s.Stat(t.Context(), name)
	want(t, err, storage.ErrUnavailable)
	_, err = write(s, name, storage.CreateOptions{}, "text")
	want(t, err, storage.ErrUnavailable)
	p.set(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Content-Length", "10")
		w.Header().Set("Etag", `"1"`)
		_, _ = io.WriteString(w, "01234")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		return true
	})
	rc, _, err := s.ReadRange(t.Context(), name, 0, -1, "")
	if err != nil {
		t.Fatal(err)
	}
	defer rc.Close()
	got, err := io.ReadAll(rc)
	want(t, err, storage.ErrUnavailable)
	if string(got) != "01234" {
		t.Errorf("%q", got)
	}
}

func TestNobodyListens(t *testing.T) {
	a := &servertest.Azurite{Account: "teststate", Key: "c2VjcmV0", Endpoint: fmt.Sprintf("http://127.0.0.1:%d/teststate", servertest.Port(t))}
	s := byKey(a, Options{Retries: 2, Pause: time.Millisecond})
	_, err := s.Stat(t.Context(), base(a)+"x")
	want(t, err, storage.ErrUnavailable, a.Key)
	ctx, cancel := context.WithCancel(t.Context())
	s = byKey(a, Options{Pause: time.Hour, Deadline: 2 * time.Hour, Retried: func(storage.Retry) { cancel() }})
	_, err = s.Stat(ctx, base(a)+"x")
	want(t, err, context.Canceled)
}

func testRefused(t *testing.T, a *servertest.Azurite) {
	p := newProxy(t, a)
	good := byKey(a, Options{})
	name := unused(a) + "x"
	storetest.Put(t, good, name, "x")
	const wrong = "d3Jvbmcga2V5IG9mIHRoZSBhY2NvdW50"
	signed := func(end time.Time) string {
		key, err := sas.BlobSignatureValues{ContainerName: "state", ExpiryTime: end, Permissions: "rl"}.SignWithSharedKey(byKeyCredential(t, a))
		if err != nil {
			t.Fatal(err)
		}
		return key.Encode()
	}
	expired, valid := signed(time.Now().UTC().Add(-time.Hour)), signed(time.Now().UTC().Add(time.Hour))

	s := New(Options{Endpoint: a.Endpoint, Getenv: env(envSAS, "?"+valid)})
	if got := storetest.Read(t, s, name); got != "x" {
		t.Errorf("with a signature: %q", got)
	}
	_, err := write(s, name+"2", storage.CreateOptions{}, "x")
	want(t, err, storage.ErrPermission, valid)

	for what, s := range map[string]*Store{
		"wrong key":         New(Options{Endpoint: a.Endpoint, Getenv: env(envAccount, a.Account, envKey, wrong)}),
		"expired signature": New(Options{Endpoint: a.Endpoint, Getenv: env(envSAS, expired)}),
	} {
		for op, do := range map[string]func() error{
			"stat": func() error { _, err := s.Stat(t.Context(), name); return err },
			"read": func() error { _, _, err := s.ReadRange(t.Context(), name, 0, 1, ""); return err },
			"list": func() (err error) {
				for _, err = range s.List(t.Context(), name, "") {
				}
				return err
			},
			"delete": func() error { return s.Delete(t.Context(), name) },
			"commit": func() error { _, err := write(s, name, storage.CreateOptions{}, "y"); return err },
		} {
			e := want(t, do(), storage.ErrPermission, wrong, expired, a.Key)
			if e.Op != op || e.Setting != storage.SettingCredentials || e.Hint == "" {
				t.Errorf("%s, %s: %+v", what, op, e)
			}
			if op == "stat" && !strings.Contains(e.Error(), "AuthenticationFailed: Server failed") && !strings.Contains(e.Error(), "AuthorizationFailure: Server failed") {
				t.Errorf("%s: the message is missing: %v", what, e)
			}
		}
	}
	_, err = New(Options{Endpoint: a.Endpoint, Anonymous: true, Getenv: env()}).Stat(t.Context(), name)
	if err == nil {
		t.Error("anonymous access to a container that is not public")
	}

	elsewhere := strings.Replace(name, "state@", "missing@", 1)
	_, err = good.Stat(t.Context(), elsewhere)
	want(t, err, storage.ErrNotExist)
	_, err = write(good, elsewhere, storage.CreateOptions{}, "x")
	if e := want(t, err, storage.ErrNotExist); !strings.Contains(e.Hint, "container") {
		t.Errorf("%+v", e)
	}
	for _, err = range good.List(t.Context(), elsewhere, "") {
	}
	want(t, err, storage.ErrNotExist)

	past := time.Now().Add(-20 * time.Minute).UTC()
	p.set(func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Date", past.Format(http.TimeFormat))
		answerWith(w, http.StatusForbidden, "AuthenticationFailed", "Server failed to authenticate the request.")
		return true
	})
	_, err = p.store(a, Options{}).Stat(t.Context(), name)
	if e := want(t, err, storage.ErrPermission); e.Setting != storage.SettingClock || !strings.Contains(e.Hint, past.Format(time.RFC3339)) {
		t.Errorf("%+v", e)
	}
}

// Blobs that stand for directories are not objects.
func testDirectories(t *testing.T, a *servertest.Azurite) {
	s := byKey(a, Options{})
	prefix := unused(a)
	at, err := parse("", prefix)
	if err != nil {
		t.Fatal(err)
	}
	acc, err := s.account(at)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"dir", "dir/empty", "slash/"} {
		meta := map[string]*string{}
		if dir != "slash/" {
			yes := "true"
			meta["hdi_isfolder"] = &yes
		}
		if _, err := acc.container(at).NewBlockBlobClient(at.key+dir).Upload(t.Context(), seekable(nil), &uploadOptions{Metadata: meta}); err != nil {
			t.Fatal(err)
		}
	}
	storetest.Put(t, s, prefix+"dir/x", "x")
	storetest.Put(t, s, prefix+"dir-a", "x")
	storetest.Put(t, s, prefix+"slash/x", "x")
	for list, names := range map[string]string{
		prefix: "dir-a dir/x slash/ slash/x", prefix + "slash/": "slash/x", prefix + "dir/": "dir/x", prefix + "dir": "dir-a dir/x",
	} {
		if got := strings.ReplaceAll(strings.Join(storetest.Names(t, s, list, ""), " "), prefix, ""); got != names {
			t.Errorf("%s: %q, expected %q", list, got, names)
		}
	}
	if got := strings.ReplaceAll(strings.Join(storetest.Names(t, s, prefix, "/"), " "), prefix, ""); got != "dir-a dir/ slash/" {
		t.Errorf("%q", got)
	}
	for _, off := range []int64{0, 5, -5} {
		for _, n := range []int64{-1, 0, 5} {
			_, _, err := s.ReadRange(t.Context(), prefix+"dir", off, n, "")
			want(t, err, storage.ErrNotExist)
		}
	}
	_, err = s.Stat(t.Context(), prefix+"dir")
	want(t, err, storage.ErrNotExist)
}

// Keys are neither cleaned nor decoded.
func testOddKeys(t *testing.T, a *servertest.Azurite) {
	s := byKey(a, Options{})
	prefix := unused(a)
	for _, key := range []string{
		"a b+c%25/ü=1/_metadata", "a//b", "x", "x/y", "?q=1&r", "#f", "a/../b", "a/./b", "%2F", "a:b@c", "a'b\"c", "/lead",
	} {
		name := prefix + key
		src := storetest.Put(t, s, name, key)
		if got := storetest.Read(t, s, name); got != key {
			t.Errorf("%q: read %q", key, got)
		}
		if got := storetest.Names(t, s, name, ""); len(got) == 0 || got[0] != name {
			t.Errorf("%q: listed %q", key, got)
		}
		w, err := s.Create(t.Context(), prefix+"copy", storage.CreateOptions{Size: src.Size})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CopyRange(t.Context(), w, s, name, 0, -1, src.Version); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(t.Context()); err != nil {
			t.Errorf("%q: %v", key, err)
		} else if got := storetest.Read(t, s, prefix+"copy"); got != key {
			t.Errorf("%q: copied %q", key, got)
		}
		if err := s.Delete(t.Context(), name); err != nil {
			t.Fatal(err)
		}
		if got := storetest.Names(t, s, name, ""); len(got) != 0 && got[0] == name {
			t.Errorf("%q: not deleted", key)
		}
	}
}

// blocksFrom does what the emulator cannot: Put Block From URL. It reads the source
// with nothing but what the request has.
func (p *proxy) blocksFrom(t *testing.T, a *servertest.Azurite, client *container.Client, key string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		from := r.Header.Get(headerCopySource)
		if from == "" || r.URL.Query().Get("comp") != "block" {
			return false
		}
		req, err := http.NewRequest(http.MethodGet, strings.Replace(from, p.URL, strings.TrimSuffix(a.Endpoint, "/"+a.Account), 1), nil)
		if err != nil {
			t.Error(err)
			return true
		}
		req.Header.Set("x-ms-version", r.Header.Get("x-ms-version"))
		req.Header.Set("x-ms-range", r.Header.Get("x-ms-source-range"))
		req.Header.Set("If-Match", r.Header.Get("x-ms-source-if-match"))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Error(err)
			return true
		}
		defer resp.Body.Close()
		data, _ := io.ReadAll(resp.Body)
		switch resp.StatusCode {
		case http.StatusPartialContent, http.StatusOK:
		case http.StatusPreconditionFailed:
			answerWith(w, resp.StatusCode, "SourceConditionNotMet", "The source condition specified using HTTP conditional header(s) is not met.")
			return true
		default:
			answerWith(w, resp.StatusCode, "CannotVerifyCopySource", string(data))
			return true
		}
		if _, err := client.NewBlockBlobClient(key).StageBlock(r.Context(), r.URL.Query().Get("blockid"), seekable(data), nil); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusCreated)
		return true
	}
}

func testCopies(t *testing.T, a *servertest.Azurite) {
	p := newProxy(t, a)
	text := strings.Repeat("0123456789abcdef", 64<<10) // 1 MiB
	prefix := unused(a)
	src := storetest.Put(t, byKey(a, Options{}), prefix+"src", text)
	client := a.Client(t).NewContainerClient("state")
	at, _ := parse("", prefix+"dst")
	server := p.blocksFrom(t, a, client, at.key)

	copied := func(s *Store, name string, size int64, spans ...[2]int64) error {
		w, err := s.Create(t.Context(), name, storage.CreateOptions{Size: size})
		if err != nil {
			return err
		}
		defer w.Abort(context.Background())
		for _, span := range spans {
			if err := ranged.CopyRange(t.Context(), s, w, s, src.Name, span[0], span[1], src.Version); err != nil {
				return err
			}
		}
		_, err = w.Commit(t.Context())
		return err
	}

	s := p.store(a, Options{})
	if err := copied(s, prefix+"dst", src.Size, [2]int64{0, -1}); err != nil {
		t.Fatal(err)
	}
	p.want(t, "a whole object", "PUT from")
	if storetest.Read(t, s, prefix+"dst") != text {
		t.Error("other content")
	}

	p.set(server)
	if err := copied(s, prefix+"dst", 0, [2]int64{16, 512 << 10}, [2]int64{0, 16}, [2]int64{0, 700 << 10}); err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	calls := strings.Join(p.calls, ", ")
	p.mu.Unlock()
	// The properties once, the short range and what fills it up to a block are read.
	if strings.Count(calls, "PUT block from") != 2 || strings.Count(calls, "HEAD") != 1 || strings.Count(calls, "GET") != 2 {
		t.Errorf("ranges: %s", calls)
	}
	if got := storetest.Read(t, s, prefix+"dst"); got != text[16:16+512<<10]+text[:16]+text[:700<<10] {
		t.Errorf("ranges: other content, %d bytes", len(got))
	}

	// The emulator itself: the first refusal is remembered.
	p.set(nil)
	for range 2 {
		if err := copied(s, prefix+"dst", 0, [2]int64{16, 512 << 10}, [2]int64{0, 512 << 10}); err != nil {
			t.Fatal(err)
		}
		if got := storetest.Read(t, s, prefix+"dst"); got != text[16:16+512<<10]+text[:512<<10] {
			t.Errorf("through this process: other content, %d bytes", len(got))
		}
	}
	p.mu.Lock()
	refused := strings.Count(strings.Join(p.calls, ", "), "PUT block from")
	p.mu.Unlock()
	if refused == 0 || refused > 2 { // two at once
		t.Errorf("refused %d times", refused)
	}

	// A service that copies nothing.
	p.set(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get(headerCopySource) == "" {
			return false
		}
		answerWith(w, http.StatusForbidden, "CannotVerifyCopySource", "This request is not authorized to perform this operation.")
		return true
	})
	if err := copied(p.store(a, Options{}), prefix+"dst", src.Size, [2]int64{0, -1}); err != nil {
		t.Fatal(err)
	}
	if storetest.Read(t, s, prefix+"dst") != text {
		t.Error("whole, through this process: other content")
	}

	// The source changes before Commit.
	p.set(server)
	s = p.store(a, Options{})
	for _, span := range [][2]int64{{0, -1}, {16, 512 << 10}} {
		w, err := s.Create(t.Context(), prefix+"dst2", storage.CreateOptions{Size: map[bool]int64{true: src.Size}[span[1] < 0]})
		if err != nil {
			t.Fatal(err)
		}
		dst := w.(*writer)
		dst.sources[source{src.Name, src.Version}] = src
		changed := storetest.Put(t, byKey(a, Options{}), src.Name, text)
		err = s.CopyRange(t.Context(), w, s, src.Name, span[0], span[1], src.Version)
		if err == nil {
			_, err = w.Commit(t.Context())
		}
		want(t, err, storage.ErrChanged, a.Key)
		if err := w.Abort(t.Context()); err != nil {
			t.Fatal(err)
		}
		src = changed
	}
	_, err := s.Stat(t.Context(), prefix+"dst2")
	want(t, err, storage.ErrNotExist)
}

// fakeToken is a token that only a fake service accepts.
type fakeToken struct{}

const tokenText = "token-of-the-test"

func (fakeToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: tokenText, ExpiresOn: time.Now().Add(time.Hour)}, nil
}

// With a token, the service is given it for the source of a copy as well.
func TestToken(t *testing.T) {
	var copies atomic.Int64
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer "+tokenText {
			t.Errorf("authorized by %q", r.Header.Get("Authorization"))
		}
		w.Header().Set("ETag", `"0x1"`)
		w.Header().Set("Last-Modified", time.Now().UTC().Format(http.TimeFormat))
		if from := r.Header.Get(headerCopySource); from != "" {
			copies.Add(1)
			if r.Header.Get("x-ms-copy-source-authorization") != "Bearer "+tokenText || r.Header.Get("x-ms-source-if-match") != `"0x9"` || r.Header.Get("If-None-Match") != "*" && r.URL.Query().Get("comp") == "" {
				t.Errorf("copied with %v", r.Header)
			}
			if u, err := url.Parse(from); err != nil || u.Path != "/prod/state/src" || u.RawQuery != "" {
				t.Errorf("copied from %s", from)
			}
		}
		if r.Header.Get(headerCopySource) != "" && r.URL.Query().Get("comp") == "" {
			w.WriteHeader(http.StatusAccepted)
		} else {
			w.WriteHeader(http.StatusCreated)
		}
	}))
	defer server.Close()
	s := New(Options{Client: server.Client(), Getenv: env()})
	at, err := parse("", "abfss://state@prod.dfs.core.windows.net/")
	if err != nil {
		t.Fatal(err)
	}
	acc, err := s.connect(server.URL+"/prod", &credential{token: fakeToken{}})
	if err != nil {
		t.Fatal(err)
	}
	s.accounts[at] = acc
	for _, size := range []int64{100 << 20, 600 << 20} { // 1 copy; 3 blocks
		w, err := s.Create(t.Context(), at.String()+"dst", storage.CreateOptions{IfAbsent: true, Size: size})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.CopyRange(t.Context(), w, s, at.String()+"src", 0, -1, "0x9"); err != nil {
			t.Fatal(err)
		}
		if info, err := w.Commit(t.Context()); err != nil || info.Size != size || info.Version != "0x1" {
			t.Errorf("%+v, %v", info, err)
		}
	}
	if copies.Load() != 4 {
		t.Errorf("%d copies, expected 4", copies.Load())
	}
}

func testAccess(t *testing.T, a *servertest.Azurite) {
	got, err := byKey(a, Options{}).Access(t.Context(), base(a)+"sp")
	if err != nil {
		t.Fatal(err)
	}
	if got.Service == "" || got.Endpoint != a.Endpoint || got.Credentials != envKey || got.Identity != a.Account || !got.Clocked || got.Clock.Abs() > 5*time.Second {
		t.Errorf("%+v", got)
	}
	if text := fmt.Sprintf("%+v", got); strings.Contains(text, a.Key) {
		t.Error("the key is in the answer")
	}
}

// What a killed upload left is listed, but not as an object.
func testLeftovers(t *testing.T, a *servertest.Azurite) {
	s := byKey(a, Options{PartSize: 4})
	prefix := unused(a)
	own := prefix + "sp/" + tempname.New("doctor")
	storetest.Put(t, s, own, "x")
	storetest.Put(t, s, prefix+"sp/empty", "")
	storetest.Put(t, s, prefix+"sp/"+"object", "x")
	storetest.Put(t, s, prefix+"a/b/c/"+tempname.New("deep"), "x")
	w, err := s.Create(t.Context(), prefix+"sp/_metadata", storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, "012345678"); err != nil { // two blocks are sent, the third is not
		t.Fatal(err)
	}
	var found []ability.Leftover
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		found = nil
		for l, err := range s.Leftovers(t.Context(), strings.TrimSuffix(prefix, "/"), 1) {
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, l)
		}
		if len(found) == 2 && found[0].Bytes+found[1].Bytes == 9 {
			break
		}
	}
	if len(found) != 2 || found[0].Name != own || found[0].Foreign != "" || found[1].Name != prefix+"sp/_metadata" || found[1].Foreign == "" || found[1].Bytes != 8 {
		t.Fatalf("%+v", found)
	}
	if err := w.Abort(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, s.RemoveLeftover(t.Context(), found[1]), storage.ErrUnsupported)
	want(t, s.RemoveLeftover(t.Context(), ability.Leftover{Name: prefix + "sp/object", Bytes: 1}), storage.ErrUnsupported)
	older := found[0]
	older.ModTime = older.ModTime.Add(-time.Hour)
	want(t, s.RemoveLeftover(t.Context(), older), storage.ErrChanged)
	for range 2 {
		if err := s.RemoveLeftover(t.Context(), found[0]); err != nil {
			t.Fatal(err)
		}
	}
	_, err = s.Stat(t.Context(), own)
	want(t, err, storage.ErrNotExist)
}
