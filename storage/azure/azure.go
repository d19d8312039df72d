package azure

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/each"
	"github.com/savepoint-tools/spt/storage/internal/retry"
)

// Options configure a Store. The zero value works.
type Options struct {
	// Endpoint is the URL of the Blob service of the account, for private clouds and
	// emulators: "http://127.0.0.1:10000/devstoreaccount1". "" means
	// AZURE_STORAGE_BLOB_ENDPOINT, else the host of each URI. Without a path, a host that
	// is an IP address gets the account as the path.
	Endpoint string
	// Anonymous sends no credentials.
	Anonymous bool
	// Config are configurations of Flink and Hadoop, with keys such as
	// fs.azure.account.key.HOST, in the order in which they are searched.
	Config []Config
	// Getenv returns the environment; nil is an empty one.
	Getenv func(string) string

	PartSize int64               // bytes of a block; a Writer keeps five in memory. 0: 16 MiB
	Retries  int                 // attempts of a request; 0: 10
	Deadline time.Duration       // of the attempts of a request; 0: a minute
	Pause    time.Duration       // before the second attempt; 0: 200 ms
	Idle     time.Duration       // a request in which nothing moves for that long ends; 0: 30 s
	Retried  func(storage.Retry) // called before a request is made again, concurrently; may be nil

	// Client sends the requests; nil: a new one with time limits.
	Client *http.Client
}

// Config is a configuration by full keys. Flink's begin with azure. or fs.azure.
type Config struct {
	Name   string // for messages: "conf/config.yaml"
	Values map[string]string
}

func (o *Options) endpoint() string {
	return cmp.Or(o.Endpoint, strings.TrimSpace(o.Getenv(envEndpoint)))
}

// Store holds the objects of all containers and accounts, each with the credentials
// that are found for its account. It is a storage.Storage, storage.Copier,
// storage.AccessReporter and storage.Resolver, and safe for concurrent use.
type Store struct {
	o       Options
	retrier *retrier

	mu       sync.Mutex
	accounts map[address]*account // by host and container: a signature can be for one container
}

// account is the connection to an account.
type account struct {
	credential *credential
	endpoint   string // URL without a trailing slash or a signature
	client     *service.Client
	noCopies   atomic.Bool // the service refused to copy
}

// New returns a Store. It makes no request and looks for no credentials.
func New(o Options) *Store {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	o.PartSize = cmp.Or(o.PartSize, 16<<20)
	o.Idle = cmp.Or(o.Idle, 30*time.Second)
	if o.Client == nil {
		o.Client = newClient(o.Idle)
	}
	return &Store{
		o: o, accounts: map[address]*account{},
		retrier: &retrier{policy: retry.Policy{Attempts: o.Retries, Deadline: o.Deadline, Pause: o.Pause, Report: o.Retried}},
	}
}

// Resolve implements storage.Resolver: it returns the store itself and the canonical
// URI. It makes no request.
func (s *Store) Resolve(_ context.Context, uri string) (storage.Storage, string, error) {
	a, err := parse("open", uri)
	if err != nil {
		return nil, "", err
	}
	return s, a.String(), nil
}

// account returns the connection for a container.
func (s *Store) account(a address) (*account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := address{host: a.host, container: a.container}
	if known := s.accounts[at]; known != nil {
		return known, nil
	}
	f := &finder{host: a.host, o: &s.o}
	c, err := f.find(a.container)
	if err != nil {
		return nil, err
	}
	endpoint, err := s.endpoint(a.host, c)
	if err != nil {
		return nil, &storage.Error{Op: "open", Name: at.String(), Err: err, Setting: storage.SettingEndpoint}
	}
	for other, known := range s.accounts { // one connection for all containers, if the credential is the same
		if other.host == a.host && known.credential.sas == c.sas && known.credential.source == c.source {
			s.accounts[at] = known
			return known, nil
		}
	}
	known, err := s.connect(endpoint, c)
	if err != nil {
		return nil, &storage.Error{Op: "open", Name: at.String(), Err: err}
	}
	s.accounts[at] = known
	return known, nil
}

