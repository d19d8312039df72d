package transform

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/transform/internal/keygroups"
)

// Apply returns the rescaled savepoint. Restored at the new parallelism, each
// subtask is assigned what the plan says: list state is stored in its subtask,
// from which Flink does not move it; union state is stored once, in subtask 0, in
// the order in which the old snapshot would have been assigned to subtask 0; each
// subtask has the replica of broadcast state that it would have been assigned. If
// handles collide in a bucket of Flink's hash map, the plan has the blocks of a
// union state in different orders for some subtasks, which a single list cannot
// reproduce.
//
// If an operator cannot be written for the new parallelism, Apply returns a
// format.ErrUnsupported with the operator and the reason; an
// operator with keyed state that cannot be moved is handled as the options say, and
// Apply records that in its plan. Each new subtask has its keyed state in a stream of its own.
func (p *RescalePlan) Apply(ctx context.Context) (format.View, error) {
	plans := map[*format.Operator]*OperatorPlan{}
	for _, op := range p.Operators {
		plans[op.Operator] = op
	}
	sp, err := p.in.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		plan := plans[op]
		if plan == nil || plan.Left != "" || plan.From == plan.To && p.Strategy == StrategyFlink {
			// At an unchanged parallelism, Flink assigns the state unchanged.
			return op, nil
		}
		changed, err := p.apply(ctx, plan)
		var cannot *keyedError
		if errors.As(err, &cannot) && p.o.Keyed == KeyedLeave {
			plan.Left, plan.To = cannot.Error(), plan.From
			return op, nil
		}
		return changed, err
	})
	if err != nil {
		return p.in, err
	}
	return p.in.With(sp), nil
}

// keyedError is the error for keyed state that cannot be written at the new
// parallelism.
type keyedError struct{ msg string }

func (e *keyedError) Error() string { return e.msg }
func (e *keyedError) Unwrap() error { return format.ErrUnsupported }

// Remedies returns what the user can do.
func (e *keyedError) Remedies() []finding.Remedy {
	return []finding.Remedy{{Words: "build its keyed state in the canonical format", Action: finding.BuildCanonical}, {Words: "keep this operator at its parallelism", Action: finding.LeaveOperator}, {Words: "let Flink rescale it when it restores"}}
}

func (p *RescalePlan) apply(ctx context.Context, plan *OperatorPlan) (*format.Operator, error) {
	op := *plan.Operator
	if op.Finished {
		op.Parallelism = plan.To
		return &op, nil
	}
	if plan.InFlight {
		return nil, format.Errorf(format.ErrUnsupported, "it has in-flight data, whose redistribution depends on the job's graph, which the snapshot does not contain")
	}
	old, err := bySubtask(plan.Operator)
	if err != nil {
		return nil, err
	}
	for _, s := range op.Subtasks {
		if len(s.Legacy) > 0 {
			return nil, format.Errorf(format.ErrUnsupported, "it has legacy operator state, which current releases of Flink refuse")
		}
		if err := keyGroupsExist(&op, s); err != nil {
			return nil, err
		}
	}
	op.Parallelism = plan.To
	op.Subtasks = make([]*format.Subtask, plan.To)
	for i := range op.Subtasks {
		op.Subtasks[i] = &format.Subtask{Index: int32(i)}
	}
	for _, raw := range []bool{false, true} {
		dealt := plan.managed
		if raw {
			dealt = plan.raw
		}
		if dealt == nil {
			continue
		}
		if err := p.operatorState(ctx, plan, op.Subtasks, old, dealt, raw); err != nil {
			return nil, err
		}
	}
	return &op, p.keyed(ctx, plan, op.Subtasks, old)
}

// keyGroupsExist checks that the keyed state of an old subtask belongs to key
// groups of the operator: others would be assigned to no subtask.
func keyGroupsExist(op *format.Operator, s *format.Subtask) (err error) {
	for _, h := range []format.KeyedHandle{s.ManagedKeyed, s.RawKeyed} {
		format.EachKeyed(h, func(h format.KeyedHandle) {
			if r := h.KeyGroups(); err == nil && r.Count != 0 && (r.First < 0 || r.Count < 0 || int64(r.First)+int64(r.Count) > int64(op.MaxParallelism)) {
				err = format.Errorf(format.ErrCorrupt, "subtask %d has keyed state of key groups %d to %d, the operator has %d", s.Index, r.First, int64(r.First)+int64(r.Count)-1, op.MaxParallelism)
			}
		})
	}
	return err
}

// handleOf returns the managed or raw handle of an old subtask.
func handleOf(s *format.Subtask, raw bool) *format.OperatorHandle {
	switch {
	case s == nil:
		return nil
	case raw:
		return s.Raw
	}
	return s.Managed
}

