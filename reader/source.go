package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/format/spt/native"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

// Found is where a reference leads.
type Found struct {
	Store storage.Storage
	Name  string // name in Store
	URI   string // location for a storage.Resolver
	Info  storage.Info
	// Instead is the location tried first, if the file was found elsewhere because it
	// was copied with its snapshot. "" if the reference is correct or a mapping led
	// here.
	Instead string
}

// source reads the streams of a snapshot. Each reference is looked up once.
type source struct {
	stores      storage.Resolver
	store       storage.Storage // store that holds the snapshot
	dir         string          // of the snapshot, in store
	location    string          // of the snapshot's directory, as the user wrote it
	version     storage.Version // of the file that describes it
	maps        format.Mappings // longest first
	follow      []string        // see Options
	areas       *areas          // that are read
	away        *OutsideError   // target of _metadata, if that is outside
	file        *spt.File       // of an .spt file
	maxValue    int64           // of the .spt files
	operators   opstate.Codec
	ropes       ropes
	sched       *ranged.Scheduler
	progress    progress // called with the number of bytes read
	mu          sync.Mutex
	lookups     map[reference]*lookup
	asked       bool // a store was asked for a file
	directories map[string]*directory
	refs        *references
	windows     *windows
	foreign     map[*format.Chunks]foreign // chunks of other .spt files, see Combine
}

// foreign is another .spt file, with its name for errors.
type foreign struct {
	file *spt.File
	name string
}

type reference struct {
	relative bool
	path     string
}

type lookup struct {
	once  sync.Once
	found Found
	rd    *ranged.Reader
	err   error
}

func newSource(f *found, o Options, file *spt.File, sp *format.Savepoint) *source {
	var maxValue int64 = native.MaxValue
	if file != nil {
		maxValue = file.MaxValue()
	}
	location := f.location
	if f.family == SPT {
		location = parentLocation(location)
	}
	return &source{
		stores: o.Stores, store: f.store, dir: objpath.Dir(f.name), location: location, version: f.info.Version, maps: o.Map, follow: o.Follow, areas: &areas{}, file: file, maxValue: maxValue,
		sched: ranged.NewScheduler(), progress: o.Progress, lookups: map[reference]*lookup{}, directories: map[string]*directory{},
		refs: &references{sp: sp}, windows: &windows{},
	}
}

// MaxValue implements native.ValueLimiter.
func (s *source) MaxValue() int64 { return s.maxValue }

// ReadAt implements format.Source.
func (s *source) ReadAt(ctx context.Context, st format.Stream, p []byte, off int64) (int, error) {
	switch st := st.(type) {
	case *format.Inline:
		if s.away != nil {
			return 0, s.away
		}
		return s.inline(st, p, off)
	case *format.File:
		return s.readFile(ctx, st, p, off)
	case *format.Segment:
		if !st.Within(math.MaxInt64) || off < 0 || off > st.Length || int64(len(p)) > st.Length-off {
			return 0, format.Errorf(format.ErrTruncated, "read of %d bytes at %d in a segment of %d", len(p), off, st.Length)
		}
		return s.readFile(ctx, st, p, st.Start+off)
	case *format.KeyGroupStream:
		return s.ReadAt(ctx, st.Data, p, off)
	case *format.Chunks:
		if f, ok := s.foreign[st]; ok {
			n, err := f.file.ReadAt(ctx, st, p, off)
			return n, format.InFile(err, f.name)
		}
		if s.file == nil {
			return 0, errors.New("internal error: chunks outside an .spt file")
		}
		return s.file.ReadAt(ctx, st, p, off)
	case *format.Concat:
		return s.concat(ctx, st, p, off)
	case *format.Computed:
		if off < 0 || off > st.Length || int64(len(p)) > st.Length-off {
			return 0, format.Errorf(format.ErrTruncated, "read of %d bytes at %d in %d computed bytes", len(p), off, st.Length)
		}
		if err := st.Maker.MakeAt(ctx, s, p, off); err != nil {
			return 0, err
		}
		return len(p), nil
	case *format.EmptySegment, nil:
		if len(p) == 0 {
			return 0, nil
		}
		return 0, format.Errorf(format.ErrTruncated, "read of %d bytes at %d in a stream without bytes", len(p), off)
	}
	return 0, fmt.Errorf("internal error: a stream of type %T", st)
}

