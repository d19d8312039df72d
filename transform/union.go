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
	"github.com/savepoint-tools/spt/transform/internal/elements"
)

// Verdict is the result of a diagnosis of a union state.
type Verdict string

// The verdicts.
const (
	// VerdictProduct means that restores multiplied it. Every subtask holds the same
	// elements equally often. The order may differ: with about 10 or more subtasks,
	// Flink assigns the handles of a union state to some subtasks in another order.
	VerdictProduct Verdict = "duplicated by restores"
	// VerdictNotSure means that elements repeat, possibly legitimately.
	VerdictNotSure Verdict = "not sure"
	// VerdictSound means that no element repeats.
	VerdictSound Verdict = "nothing repeats"
)

// UnionReport describes the elements of one union state.
type UnionReport struct {
	Operator *format.Operator
	State    string
	Subtasks int // subtasks that hold it
	Elements int64
	Bytes    int64
	// Distinct elements, and their size without duplicates.
	Distinct, DistinctBytes int64
	// MinCopies and MaxCopies are the smallest and largest number of occurrences of
	// an element.
	MinCopies, MaxCopies int64
	// Fewest and Most are the smallest and largest number of elements in a subtask.
	Fewest, Most int64
	// Held is the number of distinct elements of each subtask, summed over the
	// subtasks: Held-Distinct duplicates are in other subtasks, Elements-Held in a
	// subtask that already holds the element.
	Held int64
	// Common is the number of distinct elements that all of several subtasks hold.
	Common int64
	// Equal is set if every subtask of the operator holds the same elements equally
	// often, in any order.
	Equal bool
	// SameOrder is set if they are Equal and in the same order.
	SameOrder bool
	// Factor is the largest power of the number of subtasks that divides every count:
	// restores at this parallelism explain it. 1 means none.
	Factor int64
	// MaxFactor is the greatest common divisor of the counts: restores at any
	// parallelism multiplied all elements by at most this. 0 if there are no
	// elements.
	MaxFactor int64
	Verdict   Verdict
	Why       string
	// Err is why the state could not be read; then the other fields are not set. It
	// is nil unless UnionOptions.Partial is set.
	Err error

	alike bool // all subtasks have the same serializer snapshot
}

// Repeats reports whether elements repeat without evidence that restores are the
// reason.
func (r *UnionReport) Repeats() bool { return r.Verdict == VerdictNotSure && r.alike }

// Suspicious reports whether restores may be the reason that elements repeat
// although the subtasks hold different elements: on average each occurs at least
// twice, or several are in each of three or more subtasks, or most are in each of
// two, next to elements added since. Equal values of subtasks that each hold one
// element, such as a counter, are not suspicious.
func (r *UnionReport) Suspicious() bool {
	return r.Repeats() && r.Elements > int64(r.Subtasks) &&
		(r.Elements >= 2*r.Distinct || r.Common >= 2 && (r.Subtasks >= 3 || 2*r.Common > r.Distinct))
}

// OneEach reports whether every subtask holds one element and all are equal:
// restores duplicated it, or each subtask writes one equal value, such as a
// counter.
func (r *UnionReport) OneEach() bool { return r.Verdict == VerdictProduct && r.Most == 1 }

// Numbers returns a text with the counts of the elements, in total and per
// subtask.
func (r *UnionReport) Numbers() string {
	span := func(lo, hi int64) string {
		if lo == hi {
			return number.Count(lo)
		}
		return number.Count(lo) + " to " + number.Count(hi)
	}
	text := fmt.Sprintf("%s elements, %s distinct, each %s times", number.Count(r.Elements), number.Count(r.Distinct), span(r.MinCopies, r.MaxCopies))
	if r.Subtasks == 1 {
		return text + ", in one subtask"
	}
	text += fmt.Sprintf(", %s in each of %d subtasks", span(r.Fewest, r.Most), r.Subtasks)
	if r.Common > 0 && r.Common < r.Distinct {
		text += fmt.Sprintf(", %s in all of them", number.Count(r.Common))
	}
	return text
}

// TempError is an error of a temporary file; it is not an error of the snapshot.
type TempError = tally.TempError

// UnionOptions select union states; the zero value selects all.
type UnionOptions struct {
	Operators format.Selector
	States    format.Globs
	// Partial reports a state that cannot be read with its Err, instead of ending
	// with that error.
	Partial bool
	// TempDir is the directory of temporary files; "" means the system's.
	TempDir string
	// Jobs is the number of ranges of elements read at once; 0 means one per
	// processor. The reports do not depend on it.
	Jobs int
}

