package writer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// Plan describes what Write will do.
type Plan struct {
	Target   string // as the user named it
	Family   reader.Family
	Replaces bool // an existing snapshot is replaced
	// Recovers is where an interrupted run left the snapshot to be replaced; Write
	// moves it back first.
	Recovers string
	// Files are the files that will be next to _metadata, in the order of the
	// snapshot.
	Files []File
	// Rewrites are the distinct references that change.
	Rewrites []Rewrite
	// Missing are the references kept although their files are missing or
	// unreachable.
	Missing []string
	// Outside are the files that stay in place and are referred to.
	Outside []string
	// Substituted are files that were not at their references, and were found under
	// the snapshot's own or its job's directory.
	Substituted []Rewrite
	// Lost is what the version of _metadata cannot store.
	Lost []string
	// Remarks are what a user must know before restoring the result.
	Remarks []string
	// Bytes is the number of bytes of state that will be read, before any
	// compression.
	Bytes int64
	// ToFiles is the number of handles whose inline state moves from _metadata into
	// files, and ToFilesBytes its size.
	ToFiles      int
	ToFilesBytes int64
	// MetadataBytes is the size of the new _metadata.
	MetadataBytes int64

	snap *reader.Snapshot
	view *format.Savepoint // the result
	// copies is the number of files that the service copies at once.
	copies int
	// verbatim: the new _metadata equals the old one byte for byte.
	verbatim bool
	o        Options
	store    storage.Storage
	name     string                     // of the target in store
	old      map[string]storage.Version // files of the snapshot to be replaced; for an .spt file, its version at ""
	absent   map[string]struct{}        // references kept without their bytes
	checked  map[format.StreamKey]bool  // see sources
	ours     map[format.StreamKey]bool  // references of snap, if another was combined with it
}

// toFiles counts a handle whose n inline bytes move into a file.
func (p *Plan) toFiles(n int64) {
	if n > 0 {
		p.ToFiles++
		p.ToFilesBytes += n
	}
}

// File is one file that will be written.
type File struct {
	Name  string
	Bytes int64
	How   string // "copy", "link", "segment" of a merged file, "extract" from an .spt, "inline" state moved out, "new" bytes
	From  string // its reference or name in the input
	of    format.Stream
}

// Rewrite is a reference that changes.
type Rewrite struct{ From, To string }

// MissingError lists all files that prevent a complete copy. It matches
// format.ErrMissing, format.ErrOutside and format.ErrNotChecked if it has a file
// of that kind.
type MissingError struct {
	Files     []string // one line each: the reference and its problem
	Short     int      // number of them that exist, but do not have the recorded length
	Outside   int      // number of them that are outside the snapshot and were not followed
	Unchecked int      // number of them whose lookup failed
	Follow    []string // what reader.Options.Follow must name to read the files outside; distinct

	of []string // snapshot of each
}

// add adds a file of the snapshot named of.
func (e *MissingError) add(of string, err error) {
	e.Files, e.of = append(e.Files, err.Error()), append(e.of, of)
	switch {
	case errors.Is(err, format.ErrTruncated):
		e.Short++
	case errors.Is(err, format.ErrOutside):
		e.Outside++
		var out *reader.OutsideError
		if errors.As(err, &out) && out.Follow != "" && !slices.Contains(e.Follow, out.Follow) {
			e.Follow = append(e.Follow, out.Follow)
		}
	case errors.Is(err, format.ErrNotChecked):
		e.Unchecked++
	}
}

// err returns the error for the added files, or nil. It names the snapshot, or
// the snapshot of each file if there are several.
func (e *MissingError) err() error {
	if len(e.Files) == 0 {
		return nil
	}
	if of := e.of[0]; !slices.ContainsFunc(e.of, func(s string) bool { return s != of }) {
		return format.InFile(e, of)
	}
	for i, of := range e.of {
		e.Files[i] = of + ": " + e.Files[i]
	}
	return e
}

