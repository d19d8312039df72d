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
	Plan    *Plan
	Written int64 // bytes of the target, without linked files
	Linked  int   // files that are hard links
	// Copied is the number of files that the service of the target's store copied by
	// itself, in whole or in large parts. Unless they were read back, only the service
	// vouches for their bytes.
	Copied   int
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
	sums    map[string]uint32 // of files whose bytes this process wrote
	pins    map[string]storage.Version
	written int64
	linked  int
	copied  int           // by the service
	streams chan struct{} // held while bytes of a file are written
}

// writeFlink writes the files of a directory, then _metadata. If the store can
// rename, the directory has a temporary name until one final rename; else
// _metadata, created last and only if absent, makes the files a snapshot.
func (p *Plan) writeFlink(ctx context.Context) (_ *Report, err error) {
	w := newFlinkWrite(p)
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
	return &Report{Plan: p, Written: w.written, Linked: w.linked, Copied: w.copied, ReadBack: p.o.ReadBack}, nil
}

func newFlinkWrite(p *Plan) *flinkWrite {
	return &flinkWrite{plan: p, dir: p.name, sums: map[string]uint32{}, sizes: map[string]int64{}, pins: map[string]storage.Version{}, streams: make(chan struct{}, p.o.Jobs)}
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
	jobs := w.plan.o.Jobs
	if w.plan.copier() != nil {
		jobs = w.plan.copies // streams are bounded by w.streams
	}
	return w.run(ctx, jobs, w.plan.units, func(ctx context.Context, u work.Unit) (struct{}, error) {
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
func (w *flinkWrite) run(ctx context.Context, jobs int, units iter.Seq[work.Unit], run func(context.Context, work.Unit) (struct{}, error)) error {
	return work.Run(ctx, work.Options{Jobs: jobs}, units, run, func(_ work.Unit, _ struct{}, err error) error { return err })
}

func (w *flinkWrite) file(ctx context.Context, f File) (err error) {
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
	defer func() { err = aborted(ctx, out, name, err) }() // after Commit it does nothing
	sum, err := w.fill(ctx, out, f)
	if err != nil {
		return err
	}
	info, err := out.Commit(ctx)
	if err != nil {
		return changedKind(w.plan.exists(err))
	}
	w.wrote(name, info, sum) // from here on it is ours to delete
	if info.Size != f.Bytes {
		return fmt.Errorf("wrote %d bytes, the storage has %d", f.Bytes, info.Size)
	}
	return nil
}

// aborted aborts a writer, and adds to err that what it wrote may be left.
func aborted(ctx context.Context, out storage.Writer, name string, err error) error {
	aerr := out.Abort(context.WithoutCancel(ctx))
	if err != nil && aerr != nil {
		return errors.Join(err, fmt.Errorf("%s could not be removed, if it exists: %w", quote(name), aerr))
	}
	return err
}

// fill writes the bytes of a file and returns their checksum; nil if the service copied
// them.
func (w *flinkWrite) fill(ctx context.Context, out storage.Writer, f File) (*uint32, error) {
	if c := w.plan.copier(); c != nil {
		done, err := w.byService(ctx, c, out, f)
		if err != nil || done {
			return nil, err
		}
	}
	select {
	case w.streams <- struct{}{}:
		defer func() { <-w.streams }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	sum := crc32.New(castagnoli)
	n, err := w.copy(ctx, out, f, sum)
	if err == nil && n != f.Bytes {
		err = format.Errorf(format.ErrChanged, "read %d bytes, expected %d", n, f.Bytes)
	}
	return new(sum.Sum32()), err
}

// wrote notes a file; sum is nil if the service copied it.
func (w *flinkWrite) wrote(name string, info storage.Info, sum *uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.names = append(w.names, name)
	w.sizes[name], w.pins[name] = info.Size, info.Version
	w.written += info.Size
	if sum != nil {
		w.sums[name] = *sum
		return
	}
	w.copied++
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// copyBuffer is the size of the buffer for copying state.
const copyBuffer = 1 << 20

var buffers = sync.Pool{New: func() any { b := make([]byte, copyBuffer); return &b }}

// copy writes the bytes of a file. It copies them itself to compute their
// checksum; a file of the input is read as one stream.
func (w *flinkWrite) copy(ctx context.Context, out io.Writer, f File, sum hash.Hash32) (int64, error) {
	src, err := w.open(ctx, f)
	if err != nil {
		return 0, err
	}
	n, err := w.pump(ctx, out, src, sum)
	return n, errors.Join(err, src.Close())
}

// pump copies bytes through this process; sum may be nil.
func (w *flinkWrite) pump(ctx context.Context, out io.Writer, src io.Reader, sum hash.Hash32) (n int64, err error) {
	buf := buffers.Get().(*[]byte)
	defer buffers.Put(buf)
	for {
		k, rerr := src.Read(*buf)
		if k > 0 {
			if sum != nil {
				sum.Write((*buf)[:k])
			}
			if _, err := out.Write((*buf)[:k]); err != nil {
				return n, err
			}
			n += int64(k)
			w.plan.o.Progress(int64(k))
		}
		if rerr == io.EOF {
			return n, nil
		}
		if rerr == nil {
			rerr = ctx.Err()
		}
		if rerr != nil {
			return n, rerr
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

// readBack reads every file again, and compares it with what was written, or with the
// input if the service copied it. Linked files are not read.
func (w *flinkWrite) readBack(ctx context.Context) error {
	byName := map[string]File{}
	for _, f := range w.plan.Files {
		byName[f.Name] = f
	}
	units := func(yield func(work.Unit) bool) {
		for u := range w.plan.units {
			u.Job = work.ReadBack
			if _, written := w.pins[objpath.Join(w.dir, u.Target)]; written && !yield(u) {
				return
			}
		}
	}
	return w.run(ctx, w.plan.o.Jobs, units, func(ctx context.Context, u work.Unit) (_ struct{}, err error) {
		name := objpath.Join(w.dir, u.Target)
		want, ours := w.sums[name]
		if !ours {
			src, err := w.open(ctx, byName[u.Target])
			if err != nil {
				return struct{}{}, err
			}
			if want, err = checksum(src, io.Discard); err != nil {
				return struct{}{}, err
			}
		}
		body, _, err := ranged.NewReader(w.plan.store, name, w.pins[name]).Open(ctx, 0, -1)
		if err != nil {
			return struct{}{}, err
		}
		got, err := checksum(body, progressWriter(w.plan.o.Progress))
		if err != nil {
			return struct{}{}, err
		}
		switch {
		case got == want:
			return struct{}{}, nil
		case ours:
			return struct{}{}, fmt.Errorf("%s reads back with checksum %08x, it was written with %08x", quote(name), got, want)
		}
		return struct{}{}, fmt.Errorf("%s reads back with checksum %08x, what the service copied has %08x", quote(name), got, want)
	})
}

// checksum reads a stream to its end, also into to, and closes it.
func checksum(src io.ReadCloser, to io.Writer) (uint32, error) {
	sum := crc32.New(castagnoli)
	_, err := io.Copy(io.MultiWriter(sum, to), src)
	return sum.Sum32(), errors.Join(err, src.Close())
}

// metadata writes _metadata, decodes it again and compares it with the planned
// model, before it becomes visible.
func (w *flinkWrite) metadata(ctx context.Context) (err error) {
	p := w.plan
	name := objpath.Join(w.dir, reader.MetadataName)
	out, err := p.store.Create(ctx, name, storage.CreateOptions{IfAbsent: true, Size: p.MetadataBytes})
	if err != nil {
		return p.exists(err)
	}
	defer func() {
		failed := err != nil
		if aerr := out.Abort(context.WithoutCancel(ctx)); failed && aerr != nil { // after Commit it does nothing
			if w.mover == nil {
				// The answer to the commit may have been lost. A snapshot that is there keeps
				// its files.
				w.dir = ""
				aerr = fmt.Errorf("%s may exist; it and the files next to it were not removed: %w", quote(name), aerr)
			}
			err = errors.Join(err, aerr)
		}
	}()
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
		if w.plan.snap.Remote() {
			return w.compare(ctx, data) // it takes no request
		}
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
