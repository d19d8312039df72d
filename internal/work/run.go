package work

import (
	"context"
	"iter"
	"runtime"
	"sync"
)

// Options are the options of Run.
type Options struct {
	Jobs int // units that run at once; 0 or less: one per processor
	// Bytes bounds the total size of the units that run or wait to be merged; a
	// larger unit runs alone. 0 bounds only their number, which is enough if results
	// are small.
	Bytes int64
	// Ahead is the number of units that are started and not merged, at most; less than
	// twice the number of jobs means that.
	Ahead int
}

// Run runs units, a [Unit] or another part of a job, on o.Jobs goroutines and calls
// merge with the result and the error of each, in the order of units, from the
// goroutine that called Run. That goroutine also takes the units from the sequence.
//
// An error of a unit does not end the work unless merge returns an error. When
// merge returns an error or ctx ends, the context of the running units is
// cancelled, and Run returns the error after they ended. With one job, a unit is
// started after the previous one was merged.
func Run[U interface{ Size() int64 }, R any](ctx context.Context, o Options, units iter.Seq[U], run func(ctx context.Context, u U) (R, error), merge func(u U, r R, err error) error) error {
	type task struct {
		u    U
		r    R
		err  error
		done chan struct{}
	}
	jobs := o.Jobs
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	if jobs == 1 {
		for u := range units {
			if err := ctx.Err(); err != nil {
				return err
			}
			r, err := run(ctx, u)
			if err := merge(u, r, err); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	var wg sync.WaitGroup
	defer wg.Wait()
	tasks := make(chan *task)
	defer close(tasks)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	started, ahead := 0, max(o.Ahead, 2*jobs)
	var pending []*task
	var bytes int64
	first := func() error {
		t := pending[0]
		<-t.done
		pending[0], pending = nil, pending[1:]
		bytes -= t.u.Size()
		return merge(t.u, t.r, t.err)
	}
	for u := range units {
		n := u.Size()
		for len(pending) > 0 && (len(pending) >= ahead || o.Bytes > 0 && bytes+n > o.Bytes) {
			if err := first(); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if started < jobs {
			started++
			wg.Go(func() {
				for t := range tasks {
					t.r, t.err = run(ctx, t.u)
					close(t.done)
				}
			})
		}
		t := &task{u: u, done: make(chan struct{})}
		tasks <- t
		pending = append(pending, t)
		bytes += n
	}
	for len(pending) > 0 {
		if err := first(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
