package gcs

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/plainhttp"
	"github.com/savepoint-tools/spt/storage/internal/upload"
)

const (
	nonceKey    = "spt-write" // of the metadata of an object: which upload wrote it
	chunk       = 256 << 10   // all but the last request of an upload have a multiple
	contentType = "application/octet-stream"
	maxObject   = 5 << 40
)

// errLost: the service does not know the session of an upload, or no longer.
var errLost = errors.New("the service has lost the upload")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Create implements storage.Storage. An object of at most 16 MiB is one request;
// larger ones are a resumable upload.
func (s *Store) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	fail := func(err error) error { return &storage.Error{Op: "create", Name: name, Err: err} }
	bucket, key, err := split(name)
	if err != nil {
		return nil, err
	}
	switch {
	case ctx.Err() != nil:
		return nil, fail(ctx.Err())
	case key == "":
		return nil, fail(fmt.Errorf("a bucket, expected gs://BUCKET/KEY: %w", storage.ErrUnsupported))
	case o.Replace != "" && !generation(o.Replace):
		return nil, fail(fmt.Errorf("%q is not a version of this store: %w", o.Replace, storage.ErrChanged))
	case o.Size > maxObject:
		return nil, fail(fmt.Errorf("%d bytes, expected at most %d: %w", o.Size, int64(maxObject), storage.ErrUnsupported))
	}
	u := &uploading{s: s, name: name, bucket: bucket, key: key, o: o, nonce: rand.Text()}
	limits := upload.Limits{Part: s.o.part, MaxCopy: maxObject, Parallel: 1, WholeOnly: true}
	return &writer{upload.New(ctx, name, u, limits, o), s, o}, nil
}

// writer is a Writer of this store.
type writer struct {
	*upload.Writer
	s *Store
	o storage.CreateOptions
}

// CopyRange implements storage.Copier for whole objects, between all buckets. Other
// ranges are storage.ErrUnsupported: the service cannot copy them.
func (s *Store) CopyRange(ctx context.Context, w storage.Writer, src storage.Storage, name string, off, n int64, pin storage.Version) error {
	to, ok := w.(*writer)
	from, mine := src.(*Store)
	if !ok || !mine || from != s || to.s != s || off != 0 || to.Started() || n >= 0 && n != to.o.Size {
		return &storage.Error{Op: "copy", Name: name, Err: storage.ErrUnsupported}
	}
	source := upload.Source{Name: name, Size: to.o.Size, Pin: pin}
	if n >= 0 || to.o.Size <= 0 || !generation(pin) {
		info, err := s.Stat(ctx, name)
		if err != nil {
			return err
		}
		if pin != "" && info.Version != pin {
			return &storage.Error{Op: "copy", Name: name, Err: storage.ErrChanged}
		}
		if n >= 0 && n != info.Size {
			return &storage.Error{Op: "copy", Name: name, Err: storage.ErrUnsupported}
		}
		source.Size, source.Pin = info.Size, info.Version
	}
	return to.CopyWhole(ctx, s, source)
}

// uploading implements upload.Service.
type uploading struct {
	s                 *Store
	name, bucket, key string
	o                 storage.CreateOptions
	nonce             string

	session string // URL of the resumable upload: a secret, because it allows to write
	sent    int64  // bytes that the service has
	tail    []byte // what follows them, and is sent with the total size
	sum     uint32 // of all bytes, CRC-32C
	failed  error  // of a part: those after it are not sent
	ended   bool   // the service has no session of ours any more
}

// query returns the conditions of the write.
func (u *uploading) query() url.Values {
	q := url.Values{"fields": {resourceFields}}
	switch {
	case u.o.IfAbsent:
		q.Set("ifGenerationMatch", "0")
	case u.o.Replace != "":
		q.Set("ifGenerationMatch", string(u.o.Replace))
	}
	return q
}

// resource is the description of the object to be written.
func (u *uploading) resource(sum string) []byte {
	r := map[string]any{"contentType": contentType, "metadata": map[string]string{nonceKey: u.nonce}}
	if sum != "" {
		r["crc32c"] = sum
	}
	text, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings only
	}
	return text
}

func sumText(sum uint32) string {
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(nil, sum))
}

