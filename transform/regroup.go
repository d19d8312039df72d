package transform

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/scratch"
)

// RegroupOptions are the options of Regroup.
type RegroupOptions struct {
	// Operators selects operators; nil means all. Flink requires the same max parallelism
	// of operators that run in one chain.
	Operators format.Selector
	// MaxParallelism is the new number of key groups. It is required.
	MaxParallelism int32
	// TempDir is the directory of temporary files; "" means the system's.
	TempDir string
	// Memory is the number of bytes of entries of an operator that are sorted in memory;
	// 0 means 64 MiB.
	Memory int64
}

// RegroupReport describes what Regroup did. The View is valid until it is closed.
type RegroupReport struct {
	Operators []*Regrouped

	sorters []*scratch.Sorter
}

// Regrouped is an operator with another max parallelism.
type Regrouped struct {
	Operator *format.Operator // before
	Entries  int64
	Moved    int64 // of the entries those that are in a key group of another number
}

// Close removes temporary files.
func (r *RegroupReport) Close() error {
	var errs []error
	for _, s := range r.sorters {
		errs = append(errs, s.Close())
	}
	r.sorters = nil
	return errors.Join(errs...)
}

// Regroup changes the max parallelism of operators, which is the number of key groups of
// their keyed state. Each key moves to its new key group, which Java's hash code of the key
// determines. It is computed from the bytes of the key: a type whose bytes do not determine
// it is a format.ErrUnsupported. So is a type for which the hash code leads to another key
// group than the one in which Flink stored a key.
//
// The entries are read once, in order, and sorted by their new key groups, with temporary
// files if they do not fit into memory. Keyed state becomes canonical, see [Canonical].
func Regroup(ctx context.Context, in format.View, o RegroupOptions) (format.View, *RegroupReport, error) {
	if o.MaxParallelism < 1 || o.MaxParallelism > format.MaxKeyGroups {
		return in, nil, fmt.Errorf("%w: a max parallelism of %d is not between 1 and %d", assign.ErrParallelism, o.MaxParallelism, format.MaxKeyGroups)
	}
	chosen, err := o.Operators.Set(in.Savepoint)
	if err != nil {
		return in, nil, err
	}
	r := &RegroupReport{}
	for _, op := range in.Operators {
		if chosen[op] && op.Parallelism > o.MaxParallelism {
			return in, nil, &ParallelismError{Operator: op.Label(), To: op.Parallelism, Max: o.MaxParallelism}
		}
	}
	sp, err := in.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		if !chosen[op] || op.MaxParallelism == o.MaxParallelism {
			return op, nil
		}
		return r.operator(ctx, in, op, o)
	})
	if err != nil {
		return in, nil, errors.Join(err, r.Close())
	}
	return in.With(sp), r, nil
}

// operator changes the max parallelism of an operator.
func (r *RegroupReport) operator(ctx context.Context, in format.View, op *format.Operator, o RegroupOptions) (*format.Operator, error) {
	to := *op
	to.MaxParallelism = o.MaxParallelism
	done := &Regrouped{Operator: op}
	r.Operators = append(r.Operators, done)
	if !op.HasKeyed() {
		return &to, nil
	}
	if op.HasInFlight() {
		return nil, &InFlightError{op.Label()}
	}
	k, err := describeKeyed(ctx, in, op, rawRefused)
	if err != nil {
		return nil, err
	}
	m := &keyedBuild{}
	for _, sub := range op.Subtasks {
		for _, s := range k.sources[sub] {
			if s.edit.change, err = done.regroup(ctx, in, s, o.MaxParallelism); err != nil {
				return nil, format.At(err, "subtask %d", sub.Index)
			}
			m.sources = append(m.sources, s)
		}
	}
	if len(m.sources) == 0 {
		return &to, nil
	}
	sortSources(m.sources)
	if err := m.join(); err != nil {
		return nil, err
	}
	sorter := scratch.NewSorter(scratch.Options{Dir: o.TempDir, Memory: o.Memory})
	r.sorters = append(r.sorters, sorter)
	if done.Entries, err = sortEntries(ctx, in.Source, m.sources, sorter); err != nil {
		return nil, err
	}
	if m.codec, err = in.KeyedCodec(&to, m.sources[0].handle); err != nil {
		return nil, err
	}
	subs, err := bySubtask(op)
	if err != nil {
		return nil, err
	}
	to.Subtasks = nil
	for i, sub := range subs {
		s := format.Subtask{Index: int32(i)}
		if sub != nil {
			s = *sub
		}
		s.ManagedKeyed, s.RawKeyed = nil, nil
		if sub == nil || !sub.Finished {
			groups := format.KeyGroupsOf(int32(i), op.Parallelism, o.MaxParallelism)
			source := &keyedSource{groups: groups, codec: m.codec, schema: m.schema, open: openSorted(sorter)}
			h, _, err := buildKeyed(ctx, in.Source, m.codec, groups, []*keyedSource{source})
			if err != nil {
				return nil, format.At(err, "subtask %d", i)
			}
			if h != nil {
				s.ManagedKeyed = h
			}
		}
		to.Subtasks = append(to.Subtasks, &s)
	}
	return &to, nil
}

