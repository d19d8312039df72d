package writer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"
	"iter"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fingerprint"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// Report describes what was written.
type Report struct {
	Plan     *Plan
	Written  int64 // bytes of the target, without linked files
	Linked   int   // files that are hard links
	SPT      spt.Stats
	ReadBack bool // everything was read back and verified
}

// Write writes a view of a snapshot to a new location: it prepares a plan and
// executes it. If o is nil, it uses the zero value.
func Write(ctx context.Context, v format.View, target string, o *Options) (*Report, error) {
	p, err := Prepare(ctx, v, target, o)
	if err != nil {
		return nil, err
	}
	return p.Write(ctx)
}

// Write executes the plan. On any error, including the end of ctx, nothing is
// left under the target's name, and a snapshot to be replaced is unchanged.
func (p *Plan) Write(ctx context.Context) (*Report, error) {
	if p.Target == "" {
		return nil, errors.New("internal error: a plan without a target")
	}
	if p.Family == reader.SPT {
		return p.writeSPT(ctx)
	}
	return p.writeFlink(ctx)
}

// writeSPT writes an .spt file. The store makes it visible when it is complete.
func (p *Plan) writeSPT(ctx context.Context) (*Report, error) {
	if err := p.recover(ctx); err != nil {
		return nil, err
	}
	w, err := p.createSPT(ctx, storage.CreateOptions{IfAbsent: !p.Replaces, Replace: p.old[""]}, p.o.ReadBack, p.o.Progress)
	if err != nil {
		return nil, err
	}
	defer w.Abort(context.WithoutCancel(ctx)) //nolint:errcheck // after Commit it does nothing
	bare := func(st format.Stream) bool {
		path, _, ok := format.Reference(st)
		if !ok {
			return false
		}
		_, absent := p.absent[path.String()]
		return absent
	}
	view, stats, err := spt.Write(ctx, w, p.view, p.snap.Source(), bare,
		spt.Options{Compression: p.o.Compression, Level: p.o.Level, Jobs: p.o.Jobs, Progress: p.o.Progress})
	if err != nil {
		return nil, err
	}
	if err := p.snap.Unchanged(ctx); err != nil {
		return nil, err
	}
	info, err := w.commit(ctx, view)
	if err != nil {
		return nil, err
	}
	return &Report{Plan: p, Written: info.Size, SPT: stats, ReadBack: p.o.ReadBack}, nil
}

// progressWriter counts the bytes and discards them.
type progressWriter func(n int64)

func (t progressWriter) Write(p []byte) (int, error) {
	t(int64(len(p)))
	return len(p), nil
}

// exists explains a target that was created concurrently.
func (p *Plan) exists(err error) error {
	if errors.Is(err, storage.ErrExist) {
		return &TargetError{p.Target, "another process wrote it meanwhile", finding.Words("nothing was replaced; look at it, then try again")}
	}
	return err
}

// changed explains a target that changed since the writing began.
func (p *Plan) changed(how string) error {
	return &TargetError{p.Target, "it changed while the new snapshot was written: " + how, finding.Words("nothing was replaced; look at it, then try again")}
}

// flinkWrite writes one directory.
type flinkWrite struct {
	plan    *Plan
	dir     string // directory being written: the target, or a temporary name next to it
	mover   storage.Mover
	remover storage.Remover
	holds   []func() error // release the marks on directories in use

	mu      sync.Mutex
	names   []string // files that this run wrote
	sizes   map[string]int64
	sums    map[string]uint32
	written int64
	linked  int
}

