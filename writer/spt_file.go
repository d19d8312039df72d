package writer

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// sptFile writes an .spt file. If it is to be read back and the store shows
// nothing before Commit, it is written under a temporary name, read from there,
// and copied: the target, which may be a snapshot to be replaced, never has
// content that was not read back.
type sptFile struct {
	storage.Writer
	plan     *Plan
	create   storage.CreateOptions
	readBack bool
	progress func(n int64)
	temp     string // "" if Writer writes the target directly
}

// createSPT creates an .spt file at the target of the plan.
func (p *Plan) createSPT(ctx context.Context, create storage.CreateOptions, readBack bool, progress func(n int64)) (*sptFile, error) {
	w, err := p.store.Create(ctx, p.name, create)
	if err != nil {
		return nil, p.exists(err)
	}
	f := &sptFile{Writer: w, plan: p, create: create, readBack: readBack, progress: progress}
	if _, visible := w.(ability.Contents); !readBack || visible {
		return f, nil
	}
	if err := w.Abort(context.WithoutCancel(ctx)); err != nil {
		return nil, err
	}
	f.temp = tempname.New(p.name)
	f.Writer, err = p.store.Create(ctx, f.temp, storage.CreateOptions{IfAbsent: true})
	return f, err
}

// commit makes the file visible under its name, after reading it back if
// requested.
func (f *sptFile) commit(ctx context.Context, want *format.Savepoint) (storage.Info, error) {
	if f.readBack && f.temp == "" {
		if err := f.check(ctx, want); err != nil {
			return storage.Info{}, err
		}
	}
	info, err := f.Commit(ctx)
	if err == nil && f.temp != "" {
		info, err = f.move(ctx, info, want)
	}
	if f.create.Replace != "" && errors.Is(err, storage.ErrChanged) {
		return info, f.plan.changed("another process wrote it")
	}
	return info, f.plan.exists(err)
}

// move copies the temporary file to the target if it reads back correctly, and
// removes it in any case.
func (f *sptFile) move(ctx context.Context, temp storage.Info, want *format.Savepoint) (info storage.Info, err error) {
	p := f.plan
	defer func() {
		if derr := p.store.Delete(context.WithoutCancel(ctx), f.temp); derr != nil {
			err = errors.Join(err, fmt.Errorf("removing the temporary file: %w", derr))
		}
	}()
	rd := ranged.NewReader(p.store, f.temp, temp.Version)
	if err := checkSPT(ctx, counted{storedSPT{rd}, f.progress}, temp.Size, want); err != nil {
		return info, err
	}
	create := f.create
	create.Size = temp.Size
	w, err := p.store.Create(ctx, p.name, create)
	if err != nil {
		return info, err
	}
	defer w.Abort(context.WithoutCancel(ctx)) //nolint:errcheck // after Commit it does nothing
	if err := ranged.CopyRange(ctx, p.store, w, p.store, f.temp, 0, temp.Size, temp.Version); err != nil {
		return info, err
	}
	return w.Commit(ctx)
}

// check reads back the file before it is visible.
func (f *sptFile) check(ctx context.Context, want *format.Savepoint) error {
	data, release, err := f.Writer.(ability.Contents).Contents()
	if err != nil {
		return err
	}
	err = format.MappedBytes(data).View(func(p []byte) error {
		return checkSPT(ctx, counted{memory(p), f.progress}, int64(len(p)), want)
	})
	return errors.Join(err, release())
}

// checkSPT opens a file and checks every chunk.
func checkSPT(ctx context.Context, r spt.ReaderAt, size int64, want *format.Savepoint) error {
	f, err := spt.Open(ctx, r, size, format.Limits{Memory: math.MaxInt64 / 2}) // the file may need more than the default
	if err != nil {
		return err
	}
	if len(f.Savepoint().Operators) != len(want.Operators) {
		return errors.New("internal error: the file read back holds other operators")
	}
	var bad []error
	err = f.Verify(ctx, func(e format.Error) { bad = append(bad, &e) })
	return errors.Join(append(bad, err)...)
}

// counted reports the number of bytes read; progress may be nil.
type counted struct {
	spt.ReaderAt
	progress func(n int64)
}

func (c counted) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := c.ReaderAt.ReadAt(ctx, p, off)
	if c.progress != nil {
		c.progress(int64(n))
	}
	return n, err
}

// storedSPT reads a file from its store.
type storedSPT struct{ rd *ranged.Reader }

func (s storedSPT) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := s.rd.ReadAt(ctx, p, off)
	if n == len(p) {
		err = nil
	}
	return n, err
}

type memory []byte

func (m memory) ReadAt(_ context.Context, p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(m)) || len(p) > len(m)-int(off) {
		return 0, format.Errorf(format.ErrTruncated, "read of %d bytes at %d in %d", len(p), off, len(m))
	}
	return copy(p, m[off:]), nil
}