func (u *uploading) fail(op string, err error) error {
	return &storage.Error{Op: op, Name: u.name, Err: err}
}

func (u *uploading) uploadURL(kind string) string {
	q := u.query()
	q.Set("uploadType", kind)
	q.Set("name", u.key)
	return u.s.endpoint + "/upload/storage/v1/b/" + url.PathEscape(u.bucket) + "/o?" + q.Encode()
}

// Put implements upload.Service.
func (u *uploading) Put(ctx context.Context, body []byte) (storage.Info, error) {
	sum := crc32.Checksum(body, castagnoli)
	var whole bytes.Buffer
	whole.Grow(len(body) + 1024)
	parts := multipart.NewWriter(&whole)
	for _, p := range []struct {
		kind string
		text []byte
	}{{"application/json; charset=UTF-8", u.resource(sumText(sum))}, {contentType, body}} {
		w, err := parts.CreatePart(textproto.MIMEHeader{"Content-Type": {p.kind}})
		if err != nil {
			return storage.Info{}, u.fail("commit", err)
		}
		if _, err := w.Write(p.text); err != nil {
			return storage.Info{}, u.fail("commit", err)
		}
	}
	if err := parts.Close(); err != nil {
		return storage.Info{}, u.fail("commit", err)
	}
	r := u.s.request("commit", u.name, http.MethodPost, u.uploadURL("multipart"))
	r.Explain = explainBucket
	r.Header.Set("Content-Type", "multipart/related; boundary="+parts.Boundary())
	r.Body = whole.Bytes()
	var written resource
	err := u.s.decode(ctx, r, &written)
	return u.result(ctx, written, err, int64(len(body)), sumText(sum))
}

// result returns what a write, whose answer is r or err, has done.
func (u *uploading) result(ctx context.Context, r resource, err error, size int64, sum string) (storage.Info, error) {
	if errors.Is(err, storage.ErrChanged) || errors.Is(err, errLost) {
		// Refused, because there is an object: our own, if the answer to an earlier
		// attempt was lost.
		own, found, oerr := u.own(ctx)
		switch {
		case oerr != nil:
			return storage.Info{}, oerr
		case found:
			r, err = own, nil
		case u.o.IfAbsent && !errors.Is(err, errLost):
			return storage.Info{}, u.fail("commit", storage.ErrExist)
		}
	}
	if err != nil {
		return storage.Info{}, err
	}
	info, err := u.s.infoOf("commit", u.name, r)
	if err != nil {
		return storage.Info{}, err
	}
	if info.Size != size {
		return storage.Info{}, u.fail("commit", fmt.Errorf("the service stored %d bytes, expected %d", info.Size, size))
	}
	if sum != "" && r.CRC32C != "" && r.CRC32C != sum {
		return storage.Info{}, u.fail("commit", fmt.Errorf("damaged on the way: the service stored bytes with CRC-32C %s, expected %s", plainhttp.Clean(r.CRC32C), sum))
	}
	return info, nil
}

// own returns the object if this upload has written it.
func (u *uploading) own(ctx context.Context) (resource, bool, error) {
	r, err := u.s.describe(ctx, "commit", u.name)
	if errors.Is(err, storage.ErrNotExist) {
		return r, false, nil
	}
	return r, err == nil && r.Metadata[nonceKey] == u.nonce, err
}

