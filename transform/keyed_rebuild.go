package transform

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// keyedRebuild is how the keyed state of an operator is built again. The zero value
// changes nothing but its format.
type keyedRebuild struct {
	// touches reports whether a state, by its name, is changed. nil: none is.
	touches func(name string) bool
	// edit returns what changes in the entries of a subtask.
	edit func(sub *format.Subtask, s *keyedSource) (keyedEdit, error)
}

// rebuildKeyed returns an operator whose managed keyed state is canonical and changed as
// r says, and the number of entries that were built. Raw timers become managed state.
// A canonical handle in which nothing changes stays as it is, and so does an operator
// without any of the states.
//
// A handle without a state is left out.
func rebuildKeyed(ctx context.Context, in format.View, op *format.Operator, r keyedRebuild) (*format.Operator, int64, error) {
	sources := map[*format.Subtask][]*keyedSource{}
	touched := map[*format.Subtask]bool{}
	for _, sub := range op.Subtasks {
		all, err := keyedSourcesOf(ctx, in, op, sub)
		if err != nil {
			return nil, 0, format.At(err, "subtask %d", sub.Index)
		}
		sources[sub] = all
		for _, s := range all {
			touched[sub] = touched[sub] || r.touches != nil && slices.ContainsFunc(s.schema.States, func(st format.KeyedState) bool { return r.touches(st.Name.String()) })
		}
	}
	if r.touches != nil && len(touched) > 0 && !anyOf(touched) {
		return op, 0, nil
	}
	if op.HasInFlight() {
		return nil, 0, &InFlightError{op.Label()}
	}
	entries := int64(0)
	out, err := op.MapSubtasks(func(sub *format.Subtask) (*format.Subtask, error) {
		if len(sources[sub]) == 0 || !touched[sub] && canonicalHandle(sub.ManagedKeyed) {
			return sub, nil
		}
		if r.edit != nil {
			for _, s := range sources[sub] {
				var err error
				if s.edit, err = r.edit(sub, s); err != nil {
					return nil, err
				}
			}
		}
		c := *sub
		c.ManagedKeyed, c.RawKeyed = nil, nil
		h, n, err := buildKeyed(ctx, in.Source, sources[sub][0].codec, keyGroupsOf(sub), sources[sub])
		if err != nil {
			return nil, format.At(err, "%v", format.SlotManagedKeyed)
		}
		if h != nil {
			c.ManagedKeyed = h
		}
		entries += n
		return &c, nil
	})
	return out, entries, err
}

func anyOf(all map[*format.Subtask]bool) bool {
	for _, yes := range all {
		if yes {
			return true
		}
	}
	return false
}

// keyGroupsOf returns the key groups of the keyed state of a subtask.
func keyGroupsOf(sub *format.Subtask) format.KeyGroupRange {
	if sub.ManagedKeyed != nil {
		return sub.ManagedKeyed.KeyGroups()
	}
	return sub.RawKeyed.KeyGroups()
}

// keyedSourcesOf returns the entries of the managed keyed state of a subtask, and of its
// raw timers.
func keyedSourcesOf(ctx context.Context, in format.View, op *format.Operator, sub *format.Subtask) (all []*keyedSource, err error) {
	for _, raw := range []bool{false, true} {
		h := keyedOf(sub, raw)
		if h == nil {
			continue
		}
		s, err := keyedSourceOf(ctx, in, op, h, h.KeyGroups())
		if err != nil {
			return nil, format.At(err, "%v", slotOf(raw))
		}
		if raw && len(s.schema.States) == 0 {
			continue
		}
		all = append(all, s)
	}
	return all, nil
}

func slotOf(raw bool) format.Slot {
	if raw {
		return format.SlotRawKeyed
	}
	return format.SlotManagedKeyed
}
