package azure

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/upload"
)

const (
	nonceName        = "sptwrite" // metadata; Azure allows only names of identifiers
	headerCopySource = "x-ms-copy-source"
	contentType      = "application/octet-stream"

	maxBlocks  = 50000
	maxCopy    = 256 << 20 // of Copy Blob From URL
	leastCopy  = 256 << 10 // a shorter range is read: the request would take longer than its bytes
	copyBuffer = 8 << 20   // of copies through this process

	signedFor  = 24 * time.Hour // how long the signature for a copy is valid
	tokenScope = "https://storage.azure.com/.default"
)

// writer is the Writer of one object.
type writer struct {
	*upload.Writer
	u *blobUpload

	mu      sync.Mutex
	sources map[source]storage.Info // of copies
}

type source struct {
	name string
	pin  storage.Version
}

// Create implements storage.Storage. It makes no request; the conditions are checked
// by Commit.
func (s *Store) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	at, a, err := s.object(ctx, "create", name)
	if err != nil {
		return nil, err
	}
	u := &blobUpload{s: s, a: a, at: at, name: at.String(), o: o, blocks: map[int][]string{}}
	rand.Read(u.nonce[:]) //nolint:errcheck // it does not fail
	limits := upload.Limits{Part: s.o.PartSize, MinCopy: leastCopy, MaxCopy: maxCopy, MaxParts: maxBlocks}
	return &writer{Writer: upload.New(ctx, u.name, u, limits, o), u: u, sources: map[source]storage.Info{}}, nil
}

// CopyRange implements storage.Copier, for objects of the same account. A service that
// does not copy gets the bytes through this process.
func (s *Store) CopyRange(ctx context.Context, w storage.Writer, src storage.Storage, name string, off, n int64, pin storage.Version) error {
	unsupported := &storage.Error{Op: "copy", Name: name, Err: storage.ErrUnsupported}
	dst, ok := w.(*writer)
	if from, same := src.(*Store); !ok || !same || from != s || dst.u.s != s {
		return unsupported
	}
	at, a, err := s.object(ctx, "copy", name)
	if err != nil {
		return err
	}
	if a != dst.u.a || a.noCopies.Load() || a.credential.anonymous() {
		return unsupported
	}
	whole := off == 0 && n < 0
	if whole && pin != "" && dst.u.o.Size > 0 {
		return dst.CopyWhole(ctx, s, upload.Source{Name: at.String(), Size: dst.u.o.Size, Pin: pin})
	}
	info, err := dst.source(ctx, at, pin)
	if err != nil {
		return err
	}
	from := upload.Source{Name: info.Name, Size: info.Size, Pin: info.Version}
	start, end, err := ranged.Span("copy", info, off, n)
	if err != nil {
		return err
	}
	if start == 0 && end == info.Size {
		return dst.CopyWhole(ctx, s, from)
	}
	return dst.Copy(ctx, s, from, start, end-start)
}

// source describes an object to copy from; one of a known version is asked for once.
func (w *writer) source(ctx context.Context, at address, pin storage.Version) (storage.Info, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := at.String()
	if info, ok := w.sources[source{name, pin}]; ok && pin != "" {
		return info, nil
	}
	p, err := w.u.s.properties(ctx, "copy", name, at, w.u.a, pin)
	if err == nil {
		w.sources[source{name, p.Version}] = p.Info
	}
	return p.Info, err
}

// blobUpload is the upload.Service of one object.
type blobUpload struct {
	s     *Store
	a     *account
	at    address
	name  string
	o     storage.CreateOptions
	nonce [16]byte

	mu     sync.Mutex
	blocks map[int][]string // ids, by part
}

func (u *blobUpload) blob() *blockblob.Client { return u.a.blob(u.at) }

// id returns the id of a block. All ids of an object must have the same length.
func (u *blobUpload) id(part, block int) string {
	raw := binary.BigEndian.AppendUint32(slices.Clone(u.nonce[:]), uint32(part))
	return base64.StdEncoding.EncodeToString(binary.BigEndian.AppendUint32(raw, uint32(block)))
}

func (u *blobUpload) nonceText() string { return hex.EncodeToString(u.nonce[:]) }

func (u *blobUpload) metadata() map[string]*string {
	return map[string]*string{nonceName: to.Ptr(u.nonceText())}
}

// conditions returns the conditions of the request that makes the object visible.
func (u *blobUpload) conditions() *blob.AccessConditions {
	if u.o.IfAbsent {
		return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfNoneMatch: to.Ptr(azcore.ETagAny)}}
	}
	return matching(u.o.Replace)
}

