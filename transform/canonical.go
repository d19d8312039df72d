package transform

import (
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
)

// CanonicalOptions are the options of Canonical.
type CanonicalOptions struct {
	// Operators selects operators; nil means all.
	Operators format.Selector
	// Jobs is the number of subtasks whose keyed state is read at once; 0 means one per
	// processor.
	Jobs int
}

// CanonicalReport describes what Canonical did.
type CanonicalReport struct {
	Handles int          // handles that were built again
	Same    int          // handles that were canonical already
	Entries int64        // in the handles that were built
	Kept    []KeptHandle // handles that could not be read, by reason
}

// Canonical builds managed keyed state in the canonical format, which every state
// backend restores, from its entries: of heap and RocksDB backends, of incremental
// checkpoints and of changelogs. Canonical state does not change. Timers that a backend
// of RocksDB keeps on the heap, and so as raw keyed state, become canonical state too. Raw
// state of user code stays raw keyed state, which every backend restores, and so do timers
// of releases that stored serializers without snapshots. A compressed stream becomes a
// compressed one; the blocks of RocksDB's files do not count.
//
// In-flight data is an *InFlightError: it belongs to a checkpoint, and a canonical
// snapshot is a savepoint. The keyed state of an operator that cannot be read is kept
// unchanged and reported.
//
// It reads all entries once, to compute the lengths of the result; reading the result
// reads them again, in order. Memory is bounded by the cursor of the encoding, not by
// the state.
func Canonical(ctx context.Context, v format.View, o CanonicalOptions) (format.View, *CanonicalReport, error) {
	r := &CanonicalReport{}
	chosen, err := o.Operators.Set(v.Savepoint)
	if err != nil {
		return v, nil, err
	}
	sp, err := v.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		switch {
		case !chosen[op]:
			return op, nil
		case op.HasInFlight():
			return nil, &InFlightError{op.Label()}
		}
		return r.operator(ctx, v, op, o.Jobs)
	})
	if err != nil {
		return v, nil, err
	}
	return v.With(sp), r, nil
}

// InFlightError is the error for in-flight data of an operator, which a savepoint does
// not have. It matches format.ErrUnsupported.
type InFlightError struct{ Operator string }

func (e *InFlightError) Error() string {
	return fmt.Sprintf("operator %q has in-flight data, which a canonical savepoint does not have", e.Operator)
}

// Is matches format.ErrUnsupported.
func (e *InFlightError) Is(target error) bool { return target == format.ErrUnsupported }

// Remedies returns what to do instead.
func (e *InFlightError) Remedies() []finding.Remedy {
	return []finding.Remedy{{Words: "remove it first, losing it", Action: finding.DropInFlight}}
}

// canonicalHandle reports whether a handle is in a format that is not one of a state
// backend: canonical, or the one of Go programs.
func canonicalHandle(h format.KeyedHandle) bool {
	g, ok := h.(*format.KeyGroups)
	return ok && (g.Savepoint || g.Codec != format.CodecFlink)
}

// operator builds the keyed state of an operator: of all of its subtasks or of none,
// because Flink reads the handles of an operator as handles of one format.
func (r *CanonicalReport) operator(ctx context.Context, in format.View, op *format.Operator, jobs int) (*format.Operator, error) {
	handles, same := 0, 0
	for _, sub := range op.Subtasks {
		switch {
		case sub.ManagedKeyed == nil:
		case canonicalHandle(sub.ManagedKeyed):
			same++
		default:
			handles++
		}
	}
	r.Same += same
	if handles == 0 {
		return op, nil
	}
	k, err := describeKeyed(ctx, in, op, rawStays)
	out, entries := op, int64(0)
	if err == nil {
		out, entries, err = k.rebuild(ctx, keyedRebuild{jobs: jobs})
	}
	if errors.Is(err, format.ErrUnsupported) {
		for range handles {
			r.Kept = addKept(r.Kept, op, format.SlotManagedKeyed, err.Error())
		}
		return op, nil
	}
	r.Handles += handles
	r.Entries += entries
	return out, err
}
