package command

import (
	"context"
	"sync"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// driver is a storage driver: the schemes it opens, and how it is made from the
// flags and the environment.
type driver struct {
	schemes []string
	open    func(*Env) (route.Scheme, error)
}

// drivers returns the storage drivers of the program, each in a file stores_*.go.
func drivers() []driver { return []driver{gcsDriver(), webDriver()} }

// newStores returns the stores of the command line: local files, and what the
// drivers open. A driver is made when the first of its URIs is opened, after the flags
// were read.
func newStores(env *Env) storage.Resolver {
	r := route.New(local.New())
	for _, d := range drivers() {
		open := sync.OnceValues(func() (route.Scheme, error) { return d.open(env) })
		for _, scheme := range d.schemes {
			r.Add(scheme, func(ctx context.Context, uri string) (storage.Storage, string, error) {
				resolve, err := open()
				if err != nil {
					return nil, "", err
				}
				return resolve(ctx, uri)
			})
		}
	}
	return r
}