// operatorState builds the handles of the new subtasks.
func (p *RescalePlan) operatorState(ctx context.Context, plan *OperatorPlan, subs, old []*format.Subtask, dealt *assign.Plan, raw bool) error {
	metas, codec, err := p.metas(ctx, old, raw)
	if err != nil || codec == nil {
		return err
	}
	for i, sub := range dealt.Subtasks {
		if sub.Lost > 0 {
			return format.Errorf(format.ErrUnsupported, "the state handles of two old subtasks have one name, so Flink loses %d elements", sub.Lost)
		}
		states := make([]format.StateRuns, len(metas))
		held := false
		for k, m := range metas {
			states[k].StateMeta = m
			if m.Mode == format.ModeUnion && i > 0 {
				continue // it is stored in subtask 0
			}
			for _, piece := range sub.Pieces {
				h := handleOf(old[piece.Old], raw)
				for _, share := range piece.Shares {
					st := h.States[share.State]
					if share.Count == 0 || st.Name != m.Name || st.Mode != m.Mode {
						continue
					}
					if m.Mode == format.ModeBroadcast {
						states[k].Runs = nil // a later replica replaces an earlier one
					}
					states[k].Runs = append(states[k].Runs, format.ElementRun{Handle: h, State: share.State, First: share.First, Count: share.Count})
				}
			}
			held = held || len(states[k].Runs) > 0
		}
		if !held && i > 0 {
			continue // subtask 0 keeps states without any elements
		}
		if states = dropEmptyBroadcast(states); len(states) == 0 {
			continue
		}
		h, err := codec.Build(ctx, p.in.Source, states)
		if err != nil {
			return err
		}
		if raw {
			h.Codec = format.CodecRaw
			subs[i].Raw = h
		} else {
			subs[i].Managed = h
		}
	}
	return nil
}

// dropEmptyBroadcast removes broadcast states without a map: they are not
// registered in that subtask.
func dropEmptyBroadcast(states []format.StateRuns) []format.StateRuns {
	var out []format.StateRuns
	for _, s := range states {
		if s.Mode != format.ModeBroadcast || len(s.Runs) > 0 {
			out = append(out, s)
		}
	}
	return out
}

// metas returns the distinct states of all old handles, in order of their first
// occurrence. Handles with different serializer snapshots of a state cannot share
// a stream.
func (p *RescalePlan) metas(ctx context.Context, old []*format.Subtask, raw bool) ([]format.StateMeta, format.OperatorCodec, error) {
	var all []format.StateMeta
	var codec format.OperatorCodec
	var id format.CodecID
	at := map[nameAndMode]int{}
	for _, s := range old {
		h := handleOf(s, raw)
		if h == nil || len(h.States) == 0 && h.Data == nil {
			continue
		}
		c, err := p.in.Codec(h.Codec)
		if err != nil {
			return nil, nil, err
		}
		if len(h.States) == 0 {
			// Its stream is not written again, so it must have no elements.
			if _, err := c.Describe(ctx, p.in.Source, h); errors.Is(err, format.ErrCorrupt) {
				return nil, nil, format.At(err, "subtask %d", s.Index)
			}
			continue
		}
		if codec != nil && h.Codec != id {
			return nil, nil, format.Errorf(format.ErrUnsupported, "its subtasks hold state in different encodings")
		}
		codec, id = c, h.Codec
		metas, err := c.Describe(ctx, p.in.Source, h)
		if err != nil {
			return nil, nil, err
		}
		for _, m := range metas {
			key := nameAndMode{m.Name.String(), m.Mode}
			k, ok := at[key]
			if !ok {
				at[key] = len(all)
				all = append(all, m)
				continue
			}
			if !bytes.Equal(all[k].Envelope, m.Envelope) || all[k].Encoding != m.Encoding {
				return nil, nil, format.Errorf(format.ErrUnsupported, "its subtasks have different serializer snapshots of state %q: their elements cannot share a stream", m.Name)
			}
		}
	}
	return all, codec, nil
}