// SizeOf implements format.Sizer: the size of a file is its actual size, not the
// recorded one.
func (s *source) SizeOf(ctx context.Context, st format.Stream) (int64, error) {
	switch st := st.(type) {
	case *format.File:
		l := s.lookup(ctx, st)
		return l.found.Info.Size, l.err
	case *format.KeyGroupStream:
		if st.Data == nil {
			return 0, nil
		}
		return s.SizeOf(ctx, st.Data)
	}
	return st.Size(), nil
}

// PlaceOf implements fileref.Locator: the store, the name and the version of the
// file that a stream refers to.
func (s *source) PlaceOf(ctx context.Context, st format.Stream) (string, error) {
	if _, _, ok := format.Reference(st); !ok {
		return "", nil
	}
	l := s.lookup(ctx, st)
	if l.err != nil {
		return "", l.err
	}
	name := l.found.Name
	if c, ok := l.found.Store.(ability.Canonicalizer); ok {
		real, err := c.Canonical(ctx, name)
		if err != nil {
			return "", storageKind(err)
		}
		name = real
	}
	location := fmt.Sprintf("%p %s %s", l.found.Store, l.found.Info.Version, name)
	if seg, ok := st.(*format.Segment); ok {
		location += fmt.Sprintf(" %d %d", seg.Start, seg.Length)
	}
	return location, nil
}

func (s *source) inline(st *format.Inline, p []byte, off int64) (int, error) {
	if off < 0 || off > st.Size() || int64(len(p)) > st.Size()-off {
		return 0, format.Errorf(format.ErrTruncated, "read of %d bytes at %d in %d inline bytes", len(p), off, st.Size())
	}
	n, err := st.Data.ReadAt(p, off)
	s.progress.add(n)
	return n, err
}

func (s *source) readFile(ctx context.Context, st format.Stream, p []byte, off int64) (int, error) {
	l := s.lookup(ctx, st)
	if l.err != nil {
		return 0, l.err
	}
	if size := l.found.Info.Size; len(p) > 0 && len(p) <= window && off >= 0 && off <= size-int64(len(p)) && !ability.Near(l.found.Store) {
		if err := s.windows.readAt(ctx, l, p, off); err != nil {
			return 0, err
		}
		s.progress.add(len(p))
		return len(p), nil
	}
	return sptReader{l.rd, s.progress}.ReadAt(ctx, p, off)
}

// Locate finds the file of a stream that refers to one. statusOf tells what an
// error says about it: format.ErrMissing, ErrOutside or ErrNotChecked. Of a file
// that is there and outside, the error comes with where it was found.
func (s *Snapshot) Locate(ctx context.Context, st format.Stream) (Found, error) {
	l := s.src.lookup(ctx, st)
	return l.found, l.err
}

func (s *source) lookup(ctx context.Context, st format.Stream) *lookup {
	path, relative, ok := format.Reference(st)
	if !ok {
		return &lookup{err: fmt.Errorf("internal error: a stream of kind %s refers to no file", format.Kind(st))}
	}
	ref := reference{relative, path.String()}
	s.mu.Lock()
	l := s.lookups[ref]
	if l == nil {
		l = &lookup{}
		s.lookups[ref] = l
	}
	s.mu.Unlock()
	l.once.Do(func() {
		l.found, l.err = s.locate(ctx, ref)
		if l.err == nil {
			l.rd = s.sched.NewReader(l.found.Store, l.found.Name, l.found.Info.Version)
		} else if ctx.Err() != nil { // not about the file
			s.mu.Lock()
			delete(s.lookups, ref)
			s.mu.Unlock()
		}
	})
	return l
}

