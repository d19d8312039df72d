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

// Apply gives the savepoint in its new shape. Restored at the new parallelism,
// each subtask is handed what the plan says: list state lies with its subtask,
// where an engine leaves it alone; union state lies once, with subtask 0, in the
// order in which the old snapshot would have been handed to subtask 0; each
// subtask has the copy of broadcast state that it would have been given. Where
// handles share a bucket of Flink's hash map, the plan has the blocks of a union
// state in another order for some subtasks, which one list cannot be.
//
// What cannot be written for the new parallelism is refused as a whole, as
// format.ErrUnsupported that names operator and reason; with LeaveKeyed an
// operator with keyed state of that kind stays as it is, and its plan says so from
// then on. Each new subtask has its keyed state in a stream of its own.
func (p *RescalePlan) Apply(ctx context.Context) (format.View, error) {
	plans := map[*format.Operator]*OperatorPlan{}
	for _, op := range p.Operators {
		plans[op.Operator] = op
	}
	sp, err := p.in.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		plan := plans[op]
		if plan == nil || plan.Left != "" || plan.From == plan.To && p.Strategy == StrategyFlink {
			// At an unchanged parallelism the snapshot is handed out as it is.
			return op, nil
		}
		changed, err := p.apply(ctx, plan)
		var cannot *keyedError
		if errors.As(err, &cannot) && p.o.LeaveKeyed {
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

// keyedError is keyed state that cannot be written at the new parallelism.
type keyedError struct{ msg string }

func (e *keyedError) Error() string { return e.msg }
func (e *keyedError) Unwrap() error { return format.ErrUnsupported }

// Remedies returns what can be done.
func (e *keyedError) Remedies() []finding.Remedy {
	return []finding.Remedy{{Words: "let Flink rescale it when it restores"}, {Words: "keep this operator at its parallelism", Action: finding.LeaveOperator}}
}

func (p *RescalePlan) apply(ctx context.Context, plan *OperatorPlan) (*format.Operator, error) {
	op := *plan.Operator
	if op.Finished {
		op.Parallelism = plan.To
		return &op, nil
	}
	if plan.InFlight {
		return nil, format.Errorf(format.ErrUnsupported, "it has in-flight data: where it goes depends on the job's graph, which the snapshot does not hold")
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
	for _, k := range plan.Keyed {
		if err := p.keyedStates(ctx, op.Subtasks, old, k); err != nil {
			return nil, err
		}
	}
	return &op, nil
}

// keyGroupsExist checks that the keyed state of an old subtask is of key groups that
// the operator has: no new subtask would be given the others.
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

// handleOf is the managed or raw handle of an old subtask.
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
			return format.Errorf(format.ErrUnsupported, "two old subtasks name their state alike, and Flink loses %d elements of it", sub.Lost)
		}
		states := make([]format.StateRuns, len(metas))
		held := false
		for k, m := range metas {
			states[k].StateMeta = m
			if m.Mode == format.ModeUnion && i > 0 {
				continue // it lies with subtask 0
			}
			for _, piece := range sub.Pieces {
				h := handleOf(old[piece.Old], raw)
				for _, share := range piece.Shares {
					st := h.States[share.State]
					if share.Count == 0 || st.Name != m.Name || st.Mode != m.Mode {
						continue
					}
					if m.Mode == format.ModeBroadcast {
						states[k].Runs = nil // a later copy replaces an earlier one
					}
					states[k].Runs = append(states[k].Runs, format.ElementRun{Handle: h, State: share.State, First: share.First, Count: share.Count})
				}
			}
			held = held || len(states[k].Runs) > 0
		}
		if !held && i > 0 {
			continue // subtask 0 keeps states that have no element anywhere
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

// dropEmptyBroadcast leaves out broadcast states without a map: they are not
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

// metas gives the states of all old handles, each once, in the order in which
// they are first described. Two handles that describe a state differently
// cannot share a stream.
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
			// Its stream is not written again, so nothing may be in it.
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
				return nil, nil, format.Errorf(format.ErrUnsupported, "state %q is described differently by its subtasks: elements of both cannot share a stream", m.Name)
			}
		}
	}
	return all, codec, nil
}

// keyedStates gives the new subtasks their keyed state.
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

// fullHandles are the managed handles of subtasks that are streams of key groups.
func fullHandles(subtasks []*format.Subtask) (all []*format.KeyGroups) {
	for _, s := range subtasks {
		if h, ok := keyedOf(s, false).(*format.KeyGroups); ok {
			all = append(all, h)
		}
	}
	return all
}

// keyedState is what one new subtask holds: nothing, what one old handle gives,
// or key groups of full streams, merged into one. A new subtask could name the
// old stream for some of its key groups, too; but where such a stream is cut by
// whoever rescales next, its header could not be told from what is in front.
func keyedState(d assign.KeyedSubtask, old []*format.Subtask, raw bool, merge func([]groupsOf) (format.KeyedHandle, error)) (format.KeyedHandle, error) {
	if len(d.Pieces) == 0 {
		return nil, nil
	}
	var parts []groupsOf
	for _, piece := range d.Pieces {
		kg, full := keyedOf(old[piece.Old], raw).(*format.KeyGroups)
		if h := keyedOf(old[piece.Old], raw); hasChanges(h) && piece.Groups != h.KeyGroups() {
			return nil, &keyedError{fmt.Sprintf("old subtask %d holds a changelog, and new subtasks would share its changes: Flink restores that once, but at the next other parallelism it applies shared changes twice", piece.Old)}
		}
		mergeable := full && !raw
		if len(d.Pieces) == 1 && (!mergeable || piece.Groups == kg.Range) {
			return piece.Handle, nil
		}
		if !mergeable {
			return nil, &keyedError{fmt.Sprintf("a new subtask needs the keyed state of old subtasks %d and %d, and a snapshot has place for one handle: only full streams can be merged", d.Pieces[0].Old, d.Pieces[1].Old)}
		}
		parts = append(parts, groupsOf{kg, piece.Groups})
	}
	return merge(parts)
}

// keyedOf is the managed or raw keyed state of an old subtask.
func keyedOf(s *format.Subtask, raw bool) format.KeyedHandle {
	switch {
	case s == nil:
		return nil
	case raw:
		return s.RawKeyed
	}
	return s.ManagedKeyed
}

// hasChanges reports whether a handle holds changes since a materialised snapshot.
// A cut of it still names all of them, and Flink picks by the key groups of the
// subtask that restores, not by those of the handle (docs/flink-notes.md).
func hasChanges(h format.KeyedHandle) bool {
	switch h := h.(type) {
	case *format.Changelog:
		return len(h.Changes) > 0
	case *format.ChangelogMemory, *format.ChangelogStream:
		return true
	}
	return false
}