func (e *MissingError) Error() string {
	const most = 20
	list := e.Files
	more := ""
	if len(list) > most {
		more = fmt.Sprintf("\n  … and %d more", len(list)-most)
		list = list[:most]
	}
	n := "1 file"
	if len(e.Files) != 1 {
		n = fmt.Sprintf("%d files", len(e.Files))
	}
	return fmt.Sprintf("%s of the snapshot cannot be read; nothing was written:\n  %s%s", n, strings.Join(list, "\n  "), more)
}

// Is matches each kind of error that it has.
func (e *MissingError) Is(target error) bool {
	switch target {
	case format.ErrMissing:
		return len(e.Files) > e.Outside+e.Unchecked
	case format.ErrOutside:
		return e.Outside > 0
	case format.ErrNotChecked:
		return e.Unchecked > 0
	}
	return false
}

// Remedies returns what the user can do.
func (e *MissingError) Remedies() []finding.Remedy {
	keep := finding.Remedy{Words: "keep the references without their files", Action: finding.KeepMissing}
	gone := len(e.Files) - e.Short - e.Outside
	switch {
	case gone > 0 && gone == len(e.Files):
		return []finding.Remedy{{Words: "say where they are", Action: finding.MapFiles}, keep}
	case e.Short > 0 && e.Short == len(e.Files):
		return []finding.Remedy{{Words: "copy them again and compare sizes"}, keep}
	}
	var all []finding.Remedy
	if e.Outside > 0 {
		all = append(all, fileref.AllowOutside(e.Follow...)...)
	}
	if gone > 0 {
		all = append(all, finding.Remedy{Words: "say where the missing ones are", Also: true, Action: finding.MapFiles})
	}
	if e.Short > 0 {
		all = append(all, finding.Remedy{Words: "copy the others again and compare sizes", Also: true})
	}
	return append(all, keep)
}