// locate tries these locations of a reference, in order: next to _metadata for a
// relative one; the target of a mapping; the absolute location itself; and,
// because snapshots are copied, the same file under the directory of the snapshot
// or of its job. The file must be in a directory that may be read; see look.
func (s *source) locate(ctx context.Context, ref reference) (Found, error) {
	if ref.relative {
		return s.nextToMetadata(ctx, ref.path)
	}
	if to, ok := s.maps.Apply(ref.path); ok {
		return s.at(ctx, ref.path, to)
	}
	found, err := s.at(ctx, ref.path, ref.path)
	var unchecked *NotCheckedError
	var outside *OutsideError
	elsewhere := errors.Is(err, format.ErrMissing) || errors.As(err, &unchecked) && unchecked.Scheme != "" || errors.As(err, &outside) && !outside.Exists
	if !elsewhere {
		// It exists, or the lookup failed: a store that is unavailable or denies
		// permission may hold it. A file that exists and may not be read is not
		// replaced by another either.
		return found, err
	}
	for _, name := range s.fallbacks(ctx, ref.path) {
		found, ferr := s.look(ctx, ref.path, s.store, name, s.localURI(name))
		switch {
		case ferr == nil:
			found.Instead, found.URI = ref.path, s.uri(name)
			return found, nil
		case errors.Is(ferr, format.ErrOutside): // it is a link that leads outside
			found.Instead, found.URI = ref.path, s.uri(name)
			return found, ferr
		}
	}
	return Found{}, err
}

// nextToMetadata finds the file of a relative reference. Flink writes bare names;
// it resolves any other against the directory of the snapshot, so it can lead
// anywhere and is followed only where the user allows it.
func (s *source) nextToMetadata(ctx context.Context, path string) (Found, error) {
	name := objpath.Join(s.dir, path)
	if !fileref.IsPlain(path) {
		at, err := s.climb(ctx, path)
		if err != nil {
			return Found{}, err
		}
		name = at
	}
	found, err := s.look(ctx, path, s.store, name, s.localURI(name))
	found.URI = s.uri(name)
	if errors.Is(err, format.ErrMissing) {
		if to, ok := s.mapRelative(ctx, path, s.maps); ok {
			return s.at(ctx, path, to)
		}
	}
	var gone *format.Error
	if errors.As(err, &gone) && errors.Is(err, format.ErrMissing) { // under the name in the snapshot
		err = absent(gone.Err, path)
	}
	return found, err
}

// MapRelative returns the location to which a mapping of the snapshot's
// directory, or of ".", maps the relative reference name. Locate uses the
// mappings of Options if the file is not next to _metadata.
func (s *Snapshot) MapRelative(ctx context.Context, name string, maps []format.Mapping) (to string, ok bool) {
	return s.src.mapRelative(ctx, name, maps)
}

func (s *source) mapRelative(ctx context.Context, path string, maps format.Mappings) (to string, ok bool) {
	if len(maps) == 0 {
		return "", false
	}
	for _, uri := range s.spellings(ctx, path) {
		if to, ok := maps.Apply(uri); ok {
			return to, true
		}
	}
	return "", false
}

// spellings returns the names that a mapping may use for a file next to
// _metadata.
func (s *source) spellings(ctx context.Context, path string) []string {
	all := []string{"./" + path, s.uri(objpath.Join(s.dir, path))}
	for _, home := range s.homes(ctx) {
		all = append(all, s.localURI(objpath.Join(home, path)))
	}
	return all
}

// climb resolves a relative reference that is not a bare name, if that is
// allowed.
func (s *source) climb(ctx context.Context, path string) (string, error) {
	unsafe := &OutsideError{Reference: path, relative: true}
	if strings.ContainsAny(path, "\\\x00") {
		return "", unsafe
	}
	parts := strings.Split(s.dir, "/")
	if s.dir == "" {
		parts = nil
	}
	for part := range strings.SplitSeq(strings.TrimLeft(path, "/"), "/") {
		switch {
		case part == "" || part == ".":
		case part != "..":
			parts = append(parts, part)
		case len(parts) > 0 && parts[len(parts)-1] != ".." && parts[len(parts)-1] != "." && parts[len(parts)-1] != "":
			parts = parts[:len(parts)-1]
		default:
			parts = append(parts, part)
		}
	}
	name := strings.Join(parts, "/")
	at, ok, err := spotOf(ctx, s.store, name, s.localURI(name))
	if err != nil || !ok {
		return "", unsafe
	}
	unsafe.Leads, unsafe.Follow = at.uri(), directoryOf(at)
	if !s.areas.follows(ctx, s, at) {
		return "", unsafe
	}
	return name, nil
}

// at finds the object at a URI for the reference ref.
func (s *source) at(ctx context.Context, ref, uri string) (Found, error) {
	store, name, err := s.stores.Resolve(ctx, uri)
	if err != nil {
		if ctx.Err() != nil {
			return Found{}, err
		}
		scheme, _ := objpath.Split(uri) // of no store, or of no object of it
		return Found{}, &NotCheckedError{Reference: uri, Scheme: scheme, Err: err}
	}
	return s.look(ctx, ref, store, name, uri)
}

