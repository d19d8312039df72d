package transform

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
)

// FilterOptions are the options of Filter.
type FilterOptions struct {
	// Operators and States select the states to filter; nil means all.
	Operators format.Selector
	States    format.Globs
	// Keep reports whether an element is kept; nil leaves operator states unchanged. For
	// broadcast state it is called with each entry; if the codec cannot determine where an
	// entry ends, it is called with the whole map, which is kept or emptied.
	Keep func(FilterElement) (bool, error)
	// KeepEntries returns, for each handle of keyed state in turn, the function that
	// reports whether an entry of it, such as a timer, is kept; nil leaves keyed states
	// unchanged. The function must not change or retain the entry. Several subtasks are
	// read at once, each with its own functions.
	KeepEntries func(FilterHandle) (func(*format.KeyedEntry) (bool, error), error)
	// Keyed selects keyed states out of States; nil means all.
	Keyed func(format.KeyedState) bool
	// Jobs is the number of subtasks whose keyed state is read at once; 0 means one per
	// processor.
	Jobs int
}

// FilterElement is an element passed to Keep. Value is valid until Keep returns.
type FilterElement struct {
	Operator *format.Operator
	Subtask  *format.Subtask
	State    int // index in the states of the subtask's managed handle
	// Element is an element, or if Entry is set, the entry's number and bytes.
	format.Element
	Entry *format.MapEntry // of a broadcast state; nil if Element is the whole map
}

// FilterHandle is a handle passed to KeepEntries.
type FilterHandle struct {
	Operator *format.Operator
	Subtask  *format.Subtask
	Handle   format.KeyedHandle // the subtask's managed or raw one
	Codec    format.KeyedCodec  // of the handle
	Schema   format.KeyedSchema
}

// FilterReport describes the selected states, in file order.
type FilterReport struct {
	States []*FilteredState
	// Commits is what a restore would have committed, aborted or resumed of the states
	// that lost elements, before the filter.
	Commits []*SinkPending
	// Splits is the splits that were removed from the readers of sources, while the
	// state of their coordinator stays.
	Splits []*RemovedSplits
	// Entries is the number of entries of keyed state that were built again, and Unread
	// the keyed state that may have a state that is asked for and cannot be read.
	Entries int64
	Unread  []KeptHandle
}

// FilteredState is the result for one state.
type FilteredState struct {
	Operator *format.Operator // before the filter
	State    string
	Mode     format.Mode
	Keyed    string // the kind of a keyed state, which has no mode
	// Kept and dropped elements, and their bytes. For broadcast state these are the
	// entries of every subtask's replica, or whole maps. An entry of keyed state
	// has the bytes of its key, namespace, map key and value.
	Kept, Dropped           int64
	KeptBytes, DroppedBytes int64
	// Whole is set if maps of this broadcast state were not decoded: each counts as
	// one element.
	Whole bool
	// Diverged is set if the replicas of this broadcast state were equal and now
	// differ.
	Diverged bool
}

// Filter keeps the elements of list and union states and the entries of broadcast
// states for which Keep returns true, and the entries of keyed states for which
// a function of KeepEntries does. It reads the states once, in file order. It uses a bit of memory per
// element or entry, and a few words per run of kept elements and entries of broadcast
// state; maps of it that are compressed or not decoded are held in memory, equal ones
// once.
//
// Keyed state of an operator that lost entries is canonical, see [Canonical].
func Filter(ctx context.Context, in format.View, o FilterOptions) (format.View, *FilterReport, error) {
	if o.Keep == nil && o.KeepEntries == nil {
		return in, nil, errors.New("Filter needs Keep or KeepEntries, which select what is kept")
	}
	ops, err := o.Operators.Operators(in.Savepoint)
	if err != nil {
		return in, nil, err
	}
	f := &filter{in: in, o: o, edits: handleEdits{}, hash: hash128.New()}
	report := &FilterReport{}
	var names []string
	for _, op := range ops {
		byName := map[string]*filtering{}
		for _, sub := range op.Subtasks {
			if sub.Managed == nil {
				continue
			}
			for k := range sub.Managed.States {
				st := &sub.Managed.States[k]
				name := st.Name.String()
				names = append(names, name)
				if o.Keep == nil || !o.States.Match(name) {
					continue
				}
				s := byName[name]
				if s == nil {
					s = &filtering{FilteredState: &FilteredState{Operator: op, State: name, Mode: st.Mode}, before: map[hash128.Digest]bool{}, after: map[hash128.Digest]bool{}}
					byName[name] = s
					report.States = append(report.States, s.FilteredState)
				}
				if err := f.state(ctx, s, FilterElement{Operator: op, Subtask: sub, State: k}); err != nil {
					return in, nil, err
				}
			}
		}
		for _, s := range byName {
			s.Diverged = len(s.before) == 1 && len(s.after) > 1
		}
	}
	mid, keyed, err := o.keyed(ctx, in, report)
	if err != nil {
		return in, nil, err
	}
	if err := o.States.Check("state", append(names, keyed...)); err != nil {
		return in, nil, err
	}
	sp, err := editHandles(ctx, in.With(mid), f.edits)
	if err != nil {
		return in, nil, err
	}
	var changed changedStates
	for _, s := range report.States {
		if s.Dropped > 0 {
			changed.add(s.Operator, s.State)
		}
	}
	if report.Commits, report.Splits, err = changed.lost(ctx, in, sp); err != nil {
		return in, nil, err
	}
	return in.With(sp), report, nil
}

