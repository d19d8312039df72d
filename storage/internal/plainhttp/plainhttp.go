// Package plainhttp makes requests of storage services that are spoken to over
// net/http: with limits on silence, with retries, and with errors that have no URL in
// them, because URLs hold signatures and sessions.
//
//	c := plainhttp.New(plainhttp.Options{})
//	resp, err := c.Do(ctx, &plainhttp.Request{Op: "read", Name: name, Method: "GET", URL: url, Explain: explain})
package plainhttp

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/retry"
)

const (
	defaultRetries = 9
	defaultSilence = time.Minute
	dialTimeout    = 10 * time.Second
	connections    = 32      // idle ones kept for a host
	maxExplanation = 1 << 16 // bytes read of the body of an error
)

// Options are the options of a Client. The zero value works.
type Options struct {
	Retries  int           // attempts after the first; 0: 9; negative: none
	Deadline time.Duration // no further attempt is made after it; 0: one minute
	Silence  time.Duration // after which a server that sends or accepts nothing is given up; 0: one minute
	Pause    time.Duration // before the second attempt; see retry.Policy
	Retried  func(storage.Retry)
	Redirect func(next *http.Request, earlier []*http.Request) error // nil: redirects are answers
}

// Client makes requests. It is safe for concurrent use.
type Client struct {
	policy *retry.Policy
	http   *http.Client
}

// New returns a client.
func New(o Options) *Client {
	o.Silence = cmp.Or(o.Silence, defaultSilence)
	attempts := 1 + max(0, cmp.Or(o.Retries, defaultRetries))
	if o.Redirect == nil {
		o.Redirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	}
	dialer := &net.Dialer{Timeout: dialTimeout}
	// HTTP/1.1 only: many ranges are read at once, which one connection slows down, and
	// a body that is closed early ends its transfer.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	policy := &retry.Policy{Attempts: attempts, Deadline: o.Deadline, Pause: o.Pause, Report: o.Retried}
	return &Client{policy: policy, http: &http.Client{
		CheckRedirect: o.Redirect,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment,
			DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
				conn, err := dialer.DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return &noisy{conn, o.Silence}, nil
			},
			TLSHandshakeTimeout:    dialTimeout,
			ResponseHeaderTimeout:  o.Silence,
			MaxResponseHeaderBytes: 1 << 20,
			IdleConnTimeout:        min(o.Silence, 90*time.Second),
			MaxIdleConnsPerHost:    connections,
			DisableCompression:     true, // ranges are of the bytes as stored
			Protocols:              protocols,
		},
	}}
}

// HTTP returns the client below, without retries: for libraries that fetch tokens.
func (c *Client) HTTP() *http.Client { return c.http }

// noisy is a connection that fails when its other end is silent for too long.
type noisy struct {
	net.Conn
	silence time.Duration
}

