package s3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/each"
	"github.com/savepoint-tools/spt/storage/internal/retry"
	"github.com/savepoint-tools/spt/storage/internal/upload"
)

// Options say how the service is reached. What they do not say is looked up: see
// Access for what was found.
type Options struct {
	Endpoint   string     // URL of the service; "": from the environment, the profile or the configurations, else AWS
	Region     string     // "": likewise, else us-east-1, and what the service names
	Profile    string     // of the shared files of AWS; "": AWS_PROFILE, or "default"
	Anonymous  bool       // requests are not signed
	Addressing Addressing // of buckets

	// OSS makes it the store of Alibaba Cloud OSS.
	OSS bool

	// Getenv returns the environment; nil is an empty one.
	Getenv func(string) string
	// Flink and Hadoop are configurations, by full key; may be nil.
	Flink, Hadoop map[string]string

	Retries  int                 // attempts of a request; 0: 10
	Deadline time.Duration       // of the attempts of a request; 0: a minute
	Retried  func(storage.Retry) // called before a request is made again, concurrently; may be nil

	// Transport is copied and used for all connections to the service; nil: a new one
	// with time limits.
	Transport *http.Transport
	// LookFirst is for services that refuse conditional writes: the object is looked up
	// and then written, and another writer can come in between.
	LookFirst bool
	PartSize  int64         // bytes of a part of an upload; 0: 16 MiB
	Pause     time.Duration // before the second attempt; 0: 200 ms
	Idle      time.Duration // a body without a byte for that long ends; 0: 30 s
}

// Addressing is how the URL of an object has its bucket.
type Addressing string

// The ways of addressing.
const (
	Auto Addressing = ""     // by host for AWS, Google Cloud and Alibaba Cloud, else by path
	Path Addressing = "path" // https://endpoint/bucket/key
	Host Addressing = "host" // https://bucket.endpoint/key
)

// Limits of the protocol.
const (
	partSize = 16 << 20
	minCopy  = 5 << 20
	maxCopy  = 5 << 30
	maxParts = 10000
)

// Store is a storage.Storage with the abilities storage.Copier,
// storage.AccessReporter, storage.ConditionReporter, ability.Cleaner and
// ability.UploadLister. It makes no
// request before it is used.
type Store struct {
	o         Options
	scheme    string // of names
	transport *transport
	policy    *retry.Policy
	idle      time.Duration
	find      *finder // of credentials

	mu      sync.Mutex
	buckets map[string]*bucket

	hidden  sync.Mutex
	secrets map[string]bool // that no text may have
}

// New returns a Store.
func New(o Options) (*Store, error) {
	switch o.Addressing {
	case Auto, Path, Host:
	default:
		return nil, fmt.Errorf("addressing %q: expected %q or %q", o.Addressing, Path, Host)
	}
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	s := &Store{
		o: o, scheme: "s3", buckets: map[string]*bucket{}, secrets: map[string]bool{}, idle: cmp.Or(o.Idle, idleAtMost),
		policy: &retry.Policy{Attempts: o.Retries, Deadline: o.Deadline, Pause: o.Pause},
	}
	if o.OSS {
		s.scheme = "oss"
	}
	if o.Retried != nil {
		s.policy.Report = o.Retried
	}
	s.transport = newTransport(s, o.Transport)
	s.find = newFinder(s)
	return s, nil
}

// Resolve returns the store and the name of an object, a prefix or a directory in it.
// It makes no request.
func (s *Store) Resolve(_ context.Context, uri string) (storage.Storage, string, error) {
	scheme, rest := objpath.Split(uri)
	fits := scheme == s.scheme
	if !s.o.OSS {
		fits = fits || scheme == "s3a" || scheme == "s3p"
	}
	rest, slashes := strings.CutPrefix(rest, "//")
	name, key, _ := strings.Cut(rest, "/")
	if !fits || !slashes || name == "" || strings.ContainsAny(name, "@:?#%\\ ") {
		return nil, "", &storage.Error{Op: "open", Name: uri, Err: fmt.Errorf("not an address of an object: expected %s://BUCKET/KEY", s.scheme)}
	}
	return s, s.scheme + "://" + name + "/" + key, nil
}

