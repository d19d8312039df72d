package reader

import (
	lru "container/list"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/storage"
)

// This file keeps the number of requests to a remote store small: files are
// looked up by listing their directories, and short reads of a file get what follows
// as well.

// Remote reports whether the snapshot is in a store other than the local file system,
// so that looking at a file takes a request.
func (s *Snapshot) Remote() bool { return !ability.Near(s.src.store) }

// references are the files that a model names.
type references struct {
	once sync.Once
	sp   *format.Savepoint
	base map[string]struct{} // last elements of their names
	in   map[string]int      // how many absolute references name a file in a directory
}

func (r *references) read() {
	r.once.Do(func() {
		r.base, r.in = map[string]struct{}{}, map[string]int{}
		seen := map[reference]struct{}{}
		_ = r.sp.EachStream(func(_ format.Place, st format.Stream) error {
			path, relative, ok := format.Reference(st)
			if !ok {
				return nil
			}
			ref := reference{relative, path.String()}
			if _, again := seen[ref]; again {
				return nil
			}
			seen[ref] = struct{}{}
			r.base[ref.path[strings.LastIndexByte(ref.path, '/')+1:]] = struct{}{}
			if !relative {
				r.in[format.CanonicalURI(objpath.Dir(ref.path))]++
			}
			return nil
		})
	})
}

// directory is a directory whose files are looked up. It is listed if more than one
// is, because one request returns up to 1,000 names.
type directory struct {
	mu    sync.Mutex
	asked int
	tried bool                    // to list it
	files map[string]storage.Info // nil if not listed; see listing
}

// directory returns the directory of an object.
func (s *source) directory(store storage.Storage, dir string) *directory {
	key := keyOf(store, dir)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = true
	d := s.directories[key]
	if d == nil {
		d = &directory{}
		s.directories[key] = d
	}
	return d
}

// keyOf identifies a directory. A store may be of a type that cannot be compared.
func keyOf(store storage.Storage, dir string) string { return fmt.Sprintf("%p %s", store, dir) }

// isOwn reports whether a directory is the snapshot's own.
func (s *source) isOwn(store storage.Storage, dir string) bool {
	return dir == s.dir && keyOf(store, dir) == keyOf(s.store, dir)
}

// several reports whether a directory is worth a list: the snapshot names more than one
// file in it, or it is the snapshot's own, and the list shows whether the description
// changed.
func (s *source) several(store storage.Storage, dir string) bool {
	s.refs.read()
	return s.isOwn(store, dir) || s.refs.in[format.CanonicalURI(dir)] > 1
}

// list lists the directory, once. d must be locked. Of the directory of the snapshot
// it keeps all files, of another those with the name of a reference: a directory of
// shared state has the files of many snapshots.
func (d *directory) list(ctx context.Context, s *source, store storage.Storage, dir string) error {
	if d.tried {
		return nil
	}
	own := s.isOwn(store, dir)
	s.refs.read()
	files := map[string]storage.Info{}
	for info, err := range store.List(ctx, objpath.Prefix(dir), "/") {
		if err != nil {
			d.tried = ctx.Err() == nil
			return err
		}
		base := objpath.Base(info.Name)
		if _, wanted := s.refs.base[base]; !wanted && !own || strings.HasSuffix(info.Name, "/") {
			continue
		}
		files[strings.Clone(base)] = info
	}
	d.tried, d.files = true, files
	return nil
}

// stat describes one file of a store. It lists the directory if more files in it are
// looked up.
func (s *source) stat(ctx context.Context, store storage.Storage, name string) (storage.Info, error) {
	dir := objpath.Dir(name)
	d := s.directory(store, dir)
	several := s.several(store, dir)
	d.mu.Lock()
	if d.asked++; d.files == nil && (several || d.asked > 1) {
		_ = d.list(ctx, s, store, dir) // else each file is asked for
	}
	files := d.files
	d.mu.Unlock()
	if files == nil {
		return store.Stat(ctx, name)
	}
	info, ok := files[objpath.Base(name)]
	switch {
	case !ok && !s.listed(store, dir, name):
		return store.Stat(ctx, name)
	case !ok:
		return storage.Info{}, &storage.Error{Op: "stat", Name: name, Err: storage.ErrNotExist}
	case info.Version == "": // the listing could not describe it
		return store.Stat(ctx, name)
	}
	info.Name = name
	return info, nil
}

// Stat describes an object that has the last element of its name in common with a file
// of the snapshot. Asked for several in one directory of a remote store, it
// lists that.
func (s *Snapshot) Stat(ctx context.Context, store storage.Storage, name string) (storage.Info, error) {
	if ability.Near(store) {
		return store.Stat(ctx, name)
	}
	return s.src.stat(ctx, store, name)
}

// listed reports whether a listing of a directory would have kept a file.
func (s *source) listed(store storage.Storage, dir, name string) bool {
	_, wanted := s.refs.base[objpath.Base(name)]
	return wanted || s.isOwn(store, dir)
}

// ownFiles lists the directory of the snapshot, or returns what an earlier listing of
// it found, ordered by name.
func (s *source) ownFiles(ctx context.Context) ([]storage.Info, error) {
	if ability.Near(s.store) {
		l, err := list(ctx, s.store, s.dir)
		return l.files, err
	}
	d := s.directory(s.store, s.dir)
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		d.tried = false
		if err := d.list(ctx, s, s.store, s.dir); err != nil {
			return nil, err
		}
	}
	all := make([]storage.Info, 0, len(d.files))
	for _, info := range d.files {
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b storage.Info) int { return strings.Compare(a.Name, b.Name) })
	return all, nil
}

