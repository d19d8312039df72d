// Package upload writes one object to an object store: in one request if it is
// small, else in parts. It has what all services share: buffers, part sizes,
// concurrent requests, copies within the service, and errors that stay. A driver
// implements Service, the requests themselves.
//
//	w := upload.New(ctx, uri, service, upload.Limits{Part: 16 << 20, MinCopy: 5 << 20, MaxParts: 10000, MaxCopy: 5 << 30}, options)
package upload

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

// Service has the requests of one upload. Errors are as a Storage returns them.
// The context is the one of Create, or of Commit.
type Service interface {
	// Put stores the whole object in one request.
	Put(ctx context.Context, body []byte) (storage.Info, error)
	// Begin begins an upload in parts. It is called at most once, before PutPart and
	// CopyPart.
	Begin(ctx context.Context) error
	// PutPart stores part i, counted from 0. It is called concurrently, with
	// Limits.Parallel parts at most, and must not keep body.
	PutPart(ctx context.Context, i int, body []byte) error
	// CopyPart stores a range of another object of the service as part i. The bytes do
	// not pass through this process.
	CopyPart(ctx context.Context, i int, src Source, off, n int64) error
	// Complete makes the parts 0 to n-1 the object, of size bytes.
	Complete(ctx context.Context, n int, size int64) (storage.Info, error)
	// CopyWhole makes the object a copy of another of the service, at most
	// Limits.MaxCopy bytes.
	CopyWhole(ctx context.Context, src Source) (storage.Info, error)
	// Cancel removes what Begin, PutPart and CopyPart left. If Put, Complete or
	// CopyWhole was called and failed, tried is set: the object may exist, and Cancel
	// deletes it if it is this upload's own.
	Cancel(ctx context.Context, tried bool) error
}

// Source is an object to copy from.
type Source struct {
	Name string
	Size int64
	Pin  storage.Version
}

// Limits are what a service allows.
type Limits struct {
	Part     int64 // bytes of a part; parts of large objects are larger. An object of at most one part is one Put
	MinCopy  int64 // least bytes of a part that is not the last, so also of a CopyPart
	MaxCopy  int64 // most bytes of a CopyPart and a CopyWhole
	MaxParts int
	Parallel int // parts sent at once; 0: 4. 1: in order

	WholeOnly bool // ranges cannot be copied, so CopyPart is not called; CopyWhole can
}

// growEvery is the number of parts after which the parts of an object of unknown
// size become twice as large.
const growEvery = 1000

// Writer is a storage.Writer.
type Writer struct {
	ctx  context.Context
	name string
	s    Service
	l    Limits
	o    storage.CreateOptions

	buf   []byte
	parts int
	size  int64  // written or copied
	whole *whole // all there is so far: a copy not requested yet
	err   error  // sticky, also after Commit and Abort
	began bool
	tried bool // to make the object visible
	done  bool // committed or aborted

	slots   chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	failed  error // the first error of a part
}

// whole is an object to be copied as a whole, and the store that reads it.
type whole struct {
	Source
	store storage.Storage
}

var errFinished = errors.New("already committed or aborted")

// New returns a Writer. It makes no request.
func New(ctx context.Context, name string, s Service, l Limits, o storage.CreateOptions) *Writer {
	if l.Parallel == 0 {
		l.Parallel = 4
	}
	if l.MaxParts > 0 && o.Size > 0 {
		l.Part = max(l.Part, (o.Size+int64(l.MaxParts)-1)/int64(l.MaxParts))
	}
	return &Writer{ctx: ctx, name: name, s: s, l: l, o: o, slots: make(chan struct{}, l.Parallel)}
}

func (w *Writer) fail(op string, err error) error {
	var of *storage.Error
	if !errors.As(err, &of) {
		err = &storage.Error{Op: op, Name: w.name, Err: err}
	}
	if w.err == nil {
		w.err = err
	}
	return w.err
}

