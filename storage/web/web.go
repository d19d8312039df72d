// Package web is the read-only driver of files on web servers, for http: and https:
// URLs.
//
// An object is named by its URL without secrets: the user, the password and the query
// string of an address stay in the store, which adds them to the requests. The path of
// a URL is sent as it is, and what a path cannot have is percent-encoded.
//
// A query string, as in presigned URLs, belongs to one object: the address of a
// directory cannot have one. Web servers have no listing.
package web

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/plainhttp"
)

const (
	// maxSkip is how many bytes are read and dropped where a server ignores ranges.
	maxSkip      = 64 << 20
	maxRedirects = 10
	openEnded    = 1 << 50 // a range of more bytes is asked for without its end
)

// Options are the options of a Store. The zero value works.
type Options struct {
	Retries  int           // attempts after a failed one; 0: 9; negative: none
	Deadline time.Duration // no further attempt is made after it; 0: one minute
	Retried  func(storage.Retry)

	pause, silence time.Duration // for tests
}

// Store is a storage.Storage of all web servers.
type Store struct {
	client *plainhttp.Client

	mu      sync.Mutex
	users   map[string]*url.Userinfo // by origin, "https://host:1234"
	queries map[string]string        // by name
}

// New returns a store. It makes no request.
func New(o Options) *Store {
	return &Store{
		client:  plainhttp.New(plainhttp.Options{Retries: o.Retries, Deadline: o.Deadline, Pause: o.pause, Silence: o.silence, Retried: o.Retried, Redirect: redirect}),
		users:   map[string]*url.Userinfo{},
		queries: map[string]string{},
	}
}

// redirect decides about a redirect: never from https to http, and to another origin
// without the user.
func redirect(next *http.Request, earlier []*http.Request) error {
	first, last := earlier[0], earlier[len(earlier)-1]
	switch {
	case len(earlier) >= maxRedirects:
		return fmt.Errorf("more than %d redirects: %w", maxRedirects, plainhttp.ErrRedirect)
	case last.URL.Scheme == "https" && next.URL.Scheme != "https":
		return fmt.Errorf("from https to %s: %w", plainhttp.Clean(next.URL.Scheme), plainhttp.ErrRedirect)
	}
	if originOf(next.URL) != originOf(first.URL) {
		next.Header.Del("Authorization")
	}
	next.Header.Del("Referer") // it has the query string
	return nil
}

// originOf returns scheme, host and port, the port only if it is not the usual one.
func originOf(u *url.URL) string {
	scheme, host := strings.ToLower(u.Scheme), strings.ToLower(u.Host)
	switch {
	case scheme == "http":
		host = strings.TrimSuffix(host, ":80")
	case scheme == "https":
		host = strings.TrimSuffix(host, ":443")
	}
	return scheme + "://" + host
}

