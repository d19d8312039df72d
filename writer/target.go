package writer

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// TargetError is the error for a target that is refused.
type TargetError struct {
	Target, Why string
	Advice      []finding.Remedy
}

func (e *TargetError) Error() string { return fmt.Sprintf("%s: %s", quote(e.Target), e.Why) }

// Remedies returns what to do instead.
func (e *TargetError) Remedies() []finding.Remedy { return e.Advice }

// elsewhere is the remedy for most refused targets.
const elsewhere = "write somewhere else"

func quote(s string) string {
	if s == "" || strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || r == ' ' }) {
		return strconv.Quote(s)
	}
	return s
}

func shortHash(s string) [32]byte { return sha256.Sum256([]byte(s)) }

// checkTarget returns an error for a target that exists, overlaps the input, or
// lacks space.
func (p *Plan) checkTarget(ctx context.Context) error {
	if err := p.apart(ctx); err != nil {
		return err
	}
	if err := p.free(ctx); err != nil {
		return err
	}
	return p.room(ctx)
}

// apart checks that the target neither contains, equals nor is inside the input
// or any file that the input refers to, with links resolved.
func (p *Plan) apart(ctx context.Context) error {
	target, err := canonical(ctx, p.store, p.name)
	if errors.Is(err, storage.ErrNotExist) { // it would be created, but a parent is a file
		return &TargetError{p.Target, "it would be below a file", finding.Words(elsewhere)}
	}
	if err != nil {
		return err
	}
	for _, snap := range append([]*reader.Snapshot{p.snap}, p.snap.Others()...) {
		own := snap.Container.Name
		if snap.Container.Family == reader.Flink {
			own = snap.Dir()
			if own == "" {
				own = "."
			}
		}
		in, err := canonical(ctx, snap.Store(), own)
		if err != nil {
			return err
		}
		if sameNames(snap.Store(), p.store) {
			if how := overlap(target, in); how != "" {
				return &TargetError{p.Target, how + " the input", finding.Words(elsewhere)}
			}
		}
	}
	seen := map[string]bool{}
	return p.snap.EachStream(func(_ format.Place, st format.Stream) error {
		path, _, ok := format.Reference(st)
		if !ok || seen[path.String()] {
			return nil
		}
		seen[path.String()] = true
		if !ability.Near(p.store) && p.o.KeepReferences {
			return p.apartFrom(ctx, target, path.String()) // without looking at each
		}
		found, err := p.snap.Locate(ctx, st)
		if found.Store == nil || err != nil && !errors.Is(err, format.ErrOutside) || !sameNames(found.Store, p.store) {
			return ctx.Err() // a missing file cannot overlap
		}
		file, err := canonical(ctx, found.Store, found.Name)
		if err != nil {
			return err
		}
		if how := overlap(target, file); how != "" {
			return &TargetError{p.Target, how + " a file of the input, " + quote(found.Name), finding.Words(elsewhere)}
		}
		return nil
	})
}

// apartFrom checks the target against where an absolute reference leads, if it does not
// lead elsewhere by now. It makes no request.
func (p *Plan) apartFrom(ctx context.Context, target, ref string) error {
	store, name, err := p.o.Stores.Resolve(ctx, ref)
	if err != nil || !sameNames(store, p.store) {
		return ctx.Err()
	}
	if how := overlap(target, objpath.Clean(name)); how != "" {
		return &TargetError{p.Target, how + " a file of the input, " + quote(name), finding.Words(elsewhere)}
	}
	return nil
}

// sameNames reports whether a name refers to the same object in two stores. Two
// stores with canonical names both access the local disk.
func sameNames(a, b storage.Storage) bool {
	if a == b {
		return true
	}
	_, real1 := a.(ability.Canonicalizer)
	_, real2 := b.(ability.Canonicalizer)
	return real1 && real2
}

func canonical(ctx context.Context, store storage.Storage, name string) (string, error) {
	if c, ok := store.(ability.Canonicalizer); ok {
		return c.Canonical(ctx, name)
	}
	return objpath.Clean(name), nil
}

// overlap describes the relation of one location to another; "" if they do not
// overlap.
func overlap(target, other string) string {
	t, o := strings.TrimSuffix(target, "/")+"/", strings.TrimSuffix(other, "/")+"/"
	switch {
	case t == o:
		return "it is"
	case strings.HasPrefix(t, o):
		return "it is inside"
	case strings.HasPrefix(o, t):
		return "it contains"
	}
	return ""
}

