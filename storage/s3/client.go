package s3

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/savepoint-tools/spt/storage"
)

const (
	connectWithin = 10 * time.Second
	answerWithin  = 30 * time.Second // the header of an answer
	slowWithin    = 10 * time.Minute // the header where the service copies or assembles first
	idleAtMost    = 30 * time.Second // between the bytes of a body
)

// bucket is a bucket and how it is reached.
type bucket struct {
	name    string
	s       *Store
	set     settings
	creds   *credentials.Credentials
	static  bool // credentials that cannot be renewed
	mu      sync.Mutex
	region  string // changes once, if the service names another one
	moved   bool
	core    *minio.Core
	copying sync.Mutex
	copies  known // whether CopyObject respects If-None-Match; see firstCopy
}

// looks reports whether conditions are looked up before a write, because the service
// does not check them.
func (b *bucket) looks() bool { return b.s.o.OSS || b.s.o.LookFirst }

// client returns the client of the bucket's region, and the region.
func (b *bucket) client() (*minio.Core, string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.core == nil {
		core, err := b.newCore(b.s.transport)
		if err != nil {
			return nil, "", err
		}
		b.core = core
	}
	return b.core, b.region, nil
}

func (b *bucket) newCore(t http.RoundTripper) (*minio.Core, error) {
	u := b.set.endpoint
	return minio.NewCore(u.Host, &minio.Options{
		Creds: b.creds, Secure: u.Scheme == "https", Transport: t, Region: b.region,
		BucketLookup: b.set.lookup(), MaxRetries: 1,
	})
}

// move remembers the region that the service named. It does so once: a service that
// names one region after another is not followed.
func (b *bucket) move(region, used string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if region == "" || b.region != used {
		return b.region != used // another request moved it meanwhile
	}
	if b.moved || region == b.region {
		return false
	}
	b.region, b.moved, b.core = region, true, nil
	return true
}

// call is a request to be made, and what is known of its answer.
type call struct {
	slow bool // the service works before it answers
	xml  bool // an answer of 200 may hold an error

	sent   bool
	status int
	header http.Header
	err    error // of the network
	served time.Time
	asked  time.Time
	skewed string // the times of the service and of the request, of RequestTimeTooSkewed
}

type callKey struct{}

// do makes a request until it is answered, as far as the policy of the store goes.
// f is called once for each attempt.
func (b *bucket) do(ctx context.Context, op, key string, c *call, f func(ctx context.Context, core *minio.Core) error) error {
	name := b.uri(key)
	if err := ctx.Err(); err != nil {
		return &storage.Error{Op: op, Name: name, Err: err}
	}
	renewed := false
	return b.s.policy.Do(ctx, op, name, func() error {
		for {
			core, region, err := b.client()
			if err != nil {
				return b.fail(ctx, op, key, c, err)
			}
			*c = call{slow: c.slow, xml: c.xml}
			err = f(context.WithValue(ctx, callKey{}, c), core)
			if err == nil {
				return nil
			}
			var answer minio.ErrorResponse
			if errors.As(err, &answer) {
				if wrongRegion(answer) && b.move(answer.Region, region) {
					continue
				}
				if answer.Code == "ExpiredToken" && !b.static && !renewed {
					renewed = true
					b.creds.Expire()
					continue
				}
			}
			return b.fail(ctx, op, key, c, err)
		}
	})
}

// wrongRegion reports whether an answer refuses a request because of the region that
// it was signed for, or sends it elsewhere.
func wrongRegion(e minio.ErrorResponse) bool {
	switch e.Code {
	case "AuthorizationHeaderMalformed", "PermanentRedirect", "TemporaryRedirect", "InvalidRegion", "IllegalLocationConstraintException":
		return true
	}
	return e.StatusCode == http.StatusMovedPermanently || e.StatusCode == http.StatusTemporaryRedirect ||
		e.StatusCode == http.StatusBadRequest && e.Region != ""
}

// transport is the connections of a store. It records in the call of the context what
// the client does not return.
type transport struct {
	quick, slow http.RoundTripper
	s           *Store
	ahead       atomic.Int64 // of the service's clock, in nanoseconds
	clocked     atomic.Bool
}

