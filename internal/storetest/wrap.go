package storetest

import (
	"context"
	"errors"
	"io"
	"iter"
	"maps"
	"sync"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/storage"
)

// Counting forwards all calls and counts them. The kinds are "read" (ReadRange),
// "stat", "list" (List), "page" (the requests of a List to a service that answers
// with 1,000 names at a time), "create", "commit", "abort", "delete" (one per name),
// with WithCopier "copy", and with WithAbilities "copy", "map", "resolve", "link",
// "move", "exchange", "remove", "free".
type Counting struct {
	base storage.Storage
	wait func(kind, name string)

	mu            sync.Mutex
	counts        map[string]int
	named         map[string]map[string]int // by kind and name
	read, written int64
	running       int
	most          int
}

// pageSize is the number of names in an answer to a list request.
const pageSize = 1000

// NewCounting wraps a store and hides its optional abilities.
func NewCounting(base storage.Storage) *Counting {
	return &Counting{base: base, counts: map[string]int{}, named: map[string]map[string]int{}, wait: func(string, string) {}}
}

// WithWait makes every request that a service would answer call wait while it runs:
// "read", "stat", "page", "commit", "delete". It must be called before the first
// request, and returns the store.
func (c *Counting) WithWait(wait func(kind, name string)) *Counting {
	c.wait = wait
	return c
}

// WithAbilities returns the wrapper with the optional abilities of the wrapped
// store.
func (c *Counting) WithAbilities() storage.Storage {
	return &abilities{Storage: c, base: c.base, before: func(kind, name string) error { c.add(kind, name); return nil }}
}

// WithCopier returns the wrapper with the only optional ability of an object store:
// storage.Copier.
func (c *Counting) WithCopier() storage.Storage {
	return &copier{c, &abilities{Storage: c, base: c.base, before: func(kind, name string) error { c.add(kind, name); return nil }}}
}

// Count returns the number of requests of a kind.
func (c *Counting) Count(kind string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts[kind]
}

// Counts returns all counts.
func (c *Counting) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Requests returns how many requests an object store would have answered: reads,
// stats, pages of lists, commits and deletions. What comes before a commit, such as
// parts, is not counted.
func (c *Counting) Requests() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := 0
	for _, kind := range []string{"read", "stat", "page", "commit", "delete"} {
		n += c.counts[kind]
	}
	return n
}

// Named returns the requests of a kind, by name.
func (c *Counting) Named(kind string) map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.named[kind])
}

// Bytes returns the numbers of bytes read from bodies and written to writers.
func (c *Counting) Bytes() (read, written int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.read, c.written
}

// MaxRunning returns how many requests ran at once, at most.
func (c *Counting) MaxRunning() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.most
}

// Reset sets all counts to zero.
func (c *Counting) Reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.counts)
	clear(c.named)
	c.read, c.written, c.most = 0, 0, c.running
}

func (c *Counting) add(kind, name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[kind]++
	if c.named[kind] == nil {
		c.named[kind] = map[string]int{}
	}
	c.named[kind][name]++
}

// request counts a request, and waits as one does.
func (c *Counting) request(kind, name string) {
	c.add(kind, name)
	c.mu.Lock()
	c.running++
	c.most = max(c.most, c.running)
	c.mu.Unlock()
	c.wait(kind, name)
	c.mu.Lock()
	c.running--
	c.mu.Unlock()
}

// ReadRange implements storage.Storage.
func (c *Counting) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	c.request("read", name)
	rc, info, err := c.base.ReadRange(ctx, name, off, n, pin)
	if err != nil {
		return nil, info, err
	}
	return &readFunc{rc, func(p []byte) (int, error) {
		n, err := rc.Read(p)
		c.mu.Lock()
		defer c.mu.Unlock()
		c.read += int64(n)
		return n, err
	}}, info, nil
}

// Stat implements storage.Storage.
func (c *Counting) Stat(ctx context.Context, name string) (storage.Info, error) {
	c.request("stat", name)
	return c.base.Stat(ctx, name)
}