// Prepare checks the input and the target and returns what Write will do. It
// writes nothing. If files are missing or unreachable, the error is a
// *MissingError that lists all of them; if the target is refused, it is a
// *TargetError.
func Prepare(ctx context.Context, v format.View, target string, opts *Options) (*Plan, error) {
	o, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	snap, ok := reader.Of(v)
	if !ok {
		return nil, fmt.Errorf("a view that package reader did not open: %w", format.ErrUnsupported)
	}
	if o.KeepReferences && o.Files == Reference {
		return nil, fmt.Errorf("references cannot be both kept as they are and rewritten to name files in place: %w", format.ErrUnsupported)
	}
	for _, in := range append([]*reader.Snapshot{snap}, snap.Others()...) {
		if err := in.Outside(); err != nil {
			return nil, err
		}
	}
	p := &Plan{Target: target, Family: o.Family, snap: snap, o: o, copies: o.Jobs, absent: map[string]struct{}{}}
	if opts == nil || opts.Jobs == 0 {
		p.copies = serviceCopies
	}
	if p.Family == "" {
		p.Family = reader.Flink
		if strings.HasSuffix(objpath.Clean(target), reader.Extension) {
			p.Family = reader.SPT
		}
	}
	if target != "" {
		if p.store, p.name, err = o.Stores.Resolve(ctx, target); err != nil {
			return nil, cannotWriteThere(err)
		}
		p.name = objpath.Clean(p.name)
	}
	if err := snap.LookUp(ctx, p.Family == reader.SPT || !o.KeepReferences); err != nil {
		return nil, err
	}
	switch p.Family {
	case reader.SPT:
		err = p.forSPT(ctx)
	default:
		err = p.forFlink(ctx)
	}
	if err != nil {
		return nil, err
	}
	if target != "" {
		if err := p.checkTarget(ctx); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// forSPT plans an .spt file: it contains everything that can be read; only
// missing files are left out.
func (p *Plan) forSPT(ctx context.Context) error {
	c := *p.snap.Savepoint
	c.Location = "" // the location must not change the bytes of the file
	p.view = &c
	var missing MissingError
	seen := map[format.StreamKey]bool{}
	err := p.view.EachStream(func(place format.Place, st format.Stream) error {
		_, _, ref := format.Reference(st)
		if !ref {
			p.Bytes += format.SizeOf(st)
			return p.sources(ctx, place, st, &missing)
		}
		key := st.Key()
		if seen[key] {
			return nil
		}
		seen[key] = true
		found, ok, err := p.locate(ctx, place, st, &missing)
		if err == nil && ok {
			p.Bytes += streamSize(st, found)
		}
		return err
	})
	if err == nil {
		err = missing.err()
	}
	return err
}

// streamSize returns the number of bytes of a stream whose file was found.
func streamSize(st format.Stream, found reader.Found) int64 {
	if s, ok := st.(*format.Segment); ok {
		return s.Length
	}
	return found.Info.Size
}

// locate finds the file of a reference and checks its length. If it is missing or
// unreachable, locate records it as kept or missing, and ok is false.
func (p *Plan) locate(ctx context.Context, place format.Place, st format.Stream, missing *MissingError) (found reader.Found, ok bool, err error) {
	path, _, _ := format.Reference(st)
	found, err = p.snap.Locate(ctx, st)
	if err == nil {
		err = checkLength(place, st, found)
	}
	switch {
	case err == nil:
		if found.Instead != "" {
			p.Substituted = append(p.Substituted, Rewrite{path.String(), found.Name})
		}
		return found, true, nil
	case ctx.Err() != nil, !absent(err):
		return found, false, err
	case p.o.KeepMissing:
		if _, dup := p.absent[path.String()]; !dup {
			p.Missing = append(p.Missing, path.String())
		}
		p.absent[path.String()] = struct{}{}
	default:
		missing.add(p.ownerOf(st), err)
	}
	return found, false, nil
}

// sources checks the files that a rope takes bytes from: its length depends on
// their recorded lengths. Without any of them it cannot be written, regardless of
// KeepMissing.
func (p *Plan) sources(ctx context.Context, place format.Place, s format.Stream, missing *MissingError) error {
	switch st := s.(type) {
	case *format.Concat:
		var last format.Stream
		for _, part := range st.Parts {
			if part.Of == last {
				continue
			}
			last = part.Of
			if err := p.sources(ctx, place, part.Of, missing); err != nil {
				return err
			}
		}
	case *format.KeyGroupStream:
		return p.sources(ctx, place, st.Data, missing)
	case *format.File, *format.Segment:
		key := st.Key()
		if p.checked[key] {
			return nil
		}
		if p.checked == nil {
			p.checked = map[format.StreamKey]bool{}
		}
		p.checked[key] = true
		found, err := p.snap.Locate(ctx, st)
		if err == nil {
			err = checkLength(place, st, found)
		}
		if err != nil && (ctx.Err() != nil || !absent(err)) {
			return err
		}
		if err != nil {
			missing.add(p.ownerOf(st), err)
		}
	}
	return nil
}

// absent reports whether an error means that a file is missing or shorter than
// recorded.
func absent(err error) bool {
	return ranged.Classify(err) != ranged.Transient && (format.NoFile(err) || errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrTruncated))
}

// ownerOf names the snapshot that a reference came from: ours if it has the
// reference, or if none was combined with it. Combining renames references, so
// the other snapshot cannot be searched for it.
func (p *Plan) ownerOf(st format.Stream) string {
	others := p.snap.Others()
	if len(others) == 0 {
		return p.snap.Container.Name
	}
	if p.ours == nil {
		p.ours = map[format.StreamKey]bool{}
		_ = p.snap.AsRead().EachStream(func(_ format.Place, s format.Stream) error {
			if _, _, ref := format.Reference(s); ref {
				p.ours[s.Key()] = true
			}
			return nil
		})
	}
	if p.ours[st.Key()] {
		return p.snap.Container.Name
	}
	return others[0].Container.Name
}

// checkLength compares the length of a file with the recorded length.
func checkLength(place format.Place, st format.Stream, found reader.Found) error {
	path, _, _ := format.Reference(st)
	if s, ok := st.(*format.Segment); ok {
		if !s.Within(found.Info.Size) {
			return format.Errorf(format.ErrTruncated, "file %s: expected bytes %d to %d, it has %d", quote(path.String()), s.Start, s.Start+s.Length, found.Info.Size)
		}
		return nil
	}
	if n := st.Size(); n >= 0 && !fileref.LengthFits(n, found.Info.Size, place.Changelog) {
		return format.Errorf(format.ErrTruncated, "file %s: expected %d bytes, it has %d", quote(path.String()), n, found.Info.Size)
	}
	return nil
}

// forFlink plans a Flink directory: each stream is stored next to or inside the
// new _metadata.
func (p *Plan) forFlink(ctx context.Context) error {
	sp := p.snap.Savepoint
	if p.o.MetadataVersion != 0 {
		var err error
		if sp, err = metadata.WithVersion(sp, metadata.Version(p.o.MetadataVersion)); err != nil {
			return err
		}
	}
	sp, p.Lost = metadata.Trim(sp)
	version, ok := metadata.VersionOf(sp)
	if !ok {
		version = metadata.Latest
	}
	m := &flinkPlacer{ctx: ctx, plan: p, relative: version.HasRelativeFiles(), placed: map[format.StreamKey]format.Stream{}, names: map[string]string{}, outer: map[string]bool{},
		extracted: map[extracted]format.Stream{}, claimed: map[string]bool{}}
	if !m.relative && p.Target != "" {
		var err error
		if m.base, err = ability.URI(ctx, p.store, p.name, objpath.Clean(p.Target)); err != nil {
			return err
		}
	}
	// Names that the input uses next to _metadata do not change, so they are claimed
	// before any other file is named.
	m.reserve(sp)
	view, err := sp.MapStreams(m.place)
	if err != nil {
		return err
	}
	if err := m.missing.err(); err != nil {
		return err
	}
	stay := p.o.KeepReferences || p.o.Files == Reference && p.snap.Container.Family == reader.Flink
	view = withoutMerging(view, stay)
	if sharedBecomeRelative(p.snap.AsRead(), view) {
		p.Remarks = append(p.Remarks, "shared files of an incremental checkpoint are next to _metadata now: restore it without claiming (NO_CLAIM). After a restore with CLAIM, Flink up to 2.3.0 takes checkpoints that cannot be restored")
	}
	p.verbatim = p.snap.Container.Family == reader.Flink && p.snap.Describes(view)
	c := *view
	c.Location = p.Target
	p.view = &c
	if err := nativeStates(p.view); err != nil {
		return err
	}
	if version == metadata.V2 {
		if err := canonicalStates(p.view); err != nil {
			return err
		}
	}
	if p.snap.Container.Family == reader.SPT { // a malicious file may hold what _metadata cannot
		if err := metadata.Check(ctx, p.view); err != nil {
			return format.InFile(err, p.snap.Container.Name)
		}
	}
	p.MetadataBytes, err = metadata.Size(p.view)
	return err
}

// NativeError is the error for writing state of a Go program to a Flink
// directory. It matches format.ErrUnsupported, and is not a problem of the input.
type NativeError struct{ Operator string }

func (e *NativeError) Error() string {
	return fmt.Sprintf("operator %q holds state in spt's own encoding, which Flink cannot read", e.Operator)
}

// Is matches format.ErrUnsupported.
func (e *NativeError) Is(target error) bool { return target == format.ErrUnsupported }

// Remedies returns where the state can be written.
func (e *NativeError) Remedies() []finding.Remedy {
	return finding.Words("an .spt file can hold it: give the target a name that ends in .spt, or drop the operator")
}

// CanonicalError is the error for writing keyed state in the canonical format with metadata
// version 2, which cannot mark it: Flink would take it for state of the backend that wrote
// the snapshot. It matches format.ErrUnsupported.
type CanonicalError struct{ Operator string }

func (e *CanonicalError) Error() string {
	return fmt.Sprintf("operator %q has keyed state in the canonical format, which metadata version 2 cannot mark", e.Operator)
}

// Is matches format.ErrUnsupported.
func (e *CanonicalError) Is(target error) bool { return target == format.ErrUnsupported }

// Remedies returns how the state can be written.
func (e *CanonicalError) Remedies() []finding.Remedy {
	first, _ := flink.Lifetime(flink.Facts.CanonicalSavepoints)
	return []finding.Remedy{{Words: fmt.Sprintf("Flink %v and later restore it: convert the snapshot for the release of the job first,", first), Action: finding.NameRelease}}
}

// canonicalStates returns an error for canonical keyed state that was built. What was read
// has the mark that it was read with.
func canonicalStates(sp *format.Savepoint) error {
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			if h, ok := sub.ManagedKeyed.(*format.KeyGroups); ok && h.Savepoint && len(h.Wire) == 0 {
				return &CanonicalError{op.Label()}
			}
		}
	}
	return nil
}

