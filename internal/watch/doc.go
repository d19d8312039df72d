// Package watch follows the checkpoints of running jobs: it lists their directories
// again and again, reads each new checkpoint once, and keeps what is needed to tell how
// state grows and which rules hold.
//
// It serves no metrics, sends nothing and prints nothing: see package
// internal/watch/export. How a checkpoint is read is a function of the caller.
//
//	w := watch.New(watch.Options{Roots: roots, Read: read})
//	err := w.Run(ctx, 30*time.Second, func() {})
//	for _, root := range w.Status() { … }
package watch
