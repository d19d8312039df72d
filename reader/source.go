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
	Name  string // in Store
	URI   string // by which a Resolver finds Store and Name
	Info  storage.Info
	// Instead is the reference itself, if there is no file at it and the file was
	// found here: it was copied with its snapshot. "" if the reference is right, or a
	// mapping led here.
	Instead string
}

// source reads streams of one snapshot. References are looked up once.
type source struct {
	stores    storage.Resolver
	store     storage.Storage // that holds the snapshot
	dir       string          // of the snapshot, in store
	location  string          // of the snapshot's directory, as the user wrote it
	version   storage.Version // of the file that describes it
	maps      format.Mappings // longest first
	follow    []string        // see Options
	areas     *areas          // that are read
	away      *OutsideError   // where _metadata leads, if that is outside
	file      *spt.File       // for an .spt
	maxValue  int64           // of the .spt files
	operators opstate.Codec
	ropes     ropes
	sched     *ranged.Scheduler
	progress  progress // of bytes that were read
	mu        sync.Mutex
	lookups   map[reference]*lookup
	folders   map[string]*directory
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
	rd    *ranged.Reader
	err   error
}

// directory remembers how many files of a directory were asked for; many are listed
// at once instead of one by one.
type directory struct {
	mu    sync.Mutex
	asked int
	files map[string]storage.Info // nil: not listed
}

func newSource(f *found, o Options, file *spt.File) *source {
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
		sched: ranged.NewScheduler(), progress: o.Progress, lookups: map[reference]*lookup{}, folders: map[string]*directory{},
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
		} else if ctx.Err() != nil { // says nothing of the file
			s.mu.Lock()
			delete(s.lookups, ref)
			s.mu.Unlock()
		}
	})
	return l
}

// locate tries the locations to which a reference may lead, in this order: next to
// _metadata for a relative one; where a mapping says; the absolute location
// itself; and, because snapshots are copied away from where they were written,
// the same file under the directory of the snapshot or of its job. Wherever it is
// found, it must be in a directory that is read: see look.
func (s *source) locate(ctx context.Context, ref reference) (Found, error) {
	if ref.relative {
		return s.besideMetadata(ctx, ref.path)
	}
	if to, ok := s.maps.Apply(ref.path); ok {
		return s.at(ctx, ref.path, to)
	}
	found, err := s.at(ctx, ref.path, ref.path)
	var unchecked *NotCheckedError
	var outside *OutsideError
	elsewhere := errors.Is(err, format.ErrMissing) || errors.As(err, &unchecked) && unchecked.Scheme != "" || errors.As(err, &outside) && !outside.Exists
	if !elsewhere {
		// It is there, or the lookup failed: a store that is unavailable for a
		// moment, or that denies permission, may well hold it. Nor does anything
		// replace a file that is there and is not read.
		return found, err
	}
	for _, name := range s.fallbacks(ctx, ref.path) {
		found, ferr := s.look(ctx, ref.path, s.store, name, s.localURI(name))
		switch {
		case ferr == nil:
			found.Instead, found.URI = ref.path, s.uri(name)
			return found, nil
		case errors.Is(ferr, format.ErrOutside): // there is a link that leads away
			found.Instead, found.URI = ref.path, s.uri(name)
			return found, ferr
		}
	}
	return Found{}, err
}

// besideMetadata finds the file of a relative reference. Flink writes bare names;
// it resolves any other against the directory of the snapshot, so that one can lead
// anywhere: such a reference is followed only where the user allows it.
func (s *source) besideMetadata(ctx context.Context, path string) (Found, error) {
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
	if errors.As(err, &gone) && errors.Is(err, format.ErrMissing) { // by the name that the snapshot has
		err = absent(gone.Err, path)
	}
	return found, err
}

// MapRelative returns where a mapping leads the relative reference name: one of
// the directory of the snapshot, which "." stands for. Locate follows those of
// Options where the file is not next to _metadata.
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

// spellings are the ways in which a mapping may name a file next to _metadata.
func (s *source) spellings(ctx context.Context, path string) []string {
	all := []string{"./" + path, s.uri(objpath.Join(s.dir, path))}
	for _, home := range s.homes(ctx) {
		all = append(all, s.localURI(objpath.Join(home, path)))
	}
	return all
}

// climb resolves a relative reference that is not a bare name, if it is allowed.
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
	unsafe.Leads, unsafe.Follow = at.uri(), folderOf(at)
	if !s.areas.follows(ctx, s, at) {
		return "", unsafe
	}
	return name, nil
}

// at finds the object of a URI, to which the reference ref leads.
func (s *source) at(ctx context.Context, ref, uri string) (Found, error) {
	store, name, err := s.stores.Resolve(ctx, uri)
	if err != nil {
		if ctx.Err() != nil {
			return Found{}, err
		}
		scheme := ""
		if errors.Is(err, storage.ErrUnsupported) {
			scheme, _ = objpath.Split(uri)
		}
		return Found{}, &NotCheckedError{Reference: uri, Scheme: scheme, Err: err}
	}
	return s.look(ctx, ref, store, name, uri)
}

// localURI is uri without the authority of a file: URI by which the user named
// the snapshot.
func (s *source) localURI(name string) string {
	if uri := s.uri(name); objpath.Host(uri) == "" {
		return uri
	}
	return name
}

// uri is the URI of an object in the store of the snapshot: what the user
// wrote to get at the snapshot, with the name of another object.
func (s *source) uri(name string) string {
	if s.dir == "" {
		return objpath.Join(s.location, name)
	}
	if prefix, ok := strings.CutSuffix(s.location, s.dir); ok {
		return prefix + name
	}
	return name
}

// fallbacks are the locations of an absolute reference under the snapshot's own
// directory, its job's directory and the one that holds that: …/shared/X,
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

// homes are the names of the snapshot's directory: as the user named it, and the
// real one, because it may have been reached through a link, or as "." from inside,
// and then what lies above it in its name is not the directory of its job.
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
	job, hasJob := objpath.Dir(dir), dir != "" && dir != "."
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

// listFrom is the number of files of one directory from which it is listed.
const listFrom = 8

// stat finds one file, by listing its directory once many of it are asked for.
func (s *source) stat(ctx context.Context, store storage.Storage, name string) (storage.Info, error) {
	dir := objpath.Dir(name)
	key := fmt.Sprintf("%p %s", store, dir)
	s.mu.Lock()
	f := s.folders[key]
	if f == nil {
		f = &directory{}
		s.folders[key] = f
	}
	s.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.asked++; f.files == nil && f.asked == listFrom {
		if l, err := list(ctx, store, dir); err == nil {
			f.files = make(map[string]storage.Info, len(l.files))
			for _, i := range l.files {
				f.files[objpath.Base(i.Name)] = i
			}
		}
	}
	if f.files != nil {
		if info, ok := f.files[objpath.Base(name)]; ok {
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

// absent says what the error of a store means for a reference: what does not
// exist, or is not a file, is missing; of anything else nobody knows whether it is
// there.
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

// OpenFile streams n bytes at off of the file that a stream refers to, which need not
// fit into memory. io.EOF from it means that all of them came, from
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
