// Package elements reads the elements of operator states as units of work, see
// [work.Unit], and computes their digests.
//
// A unit names elements of one handle in one snapshot. What all units of a
// comparison have in common, such as the keys of the digests, is not in them.
package elements

import (
	"context"
	"runtime"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/tally"
	"github.com/savepoint-tools/spt/internal/work"
)

// Part is a state in one handle.
type Part struct {
	Handle  *format.OperatorHandle
	State   int // in Handle.States
	Subtask int32
}

// Len returns the number of its elements.
func (p Part) Len() int64 { return p.Handle.States[p.State].Offsets.Len() }

// Reader runs units on one snapshot. It is safe for concurrent use.
type Reader struct {
	In       format.View
	Hash     hash128.Hasher
	Progress func(n int64) // called with bytes that were read; may be nil

	positions map[*format.OperatorHandle]work.Handle
	handles   sync.Map // checked -> *format.OperatorHandle
	batches   sync.Pool
}

// checked is a handle of a snapshot and the identity of its stream.
type checked struct {
	work.Handle
	stream string
}

// NewReader returns a Reader of all handles of a snapshot.
func NewReader(in format.View, hash hash128.Hasher, progress func(n int64)) *Reader {
	r := &Reader{In: in, Hash: hash, Progress: progress, positions: map[*format.OperatorHandle]work.Handle{}}
	for i, op := range in.Operators {
		for k, sub := range op.Subtasks {
			at := work.Handle{Operator: i, Subtask: k, ID: op.ID, Index: sub.Index, Slot: format.SlotManaged}
			for _, h := range []*format.OperatorHandle{sub.Managed, sub.Raw} {
				if _, known := r.positions[h]; h != nil && !known {
					r.positions[h] = at
				}
				at.Slot = format.SlotRaw
			}
		}
	}
	return r
}

// handle returns the handle that a unit reads. The identity of a stream of many
// parts is computed once, not for each unit.
func (r *Reader) handle(u work.Unit) (*format.OperatorHandle, error) {
	key := checked{Handle: u.Handle}
	if len(u.Parts) == 1 {
		key.stream = u.Parts[0].Stream
	}
	if h, ok := r.handles.Load(key); ok && uint(u.State) < uint(len(h.(*format.OperatorHandle).States)) {
		return h.(*format.OperatorHandle), nil
	}
	h, err := u.OperatorHandle(r.In.Savepoint)
	if err == nil {
		r.handles.Store(key, h)
	}
	return h, err
}

// Each calls f with the elements of a unit and their digests, in order.
func (r *Reader) Each(ctx context.Context, u work.Unit, f func(e format.Element, d hash128.Digest)) error {
	h, err := r.handle(u)
	if err != nil {
		return err
	}
	codec, err := r.In.Codec(h.Codec)
	if err != nil {
		return err
	}
	var n int64
	err = u.EachElement(ctx, r.In.Source, codec, h, func(e format.Element) error {
		if n += int64(len(e.Value)); n >= 1<<20 {
			r.progress(n)
			n = 0
		}
		f(e, r.Hash.Sum(e.Value))
		return nil
	})
	r.progress(n)
	return err
}

func (r *Reader) progress(n int64) {
	if r.Progress != nil {
		r.Progress(n)
	}
}

// Batch is elements of a unit, by their numbers in the handle.
type Batch struct{ Elements []tally.Element }

// Batch is a run of a unit that returns its elements to be counted. digest returns
// the digest under which an element is counted, or that it is not; nil: all are,
// under their own. Count takes the Batch back.
func (r *Reader) Batch(ctx context.Context, u work.Unit, digest func(u work.Unit, d hash128.Digest) (hash128.Digest, bool)) (*Batch, error) {
	b, ok := r.batches.Get().(*Batch)
	if !ok {
		b = &Batch{make([]tally.Element, 0, unitElements+1)}
	}
	b.Elements = b.Elements[:0]
	err := r.Each(ctx, u, func(e format.Element, d hash128.Digest) {
		if digest != nil {
			var counted bool
			if d, counted = digest(u, d); !counted {
				return
			}
		}
		b.Elements = append(b.Elements, tally.Element{Digest: d, Number: e.Index, Size: len(e.Value)})
	})
	return b, err
}

// Count runs units of all parts as Batch does and calls add with the elements in
// order. They are numbered across all parts, and the part is their group.
func (r *Reader) Count(ctx context.Context, parts []Part, o Options, digest func(u work.Unit, d hash128.Digest) (hash128.Digest, bool), add func(part int, e tally.Element) error) error {
	o.Job, o.Size, o.Most, o.Bytes = work.CountElements, unitBytes, unitElements, notMerged
	run := func(ctx context.Context, u work.Unit) (*Batch, error) { return r.Batch(ctx, u, digest) }
	last, first := 0, int64(0) // part, and the number of its first element
	return Run(ctx, r, parts, o, run, func(part int, b *Batch) error {
		for ; last < part; last++ {
			first += parts[last].Len()
		}
		for _, e := range b.Elements {
			e.Number += first
			e.Group = uint16(part)
			if err := add(part, e); err != nil {
				return err
			}
		}
		r.batches.Put(b)
		return nil
	})
}

const (
	// unitBytes is the size of a cursor's read: a larger unit would need several
	// reads, and most of the last one would belong to the next unit.
	unitBytes    = 256 << 10
	unitElements = 4096
	// notMerged bounds the bytes read and not yet merged.
	notMerged = 8 << 20
	// mostJobs is the maximum number of units that run at once.
	mostJobs = notMerged / unitBytes
)

// Options are the options of Run.
type Options struct {
	Job        work.Job
	Jobs       int   // units that run at once; 0 means one per processor
	Size, Most int64 // bytes and elements of a unit, see work.Elements
	Bytes      int64 // see work.Options
	// At adds the part to an error.
	At func(part int, err error) error
}

// Workers returns the number of units that run at once for the given jobs.
func Workers(jobs int) int {
	if jobs <= 0 {
		jobs = runtime.GOMAXPROCS(0)
	}
	return min(jobs, mostJobs)
}

// Run plans units of all parts, runs them, and calls merge with the results in
// order. Errors name their part.
func Run[R any](ctx context.Context, r *Reader, parts []Part, o Options, run func(ctx context.Context, u work.Unit) (R, error), merge func(part int, result R) error) error {
	var broken error // of offsets
	units := func(yield func(work.Unit) bool) {
		for part, p := range parts {
			u := work.Unit{Job: o.Job, Handle: r.positions[p.Handle], State: p.State}
			for u, err := range work.Elements(ctx, u, p.Handle, o.Size, o.Most) {
				if err != nil {
					broken = o.At(part, err)
					return
				}
				if !yield(u) {
					return
				}
			}
		}
	}
	part := -1
	err := work.Run(ctx, work.Options{Jobs: Workers(o.Jobs), Bytes: o.Bytes}, units, run, func(u work.Unit, result R, err error) error {
		if u.First == 0 { // the first unit of a part
			part++
		}
		if err == nil {
			err = merge(part, result)
		}
		if err != nil {
			return o.At(part, err)
		}
		return nil
	})
	if err == nil {
		err = broken
	}
	return err
}
