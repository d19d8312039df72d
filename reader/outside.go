package reader

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/storage"
)

// This file decides which files are read: see Options.Follow and SECURITY.md.
// A snapshot may come from a stranger, and its references can name any file that
// the user may read.

// spot is the normalized location of an object: two names of one object have
// equal spots.
type spot struct {
	space string // "file", "file://host", or "" for a store of URIs
	path  string // without a slash at the end, except for "/"
}

// below reports whether an object is dir or below it. "/a-evil" is not below
// "/a".
func (p spot) below(dir spot) bool {
	if p.space != dir.space {
		return false
	}
	rest, ok := strings.CutPrefix(p.path, dir.path)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir.path, "/"))
}

// join returns a spot below this one.
func (p spot) join(name string) spot { return spot{p.space, objpath.Join(p.path, name)} }

// uri returns the spot as Options.Follow and Flink name it.
func (p spot) uri() string {
	if p.space == "file" {
		return p.path
	}
	return p.space + p.path
}

// parent returns the directory of a spot; ok is false at the top.
func (p spot) parent() (spot, bool) {
	dir := objpath.Dir(p.path)
	if dir == "" || dir == p.path || strings.HasSuffix(dir, ":") {
		return spot{}, false
	}
	return spot{p.space, dir}, true
}

// spotOf returns the spot of an object. ok is false if its name does not
// determine it: then the object is not below any directory.
func spotOf(ctx context.Context, store storage.Storage, name, uri string) (at spot, ok bool, err error) {
	c, canonical := store.(ability.Canonicalizer)
	if !canonical {
		path := format.CanonicalURI(uri)
		if strings.Contains(name, "://") { // the store knows all spellings of its URIs
			path = name
		}
		path = strings.TrimRight(path, "/")
		for part := range strings.SplitSeq(path[strings.Index(path, "://")+1:], "/") {
			if part == ".." || part == "." || strings.ContainsAny(part, "\\\x00") {
				return spot{}, false, nil
			}
		}
		return spot{"", path}, true, nil
	}
	at.space = "file"
	if host := objpath.Host(uri); host != "" {
		at.space = "file://" + host
	}
	if onShare(name) {
		return spot{}, false, nil
	}
	if name == "" {
		name = "."
	}
	at.path, err = c.Canonical(ctx, name)
	return at, err == nil, err
}

