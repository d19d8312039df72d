package command

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/work"
)

const (
	// catBytes is what a cursor reads at once: a unit of more would be read in
	// several pieces, and of the last one most would be for the next unit.
	catBytes    = 256 << 10
	catElements = 4096
	// catInFlight bounds what was read and not printed yet.
	catInFlight = 4 << 20
)

// catBatch is what one unit has for the output.
type catBatch struct {
	items   []catItem
	lines   *catLines // instead of items: they as JSON
	unknown []string  // why values are not decoded; at most one
	next    int64     // entry of a map that follows; 0: nothing follows
	// rest is the scan of the entries of keyed state that follow; nil: none do.
	rest  *entryScan
	notes []entryNote // of keyed state: why values are not decoded
}

// each calls f with every element and entry of states that --where is true for, in
// order: keyed states of an operator together, as they are stored. If lines is not nil,
// it gets them as JSON instead, n at a time.
func (c *catter) each(ctx context.Context, states []*catState, f func(*catState, *catItem) error, lines func(p []byte, n int64) error) error {
	var broken error // of offsets
	parts, of := c.partsOf(states)
	units := func(yield func(work.Unit) bool) {
		for _, part := range parts {
			u := work.Unit{Job: work.ReadElements, Handle: part.handle, State: part.state}
			if part.keyed != nil {
				if !c.entryUnits(part, u, yield) {
					return
				}
				continue
			}
			for u, err := range work.Elements(ctx, u, part.h, catBytes, catElements) {
				if err != nil {
					broken = c.placed(err, part)
					return
				}
				if !yield(u) {
					return
				}
			}
		}
	}
	readers := c.readers(lines)
	o := work.Options{Jobs: c.env.readJobs(c.snap), Bytes: catInFlight}
	switch {
	case c.most > 0:
		o.Jobs = 1 // nothing is read ahead
	case c.env.common.jobs == 0 && c.snap.Remote():
		o.Jobs *= 2 // several pieces of a file wait for one read; the source bounds those
	}
	defer readers.closeAll()
	k := 0
	say := func(st *catState, unknown []string) {
		if !st.unknownSaid && len(unknown) > 0 {
			st.unknownSaid = true
			c.unknown = append(c.unknown, unknown...)
		}
	}
	err := work.Run(ctx, o, units, readers.run, func(u work.Unit, b catBatch, err error) error {
		for parts[k].handle != u.Handle || parts[k].state != u.State {
			k++
		}
		if parts[k].keyed != nil {
			return c.entries(ctx, o, readers, parts[k], b, err, f)
		}
		say(of[k], b.unknown)
		if err := readers.print(b.lines); err != nil {
			return err
		}
		for i := range b.items {
			b.items[i].part = parts[k]
			if err := f(of[k], &b.items[i]); err != nil {
				return err
			}
		}
		if err != nil || b.next == 0 {
			return err
		}
		// The rest of a large map is not held in memory.
		rest := readers.newLines()
		_, unknown, err := readers.read(ctx, u, b.next, nil, func(st *catState, it *catItem) error {
			if rest != nil {
				return readers.add(rest, st, it)
			}
			it.part = parts[k]
			return f(of[k], it)
		}, false)
		say(of[k], unknown)
		return cmp.Or(err, readers.print(rest))
	})
	if err == nil {
		err = broken
	}
	return err
}

// catReaders are readers of units: one runs at most one unit at a time.
type catReaders struct {
	c    *catter // prints, and changes while others read
	base catter  // which readers are copies of
	free chan *catter
	// lines prints elements as JSON; nil: they are kept as items.
	lines   func(p []byte, n int64) error
	unused  sync.Pool // of *catLines
	batches sync.Pool // of *entryBatch

	mu   sync.Mutex
	open map[*entryScan]bool // that have a rest, or are in use
}

func (c *catter) readers(lines func(p []byte, n int64) error) *catReaders {
	return &catReaders{c: c, base: *c, lines: lines, free: make(chan *catter, 64)}
}

// catLines are elements as JSON, one after another.
type catLines struct {
	w    *report.CatEncoder
	text []byte
	n    int64
}

