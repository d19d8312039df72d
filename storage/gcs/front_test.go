package gcs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/internal/servertest"
)

// front stands before fake-gcs-server. It does what that server does otherwise than
// Google's (see servertest.StartFakeGCS), counts requests, and makes them fail.
type front struct {
	*httptest.Server
	proxy *httputil.ReverseProxy

	mu       sync.Mutex
	sessions map[string]*session // by upload_id
	log      []string            // "GET read", "POST rewrite", …
	fault    func(n int, kind string) fault
	keep     int64 // most bytes kept of a part of an upload; 0: all
	pageSize string
	steps    int // answers of a rewrite before it is done
}

// session is a resumable upload.
type session struct {
	have    int64
	ended   bool // cancelled
	result  []byte
	ifMatch string
}

// fault is how a request fails.
type fault int

const (
	none    fault = iota
	refused       // 503 before anything is done
	limited       // 403 rateLimitExceeded
	lost          // done, but not answered
	cut           // the body of the answer ends early
)

func newFront(t *testing.T, server *servertest.FakeGCS) *front {
	t.Helper()
	to, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	f := &front{sessions: map[string]*session{}}
	f.proxy = &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(to)
		r.Out.Host = r.In.Host // for the addresses of sessions
	}}
	f.Server = httptest.NewServer(f)
	t.Cleanup(f.Close)
	return f
}

// kindOf returns what a request does.
func kindOf(r *http.Request) string {
	q := r.URL.Query()
	switch {
	case q.Has("upload_id") && r.Method == http.MethodDelete:
		return "cancel"
	case q.Has("upload_id") && strings.HasPrefix(r.Header.Get("Content-Range"), "bytes */") && r.ContentLength == 0:
		return "status"
	case q.Has("upload_id"):
		return "part"
	case q.Get("uploadType") == "multipart":
		return "put"
	case q.Get("uploadType") == "resumable":
		return "begin"
	case strings.Contains(r.URL.Path, "/rewriteTo/"):
		return "rewrite"
	case r.Method == http.MethodDelete:
		return "delete"
	case !strings.HasPrefix(r.URL.Path, "/storage/"):
		return "read"
	case q.Has("maxResults"):
		return "list"
	}
	return "stat"
}

// counts returns the numbers of requests since the last call, as in "put 1, stat 2".
func (f *front) counts() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := map[string]int{}
	for _, kind := range f.log {
		n[kind]++
	}
	f.log = nil
	text := fmt.Sprint(n)
	return strings.TrimSuffix(strings.TrimPrefix(text, "map["), "]")
}

