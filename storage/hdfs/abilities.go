package hdfs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fault"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

func enum(n protoreflect.EnumNumber) protoreflect.Value { return protoreflect.ValueOfEnum(n) }

// Move implements storage.Mover: one atomic rename by the NameNode, which never replaces.
// Both names must be of one cluster, and the new directory must exist.
func (s *Store) Move(ctx context.Context, old, new string) error {
	old, new = objpath.Clean(old), objpath.Clean(new)
	from, _, err := s.nameOf(old)
	if err != nil {
		return fail("move", old, err)
	}
	to, _, err := s.nameOf(new)
	if err != nil {
		return fail("move", new, err)
	}
	if from != to {
		return fail("move", new, fmt.Errorf("from %s to %s: %w", from, to, storage.ErrUnsupported))
	}
	st, err := s.stat(ctx, "move", old)
	if err != nil {
		return err
	}
	return s.rename(ctx, "move", old, new, st.GetFileId(), false)
}

// Exchange implements storage.Mover. HDFS cannot.
func (s *Store) Exchange(_ context.Context, _, b string) error {
	return fail("exchange", b, storage.ErrUnsupported)
}

// RemoveEmpty implements storage.Remover.
func (s *Store) RemoveEmpty(ctx context.Context, name string) error {
	return s.removeEmpty(ctx, objpath.Clean(name))
}

func (s *Store) removeEmpty(ctx context.Context, name string) error {
	return s.do(ctx, "remove", name, func(c *session, path string) error {
		st, err := c.existing(path)
		if err != nil {
			return err
		}
		if !st.isDir() {
			return failHint("remove", name, storage.ErrUnsupported, "this is not a directory")
		}
		if err := fault.At(ctx, "remove", name); err != nil {
			return err
		}
		return c.remove(path, false)
	})
}

// RemoveTree implements storage.Remover. It does not use the trash. Parent directories that
// Create made are removed if they become empty.
func (s *Store) RemoveTree(ctx context.Context, name string) error {
	name = objpath.Clean(name)
	if _, path, err := s.nameOf(name); err == nil && path == "/" {
		return failHint("remove", name, storage.ErrUnsupported, "this is not a directory inside another")
	}
	err := s.do(ctx, "remove", name, func(c *session, path string) error {
		if err := fault.At(ctx, "remove", name); err != nil {
			return err
		}
		return c.remove(path, true)
	})
	if err != nil {
		return err
	}
	s.forget(name)
	s.prune(ctx, directory(name))
	return nil
}

// forget forgets that Create made a directory and those in it.
func (s *Store) forget(name string) {
	s.making.Lock()
	defer s.making.Unlock()
	for dir := range s.made {
		if dir == name || strings.HasPrefix(dir, name+"/") {
			delete(s.made, dir)
		}
	}
}

// FreeSpace implements storage.SpaceReporter: what the DataNodes have left, divided by the
// number of copies of a file. It does not know of quotas; a write that exceeds one is
// ErrNoSpace.
func (s *Store) FreeSpace(ctx context.Context, name string) (free int64, err error) {
	err = s.do(ctx, "free", name, func(c *session, _ string) error {
		fs, err := c.client.StatFs()
		if err != nil {
			return err
		}
		copies := s.replication
		if copies == 0 {
			defaults, err := c.client.ServerDefaults()
			if err != nil {
				return err
			}
			copies = defaults.Replication
		}
		if fs.Remaining > 1<<63-1 {
			return fmt.Errorf("%d bytes", fs.Remaining)
		}
		free = int64(fs.Remaining) / int64(max(1, copies))
		return nil
	})
	return free, err
}

