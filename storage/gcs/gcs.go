package gcs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/each"
	"github.com/savepoint-tools/spt/storage/internal/plainhttp"
)

const (
	scheme          = "gs://"
	defaultEndpoint = "https://storage.googleapis.com"
	pageSize        = 1000
	openEnded       = 1 << 50 // a range of more bytes is asked for without its end
)

// Options are the options of a Store. The zero value finds everything in the
// environment, as Google's own programs do.
type Options struct {
	// Anonymous makes requests without credentials: of public buckets.
	Anonymous bool
	// Endpoint is the service, "https://storage.googleapis.com". "" is
	// STORAGE_EMULATOR_HOST, then the configurations, then Google's.
	Endpoint string
	// Flink and Hadoop are configurations, by full key; may be nil. Flink's counts first.
	Flink, Hadoop map[string]string
	// Getenv replaces os.Getenv.
	Getenv func(string) string

	Retries  int           // attempts after a failed one; 0: 9; negative: none
	Deadline time.Duration // no further attempt is made after it; 0: one minute
	Retried  func(storage.Retry)

	part             int64 // size of a part, for tests
	pause            time.Duration
	silence          time.Duration
	metadataServer   string // where the host of the metadata server is not the usual one
	metadataDeadline time.Duration
}

// configs returns the configurations, with names for messages.
func (o Options) configs() []config {
	return []config{{"Flink's configuration", o.Flink}, {"Hadoop's configuration", o.Hadoop}}
}

type config struct {
	name   string
	values map[string]string
}

// Store is a storage.Storage of all buckets, with the same credentials.
type Store struct {
	o        Options
	endpoint string
	client   *plainhttp.Client

	mu    sync.Mutex
	creds *credentials // nil: not found yet
}

// New returns a store. It makes no request and reads no file.
func New(o Options) (*Store, error) {
	if o.Getenv == nil {
		o.Getenv = os.Getenv
	}
	o.part = cmp.Or(o.part, 16<<20)
	s := &Store{o: o, endpoint: o.Endpoint}
	if s.endpoint == "" {
		if host := o.Getenv("STORAGE_EMULATOR_HOST"); host != "" {
			s.endpoint = host
			if !strings.Contains(host, "://") {
				s.endpoint = "http://" + host
			}
			s.o.Anonymous = true // as in Google's clients
		} else {
			s.endpoint = s.setting("storage.root.url")
		}
	}
	s.endpoint = strings.TrimRight(cmp.Or(s.endpoint, defaultEndpoint), "/")
	if u, err := url.Parse(s.endpoint); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" {
		return nil, &storage.Error{Op: "open", Name: s.endpoint, Err: fmt.Errorf("expected http://HOST or https://HOST as the endpoint of Google Cloud Storage: %w", storage.ErrUnsupported), Setting: storage.SettingEndpoint}
	}
	s.client = plainhttp.New(plainhttp.Options{Retries: o.Retries, Deadline: o.Deadline, Pause: o.pause, Silence: o.silence, Retried: o.Retried})
	return s, nil
}

// setting returns a key of the configurations, with the prefixes that Flink and
// Hadoop have for it.
func (s *Store) setting(key string) string {
	for _, c := range s.o.configs() {
		for _, prefix := range []string{"gs.", "fs.gs."} {
			if v := c.values[prefix+key]; v != "" {
				return v
			}
		}
	}
	return ""
}

// Resolve returns the store and the name of an object, as a route.Scheme does.
func (s *Store) Resolve(_ context.Context, uri string) (storage.Storage, string, error) {
	bucket, key, err := split(uri)
	if err != nil {
		return nil, "", err
	}
	if key == "" && !strings.HasSuffix(uri, "/") {
		return s, scheme + bucket, nil
	}
	return s, scheme + bucket + "/" + key, nil
}

