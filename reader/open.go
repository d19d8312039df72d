package reader

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// MetadataName is the file that makes a directory a Flink snapshot.
const MetadataName = "_metadata"

// Extension is the extension of spt's own files.
const Extension = ".spt"

// Options for Open.
type Options struct {
	Stores storage.Resolver // nil: local files
	Limits format.Limits
	// Map maps prefixes of absolute references to where their files are now; the
	// longest prefix wins.
	Map []format.Mapping
	// Mapped is called once per opened snapshot with the mappings of Map that matched
	// a reference. It may be nil, and must be safe for concurrent use.
	Mapped func(fit []bool)
	// Follow names further directories, as paths or URIs, whose files are read if a
	// reference or a link leads there. By default, files are read only below the
	// snapshot's own directory, its checkpoint root (ROOT for ROOT/JOBID/chk-N) and
	// the targets of Map; an .spt file has no such directories. Any other reference
	// is an *OutsideError. Paths are compared element by element, with all links
	// resolved.
	Follow []string
	// Progress is called with the number of bytes of each read of state, from
	// several goroutines. It may be nil.
	Progress func(n int64)
	// Path lists the directories in which a bare name is looked up.
	Path []string
	// Types returns the type of a part of a state of an operator in place of the
	// serializer that the snapshot records, or nil for that one: for values of user code,
	// such as types.Given("order", codec). It may be nil, and must be safe for concurrent
	// use. Bytes that are not of the type are format.ErrCorrupt.
	Types func(op *format.Operator, state string, part types.Part, recorded *types.Snapshot) *types.Snapshot
}

// orDefault returns the options, with local files if they name no stores.
func (o *Options) orDefault() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Stores == nil {
		c.Stores = route.New(local.New())
	}
	return c
}

// progress is called with numbers of bytes; it may be nil.
type progress func(n int64)

func (p progress) add(n int) {
	if p != nil {
		p(int64(n))
	}
}

// Family is the kind of container.
type Family string

// The families.
const (
	Flink Family = "flink"
	SPT   Family = "spt"
)

// Container describes what a snapshot was read from.
type Container struct {
	Family   Family
	Name     string // the file: _metadata or .spt, as its store names it
	Size     int64  // of that file
	ModTime  time.Time
	Metadata int32     // of _metadata; for an .spt file the version it was made from, or 0
	SPT      spt.Stats // of an .spt file
}

// Snapshot is an open snapshot: the model and access to its bytes. It is safe for
// concurrent use.
type Snapshot struct {
	*format.Savepoint
	Container Container
	src       *source
	mapping   *ability.Mapped
	asRead    *format.Savepoint // as read from the container
	others    []*Snapshot       // whose streams may be in the model too; see Combine
	given     givenTypes
}

// Open opens the snapshot at a location: a directory, a _metadata or an .spt
// file. If o is nil, it reads local files. Errors say what was found instead, and
// match format.ErrCorrupt, format.ErrUnsupported or a storage error; Remedies
// returns what to do. The caller must call Close.
func Open(ctx context.Context, location string, o *Options) (*Snapshot, error) {
	return open(ctx, location, o.orDefault())
}

func open(ctx context.Context, location string, o Options) (*Snapshot, error) {
	f, err := find(ctx, location, o)
	if err != nil {
		return nil, err
	}
	return f.open(ctx, o, false)
}

// Salvage opens the readable part of a damaged _metadata. The snapshot holds what
// precedes the damage, which is returned as damage; err is for a snapshot that
// could not be opened at all.
func Salvage(ctx context.Context, location string, opts *Options) (snap *Snapshot, damage, err error) {
	o := opts.orDefault()
	f, err := find(ctx, location, o)
	if err != nil {
		return nil, nil, err
	}
	if snap, err := f.open(ctx, o, false); err == nil {
		return snap, nil, nil
	} else if f.family != Flink || !errors.Is(err, format.ErrCorrupt) {
		return nil, nil, err
	} else {
		damage = err
	}
	snap, _ = f.open(ctx, o, true) // its error is the damage, returned already
	if snap == nil {
		return nil, nil, damage
	}
	return snap, damage, nil
}

// found is the file that describes a snapshot.
type found struct {
	store    storage.Storage
	name     string
	location string // of the snapshot, as the user wrote it
	head     []byte // its first bytes
	info     storage.Info
	family   Family
	rd       *ranged.Reader
	chosen   bool // the user named the file itself, not its directory
}

// headSize is the size of the first read: a whole _metadata in most cases.
const headSize = 1 << 20

// mapFrom is the size from which a local _metadata is mapped instead of read into
// memory.
const mapFrom = 4 << 20

