package reader

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/storage"
)

// Verification is the result of Verify.
type Verification struct {
	Faults, Warnings, Notes int
	Streams                 int   // checked
	Files                   int   // distinct files
	BytesRead               int64 // of state, if it was read
	Elements                int64 // of operator and native keyed state, if they were read
	Entries                 int64 // of keyed state, if they were checked
	// Counts of files by reference: NotChecked could not be looked up, Outside may
	// not be read because of their location, and Elsewhere were found, but not at
	// their references.
	NotChecked, Outside, Elsewhere int
	// Unread counts the files in a remote store that exist and have the
	// recorded length, as a list of their directory shows, and were not read; see
	// VerifyOptions.Read.
	Unread int
	Chunks int // of an .spt file, all checked
	// Absolute counts the handles that name absolute locations, which prevent moving
	// the snapshot as a directory.
	Absolute int
	// Apart counts the files of relative references that a mapping leads to, outside
	// the directory of the snapshot.
	Apart int
}

// Relocatable reports whether the snapshot can be moved as a directory.
func (v *Verification) Relocatable() bool { return v.Absolute == 0 && v.Apart == 0 }

// VerifyOptions for Verify.
type VerifyOptions struct {
	// Read also reads every byte of every file, and decodes every element of operator
	// state and every entry of native keyed state. Flink's files have no checksums:
	// for Flink's keyed state it shows only that the bytes can be read.
	//
	// Without it, only the header of each stream and one byte of each file are read,
	// and of files in a remote store nothing, because each would take a
	// request.
	Read bool
	// Deep also checks the entries of Flink's keyed state: the checksum of every block of
	// tables of RocksDB, the order of their keys, what the MANIFEST records about them;
	// that every key, namespace and value is decoded to its exact end; and that every key
	// is in the key group of its hash code, where its bytes determine that. It implies
	// Read.
	Deep bool
	// DescriptionOnly leaves out the content of streams: none is read.
	DescriptionOnly bool
	// ReadErrors makes a stream of state that cannot be read an error instead of a
	// finding.
	ReadErrors bool
	// Jobs is the number of handles, files or parts of them read at once; 0 means 8.
	// The findings and their order do not depend on it.
	Jobs     int
	Progress func(n int64) // bytes read; may be nil
}

// Verify checks everything that the description of a snapshot claims, the first
// bytes of each stream of state, and the checksums of an .spt file chunk by
// chunk. It calls report with each finding as it is made, in file order; report
// may be nil. The error is for what ended the work early.
//
// It reads a few KiB of each handle, and nothing of files in a remote store,
// unless Read is set. It does not check that the bytes of an element are what its
// serializer wrote. Entries of Flink's keyed state are decoded if Deep is set.
func (s *Snapshot) Verify(ctx context.Context, o VerifyOptions, report func(finding.Finding)) (*Verification, error) {
	if o.Jobs < 0 {
		return &Verification{}, fmt.Errorf("%d jobs: expected 0 or more: %w", o.Jobs, format.ErrUnsupported)
	}
	v := newVerifier(ctx, s, o, report)
	v.files = map[reference]int64{}
	if err := s.LookUp(ctx, true); err != nil {
		return v.result, err
	}
	if !metadata.KnownProperties(s.Savepoint) {
		v.report(finding.Note, "properties", "", "", "no release of Flink writes the properties object in this layout; it is kept unchanged")
	}
	if err := s.Outside(); err != nil {
		v.report(finding.Warning, "file-outside", "", MetadataName, "%v", err)
	}
	if err := v.operators(s.Operators); err != nil {
		return v.result, err
	}
	if err := v.streams(); err != nil {
		return v.result, err
	}
	if s.src.file != nil {
		if err := v.chunks(); err != nil {
			return v.result, err
		}
		if err := v.wires(); err != nil {
			return v.result, err
		}
		if err := v.natives(); err != nil {
			return v.result, err
		}
	}
	if err := v.orphans(); err != nil {
		return v.result, err
	}
	return v.result, s.Unchanged(ctx)
}