// localURI returns uri without the authority of the file: URI that named the
// snapshot.
func (s *source) localURI(name string) string {
	if uri := s.uri(name); objpath.Host(uri) == "" {
		return uri
	}
	return name
}

// uri returns the URI of an object in the store of the snapshot: the location
// named by the user, with the name replaced.
func (s *source) uri(name string) string {
	if s.dir == "" {
		return objpath.Join(s.location, name)
	}
	if prefix, ok := strings.CutSuffix(s.location, s.dir); ok {
		return prefix + name
	}
	return name
}

// fallbacks returns the locations of an absolute reference under the snapshot's
// own directory, its job's directory and the parent of that: …/shared/X,
// …/taskowned/X, …/chk-N/X, X, and the changelog's dstl/JOB/dstl/X.
func (s *source) fallbacks(ctx context.Context, path string) []string {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." || strings.ContainsAny(part, "\\\x00") {
			return nil // Flink writes no such reference
		}
	}
	var all []string
	for _, dir := range s.homes(ctx) {
		for _, location := range fallbacksUnder(dir, path) {
			if !slices.Contains(all, location) {
				all = append(all, location)
			}
		}
	}
	return all
}

// homes returns the names of the snapshot's directory: as the user named it, and
// with links resolved. A name that goes through a link, or ".", does not contain
// the directory of the job.
func (s *source) homes(ctx context.Context) []string {
	homes := []string{s.dir}
	if c, ok := s.store.(ability.Canonicalizer); ok {
		name := s.dir
		if name == "" {
			name = "."
		}
		if real, err := c.Canonical(ctx, name); err == nil && real != s.dir {
			homes = append(homes, real)
		}
	}
	return homes
}

func fallbacksUnder(dir, path string) []string {
	job, hasJob := objpath.Dir(dir), dir != "" && dir != "." && !objpath.IsTop(dir)
	if job == "" {
		job = "."
	}
	for _, sub := range []string{"/shared/", "/taskowned/"} {
		if i := strings.LastIndex(path, sub); i >= 0 {
			if !hasJob {
				return nil
			}
			return []string{objpath.Join(job, path[i+1:])}
		}
	}
	if i := strings.Index(path, "/dstl/"); i >= 0 {
		if !hasJob {
			return nil
		}
		return []string{objpath.Join(objpath.Dir(job), path[i+1:]), objpath.Join(job, path[i+1:])}
	}
	base := path[strings.LastIndexByte(path, '/')+1:]
	if !fileref.IsPlain(base) {
		return nil
	}
	all := []string{objpath.Join(dir, base)}
	parent := path[:max(len(path)-len(base)-1, 0)]
	if p := parent[strings.LastIndexByte(parent, '/')+1:]; hasJob && strings.HasPrefix(p, "chk-") {
		all = append(all, objpath.Join(job, p+"/"+base))
	}
	return all
}

// absent returns the meaning of a store's error for a reference: what does not
// exist, or is not a file, is missing; after any other error it may exist.
func absent(err error, ref string) error {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, storage.ErrNotExist):
		return &format.Error{Offset: -1, Msg: fmt.Sprintf("file %s is missing", quote(ref)), Err: errors.Join(format.ErrMissing, err)}
	case errors.Is(err, storage.ErrChanged):
		return storageKind(err)
	case errors.Is(err, storage.ErrPermission), errors.Is(err, storage.ErrUnavailable):
		return &NotCheckedError{Reference: ref, Err: err}
	}
	return &kinded{err, format.ErrMissing}
}

// OpenFile streams n bytes at off of the file that a stream refers to, without
// holding them in memory. io.EOF means that all n bytes were read, from the
// version first seen.
func (s *Snapshot) OpenFile(ctx context.Context, st format.Stream, off, n int64) (io.ReadCloser, error) {
	l := s.src.lookup(ctx, st)
	if l.err != nil {
		return nil, l.err
	}
	body, _, err := l.rd.Open(ctx, off, n)
	if err != nil {
		return nil, storageKind(err)
	}
	return kindedBody{body}, nil
}

// kindedBody makes the errors of a body also match the kinds of package format.
type kindedBody struct{ io.ReadCloser }

func (b kindedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, storageKind(err)
}
