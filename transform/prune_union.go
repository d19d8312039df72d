package transform

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/tally"
	"github.com/savepoint-tools/spt/transform/internal/elements"
)

// Keep is the policy by which duplicates are removed.
type Keep string

// The policies.
const (
	// KeepDistinct keeps the first of each equal element.
	KeepDistinct Keep = "distinct"
	// KeepCopies divides the count of each element by the proven factor, so that
	// genuine repetitions survive.
	KeepCopies Keep = "copies"
	// KeepFirstSubtask keeps the list of the first subtask, if all subtasks hold the
	// same elements.
	KeepFirstSubtask Keep = "first-subtask"
	// KeepModulo keeps the list of the first subtask, and in subtask i its elements
	// whose number % p is i, as a correct job would have, if all subtasks hold the
	// same elements.
	KeepModulo Keep = "modulo"
	// KeepLatestBy keeps the last element of each identity, in the order of subtasks
	// and indexes. The identity of an element is the values of the fields By.
	KeepLatestBy Keep = "latest-by"
	// KeepMaxBy keeps the element with the largest value of the field Max of each
	// identity, and of several the first.
	KeepMaxBy Keep = "max-by"
)

// Keeps returns the policies.
func Keeps() []Keep {
	return []Keep{KeepDistinct, KeepCopies, KeepFirstSubtask, KeepModulo, KeepLatestBy, KeepMaxBy}
}

// PlaceKept is where kept elements are stored.
type PlaceKept string

// The values of PlaceKept.
const (
	PlaceStay   PlaceKept = "stay"   // where they were first seen
	PlaceFirst  PlaceKept = "first"  // all to the first subtask that holds the state
	PlaceSpread PlaceKept = "spread" // evenly over the subtasks that hold it, in order
)

// PruneOptions are the options of PruneUnion.
type PruneOptions struct {
	// Operators and States select union states; nil means all.
	Operators format.Selector
	States    format.Globs
	// Keep is the policy. It is required: the caller must decide which duplicates to
	// keep.
	Keep Keep
	// By names the fields that identify an element, such as "topic", "split.partition"
	// or "[0]"; Max the field of KeepMaxBy: an integer, a float, a string or an instant.
	// Values returns the codecs of the values of a state of a handle. They are for
	// KeepLatestBy and KeepMaxBy, which read states that are not proven to be duplicated,
	// too: elements of one identity need not be equal.
	By     []string
	Max    string
	Values func(ctx context.Context, h *format.OperatorHandle, state int) (value.ElementCodecs, error)
	// Place is where kept elements are stored; "" means PlaceStay.
	Place PlaceKept
	// Compact removes the state from all subtasks but the first that holds it, with
	// their handles if these have no other state. The kept elements are stored in
	// that one, regardless of Place. A restore opens each handle that names a union
	// state in every subtask, even without elements.
	Compact bool
	// AcceptUnproven also prunes state that is not proven to be duplicated by
	// restores.
	AcceptUnproven bool
	// TempDir is the directory of temporary files; "" means the system's.
	TempDir string
	// Jobs is the number of ranges of elements read at once; 0 means one per
	// processor. The result does not depend on it.
	Jobs int
}

// PruneReport describes the selected union states, in file order.
type PruneReport struct{ States []*PrunedState }

// PrunedState is the result for one union state.
type PrunedState struct {
	UnionReport
	// Skipped is why the state is unchanged; "" if it was pruned.
	Skipped string
	Kept    int64
	// BytesAfter is the size of the kept elements; Bytes is the size of all.
	BytesAfter int64
	// MinKept and MaxKept are the smallest and largest number of occurrences of a
	// kept element.
	MinKept, MaxKept int64
	// Divided is the number by which the count of each element was divided; 0 if one
	// of each is kept.
	Divided int64
}

// Remaining is the number of duplicates among the kept elements.
func (p *PrunedState) Remaining() int64 { return max(0, p.Kept-p.Distinct) }