// Examine reports what Verify finds in the description and in the streams of the
// given operators. Missing files, and without Read files in a remote store,
// are skipped, not reported.
func (s *Snapshot) Examine(ctx context.Context, ops []*format.Operator, o VerifyOptions, report func(finding.Finding)) error {
	return newVerifier(ctx, s, o, report).operators(ops)
}

func newVerifier(ctx context.Context, s *Snapshot, o VerifyOptions, report func(finding.Finding)) *verifier {
	v := &verifier{ctx: ctx, snap: s, o: o, out: report, result: &Verification{},
		seen: map[claim]bool{}, ids: map[format.OperatorID]bool{}, arrays: map[string][2]firstOf{}, contents: map[[sha256.Size]byte]bool{}}
	v.o.Read = o.Read || o.Deep
	if report == nil {
		v.out = func(finding.Finding) {}
	}
	var mu sync.Mutex
	v.o.Progress = func(n int64) {
		if o.Progress != nil && n > 0 {
			mu.Lock()
			defer mu.Unlock()
			o.Progress(n)
		}
	}
	return v
}

type verifier struct {
	ctx     context.Context
	snap    *Snapshot
	o       VerifyOptions
	out     func(finding.Finding)
	result  *Verification
	seen    map[claim]bool
	covered map[format.StreamKey]bool // streams that were read to check entries
	files   map[reference]int64       // handles of each file; nil if files are not checked
	ids     map[format.OperatorID]bool
	backend missingBackend
	op      *format.Operator // operator being checked
	bad     map[any]bool     // its handles whose description is wrong: their content is not checked

	unique int
	arrays map[string][2]firstOf // result of checkOffsets, by array of offsets and size of the stream

	contents map[[sha256.Size]byte]bool // handles of an .spt whose content was read

	check   *contentCheck
	waiting []waiting // files being read, and findings that follow them
}

// claim is what a handle claims about a stream. Two handles on one file can claim
// different lengths.
type claim struct {
	key       format.StreamKey
	size      int64
	changelog bool
}

func (v *verifier) report(sev finding.Severity, code, location, file, msg string, args ...any) {
	v.emit(finding.Finding{Severity: sev, Code: code, Operator: v.op, Place: location, File: file, Message: fmt.Sprintf(msg, args...)})
}

// emit reports a finding, after the findings of the files that are being read.
func (v *verifier) emit(f finding.Finding) {
	if len(v.waiting) > 0 {
		v.waiting = append(v.waiting, waiting{finding: &f})
		return
	}
	switch f.Severity {
	case finding.Error:
		v.result.Faults++
	case finding.Warning:
		v.result.Warnings++
	default:
		v.result.Notes++
	}
	v.out(f)
}

// operators checks operators: their descriptions, then the content of their
// streams.
func (v *verifier) operators(ops []*format.Operator) error {
	defer func() { v.op = nil }()
	v.check = &contentCheck{snap: v.snap, sp: &format.Savepoint{Operators: ops}, o: v.o, files: v.files != nil}
	for i, op := range ops {
		v.op, v.bad = op, map[any]bool{}
		if err := v.operator(op); err != nil {
			return err
		}
		if v.o.DescriptionOnly {
			continue
		}
		if err := v.content(i, op); err != nil {
			return err
		}
	}
	return nil
}

