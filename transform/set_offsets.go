package transform

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
)

// SetOffsetsOptions are the options of SetOffsets.
type SetOffsetsOptions struct {
	// Operators selects the sources; nil means all.
	Operators format.Selector
	// Set is the new positions. If several fit a partition, the last one counts.
	Set []OffsetChange
	// DropTopics are topics whose partitions are removed from the readers and the
	// coordinators.
	DropTopics []string
}

// OffsetChange is a new position for a partition, or for all partitions of a topic.
type OffsetChange struct {
	Topic     string
	Partition string // "": all
	At        connector.At
	Offset    int64 // with connector.AtOffset: of the next record
}

// SetOffsetsReport describes what SetOffsets changed.
type SetOffsetsReport struct {
	Set     []*OffsetSet // by operator, topic and partition
	Dropped []*OffsetSet // the same, partitions that were removed
}

// OffsetSet is a partition whose position was set, or that was removed.
type OffsetSet struct {
	Operator *format.Operator   // before the edit
	From     connector.Position // in a reader if one has it, otherwise in the coordinator
	To       connector.Position
	Readers  int // elements of readers that were changed
	// Coordinator is set if the partition was changed in the state of the
	// coordinator too.
	Coordinator bool
}

// PartitionError is the error for a topic or a partition that no source has.
type PartitionError struct {
	Topic, Partition string // Partition is "" if the topic is unknown
	Available        []string
}

func (e *PartitionError) Error() string {
	if e.Partition == "" {
		return fmt.Sprintf("no source has a position in the topic %q", e.Topic)
	}
	return fmt.Sprintf("no source has a position in partition %s of the topic %q", e.Partition, e.Topic)
}

// SetOffsets changes the positions at which sources read on after a restore, in the
// states of their readers and, where it stores them, in the state of their coordinator;
// and it removes the partitions of topics from both. A source with a partition to
// change must be decoded completely, otherwise it is an ErrUnsupported: what is not
// decoded could hold the same partition.
//
// Whether an offset exists only the broker knows.
func SetOffsets(ctx context.Context, in format.View, o SetOffsetsOptions) (format.View, *SetOffsetsReport, error) {
	if len(o.Set)+len(o.DropTopics) == 0 {
		return in, nil, errors.New("no position to set and no topic to drop")
	}
	now, err := Offsets(ctx, in, OffsetsOptions{Operators: o.Operators})
	if err != nil {
		return in, nil, err
	}
	if err := o.check(now); err != nil {
		return in, nil, err
	}
	e := &offsetEdit{in: in, o: o, report: &SetOffsetsReport{}, edits: handleEdits{}, coordinators: map[*format.Operator]format.Stream{}}
	for _, s := range now.Sources {
		if err := e.source(ctx, s); err != nil {
			return in, nil, format.At(err, "operator %q", s.Operator.Label())
		}
	}
	sp, err := in.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		out, err := e.edits.apply(ctx, in, op)
		if s := e.coordinators[op]; err == nil && s != nil {
			c := *out
			c.Coordinator = s
			out = &c
		}
		return out, err
	})
	if err != nil {
		return in, nil, err
	}
	return in.With(sp), e.report, nil
}

// check returns an error if a change fits no partition.
func (o *SetOffsetsOptions) check(now *OffsetsReport) error {
	topics := map[string]map[string]bool{}
	for _, s := range now.Sources {
		for _, p := range s.Partitions {
			if topics[p.Topic] == nil {
				topics[p.Topic] = map[string]bool{}
			}
			topics[p.Topic][p.Partition] = true
		}
	}
	wanted := slices.Clone(o.Set)
	for _, topic := range o.DropTopics {
		wanted = append(wanted, OffsetChange{Topic: topic})
	}
	for _, c := range wanted {
		switch partitions := topics[c.Topic]; {
		case partitions == nil:
			return &PartitionError{Topic: c.Topic, Available: slices.Sorted(maps.Keys(topics))}
		case c.Partition != "" && !partitions[c.Partition]:
			return &PartitionError{Topic: c.Topic, Partition: c.Partition, Available: slices.SortedFunc(maps.Keys(partitions), naturally)}
		}
	}
	return nil
}

// change returns the change of a partition, or nil.
func (o *SetOffsetsOptions) change(p connector.Position) *OffsetChange {
	for i := len(o.Set) - 1; i >= 0; i-- {
		if c := &o.Set[i]; c.Topic == p.Topic && (c.Partition == "" || c.Partition == p.Partition) {
			return c
		}
	}
	return nil
}

func (o *SetOffsetsOptions) drops(p connector.Position) bool {
	return slices.Contains(o.DropTopics, p.Topic)
}

// offsetEdit is an edit of positions.
type offsetEdit struct {
	in           format.View
	o            SetOffsetsOptions
	report       *SetOffsetsReport
	edits        handleEdits
	coordinators map[*format.Operator]format.Stream
	done         map[partitionID]*OffsetSet // of the current source
	inReader     map[partitionID]bool       // the same
}

