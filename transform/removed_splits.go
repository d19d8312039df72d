package transform

import (
	"context"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
)

// sourceReaderState is the state of the splits of readers, whose source has a
// coordinator. Wire name: never change.
const sourceReaderState = "SourceReaderState"

// RemovedSplits is splits that an edit removed from the readers of a source, while its
// coordinator keeps its state. The coordinator has assigned them and does not assign
// them again: nobody reads them any more.
type RemovedSplits struct {
	Operator *format.Operator // before the edit
	Removed  int64
	// Listed are the partitions that the coordinator still lists as assigned, as far as
	// it is decoded; only coordinators of Kafka do.
	Listed []connector.Position
}

// addSplits compares the splits of a source before and after an edit, and adds what was
// removed. after may be nil.
func addSplits(ctx context.Context, all *[]*RemovedSplits, in format.View, before, after *format.Operator) error {
	r := &RemovedSplits{Operator: before, Removed: countElements(before, sourceReaderState)}
	if after != nil {
		r.Removed -= countElements(after, sourceReaderState)
	}
	if r.Removed <= 0 {
		return nil
	}
	*all = append(*all, r)
	if after == nil {
		return nil
	}
	s, err := sourceOffsets(ctx, in, after)
	if err != nil && !isDamage(err) {
		return err
	}
	if s == nil { // no reader has a split: the coordinator's are all that is left
		s = &SourceOffsets{Operator: after}
		v, why, ok, err := sourceCoordinator(ctx, in, after, "")
		if err != nil && !isDamage(err) {
			return err
		}
		if err == nil && ok && why == "" {
			for _, p := range connector.Positions(v) {
				s.Partitions = append(s.Partitions, &PartitionOffset{Position: p, Subtask: -1})
			}
			s.judge()
		}
	}
	for _, p := range s.Partitions {
		if p.Trouble == InNoReader {
			r.Listed = append(r.Listed, p.Position)
		}
	}
	return nil
}

// countElements returns the number of elements of a managed state of an operator.
func countElements(op *format.Operator, state string) (n int64) {
	for _, sub := range op.Subtasks {
		if sub.Managed == nil {
			continue
		}
		for i := range sub.Managed.States {
			if st := &sub.Managed.States[i]; st.Name.String() == state && st.Offsets != nil {
				n += st.Offsets.Len()
			}
		}
	}
	return n
}
