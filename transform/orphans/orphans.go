package orphans

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strings"
	"time"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// Options for Find.
type Options struct {
	Reader reader.Options // how snapshots are opened
	// Also names directories whose snapshots count too, but whose files are not
	// looked at.
	Also []string
	// OlderThan is the age from which an unreferenced file is not kept. A running job
	// writes files before the checkpoint that refers to them is complete.
	OlderThan time.Duration
	Now       time.Time
	Jobs      int // snapshots opened, and files removed, at once; 0: 8, or 16 if a root is remote
	// Opened is called after each snapshot that was opened, of total, from several
	// goroutines. It may be nil.
	Opened func(total int)
}

func (o Options) orDefault() Options {
	if o.Reader.Stores == nil {
		o.Reader.Stores = route.New(local.New())
	}
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	return o
}

// Result is what Find found.
type Result struct {
	Snapshots int // that were read
	Total     Sum // of files in directories in which Flink keeps state
	// Files are those that no snapshot refers to, by directory and name.
	Files []File
	// Elsewhere are files in other directories, which are left alone.
	Elsewhere Sum
	// Leftovers are of interrupted runs of spt, and unfinished uploads of any program,
	// where the store can tell. They are not among Files.
	Leftovers []ability.Leftover
	// Unlisted is the first error of a store that did not list its unfinished uploads.
	Unlisted error
	// Problems are reasons to remove nothing.
	Problems []Problem

	t *tree
	o Options
}

// Sum counts files.
type Sum struct {
	Files int
	Bytes int64
}

func (s *Sum) add(f *file) {
	s.Files++
	s.Bytes += f.size
}

// File is a file that no snapshot refers to.
type File struct {
	Index int    // in Result.Files
	Path  string // as the user can write it
	Dir   *Dir
	Bytes int64
	Time  time.Time // zero: not known
	Kept  Reason    // why it must not be removed; "" if it can be

	version uint64
}

// Reason says why an unreferenced file is kept.
type Reason string

// The reasons.
const (
	Young      Reason = "young"       // last written within Options.OlderThan
	UnknownAge Reason = "unknown-age" // the store does not tell when it was written, or a time to come
	InUse      Reason = "working"     // in the working directory of a running subtask
	OtherName  Reason = "other-name"  // next to the files of a savepoint, and not named as Flink does
	Link       Reason = "link"        // a symbolic link
	JobUnread  Reason = "job-unread"  // the directory of its job, with its snapshots, was not read
	Wanted     Reason = "wanted"      // a snapshot misses a file of this name elsewhere
	Uncertain  Reason = "uncertain"   // there are Problems: a snapshot may refer to it
)

// ProblemKind says why nothing may be removed.
type ProblemKind string

// The kinds of problems.
const (
	Unread   ProblemKind = "unreadable" // a snapshot could not be read
	Unlisted ProblemKind = "unlisted"   // a directory could not be listed
	Outside  ProblemKind = "outside"    // a reference leads outside the roots
	Changed  ProblemKind = "changed"    // a directory changed since it was listed
)

// Problem is a reason to remove nothing.
type Problem struct {
	Kind ProblemKind
	Path string // of the snapshot or directory
	File string // to which the snapshot refers; else ""
	Err  error
}

func (p *Problem) Error() string { return fmt.Sprintf("%s: %v", p.Path, p.Err) }

// Unwrap returns the cause.
func (p *Problem) Unwrap() error { return p.Err }

// RootError is a root that cannot be searched.
type RootError struct {
	Path, Msg string
	Instead   string // what to name; "" if that is not known
}

func (e *RootError) Error() string { return fmt.Sprintf("%s: %s", e.Path, e.Msg) }

// Find lists what is below the roots, reads all snapshots and returns the files to
// which none of them refers. It changes nothing.
func Find(ctx context.Context, roots []string, o Options) (*Result, error) {
	o = o.orDefault()
	t, err := listed(ctx, roots, o)
	if err != nil {
		return nil, err
	}
	r := &Result{Snapshots: len(t.snapshots), t: t, o: o}
	problems, missing, err := t.read(ctx, o, newOwners())
	if err != nil {
		return nil, err
	}
	r.Problems = append(t.unlisted, problems...)
	for _, p := range problems {
		if p.Kind == Unread {
			r.Snapshots--
		}
	}
	for _, d := range t.dirs {
		if d.root.also {
			continue
		}
		for i := range d.files {
			r.judge(d, &d.files[i], missing)
		}
	}
	if err := r.leftovers(ctx); err != nil {
		return nil, err
	}
	return r, r.keepMore(ctx)
}

