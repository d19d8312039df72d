package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// Map implements ability.Mapper.
func (s *Store) Map(ctx context.Context, name string, pin storage.Version) (*ability.Mapped, error) {
	f, info, err := open(ctx, "map", name, pin)
	if err != nil {
		return nil, err
	}
	if !canMap {
		f.Close()
		return nil, fail("map", name, storage.ErrUnsupported)
	}
	data, unmap, err := mapFile(f, info.Size)
	if err != nil {
		f.Close()
		return nil, fail("map", name, err)
	}
	release := func() error {
		changed := unchanged("map", f, info)
		if err := errors.Join(unmap(), f.Close()); err != nil && changed == nil {
			return fail("map", name, err)
		}
		return changed
	}
	return &ability.Mapped{Data: data, Info: info, Release: release}, nil
}

// Stream implements ability.Streamer. A regular file is read as by ReadRange.
func (s *Store) Stream(ctx context.Context, name string) (io.ReadCloser, error) {
	if fi, err := os.Stat(name); err != nil || fi.IsDir() || fi.Mode().IsRegular() {
		body, _, err := s.ReadRange(ctx, name, 0, -1, "")
		return body, err
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, fail("open", name, err)
	}
	return f, nil
}

// copyPiece is the number of bytes copied between two checks of the context.
const copyPiece = 64 << 20

// CopyRange implements storage.Copier for local sources. The kernel copies the
// bytes, or shares them, if it can.
func (s *Store) CopyRange(ctx context.Context, to storage.Writer, src storage.Storage, name string, off, n int64, pin storage.Version) error {
	w, ours := to.(*writer)
	if _, local := src.(*Store); !ours || !local {
		return fail("copy", name, storage.ErrUnsupported)
	}
	if w.err != nil {
		return w.err
	}
	f, info, err := open(ctx, "copy", name, pin)
	if err != nil {
		return err
	}
	defer f.Close() // only read
	start, end, err := ranged.Span("copy", info, off, n)
	if err != nil {
		return err
	}
	if _, err := f.Seek(start, io.SeekStart); err != nil {
		return fail("copy", name, err)
	}
	for start < end {
		if err := ctx.Err(); err != nil {
			return fail("copy", name, err)
		}
		n, err := disk{ctx}.copy(w.f, io.LimitReader(f, min(copyPiece, end-start)))
		start += n
		w.size += n
		if err != nil {
			// The error does not tell which side failed, unless the disk is full.
			err = fail("copy", name, err)
			if errors.Is(err, storage.ErrNoSpace) {
				err = fail("write", w.name, storage.ErrNoSpace)
			}
			w.err = err
			return err
		}
		if n == 0 {
			w.err = failHint("copy", name, storage.ErrChanged, "the file was truncated")
			return w.err
		}
	}
	if err := unchanged("copy", f, info); err != nil {
		w.err = err
		return err
	}
	return nil
}

// Link implements ability.Linker with a hard link. Across file systems, and where
// links are not allowed, the error is ErrUnsupported.
func (s *Store) Link(ctx context.Context, dst string, src storage.Storage, name string, pin storage.Version, ifAbsent bool) (storage.Info, error) {
	if err := ctx.Err(); err != nil {
		return storage.Info{}, fail("link", dst, err)
	}
	if _, ok := src.(*Store); !ok {
		return storage.Info{}, fail("link", dst, storage.ErrUnsupported)
	}
	if err := target("link", dst, ifAbsent); err != nil {
		return storage.Info{}, err
	}
	if _, err := stat("link", name); err != nil {
		return storage.Info{}, err
	}
	file, err := filepath.EvalSymlinks(name) // os.Link does not follow a symbolic link
	if err != nil {
		return storage.Info{}, fail("link", name, err)
	}
	temp := tempname.New(dst)
	create := func() (*os.File, error) { return nil, disk{ctx}.link(file, temp) }
	if _, err = create(); errors.Is(err, fs.ErrNotExist) {
		_, err = s.inNewDirectory(ctx, parent(dst), create)
	}
	var info storage.Info
	if err == nil {
		info, err = placeLink(disk{ctx}, temp, dst, pin, ifAbsent)
	} else if noLinks(err) {
		err = fail("link", dst, storage.ErrUnsupported)
	}
	if err != nil {
		s.prune(ctx, parent(dst))
		return storage.Info{}, fail("link", dst, err)
	}
	return info, nil
}

func placeLink(d disk, temp, dst string, pin storage.Version, ifAbsent bool) (storage.Info, error) {
	info, err := stat("link", temp)
	info.Name = dst
	if err == nil && pin != "" && pin != info.Version {
		err = storage.ErrChanged
	}
	if err == nil {
		err = d.publish(temp, dst, ifAbsent)
	}
	// If dst was already the same file, the rename did nothing and temp still exists.
	if gone := d.remove(temp); err == nil && gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = gone
	}
	if err == nil {
		err = d.syncDirectory(parent(dst))
	}
	return info, err
}