// connect makes the client of an account.
func (s *Store) connect(endpoint string, c *credential) (*account, error) {
	a := &account{credential: c, endpoint: endpoint}
	options := &service.ClientOptions{ClientOptions: azcore.ClientOptions{
		Transport:       s.o.Client,
		Retry:           policy.RetryOptions{MaxRetries: -1},
		PerCallPolicies: []policy.Policy{s.retrier},
		Telemetry:       policy.TelemetryOptions{ApplicationID: "savepoint-tools"},
	}}
	var err error
	switch {
	case c.key != nil:
		a.client, err = service.NewClientWithSharedKeyCredential(endpoint, c.key, options)
	case c.token != nil:
		a.client, err = service.NewClient(endpoint, c.token, options)
	case c.sas != "":
		a.client, err = service.NewClientWithNoCredential(endpoint+"?"+c.sas, options)
	default:
		a.client, err = service.NewClientWithNoCredential(endpoint, options)
	}
	if err != nil {
		return nil, errors.New(line(err.Error()))
	}
	return a, nil
}

// endpoint returns the URL of the service of an account.
func (s *Store) endpoint(h host, c *credential) (string, error) {
	named := cmp.Or(s.o.endpoint(), c.service)
	if named == "" {
		return "https://" + h.blob(), nil
	}
	u, err := url.Parse(named)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.RawQuery != "" || u.User != nil {
		return "", fmt.Errorf("expected the URL of a Blob service, https://HOST, as the endpoint")
	}
	path := strings.Trim(u.Path, "/")
	if path == "" && net.ParseIP(u.Hostname()) != nil {
		path = h.account()
	}
	named = strings.TrimSuffix(u.Scheme+"://"+u.Host+"/"+path, "/")
	if of := accountOf(named); of != "" && of != h.account() {
		return "", fmt.Errorf("the endpoint %s is for the account %s, expected %s", named, of, h.account())
	}
	return named, nil
}

func (a *account) container(at address) *container.Client {
	return a.client.NewContainerClient(at.container)
}

func (a *account) blob(at address) *blockblob.Client {
	return a.container(at).NewBlockBlobClient(at.key)
}

// object parses the name of an object and connects to its account.
func (s *Store) object(ctx context.Context, op, name string) (address, *account, error) {
	if err := ctx.Err(); err != nil {
		return address{}, nil, &storage.Error{Op: op, Name: name, Err: err}
	}
	at, err := parseObject(op, name)
	if err != nil {
		return address{}, nil, err
	}
	a, err := s.account(at)
	return at, a, err
}

// version returns the version of an ETag, which has quotes except in lists.
func version(tag *azcore.ETag) storage.Version {
	if tag == nil {
		return ""
	}
	return storage.Version(strings.Trim(string(*tag), `"`))
}

// matching are the conditions that an object has a version; "" for none.
func matching(v storage.Version) *blob.AccessConditions {
	if v == "" {
		return nil
	}
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: quoted(v)}}
}

func quoted(v storage.Version) *azcore.ETag { return to.Ptr(azcore.ETag(`"` + string(v) + `"`)) }

func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

// isDirectory reports whether a blob with this metadata stands for a directory.
func isDirectory(metadata map[string]*string) bool {
	for name, v := range metadata {
		if strings.EqualFold(name, "hdi_isfolder") && v != nil && strings.EqualFold(*v, "true") {
			return true
		}
	}
	return false
}

func missing(op, name string) error {
	return &storage.Error{Op: op, Name: name, Err: storage.ErrNotExist}
}

// properties are the answer to Get Blob Properties.
type properties struct {
	storage.Info
	nonce string
}

