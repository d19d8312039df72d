package transform

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
)

// Strategy is the rule by which the elements of list state are redistributed.
// Union, broadcast and keyed state are always assigned as Flink does.
type Strategy string

// The strategies.
const (
	// StrategyFlink is Flink's rule: contiguous blocks in the order of the old
	// subtasks, the larger ones first, beginning at a subtask that advances from
	// state to state.
	StrategyFlink Strategy = "flink"
	// StrategyRoundRobin assigns element i to subtask i % p.
	StrategyRoundRobin Strategy = "round-robin"
	// StrategyBalancedBytes divides the elements, in the order of the old subtasks,
	// into contiguous blocks of about equal size in bytes.
	StrategyBalancedBytes Strategy = "balanced-bytes"
)

// KeyedPolicy is what a rescale does with keyed state that cannot be moved to new
// subtasks as it is stored: Flink lets several subtasks share the files of a state
// backend, or one read the files of several, which no snapshot expresses.
type KeyedPolicy int

// The policies.
const (
	// KeyedMove refuses such state.
	KeyedMove KeyedPolicy = iota
	// KeyedLeave leaves its operator unchanged.
	KeyedLeave
	// KeyedCanonical builds it again in the canonical format, which any backend but ForSt
	// restores.
	KeyedCanonical
)

// RescaleOptions are the options of a rescale.
type RescaleOptions struct {
	To int32
	// From is a guard: operators with another parallelism are not rescaled. 0 means
	// any.
	From int32
	// Operators selects the operators to rescale; nil means all.
	Operators format.Selector
	// At is the URI of the directory from which Flink will restore the snapshot: the
	// order of blocks can depend on it. "" means the location of the snapshot.
	At       string
	Strategy Strategy // "": Flink's
	// Keyed is what Apply does with an operator whose keyed state cannot be moved to
	// the new subtasks as it is stored.
	Keyed KeyedPolicy
	// Jobs is the number of new subtasks whose keyed state Apply builds at once; 0 means
	// one per processor.
	Jobs int
}

// RescalePlan describes what each new subtask is assigned.
type RescalePlan struct {
	To        int32
	At        string
	Strategy  Strategy
	Operators []*OperatorPlan // in the order of the snapshot

	in     format.View
	o      RescaleOptions
	chosen map[*format.Operator]bool
}

// OperatorPlan is the plan for one operator.
type OperatorPlan struct {
	Operator *format.Operator
	From, To int32
	// Left is why the operator is not rescaled; "" if it is.
	Left string
	// States are in the order of redistribution: lists first, raw operator state
	// last.
	States []*StatePlan
	Keyed  []*KeyedPlan // managed, then raw, if any
	// InFlight is set if the operator has in-flight data, whose redistribution
	// depends on the job's graph and is not in the plan.
	InFlight bool
	// Order is why the order of blocks in a subtask is not certain; "" if it is.
	// PlaceOrder is set if it depends on the location of the snapshot.
	Order      string
	PlaceOrder bool

	// Built is set by Apply if it built the keyed state again, with so many Entries.
	Built   bool
	Entries int64

	managed, raw *assign.Plan
}

// StatePlan is how the elements of one state are redistributed.
type StatePlan struct {
	Name     string
	Mode     format.Mode
	Raw      bool
	Elements int64 // in the snapshot
	Bytes    int64
	Subtasks []SubtaskPlan // new ones, by index
	// OrderVaries is set if subtasks are assigned this union state in different
	// orders, because handles collide in a bucket of Flink's hash map. The savepoint
	// returned by Apply has the order of subtask 0 for all.
	OrderVaries bool
}

// SubtaskPlan is what one new subtask is assigned.
type SubtaskPlan struct {
	Elements int64
	Bytes    int64
	Sources  []ElementSource // in the order assigned
}

// ElementSource is the elements First … First+Count-1 of an old subtask.
type ElementSource struct {
	Old          int32
	First, Count int64
}

// KeyedPlan is which key groups of old handles the new subtasks are assigned.
type KeyedPlan struct {
	Raw      bool
	Subtasks []assign.KeyedSubtask
}

