package orphans

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

// Archive is a directory to which files are moved instead of being deleted.
type Archive struct {
	path  string // as the user can write it
	store storage.Storage
	name  string
}

// NewArchive returns an archive. Its directory need not exist, and must be neither in a
// root nor around one.
func (r *Result) NewArchive(ctx context.Context, path string) (*Archive, error) {
	store, name, err := r.o.Reader.Stores.Resolve(ctx, path)
	if err != nil {
		return nil, err
	}
	name, err = canonical(ctx, store, objpath.Clean(name))
	if err != nil {
		return nil, err
	}
	for _, root := range r.t.roots {
		if root.store == store && (below(name, root.name) || below(root.name, name)) {
			return nil, &RootError{Path: path, Msg: "the archive must be neither in " + root.path + " nor around it"}
		}
	}
	return &Archive{objpath.Clean(path), store, name}, nil
}

// Path returns where a file is put: below the name of the root, as it is below the root.
func (a *Archive) Path(f *File) string { return objpath.Join(a.path, f.rel()) }

// rel is the name of a file, from the name of its root.
func (f *File) rel() string {
	base := objpath.Base(f.Dir.root.name)
	if up := f.Dir.root.name; up == "" || up == "." || base == "" {
		base = "root"
	}
	rest := f.name()[min(len(f.Dir.root.name), len(f.name())):]
	for len(rest) > 0 && rest[0] == '/' {
		rest = rest[1:]
	}
	return objpath.Join(base, rest)
}

// removeChunk is how many files are worked on before their outcome is reported.
const removeChunk = 64

// Remove deletes files of the result, or moves them to an archive if it is not nil. Each
// is described again first: one that is no longer what was listed is storage.ErrChanged,
// and stays. done is called for each file that was tried, in order, with what became of
// it; its error ends the work. Remove refuses to begin if there are Problems.
func (r *Result) Remove(ctx context.Context, files []*File, to *Archive, done func(*File, error) error) error {
	if err := r.Err(); err != nil {
		return err
	}
	for len(files) > 0 && ctx.Err() == nil {
		some := files[:min(removeChunk, len(files))]
		files = files[len(some):]
		tried, errs := make([]bool, len(some)), make([]error, len(some))
		var g errgroup.Group
		g.SetLimit(r.t.jobs(r.o))
		for i, f := range some {
			g.Go(func() error {
				if ctx.Err() == nil {
					tried[i], errs[i] = true, r.remove(ctx, f, to)
				}
				return nil
			})
		}
		_ = g.Wait() // the errors are in errs
		for i, f := range some {
			if !tried[i] {
				continue
			}
			if err := done(f, errs[i]); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}

func (r *Result) remove(ctx context.Context, f *File, to *Archive) error {
	if f.Kept != "" || f.Dir.root.also {
		return fmt.Errorf("internal error: %s is to be kept", f.Path)
	}
	info, err := r.describe(ctx, f)
	if err != nil {
		return err
	}
	if to == nil {
		return f.delete(ctx, info.Version)
	}
	name := objpath.Join(to.name, f.rel())
	if err := to.add(ctx, name, f, info); err != nil {
		return err
	}
	if err := f.delete(ctx, info.Version); err != nil {
		return errors.Join(err, to.store.Delete(context.WithoutCancel(ctx), name))
	}
	return nil
}

// describe describes a file as it is now. It must be the one that was listed.
func (r *Result) describe(ctx context.Context, f *File) (storage.Info, error) {
	var info storage.Info
	var err error
	if c, ok := f.Dir.root.store.(ability.Confiner); ok {
		info, err = c.StatBelow(ctx, f.Dir.folder, objpath.Base(f.Path))
	} else {
		info, err = f.Dir.root.store.Stat(ctx, f.name())
	}
	if err == nil && r.t.hash(string(info.Version)) != f.version {
		err = &storage.Error{Op: "delete", Name: f.Path, Err: storage.ErrChanged}
	}
	return info, err
}

func (f *File) delete(ctx context.Context, pin storage.Version) error {
	if d, ok := f.Dir.root.store.(ability.BelowDeleter); ok {
		return d.DeleteBelow(ctx, f.Dir.folder, objpath.Base(f.Path), pin)
	}
	return f.Dir.root.store.Delete(ctx, f.name())
}

// add puts a file into the archive: as a second name of the same bytes where that is
// possible, else as a copy that is read back and compared. It replaces nothing.
func (a *Archive) add(ctx context.Context, name string, f *File, info storage.Info) error {
	src := f.Dir.root.store
	if l, ok := a.store.(ability.Linker); ok {
		if _, err := l.Link(ctx, name, src, f.name(), info.Version, true); !errors.Is(err, storage.ErrUnsupported) {
			return err
		}
	}
	w, err := a.store.Create(ctx, name, storage.CreateOptions{IfAbsent: true, Size: info.Size})
	if err != nil {
		return err
	}
	defer w.Abort(context.WithoutCancel(ctx)) //nolint:errcheck // after Commit it does nothing, before it another error is returned
	written, err := digest(ctx, src, f.name(), info.Version, w)
	if err != nil {
		return err
	}
	if _, err := w.Commit(ctx); err != nil {
		return err
	}
	read, err := digest(ctx, a.store, name, "", io.Discard)
	if err == nil && !bytes.Equal(read, written) {
		err = &storage.Error{Op: "copy", Name: name, Err: errors.New("what was read back differs from what was written")}
	}
	if err != nil {
		return errors.Join(err, a.store.Delete(context.WithoutCancel(ctx), name))
	}
	return nil
}

// digest copies an object and returns the SHA-256 of its bytes.
func digest(ctx context.Context, store storage.Storage, name string, pin storage.Version, to io.Writer) ([]byte, error) {
	body, _, err := ranged.NewReader(store, name, pin).Open(ctx, 0, -1)
	if err != nil {
		return nil, err
	}
	defer body.Close() //nolint:errcheck // only read
	h := sha256.New()
	if _, err := io.CopyBuffer(io.MultiWriter(struct{ io.Writer }{to}, h), body, make([]byte, 1<<20)); err != nil {
		return nil, err
	}
	return h.Sum(nil), nil
}