// leftoverDepth is how far below a root leftovers are looked for.
const leftoverDepth = 64

func (r *Result) leftovers(ctx context.Context) error {
	for _, root := range r.t.roots {
		c, ok := root.store.(ability.Cleaner)
		if !ok || root.also {
			continue
		}
		all := c.Leftovers
		if u, ok := root.store.(ability.UploadLister); ok { // the objects were listed already
			r.objectLeftovers(root)
			all = u.Uploads
		}
		for l, err := range all(ctx, root.name, leftoverDepth) {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if err != nil {
				if _, links := root.store.(ability.LinkReader); !links && r.Unlisted == nil {
					r.Unlisted = err
				}
				continue // a directory that cannot be listed is a problem already
			}
			l.Name = objpath.Join(root.path, strings.TrimPrefix(strings.TrimPrefix(l.Name, root.name), "/"))
			r.Leftovers = append(r.Leftovers, l)
		}
	}
	return nil
}

// objectLeftovers adds the objects of temporary names that the list of a root shows.
func (r *Result) objectLeftovers(root *root) {
	for _, d := range r.t.dirs {
		if d.root != root {
			continue
		}
		for _, f := range d.files {
			if tempname.IsOwn(f.name) {
				l := ability.ObjectLeftover(storage.Info{Name: objpath.Join(d.Path, f.name), Size: f.size})
				if f.time != 0 {
					l.ModTime = time.Unix(0, f.time)
				}
				r.Leftovers = append(r.Leftovers, l)
			}
		}
	}
}

// listed resolves the roots and lists what is below them.
func listed(ctx context.Context, roots []string, o Options) (*tree, error) {
	t := newTree(true, maphash.MakeSeed())
	for _, path := range roots {
		if err := t.resolve(ctx, o.Reader.Stores, path, false); err != nil {
			return nil, err
		}
	}
	for _, path := range o.Also {
		if err := t.resolve(ctx, o.Reader.Stores, path, true); err != nil {
			return nil, err
		}
	}
	for _, r := range t.roots {
		if err := t.insideJob(ctx, r); err != nil {
			return nil, err
		}
	}
	return t, t.walk(ctx)
}

// jobs returns how many snapshots to open and files to remove at once.
func (t *tree) jobs(o Options) int {
	switch {
	case o.Jobs > 0:
		return o.Jobs
	case slices.ContainsFunc(t.roots, func(r *root) bool { return !ability.Near(r.store) }):
		return 16
	}
	return 8
}

// insideJob refuses a root that is part of a job's directory, whose snapshots are
// elsewhere in it: all files would look unreferenced.
func (t *tree) insideJob(ctx context.Context, r *root) error {
	if r.also {
		return nil
	}
	for name := r.name; ; {
		base, up := objpath.Base(name), objpath.Dir(name)
		if up == "" || up == name {
			return nil
		}
		inside := chk.MatchString(base)
		if base == "shared" || base == "taskowned" {
			inside = isJobID(objpath.Base(up))
			if !inside {
				job := &Dir{}
				for info, err := range r.store.List(ctx, objpath.Prefix(up), "/") {
					if err != nil {
						break // a directory above that may not be read shows nothing
					}
					if strings.HasSuffix(info.Name, "/") {
						job.note(objpath.Base(objpath.Clean(info.Name)), true)
					}
				}
				inside = job.isJob()
			}
		}
		if inside && !t.holds(r.store, up) {
			return &RootError{Path: r.path, Msg: "it is part of the directory of a job, whose snapshots are elsewhere in it", Instead: up}
		}
		name = up
	}
}

// judge decides about one file.
func (r *Result) judge(d *Dir, f *file, missing map[string]bool) {
	switch {
	case d.Kind == Leftover, tempname.Is(f.name):
		return
	case !d.Kind.holdsState():
		if f.owners == 0 {
			r.Elsewhere.add(f)
		}
		return
	}
	r.Total.add(f)
	if f.owners != 0 {
		return
	}
	file := File{Index: len(r.Files), Path: objpath.Join(d.Path, f.name), Dir: d, Bytes: f.size, version: f.version, Kept: keep(d, f, missing, r.o)}
	if f.time != 0 {
		file.Time = time.Unix(0, f.time).UTC()
	}
	r.Files = append(r.Files, file)
}