// keyed sets the keyed state of the new subtasks: moved, or if that is not possible
// and allowed, built again.
func (p *RescalePlan) keyed(ctx context.Context, plan *OperatorPlan, subs, old []*format.Subtask) error {
	for _, k := range plan.Keyed {
		err := p.keyedStates(ctx, subs, old, k)
		var cannot *keyedError
		if errors.As(err, &cannot) && p.o.Keyed == KeyedCanonical {
			return p.buildKeyed(ctx, plan, subs, old)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// buildKeyed builds the keyed state of the new subtasks, raw timers included.
func (p *RescalePlan) buildKeyed(ctx context.Context, plan *OperatorPlan, subs, old []*format.Subtask) error {
	plan.Built = true
	return eachSubtask(ctx, p.o.Jobs, subs, func(ctx context.Context, i int) (b builtSubtask, err error) {
		sub := *subs[i]
		sub.ManagedKeyed, sub.RawKeyed = nil, nil
		b.subtask = &sub
		var sources []*keyedSource
		var groups format.KeyGroupRange
		for _, k := range plan.Keyed {
			groups = k.Subtasks[i].Range
			for _, piece := range k.Subtasks[i].Pieces {
				s, err := keyedSourceOf(ctx, p.in, plan.Operator, keyedOf(old[piece.Old], k.Raw), piece.Groups)
				if err != nil {
					return b, format.At(format.At(err, "%v", slotOf(k.Raw)), "subtask %d", piece.Old)
				}
				if k.Raw && len(s.schema.States) == 0 {
					continue
				}
				sources = append(sources, s)
			}
		}
		if len(sources) == 0 {
			return b, nil
		}
		h, n, err := buildKeyed(ctx, p.in.Source, sources[0].codec, groups, sources)
		if h != nil {
			sub.ManagedKeyed = h
		}
		b.entries = n
		return b, format.At(err, "%v", format.SlotManagedKeyed)
	}, func(i int, b builtSubtask) {
		subs[i] = b.subtask
		plan.Entries += b.entries
	})
}

// keyedStates sets the keyed state of the new subtasks.
func (p *RescalePlan) keyedStates(ctx context.Context, subs, old []*format.Subtask, plan *KeyedPlan) error {
	var streams *keygroups.Streams
	merge := func(parts []groupsOf) (format.KeyedHandle, error) {
		if streams == nil {
			var err error
			if streams, err = keygroups.Locate(ctx, fullHandles(old), func(s format.Stream) (int64, error) {
				if s == nil {
					return 0, nil
				}
				return format.StreamSize(ctx, p.in.Source, s)
			}); err != nil {
				return nil, err
			}
		}
		return mergeGroups(ctx, p.in.Source, streams, parts)
	}
	for i, d := range plan.Subtasks {
		h, err := keyedState(d, old, plan.Raw, merge)
		if err != nil {
			return err
		}
		if plan.Raw {
			subs[i].RawKeyed = h
		} else {
			subs[i].ManagedKeyed = h
		}
	}
	return nil
}

// fullHandles returns the managed handles of subtasks that are streams of key
// groups.
func fullHandles(subtasks []*format.Subtask) (all []*format.KeyGroups) {
	for _, s := range subtasks {
		if h, ok := keyedOf(s, false).(*format.KeyGroups); ok {
			all = append(all, h)
		}
	}
	return all
}

// keyedState returns the keyed state of one new subtask: none, a cut of one old
// handle, or key groups of full streams merged into one. A new subtask could also
// refer to some key groups of an old stream, but a later rescale could not find
// the header of such a stream.
func keyedState(d assign.KeyedSubtask, old []*format.Subtask, raw bool, merge func([]groupsOf) (format.KeyedHandle, error)) (format.KeyedHandle, error) {
	if len(d.Pieces) == 0 {
		return nil, nil
	}
	var parts []groupsOf
	for _, piece := range d.Pieces {
		kg, full := keyedOf(old[piece.Old], raw).(*format.KeyGroups)
		if h := keyedOf(old[piece.Old], raw); hasChanges(h) && piece.Groups != h.KeyGroups() {
			return nil, &keyedError{fmt.Sprintf("old subtask %d holds a changelog, and new subtasks would share its changes: Flink restores that once, but at the next change of parallelism it applies shared changes twice", piece.Old)}
		}
		mergeable := full && !raw
		if len(d.Pieces) == 1 && (!mergeable || piece.Groups == kg.Range) {
			return piece.Handle, nil
		}
		if !mergeable {
			return nil, &keyedError{fmt.Sprintf("a new subtask needs the keyed state of old subtasks %d and %d, but can have only one handle: only full streams can be merged", d.Pieces[0].Old, d.Pieces[1].Old)}
		}
		parts = append(parts, groupsOf{kg, piece.Groups})
	}
	return merge(parts)
}

// keyedOf returns the managed or raw keyed state of an old subtask.
func keyedOf(s *format.Subtask, raw bool) format.KeyedHandle {
	switch {
	case s == nil:
		return nil
	case raw:
		return s.RawKeyed
	}
	return s.ManagedKeyed
}

// hasChanges reports whether a handle holds changes since a materialized
// snapshot. A cut of it still names all of them, and Flink selects by the key
// groups of the restoring subtask, not of the handle (docs/flink-notes.md).
func hasChanges(h format.KeyedHandle) bool {
	switch h := h.(type) {
	case *format.Changelog:
		return len(h.Changes) > 0
	case *format.ChangelogMemory, *format.ChangelogStream:
		return true
	}
	return false
}
