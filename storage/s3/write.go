package s3

import (
	"bytes"
	"context"
	"crypto/md5" //nolint:gosec // S3's checksum of a body in transit
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/s3utils"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/upload"
)

// nonceKey is the user metadata that tells one write from another.
const nonceKey = "Spt-Write"

func newNonce() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// writer is a storage.Writer.
type writer struct {
	*upload.Writer
	put  *put
	seen map[pinned]storage.Info // of the objects copied from
}

// put is the upload.Service of one object.
type put struct {
	b     *bucket
	key   string
	o     storage.CreateOptions
	nonce string
	id    string // of the multipart upload

	mu    sync.Mutex
	parts map[int]string // ETags
}

// pinned is a version of an object; with the pin "", the one that was found first.
type pinned struct {
	name string
	pin  storage.Version
}

func (w *put) conditional() bool { return w.o.IfAbsent || w.o.Replace != "" }

// options are the headers of a request that makes the object, or begins to.
func (w *put) options() minio.PutObjectOptions {
	return minio.PutObjectOptions{
		UserMetadata: map[string]string{nonceKey: w.nonce}, DisableContentSha256: true,
		ServerSideEncryption: w.b.set.sse,
	}
}

// condition adds the condition under which the object becomes visible.
func (w *put) condition(o *minio.PutObjectOptions) {
	switch {
	case w.b.looks():
	case w.o.IfAbsent:
		o.SetMatchETagExcept("*")
	case w.o.Replace != "":
		o.SetMatchETag(string(w.o.Replace))
	}
}

// sums returns the checksums of a body: S3 compares MD5; the SHA-256 is part of the
// signature where TLS does not protect the body.
func (w *put) sums(body []byte) (md5Base64, sha256Hex string) {
	sum := md5.Sum(body) //nolint:gosec // S3's checksum of a body in transit
	if w.b.set.endpoint.Scheme != "https" {
		whole := sha256.Sum256(body)
		sha256Hex = hex.EncodeToString(whole[:])
	}
	return base64.StdEncoding.EncodeToString(sum[:]), sha256Hex
}

// Put implements upload.Service.
func (w *put) Put(ctx context.Context, body []byte) (storage.Info, error) {
	if err := w.look(ctx); err != nil {
		return storage.Info{}, err
	}
	o := w.options()
	w.condition(&o)
	md5Base64, sha256Hex := w.sums(body)
	var c call
	var made minio.UploadInfo
	err := w.b.do(ctx, "commit", w.key, &c, func(ctx context.Context, core *minio.Core) error {
		var err error
		made, err = core.PutObject(ctx, w.b.name, w.key, bytes.NewReader(body), int64(len(body)), md5Base64, sha256Hex, o)
		return err
	})
	if err != nil {
		return w.refused(ctx, err)
	}
	return storage.Info{Name: w.b.uri(w.key), Size: int64(len(body)), Version: version(made.ETag)}, nil
}

// look checks the condition of the write in advance, on a service that does not.
func (w *put) look(ctx context.Context) error {
	if !w.b.looks() || !w.conditional() {
		return nil
	}
	info, _, err := w.b.describe(ctx, "commit", w.key, "")
	switch {
	case err != nil && !errors.Is(err, storage.ErrNotExist):
		return err
	case w.o.IfAbsent && err == nil:
		return w.fail(storage.ErrExist)
	case w.o.Replace != "" && info.Version != w.o.Replace:
		return w.fail(storage.ErrChanged)
	}
	return nil
}

func (w *put) fail(err error) error {
	return &storage.Error{Op: "commit", Name: w.b.uri(w.key), Err: err}
}

