package transform

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
)

// Keep is the policy by which copies are removed.
type Keep string

// The policies.
const (
	// KeepDistinct keeps the first of each equal element.
	KeepDistinct Keep = "distinct"
	// KeepCopies divides how often each element comes by the factor that is
	// proven, so that honest repetitions survive.
	KeepCopies Keep = "copies"
	// KeepFirstSubtask keeps the list of the first subtask; only where all are
	// equal.
	KeepFirstSubtask Keep = "first-subtask"
	// KeepModulo keeps in subtask i the elements of its own list whose number
	// % p is i: the filter that the job should have had; only where all lists
	// are equal.
	KeepModulo Keep = "modulo"
)

// PlaceKept is where kept elements go.
type PlaceKept string

// The places.
const (
	PlaceStay   PlaceKept = "stay"   // where they were first seen
	PlaceFirst  PlaceKept = "first"  // all to the first subtask that holds the state
	PlaceSpread PlaceKept = "spread" // evenly over the subtasks that hold it, in order
)

// PruneOptions say what is pruned, and how.
type PruneOptions struct {
	// Pick chooses union states; nil: all.
	Pick func(op *format.Operator, state string) bool
	Keep Keep
	// Place of what is kept; "": stay.
	Place PlaceKept
	// AcceptUnproven prunes what does not look like a restore product too.
	AcceptUnproven bool
}

// Pruned is what became of one union state.
type Pruned struct {
	UnionReport
	// Skipped says why the state was left as it is; "" if it was pruned.
	Skipped string
	Kept    int64
	// BytesAfter of the state.
	BytesAfter int64
}

// DiagnoseUnions says of each union state that pick chooses how often its
// elements come and whether restores multiplied them. It reads every element,
// once, or several times where more than two million are different; memory is
// bounded whatever the size.
func DiagnoseUnions(ctx context.Context, in Input, pick func(op *format.Operator, state string) bool) ([]*UnionReport, error) {
	var all []*UnionReport
	for _, u := range unionStates(in.Savepoint, pick) {
		r, err := u.count(ctx, in, maxTally, nil)
		if err != nil {
			return nil, format.At(err, "operator %q", u.op.Label())
		}
		all = append(all, r)
	}
	return all, nil
}

// PruneUnions removes copies from union states. What does not look like the
// product of restores is left as it is and says so, unless AcceptUnproven. All
// else of the savepoint is untouched.
func PruneUnions(ctx context.Context, in Input, o PruneOptions) (*format.Savepoint, []*Pruned, error) {
	if o.Place == "" {
		o.Place = PlaceStay
	}
	var all []*Pruned
	edits := map[*format.OperatorHandle]map[int][]format.ElementRun{}
	for _, u := range unionStates(in.Savepoint, o.Pick) {
		p, err := u.prune(ctx, in, o, edits)
		if err != nil {
			return nil, nil, format.At(err, "operator %q", u.op.Label())
		}
		all = append(all, p)
	}
	sp, err := editHandles(ctx, in, edits)
	return sp, all, err
}

// prune finds the elements of one state that stay, and notes them as edits.
func (u *unionState) prune(ctx context.Context, in Input, o PruneOptions, edits map[*format.OperatorHandle]map[int][]format.ElementRun) (*Pruned, error) {
	var keep bitmap
	var sizes int64
	visit := func(number int64, s *tallySlot) {}
	switch o.Keep {
	case KeepDistinct:
		keep = newBitmap(u.total)
		visit = func(number int64, s *tallySlot) {
			if s.seen == 0 {
				keep.set(number)
			}
		}
	case KeepFirstSubtask, KeepModulo, KeepCopies:
	default:
		return nil, fmt.Errorf("internal error: no policy %q", o.Keep)
	}
	r, err := u.count(ctx, in, maxTally, visit)
	if err != nil {
		return nil, err
	}
	p := &Pruned{UnionReport: *r, Kept: r.Elements, BytesAfter: r.Bytes}
	if p.Skipped = skip(r, o); p.Skipped != "" {
		return p, nil
	}
	switch o.Keep {
	case KeepCopies:
		keep = newBitmap(u.total)
		factor := uint64(r.Factor)
		_, err = u.count(ctx, in, maxTally, func(number int64, s *tallySlot) {
			if s.seen < s.count/factor {
				keep.set(number)
			}
		})
	case KeepFirstSubtask:
		keep = newBitmap(u.total)
		for i := range u.handles[0].States[u.states[0]].Offsets.Len() {
			keep.set(i)
		}
	case KeepModulo:
		keep = newBitmap(u.total)
		var number int64
		for i, h := range u.handles {
			n := h.States[u.states[i]].Offsets.Len()
			for k := int64(i); k < n; k += int64(len(u.handles)) {
				keep.set(number + k)
			}
			number += n
		}
	}
	if err != nil {
		return nil, err
	}
	p.Kept = 0
	perSubtask := make([][]format.ElementRun, len(u.handles))
	var number int64
	for i, h := range u.handles {
		n := h.States[u.states[i]].Offsets.Len()
		perSubtask[i] = []format.ElementRun{}
		keep.runs(number, n, func(at, count int64) {
			perSubtask[i] = append(perSubtask[i], format.ElementRun{Handle: h, State: u.states[i], First: at, Count: count})
			p.Kept += count
		})
		number += n
	}
	for i, runs := range placeRuns(perSubtask, o.Place, p.Kept) {
		for _, run := range runs {
			n, err := u.runBytes(ctx, run)
			if err != nil {
				return nil, err
			}
			sizes += n
		}
		h := u.handles[i]
		if edits[h] == nil {
			edits[h] = map[int][]format.ElementRun{}
		}
		edits[h][u.states[i]] = runs
	}
	p.BytesAfter = sizes
	return p, nil
}