// Rescale returns the savepoint at another parallelism: it makes a plan and
// applies it.
func Rescale(ctx context.Context, v format.View, o RescaleOptions) (format.View, *RescalePlan, error) {
	p, err := PlanRescale(ctx, v, o)
	if err != nil {
		return v, nil, err
	}
	out, err := p.Apply(ctx)
	return out, p, err
}

// PlanRescale computes what each subtask is assigned at another parallelism. It
// reads offsets but no state, and changes nothing. A parallelism above an
// operator's max parallelism is a *ParallelismError.
func PlanRescale(ctx context.Context, in format.View, o RescaleOptions) (*RescalePlan, error) {
	if o.Strategy == "" {
		o.Strategy = StrategyFlink
	}
	if o.At == "" {
		o.At = in.Location
	}
	switch o.Strategy {
	case StrategyFlink, StrategyRoundRobin, StrategyBalancedBytes:
	default:
		return nil, fmt.Errorf("strategy %q: expected %s, %s or %s", o.Strategy, StrategyFlink, StrategyRoundRobin, StrategyBalancedBytes)
	}
	if o.To < 1 || o.To > format.MaxKeyGroups {
		return nil, fmt.Errorf("%w: %d is not between 1 and %d", assign.ErrParallelism, o.To, format.MaxKeyGroups)
	}
	chosen, err := o.Operators.Set(in.Savepoint)
	if err != nil {
		return nil, err
	}
	p := &RescalePlan{To: o.To, At: o.At, Strategy: o.Strategy, in: in, o: o, chosen: chosen}
	for _, op := range in.Operators {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		plan, err := p.operator(ctx, op)
		if err != nil {
			return nil, format.At(err, "operator %q", op.Label())
		}
		p.Operators = append(p.Operators, plan)
	}
	return p, nil
}

func (p *RescalePlan) operator(ctx context.Context, op *format.Operator) (*OperatorPlan, error) {
	plan := &OperatorPlan{Operator: op, From: op.Parallelism, To: p.To}
	switch {
	case !p.chosen[op]:
		plan.Left = "not selected"
	case p.o.From > 0 && op.Parallelism != p.o.From:
		plan.Left = fmt.Sprintf("it has parallelism %d", op.Parallelism)
	case p.To > op.MaxParallelism:
		return nil, &ParallelismError{op.Label(), p.To, op.MaxParallelism, !op.HasKeyed()}
	}
	if plan.Left != "" {
		plan.To = op.Parallelism
		return plan, nil
	}
	old, err := bySubtask(op)
	if err != nil {
		return nil, err
	}
	for _, s := range op.Subtasks {
		plan.InFlight = plan.InFlight || len(s.Input)+len(s.Output) > 0
	}
	if err := plan.operatorStates(ctx, p, old); err != nil {
		return nil, err
	}
	return plan, plan.keyedStates(old)
}

// bySubtask returns the subtasks of an operator by index; nil for one that is
// missing from the snapshot.
func bySubtask(op *format.Operator) ([]*format.Subtask, error) {
	if op.Parallelism < 1 || op.Parallelism > format.MaxKeyGroups {
		return nil, format.Errorf(format.ErrCorrupt, "a parallelism of %d", op.Parallelism)
	}
	all := make([]*format.Subtask, op.Parallelism)
	for _, s := range op.Subtasks {
		if s.Index < 0 || s.Index >= op.Parallelism {
			return nil, format.Errorf(format.ErrCorrupt, "subtask %d of an operator of parallelism %d", s.Index, op.Parallelism)
		}
		all[s.Index] = s
	}
	return all, nil
}