func (f *front) set(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	kind := kindOf(r)
	f.mu.Lock()
	f.log = append(f.log, kind)
	how := none
	if f.fault != nil {
		how = f.fault(len(f.log), kind)
	}
	f.mu.Unlock()
	switch how {
	case refused:
		http.Error(w, "Service Unavailable", http.StatusServiceUnavailable)
		return
	case limited:
		w.WriteHeader(http.StatusForbidden)
		io.WriteString(w, `{"error":{"code":403,"message":"The rate of requests is too high","errors":[{"reason":"rateLimitExceeded"}]}}`)
		return
	}
	answer := httptest.NewRecorder()
	f.answer(answer, r, kind)
	if how == lost {
		panic(http.ErrAbortHandler)
	}
	for k, v := range answer.Header() {
		w.Header()[k] = v
	}
	w.WriteHeader(answer.Code)
	body := answer.Body.Bytes()
	if how == cut && len(body) > 1 {
		w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	w.Write(body)
}

// answer answers as Google's servers do.
func (f *front) answer(w *httptest.ResponseRecorder, r *http.Request, kind string) {
	q := r.URL.Query()
	id := q.Get("upload_id")
	f.mu.Lock()
	s := f.sessions[id]
	f.mu.Unlock()
	switch kind {
	case "read":
		f.proxy.ServeHTTP(w, r)
		want, got := r.Header.Get("X-Goog-If-Generation-Match"), w.Header().Get("X-Goog-Generation")
		if want != "" && got != "" && want != got {
			*w = *httptest.NewRecorder()
			w.WriteHeader(http.StatusPreconditionFailed)
			io.WriteString(w, `<?xml version='1.0' encoding='UTF-8'?><Error><Code>PreconditionFailed</Code><Message>At least one of the pre-conditions you specified did not hold.</Message></Error>`)
		}
	case "list":
		if f.pageSize != "" {
			q.Set("maxResults", f.pageSize)
			r.URL.RawQuery = q.Encode()
		}
		f.proxy.ServeHTTP(w, r)
	case "rewrite":
		if want := q.Get("ifGenerationMatch"); want != "" {
			to := strings.SplitN(r.URL.EscapedPath(), "/rewriteTo", 2)[1]
			probe := httptest.NewRequest(http.MethodGet, "/storage/v1"+to, nil)
			found := httptest.NewRecorder()
			f.proxy.ServeHTTP(found, probe)
			var there resource
			_ = json.Unmarshal(found.Body.Bytes(), &there)
			if there.Generation == "" {
				there.Generation = "0"
			}
			if there.Generation != want {
				w.WriteHeader(http.StatusPreconditionFailed)
				io.WriteString(w, `{"error":{"code":412,"message":"At least one of the pre-conditions you specified did not hold.","errors":[{"reason":"conditionNotMet"}]}}`)
				return
			}
		}
		f.mu.Lock()
		step := len(q.Get("rewriteToken"))
		more := step < f.steps
		f.mu.Unlock()
		if more {
			fmt.Fprintf(w, `{"done":false,"rewriteToken":%q}`, strings.Repeat("t", step+1))
			return
		}
		f.proxy.ServeHTTP(w, r)
	case "begin":
		f.proxy.ServeHTTP(w, r)
		if at, err := url.Parse(w.Header().Get("Location")); err == nil {
			f.set(func() {
				f.sessions[at.Query().Get("upload_id")] = &session{ifMatch: q.Get("ifGenerationMatch")}
			})
		}
	case "cancel":
		f.set(func() { s.ended = true })
		w.WriteHeader(499)
	case "part", "status":
		f.session(w, r, s)
	default:
		f.proxy.ServeHTTP(w, r)
	}
}

// session answers a request of a resumable upload: parts must continue where the
// upload is, and a completed one stays known.
func (f *front) session(w *httptest.ResponseRecorder, r *http.Request, s *session) {
	if s == nil || s.ended {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	if s.result != nil {
		w.Write(s.result)
		return
	}
	incomplete := func() {
		if s.have > 0 {
			w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", s.have-1))
		}
		w.WriteHeader(http.StatusPermanentRedirect)
	}
	var from, to int64
	total := int64(-1)
	header := r.Header.Get("Content-Range")
	if n, _ := fmt.Sscanf(header, "bytes %d-%d/%d", &from, &to, &total); n < 2 {
		from, to = s.have, s.have-1
		_, _ = fmt.Sscanf(header, "bytes */%d", &total)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || int64(len(body)) != to-from+1 || from != s.have {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, "%d bytes with %q at %d", len(body), header, s.have)
		return
	}
	if total < 0 && len(body)%chunk != 0 {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, "not a multiple of 256 KiB")
		return
	}
	if f.keep > 0 && int64(len(body)) > f.keep {
		body, total = body[:f.keep], -1
	}
	final := total >= 0 && s.have+int64(len(body)) == total
	if len(body) == 0 && !final {
		incomplete()
		return
	}
	out := r.Clone(r.Context())
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	end := s.have + int64(len(body))
	size := "*"
	if final {
		size = fmt.Sprint(total)
	}
	out.Header.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%s", s.have, end-1, size))
	if len(body) == 0 {
		out.Header.Set("Content-Range", "bytes */"+size)
	}
	done := httptest.NewRecorder()
	f.proxy.ServeHTTP(done, out)
	s.have = end
	if !final && done.Code == http.StatusPermanentRedirect {
		incomplete()
		return
	}
	if done.Code == http.StatusOK {
		s.result = done.Body.Bytes()
	}
	w.WriteHeader(done.Code)
	w.Write(done.Body.Bytes())
}
