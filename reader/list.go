package reader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// Entry is a snapshot, or the remains of one, under a root.
type Entry struct {
	Path    string // as other functions and commands accept it
	State   EntryState
	Problem string // why it is not complete; "" if it is
	Reason  string // Problem without the location in the snapshot, if it has one
	Time    time.Time

	// Set for snapshots that could be opened:
	Container Container
	Kind      summary.Kind
	ID        int64
	Operators int
	Bytes     int64 // of state and description that exist
	Missing   int   // files
	// NotChecked counts the files whose lookup failed, and Outside the files outside
	// the snapshot and its checkpoint root.
	NotChecked, Outside int
	// NotLooked is set if no file was looked for, see ListOptions.Files: NotChecked
	// counts them all, and Bytes is what the description records.
	NotLooked bool
	// Real is Path with all links resolved: entries with equal Real are the same
	// snapshot.
	Real string
	// Newest marks the newest snapshot under its root that is complete, or complete as
	// far as its description shows (NotLooked).
	Newest bool

	displaced string // the snapshot is complete, but Flink cannot restore it: why, and what to do
}

// EntryState is the usability of a snapshot.
type EntryState string

// The states.
const (
	Complete   EntryState = "complete"
	Incomplete EntryState = "incomplete" // files are missing, or _metadata does not exist yet
	Unchecked  EntryState = "unchecked"  // complete as far as checked; some files could not be looked up, or none was (NotLooked)
	Damaged    EntryState = "damaged"    // the description is broken
	Unreadable EntryState = "unreadable" // possibly complete: no permission, no answer from the disk or store, an unknown version, or over a limit
	Leftover   EntryState = "leftover"   // left by an interrupted writer; safe to delete
	Displaced  EntryState = "displaced"  // complete, under a temporary name: a writer that replaced it was interrupted
)

// ListOptions for List.
type ListOptions struct {
	Options
	Depth int // directories below the root; 0: 8
	Jobs  int // snapshots opened at once; 0: 8, and 16 in a remote store
	// Files makes List look for the files of snapshots in a remote store too,
	// which takes at least a request for each directory that a snapshot refers to. In
	// the local file system they are always looked for.
	Files bool
	// Opened is called after each of total snapshots was opened, from several
	// goroutines; total is 0 as long as it is not known. It may be nil.
	Opened func(total int)
}

func (o *ListOptions) opened(total int) {
	if o.Opened != nil {
		o.Opened(total)
	}
}

// List returns the snapshots under a root, newest first: directories with
// _metadata, chk-N and savepoint-… directories without, .spt files, and leftovers
// of interrupted writers. It opens each description, and no state. What cannot be
// read is an entry too.
//
// In a store without directories it takes one list request per 1,000 directories, and
// reads the _metadata of each directory. Only a directory without _metadata is listed.
//
// Links to directories are followed. A snapshot reached by several names is
// listed once, under its own name if that is below the root.
func List(ctx context.Context, root string, o ListOptions) ([]Entry, error) {
	o.Options = o.Options.orDefault()
	if o.Depth < 0 || o.Jobs < 0 {
		return nil, fmt.Errorf("depth %d and %d jobs: expected 0 or more: %w", o.Depth, o.Jobs, format.ErrUnsupported)
	}
	if o.Depth == 0 {
		o.Depth = 8
	}
	root = objpath.WithoutEntropy(root)
	store, name, err := o.Stores.Resolve(ctx, root)
	if err != nil {
		return nil, err
	}
	if o.Jobs == 0 {
		o.Jobs = 8
		if !ability.Near(store) {
			o.Jobs = parallelLookups
		}
	}
	w := &lister{ctx: ctx, o: o, store: store, seen: map[string]bool{}}
	l, err := list(ctx, store, objpath.Clean(name))
	if err != nil || len(l.files)+len(l.directories) == 0 {
		// The root is a snapshot's file, or does not exist.
		if isSnapshotName(name) {
			if _, serr := store.Stat(ctx, name); serr == nil {
				real, err := w.real(name)
				if err != nil {
					return nil, storageKind(err)
				}
				w.entries = []Entry{{Path: root, Real: real}}
				return w.finish()
			}
		}
		if errors.Is(err, storage.ErrUnsupported) {
			return nil, storageKind(err) // a web server
		}
		if _, serr := store.Stat(ctx, name); serr == nil {
			return nil, advise(refuse(root, "it is a file"), "directories are searched: give the one that holds it")
		}
		if err == nil && !isDirectory(ctx, store, objpath.Clean(name)) {
			err = &storage.Error{Op: "list", Name: root, Err: storage.ErrNotExist}
		}
		if err != nil {
			return nil, storageKind(err)
		}
	}
	top := location{objpath.Clean(root), objpath.Clean(name), "", 0}
	if top.real, err = w.real(top.name); err != nil {
		return nil, storageKind(err)
	}
	w.seen[top.real] = true
	if ability.Flat(store) {
		err = w.flat(top, l)
	} else {
		err = w.directory(top, l)
	}
	if err != nil {
		return nil, storageKind(err)
	}
	// The target of a link may be listed already, or be below another link too.
	for len(w.links) > 0 {
		link := w.links[0]
		w.links = w.links[1:]
		if w.seen[link.real] {
			continue
		}
		if err := w.enter(link); err != nil {
			return nil, storageKind(err)
		}
	}
	return w.finish()
}

