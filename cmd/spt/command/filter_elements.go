package command

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/internal/work"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// readable is the error itself where cat would advise one of its own flags.
func readable(err error) error {
	var n *notReadable
	if errors.As(err, &n) {
		return n.error
	}
	return err
}

// holds reports whether the expression holds. One that looks at values needs them
// decoded: as nil they would be dropped for what they may not be.
func (c *catter) holds(ctx context.Context, st *catState, it *catItem) (bool, error) {
	if c.filter.looks == looksAtValues && !it.decoded {
		return false, c.notTold(ctx, st, it, "looks at values")
	}
	return c.filter.holds(c, st, it)
}

// notTold refuses an expression that does what cannot be done without decoding.
func (c *catter) notTold(ctx context.Context, st *catState, it *catItem, does string) error {
	why := ""
	if v, err := c.snap.Values(ctx, it.part.h, it.part.state); err == nil && v.Why != "" {
		why = " (" + v.Why + ")"
	}
	return format.Errorf(format.ErrUnsupported, "--where %s, but %s/%s is not decoded%s; use --operator and --state to choose others", does, ui.Quote(c.env.hidden(st.label)), ui.Quote(c.env.hidden(st.name)), why)
}

// asker answers a filter by the expression.
type asker struct {
	ctx    context.Context
	c      *catter
	st     catState
	part   *catPart
	values reader.Values
}

// at turns to a state of a handle.
func (a *asker) at(e transform.FilterElement) error {
	h := e.Subtask.Managed
	if a.part != nil && a.part.h == h && a.part.state == e.State {
		return nil
	}
	s := &h.States[e.State]
	a.part = &catPart{place: format.Place{Operator: e.Operator, Subtask: e.Subtask, Slot: format.SlotManaged}, subtask: e.Subtask.Index, h: h, state: e.State}
	a.st = catState{op: e.Operator, label: operatorName(a.c.env, e.Operator), name: s.Name.String(), kind: s.Mode.String(), mode: s.Mode}
	if a.c.filter.looks < looksAtValues {
		return nil
	}
	var err error
	a.values, err = a.c.snap.Values(a.ctx, h, e.State)
	return format.At(err, "%v/state %q", a.part.place, a.st.name)
}

func (a *asker) keep(e transform.FilterElement) (bool, error) {
	if err := a.at(e); err != nil {
		return false, err
	}
	if f := a.c.filter; f.entriesOnly() || f.program.Uses(catKey) && a.st.mode != format.ModeBroadcast {
		return true, nil // it has nothing of what the expression looks at
	}
	it := catItem{part: a.part, index: e.Index, stored: e.Value}
	var err error
	switch looks := a.c.filter.looks; {
	case e.Entry == nil && a.st.mode == format.ModeBroadcast: // a map whose entries are not known
		if looks > looksAtState {
			return false, a.c.notTold(a.ctx, &a.st, &it, "asks about entries")
		}
	case looks < looksAtValues:
		it.entry = e.Entry != nil
	case e.Entry != nil:
		err = a.c.decodeEntry(&a.st, &it, a.values, *e.Entry)
	default:
		err = a.c.decode(&a.st, &it, a.values)
	}
	if err != nil {
		return false, format.At(readable(err), "%v", a.part.place)
	}
	return a.c.holds(a.ctx, &a.st, &it)
}

// entryAskers answer a filter of keyed state by the expression.
type entryAskers struct {
	ctx context.Context
	c   *catter
}

// of returns what answers for the entries of a handle. Several handles are read at
// once.
func (a *entryAskers) of(e transform.FilterHandle) (func(*format.KeyedEntry) (bool, error), error) {
	place := format.Place{Operator: e.Operator, Subtask: e.Subtask, Slot: format.SlotManagedKeyed}
	if e.Handle == e.Subtask.RawKeyed {
		place.Slot = format.SlotRawKeyed
	}
	codecs, err := value.EntryCodecsOf(a.ctx, a.c.snap.Source(), e.Codec, e.Handle)
	if err != nil {
		return nil, format.At(err, "%v", place)
	}
	read := &keyedRead{keyedHandle: &keyedHandle{place: place, h: e.Handle, codec: e.Codec, schema: e.Schema, codecs: codecs}}
	for _, st := range e.Schema.States {
		read.states = append(read.states, namedCatState(a.c.env, e.Operator, st.Name.String(), st.Kind))
	}
	part := &catPart{place: place, subtask: e.Subtask.Index, state: work.All, keyed: read}
	c := *a.c
	c.unknown, c.filter = nil, c.filter.another()
	asker := &entryAsker{dec: newEntryDecoder(&c, part, true)} // an entry is decided before the next one is read
	return asker.keep, nil
}

// entryAsker answers for the entries of one handle.
type entryAsker struct {
	dec *entryDecoder
	it  catItem
}

func (a *entryAsker) keep(e *format.KeyedEntry) (bool, error) {
	c, part := a.dec.c, a.dec.part
	st := part.keyed.states[e.State]
	err := a.dec.decode(&a.it, e)
	if err == nil {
		err = c.entryDecoded(st, &a.it, part.keyed.codecs[e.State].Why)
	}
	if err != nil {
		return false, format.At(readable(err), "%v", part.place)
	}
	return c.filter.holds(c, st, &a.it)
}
