package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

// Store is the storage.Storage of local files.
type Store struct {
	mu   sync.Mutex
	made map[string]bool // directories made by Create and not yet removed
}

var (
	_ storage.Storage       = (*Store)(nil)
	_ storage.Copier        = (*Store)(nil)
	_ ability.Mapper        = (*Store)(nil)
	_ ability.Linker        = (*Store)(nil)
	_ storage.Mover         = (*Store)(nil)
	_ ability.Streamer      = (*Store)(nil)
	_ ability.Canonicalizer = (*Store)(nil)
	_ storage.Namer         = (*Store)(nil)
	_ ability.Confiner      = (*Store)(nil)
	_ ability.BelowDeleter  = (*Store)(nil)
	_ storage.Remover       = (*Store)(nil)
	_ storage.SpaceReporter = (*Store)(nil)
	_ ability.Holder        = (*Store)(nil)
	_ ability.LinkReader    = (*Store)(nil)
	_ ability.Cleaner       = (*Store)(nil)
	_ ability.Contents      = (*writer)(nil)
)

// New returns the store.
func New() *Store { return &Store{made: map[string]bool{}} }

// fail converts a system error to a storage.Error. It drops the paths that
// package os adds: they repeat the name, or name a temporary file.
func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if done, ok := errors.AsType[*storage.Error](err); ok {
		return done
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.LinkError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*os.SyscallError](err); ok {
		err = e.Err
	}
	return &storage.Error{Op: op, Name: name, Err: translate(err)}
}

func failHint(op, name string, err error, hint string) error {
	return &storage.Error{Op: op, Name: name, Err: err, Hint: hint}
}

func describe(name string, fi fs.FileInfo) storage.Info {
	dev, ino := identity(fi)
	return storage.Info{
		Name: name, Size: fi.Size(), ModTime: fi.ModTime(),
		Version: storage.Version(fmt.Sprintf("%x:%x:%d:%d", dev, ino, fi.Size(), fi.ModTime().UnixNano())),
	}
}

// regular returns an error for anything but a regular file: a read of a pipe
// could block.
func regular(op, name string, fi fs.FileInfo) error {
	switch {
	case fi.IsDir():
		return failHint(op, name, storage.ErrNotExist, "this is a directory, not a file")
	case !fi.Mode().IsRegular():
		return failHint(op, name, storage.ErrUnsupported, "this is not a regular file")
	}
	return nil
}

// Stat implements storage.Storage. Like all reads, it follows symbolic links.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	if err := ctx.Err(); err != nil {
		return storage.Info{}, fail("stat", name, err)
	}
	return stat("stat", name)
}

func stat(op, name string) (storage.Info, error) {
	fi, err := os.Stat(name)
	if err != nil {
		return storage.Info{}, fail(op, name, err)
	}
	if err := regular(op, name, fi); err != nil {
		return storage.Info{}, err
	}
	return describe(name, fi), nil
}

// open opens a file that is at the pinned version.
func open(ctx context.Context, op, name string, pin storage.Version) (*os.File, storage.Info, error) {
	if err := ctx.Err(); err != nil {
		return nil, storage.Info{}, fail(op, name, err)
	}
	if _, err := stat(op, name); err != nil { // before opening, which may block on a pipe
		return nil, storage.Info{}, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, storage.Info{}, fail(op, name, err)
	}
	fi, err := f.Stat()
	if err == nil {
		err = regular(op, name, fi)
	}
	if err != nil {
		f.Close()
		return nil, storage.Info{}, fail(op, name, err)
	}
	info := describe(name, fi)
	if pin != "" && pin != info.Version {
		f.Close()
		return nil, storage.Info{}, fail(op, name, storage.ErrChanged)
	}
	return f, info, nil
}

// unchanged returns an error if an open file has changed.
func unchanged(op string, f *os.File, info storage.Info) error {
	fi, err := f.Stat()
	if err == nil && describe(info.Name, fi).Version != info.Version {
		err = storage.ErrChanged
	}
	return fail(op, info.Name, err)
}

// ReadRange implements storage.Storage. Instead of io.EOF, the body returns
// ErrChanged if the file was truncated or has another version.
func (s *Store) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	f, info, err := open(ctx, "read", name, pin)
	if err != nil {
		return nil, storage.Info{}, err
	}
	start, end := ranged.Clip(info.Size, off, n)
	return &body{ctx: ctx, f: f, info: info, pos: start, end: end}, info, nil
}

type body struct {
	ctx      context.Context
	f        *os.File
	info     storage.Info
	pos, end int64
}

func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, fail("read", b.info.Name, err)
	}
	if b.pos == b.end {
		if err := unchanged("read", b.f, b.info); err != nil {
			return 0, err
		}
		return 0, io.EOF
	}
	n, err := b.f.ReadAt(p[:min(int64(len(p)), b.end-b.pos)], b.pos)
	b.pos += int64(n)
	switch {
	case n > 0:
		err = nil // a real error recurs
	case err == io.EOF:
		err = failHint("read", b.info.Name, storage.ErrChanged, "the file was truncated")
	default:
		err = fail("read", b.info.Name, err)
	}
	return n, err
}

func (b *body) Close() error { return fail("read", b.info.Name, b.f.Close()) }