// PruneUnion removes duplicates from union states. State that is not proven to be
// duplicated by restores is unchanged and reported, unless AcceptUnproven is set.
// The rest of the savepoint is unchanged. Apart from the memory for counting,
// memory use grows with the number of runs of kept elements.
func PruneUnion(ctx context.Context, in format.View, o PruneOptions) (format.View, *PruneReport, error) {
	switch o.Keep {
	case KeepDistinct, KeepCopies, KeepFirstSubtask, KeepModulo, KeepLatestBy, KeepMaxBy:
	default:
		return in, nil, fmt.Errorf("policy %q: expected one of %q", o.Keep, Keeps())
	}
	if _, err := o.identity(); err != nil {
		return in, nil, err
	}
	switch o.Place {
	case "":
		o.Place = PlaceStay
	case PlaceStay, PlaceFirst, PlaceSpread:
	default:
		return in, nil, fmt.Errorf("location %q: expected %s, %s or %s", o.Place, PlaceStay, PlaceFirst, PlaceSpread)
	}
	pick, err := pickUnions(in, o.Operators, o.States)
	if err != nil {
		return in, nil, err
	}
	report := &PruneReport{}
	edits := handleEdits{}
	reader := elements.NewReader(in, hash128.New(), nil)
	for _, u := range describedUnions(ctx, in, pick) {
		p, err := u.prune(ctx, in, reader, o, tally.Options{Dir: o.TempDir}, edits)
		if err != nil {
			return in, nil, format.At(err, "operator %q", u.op.Label())
		}
		report.States = append(report.States, p)
	}
	sp, err := editHandles(ctx, in, edits)
	if err != nil {
		return in, nil, err
	}
	return in.With(sp), report, nil
}

// handleEdits are the edits of handles, by the index of the state.
type handleEdits map[*format.OperatorHandle]map[int]stateEdit

// stateEdit is the new content of a state, or its removal.
type stateEdit struct {
	runs []format.ElementRun
	cut  *format.MapCut // of the map of a broadcast state; nil if unchanged
	drop bool
}

func (e handleEdits) add(h *format.OperatorHandle, state int, edit stateEdit) {
	if e[h] == nil {
		e[h] = map[int]stateEdit{}
	}
	e[h][state] = edit
}

// prune finds the elements of one state to keep, and records them as edits.
func (u *unionState) prune(ctx context.Context, in format.View, r *elements.Reader, o PruneOptions, t tally.Options, edits handleEdits) (*PrunedState, error) {
	c, err := u.count(ctx, r, o.Jobs, t)
	if err != nil {
		return nil, err
	}
	p, err := c.prune(ctx, in, o, edits)
	return p, cmp.Or(err, c.close())
}

func (c *census) prune(ctx context.Context, in format.View, o PruneOptions, edits handleEdits) (*PrunedState, error) {
	var keep bitmap
	var err error
	u, r := c.u, c.report
	p := &PrunedState{UnionReport: *r, Kept: r.Elements, BytesAfter: r.Bytes, MinKept: r.MinCopies, MaxKept: r.MaxCopies, Divided: 1}
	if p.Skipped = skip(r, o); p.Skipped != "" {
		return p, nil
	}
	// Policies that keep one list need subtasks that hold the same elements, so each
	// list is an equal part of all elements and bytes.
	n := int64(len(u.handles))
	length := r.Elements / n
	var moved [][]format.ElementRun // only if elements change their subtask
	switch o.Keep {
	case KeepDistinct:
		p.Kept, p.BytesAfter, p.Divided = r.Distinct, r.DistinctBytes, 0
		err = c.firsts(keep.set)
	case KeepCopies:
		p.Divided = r.Factor
		err = c.quotas(ctx, r.Factor, keep.set)
	case KeepFirstSubtask:
		p.Divided = n
		for i := range length {
			keep.set(i)
		}
	case KeepModulo:
		p.Divided = n
		if !r.SameOrder {
			moved = u.byModulo(length)
			break
		}
		for i := range length {
			keep.set(i%n*length + i)
		}
	case KeepLatestBy, KeepMaxBy:
		p.Divided = 0
		p.Kept, p.BytesAfter, err = u.byIdentity(ctx, in, &o, keep.set)
		if err == nil && p.Kept == r.Elements {
			p.Skipped = "each identity occurs once"
			return p, nil
		}
	}
	switch p.Divided {
	case 0:
		p.MinKept, p.MaxKept = 1, 1
	default:
		p.Kept, p.BytesAfter, p.MinKept, p.MaxKept = r.Elements/p.Divided, r.Bytes/p.Divided, r.MinCopies/p.Divided, r.MaxCopies/p.Divided
	}
	if err != nil {
		return nil, err
	}
	if o.Compact {
		o.Place = PlaceFirst
	}
	if moved == nil {
		moved = u.runs(keep)
	}
	runs, kept := placeRuns(moved, o.Place, p.Kept)
	if kept != p.Kept {
		return nil, format.Errorf(format.ErrChanged, "state %q: expected %d elements to keep, found %d", u.name, p.Kept, kept)
	}
	for i, h := range u.handles {
		edits.add(h, u.states[i], stateEdit{runs: runs[i], drop: o.Compact && i > 0})
	}
	return p, nil
}

