// Package ranged makes the ranged reads of a store reliable: pinned to one
// version, bounded in number, and resumed after interruptions.
//
//	r := ranged.NewReader(store, "sp/_metadata", "")
//	head, err := r.ReadRange(ctx, 0, 1<<20) // one request; the version is pinned now
//	info, err := r.Stat(ctx)                // no request: known from the read
package ranged

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/savepoint-tools/spt/storage"
)

const (
	maxInFlight  = 16      // concurrent requests of a Scheduler
	maxResumes   = 3       // consecutive resumes; see resumeReset
	resumeReset  = 1 << 20 // bytes of progress that reset the count of resumes
	resumePauses = 200 * time.Millisecond
)

// Scheduler bounds the concurrent requests of all its Readers.
type Scheduler struct {
	slots chan struct{}
	pause time.Duration
}

// NewScheduler returns a Scheduler that allows 16 concurrent requests.
func NewScheduler() *Scheduler {
	return &Scheduler{slots: make(chan struct{}, maxInFlight), pause: resumePauses}
}

// Reader reads one object, always at the same version: its pin, or the version of
// its first read. If the object has another version or was deleted, later reads
// return ErrChanged. A read that was cut off is resumed where it stopped. A
// Reader is safe for concurrent use and holds nothing open.
type Reader struct {
	sched *Scheduler
	store storage.Storage
	name  string

	mu    sync.Mutex
	pin   storage.Version
	info  storage.Info
	known bool // info is set
}

// NewReader returns a Reader with a Scheduler of its own.
func NewReader(store storage.Storage, name string, pin storage.Version) *Reader {
	return NewScheduler().NewReader(store, name, pin)
}

// NewReader returns a Reader. It makes no request.
func (s *Scheduler) NewReader(store storage.Storage, name string, pin storage.Version) *Reader {
	return &Reader{sched: s, store: store, name: name, pin: pin}
}

// Name returns the name of the object.
func (r *Reader) Name() string { return r.name }

// Stat describes the object at the pinned version. After the first read it makes
// no request.
func (r *Reader) Stat(ctx context.Context) (storage.Info, error) {
	if info, known := r.state(); known {
		return info, nil
	}
	info, err := r.store.Stat(ctx, r.name)
	if err != nil {
		return storage.Info{}, r.gone(err)
	}
	return info, r.settle(info)
}

// ReadRange returns a range of the object, in one request. As in
// Storage.ReadRange, the range is clipped at the end, so that the first read need
// not know the size.
func (r *Reader) ReadRange(ctx context.Context, off, n int64) ([]byte, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	b, err := r.open(ctx, off, n)
	if err != nil {
		return nil, err
	}
	defer b.Close()       //nolint:errcheck // nothing was written
	size := b.end - b.pos // verified: the object has this length
	if int64(int(size)) != size {
		return nil, r.error(fmt.Errorf("%d bytes do not fit into memory: %w", size, storage.ErrUnsupported))
	}
	p := make([]byte, size)
	_, err = b.fill(p)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// ReadAt implements io.ReaderAt.
func (r *Reader) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off < 0 {
		return 0, r.error(fmt.Errorf("negative offset %d", off))
	}
	if len(p) == 0 {
		return 0, nil
	}
	if err := r.acquire(ctx); err != nil {
		return 0, err
	}
	defer r.release()
	b, err := r.open(ctx, off, int64(len(p)))
	if err != nil {
		return 0, err
	}
	defer b.Close() //nolint:errcheck // nothing was written
	n, err := b.fill(p[:min(int64(len(p)), b.end-b.pos)])
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Open streams a range that may be larger than memory. off and n are as in
// Storage.ReadRange. io.EOF from the body means that the whole range was read,
// from one version. A stream does not count as a concurrent request: its consumer
// may need other reads to continue.
func (r *Reader) Open(ctx context.Context, off, n int64) (io.ReadCloser, storage.Info, error) {
	b, err := r.open(ctx, off, n)
	if err != nil {
		return nil, storage.Info{}, err
	}
	info, _ := r.state()
	return b, info, nil
}

func (r *Reader) acquire(ctx context.Context) error {
	select {
	case r.sched.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return r.error(ctx.Err())
	}
}

func (r *Reader) release() { <-r.sched.slots }

func (r *Reader) state() (storage.Info, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.info, r.known
}

// settle pins the first version seen, and rejects any other.
func (r *Reader) settle(info storage.Info) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pin != "" && info.Version != r.pin || r.known && info.Size != r.info.Size {
		return r.error(storage.ErrChanged)
	}
	r.pin, r.info, r.known = info.Version, info, true
	return nil
}

