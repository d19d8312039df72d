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

// spot is where an object is, in one spelling: two names of one object have
// equal spots.
type spot struct {
	space string // "file", "file://host", or "" for a store of URIs
	path  string // without a slash at the end, except for "/"
}

// below reports whether an object is a folder, or below it. "/a-evil" is not
// below "/a".
func (p spot) below(dir spot) bool {
	if p.space != dir.space {
		return false
	}
	rest, ok := strings.CutPrefix(p.path, dir.path)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir.path, "/"))
}

// join returns a spot below this one.
func (p spot) join(name string) spot { return spot{p.space, objpath.Join(p.path, name)} }

// uri is how Options.Follow and Flink name the spot.
func (p spot) uri() string {
	if p.space == "file" {
		return p.path
	}
	return p.space + p.path
}

// parent is the folder of a spot; ok is false at the top.
func (p spot) parent() (spot, bool) {
	dir := objpath.Dir(p.path)
	if dir == "" || dir == p.path || strings.HasSuffix(dir, ":") || p.space == "" && strings.HasSuffix(dir, ":/") {
		return spot{}, false
	}
	return spot{p.space, dir}, true
}

// spotOf returns where an object is. ok is false if its name does not determine
// that: then it is not below anything.
func spotOf(ctx context.Context, store storage.Storage, name, uri string) (at spot, ok bool, err error) {
	c, canonical := store.(ability.Canonicalizer)
	if !canonical {
		path := strings.TrimRight(format.CanonicalURI(uri), "/")
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

// onShare reports whether a name is one of another machine, of which Windows
// asks even whether it exists with the password of the user.
func onShare(name string) bool {
	return runtime.GOOS == "windows" && len(name) > 1 && strings.ContainsRune(`/\`, rune(name[0])) && strings.ContainsRune(`/\`, rune(name[1]))
}

// area is a folder below which files are read.
type area struct {
	spot
	allowed bool // by the user
	once    sync.Once
	folder  ability.Directory // what it was when it was first needed
	err     error
}

// areas are the folders below which the files of a snapshot are read.
type areas struct {
	once sync.Once
	all  []*area
	jobs []spot // folders whose chk-N are areas too
	err  error
	mu   sync.Mutex
}

// follows reports whether the user allowed what is at a spot.
func (a *areas) follows(ctx context.Context, s *source, at spot) bool {
	in, err := a.of(ctx, s, at)
	return err == nil && in != nil && in.allowed
}

// of returns the area that holds a spot, nil where none does.
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

// find names the areas of a snapshot.
func (a *areas) find(ctx context.Context, s *source) error {
	add := func(at spot) { a.all = append(a.all, &area{spot: at}) }
	allowed := slices.Clone(s.follow)
	for _, m := range s.maps {
		allowed = append(allowed, m.New)
	}
	for _, uri := range allowed {
		if uri == "" { // of a mapping: what is left of the reference is the path
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
		return nil // everything is in an .spt; the folder that it happens to be in is not part of it
	}
	var homes []spot
	for _, dir := range s.homes(ctx) {
		// The authority of a file: URI by which the user named the snapshot is not
		// part of where it is.
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
		// Where Flink puts what a checkpoint shares with others, and where it is
		// looked for when the checkpoint was copied away.
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
		case job.path != "/": // the job has no folder of its own, or it was renamed; or the root is that of the file system, which is everything
			add(job)
		}
	}
	return nil
}

// pinned is the folder of an area, always the one that it was at first.
func (in *area) pinned(ctx context.Context, c ability.Confiner) (ability.Directory, error) {
	in.once.Do(func() { in.folder, in.err = c.Directory(context.WithoutCancel(ctx), in.path) })
	return in.folder, in.err
}

// stat describes an object of an area: it is in the area at that moment.
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

// look finds an object that a reference names, if it may be read. If not, it only
// checks whether the object exists, and only in the local file system: "missing" is
// worth knowing, and a lookup there informs nobody else.
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
		if strings.Contains(name, "..") { // through a link it is not what the reference says
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
	case !ok || at.space != "file":
		return Found{}, &OutsideError{Reference: ref, Follow: folderOf(spot{path: uri})}
	}
	info, err := store.Stat(ctx, at.path)
	if errors.Is(err, storage.ErrNotExist) || ctx.Err() != nil {
		return Found{}, absent(err, uri)
	}
	info.Name = name
	outside := &OutsideError{Reference: ref, Follow: folderOf(at), Exists: true}
	if local := (spot{"file", objpath.Clean(name)}); local != at {
		outside.Leads = at.path
	}
	return Found{Store: store, Name: name, Info: info, URI: uri}, outside
}

// linkedAway returns where the _metadata of a folder leads if that is outside: the
// user named the folder, and the author of the folder chose the link. A file that
// the user names is read wherever it is.
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
		return &OutsideError{Reference: name, Leads: at.path, Follow: folderOf(at), Exists: true}, nil
	}
	now, err := in.stat(ctx, c, at, name)
	if err != nil {
		return nil, storageKind(err)
	}
	if now.Version != info.Version { // a link that was turned while it was read
		return nil, format.InFile(format.Errorf(format.ErrChanged, "it is another file now"), name)
	}
	return nil, nil
}

// Outside returns an *OutsideError if the _metadata of the snapshot is a link that
// leads outside: then its description can be looked at, and no state is read.
func (s *Snapshot) Outside() error {
	if s.src.away == nil {
		return nil
	}
	return s.src.away
}

// folderOf is what to follow so that a file is read: its folder, or itself where
// that is everything.
func folderOf(at spot) string {
	if dir, ok := at.parent(); ok && dir.path != "/" {
		return dir.uri()
	}
	return at.uri()
}

// OutsideError is a reference that leads out of the folders whose files are
// read: see Options.Follow. It matches format.ErrOutside.
type OutsideError struct {
	Reference string // as the snapshot has it
	Leads     string // where it leads, links resolved; "" where that was not looked at
	Follow    string // what Options.Follow must name to allow it; "" where nothing does

	// Exists reports that there is a file: then Locate returns what it is. If not,
	// nobody looked.
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

// Is makes it a format.ErrOutside, and a relative reference that no Flink writes a
// format.ErrUnsupported.
func (e *OutsideError) Is(target error) bool {
	return target == format.ErrOutside || target == format.ErrUnsupported && e.relative
}

// Remedies returns what allows it.
func (e *OutsideError) Remedies() []finding.Remedy {
	if e.Follow == "" {
		return fileref.AllowOutside()
	}
	return fileref.AllowOutside(e.Follow)
}

// NotCheckedError is a reference whose file nobody could look for: its store is
// not supported here, gave no answer or no permission. It matches
// format.ErrNotChecked and Err.
type NotCheckedError struct {
	Reference string // as the snapshot has it, or as a mapping changed it
	Scheme    string // of a store that is not supported here, else ""
	Err       error  // of the store
}

func (e *NotCheckedError) Error() string {
	if e.Scheme != "" {
		return fmt.Sprintf("file %s was not checked: %s: is not supported here", quote(e.Reference), e.Scheme)
	}
	return fmt.Sprintf("file %s was not checked: %v", quote(e.Reference), e.Err)
}

// Unwrap makes it a format.ErrNotChecked and what the store said.
func (e *NotCheckedError) Unwrap() []error { return []error{format.ErrNotChecked, e.Err} }