// settle returns the result of the request that makes the object visible. A refusal may
// be the answer to a second attempt, after the first one succeeded and its answer was
// lost: the nonce tells.
func (u *blobUpload) settle(ctx context.Context, size int64, tag *azcore.ETag, modified *time.Time, err error) (storage.Info, error) {
	if err == nil {
		return storage.Info{Name: u.name, Size: size, ModTime: value(modified).UTC(), Version: version(tag)}, nil
	}
	refused := bloberror.HasCode(err, bloberror.ConditionNotMet, bloberror.TargetConditionNotMet, bloberror.BlobAlreadyExists, bloberror.InvalidBlockList)
	gone := u.o.Replace != "" && bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ResourceNotFound)
	err = explain(ctx, "commit", u.name, err)
	if !refused && !gone {
		return storage.Info{}, err
	}
	p, perr := u.s.properties(ctx, "commit", u.name, u.at, u.a, "")
	switch {
	case perr == nil && p.nonce == u.nonceText():
		return p.Info, nil
	case perr != nil && !errors.Is(perr, storage.ErrNotExist):
		return storage.Info{}, errors.Join(err, perr)
	case u.o.IfAbsent && perr == nil:
		return storage.Info{}, &storage.Error{Op: "commit", Name: u.name, Err: storage.ErrExist}
	case u.o.Replace != "":
		return storage.Info{}, &storage.Error{Op: "commit", Name: u.name, Err: storage.ErrChanged}
	}
	return storage.Info{}, err
}

// Put implements upload.Service.
func (u *blobUpload) Put(ctx context.Context, body []byte) (storage.Info, error) {
	ctx = with(ctx, "commit", u.name)
	got, err := u.blob().Upload(ctx, seekable(body), &blockblob.UploadOptions{
		Metadata: u.metadata(), AccessConditions: u.conditions(), HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr(contentType)},
	})
	return u.settle(ctx, int64(len(body)), got.ETag, got.LastModified, err)
}

// Begin implements upload.Service. Azure has no such request.
func (u *blobUpload) Begin(context.Context) error { return nil }

// stage sends a block.
func (u *blobUpload) stage(ctx context.Context, id string, body []byte) error {
	_, err := u.blob().StageBlock(ctx, id, seekable(body), nil)
	if err != nil {
		return explain(ctx, "write", u.name, err)
	}
	return nil
}

func (u *blobUpload) staged(part int, ids ...string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.blocks[part] = ids
}

// PutPart implements upload.Service.
func (u *blobUpload) PutPart(ctx context.Context, i int, body []byte) error {
	id := u.id(i, 0)
	if err := u.stage(with(ctx, "write", u.name), id, body); err != nil {
		return err
	}
	u.staged(i, id)
	return nil
}

// from returns the URL from which the service copies an object, and the token that
// authorizes it; both are secrets.
func (u *blobUpload) from(ctx context.Context, src upload.Source) (from string, token *string, err error) {
	at, err := parseObject("copy", src.Name)
	if err != nil {
		return "", nil, err
	}
	from = u.a.blob(at).URL() // with the signature of a shared access signature
	switch c := u.a.credential; {
	case c.key != nil:
		signed, err := sas.BlobSignatureValues{
			ContainerName: at.container, BlobName: at.key, ExpiryTime: time.Now().UTC().Add(signedFor), Permissions: (&sas.BlobPermissions{Read: true}).String(),
		}.SignWithSharedKey(c.key)
		if err != nil {
			return "", nil, &storage.Error{Op: "copy", Name: src.Name, Err: errors.New(line(err.Error()))}
		}
		from += "?" + signed.Encode()
	case c.token != nil:
		t, err := c.token.GetToken(ctx, policy.TokenRequestOptions{Scopes: []string{tokenScope}})
		if err != nil {
			return "", nil, explain(ctx, "copy", src.Name, err)
		}
		token = to.Ptr("Bearer " + t.Token)
	}
	return from, token, nil
}

// cannotCopy reports whether the service does not copy this object, so that the bytes
// must go through this process. If that holds for all objects, it is not asked again.
func (a *account) cannotCopy(err error) bool {
	var said *answer
	if !errors.As(err, &said) || said.code != string(bloberror.CannotVerifyCopySource) && !errors.Is(err, storage.ErrUnsupported) {
		return false
	}
	if said.status != http.StatusNotFound && said.status != http.StatusConflict {
		a.noCopies.Store(true)
	}
	return true
}