// Leftover implements ability.Cleaner. A leftover is in use if a file in it is being
// written. After a crash the NameNode says so for up to 20 minutes more.
func (s *Store) Leftover(ctx context.Context, name string) (ability.Leftover, error) {
	path := objpath.Clean(name)
	l := ability.Leftover{Name: name}
	st, err := s.stat(ctx, "stat", path)
	if err != nil {
		return ability.Leftover{}, err
	}
	l.ModTime = st.time()
	switch {
	case !tempname.IsOwn(path):
		l.Foreign = "spt creates no such name"
	case !st.isDir() && !st.isFile():
		l.Foreign = "it is a symbolic link"
	}
	if l.Foreign != "" {
		return l, nil
	}
	if st.isDir() {
		err = s.measure(ctx, path, &l)
	} else {
		// Unlike its status, its entry in a list tells whether it is being written.
		err = s.do(ctx, "stat", path, func(c *session, path string) error {
			page, _, ok, err := c.entries(path, []byte{}, true)
			if err == nil && (!ok || len(page) != 1) {
				err = storage.ErrNotExist
			}
			if err == nil {
				count(&l, page[0])
			}
			return err
		})
	}
	if err != nil {
		return l, err
	}
	return l, s.displaced(ctx, path, &l)
}

// count adds a file to a leftover.
func count(l *ability.Leftover, st status) {
	if st.time().After(l.ModTime) {
		l.ModTime = st.time()
	}
	if !st.isDir() {
		l.Files++
		l.Bytes += int64(st.GetLength())
		l.InUse = l.InUse || st.writing()
	}
}

// measure adds the content of a directory to a leftover.
func (s *Store) measure(ctx context.Context, dir string, l *ability.Leftover) error {
	entries, err := s.entries(ctx, "list", dir, true)
	if errors.Is(err, storage.ErrNotExist) { // its writer is still running
		return nil
	}
	if err != nil {
		return err
	}
	for _, st := range entries {
		count(l, st)
		if st.isDir() {
			if err := s.measure(ctx, dir+"/"+string(st.GetPath()), l); err != nil {
				return err
			}
		}
	}
	return nil
}

// displaced reports whether a leftover is the only copy of a snapshot.
func (s *Store) displaced(ctx context.Context, path string, l *ability.Leftover) error {
	base, aside := tempname.IsAside(path)
	if !aside {
		return nil
	}
	entries, err := s.entries(ctx, "list", directory(path), false)
	if err != nil {
		return err
	}
	for _, st := range entries {
		if tempname.AsideOf(path, string(st.GetPath())) {
			return nil
		}
	}
	l.Displaced = path[:len(path)-len(objpath.Base(path))] + base
	return nil
}

// Leftovers implements ability.Cleaner.
func (s *Store) Leftovers(ctx context.Context, name string, depth int) iter.Seq2[ability.Leftover, error] {
	return func(yield func(ability.Leftover, error) bool) {
		path := objpath.Clean(name)
		if tempname.IsOwn(path) {
			yield(s.Leftover(ctx, path))
			return
		}
		s.leftovers(ctx, path, depth, yield)
	}
}

func (s *Store) leftovers(ctx context.Context, dir string, depth int, yield func(ability.Leftover, error) bool) bool {
	entries, err := s.entries(ctx, "list", dir, false)
	if err != nil {
		return yield(ability.Leftover{Name: dir}, err) && ctx.Err() == nil
	}
	for _, st := range entries {
		name := dir + "/" + string(st.GetPath())
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
		case st.isDir() && depth > 1:
			if !s.leftovers(ctx, name, depth-1, yield) {
				return false
			}
		}
	}
	return true
}

// RemoveLeftover implements ability.Cleaner.
func (s *Store) RemoveLeftover(ctx context.Context, l ability.Leftover) error {
	now, err := s.Leftover(ctx, l.Name)
	if err != nil {
		return err
	}
	if now.InUse {
		return failHint("remove", l.Name, storage.ErrChanged, "a program writes to it, or did until it crashed not long ago")
	}
	if l.Foreign != "" || !now.ModTime.Equal(l.ModTime) {
		return fail("remove", l.Name, storage.ErrChanged)
	}
	now.ModTime = l.ModTime
	if now != l {
		return fail("remove", l.Name, storage.ErrChanged)
	}
	return s.RemoveTree(ctx, l.Name)
}
