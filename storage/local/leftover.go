package local

import (
	"context"
	"errors"
	"io/fs"
	"iter"
	"os"
	"path/filepath"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// Leftover implements ability.Cleaner.
func (s *Store) Leftover(ctx context.Context, name string) (ability.Leftover, error) {
	if err := ctx.Err(); err != nil {
		return ability.Leftover{}, fail("stat", name, err)
	}
	path := trimSeparators(name)
	fi, err := os.Lstat(path)
	if err != nil {
		return ability.Leftover{}, fail("stat", name, err)
	}
	l := ability.Leftover{Name: name, ModTime: fi.ModTime()}
	switch {
	case !tempname.IsOwn(filepath.ToSlash(path)):
		l.Foreign = "spt creates no such name"
	case fi.Mode()&fs.ModeSymlink != 0:
		l.Foreign = "it is a symbolic link"
	case !fi.IsDir() && !fi.Mode().IsRegular():
		l.Foreign = "it is neither a file nor a directory"
	}
	if l.Foreign != "" {
		return l, nil
	}
	err = filepath.WalkDir(path, func(_ string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) { // its writer is still running
			return nil
		}
		if err != nil {
			return err
		}
		fi, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // the same
		}
		if fi.ModTime().After(l.ModTime) {
			l.ModTime = fi.ModTime()
		}
		if !d.IsDir() {
			l.Files++
			l.Bytes += fi.Size()
		}
		return ctx.Err()
	})
	if err != nil {
		return l, fail("stat", name, err)
	}
	if f, err := os.Open(path); err == nil {
		l.InUse = !claim(f)
		f.Close() //nolint:errcheck // opened for reading
	}
	return l, fail("stat", name, s.displaced(path, &l))
}

// displaced reports whether a leftover is the only copy of a snapshot.
func (s *Store) displaced(path string, l *ability.Leftover) error {
	base, aside := tempname.IsAside(filepath.ToSlash(path))
	if !aside {
		return nil
	}
	dir := parent(path)
	open := dir
	if dir == "" {
		open = "."
	}
	entries, err := os.ReadDir(open)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if tempname.AsideOf(filepath.ToSlash(path), e.Name()) {
			return nil
		}
	}
	l.Displaced = path[:len(path)-len(filepath.Base(path))] + base
	return nil
}

// Leftovers implements ability.Cleaner.
func (s *Store) Leftovers(ctx context.Context, name string, depth int) iter.Seq2[ability.Leftover, error] {
	return func(yield func(ability.Leftover, error) bool) {
		path := trimSeparators(name)
		if path == "" {
			path = "."
		}
		if tempname.IsOwn(filepath.ToSlash(path)) {
			yield(s.Leftover(ctx, path))
			return
		}
		s.leftovers(ctx, path, depth, yield)
	}
}

func (s *Store) leftovers(ctx context.Context, dir string, depth int, yield func(ability.Leftover, error) bool) bool {
	entries, err := os.ReadDir(dir)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		return yield(ability.Leftover{Name: dir}, fail("list", dir, err)) && ctx.Err() == nil
	}
	for _, e := range entries {
		name := filepath.ToSlash(filepath.Join(dir, e.Name()))
		_, aside := tempname.IsAside(name)
		switch {
		case tempname.Is(name) || aside:
			l, err := s.Leftover(ctx, name)
			if errors.Is(err, storage.ErrNotExist) {
				continue // its writer completed it
			}
			l.Name = name
			if !yield(l, err) {
				return false
			}
		case e.IsDir() && depth > 1: // not a link to one
			if !s.leftovers(ctx, name, depth-1, yield) {
				return false
			}
		}
	}
	return true
}

// RemoveLeftover implements ability.Cleaner.
func (s *Store) RemoveLeftover(ctx context.Context, l ability.Leftover) (err error) {
	path := trimSeparators(l.Name)
	f, err := os.Open(path)
	switch {
	case err == nil:
		defer f.Close() // claimed until it is removed
		if !claim(f) {
			return failHint("remove", l.Name, storage.ErrChanged, "a process uses it")
		}
	case !errors.Is(err, fs.ErrPermission):
		return fail("remove", l.Name, err)
	}
	now, err := s.Leftover(ctx, l.Name)
	if err != nil {
		return err
	}
	now.InUse = false // this process's own claim
	if l.Foreign != "" || now != l {
		return fail("remove", l.Name, storage.ErrChanged)
	}
	return fail("remove", l.Name, disk{ctx}.removeAll(path))
}
