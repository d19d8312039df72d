package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/colinmarc/hdfs/v2"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

// describe returns the Info of a file.
func describe(name string, st status) storage.Info {
	return storage.Info{
		Name: name, Size: int64(st.GetLength()), ModTime: st.time(),
		Version: storage.Version(fmt.Sprintf("%x:%d:%d", st.GetFileId(), st.GetLength(), st.GetModificationTime())),
	}
}

// The flags of a status that name content which the client cannot read: it would return
// encrypted bytes, or parts of a stripe.
const (
	flagEncrypted    = 0x02
	flagErasureCoded = 0x04
)

// plainFile returns an error for anything but a file that can be read and written.
func plainFile(op, name string, st status) error {
	const copyFirst = "copy it with hdfs dfs -cp into a directory without, or to a local disk"
	switch {
	case st.isDir():
		return failHint(op, name, storage.ErrNotExist, "this is a directory, not a file")
	case !st.isFile():
		return failHint(op, name, storage.ErrUnsupported, "this is a symbolic link")
	case st.GetFlags()&flagErasureCoded != 0 || st.GetEcPolicy() != nil:
		return failHint(op, name, fmt.Errorf("erasure coded files are not supported: %w", storage.ErrUnsupported), copyFirst)
	case st.GetFlags()&flagEncrypted != 0 || st.GetFileEncryptionInfo() != nil:
		return failHint(op, name, fmt.Errorf("files in encryption zones are not supported: %w", storage.ErrUnsupported), copyFirst)
	}
	return nil
}

// Stat implements storage.Storage.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	st, err := s.stat(ctx, "stat", name)
	if err != nil {
		return storage.Info{}, err
	}
	if err := plainFile("stat", name, st); err != nil {
		return storage.Info{}, err
	}
	return describe(name, st), nil
}

// stat returns the status of a file or a directory.
func (s *Store) stat(ctx context.Context, op, name string) (st status, err error) {
	err = s.do(ctx, op, name, func(c *session, path string) (err error) {
		st, err = c.existing(path)
		return err
	})
	return st, err
}

// existing returns the status of a path, or ErrNotExist.
func (s *session) existing(path string) (status, error) {
	if len(path) > 1 && strings.HasSuffix(path, "/") {
		return status{}, storage.ErrNotExist // the NameNode would ignore the slash
	}
	st, ok, err := s.status(path)
	if err == nil && !ok {
		err = storage.ErrNotExist
	}
	return st, err
}

// firstRead is the number of bytes that ReadRange reads before it returns: a DataNode that
// does not answer is found where the request can be repeated.
const firstRead = 64 << 10

// ReadRange implements storage.Storage. The body returns ErrChanged instead of io.EOF if
// the file has another version, and ErrUnavailable when the connection broke.
func (s *Store) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	var b *body
	l, err := s.open(ctx, "read", name, func(c *session, path string) error {
		if len(path) > 1 && strings.HasSuffix(path, "/") {
			return storage.ErrNotExist
		}
		f, err := c.client.Open(path)
		if err != nil {
			return c.reason(err, path)
		}
		st := status{f.Stat().Sys().(*hdfs.FileStatus)}
		if err := plainFile("read", name, st); err != nil {
			return err
		}
		b = &body{s: s, ctx: ctx, path: path, f: f, info: describe(name, st)}
		if pin != "" && pin != b.info.Version {
			return storage.ErrChanged
		}
		b.pos, b.end = ranged.Clip(b.info.Size, off, n)
		return b.start()
	})
	if err != nil {
		if b != nil {
			_ = b.f.Close() // the first error counts
		}
		return nil, storage.Info{}, err
	}
	b.lease = l
	return b, b.info, nil
}

// reason asks the NameNode again for what the client's error does not say.
func (s *session) reason(err error, path string) error {
	if errors.Is(err, storage.ErrPermission) {
		if _, again := s.existing(path); again != nil {
			return again
		}
	}
	return err
}

// body reads a range of a file.
type body struct {
	s        *Store
	ctx      context.Context
	path     string
	f        *hdfs.FileReader
	lease    *lease // nil after the end
	info     storage.Info
	first    []byte // read already
	pos, end int64  // of what is not in first
	err      error  // sticky
}

// start reads the first bytes.
func (b *body) start() error {
	if b.pos == b.end {
		return nil
	}
	if _, err := b.f.Seek(b.pos, io.SeekStart); err != nil {
		return err
	}
	p := make([]byte, min(firstRead, b.end-b.pos))
	n, err := b.f.Read(p)
	if n == 0 {
		if err == nil || err == io.EOF {
			err = storage.ErrChanged // the file was truncated
		}
		return err
	}
	b.first, b.pos = p[:n], b.pos+int64(n)
	return nil
}