// split returns the bucket and the key of a URI. The key of a bucket is "".
func split(uri string) (bucket, key string, err error) {
	wrong := func(why string) error {
		return &storage.Error{Op: "open", Name: uri, Err: fmt.Errorf("%s, expected gs://BUCKET/KEY: %w", why, storage.ErrUnsupported)}
	}
	if len(uri) < len(scheme) || !strings.EqualFold(uri[:len(scheme)], scheme) {
		return "", "", wrong("a URI without a bucket")
	}
	bucket, key, _ = strings.Cut(uri[len(scheme):], "/")
	if bucket == "" {
		return "", "", wrong("a URI without a bucket")
	}
	if strings.Trim(bucket, "abcdefghijklmnopqrstuvwxyz0123456789-_.") != "" {
		return "", "", wrong("the name of a bucket has lower-case letters, digits, '-', '_' and '.' only")
	}
	return bucket, key, nil
}

// object returns the bucket and the key of an object. A bucket is not an object.
func object(op, name string) (bucket, key string, err error) {
	bucket, key, err = split(name)
	if err == nil && key == "" {
		err = &storage.Error{Op: op, Name: name, Err: fmt.Errorf("a bucket, not an object: %w", storage.ErrNotExist)}
	}
	return bucket, key, err
}

// request returns a request with credentials.
func (s *Store) request(op, name, method, url string) *plainhttp.Request {
	return &plainhttp.Request{
		Op: op, Name: name, Method: method, URL: url, Header: http.Header{},
		Authorize: func(r *http.Request) error { return s.authorize(r, op, name) },
		Explain:   explain,
	}
}

// jsonURL returns the address of an object, or with key "" of the objects of a
// bucket.
func (s *Store) jsonURL(bucket, key string, query url.Values) string {
	u := s.endpoint + "/storage/v1/b/" + url.PathEscape(bucket) + "/o"
	if key != "" {
		u += "/" + url.PathEscape(key)
	}
	if len(query) > 0 {
		u += "?" + query.Encode()
	}
	return u
}

// xmlURL returns the address of the bytes of an object.
func (s *Store) xmlURL(bucket, key string) string {
	parts := strings.Split(key, "/")
	for i, p := range parts {
		parts[i] = url.PathEscape(p)
	}
	return s.endpoint + "/" + url.PathEscape(bucket) + "/" + strings.Join(parts, "/")
}

// resource is the description of an object in the JSON API.
type resource struct {
	Bucket     string            `json:"bucket"`
	Name       string            `json:"name"`
	Generation string            `json:"generation"`
	Size       string            `json:"size"`
	Updated    time.Time         `json:"updated"`
	CRC32C     string            `json:"crc32c"`
	Metadata   map[string]string `json:"metadata"`
}

const resourceFields = "name,generation,size,updated,crc32c,metadata"

func (r resource) info(name string) (storage.Info, error) {
	size, err := strconv.ParseInt(r.Size, 10, 64)
	if err != nil || r.Generation == "" {
		return storage.Info{}, fmt.Errorf("the answer has no size or no generation: %w", storage.ErrUnsupported)
	}
	return storage.Info{Name: name, Size: size, ModTime: r.Updated.Truncate(time.Second), Version: storage.Version(r.Generation)}, nil
}

// decode makes a request whose answer is JSON.
func (s *Store) decode(ctx context.Context, r *plainhttp.Request, to any) error {
	attempts := s.client.Begin(r.Op, r.Name)
	for {
		resp, err := s.client.Do(ctx, r)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
		resp.Body.Close() //nolint:errcheck // nothing was written
		if err == nil {
			if err := json.Unmarshal(text, to); err != nil {
				return &storage.Error{Op: r.Op, Name: r.Name, Err: fmt.Errorf("the answer is not what Google Cloud Storage sends: %s: %w", plainhttp.Clean(err.Error()), storage.ErrUnsupported), Setting: storage.SettingEndpoint}
			}
			return nil
		}
		// The answer was cut off. Making the request again is safe: conditional writes
		// recognize their own earlier success.
		if err := attempts.Wait(ctx, plainhttp.Unreachable(ctx, r.Op, r.Name, err)); err != nil {
			return err
		}
	}
}

