package transform

import (
	"cmp"
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
)

// OffsetsOptions are the options of Offsets.
type OffsetsOptions struct {
	// Operators selects the operators; nil means all.
	Operators format.Selector
}

// OffsetsReport is the positions of the sources of a snapshot.
type OffsetsReport struct{ Sources []*SourceOffsets }

// SourceOffsets is the positions of one operator.
type SourceOffsets struct {
	Operator   *format.Operator
	Connector  string // "": not known
	Partitions []*PartitionOffset
	Undecoded  []Undecoded
}

// PartitionOffset is the position in one partition, as one element or the coordinator
// has it.
type PartitionOffset struct {
	connector.Position
	State   string // "": of the coordinator
	Subtask int32  // -1: of the coordinator
	Index   int64
	// Trouble is what is wrong with the partition; the same for all its positions.
	Trouble PartitionTrouble
}

// PartitionTrouble is why a partition would not be read as it should.
type PartitionTrouble string

// The kinds of trouble.
const (
	NoTrouble      PartitionTrouble = ""
	TwiceInReaders PartitionTrouble = "twice in readers"         // read twice, from each position
	InBoth         PartitionTrouble = "in reader and unassigned" // the enumerator will assign it again
	InNoReader     PartitionTrouble = "in no reader"             // assigned, and no reader has it: not read any more
	NotEnumerated  PartitionTrouble = "not in enumerator"        // the enumerator will discover and assign it again
)

// partitionID identifies a partition of a source.
type partitionID struct{ cluster, topic, partition string }

func idOf(p connector.Position) partitionID {
	return partitionID{p.Cluster, p.Topic, p.Partition}
}

// Offsets returns the read positions that sources have stored in operator state and in
// the state of their coordinators. It finds the states by their names. Sources are in
// the order of the snapshot; positions by topic, then partition, then subtask.
func Offsets(ctx context.Context, in format.View, o OffsetsOptions) (*OffsetsReport, error) {
	ops, err := o.Operators.Operators(in.Savepoint)
	if err != nil {
		return nil, err
	}
	r := &OffsetsReport{}
	for _, op := range ops {
		s, err := sourceOffsets(ctx, in, op)
		if err != nil {
			return nil, err
		}
		if s != nil {
			r.Sources = append(r.Sources, s)
		}
	}
	return r, nil
}

// sourceOffsets returns the positions of an operator, or nil if it is not a source.
func sourceOffsets(ctx context.Context, in format.View, op *format.Operator) (*SourceOffsets, error) {
	s := &SourceOffsets{Operator: op}
	found := false
	err := eachConnectorElement(ctx, in, op, connector.IsPositions, func(e connectorElement) error {
		found = true
		if e.Why != "" {
			s.undecoded(Undecoded{e.Name, e.Subtask.Index, e.Index, 1, e.Why})
			return nil
		}
		for _, p := range connector.Positions(e.Decoded) {
			s.Partitions = append(s.Partitions, &PartitionOffset{Position: p, State: e.Name, Subtask: e.Subtask.Index, Index: e.Index})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(s.Partitions) > 0 {
		s.Connector = s.Partitions[0].Connector
	}
	if !found && !hasPositions(op) {
		return nil, nil
	}
	v, why, ok, err := sourceCoordinator(ctx, in, op, s.Connector)
	switch {
	case err != nil:
		return nil, err
	case ok && why != "":
		s.undecoded(Undecoded{"", -1, 0, 1, why})
	case ok:
		for i, p := range connector.Positions(v) {
			s.Partitions = append(s.Partitions, &PartitionOffset{Position: p, Subtask: -1, Index: int64(i)})
			s.Connector = cmp.Or(s.Connector, p.Connector)
		}
		s.judge()
	default:
		s.judgeUnion()
	}
	slices.SortStableFunc(s.Partitions, func(a, b *PartitionOffset) int {
		return cmp.Or(cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Topic, b.Topic), naturally(a.Partition, b.Partition))
	})
	return s, nil
}

// hasPositions reports whether an operator has a state with positions, also without
// elements.
func hasPositions(op *format.Operator) bool {
	for _, sub := range op.Subtasks {
		if sub.Managed == nil {
			continue
		}
		for i := range sub.Managed.States {
			if connector.IsPositions(sub.Managed.States[i].Name.String()) {
				return true
			}
		}
	}
	return false
}

// naturally compares numbers by value and other texts as they are.
func naturally(a, b string) int {
	digits := func(s string) bool {
		for _, c := range s {
			if c < '0' || c > '9' {
				return false
			}
		}
		return s != ""
	}
	if digits(a) && digits(b) && len(a) != len(b) {
		return cmp.Compare(len(a), len(b))
	}
	return cmp.Compare(a, b)
}

func (s *SourceOffsets) undecoded(u Undecoded) { addUndecoded(&s.Undecoded, u) }

// judge finds partitions that the readers and the enumerator disagree about. Only the
// enumerators of Kafka list the partitions that readers have.
func (s *SourceOffsets) judge() {
	type places struct {
		readers              int
		assigned, unassigned bool
		all                  []*PartitionOffset
	}
	by := map[partitionID]*places{}
	enumerated := false // an enumerator without a partition does not list what its readers have
	for _, p := range s.Partitions {
		at := by[idOf(p.Position)]
		if at == nil {
			at = &places{}
			by[idOf(p.Position)] = at
		}
		at.all = append(at.all, p)
		switch {
		case p.Subtask >= 0:
			at.readers++
		case p.Assigned():
			at.assigned, enumerated = true, true
		default:
			at.unassigned = true
		}
	}
	for _, at := range by {
		trouble := NoTrouble
		switch {
		case at.readers > 1:
			trouble = TwiceInReaders
		case at.readers == 1 && at.unassigned:
			trouble = InBoth
		case at.readers == 0 && at.assigned && len(s.Undecoded) == 0:
			trouble = InNoReader
		case at.readers == 1 && !at.assigned && enumerated:
			trouble = NotEnumerated
		}
		for _, p := range at.all {
			p.Trouble = trouble
		}
	}
}

// judgeUnion finds partitions that several subtasks hold: the legacy sources store
// their positions in union state, each subtask its own.
func (s *SourceOffsets) judgeUnion() {
	by := map[partitionID][]*PartitionOffset{}
	for _, p := range s.Partitions {
		by[idOf(p.Position)] = append(by[idOf(p.Position)], p)
	}
	for _, all := range by {
		if len(all) > 1 {
			for _, p := range all {
				p.Trouble = TwiceInReaders
			}
		}
	}
}
