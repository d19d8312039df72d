package transform

import (
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// whole returns the run of all elements of a state of a handle.
func whole(h *format.OperatorHandle, state int) format.ElementRun {
	return format.ElementRun{Handle: h, State: state, Count: h.States[state].Offsets.Len()}
}

// stateIndex returns the index of a state of a handle by name and mode, or -1.
func stateIndex(h *format.OperatorHandle, name format.Text, mode format.Mode) int {
	for i := range h.States {
		if h.States[i].Name == name && h.States[i].Mode == mode {
			return i
		}
	}
	return -1
}

// rebuild returns the handle with its edits applied; other states are unchanged.
// It returns nil if no state is left.
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

// rebuildWhere is rebuildStates for the states whose names where selects. It
// returns the handle itself if it has none of them.
func rebuildWhere(ctx context.Context, v format.View, h *format.OperatorHandle, where func(name string) bool, edit func(*format.StateRuns) bool) (*format.OperatorHandle, error) {
	if !slices.ContainsFunc(h.States, func(st format.NamedState) bool { return where(st.Name.String()) }) {
		return h, nil
	}
	return rebuildStates(ctx, v, h, func(s *format.StateRuns) bool { return !where(s.Name.String()) || edit(s) })
}

// rebuildStates returns the handle with its states changed by edit: their name,
// mode or runs; a state for which edit returns false is removed. It returns nil
// if no state is left. edit is called with each state and one run of all its
// elements. The new stream is stored as the old one was: inline or in a file,
// under the same name, because Flink orders handles by that name.
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
	order := map[int]int{} // from a state of the handle to its index in states
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
	// Build and Describe both order lists before broadcast states, so the index of a
	// state in states is its index in the built handle.
	var inOrder []format.NamedState
	for k := range h.States {
		if i, ok := order[k]; ok {
			inOrder = append(inOrder, built.States[i])
		}
	}
	return replaced(h, built, inOrder)
}

// replaced returns a built handle that replaces an old one: with the old wire,
// its states in the given order, and the stream under the old name.
func replaced(old, built *format.OperatorHandle, inOrder []format.NamedState) (*format.OperatorHandle, error) {
	c := *built
	c.Wire, c.States = old.Wire, inOrder
	if len(c.States) != len(built.States) {
		return nil, fmt.Errorf("internal error: a built handle with other states")
	}
	rope, ok := built.Data.(*format.Concat)
	if !ok {
		return nil, fmt.Errorf("internal error: a built handle whose stream is not a rope")
	}
	r := *rope
	r.As = storedLike(old.Data, r.Size())
	c.Data = &r
	return &c, nil
}

// storedLike returns how a new stream of n bytes is stored in place of s: inline
// or in a file, under the same name. A segment becomes a file of its own.
func storedLike(s format.Stream, n int64) format.Stream {
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
		return storedLike(s.As, n)
	case *format.Concat:
		return storedLike(s.As, n)
	}
	return nil
}
