package transform

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
)

// MergeOptions are the options of Merge.
type MergeOptions struct {
	// From is the other savepoint. The Source of the View must be able to read its
	// streams; reader.Combine makes such a View.
	From *format.Savepoint
	// Operators of From; nil: all.
	Operators format.Selector
	// States selects operator states and keyed states by name, to be added to the
	// operator with the same id; nil adds whole operators.
	States format.Globs
}

// MergeReport describes what was added, as it was in the other savepoint.
type MergeReport struct {
	Operators []*format.Operator
	States    []MergedState
	// Unread is the keyed state that may have a state of that name and cannot be read.
	Unread []KeptHandle
	// Commits is what a restore of the result commits, aborts or resumes of what was
	// added.
	Commits []*SinkPending
}

// MergedState is a state of an operator.
type MergedState struct {
	Operator *format.Operator
	Name     string
	Keyed    bool
	// Elements, or entries of keyed state, and their bytes as in [FilteredState].
	Elements, Bytes int64
}

// MergeError is the error for a merge that is not possible.
type MergeError struct {
	Msg    string
	Advice []finding.Remedy
}

func (e *MergeError) Error() string { return e.Msg }

// Remedies returns what to do instead.
func (e *MergeError) Remedies() []finding.Remedy { return e.Advice }

// Merge adds operators, or single states, of another savepoint. It never replaces
// anything: two operators with one id, or two states with one name in an operator, are a
// *CollisionError. Keyed state from which single states were taken, or to which some were
// added, is canonical, see [Canonical].
func Merge(ctx context.Context, in format.View, o MergeOptions) (format.View, *MergeReport, error) {
	if o.From == nil {
		return in, nil, errors.New("Merge needs From, the other savepoint")
	}
	ops, err := o.Operators.Operators(o.From)
	if err != nil {
		return in, nil, err
	}
	chosen := map[*format.Operator]bool{}
	for _, op := range ops {
		chosen[op] = true
	}
	m := &MergeReport{}
	var keyed map[*format.Operator]*keyedOperator
	if o.States != nil {
		if keyed, m.Unread, err = describeKeyedOf(ctx, in.With(o.From), chosen); err != nil {
			return in, nil, err
		}
	}
	if err := o.States.Check("state", append(managedStates(o.From, chosen), namesOf(keyed)...)); err != nil {
		return in, nil, err
	}
	mine := map[format.OperatorID]int{}
	for i, op := range in.Operators {
		mine[op.ID] = i
	}
	c := *in.Savepoint
	c.Operators = append([]*format.Operator(nil), in.Operators...)
	for _, op := range ops {
		i, exists := mine[op.ID]
		if o.States == nil {
			if exists {
				return in, nil, &CollisionError{fmt.Sprintf("operator %q already has the id %s", c.Operators[i].Label(), op.ID)}
			}
			if op.HasInFlight() {
				return in, nil, &MergeError{fmt.Sprintf("operator %q has in-flight data, which belongs to the graph of its own job", op.Label()), []finding.Remedy{{Words: "remove it first, losing it", Action: finding.DropInFlight}, {Words: "merge a savepoint, which has none"}}}
			}
			m.Operators = append(m.Operators, op)
			if err := addCommits(ctx, &m.Commits, in, op, every); err != nil {
				return in, nil, err
			}
		} else {
			if err := addCommits(ctx, &m.Commits, in, op, o.States.Match); err != nil {
				return in, nil, err
			}
			part, err := m.part(ctx, in, op, keyed[op], o.States.Match)
			if err == nil && part != nil && exists {
				part, err = join(ctx, in, c.Operators[i], part)
			}
			if err != nil {
				return in, nil, format.At(err, "operator %q", op.Label())
			}
			if part == nil {
				continue
			}
			op = part
		}
		if exists {
			c.Operators[i] = op
			continue
		}
		mine[op.ID] = len(c.Operators)
		c.Operators = append(c.Operators, op)
	}
	if len(m.Operators)+len(m.States) == 0 {
		return in, m, nil
	}
	return in.With(&c), m, nil
}

