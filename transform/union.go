package transform

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/internal/tally"
)

// Verdict is what a union state looks like.
type Verdict string

// The verdicts.
const (
	// VerdictProduct: restores multiplied it. Every subtask holds the same
	// elements, each as often as every other subtask does. The order may differ:
	// Flink assigns the handles of a union state to some subtasks in another order
	// than to the others, from about 10 subtasks on.
	VerdictProduct Verdict = "duplicated by restores"
	// VerdictNotSure: elements repeat, and restores need not be the reason.
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
	// Fewest and Most elements that a subtask holds.
	Fewest, Most int64
	// Held is the number of different elements of each subtask, summed over the
	// subtasks: Held-Distinct duplicates are in other subtasks, Elements-Held in
	// a subtask that holds the element already.
	Held int64
	// Common is the number of different elements that every one of several
	// subtasks holds.
	Common int64
	// Equal: every subtask of the operator holds the same elements, each as often
	// as every other subtask does, in any order.
	Equal bool
	// SameOrder: Equal, and in the same order.
	SameOrder bool
	// Factor is the largest power of the number of subtasks that divides every
	// count: restores at this parallelism explain it. 1: none.
	Factor int64
	// MaxFactor is the greatest common divisor of the counts: restores at any
	// parallelisms multiplied all elements by no more than this. 0: no element.
	MaxFactor int64
	Verdict   Verdict
	Why       string
	// Err is why the state could not be read: nothing else is known of it. It is
	// nil unless UnionOptions.Partial is set.
	Err error

	alike bool // all subtasks describe it alike
}

// Repeats reports whether elements come several times and what the subtasks hold
// does not show that restores are the reason.
func (r *UnionReport) Repeats() bool { return r.Verdict == VerdictNotSure && r.alike }

// Suspicious reports whether restores may be the reason that elements repeat though
// the subtasks do not hold the same: on average each comes twice or more, or
// several are in each of three or more subtasks, or most in each of two, next to
// elements that those added since. Subtasks that each hold one element, such as a counter, are not
// suspicious when the values are equal.
func (r *UnionReport) Suspicious() bool {
	return r.Repeats() && r.Elements > int64(r.Subtasks) &&
		(r.Elements >= 2*r.Distinct || r.Common >= 2 && (r.Subtasks >= 3 || 2*r.Common > r.Distinct))
}

// OneEach reports whether every subtask holds one element and all are equal: a
// product of restores, or what subtasks write that each write one equal value, such
// as a counter.
func (r *UnionReport) OneEach() bool { return r.Verdict == VerdictProduct && r.Most == 1 }

// Numbers says how often the elements come, and how many a subtask holds.
func (r *UnionReport) Numbers() string {
	span := func(lo, hi int64) string {
		if lo == hi {
			return number.Count(lo)
		}
		return number.Count(lo) + " to " + number.Count(hi)
	}
	text := fmt.Sprintf("%s elements, %s different, each %s times", number.Count(r.Elements), number.Count(r.Distinct), span(r.MinCopies, r.MaxCopies))
	if r.Subtasks == 1 {
		return text + ", in one subtask"
	}
	text += fmt.Sprintf(", %s in each of %d subtasks", span(r.Fewest, r.Most), r.Subtasks)
	if r.Common > 0 && r.Common < r.Distinct {
		text += fmt.Sprintf(", %s in all of them", number.Count(r.Common))
	}
	return text
}

// TempError is an error of a temporary file, of which nothing follows for the
// snapshot.
type TempError = tally.TempError

// UnionOptions choose union states; the zero value chooses all.
type UnionOptions struct {
	Operators format.Selector
	States    format.Globs
	// Partial reports a state that cannot be read with its Err, instead of ending
	// with that error.
	Partial bool
	// TempDir is the directory of temporary files; "": that of the system.
	TempDir string
}