// List implements storage.Storage.
func (c *Counting) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	c.add("list", prefix)
	return func(yield func(storage.Info, error) bool) {
		n := 0
		c.request("page", prefix)
		for info, err := range c.base.List(ctx, prefix, delimiter) {
			if n++; n > pageSize && n%pageSize == 1 {
				c.request("page", prefix)
			}
			if !yield(info, err) {
				return
			}
		}
	}
}

// Create implements storage.Storage.
func (c *Counting) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	c.add("create", name)
	w, err := c.base.Create(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return &countingWriter{w, c, name}, nil
}

// Delete implements storage.Storage.
func (c *Counting) Delete(ctx context.Context, names ...string) error {
	for _, name := range names {
		c.request("delete", name)
	}
	return c.base.Delete(ctx, names...)
}

type countingWriter struct {
	storage.Writer
	c    *Counting
	name string
}

func (w *countingWriter) unwrap() storage.Writer { return w.Writer }

func (w *countingWriter) Write(p []byte) (int, error) {
	n, err := w.Writer.Write(p)
	w.c.mu.Lock()
	defer w.c.mu.Unlock()
	w.c.written += int64(n)
	return n, err
}

func (w *countingWriter) Commit(ctx context.Context) (storage.Info, error) {
	w.c.request("commit", w.name)
	return w.Writer.Commit(ctx)
}

func (w *countingWriter) Abort(ctx context.Context) error {
	w.c.add("abort", w.name)
	return w.Writer.Abort(ctx)
}

// Faults describes how a Failing store fails. With the zero value it does not
// fail.
type Faults struct {
	// Read, Create, Write, Commit, Copy and Delete are the numbers, from 1, of the
	// calls that fail with Err. Copy needs WithCopier.
	Read, Create, Write, Commit, Copy, Delete int
	// Lost is the number of the Commit that succeeds and returns Err. As a driver
	// does, Abort then deletes the object if it is the writer's own.
	Lost int
	// Err is the error of those calls and of Broken bodies; nil means ErrUnavailable.
	Err error

	// OneByte makes bodies return one byte at a time.
	OneByte bool
	// The first Broken bodies fail after BreakAfter bytes: with Err, or with io.EOF
	// if BreakSilently is set.
	Broken        int
	BreakAfter    int64
	BreakSilently bool
	// Change is called once, after the first bytes of a body, to change the object.
	Change func()

	// Space is the total number of bytes that all writers accept before ErrNoSpace; 0
	// means unlimited.
	Space int64
}

// Failing forwards all calls, except for the faults.
type Failing struct {
	base storage.Storage

	mu     sync.Mutex
	f      Faults
	counts map[string]int
	used   int64
}

// NewFailing wraps a store and hides its optional abilities.
func NewFailing(base storage.Storage, f Faults) *Failing {
	if f.Err == nil {
		f.Err = storage.ErrUnavailable
	}
	return &Failing{base: base, f: f, counts: map[string]int{}}
}

// WithAbilities returns the wrapper with the optional abilities of the wrapped
// store, which do not fail and do not count towards Space.
func (f *Failing) WithAbilities() storage.Storage {
	return &abilities{Storage: f, base: f.base, before: func(string, string) error { return nil }}
}

// WithCopier returns the wrapper with the only optional ability of an object store:
// storage.Copier, which fails at Faults.Copy.
func (f *Failing) WithCopier() storage.Storage {
	return &copier{f, &abilities{Storage: f, base: f.base, before: func(kind, name string) error { return f.fault(kind, name, f.f.Copy) }}}
}

// fault counts a call and reports whether it must fail.
func (f *Failing) fault(kind, name string, at int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[kind]++
	if f.counts[kind] == at {
		return &storage.Error{Op: kind, Name: name, Err: f.f.Err}
	}
	return nil
}