// operatorStates plans managed and raw operator state.
func (plan *OperatorPlan) operatorStates(ctx context.Context, p *RescalePlan, old []*format.Subtask) error {
	for _, raw := range []bool{false, true} {
		handles := make([]*format.OperatorHandle, len(old))
		found := false
		for i, s := range old {
			handles[i] = handleOf(s, raw)
			found = found || handles[i] != nil
		}
		if !found {
			continue
		}
		assigned, err := assign.Operator(handles, int(plan.To), assign.Options{At: p.At})
		if err != nil {
			return err
		}
		if isNative(handles) {
			inOldOrder(assigned)
		}
		if p.Strategy != StrategyFlink {
			if err := redistribute(ctx, assigned, handles, p.Strategy); err != nil {
				return err
			}
		}
		if raw {
			plan.raw = assigned
		} else {
			plan.managed = assigned
		}
		plan.PlaceOrder = plan.PlaceOrder || assigned.DependsOnLocation
		if plan.Order == "" {
			plan.Order = assigned.Undefined
		}
		states, err := statePlans(ctx, handles, assigned, raw)
		if err != nil {
			return err
		}
		plan.States = append(plan.States, states...)
	}
	return nil
}

// statePlans converts the assignment of each subtask into a plan per state.
func statePlans(ctx context.Context, handles []*format.OperatorHandle, assigned *assign.Plan, raw bool) ([]*StatePlan, error) {
	sizers := make([]*sizer, len(handles))
	var order []*StatePlan
	byName := map[nameAndMode]*StatePlan{}
	at := func(name string, mode format.Mode) *StatePlan {
		key := nameAndMode{name, mode}
		s := byName[key]
		if s == nil {
			s = &StatePlan{Name: name, Mode: mode, Raw: raw, Subtasks: make([]SubtaskPlan, len(assigned.Subtasks))}
			byName[key] = s
			order = append(order, s)
		}
		return s
	}
	for i, h := range handles {
		if h == nil {
			continue
		}
		var err error
		if sizers[i], err = newSizer(ctx, h); err != nil {
			return nil, err
		}
		for k, st := range h.States {
			s := at(st.Name.String(), st.Mode)
			s.Elements += st.Offsets.Len()
			s.Bytes += sizers[i].sizes[k]
		}
	}
	for i, sub := range assigned.Subtasks {
		for _, piece := range sub.Pieces {
			for _, share := range piece.Shares {
				if share.Count == 0 {
					continue
				}
				n, err := sizers[piece.Old].run(ctx, share.State, share.First, share.Count)
				if err != nil {
					return nil, err
				}
				t := &at(share.Name, share.Mode).Subtasks[i]
				t.Elements += share.Count
				t.Bytes += n
				if k := len(t.Sources) - 1; k >= 0 && t.Sources[k].Old == int32(piece.Old) && t.Sources[k].First+t.Sources[k].Count == share.First {
					t.Sources[k].Count += share.Count
				} else {
					t.Sources = append(t.Sources, ElementSource{int32(piece.Old), share.First, share.Count})
				}
			}
		}
	}
	for _, s := range order {
		s.OrderVaries = s.Mode == format.ModeUnion && slices.ContainsFunc(s.Subtasks, func(sub SubtaskPlan) bool {
			return !slices.Equal(sub.Sources, s.Subtasks[0].Sources)
		})
	}
	slices.SortStableFunc(order, func(a, b *StatePlan) int { return int(a.Mode) - int(b.Mode) })
	return order, nil
}

// isNative reports whether state belongs to a Go program.
func isNative(handles []*format.OperatorHandle) bool {
	return slices.ContainsFunc(handles, func(h *format.OperatorHandle) bool { return h != nil && h.Codec == format.CodecNative })
}

// inOldOrder sorts the assignment of each subtask by old subtask. Handles of
// native state have no names by which Flink could order them.
func inOldOrder(assigned *assign.Plan) {
	for i := range assigned.Subtasks {
		slices.SortStableFunc(assigned.Subtasks[i].Pieces, func(a, b assign.Piece) int { return a.Old - b.Old })
	}
	assigned.Undefined, assigned.DependsOnLocation = "", false
}

type nameAndMode struct {
	name string
	mode format.Mode
}