// ReadRange implements storage.Storage.
func (s *Store) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	bucket, key, err := object("read", name)
	if err != nil {
		return nil, storage.Info{}, err
	}
	r := s.request("read", name, http.MethodGet, s.xmlURL(bucket, key))
	r.Header.Set("Range", rangeHeader(off, n))
	if generation(pin) { // else it is of another store, and the answer has another
		r.Header.Set("X-Goog-If-Generation-Match", string(pin))
	}
	r.Accepts = func(status int) bool {
		return status == http.StatusOK || status == http.StatusPartialContent || status == http.StatusRequestedRangeNotSatisfiable
	}
	resp, err := s.client.Do(ctx, r)
	if err != nil {
		return nil, storage.Info{}, err
	}
	body, info, err := s.readAnswer(ctx, resp, name, off, n)
	if err == nil && pin != "" && info.Version != pin {
		body.Close() //nolint:errcheck // nothing was written
		return nil, storage.Info{}, &storage.Error{Op: "read", Name: name, Err: storage.ErrChanged}
	}
	if err != nil {
		resp.Body.Close() //nolint:errcheck // nothing was written
		return nil, storage.Info{}, err
	}
	return body, info, nil
}

// generation reports whether a version can be one of this store.
func generation(v storage.Version) bool {
	_, err := strconv.ParseInt(string(v), 10, 64)
	return err == nil
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

// readAnswer returns what an answer to a ranged read holds.
func (s *Store) readAnswer(ctx context.Context, resp *http.Response, name string, off, n int64) (io.ReadCloser, storage.Info, error) {
	fail := func(format string, args ...any) (io.ReadCloser, storage.Info, error) {
		return nil, storage.Info{}, &storage.Error{Op: "read", Name: name, Err: fmt.Errorf(format+": %w", append(args, storage.ErrUnsupported)...)}
	}
	h := resp.Header
	info := storage.Info{Name: name, Version: storage.Version(h.Get("X-Goog-Generation"))}
	if at, err := http.ParseTime(h.Get("Last-Modified")); err == nil {
		info.ModTime = at
	}
	if enc := h.Get("X-Goog-Stored-Content-Encoding"); enc != "" && enc != "identity" {
		e := &storage.Error{Op: "read", Name: name, Err: fmt.Errorf("the object is stored with Content-Encoding %s, so parts of it cannot be read: %w", plainhttp.Clean(enc), storage.ErrUnsupported), Hint: "store it without a content encoding"}
		return nil, storage.Info{}, e
	}
	start, size := int64(0), int64(-1)
	switch resp.StatusCode {
	case http.StatusPartialContent:
		var end int64
		if _, err := fmt.Sscanf(h.Get("Content-Range"), "bytes %d-%d/%d", &start, &end, &size); err != nil {
			return fail("expected the size of the object in the answer, found Content-Range %q", h.Get("Content-Range"))
		}
	case http.StatusRequestedRangeNotSatisfiable:
		resp.Body.Close() //nolint:errcheck // nothing was written
		if _, err := fmt.Sscanf(h.Get("Content-Range"), "bytes */%d", &size); err != nil || info.Version == "" {
			described, err := s.Stat(ctx, name) // Google describes it only in part
			if err != nil {
				return nil, storage.Info{}, err
			}
			return http.NoBody, described, nil
		}
		info.Size = size
		return http.NoBody, info, nil
	default:
		size = resp.ContentLength
	}
	if size < 0 || info.Version == "" {
		return fail("the answer has no size or no generation")
	}
	info.Size = size
	from, to := ranged.Clip(size, off, n)
	if n == 0 || from == to {
		resp.Body.Close() //nolint:errcheck // nothing was written
		return http.NoBody, info, nil
	}
	if start != from {
		return fail("expected bytes from %d, found bytes from %d", from, start)
	}
	return plainhttp.NewBody(ctx, name, resp.Body, to-from), info, nil
}

// Stat implements storage.Storage.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	r, err := s.describe(ctx, "stat", name)
	if err != nil {
		return storage.Info{}, err
	}
	return s.infoOf("stat", name, r)
}