// free checks that the target does not exist or is a snapshot that may be
// replaced.
func (p *Plan) free(ctx context.Context) error {
	if err := notALink(ctx, p.store, p.name, p.Target); err != nil {
		return err
	}
	what, err := p.whatIsThere(ctx)
	if err != nil {
		return err
	}
	at := p.name
	if what == nothing {
		aside, err := p.asides(ctx)
		if err != nil || len(aside) == 0 {
			return err
		}
		names := quote(strings.Join(aside, ", "))
		why := fmt.Sprintf("it is missing: a run of spt that replaced it was interrupted, and left the snapshot under %s", names)
		if len(aside) > 1 {
			return &TargetError{p.Target, why, finding.Words("rename the right one back")}
		}
		if !p.o.Overwrite {
			return &TargetError{p.Target, why, []finding.Remedy{{Words: "replace it", Action: finding.Overwrite}, {Words: fmt.Sprintf("rename it back:  mv %s %s", shell.Quote(aside[0]), shell.Quote(p.name))}}}
		}
		p.Recovers, at, what = aside[0], aside[0], directory
	}
	if !p.o.Overwrite {
		return &TargetError{p.Target, "it exists", []finding.Remedy{{Words: elsewhere}, {Words: "replace a snapshot", Action: finding.Overwrite}}}
	}
	if what == file {
		info, err := p.store.Stat(ctx, at) // before it is opened, so the opened version is this or a newer one
		if err != nil {
			return err
		}
		p.old = map[string]storage.Version{"": info.Version}
	}
	location := p.Target
	if p.Recovers != "" {
		location = objpath.Join(objpath.Dir(objpath.Clean(p.Target)), objpath.Base(p.Recovers))
	}
	snap, err := reader.Open(ctx, location, &reader.Options{Stores: p.o.Stores})
	if err != nil {
		return &TargetError{p.Target, fmt.Sprintf("it is not a snapshot, so it is not overwritten (%v)", err), finding.Words("remove it first if it is not needed")}
	}
	defer snap.Close() //nolint:errcheck // opened only to check it
	isFile := objpath.Base(snap.Container.Name) == objpath.Base(at) && what == file
	if p.Family == reader.SPT != isFile {
		return &TargetError{p.Target, "a file cannot replace a directory, nor a directory a file", finding.Words(elsewhere)}
	}
	if p.Family == reader.Flink {
		if err := p.look(ctx, at, snap); err != nil {
			return err
		}
	}
	p.Replaces = true
	return nil
}

// notALink refuses a target that is a symbolic link: replacing the link would
// leave its target, and replacing the target would change what the user did not
// name.
func notALink(ctx context.Context, store storage.Storage, name, target string) error {
	l, ok := store.(ability.LinkReader)
	if !ok {
		return nil
	}
	to, err := l.ReadLink(ctx, name)
	if err != nil || to == "" {
		return err
	}
	return &TargetError{target, fmt.Sprintf("it is a symbolic link to %s", quote(to)), []finding.Remedy{{Words: "name its target"}, {Words: elsewhere}}}
}

type there int

const (
	nothing there = iota
	file
	directory
)

func (p *Plan) whatIsThere(ctx context.Context) (there, error) {
	if ability.Flat(p.store) {
		return p.whatIsListed(ctx)
	}
	if _, err := p.store.Stat(ctx, p.name); err == nil {
		return file, nil
	} else if !errors.Is(err, storage.ErrNotExist) {
		return nothing, err
	}
	// A directory exists if it has an entry, or if its parent lists it.
	for _, err := range p.store.List(ctx, p.name+"/", "/") {
		if err != nil {
			return nothing, err
		}
		return directory, nil
	}
	dir := objpath.Dir(p.name)
	if dir != "" && !strings.HasSuffix(dir, "/") {
		dir += "/"
	}
	for info, err := range p.store.List(ctx, dir+objpath.Base(p.name), "/") {
		if err != nil {
			if errors.Is(err, storage.ErrNotExist) {
				return nothing, nil
			}
			return nothing, err
		}
		if info.Name == p.name+"/" {
			return directory, nil
		}
	}
	return nothing, nil
}

// whatIsListed is whatIsThere in a store without directories, in one request: both an
// object of the name and those below it are listed by the name as the prefix.
func (p *Plan) whatIsListed(ctx context.Context) (there, error) {
	prefix := p.name
	if _, rest, uri := strings.Cut(p.name, "://"); uri && !strings.Contains(rest, "/") {
		prefix += "/" // a bucket
	}
	for info, err := range p.store.List(ctx, prefix, "/") {
		switch {
		case err != nil:
			return nothing, err
		case info.Name == p.name:
			return file, nil
		case strings.HasPrefix(info.Name, p.name+"/"):
			return directory, nil
		case info.Name > p.name+"/": // names are in order
			return nothing, nil
		}
	}
	return nothing, nil
}

// room checks the free space if the store reports it. Linked files need none.
func (p *Plan) room(ctx context.Context) error {
	s, ok := p.store.(storage.SpaceReporter)
	if !ok {
		return nil
	}
	need := p.MetadataBytes
	for _, f := range p.Files {
		if f.How != string(Link) {
			need += f.Bytes
		}
	}
	if p.Family == reader.SPT {
		need = 0 // compressed and deduplicated: the size is unknown
	}
	have, err := s.FreeSpace(ctx, p.name)
	if err != nil {
		if errors.Is(err, storage.ErrUnsupported) {
			return nil
		}
		return err
	}
	if have < need {
		return &storage.Error{Op: "write", Name: p.Target, Err: fmt.Errorf("%d bytes needed, %d free: %w", need, have, storage.ErrNoSpace)}
	}
	return nil
}