// nativeStates returns an error for state that Flink cannot read.
func nativeStates(sp *format.Savepoint) error {
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			if h := sub.Managed; h != nil && h.Codec == format.CodecNative {
				return &NativeError{op.Label()}
			}
			if h, ok := sub.ManagedKeyed.(*format.KeyGroups); ok && h.Codec == format.CodecNative {
				return &NativeError{op.Label()}
			}
		}
	}
	return nil
}

// withoutMerging removes what file merging adds to handles, the placeholders and
// the directories they name, if the segments became files of their own. If
// references are kept, placeholders are too, and only segments from an .spt file
// become files.
func withoutMerging(sp *format.Savepoint, stay bool) *format.Savepoint {
	c := *sp
	c.Operators = make([]*format.Operator, len(sp.Operators))
	changed := false
	for i, op := range sp.Operators {
		c.Operators[i] = op
		var subs []*format.Subtask
		for k, sub := range op.Subtasks {
			h := sub.Managed
			if h == nil || h.Merging == nil {
				continue
			}
			switch h.Data.(type) {
			case *format.Segment:
				continue // it stays in place, or is missing and kept
			case *format.EmptySegment:
				if stay {
					continue
				}
			}
			if subs == nil {
				subs = append(subs, op.Subtasks...)
			}
			s := *sub
			if h.Merging.Placeholder {
				s.Managed = nil
			} else {
				plain := *h
				plain.Merging = nil
				s.Managed = &plain
			}
			subs[k] = &s
		}
		if subs != nil {
			o := *op
			o.Subtasks = subs
			c.Operators[i] = &o
			changed = true
		}
	}
	if !changed {
		return sp
	}
	return &c
}