func (f *found) open(ctx context.Context, o Options, salvage bool) (*Snapshot, error) {
	var snap *Snapshot
	var err error
	switch f.family {
	case SPT:
		snap, err = f.openSPT(ctx, o)
	default:
		snap, err = f.openFlink(ctx, o, salvage)
	}
	if err == nil && !f.chosen {
		if snap.src.away, err = snap.src.linkedAway(ctx, f.name, f.info); err != nil {
			snap.Close() //nolint:errcheck // the first error matters more
			return nil, err
		}
	}
	if snap != nil {
		snap.given.types = o.Types
	}
	if snap != nil && o.Mapped != nil {
		o.Mapped(mapped(ctx, snap, o.Map))
	}
	return snap, err
}

// mapped returns the mappings that match a reference or the name of a directory.
func mapped(ctx context.Context, snap *Snapshot, maps []format.Mapping) []bool {
	sp := snap.Savepoint
	fit := make([]bool, len(maps))
	note := func(uri string) {
		for i, m := range maps {
			fit[i] = fit[i] || m.Fits(uri)
		}
	}
	beside := false
	_ = sp.EachStream(func(_ format.Place, st format.Stream) error {
		if c, packed := st.(*format.Chunks); packed {
			st = c.As // its state before and after packing
		}
		path, relative, ok := format.Reference(st)
		switch {
		case !ok:
		case !relative:
			note(path.String())
		case !beside: // one represents all of them
			beside = true
			for _, uri := range snap.src.spellings(ctx, path.String()) {
				note(uri)
			}
		}
		return nil
	})
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			if sub.Managed != nil && sub.Managed.Merging != nil {
				note(sub.Managed.Merging.TaskOwnedDir.String())
				note(sub.Managed.Merging.SharedDir.String())
			}
		}
	}
	return fit
}

func (f *found) openFlink(ctx context.Context, o Options, salvage bool) (*Snapshot, error) {
	p, mapping, err := f.contents(ctx)
	if err != nil {
		return nil, storageKind(err)
	}
	decode := metadata.Decode
	if salvage {
		decode = metadata.Salvage
	}
	sp, err := decode(p, metadata.Options{Limits: o.Limits})
	if err != nil && (!salvage || sp == nil) {
		explained := f.explain(format.InFile(err, f.name), p)
		// A mapped file that was truncated reads as zeros up to the end of its page,
		// so a decoding error means nothing if the file changed.
		if cerr := closeMapping(mapping); cerr != nil {
			return nil, storageKind(cerr)
		}
		return nil, explained
	}
	c := *sp
	c.Location = f.location
	snap := &Snapshot{Savepoint: &c, mapping: mapping}
	if err == nil { // otherwise the file has more bytes, or fewer
		snap.asRead = &c
	}
	snap.Container = Container{Family: Flink, Name: f.name, Size: f.info.Size, ModTime: f.info.ModTime}
	snap.Container.Metadata = metadataVersion(sp)
	snap.src = newSource(f, o, nil, sp)
	return snap, nil
}