// rebuildKeyed builds the keyed state of the selected operators again as how says. It
// reports the states that change, and returns the names of all.
func (r *FilterReport) rebuildKeyed(ctx context.Context, in format.View, operators format.Selector, how func(*keyedOperator) (keyedRebuild, error)) (*format.Savepoint, []string, error) {
	chosen, err := operators.Set(in.Savepoint)
	if err != nil {
		return nil, nil, err
	}
	all, unread, err := describeKeyedOf(ctx, in, chosen)
	if err != nil {
		return nil, nil, err
	}
	r.Unread = append(r.Unread, unread...)
	sp, err := in.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		k := all[op]
		if k == nil {
			return op, nil
		}
		rebuild, err := how(k)
		if err != nil {
			return nil, err
		}
		out, n, err := k.rebuild(ctx, rebuild)
		r.Entries += n
		if err == nil {
			r.States = append(r.States, k.filtered(rebuild.touches)...)
		}
		return out, err
	})
	return sp, namesOf(all), err
}

// keyed filters keyed states, and returns the names of all.
func (o *FilterOptions) keyed(ctx context.Context, in format.View, r *FilterReport) (*format.Savepoint, []string, error) {
	if o.KeepEntries == nil {
		return in.Savepoint, nil, nil
	}
	wanted := func(st format.KeyedState) bool {
		return o.States.Match(st.Name.String()) && (o.Keyed == nil || o.Keyed(st))
	}
	sp, names, err := r.rebuildKeyed(ctx, in, o.Operators, func(k *keyedOperator) (keyedRebuild, error) {
		return keyedRebuild{touches: wanted, lossy: true, jobs: o.Jobs, edit: func(sub *format.Subtask, s *keyedSource) (keyedEdit, error) {
			keep, err := o.KeepEntries(FilterHandle{Operator: k.op, Subtask: sub, Handle: s.handle, Codec: s.codec, Schema: s.schema})
			if err != nil {
				return keyedEdit{}, &keepError{err}
			}
			asked := make([]bool, len(s.schema.States))
			for i, st := range s.schema.States {
				asked[i] = wanted(st)
			}
			return keyedEdit{keep: func(entry *format.KeyedEntry) (bool, error) {
				if !asked[entry.State] {
					return true, nil
				}
				ok, err := keep(entry)
				if err != nil {
					err = &keepError{err}
				}
				return ok, err
			}}, nil
		}}, nil
	})
	var a *keepError
	if errors.As(err, &a) {
		err = a.error
	}
	return sp, names, err
}

// filtered returns what is left of the states that are wanted.
func (k *keyedOperator) filtered(wanted func(format.KeyedState) bool) (all []*FilteredState) {
	byName := map[format.Text]*FilteredState{}
	k.eachCount(func(st format.KeyedState, c *keyedCount) {
		if !wanted(st) {
			return
		}
		f := byName[st.Name]
		if f == nil {
			f = &FilteredState{Operator: k.op, State: st.Name.String(), Keyed: st.Kind}
			byName[st.Name] = f
			all = append(all, f)
		}
		f.Kept += c.entries
		f.KeptBytes += c.bytes
		f.Dropped += c.droppedEntries
		f.DroppedBytes += c.droppedBytes
	})
	return all
}

// changedStates is the names of states that an edit changed, by operator.
type changedStates struct {
	names map[*format.Operator]map[string]bool
	ops   []*format.Operator
}

func (c *changedStates) add(op *format.Operator, state string) {
	if c.names[op] == nil {
		if c.names == nil {
			c.names = map[*format.Operator]map[string]bool{}
		}
		c.names[op] = map[string]bool{}
		c.ops = append(c.ops, op)
	}
	c.names[op][state] = true
}

// lost finds commits in these states, and splits that out does not have any more.
func (c *changedStates) lost(ctx context.Context, in format.View, out *format.Savepoint) (commits []*SinkPending, splits []*RemovedSplits, err error) {
	after := map[format.OperatorID]*format.Operator{}
	for _, op := range out.Operators {
		after[op.ID] = op
	}
	for _, op := range c.ops {
		if err := addCommits(ctx, &commits, in, op, func(name string) bool { return c.names[op][name] }); err != nil {
			return nil, nil, err
		}
		if op.Coordinator == nil {
			continue
		}
		if err := addSplits(ctx, &splits, in, op, after[op.ID]); err != nil {
			return nil, nil, err
		}
	}
	return commits, splits, nil
}

