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

// target refuses what cannot be the name of a new file.
func target(op, name string, ifAbsent bool) error {
	if _, base := filepath.Split(name); base == "" || base == "." || base == ".." {
		return failHint(op, name, storage.ErrUnsupported, "this cannot be the name of a file")
	}
	switch fi, err := os.Lstat(name); {
	case err != nil:
		return nil //nolint:nilerr // not there; or another problem that creating will meet and name
	case fi.IsDir():
		return failHint(op, name, storage.ErrExist, "there is a folder of that name")
	case ifAbsent:
		return fail(op, name, storage.ErrExist)
	}
	return nil
}

// Create implements storage.Storage. It makes missing directories.
func (s *Store) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	if err := ctx.Err(); err != nil {
		return nil, fail("create", name, err)
	}
	if err := target("create", name, o.IfAbsent); err != nil {
		return nil, err
	}
	if o.Size > 0 {
		if free, err := s.FreeSpace(ctx, name); err == nil && free < o.Size {
			return nil, failHint("create", name, storage.ErrNoSpace, fmt.Sprintf("%d bytes are needed, %d are free", o.Size, free))
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

// inNewDirectory makes directories and a file in them; the lock keeps prune from taking
// them in between.
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
	temp     string // "" once it is gone
	o        storage.CreateOptions
	f        *os.File // nil once closed
	size     int64
	flushing int64 // of it, handed to the disk
	err      error // sticky; also set when all is done
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
	// Let the disk work while more comes, instead of all at Commit.
	if w.size-w.flushing >= flushEvery {
		startFlush(w.f, w.flushing, w.size-w.flushing)
		w.flushing = w.size
	}
	return n, w.err
}

// flushEvery is how much is written before the disk is asked to begin.
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
		return storage.Info{}, fmt.Errorf("%d bytes were written, %d announced", w.size, w.o.Size)
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
		return storage.Info{}, fmt.Errorf("%d bytes were written, the file has %d", w.size, fi.Size())
	}
	f := w.f
	w.f = nil
	if err := f.Close(); err != nil { // Windows renames no open file
		return storage.Info{}, err
	}
	if w.o.Replace != "" {
		if w.temp, err = d.replace(w.temp, w.name, w.o.Replace); err == nil && w.temp != "" {
			err = d.remove(w.temp) // the old file
		}
	} else {
		err = d.place(w.temp, w.name, w.o.IfAbsent)
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