// refused decides what an error of the request that makes the object means. If the
// object that is there is this writer's own, an earlier attempt did it.
func (w *put) refused(ctx context.Context, err error) (storage.Info, error) {
	failed, s := code(err), status(err)
	if s == http.StatusNotImplemented && w.conditional() {
		var of *storage.Error
		if errors.As(err, &of) {
			of.Hint = "this service cannot create an object only if it is absent: let it be looked up before it is created, if nothing else writes there"
			of.Setting = storage.SettingConditions
		}
		return storage.Info{}, err
	}
	gone := failed == "NoSuchUpload"
	if !gone && s != http.StatusPreconditionFailed && s != http.StatusConflict && !(w.o.Replace != "" && s == http.StatusNotFound && failed != "NoSuchBucket") {
		return storage.Info{}, err
	}
	info, nonce, there := w.b.describe(ctx, "commit", w.key, "")
	switch {
	case there == nil && nonce == w.nonce:
		return info, nil
	case there != nil && !errors.Is(there, storage.ErrNotExist):
		return storage.Info{}, there
	case w.o.IfAbsent && (there == nil || s == http.StatusPreconditionFailed):
		return storage.Info{}, w.fail(storage.ErrExist)
	case w.o.Replace != "":
		return storage.Info{}, w.fail(storage.ErrChanged)
	}
	return storage.Info{}, err
}

// Begin implements upload.Service.
func (w *put) Begin(ctx context.Context) error {
	if err := w.look(ctx); err != nil {
		return err
	}
	o := w.options()
	return w.b.do(ctx, "write", w.key, &call{}, func(ctx context.Context, core *minio.Core) error {
		var err error
		w.id, err = core.NewMultipartUpload(ctx, w.b.name, w.key, o)
		return err
	})
}

// PutPart implements upload.Service.
func (w *put) PutPart(ctx context.Context, i int, body []byte) error {
	md5Base64, sha256Hex := w.sums(body)
	var part minio.ObjectPart
	err := w.b.do(ctx, "write", w.key, &call{}, func(ctx context.Context, core *minio.Core) error {
		var err error
		part, err = core.PutObjectPart(ctx, w.b.name, w.key, w.id, i+1, bytes.NewReader(body), int64(len(body)),
			minio.PutObjectPartOptions{Md5Base64: md5Base64, Sha256Hex: sha256Hex, DisableContentSha256: true})
		return err
	})
	if err == nil {
		w.done(i, part.ETag)
	}
	return err
}

func (w *put) done(i int, etag string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.parts[i] = strings.Trim(etag, `"`)
}

// CopyPart implements upload.Service.
func (w *put) CopyPart(ctx context.Context, i int, src upload.Source, off, n int64) error {
	from, key, err := w.b.s.object(ctx, "copy", src.Name)
	if err != nil {
		return err
	}
	if off == 0 && n == src.Size {
		n = -1 // S3 takes ranges of large objects only
	}
	var part minio.CompletePart
	err = w.b.do(ctx, "copy", w.key, &call{slow: true, xml: true}, func(ctx context.Context, core *minio.Core) error {
		var err error
		part, err = core.CopyObjectPart(ctx, from.name, key, w.b.name, w.key, w.id, i+1, off, n, pinHeader(src.Pin))
		return err
	})
	if err != nil {
		return ofSource(err, src.Name)
	}
	w.done(i, part.ETag)
	return nil
}

func pinHeader(pin storage.Version) map[string]string {
	if pin == "" {
		return nil
	}
	return map[string]string{"x-amz-copy-source-if-match": `"` + string(pin) + `"`}
}

// ofSource names the source of a copy in an error that is about it.
func ofSource(err error, name string) error {
	var of *storage.Error
	if errors.As(err, &of) && (errors.Is(err, storage.ErrChanged) || code(err) == "NoSuchKey") {
		of.Name = name
	}
	return err
}