// skip says why a state is left as it is, or "".
func skip(r *UnionReport, o PruneOptions) string {
	switch {
	case r.Verdict == VerdictSound:
		return r.Why
	case (o.Keep == KeepFirstSubtask || o.Keep == KeepModulo) && !r.Equal:
		return fmt.Sprintf("%s, and --keep %s needs equal ones", r.Why, o.Keep)
	case o.Keep == KeepCopies && r.Factor == 1:
		return "there is no factor to divide by: " + r.Why
	case r.Verdict == VerdictNotSure && !o.AcceptUnproven:
		return "not proven to be a restore product: " + r.Why
	}
	return ""
}

func (u *unionState) runBytes(ctx context.Context, run format.ElementRun) (int64, error) {
	for i, h := range u.handles {
		if h != run.Handle {
			continue
		}
		sizes, err := stateEnds(ctx, h)
		if err != nil {
			return 0, err
		}
		e := elementSizer{h: h, ends: sizes}
		return e.runBytes(ctx, u.states[i], run.First, run.Count)
	}
	return 0, nil
}

// placeRuns moves runs to where they are to lie. Each subtask that held the
// state has an entry, an empty one included.
func placeRuns(per [][]format.ElementRun, place PlaceKept, total int64) [][]format.ElementRun {
	if place == PlaceStay {
		return per
	}
	out := make([][]format.ElementRun, len(per))
	for i := range out {
		out[i] = []format.ElementRun{}
	}
	if place == PlaceFirst {
		for _, runs := range per {
			out[0] = append(out[0], runs...)
		}
		return out
	}
	// Spread: contiguous blocks, the first ones an element longer.
	n, rest := total/int64(len(per)), total%int64(len(per))
	room := func(i int) int64 {
		if int64(i) < rest {
			return n + 1
		}
		return n
	}
	at, left := 0, room(0)
	for _, runs := range per {
		for _, r := range runs {
			for r.Count > 0 {
				for left == 0 {
					at++
					left = room(at)
				}
				k := min(r.Count, left)
				part := r
				part.Count = k
				out[at] = append(out[at], part)
				r.First += k
				r.Count -= k
				left -= k
			}
		}
	}
	return out
}

// editHandles rebuilds the handles that have edits.
func editHandles(ctx context.Context, in Input, edits map[*format.OperatorHandle]map[int][]format.ElementRun) (*format.Savepoint, error) {
	if len(edits) == 0 {
		return in.Savepoint, nil
	}
	return editOperators(in.Savepoint, func(op *format.Operator) (*format.Operator, error) {
		var subs []*format.Subtask
		for i, sub := range op.Subtasks {
			e := edits[sub.Managed]
			if sub.Managed == nil || e == nil {
				continue
			}
			h, err := rebuild(ctx, in, sub.Managed, func(state int) []format.ElementRun { return e[state] })
			if err != nil {
				return nil, format.At(err, "subtask %d", sub.Index)
			}
			if subs == nil {
				subs = append(subs, op.Subtasks...)
			}
			s := *sub
			s.Managed = h
			subs[i] = &s
		}
		if subs == nil {
			return op, nil
		}
		c := *op
		c.Subtasks = subs
		return &c, nil
	})
}