// regroup returns a function that puts entries of a source into their new key groups.
func (r *Regrouped) regroup(ctx context.Context, in format.View, s *keyedSource, max int32) (func(e *format.KeyedEntry) error, error) {
	codecs, err := value.EntryCodecsOf(ctx, in.Source, s.codec, s.handle)
	if err != nil {
		return nil, err
	}
	old := r.Operator.MaxParallelism
	return func(e *format.KeyedEntry) error {
		c := &codecs[e.State]
		var hash int32
		var err error
		switch {
		case c.KeyHash == nil:
			err = c.WhyNoHash
		case e.Key == nil:
			err = format.Errorf(format.ErrUnsupported, "their end in the entries is not known")
		default:
			hash, err = c.KeyHash(e.Key)
		}
		if err == nil && format.KeyGroupOfHash(hash, old) != e.KeyGroup {
			err = format.Errorf(format.ErrUnsupported, "a key is stored in key group %d of %d, and its hash code leads to key group %d: the job hashes it in another way", e.KeyGroup, old, format.KeyGroupOfHash(hash, old))
		}
		if err != nil {
			return format.At(err, "keys of state %q", s.schema.States[e.State].Name)
		}
		group := format.KeyGroupOfHash(hash, max)
		if group != e.KeyGroup {
			r.Moved++
		}
		e.KeyGroup = group
		return nil
	}, nil
}

// sortEntries adds the entries of all sources to a sorter, and returns their number.
func sortEntries(ctx context.Context, src format.Source, sources []*keyedSource, to *scratch.Sorter) (n int64, err error) {
	merge := newKeyedMerge(ctx, src, sources, true)
	defer func() { err = errors.Join(err, merge.close()) }()
	var record []byte
	for ; ; n++ {
		if n%checkEvery == 0 && ctx.Err() != nil {
			return n, ctx.Err()
		}
		e, err := merge.next()
		if err == io.EOF {
			return n, nil
		}
		if err == nil {
			record = appendRecord(record[:0], e)
			err = to.Add(e.KeyGroup, record)
		}
		if err != nil {
			return n, err
		}
	}
}

// An entry as a record of a sorter, by which it is sorted:
//
//	u16  state
//	     key, namespace, map key, value
//	u32  lengths of key, namespace and map key, plus 1, and 0 if it is nil
//	u64  time
const recordTail = 3*4 + 8

func appendRecord(p []byte, e *format.KeyedEntry) []byte {
	p = binary.BigEndian.AppendUint16(p, uint16(e.State))
	parts := [...][]byte{e.Key, e.Namespace, e.UserKey}
	for _, part := range parts {
		p = append(p, part...)
	}
	p = append(p, e.Value...)
	for _, part := range parts {
		n := uint32(0)
		if part != nil {
			n = uint32(len(part)) + 1
		}
		p = binary.BigEndian.AppendUint32(p, n)
	}
	return binary.BigEndian.AppendUint64(p, uint64(e.Time))
}

// sortedCursor reads entries of a sorter.
type sortedCursor struct{ *scratch.Cursor }

// openSorted returns a function that opens a cursor on the entries of a sorter. It has
// all states.
func openSorted(s *scratch.Sorter) func(context.Context, format.Source, format.KeyedSelection) (format.KeyedCursor, error) {
	return func(_ context.Context, _ format.Source, sel format.KeyedSelection) (format.KeyedCursor, error) {
		return sortedCursor{s.Records(sel.Groups.First, sel.Groups.Last())}, nil
	}
}

// Next implements [format.KeyedCursor].
func (c sortedCursor) Next() (e format.KeyedEntry, err error) {
	group, p, err := c.Cursor.Next()
	if err != nil {
		return e, err
	}
	e = format.KeyedEntry{KeyGroup: group, State: int(binary.BigEndian.Uint16(p))}
	tail := p[len(p)-recordTail:]
	p = p[2 : len(p)-recordTail]
	for _, part := range []*[]byte{&e.Key, &e.Namespace, &e.UserKey} {
		if n := int(binary.BigEndian.Uint32(tail)); n > 0 {
			*part, p = p[:n-1:n-1], p[n-1:]
		}
		tail = tail[4:]
	}
	e.Value, e.Time = p, int64(binary.BigEndian.Uint64(tail))
	return e, nil
}

// Ordered returns true: entries are in the order of key groups, states and keys.
func (sortedCursor) Ordered() bool { return true }

// Close implements [format.KeyedCursor].
func (sortedCursor) Close() error { return nil }