// writeFlink writes the files of a directory, then _metadata. If the store can
// rename, the directory has a temporary name until one final rename; else
// _metadata, created last and only if absent, makes the files a snapshot.
func (p *Plan) writeFlink(ctx context.Context) (_ *Report, err error) {
	w := &flinkWrite{plan: p, dir: p.name, sums: map[string]uint32{}, sizes: map[string]int64{}}
	if m, ok := p.store.(storage.Mover); ok {
		if r, ok := p.store.(storage.Remover); ok {
			w.mover, w.remover = m, r
			w.dir = tempname.New(p.name)
		}
	}
	if p.Replaces && w.mover == nil {
		return nil, &TargetError{p.Target, "this storage cannot replace a directory atomically", finding.Words(elsewhere)}
	}
	if err := p.recover(ctx); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.undo(context.WithoutCancel(ctx)))
		}
		for _, release := range w.holds {
			err = errors.Join(err, release())
		}
	}()
	if w.mover != nil {
		if err := w.hold(ctx, w.dir, true); err != nil {
			return nil, err
		}
	}
	if err := w.files(ctx); err != nil {
		return nil, err
	}
	if p.o.ReadBack {
		if err := w.readBack(ctx); err != nil {
			return nil, err
		}
	}
	if err := w.metadata(ctx); err != nil {
		return nil, err
	}
	if err := w.publish(ctx); err != nil {
		return nil, err
	}
	return &Report{Plan: p, Written: w.written, Linked: w.linked, ReadBack: p.o.ReadBack}, nil
}

// hold marks a directory as in use, so that it is not taken for a leftover.
func (w *flinkWrite) hold(ctx context.Context, dir string, create bool) error {
	h, ok := w.plan.store.(ability.Holder)
	if !ok {
		return nil
	}
	release, err := h.Hold(ctx, dir, create)
	if err == nil {
		w.holds = append(w.holds, release)
	}
	return err
}

// undo deletes exactly what this run wrote.
func (w *flinkWrite) undo(ctx context.Context) error {
	if w.dir == "" {
		return nil
	}
	if w.remover != nil {
		err := w.remover.RemoveTree(ctx, w.dir)
		if errors.Is(err, storage.ErrNotExist) {
			return nil
		}
		return err
	}
	return w.plan.store.Delete(ctx, w.names...)
}

// files writes the files of the plan.
func (w *flinkWrite) files(ctx context.Context) error {
	byName := make(map[string]*File, len(w.plan.Files))
	for i := range w.plan.Files {
		byName[w.plan.Files[i].Name] = &w.plan.Files[i]
	}
	return w.run(ctx, w.plan.units, func(ctx context.Context, u work.Unit) (struct{}, error) {
		f := byName[u.Target]
		if f == nil {
			return struct{}{}, fmt.Errorf("internal error: %s is not in the plan", quote(u.Target))
		}
		if err := w.file(ctx, *f); err != nil {
			return struct{}{}, fmt.Errorf("writing %s: %w", quote(f.Name), err)
		}
		return struct{}{}, nil
	})
}

// units yields a unit for each file that the plan writes.
func (p *Plan) units(yield func(work.Unit) bool) {
	for _, f := range p.Files {
		if !yield(work.Unit{Job: work.WriteFile, State: work.All, Count: work.All, Target: f.Name, Parts: []work.Part{{Stream: work.Identity(f.of), Size: f.Bytes}}}) {
			return
		}
	}
}

// run runs units, and stops at the first error.
func (w *flinkWrite) run(ctx context.Context, units iter.Seq[work.Unit], run func(context.Context, work.Unit) (struct{}, error)) error {
	return work.Run(ctx, work.Options{Jobs: w.plan.o.Jobs}, units, run, func(_ work.Unit, _ struct{}, err error) error { return err })
}

func (w *flinkWrite) file(ctx context.Context, f File) error {
	name := objpath.Join(w.dir, f.Name)
	if f.How == string(Link) {
		done, err := w.link(ctx, f, name)
		if done || err != nil {
			return err
		}
	}
	out, err := w.plan.store.Create(ctx, name, storage.CreateOptions{IfAbsent: true, Size: f.Bytes})
	if err != nil {
		return w.plan.exists(err)
	}
	defer out.Abort(context.WithoutCancel(ctx)) //nolint:errcheck // after Commit it does nothing
	sum := crc32.New(castagnoli)
	n, err := w.copy(ctx, out, f, sum)
	if err != nil {
		return err
	}
	if n != f.Bytes {
		return format.Errorf(format.ErrChanged, "read %d bytes, expected %d", n, f.Bytes)
	}
	info, err := out.Commit(ctx)
	if err != nil {
		return w.plan.exists(err)
	}
	if info.Size != n {
		return fmt.Errorf("wrote %d bytes, the storage has %d", n, info.Size)
	}
	w.wrote(name, sum.Sum32(), n)
	return nil
}

