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
// checkpoints and of changelogs. Canonical state does not change.
//
// In-flight data is an *InFlightError: it belongs to a checkpoint, and a canonical
// snapshot is a savepoint. State that cannot be read is kept unchanged
// and reported.
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
		c := canonicalizer{ctx: ctx, in: v, op: op, report: r}
		return op.MapSubtasks(c.subtask)
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

// canonicalizer builds the keyed state of one operator.
type canonicalizer struct {
	ctx    context.Context
	in     format.View
	op     *format.Operator
	report *CanonicalReport
}

func (c *canonicalizer) keep(why string) {
	c.report.Kept = addKept(c.report.Kept, c.op, format.SlotManagedKeyed, why)
}

func (c *canonicalizer) subtask(sub *format.Subtask) (*format.Subtask, error) {
	if sub.ManagedKeyed == nil {
		return sub, nil
	}
	if g, ok := sub.ManagedKeyed.(*format.KeyGroups); ok && (g.Savepoint || g.Codec != format.CodecFlink) {
		c.report.Same++
		return sub, nil
	}
	if sub.RawKeyed != nil {
		// Timers on the heap, which a backend of RocksDB stores as raw keyed state; in
		// the canonical format they are among the managed states.
		c.keep("its timers are in raw keyed state")
		return sub, nil
	}
	h, entries, err := c.build(sub)
	switch {
	case errors.Is(err, format.ErrUnsupported):
		c.keep(err.Error())
		return sub, nil
	case err != nil:
		return nil, format.At(err, "%v", format.SlotManagedKeyed)
	}
	c.report.Handles++
	c.report.Entries += entries
	out := *sub
	out.ManagedKeyed = h
	return &out, nil
}

// build returns the handle of a subtask in the canonical format.
func (c *canonicalizer) build(sub *format.Subtask) (*format.KeyGroups, int64, error) {
	codec, err := c.in.Codecs.KeyedCodec(c.op, sub.ManagedKeyed)
	if err != nil {
		return nil, 0, err
	}
	schema, err := codec.Describe(c.ctx, c.in.Source, sub.ManagedKeyed)
	if err != nil {
		return nil, 0, err
	}
	r := rekeyed{codec: codec, schema: schema, of: sub.ManagedKeyed, edit: func() func(*format.KeyedEntry) error {
		return func(*format.KeyedEntry) error { return nil }
	}}
	return r.build(c.ctx, c.in.Source, fmt.Sprintf("canonical %s %d", c.op.ID, sub.Index))
}
