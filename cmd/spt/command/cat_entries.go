package command

import (
	"bytes"
	"context"
	"errors"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/work"
)

const (
	// entryUnit is about how many bytes of a keyed handle a unit reads: each opens
	// the handle again.
	entryUnit = 4 << 20
	// entryPiece and entryCount bound what a unit reads before it is its turn; the
	// rest is read then.
	entryPiece = 1 << 20
	entryCount = 4096
)

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

// entryNote is why values of a state are not decoded.
type entryNote struct {
	state int // of the handle
	why   string
}

// entryReader reads the entries of a unit of keyed state.
type entryReader struct {
	c      *catter
	part   *catPart
	passes []format.KeyedSelection
	cur    format.KeyedCursor
	once   bool            // an entry is used until the next one is decoded
	arena  value.Arena     // of entries that are not kept
	keyed  report.CatKeyed // the same
	kept   arena
	ctx    context.Context
	notes  []entryNote
	noted  []bool // by state
	// last is the state, the key and the namespace of the entry before, for --keys-only.
	last struct {
		state          int
		key, namespace []byte
	}
}

// runEntries reads a unit of keyed state, but no more than a piece: the rest comes as a
// reader.
func (r *catReaders) runEntries(ctx context.Context, u work.Unit) (b catBatch, err error) {
	e, err := r.entries(ctx, u)
	if err != nil {
		return b, err
	}
	b.lines = r.newLines()
	size := 0
	for n := 0; ; n++ {
		it := catItem{}
		if err = e.next(&it); err != nil {
			break
		}
		if b.lines != nil {
			b.lines.add(e.part.keyed.states[it.state], &it)
			size = len(b.lines.text)
		} else {
			b.items = append(b.items, it)
			size += int(it.keyed.Size)
		}
		if n+1 == int(r.c.most) {
			break
		}
		if size >= entryPiece || n >= entryCount {
			b.rest = e
			return b, nil
		}
	}
	if err == io.EOF {
		err = nil
	}
	b.notes = e.notes
	r.closed(e)
	return b, err
}

// entries opens the reader of a unit of keyed state.
func (r *catReaders) entries(ctx context.Context, u work.Unit) (*entryReader, error) {
	c, err := r.take()
	if err != nil {
		return nil, err
	}
	read, err := c.readOf(ctx, u)
	if err != nil {
		return nil, err
	}
	part := &catPart{place: read.place, subtask: u.Handle.Index, state: work.All, handle: u.Handle, keyed: read}
	e := newEntryReader(ctx, c, part, u.Groups())
	e.once = r.lines != nil
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		r.open = map[*entryReader]bool{}
	}
	r.open[e] = true
	return e, nil
}

