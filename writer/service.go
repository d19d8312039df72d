package writer

import (
	"context"
	"errors"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
)

// This file lets the service of a store copy files by itself: the bytes do not pass
// through this process. Instead of a checksum of ours, the service checks that it copies
// the version that was looked up, and reports the number of bytes.

const (
	// serviceCopies is the number of files that a service copies at the same time.
	serviceCopies = 16
	// leastCopy is the least size of a range of a rope that a service is asked to copy:
	// the least part of an upload to S3.
	leastCopy = 5 << 20
)

// copier returns the ability of the target's store to copy by itself; nil if it has
// none. Files of the local file system are copied with a checksum.
func (p *Plan) copier() storage.Copier {
	if ability.Near(p.store) {
		return nil
	}
	c, _ := p.store.(storage.Copier)
	return c
}

// extent is a range of a stream.
type extent struct {
	of     format.Stream
	off, n int64
}

// byService writes a file with copies by the service, as far as it has large ranges.
// done is false if the service copies nothing of it; then nothing was written.
func (w *flinkWrite) byService(ctx context.Context, c storage.Copier, out storage.Writer, f File) (done bool, err error) {
	switch st := f.of.(type) {
	case *format.File:
		return w.serviceCopy(ctx, c, out, st, 0, -1)
	case *format.Segment:
		return w.serviceCopy(ctx, c, out, st, st.Start, st.Length)
	case *format.Concat:
		return w.serviceRope(ctx, c, out, st)
	}
	return false, nil
}

// serviceCopy appends a range of the file that a stream refers to. done is false if the
// service cannot copy it.
func (w *flinkWrite) serviceCopy(ctx context.Context, c storage.Copier, out storage.Writer, st format.Stream, off, n int64) (done bool, err error) {
	found, err := w.plan.snap.Locate(ctx, st)
	if err != nil {
		return false, err
	}
	err = c.CopyRange(ctx, out, found.Store, found.Name, off, n, found.Info.Version)
	switch {
	case errors.Is(err, storage.ErrUnsupported):
		return false, nil
	case errors.Is(err, io.ErrUnexpectedEOF):
		return false, format.Errorf(format.ErrChanged, "the service cannot copy its bytes: %v", err)
	}
	return err == nil, changedKind(err)
}

// changedKind makes a changed object match format.ErrChanged.
func changedKind(err error) error {
	if ranged.Classify(err) == ranged.InputChanged && !errors.Is(err, format.ErrChanged) {
		return errors.Join(format.ErrChanged, err)
	}
	return err
}

// serviceRope appends a rope: its large ranges are copied by the service, the bytes
// between them are written.
func (w *flinkWrite) serviceRope(ctx context.Context, c storage.Copier, out storage.Writer, rope *format.Concat) (done bool, err error) {
	var all []extent
	flatten(rope, 0, rope.Size(), func(e extent) { all = append(all, e) })
	large := false
	for _, e := range all {
		large = large || e.copies()
	}
	if !large {
		return false, nil
	}
	var at, pending int64 // of the rope: where the next extent begins, and bytes before it to be written
	flush := func() error {
		if pending == 0 {
			return nil
		}
		src := &streamReader{ctx, w.plan.snap.Source(), rope, at - pending}
		n, err := w.pump(ctx, out, io.LimitReader(src, pending), nil)
		if err == nil && n != pending {
			err = format.Errorf(format.ErrChanged, "read %d bytes, expected %d", n, pending)
		}
		pending = 0
		return err
	}
	for _, e := range all {
		copied := false
		if e.copies() {
			if err := flush(); err != nil {
				return true, err
			}
			off := e.off
			if s, ok := e.of.(*format.Segment); ok {
				off += s.Start
			}
			if copied, err = w.serviceCopy(ctx, c, out, e.of, off, e.n); err != nil {
				return true, err
			}
		}
		at += e.n
		if !copied {
			pending += e.n
		} else {
			w.plan.o.Progress(e.n)
		}
	}
	return true, flush()
}

// copies reports whether a service is asked to copy the range.
func (e extent) copies() bool {
	_, _, ref := format.Reference(e.of)
	return ref && e.n >= leastCopy
}

// flatten yields the ranges of streams that a range of a stream consists of.
func flatten(st format.Stream, off, n int64, yield func(extent)) {
	switch s := st.(type) {
	case *format.Concat:
		for _, p := range s.Parts {
			if n <= 0 {
				return
			}
			if off >= p.N {
				off -= p.N
				continue
			}
			k := min(p.N-off, n)
			flatten(p.Of, p.Off+off, k, yield)
			off, n = 0, n-k
		}
	case *format.KeyGroupStream:
		flatten(s.Data, off, n, yield)
	default:
		if n > 0 {
			yield(extent{st, off, n})
		}
	}
}