// locate returns the bucket and the key of a name.
func (s *Store) locate(op, name string) (*bucket, string, error) {
	rest, ok := strings.CutPrefix(name, s.scheme+"://")
	of, key, slash := strings.Cut(rest, "/")
	if !ok || !slash || of == "" {
		return nil, "", &storage.Error{Op: op, Name: name, Err: fmt.Errorf("expected %s://BUCKET/KEY: %w", s.scheme, storage.ErrUnsupported)}
	}
	b, err := s.bucket(of)
	if err != nil {
		var ours *storage.Error
		if !errors.As(err, &ours) {
			err = &storage.Error{Op: op, Name: name, Err: s.clean(err)}
		}
		return nil, "", err
	}
	return b, key, nil
}

// object is locate of an object.
func (s *Store) object(ctx context.Context, op, name string) (*bucket, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", &storage.Error{Op: op, Name: name, Err: err}
	}
	b, key, err := s.locate(op, name)
	if err == nil && key == "" {
		err = &storage.Error{Op: op, Name: name, Err: fmt.Errorf("a bucket is not an object: %w", storage.ErrNotExist)}
	}
	if err == nil && (op == "read" || op == "stat") && strings.HasSuffix(key, "/") {
		// Some services answer for a directory, and others have markers there.
		err = &storage.Error{Op: op, Name: name, Err: fmt.Errorf("a directory is not an object: %w", storage.ErrNotExist)}
	}
	return b, key, err
}

func (s *Store) bucket(name string) (*bucket, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if b := s.buckets[name]; b != nil {
		return b, nil
	}
	set, err := s.settings(name)
	if err != nil {
		return nil, err
	}
	b := &bucket{name: name, s: s, set: set, region: set.region}
	b.creds, b.static = s.find.of(set)
	s.buckets[name] = b
	return b, nil
}

func (b *bucket) uri(key string) string { return b.s.scheme + "://" + b.name + "/" + key }

func version(etag string) storage.Version { return storage.Version(strings.Trim(etag, `"`)) }

// ReadRange implements storage.Storage. It is one GET; an empty range of an object can
// take a second request.
func (s *Store) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	b, key, err := s.object(ctx, "read", name)
	if err != nil {
		return nil, storage.Info{}, err
	}
	var o minio.GetObjectOptions
	o.Set("Range", rangeHeader(off, n))
	if pin != "" {
		o.Set("If-Match", `"`+string(pin)+`"`)
	}
	under, cancel := context.WithCancel(ctx)
	var c call
	var rc io.ReadCloser
	var found minio.ObjectInfo
	err = b.do(under, "read", key, &c, func(ctx context.Context, core *minio.Core) error {
		var err error
		rc, found, _, err = core.GetObject(ctx, b.name, key, o)
		return err
	})
	if err != nil {
		cancel()
		if c.status == http.StatusRequestedRangeNotSatisfiable {
			info, _, err := b.head(ctx, "read", key, pin)
			if start, end := ranged.Clip(info.Size, off, n); err == nil && off < 0 && start < end { // a service that refuses a suffix longer than the object
				return s.ReadRange(ctx, name, start, end-start, info.Version)
			}
			return io.NopCloser(strings.NewReader("")), info, err
		}
		return nil, storage.Info{}, err
	}
	info := storage.Info{Name: name, Size: found.Size, ModTime: found.LastModified, Version: version(found.ETag)}
	first := int64(0) // of the body, in the object
	if c.status == http.StatusPartialContent {
		if first, info.Size, err = contentRange(c.header.Get("Content-Range")); err != nil {
			cancel()
			return nil, storage.Info{}, &storage.Error{Op: "read", Name: name, Err: errors.Join(err, rc.Close())}
		}
	}
	start, end := ranged.Clip(info.Size, off, n)
	r := newBody(ctx, b, key, rc, cancel, math.MaxInt64)
	if start > first { // the service ignored the range
		if _, err := io.CopyN(io.Discard, r, start-first); err != nil {
			return nil, storage.Info{}, errors.Join(err, r.Close())
		}
	}
	r.left = end - start
	return r, info, nil
}