// Complete implements upload.Service.
func (w *put) Complete(ctx context.Context, n int, size int64) (storage.Info, error) {
	if err := w.look(ctx); err != nil {
		return storage.Info{}, err
	}
	parts := make([]minio.CompletePart, n)
	for i := range parts {
		parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: w.parts[i]}
	}
	var o minio.PutObjectOptions
	w.condition(&o)
	var made minio.UploadInfo
	err := w.b.do(ctx, "commit", w.key, &call{slow: true, xml: true}, func(ctx context.Context, core *minio.Core) error {
		var err error
		made, err = core.CompleteMultipartUpload(ctx, w.b.name, w.key, w.id, parts, o)
		return err
	})
	if err != nil {
		return w.refused(ctx, err)
	}
	return storage.Info{Name: w.b.uri(w.key), Size: size, Version: version(made.ETag)}, nil
}

// CopyWhole implements upload.Service.
func (w *put) CopyWhole(ctx context.Context, src upload.Source) (storage.Info, error) {
	if err := w.look(ctx); err != nil {
		return storage.Info{}, err
	}
	if w.o.Replace != "" && !w.b.looks() {
		return w.copyInPart(ctx, src)
	}
	if w.o.IfAbsent && !w.b.looks() {
		w.b.copying.Lock()
		if w.b.copies == unknown {
			defer w.b.copying.Unlock() // others wait for the answer
			return w.firstCopy(ctx, src)
		}
		w.b.copying.Unlock()
		if w.b.copies == no {
			return w.copyInPart(ctx, src)
		}
	}
	return w.copyObject(ctx, src)
}

// known is what is known of an ability of a service.
type known int

const (
	unknown known = iota
	yes
	no
)

// firstCopy is the first copy into a bucket. It finds out whether the service respects
// If-None-Match there: not all do, and the others would replace an object silently. It
// makes the same copy twice; the second must be refused.
func (w *put) firstCopy(ctx context.Context, src upload.Source) (storage.Info, error) {
	info, err := w.copyInPart(ctx, src)
	if err != nil {
		return info, err
	}
	if s3utils.IsAmazonEndpoint(*w.b.set.endpoint) { // documented
		w.b.copies = yes
		return info, nil
	}
	_, again := w.copyOnce(ctx, src)
	switch {
	case again == nil: // it replaced the object by itself
		w.b.copies = no
		info, _, err = w.b.describe(ctx, "commit", w.key, "")
	case status(again) == http.StatusPreconditionFailed:
		w.b.copies = yes
	case status(again) == http.StatusNotImplemented || status(again) == http.StatusBadRequest:
		w.b.copies = no
	}
	return info, err
}

// copyInPart copies by an upload of one part, whose last request has the condition.
func (w *put) copyInPart(ctx context.Context, src upload.Source) (storage.Info, error) {
	if err := w.Begin(ctx); err != nil {
		return storage.Info{}, err
	}
	if err := w.CopyPart(ctx, 0, src, 0, src.Size); err != nil {
		return storage.Info{}, err
	}
	return w.Complete(ctx, 1, src.Size)
}

func (w *put) copyObject(ctx context.Context, src upload.Source) (storage.Info, error) {
	info, err := w.copyOnce(ctx, src)
	if err == nil {
		return info, nil
	}
	if s := status(err); w.o.IfAbsent && (s == http.StatusPreconditionFailed || s == http.StatusConflict) {
		// Of the destination, or of the source?
		if info, there := w.refused(ctx, err); there == nil || errors.Is(there, storage.ErrExist) {
			if _, _, changed := w.b.s.sourceHead(ctx, src); changed == nil || there == nil {
				return info, there
			}
		}
	}
	return storage.Info{}, ofSource(err, src.Name)
}

// sourceHead checks that a source is unchanged.
func (s *Store) sourceHead(ctx context.Context, src upload.Source) (storage.Info, string, error) {
	b, key, err := s.object(ctx, "copy", src.Name)
	if err != nil {
		return storage.Info{}, "", err
	}
	return b.describe(ctx, "copy", key, src.Pin)
}