// properties asks for the properties of an object. A refusal is asked for again with
// GET, because the answer to HEAD does not say why.
func (s *Store) properties(ctx context.Context, op, name string, at address, a *account, pin storage.Version) (properties, error) {
	ctx = with(ctx, op, name)
	got, err := a.blob(at).GetProperties(ctx, &blob.GetPropertiesOptions{AccessConditions: matching(pin)})
	if err != nil {
		var refused *azcore.ResponseError
		if errors.As(err, &refused) && (refused.StatusCode == http.StatusUnauthorized || refused.StatusCode == http.StatusForbidden || refused.StatusCode == http.StatusBadRequest) {
			again, gerr := a.blob(at).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Count: 1}})
			if gerr == nil {
				again.Body.Close() //nolint:errcheck // nothing is read of it
			} else {
				err = gerr
			}
		}
		return properties{}, explain(ctx, op, name, err)
	}
	if isDirectory(got.Metadata) {
		return properties{}, missing(op, name)
	}
	p := properties{Info: storage.Info{Name: at.String(), Size: value(got.ContentLength), ModTime: value(got.LastModified).UTC(), Version: version(got.ETag)}}
	for name, v := range got.Metadata {
		if strings.EqualFold(name, nonceName) {
			p.nonce = value(v)
		}
	}
	return p, nil
}

// Stat implements storage.Storage.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	at, a, err := s.object(ctx, "stat", name)
	if err != nil {
		return storage.Info{}, err
	}
	p, err := s.properties(ctx, "stat", name, at, a, "")
	return p.Info, err
}

// raced is how often a read that needs two requests begins again because the object
// changed between them.
const raced = 5

// ReadRange implements storage.Storage. It makes one request; or two for a range that
// counts from the end or begins past it.
func (s *Store) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	at, a, err := s.object(ctx, "read", name)
	if err != nil {
		return nil, storage.Info{}, err
	}
	for range raced {
		start, count, match := off, n, pin
		if off < 0 || n == 0 {
			p, err := s.properties(ctx, "read", name, at, a, pin)
			if err != nil {
				return nil, storage.Info{}, s.gone(ctx, name, at, a, err)
			}
			from, end := ranged.Clip(p.Size, off, n)
			if from == end {
				return &body{ctx: ctx, name: name}, p.Info, nil
			}
			start, count, match = from, end-from, p.Version
		}
		var rc io.ReadCloser
		var info storage.Info
		rc, info, err = s.get(ctx, name, at, a, start, count, match)
		var said *answer
		switch {
		case err == nil:
			return rc, info, nil
		case errors.As(err, &said) && said.status == http.StatusRequestedRangeNotSatisfiable:
			p, err := s.properties(ctx, "read", name, at, a, pin)
			if err != nil {
				return nil, storage.Info{}, err
			}
			if start >= p.Size {
				return &body{ctx: ctx, name: name}, p.Info, nil
			}
		case pin == "" && match != "" && errors.Is(err, storage.ErrChanged):
		default:
			return nil, storage.Info{}, s.gone(ctx, name, at, a, err)
		}
	}
	return nil, storage.Info{}, &storage.Error{Op: "read", Name: name, Err: fmt.Errorf("%w %d times", storage.ErrChanged, raced)}
}

// gone returns ErrNotExist for ErrChanged if the object does not exist: a condition that
// is not met does not say which.
func (s *Store) gone(ctx context.Context, name string, at address, a *account, err error) error {
	if errors.Is(err, storage.ErrChanged) {
		if _, now := s.properties(ctx, "read", name, at, a, ""); errors.Is(now, storage.ErrNotExist) {
			return now
		}
	}
	return err
}

