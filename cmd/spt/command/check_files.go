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
// where Flink will look for them.
func checkFiles(ctx context.Context, env *Env, snap *reader.Snapshot, ops []*format.Operator) ([]transform.CheckFinding, error) {
	part := &format.Savepoint{Location: snap.Location, ID: snap.ID, Kind: snap.Kind, Operators: ops}
	s, err := summary.Of(ctx, part)
	if err != nil {
		return nil, err
	}
	states, err := snap.Files(ctx, s.Files)
	if err != nil {
		return nil, err
	}
	c := fileChecker{env: env, snap: snap, at: map[[3]string]*fileFinding{}, users: map[string]*format.Operator{}}
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
	at    map[[3]string]*fileFinding // by code, folder and what is wrong
	users map[string]*format.Operator
}

func (c *fileChecker) file(ctx context.Context, f reader.FileState) error {
	dir, name := splitName(f.Path)
	owner := foreignFolder(f.Path, c.snap)
	where := "in " + ui.Quote(c.env.text(dir))
	if f.Relative {
		where = "beside _metadata"
	}
	add := func(severity transform.Severity, code, what, andThen, advice string) {
		key := [3]string{code, dir, what}
		found := c.at[key]
		if found == nil {
			found = &fileFinding{what: what, andThen: andThen, example: c.env.text(name)}
			found.CheckFinding = transform.CheckFinding{Severity: severity, Code: code, Operator: c.users[f.Path], Advice: advice}
			c.at[key] = found
			c.order = append(c.order, found)
		}
		if found.files++; c.users[f.Path] != found.Operator {
			found.Operator = nil // of several
		}
	}
	switch {
	case errors.Is(f.Err, storage.ErrNotExist) && owner != "":
		add(transform.SeverityError, "file-gone", "not there any more "+where, "that is the folder of another snapshot, which took them along when it was deleted",
			"find a copy of "+owner+" and say where with --map OLD=NEW, or take another snapshot")
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
			"keep "+owner+", or make a copy that needs no other: spt convert IN OUT")
	}
	return nil
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
	checkpointFolder = regexp.MustCompile(`/chk-([0-9]+)/[^/]*$`)
	savepointFolder  = regexp.MustCompile(`/(savepoint-[0-9a-f]{6}-[0-9a-f]{12})/[^/]*$`)
)

// foreignFolder names the folder of another snapshot in which a file lies, or
// "". What is shared between checkpoints lies in none: Flink deletes it when
// nothing refers to it any more; but the folder of a snapshot goes as a whole.
func foreignFolder(path string, snap *reader.Snapshot) string {
	if m := checkpointFolder.FindStringSubmatch(path); m != nil && m[1] != fmt.Sprint(snap.ID) {
		return "chk-" + m[1]
	}
	if m := savepointFolder.FindStringSubmatch(path); m != nil && m[1] != route.Base(route.Clean(snap.Location)) {
		return m[1]
	}
	return ""
}
