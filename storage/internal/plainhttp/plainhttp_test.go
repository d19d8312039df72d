package plainhttp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/plainhttp"
)

func explain(status int, _ http.Header, body []byte) *storage.Error {
	err := fmt.Errorf("%d %s", status, body)
	if plainhttp.Unavailable(status) {
		err = fmt.Errorf("%w: %w", err, storage.ErrUnavailable)
	}
	return &storage.Error{Err: err}
}

// do makes a request, whose answer does not matter.
func do(c *plainhttp.Client, r *plainhttp.Request) error {
	resp, err := c.Do(context.Background(), r)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

// Each attempt has the whole body, and the pause that the server asks for.
func TestAttempts(t *testing.T) {
	var bodies []string
	later := time.Now().Add(2 * time.Second).UTC().Format(http.TimeFormat)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(p))
		switch len(bodies) {
		case 1:
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		case 2:
			w.Header().Set("Retry-After", later)
			w.WriteHeader(http.StatusServiceUnavailable)
		case 3:
			w.WriteHeader(http.StatusInternalServerError)
		default:
			io.WriteString(w, "done")
		}
	}))
	defer server.Close()
	var waits []time.Duration
	c := plainhttp.New(plainhttp.Options{Pause: time.Microsecond, Retried: func(r storage.Retry) { waits = append(waits, r.Wait) }})
	resp, err := c.Do(context.Background(), &plainhttp.Request{Op: "write", Name: "x", Method: http.MethodPut, URL: server.URL, Header: http.Header{}, Body: []byte("body"), Explain: explain})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if strings.Join(bodies, " ") != "body body body body" {
		t.Errorf("bodies %q", bodies)
	}
	if len(waits) != 3 || waits[0] < time.Second || waits[2] > time.Second {
		t.Errorf("waits %v", waits)
	}
}

// What is asked for once is not made again; a long pause ends the attempts.
func TestNoAttempt(t *testing.T) {
	n, after := 0, ""
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		w.Header().Set("Retry-After", after)
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer server.Close()
	c := plainhttp.New(plainhttp.Options{Pause: time.Microsecond, Deadline: time.Minute})
	r := plainhttp.Request{Op: "read", Name: "x", Method: http.MethodGet, URL: server.URL, Explain: explain, Once: true}
	if err := do(c, &r); !errors.Is(err, storage.ErrUnavailable) || n != 1 {
		t.Errorf("%d attempts, %v", n, err)
	}
	r.Once, after, n = false, "3600", 0
	if err := do(c, &r); !errors.Is(err, storage.ErrUnavailable) || n != 1 {
		t.Errorf("%d attempts, %v", n, err)
	}
	r.Authorize = func(*http.Request) error { return &storage.Error{Err: storage.ErrPermission} }
	if err := do(c, &r); !errors.Is(err, storage.ErrPermission) || n != 1 {
		t.Errorf("%d attempts, %v", n, err)
	}
}

// A server that stops in the middle of a body is given up, and so is one that takes
// nothing.
func TestSilence(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet {
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "beginning")
			w.(http.Flusher).Flush()
		}
		<-release
	}))
	defer server.Close()
	defer close(release)
	c := plainhttp.New(plainhttp.Options{Retries: -1, Silence: 50 * time.Millisecond})
	resp, err := c.Do(context.Background(), &plainhttp.Request{Op: "read", Name: "x", Method: http.MethodGet, URL: server.URL, Explain: explain})
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body := plainhttp.NewBody(context.Background(), "x", resp.Body, 100)
	got, err := io.ReadAll(body)
	if string(got) != "beginning" || !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%q, %v", got, err)
	}
	err = do(c, &plainhttp.Request{Op: "write", Name: "x", Method: http.MethodPut, URL: server.URL, Body: make([]byte, 64<<20), Explain: explain})
	if !errors.Is(err, storage.ErrUnavailable) {
		t.Error(err)
	}
}

func TestBody(t *testing.T) {
	for _, c := range []struct {
		data string
		n    int64
		want string
		cut  bool
	}{{"0123456789", 10, "0123456789", false}, {"0123456789", 4, "0123", false}, {"0123456789", 0, "", false}, {"0123", 10, "0123", true}} {
		b := plainhttp.NewBody(context.Background(), "x", io.NopCloser(strings.NewReader(c.data)), c.n)
		got, err := io.ReadAll(b)
		if string(got) != c.want || errors.Is(err, storage.ErrUnavailable) != c.cut {
			t.Errorf("%+v: %q, %v", c, got, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	b := plainhttp.NewBody(ctx, "x", io.NopCloser(strings.NewReader("0123")), 4)
	cancel()
	if _, err := b.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// Texts of errors have no URL with secrets.
func TestText(t *testing.T) {
	for err, want := range map[error]string{
		&url.Error{Op: "Get", URL: "https://me:SECRET@host/x?SECRET", Err: errors.New("refused")}:                                          "refused",
		&url.Error{Op: "Get", URL: "x", Err: &url.Error{Op: "parse", URL: "SECRET", Err: errors.New("inner")}}:                             "inner",
		fmt.Errorf("proxy: %w", &url.Error{URL: "SECRET", Err: errors.New("no")}):                                                          "no",
		errors.New(`invalid proxy address "http://me:SECRET@proxy:1": bad, see https://h/x?sig=SECRET&y "and" http://a:SECRET@b/c?SECRET`): `invalid proxy address "http://…@proxy:1": bad, see https://h/x?… "and" http://…@b/c?…`,
		errors.New("two\nlines\x1b[2J"): "two lines [2J",
	} {
		if got := plainhttp.Text(err); got != want {
			t.Errorf("%q, expected %q", got, want)
		}
	}
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	c := plainhttp.New(plainhttp.Options{Retries: -1})
	for _, address := range []string{server.URL + "/x?SECRET", "http://me:SECRET@[::1/x", "gopher://SECRET@h/x?SECRET", "http://SECRET@host name/x"} {
		err := do(c, &plainhttp.Request{Op: "read", Name: "x", Method: http.MethodGet, URL: address, Explain: explain})
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%v", err)
		}
	}
}

func TestUnavailable(t *testing.T) {
	for status, want := range map[int]bool{200: false, 404: false, 408: true, 429: true, 500: true, 501: false, 502: true, 503: true, 504: true, 505: false, 508: false, 520: true} {
		if plainhttp.Unavailable(status) != want {
			t.Error(status)
		}
	}
}