// DiagnoseUnions reports of each union state that o chooses how often its
// elements occur and whether restores multiplied them. It reads every element
// once. Memory is bounded: where more than about a million elements are different,
// digests go to a temporary file, 40 bytes for each.
func DiagnoseUnions(ctx context.Context, in format.View, o UnionOptions) ([]*UnionReport, error) {
	pick, err := o.pick(in)
	if err != nil {
		return nil, err
	}
	var all []*UnionReport
	for _, u := range describedUnions(ctx, in, pick) {
		r, err := u.diagnose(ctx, in, tally.Options{Dir: o.TempDir})
		if err != nil {
			err = format.At(err, "operator %q", u.op.Label())
			if !o.Partial || ctx.Err() != nil || errors.Is(err, format.ErrChanged) || errors.As(err, new(*TempError)) {
				return nil, err
			}
			r = &UnionReport{Operator: u.op, State: u.name.String(), Err: err}
		}
		all = append(all, r)
	}
	return all, nil
}

// pick makes the choice. Names that no state of the operators has are an error; those
// of states of other modes are not.
func (o *UnionOptions) pick(in format.View) (func(op *format.Operator, state string) bool, error) {
	chosen, err := o.Operators.Set(in.Savepoint)
	if err != nil {
		return nil, err
	}
	if err := o.States.Check("state", managedStates(in.Savepoint, chosen)); err != nil {
		return nil, err
	}
	return func(op *format.Operator, state string) bool { return chosen[op] && o.States.Match(state) }, nil
}

func (u *unionState) diagnose(ctx context.Context, in format.View, o tally.Options) (*UnionReport, error) {
	c, err := u.count(ctx, in, o)
	if err != nil {
		return nil, err
	}
	return c.report, c.close()
}

// pickUnions makes a choice of states of operators and names. Names that no union
// state of these operators has are an error.
func pickUnions(in format.View, operators format.Selector, states format.Globs) (func(op *format.Operator, state string) bool, error) {
	chosen, err := operators.Set(in.Savepoint)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, u := range unionStates(in.Savepoint, func(op *format.Operator, _ string) bool { return chosen[op] }) {
		names = append(names, u.name.String())
	}
	if err := states.Check("union state", names); err != nil {
		return nil, err
	}
	return func(op *format.Operator, state string) bool { return chosen[op] && states.Match(state) }, nil
}

// unionState is one union (or broadcast) state and its handles, in the order of
// the subtasks.
type unionState struct {
	op       *format.Operator
	name     format.Text
	handles  []*format.OperatorHandle
	states   []int   // index in each handle
	subtasks []int32 // whose handle it is
	total    int64
	expected int // subtasks that would hold the state if restores had multiplied it
	// alike: all handles describe the state alike, so that equal bytes are equal
	// elements, and an element can move from one to another. Known of described ones.
	alike bool
	err   error // why it is not known
}

// unionStates finds the union states of a savepoint that pick chooses.
func unionStates(sp *format.Savepoint, pick func(op *format.Operator, state string) bool) []*unionState {
	return statesOf(sp, format.ModeUnion, pick)
}

// statesOf finds the states of a mode that pick chooses.
func statesOf(sp *format.Savepoint, mode format.Mode, pick func(op *format.Operator, state string) bool) []*unionState {
	var all []*unionState
	for _, op := range sp.Operators {
		byName := map[format.Text]*unionState{}
		present, finished := 0, 0
		var mine []*unionState
		subs := slices.Clone(op.Subtasks)
		slices.SortStableFunc(subs, func(a, b *format.Subtask) int { return int(a.Index) - int(b.Index) })
		for _, sub := range subs {
			if sub.Finished {
				finished++
				continue
			}
			present++
			if sub.Managed == nil {
				continue
			}
			for k, st := range sub.Managed.States {
				if st.Mode != mode || pick != nil && !pick(op, st.Name.String()) {
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
				u.subtasks = append(u.subtasks, sub.Index)
				u.total += st.Offsets.Len()
			}
		}
		for _, u := range mine {
			// A subtask that the snapshot does not name holds nothing.
			u.expected = max(present, int(op.Parallelism)-finished)
		}
		all = append(all, mine...)
	}
	return all
}

// each calls f with every element, in the order of the subtasks. The value is
// valid until f returns.
func (u *unionState) each(ctx context.Context, in format.View, f func(subtask int, index int64, value []byte) error) error {
	for i, h := range u.handles {
		codec, err := in.Codec(h.Codec)
		if err != nil {
			return err
		}
		if err := format.EachElement(ctx, in.Source, codec, h, u.name.String(), func(e format.Element) error { return f(i, e.Index, e.Value) }); err != nil {
			return format.At(err, "state %q", u.name)
		}
	}
	return nil
}

// describedUnions finds the union states of a savepoint that pick chooses, and
// whether the handles of each describe it alike. It reads the description of each
// handle once.
func describedUnions(ctx context.Context, in format.View, pick func(op *format.Operator, state string) bool) []*unionState {
	all := unionStates(in.Savepoint, pick)
	for rest := all; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(u *unionState) bool { return u.op != rest[0].op })
		if n < 0 {
			n = len(rest)
		}
		describe(ctx, in, rest[:n])
		rest = rest[n:]
	}
	return all
}

