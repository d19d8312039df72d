package reader

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/route"
)

// Found is where a reference leads.
type Found struct {
	Store storage.Storage
	Name  string // in Store
	URI   string // by which a Resolver finds Store and Name
	Info  storage.Info
	// Instead is the place tried in vain before this one was found in its
	// stead: the file was copied away with its snapshot. "" if the reference
	// itself is right, or a mapping led here.
	Instead string
}

// source reads streams of one snapshot. References are looked up once.
type source struct {
	stores    storage.Resolver
	store     storage.Storage // that holds the snapshot
	dir       string          // of the snapshot, in store
	location  string          // of the snapshot's folder, as the user wrote it
	version   storage.Version // of the file that describes it
	maps      format.Mappings // longest first
	file      *spt.File       // for an .spt
	operators opstate.Codec
	ropes     ropes
	sched     *storage.Scheduler
	progress  progress // of bytes that were read
	mu        sync.Mutex
	lookups   map[reference]*lookup
	folders   map[string]*folder
	foreign   map[*format.Chunks]foreign // chunks of other .spt files, see Combine
}

// foreign is another .spt file, and its name for errors.
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
	rd    *storage.Reader
	err   error
}

// folder remembers how many files of a folder were asked for; many are listed
// at once instead of one by one.
type folder struct {
	mu    sync.Mutex
	asked int
	files map[string]storage.Info // nil: not listed
}

func newSource(f *found, o Options, file *spt.File) *source {
	location := f.location
	if f.family == SPT {
		location = parentLocation(location)
	}
	return &source{
		stores: o.Stores, store: f.store, dir: route.Dir(f.name), location: location, version: f.info.Version, maps: format.LongestFirst(o.Map), file: file,
		sched: storage.NewScheduler(), progress: o.Progress, lookups: map[reference]*lookup{}, folders: map[string]*folder{},
	}
}

// ReadAt implements format.Source.
func (s *source) ReadAt(ctx context.Context, st format.Stream, p []byte, off int64) (int, error) {
	switch st := st.(type) {
	case *format.Inline:
		return s.inline(st, p, off)
	case *format.File:
		return s.readFile(ctx, st, p, off)
	case *format.Segment:
		if off < 0 || st.Start < 0 || off > st.Length || int64(len(p)) > st.Length-off {
			return 0, format.Errorf(format.ErrTruncated, "%d bytes at %d were asked for of a segment of %d", len(p), off, st.Length)
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
			return 0, format.Errorf(format.ErrTruncated, "%d bytes at %d were asked for of %d computed ones", len(p), off, st.Length)
		}
		if err := st.Maker.MakeAt(ctx, s, p, off); err != nil {
			return 0, err
		}
		return len(p), nil
	case *format.EmptySegment, nil:
		if len(p) == 0 {
			return 0, nil
		}
		return 0, format.Errorf(format.ErrTruncated, "%d bytes at %d were asked for of a stream without any", len(p), off)
	}
	return 0, fmt.Errorf("internal error: a stream of type %T", st)
}

// SizeOf implements format.Sizer: a file is as long as it is.
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

// PlaceOf implements format.Locator: the store, the name and the version of the
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
	if c, ok := l.found.Store.(storage.Canonicalizer); ok {
		real, err := c.Canonical(ctx, name)
		if err != nil {
			return "", storageKind(err)
		}
		name = real
	}
	place := fmt.Sprintf("%p %s %s", l.found.Store, l.found.Info.Version, name)
	if seg, ok := st.(*format.Segment); ok {
		place += fmt.Sprintf(" %d %d", seg.Start, seg.Length)
	}
	return place, nil
}

func (s *source) inline(st *format.Inline, p []byte, off int64) (int, error) {
	if off < 0 || off > st.Size() || int64(len(p)) > st.Size()-off {
		return 0, format.Errorf(format.ErrTruncated, "%d bytes at %d were asked for of %d inline bytes", len(p), off, st.Size())
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
	n, err := sptReader{l.rd, s.progress}.ReadAt(ctx, p, off)
	return n, err
}

// Locate finds the file behind a stream that refers to one. What is not there
// matches format.ErrMissing.
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
		} else if ctx.Err() != nil { // says nothing of the file
			s.mu.Lock()
			delete(s.lookups, ref)
			s.mu.Unlock()
		}
	})
	return l
}

// locate tries the places where a reference may lead, in this order: beside
// _metadata for a relative one; where a mapping says; the absolute place
// itself; and, because snapshots are copied away from where they were written,
// the same file under the folder of the snapshot or of its job.
func (s *source) locate(ctx context.Context, ref reference) (Found, error) {
	if ref.relative {
		if !IsPlainName(ref.path) {
			return Found{}, format.Errorf(format.ErrUnsupported, "relative reference %q leads outside the snapshot and is not followed", ref.path)
		}
		name := route.Join(s.dir, ref.path)
		info, err := s.stat(ctx, s.store, name)
		if err != nil {
			return Found{}, missing(err, ref.path)
		}
		return Found{Store: s.store, Name: name, Info: info, URI: s.uri(name)}, nil
	}
	if to, ok := s.maps.Apply(ref.path); ok {
		return s.at(ctx, to)
	}
	found, err := s.at(ctx, ref.path)
	if !errors.Is(err, storage.ErrNotExist) && !errors.Is(err, storage.ErrUnsupported) {
		// It is there, or nobody knows: a store that is out of reach for a
		// moment, or forbidden, may well hold it.
		return found, err
	}
	for _, name := range s.fallbacks(ctx, ref.path) {
		if info, serr := s.stat(ctx, s.store, name); serr == nil {
			return Found{Store: s.store, Name: name, Info: info, URI: s.uri(name), Instead: ref.path}, nil
		}
	}
	return Found{}, err
}