type filter struct {
	in    format.View
	o     FilterOptions
	edits handleEdits
	hash  hash128.Hasher
}

// filtering is a state being filtered.
type filtering struct {
	*FilteredState
	before, after map[hash128.Digest]bool // distinct maps of a broadcast state
}

// keepError marks an error returned by the Keep callback.
type keepError struct{ error }

// keep calls Keep with an element and counts it.
func (f *filter) keep(s *filtering, e FilterElement) (bool, error) {
	ok, err := f.o.Keep(e)
	switch n := int64(len(e.Value)); {
	case err != nil:
		return false, &keepError{err}
	case ok:
		s.Kept++
		s.KeptBytes += n
	default:
		s.Dropped++
		s.DroppedBytes += n
	}
	return ok, nil
}

// state filters one state of one handle and records the edit.
func (f *filter) state(ctx context.Context, s *filtering, e FilterElement) error {
	err := f.edit(ctx, s, e)
	var a *keepError
	if errors.As(err, &a) {
		return a.error
	}
	return format.At(format.At(err, "subtask %d", e.Subtask.Index), "operator %q", e.Operator.Label())
}

func (f *filter) edit(ctx context.Context, s *filtering, e FilterElement) error {
	h := e.Subtask.Managed
	for k := range h.States {
		if k != e.State && h.States[k].Name == h.States[e.State].Name {
			return format.Errorf(format.ErrUnsupported, "two states named %q in one handle", s.State)
		}
	}
	codec, err := f.in.Codec(h.Codec)
	if err != nil {
		return err
	}
	dropped := s.Dropped
	var edit stateEdit
	if h.States[e.State].Mode == format.ModeBroadcast {
		edit.runs = []format.ElementRun{whole(h, e.State)}
		edit.cut, err = f.entries(ctx, codec, s, e)
	} else {
		edit.runs, err = f.elements(ctx, codec, s, e)
	}
	if err == nil && s.Dropped > dropped {
		f.edits.add(h, e.State, edit)
	}
	return err
}

// elements returns the runs of elements to keep.
func (f *filter) elements(ctx context.Context, codec format.OperatorCodec, s *filtering, e FilterElement) (runs []format.ElementRun, err error) {
	var kept bitmap
	n := int64(0)
	err = format.EachElement(ctx, f.in.Source, codec, e.Subtask.Managed, s.State, func(element format.Element) error {
		e.Element = element
		n++
		ok, err := f.keep(s, e)
		if ok {
			kept.set(element.Index)
		}
		return err
	})
	kept.runs(0, n, func(first, count int64) {
		runs = append(runs, format.ElementRun{Handle: e.Subtask.Managed, State: e.State, First: first, Count: count})
	})
	return runs, err
}

// entries returns the entries of a map to keep.
func (f *filter) entries(ctx context.Context, codec format.OperatorCodec, s *filtering, e FilterElement) (*format.MapCut, error) {
	cut := &format.MapCut{}
	counted := *s.FilteredState
	before, after := f.hash.Pieces(), f.hash.Pieces()
	err := format.EachEntry(ctx, f.in.Source, codec, e.Subtask.Managed, s.State, func(m format.MapEntry) error {
		e.Entry, e.Element = &m, format.Element{Index: m.Index, Value: m.Stored}
		before.Add(m.Stored)
		ok, err := f.keep(s, e)
		if err != nil || !ok {
			return err
		}
		after.Add(m.Stored)
		cut.Count++
		if k := len(cut.Ranges) - 1; k >= 0 && cut.Ranges[k].Off+cut.Ranges[k].N == m.Off {
			cut.Ranges[k].N += int64(len(m.Stored))
		} else {
			cut.Ranges = append(cut.Ranges, format.MapRange{Off: m.Off, N: int64(len(m.Stored))})
		}
		return nil
	})
	var a *keepError
	if errors.Is(err, format.ErrUnsupported) && !errors.As(err, &a) {
		*s.FilteredState = counted
		return f.wholeMap(ctx, codec, s, e)
	}
	s.before[before.Sum()], s.after[after.Sum()] = true, true
	return cut, err
}

// wholeMap calls Keep with a map as one element.
func (f *filter) wholeMap(ctx context.Context, codec format.OperatorCodec, s *filtering, e FilterElement) (*format.MapCut, error) {
	s.Whole, e.Entry = true, nil
	err := format.EachElement(ctx, f.in.Source, codec, e.Subtask.Managed, s.State, func(m format.Element) error {
		e.Element = m
		left := f.hash.Pieces()
		ok, err := f.keep(s, e)
		if ok {
			left.Add(m.Value)
		}
		s.before[f.hash.Sum(m.Value)], s.after[left.Sum()] = true, true
		return err
	})
	return &format.MapCut{}, err
}
