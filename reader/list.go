package reader

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/route"
	"golang.org/x/sync/errgroup"
)

// Entry is a snapshot, or what is left of one, under a root.
type Entry struct {
	Path    string // as the user can give it to other commands
	State   EntryState
	Problem string // why it is not complete
	Reason  string // where Problem names a place in the snapshot, the same without it
	Time    time.Time

	// Of snapshots that could be opened:
	Container Container
	Kind      summary.Kind
	ID        int64
	Operators int
	Bytes     int64 // of state and description, as far as it is there
	Missing   int   // files
	// Newest marks the newest complete snapshot under its root.
	Newest bool

	displaced string // why and what to do, where it is that if it is complete
}

// EntryState says whether a snapshot can be used.
type EntryState string

// The states.
const (
	Complete   EntryState = "complete"
	Incomplete EntryState = "incomplete" // files are missing, or there is no _metadata yet
	Damaged    EntryState = "damaged"    // the description is broken
	Unreadable EntryState = "unreadable" // it may be whole: no permission, no answer of the disk or store, a version that is not known
	Leftover   EntryState = "leftover"   // of an interrupted writer; safe to delete
	Displaced  EntryState = "displaced"  // whole, and under a temporary name: a writer that replaced it was interrupted
)

// ListOptions for List.
type ListOptions struct {
	Options
	Depth int // folders below the root; 0: 8
	Jobs  int // snapshots opened at once; 0: 8
}

// List finds the snapshots under a root: folders with _metadata, chk-N and
// savepoint-… folders without, .spt files, and leftovers of interrupted
// writers. Newest first. It opens each description, and no state.
func List(ctx context.Context, root string, o ListOptions) ([]Entry, error) {
	if o.Depth == 0 {
		o.Depth = 8
	}
	if o.Jobs == 0 {
		o.Jobs = 8
	}
	store, name, err := o.Stores.Resolve(ctx, root)
	if err != nil {
		return nil, err
	}
	w := &lister{ctx: ctx, o: o, store: store}
	l, err := list(ctx, store, route.Clean(name))
	if err != nil || len(l.files)+len(l.folders) == 0 {
		// A root that is a snapshot's file, or nothing.
		if isSnapshotName(name) {
			if _, serr := store.Stat(ctx, name); serr == nil {
				w.entries = []Entry{{Path: root}}
				return w.finish()
			}
		}
		if _, serr := store.Stat(ctx, name); serr == nil {
			return nil, hint(refuse(root, "it is a file"), "ls looks below folders: give the one that it lies in")
		}
		if err == nil && !isFolder(ctx, store, route.Clean(name)) {
			err = &storage.Error{Op: "list", Name: root, Err: storage.ErrNotExist}
		}
		if err != nil {
			return nil, storageKind(err)
		}
	}
	if err := w.folder(route.Clean(root), route.Clean(name), l, 0); err != nil {
		return nil, storageKind(err)
	}
	return w.finish()
}

type lister struct {
	ctx     context.Context
	o       ListOptions
	store   storage.Storage
	entries []Entry
}