// ReadRange implements storage.Storage.
func (f *Failing) ReadRange(ctx context.Context, name string, off, n int64, pin storage.Version) (io.ReadCloser, storage.Info, error) {
	if err := f.fault("read", name, f.f.Read); err != nil {
		return nil, storage.Info{}, err
	}
	rc, info, err := f.base.ReadRange(ctx, name, off, n, pin)
	if err != nil {
		return nil, info, err
	}
	left := int64(-1) // never breaks
	f.mu.Lock()
	if f.f.Broken > 0 {
		f.f.Broken--
		left = f.f.BreakAfter
	}
	f.mu.Unlock()
	return &readFunc{rc, func(p []byte) (int, error) {
		if left == 0 {
			if f.f.BreakSilently {
				return 0, io.EOF
			}
			return 0, &storage.Error{Op: "read", Name: name, Err: f.f.Err}
		}
		if f.f.OneByte && len(p) > 1 {
			p = p[:1]
		}
		if left > 0 {
			p = p[:min(int64(len(p)), left)]
		}
		n, err := rc.Read(p)
		if left > 0 {
			left -= int64(n)
		}
		f.mu.Lock()
		change := f.f.Change
		if n > 0 {
			f.f.Change = nil
		}
		f.mu.Unlock()
		if n > 0 && change != nil {
			change()
		}
		return n, err
	}}, info, nil
}

// Stat implements storage.Storage.
func (f *Failing) Stat(ctx context.Context, name string) (storage.Info, error) {
	return f.base.Stat(ctx, name)
}

// List implements storage.Storage.
func (f *Failing) List(ctx context.Context, prefix, delimiter string) iter.Seq2[storage.Info, error] {
	return f.base.List(ctx, prefix, delimiter)
}

// Create implements storage.Storage.
func (f *Failing) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	if err := f.fault("create", name, f.f.Create); err != nil {
		return nil, err
	}
	w, err := f.base.Create(ctx, name, o)
	if err != nil {
		return nil, err
	}
	return &failingWriter{Writer: w, f: f, name: name}, nil
}

// Delete implements storage.Storage.
func (f *Failing) Delete(ctx context.Context, names ...string) error {
	if len(names) > 0 {
		if err := f.fault("delete", names[0], f.f.Delete); err != nil {
			return err
		}
	}
	return f.base.Delete(ctx, names...)
}

type failingWriter struct {
	storage.Writer
	f    *Failing
	name string
	err  error
	lost storage.Version // of an object whose Commit returned an error; else ""
}

func (w *failingWriter) unwrap() storage.Writer { return w.Writer }

func (w *failingWriter) Write(p []byte) (int, error) {
	if w.err == nil {
		w.err = w.f.fault("write", w.name, w.f.f.Write)
	}
	if w.err != nil {
		return 0, w.err
	}
	w.f.mu.Lock()
	if fits := w.f.f.Space - w.f.used; w.f.f.Space > 0 && int64(len(p)) > fits {
		p = p[:fits]
		w.err = &storage.Error{Op: "write", Name: w.name, Err: storage.ErrNoSpace}
	}
	w.f.used += int64(len(p))
	w.f.mu.Unlock()
	n, err := w.Writer.Write(p)
	if w.err == nil {
		w.err = err
	}
	return n, w.err
}

func (w *failingWriter) Commit(ctx context.Context) (storage.Info, error) {
	if w.err == nil {
		w.err = w.f.fault("commit", w.name, w.f.f.Commit)
	}
	if w.err != nil {
		return storage.Info{}, w.err
	}
	lost := w.f.fault("lost", w.name, w.f.f.Lost)
	info, err := w.Writer.Commit(ctx)
	if err == nil && lost != nil {
		w.err, w.lost = lost, info.Version
		return storage.Info{}, lost
	}
	return info, err
}

func (w *failingWriter) Abort(ctx context.Context) error {
	err := w.Writer.Abort(ctx)
	if w.lost == "" {
		return err
	}
	info, serr := w.f.Stat(ctx, w.name)
	if serr == nil && info.Version == w.lost {
		err = errors.Join(err, w.f.Delete(ctx, w.name))
	}
	if err == nil {
		w.lost = ""
	}
	return err
}