// contents returns the whole file, mapped if it is large and can be mapped.
func (f *found) contents(ctx context.Context) (format.Bytes, *ability.Mapped, error) {
	if int64(len(f.head)) == f.info.Size {
		return format.NewBytes(f.head), nil, nil
	}
	if m, ok := f.store.(ability.Mapper); ok && f.info.Size >= mapFrom {
		mapping, err := m.Map(ctx, f.name, f.info.Version)
		if err == nil {
			return format.MappedBytes(mapping.Data), mapping, nil
		}
		if !errors.Is(err, storage.ErrUnsupported) {
			return format.Bytes{}, nil, err
		}
	}
	p := make([]byte, f.info.Size)
	copy(p, f.head)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(partsAtOnce)
	for off := int64(len(f.head)); off < int64(len(p)); off += partSize {
		g.Go(func() error {
			_, err := sptReader{f.rd, nil}.ReadAt(gctx, p[off:min(off+partSize, int64(len(p)))], off)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return format.Bytes{}, nil, err
	}
	return format.NewBytes(p), nil, nil
}

const (
	// partSize is the size of a read of a large _metadata, and partsAtOnce the number
	// of them at once.
	partSize    = 8 << 20
	partsAtOnce = 8
)

func (f *found) openSPT(ctx context.Context, o Options) (*Snapshot, error) {
	r := &openingReader{sptReader: sptReader{f.rd, o.Progress}, head: f.head}
	if n := f.tailSize(); n > 0 {
		r.tail, r.tailAt = make([]byte, n), f.info.Size-n
		if _, err := r.sptReader.ReadAt(ctx, r.tail, r.tailAt); err != nil {
			return nil, format.InFile(err, f.name)
		}
	}
	file, err := spt.Open(ctx, r, f.info.Size, o.Limits)
	r.head, r.tail = nil, nil
	if err != nil {
		return nil, f.explainSPT(format.InFile(err, f.name))
	}
	c := *file.Savepoint()
	c.Location = f.location
	snap := &Snapshot{Savepoint: &c, asRead: &c}
	snap.Container = Container{Family: SPT, Name: f.name, Size: f.info.Size, ModTime: f.info.ModTime, SPT: file.Stats()}
	snap.Container.Metadata = metadataVersion(&c)
	snap.src = newSource(f, o, file, &c)
	return snap, nil
}

// sptReader makes a short read of a ranged.Reader the error it is.
type sptReader struct {
	rd       *ranged.Reader
	progress progress
}

func (r sptReader) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	n, err := r.rd.ReadAt(ctx, p, off)
	r.progress.add(n)
	if n < len(p) && (err == nil || isEOF(err)) {
		err = format.InFile(format.Errorf(format.ErrTruncated, "cut short: read of %d bytes at %d, only %d available", len(p), off, n), r.rd.Name())
	}
	if n == len(p) && isEOF(err) {
		err = nil
	}
	return n, storageKind(err)
}

const (
	// The end of a remote .spt file is read at once, this part of the file within these
	// bounds: with the manifest, in nearly every file.
	tailPart = 256
	minTail  = 256 << 10
	maxTail  = 4 << 20
)

// tailSize returns how much of the end of an .spt file to read at once; 0 if a read
// costs next to nothing, or the head has it all.
func (f *found) tailSize() int64 {
	rest := f.info.Size - int64(len(f.head))
	if ability.Near(f.store) || rest <= 0 {
		return 0
	}
	return min(f.info.Size, max(f.info.Size/tailPart, minTail), maxTail)
}

// openingReader serves the first reads, of the head and the tail, again without
// another request. After opening it drops those bytes, so that later reads notice a
// changed file.
type openingReader struct {
	sptReader
	head, tail []byte
	tailAt     int64
}

func (r *openingReader) ReadAt(ctx context.Context, p []byte, off int64) (int, error) {
	if off >= 0 && off <= int64(len(r.head)) && len(p) <= len(r.head)-int(off) {
		return copy(p, r.head[off:]), nil
	}
	if off >= r.tailAt && int64(len(p)) <= r.tailAt+int64(len(r.tail))-off {
		return copy(p, r.tail[off-r.tailAt:]), nil
	}
	return r.sptReader.ReadAt(ctx, p, off)
}

// Source returns the source of the snapshot's streams.
func (s *Snapshot) Source() format.Source { return s.src }

// Close releases the snapshot; nothing read from it may be used afterwards. It
// returns ErrChanged if a mapped _metadata changed since it was opened: then
// results derived from it are invalid.
func (s *Snapshot) Close() error {
	m := s.mapping
	s.mapping = nil
	return storageKind(closeMapping(m))
}

func closeMapping(m *ability.Mapped) error {
	if m == nil {
		return nil
	}
	return m.Close()
}

// Dir returns the directory of relative references, as its store names it.
func (s *Snapshot) Dir() string { return s.src.dir }

// Describe returns the name of the container: "metadata v4 (Flink 1.16–1.20)" or
// "spt 1.0".
func (c Container) Describe() string {
	if c.Family == SPT {
		text := fmt.Sprintf("spt %d.%d", c.SPT.Major, c.SPT.Minor)
		if v := metadata.Version(c.Metadata); v.Valid() {
			text += fmt.Sprintf(", made from metadata %s (Flink %s)", v, v.Releases())
		}
		return text
	}
	v := metadata.Version(c.Metadata)
	return fmt.Sprintf("metadata %s (Flink %s)", v, v.Releases())
}

func metadataVersion(sp *format.Savepoint) int32 {
	v, _ := metadata.VersionOf(sp)
	return int32(v)
}

// storageKind makes a storage error also match the kinds of package format.
func storageKind(err error) error {
	if err != nil && errors.Is(err, storage.ErrChanged) && !errors.Is(err, format.ErrChanged) {
		return &kinded{err, format.ErrChanged}
	}
	return err
}

// kinded is an error of the kind kind.
type kinded struct{ err, kind error }

func (e *kinded) Error() string   { return e.err.Error() }
func (e *kinded) Unwrap() []error { return []error{e.err, e.kind} }

// isSnapshotName reports whether a name could name the description of a snapshot.
func isSnapshotName(name string) bool {
	base := objpath.Base(name)
	return base == MetadataName || strings.HasSuffix(base, Extension)
}