// folder collects what is in a folder. path is as the user wrote it, name the
// store's.
func (w *lister) folder(path, name string, l listing, depth int) error {
	for _, f := range l.files {
		base := route.Base(f.Name)
		switch {
		case storage.IsTemp(base):
			w.leftover(route.Join(path, base), f.Name, f.ModTime)
		case strings.HasSuffix(base, Extension):
			w.entries = append(w.entries, Entry{Path: route.Join(path, base), Time: f.ModTime})
		}
	}
	if i := slices.IndexFunc(l.files, isMetadata); i >= 0 {
		w.entries = append(w.entries, Entry{Path: path, Time: l.files[i].ModTime})
		return nil // nothing but state files is below a snapshot
	}
	base := route.Base(name)
	if n := checkpointNumber(name); n >= 0 || strings.HasPrefix(base, "savepoint-") && depth > 0 {
		e := Entry{Path: path, State: Incomplete, Problem: "it has no _metadata", ID: max(n, 0)}
		for _, f := range l.files {
			if f.ModTime.After(e.Time) {
				e.Time = f.ModTime
			}
		}
		w.entries = append(w.entries, e)
	}
	for _, sub := range l.folders {
		if base, aside := storage.IsAside(sub); aside {
			e := Entry{Path: route.Join(path, sub)}
			if slices.ContainsFunc(l.folders, func(f string) bool { return storage.AsideOf(sub, f) }) {
				w.leftover(e.Path, route.Join(name, sub), time.Time{})
				continue
			}
			e.displaced = fmt.Sprintf("%s is missing, a run that replaced it was interrupted; %s", quote(route.Join(path, base)), renameBack(e.Path, route.Join(path, base)))
			w.entries = append(w.entries, e)
			continue
		}
		if storage.IsTemp(sub) {
			w.leftover(route.Join(path, sub), route.Join(name, sub), time.Time{})
			continue
		}
		if sub == "shared" || sub == "taskowned" || depth+1 >= w.o.Depth {
			continue
		}
		below, err := list(w.ctx, w.store, route.Join(name, sub))
		if err != nil {
			if w.ctx.Err() != nil {
				return err
			}
			e := Entry{Path: route.Join(path, sub), State: Unreadable, Problem: err.Error()}
			if errors.Is(err, storage.ErrPermission) {
				e.Problem = "no permission to look into it"
			}
			w.entries = append(w.entries, e)
			continue
		}
		if err := w.folder(route.Join(path, sub), route.Join(name, sub), below, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// leftover adds one, with its age and size where the store can tell.
func (w *lister) leftover(path, name string, modified time.Time) {
	e := Entry{Path: path, State: Leftover, Problem: "of a writer that was interrupted", Time: modified}
	if c, ok := w.store.(storage.Cleaner); ok {
		if l, err := c.Leftover(w.ctx, name); err == nil {
			e.Time, e.Bytes = l.ModTime, l.Bytes
			switch {
			case l.InUse:
				e.Problem = "of a writer that is running"
			case l.Foreign != "":
				e.Problem = "it has the name of one, but " + l.Foreign
			}
		}
	}
	w.entries = append(w.entries, e)
}

func isMetadata(f storage.Info) bool { return route.Base(f.Name) == MetadataName }

// finish opens what was found, sorts it and marks the newest.
func (w *lister) finish() ([]Entry, error) {
	g, ctx := errgroup.WithContext(w.ctx)
	g.SetLimit(w.o.Jobs)
	for i := range w.entries {
		e := &w.entries[i]
		if e.State != "" {
			continue
		}
		g.Go(func() error { return e.open(ctx, w.o.Options) })
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortStableFunc(w.entries, func(a, b Entry) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(b.ID, a.ID), cmp.Compare(a.Path, b.Path))
	})
	for i := range w.entries {
		if w.entries[i].State == Complete {
			w.entries[i].Newest = true
			break
		}
	}
	return w.entries, nil
}

// open fills in what the description says. Only a context that is over is an
// error.
func (e *Entry) open(ctx context.Context, o Options) error {
	snap, err := Open(ctx, e.Path, o)
	if err != nil {
		e.fail(err)
		return ctx.Err()
	}
	defer snap.Close() //nolint:errcheck // what was found in it is checked by Unchanged
	e.Container, e.ID, e.Operators = snap.Container, snap.ID, len(snap.Operators)
	e.Time = snap.Container.ModTime
	s, err := summary.Of(ctx, snap.Savepoint)
	if err != nil {
		e.fail(err)
		return ctx.Err()
	}
	e.Kind = s.Kind
	files, err := snap.Files(ctx, s.Files)
	if err != nil {
		return err
	}
	e.Bytes = e.Container.Size
	wrong := 0
	for _, f := range files {
		if f.Missing() {
			e.Missing++
		} else {
			e.Bytes += f.Bytes
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
		e.State, e.Problem = Damaged, plural(wrong, "file")+" not as long as promised"
	}
	if e.displaced != "" && e.State == Complete {
		e.State, e.Problem = Displaced, e.displaced
	}
	if err := snap.Unchanged(ctx); err != nil {
		e.State, e.Problem = Damaged, format.ErrChanged.Error()
	}
	return ctx.Err()
}

// fail notes why a description could not be read. What a store says is not the
// fault of the description.
func (e *Entry) fail(err error) {
	e.State, e.Problem, e.Reason = Damaged, err.Error(), err.Error()
	var at *format.Error
	if errors.As(err, &at) {
		e.Reason = (&format.Error{Offset: -1, Msg: at.Msg, Err: at.Err}).Error()
	}
	var of *storage.Error
	broken := errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrChanged)
	if !broken && (errors.As(err, &of) || errors.Is(err, format.ErrUnsupported)) {
		e.State = Unreadable
	}
}
