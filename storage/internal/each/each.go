// Package each does something for each of several objects, a few at a time.
package each

import (
	"errors"
	"sync"
)

// atOnce is the number of objects for which something is done at once.
const atOnce = 16

// Name calls f for each name, concurrently, also after an error of another. It returns
// the errors in the order of the names.
func Name(names []string, f func(name string) error) error {
	errs := make([]error, len(names))
	slots := make(chan struct{}, atOnce)
	var running sync.WaitGroup
	for i, name := range names {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(name)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
