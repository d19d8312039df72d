package transform

import (
	"context"
	"fmt"
	"io"

	"github.com/savepoint-tools/spt/format"
)

// Verdict is what a union state looks like.
type Verdict string

// The verdicts.
const (
	// VerdictProduct: restores multiplied it. Every subtask holds the same
	// elements in the same order, and each comes as often as restores that
	// every subtask answered by adding again would have made it come.
	VerdictProduct Verdict = "restore product"
	// VerdictNotSure: elements repeat, and may do so honestly.
	VerdictNotSure Verdict = "not sure"
	// VerdictSound: no element repeats.
	VerdictSound Verdict = "nothing repeats"
)

// UnionReport is what is known of one union state.
type UnionReport struct {
	Operator *format.Operator
	State    string
	Subtasks int // that hold it
	Elements int64
	Bytes    int64
	// Distinct elements, and the bytes they take once each.
	Distinct, DistinctBytes int64
	// MinCopies and MaxCopies say how often an element comes.
	MinCopies, MaxCopies int64
	// Equal: every subtask of the operator holds the same list.
	Equal bool
	// Factor is the largest power of the number of subtasks by which every
	// count is divisible: what restores can have multiplied by. 1: none.
	Factor  int64
	Verdict Verdict
	Why     string
}

// unionState is one union state and its handles, in the order of the subtasks.
type unionState struct {
	op      *format.Operator
	name    format.Text
	handles []*format.OperatorHandle
	states  []int // index in each handle
	total   int64
	present int // subtasks of the operator that are there
}

// unionStates finds the union states of a savepoint that pick chooses.
func unionStates(sp *format.Savepoint, pick func(op *format.Operator, state string) bool) []*unionState {
	var all []*unionState
	for _, op := range sp.Operators {
		byName := map[format.Text]*unionState{}
		present := 0
		var mine []*unionState
		for _, sub := range op.Subtasks {
			if sub.Finished {
				continue
			}
			present++
			if sub.Managed == nil {
				continue
			}
			for k, st := range sub.Managed.States {
				if st.Mode != format.ModeUnion || pick != nil && !pick(op, st.Name.String()) {
					continue
				}
				u := byName[st.Name]
				if u == nil {
					u = &unionState{op: op, name: st.Name}
					byName[st.Name] = u
					mine = append(mine, u)
				}
				u.handles = append(u.handles, sub.Managed)
				u.states = append(u.states, k)
				u.total += st.Offsets.Len()
			}
		}
		for _, u := range mine {
			u.present = present
		}
		all = append(all, mine...)
	}
	return all
}

// each calls f with every element, in the order of the subtasks. The value is
// valid until f returns.
func (u *unionState) each(ctx context.Context, in Input, f func(subtask int, index int64, value []byte) error) error {
	for i, h := range u.handles {
		codec, err := in.Codec(h.Codec)
		if err != nil {
			return err
		}
		if err := eachElement(ctx, in, codec, h, u.name.String(), func(e format.Element) error { return f(i, e.Index, e.Value) }); err != nil {
			return format.At(err, "state %q", u.name)
		}
	}
	return nil
}

func eachElement(ctx context.Context, in Input, codec format.OperatorCodec, h *format.OperatorHandle, state string, f func(format.Element) error) (err error) {
	cur, err := codec.Elements(ctx, in.Source, h, state, 0)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := cur.Close(); err == nil {
			err = cerr
		}
	}()
	for n := 0; ; n++ {
		e, err := cur.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil && n%4096 == 0 {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		if err := f(e); err != nil {
			return err
		}
	}
}

// count goes through the elements as often as the table makes necessary and
// adds up a report. visit, if not nil, is called for every element in a second
// round of each pass, with what is known of it.
func (u *unionState) count(ctx context.Context, in Input, limit int, visit func(number int64, s *tallySlot)) (*UnionReport, error) {
	h := newHasher()
	table := newTally(limit)
	for of := uint64(1); ; of *= 2 {
		r, full, err := u.countIn(ctx, in, h, table, of, visit)
		if err != nil {
			return nil, err
		}
		if !full {
			return r, nil
		}
	}
}

