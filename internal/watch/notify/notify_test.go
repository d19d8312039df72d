package notify

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// hook is a web server that answers with codes, one after another.
type hook struct {
	*httptest.Server
	mu     sync.Mutex
	codes  []int
	bodies []string
	header http.Header
}

func newHook(t *testing.T, codes ...int) *hook {
	h := &hook{codes: codes}
	h.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		h.mu.Lock()
		defer h.mu.Unlock()
		code := h.codes[min(len(h.bodies), len(h.codes)-1)]
		h.bodies, h.header = append(h.bodies, fmt.Sprint(r.Method, " ", r.URL, " ", string(body))), r.Header
		if err != nil {
			t.Error(err)
		}
		if code == http.StatusFound {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(code)
	}))
	t.Cleanup(h.Close)
	return h
}

func TestSend(t *testing.T) {
	for name, x := range map[string]struct {
		codes    []int
		attempts int
		want     map[string]int64
	}{
		"at once":       {[]int{204}, 1, map[string]int64{Sent: 1, Failed: 0, Dropped: 0}},
		"busy":          {[]int{503, 429, 200}, 3, map[string]int64{Sent: 1, Failed: 0, Dropped: 0}},
		"always busy":   {[]int{500}, 5, map[string]int64{Sent: 0, Failed: 1, Dropped: 0}},
		"refused":       {[]int{403}, 1, map[string]int64{Sent: 0, Failed: 1, Dropped: 0}},
		"sent on":       {[]int{302}, 1, map[string]int64{Sent: 0, Failed: 1, Dropped: 0}},
		"does not know": {[]int{404}, 1, map[string]int64{Sent: 0, Failed: 1, Dropped: 0}},
	} {
		h := newHook(t, x.codes...)
		var failed []string
		n := New(Options{URL: h.URL + "/hook?token=hunter2", Bearer: "s3cret", Pause: time.Microsecond, Failed: func(err error) { failed = append(failed, err.Error()) }})
		n.Send([]byte(`{"rule":"large"}`))
		n.Close(t.Context())
		if len(h.bodies) != x.attempts || h.bodies[0] != `POST /hook?token=hunter2 {"rule":"large"}` || h.header.Get("Authorization") != "Bearer s3cret" || h.header.Get("Content-Type") != "application/json" {
			t.Errorf("%s: %q, %v", name, h.bodies, h.header)
		}
		if got := n.Counts(); fmt.Sprint(got) != fmt.Sprint(x.want) {
			t.Errorf("%s: %v", name, got)
		}
		if len(failed) != int(x.want[Failed]) || slices.ContainsFunc(failed, func(s string) bool { return strings.Contains(s, "hunter2") || strings.Contains(s, "s3cret") }) {
			t.Errorf("%s: errors %q", name, failed)
		}
	}
}

func TestNoServer(t *testing.T) {
	h := newHook(t, 200)
	h.Close()
	var failed []string
	n := New(Options{URL: h.URL + "/hook?token=hunter2", Attempts: 2, Pause: time.Microsecond, Failed: func(err error) { failed = append(failed, err.Error()) }})
	n.Send([]byte(`{}`))
	n.Close(t.Context())
	if len(failed) != 1 || strings.Contains(failed[0], "hunter2") || strings.Contains(failed[0], "/hook") || !strings.HasPrefix(failed[0], "webhook, attempt 2: ") {
		t.Errorf("%q", failed)
	}
}

// TestClose: what waits when the context ends is given up, and nothing is sent after.
func TestClose(t *testing.T) {
	h := newHook(t, 503)
	n := New(Options{URL: h.URL, Pause: time.Hour})
	for range queued + 2 {
		n.Send([]byte(`{}`))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n.Close(ctx)
	n.Close(ctx)
	n.Send([]byte(`{}`))
	got := n.Counts()
	if got[Sent] != 0 || got[Dropped] < 1 || got[Failed]+got[Dropped] != queued+3 {
		t.Errorf("%v", got)
	}
}

func TestCheckURL(t *testing.T) {
	for text, ok := range map[string]bool{
		"https://hooks.example/a?b=c": true, "http://u:p@127.0.0.1:80/": true,
		"": false, "hooks.example/a": false, "ftp://hooks.example": false, "https:///a": false, "http://[::1": false,
	} {
		if err := CheckURL(text); (err == nil) != ok || err != nil && text != "" && strings.Contains(err.Error(), text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