// Move implements storage.Mover. The new name must be on the same file system, in
// an existing directory.
func (s *Store) Move(ctx context.Context, old, new string) error {
	if err := ctx.Err(); err != nil {
		return fail("move", old, err)
	}
	old, new = trimSeparators(old), trimSeparators(new)
	fi, err := os.Lstat(old)
	if err != nil {
		return fail("move", old, err)
	}
	d := disk{ctx}
	if err := d.moveExclusive(old, new, fi.IsDir()); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return fail("move", new, storage.ErrExist)
		}
		return fail("move", old, err)
	}
	if err := d.syncDirectory(parent(new)); err != nil {
		return fail("move", new, err)
	}
	return fail("move", old, d.syncDirectory(parent(old)))
}

// Exchange implements storage.Mover. Both names must be on one file system.
func (s *Store) Exchange(ctx context.Context, a, b string) error {
	if err := ctx.Err(); err != nil {
		return fail("exchange", b, err)
	}
	a, b = trimSeparators(a), trimSeparators(b)
	d := disk{ctx}
	if err := d.exchange(a, b); err != nil {
		return fail("exchange", b, err)
	}
	return fail("exchange", b, errors.Join(d.syncDirectory(parent(b)), d.syncDirectory(parent(a))))
}

// Hold implements ability.Holder with flock, which ends with the process.
func (s *Store) Hold(ctx context.Context, name string, create bool) (func() error, error) {
	if err := ctx.Err(); err != nil {
		return nil, fail("hold", name, err)
	}
	path := trimSeparators(name)
	if create {
		s.mu.Lock()
		err := s.makeDirectories(disk{ctx}, path)
		s.mu.Unlock()
		if err != nil {
			s.prune(ctx, path)
			return nil, fail("hold", name, err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		if errors.Is(err, fs.ErrPermission) {
			return func() error { return nil }, nil // writable but not readable
		}
		return nil, fail("hold", name, err)
	}
	hold(f)
	return f.Close, nil
}

// ReadLink implements ability.LinkReader.
func (s *Store) ReadLink(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fail("resolve", name, err)
	}
	path := trimSeparators(name)
	fi, err := os.Lstat(path)
	if err != nil || fi.Mode()&fs.ModeSymlink == 0 {
		return "", nil //nolint:nilerr // missing, or an error that opening will return
	}
	to, err := os.Readlink(path)
	return to, fail("resolve", name, err)
}

// RemoveEmpty implements storage.Remover.
func (s *Store) RemoveEmpty(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return fail("remove", name, err)
	}
	path := trimSeparators(name)
	fi, err := os.Lstat(path)
	if err == nil && !fi.IsDir() {
		return failHint("remove", name, storage.ErrUnsupported, "this is not a directory")
	}
	if err == nil {
		err = disk{ctx}.remove(path)
	}
	return fail("remove", name, err)
}

// RemoveTree implements storage.Remover. It follows no links. Parent directories
// that Create made are removed if they become empty.
func (s *Store) RemoveTree(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return fail("remove", name, err)
	}
	path := trimSeparators(name)
	if _, base := filepath.Split(path); base == "" || base == "." || base == ".." {
		return failHint("remove", name, storage.ErrUnsupported, "this is not a directory inside another")
	}
	if err := (disk{ctx}).removeAll(path); err != nil {
		return fail("remove", name, err)
	}
	s.prune(ctx, path)
	return nil
}

// URI implements storage.Namer: file: and the canonical path, as Flink writes it.
func (s *Store) URI(ctx context.Context, name string) (string, error) {
	if name == "" {
		name = "."
	}
	path, err := s.Canonical(ctx, name)
	if err != nil {
		return "", err
	}
	return uriOf(path), nil
}

// uriOf returns the URI of an absolute path with slashes.
func uriOf(path string) string {
	switch {
	case strings.HasPrefix(path, "//"): // a share: after two slashes, the next element would be a host
		return "file://" + path
	case !strings.HasPrefix(path, "/"): // C:/x
		return "file:/" + path
	}
	return "file:" + path
}