// DiagnoseUnions reports, for each union state that o selects, how often its
// elements occur and whether restores multiplied them. It reads every element
// once. Memory use is bounded: with more than about a million distinct elements,
// digests are written to a temporary file, 40 bytes for each.
func DiagnoseUnions(ctx context.Context, in format.View, o UnionOptions) ([]*UnionReport, error) {
	pick, err := o.pick(in)
	if err != nil {
		return nil, err
	}
	var all []*UnionReport
	reader := elements.NewReader(in, hash128.New(), nil)
	for _, u := range describedUnions(ctx, in, pick) {
		r, err := u.diagnose(ctx, reader, o.Jobs, tally.Options{Dir: o.TempDir})
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

// pick resolves the selection. Names that no state of the operators has are an
// error; names of states of other modes are not.
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

func (u *unionState) diagnose(ctx context.Context, r *elements.Reader, jobs int, o tally.Options) (*UnionReport, error) {
	c, err := u.count(ctx, r, jobs, o)
	if err != nil {
		return nil, err
	}
	return c.report, c.close()
}

// pickUnions returns a selection of states by operators and names. Names that no
// union state of these operators has are an error.
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
	subtasks []int32 // subtask of each handle
	total    int64
	expected int // subtasks that would hold the state if restores had multiplied it
	// alike is set if all handles have the same serializer snapshot, so that equal
	// bytes are equal elements, and an element can move between them. Set by
	// describe.
	alike bool
	err   error // why it is unknown
}

// unionStates returns the union states of a savepoint that pick selects.
func unionStates(sp *format.Savepoint, pick func(op *format.Operator, state string) bool) []*unionState {
	return statesOf(sp, format.ModeUnion, pick)
}

// statesOf returns the states of a mode that pick selects.
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
			// A subtask that is not in the snapshot has no state.
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

// describedUnions returns the union states of a savepoint that pick selects, and
// sets alike. It reads the header of each handle once.
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

// census holds the counts of the elements of a union state.
type census struct {
	u       *unionState
	reader  *elements.Reader
	jobs    int
	counter *tally.Counter
	report  *UnionReport
}

// count reads the elements of a described state once. The caller closes the
// census.
func (u *unionState) count(ctx context.Context, r *elements.Reader, jobs int, o tally.Options) (*census, error) {
	if u.err != nil {
		return nil, u.err
	}
	c := &census{u: u, reader: r, jobs: jobs, counter: tally.New(o)}
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
	err := c.each(ctx, func(handle int, e tally.Element) error {
		r.Bytes += int64(e.Size)
		lists[handle].add(e.Digest)
		return c.counter.Add(e)
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

// each calls f with every element, in order.
func (c *census) each(ctx context.Context, f func(handle int, e tally.Element) error) error {
	parts := make([]elements.Part, len(c.u.handles))
	for i, h := range c.u.handles {
		parts[i] = elements.Part{Handle: h, State: c.u.states[i], Subtask: c.u.subtasks[i]}
	}
	o := elements.Options{Jobs: c.jobs, At: func(_ int, err error) error { return format.At(err, "state %q", c.u.name) }}
	return c.reader.Count(ctx, parts, o, nil, f)
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
// each element, in no particular order. It reads the elements again.
func (c *census) quotas(ctx context.Context, divisor int64, f func(number int64)) error {
	each := func(visit func(d hash128.Digest, number int64) error) error {
		return c.each(ctx, func(_ int, e tally.Element) error { return visit(e.Digest, e.Number) })
	}
	quota := func(e *tally.Entry) { e.Size = uint32(int64(e.Count) / divisor) }
	return c.at(c.counter.Replay(each, quota, func(number int64, e *tally.Entry) {
		if e.Size > 0 {
			e.Size--
			f(number)
		}
	}))
}

// at adds the state to an error of the counter about its elements.
func (c *census) at(err error) error {
	if errors.Is(err, tally.ErrTooOften) || errors.Is(err, tally.ErrNotCounted) {
		return format.At(err, "state %q", c.u.name)
	}
	return err
}

// listDigest is the digest of the elements of a subtask, as a multiset and as a
// list.
type listDigest struct {
	bag  hash128.Multiset
	hash maphash.Hash
}

// orderSeed is the seed of the digests of lists.
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

// judge sets the verdict from the counts.
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
		r.Verdict, r.Why = VerdictNotSure, "its subtasks have different serializer snapshots, so equal bytes need not be equal elements"
	case r.Distinct == r.Elements:
		r.Verdict, r.Why = VerdictSound, "every element occurs once"
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
		r.Why += ", one each, which also happens if each subtask writes one equal value"
	}
}
