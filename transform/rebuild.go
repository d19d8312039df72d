package transform

import (
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// whole is all elements of a state of a handle.
func whole(h *format.OperatorHandle, state int) format.ElementRun {
	return format.ElementRun{Handle: h, State: state, Count: h.States[state].Offsets.Len()}
}

// stateIndex finds a state of a handle by name and mode, or -1.
func stateIndex(h *format.OperatorHandle, name format.Text, mode format.Mode) int {
	for i := range h.States {
		if h.States[i].Name == name && h.States[i].Mode == mode {
			return i
		}
	}
	return -1
}

// rebuild gives the handle in which states have what their edits say; the others
// stay as they are. It is nil where no state is left.
func rebuild(ctx context.Context, in format.View, h *format.OperatorHandle, edits map[int]stateEdit) (*format.OperatorHandle, error) {
	return rebuildStates(ctx, in, h, func(s *format.StateRuns) bool {
		edit, ok := edits[s.Runs[0].State]
		if !ok {
			return true
		}
		s.Runs, s.Map = edit.runs, edit.cut
		return !edit.drop
	})
}

// rebuildWhere is rebuildStates for the states with names that where chooses, and
// the handle itself if it has none of them.
func rebuildWhere(ctx context.Context, v format.View, h *format.OperatorHandle, where func(name string) bool, edit func(*format.StateRuns) bool) (*format.OperatorHandle, error) {
	if !slices.ContainsFunc(h.States, func(st format.NamedState) bool { return where(st.Name.String()) }) {
		return h, nil
	}
	return rebuildStates(ctx, v, h, func(s *format.StateRuns) bool { return !where(s.Name.String()) || edit(s) })
}

// rebuildStates gives the handle with its states as edit changes them: name,
// mode or runs; a state for which edit is false is left out. nil if none is
// left. edit is shown each state with one run, all of its elements. The new
// stream takes the place of the old one: it is inline or a file under the name
// that the old one had, so that what Flink orders by that name keeps its order.
func rebuildStates(ctx context.Context, in format.View, h *format.OperatorHandle, edit func(*format.StateRuns) bool) (*format.OperatorHandle, error) {
	codec, err := in.Codec(h.Codec)
	if err != nil {
		return nil, err
	}
	metas, err := codec.Describe(ctx, in.Source, h)
	if err != nil {
		return nil, err
	}
	var states []format.StateRuns
	order := map[int]int{} // of a state in the handle: its place among the new ones
	for _, m := range metas {
		k := stateIndex(h, m.Name, m.Mode)
		if k < 0 {
			return nil, format.Errorf(format.ErrCorrupt, "state %q of the stream is not in the handle", m.Name)
		}
		s := format.StateRuns{StateMeta: m, Runs: []format.ElementRun{whole(h, k)}}
		if edit(&s) {
			order[k] = len(states)
			states = append(states, s)
		}
	}
	if len(states) == 0 {
		return nil, nil
	}
	built, err := codec.Build(ctx, in.Source, states)
	if err != nil {
		return nil, err
	}
	// Build puts lists before broadcast states, as Describe gives them: the
	// place of a state in states is its place in the built handle.
	var inOrder []format.NamedState
	for k := range h.States {
		if i, ok := order[k]; ok {
			inOrder = append(inOrder, built.States[i])
		}
	}
	return inPlaceOf(h, built, inOrder)
}

// inPlaceOf puts a built handle in the place of an old one: the same wire, its
// states in this order, the stream under the old name.
func inPlaceOf(old, built *format.OperatorHandle, inOrder []format.NamedState) (*format.OperatorHandle, error) {
	c := *built
	c.Wire, c.States = old.Wire, inOrder
	if len(c.States) != len(built.States) {
		return nil, fmt.Errorf("internal error: a built handle with other states")
	}
	rope, ok := built.Data.(*format.Concat)
	if !ok {
		return nil, fmt.Errorf("internal error: a built handle whose stream is no rope")
	}
	r := *rope
	r.As = placeOf(old.Data, r.Size())
	c.Data = &r
	return &c, nil
}

// placeOf is the place of a stream for one of n bytes: inline under its name, a
// file of its name. A segment becomes a file of its own.
func placeOf(s format.Stream, n int64) format.Stream {
	switch s := s.(type) {
	case *format.Inline:
		return &format.Inline{Name: s.Name}
	case *format.File:
		c := *s
		c.Length = n
		return &c
	case *format.Segment:
		return &format.File{Path: s.LogicalID, Relative: true, Length: n}
	case *format.Chunks:
		return placeOf(s.As, n)
	case *format.Concat:
		return placeOf(s.As, n)
	}
	return nil
}