// Canonical implements ability.Canonicalizer: absolute, with symbolic links
// resolved as far as the path exists.
func (s *Store) Canonical(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fail("resolve", name, err)
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return "", fail("resolve", name, err)
	}
	rest := ""
	for links := 0; ; {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.ToSlash(filepath.Join(real, rest)), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			if _, system := errors.AsType[syscall.Errno](err); !system {
				err = syscall.ELOOP // "EvalSymlinks: too many links" has no type
			}
			return "", fail("resolve", name, err)
		}
		// A dangling link is replaced by its target.
		if to, err := os.Readlink(path); err == nil && links < 40 {
			links++
			if !filepath.IsAbs(to) {
				// Resolve from the real directory of the link: ".." in it is relative
				// to that.
				dir, err := filepath.EvalSymlinks(filepath.Dir(path))
				if err != nil {
					return "", fail("resolve", name, err)
				}
				to = filepath.Join(dir, to)
			}
			path = to
			continue
		}
		up := filepath.Dir(path)
		if up == path {
			return filepath.ToSlash(filepath.Join(path, rest)), nil
		}
		rest = filepath.Join(filepath.Base(path), rest)
		path = up
	}
}

// Directory implements ability.Confiner. The name should be canonical: only its last
// element is known to be no link.
func (s *Store) Directory(ctx context.Context, name string) (ability.Directory, error) {
	if err := ctx.Err(); err != nil {
		return ability.Directory{}, fail("open", name, err)
	}
	fi, err := os.Lstat(name)
	if err == nil && !fi.IsDir() {
		err = storage.ErrNotExist
	}
	if err != nil {
		return ability.Directory{}, fail("open", name, err)
	}
	return ability.Directory{Name: name, Version: directoryVersion(fi)}, nil
}

// directoryVersion returns the identity of a directory, which writes into it do
// not change. If the system provides none, all directories have the same.
func directoryVersion(fi fs.FileInfo) storage.Version {
	dev, ino := identity(fi)
	return storage.Version(fmt.Sprintf("%x:%x", dev, ino))
}

// StatBelow implements ability.Confiner.
func (s *Store) StatBelow(ctx context.Context, dir ability.Directory, name string) (storage.Info, error) {
	full := filepath.Join(dir.Name, name)
	if err := ctx.Err(); err != nil {
		return storage.Info{}, fail("stat", full, err)
	}
	root, err := openDirectory("stat", full, dir)
	if err != nil {
		return storage.Info{}, err
	}
	defer root.Close() //nolint:errcheck // nothing was written
	fi, err := root.Stat(filepath.FromSlash(name))
	if err != nil {
		if _, system := errors.AsType[syscall.Errno](err); !system { // os.Root exports no error value for this
			return storage.Info{}, failHint("stat", full, storage.ErrChanged, "a link leads out of "+dir.Name)
		}
		return storage.Info{}, fail("stat", full, err)
	}
	if err := regular("stat", full, fi); err != nil {
		return storage.Info{}, err
	}
	return describe(full, fi), nil
}

// openDirectory opens a directory, if it is the one that was described.
func openDirectory(op, full string, dir ability.Directory) (*os.Root, error) {
	root, err := os.OpenRoot(dir.Name)
	if err != nil || dir.Version == "" {
		return root, fail(op, full, err)
	}
	fi, err := root.Stat(".")
	if err == nil && directoryVersion(fi) != dir.Version {
		err = failHint(op, full, storage.ErrChanged, "another directory now has the name "+dir.Name)
	}
	if err != nil {
		root.Close() //nolint:errcheck // nothing was written
		return nil, fail(op, full, err)
	}
	return root, nil
}

// DeleteBelow implements ability.BelowDeleter.
func (s *Store) DeleteBelow(ctx context.Context, dir ability.Directory, name string, pin storage.Version) error {
	full := filepath.Join(dir.Name, name)
	if err := ctx.Err(); err != nil {
		return fail("delete", full, err)
	}
	root, err := openDirectory("delete", full, dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // a name was removed, nothing was written
	fi, err := root.Lstat(name)
	switch {
	case err != nil:
		return fail("delete", full, err)
	case fi.Mode()&fs.ModeSymlink != 0:
		return failHint("delete", full, storage.ErrChanged, "it is a symbolic link now")
	}
	if !fi.Mode().IsRegular() || describe(full, fi).Version != pin {
		return fail("delete", full, storage.ErrChanged)
	}
	return fail("delete", full, disk{ctx}.removeIn(root, name))
}

// FreeSpace implements storage.SpaceReporter. It queries the nearest existing
// directory.
func (s *Store) FreeSpace(ctx context.Context, name string) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, fail("free", name, err)
	}
	for dir := parent(name); ; dir = parent(dir) {
		path := dir
		if dir == "" {
			path = "."
		}
		n, err := freeSpace(path)
		if errors.Is(err, fs.ErrNotExist) && dir != "" && dir != parent(dir) {
			continue
		}
		if err != nil {
			return 0, fail("free", name, err)
		}
		if n > 1<<63-1 {
			return 0, fail("free", name, fmt.Errorf("%d bytes", n))
		}
		return int64(n), nil
	}
}
