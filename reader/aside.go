package reader

import (
	"context"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/storage"
)

// movedAside returns an error that explains why nothing is at a location: a run
// that replaced the snapshot there was interrupted. It returns nil if that is not
// the reason.
func movedAside(ctx context.Context, location string, o Options) error {
	store, name, err := o.Stores.Resolve(ctx, location)
	if err != nil {
		return nil //nolint:nilerr // the caller has already determined what is wrong
	}
	name = objpath.Clean(name)
	if objpath.Base(name) == MetadataName {
		name = objpath.Dir(name)
	}
	all, err := ability.Asides(ctx, store, name)
	if err != nil || len(all) == 0 {
		return nil //nolint:nilerr // the same
	}
	missing := &kinded{fmt.Errorf("%s is missing: a run of spt that replaced it was interrupted, and left the old snapshot under %s", quote(location), quote(strings.Join(all, ", "))), storage.ErrNotExist}
	return advise(missing, renameBack(all[0], name))
}

func renameBack(aside, name string) string {
	return fmt.Sprintf("rename it back:  mv %s %s", shell.Quote(aside), shell.Quote(name))
}