// gone returns ErrChanged for the absence of an object that existed before.
func (r *Reader) gone(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (r.known || r.pin != "") && errors.Is(err, storage.ErrNotExist) {
		return &storage.Error{Op: "read", Name: r.name, Err: storage.ErrChanged, Hint: "it was deleted"}
	}
	return err
}

func (r *Reader) error(err error) error { return &storage.Error{Op: "read", Name: r.name, Err: err} }

// body reads a range and resumes after interruptions.
type body struct {
	r        *Reader
	ctx      context.Context
	rc       io.ReadCloser // nil: open it at pos
	pos, end int64
	resumes  int
	resumeAt int64 // pos of the last resume
	err      error // sticky
}

func (r *Reader) open(ctx context.Context, off, n int64) (*body, error) {
	b := &body{r: r, ctx: ctx}
	info, err := b.request(off, n)
	if err != nil {
		return nil, err
	}
	b.pos, b.end = Clip(info.Size, off, n)
	b.resumeAt = b.pos
	return b, nil
}

// request opens a range and checks that it has the pinned version.
func (b *body) request(off, n int64) (storage.Info, error) {
	for {
		b.r.mu.Lock()
		pin := b.r.pin
		b.r.mu.Unlock()
		rc, info, err := b.r.store.ReadRange(b.ctx, b.r.name, off, n, pin)
		if err == nil {
			if err = b.r.settle(info); err != nil {
				rc.Close()
				return storage.Info{}, err
			}
			b.rc = rc
			return info, nil
		}
		if err = b.again(b.r.gone(err)); err != nil {
			return storage.Info{}, err
		}
	}
}

// again returns nil after an error if the read should be resumed: the first time
// at once, then after a pause.
func (b *body) again(cause error) error {
	if err := b.ctx.Err(); err != nil {
		return b.r.error(err)
	}
	if b.pos-b.resumeAt >= resumeReset {
		b.resumes = 0
	}
	if Classify(cause) != Transient || b.resumes == maxResumes {
		return cause
	}
	if b.resumes > 0 {
		t := time.NewTimer(b.r.sched.pause << b.resumes)
		defer t.Stop()
		select {
		case <-t.C:
		case <-b.ctx.Done():
			return b.r.error(b.ctx.Err())
		}
	}
	b.resumes++
	b.resumeAt = b.pos
	return nil
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if b.pos == b.end {
		// The range is complete; a store that detects changes returns them in place
		// of io.EOF.
		b.err = io.EOF
		var one [1]byte
		if _, err := b.rc.Read(one[:]); Classify(err) == InputChanged {
			b.err = err
		}
		return 0, b.err
	}
	if len(p) == 0 {
		return 0, nil
	}
	if b.rc == nil {
		if _, b.err = b.request(b.pos, b.end-b.pos); b.err != nil {
			return 0, b.err
		}
	}
	n, err := b.rc.Read(p[:min(int64(len(p)), b.end-b.pos)])
	b.pos += int64(n)
	if b.pos == b.end {
		if Classify(err) == InputChanged {
			b.err = err
		}
		return n, nil
	}
	if err != nil {
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			err = b.r.error(fmt.Errorf("cut off at %d, %d bytes early: %w", b.pos, b.end-b.pos, storage.ErrUnavailable))
		}
		b.rc.Close() // already failed
		b.rc = nil
		b.err = b.again(err)
	}
	return n, nil // the next call returns the error
}

// fill reads a body of len(p) bytes to its end.
func (b *body) fill(p []byte) (int, error) {
	n, err := io.ReadFull(b, p)
	if err == nil {
		if _, err = b.Read(make([]byte, 1)); err == io.EOF {
			err = nil
		}
	}
	return n, err
}

func (b *body) Close() error {
	if b.err == nil {
		b.err = b.r.error(errors.New("already closed"))
	}
	if b.rc == nil {
		return nil
	}
	rc := b.rc
	b.rc = nil
	return rc.Close()
}