func newTransport(s *Store, base *http.Transport) *transport {
	if base == nil {
		base = &http.Transport{
			Proxy:               http.ProxyFromEnvironment,
			DialContext:         (&net.Dialer{Timeout: connectWithin, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout: connectWithin,
			MaxIdleConnsPerHost: 64,
			IdleConnTimeout:     time.Minute,
			ForceAttemptHTTP2:   true,
		}
	}
	with := func(limit time.Duration) *http.Transport {
		t := base.Clone()
		t.DisableCompression = true // ranges and sizes refer to the bytes of the object
		if t.ResponseHeaderTimeout == 0 {
			t.ResponseHeaderTimeout = limit
		}
		return t
	}
	return &transport{s: s, quick: with(answerWithin), slow: with(slowWithin)}
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	c, _ := req.Context().Value(callKey{}).(*call)
	if c == nil {
		c = &call{}
	}
	via := t.quick
	if c.slow {
		via = t.slow
	}
	c.sent, c.asked = true, time.Now()
	res, err := via.RoundTrip(req)
	if err != nil {
		c.err = err
		return nil, err
	}
	now := time.Now()
	t.s.policy.Answered()
	c.status, c.header = res.StatusCode, res.Header
	if c.served, err = http.ParseTime(res.Header.Get("Date")); err == nil {
		middle := c.asked.Add(now.Sub(c.asked) / 2)
		t.ahead.Store(int64(c.served.Add(500 * time.Millisecond).Sub(middle))) // Date has whole seconds
		t.clocked.Store(true)
	}
	if res.StatusCode >= 300 || c.xml {
		body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		closing := res.Body.Close()
		if err = errors.Join(err, closing); err != nil {
			c.err = err
			return nil, err
		}
		res.Body = io.NopCloser(bytes.NewReader(body))
		if e, ok := parseError(body); ok {
			if e.RequestTime != "" && e.ServerTime != "" {
				c.skewed = fmt.Sprintf("this machine's clock said %s, the service's %s", e.RequestTime, e.ServerTime)
			}
			if res.StatusCode < 300 { // a copy that failed after its answer had begun
				res.StatusCode = http.StatusInternalServerError
				if e.Code != "InternalError" && e.Code != "SlowDown" {
					res.StatusCode = http.StatusBadRequest
				}
				c.status = res.StatusCode
			}
		}
	}
	return res, nil
}

// inContext makes every request with a context: the client's call for a page of a
// list does not take one.
type inContext struct {
	ctx  context.Context
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t inContext) RoundTrip(req *http.Request) (*http.Response, error) {
	return t.next.RoundTrip(req.WithContext(t.ctx))
}

// network returns the reason of a failed request, without the URL.
func network(err error) error {
	var of *url.Error
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// body is the body of an answer. It ends with an error if no byte arrives for a while.
type body struct {
	ctx    context.Context
	b      *bucket
	key    string
	rc     io.ReadCloser
	cancel context.CancelFunc // of the request
	idle   *time.Timer
	left   int64 // at most, of the range
	limit  time.Duration
	late   atomic.Bool
}

func newBody(ctx context.Context, b *bucket, key string, rc io.ReadCloser, cancel context.CancelFunc, left int64) *body {
	r := &body{ctx: ctx, b: b, key: key, rc: rc, cancel: cancel, left: left, limit: b.s.idle}
	r.idle = time.AfterFunc(r.limit, func() { r.late.Store(true); cancel() })
	return r
}

func (r *body) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, &storage.Error{Op: "read", Name: r.b.uri(r.key), Err: err}
	}
	if int64(len(p)) > r.left {
		p = p[:r.left]
	}
	if r.left == 0 {
		return 0, io.EOF
	}
	r.idle.Reset(r.limit)
	n, err := r.rc.Read(p)
	r.idle.Stop() // what the caller does meanwhile is its own time
	r.left -= int64(n)
	if err == nil || err == io.EOF {
		return n, err
	}
	switch {
	case r.ctx.Err() != nil:
		err = r.ctx.Err()
	case r.late.Load():
		err = fmt.Errorf("no byte for %v: %w", r.limit, storage.ErrUnavailable)
	default:
		err = fmt.Errorf("%w: %w", network(err), storage.ErrUnavailable)
	}
	return n, &storage.Error{Op: "read", Name: r.b.uri(r.key), Err: err}
}

func (r *body) Close() error {
	r.idle.Stop()
	err := r.rc.Close()
	r.cancel()
	if err != nil && r.ctx.Err() == nil && !r.late.Load() {
		return &storage.Error{Op: "read", Name: r.b.uri(r.key), Err: fmt.Errorf("%w: %w", network(err), storage.ErrUnavailable)}
	}
	return nil
}