type readFunc struct {
	io.Closer
	read func([]byte) (int, error)
}

func (r *readFunc) Read(p []byte) (int, error) { return r.read(p) }

// abilities adds to a wrapper the optional abilities of the store it wraps.
type abilities struct {
	storage.Storage // the wrapper
	base            storage.Storage
	before          func(kind, name string) error
}

// abilityOf returns the optional interface T in the store that is wrapped.
func abilityOf[T any](a *abilities, kind, name string) (t T, err error) {
	if err := a.before(kind, name); err != nil {
		return t, err
	}
	t, ok := a.base.(T)
	if !ok {
		return t, &storage.Error{Op: kind, Name: name, Err: storage.ErrUnsupported}
	}
	return t, nil
}

// copier shows one ability of abilities.
type copier struct {
	storage.Storage
	a *abilities
}

func (c *copier) CopyRange(ctx context.Context, w storage.Writer, src storage.Storage, name string, off, n int64, pin storage.Version) error {
	return c.a.CopyRange(ctx, w, src, name, off, n, pin)
}

// unwrap returns the store inside wrappers: stores recognize only their own type.
func unwrap(s storage.Storage) storage.Storage {
	for {
		switch w := s.(type) {
		case *abilities:
			s = w.base
		case *copier:
			s = w.Storage
		case *Counting:
			s = w.base
		case *Failing:
			s = w.base
		default:
			return s
		}
	}
}

func (a *abilities) CopyRange(ctx context.Context, w storage.Writer, src storage.Storage, name string, off, n int64, pin storage.Version) error {
	t, err := abilityOf[storage.Copier](a, "copy", name)
	if err != nil {
		return err
	}
	if u, ok := w.(interface{ unwrap() storage.Writer }); ok {
		w = u.unwrap()
	}
	return t.CopyRange(ctx, w, unwrap(src), name, off, n, pin)
}

func (a *abilities) Map(ctx context.Context, name string, pin storage.Version) (*ability.Mapped, error) {
	t, err := abilityOf[ability.Mapper](a, "map", name)
	if err != nil {
		return nil, err
	}
	return t.Map(ctx, name, pin)
}

func (a *abilities) Resolve(ctx context.Context, uri string) (storage.Storage, string, error) {
	t, err := abilityOf[storage.Resolver](a, "resolve", uri)
	if err != nil {
		return nil, "", err
	}
	return t.Resolve(ctx, uri)
}

func (a *abilities) Link(ctx context.Context, dst string, src storage.Storage, name string, pin storage.Version, ifAbsent bool) (storage.Info, error) {
	t, err := abilityOf[ability.Linker](a, "link", dst)
	if err != nil {
		return storage.Info{}, err
	}
	return t.Link(ctx, dst, unwrap(src), name, pin, ifAbsent)
}

func (a *abilities) Move(ctx context.Context, old, new string) error {
	t, err := abilityOf[storage.Mover](a, "move", old)
	if err != nil {
		return err
	}
	return t.Move(ctx, old, new)
}

func (a *abilities) Exchange(ctx context.Context, one, other string) error {
	t, err := abilityOf[storage.Mover](a, "exchange", other)
	if err != nil {
		return err
	}
	return t.Exchange(ctx, one, other)
}

func (a *abilities) RemoveEmpty(ctx context.Context, name string) error {
	t, err := abilityOf[storage.Remover](a, "remove", name)
	if err != nil {
		return err
	}
	return t.RemoveEmpty(ctx, name)
}

func (a *abilities) RemoveTree(ctx context.Context, name string) error {
	t, err := abilityOf[storage.Remover](a, "remove", name)
	if err != nil {
		return err
	}
	return t.RemoveTree(ctx, name)
}

func (a *abilities) FreeSpace(ctx context.Context, name string) (int64, error) {
	t, err := abilityOf[storage.SpaceReporter](a, "free", name)
	if err != nil {
		return 0, err
	}
	return t.FreeSpace(ctx, name)
}