// countIn counts in of passes; full where the table does not suffice.
func (u *unionState) countIn(ctx context.Context, in Input, h hasher, table *tally, of uint64, visit func(int64, *tallySlot)) (_ *UnionReport, full bool, err error) {
	r := &UnionReport{Operator: u.op, State: u.name.String(), Subtasks: len(u.handles), Elements: u.total, Factor: 1, MinCopies: 1<<63 - 1}
	lists := make([]listDigest, len(u.handles))
	var common uint64 // of all counts, the greatest common divisor
	errFull := fmt.Errorf("internal: the table is full")
	for n := range of {
		p := pass{n, of}
		table.reset()
		err := u.each(ctx, in, func(subtask int, _ int64, value []byte) error {
			d := h.sum(value)
			if n == 0 {
				r.Bytes += int64(len(value))
				lists[subtask].add(d)
			}
			if !p.has(d) {
				return nil
			}
			s, ok := table.add(d)
			if !ok {
				return errFull
			}
			if s.count == 1 {
				r.DistinctBytes += int64(len(value))
			}
			return nil
		})
		if err == errFull {
			return nil, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		for i := range table.slots {
			if c := table.slots[i].count; c > 0 {
				r.Distinct++
				r.MinCopies, r.MaxCopies = min(r.MinCopies, int64(c)), max(r.MaxCopies, int64(c))
				common = gcd(common, c)
			}
		}
		if visit != nil {
			if err := u.revisit(ctx, in, h, table, p, visit); err != nil {
				return nil, false, err
			}
		}
	}
	if r.Distinct == 0 {
		r.MinCopies = 0
	}
	r.judge(u, lists, common)
	return r, false, nil
}

func (u *unionState) revisit(ctx context.Context, in Input, h hasher, table *tally, p pass, visit func(int64, *tallySlot)) error {
	var number int64
	return u.each(ctx, in, func(_ int, _ int64, value []byte) error {
		if d := h.sum(value); p.has(d) {
			s := table.find(d)
			visit(number, s)
			s.seen++
		}
		number++
		return nil
	})
}

// listDigest is the digest of a list of elements, in order.
type listDigest struct {
	n   int64
	sum digest
}

// add mixes in a digest so that order counts: two multiplications modulo 2^64
// by odd numbers.
func (l *listDigest) add(d digest) {
	l.n++
	l.sum.hi = l.sum.hi*0x9e3779b97f4a7c15 + d.hi
	l.sum.lo = l.sum.lo*0xd6e8feb86659fd93 + d.lo
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// judge says what the counts mean.
func (r *UnionReport) judge(u *unionState, lists []listDigest, common uint64) {
	r.Equal = len(lists) > 0 && len(lists) == u.present
	for i := range lists {
		if lists[i].n != lists[0].n || lists[i].sum != lists[0].sum {
			r.Equal = false
		}
	}
	p := uint64(len(lists))
	for p > 1 && common > 0 && common%(uint64(r.Factor)*p) == 0 {
		r.Factor *= int64(p)
	}
	switch {
	case r.Elements == 0:
		r.Verdict, r.Why = VerdictSound, "it holds no element"
	case r.Distinct == r.Elements:
		r.Verdict, r.Why = VerdictSound, "every element comes once"
	case r.Equal && r.Factor > 1:
		r.Verdict, r.Why = VerdictProduct, fmt.Sprintf("all %d subtasks hold the same list", len(lists))
	case len(lists) == 1:
		r.Verdict, r.Why = VerdictNotSure, "one subtask holds it all, and repeats elements"
	case r.Equal:
		r.Verdict, r.Why = VerdictNotSure, "its subtasks hold the same list, but counts are not what restores make of them"
	default:
		r.Verdict, r.Why = VerdictNotSure, "its subtasks hold different lists"
	}
}