// CopyPart implements upload.Service.
func (u *blobUpload) CopyPart(ctx context.Context, i int, src upload.Source, off, n int64) error {
	if !u.a.noCopies.Load() {
		ctx := with(ctx, "copy", src.Name)
		from, token, err := u.from(ctx, src)
		if err != nil {
			return err
		}
		id := u.id(i, 0)
		_, err = u.blob().StageBlockFromURL(ctx, id, from, &blockblob.StageBlockFromURLOptions{
			Range: blob.HTTPRange{Offset: off, Count: n}, CopySourceAuthorization: token,
			SourceModifiedAccessConditions: &blob.SourceModifiedAccessConditions{SourceIfMatch: quoted(src.Pin)},
		})
		if err == nil {
			u.staged(i, id)
			return nil
		}
		if err = explain(ctx, "copy", src.Name, err); !u.a.cannotCopy(err) {
			return err
		}
	}
	return u.through(ctx, i, src, off, n)
}

// through copies a range through this process, as blocks of one part.
func (u *blobUpload) through(ctx context.Context, part int, src upload.Source, off, n int64) error {
	body, _, err := ranged.NewReader(u.s, src.Name, src.Pin).Open(ctx, off, n)
	if err != nil {
		return err
	}
	defer body.Close() //nolint:errcheck // it was read to its end
	ctx = with(ctx, "write", u.name)
	var ids []string
	buf := make([]byte, min(n, copyBuffer))
	for n > 0 {
		p := buf[:min(n, int64(len(buf)))]
		if _, err := io.ReadFull(body, p); err != nil {
			return explain(ctx, "copy", src.Name, err)
		}
		id := u.id(part, len(ids))
		if err := u.stage(ctx, id, p); err != nil {
			return err
		}
		ids = append(ids, id)
		n -= int64(len(p))
	}
	u.staged(part, ids...)
	return nil
}

// Complete implements upload.Service.
func (u *blobUpload) Complete(ctx context.Context, n int, size int64) (storage.Info, error) {
	var ids []string
	u.mu.Lock()
	for i := range n {
		ids = append(ids, u.blocks[i]...)
	}
	u.mu.Unlock()
	ctx = with(ctx, "commit", u.name)
	got, err := u.blob().CommitBlockList(ctx, ids, &blockblob.CommitBlockListOptions{
		Metadata: u.metadata(), AccessConditions: u.conditions(), HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr(contentType)},
	})
	return u.settle(ctx, size, got.ETag, got.LastModified, err)
}

// CopyWhole implements upload.Service.
func (u *blobUpload) CopyWhole(ctx context.Context, src upload.Source) (storage.Info, error) {
	if !u.a.noCopies.Load() {
		ctx := with(ctx, "copy", src.Name)
		from, token, err := u.from(ctx, src)
		if err != nil {
			return storage.Info{}, err
		}
		got, err := u.blob().BlobClient().CopyFromURL(ctx, from, &blob.CopyFromURLOptions{
			Metadata: u.metadata(), CopySourceAuthorization: token, BlobAccessConditions: u.conditions(),
			SourceModifiedAccessConditions: &blob.SourceModifiedAccessConditions{SourceIfMatch: quoted(src.Pin)},
		})
		if bloberror.HasCode(err, bloberror.SourceConditionNotMet) {
			return storage.Info{}, explain(ctx, "copy", src.Name, err)
		}
		if err == nil || !u.a.cannotCopy(explain(ctx, "copy", src.Name, err)) {
			return u.settle(ctx, src.Size, got.ETag, got.LastModified, err)
		}
	}
	if err := u.through(ctx, 0, src, 0, src.Size); err != nil {
		return storage.Info{}, err
	}
	return u.Complete(ctx, 1, src.Size)
}

// Cancel implements upload.Service. The blocks need no request: they are not visible,
// and Azure removes them after a week.
func (u *blobUpload) Cancel(ctx context.Context, tried bool) error {
	if !tried {
		return nil
	}
	p, err := u.s.properties(ctx, "abort", u.name, u.at, u.a, "")
	if errors.Is(err, storage.ErrNotExist) || err == nil && p.nonce != u.nonceText() {
		return nil
	}
	if err != nil {
		return err
	}
	err = u.s.delete(ctx, u.name, p.Version)
	if errors.Is(err, storage.ErrChanged) { // another program replaced it
		return nil
	}
	return err
}
