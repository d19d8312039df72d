package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/savepoint-tools/spt/storage/internal/retry"
)

// connectWithin is how long a connection may take.
const connectWithin = 10 * time.Second

// copyPatience is how many times longer the answer of a copy may take: the service
// copies first and answers then.
const copyPatience = 10

// newClient returns an HTTP client that ends a request in which nothing moves for
// idle. It follows no redirects: those would carry credentials to other hosts.
func newClient(idle time.Duration) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: connectWithin, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = connectWithin
	t.MaxIdleConnsPerHost = 64
	t.DisableCompression = true // objects are bytes
	return &http.Client{
		Transport:     &watchdog{t, idle},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// watchdog ends requests in which nothing moves.
type watchdog struct {
	base http.RoundTripper
	idle time.Duration
}

// idleError is the end of a request in which nothing moved.
type idleError struct{ after time.Duration }

func (e *idleError) Error() string { return fmt.Sprintf("nothing was received for %v", e.after) }

// RoundTrip implements http.RoundTripper.
func (d *watchdog) RoundTrip(req *http.Request) (*http.Response, error) {
	idle := d.idle
	if req.Header.Get(headerCopySource) != "" {
		idle *= copyPatience
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	tired := &idleError{idle}
	timer := time.AfterFunc(idle, func() { cancel(tired) })
	why := func(err error) error {
		if errors.Is(context.Cause(ctx), tired) {
			return tired
		}
		return err
	}
	req = req.Clone(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &sentBody{req.Body, func() { timer.Reset(idle) }}
		req.GetBody = nil
	}
	resp, err := d.base.RoundTrip(req)
	timer.Stop()
	if err != nil {
		err = why(err)
		cancel(nil)
		return nil, err
	}
	resp.Body = &receivedBody{ReadCloser: resp.Body, timer: timer, idle: idle, why: why, end: func() { cancel(nil) }}
	return resp, nil
}

// sentBody reports each read of a body that is sent.
type sentBody struct {
	io.ReadCloser
	moved func()
}

func (b *sentBody) Read(p []byte) (int, error) {
	b.moved()
	return b.ReadCloser.Read(p)
}

// receivedBody bounds the time of each read: the time between reads is the caller's.
type receivedBody struct {
	io.ReadCloser
	timer *time.Timer
	idle  time.Duration
	why   func(error) error
	end   func()
}

func (b *receivedBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	if err != nil && err != io.EOF {
		err = b.why(err)
	}
	return n, err
}

func (b *receivedBody) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.end()
	return err
}

// call is what a request is made for.
type call struct{ op, name string }

type callKey struct{}

// with says what the requests of a context are made for.
func with(ctx context.Context, op, name string) context.Context {
	return context.WithValue(ctx, callKey{}, call{op, name})
}

// retrier makes failed requests again, as the drivers of all stores do. The SDK's own
// way is switched off: it has no deadline, and reports nothing.
type retrier struct {
	policy  retry.Policy
	clock   atomic.Int64 // how far the service's clock was ahead, in ns, in its last answer
	clocked atomic.Bool
}

// Do implements policy.Policy. The body of an answer may have a part of the object, so
// only the beginning of a request is made again.
func (r *retrier) Do(req *policy.Request) (resp *http.Response, err error) {
	ctx := req.Raw().Context()
	c, _ := ctx.Value(callKey{}).(call)
	_ = r.policy.Do(ctx, c.op, c.name, func() error { // the outcome is resp and err
		if resp != nil {
			runtime.Drain(resp)
		}
		if resp, err = nil, req.RewindBody(); err != nil {
			return err
		}
		resp, err = req.Next() //nolint:bodyclose // the SDK closes it, or the next attempt drains it
		r.read(resp)
		if ctx.Err() != nil || !temporary(resp, err) {
			return nil //nolint:nilerr // err is returned below
		}
		why := err
		if resp != nil {
			why = runtime.NewResponseError(resp)
		}
		return explain(ctx, c.op, c.name, why)
	})
	if ended := ctx.Err(); ended != nil && err == nil && slices.Contains(temporaryStatus, resp.StatusCode) {
		return nil, ended
	}
	return resp, err
}

// read reads the clock of the service.
func (r *retrier) read(resp *http.Response) {
	if resp == nil {
		return
	}
	r.policy.Answered()
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		r.clock.Store(int64(time.Until(date)))
		r.clocked.Store(true)
	}
}

// ahead returns how far the service's clock is ahead, if it has answered. The header
// has whole seconds.
func (r *retrier) ahead() (time.Duration, bool) {
	return time.Duration(r.clock.Load()).Round(time.Second), r.clocked.Load()
}

var temporaryStatus = []int{
	http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError,
	http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout,
}

// temporary reports whether a request may succeed when it is made again.
func temporary(resp *http.Response, err error) bool {
	if err == nil {
		return slices.Contains(temporaryStatus, resp.StatusCode)
	}
	var never interface{ NonRetriable() } // of the SDK: credentials, for example
	var dns *net.DNSError
	return !errors.As(err, &never) && !(errors.As(err, &dns) && dns.IsNotFound)
}