type lister struct {
	ctx     context.Context
	o       ListOptions
	store   storage.Storage
	entries []Entry
	seen    map[string]bool // real names already listed
	links   []location      // followed after everything else is listed
	flatten bool            // directories are added to below instead of being listed
	below   []location
}

// location is a directory or a file below the root.
type location struct {
	path  string // as the user would write it
	name  string // in the store
	real  string // with links resolved
	depth int
}

func (p location) join(sub string) location {
	return location{path: objpath.Join(p.path, sub), name: objpath.Join(p.name, sub), real: objpath.Join(p.real, sub), depth: p.depth + 1}
}

// real returns the name of an object or a directory with links resolved.
func (w *lister) real(name string) (string, error) {
	c, ok := w.store.(ability.Canonicalizer)
	if !ok {
		return name, nil
	}
	if name == "" {
		name = "."
	}
	return c.Canonical(w.ctx, name)
}

// resolve reports whether something below a directory is a link, and sets its
// target.
func (w *lister) resolve(p *location) (link bool, err error) {
	here := p.real
	p.real, err = w.real(p.name)
	return p.real != here && err == nil && isCanonical(w.store), err
}

func isCanonical(s storage.Storage) bool {
	_, ok := s.(ability.Canonicalizer)
	return ok
}

// enter lists a directory below the root.
func (w *lister) enter(p location) error {
	w.seen[p.real] = true
	below, err := list(w.ctx, w.store, p.name)
	if err != nil {
		if w.ctx.Err() != nil {
			return err
		}
		w.unreadable(p, err)
		return nil
	}
	return w.directory(p, below)
}

