package orphans

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/reader"
)

// maxOutside bounds the references of one snapshot that are reported because they lead
// outside the roots.
const maxOutside = 3

// reading is what one snapshot refers to.
type reading struct {
	files    []*file
	missing  []string // names of files that are not where the snapshot refers to
	problems []Problem
}

// read opens every snapshot, several at a time, and records in the files of the tree
// which of them refer to each. It returns the names of missing files.
func (t *tree) read(ctx context.Context, o Options, own *owners) (problems []Problem, missing map[string]bool, err error) {
	missing = map[string]bool{}
	ropts := o.Reader
	for _, r := range t.roots {
		follow := r.path
		if _, ok := r.store.(ability.Canonicalizer); ok {
			follow = r.name
		}
		ropts.Follow = append(ropts.Follow[:len(ropts.Follow):len(ropts.Follow)], follow)
	}
	jobs := t.jobs(o)
	for from := 0; from < len(t.snapshots); from += jobs {
		some := t.snapshots[from:min(from+jobs, len(t.snapshots))]
		found := make([]reading, len(some))
		g, gctx := errgroup.WithContext(ctx)
		for i, e := range some {
			g.Go(func() error {
				var err error
				found[i], err = t.open(gctx, e, ropts)
				if o.Opened != nil {
					o.Opened(len(t.snapshots))
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, nil, err
		}
		for i, f := range found { // in order, so that the sets do not depend on timing
			for _, file := range append(f.files, some[i].dir.file(some[i].name)) {
				file.owners = own.add(file.owners, int32(from+i))
			}
			problems = append(problems, f.problems...)
			for _, name := range f.missing {
				missing[name] = true
			}
		}
	}
	return problems, missing, nil
}

// path is how the user can write where a snapshot is.
func (e entry) path() string {
	if e.name == reader.MetadataName {
		return e.dir.Path
	}
	return objpath.Join(e.dir.Path, e.name)
}

// open reads one snapshot. What cannot be read is a problem, and no error.
func (t *tree) open(ctx context.Context, e entry, o reader.Options) (reading, error) {
	unread := func(err error) (reading, error) {
		return reading{problems: []Problem{{Kind: Unread, Path: e.path(), Err: err}}}, ctx.Err()
	}
	snap, err := reader.Open(ctx, objpath.Join(e.dir.Path, e.name), &o)
	if err != nil {
		return unread(err)
	}
	s := &resolver{t: t, e: e, o: o, snap: snap, seen: map[string]bool{}, found: map[*file]bool{}}
	// That it did not change since it was listed is checked before anything is removed.
	if err := errors.Join(s.streams(ctx), snap.Close()); err != nil {
		return unread(err)
	}
	for f := range s.found {
		s.files = append(s.files, f)
	}
	if s.outside > maxOutside {
		s.problems = append(s.problems, Problem{Kind: Outside, Path: e.path(), Err: fmt.Errorf("%d more files outside: %w", s.outside-maxOutside, format.ErrOutside)})
	}
	return s.reading, nil
}

// resolver finds the files to which one snapshot refers.
type resolver struct {
	reading
	t       *tree
	e       entry
	o       reader.Options
	snap    *reader.Snapshot
	mu      sync.Mutex
	seen    map[string]bool
	found   map[*file]bool
	outside int
}

// lookups bounds the references that are looked for in the store at the same time.
const lookups = 16

func (s *resolver) streams(ctx context.Context) error {
	maps := format.Mappings(s.o.Map)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(lookups)
	err := s.snap.EachStream(func(_ format.Place, st format.Stream) error {
		path, relative, ok := format.Reference(st)
		if !ok {
			return nil
		}
		key := path.String()
		if relative {
			key = "./" + key
		}
		if s.seen[key] {
			return nil
		}
		s.seen[key] = true
		uri := path.String()
		if to, mapped := maps.Apply(uri); mapped && !relative {
			uri = to
		}
		if f := s.listed(ctx, uri, relative); f != nil {
			s.mu.Lock()
			s.found[f] = true
			s.mu.Unlock()
			return nil
		}
		g.Go(func() error { return s.locate(gctx, st, uri, relative) })
		return gctx.Err()
	})
	return errors.Join(g.Wait(), err)
}

// listed finds the file of a reference without asking the store: at the first location
// at which it is looked for.
func (s *resolver) listed(ctx context.Context, uri string, relative bool) *file {
	if relative {
		if !fileref.IsPlain(uri) {
			return nil
		}
		return s.e.dir.file(uri)
	}
	store, name, err := s.o.Stores.Resolve(ctx, uri)
	if err != nil {
		return nil
	}
	return s.t.find(store, name)
}

// locate finds the file of a reference that does not name a listed file as it is
// written: through a link, or because the snapshot was copied.
func (s *resolver) locate(ctx context.Context, st format.Stream, uri string, relative bool) error {
	found, err := s.snap.Locate(ctx, st)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var f *file
	inside, missing := false, errors.Is(err, format.ErrMissing)
	if found.Store != nil {
		name, cerr := canonical(ctx, found.Store, found.Name)
		if cerr != nil {
			return cerr
		}
		f, inside = s.t.find(found.Store, name), s.t.holds(found.Store, name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case f != nil:
		s.found[f] = true
		if err == nil {
			return nil
		}
	case err == nil && inside:
		return fmt.Errorf("file %s was not there when its directory was listed: %w", uri, format.ErrChanged)
	case err == nil:
		err = &reader.OutsideError{Reference: uri, Exists: true}
	case errors.Is(err, format.ErrChanged):
		return err
	case missing && (relative || s.inside(ctx, uri)):
		s.missing = append(s.missing, objpath.Base(uri))
		return nil
	}
	if s.outside++; s.outside <= maxOutside {
		s.problems = append(s.problems, Problem{Kind: Outside, Path: s.e.path(), File: uri, Err: err})
	}
	if missing {
		s.missing = append(s.missing, objpath.Base(uri))
	}
	return nil
}

// inside reports whether a URI names something below the roots.
func (s *resolver) inside(ctx context.Context, uri string) bool {
	store, name, err := s.o.Stores.Resolve(ctx, uri)
	if err != nil {
		return false
	}
	name, err = canonical(ctx, store, name)
	return err == nil && s.t.holds(store, name)
}