// ready returns the error that ended the upload, if one did.
func (w *Writer) ready(ctx context.Context, op string) error {
	if w.err != nil {
		return w.err
	}
	if err := ctx.Err(); err != nil {
		return w.fail(op, err)
	}
	w.mu.Lock()
	err := w.failed
	w.mu.Unlock()
	if err != nil {
		return w.fail(op, err)
	}
	return nil
}

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (n int, err error) {
	if err := w.ready(w.ctx, "write"); err != nil {
		return 0, err
	}
	if w.o.Size > 0 && w.size+int64(len(p)) > w.o.Size {
		return 0, w.fail("write", fmt.Errorf("wrote %d bytes, expected %d", w.size+int64(len(p)), w.o.Size))
	}
	if err := w.split(); err != nil {
		return 0, err
	}
	n, err = w.fill(p)
	w.size += int64(n)
	return n, err
}

// fill appends bytes to the buffer, and sends it when it is full.
func (w *Writer) fill(p []byte) (n int, err error) {
	for len(p) > 0 {
		// A full buffer is sent only when more follows: what fits into one part is one
		// request.
		if int64(len(w.buf)) >= w.l.Part {
			if err := w.flush(); err != nil {
				return n, err
			}
		}
		k := min(len(p), int(w.l.Part)-len(w.buf))
		w.buf = append(w.buf, p[:k]...)
		n += k
		p = p[k:]
	}
	return n, nil
}

// filler is the part of a Writer that does not count.
type filler struct{ w *Writer }

func (f filler) Write(p []byte) (int, error) { return f.w.fill(p) }

// begin begins the parts.
func (w *Writer) begin() error {
	if w.began {
		return nil
	}
	w.began = true // even if it fails: it may have begun
	if err := w.s.Begin(w.ctx); err != nil {
		return w.fail("write", err)
	}
	return nil
}

// part sends the next part.
func (w *Writer) part(send func(i int) error) error {
	if w.l.MaxParts > 0 && w.parts == w.l.MaxParts {
		return w.fail("write", fmt.Errorf("more than %d parts of %d bytes: %w", w.l.MaxParts, w.l.Part, storage.ErrUnsupported))
	}
	if err := w.begin(); err != nil {
		return err
	}
	select {
	case w.slots <- struct{}{}:
	case <-w.ctx.Done():
		return w.fail("write", w.ctx.Err())
	}
	i := w.parts
	w.parts++
	if w.o.Size <= 0 && w.parts%growEvery == 0 {
		w.l.Part *= 2
	}
	w.running.Go(func() {
		defer func() { <-w.slots }()
		if err := send(i); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			if w.failed == nil {
				w.failed = err
			}
		}
	})
	return nil
}

// flush sends the buffer as a part.
func (w *Writer) flush() error {
	body := w.buf
	if len(body) == 0 {
		return nil
	}
	w.buf = nil
	return w.part(func(i int) error { return w.s.PutPart(w.ctx, i, body) })
}

// split turns a copy of a whole object into parts, because more follows it.
func (w *Writer) split() error {
	src := w.whole
	if src == nil {
		return nil
	}
	w.whole = nil
	switch {
	case w.l.WholeOnly:
		return w.stream(src)
	case src.Size < w.l.MinCopy:
		return w.read(src.store, src.Source, 0, src.Size)
	}
	return w.copyParts(src.Source, 0, src.Size)
}

// stream sends a whole object through this process.
func (w *Writer) stream(src *whole) error {
	body, _, err := ranged.NewReader(src.store, src.Name, src.Pin).Open(w.ctx, 0, src.Size)
	if err != nil {
		return w.fail("copy", err)
	}
	defer body.Close() //nolint:errcheck // it was read to its end
	n, err := io.CopyBuffer(filler{w}, struct{ io.Reader }{body}, make([]byte, min(1<<20, src.Size+1)))
	if err == nil && n != src.Size {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return w.fail("copy", err)
	}
	return nil
}

// Started reports whether something was written or copied.
func (w *Writer) Started() bool { return w.size > 0 || w.began }

// read reads a short range into the buffer.
func (w *Writer) read(src storage.Storage, from Source, off, n int64) error {
	body, _, err := ranged.NewReader(src, from.Name, from.Pin).Open(w.ctx, off, n)
	if err != nil {
		return w.fail("copy", err)
	}
	defer body.Close() //nolint:errcheck // it was read to its end
	at := len(w.buf)
	w.buf = append(w.buf, make([]byte, n)...)
	if _, err := io.ReadFull(body, w.buf[at:]); err != nil {
		return w.fail("copy", err)
	}
	return nil
}