// rangeHeader returns the header Range. A range of nothing asks for a byte.
func rangeHeader(off, n int64) string {
	switch {
	case off < 0:
		return fmt.Sprintf("bytes=%d", off)
	case n < 0 || n > math.MaxInt64-off:
		return fmt.Sprintf("bytes=%d-", off)
	}
	return fmt.Sprintf("bytes=%d-%d", off, off+max(n, 1)-1)
}

// contentRange reads "bytes 0-9/100".
func contentRange(text string) (first, size int64, err error) {
	span, all, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	from, _, ok2 := strings.Cut(span, "-")
	if ok && ok2 {
		first, err = strconv.ParseInt(from, 10, 64)
		if err == nil {
			size, err = strconv.ParseInt(all, 10, 64)
		}
	}
	if !ok || !ok2 || err != nil || first < 0 || size < first {
		return 0, 0, fmt.Errorf("expected the size of the object in the answer, found Content-Range %q", text)
	}
	return first, size, nil
}

// Stat implements storage.Storage. It reads a byte: an answer to HEAD does not say why
// a request failed.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	b, key, err := s.object(ctx, "stat", name)
	if err != nil {
		return storage.Info{}, err
	}
	info, _, err := b.describe(ctx, "stat", key, "")
	return info, err
}

// describe describes an object, and returns the text in its metadata that tells one
// write from another.
func (b *bucket) describe(ctx context.Context, op, key string, pin storage.Version) (storage.Info, string, error) {
	var o minio.GetObjectOptions
	o.Set("Range", "bytes=0-0")
	if pin != "" {
		o.Set("If-Match", `"`+string(pin)+`"`)
	}
	var c call
	var found minio.ObjectInfo
	err := b.do(ctx, op, key, &c, func(ctx context.Context, core *minio.Core) error {
		rc, info, _, err := core.GetObject(ctx, b.name, key, o)
		if err != nil {
			return err
		}
		found = info
		_, err = io.Copy(io.Discard, io.LimitReader(rc, 1)) // for the connection to be used again
		return errors.Join(err, rc.Close())
	})
	if c.status == http.StatusRequestedRangeNotSatisfiable {
		return b.head(ctx, op, key, pin)
	}
	if err != nil {
		return storage.Info{}, "", err
	}
	info := storage.Info{Name: b.uri(key), Size: found.Size, ModTime: found.LastModified, Version: version(found.ETag)}
	if c.status == http.StatusPartialContent {
		if _, info.Size, err = contentRange(c.header.Get("Content-Range")); err != nil {
			return storage.Info{}, "", &storage.Error{Op: op, Name: info.Name, Err: err}
		}
	}
	return info, c.header.Get("X-Amz-Meta-" + nonceKey), nil
}

// head is describe by HEAD, for an empty object, which has no byte to ask for.
func (b *bucket) head(ctx context.Context, op, key string, pin storage.Version) (storage.Info, string, error) {
	var o minio.StatObjectOptions
	if pin != "" {
		o.Set("If-Match", `"`+string(pin)+`"`)
	}
	var c call
	var found minio.ObjectInfo
	err := b.do(ctx, op, key, &c, func(ctx context.Context, core *minio.Core) error {
		var err error
		found, err = core.StatObject(ctx, b.name, key, o)
		return err
	})
	if err != nil {
		return storage.Info{}, "", err
	}
	return storage.Info{Name: b.uri(key), Size: found.Size, ModTime: found.LastModified, Version: version(found.ETag)}, c.header.Get("X-Amz-Meta-" + nonceKey), nil
}

