package command

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/diff"
)

// pickBoth leaves the operators that were picked, which need not be in both.
func (o *diffOptions) pickBoth(env *Env, inputs *[2]format.View) error {
	if len(o.operators) == 0 {
		return nil
	}
	var keep [2]map[*format.Operator]bool
	for _, want := range o.operators {
		p := pick{operators: []string{want}}
		found := false
		var first error
		for i := range inputs {
			ops, err := p.pickOperators(env, inputs[i].Operators)
			if err != nil && first == nil {
				first = err
			}
			if keep[i] == nil {
				keep[i] = map[*format.Operator]bool{}
			}
			for _, op := range ops {
				keep[i][op] = true
				found = true
			}
		}
		if !found {
			return first
		}
	}
	for i := range inputs {
		sp := *inputs[i].Savepoint
		sp.Operators = slices.DeleteFunc(slices.Clone(sp.Operators), func(op *format.Operator) bool { return !keep[i][op] })
		inputs[i].Savepoint = &sp
	}
	return nil
}

// entryText makes texts of the entries of a broadcast state, where its types are
// known. They are JSON.
func entryText(ctx context.Context, snap *reader.Snapshot, h *format.OperatorHandle, state int) (func(format.MapEntry) (key, value string, err error), error) {
	values, err := snap.Values(ctx, h, state)
	if err != nil || values.Key == nil {
		return nil, err
	}
	return func(e format.MapEntry) (string, string, error) {
		k, err := value.ReadAll(values.Key, e.Key)
		if err != nil {
			return "", "", err
		}
		v, err := value.ReadAll(values.Value, e.Value)
		return string(report.AppendValue(nil, k, ui.FormatAuto)), string(report.AppendValue(nil, v, ui.FormatAuto)), err
	}, nil
}

// diffElements reads elements that differ.
type diffElements struct {
	env    *Env
	snaps  [2]*reader.Snapshot
	inputs [2]format.View
	values map[valuesOf]reader.Values
}

type valuesOf struct {
	h     *format.OperatorHandle
	state int
}

// read returns an element as cat prints it, and in which encoding.
func (r *diffElements) read(ctx context.Context, side int, c diff.ElementChange) (encoding, text string, err error) {
	it := &report.CatItem{}
	if it.Stored, err = c.Value(ctx, r.inputs[side]); err != nil {
		return "", "", err
	}
	o := report.CatOptions{Format: r.env.run.Format}
	if o.Decode() {
		values, err := r.valuesOf(ctx, side, c)
		if err != nil {
			return "", "", err
		}
		if values.Element != nil {
			if v, err := value.ReadAll(values.Element, it.Stored); err == nil { // else it is shown as stored
				it.Decoded, it.Value = true, v
			}
		}
	}
	encoding, _, text = o.Text(it)
	return encoding, text, nil
}

func (r *diffElements) valuesOf(ctx context.Context, side int, c diff.ElementChange) (reader.Values, error) {
	of := valuesOf{c.Handle, c.State}
	if v, known := r.values[of]; known {
		return v, nil
	}
	v, err := r.snaps[side].Values(ctx, c.Handle, c.State)
	if err == nil {
		r.values[of] = v
	}
	return v, err
}

// diffEntries decodes entries of keyed state that differ.
type diffEntries struct {
	env      *Env
	snaps    [2]*reader.Snapshot
	decoders map[format.KeyedHandle]*entryDecoder
}

// read returns an entry as cat prints it.
func (r *diffEntries) read(ctx context.Context, side int, at *diff.KeyedAt) (*report.CatItem, error) {
	d := r.decoders[at.Handle]
	if d == nil {
		h := &keyedHandle{place: at.Place, h: at.Handle}
		c := &catter{env: r.env, snap: r.snaps[side]}
		if c.describe(ctx, h); h.err != nil {
			return nil, h.err
		}
		var names []string
		parts := keyedParts(c.keyedStates(at.Operator, []*keyedHandle{h}, &names))
		d = newEntryDecoder(c, parts[0], false)
		r.decoders[at.Handle] = d
	}
	var it catItem
	if err := d.decode(&it, &at.Entry); err != nil {
		return nil, readable(err)
	}
	item := it.shown(d.part.keyed.states[at.Entry.State])
	item.Subtask = at.Subtask.Index
	return &item, nil
}