// CopyWhole appends a whole object of the service, whose size and version are
// known. If nothing else is written, it is one request, in Commit.
func (w *Writer) CopyWhole(ctx context.Context, src storage.Storage, from Source) error {
	if err := w.ready(ctx, "copy"); err != nil {
		return err
	}
	if w.Started() || from.Size == 0 || from.Size > w.l.MaxCopy {
		return w.Copy(ctx, src, from, 0, from.Size)
	}
	w.whole, w.size = &whole{from, src}, from.Size
	return nil
}

// Copy appends a range of an object of the service. src reads it where it is too
// short to be copied. For a short range, and where ranges cannot be copied, it returns
// ErrUnsupported.
func (w *Writer) Copy(ctx context.Context, src storage.Storage, from Source, off, n int64) error {
	if err := w.ready(ctx, "copy"); err != nil {
		return err
	}
	if w.l.WholeOnly {
		return &storage.Error{Op: "copy", Name: w.name, Err: fmt.Errorf("a part of an object: %w", storage.ErrUnsupported)}
	}
	if err := w.split(); err != nil {
		return err
	}
	lead := int64(0) // read into the buffer, so that it is long enough for a part
	if have := int64(len(w.buf)); have > 0 {
		lead = max(0, w.l.MinCopy-have)
	}
	if n-lead < max(w.l.MinCopy, 1) {
		return &storage.Error{Op: "copy", Name: w.name, Err: fmt.Errorf("a range of %d bytes: %w", n, storage.ErrUnsupported)}
	}
	if lead > 0 {
		if err := w.read(src, from, off, lead); err != nil {
			return err
		}
	}
	if err := w.flush(); err != nil {
		return err
	}
	if err := w.copyParts(from, off+lead, n-lead); err != nil {
		return err
	}
	w.size += n
	return nil
}

// copyParts copies a range in as few parts as possible, none of them too short.
func (w *Writer) copyParts(from Source, off, n int64) error {
	for n > 0 {
		k := min(n, w.l.MaxCopy)
		if rest := n - k; rest > 0 && rest < w.l.MinCopy {
			k -= w.l.MinCopy
		}
		at := off
		if err := w.part(func(i int) error { return w.s.CopyPart(w.ctx, i, from, at, k) }); err != nil {
			return err
		}
		off, n = off+k, n-k
	}
	return nil
}

// Commit implements storage.Writer.
func (w *Writer) Commit(ctx context.Context) (storage.Info, error) {
	if err := w.ready(ctx, "commit"); err != nil {
		return storage.Info{}, err
	}
	if w.o.Size > 0 && w.size != w.o.Size {
		return storage.Info{}, w.fail("commit", fmt.Errorf("wrote %d bytes, expected %d", w.size, w.o.Size))
	}
	info, err := w.finish(ctx)
	if err != nil {
		return storage.Info{}, w.fail("commit", err)
	}
	w.done, w.buf = true, nil
	w.err = &storage.Error{Op: "write", Name: w.name, Err: errFinished}
	return info, nil
}

func (w *Writer) finish(ctx context.Context) (storage.Info, error) {
	if !w.began {
		w.tried = true
		if w.whole != nil {
			return w.s.CopyWhole(ctx, w.whole.Source)
		}
		return w.s.Put(ctx, w.buf)
	}
	if err := w.flush(); err != nil {
		return storage.Info{}, err
	}
	w.running.Wait()
	if err := w.ready(ctx, "commit"); err != nil {
		return storage.Info{}, err
	}
	w.tried = true
	return w.s.Complete(ctx, w.parts, w.size)
}

// Abort implements storage.Writer.
func (w *Writer) Abort(ctx context.Context) error {
	if w.done {
		return nil
	}
	w.done = true
	w.running.Wait()
	w.buf, w.whole = nil, nil
	if w.err == nil {
		w.err = &storage.Error{Op: "write", Name: w.name, Err: errFinished}
	}
	if !w.began && !w.tried {
		return nil
	}
	return w.s.Cancel(context.WithoutCancel(ctx), w.tried)
}