// describe does that for the states of one operator.
func describe(ctx context.Context, in format.View, states []*unionState) {
	type inHandle struct{ state, i int }
	var handles []*format.OperatorHandle
	of := map[*format.OperatorHandle][]inHandle{}
	for k, u := range states {
		u.alike = true
		for i, h := range u.handles {
			if of[h] == nil {
				handles = append(handles, h)
			}
			of[h] = append(of[h], inHandle{k, i})
		}
	}
	first := make([]*format.StateMeta, len(states))
	for _, h := range handles {
		metas, err := describeHandle(ctx, in, h)
		byName := map[format.Text]*format.StateMeta{}
		for k := range metas {
			if metas[k].Mode == format.ModeUnion {
				byName[metas[k].Name] = &metas[k]
			}
		}
		for _, x := range of[h] {
			u, m := states[x.state], byName[states[x.state].name]
			switch {
			case u.err != nil || !u.alike:
			case err != nil:
				u.err = err
			case m == nil:
				u.err = format.Errorf(format.ErrCorrupt, "state %q of the handle is not in its stream", u.name)
			case first[x.state] == nil:
				first[x.state] = m
			case h.Codec != u.handles[0].Codec || !bytes.Equal(first[x.state].Envelope, m.Envelope) || m.Envelope == nil && first[x.state].Encoding != m.Encoding:
				u.alike = false
			}
		}
	}
}

func describeHandle(ctx context.Context, in format.View, h *format.OperatorHandle) ([]format.StateMeta, error) {
	codec, err := in.Codec(h.Codec)
	if err != nil {
		return nil, err
	}
	return codec.Describe(ctx, in.Source, h)
}

// census is the elements of a union state, counted.
type census struct {
	u       *unionState
	in      format.View
	hash    hash128.Hasher
	counter *tally.Counter
	report  *UnionReport
}

// count goes through the elements of a described state once. The caller closes the
// census.
func (u *unionState) count(ctx context.Context, in format.View, o tally.Options) (*census, error) {
	if u.err != nil {
		return nil, u.err
	}
	c := &census{u: u, in: in, hash: hash128.New(), counter: tally.New(o)}
	if err := c.count(ctx); err != nil {
		return nil, cmp.Or(err, c.close())
	}
	return c, nil
}

func (c *census) close() error { return c.counter.Close() }

func (c *census) count(ctx context.Context) error {
	r := &UnionReport{Operator: c.u.op, State: c.u.name.String(), Subtasks: len(c.u.handles), Elements: c.u.total, Factor: 1}
	c.report = r
	lists := make([]listDigest, len(c.u.handles))
	for i := range lists {
		lists[i].hash.SetSeed(orderSeed)
	}
	number := int64(-1)
	err := c.u.each(ctx, c.in, func(handle int, _ int64, value []byte) error {
		number++
		d := c.hash.Sum(value)
		r.Bytes += int64(len(value))
		lists[handle].add(d)
		return c.counter.Add(tally.Element{Digest: d, Number: number, Group: uint16(handle), Size: len(value)})
	})
	if err != nil {
		return c.at(err)
	}
	common := uint64(0)
	err = c.counter.Each(func(e *tally.Entry) error {
		k := int64(e.Count)
		if r.Distinct++; r.MinCopies == 0 || k < r.MinCopies {
			r.MinCopies = k
		}
		r.MaxCopies = max(r.MaxCopies, k)
		r.DistinctBytes += int64(e.Size)
		r.Held += int64(e.Groups)
		if n := len(c.u.handles); n > 1 && int(e.Groups) == n {
			r.Common++
		}
		common = gcd(common, uint64(k))
		return nil
	})
	if err != nil {
		return c.at(err)
	}
	r.judge(c.u, lists, common)
	return nil
}

