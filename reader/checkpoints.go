package reader

import (
	"context"
	"errors"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// Checkpoint is a directory chk-N of a job. Whether it is complete is not known.
type Checkpoint struct {
	Job  string // the directory of the job below the root; "" if it is the root
	Path string // as Open accepts it
	ID   int64  // N
}

// Checkpoints lists the checkpoint directories of the jobs under a root: in the root
// itself and in directories up to depth levels below it. Directories next to chk-N, and
// savepoints, are not searched. It opens nothing, and takes one list request for 1,000
// names of each directory, up to 16 at the same time. A root that does not exist has no
// checkpoints.
func Checkpoints(ctx context.Context, root string, depth int, o Options) ([]Checkpoint, error) {
	o = o.orDefault()
	root = objpath.Clean(objpath.WithoutEntropy(root))
	store, name, err := o.Stores.Resolve(ctx, root)
	if err != nil {
		return nil, err
	}
	var all []Checkpoint
	level := []location{{path: root, name: objpath.Clean(name)}} // real: below the root
	for len(level) > 0 {
		listings := make([]listing, len(level))
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(parallelLookups)
		for i, at := range level {
			g.Go(func() (err error) {
				listings[i], err = list(gctx, store, at.name)
				if errors.Is(err, storage.ErrNotExist) {
					err = nil // it has not been created, or was removed
				}
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return nil, storageKind(err)
		}
		var next []location
		for i, at := range level {
			found, below := checkpointsIn(at, listings[i].directories)
			if all = append(all, found...); len(found) == 0 && at.depth < depth {
				next = append(next, below...)
			}
		}
		level = next
	}
	return all, nil
}

// checkpointsIn returns the checkpoints among the directories in a directory, and the
// others that can be above checkpoints.
func checkpointsIn(at location, directories []string) (found []Checkpoint, below []location) {
	for _, sub := range directories {
		switch n := checkpointNumber(sub); {
		case n >= 0:
			found = append(found, Checkpoint{Job: at.real, Path: objpath.Join(at.path, sub), ID: n})
		case isJobID(objpath.Base(at.name)), sub == "shared", sub == "taskowned", strings.HasPrefix(sub, "savepoint-"), tempname.Is(sub):
		default:
			below = append(below, at.join(sub))
		}
	}
	return found, below
}

// OpenCheckpoint opens the snapshot of a directory that a job may be about to write. It
// is Open for directories only, and takes one request if _metadata does not exist yet:
// the error is storage.ErrNotExist then, without advice.
func OpenCheckpoint(ctx context.Context, location string, o *Options) (*Snapshot, error) {
	opts := o.orDefault()
	store, name, err := opts.Stores.Resolve(ctx, location)
	if err != nil {
		return nil, err
	}
	f := &found{store: store, location: objpath.Clean(location)}
	if err := f.probe(ctx, objpath.Clean(name)); err != nil {
		return nil, err
	}
	return f.open(ctx, opts, false)
}

// probe reads the head of the _metadata of a directory. If it does not exist, the error
// is storage.ErrNotExist.
func (f *found) probe(ctx context.Context, dir string) error {
	if err := f.read(ctx, objpath.Join(dir, MetadataName)); err != nil {
		return storageKind(err)
	}
	if f.family = f.sniff(); f.family == "" {
		return f.notOurs(ctx)
	}
	return nil
}
