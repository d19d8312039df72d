package transform

import (
	"context"

	"github.com/savepoint-tools/spt/format"
)

// FilterElement is one element that a filter is asked about. Value is valid
// until the answer.
type FilterElement struct {
	Operator *format.Operator
	Subtask  *format.Subtask
	State    int // index in the states of the subtask's managed handle
	format.Element
}

// Filtered is what became of one state.
type Filtered struct {
	Operator *format.Operator // as it was
	State    string
	Mode     format.Mode
	// Kept and Dropped elements, and their bytes.
	Kept, Dropped           int64
	KeptBytes, DroppedBytes int64
}

// Filter keeps the elements of list and union states for which keep is true, of
// the states that pick chooses (nil: all). It reads those states once, in file
// order; memory is a bit an element and what runs of kept elements take.
// Broadcast state is one map and is not asked about.
func Filter(ctx context.Context, in Input, pick func(op *format.Operator, state string) bool, keep func(FilterElement) (bool, error)) (*format.Savepoint, []*Filtered, error) {
	var all []*Filtered
	edits := handleEdits{}
	for _, op := range in.Operators {
		byName := map[string]*Filtered{}
		for _, sub := range op.Subtasks {
			if sub.Managed == nil {
				continue
			}
			for k := range sub.Managed.States {
				st := &sub.Managed.States[k]
				name := st.Name.String()
				if st.Mode == format.ModeBroadcast || pick != nil && !pick(op, name) {
					continue
				}
				f := byName[name]
				if f == nil {
					f = &Filtered{Operator: op, State: name, Mode: st.Mode}
					byName[name] = f
					all = append(all, f)
				}
				e := FilterElement{Operator: op, Subtask: sub, State: k}
				if err := f.state(ctx, in, e, keep, edits); err != nil {
					return nil, nil, err
				}
			}
		}
	}
	sp, err := editHandles(ctx, in, edits)
	return sp, all, err
}

// state filters one state of one handle and notes the edit.
func (f *Filtered) state(ctx context.Context, in Input, e FilterElement, keep func(FilterElement) (bool, error), edits handleEdits) error {
	h := e.Subtask.Managed
	at := func(err error) error {
		return format.At(format.At(err, "subtask %d", e.Subtask.Index), "operator %q", e.Operator.Label())
	}
	for k := range h.States {
		if k != e.State && h.States[k].Name == h.States[e.State].Name {
			return at(format.Errorf(format.ErrUnsupported, "two states of the name %q in one handle", f.State))
		}
	}
	codec, err := in.Codec(h.Codec)
	if err != nil {
		return at(err)
	}
	var kept bitmap
	var answer error // what keep says is no trouble of reading
	n, dropped := int64(0), f.Dropped
	err = format.EachElement(ctx, in.Source, codec, h, f.State, func(element format.Element) error {
		e.Element = element
		n++
		ok, err := keep(e)
		switch {
		case err != nil:
			answer = err
			return err
		case ok:
			kept.set(element.Index)
			f.Kept++
			f.KeptBytes += int64(len(element.Value))
		default:
			f.Dropped++
			f.DroppedBytes += int64(len(element.Value))
		}
		return nil
	})
	switch {
	case answer != nil:
		return answer
	case err != nil:
		return at(err)
	case f.Dropped == dropped:
		return nil
	}
	var runs []format.ElementRun
	kept.runs(0, n, func(first, count int64) {
		runs = append(runs, format.ElementRun{Handle: h, State: e.State, First: first, Count: count})
	})
	edits.add(h, e.State, stateEdit{runs: runs})
	return nil
}