func (s *source) at(ctx context.Context, uri string) (Found, error) {
	store, name, err := s.stores.Resolve(ctx, uri)
	if err != nil {
		return Found{}, missing(err, uri)
	}
	info, err := s.stat(ctx, store, name)
	if err != nil {
		return Found{}, missing(err, uri)
	}
	return Found{Store: store, Name: name, Info: info, URI: uri}, nil
}

// uri is the URI of an object in the store of the snapshot: what the user
// wrote to get at the snapshot, with the name of another object.
func (s *source) uri(name string) string {
	if s.dir == "" {
		return route.Join(s.location, name)
	}
	if prefix, ok := strings.CutSuffix(s.location, s.dir); ok {
		return prefix + name
	}
	return name
}

// fallbacks are the places of an absolute reference under the snapshot's own
// folder, its job's folder and the one that holds that: …/shared/X,
// …/taskowned/X, …/chk-N/X, X, and the changelog's dstl/JOB/dstl/X.
func (s *source) fallbacks(ctx context.Context, path string) []string {
	for part := range strings.SplitSeq(path, "/") {
		if part == ".." || strings.ContainsAny(part, "\\\x00") {
			return nil // Flink writes no such thing
		}
	}
	var all []string
	for _, dir := range s.homes(ctx) {
		for _, place := range fallbacksUnder(dir, path) {
			if !slices.Contains(all, place) {
				all = append(all, place)
			}
		}
	}
	return all
}

// homes are the names of the snapshot's folder: as the user named it, and the
// real one, for it may have been reached through a link, or as "." from inside,
// and then what lies above it in its name is not the folder of its job.
func (s *source) homes(ctx context.Context) []string {
	homes := []string{s.dir}
	if c, ok := s.store.(storage.Canonicalizer); ok {
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
	job, hasJob := route.Dir(dir), dir != "" && dir != "."
	if job == "" {
		job = "."
	}
	for _, sub := range []string{"/shared/", "/taskowned/"} {
		if i := strings.LastIndex(path, sub); i >= 0 {
			if !hasJob {
				return nil
			}
			return []string{route.Join(job, path[i+1:])}
		}
	}
	if i := strings.Index(path, "/dstl/"); i >= 0 {
		if !hasJob {
			return nil
		}
		return []string{route.Join(route.Dir(job), path[i+1:]), route.Join(job, path[i+1:])}
	}
	base := path[strings.LastIndexByte(path, '/')+1:]
	if !IsPlainName(base) {
		return nil
	}
	all := []string{route.Join(dir, base)}
	parent := path[:max(len(path)-len(base)-1, 0)]
	if p := parent[strings.LastIndexByte(parent, '/')+1:]; hasJob && strings.HasPrefix(p, "chk-") {
		all = append(all, route.Join(job, p+"/"+base))
	}
	return all
}

// listFrom is the number of files of one folder from which it is listed.
const listFrom = 8

// stat finds one file, by listing its folder once many of it are asked for.
func (s *source) stat(ctx context.Context, store storage.Storage, name string) (storage.Info, error) {
	dir := route.Dir(name)
	key := fmt.Sprintf("%p %s", store, dir)
	s.mu.Lock()
	f := s.folders[key]
	if f == nil {
		f = &folder{}
		s.folders[key] = f
	}
	s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked++; f.files == nil && f.asked == listFrom {
		if l, err := list(ctx, store, dir); err == nil {
			f.files = make(map[string]storage.Info, len(l.files))
			for _, i := range l.files {
				f.files[route.Base(i.Name)] = i
			}
		}
	}
	if f.files != nil {
		if info, ok := f.files[route.Base(name)]; ok {
			if info.Version == "" { // the list could not look at it
				return store.Stat(ctx, name)
			}
			info.Name = name
			return info, nil
		}
		return storage.Info{}, &storage.Error{Op: "stat", Name: name, Err: storage.ErrNotExist}
	}
	return store.Stat(ctx, name)
}

// missing makes what is not there, or not reachable, an ErrMissing.
func missing(err error, ref string) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if errors.Is(err, storage.ErrNotExist) {
		return &format.Error{Offset: -1, Msg: fmt.Sprintf("file %s is missing", quote(ref)), Err: errors.Join(format.ErrMissing, err)}
	}
	return &kinded{err, format.ErrMissing}
}

// IsPlainName is whether a relative reference is one bare name, which is all
// that Flink writes. Anything else could lead out of the snapshot.
func IsPlainName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.ContainsAny(name, "/\\\x00")
}

// OpenFile streams n bytes at off of the file that a stream refers to, for what
// does not belong into memory. io.EOF from it means that all of them came, from
// the version that was first seen.
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

// kindedBody makes the errors of a body match the kinds of package format too.
type kindedBody struct{ io.ReadCloser }

func (b kindedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	return n, storageKind(err)
}
