// Package ranged turns the ranged reads of a store into reliable ones: pinned to one
// version, merged, bounded in number, and resumed where they were cut.
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
	maxInFlight  = 16      // requests at once, per Scheduler
	maxResumes   = 3       // in a row, see resumeReset
	resumeReset  = 1 << 20 // progress after which a cut read counts as a new one
	resumePauses = 200 * time.Millisecond
)

// Scheduler bounds the concurrent requests of all its Readers together.
type Scheduler struct {
	slots chan struct{}
	pause time.Duration
}

// NewScheduler returns a Scheduler that allows 16 requests at once.
func NewScheduler() *Scheduler {
	return &Scheduler{slots: make(chan struct{}, maxInFlight), pause: resumePauses}
}

// Reader reads one object, always at the same version: the pin it was given, or
// the version of its first read. Later reads of another version, or of an object
// that is gone, give ErrChanged. A read that was cut is resumed where it stopped.
// A Reader is safe for concurrent use and holds nothing open.
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

// Stat describes the object at the pinned version. After a first read it makes no
// request.
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

// ReadRange returns a range of the object, in one request. off and n are those of
// Storage.ReadRange: cut at the end, so that the first read need not know the
// size.
func (r *Reader) ReadRange(ctx context.Context, off, n int64) ([]byte, error) {
	if err := r.acquire(ctx); err != nil {
		return nil, err
	}
	defer r.release()
	b, err := r.open(ctx, off, n)
	if err != nil {
		return nil, err
	}
	defer b.Close()
	size := b.end - b.pos // no longer a claim: the object is that long
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

// ReadAt reads len(p) bytes at off. As with io.ReaderAt, fewer come with io.EOF.
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
	defer b.Close()
	n, err := b.fill(p[:min(int64(len(p)), b.end-b.pos)])
	if err == nil && n < len(p) {
		err = io.EOF
	}
	return n, err
}

// Open streams a range, for what does not belong into memory. off and n are those
// of Storage.ReadRange. io.EOF from the body means that all of it came, from one
// version. A stream does not count as a request in flight: its consumer may need
// other reads to go on.
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

// settle pins the first version seen, and refuses any other.
func (r *Reader) settle(info storage.Info) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pin != "" && info.Version != r.pin || r.known && info.Size != r.info.Size {
		return r.error(storage.ErrChanged)
	}
	r.pin, r.info, r.known = info.Version, info, true
	return nil
}

// gone turns the absence of an object that was there into ErrChanged.
func (r *Reader) gone(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if (r.known || r.pin != "") && errors.Is(err, storage.ErrNotExist) {
		return &storage.Error{Op: "read", Name: r.name, Err: storage.ErrChanged, Hint: "it was deleted"}
	}
	return err
}

func (r *Reader) error(err error) error { return &storage.Error{Op: "read", Name: r.name, Err: err} }

// body is a range that survives cuts.
type body struct {
	r        *Reader
	ctx      context.Context
	rc       io.ReadCloser // nil: to be opened, at pos
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

// request opens a range and checks that it is of the version pinned.
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

// again decides after an error whether to go on: then it returns nil. The first
// time it does so at once, then after a pause.
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
		// All came; a store that looks for changes says so in place of io.EOF.
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
		b.rc.Close() // broken already
		b.rc = nil
		b.err = b.again(err)
	}
	return n, nil // an error is returned by the next call
}

// fill reads the whole body, which is as long as p, to its clean end.
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