// newLines returns no lines yet, or nil if elements are kept as items.
func (r *catReaders) newLines() *catLines {
	if r.lines == nil {
		return nil
	}
	l, ok := r.unused.Get().(*catLines)
	if !ok {
		l = &catLines{w: report.NewCatEncoder(r.base.shown())}
	}
	l.text, l.n = l.text[:0], 0
	return l
}

func (l *catLines) add(st *catState, it *catItem) {
	item := it.shown(st)
	l.text = l.w.Append(l.text, &item)
	l.n++
}

// add prints the line of an element, and those before it, when they are enough.
func (r *catReaders) add(l *catLines, st *catState, it *catItem) error {
	if l.add(st, it); len(l.text) < catBytes && l.n != r.c.most {
		return nil
	}
	err := r.lines(l.text, l.n)
	l.text, l.n = l.text[:0], 0
	return err
}

// print prints lines, which must not be used again.
func (r *catReaders) print(l *catLines) error {
	if l == nil {
		return nil
	}
	defer r.unused.Put(l)
	if l.n == 0 {
		return nil
	}
	return r.lines(l.text, l.n)
}

// run reads one unit, but of a map no more than a piece, and of
// keyed state no more than a batch. What it read before an
// error comes with the error.
func (r *catReaders) run(ctx context.Context, u work.Unit) (b catBatch, err error) {
	if u.Handle.Slot == format.SlotManagedKeyed || u.Handle.Slot == format.SlotRawKeyed {
		return r.runEntries(ctx, u)
	}
	var kept arena
	keep := &kept // values can refer to the bytes that they were decoded from
	if b.lines = r.newLines(); b.lines != nil {
		keep = nil
	}
	n := int64(0)
	b.next, b.unknown, err = r.read(ctx, u, 0, keep, func(st *catState, it *catItem) error {
		if b.lines != nil {
			b.lines.add(st, it)
		} else {
			b.items = append(b.items, *it)
		}
		if n++; n == r.c.most {
			return errEnough
		}
		return nil
	}, true)
	if errors.Is(err, errEnough) { // merging ends the work
		err = nil
	}
	return b, err
}

// read calls emit with what a unit has for the output: of a map, the entries from one
// on, all or a piece of them. next is the entry that follows the piece, if there may
// be one.
func (r *catReaders) read(ctx context.Context, u work.Unit, from int64, keep *arena, emit func(st *catState, it *catItem) error, piece bool) (next int64, unknown []string, err error) {
	c, err := r.take()
	if err != nil {
		return 0, nil, err
	}
	defer r.release(c)
	h, err := u.OperatorHandle(c.snap.Savepoint)
	if err != nil {
		return 0, nil, err
	}
	place, err := u.Handle.Location(c.snap.Savepoint)
	if err != nil {
		return 0, nil, err
	}
	st := newCatState(c.env, place.Operator, &h.States[u.State], place.Slot == format.SlotRaw)
	it := catItem{part: &catPart{place: place, subtask: u.Handle.Index, h: h, state: u.State, handle: u.Handle}}
	c.kept, c.from, c.piece = keep, from, piece
	var done error // what became of an element is not an error of reading
	next, err = c.part(ctx, u, st, &it, func() error {
		if c.filter != nil {
			ok, err := c.filter.holds(c, st, &it)
			if err != nil || !ok {
				done = err
				return err
			}
		}
		done = emit(st, &it)
		return done
	})
	switch {
	case done != nil:
		err = done
	case err != nil:
		err = c.placed(err, it.part)
	}
	return next, c.unknown, err
}

func (r *catReaders) take() (*catter, error) {
	select {
	case c := <-r.free:
		c.unknown = nil
		return c, nil
	default:
	}
	c := r.base
	c.unknown = nil
	if c.filter != nil {
		c.filter = c.filter.another()
	}
	return &c, nil
}

func (r *catReaders) release(c *catter) {
	select {
	case r.free <- c:
	default:
	}
}

// arena holds copies in few allocations.
type arena struct{ free []byte }

func (a *arena) copy(p []byte) []byte {
	if len(p) > cap(a.free)-len(a.free) {
		a.free = make([]byte, 0, max(len(p), 64<<10))
	}
	n := len(a.free)
	a.free = append(a.free, p...)
	return slices.Clip(a.free[n:])
}