func (c *noisy) Read(p []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *noisy) Write(p []byte) (int, error) {
	if err := c.SetWriteDeadline(time.Now().Add(c.silence)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// Request is a request that can be made again.
type Request struct {
	Op, Name    string // of errors
	Method, URL string
	Header      http.Header
	Body        []byte // nil: none
	Once        bool   // not made again after a failure

	// Authorize adds credentials to an attempt. Its errors are retried if they match
	// storage.ErrUnavailable.
	Authorize func(*http.Request) error
	// Accepts reports whether a status is an answer; nil: 200 to 299.
	Accepts func(status int) bool
	// Explain returns the error of any other status, given the beginning of the body. An
	// error that matches storage.ErrUnavailable is retried.
	Explain func(status int, header http.Header, body []byte) *storage.Error
}

// Do makes a request until it is answered. The caller must close the body of the
// answer, which is best read through NewBody.
func (c *Client) Do(ctx context.Context, r *Request) (*http.Response, error) {
	attempts := c.Begin(r.Op, r.Name)
	for {
		resp, err := c.try(ctx, r)
		if err == nil {
			return resp, nil
		}
		if r.Once {
			return nil, err
		}
		if err := attempts.Wait(ctx, err); err != nil {
			return nil, err
		}
	}
}

// Begin begins the attempts of several requests that depend on each other.
func (c *Client) Begin(op, name string) *retry.Attempts { return c.policy.Begin(op, name) }

func (c *Client) try(ctx context.Context, r *Request) (*http.Response, error) {
	fail := func(err error) error { return &storage.Error{Op: r.Op, Name: r.Name, Err: err} }
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, fail(errors.New(Text(err)))
	}
	for k, v := range r.Header {
		req.Header[k] = v
	}
	if r.Authorize != nil {
		if err := r.Authorize(req); err != nil {
			return nil, err
		}
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, Unreachable(ctx, r.Op, r.Name, err)
	}
	c.policy.Answered()
	accepts := r.Accepts
	if accepts == nil {
		accepts = func(status int) bool { return status >= 200 && status < 300 }
	}
	if accepts(resp.StatusCode) {
		return resp, nil
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxExplanation))
	if err != nil && ctx.Err() != nil {
		return nil, fail(ctx.Err())
	} // otherwise the status says enough
	e := r.Explain(resp.StatusCode, resp.Header, text)
	if e.Op == "" {
		e.Op = r.Op
	}
	if e.Name == "" {
		e.Name = r.Name
	}
	if wait := retryAfter(resp.Header.Get("Retry-After")); wait > 0 {
		e.Err = retry.After(e.Err, wait)
	}
	return nil, e
}

// retryAfter returns the pause of a Retry-After header.
func retryAfter(value string) time.Duration {
	if n, err := strconv.Atoi(value); err == nil {
		return time.Duration(min(n, 1<<20)) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return time.Until(at)
	}
	return 0
}

// Unavailable reports whether a status says that the same request may succeed later.
func Unavailable(status int) bool {
	switch status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return status > 508 // what proxies answer; 501, 505 and 508 would recur
}

// ErrRedirect is wrapped by the errors of Options.Redirect.
var ErrRedirect = errors.New("redirect refused")

// Unreachable returns the error of a request that was not answered, or of a body
// that was cut off. The end of ctx stays the error it is. It has no URL.
func Unreachable(ctx context.Context, op, name string, err error) *storage.Error {
	e := &storage.Error{Op: op, Name: name}
	if ctx.Err() != nil {
		e.Err = ctx.Err()
		return e
	}
	if errors.Is(err, ErrRedirect) {
		e.Err = fmt.Errorf("%s: %w", Text(err), storage.ErrUnsupported)
		return e
	}
	// Only the text is kept: a timeout of a connection matches
	// context.DeadlineExceeded.
	text := fmt.Errorf("%s: %w", Text(err), storage.ErrUnavailable)
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		e.Err, e.Hint, e.Setting = retry.Final(text), "check the name of the host", storage.SettingEndpoint
	case errors.As(err, &cert):
		e.Err, e.Hint = retry.Final(text), "the certificate of the server is not trusted on this machine"
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		e.Err, e.Hint, e.Setting = retry.Final(text), "the server does not speak HTTPS on this port", storage.SettingEndpoint
	default:
		e.Err = text
	}
	return e
}

var (
	userOf  = regexp.MustCompile(`//[^/@\s"]*@`)
	queryOf = regexp.MustCompile(`\?[^\s"]*`)
)

// Text returns the text of an error of net/http: without the URL of the request, and
// without users and queries of any other URL.
func Text(err error) string {
	for {
		var of *url.Error
		if !errors.As(err, &of) {
			break
		}
		err = of.Err
	}
	return Clean(err.Error())
}

// Clean removes users and queries of URLs from a text, and control characters.
func Clean(text string) string {
	text = userOf.ReplaceAllString(text, "//…@")
	text = queryOf.ReplaceAllString(text, "?…")
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}

// Ahead returns how far the clock of a service is ahead, by the date of an answer to a
// request that was sent and answered at the given times; ok is false if the answer has
// no date.
func Ahead(h http.Header, sent, answered time.Time) (ahead time.Duration, ok bool) {
	theirs, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return 0, false
	}
	// The header has whole seconds: half of one is the best guess of the rest.
	return theirs.Add(time.Second / 2).Sub(sent.Add(answered.Sub(sent) / 2)), true
}