// copyOnce makes a CopyObject.
func (w *put) copyOnce(ctx context.Context, src upload.Source) (storage.Info, error) {
	from, key, err := w.b.s.object(ctx, "copy", src.Name)
	if err != nil {
		return storage.Info{}, err
	}
	headers := map[string]string{"x-amz-metadata-directive": "REPLACE", "x-amz-meta-" + nonceKey: w.nonce}
	if src.Pin != "" {
		headers["x-amz-copy-source-if-match"] = `"` + string(src.Pin) + `"`
	}
	if w.o.IfAbsent && !w.b.looks() {
		headers["If-None-Match"] = "*"
	}
	if w.b.set.sse != nil {
		h := http.Header{}
		w.b.set.sse.Marshal(h)
		for k := range h {
			headers[k] = h.Get(k)
		}
	}
	var made minio.ObjectInfo
	err = w.b.do(ctx, "commit", w.key, &call{slow: true, xml: true}, func(ctx context.Context, core *minio.Core) error {
		var err error
		made, err = core.CopyObject(ctx, from.name, key, w.b.name, w.key, headers, minio.CopySrcOptions{}, minio.PutObjectOptions{})
		return err
	})
	if err != nil {
		return storage.Info{}, err
	}
	return storage.Info{Name: w.b.uri(w.key), Size: src.Size, ModTime: made.LastModified, Version: version(made.ETag)}, nil
}

// Cancel implements upload.Service.
func (w *put) Cancel(ctx context.Context, tried bool) error {
	var errs []error
	if w.id != "" {
		errs = append(errs, w.b.abort(ctx, w.key, w.id))
	}
	if tried {
		_, nonce, err := w.b.describe(ctx, "abort", w.key, "")
		switch {
		case errors.Is(err, storage.ErrNotExist):
		case err != nil:
			errs = append(errs, err)
		case nonce == w.nonce:
			errs = append(errs, w.b.remove(ctx, w.key))
		}
	}
	return errors.Join(errs...)
}

// abort removes the parts of an upload.
func (b *bucket) abort(ctx context.Context, key, id string) error {
	err := b.do(ctx, "abort", key, &call{}, func(ctx context.Context, core *minio.Core) error {
		return core.AbortMultipartUpload(ctx, b.name, key, id)
	})
	if code(err) == "NoSuchUpload" {
		return nil
	}
	return err
}

// CopyRange implements storage.Copier between objects of one service. A copy that is
// short, or between services, is storage.ErrUnsupported.
func (s *Store) CopyRange(ctx context.Context, to storage.Writer, src storage.Storage, name string, off, n int64, pin storage.Version) error {
	w, ok := to.(*writer)
	if from, mine := src.(*Store); !ok || !mine || from != s || w.put.b.s != s {
		return &storage.Error{Op: "copy", Name: name, Err: storage.ErrUnsupported}
	}
	b, key, err := s.object(ctx, "copy", name)
	if err != nil {
		return err
	}
	if b.set.endpoint.Host != w.put.b.set.endpoint.Host || b.creds != w.put.b.creds {
		return &storage.Error{Op: "copy", Name: name, Err: storage.ErrUnsupported}
	}
	whole := off == 0 && n < 0
	from := upload.Source{Name: name, Size: w.put.o.Size, Pin: pin}
	if !whole || pin == "" || from.Size <= 0 {
		info, known := w.seen[pinned{name, pin}]
		if !known {
			if info, _, err = b.describe(ctx, "copy", key, pin); err != nil {
				return err
			}
			w.seen[pinned{name, pin}] = info
		}
		from.Size, from.Pin = info.Size, info.Version
	}
	if whole {
		return w.CopyWhole(ctx, s, from)
	}
	start, end, err := ranged.Span("copy", storage.Info{Name: name, Size: from.Size}, off, n)
	if err != nil {
		return err
	}
	return w.Copy(ctx, s, from, start, end-start)
}