// operator checks what needs no file other than the description.
func (v *verifier) operator(op *format.Operator) error {
	location := fmt.Sprintf("operator %q", op.Label())
	if v.ids[op.ID] {
		v.report(finding.Error, "operator-id", location, "", "the id %s occurs twice", op.ID)
	}
	v.ids[op.ID] = true
	if op.Parallelism < 1 || op.MaxParallelism < 1 || op.MaxParallelism > format.MaxKeyGroups || op.Parallelism > op.MaxParallelism {
		v.report(finding.Error, "parallelism", location, "", "parallelism %d of at most %d", op.Parallelism, op.MaxParallelism)
	}
	for _, sub := range op.Subtasks {
		at := fmt.Sprintf("%s/subtask %d", location, sub.Index)
		if sub.Index < 0 || sub.Index >= op.Parallelism {
			v.report(finding.Error, "subtask", at, "", "the operator has parallelism %d", op.Parallelism)
		}
		if err := v.offsets(at+"/"+format.SlotManaged.String(), sub.Managed); err != nil {
			return err
		}
		if err := v.offsets(at+"/"+format.SlotRaw.String(), sub.Raw); err != nil {
			return err
		}
		for _, h := range []format.KeyedHandle{sub.ManagedKeyed, sub.RawKeyed} {
			if err := v.keyed(at+"/keyed state", op, h); err != nil {
				return err
			}
		}
	}
	return nil
}

// offsets checks that the elements of each state are inside the stream and in
// order. Equal offsets are valid: elements can be empty.
func (v *verifier) offsets(location string, h *format.OperatorHandle) error {
	if h == nil {
		return nil
	}
	size := int64(0)
	if h.Data != nil {
		size = h.Data.Size()
	}
	for _, st := range h.States {
		at := fmt.Sprintf("%s/state %q", location, st.Name)
		if n := st.Offsets.Len(); st.Mode == format.ModeBroadcast && n != 1 {
			v.report(finding.Warning, "broadcast", at, "", "%d offsets, a broadcast state has one", n)
		}
		outside, order, err := v.checkOffsets(st.Offsets, size)
		if err != nil {
			return format.At(err, "%s", at)
		}
		if outside.count > 0 {
			v.report(finding.Error, "offsets", at, "", "%d of %d offsets are outside the %d bytes of the stream, the first is %d of element %d",
				outside.count, st.Offsets.Len(), size, outside.value, outside.index)
			v.bad[h] = true
		}
		if order.count > 0 {
			v.report(finding.Warning, "offsets", at, "", "%d of %d offsets are smaller than the one before, the first is %d of element %d",
				order.count, st.Offsets.Len(), order.value, order.index)
		}
	}
	return nil
}

// firstOf counts wrong offsets and keeps the first.
type firstOf struct{ count, index, value int64 }

func (f *firstOf) add(index, value int64) {
	if f.count++; f.count == 1 {
		f.index, f.value = index, value
	}
}

// checkOffsets calls the function checkOffsets once per array: many states of a
// handle can share a long one.
func (v *verifier) checkOffsets(o format.Offsets, size int64) (outside, order firstOf, err error) {
	const long = 4096
	if o.Len() < long {
		return checkOffsets(v.ctx, o, size)
	}
	id := fmt.Sprintf("%s %d", v.array(o), size)
	wrong, known := v.arrays[id]
	if !known {
		if wrong[0], wrong[1], err = checkOffsets(v.ctx, o, size); err == nil {
			v.arrays[id] = wrong
		}
	}
	return wrong[0], wrong[1], err
}

// checkOffsets checks one array against the size of its stream, -1 if it is
// unknown. An element may start at the end: it is empty.
func checkOffsets(ctx context.Context, o format.Offsets, size int64) (outside, order firstOf, err error) {
	last := int64(0)
	err = format.EachOffset(ctx, o, func(first int64, run []int64) error {
		for i, off := range run {
			if off < 0 || size >= 0 && off > size {
				outside.add(first+int64(i), off)
			} else if off < last {
				order.add(first+int64(i), off)
			}
			last = off
		}
		return nil
	})
	return outside, order, err
}