// keep returns why an unreferenced file is kept; "" if it can be removed.
func keep(d *Dir, f *file, missing map[string]bool, o Options) Reason {
	age := o.Now.Sub(time.Unix(0, f.time))
	switch {
	case d.Kind == Working:
		return InUse
	case d.Kind == Snapshot && !stateFile.MatchString(f.name):
		return OtherName
	case missing[f.name]:
		return Wanted
	case f.time == 0 || age < 0:
		return UnknownAge
	case age < o.OlderThan:
		return Young
	}
	return ""
}

// keepMore keeps what the listing alone does not show. Only files that would be removed are looked at.
func (r *Result) keepMore(ctx context.Context) error {
	jobs := map[string]bool{} // whose directories were read
	for _, d := range r.t.dirs {
		if d.Kind == Checkpoint || d.Kind == Shared || d.Kind == TaskOwned {
			jobs[d.Job] = true
		}
	}
	withSnapshots := map[*Dir]bool{}
	for _, e := range r.t.snapshots {
		withSnapshots[e.dir.job] = true
	}
	apart := map[*Dir]bool{} // jobs whose snapshots are elsewhere
	for i := range r.Files {
		f := &r.Files[i]
		if f.Kept == "" && len(r.Problems) > 0 {
			f.Kept = Uncertain
		}
		if f.Kept != "" {
			continue
		}
		if f.Dir.Kind == Changelog && !jobs[f.Dir.Job] {
			f.Kept = JobUnread
			continue
		}
		if job := f.Dir.job; job != nil && !withSnapshots[job] {
			elsewhere, known := apart[job]
			if !known {
				var err error
				if elsewhere, err = r.t.snapshotsApart(ctx, job); err != nil {
					return err
				}
				apart[job] = elsewhere
			}
			if elsewhere {
				f.Kept = JobUnread
				continue
			}
		}
		l, ok := f.Dir.root.store.(ability.LinkReader)
		if !ok {
			continue
		}
		to, err := l.ReadLink(ctx, f.name())
		if err != nil {
			return err
		}
		if to != "" {
			f.Kept = Link
		}
	}
	return nil
}

// snapshotsApart reports whether the snapshots of a job may be outside the roots: at
// the address of its directory without the random characters that Flink puts into the
// addresses of state files.
func (t *tree) snapshotsApart(ctx context.Context, job *Dir) (bool, error) {
	for _, plain := range objpath.WithoutRandom(job.Name) {
		if t.holds(job.root.store, plain) {
			continue // its snapshots were read
		}
		for _, err := range job.root.store.List(ctx, objpath.Prefix(plain), "/") {
			return err == nil, err
		}
	}
	return false, nil
}

// name is the name of the file in its store.
func (f *File) name() string { return objpath.Join(f.Dir.Name, objpath.Base(f.Path)) }

// Unchanged lists everything again, and reports what changed since Find as a problem
// that matches storage.ErrChanged.
func (r *Result) Unchanged(ctx context.Context) error {
	now := newTree(false, r.t.seed)
	for _, root := range r.t.roots {
		c := *root
		now.roots = append(now.roots, &c)
	}
	if err := now.walk(ctx); err != nil {
		return err
	}
	if len(now.unlisted) > 0 {
		return &now.unlisted[0]
	}
	changed := func(d *Dir) error {
		path := d.Path
		if d.job != nil {
			path = d.job.Path
		}
		return &Problem{Kind: Changed, Path: path, Err: fmt.Errorf("%w: a job or another program wrote there", storage.ErrChanged)}
	}
	for key, d := range now.byName {
		before := r.t.byName[key]
		switch {
		case before == nil && d.Kind == Control:
		case before == nil:
			return changed(d)
		case d.described != before.described, d.Kind.holdsState() && d.sum != before.sum:
			return changed(before)
		}
	}
	for key, d := range r.t.byName {
		if now.byName[key] == nil && d.Kind != Control {
			return changed(d)
		}
	}
	return nil
}

// Err returns the problems as one error, or nil.
func (r *Result) Err() error {
	var all []error
	for i := range r.Problems {
		all = append(all, &r.Problems[i])
	}
	return errors.Join(all...)
}

// Removable returns the files that can be removed.
func (r *Result) Removable() []*File {
	var all []*File
	for i := range r.Files {
		if r.Files[i].Kept == "" {
			all = append(all, &r.Files[i])
		}
	}
	return all
}