// onShare reports whether a name is on another machine. Windows sends the user's
// credentials there even to check that a file exists.
func onShare(name string) bool {
	return runtime.GOOS == "windows" && len(name) > 1 && strings.ContainsRune(`/\`, rune(name[0])) && strings.ContainsRune(`/\`, rune(name[1]))
}

// area is a directory below which files are read.
type area struct {
	spot
	allowed bool // by the user
	once    sync.Once
	dir     ability.Directory // its identity when it was first used
	err     error
}

// areas are the directories below which the files of a snapshot are read.
type areas struct {
	once sync.Once
	all  []*area
	jobs []spot // directories whose chk-N are areas too
	err  error
	mu   sync.Mutex
}

// follows reports whether the user allowed reading a spot.
func (a *areas) follows(ctx context.Context, s *source, at spot) bool {
	in, err := a.of(ctx, s, at)
	return err == nil && in != nil && in.allowed
}

// of returns the area that contains a spot, or nil.
func (a *areas) of(ctx context.Context, s *source, at spot) (*area, error) {
	a.once.Do(func() { a.err = a.find(context.WithoutCancel(ctx), s) })
	if a.err != nil {
		return nil, a.err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, in := range a.all {
		if at.below(in.spot) {
			return in, nil
		}
	}
	for _, plain := range withoutEntropy(at) {
		for _, in := range a.all {
			if !in.allowed && plain.below(in.spot) {
				return in, nil
			}
		}
	}
	for _, job := range a.jobs {
		rest, ok := strings.CutPrefix(at.path, job.join("").path)
		name, _, inside := strings.Cut(rest, "/")
		if ok && inside && at.space == job.space && checkpointNumber(name) >= 0 {
			in := &area{spot: job.join(name)}
			a.all = append(a.all, in)
			return in, nil
		}
	}
	return nil, nil
}

// withoutEntropy returns the spots at which an object would be without the random
// characters that Flink puts into addresses.
func withoutEntropy(at spot) (all []spot) {
	if at.space != "" {
		return nil
	}
	for _, name := range objpath.WithoutRandom(at.path) {
		all = append(all, spot{"", name})
	}
	return all
}

// find adds the areas of a snapshot.
func (a *areas) find(ctx context.Context, s *source) error {
	add := func(at spot) { a.all = append(a.all, &area{spot: at}) }
	allowed := slices.Clone(s.follow)
	for _, m := range s.maps {
		allowed = append(allowed, m.New)
	}
	for _, uri := range allowed {
		if uri == "" { // of a mapping: the rest of the reference is the path
			uri = "/"
		}
		store, name, err := s.stores.Resolve(ctx, uri)
		if errors.Is(err, storage.ErrUnsupported) {
			continue // nothing there is read anyway
		}
		if err != nil {
			return err
		}
		at, ok, err := spotOf(ctx, store, name, uri)
		if err != nil {
			return err
		}
		if ok {
			a.all = append(a.all, &area{spot: at, allowed: true})
		}
	}
	if s.file != nil {
		return nil // an .spt file is self-contained; its directory is not part of it
	}
	var homes []spot
	for _, dir := range s.homes(ctx) {
		// The authority of a file: URI that names the snapshot is not part of its
		// location.
		uri := s.uri(dir)
		if objpath.Host(uri) != "" {
			uri = dir
		}
		home, ok, err := spotOf(ctx, s.store, dir, uri)
		if err != nil {
			return err
		}
		if !ok || slices.Contains(homes, home) {
			continue
		}
		homes = append(homes, home)
		add(home)
		job, ok := home.parent()
		if !ok {
			continue
		}
		// Flink stores what checkpoints share there; copies of checkpoints are
		// searched there too.
		a.jobs = append(a.jobs, job)
		for _, name := range []string{"shared", "taskowned", "dstl"} {
			add(job.join(name))
		}
		root, above := job.parent()
		if above {
			add(root.join("dstl"))
		} else if home.space == "" && objpath.Dir(dir) != "" {
			add(spot{"", format.CanonicalURI(s.uri("dstl"))}) // the job is at the top of its store
		}
		switch {
		case checkpointNumber(objpath.Base(dir)) < 0 && checkpointNumber(objpath.Base(home.path)) < 0:
		case above && root.path != "/" && isJobID(objpath.Base(job.path)):
			add(root)
		case job.path != "/": // the job has no directory of its own, or it was renamed; or the root is the file system's, which contains everything
			add(job)
		}
	}
	return nil
}

// pinned returns the directory of an area, as identified at first use.
func (in *area) pinned(ctx context.Context, c ability.Confiner) (ability.Directory, error) {
	in.once.Do(func() { in.dir, in.err = c.Directory(context.WithoutCancel(ctx), in.path) })
	return in.dir, in.err
}

// stat describes an object that is in the area at the time of the call.
func (in *area) stat(ctx context.Context, c ability.Confiner, at spot, name string) (storage.Info, error) {
	var info storage.Info
	var err error
	if rest := strings.TrimPrefix(at.path[len(in.path):], "/"); rest == "" { // one file was allowed
		info, err = c.StatBelow(ctx, ability.Directory{Name: objpath.Dir(at.path)}, objpath.Base(at.path))
	} else {
		var dir ability.Directory
		if dir, err = in.pinned(ctx, c); err != nil {
			return storage.Info{}, err
		}
		info, err = c.StatBelow(ctx, dir, rest)
	}
	info.Name = name
	return info, err
}

// look finds the object that a reference names, if it may be read. If not, it
// only checks whether the object exists, and only in the local file system, where
// the lookup discloses nothing to others.
func (s *source) look(ctx context.Context, ref string, store storage.Storage, name, uri string) (Found, error) {
	at, ok, err := spotOf(ctx, store, name, uri)
	if err != nil {
		return Found{}, absent(err, uri)
	}
	var in *area
	if ok {
		if in, err = s.areas.of(ctx, s, at); err != nil {
			return Found{}, err
		}
	}
	c, confines := store.(ability.Confiner)
	switch {
	case in != nil && confines:
		if strings.Contains(name, "..") { // a link leads it elsewhere
			name = at.path
		}
		info, err := in.stat(ctx, c, at, name)
		if err != nil {
			return Found{}, absent(err, uri)
		}
		return Found{Store: store, Name: name, Info: info, URI: uri}, nil
	case in != nil:
		info, err := s.stat(ctx, store, name)
		if err != nil {
			return Found{}, absent(err, uri)
		}
		return Found{Store: store, Name: name, Info: info, URI: uri}, nil
	case ok && at.space == "" && !s.sharesScheme(at):
		// Only the user decides that names go to a service that the snapshot chose.
		scheme, _ := objpath.Split(uri)
		return Found{}, &NotCheckedError{Reference: uri, Scheme: scheme, Follow: directoryOf(at)}
	case ok && at.space == "":
		return Found{}, &OutsideError{Reference: ref, Follow: directoryOf(at)}
	case !ok || at.space != "file":
		return Found{}, &OutsideError{Reference: ref, Follow: directoryOf(spot{path: uri})}
	}
	info, err := store.Stat(ctx, at.path)
	if errors.Is(err, storage.ErrNotExist) || ctx.Err() != nil {
		return Found{}, absent(err, uri)
	}
	info.Name = name
	outside := &OutsideError{Reference: ref, Follow: directoryOf(at), Exists: true}
	if local := (spot{"file", objpath.Clean(name)}); local != at {
		outside.Leads = at.path
	}
	return Found{Store: store, Name: name, Info: info, URI: uri}, outside
}

// sharesScheme reports whether an object is in a store of the snapshot's own kind.
func (s *source) sharesScheme(at spot) bool {
	own, _ := objpath.Split(s.dir)
	if own == "" {
		own, _ = objpath.Split(format.CanonicalURI(s.location))
	}
	scheme, _ := objpath.Split(at.path)
	return scheme == own
}

// linkedAway returns the target of a _metadata that is a link, if it is outside:
// the user named the directory, but its author chose the link. A file named by
// the user is read wherever it is.
func (s *source) linkedAway(ctx context.Context, name string, info storage.Info) (*OutsideError, error) {
	c, ok := s.store.(ability.Confiner)
	if !ok {
		return nil, nil
	}
	at, ok, err := spotOf(ctx, s.store, name, name)
	if err != nil || !ok {
		return nil, storageKind(err)
	}
	in, err := s.areas.of(ctx, s, at)
	if err != nil {
		return nil, storageKind(err)
	}
	if in == nil {
		return &OutsideError{Reference: name, Leads: at.path, Follow: directoryOf(at), Exists: true}, nil
	}
	now, err := in.stat(ctx, c, at, name)
	if err != nil {
		return nil, storageKind(err)
	}
	if now.Version != info.Version { // a link that changed while it was read
		return nil, format.InFile(format.Errorf(format.ErrChanged, "it is another file now"), name)
	}
	return nil, nil
}

// Outside returns an *OutsideError if the _metadata of the snapshot is a link
// that leads outside: then its description can be inspected, but no state is
// read.
func (s *Snapshot) Outside() error {
	if s.src.away == nil {
		return nil
	}
	return s.src.away
}

// directoryOf returns what Options.Follow must name to read a file: its
// directory, or the file itself if the directory is the root.
func directoryOf(at spot) string {
	if dir, ok := at.parent(); ok && dir.path != "/" {
		return dir.uri()
	}
	return at.uri()
}

// OutsideError is a reference that leads out of the directories whose files are
// read; see Options.Follow. It matches format.ErrOutside.
type OutsideError struct {
	Reference string // as recorded in the snapshot
	Leads     string // its target, with links resolved; "" if not resolved
	Follow    string // what Options.Follow must name to allow it; "" if it cannot be allowed

	// Exists reports whether the file was found: then Locate returns it too. If
	// false, its existence was not checked.
	Exists bool

	relative bool
}

func (e *OutsideError) Error() string {
	if e.relative {
		return fmt.Sprintf("relative reference %q is not a file name, so it can lead outside the snapshot, and is not followed", e.Reference)
	}
	text := fmt.Sprintf("file %s is outside the snapshot and its checkpoint directory and is not read", quote(e.Reference))
	if e.Leads != "" && e.Leads != e.Reference {
		text += fmt.Sprintf(" (it leads to %s)", quote(e.Leads))
	}
	return text
}

// Is matches format.ErrOutside, and format.ErrUnsupported for a relative
// reference that no release of Flink writes.
func (e *OutsideError) Is(target error) bool {
	return target == format.ErrOutside || target == format.ErrUnsupported && e.relative
}

// Remedies returns how to allow it.
func (e *OutsideError) Remedies() []finding.Remedy {
	if e.Follow == "" {
		return fileref.AllowOutside()
	}
	return fileref.AllowOutside(e.Follow)
}

// NotCheckedError is a reference whose file was not looked up: its store is not
// supported here or is another one than the snapshot's, or it did not answer or
// denied permission. It matches format.ErrNotChecked and Err.
type NotCheckedError struct {
	Reference string // as recorded in the snapshot, or as a mapping changed it
	Scheme    string // of a store that was not asked; else ""
	Follow    string // what Options.Follow must name to ask that store; "" if it is not supported
	Err       error  // of the store; nil if it was not asked
}

func (e *NotCheckedError) Error() string {
	return fmt.Sprintf("file %s was not checked: %s", quote(e.Reference), e.Reason())
}

// Reason returns why the file was not looked up, without the file.
func (e *NotCheckedError) Reason() string {
	var of *storage.Error
	switch {
	case e.Follow != "":
		return e.Scheme + ": is another store"
	case errors.Is(e.Err, storage.ErrUnsupported) && e.Scheme != "":
		return e.Scheme + ": is not supported here"
	case errors.As(e.Err, &of) && of.Err != nil:
		return of.Err.Error()
	case e.Err != nil:
		return e.Err.Error()
	}
	return "unknown"
}

// Remedies returns how to ask another store.
func (e *NotCheckedError) Remedies() []finding.Remedy {
	if e.Follow == "" {
		return nil
	}
	return fileref.AllowOutside(e.Follow)
}

// Unwrap returns format.ErrNotChecked and the error of the store.
func (e *NotCheckedError) Unwrap() []error {
	if e.Err == nil {
		return []error{format.ErrNotChecked}
	}
	return []error{format.ErrNotChecked, e.Err}
}