// sharedBecomeRelative reports whether the shared list of an incremental handle
// in view names a file next to _metadata for which it had an absolute location
// before (docs/flink-notes.md: Flink restores that, and must not own it).
func sharedBecomeRelative(sp, view *format.Savepoint) bool {
	relative := func(sp *format.Savepoint) (n int) {
		var count func(format.KeyedHandle)
		count = func(h format.KeyedHandle) {
			switch h := h.(type) {
			case *format.Incremental:
				for _, s := range h.Shared {
					st := s.Data
					if c, ok := st.(*format.Chunks); ok {
						st = c.As
					}
					if _, rel, ok := format.Reference(st); ok && rel {
						n++
					}
				}
			case *format.Changelog:
				for _, m := range h.Materialized {
					count(m)
				}
			}
		}
		for _, op := range sp.Operators {
			for _, sub := range op.Subtasks {
				count(sub.ManagedKeyed)
			}
		}
		return n
	}
	return relative(view) > relative(sp)
}

// cannotWriteThere replaces the hint of a store, which is about reading, with a
// hint about writing.
func cannotWriteThere(err error) error {
	var s *storage.Error
	if !errors.Is(err, storage.ErrUnsupported) || !errors.As(err, &s) {
		return err
	}
	c := *s
	c.Hint = "write to a local directory, and upload that"
	return &c
}
