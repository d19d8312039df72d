package transform

import (
	"context"
	"errors"
	"io"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/work"
)

// keyedOperator is an operator with the sources of its keyed state: of each subtask the
// managed state, and raw timers.
type keyedOperator struct {
	in      format.View
	op      *format.Operator
	sources map[*format.Subtask][]*keyedSource
}

// rawPolicy says what happens to raw keyed state that cannot be built as managed state: raw
// state of user code, and timers whose serializers have no snapshots.
type rawPolicy bool

const (
	rawRefused rawPolicy = false // an error
	rawStays   rawPolicy = true  // no source: it stays as it is
)

// describeKeyed reads the headers of the keyed state of an operator.
func describeKeyed(ctx context.Context, in format.View, op *format.Operator, policy rawPolicy) (*keyedOperator, error) {
	k := &keyedOperator{in: in, op: op, sources: map[*format.Subtask][]*keyedSource{}}
	for _, sub := range op.Subtasks {
		for _, raw := range []bool{false, true} {
			h := keyedOf(sub, raw)
			if h == nil {
				continue
			}
			s, err := keyedSourceOf(ctx, in, op, h, h.KeyGroups())
			if err == nil && raw && len(s.schema.States) > 0 && policy == rawStays {
				_, err = s.codec.Build(ctx, s.schema, s.groups, io.Discard)
			}
			if raw && policy == rawStays && errors.Is(err, format.ErrUnsupported) {
				continue
			}
			if err != nil {
				return nil, format.At(format.At(err, "%v", slotOf(raw)), "subtask %d", sub.Index)
			}
			if !raw || len(s.schema.States) > 0 {
				k.sources[sub] = append(k.sources[sub], s)
			}
		}
	}
	return k, nil
}

func slotOf(raw bool) format.Slot {
	if raw {
		return format.SlotRawKeyed
	}
	return format.SlotManagedKeyed
}

// describeKeyedOf is describeKeyed of all operators of a set that have keyed state. Those
// whose headers cannot be read are left out, and returned with the reason.
func describeKeyedOf(ctx context.Context, in format.View, chosen map[*format.Operator]bool) (all map[*format.Operator]*keyedOperator, unread []KeptHandle, err error) {
	all = map[*format.Operator]*keyedOperator{}
	for _, op := range in.Operators {
		if !chosen[op] || !op.HasKeyed() {
			continue
		}
		k, err := describeKeyed(ctx, in, op, rawRefused)
		switch {
		case err == nil:
			all[op] = k
		case damaged(err):
			unread = addKept(unread, op, format.SlotManagedKeyed, err.Error())
		default:
			return nil, nil, format.At(err, "operator %q", op.Label())
		}
	}
	return all, unread, nil
}

// damaged reports whether an error is about the state that was read, rather than about
// how it is read.
func damaged(err error) bool {
	return errors.Is(err, format.ErrUnsupported) || errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrOutside) || errors.Is(err, format.ErrCorrupt)
}

// names returns the names of the states, each once.
func (k *keyedOperator) names() (all []string) {
	if k == nil {
		return nil
	}
	for _, sub := range k.op.Subtasks {
		for _, s := range k.sources[sub] {
			for _, st := range s.schema.States {
				if name := st.Name.String(); !slices.Contains(all, name) {
					all = append(all, name)
				}
			}
		}
	}
	return all
}

// namesOf returns the names of the keyed states of several operators.
func namesOf(all map[*format.Operator]*keyedOperator) (names []string) {
	for _, k := range all {
		names = append(names, k.names()...)
	}
	return names
}

// keyedRebuild is how the keyed state of an operator is built again. The zero value
// changes nothing but its format.
type keyedRebuild struct {
	// touches reports whether a state is changed. nil: none is.
	touches func(format.KeyedState) bool
	// only is the subtasks in which something changes; nil: those with a state that touches
	// is true for.
	only map[*format.Subtask]bool
	// edit returns what changes in the entries of a source of a subtask; nil: nothing.
	edit func(sub *format.Subtask, s *keyedSource) (keyedEdit, error)
	// aligned is set if in-flight data, with which no keyed state is built, is removed as
	// well.
	aligned bool
	// lossy says that entries change only by being removed: what loses none stays as it is.
	lossy bool
	// jobs is the number of subtasks that are built at once: 1 if their edits share
	// something, 0 means one per processor.
	jobs int
}

// lost reports whether the first pass removed something of sources.
func lost(sources []*keyedSource) bool {
	return slices.ContainsFunc(sources, func(s *keyedSource) bool {
		return slices.ContainsFunc(s.counts, func(c keyedCount) bool { return c.droppedEntries+c.droppedBytes > 0 })
	})
}

// byName returns a function of states for one of their names.
func byName(f func(name string) bool) func(format.KeyedState) bool {
	return func(s format.KeyedState) bool { return f(s.Name.String()) }
}