// newEntryReader returns a reader of the chosen entries of a part in some key groups. It
// opens nothing yet.
func newEntryReader(ctx context.Context, c *catter, part *catPart, groups format.KeyGroupRange) *entryReader {
	read := part.keyed
	e := &entryReader{c: c, ctx: ctx, part: part, noted: make([]bool, len(read.states))}
	e.last.state = -1
	e.arena.Views = true
	for i, st := range read.states {
		chosen := &read.chosen[i]
		from := groups
		if chosen.groups.Count > 0 {
			from = from.Intersect(chosen.groups)
		}
		if st == nil || chosen.none || from.Count == 0 {
			continue
		}
		// States of one handle have the same key, as a rule.
		k := 0
		for k < len(e.passes) && (e.passes[k].Groups != from || !bytes.Equal(e.passes[k].Key, chosen.key)) {
			k++
		}
		if k == len(e.passes) {
			e.passes = append(e.passes, format.KeyedSelection{Groups: from, Key: chosen.key})
		}
		e.passes[k].States = append(e.passes[k].States, i)
	}
	return e
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

// closed closes a reader, whose errors no longer matter: nothing was written.
func (r *catReaders) closed(e *entryReader) {
	r.mu.Lock()
	delete(r.open, e)
	r.mu.Unlock()
	if e.cur != nil {
		_ = e.cur.Close()
	}
	r.release(e.c)
}

// closeAll closes the readers of units that were not printed.
func (r *catReaders) closeAll() {
	for e := range r.open {
		r.closed(e)
	}
}

// next sets it to the next entry that --where is true for, or returns io.EOF.
func (e *entryReader) next(it *catItem) error {
	for n := 0; ; n++ {
		if n%4096 == 0 {
			if err := e.ctx.Err(); err != nil {
				return err
			}
		}
		x, err := e.entry()
		if err != nil {
			return err
		}
		chosen := &e.part.keyed.chosen[x.State]
		if chosen.namespace != nil && !bytes.Equal(x.Namespace, chosen.namespace) || chosen.userKey != nil && !bytes.Equal(x.UserKey, chosen.userKey) {
			continue
		}
		if chosen.keys != nil {
			if x.Key == nil {
				continue
			}
			if ok, err := chosen.keys.has(x.Key); err != nil {
				return e.c.placed(&notReadable{format.At(err, "key group %d/state %q/key", x.KeyGroup, e.part.keyed.states[x.State].name)}, e.part)
			} else if !ok {
				continue
			}
		}
		if e.c.keysOnly && x.Key != nil && e.repeats(&x) {
			continue
		}
		if err := e.decode(it, &x); err != nil {
			return e.c.placed(err, e.part)
		}
		if e.c.filter != nil {
			if ok, err := e.c.filter.holds(e.c, e.part.keyed.states[x.State], it); err != nil {
				return err
			} else if !ok {
				continue
			}
		}
		return nil
	}
}

// entry returns the next entry of the cursor, and opens the cursor of the next pass.
func (e *entryReader) entry() (format.KeyedEntry, error) {
	for {
		if e.cur == nil {
			if len(e.passes) == 0 {
				return format.KeyedEntry{}, io.EOF
			}
			r := e.part.keyed
			cur, err := r.codec.Entries(e.ctx, e.c.snap.Source(), r.h, e.passes[0])
			if err != nil {
				return format.KeyedEntry{}, e.c.placed(err, e.part)
			}
			e.cur, e.passes = cur, e.passes[1:]
		}
		x, err := e.cur.Next()
		if err == nil {
			return x, nil
		}
		if err == io.EOF {
			err = e.cur.Close()
			e.cur = nil
		}
		if err != nil {
			return format.KeyedEntry{}, e.c.placed(err, e.part)
		}
	}
}

// repeats reports whether an entry has the state, the key and the namespace of the one
// before. Timers of one key differ.
func (e *entryReader) repeats(x *format.KeyedEntry) bool {
	if e.part.keyed.schema.States[x.State].Kind == kindOfTimers {
		return false
	}
	if e.last.state == x.State && bytes.Equal(e.last.key, x.Key) && bytes.Equal(e.last.namespace, x.Namespace) {
		return true
	}
	e.last.state, e.last.key, e.last.namespace = x.State, append(e.last.key[:0], x.Key...), append(e.last.namespace[:0], x.Namespace...)
	return false
}

// kindOfTimers is the kind of the states of timers.
const kindOfTimers = "timers"

// decode makes it the entry of a cursor.
func (e *entryReader) decode(it *catItem, x *format.KeyedEntry) error {
	r := e.part.keyed
	codecs := &r.codecs[x.State]
	k := &e.keyed
	if !e.once {
		k = new(report.CatKeyed)
	}
	*k = report.CatKeyed{KeyGroup: x.KeyGroup, Size: x.Size()}
	*it = catItem{part: e.part, state: x.State, keyed: k, stored: e.keep(x.Value)}
	if e.once {
		e.arena.Reset()
	}
	if r.schema.States[x.State].Kind == kindOfTimers {
		k.Timer, k.Time = true, x.Time
		it.stored = e.keep(x.Key)
	}
	if x.Key == nil && x.Stored != nil { // its parts are not known
		k.Stored = e.keep(x.Stored)
		e.note(x.State, codecs.Why)
	}
	for _, p := range [...]struct {
		name  string
		names [2]int // in --where
		codec value.Codec
		bytes []byte
		to    *report.CatPart
	}{
		{"key", [2]int{catKey, catKey}, codecs.Key, x.Key, &k.Key},
		{"namespace", [2]int{catNamespace, catNamespace}, codecs.Namespace, x.Namespace, &k.Namespace},
		{"map key", [2]int{catUserKey, catUserKey}, codecs.UserKey, x.UserKey, &k.UserKey},
		{"value", [2]int{catValue, catTTL}, codecs.Value, x.Value, &k.Value},
	} {
		if p.bytes == nil || p.to == &k.Value && k.Timer || e.c.keysOnly && (p.to == &k.Value || p.to == &k.UserKey) {
			continue
		}
		p.to.Has = true
		decode := e.c.decodes() || e.c.filter != nil && (e.c.filter.program.Uses(p.names[0]) || e.c.filter.program.Uses(p.names[1]))
		if !e.once || !decode || p.codec == nil {
			p.to.Stored = e.keep(p.bytes)
		}
		if !decode {
			continue
		}
		if p.codec == nil {
			e.note(x.State, codecs.Why)
			continue
		}
		switch err := e.read(p.codec, p.bytes, &p.to.Value); {
		case errors.Is(err, format.ErrUnsupported):
			p.to.Stored = e.keep(p.bytes)
			e.note(x.State, err)
			continue
		case err != nil:
			return &notReadable{format.At(err, "key group %d/state %q/%s", x.KeyGroup, r.states[x.State].name, p.name)}
		}
		p.to.Decoded = true
	}
	if codecs.TTL {
		k.SplitTTL(r.schema.States[x.State].Kind == "list")
	}
	it.key, it.value, it.decoded = k.Key.Value, k.Value.Value, k.Value.Decoded || k.Timer
	return nil
}

// read reads a part of an entry: of a line, into memory that is used again.
func (e *entryReader) read(c value.Codec, p []byte, v *value.Value) (err error) {
	if e.once {
		return value.ReadAllIn(&e.arena, c, p, v)
	}
	*v, err = value.ReadAll(c, p)
	return err
}

// keep returns p, or a copy where entries are kept.
func (e *entryReader) keep(p []byte) []byte {
	if e.once || p == nil {
		return p
	}
	return e.kept.copy(p)
}

// note notes once why parts of a state are not decoded.
func (e *entryReader) note(state int, why error) {
	if e.noted[state] || why == nil || !e.c.decodes() {
		return
	}
	e.noted[state] = true
	e.notes = append(e.notes, entryNote{state, why.Error()})
}

// entries calls f with what a unit of keyed state read, and then with its rest.
func (c *catter) entries(readers *catReaders, part *catPart, b catBatch, err error, f func(*catState, *catItem) error) error {
	r := part.keyed
	if err := readers.print(b.lines); err != nil {
		return err
	}
	for i := range b.items {
		if err := f(r.states[b.items[i].state], &b.items[i]); err != nil {
			return err
		}
	}
	notes := b.notes
	if b.rest != nil {
		defer readers.closed(b.rest)
		rest := readers.newLines()
		for {
			var it catItem
			if err = b.rest.next(&it); err != nil {
				break
			}
			st := r.states[it.state]
			if rest != nil {
				err = readers.add(rest, st, &it)
			} else {
				err = f(st, &it)
			}
			if err != nil {
				return err
			}
		}
		if err := readers.print(rest); err != nil {
			return err
		}
		if err == io.EOF {
			err = nil
		}
		notes = b.rest.notes
	}
	for _, n := range notes {
		c.notDecoded(r.states[n.state], n.why)
	}
	if err != nil {
		return c.notRead(part, err)
	}
	return nil
}
