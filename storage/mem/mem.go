package mem

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

// Store is an in-memory storage.Storage. It can also copy "on the server". The zero
// value is an empty store.
type Store struct {
	mu      sync.RWMutex
	objects map[string]object
	writes  uint64 // number of the last version
}

// object is immutable: a write replaces it.
type object struct {
	info storage.Info
	data []byte
}

// New returns an empty store.
func New() *Store { return &Store{objects: map[string]object{}} }

func fail(op, name string, err error) error {
	return &storage.Error{Op: op, Name: name, Err: err}
}

func (s *Store) object(ctx context.Context, op, name string) (object, error) {
	if err := ctx.Err(); err != nil {
		return object{}, fail(op, name, err)
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	o, ok := s.objects[name]
	if !ok {
		return object{}, fail(op, name, storage.ErrNotExist)
	}
	return o, nil
}

func (s *Store) pinned(ctx context.Context, op, name string, pin storage.Version) (object, error) {
	o, err := s.object(ctx, op, name)
	if err == nil && pin != "" && pin != o.info.Version {
		err = fail(op, name, storage.ErrChanged)
	}
	return o, err
}

// ReadRange implements storage.Storage. An open body stays at its version.
func (s *Store) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	o, err := s.pinned(ctx, "read", name, pin)
	if err != nil {
		return nil, storage.Info{}, err
	}
	start, end := ranged.Clip(o.info.Size, off, n)
	return &body{ctx: ctx, name: name, r: bytes.NewReader(o.data[start:end])}, o.info, nil
}

type body struct {
	ctx  context.Context
	name string
	r    *bytes.Reader // hides its WriteTo, which ignores the context
}

func (b *body) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, fail("read", b.name, err)
	}
	return b.r.Read(p)
}

func (b *body) Close() error { return nil }

// Stat implements storage.Storage.
func (s *Store) Stat(ctx context.Context, name string) (storage.Info, error) {
	o, err := s.object(ctx, "stat", name)
	return o.info, err
}

// List implements storage.Storage. It yields the objects that exist when the loop
// begins.
func (s *Store) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		s.mu.RLock()
		objects := maps.Clone(s.objects)
		s.mu.RUnlock()
		last := ""
		for _, name := range slices.Sorted(maps.Keys(objects)) {
			rest, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			if err := ctx.Err(); err != nil {
				yield(storage.Info{}, fail("list", prefix, err))
				return
			}
			info := objects[name].info
			if delimiter != "" {
				if i := strings.Index(rest, delimiter); i >= 0 {
					info = storage.Info{Name: prefix + rest[:i+len(delimiter)]}
					if info.Name == last {
						continue
					}
					last = info.Name
				}
			}
			if !yield(info, nil) {
				return
			}
		}
	}
}

// Create implements storage.Storage. As on S3, IfAbsent is decided in Commit.
func (s *Store) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	err := ctx.Err()
	if name == "" {
		err = fmt.Errorf("an empty name: %w", storage.ErrUnsupported)
	}
	if err != nil {
		return nil, fail("create", name, err)
	}
	return &writer{s: s, ctx: ctx, name: name, o: o}, nil
}

// Delete implements storage.Storage.
func (s *Store) Delete(ctx context.Context, names ...string) error {
	if err := ctx.Err(); err != nil && len(names) > 0 {
		return fail("delete", names[0], err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		delete(s.objects, name)
	}
	return nil
}

// CopyRange implements storage.Copier between objects of this store.
func (s *Store) CopyRange(ctx context.Context, w storage.Writer, src storage.Storage, name string, off, n int64, pin storage.Version) error {
	to, ok := w.(*writer)
	if from, mine := src.(*Store); !ok || !mine || from != s || to.s != s {
		return fail("copy", name, storage.ErrUnsupported)
	}
	o, err := s.pinned(ctx, "copy", name, pin)
	if err != nil {
		return err
	}
	start, end, err := ranged.Span("copy", o.info, off, n)
	if err != nil {
		return err
	}
	_, err = to.Write(o.data[start:end])
	return err
}

type writer struct {
	s    *Store
	ctx  context.Context
	name string
	o    storage.CreateOptions
	data []byte
	err  error // sticky; also set after Commit and Abort
}

var errFinished = errors.New("already committed or aborted")

func (w *writer) Write(p []byte) (int, error) {
	if w.err == nil {
		if err := w.ctx.Err(); err != nil {
			w.err = fail("write", w.name, err)
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	w.data = append(w.data, p...)
	return len(p), nil
}

func (w *writer) Commit(ctx context.Context) (storage.Info, error) {
	if w.err == nil {
		if err := ctx.Err(); err != nil {
			w.err = fail("commit", w.name, err)
		} else if size := int64(len(w.data)); w.o.Size > 0 && size != w.o.Size {
			w.err = fail("commit", w.name, fmt.Errorf("wrote %d bytes, expected %d", size, w.o.Size))
		}
	}
	if w.err != nil {
		return storage.Info{}, w.err
	}
	s := w.s
	s.mu.Lock()
	defer s.mu.Unlock()
	old, there := s.objects[w.name]
	switch {
	case there && w.o.IfAbsent:
		w.err = fail("commit", w.name, storage.ErrExist)
	case w.o.Replace != "" && old.info.Version != w.o.Replace:
		w.err = fail("commit", w.name, storage.ErrChanged)
	}
	if w.err != nil {
		return storage.Info{}, w.err
	}
	s.writes++
	info := storage.Info{Name: w.name, Size: int64(len(w.data)), ModTime: time.Now(), Version: storage.Version(fmt.Sprintf("v%d", s.writes))}
	if s.objects == nil {
		s.objects = map[string]object{}
	}
	s.objects[w.name] = object{info: info, data: w.data}
	w.data, w.err = nil, fail("write", w.name, errFinished)
	return info, nil
}

func (w *writer) Abort(context.Context) error {
	w.data = nil
	if w.err == nil {
		w.err = fail("write", w.name, errFinished)
	}
	return nil
}
