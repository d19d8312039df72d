package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// This file renames the new directory to the target, also where that exists.
//
// A directory that is replaced is exchanged with the new one in one step. Where the
// system has no such call it is moved aside first, under tempname.Aside: a
// run that is killed between the two renames leaves no target, and a name from
// which reader.Open, reader.List and the next run tell what happened.

// AsideError is a snapshot that was to be replaced and could not get its name
// back.
type AsideError struct {
	Target, At string
	Err        error
}

func (e *AsideError) Error() string {
	return fmt.Sprintf("the snapshot that was to be replaced is under %s now: %v", quote(e.At), e.Err)
}

func (e *AsideError) Unwrap() error { return e.Err }

// Hint says how to get it back.
func (e *AsideError) Hint() string {
	if errors.Is(e.Err, storage.ErrExist) {
		return fmt.Sprintf("it is whole; look at it and at what is under %s, and keep the right one", quote(e.Target))
	}
	return fmt.Sprintf("it is whole: rename it back:  mv %s %s", shell.Quote(e.At), shell.Quote(e.Target))
}

// reveal renames the directory to the target.
func (w *flinkWrite) reveal(ctx context.Context) error {
	if w.mover == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	p := w.plan
	if err := w.present(ctx); err != nil {
		return err
	}
	if p.Replaces {
		if err := w.hold(ctx, p.name, false); err != nil && !errors.Is(err, storage.ErrNotExist) {
			return err // under its other name it must be no leftover either
		}
	}
	ctx = context.WithoutCancel(ctx) // from here on it is done or undone
	if !p.Replaces {
		return p.exists(w.mover.Move(ctx, w.folder, p.name))
	}
	if err := p.sameOld(ctx, p.name); err != nil {
		return err
	}
	err := w.mover.Exchange(ctx, w.folder, p.name)
	if errors.Is(err, storage.ErrUnsupported) {
		return w.moveAside(ctx)
	}
	old := w.folder
	if err == nil {
		err = p.sameOld(ctx, old)
	} else if p.sameOld(ctx, p.name) == nil {
		return err // nothing was exchanged
	}
	if err != nil {
		// What is under the temporary name now is not ours.
		if back := w.mover.Exchange(ctx, old, p.name); back != nil && p.sameOld(ctx, p.name) != nil {
			w.folder = ""
			return errors.Join(err, &AsideError{p.name, old, back})
		}
		return err
	}
	w.folder = "" // it is the target: not to be undone
	return w.removeOld(ctx, old)
}

// present makes sure that the new directory holds what was written into it, and
// nothing else: a store makes a directory again that others remove meanwhile, and
// what was in it is gone.
func (w *flinkWrite) present(ctx context.Context) error {
	n := 0
	for info, err := range w.plan.store.List(ctx, w.folder+"/", "/") {
		if err != nil {
			return err
		}
		switch size, ours := w.sizes[info.Name]; {
		case !ours:
			return &TargetError{w.plan.Target, fmt.Sprintf("someone else wrote %s meanwhile", quote(info.Name)), finding.Words("nothing was replaced; look at it, then try again")}
		case size != info.Size:
			return &TargetError{w.plan.Target, fmt.Sprintf("someone else changed %s meanwhile: it has %d bytes, %d were written", quote(info.Name), info.Size, size), finding.Words("nothing was replaced; try again")}
		}
		n++
	}
	if n < len(w.sizes) {
		return &TargetError{w.plan.Target, fmt.Sprintf("%d of %d files that were written are gone: someone removed the folder meanwhile", len(w.sizes)-n, len(w.sizes)), finding.Words("nothing was replaced; try again")}
	}
	return nil
}

// moveAside replaces in two steps.
func (w *flinkWrite) moveAside(ctx context.Context) error {
	p := w.plan
	old := tempname.Aside(p.name)
	err := w.mover.Move(ctx, p.name, old)
	if err == nil {
		err = p.sameOld(ctx, old)
	}
	if err == nil {
		err = p.exists(w.mover.Move(ctx, w.folder, p.name))
	}
	if err != nil {
		return errors.Join(err, w.putBack(ctx, old))
	}
	w.folder = ""
	return w.removeOld(ctx, old)
}