func (v *verifier) keyed(location string, op *format.Operator, h format.KeyedHandle) error {
	if h == nil {
		return nil
	}
	if r := h.KeyGroups(); r.First < 0 || r.Count < 0 || int64(r.First)+int64(r.Count) > int64(op.MaxParallelism) {
		v.report(finding.Error, "key-groups", location, "", "key groups %d to %d, the operator has %d", r.First, int64(r.First)+int64(r.Count)-1, op.MaxParallelism)
	}
	switch h := h.(type) {
	case *format.KeyGroups:
		if n := h.Offsets.Len(); n != int64(h.Range.Count) {
			v.report(finding.Error, "key-groups", location, "", "%d offsets for %d key groups", n, h.Range.Count)
			v.bad[h] = true
			return nil
		}
		size := int64(0)
		if h.Data != nil {
			size = h.Data.Size()
		}
		outside, order, err := checkKeyGroups(v.ctx, h, size)
		if err != nil {
			return format.At(err, "%s", location)
		}
		if outside.count > 0 {
			v.report(finding.Error, "key-groups", location, "", "%d of %d key groups are outside the %d bytes of the stream, the first is %d at %d",
				outside.count, h.Range.Count, size, int64(h.Range.First)+outside.index, outside.value)
			v.bad[h] = true
		}
		if order.count > 0 {
			v.report(finding.Warning, "key-groups", location, "", "%d of %d key groups are stored before the one with the smaller number, the first is %d at %d",
				order.count, h.Range.Count, int64(h.Range.First)+order.index, order.value)
		}
	case *format.Changelog:
		for _, m := range append(append([]format.KeyedHandle(nil), h.Materialized...), h.Changes...) {
			if err := v.keyed(location, op, m); err != nil {
				return err
			}
		}
	}
	return nil
}

// checkKeyGroups is checkOffsets for the key groups that have data.
func checkKeyGroups(ctx context.Context, h *format.KeyGroups, size int64) (outside, order firstOf, err error) {
	last := int64(0)
	err = format.EachOffset(ctx, h.Offsets, func(first int64, run []int64) error {
		for i, off := range run {
			switch {
			case !h.HasData(off):
				continue
			case off < 0 || size >= 0 && off > size:
				outside.add(first+int64(i), off)
			case off < last:
				order.add(first+int64(i), off)
			}
			last = off
		}
		return nil
	})
	return outside, order, err
}

// streams checks that the file of every reference exists and has the recorded
// length.
func (v *verifier) streams() error {
	for _, op := range v.snap.Operators {
		for _, sub := range op.Subtasks {
			// A placeholder has no stream, but absolute directories. They are
			// irrelevant if the files are packed into one.
			if h := sub.Managed; v.snap.Container.Family == Flink && h != nil && h.Merging != nil && h.Merging.Placeholder {
				v.result.Absolute++
			}
		}
	}
	v.backend.names = fileref.BackendFiles(v.snap.Operators)
	defer func() { v.op = nil }()
	err := v.snap.EachStream(func(p format.Place, st format.Stream) error {
		v.result.Streams++
		v.op = p.Operator
		if len(v.waiting) >= batchSize {
			if err := v.readWaiting(); err != nil {
				return err
			}
		}
		if err := v.ctx.Err(); err != nil {
			return err
		}
		return v.stream(p, st)
	})
	if err == nil {
		err = v.readWaiting()
	}
	if err == nil {
		v.backendFindings()
	}
	return err
}