// source edits one source.
func (e *offsetEdit) source(ctx context.Context, s *SourceOffsets) error {
	affected := false
	e.done, e.inReader = map[partitionID]*OffsetSet{}, map[partitionID]bool{}
	for _, p := range s.Partitions {
		affected = affected || e.o.change(p.Position) != nil || e.o.drops(p.Position)
		if p.Subtask >= 0 {
			e.inReader[idOf(p.Position)] = true
		}
	}
	if !affected {
		return nil
	}
	if len(s.Undecoded) > 0 {
		u := s.Undecoded[0]
		where := "the state of its coordinator"
		if u.State != "" {
			where = fmt.Sprintf("an element of state %q in subtask %d", u.State, u.Subtask)
		}
		return format.Errorf(format.ErrUnsupported, "%s is not decoded, and could hold the same partitions: %s", where, u.Why)
	}
	if err := e.readers(ctx, s.Operator); err != nil {
		return err
	}
	if err := e.coordinator(ctx, s); err != nil {
		return err
	}
	for _, p := range s.Partitions { // in their order, each once
		id := idOf(p.Position)
		d := e.done[id]
		delete(e.done, id)
		switch {
		case d == nil:
		case e.o.drops(d.From):
			e.report.Dropped = append(e.report.Dropped, d)
		case d.Readers > 0 || d.Coordinator:
			e.report.Set = append(e.report.Set, d)
		}
	}
	return nil
}

// edit returns what becomes of a position in a reader or in the coordinator.
func (e *offsetEdit) edit(op *format.Operator, inReader bool) connector.PositionEdit {
	return func(p connector.Position) (connector.Position, bool, error) {
		change, drop := e.o.change(p), e.o.drops(p)
		if change == nil && !drop {
			return p, true, nil
		}
		id := idOf(p)
		to := p
		switch {
		case drop:
		case !inReader && p.Settable && e.inReader[id] && (e.done[id] == nil || e.done[id].Readers == 0):
			return p, true, nil // the reader is there already
		case p.Settable:
			to.At, to.Offset = change.At, change.Offset
			if to.At != connector.AtOffset {
				to.Offset = 0
			}
		case !inReader && p.At == connector.AtNothing && e.inReader[id]:
			return p, true, nil // only the reader stores it
		case !inReader && p.At == connector.AtNothing:
			return p, true, format.Errorf(format.ErrUnsupported, "partition %s of the topic %q is %s and no reader has it; the coordinator of this version stores no offset for it", p.Partition, p.Topic, cmp.Or(p.Status, "listed"))
		default:
			return p, true, format.Errorf(format.ErrUnsupported, "partition %q of %q: positions of %s cannot be set", p.Partition, p.Topic, p.Connector)
		}
		d := e.done[id]
		if d == nil {
			d = &OffsetSet{Operator: op, From: p, To: to}
			e.done[id] = d
		}
		if changes := drop || to.At != p.At || to.Offset != p.Offset; changes && inReader {
			d.Readers++
		} else if changes {
			d.Coordinator = true
		}
		return to, !drop, nil
	}
}

// readers edits the elements of an operator.
func (e *offsetEdit) readers(ctx context.Context, op *format.Operator) error {
	type key struct {
		h     *format.OperatorHandle
		state int
	}
	runs, changed := map[key][]format.ElementRun{}, map[key]bool{}
	edit := e.edit(op, true)
	err := eachConnectorElement(ctx, e.in, op, connector.IsPositions, func(c connectorElement) error {
		k := key{c.Subtask.Managed, c.State}
		out, keep, err := connector.EditPositions(c.Decoded, edit)
		if err != nil {
			return err
		}
		codec, _ := connector.Elements(c.Name, c.Meta)
		p, err := codec.Append(nil, out)
		switch {
		case err != nil:
			return err
		case !keep:
			changed[k] = true
		case string(p) != string(c.Value):
			changed[k] = true
			runs[k] = append(runs[k], format.ElementRun{New: [][]byte{p}})
		default:
			runs[k] = append(runs[k], format.ElementRun{Handle: k.h, State: k.state, First: c.Index, Count: 1})
		}
		return nil
	})
	for k := range changed {
		e.edits.add(k.h, k.state, stateEdit{runs: runs[k]})
	}
	return err
}

// coordinator edits the state of the coordinator.
func (e *offsetEdit) coordinator(ctx context.Context, s *SourceOffsets) error {
	v, _, ok, err := sourceCoordinator(ctx, e.in, s.Operator, s.Connector)
	if err != nil || !ok || v.Kind() != value.KindRecord {
		return err
	}
	before, err := coordinatorBytes(ctx, e.in, s.Operator)
	if err != nil {
		return err
	}
	out, _, err := connector.EditPositions(v, e.edit(s.Operator, false))
	if err != nil {
		return err
	}
	after, err := connector.Coordinator(s.Connector).Append(nil, out)
	if err != nil || string(after) == string(before) {
		return err
	}
	e.coordinators[s.Operator] = newCoordinator(s.Operator, after)
	return nil
}
