package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// target returns an error for a name that cannot be the name of a new file.
func target(op, name string, ifAbsent bool) error {
	if _, base := filepath.Split(name); base == "" || base == "." || base == ".." {
		return failHint(op, name, storage.ErrUnsupported, "this cannot be the name of a file")
	}
	switch fi, err := os.Lstat(name); {
	case err != nil:
		return nil //nolint:nilerr // missing, or an error that creating will return
	case fi.IsDir():
		return failHint(op, name, storage.ErrExist, "a directory has that name")
	case ifAbsent:
		return fail(op, name, storage.ErrExist)
	}
	return nil
}

// Create implements storage.Storage. It creates missing directories.
func (s *Store) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, fail("create", name, err)
	}
	if err := target("create", name, o.IfAbsent); err != nil {
		return nil, err
	}
	if o.Size > 0 {
		if free, err := s.FreeSpace(ctx, name); err == nil && free < o.Size {
			return nil, failHint("create", name, storage.ErrNoSpace, fmt.Sprintf("%d bytes needed, %d free", o.Size, free))
		}
	}
	temp := tempname.New(name)
	create := func() (*os.File, error) { return disk{ctx}.create(temp) }
	f, err := create()
	if errors.Is(err, fs.ErrNotExist) {
		f, err = s.inNewDirectory(ctx, parent(name), create)
	}
	if err != nil {
		s.prune(ctx, parent(name))
		return nil, fail("create", name, err)
	}
	hold(f) // until it is closed
	return &writer{s: s, ctx: ctx, name: name, temp: temp, o: o, f: f}, nil
}

// inNewDirectory makes directories and a file in them; the lock keeps prune from
// removing them in between.
func (s *Store) inNewDirectory(ctx context.Context, dir string, create func() (*os.File, error)) (*os.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.makeDirectories(disk{ctx}, dir); err != nil {
		return nil, err
	}
	return create()
}

type writer struct {
	s        *Store
	ctx      context.Context
	name     string
	temp     string // "" after it was removed or renamed
	o        storage.CreateOptions
	f        *os.File // nil after it was closed
	size     int64
	flushing int64 // bytes whose flush was started
	err      error // sticky; also set after Commit and Abort
}

var errFinished = errors.New("already committed or aborted")

func (w *writer) Write(p []byte) (int, error) {
	if w.err == nil {
		w.err = fail("write", w.name, w.ctx.Err())
	}
	if w.err != nil {
		return 0, w.err
	}
	n, err := disk{w.ctx}.write(w.f, p)
	w.size += int64(n)
	w.err = fail("write", w.name, err)
	// Start writing to the disk now instead of all at Commit.
	if w.size-w.flushing >= flushEvery {
		startFlush(w.f, w.flushing, w.size-w.flushing)
		w.flushing = w.size
	}
	return n, w.err
}

// flushEvery is the number of bytes between two calls of startFlush.
const flushEvery = 8 << 20

// Contents implements ability.Contents.
func (w *writer) Contents() ([]byte, func() error, error) {
	if w.err != nil {
		return nil, nil, w.err
	}
	data, release, err := mapFile(w.f, w.size)
	return data, release, fail("read", w.name, err)
}

func (w *writer) Commit(ctx context.Context) (storage.Info, error) {
	if w.err != nil {
		return storage.Info{}, w.err
	}
	info, err := w.commit(ctx)
	if err != nil {
		w.err = fail("commit", w.name, err)
		return storage.Info{}, w.err
	}
	w.err = fail("write", w.name, errFinished)
	return info, nil
}

func (w *writer) commit(ctx context.Context) (storage.Info, error) {
	if err := ctx.Err(); err != nil {
		return storage.Info{}, err
	}
	if w.o.Size > 0 && w.size != w.o.Size {
		return storage.Info{}, fmt.Errorf("wrote %d bytes, expected %d", w.size, w.o.Size)
	}
	d := disk{ctx}
	if err := d.sync(w.f); err != nil {
		return storage.Info{}, err
	}
	fi, err := w.f.Stat()
	if err != nil {
		return storage.Info{}, err
	}
	if fi.Size() != w.size {
		return storage.Info{}, fmt.Errorf("wrote %d bytes, the file has %d", w.size, fi.Size())
	}
	f := w.f
	w.f = nil
	if err := f.Close(); err != nil { // Windows does not rename open files
		return storage.Info{}, err
	}
	if w.o.Replace != "" {
		if w.temp, err = d.replace(w.temp, w.name, w.o.Replace); err == nil && w.temp != "" {
			err = d.remove(w.temp) // the old file
		}
	} else {
		err = d.publish(w.temp, w.name, w.o.IfAbsent)
	}
	if err != nil {
		return storage.Info{}, err
	}
	w.temp = ""
	return describe(w.name, fi), d.syncDirectory(parent(w.name))
}

func (w *writer) Abort(ctx context.Context) error {
	if w.err == nil {
		w.err = fail("write", w.name, errFinished)
	}
	var errs []error
	if w.f != nil {
		errs = append(errs, w.f.Close())
		w.f = nil
	}
	if w.temp != "" {
		err := disk{ctx}.remove(w.temp)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err, w.temp = nil, ""
			w.s.prune(ctx, parent(w.name))
		}
		errs = append(errs, err)
	}
	for _, err := range errs {
		if err != nil {
			return fail("abort", w.name, err)
		}
	}
	return nil
}