func (v *verifier) stream(p format.Place, st format.Stream) error {
	path, relative, ok := format.Reference(st)
	if !ok {
		v.packed(p, st)
		return nil
	}
	if !relative {
		v.result.Absolute++
	}
	ref := reference{relative, path.String()}
	_, known := v.files[ref]
	v.files[ref]++
	says := claim{st.Key(), st.Size(), p.Changelog}
	if v.seen[says] {
		return nil
	}
	v.seen[says] = true
	found, err := v.snap.Locate(v.ctx, st)
	if err != nil {
		return v.unlocated(p, ref, known, err)
	}
	if !known {
		v.result.Files++
		if relative && found.URI != v.snap.src.uri(objpath.Join(v.snap.src.dir, ref.path)) {
			v.result.Apart++
		}
		v.backend.found = v.backend.found || relative && v.backend.names[ref.path]
		if found.Instead != "" {
			v.result.Elsewhere++
			v.emit(finding.Finding{Operator: p.Operator, Severity: finding.Note, Code: "file-elsewhere", Place: p.String(), File: ref.path, Message: "not at its reference; found as " + quote(found.Name), Found: found.Name})
		}
	}
	switch s := st.(type) {
	case *format.Segment:
		if !s.Within(found.Info.Size) {
			v.report(finding.Error, "file-length", p.String(), ref.path, "expected bytes %d to %d, the file has %d", s.Start, s.Start+s.Length, found.Info.Size)
			return nil
		}
	default:
		if n := st.Size(); n >= 0 && !fileref.LengthFits(n, found.Info.Size, p.Changelog) {
			v.report(finding.Error, "file-length", p.String(), ref.path, "expected %d bytes, the file has %d", n, found.Info.Size)
			return nil
		} else if n < -1 {
			v.report(finding.Warning, "file-length", p.String(), ref.path, "a length of %d", n)
		}
	}
	if known {
		return nil
	}
	n := int64(1) // the file may exist and be unreadable
	_, whole := st.(*format.File)
	switch {
	case whole && v.covered[st.Key()]: // read already
		v.result.BytesRead += found.Info.Size
		v.o.Progress(found.Info.Size)
		return nil
	case v.o.Read:
		n = -1
	case !ability.Near(found.Store):
		v.result.Unread++
		return nil
	}
	v.read(p, ref, n)
	return nil
}

// unlocated reports a file that cannot be read, once.
func (v *verifier) unlocated(p format.Place, ref reference, known bool, err error) error {
	status := statusOf(err)
	switch {
	case ranged.Classify(err) == ranged.Transient, v.ctx.Err() != nil:
		return err // says nothing of the file
	case known:
	case ref.relative && !fileref.IsPlain(ref.path):
		v.report(finding.Error, "path", p.String(), ref.path, "the reference leads outside the snapshot and is not followed")
	case status == FileRefused:
		v.result.Outside++
		v.emit(finding.Finding{Severity: finding.Warning, Code: "file-outside", Operator: p.Operator, Place: p.String(), File: ref.path, Message: err.Error(), Advice: Remedies(err)})
	case status == FileNotChecked:
		v.result.NotChecked++
		v.emit(finding.Finding{Severity: finding.Note, Code: "file-not-checked", Operator: p.Operator, Place: p.String(), File: ref.path, Message: err.Error(),
			Advice: append(finding.RemediesOf(err), finding.Remedy{Words: "if there is a copy, give its location", Action: finding.MapFiles})})
	case errors.Is(err, format.ErrMissing):
		f := finding.Finding{Severity: finding.Error, Code: "file-missing", Operator: p.Operator, Place: p.String(), File: ref.path, Message: strings.TrimPrefix(err.Error(), ": ")}
		if !v.backend.hold(ref, f) {
			v.emit(f)
		}
	default:
		return err
	}
	return nil
}

// waiting is a file to read, or a finding to report after the ones before it.
type waiting struct {
	finding  *finding.Finding
	unit     work.Unit
	op       *format.Operator
	location string
	file     string
}

// read queues a file to be read: n bytes of it, or all if n is negative.
func (v *verifier) read(p format.Place, ref reference, n int64) {
	st := &format.File{Path: format.NewText(ref.path), Relative: ref.relative}
	v.waiting = append(v.waiting, waiting{op: p.Operator, location: p.String(), file: ref.path,
		unit: work.Unit{Job: work.CheckFile, State: work.All, Count: work.All, Target: ref.path, Parts: []work.Part{{Stream: work.Identity(st), Size: n}}}})
}