// runs returns the elements in a set as runs, by handle.
func (u *unionState) runs(keep bitmap) [][]format.ElementRun {
	all := make([][]format.ElementRun, len(u.handles))
	var number int64
	for i, h := range u.handles {
		n := h.States[u.states[i]].Offsets.Len()
		keep.runs(number, n, func(at, count int64) {
			all[i] = append(all[i], format.ElementRun{Handle: h, State: u.states[i], First: at, Count: count})
		})
		number += n
	}
	return all
}

// byModulo returns the elements of the first handle, element i for handle i modulo
// the number of handles. The other lists have other orders: their elements of the
// same numbers are other elements, so some would be lost and some kept twice.
func (u *unionState) byModulo(length int64) [][]format.ElementRun {
	all := make([][]format.ElementRun, len(u.handles))
	n := int64(len(all))
	for i := range length {
		all[i%n] = append(all[i%n], format.ElementRun{Handle: u.handles[0], State: u.states[0], First: i, Count: 1})
	}
	return all
}

// skip returns why a state is unchanged, or "".
func skip(r *UnionReport, o PruneOptions) string {
	switch {
	case !r.alike:
		return r.Why
	case o.Keep == KeepLatestBy, o.Keep == KeepMaxBy:
		return ""
	case r.Verdict == VerdictSound:
		return r.Why
	case (o.Keep == KeepFirstSubtask || o.Keep == KeepModulo) && !r.Equal:
		return fmt.Sprintf("%s, and keeping %q needs subtasks that hold the same", r.Why, o.Keep)
	case o.Keep == KeepCopies && r.Factor == 1:
		return "there is no factor to divide by: " + r.Why
	case r.Verdict == VerdictNotSure && !o.AcceptUnproven:
		return "not proven to be duplicated by restores: " + r.Why
	}
	return ""
}

// placeRuns moves runs to their new handles and counts their elements; total is
// the expected count.
func placeRuns(runs [][]format.ElementRun, place PlaceKept, total int64) (placed [][]format.ElementRun, n int64) {
	all := slices.Concat(runs...)
	for _, r := range all {
		n += r.Count
	}
	placed = make([][]format.ElementRun, len(runs))
	switch {
	case place == PlaceFirst:
		placed[0] = all
	case place == PlaceSpread && n == total:
		// Contiguous blocks, the first ones an element longer.
		p := int64(len(runs))
		for i := range placed {
			block := total / p
			if int64(i) < total%p {
				block++
			}
			placed[i], all = takeRuns(all, block)
		}
	default:
		return runs, n
	}
	return placed, n
}

// takeRuns cuts off the first n elements.
func takeRuns(runs []format.ElementRun, n int64) (taken, rest []format.ElementRun) {
	for n > 0 {
		r := runs[0]
		if r.Count > n {
			runs[0].First += n
			runs[0].Count -= n
			r.Count = n
		} else {
			runs = runs[1:]
		}
		taken = append(taken, r)
		n -= r.Count
	}
	return taken, runs
}

// editHandles rebuilds the handles that have edits.
func editHandles(ctx context.Context, in format.View, edits handleEdits) (*format.Savepoint, error) {
	if len(edits) == 0 {
		return in.Savepoint, nil
	}
	return in.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		return edits.apply(ctx, in, op)
	})
}

// apply rebuilds the handles of an operator that have edits.
func (e handleEdits) apply(ctx context.Context, in format.View, op *format.Operator) (*format.Operator, error) {
	edited := func(h *format.OperatorHandle) (*format.OperatorHandle, error) {
		if h == nil || e[h] == nil {
			return h, nil
		}
		return rebuild(ctx, in, h, e[h])
	}
	return op.MapSubtasks(func(sub *format.Subtask) (*format.Subtask, error) {
		managed, err := edited(sub.Managed)
		if err != nil {
			return nil, err
		}
		raw, err := edited(sub.Raw)
		if err != nil || managed == sub.Managed && raw == sub.Raw {
			return sub, err
		}
		c := *sub
		c.Managed, c.Raw = managed, raw
		return &c, nil
	})
}