// Resolve returns the store and the name of an object, as a route.Scheme does. The
// name has no user, password or query string: the store remembers them.
func (s *Store) Resolve(_ context.Context, uri string) (storage.Storage, string, error) {
	fail := func(why string) error {
		return &storage.Error{Op: "open", Name: uri, Err: fmt.Errorf("%s, expected http://HOST/PATH or https://HOST/PATH: %w", why, storage.ErrUnsupported)}
	}
	scheme, rest, ok := strings.Cut(uri, "://")
	if scheme = strings.ToLower(scheme); !ok || scheme != "http" && scheme != "https" {
		return nil, "", fail("a URL without a host")
	}
	rest, query, hasQuery := strings.Cut(rest, "?")
	if strings.Contains(rest, "#") || strings.Contains(query, "#") {
		return nil, "", fail("a URL with a fragment (#)")
	}
	authority, path, slash := strings.Cut(rest, "/")
	u, err := url.Parse(scheme + "://" + authority)
	if err != nil {
		return nil, "", fail("an invalid host, user or port") // the text of err may have a password
	}
	if u.Hostname() == "" {
		return nil, "", fail("a URL without a host")
	}
	origin := originOf(u)
	name := origin
	if slash {
		name += "/" + path
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if u.User != nil {
		if known := s.users[origin]; known != nil && known.String() != u.User.String() {
			return nil, "", fail("another user or password than in an earlier URL of " + origin)
		}
		s.users[origin] = u.User
	}
	if !hasQuery || s.isOwn(name, query) {
		if hasQuery {
			name += "?" + query
		}
		return s, name, nil
	}
	// The same path with another query string is another object.
	for i, base := 2, name; ; i++ {
		known, taken := s.queries[name]
		if !taken || known == query {
			s.queries[name] = query
			return s, name, nil
		}
		name = fmt.Sprintf("%s?…%d", base, i)
	}
}

// isOwn reports whether a name with a query is one that Resolve returned.
func (s *Store) isOwn(name, query string) bool {
	_, own := s.queries[name+"?"+query]
	return own
}

// target is where an object is read.
type target struct {
	origin string
	url    string // with its query string
	signed bool   // it has one
	user   *url.Userinfo
}

// errOneObject is the error of a name below one with a query string.
var errOneObject = fmt.Errorf("a URL with a query string is the address of one file, not of a directory: %w", storage.ErrNotExist)

const hintOneObject = "a URL with a query string is the address of one file: give the URL of the _metadata or the .spt file itself"

func (s *Store) target(op, name string) (target, error) {
	scheme, rest, ok := strings.Cut(name, "://")
	if !ok || scheme != "http" && scheme != "https" {
		return target{}, &storage.Error{Op: op, Name: name, Err: fmt.Errorf("expected http://HOST/PATH or https://HOST/PATH: %w", storage.ErrUnsupported)}
	}
	host, path, _ := strings.Cut(rest, "/")
	t := target{origin: scheme + "://" + host}
	s.mu.Lock()
	defer s.mu.Unlock()
	t.user = s.users[t.origin]
	query, signed := s.queries[name]
	if !signed {
		for i := len(name) - 1; i > len(t.origin); i-- {
			if name[i] == '/' {
				if _, of := s.queries[name[:i]]; of {
					return target{}, &storage.Error{Op: op, Name: name, Err: errOneObject, Hint: hintOneObject}
				}
			}
		}
	} else if before, _, numbered := strings.Cut(path, "?…"); numbered {
		path = before
	}
	t.url, t.signed = t.origin+"/"+encode(path), signed
	if signed {
		t.url += "?" + query
	}
	return t, nil
}

// encode percent-encodes what the path of a URL cannot have. Escapes are kept.
func encode(path string) string {
	const hex = "0123456789ABCDEF"
	isHex := func(c byte) bool {
		return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
	}
	var b strings.Builder
	for i := 0; i < len(path); i++ {
		c := path[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-._~/!$&'()*+,;=:@", c) >= 0,
			c == '%' && i+2 < len(path) && isHex(path[i+1]) && isHex(path[i+2]):
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// request returns a request for a range of an object.
func (t target) request(op, name, span string, pin storage.Version) *plainhttp.Request {
	r := &plainhttp.Request{Op: op, Name: name, Method: http.MethodGet, URL: t.url, Header: http.Header{}}
	r.Header.Set("Accept-Encoding", "identity")
	if span != "" {
		r.Header.Set("Range", span)
	}
	switch tag, since := split(pin); {
	case tag != "" && !strings.HasPrefix(tag, "W/"): // weak ones match nothing
		r.Header.Set("If-Match", tag)
	case since != "":
		r.Header.Set("If-Unmodified-Since", since)
	}
	if t.user != nil {
		password, _ := t.user.Password()
		r.Authorize = func(req *http.Request) error {
			req.SetBasicAuth(t.user.Username(), password)
			return nil
		}
	}
	r.Accepts = func(status int) bool {
		return status == http.StatusOK || status == http.StatusPartialContent || status == http.StatusRequestedRangeNotSatisfiable
	}
	r.Explain = t.explain
	return r
}

// explain returns the error of a status.
func (t target) explain(status int, _ http.Header, body []byte) *storage.Error {
	said := fmt.Sprintf("%d %s", status, http.StatusText(status))
	var x struct { // object stores explain presigned URLs
		XMLName xml.Name `xml:"Error"`
		Code    string   `xml:"Code"`
		Message string   `xml:"Message"`
	}
	if xml.Unmarshal(body, &x) == nil && x.Code != "" {
		said += ": " + plainhttp.Clean(x.Code+": "+x.Message)
	}
	wrap := func(kind error) error { return fmt.Errorf("%s: %w", said, kind) }
	e := &storage.Error{}
	switch {
	case status == http.StatusNotFound, status == http.StatusGone:
		e.Err = wrap(storage.ErrNotExist)
		if t.signed {
			e.Hint = hintOneObject
		}
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Err, e.Setting = wrap(storage.ErrPermission), storage.SettingCredentials
		switch {
		case t.signed:
			e.Hint = "the URL may have expired; " + hintOneObject
		case t.user != nil:
			e.Hint = "check the user and the password in the URL"
		default:
			e.Hint = "a user and a password can be part of the URL: https://USER:PASSWORD@HOST/PATH"
		}
	case status == http.StatusPreconditionFailed:
		e.Err = wrap(storage.ErrChanged)
	case plainhttp.Unavailable(status):
		e.Err = wrap(storage.ErrUnavailable)
	default:
		e.Err = wrap(storage.ErrUnsupported)
	}
	return e
}

// The version of an object is its entity tag, or when it was modified and how long it
// is.
func versionOf(h http.Header, size int64) storage.Version {
	if tag := h.Get("ETag"); tag != "" {
		return storage.Version("tag " + tag)
	}
	return storage.Version(fmt.Sprintf("%d bytes of %s", size, h.Get("Last-Modified")))
}

// split returns what a version was made from.
func split(v storage.Version) (tag, since string) {
	if tag, ok := strings.CutPrefix(string(v), "tag "); ok {
		return tag, ""
	}
	if _, since, ok := strings.Cut(string(v), " bytes of "); ok {
		return "", since
	}
	return "", ""
}

func rangeHeader(off, n int64) string {
	switch {
	case off < 0:
		return fmt.Sprintf("bytes=%d", off)
	case n < 0 || n > openEnded:
		return fmt.Sprintf("bytes=%d-", off)
	}
	return fmt.Sprintf("bytes=%d-%d", off, off+max(n, 1)-1) // one byte where none is needed: for the description
}

// ReadRange implements storage.Storage. Of a server that ignores ranges, it reads up
// to the end of the range and no further; a range far from the beginning is
// ErrUnsupported then.
func (s *Store) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	t, err := s.target("read", name)
	if err != nil {
		return nil, storage.Info{}, err
	}
	resp, err := s.client.Do(ctx, t.request("read", name, rangeHeader(off, n), pin))
	if err != nil {
		return nil, storage.Info{}, err
	}
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		// The object is shorter, or empty, and such answers do not describe it.
		resp.Body.Close() //nolint:errcheck // nothing was written
		if resp, err = s.client.Do(ctx, t.request("read", name, "", pin)); err != nil {
			return nil, storage.Info{}, err
		}
	}
	body, info, err := answer(ctx, resp, name, off, n)
	if err == nil && pin != "" && info.Version != pin {
		err = &storage.Error{Op: "read", Name: name, Err: storage.ErrChanged}
	}
	if err != nil {
		resp.Body.Close() //nolint:errcheck // nothing was written
		return nil, storage.Info{}, err
	}
	return body, info, nil
}

// answer returns what an answer to a ranged read holds.
func answer(ctx context.Context, resp *http.Response, name string, off, n int64) (io.ReadCloser, storage.Info, error) {
	fail := func(hint, format string, args ...any) error {
		return &storage.Error{Op: "read", Name: name, Err: fmt.Errorf(format+": %w", append(args, storage.ErrUnsupported)...), Hint: hint}
	}
	const download = "download the file and use the local copy"
	h := resp.Header
	if enc := h.Get("Content-Encoding"); enc != "" && enc != "identity" {
		return nil, storage.Info{}, fail(download, "the server sends the file with Content-Encoding %s, so parts of it cannot be read", plainhttp.Clean(enc))
	}
	start, size := int64(0), resp.ContentLength
	if resp.StatusCode == http.StatusRequestedRangeNotSatisfiable {
		return nil, storage.Info{}, fail(download, "the server refuses a request without a range as out of range")
	}
	if resp.StatusCode == http.StatusPartialContent {
		var end int64
		if _, err := fmt.Sscanf(h.Get("Content-Range"), "bytes %d-%d/%d", &start, &end, &size); err != nil {
			return nil, storage.Info{}, fail(download, "expected the size of the file in the answer, found Content-Range %q", h.Get("Content-Range"))
		}
	}
	if size < 0 {
		return nil, storage.Info{}, fail(download, "the server does not state the size of the file")
	}
	info := storage.Info{Name: name, Size: size, Version: versionOf(h, size)}
	if at, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
		info.ModTime = at
	}
	from, to := ranged.Clip(size, off, n)
	if n == 0 || from == to {
		return &empty{ctx, name, resp.Body}, info, nil
	}
	skip := from - start
	switch {
	case skip < 0:
		return nil, storage.Info{}, fail(download, "expected bytes from %d, found bytes from %d", from, start)
	case skip > maxSkip:
		return nil, storage.Info{}, fail(download, "the server ignores ranges, and %d bytes precede the one to read", skip)
	}
	body := plainhttp.NewBody(ctx, name, resp.Body, skip+to-from)
	if skip > 0 {
		if _, err := io.CopyN(io.Discard, body, skip); err != nil {
			return nil, storage.Info{}, err
		}
	}
	return body, info, nil
}

// empty is the body of an empty range.
type empty struct {
	ctx  context.Context
	name string
	rc   io.Closer
}

func (e *empty) Read([]byte) (int, error) {
	if err := e.ctx.Err(); err != nil {
		return 0, &storage.Error{Op: "read", Name: e.name, Err: err}
	}
	return 0, io.EOF
}

func (e *empty) Close() error { return e.rc.Close() }

// Stat implements storage.Storage, by reading a byte: a presigned URL allows nothing
// else.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	body, info, err := s.ReadRange(ctx, name, 0, 1, "")
	var of *storage.Error
	if errors.As(err, &of) {
		of.Op = "stat"
	}
	if err != nil {
		return info, err
	}
	return info, body.Close()
}

