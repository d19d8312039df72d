package command

import (
	"context"
	"errors"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/work"
)

// entryUnit is about how many bytes of a keyed handle a unit reads: each opens the
// handle again.
const entryUnit = 4 << 20

// wants reports whether a state that is read has chosen entries in some key groups.
func (r *keyedRead) wants(groups format.KeyGroupRange) bool {
	for i, st := range r.states {
		if e := &r.chosen[i]; st != nil && !e.none && (e.groups.Count == 0 || e.groups.Intersect(groups).Count > 0) {
			return true
		}
	}
	return false
}

// entryUnits yields the units of a handle of keyed state: one if it cannot be read. It
// reports whether more are wanted.
func (c *catter) entryUnits(part *catPart, u work.Unit, yield func(work.Unit) bool) bool {
	r := part.keyed
	if r.err != nil {
		u.Parts = work.Whole(work.Described(r.h))
		return yield(u)
	}
	for unit := range work.KeyGroups(u, r.h, entryUnit) {
		if r.wants(unit.Groups()) && !yield(unit) {
			return false
		}
	}
	return true
}

// notRead notes that a handle of keyed state cannot be read, if the error is that it
// is not supported. Other errors are returned.
func (c *catter) notRead(part *catPart, err error) error {
	if !errors.Is(err, format.ErrUnsupported) {
		return err
	}
	if !c.leftOut[part.place.Operator] {
		if c.leftOut == nil {
			c.leftOut = map[*format.Operator]bool{}
		}
		c.leftOut[part.place.Operator] = true
		c.left = append(c.left, ui.Printable(err.Error()))
	}
	return nil
}

// runEntries reads a first batch of a unit of keyed state: the rest comes as a scan.
func (r *catReaders) runEntries(ctx context.Context, u work.Unit) (b catBatch, err error) {
	c, err := r.take()
	if err != nil {
		return b, err
	}
	defer r.release(c)
	read, err := c.readOf(ctx, u)
	if err != nil {
		return b, err
	}
	part := &catPart{place: read.place, subtask: u.Handle.Index, state: work.All, handle: u.Handle, keyed: read}
	s := newEntryScan(ctx, &r.base, part, u.Groups())
	r.opened(s)
	first := r.newEntryBatch()
	ended := first.fill(s, r.c.most)
	b, err = r.decode(c, part, first)
	r.unusedBatch(first)
	if err == nil && ended == nil {
		b.rest = s
		return b, nil
	}
	r.closed(s)
	if err == nil && ended != io.EOF {
		err = ended
	}
	return b, err
}

// opened notes a scan, so that it is closed in any case.
func (r *catReaders) opened(s *entryScan) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*entryScan]bool{}
	}
	r.open[s] = true
}

// closed closes a scan, whose errors no longer matter: nothing was written.
func (r *catReaders) closed(s *entryScan) {
	r.mu.Lock()
	delete(r.open, s)
	r.mu.Unlock()
	s.close()
}

// closeAll closes the scans of units that were not printed.
func (r *catReaders) closeAll() {
	for s := range r.open {
		r.closed(s)
	}
}

// decode decodes a batch, and filters it by the expression of a reader. What comes before
// an error comes with it.
func (r *catReaders) decode(c *catter, part *catPart, batch *entryBatch) (b catBatch, err error) {
	d := newEntryDecoder(c, part, r.lines != nil)
	b.lines = r.newLines()
	var it catItem
	for i := range batch.entries {
		var ok bool
		if ok, err = d.chosen(&it, &batch.entries[i]); err != nil {
			break
		}
		switch {
		case !ok:
		case b.lines != nil:
			b.lines.add(part.keyed.states[it.state], &it)
		default:
			b.items = append(b.items, it)
		}
	}
	b.notes = d.notes
	return b, err
}

// entries calls f with what a unit of keyed state read, and then with its rest: that is
// read here and decoded by several goroutines.
func (c *catter) entries(ctx context.Context, o work.Options, readers *catReaders, part *catPart, b catBatch, err error, f func(*catState, *catItem) error) error {
	err = c.batch(readers, part, &b, err, f)
	if err == nil && b.rest != nil {
		ended := error(nil)
		batches := func(yield func(*entryBatch) bool) {
			for ended == nil {
				batch := readers.newEntryBatch()
				if ended = batch.fill(b.rest, readers.c.most); !yield(batch) {
					return
				}
			}
		}
		err = work.Run(ctx, o, batches, func(_ context.Context, batch *entryBatch) (catBatch, error) {
			reader, err := readers.take()
			if err != nil {
				return catBatch{}, err
			}
			defer readers.release(reader)
			return readers.decode(reader, part, batch)
		}, func(batch *entryBatch, b catBatch, err error) error {
			defer readers.unusedBatch(batch)
			return c.batch(readers, part, &b, err, f)
		})
		readers.closed(b.rest)
		if err == nil && ended != io.EOF {
			err = ended
		}
	}
	if err != nil {
		return c.notRead(part, err)
	}
	return nil
}

// batch calls f with what was decoded of a batch, or prints it.
func (c *catter) batch(readers *catReaders, part *catPart, b *catBatch, err error, f func(*catState, *catItem) error) error {
	if err := readers.print(b.lines); err != nil {
		return err
	}
	for i := range b.items {
		if err := f(part.keyed.states[b.items[i].state], &b.items[i]); err != nil {
			return err
		}
	}
	for _, n := range b.notes {
		c.notDecoded(part.keyed.states[n.state], n.why)
	}
	return err
}

// readOf returns what is read of the handle of a unit: what was found when states were
// searched, or in another process what --state says.
func (c *catter) readOf(ctx context.Context, u work.Unit) (*keyedRead, error) {
	handle, err := u.KeyedHandle(c.snap.Savepoint)
	if err != nil {
		return nil, err
	}
	if r := c.reading[u.Handle]; r != nil {
		if r.err != nil {
			return nil, c.placed(r.err, &catPart{place: r.place})
		}
		return r, nil
	}
	place, err := u.Handle.Location(c.snap.Savepoint)
	if err != nil {
		return nil, err
	}
	h := &keyedHandle{place: place, at: u.Handle, h: handle}
	if c.describe(ctx, h); h.err != nil {
		return nil, c.placed(h.err, &catPart{place: place})
	}
	var names []string
	parts := keyedParts(c.keyedStates(place.Operator, []*keyedHandle{h}, &names))
	if len(parts) == 0 {
		return &keyedRead{h, make([]*catState, len(h.schema.States))}, nil
	}
	return parts[0].keyed, nil
}