// get makes the request of ReadRange.
func (s *Store) get(ctx context.Context, name string, at address, a *account, start, count int64, match storage.Version) (io.ReadCloser, storage.Info, error) {
	r := blob.HTTPRange{Offset: start, Count: max(0, count)}
	if count > 1<<62 || start+count < 0 {
		r.Count = 0 // to the end
	}
	ranged := start > 0 || r.Count > 0
	got, err := a.blob(at).DownloadStream(with(ctx, "read", name), &blob.DownloadStreamOptions{Range: r, AccessConditions: matching(match)})
	if err != nil {
		return nil, storage.Info{}, explain(ctx, "read", name, err)
	}
	fail := func(err error) (io.ReadCloser, storage.Info, error) {
		got.Body.Close() //nolint:errcheck // nothing is read of it
		return nil, storage.Info{}, err
	}
	if isDirectory(got.Metadata) {
		return fail(missing("read", name))
	}
	info := storage.Info{Name: at.String(), Size: value(got.ContentLength), ModTime: value(got.LastModified).UTC(), Version: version(got.ETag)}
	if ranged {
		from, size, err := contentRange(value(got.ContentRange))
		if err != nil || from != start {
			return fail(&storage.Error{Op: "read", Name: name, Err: fmt.Errorf("expected bytes from %d, found Content-Range %q: %w", start, value(got.ContentRange), storage.ErrUnsupported)})
		}
		info.Size = size
	}
	return &body{ctx: ctx, name: name, rc: got.Body}, info, nil
}

// contentRange reads "bytes 5-9/100".
func contentRange(text string) (from, size int64, err error) {
	span, total, _ := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	first, _, _ := strings.Cut(span, "-")
	from, err = strconv.ParseInt(first, 10, 64)
	if err == nil {
		size, err = strconv.ParseInt(total, 10, 64)
	}
	return from, size, err
}

// body is the body of a read. A connection that breaks is ErrUnavailable.
type body struct {
	ctx  context.Context
	name string
	rc   io.ReadCloser // nil: empty
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, &storage.Error{Op: "read", Name: b.name, Err: err}
	}
	if b.rc == nil {
		return 0, io.EOF
	}
	n, err := b.rc.Read(p)
	if err != nil && err != io.EOF {
		err = explain(b.ctx, "read", b.name, err)
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	if b.rc == nil {
		return nil
	}
	return b.rc.Close()
}

// List implements storage.Storage: one request for each 5,000 names.
func (s *Store) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if err := s.list(with(ctx, "list", prefix), prefix, delimiter, false, func(info storage.Info) bool { return yield(info, nil) }); err != nil {
			yield(storage.Info{}, err)
		}
	}
}

// list lists objects; with uncommitted, also names for which there are only blocks.
func (s *Store) list(ctx context.Context, prefix, delimiter string, uncommitted bool, yield func(storage.Info) bool) error {
	if err := ctx.Err(); err != nil {
		return &storage.Error{Op: "list", Name: prefix, Err: err}
	}
	at, err := parse("list", prefix)
	if err != nil {
		return err
	}
	a, err := s.account(at)
	if err != nil {
		return err
	}
	under := address{host: at.host, container: at.container}.String()
	o := &sorter{yield: yield}
	page := func(items []*container.BlobItem, prefixes []*container.BlobPrefix) bool {
		var found []entry
		for _, item := range items {
			key := value(item.Name)
			e := entry{info: storage.Info{Name: under + key}}
			if p := item.Properties; p != nil {
				e.info.Size, e.info.ModTime, e.info.Version = value(p.ContentLength), value(p.LastModified).UTC(), version(p.ETag)
				e.directory = strings.EqualFold(value(p.ResourceType), "directory")
			}
			e.directory = e.directory || isDirectory(item.Metadata)
			e.skip = e.directory || key == at.key && e.info.Size == 0 && strings.HasSuffix(key, "/")
			found = append(found, e)
		}
		for _, p := range prefixes {
			found = append(found, entry{info: storage.Info{Name: under + value(p.Name)}, prefix: true})
		}
		slices.SortStableFunc(found, func(a, b entry) int { return strings.Compare(a.info.Name, b.info.Name) })
		for _, e := range found {
			if !o.add(e) {
				return false
			}
		}
		return true
	}
	include := container.ListBlobsInclude{Metadata: true, UncommittedBlobs: uncommitted}
	if delimiter == "" {
		pages := a.container(at).NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &at.key, Include: include})
		for pages.More() {
			got, err := pages.NextPage(ctx)
			if err != nil {
				return explain(ctx, "list", prefix, err)
			}
			if got.Segment != nil && !page(got.Segment.BlobItems, nil) {
				return nil
			}
		}
	} else {
		pages := a.container(at).NewListBlobsHierarchyPager(delimiter, &container.ListBlobsHierarchyOptions{Prefix: &at.key, Include: include})
		for pages.More() {
			got, err := pages.NextPage(ctx)
			if err != nil {
				return explain(ctx, "list", prefix, err)
			}
			if got.Segment != nil && !page(got.Segment.BlobItems, got.Segment.BlobPrefixes) {
				return nil
			}
		}
	}
	o.flush()
	return nil
}