// putBack renames the snapshot that was to be replaced to the target again, unless
// it has that name: a rename that failed may have been done nevertheless.
func (w *flinkWrite) putBack(ctx context.Context, old string) error {
	err := w.mover.Move(ctx, old, w.plan.name)
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	if err != nil {
		return &AsideError{w.plan.name, old, err}
	}
	return nil
}

// removeOld removes the snapshot that was replaced: its files, _metadata first so
// that the rest is never taken for a snapshot, and nothing else.
func (w *flinkWrite) removeOld(ctx context.Context, old string) error {
	p := w.plan
	const done = "the new snapshot is in place, the old one could not be removed: %w"
	if err := p.store.Delete(ctx, objpath.Join(old, reader.MetadataName)); err != nil {
		return fmt.Errorf(done, err)
	}
	var names []string
	for name := range p.old {
		names = append(names, objpath.Join(old, name))
	}
	slices.Sort(names)
	if err := p.store.Delete(ctx, names...); err != nil {
		return fmt.Errorf(done, err)
	}
	err := w.remover.RemoveEmpty(ctx, old)
	if err == nil || errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	// Something came into it at the last instant. It must not stay under a name
	// that is safe to delete.
	kept := p.name + ".kept-" + strings.TrimPrefix(tempname.New(""), tempname.Prefix)
	kept = strings.TrimSuffix(kept, "-")
	if merr := w.mover.Move(ctx, old, kept); merr != nil {
		return fmt.Errorf(done, errors.Join(err, merr))
	}
	return fmt.Errorf("the new snapshot is in place; what others wrote into the old one meanwhile is in %s: %w", quote(kept), err)
}

// look notes what the snapshot that is to be replaced consists of, and refuses a
// directory that holds anything else: replacing it would remove that.
func (p *Plan) look(ctx context.Context, name string, old *reader.Snapshot) error {
	named := map[string]bool{reader.MetadataName: true}
	_ = old.EachStream(func(_ format.Place, st format.Stream) error {
		if path, _, ok := format.Reference(st); ok {
			named[path.String()[strings.LastIndexByte(path.String(), '/')+1:]] = true
		}
		return nil
	})
	p.old = map[string]storage.Version{}
	for info, err := range p.store.List(ctx, name+"/", "/") {
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(info.Name, name+"/")
		if !named[file] {
			return &TargetError{p.Target, fmt.Sprintf("it holds %s, which is not part of the snapshot there, so it is not replaced", quote(file)), []finding.Remedy{{Words: "move that away"}, {Words: elsewhere}}}
		}
		p.old[file] = info.Version
	}
	return nil
}

// sameOld makes sure that a directory still holds what look noted, and nothing else.
func (p *Plan) sameOld(ctx context.Context, name string) error {
	if notALink(ctx, p.store, name, p.Target) != nil {
		return p.changed("it is a symbolic link now") // to files that could be the same
	}
	n := 0
	for info, err := range p.store.List(ctx, name+"/", "/") {
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(info.Name, name+"/")
		switch version, known := p.old[file]; {
		case !known:
			return p.changed(quote(file) + " is in it now")
		case version != info.Version:
			return p.changed(quote(file) + " is another file now")
		}
		n++
	}
	switch {
	case n == 0:
		return p.changed("it is gone")
	case n < len(p.old):
		return p.changed("files of it are gone")
	}
	return nil
}

// asides finds the names under which an interrupted run left what has the
// target's name.
func (p *Plan) asides(ctx context.Context) ([]string, error) {
	if _, ok := p.store.(storage.Mover); !ok {
		return nil, nil
	}
	return ability.Asides(ctx, p.store, p.name)
}

// recover renames a snapshot that an interrupted run moved aside to the target, so
// that it can be replaced like any other.
func (p *Plan) recover(ctx context.Context) error {
	if p.Recovers == "" {
		return nil
	}
	return p.exists(p.store.(storage.Mover).Move(ctx, p.Recovers, p.name))
}