// part returns an operator with only the states of the given names; nil if it has
// none of them.
func (m *MergeReport) part(ctx context.Context, in format.View, op *format.Operator, keyed *keyedOperator, names func(string) bool) (*format.Operator, error) {
	c := *op
	c.Coordinator, c.Subtasks = nil, nil
	at := map[string]int{}
	first := len(m.States)
	for _, sub := range op.Subtasks {
		s := &format.Subtask{Index: sub.Index, Finished: sub.Finished, Wire: sub.Wire}
		c.Subtasks = append(c.Subtasks, s)
		if err := m.keyedPart(ctx, s, sub, keyed, names); err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
		h := sub.Managed
		if h == nil {
			continue
		}
		taken := 0
		sizes, err := summary.StateSizes(ctx, h)
		if err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
		for i, st := range h.States {
			name := st.Name.String()
			if !names(name) {
				continue
			}
			taken++
			k, known := at[name]
			if !known {
				k = len(m.States)
				at[name] = k
				m.States = append(m.States, MergedState{Operator: op, Name: name})
			}
			m.States[k].Elements += st.Offsets.Len()
			m.States[k].Bytes += sizes[i]
		}
		if taken == 0 {
			continue
		}
		if s.Managed = h; taken == len(h.States) {
			continue
		}
		if s.Managed, err = rebuildStates(ctx, in, h, func(r *format.StateRuns) bool { return names(r.Name.String()) }); err != nil {
			return nil, format.At(err, "subtask %d", sub.Index)
		}
	}
	if len(m.States) == first {
		return nil, nil
	}
	return &c, nil
}

// keyedPart sets the keyed state of a subtask to the states of the given names of sub.
func (m *MergeReport) keyedPart(ctx context.Context, to, sub *format.Subtask, k *keyedOperator, names func(string) bool) error {
	if k == nil || !slices.ContainsFunc(k.names(), names) || len(k.sources[sub]) == 0 {
		return nil
	}
	if k.op.HasInFlight() {
		return &InFlightError{k.op.Label()}
	}
	for _, s := range k.sources[sub] {
		s.edit.state = func(st format.KeyedState) (format.KeyedState, bool) { return st, names(st.Name.String()) }
	}
	built, _, err := k.build(ctx, sub, k.sources[sub])
	if err != nil {
		return err
	}
	to.ManagedKeyed = built.ManagedKeyed
	for _, s := range k.sources[sub] {
		for i, st := range s.schema.States {
			if name := st.Name.String(); s.to[i] >= 0 {
				m.addKeyed(k.op, name, &s.counts[i])
			}
		}
	}
	return nil
}

// addKeyed adds entries of a keyed state that are taken. It is called operator by
// operator.
func (m *MergeReport) addKeyed(op *format.Operator, name string, c *keyedCount) {
	for i := len(m.States) - 1; i >= 0 && m.States[i].Operator == op; i-- {
		if s := &m.States[i]; s.Keyed && s.Name == name {
			s.Elements += c.entries
			s.Bytes += c.bytes
			return
		}
	}
	m.States = append(m.States, MergedState{op, name, true, c.entries, c.bytes})
}

// joinKeyed returns sub, a subtask of k, with the keyed state of part in addition, which
// is canonical.
func joinKeyed(ctx context.Context, k *keyedOperator, partOf *format.Operator, sub, part *format.Subtask) (*format.Subtask, error) {
	op := k.op
	if op.MaxParallelism != partOf.MaxParallelism {
		return nil, &MergeError{fmt.Sprintf("it has max parallelism %d here and %d there, so the keyed states cannot be combined", op.MaxParallelism, partOf.MaxParallelism), nil}
	}
	if op.HasInFlight() {
		return nil, &InFlightError{op.Label()}
	}
	s, err := keyedSourceOf(ctx, k.in, partOf, part.ManagedKeyed, part.ManagedKeyed.KeyGroups())
	if err != nil {
		return nil, err
	}
	have := k.names()
	for _, st := range s.schema.States {
		if name := st.Name.String(); slices.Contains(have, name) {
			return nil, &CollisionError{fmt.Sprintf("operator %q already has a keyed state %q", op.Label(), name)}
		}
	}
	if len(k.sources[sub]) == 0 {
		c := *sub
		c.ManagedKeyed = part.ManagedKeyed
		return &c, nil
	}
	if here, there := sub.ManagedKeyed.KeyGroups(), part.ManagedKeyed.KeyGroups(); here != there {
		return nil, &MergeError{fmt.Sprintf("subtask %d has the key groups %v here and %v there, so the keyed states cannot be combined", sub.Index, here, there), nil}
	}
	joined, _, err := k.build(ctx, sub, append(k.sources[sub], s))
	return joined, err
}

