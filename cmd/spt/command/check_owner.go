package command

import (
	"context"
	"fmt"
	"regexp"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/reader"
)

// fileOwners finds the directories of other snapshots in which files are.
type fileOwners struct {
	snap   *reader.Snapshot
	dir    string            // of the snapshot, as Flink would name it
	at     string            // where Flink will restore it from
	owners map[string]string // by directory, "" where no other snapshot has it
}

var (
	checkpointDir = regexp.MustCompile(`^chk-([0-9]+)$`)
	savepointDir  = regexp.MustCompile(`^savepoint-[0-9a-f]{6}-[0-9a-f]{12}$`)
)

// of returns the name of the directory of another snapshot in which a file is, or "".
// Files that checkpoints share are in none: Flink deletes them when nothing refers to
// them any more, but the directory of a snapshot as a whole.
func (c *fileOwners) of(ctx context.Context, f reader.FileState) (string, error) {
	dir := objpath.Dir(f.Path)
	if f.Relative || dir == c.at {
		return "", nil
	}
	name := objpath.Base(dir)
	checkpoint, savepoint := checkpointDir.FindStringSubmatch(name), savepointDir.MatchString(name)
	if f.Err != nil || f.Found.Instead != "" {
		// Only the name is known, and a name that the snapshot's own directory could
		// have had may be its former one.
		if checkpoint != nil && checkpoint[1] != fmt.Sprint(c.snap.ID) || savepoint && name != objpath.Base(objpath.Clean(c.snap.Location)) {
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
		_, err := f.Found.Store.Stat(ctx, objpath.Join(objpath.Dir(f.Found.Name), reader.MetadataName))
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

// isOwn reports whether a file is in the snapshot's own directory.
func (c *fileOwners) isOwn(ctx context.Context, f reader.Found) (bool, error) {
	dir := objpath.Dir(f.Name)
	if f.Store == c.snap.Store() && dir == objpath.Dir(c.snap.Container.Name) {
		return true, nil
	}
	uri, err := ability.URI(ctx, f.Store, dir, objpath.Dir(f.URI))
	return uri == c.dir, err
}
