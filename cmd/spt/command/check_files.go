package command

import (
	"context"
	"errors"
	"fmt"
	"regexp"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/transform"
)

// fileFinding gathers the files of one folder with which the same is wrong.
type fileFinding struct {
	transform.CheckFinding
	files         int
	example       string
	what, andThen string // "3 files WHAT, such as EXAMPLE; AND THEN"
}

// checkFiles looks for the files that the restored operators need, at the places
// where Flink will look for them when it restores the snapshot from at.
func checkFiles(ctx context.Context, env *Env, snap *reader.Snapshot, ops []*format.Operator, at string) ([]transform.CheckFinding, error) {
	folder, err := snap.URI(ctx)
	if err != nil {
		return nil, err
	}
	part := &format.Savepoint{Location: snap.Location, ID: snap.ID, Kind: snap.Kind, Operators: ops}
	s, err := summary.Of(ctx, part)
	if err != nil {
		return nil, err
	}
	states, err := snap.Files(ctx, s.Files)
	if err != nil {
		return nil, err
	}
	c := fileChecker{env: env, snap: snap, found: map[[3]string]*fileFinding{}, users: map[string]*format.Operator{}, folder: route.Clean(folder), at: route.Clean(at), owners: map[string]string{}}
	var away *reader.OutsideError
	if errors.As(snap.Outside(), &away) {
		c.outside(reader.FileState{File: summary.File{Path: reader.MetadataName, Relative: true}}, away)
	}
	_ = part.EachStream(func(p format.Place, st format.Stream) error {
		path, _, ok := format.Reference(st)
		if !ok {
			return nil
		}
		name := path.String()
		if user, known := c.users[name]; !known {
			c.users[name] = p.Operator
		} else if user != p.Operator {
			c.users[name] = nil // of several
		}
		return nil
	})
	for _, f := range states {
		// Flink reads what is outside the snapshot; what is in it was not looked at.
		var out *reader.OutsideError
		if f.There() && errors.As(f.Err, &out) {
			f.Err = nil
			c.outside(f, out)
		}
		if err := c.file(ctx, f); err != nil {
			return nil, err
		}
	}
	var all []transform.CheckFinding
	for _, f := range c.order {
		f.Message = fmt.Sprintf("%s %s", ui.Plural(int64(f.files), "file"), f.what)
		if f.files > 1 {
			f.Message += ", such as " + ui.Quote(f.example)
		} else {
			f.Message += ", " + ui.Quote(f.example)
		}
		if f.andThen != "" {
			f.Message += "; " + f.andThen
		}
		all = append(all, f.CheckFinding)
	}
	return all, nil
}

type fileChecker struct {
	env   *Env
	snap  *reader.Snapshot
	order []*fileFinding
	found map[[3]string]*fileFinding // by code, folder and what is wrong
	users map[string]*format.Operator

	folder string            // of the snapshot, as Flink would name it
	at     string            // where Flink will restore it from
	owners map[string]string // by folder, "" where no other snapshot has it
}

func (c *fileChecker) file(ctx context.Context, f reader.FileState) error {
	dir, name := splitName(f.Path)
	owner, err := c.owner(ctx, f)
	if err != nil {
		return err
	}
	quoted := ui.Quote(c.env.text(owner))
	where := "in " + ui.Quote(c.env.text(dir))
	if f.Relative {
		where = "beside _metadata"
	}
	add := func(severity transform.Severity, code, what, andThen, advice string) {
		c.add(f, dir, name, severity, code, what, andThen, advice)
	}
	switch {
	case errors.Is(f.Err, storage.ErrNotExist) && owner != "":
		add(transform.SeverityError, "file-gone", "not there any more "+where, "that is the folder of another snapshot, which took them along when it was deleted",
			"find a copy of "+quoted+" and say where with --map OLD=NEW, or take another snapshot")
	case errors.Is(f.Err, storage.ErrNotExist):
		add(transform.SeverityError, "file-missing", "not there "+where, "", "where it lies elsewhere, --map OLD=NEW looks there and spt relocate writes it down; spt verify names every file")
	case f.Err != nil:
		add(transform.SeverityError, "file-unreachable", fmt.Sprintf("%s that cannot be looked for (%s)", where, reason(f.Err)), "", "--map OLD=NEW says where a copy is")
	case f.Wrong != "":
		add(transform.SeverityError, "file-length", where+" not as long as promised", f.Wrong, "it was cut, or is another file: copy it again")
	case f.Found.Instead != "":
		severity := transform.SeverityError
		if _, _, err := c.env.Stores.Resolve(ctx, f.Path); errors.Is(err, storage.ErrUnsupported) {
			severity = transform.SeverityWarning // they may well be there too
		} else if err != nil {
			return err
		}
		add(severity, "file-elsewhere", "not found "+where, "found under the folder of the snapshot or its job instead, where Flink does not look",
			"spt convert IN OUT makes a copy that names no other place; spt relocate rewrites the references")
	case owner != "":
		add(transform.SeverityWarning, "file-of-another", where, "that is the folder of another snapshot: when it is deleted, this one no longer restores",
			"keep "+quoted+", or make a copy that needs no other: spt convert IN OUT")
	}
	return nil
}

