package transform

import (
	"context"
	"errors"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/tally"
)

// FilterOptions say what a filter asks about, and what stays.
type FilterOptions struct {
	// Operators and States choose the states that are filtered; nil: all.
	Operators format.Selector
	States    format.Globs
	// Keep reports whether an element stays. It is required. Of a broadcast state it
	// is called with each entry; with the whole map, which stays or loses all its
	// entries, where the codec does not know where an entry ends.
	Keep func(FilterElement) (bool, error)
}

// FilterElement is one element that a filter is asked about. Value is valid
// until the answer.
type FilterElement struct {
	Operator *format.Operator
	Subtask  *format.Subtask
	State    int // index in the states of the subtask's managed handle
	// Element is an element, or with Entry that entry's number and bytes.
	format.Element
	Entry *format.MapEntry // of a broadcast state; nil: Element is the whole map
}

// Filtered is what became of one state.
type Filtered struct {
	Operator *format.Operator // as it was
	State    string
	Mode     format.Mode
	// Kept and Dropped elements, and their bytes. Of a broadcast state they are
	// the entries of every subtask's copy, or whole maps.
	Kept, Dropped           int64
	KeptBytes, DroppedBytes int64
	// Whole: maps of this broadcast state were not taken apart, and are counted as
	// one each.
	Whole bool
	// Diverged: the copies of this broadcast state were equal, and differ now.
	Diverged bool
}

// Filter keeps the elements of list and union states and the entries of
// broadcast states for which Keep is true. It reads the states once, in file
// order. Memory is a bit for each element, and what runs of kept elements and entries
// take; maps that are compressed, and those whose entries are not known, are held
// whole, equal ones once.
func Filter(ctx context.Context, in format.View, o FilterOptions) (format.View, []*Filtered, error) {
	if o.Keep == nil {
		return in, nil, errors.New("a filter needs Keep, which chooses the elements that stay")
	}
	ops, err := o.Operators.Operators(in.Savepoint)
	if err != nil {
		return in, nil, err
	}
	f := &filter{in: in, o: o, edits: handleEdits{}, hash: tally.NewHasher()}
	var all []*Filtered
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
				if !o.States.Match(name) {
					continue
				}
				s := byName[name]
				if s == nil {
					s = &filtering{Filtered: &Filtered{Operator: op, State: name, Mode: st.Mode}, before: map[tally.Digest]bool{}, after: map[tally.Digest]bool{}}
					byName[name] = s
					all = append(all, s.Filtered)
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
	if err := o.States.Check("state", names); err != nil {
		return in, nil, err
	}
	sp, err := editHandles(ctx, in, f.edits)
	if err != nil {
		return in, nil, err
	}
	return in.With(sp), all, nil
}

type filter struct {
	in    format.View
	o     FilterOptions
	edits handleEdits
	hash  tally.Hasher
}

// filtering is a state that is being filtered.
type filtering struct {
	*Filtered
	before, after map[tally.Digest]bool // the different maps of a broadcast state
}

// answered is an error of Keep, which is no trouble of reading.
type answered struct{ error }

// keep asks about an element and counts it.
func (f *filter) keep(s *filtering, e FilterElement) (bool, error) {
	ok, err := f.o.Keep(e)
	switch n := int64(len(e.Value)); {
	case err != nil:
		return false, &answered{err}
	case ok:
		s.Kept++
		s.KeptBytes += n
	default:
		s.Dropped++
		s.DroppedBytes += n
	}
	return ok, nil
}

// state filters one state of one handle and notes the edit.
func (f *filter) state(ctx context.Context, s *filtering, e FilterElement) error {
	err := f.edit(ctx, s, e)
	var a *answered
	if errors.As(err, &a) {
		return a.error
	}
	return format.At(format.At(err, "subtask %d", e.Subtask.Index), "operator %q", e.Operator.Label())
}

func (f *filter) edit(ctx context.Context, s *filtering, e FilterElement) error {
	h := e.Subtask.Managed
	for k := range h.States {
		if k != e.State && h.States[k].Name == h.States[e.State].Name {
			return format.Errorf(format.ErrUnsupported, "two states of the name %q in one handle", s.State)
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

// elements finds the runs of elements that stay.
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

// entries finds the entries of a map that stay.
func (f *filter) entries(ctx context.Context, codec format.OperatorCodec, s *filtering, e FilterElement) (*format.MapCut, error) {
	cut := &format.MapCut{}
	counted := *s.Filtered
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
	var a *answered
	if errors.Is(err, format.ErrUnsupported) && !errors.As(err, &a) {
		*s.Filtered = counted
		return f.wholeMap(ctx, codec, s, e)
	}
	s.before[before.Sum()], s.after[after.Sum()] = true, true
	return cut, err
}

// wholeMap asks about a map as one element.
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