func (b *body) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if err := b.ctx.Err(); err != nil {
		b.err = fail("read", b.info.Name, err)
		return 0, b.err
	}
	if len(b.first) > 0 {
		n := copy(p, b.first)
		b.first = b.first[n:]
		return n, nil
	}
	if b.pos == b.end {
		b.err = b.unchanged()
		return 0, b.err
	}
	n, err := b.f.Read(p[:min(int64(len(p)), b.end-b.pos)])
	b.pos += int64(n)
	if n > 0 || err == nil {
		return n, nil // a real error recurs
	}
	switch cause := b.ctx.Err(); {
	case cause != nil:
		err = cause
	case err == io.EOF:
		b.err = failHint("read", b.info.Name, storage.ErrChanged, "the file was truncated")
		return 0, b.err
	}
	b.err = fail("read", b.info.Name, err)
	b.finish(convert(err))
	return 0, b.err
}

// unchanged returns io.EOF, or ErrChanged if the file has changed since it was opened.
func (b *body) unchanged() error {
	st, err := b.lease.session.existing(b.path)
	if cause := b.ctx.Err(); cause != nil {
		return fail("read", b.info.Name, cause)
	}
	if err != nil {
		err = convert(err)
		if isTransient(err) {
			b.finish(err)
			st, err = b.s.stat(b.ctx, "read", b.info.Name) // patiently
		}
	}
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return failHint("read", b.info.Name, storage.ErrChanged, "it was deleted")
	case err != nil:
		return fail("read", b.info.Name, err)
	case describe(b.info.Name, st).Version != b.info.Version:
		return fail("read", b.info.Name, storage.ErrChanged)
	}
	return io.EOF
}

// finish ends the use of the session.
func (b *body) finish(err error) {
	if b.lease != nil {
		_ = b.f.Close() // only read
		b.lease.done(err)
		b.lease = nil
	}
}

func (b *body) Close() error {
	if b.err == nil {
		b.err = fail("read", b.info.Name, errors.New("already closed"))
	}
	b.finish(nil)
	return nil
}

// List implements storage.Storage. With the delimiter "/" it reads one directory, and
// yields its directories, including empty ones, with a trailing "/"; with "" it walks. A
// symbolic link has only a name. No other delimiter is supported. Temporary files are
// listed; see tempname.Is. The entries of a directory are held in memory.
func (s *Store) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		if delimiter != "" && delimiter != "/" {
			yield(storage.Info{}, fail("list", prefix, storage.ErrUnsupported))
			return
		}
		authority, path, err := s.nameOf(prefix)
		if err != nil {
			yield(storage.Info{}, fail("list", prefix, err))
			return
		}
		i := strings.LastIndexByte(path, '/') + 1
		l := lister{s: s, ctx: ctx, prefix: prefix, walk: delimiter == "", yield: yield}
		l.directory("hdfs://"+authority+path[:i], path[i:])
	}
}

type lister struct {
	s      *Store
	ctx    context.Context
	prefix string
	walk   bool
	yield  func(storage.Info, error) bool
}

// directory lists a directory, whose name ends in "/". It returns false when yield did.
func (l *lister) directory(dir, base string) bool {
	entries, err := l.s.entries(l.ctx, "list", dir, false)
	if errors.Is(err, storage.ErrNotExist) {
		return true // it does not exist, or no longer
	}
	if err != nil {
		l.yield(storage.Info{}, fail("list", l.prefix, err))
		return false
	}
	// "a/" sorts after "a.b", so a directory is sorted with its "/".
	type found struct {
		name string
		st   status
	}
	var all []found
	for _, st := range entries {
		name := string(st.GetPath())
		if !strings.HasPrefix(name, base) {
			continue
		}
		if st.isDir() {
			name += "/"
		}
		all = append(all, found{name, st})
	}
	slices.SortFunc(all, func(a, b found) int { return strings.Compare(a.name, b.name) })
	for _, f := range all {
		switch {
		case f.st.isDir() && l.walk:
			if !l.directory(dir+f.name, "") {
				return false
			}
		case f.st.isFile():
			if !l.yield(describe(dir+f.name, f.st), nil) {
				return false
			}
		default:
			if !l.yield(storage.Info{Name: dir + f.name}, nil) {
				return false
			}
		}
	}
	return true
}

// entries returns the entries of a directory, page by page. With blocks they tell whether a
// file is being written. A file has none.
func (s *Store) entries(ctx context.Context, op, dir string, blocks bool) (all []status, err error) {
	for after, more := []byte{}, true; more; {
		var page []status
		err := s.do(ctx, op, dir, func(c *session, path string) (err error) {
			if len(path) > 1 {
				path = strings.TrimSuffix(path, "/")
			}
			var ok bool
			page, more, ok, err = c.entries(path, after, blocks)
			if err == nil && !ok {
				err = storage.ErrNotExist
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(page) == 1 && len(page[0].GetPath()) == 0 {
			return nil, nil // this is a file: its own entry has no name
		}
		if len(page) == 0 {
			break
		}
		all, after = append(all, page...), page[len(page)-1].GetPath()
	}
	return all, nil
}