func (s *Store) infoOf(op, name string, r resource) (storage.Info, error) {
	info, err := r.info(name)
	if err != nil {
		return info, &storage.Error{Op: op, Name: name, Err: err}
	}
	return info, nil
}

func (s *Store) describe(ctx context.Context, op, name string) (resource, error) {
	var r resource
	bucket, key, err := object(op, name)
	if err != nil {
		return r, err
	}
	err = s.decode(ctx, s.request(op, name, http.MethodGet, s.jsonURL(bucket, key, url.Values{"fields": {resourceFields}})), &r)
	return r, err
}

// List implements storage.Storage, with a request for each 1,000 names.
func (s *Store) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		bucket, keyPrefix, err := split(prefix)
		if err != nil {
			yield(storage.Info{}, err)
			return
		}
		base := scheme + bucket + "/"
		query := url.Values{"prefix": {keyPrefix}, "maxResults": {strconv.Itoa(pageSize)}, "fields": {"nextPageToken,prefixes,items(name,generation,size,updated)"}}
		if delimiter != "" {
			query.Set("delimiter", delimiter)
		}
		last := ""
		for {
			var page struct {
				NextPageToken string     `json:"nextPageToken"`
				Prefixes      []string   `json:"prefixes"`
				Items         []resource `json:"items"`
			}
			r := s.request("list", prefix, http.MethodGet, s.jsonURL(bucket, "", query))
			r.Explain = explainBucket
			if err := s.decode(ctx, r, &page); err != nil {
				yield(storage.Info{}, err)
				return
			}
			items, prefixes := page.Items, page.Prefixes
			for len(items)+len(prefixes) > 0 {
				var info storage.Info
				if len(items) == 0 || len(prefixes) > 0 && prefixes[0] < items[0].Name {
					info.Name = base + prefixes[0]
					prefixes = prefixes[1:]
					if info.Name == last { // continued on this page
						continue
					}
				} else {
					item := items[0]
					items = items[1:]
					if item.Name == keyPrefix && strings.HasSuffix(keyPrefix, "/") && item.Size == "0" {
						continue // the marker of the directory itself
					}
					if info, err = s.infoOf("list", base+item.Name, item); err != nil {
						yield(storage.Info{}, err)
						return
					}
				}
				last = info.Name
				if err := ctx.Err(); err != nil {
					yield(storage.Info{}, &storage.Error{Op: "list", Name: prefix, Err: err})
					return
				}
				if !yield(info, nil) {
					return
				}
			}
			if page.NextPageToken == "" {
				return
			}
			query.Set("pageToken", page.NextPageToken)
		}
	}
}

// Delete implements storage.Storage, with a request for each name.
func (s *Store) Delete(ctx context.Context, names ...string) error {
	return each.Name(names, func(name string) error { return s.remove(ctx, name, "") })
}

// remove deletes an object: of any version, or only of one. It may be missing.
func (s *Store) remove(ctx context.Context, name string, v storage.Version) error {
	bucket, key, err := object("delete", name)
	if err != nil {
		return err
	}
	query := url.Values{}
	if v != "" {
		query.Set("ifGenerationMatch", string(v))
	}
	resp, err := s.client.Do(ctx, s.request("delete", name, http.MethodDelete, s.jsonURL(bucket, key, query)))
	if errors.Is(err, storage.ErrNotExist) && !errors.Is(err, errNoBucket) || v != "" && errors.Is(err, storage.ErrChanged) {
		return nil
	}
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