// redistribute replaces the shares of list state by the shares of another
// strategy. It appends them, so that they are in the order of the old subtasks
// regardless of Flink's order of handles.
func redistribute(ctx context.Context, assigned *assign.Plan, handles []*format.OperatorHandle, strategy Strategy) error {
	others := make([]int, len(assigned.Subtasks))
	for i := range assigned.Subtasks {
		sub := &assigned.Subtasks[i]
		for k := range sub.Pieces {
			piece := &sub.Pieces[k]
			piece.Shares = slices.DeleteFunc(slices.Clone(piece.Shares), func(s assign.Share) bool { return s.Mode == format.ModeList })
		}
		others[i] = len(sub.Pieces)
		sub.Lost = 0
	}
	// add must be called in the order of the old subtasks.
	add := func(to, old int, share assign.Share) {
		sub := &assigned.Subtasks[to]
		if n := len(sub.Pieces); n == others[to] || sub.Pieces[n-1].Old != old {
			sub.Pieces = append(sub.Pieces, assign.Piece{Old: old})
		}
		piece := &sub.Pieces[len(sub.Pieces)-1]
		if n := len(piece.Shares) - 1; n >= 0 && piece.Shares[n].State == share.State && piece.Shares[n].First+piece.Shares[n].Count == share.First {
			piece.Shares[n].Count += share.Count
			return
		}
		piece.Shares = append(piece.Shares, share)
	}
	sizers, totals, err := listBytes(ctx, handles)
	if err != nil {
		return err
	}
	p := int64(len(assigned.Subtasks))
	next := map[string]int64{}   // elements of a state assigned so far
	passed := map[string]int64{} // their bytes
	for old, h := range handles {
		if h == nil {
			continue
		}
		for k, st := range h.States {
			if st.Mode != format.ModeList {
				continue
			}
			name := st.Name.String()
			share := assign.Share{State: k, Name: name, Mode: st.Mode, Count: 1}
			if strategy == StrategyRoundRobin {
				for share.First = range st.Offsets.Len() {
					add(int(next[name]%p), old, share)
					next[name]++
				}
				continue
			}
			var first int64
			err := format.EachOffset(ctx, st.Offsets, func(at int64, run []int64) error {
				if at == 0 {
					first = run[0]
				}
				for i, off := range run {
					// The subtask in whose part of the bytes the element starts.
					share.First = at + int64(i)
					add(int(partOf(passed[name]+off-first, totals[name], p)), old, share)
				}
				return nil
			})
			if err != nil {
				return err
			}
			passed[name] += sizers[old].sizes[k]
		}
	}
	return nil
}

// partOf returns which of p equal parts of total contains position pos. Positions
// come from the file: one outside counts as the nearest inside.
func partOf(pos, total, p int64) int64 {
	if pos <= 0 || total <= 0 {
		return 0
	}
	if pos >= total {
		return p - 1
	}
	hi, lo := bits.Mul64(uint64(pos), uint64(p))
	part, _ := bits.Div64(hi, lo, uint64(total))
	return int64(part)
}

// listBytes returns the size of each list state, by name, and the sizers of its
// handles.
func listBytes(ctx context.Context, handles []*format.OperatorHandle) ([]*sizer, map[string]int64, error) {
	sizers := make([]*sizer, len(handles))
	totals := map[string]int64{}
	for i, h := range handles {
		if h == nil {
			continue
		}
		var err error
		if sizers[i], err = newSizer(ctx, h); err != nil {
			return nil, nil, err
		}
		for k, st := range h.States {
			if st.Mode == format.ModeList {
				totals[st.Name.String()] += sizers[i].sizes[k]
			}
		}
	}
	return sizers, totals, nil
}

// keyedStates plans managed and raw keyed state.
func (plan *OperatorPlan) keyedStates(old []*format.Subtask) error {
	for _, raw := range []bool{false, true} {
		handles := make([]format.KeyedHandle, len(old))
		found := false
		for i, s := range old {
			handles[i] = keyedOf(s, raw)
			found = found || handles[i] != nil
		}
		if !found {
			continue
		}
		assigned, err := assign.Keyed(handles, plan.From, plan.To, plan.Operator.MaxParallelism)
		if err != nil {
			return err
		}
		plan.Keyed = append(plan.Keyed, &KeyedPlan{raw, assigned})
	}
	return nil
}

// Rescaled returns the number of operators that the plan changes or
// redistributes.
func (p *RescalePlan) Rescaled() int {
	n := 0
	for _, op := range p.Operators {
		if op.Left == "" {
			n++
		}
	}
	return n
}