// entry is an element of a list.
type entry struct {
	info                    storage.Info
	directory, prefix, skip bool
}

// sorter puts the names of an account with a hierarchical namespace in the order of
// their bytes. Such an account lists a directory and then its content, so that "a/z"
// comes before "a-b". The content of a directory is held back until a name comes that is
// greater than all of it.
type sorter struct {
	yield func(storage.Info) bool
	dir   string // the outermost directory that is held back, with a "/"; "" for none
	held  []storage.Info
	ended bool
}

// add adds the next entry; false ends the list.
func (s *sorter) add(e entry) bool {
	if s.dir != "" && e.info.Name > s.dir && !strings.HasPrefix(e.info.Name, s.dir) {
		s.flush()
	}
	if s.dir == "" && (e.directory || e.prefix) {
		s.dir = strings.TrimSuffix(e.info.Name, "/") + "/"
	}
	if e.skip || s.ended {
		return !s.ended
	}
	if s.dir != "" {
		s.held = append(s.held, e.info)
		return true
	}
	s.ended = !s.yield(e.info)
	return !s.ended
}

// flush yields what is held back.
func (s *sorter) flush() {
	slices.SortFunc(s.held, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	for _, info := range s.held {
		if !s.ended {
			s.ended = !s.yield(info)
		}
	}
	s.dir, s.held = "", nil
}

// Delete implements storage.Storage: one request for each object.
func (s *Store) Delete(ctx context.Context, names ...string) error {
	return each.Name(names, func(name string) error { return s.delete(ctx, name, "") })
}

// delete deletes an object, if it has the version. A missing one is not an error.
func (s *Store) delete(ctx context.Context, name string, match storage.Version) error {
	at, a, err := s.object(ctx, "delete", name)
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	ctx = with(ctx, "delete", name)
	_, err = a.blob(at).Delete(ctx, &blob.DeleteOptions{AccessConditions: matching(match)})
	if err == nil || bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ContainerNotFound, bloberror.ResourceNotFound) {
		return nil
	}
	return explain(ctx, "delete", name, err)
}

// Access implements storage.AccessReporter. It makes one request, whose answer is not
// looked at: it shows the clock of the service, and where a token came from.
func (s *Store) Access(ctx context.Context, name string) (storage.Access, error) {
	at, err := parse("open", name)
	if err != nil {
		return storage.Access{}, err
	}
	a, err := s.account(at)
	if err != nil {
		return storage.Access{Service: "Azure Blob Storage"}, err
	}
	ctx = with(ctx, "open", name)
	_, err = a.container(at).NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &at.key, MaxResults: to.Ptr[int32](1)}).NextPage(ctx)
	access := storage.Access{
		Service: "Azure Blob Storage", Endpoint: a.endpoint, Credentials: a.credential.source, Identity: a.credential.identity,
		Details: []string{"account " + at.host.account(), "container " + at.container},
	}
	if l, ok := a.credential.token.(*lastResort); ok {
		access.Credentials = l.source()
	}
	access.Clock, access.Clocked = s.retrier.ahead()
	var refused *azcore.ResponseError
	if err != nil && !errors.As(err, &refused) {
		return access, explain(ctx, "open", name, err)
	}
	return access, nil
}

// seekable returns a body that can be sent again.
func seekable(p []byte) io.ReadSeekCloser { return nopCloser{bytes.NewReader(p)} }

type nopCloser struct{ *bytes.Reader }

func (nopCloser) Close() error { return nil }
