package command

import (
	"context"
	"iter"
	"slices"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// remoteJobs is how many reads run at the same time of a snapshot that is not on this
// machine: they wait for answers, not for a processor.
const remoteJobs = 16

// readJobs returns how many pieces of snapshots to read at once; 0 is the default of the
// work.
func (e *Env) readJobs(snaps ...*reader.Snapshot) int {
	if e.common.jobs == 0 && slices.ContainsFunc(snaps, (*reader.Snapshot).Remote) {
		return remoteJobs
	}
	return e.common.jobs
}

// progress draws on a terminal, unless the answer is for a program.
func (e *Env) progress() ui.Progress {
	if e.common.quiet || e.common.output.JSON() {
		return ui.NoProgress{}
	}
	return ui.NewProgress(e.Stderr, ui.Detect(e.stderrFile, e.common.color, e.Getenv), e.Now)
}

// readHook passes on how many bytes of snapshots are read to the progress that is
// shown, if any is.
type readHook struct {
	mu sync.Mutex
	to ui.Progress // nil: none
}

// set makes p the progress that is called, and ends the one before it.
func (h *readHook) set(p ui.Progress) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.to != nil {
		h.to.Stop()
	}
	h.to = p
}

func (h *readHook) add(n int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.to != nil {
		h.to.Add(n)
	}
}

func (e *Env) hook() *readHook {
	if e.reads == nil {
		e.reads = &readHook{}
	}
	return e.reads
}

// reading shows how much is read of what total says, 0 where that is not known,
// until stop is called. It is how every command that reads for long shows its
// progress. total is asked only if something is shown.
func (e *Env) reading(what string, total func() int64) (stop func()) {
	p := e.progress()
	if _, none := p.(ui.NoProgress); none {
		return func() {}
	}
	n := int64(0)
	if total != nil {
		n = total()
	}
	p.Start(n, what)
	hook := e.hook()
	hook.set(p)
	return func() { hook.set(nil) }
}

// allState is how many bytes are read to read all state of snapshots once.
func allState(snaps ...*reader.Snapshot) func() int64 {
	return func() (n int64) {
		for _, s := range snaps {
			if s.Container.Family == reader.SPT {
				n += s.Container.Size
			} else {
				n += streamBytes(s.Savepoint)
			}
		}
		return n
	}
}

// streamBytes is the bytes of all streams of a snapshot, each file once.
func streamBytes(s *format.Savepoint) (n int64) {
	seen := map[format.StreamKey]bool{}
	_ = s.EachStream(func(_ format.Place, st format.Stream) error {
		if _, _, ok := format.Reference(st); ok {
			key := st.Key()
			if seen[key] {
				return nil
			}
			seen[key] = true
		}
		n += format.SizeOf(st)
		return nil
	})
	return n
}

// someState is how many bytes are read to read some states of handles: of an .spt
// file an estimate, as if all state were compressed alike.
func someState(ctx context.Context, snap *reader.Snapshot, states iter.Seq2[*format.OperatorHandle, int]) func() int64 {
	return func() (n int64) {
		var of *format.OperatorHandle
		var sizes []int64
		for h, state := range states {
			if h != of {
				var err error
				if sizes, err = summary.StateSizes(ctx, h); err != nil {
					return 0 // reading the state reports the error
				}
				of = h
			}
			n += sizes[state]
		}
		if snap.Container.Family != reader.SPT {
			return n
		}
		all := max(streamBytes(snap.Savepoint), 1)
		return int64(float64(n) / float64(all) * float64(snap.Container.SPT.StoredBytes))
	}
}

// statesOf are the managed states of a snapshot that choose chooses.
func statesOf(sp *format.Savepoint, choose func(*format.Operator, *format.NamedState) bool) iter.Seq2[*format.OperatorHandle, int] {
	return func(yield func(*format.OperatorHandle, int) bool) {
		for _, op := range sp.Operators {
			for _, sub := range op.Subtasks {
				if sub.Managed == nil {
					continue
				}
				for i := range sub.Managed.States {
					if choose(op, &sub.Managed.States[i]) && !yield(sub.Managed, i) {
						return
					}
				}
			}
		}
	}
}
