package reader

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/route"
)

// Asides returns the names next to name under which interrupted runs left its
// snapshot; see storage.AsideName.
func Asides(ctx context.Context, store storage.Storage, name string) ([]string, error) {
	if _, ok := store.(storage.Mover); !ok {
		return nil, nil // nothing is moved aside there
	}
	dir := route.Dir(name)
	l, err := list(ctx, store, dir)
	if errors.Is(err, storage.ErrNotExist) {
		return nil, nil
	}
	var all []string
	for _, sub := range l.directories {
		if storage.AsideOf(sub, name) {
			all = append(all, route.Join(dir, sub))
		}
	}
	return all, err
}

// movedAside returns an error that explains why nothing is at a location: a run
// that replaced the snapshot there was interrupted. It returns nil if that is not
// the reason.
func movedAside(ctx context.Context, location string, o Options) error {
	store, name, err := o.Stores.Resolve(ctx, location)
	if err != nil {
		return nil //nolint:nilerr // the caller has already determined what is wrong
	}
	name = route.Clean(name)
	if route.Base(name) == MetadataName {
		name = route.Dir(name)
	}
	all, err := Asides(ctx, store, name)
	if err != nil || len(all) == 0 {
		return nil //nolint:nilerr // the same
	}
	missing := &kinded{fmt.Errorf("%s is missing: a run of spt that replaced it was interrupted, and left the old snapshot under %s", quote(location), quote(strings.Join(all, ", "))), storage.ErrNotExist}
	return advise(missing, renameBack(all[0], name))
}

func renameBack(aside, name string) string {
	return fmt.Sprintf("rename it back:  mv %s %s", shell.Quote(aside), shell.Quote(name))
}