// List implements storage.Storage. With the delimiter "/" it reads one directory,
// and yields its directories, including empty ones, with a trailing "/"; with ""
// it walks. Links to directories are followed, but a directory is not listed
// again inside itself. An entry that cannot be described, such as a link to
// itself, has only a name. No other delimiter is supported. Temporary files are
// listed; see tempname.Is.
func (s *Store) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if delimiter != "" && delimiter != "/" {
			yield(storage.Info{}, fail("list", prefix, storage.ErrUnsupported))
			return
		}
		prefix := filepath.ToSlash(prefix)
		i := strings.LastIndexByte(prefix, '/') + 1
		l := lister{ctx: ctx, prefix: prefix, walk: delimiter == "", yield: yield}
		l.directory(prefix[:i], prefix[i:], nil)
	}
}

type lister struct {
	ctx    context.Context
	prefix string
	walk   bool
	yield  func(storage.Info, error) bool
}

// directory lists a directory; dir is "" or ends in "/". It returns false when
// yield did. above holds its parent directories.
func (l *lister) directory(dir, base string, above []fs.FileInfo) bool {
	open := dir
	if dir == "" {
		open = "."
	}
	self, err := os.Stat(open)
	var entries []os.DirEntry
	if err == nil {
		if slices.ContainsFunc(above, func(fi fs.FileInfo) bool { return os.SameFile(fi, self) }) {
			return true // already listed under its other name
		}
		entries, err = os.ReadDir(open)
	}
	if err != nil {
		err = fail("list", l.prefix, err)
		if errors.Is(err, storage.ErrNotExist) {
			return true // it does not exist, or no longer
		}
		l.yield(storage.Info{}, err)
		return false
	}
	above = append(slices.Clip(above), self)

	// "a/" sorts after "a.b", so a directory is sorted with its "/".
	type found struct {
		name string
		fi   fs.FileInfo
	}
	var list []found
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), base) {
			continue
		}
		if err := l.ctx.Err(); err != nil {
			l.yield(storage.Info{}, fail("list", l.prefix, err))
			return false
		}
		name := dir + e.Name()
		fi, err := os.Stat(name)
		if err != nil {
			if errors.Is(err, storage.ErrNotExist) {
				continue // a dangling link, or deleted since: not an object
			}
			// A link to itself, or to a target without permission, must not hide the
			// other entries. Opening it returns the error.
			list = append(list, found{name, nil})
			continue
		}
		if fi.IsDir() {
			name += "/"
		}
		list = append(list, found{name, fi})
	}
	slices.SortFunc(list, func(a, b found) int { return strings.Compare(a.name, b.name) })
	for _, f := range list {
		switch {
		case f.fi == nil:
			if !l.yield(storage.Info{Name: f.name}, nil) {
				return false
			}
		case !f.fi.IsDir():
			if !l.yield(describe(f.name, f.fi), nil) {
				return false
			}
		case l.walk:
			if !l.directory(f.name, "", above) {
				return false
			}
		default:
			if !l.yield(storage.Info{Name: f.name}, nil) {
				return false
			}
		}
	}
	return true
}

// Delete implements storage.Storage. It refuses directories. Directories that
// Create made are removed with their last file.
func (s *Store) Delete(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		errs = append(errs, fail("delete", name, s.delete(ctx, name)))
	}
	return errors.Join(errs...)
}

func (s *Store) delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	fi, err := os.Lstat(name)
	if err == nil {
		if fi.IsDir() { // os.Remove would remove an empty one
			return failHint("delete", name, storage.ErrUnsupported, "this is a directory, not a file")
		}
		err = disk{ctx}.remove(name)
	}
	if errors.Is(fail("", "", err), storage.ErrNotExist) {
		err = nil
	}
	if err == nil {
		s.prune(ctx, parent(name))
	}
	return err
}

// parent returns the directory of a path, "" for the working directory. Unlike
// filepath.Dir it does not clean: "link/.." is not ".".
func parent(path string) string {
	dir, _ := filepath.Split(path)
	return trimSeparators(dir)
}

// trimSeparators removes separators from the end, but leaves a root alone.
func trimSeparators(path string) string {
	root := len(filepath.VolumeName(path)) + 1
	for len(path) > root && os.IsPathSeparator(path[len(path)-1]) {
		path = path[:len(path)-1]
	}
	return path
}

// makeDirectories makes a directory and its parents. The caller holds s.mu.
func (s *Store) makeDirectories(d disk, dir string) error {
	if dir == "" {
		return nil
	}
	err := d.mkdir(dir)
	if errors.Is(err, fs.ErrNotExist) && parent(dir) != dir {
		if err = s.makeDirectories(d, parent(dir)); err != nil {
			return err
		}
		err = d.mkdir(dir)
	}
	if err == nil {
		s.made[dir] = true
		return d.syncDirectory(parent(dir))
	}
	if errors.Is(err, fs.ErrExist) {
		return nil // if it is not a directory, creating a file in it fails
	}
	return err
}

// prune removes a directory and its parents if Create made them and they are
// empty.
func (s *Store) prune(ctx context.Context, dir string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := disk{ctx}
	for {
		_, err := os.Lstat(dir)
		gone := errors.Is(err, fs.ErrNotExist) && dir != parent(dir)
		if !gone && (!s.made[dir] || d.remove(dir) != nil) {
			return
		}
		delete(s.made, dir)
		dir = parent(dir)
	}
}
