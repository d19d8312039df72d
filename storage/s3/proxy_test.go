package s3_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync"
	"testing"
)

// proxy stands between a store and its server, and does to requests what networks and
// busy services do. The Host of a request stays as it is: the signature covers it.
type proxy struct {
	*httptest.Server

	mu       sync.Mutex
	requests []string // method, path and query
	fault    func(n int, r *http.Request) fault
}

// fault is what happens to a request.
type fault int

const (
	none  fault = iota
	busy        // 503, and the server does not see it
	lost        // the server does it, and the answer does not arrive
	cut         // half of the body of the answer arrives
	stall       // half of the body of the answer arrives, and then nothing
)

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	over := make(chan struct{})
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		p.requests = append(p.requests, r.Method+" "+r.URL.RequestURI())
		f := none
		if p.fault != nil {
			f = p.fault(len(p.requests), r)
		}
		p.mu.Unlock()
		switch f {
		case none:
			forward.ServeHTTP(w, r)
		case busy:
			io.Copy(io.Discard, r.Body) //nolint:errcheck // it is thrown away
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)
		case lost:
			forward.ServeHTTP(httptest.NewRecorder(), r)
			panic(http.ErrAbortHandler)
		case cut, stall:
			answer := httptest.NewRecorder()
			forward.ServeHTTP(answer, r)
			for k, v := range answer.Header() {
				w.Header()[k] = v
			}
			w.Header().Set("Content-Length", strconv.Itoa(answer.Body.Len()))
			w.WriteHeader(answer.Code)
			w.Write(bytes.Clone(answer.Body.Bytes()[:answer.Body.Len()/2]))
			w.(http.Flusher).Flush()
			if f == stall {
				select {
				case <-r.Context().Done():
				case <-over:
				}
			}
			panic(http.ErrAbortHandler)
		}
	}))
	p.Config.ErrorLog = nil
	t.Cleanup(func() { close(over); p.Close() })
	return p
}

// set sets the fault of requests, counted from 1 since then, and forgets the requests.
func (p *proxy) set(f func(n int, r *http.Request) fault) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fault, p.requests = f, nil
}

func (p *proxy) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.requests...)
}