// outside says that the content of a file was not looked at.
func (c *fileChecker) outside(f reader.FileState, out *reader.OutsideError) {
	dir, name := splitName(f.Path)
	where := "in " + ui.Quote(c.env.text(dir))
	if f.Relative {
		where = "next to _metadata"
	}
	c.add(f, dir, name, transform.SeverityNote, "file-outside", where, "that is outside the snapshot and its checkpoint directory, so their content was not checked", c.env.hide(out.Hint()))
}

// add counts a file for a finding.
func (c *fileChecker) add(f reader.FileState, dir, name string, severity transform.Severity, code, what, andThen, advice string) {
	key := [3]string{code, dir, what}
	found := c.found[key]
	if found == nil {
		found = &fileFinding{what: what, andThen: andThen, example: c.env.text(name)}
		found.CheckFinding = transform.CheckFinding{Severity: severity, Code: code, Operator: c.users[f.Path], Advice: advice}
		c.found[key] = found
		c.order = append(c.order, found)
	}
	if found.files++; c.users[f.Path] != found.Operator {
		found.Operator = nil // of several
	}
}

// reason is what an error says of a file, without the file.
func reason(err error) string {
	var s *storage.Error
	if errors.As(err, &s) && s.Err != nil {
		return s.Err.Error()
	}
	return err.Error()
}

var (
	checkpointFolder = regexp.MustCompile(`^chk-([0-9]+)$`)
	savepointFolder  = regexp.MustCompile(`^savepoint-[0-9a-f]{6}-[0-9a-f]{12}$`)
)

// owner names the folder of another snapshot in which a file lies, or "". What
// is shared between checkpoints lies in none: Flink deletes it when nothing refers
// to it any more; but the folder of a snapshot goes as a whole.
func (c *fileChecker) owner(ctx context.Context, f reader.FileState) (string, error) {
	dir := route.Dir(f.Path)
	if f.Relative || dir == c.at {
		return "", nil
	}
	name := route.Base(dir)
	checkpoint, savepoint := checkpointFolder.FindStringSubmatch(name), savepointFolder.MatchString(name)
	if f.Err != nil || f.Found.Instead != "" {
		// There is only the name to go by, and one that the snapshot's own folder
		// could have had may be where that was.
		if checkpoint != nil && checkpoint[1] != fmt.Sprint(c.snap.ID) || savepoint && name != route.Base(route.Clean(c.snap.Location)) {
			return name, nil
		}
		return "", nil
	}
	owner, known := c.owners[dir]
	if known {
		return owner, nil
	}
	own, err := c.isOwn(ctx, f.Found)
	if err != nil {
		return "", err
	}
	switch {
	case own:
	case checkpoint != nil || savepoint:
		owner = name
	default:
		_, err := f.Found.Store.Stat(ctx, route.Join(route.Dir(f.Found.Name), reader.MetadataName))
		if err := ctx.Err(); err != nil {
			return "", err
		}
		if err == nil {
			owner = name
		}
	}
	c.owners[dir] = owner
	return owner, nil
}

// isOwn is whether a file lies in the snapshot's own folder.
func (c *fileChecker) isOwn(ctx context.Context, f reader.Found) (bool, error) {
	dir := route.Dir(f.Name)
	if f.Store == c.snap.Store() && dir == route.Dir(c.snap.Container.Name) {
		return true, nil
	}
	uri := route.Dir(f.URI)
	if s, ok := f.Store.(storage.Canonicalizer); ok {
		if dir == "" {
			dir = "."
		}
		path, err := s.Canonical(ctx, dir)
		if err != nil {
			return false, err
		}
		uri = "file:" + path
	}
	return uri == c.folder, nil
}