// Begin implements upload.Service.
func (u *uploading) Begin(ctx context.Context) error {
	r := u.s.request("write", u.name, http.MethodPost, u.uploadURL("resumable"))
	r.Explain = explainBucket
	r.Header.Set("Content-Type", "application/json; charset=UTF-8")
	r.Header.Set("X-Upload-Content-Type", contentType)
	r.Body = u.resource("")
	if u.o.Size > 0 {
		r.Header.Set("X-Upload-Content-Length", strconv.FormatInt(u.o.Size, 10))
	}
	resp, err := u.s.client.Do(ctx, r)
	if err != nil {
		if u.o.IfAbsent && errors.Is(err, storage.ErrChanged) {
			return u.fail("write", storage.ErrExist) // nothing of ours is there yet
		}
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	if u.session = resp.Header.Get("Location"); u.session == "" {
		return u.fail("write", fmt.Errorf("the service began an upload without a session: %w", storage.ErrUnsupported))
	}
	return nil
}

// PutPart implements upload.Service. Parts come in order. A part that is not a
// multiple of the chunk is the last; it is kept for Complete.
func (u *uploading) PutPart(ctx context.Context, _ int, body []byte) error {
	if u.failed != nil {
		return u.failed
	}
	u.sum = crc32.Update(u.sum, castagnoli, body)
	if len(body)%chunk != 0 {
		u.tail = bytes.Clone(body)
		return nil
	}
	_, u.failed = u.send(ctx, "write", body, -1)
	return u.failed
}

// CopyPart implements upload.Service. It is never called: see upload.Limits.WholeOnly.
func (u *uploading) CopyPart(context.Context, int, upload.Source, int64, int64) error {
	return u.fail("copy", storage.ErrUnsupported)
}

// Complete implements upload.Service.
func (u *uploading) Complete(ctx context.Context, _ int, size int64) (storage.Info, error) {
	if got := u.sent + int64(len(u.tail)); got != size {
		return storage.Info{}, u.fail("commit", fmt.Errorf("%d bytes were sent, expected %d", got, size))
	}
	written, err := u.send(ctx, "commit", u.tail, size)
	u.tail = nil
	return u.result(ctx, written, err, size, sumText(u.sum))
}

// send sends the next bytes of a resumable upload, and again what the service did
// not keep. total is the size of the object with the last bytes, else -1.
func (u *uploading) send(ctx context.Context, op string, p []byte, total int64) (resource, error) {
	from, end := u.sent, u.sent+int64(len(p))
	attempts := u.s.client.Begin(op, u.name)
	for {
		written, done, err := u.put(ctx, op, p[u.sent-from:], total)
		for err != nil {
			if err := attempts.Wait(ctx, err); err != nil {
				return resource{}, err
			}
			written, done, err = u.status(ctx, op, total) // how far did it get?
		}
		switch {
		case u.sent < from || u.sent > end:
			return resource{}, u.fail(op, fmt.Errorf("the service has %d bytes, expected %d to %d", u.sent, from, end))
		case done && total >= 0:
			u.ended = true
			return written, nil
		case done:
			u.ended = true
			return resource{}, u.fail(op, errors.New("the service completed the object before its last bytes"))
		case u.sent == end && total < 0:
			return resource{}, nil
		case u.sent > from:
			attempts.Reset()
			from, p = u.sent, p[u.sent-from:]
		default:
			if err := attempts.Wait(ctx, u.fail(op, fmt.Errorf("the service kept nothing of %d bytes: %w", len(p), storage.ErrUnavailable))); err != nil {
				return resource{}, err
			}
		}
	}
}

// put makes one request with bytes at u.sent.
func (u *uploading) put(ctx context.Context, op string, p []byte, total int64) (resource, bool, error) {
	span := "*"
	if len(p) > 0 {
		span = fmt.Sprintf("%d-%d", u.sent, u.sent+int64(len(p))-1)
	}
	return u.exchange(ctx, op, p, span, total)
}

// status asks how many bytes the service has.
func (u *uploading) status(ctx context.Context, op string, total int64) (resource, bool, error) {
	return u.exchange(ctx, op, nil, "*", total)
}

// exchange makes one request of the session. It sets u.sent, and reports whether the
// object is complete.
func (u *uploading) exchange(ctx context.Context, op string, p []byte, span string, total int64) (written resource, done bool, err error) {
	size := "*"
	if total >= 0 {
		size = strconv.FormatInt(total, 10)
	}
	r := u.s.request(op, u.name, http.MethodPut, u.session)
	r.Once = true
	r.Body = p
	r.Header.Set("Content-Range", "bytes "+span+"/"+size)
	if !u.atEndpoint() {
		r.Authorize = nil
	}
	r.Accepts = func(status int) bool {
		return status == http.StatusOK || status == http.StatusCreated || status == http.StatusPermanentRedirect
	}
	resp, err := u.s.client.Do(ctx, r)
	if err != nil {
		if errors.Is(err, storage.ErrNotExist) { // of the session
			u.ended = true
			err = u.fail(op, fmt.Errorf("%w: %s", errLost, errors.Unwrap(err).Error()))
		}
		return resource{}, false, err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	if resp.StatusCode == http.StatusPermanentRedirect {
		kept := resp.Header.Get("Range")
		if kept == "" {
			u.sent = 0
			return resource{}, false, nil
		}
		_, last, ok := strings.Cut(kept, "-")
		n, err := strconv.ParseInt(last, 10, 64)
		if !ok || err != nil {
			return resource{}, false, u.fail(op, fmt.Errorf("expected the range of the bytes that the service has, found %q: %w", kept, storage.ErrUnsupported))
		}
		u.sent = n + 1
		return resource{}, false, nil
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return resource{}, false, plainhttp.Unreachable(ctx, op, u.name, err)
	}
	if err := json.Unmarshal(text, &written); err != nil {
		return resource{}, false, u.fail(op, fmt.Errorf("the answer is not what Google Cloud Storage sends: %w", storage.ErrUnsupported))
	}
	if total >= 0 {
		u.sent = total
	}
	return written, true, nil
}

// atEndpoint reports whether the session is at the endpoint, which may see the token.
func (u *uploading) atEndpoint() bool {
	return strings.HasPrefix(u.session, u.s.endpoint+"/")
}

// CopyWhole implements upload.Service: a rewrite, in as many requests as the service
// wants.
func (u *uploading) CopyWhole(ctx context.Context, src upload.Source) (storage.Info, error) {
	bucket, key, err := object("copy", src.Name)
	if err != nil {
		return storage.Info{}, err
	}
	q := u.query()
	q.Del("fields")
	if src.Pin != "" {
		q.Set("ifSourceGenerationMatch", string(src.Pin))
		q.Set("sourceGeneration", string(src.Pin))
	}
	for {
		address := u.s.jsonURL(bucket, key, nil) + "/rewriteTo/b/" + url.PathEscape(u.bucket) + "/o/" + url.PathEscape(u.key) + "?" + q.Encode()
		r := u.s.request("commit", u.name, http.MethodPost, address)
		r.Header.Set("Content-Type", "application/json; charset=UTF-8")
		r.Body = u.resource("")
		var answer struct {
			Done         bool     `json:"done"`
			RewriteToken string   `json:"rewriteToken"`
			Resource     resource `json:"resource"`
		}
		err := u.s.decode(ctx, r, &answer)
		if err == nil && !answer.Done {
			if answer.RewriteToken == "" {
				return storage.Info{}, u.fail("commit", fmt.Errorf("a copy that is not done, without a token to go on: %w", storage.ErrUnsupported))
			}
			q.Set("rewriteToken", answer.RewriteToken)
			continue
		}
		if errors.Is(err, storage.ErrNotExist) || errors.Is(err, storage.ErrChanged) {
			// Which of the two objects is it?
			info, serr := u.s.Stat(ctx, src.Name)
			switch {
			case errors.Is(serr, storage.ErrNotExist):
				return storage.Info{}, &storage.Error{Op: "copy", Name: src.Name, Err: storage.ErrChanged, Hint: "it was deleted"}
			case serr != nil:
				return storage.Info{}, serr
			case src.Pin != "" && info.Version != src.Pin:
				return storage.Info{}, &storage.Error{Op: "copy", Name: src.Name, Err: storage.ErrChanged}
			}
		}
		return u.result(ctx, answer.Resource, err, src.Size, "")
	}
}

// Cancel implements upload.Service.
func (u *uploading) Cancel(ctx context.Context, tried bool) error {
	var errs []error
	u.tail = nil
	if u.session != "" && !u.ended {
		r := u.s.request("abort", u.name, http.MethodDelete, u.session)
		if !u.atEndpoint() {
			r.Authorize = nil
		}
		r.Accepts = func(status int) bool {
			return status == 499 || status >= 200 && status < 300 || status == http.StatusNotFound || status == http.StatusGone
		}
		resp, err := u.s.client.Do(ctx, r)
		if err != nil {
			errs = append(errs, err)
		} else {
			errs = append(errs, resp.Body.Close())
		}
		u.ended = true
	}
	if tried {
		r, found, err := u.own(ctx)
		if found {
			err = u.s.remove(ctx, u.name, storage.Version(r.Generation))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
