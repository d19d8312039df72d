package command

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
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
	return format.Errorf(format.ErrUnsupported, "--where %s, but %s/%s is not decoded%s; use --operator and --state to choose others", does, ui.Quote(c.name(st.label)), ui.Quote(c.name(st.name)), why)
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

// entries takes the maps of a broadcast state apart, where its types are known.
func (a *asker) entries(ctx context.Context, h *format.OperatorHandle, state int) (func(p []byte) ([]format.Entry, error), error) {
	values, err := a.c.snap.Values(ctx, h, state)
	return values.Entries, err
}

func (a *asker) keep(e transform.FilterElement) (bool, error) {
	if err := a.at(e); err != nil {
		return false, err
	}
	it := catItem{part: a.part, index: e.Index, stored: e.Value}
	switch {
	case e.Entry != nil:
		it.setEntry(e.Index, e.Entry, e.Value)
	case a.st.mode == format.ModeBroadcast: // a map that is not taken apart
		if a.c.filter.looks > looksAtState {
			return false, a.c.notTold(a.ctx, &a.st, &it, "asks about entries")
		}
	case a.c.filter.looks == looksAtValues:
		var ok bool
		var answer error
		err := a.c.decode(&a.st, &it, a.values, func() error {
			ok, answer = a.c.holds(a.ctx, &a.st, &it)
			return answer
		})
		if err != nil && answer == nil {
			err = format.At(readable(err), "%v", a.part.place)
		}
		return ok, err
	}
	return a.c.holds(a.ctx, &a.st, &it)
}
