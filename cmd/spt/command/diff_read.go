package command

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
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

// mapEntries takes the map of a broadcast state apart, where its types are
// known. Its texts are JSON.
func mapEntries(ctx context.Context, snap *reader.Snapshot, h *format.OperatorHandle, state int) (func([]byte) ([]diff.MapEntry, error), error) {
	values, err := snap.Values(ctx, h, state)
	if err != nil || values.Entries == nil {
		return nil, err
	}
	return func(p []byte) ([]diff.MapEntry, error) {
		entries, err := values.Entries(p)
		if err != nil {
			return nil, err
		}
		all := make([]diff.MapEntry, len(entries))
		for i, e := range entries {
			all[i] = diff.MapEntry{Key: string(appendValue(nil, e.Key, ui.FormatAuto)), Value: string(appendValue(nil, e.Value, ui.FormatAuto))}
		}
		return all, nil
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
	it := &catItem{}
	if it.stored, err = c.Value(ctx, r.inputs[side]); err != nil {
		return "", "", err
	}
	cat := &catter{env: r.env, snap: r.snaps[side]}
	if cat.shown() {
		values, err := r.valuesOf(ctx, side, c)
		if err != nil {
			return "", "", err
		}
		if values.Decode != nil {
			if v, err := values.Decode(it.stored); err == nil { // else it is shown as stored
				it.decoded, it.value = true, v
			}
		}
	}
	_, text = cat.cells(it)
	return cat.encoding(it), text, nil
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