// flat collects the entries of a directory of a store without directories, and of
// those below it, level by level. What it reads of a snapshot is opened at once, so
// that it need not be kept.
func (w *lister) flat(top location, l listing) error {
	type visit struct {
		at      location
		l       listing
		err     error
		entries []Entry
		below   []location
	}
	level := []*visit{{at: top, l: l}}
	for first := true; len(level) > 0; first = false {
		g, ctx := errgroup.WithContext(w.ctx)
		g.SetLimit(w.o.Jobs)
		for _, v := range level {
			g.Go(func() error {
				one := &lister{ctx: ctx, o: w.o, store: w.store, seen: map[string]bool{}, flatten: true}
				if !first {
					if !isJobID(objpath.Base(v.at.name)) { // which holds checkpoints and no _metadata
						if e, ok := one.probe(v.at); ok {
							v.entries = []Entry{e}
							return ctx.Err()
						}
					}
					if v.l, v.err = list(ctx, w.store, v.at.name); v.err != nil {
						one.unreadable(v.at, v.err)
						v.entries = one.entries
						return ctx.Err()
					}
				}
				if err := one.directory(v.at, v.l); err != nil {
					return err
				}
				v.entries, v.below, v.l = one.entries, one.below, listing{}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return err
		}
		var next []*visit
		for _, v := range level {
			w.entries = append(w.entries, v.entries...)
			for _, at := range v.below {
				next = append(next, &visit{at: at})
			}
		}
		level = next
	}
	return nil
}

// probe opens the snapshot of a directory. ok is false if the directory has no
// _metadata.
func (w *lister) probe(at location) (e Entry, ok bool) {
	f := &found{store: w.store, location: at.path}
	err := f.probe(w.ctx, at.name)
	if f.rd == nil && errors.Is(err, storage.ErrNotExist) {
		return e, false
	}
	e = Entry{Path: at.path, Real: at.real, Time: f.info.ModTime}
	if err != nil {
		e.fail(err)
		return e, true
	}
	snap, err := f.open(w.ctx, w.o.Options, false)
	if err != nil {
		e.fail(err)
		return e, true
	}
	defer snap.Close() //nolint:errcheck // an object of a store is not mapped
	e.describe(w.ctx, snap, w.o.Files)
	w.o.opened(0)
	return e, true
}

// unreadable adds an entry for a directory that cannot be listed.
func (w *lister) unreadable(p location, err error) {
	e := Entry{Path: p.path, Real: p.real, State: Unreadable, Problem: err.Error()}
	if errors.Is(err, storage.ErrPermission) {
		e.Problem = "no permission to look into it"
	}
	w.entries = append(w.entries, e)
}

// directory collects the entries of a directory.
func (w *lister) directory(p location, l listing) error {
	for _, f := range l.files {
		base := objpath.Base(f.Name)
		at := p.join(base)
		switch {
		case tempname.Is(base):
			w.leftover(at, f.Name, f.ModTime)
		case strings.HasSuffix(base, Extension):
			if real, err := w.real(at.name); err == nil {
				at.real = real
			} else if w.ctx.Err() != nil {
				return err
			}
			w.entries = append(w.entries, Entry{Path: at.path, Real: at.real, Time: f.ModTime})
		}
	}
	if i := slices.IndexFunc(l.files, isMetadata); i >= 0 {
		w.entries = append(w.entries, Entry{Path: p.path, Real: p.real, Time: l.files[i].ModTime})
		return nil // nothing but state files is below a snapshot
	}
	for _, f := range l.files {
		if f.Version != "" || strings.HasSuffix(f.Name, Extension) {
			continue
		}
		// Listing does not resolve it: it may be a link to a directory.
		if _, err := w.store.Stat(w.ctx, f.Name); errors.Is(err, storage.ErrPermission) {
			w.unreadable(p.join(objpath.Base(f.Name)), err)
		}
	}
	base := objpath.Base(p.name)
	if n := checkpointNumber(p.name); n >= 0 || strings.HasPrefix(base, "savepoint-") && p.depth > 0 {
		e := Entry{Path: p.path, Real: p.real, State: Incomplete, Problem: "it has no _metadata", ID: max(n, 0)}
		for _, f := range l.files {
			if f.ModTime.After(e.Time) {
				e.Time = f.ModTime
			}
		}
		w.entries = append(w.entries, e)
	}
	for _, sub := range l.directories {
		at := p.join(sub)
		if base, aside := tempname.IsAside(sub); aside {
			e := Entry{Path: at.path, Real: at.real}
			if slices.ContainsFunc(l.directories, func(f string) bool { return tempname.AsideOf(sub, f) }) {
				w.leftover(at, at.name, time.Time{})
				continue
			}
			e.displaced = fmt.Sprintf("%s is missing, a run that replaced it was interrupted; %s", quote(p.join(base).path), renameBack(e.Path, p.join(base).path))
			w.entries = append(w.entries, e)
			continue
		}
		if tempname.Is(sub) {
			w.leftover(at, at.name, time.Time{})
			continue
		}
		if sub == "shared" || sub == "taskowned" || at.depth >= w.o.Depth {
			continue
		}
		if w.flatten {
			w.below = append(w.below, at)
			continue
		}
		link, err := w.resolve(&at)
		switch {
		case w.ctx.Err() != nil:
			return w.ctx.Err()
		case err != nil:
			w.unreadable(at, err)
		case link:
			w.links = append(w.links, at)
		case !w.seen[at.real]:
			if err := w.enter(at); err != nil {
				return err
			}
		}
	}
	return nil
}

// leftover adds a leftover, with its age and size if the store knows them.
func (w *lister) leftover(at location, name string, modified time.Time) {
	e := Entry{Path: at.path, Real: at.real, State: Leftover, Problem: "left by a writer that was interrupted", Time: modified}
	if c, ok := w.store.(ability.Cleaner); ok {
		if l, err := c.Leftover(w.ctx, name); err == nil {
			e.Time, e.Bytes = l.ModTime, l.Bytes
			switch {
			case l.InUse:
				e.Problem = "in use by a writer that is running"
			case l.Foreign != "":
				e.Problem = "it has the name of a leftover, but " + l.Foreign
			}
		}
	}
	w.entries = append(w.entries, e)
}

func isMetadata(f storage.Info) bool { return objpath.Base(f.Name) == MetadataName }

// once drops duplicates of snapshots found under several names: an .spt file and
// links to it. Its own name is kept, else the first.
func (w *lister) once() {
	own := map[string]int{} // index of the entry to keep
	for i, e := range w.entries {
		if k, known := own[e.Real]; !known || objpath.Base(w.entries[k].Path) != objpath.Base(e.Real) && objpath.Base(e.Path) == objpath.Base(e.Real) {
			own[e.Real] = i
		}
	}
	i := -1
	w.entries = slices.DeleteFunc(w.entries, func(e Entry) bool {
		i++
		return own[e.Real] != i
	})
}

// finish opens what was found, sorts it and marks the newest.
func (w *lister) finish() ([]Entry, error) {
	w.once()
	g, ctx := errgroup.WithContext(w.ctx)
	g.SetLimit(w.o.Jobs)
	total := 0
	for i := range w.entries {
		if w.entries[i].State == "" {
			total++
		}
	}
	for i := range w.entries {
		e := &w.entries[i]
		if e.State != "" {
			continue
		}
		g.Go(func() error {
			err := e.open(ctx, w.o)
			w.o.opened(total)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(w.entries, func(a, b Entry) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID), cmp.Compare(a.Path, b.Path))
	})
	for i := range w.entries {
		if e := &w.entries[i]; e.State == Complete || e.State == Unchecked && e.NotLooked {
			e.Newest = true
			break
		}
	}
	return w.entries, nil
}

// open opens the snapshot and fills in the entry. The only error is a context
// that ended.
func (e *Entry) open(ctx context.Context, o ListOptions) error {
	snap, err := open(ctx, e.Path, o.Options)
	if err != nil {
		e.fail(err)
		return ctx.Err()
	}
	defer snap.Close() //nolint:errcheck // Unchanged is checked before
	e.describe(ctx, snap, o.Files)
	return ctx.Err()
}

// describe fills in the entry of an open snapshot.
func (e *Entry) describe(ctx context.Context, snap *Snapshot, lookup bool) {
	e.Container, e.ID, e.Operators = snap.Container, snap.ID, len(snap.Operators)
	e.Time = snap.Container.ModTime
	s, err := summary.Of(ctx, snap.Savepoint)
	if err != nil {
		e.fail(err)
		return
	}
	e.Kind = s.Kind
	if snap.Remote() && !lookup && len(s.Files) > 0 {
		e.State, e.NotLooked, e.NotChecked, e.Bytes = Unchecked, true, len(s.Files), e.Container.Size
		for _, f := range s.Files {
			e.Bytes += f.Bytes
		}
		e.Problem = plural(e.NotChecked, "file") + " not looked for"
		return
	}
	files, err := snap.Files(ctx, s.Files)
	if err != nil {
		e.fail(err)
		return
	}
	e.Bytes = e.Container.Size
	wrong, unknown := 0, 0
	for _, f := range files {
		switch f.Status() {
		case FileMissing:
			e.Missing++
		case FileNotChecked:
			e.NotChecked++
		case FileRefused:
			e.Outside++
		}
		if f.There() {
			e.Bytes += f.Bytes
		} else if !f.Missing() {
			unknown++
		}
		if f.Wrong != "" {
			wrong++
		}
	}
	e.State = Complete
	switch {
	case e.Missing > 0:
		e.State, e.Problem = Incomplete, plural(e.Missing, "file")+" missing"
	case wrong > 0:
		e.State, e.Problem = Damaged, plural(wrong, "file")+" not of the recorded length"
	case unknown > 0:
		e.State, e.Problem = Unchecked, plural(unknown, "file")+" not checked"
	}
	if e.displaced != "" && e.State == Complete {
		e.State, e.Problem = Displaced, e.displaced
	}
	if err := snap.Unchanged(ctx); err != nil {
		e.State, e.Problem = Damaged, format.ErrChanged.Error()
	}
}

// fail records why a description could not be read. Errors of the store do not
// make it corrupt.
func (e *Entry) fail(err error) {
	e.State, e.Problem, e.Reason = Damaged, err.Error(), err.Error()
	var at *format.Error
	if errors.As(err, &at) {
		e.Reason = (&format.Error{Offset: -1, Msg: at.Msg, Err: at.Err}).Error()
	}
	var of *storage.Error
	broken := errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrChanged)
	if !broken && (errors.As(err, &of) || errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrLimit)) {
		e.State = Unreadable
	}
}