func unsupported(op, name, why, hint string) error {
	return &storage.Error{Op: op, Name: name, Err: fmt.Errorf("%s: %w", why, storage.ErrUnsupported), Hint: hint}
}

// List implements storage.Storage: web servers have no listing.
func (s *Store) List(ctx context.Context, prefix, _ string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		yield(storage.Info{}, unsupported("list", prefix, "a web server has no listing, and is only read", "give the URL of the snapshot itself: of its directory, its _metadata or its .spt file"))
	}
}

// Create implements storage.Storage: nothing is written to web servers.
func (s *Store) Create(_ context.Context, name string, _ storage.CreateOptions) (storage.Writer, error) {
	return nil, unsupported("create", name, "web servers are only read", "write to a local directory, and upload that")
}

// Delete implements storage.Storage: nothing is deleted from web servers.
func (s *Store) Delete(_ context.Context, names ...string) error {
	if len(names) == 0 {
		return nil
	}
	return unsupported("delete", names[0], "web servers are only read", "")
}

// URI implements storage.Namer. The URI has no user and no query string.
func (s *Store) URI(_ context.Context, name string) (string, error) { return name, nil }

// Access implements storage.AccessReporter, with one request for the clock.
func (s *Store) Access(ctx context.Context, name string) (storage.Access, error) {
	a := storage.Access{Service: "web server", Credentials: "none"}
	t, err := s.target("access", name)
	if err != nil {
		return a, err
	}
	a.Endpoint = t.origin
	if t.user != nil {
		a.Credentials, a.Identity = "user in the URL", t.user.Username()
	}
	if t.signed {
		a.Details = append(a.Details, "query string in the URL")
	}
	r := t.request("access", name, "bytes=0-0", "")
	r.Once = true
	r.Accepts = func(int) bool { return true } // each answer has a time
	sent := time.Now()
	resp, err := s.client.Do(ctx, r)
	if err != nil {
		return a, err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	a.Clock, a.Clocked = plainhttp.Ahead(resp.Header, sent, time.Now())
	return a, nil
}