// rebuild returns the operator with managed keyed state that is canonical and changed as
// r says, and the number of entries that were built. Raw timers become managed state.
// If something changes, a canonical handle in which nothing does stays as it is, while
// others are built as well: Flink reads the handles of an operator as handles of one
// format. If nothing changes, all handles that are not canonical are built.
func (k *keyedOperator) rebuild(ctx context.Context, r keyedRebuild) (*format.Operator, int64, error) {
	touched := map[*format.Subtask]bool{}
	if r.touches != nil {
		for sub, all := range k.sources {
			if (r.only == nil || r.only[sub]) && slices.ContainsFunc(all, func(s *keyedSource) bool {
				return slices.ContainsFunc(s.schema.States, r.touches)
			}) {
				touched[sub] = true
			}
		}
		if len(touched) == 0 {
			return k.op, 0, nil
		}
	}
	inFlight := k.op.HasInFlight() && !r.aligned
	if inFlight && !r.lossy {
		return nil, 0, &InFlightError{k.op.Label()}
	}
	all, err := k.buildAll(ctx, r, touched)
	if err != nil {
		return nil, 0, err
	}
	entries, anyLost := int64(0), false
	out, err := k.op.MapSubtasks(func(sub *format.Subtask) (*format.Subtask, error) {
		built, ok := all[sub]
		if !ok {
			return sub, nil
		}
		less := lost(k.sources[sub])
		anyLost = anyLost || less
		if r.lossy && !less && canonicalHandle(sub.ManagedKeyed) {
			return sub, nil
		}
		entries += built.entries
		return built.subtask, nil
	})
	switch {
	case err != nil:
		return nil, 0, err
	case r.lossy && !anyLost:
		return k.op, 0, nil
	case inFlight:
		return nil, 0, &InFlightError{k.op.Label()}
	}
	return out, entries, nil
}

// builtSubtask is a subtask whose keyed state is built from entries.
type builtSubtask struct {
	subtask *format.Subtask
	entries int64
}

// buildAll builds the subtasks that change or are not canonical.
func (k *keyedOperator) buildAll(ctx context.Context, r keyedRebuild, touched map[*format.Subtask]bool) (map[*format.Subtask]builtSubtask, error) {
	var build []*format.Subtask
	var of [][]*keyedSource // of each to build
	for _, sub := range k.op.Subtasks {
		sources := k.toBuild(sub, r.touches)
		if len(sources) == 0 || !touched[sub] && canonicalHandle(sub.ManagedKeyed) {
			continue
		}
		for _, s := range sources {
			if r.edit == nil {
				continue
			}
			var err error
			if s.edit, err = r.edit(sub, s); err != nil {
				return nil, format.At(err, "subtask %d", sub.Index)
			}
		}
		build, of = append(build, sub), append(of, sources)
	}
	all := make(map[*format.Subtask]builtSubtask, len(build))
	err := eachSubtask(ctx, r.jobs, build, func(ctx context.Context, i int) (b builtSubtask, err error) {
		b.subtask, b.entries, err = k.build(ctx, build[i], of[i])
		return b, format.At(err, "subtask %d", build[i].Index)
	}, func(i int, b builtSubtask) { all[build[i]] = b })
	return all, err
}

// toBuild returns the sources of a subtask that become its managed state. Raw timers in
// which nothing changes are left out, and so stay raw, if the serializer of their keys is
// recorded otherwise than in the managed state, as in snapshots of Flink 1.3 to 1.5.
func (k *keyedOperator) toBuild(sub *format.Subtask, touches func(format.KeyedState) bool) []*keyedSource {
	all := k.sources[sub]
	if len(all) < 2 || len(all[0].schema.States) == 0 || all[1].schema.Wire == all[0].schema.Wire ||
		touches != nil && slices.ContainsFunc(all[1].schema.States, touches) {
		return all
	}
	return all[:1]
}

// eachSubtask builds subtasks, jobs of them at once, and calls done with each in order, up
// to the first error.
func eachSubtask(ctx context.Context, jobs int, subs []*format.Subtask, build func(ctx context.Context, i int) (builtSubtask, error), done func(i int, b builtSubtask)) error {
	units := make([]work.Unit, len(subs))
	for i := range units {
		units[i].Handle.Subtask = i
	}
	return work.Run(ctx, work.Options{Jobs: jobs}, slices.Values(units), func(ctx context.Context, u work.Unit) (builtSubtask, error) {
		return build(ctx, u.Handle.Subtask)
	}, func(u work.Unit, b builtSubtask, err error) error {
		if err == nil {
			done(u.Handle.Subtask, b)
		}
		return err
	})
}

// eachCount calls f with what the first pass counted of each state of each source that was
// built, by subtask.
func (k *keyedOperator) eachCount(f func(format.KeyedState, *keyedCount)) {
	for _, sub := range k.op.Subtasks {
		for _, s := range k.sources[sub] {
			for i := range s.counts {
				f(s.schema.States[i], &s.counts[i])
			}
		}
	}
}

// build returns a subtask whose keyed state is built from sources.
func (k *keyedOperator) build(ctx context.Context, sub *format.Subtask, sources []*keyedSource) (*format.Subtask, int64, error) {
	groups := format.KeyGroupRange{}
	for _, raw := range []bool{true, false} {
		if h := keyedOf(sub, raw); h != nil {
			groups = h.KeyGroups()
		}
	}
	h, n, err := buildKeyed(ctx, k.in.Source, sources[0].codec, groups, sources)
	if err != nil {
		return nil, 0, format.At(err, "%v", format.SlotManagedKeyed)
	}
	c := *sub
	if slices.ContainsFunc(sources, func(s *keyedSource) bool { return s.handle == sub.RawKeyed }) {
		c.RawKeyed = nil
	}
	c.ManagedKeyed = nil
	if h != nil {
		c.ManagedKeyed = h
	}
	return &c, n, nil
}