// List implements storage.Storage. It takes a request for 1,000 names or common
// prefixes. Empty objects whose names end in "/", which some programs make for
// directories, are left out.
func (s *Store) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		b, key, err := s.locate("list", prefix)
		if err == nil && ctx.Err() != nil {
			err = &storage.Error{Op: "list", Name: prefix, Err: ctx.Err()}
		}
		if err != nil {
			yield(storage.Info{}, err)
			return
		}
		for token := ""; ; {
			page, err := b.page(ctx, key, delimiter, token, 1000)
			if err != nil {
				yield(storage.Info{}, err)
				return
			}
			infos := make([]storage.Info, 0, len(page.Contents)+len(page.CommonPrefixes))
			for _, o := range page.Contents {
				if o.Size == 0 && strings.HasSuffix(o.Key, "/") {
					continue
				}
				// As precise as the header of an answer.
				infos = append(infos, storage.Info{Name: b.uri(o.Key), Size: o.Size, ModTime: o.LastModified.Truncate(time.Second), Version: version(o.ETag)})
			}
			for _, p := range page.CommonPrefixes {
				infos = append(infos, storage.Info{Name: b.uri(p.Prefix)})
			}
			slices.SortFunc(infos, func(x, y storage.Info) int { return strings.Compare(x.Name, y.Name) })
			for _, info := range infos {
				if err := ctx.Err(); err != nil {
					yield(storage.Info{}, &storage.Error{Op: "list", Name: prefix, Err: err})
					return
				}
				if !yield(info, nil) {
					return
				}
			}
			if token = page.NextContinuationToken; !page.IsTruncated || token == "" {
				return
			}
		}
	}
}

// page returns a page of a list.
func (b *bucket) page(ctx context.Context, prefix, delimiter, token string, most int) (page minio.ListBucketV2Result, err error) {
	var c call
	err = b.do(ctx, "list", prefix, &c, func(ctx context.Context, _ *minio.Core) error {
		b.mu.Lock()
		core, err := b.newCore(inContext{ctx, b.s.transport})
		b.mu.Unlock()
		if err != nil {
			return err
		}
		page, err = core.ListObjectsV2(b.name, prefix, "", token, delimiter, most)
		return err
	})
	return page, err
}

// Delete implements storage.Storage, with a request for each object.
func (s *Store) Delete(ctx context.Context, names ...string) error {
	return each.Name(names, func(name string) error {
		b, key, err := s.object(ctx, "delete", name)
		switch {
		case errors.Is(err, storage.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		return b.remove(ctx, key)
	})
}

func (b *bucket) remove(ctx context.Context, key string) error {
	err := b.do(ctx, "delete", key, &call{}, func(ctx context.Context, core *minio.Core) error {
		return core.RemoveObject(ctx, b.name, key, minio.RemoveObjectOptions{})
	})
	if errors.Is(err, storage.ErrNotExist) && code(err) != "NoSuchBucket" {
		return nil
	}
	return err
}

// Create implements storage.Storage. It makes no request.
func (s *Store) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	b, key, err := s.object(ctx, "create", name)
	if errors.Is(err, storage.ErrNotExist) {
		err = &storage.Error{Op: "create", Name: name, Err: fmt.Errorf("a bucket is not an object: %w", storage.ErrUnsupported)}
	}
	if err != nil {
		return nil, err
	}
	if b.set.sseErr != nil {
		return nil, &storage.Error{Op: "create", Name: name, Err: b.set.sseErr}
	}
	p := &put{b: b, key: key, o: o, nonce: newNonce(), parts: map[int]string{}}
	limits := upload.Limits{Part: cmp.Or(s.o.PartSize, partSize), MinCopy: minCopy, MaxCopy: maxCopy, MaxParts: maxParts}
	return &writer{Writer: upload.New(ctx, name, p, limits, o), put: p, seen: map[pinned]storage.Info{}}, nil
}
