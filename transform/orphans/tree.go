package orphans

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// root is a directory that is searched.
type root struct {
	path  string // as the user can write it
	also  bool   // only its snapshots matter
	store storage.Storage
	name  string // in store, links resolved
}

// tree is what is below the roots.
type tree struct {
	roots     []*root
	dirs      []*Dir // parents first, once their kinds are known
	byName    map[dirKey]*Dir
	snapshots []entry // found files that describe one
	unlisted  []Problem
	seed      maphash.Seed
	files     bool // keep them; else only their sums
}

type dirKey struct {
	store storage.Storage
	name  string
}

// keyOf makes the spellings of one directory equal.
func keyOf(store storage.Storage, name string) dirKey {
	return dirKey{store, format.CanonicalURI(name)}
}

// Dir is a directory below a root.
type Dir struct {
	Path string // as the user can write it
	Name string // in its store
	Kind Kind
	// Job is the id of the job whose directory it is in, as far as names show it: of a
	// savepoint only the first six digits; "" if they do not.
	Job string

	root   *root
	parent *Dir
	job    *Dir              // the job's directory, if it was listed
	folder ability.Directory // its identity where a directory has one
	files  []file            // ordered by name

	hasMetadata, hasCheckpoint, hasShared, hasTaskOwned, control bool

	// sum covers the names and versions of all objects, described only of the
	// descriptions of snapshots. They do not depend on the order.
	sum, described uint64
}

// file is an object in a directory.
type file struct {
	name    string
	size    int64
	time    int64  // nanoseconds; 0: not known
	version uint64 // hash of storage.Version
	owners  int32  // set of the snapshots that refer to it, see owners
}

// entry is a file that describes a snapshot.
type entry struct {
	dir  *Dir
	name string
}

func newTree(files bool, seed maphash.Seed) *tree {
	return &tree{byName: map[dirKey]*Dir{}, seed: seed, files: files}
}

func (t *tree) hash(s string) uint64 { return maphash.String(t.seed, s) }

// resolve adds a root.
func (t *tree) resolve(ctx context.Context, stores storage.Resolver, path string, also bool) error {
	store, name, err := stores.Resolve(ctx, path)
	if err != nil {
		return err
	}
	r := &root{path: objpath.Clean(path), also: also, store: store, name: objpath.Clean(name)}
	if l, ok := store.(ability.LinkReader); ok {
		to, err := l.ReadLink(ctx, r.name)
		if err != nil {
			return err
		}
		if to != "" && !also {
			return &RootError{Path: path, Msg: "it is a symbolic link to " + to, Instead: to}
		}
	}
	if r.name, err = canonical(ctx, store, r.name); err != nil {
		return err
	}
	if _, err := store.Stat(ctx, r.name); err == nil {
		return &RootError{Path: path, Msg: "it is a file, not a directory"}
	}
	if c, ok := store.(ability.Confiner); ok {
		if _, err := c.Directory(ctx, r.name); err != nil {
			return err
		}
	}
	t.roots = append(t.roots, r)
	return nil
}

// canonical is the one name of an object or a directory.
func canonical(ctx context.Context, store storage.Storage, name string) (string, error) {
	c, ok := store.(ability.Canonicalizer)
	if !ok {
		return name, nil
	}
	if name == "" {
		name = "."
	}
	return c.Canonical(ctx, name)
}

// below reports whether a name is a directory, or below it.
func below(name, dir string) bool {
	if dir == "" || dir == "." {
		return true
	}
	dir = format.CanonicalURI(dir)
	rest, ok := strings.CutPrefix(format.CanonicalURI(name), dir)
	return ok && (rest == "" || rest[0] == '/' || strings.HasSuffix(dir, "/"))
}

// holds reports whether an object is below a root.
func (t *tree) holds(store storage.Storage, name string) bool {
	return slices.ContainsFunc(t.roots, func(r *root) bool { return r.store == store && below(name, r.name) })
}

// walk lists everything below the roots. Links are not followed.
func (t *tree) walk(ctx context.Context) error {
	for _, r := range t.roots {
		n := len(t.dirs)
		if _, links := r.store.(ability.LinkReader); links {
			if err := t.directory(ctx, r, r.path, r.name); err != nil {
				return err
			}
		} else if err := t.flat(ctx, r); err != nil {
			return err
		}
		if len(t.dirs) == n && t.byName[keyOf(r.store, r.name)] == nil && len(t.unlisted) == 0 {
			return &storage.Error{Op: "list", Name: r.path, Err: storage.ErrNotExist}
		}
	}
	for i := range t.dirs {
		d := t.dirs[i]
		if up := objpath.Dir(d.Name); up != d.Name {
			d.parent = t.byName[keyOf(d.root.store, up)]
		}
		slices.SortFunc(d.files, func(a, b file) int { return strings.Compare(a.name, b.name) })
	}
	slices.SortStableFunc(t.dirs, func(a, b *Dir) int { return strings.Compare(a.Name, b.Name) })
	for _, d := range t.dirs {
		d.classify()
	}
	slices.SortFunc(t.snapshots, func(a, b entry) int {
		return cmp.Or(strings.Compare(a.dir.Path, b.dir.Path), strings.Compare(a.name, b.name))
	})
	return nil
}

