package watch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"
)

// longestPause bounds the pause after failures.
const longestPause = 10 * time.Minute

// Run looks at each root in a loop of its own until the context ends, and calls after
// each look, from several goroutines. A root that fails is looked at less and less
// often.
func (w *Watcher) Run(ctx context.Context, interval time.Duration, after func()) {
	var all sync.WaitGroup
	for _, r := range w.roots {
		all.Go(func() {
			for ctx.Err() == nil {
				w.look(ctx, r)
				after()
				if w.o.Wait(ctx, jittered(w.pause(r, interval))) != nil {
					return
				}
			}
		})
	}
	all.Wait()
}

// pause returns the time to the next look at a root.
func (w *Watcher) pause(r *root, interval time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	pause := interval
	for range r.failures {
		if pause >= longestPause {
			break
		}
		pause = min(2*pause, longestPause)
	}
	return pause
}

// jittered returns a time that is up to a tenth shorter or longer, so that many
// watchers do not ask a store at the same time.
func jittered(d time.Duration) time.Duration {
	return d + time.Duration((rand.Float64()-0.5)/5*float64(d))
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