func (w *flinkWrite) wrote(name string, sum uint32, n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(w.names, name)
	w.sums[name], w.sizes[name] = sum, n
	w.written += n
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// copyBuffer is the size of the buffer for copying state.
const copyBuffer = 1 << 20

var buffers = sync.Pool{New: func() any { b := make([]byte, copyBuffer); return &b }}

// copy writes the bytes of a file. It copies them itself to compute their
// checksum; a file of the input is read as one stream.
func (w *flinkWrite) copy(ctx context.Context, out io.Writer, f File, sum hash.Hash32) (int64, error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	src, err := w.open(ctx, f)
	if err != nil {
		return 0, err
	}
	var n int64
	for {
		k, rerr := src.Read(*buf)
		if k > 0 {
			sum.Write((*buf)[:k])
			if _, err := out.Write((*buf)[:k]); err != nil {
				return n, errors.Join(err, src.Close())
			}
			n += int64(k)
			w.plan.o.Progress(int64(k))
		}
		if rerr == io.EOF {
			return n, src.Close()
		}
		if rerr == nil {
			rerr = ctx.Err()
		}
		if rerr != nil {
			return n, errors.Join(rerr, src.Close())
		}
	}
}

func (w *flinkWrite) open(ctx context.Context, f File) (io.ReadCloser, error) {
	switch st := f.of.(type) {
	case *format.File:
		return w.plan.snap.OpenFile(ctx, st, 0, f.Bytes)
	case *format.Segment:
		return w.plan.snap.OpenFile(ctx, st, st.Start, f.Bytes)
	}
	return io.NopCloser(&streamReader{ctx, w.plan.snap.Source(), f.of, 0}), nil
}

// streamReader reads a stream from its start to its end.
type streamReader struct {
	ctx context.Context
	src format.Source
	st  format.Stream
	off int64
}

func (r *streamReader) Read(p []byte) (int, error) {
	left := r.st.Size() - r.off
	if left <= 0 {
		return 0, io.EOF
	}
	n, err := r.src.ReadAt(r.ctx, r.st, p[:min(int64(len(p)), left)], r.off)
	r.off += int64(n)
	return n, err
}

// link makes a hard link, if source and target allow it.
func (w *flinkWrite) link(ctx context.Context, f File, name string) (done bool, err error) {
	l, ok := w.plan.store.(ability.Linker)
	if !ok {
		return false, nil
	}
	found, err := w.plan.snap.Locate(ctx, f.of)
	if err != nil {
		return false, err
	}
	info, err := l.Link(ctx, name, found.Store, found.Name, found.Info.Version, true)
	switch {
	case errors.Is(err, storage.ErrUnsupported):
		return false, nil
	case err != nil:
		return false, w.plan.exists(err)
	case info.Size != f.Bytes:
		return false, format.Errorf(format.ErrChanged, "linked %d bytes, expected %d", info.Size, f.Bytes)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(w.names, name)
	w.sizes[name] = info.Size
	w.linked++
	w.plan.o.Progress(f.Bytes)
	return true, nil
}

// readBack reads every file again and compares checksums, except linked files,
// which have none.
func (w *flinkWrite) readBack(ctx context.Context) error {
	units := func(yield func(work.Unit) bool) {
		for u := range w.plan.units {
			u.Job = work.ReadBack
			if _, written := w.sums[objpath.Join(w.dir, u.Target)]; written && !yield(u) {
				return
			}
		}
	}
	return w.run(ctx, units, func(ctx context.Context, u work.Unit) (_ struct{}, err error) {
		name := objpath.Join(w.dir, u.Target)
		body, _, err := ranged.NewReader(w.plan.store, name, "").Open(ctx, 0, -1)
		if err != nil {
			return struct{}{}, err
		}
		sum := crc32.New(castagnoli)
		_, err = io.Copy(io.MultiWriter(sum, progressWriter(w.plan.o.Progress)), body)
		if err = errors.Join(err, body.Close()); err != nil {
			return struct{}{}, err
		}
		if want := w.sums[name]; sum.Sum32() != want {
			return struct{}{}, fmt.Errorf("%s reads back with checksum %08x, it was written with %08x", quote(name), sum.Sum32(), want)
		}
		return struct{}{}, nil
	})
}

// metadata writes _metadata, decodes it again and compares it with the planned
// model, before it becomes visible.
func (w *flinkWrite) metadata(ctx context.Context) error {
	p := w.plan
	name := objpath.Join(w.dir, reader.MetadataName)
	out, err := p.store.Create(ctx, name, storage.CreateOptions{IfAbsent: true, Size: p.MetadataBytes})
	if err != nil {
		return p.exists(err)
	}
	defer out.Abort(context.WithoutCancel(ctx)) //nolint:errcheck // after Commit it does nothing
	if p.verbatim {
		err = w.copyMetadata(ctx, out)
	} else {
		err = w.encodeMetadata(ctx, out)
	}
	if err != nil {
		return err
	}
	if err := p.snap.Unchanged(ctx); err != nil {
		return err
	}
	info, err := out.Commit(ctx)
	if err != nil {
		return p.exists(err)
	}
	w.names = append(w.names, name)
	w.sizes[name] = info.Size
	w.written += info.Size
	return nil
}

// encodeMetadata writes the encoded view, decodes it again and compares.
func (w *flinkWrite) encodeMetadata(ctx context.Context, out storage.Writer) error {
	p := w.plan
	return checked(out, func(to io.Writer) error {
		return metadata.Encode(ctx, to, p.view, p.snap.Source())
	}, func(data format.Bytes) error { return w.compare(ctx, data) })
}

// copyMetadata copies an unchanged _metadata, and compares the copy with the
// original.
func (w *flinkWrite) copyMetadata(ctx context.Context, out storage.Writer) error {
	return checked(out, func(to io.Writer) error {
		src, err := w.plan.snap.OpenContainer(ctx)
		if err != nil {
			return err
		}
		buf := buffers.Get().(*[]byte)
		defer buffers.Put(buf)
		n, err := io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{src}, *buf)
		if err = errors.Join(err, src.Close()); err != nil {
			return err
		}
		if n != w.plan.MetadataBytes {
			return format.Errorf(format.ErrChanged, "read %d bytes of _metadata, expected %d", n, w.plan.MetadataBytes)
		}
		return ctx.Err()
	}, func(data format.Bytes) error {
		src, err := w.plan.snap.OpenContainer(ctx)
		if err != nil {
			return err
		}
		return errors.Join(sameBytes(data, src), src.Close())
	})
}

// sameBytes compares the written bytes with the bytes of a reader.
func sameBytes(data format.Bytes, r io.Reader) error {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	mine := make([]byte, len(*buf))
	for off := int64(0); ; {
		n, err := io.ReadFull(r, *buf)
		if n > 0 {
			k, rerr := data.ReadAt(mine[:n], off)
			if rerr != nil {
				return rerr
			}
			if !bytes.Equal(mine[:k], (*buf)[:n]) {
				return fmt.Errorf("the copy of _metadata differs from the original near byte %d", off)
			}
			off += int64(n)
		}
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			if off != int64(data.Len()) {
				return fmt.Errorf("the copy of _metadata has %d bytes, the original %d", data.Len(), off)
			}
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// checked calls write, then check with the written bytes before they become
// visible: from the store, or from a copy if the store cannot return them.
func checked(out storage.Writer, write func(io.Writer) error, check func(format.Bytes) error) error {
	c, ok := out.(ability.Contents)
	if !ok {
		var copied bytes.Buffer
		if err := write(io.MultiWriter(out, &copied)); err != nil {
			return err
		}
		return check(format.NewBytes(copied.Bytes()))
	}
	if err := write(out); err != nil {
		return err
	}
	data, release, err := c.Contents()
	if err != nil {
		return err
	}
	return errors.Join(check(format.MappedBytes(data)), release())
}

func (w *flinkWrite) compare(ctx context.Context, data format.Bytes) error {
	p := w.plan
	if int64(data.Len()) != p.MetadataBytes {
		return fmt.Errorf("internal error: _metadata has %d bytes, expected %d", data.Len(), p.MetadataBytes)
	}
	sp, err := metadata.Decode(data, metadata.Options{})
	if err != nil {
		return fmt.Errorf("internal error: the new _metadata does not decode: %w", err)
	}
	same, err := fingerprint.Same(ctx, p.view, sp, p.snap.Source())
	if err != nil {
		return err
	}
	if !same {
		return errors.New("internal error: the new _metadata does not match the planned model")
	}
	return nil
}
