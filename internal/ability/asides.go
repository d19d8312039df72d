package ability

import (
	"context"
	"errors"
	"strings"

	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// Asides returns the names next to name under which interrupted runs left its
// snapshot; see tempname.Aside.
func Asides(ctx context.Context, store storage.Storage, name string) ([]string, error) {
	if _, ok := store.(storage.Mover); !ok {
		return nil, nil // nothing is moved aside there
	}
	dir := objpath.Dir(name)
	var all []string
	for info, err := range store.List(ctx, objpath.Prefix(dir), "/") {
		switch {
		case errors.Is(err, storage.ErrNotExist):
			return nil, nil
		case err != nil:
			return all, err
		}
		sub, ok := strings.CutSuffix(info.Name, "/")
		if ok && tempname.AsideOf(objpath.Base(sub), name) {
			all = append(all, objpath.Join(dir, objpath.Base(sub)))
		}
	}
	return all, nil
}