// readWaiting reads the queued files and reports their findings in order.
func (v *verifier) readWaiting() error {
	all, op := v.waiting, v.op
	defer func() { v.waiting, v.op = nil, op }()
	v.waiting = nil
	units := func(yield func(work.Unit) bool) {
		for _, w := range all {
			if w.finding == nil && !yield(w.unit) {
				return
			}
		}
	}
	k := 0
	findings := func() {
		for ; k < len(all) && all[k].finding != nil; k++ {
			v.emit(*all[k].finding)
		}
	}
	findings()
	return work.Run(v.ctx, v.o.options(), units, v.check.file, func(_ work.Unit, n int64, err error) error {
		w := all[k]
		k++
		if v.o.Read {
			v.result.BytesRead += n
		}
		switch {
		case err == nil:
		case v.ctx.Err() != nil, ranged.Classify(err) == ranged.InputChanged, ranged.Classify(err) == ranged.Transient:
			return storageKind(err)
		default:
			v.op = w.op
			v.report(finding.Error, "read", w.location, w.file, "%v", err)
		}
		findings()
		return nil
	})
}

// file runs a unit that reads a file, and returns how many bytes it read.
func (c *contentCheck) file(ctx context.Context, u work.Unit) (int64, error) {
	if len(u.Parts) != 1 {
		return 0, fmt.Errorf("internal error: a unit that reads %d files", len(u.Parts))
	}
	st := &format.File{Path: format.NewText(u.Target), Relative: true}
	if work.Identity(st) != u.Parts[0].Stream {
		st.Relative = false
	}
	l := c.snap.src.lookup(ctx, st)
	if l.err != nil {
		return 0, l.err
	}
	body, _, err := l.rd.Open(ctx, 0, u.Parts[0].Size)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(progressWriter(c.o.Progress), body)
	return n, errors.Join(err, body.Close())
}

type progressWriter func(int64)

func (w progressWriter) Write(p []byte) (int, error) {
	w(int64(len(p)))
	return len(p), nil
}

// chunks checks the checksums of an .spt file.
func (v *verifier) chunks() error {
	n := v.snap.Container.SPT.Chunks
	v.result.Chunks = n
	report := func(e format.Error) { v.report(finding.Error, "checksum", e.Path, "", "%s", e.Error()) }
	verifier := v.snap.src.file.Verifier(report)
	units := func(yield func(work.Unit) bool) {
		for first := 0; first < n; first += chunkCount {
			if !yield(work.Unit{Job: work.CheckChunks, State: work.All, First: int64(first), Count: int64(min(chunkCount, n-first))}) {
				return
			}
		}
	}
	check := func(ctx context.Context, u work.Unit) (found []format.Error, err error) {
		err = verifier.Chunks(ctx, int(u.First), int(u.First+u.Count), func(e format.Error) { found = append(found, e) })
		return found, err
	}
	return storageKind(work.Run(v.ctx, v.o.options(), units, check, func(_ work.Unit, found []format.Error, err error) error {
		for _, e := range found {
			report(e)
		}
		return err
	}))
}

// orphans reports files next to _metadata that no handle names.
func (v *verifier) orphans() error {
	s := v.snap
	if s.Container.Family != Flink || objpath.Base(s.Container.Name) != MetadataName {
		return nil
	}
	files, err := s.src.ownFiles(v.ctx)
	if errors.Is(err, storage.ErrUnsupported) {
		return nil // a web server: what is not referred to cannot be known there
	}
	if err != nil {
		return storageKind(err)
	}
	named := map[string]bool{MetadataName: true}
	for ref := range v.files {
		named[ref.path[strings.LastIndexByte(ref.path, '/')+1:]] = true
	}
	var n int
	var bytes int64
	var example string
	for _, f := range files {
		if base := objpath.Base(f.Name); !named[base] {
			if n == 0 {
				example = base
			}
			n++
			bytes += f.Size
		}
	}
	if n > 0 {
		v.report(finding.Note, "orphan", "", example, "%s next to _metadata that no handle names, %d bytes", plural(n, "file"), bytes)
	}
	return nil
}