// unchanged reports without a request whether the file that describes a snapshot has
// not changed since it was opened; known is false if only a request can tell. What was
// read of an object store is one version. A reference read from an old description
// could be looked up among the files of a new one, so the directory that was listed
// must show the version that was opened.
func (s *source) unchanged(name string) (same, known bool) {
	if ability.Near(s.store) || s.version == "" {
		return false, false
	}
	s.mu.Lock()
	asked := s.asked
	d := s.directories[keyOf(s.store, objpath.Dir(name))]
	s.mu.Unlock()
	if !asked {
		return true, true
	}
	if d == nil {
		return false, false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.files == nil {
		return false, false
	}
	info, ok := d.files[objpath.Base(name)]
	if ok && info.Version == "" {
		return false, false
	}
	return ok && info.Version == s.version, true
}

// LookUp looks up the files of the references of a Remote snapshot, several at a time,
// so that Locate then takes no request: of relative references, and if absolute is set
// of all. For another snapshot it does nothing. Locate returns the errors of files; LookUp
// returns only an error of the context.
func (s *Snapshot) LookUp(ctx context.Context, absolute bool) error {
	if !s.Remote() {
		return nil
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelLookups)
	seen := map[reference]struct{}{}
	var one func(st format.Stream)
	one = func(st format.Stream) {
		if rope, ok := st.(*format.Concat); ok {
			var last format.Stream
			for _, p := range rope.Parts {
				if p.Of != last {
					one(p.Of)
				}
				last = p.Of
			}
			return
		}
		path, relative, ok := format.Reference(st)
		ref := reference{relative, path.String()}
		if _, again := seen[ref]; !ok || again || !relative && !absolute {
			return
		}
		seen[ref] = struct{}{}
		g.Go(func() error {
			s.src.lookup(gctx, st)
			return gctx.Err()
		})
	}
	_ = s.EachStream(func(_ format.Place, st format.Stream) error {
		one(st)
		return gctx.Err()
	})
	return g.Wait()
}

const (
	// window is the least number of bytes of a remote file that are read at once, as
	// far as it has them: transferring them takes no longer than another request.
	window = 256 << 10
	// A read that continues where a window ends is read with a window that is
	// windowGrowth times as large, up to windowMost.
	windowGrowth = 4
	windowMost   = 2 << 20
	// windowBytes bounds the windows in memory: of 16 readers, each has its own.
	windowBytes = 16 * windowMost
)

// windows keeps the windows that were read last. The zero value is ready.
type windows struct {
	mu    sync.Mutex
	of    map[*lookup][]*oneWindow
	order lru.List // of *oneWindow, the most recently used first
	bytes int64    // of all windows
}

// oneWindow is a range of a file.
type oneWindow struct {
	of       *lookup
	off, end int64
	at       *lru.Element
	ready    chan struct{} // closed when data or err is set
	data     []byte
	err      error
}

// readAt reads a range that is within the file and not longer than a window.
func (c *windows) readAt(ctx context.Context, l *lookup, p []byte, off int64) error {
	for {
		w, mine := c.get(l, off, int64(len(p)))
		if mine {
			w.data = make([]byte, w.end-w.off)
			_, w.err = sptReader{l.rd, nil}.ReadAt(ctx, w.data, w.off)
			if w.err != nil {
				c.drop(w)
			}
			close(w.ready)
		}
		select {
		case <-w.ready:
		case <-ctx.Done():
			return ctx.Err()
		}
		switch {
		case w.err == nil:
			copy(p, w.data[off-w.off:])
			return nil
		case !mine && ctx.Err() == nil && (errors.Is(w.err, context.Canceled) || errors.Is(w.err, context.DeadlineExceeded)):
			continue // the context of another reader ended
		}
		return w.err
	}
}

// get returns a window that has a range. If mine is set, it is new, and the caller
// reads it.
func (c *windows) get(l *lookup, off, n int64) (w *oneWindow, mine bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	size, next := int64(window), l.found.Info.Size // next is where the new window ends at the latest
	for _, w := range c.of[l] {
		switch {
		case w.off <= off && off+n <= w.end:
			c.order.MoveToFront(w.at)
			return w, false
		case w.off < off && off <= w.end:
			size = max(size, min(windowGrowth*(w.end-w.off), windowMost))
		case off+n <= w.off:
			next = min(next, w.off) // it has the bytes from there on
		}
	}
	w = &oneWindow{of: l, off: off, end: min(next, off+size), ready: make(chan struct{})}
	if c.of == nil {
		c.of = map[*lookup][]*oneWindow{}
	}
	c.of[l] = append(c.of[l], w)
	w.at = c.order.PushFront(w)
	for c.bytes += w.end - w.off; c.bytes > windowBytes; {
		c.remove(c.order.Back().Value.(*oneWindow))
	}
	return w, true
}

func (c *windows) drop(w *oneWindow) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.remove(w)
}

func (c *windows) remove(w *oneWindow) {
	if w.at == nil {
		return
	}
	c.order.Remove(w.at)
	w.at = nil
	c.bytes -= w.end - w.off
	if kept := slices.DeleteFunc(c.of[w.of], func(o *oneWindow) bool { return o == w }); len(kept) > 0 {
		c.of[w.of] = kept
	} else {
		delete(c.of, w.of)
	}
}
