package transform

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

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

// counter counts bytes and discards them.
type counter int64

func (n *counter) Write(p []byte) (int, error) {
	*n += counter(len(p))
	return len(p), nil
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
	m := &canonicalStream{codec: codec, schema: schema, of: sub.ManagedKeyed}
	var size counter
	b, err := codec.Build(c.ctx, schema, m.of.KeyGroups(), &size)
	if err != nil {
		return nil, 0, err
	}
	entries := int64(0)
	err = format.EachKeyedEntry(c.ctx, c.in.Source, codec, m.of, format.KeyedSelection{}, func(e format.KeyedEntry) error {
		entries++
		return b.Add(e)
	})
	if err != nil {
		return nil, 0, err
	}
	h, err := b.Handle()
	if err != nil {
		return nil, 0, err
	}
	m.size = int64(size)
	name := fmt.Sprintf("canonical %s %d", c.op.ID, sub.Index)
	data := &format.Computed{Length: m.size, Name: name, Maker: m}
	h.Data = &format.Concat{Parts: []format.Part{{Of: data, N: m.size}}}
	return h, entries, nil
}

// canonicalStream computes the bytes of a handle in the canonical format. They are
// built from the start on: reading them in order is cheap, and each read of what was
// passed builds them again.
type canonicalStream struct {
	codec  format.KeyedCodec
	schema format.KeyedSchema
	of     format.KeyedHandle
	size   int64

	mu      sync.Mutex // guards the fields below
	cursor  format.KeyedCursor
	builder format.KeyedBuilder
	built   bytes.Buffer // bytes from at on
	at      int64
}

// MakeAt implements format.Maker.
func (m *canonicalStream) MakeAt(ctx context.Context, src format.Source, p []byte, off int64) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer func() {
		if err != nil || m.at == m.size {
			err = errors.Join(err, m.stop())
		}
	}()
	if m.cursor == nil || off < m.at {
		if err := errors.Join(m.stop(), m.start(ctx, src)); err != nil {
			return err
		}
	}
	for off > m.at {
		if err := m.more(ctx); err != nil {
			return err
		}
		m.at += int64(len(m.built.Next(int(min(off-m.at, int64(m.built.Len()))))))
	}
	for len(p) > 0 {
		if m.built.Len() == 0 {
			if err := m.more(ctx); err != nil {
				return err
			}
		}
		n, _ := m.built.Read(p) // it has bytes
		p = p[n:]
		m.at += int64(n)
	}
	return nil
}

// start builds from the start on.
func (m *canonicalStream) start(ctx context.Context, src format.Source) (err error) {
	m.at = 0
	m.built.Reset()
	// The cursor outlives the call that opened it.
	if m.cursor, err = m.codec.Entries(context.WithoutCancel(ctx), src, m.of, format.KeyedSelection{}); err != nil {
		return err
	}
	m.builder, err = m.codec.Build(ctx, m.schema, m.of.KeyGroups(), &m.built)
	return err
}

// more builds until there are bytes.
func (m *canonicalStream) more(ctx context.Context) error {
	for m.built.Len() == 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		if m.builder == nil {
			return format.Errorf(format.ErrChanged, "the entries take fewer than %d bytes now", m.size)
		}
		e, err := m.cursor.Next()
		switch {
		case err == io.EOF:
			_, err = m.builder.Handle()
			m.builder = nil
		case err == nil:
			err = m.builder.Add(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// stop ends the building.
func (m *canonicalStream) stop() error {
	if m.cursor == nil {
		return nil
	}
	err := m.cursor.Close()
	m.cursor, m.builder = nil, nil
	m.built.Reset()
	return err
}