// dir returns a directory and makes it known. It is nil if it belongs to another root,
// which has listed it.
func (t *tree) dir(r *root, path, name string) *Dir {
	key := keyOf(r.store, name)
	if d := t.byName[key]; d != nil {
		if d.root != r {
			return nil
		}
		return d
	}
	d := &Dir{Path: path, Name: name, root: r}
	t.byName[key] = d
	t.dirs = append(t.dirs, d)
	return d
}

// directory lists one directory, and those below it.
func (t *tree) directory(ctx context.Context, r *root, path, name string) error {
	if t.byName[keyOf(r.store, name)] != nil {
		return nil
	}
	var folder ability.Directory
	if c, ok := r.store.(ability.Confiner); ok {
		var err error
		if folder, err = c.Directory(ctx, name); err != nil {
			return t.failed(ctx, path, err)
		}
	}
	d := t.dir(r, path, name)
	d.folder = folder
	links := r.store.(ability.LinkReader)
	var folders []string
	for info, err := range r.store.List(ctx, objpath.Prefix(name), "/") {
		if err != nil {
			return t.failed(ctx, path, err)
		}
		base := objpath.Base(objpath.Clean(info.Name))
		at := objpath.Join(name, base)
		if !strings.HasSuffix(info.Name, "/") {
			if info.Version == "" { // the list could not look at it
				if _, err := r.store.Stat(ctx, at); err != nil && !errors.Is(err, storage.ErrNotExist) {
					if err := t.failed(ctx, objpath.Join(path, base), err); err != nil {
						return err
					}
				}
				continue
			}
			t.add(d, base, info)
			continue
		}
		to, err := links.ReadLink(ctx, at)
		if err != nil {
			return t.failed(ctx, path, err)
		}
		d.note(base, true)
		d.described += t.hash(base + "/" + to)
		if to == "" {
			folders = append(folders, base)
			continue
		}
		if to, err = canonical(ctx, r.store, at); err != nil {
			return t.failed(ctx, path, err)
		}
		if !t.holds(r.store, to) {
			// Snapshots there may refer to files here.
			t.unlisted = append(t.unlisted, Problem{Kind: Outside, Path: objpath.Join(path, base), File: to, Err: fmt.Errorf("a symbolic link leads to %s: %w", to, format.ErrOutside)})
		}
	}
	for _, base := range folders {
		if err := t.directory(ctx, r, objpath.Join(path, base), objpath.Join(name, base)); err != nil {
			return err
		}
	}
	return nil
}

// failed notes a directory that could not be listed. Only a context that is over ends
// the walk.
func (t *tree) failed(ctx context.Context, path string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	t.unlisted = append(t.unlisted, Problem{Kind: Unlisted, Path: path, Err: err})
	return nil
}

// flat lists a root of a store without links in one go.
func (t *tree) flat(ctx context.Context, r *root) error {
	prefix := objpath.Prefix(r.name)
	for info, err := range r.store.List(ctx, prefix, "") {
		if err != nil {
			return t.failed(ctx, r.path, err)
		}
		rest := strings.TrimPrefix(info.Name, prefix)
		path, name := r.path, r.name
		d := t.dir(r, path, name)
		parts := strings.Split(rest, "/")
		for _, base := range parts[:len(parts)-1] {
			above := d
			path, name = objpath.Join(path, base), objpath.Join(name, base)
			if above != nil {
				above.note(base, true)
			}
			d = t.dir(r, path, name)
		}
		if base := parts[len(parts)-1]; base != "" && d != nil { // else a marker of a directory
			t.add(d, base, info)
		}
	}
	return nil
}

// add notes a file.
func (t *tree) add(d *Dir, base string, info storage.Info) {
	d.note(base, false)
	version := t.hash(string(info.Version))
	sum := t.hash(fmt.Sprintf("%s %x", base, version))
	d.sum += sum
	if base == reader.MetadataName || strings.HasSuffix(base, reader.Extension) && !tempname.Is(base) {
		d.described += sum
		t.snapshots = append(t.snapshots, entry{d, base})
	}
	if !t.files {
		return
	}
	// The clone does not keep the whole name of the object in memory.
	f := file{name: strings.Clone(base), size: info.Size, version: version}
	if !info.ModTime.IsZero() {
		f.time = info.ModTime.UnixNano()
	}
	d.files = append(d.files, f)
}

// find returns a listed file, or nil.
func (t *tree) find(store storage.Storage, name string) *file {
	d := t.byName[keyOf(store, objpath.Dir(name))]
	if d == nil {
		return nil
	}
	return d.file(objpath.Base(name))
}

func (d *Dir) file(base string) *file {
	i, ok := slices.BinarySearchFunc(d.files, base, func(f file, name string) int { return strings.Compare(f.name, name) })
	if !ok {
		return nil
	}
	return &d.files[i]
}
