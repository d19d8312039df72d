package reader

import (
	"context"
	"errors"
	"strings"

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
// names of each directory. A root that does not exist has no checkpoints.
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
		at := level[0]
		level = level[1:]
		l, err := list(ctx, store, at.name)
		if err != nil {
			if at.depth == 0 && errors.Is(err, storage.ErrNotExist) {
				return nil, nil
			}
			return nil, storageKind(err)
		}
		before := len(all)
		for _, sub := range l.directories {
			if n := checkpointNumber(sub); n >= 0 {
				all = append(all, Checkpoint{Job: at.real, Path: objpath.Join(at.path, sub), ID: n})
			}
		}
		if len(all) > before || at.depth >= depth || isJobID(objpath.Base(at.name)) {
			continue
		}
		for _, sub := range l.directories {
			if sub == "shared" || sub == "taskowned" || strings.HasPrefix(sub, "savepoint-") || tempname.Is(sub) {
				continue
			}
			level = append(level, at.join(sub))
		}
	}
	return all, nil
}

// OpenCheckpoint opens the snapshot of a directory that a job may be about to write. It
// is Open for directories only, and takes one request if there is no _metadata yet:
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
