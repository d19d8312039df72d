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

// This file renames the new directory to the target, even if the target exists.
//
// A directory that is replaced is exchanged with the new one in one step. Where the
// system has no such call it is moved aside first, under tempname.Aside: a
// run that is killed between the two renames leaves no target, and a name from
// which reader.Open, reader.List and the next run tell what happened.

// AsideError is the error for a snapshot that was moved aside and could not be
// renamed back.
type AsideError struct {
	Target, At string
	Err        error
}

func (e *AsideError) Error() string {
	return fmt.Sprintf("the snapshot to be replaced is now under %s: %v", quote(e.At), e.Err)
}

func (e *AsideError) Unwrap() error { return e.Err }

// Hint returns how to restore it.
func (e *AsideError) Hint() string {
	if errors.Is(e.Err, storage.ErrExist) {
		return fmt.Sprintf("it is complete; compare it with what is under %s, and keep the right one", quote(e.Target))
	}
	return fmt.Sprintf("it is complete: rename it back:  mv %s %s", shell.Quote(e.At), shell.Quote(e.Target))
}

// publish renames the directory to the target.
func (w *flinkWrite) publish(ctx context.Context) error {
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
			return err // it must not look like a leftover under its other name either
		}
	}
	ctx = context.WithoutCancel(ctx) // from here on the replacement is completed or undone
	if !p.Replaces {
		return p.exists(w.mover.Move(ctx, w.dir, p.name))
	}
	if err := p.sameOld(ctx, p.name); err != nil {
		return err
	}
	err := w.mover.Exchange(ctx, w.dir, p.name)
	if errors.Is(err, storage.ErrUnsupported) {
		return w.moveAside(ctx)
	}
	old := w.dir
	if err == nil {
		err = p.sameOld(ctx, old)
	} else if p.sameOld(ctx, p.name) == nil {
		return err // nothing was exchanged
	}
	if err != nil {
		// The temporary name now refers to another writer's directory.
		if back := w.mover.Exchange(ctx, old, p.name); back != nil && p.sameOld(ctx, p.name) != nil {
			w.dir = ""
			return errors.Join(err, &AsideError{p.name, old, back})
		}
		return err
	}
	w.dir = "" // it is the target now: do not undo
	return w.removeOld(ctx, old)
}

// present checks that the new directory contains exactly what was written: if
// another process removes it, the store creates it again and earlier files are
// missing.
func (w *flinkWrite) present(ctx context.Context) error {
	n := 0
	for info, err := range w.plan.store.List(ctx, w.dir+"/", "/") {
		if err != nil {
			return err
		}
		switch size, ours := w.sizes[info.Name]; {
		case !ours:
			return &TargetError{w.plan.Target, fmt.Sprintf("another process wrote %s meanwhile", quote(info.Name)), finding.Words("nothing was replaced; look at it, then try again")}
		case size != info.Size:
			return &TargetError{w.plan.Target, fmt.Sprintf("another process changed %s meanwhile: expected %d bytes, found %d", quote(info.Name), size, info.Size), finding.Words("nothing was replaced; try again")}
		}
		n++
	}
	if n < len(w.sizes) {
		return &TargetError{w.plan.Target, fmt.Sprintf("%d of %d files that were written are gone: another process removed the directory meanwhile", len(w.sizes)-n, len(w.sizes)), finding.Words("nothing was replaced; try again")}
	}
	return nil
}

// moveAside replaces the target in two steps.
func (w *flinkWrite) moveAside(ctx context.Context) error {
	p := w.plan
	old := tempname.Aside(p.name)
	err := w.mover.Move(ctx, p.name, old)
	if err == nil {
		err = p.sameOld(ctx, old)
	}
	if err == nil {
		err = p.exists(w.mover.Move(ctx, w.dir, p.name))
	}
	if err != nil {
		return errors.Join(err, w.putBack(ctx, old))
	}
	w.dir = ""
	return w.removeOld(ctx, old)
}

// putBack renames the snapshot to be replaced back to the target, unless it has
// that name: a rename may have happened despite its error.
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

// removeOld removes the snapshot that was replaced: only its files, and _metadata
// first, so that the rest is never mistaken for a snapshot.
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
	// A file was added to it since it was checked. It must not keep a name that is
	// safe to delete.
	kept := p.name + ".kept-" + strings.TrimPrefix(tempname.New(""), tempname.Prefix)
	kept = strings.TrimSuffix(kept, "-")
	if merr := w.mover.Move(ctx, old, kept); merr != nil {
		return fmt.Errorf(done, errors.Join(err, merr))
	}
	return fmt.Errorf("the new snapshot is in place; files that another process wrote into the old one are in %s: %w", quote(kept), err)
}

// look records the files of the snapshot to be replaced, and refuses a directory
// with any other file: replacing it would remove that file.
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
			return &TargetError{p.Target, fmt.Sprintf("it contains %s, which is not part of the snapshot, so it is not replaced", quote(file)), []finding.Remedy{{Words: "move that away"}, {Words: elsewhere}}}
		}
		p.old[file] = info.Version
	}
	return nil
}

// sameOld checks that a directory still contains exactly what look recorded.
func (p *Plan) sameOld(ctx context.Context, name string) error {
	if notALink(ctx, p.store, name, p.Target) != nil {
		return p.changed("it is now a symbolic link") // the link may lead to equal files
	}
	n := 0
	for info, err := range p.store.List(ctx, name+"/", "/") {
		if err != nil {
			return err
		}
		file := strings.TrimPrefix(info.Name, name+"/")
		switch version, known := p.old[file]; {
		case !known:
			return p.changed(quote(file) + " was added to it")
		case version != info.Version:
			return p.changed(quote(file) + " was replaced or changed")
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

// asides returns the names under which interrupted runs left the target.
func (p *Plan) asides(ctx context.Context) ([]string, error) {
	if _, ok := p.store.(storage.Mover); !ok {
		return nil, nil
	}
	return ability.Asides(ctx, p.store, p.name)
}

// recover renames a snapshot that an interrupted run moved aside back to the
// target, so that it can be replaced like any other.
func (p *Plan) recover(ctx context.Context) error {
	if p.Recovers == "" {
		return nil
	}
	return p.exists(p.store.(storage.Mover).Move(ctx, p.Recovers, p.name))
}