// join puts the states of part into an operator of the same id.
func join(ctx context.Context, in format.View, op, part *format.Operator) (*format.Operator, error) {
	if op.Finished {
		return nil, &MergeError{"it had fully finished, and no state can be added to it", nil}
	}
	if op.Parallelism != part.Parallelism {
		return nil, &MergeError{fmt.Sprintf("it has parallelism %d here and %d there, so the states cannot be combined", op.Parallelism, part.Parallelism),
			[]finding.Remedy{{Words: "bring one to the parallelism of the other", Action: finding.RescaleOther, To: strconv.Itoa(int(op.Parallelism))}}}
	}
	names := map[string]bool{}
	for _, sub := range op.Subtasks {
		if sub.Managed != nil {
			for _, st := range sub.Managed.States {
				names[st.Name.String()] = true
			}
		}
	}
	mine, err := bySubtask(op)
	if err != nil {
		return nil, err
	}
	place := map[*format.Subtask]int{}
	for i, sub := range op.Subtasks {
		place[sub] = i
	}
	var keyed *keyedOperator
	if slices.ContainsFunc(part.Subtasks, func(sub *format.Subtask) bool { return sub.ManagedKeyed != nil }) {
		if keyed, err = describeKeyed(ctx, in, op, rawRefused); err != nil {
			return nil, err
		}
	}
	c := *op
	c.Subtasks = append([]*format.Subtask(nil), op.Subtasks...)
	for _, sub := range part.Subtasks {
		if sub.Managed == nil && sub.ManagedKeyed == nil {
			continue
		}
		if sub.Managed != nil {
			for _, st := range sub.Managed.States {
				if name := st.Name.String(); names[name] {
					return nil, &CollisionError{fmt.Sprintf("operator %q already has a state %q", op.Label(), name)}
				}
			}
		}
		if sub.Index < 0 || int(sub.Index) >= len(mine) {
			return nil, format.Errorf(format.ErrCorrupt, "subtask %d of an operator of parallelism %d", sub.Index, part.Parallelism)
		}
		to := mine[sub.Index]
		switch {
		case to == nil:
			c.Subtasks = append(c.Subtasks, sub)
			continue
		case to.Finished:
			return nil, &MergeError{fmt.Sprintf("subtask %d had finished here and cannot have state", sub.Index), nil}
		}
		s := *to
		if sub.ManagedKeyed != nil {
			joined, err := joinKeyed(ctx, keyed, part, to, sub)
			if err != nil {
				return nil, format.At(err, "subtask %d", sub.Index)
			}
			s = *joined
		}
		switch {
		case sub.Managed == nil: // it has keyed state only
		case s.Managed == nil || s.Managed.Merging != nil && s.Managed.Merging.Placeholder:
			s.Managed = sub.Managed
		default:
			if s.Managed, err = joinHandles(ctx, in, s.Managed, sub.Managed); err != nil {
				return nil, format.At(err, "subtask %d", sub.Index)
			}
		}
		c.Subtasks[place[to]] = &s
	}
	if keyed == nil {
		return &c, nil
	}
	// The handles of an operator are of one format.
	if keyed, err = describeKeyed(ctx, in, &c, rawRefused); err != nil {
		return nil, err
	}
	out, _, err := keyed.rebuild(ctx, keyedRebuild{jobs: 1})
	return out, err
}

// joinHandles returns a handle with the states of two; it replaces the first.
func joinHandles(ctx context.Context, in format.View, a, b *format.OperatorHandle) (*format.OperatorHandle, error) {
	if a.Codec != b.Codec {
		return nil, format.Errorf(format.ErrUnsupported, "state of codec %q and of %q cannot share a stream", string(a.Codec), string(b.Codec))
	}
	codec, err := in.Codec(a.Codec)
	if err != nil {
		return nil, err
	}
	var states []format.StateRuns
	for _, h := range []*format.OperatorHandle{a, b} {
		metas, err := codec.Describe(ctx, in.Source, h)
		if err != nil {
			return nil, err
		}
		for _, m := range metas {
			k := stateIndex(h, m.Name, m.Mode)
			if k < 0 {
				return nil, format.Errorf(format.ErrCorrupt, "state %q of the stream is not in the handle", m.Name)
			}
			states = append(states, format.StateRuns{StateMeta: m, Runs: []format.ElementRun{whole(h, k)}})
		}
	}
	built, err := codec.Build(ctx, in.Source, states)
	if err != nil {
		return nil, err
	}
	var inOrder []format.NamedState
	for _, s := range slices.Concat(a.States, b.States) {
		if k := stateIndex(built, s.Name, s.Mode); k >= 0 {
			inOrder = append(inOrder, built.States[k])
		}
	}
	return replaced(a, built, inOrder)
}