// firsts calls f with the number of each element that occurs for the first time,
// in no particular order.
func (c *census) firsts(f func(number int64)) error {
	return c.at(c.counter.Each(func(e *tally.Entry) error {
		f(e.First)
		return nil
	}))
}

// quotas calls f with the numbers of the first 1/divisor of the occurrences of
// each element, in no particular order. It goes through the elements once more.
func (c *census) quotas(ctx context.Context, divisor int64, f func(number int64)) error {
	each := func(visit func(d hash128.Digest, number int64) error) error {
		number := int64(-1)
		return c.u.each(ctx, c.in, func(_ int, _ int64, value []byte) error {
			number++
			return visit(c.hash.Sum(value), number)
		})
	}
	quota := func(e *tally.Entry) { e.Size = uint32(int64(e.Count) / divisor) }
	return c.at(c.counter.Replay(each, quota, func(number int64, e *tally.Entry) {
		if e.Size > 0 {
			e.Size--
			f(number)
		}
	}))
}

// at names the state in an error of the counter that is about its elements.
func (c *census) at(err error) error {
	if err == tally.ErrTooOften || err == tally.ErrNotCounted {
		return format.At(err, "state %q", c.u.name)
	}
	return err
}

// listDigest is the digest of the elements of a subtask: as a multiset, whose
// order does not count, and as a list.
type listDigest struct {
	bag  hash128.Multiset
	hash maphash.Hash
}

// orderSeed is that of the digests of lists.
var orderSeed = maphash.MakeSeed()

// add appends an element: all 128 bits of its digest.
func (l *listDigest) add(d hash128.Digest) {
	l.bag.Add(d)
	var p [16]byte
	binary.LittleEndian.PutUint64(p[:], d.Hi)
	binary.LittleEndian.PutUint64(p[8:], d.Lo)
	_, _ = l.hash.Write(p[:]) // never fails
}

func (l *listDigest) sum() uint64 { return l.hash.Sum64() }

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// judge says what the counts mean.
func (r *UnionReport) judge(u *unionState, lists []listDigest, common uint64) {
	r.alike = u.alike
	r.MaxFactor = int64(common)
	r.Equal = u.alike && len(lists) > 0 && len(lists) == u.expected
	r.SameOrder = true
	r.Fewest = lists[0].bag.N
	for i := range lists {
		r.Fewest, r.Most = min(r.Fewest, lists[i].bag.N), max(r.Most, lists[i].bag.N)
		if lists[i].bag != lists[0].bag || i > 0 && u.subtasks[i] == u.subtasks[i-1] {
			r.Equal = false
		}
		if lists[i].sum() != lists[0].sum() {
			r.SameOrder = false
		}
	}
	r.SameOrder = r.SameOrder && r.Equal
	p := uint64(len(lists))
	for p > 1 && common > 0 && common%(uint64(r.Factor)*p) == 0 {
		r.Factor *= int64(p)
	}
	switch {
	case r.Elements == 0:
		r.Verdict, r.Why = VerdictSound, "it holds no element"
	case !u.alike:
		r.Verdict, r.Why = VerdictNotSure, "its subtasks describe it differently, so equal bytes need not be equal elements"
	case r.Distinct == r.Elements:
		r.Verdict, r.Why = VerdictSound, "every element comes once"
	case len(lists) == 1:
		r.Verdict, r.Why = VerdictNotSure, "one subtask holds it all, and repeats elements"
	case r.SameOrder:
		r.Verdict, r.Why = VerdictProduct, fmt.Sprintf("all %d subtasks hold the same list", len(lists))
	case r.Equal:
		r.Verdict, r.Why = VerdictProduct, fmt.Sprintf("all %d subtasks hold the same elements, not all in the same order", len(lists))
	case len(lists) < u.expected:
		r.Verdict, r.Why = VerdictNotSure, fmt.Sprintf("only %d of %d subtasks hold it", len(lists), u.expected)
	case r.Held == r.Distinct:
		r.Verdict, r.Why = VerdictNotSure, "no element is in two subtasks, and elements repeat inside them"
	default:
		r.Verdict, r.Why = VerdictNotSure, "its subtasks hold different elements"
	}
	if r.OneEach() {
		r.Why += ", one each, which is also what subtasks do that each write one equal value"
	}
}
