package transform

import (
	"context"
	"fmt"
	"math/bits"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
)

// Strategy says by which rule the elements of list state are dealt out.
// Union, broadcast and keyed state go as Flink has them go, always.
type Strategy string

// The strategies.
const (
	// StrategyFlink is what Flink does: contiguous blocks in the order of the
	// old subtasks, the larger ones first, from a start that moves on from
	// state to state.
	StrategyFlink Strategy = "flink"
	// StrategyRoundRobin gives element i to subtask i % p.
	StrategyRoundRobin Strategy = "round-robin"
	// StrategyBalancedBytes cuts the elements, in the order of the old
	// subtasks, into contiguous blocks of about equal bytes.
	StrategyBalancedBytes Strategy = "balanced-bytes"
)

// RescaleOptions say what is to be rescaled, and how.
type RescaleOptions struct {
	To int32
	// From is a guard: operators of another parallelism are left alone. 0: all.
	From int32
	// Operators that are rescaled; nil: all.
	Operators format.Selector
	// At is where Flink will restore the snapshot from, a folder's URI: the
	// order of blocks can depend on it. "": the location of the snapshot.
	At       string
	Strategy Strategy // "": Flink's
	// LeaveKeyed keeps operators whose keyed state cannot be written for the
	// new parallelism as they are, instead of refusing them in Apply.
	LeaveKeyed bool
}

// RescalePlan is who gets what.
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
	// Left says why the operator is left alone; "" if it is rescaled.
	Left string
	// States, lists first, as they are dealt out. Raw operator state follows.
	States []*StatePlan
	Keyed  []*KeyedPlan // managed, then raw, where there is any
	// InFlight: in-flight data, whose path depends on the job's graph and is
	// therefore not in the plan.
	InFlight bool
	// Order says why the order of blocks in a subtask is not certain; "" if it
	// is. PlaceOrder: it depends on where the snapshot stands.
	Order      string
	PlaceOrder bool

	managed, raw *assign.Plan
}

// StatePlan is how the elements of one state are dealt out.
type StatePlan struct {
	Name     string
	Mode     format.Mode
	Raw      bool
	Elements int64 // in the snapshot
	Bytes    int64
	Subtasks []SubtaskPlan // new ones, by index
	// OrderVaries: subtasks are handed this union state in different orders,
	// because Flink's hash map has handles in one bucket. A snapshot that Apply
	// makes hands it to all in the order of subtask 0.
	OrderVaries bool
}

// SubtaskPlan is what one new subtask is handed.
type SubtaskPlan struct {
	Elements int64
	Bytes    int64
	Sources  []ElementSource // in the order assigned
}

// ElementSource is elements First … First+Count-1 of an old subtask.
type ElementSource struct {
	Old          int32
	First, Count int64
}

// KeyedPlan is which key groups of which old handles the new subtasks get.
type KeyedPlan struct {
	Raw      bool
	Subtasks []assign.KeyedSubtask
}

// Rescale returns the savepoint at another parallelism: it plans, and applies the
// plan.
func Rescale(ctx context.Context, v format.View, o RescaleOptions) (format.View, *RescalePlan, error) {
	p, err := PlanRescale(ctx, v, o)
	if err != nil {
		return v, nil, err
	}
	out, err := p.Apply(ctx)
	return out, p, err
}

// PlanRescale finds out who gets what at another parallelism. It reads offsets
// and no state, and changes nothing. A parallelism above an operator's max
// parallelism is a *ParallelismError.
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
		plan.Left = "not picked"
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

// bySubtask is the subtasks of an operator by their index; nil where one is
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
		dealt, err := assign.Operator(handles, int(plan.To), assign.Options{At: p.At})
		if err != nil {
			return err
		}
		if isNative(handles) {
			inOldOrder(dealt)
		}
		if p.Strategy != StrategyFlink {
			if err := redeal(ctx, dealt, handles, p.Strategy); err != nil {
				return err
			}
		}
		if raw {
			plan.raw = dealt
		} else {
			plan.managed = dealt
		}
		plan.PlaceOrder = plan.PlaceOrder || dealt.DependsOnLocation
		if plan.Order == "" {
			plan.Order = dealt.Undefined
		}
		states, err := statePlans(ctx, handles, dealt, raw)
		if err != nil {
			return err
		}
		plan.States = append(plan.States, states...)
	}
	return nil
}

// statePlans turns what each subtask is handed into a plan by state.
func statePlans(ctx context.Context, handles []*format.OperatorHandle, dealt *assign.Plan, raw bool) ([]*StatePlan, error) {
	sizers := make([]*sizer, len(handles))
	var order []*StatePlan
	byName := map[nameAndMode]*StatePlan{}
	at := func(name string, mode format.Mode) *StatePlan {
		key := nameAndMode{name, mode}
		s := byName[key]
		if s == nil {
			s = &StatePlan{Name: name, Mode: mode, Raw: raw, Subtasks: make([]SubtaskPlan, len(dealt.Subtasks))}
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
	for i, sub := range dealt.Subtasks {
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

// isNative reports whether state is that of a Go program.
func isNative(handles []*format.OperatorHandle) bool {
	return slices.ContainsFunc(handles, func(h *format.OperatorHandle) bool { return h != nil && h.Codec == format.CodecNative })
}

// inOldOrder puts what each subtask is handed in the order of the old subtasks.
// Handles of native state have no names by which Flink could order them.
func inOldOrder(dealt *assign.Plan) {
	for i := range dealt.Subtasks {
		slices.SortStableFunc(dealt.Subtasks[i].Pieces, func(a, b assign.Piece) int { return a.Old - b.Old })
	}
	dealt.Undefined, dealt.DependsOnLocation = "", false
}

type nameAndMode struct {
	name string
	mode format.Mode
}

// redeal replaces the shares of list state by those of another strategy. They
// go behind the others, so that they stand in the order of the old subtasks
// whatever Flink's order of handles is.
func redeal(ctx context.Context, dealt *assign.Plan, handles []*format.OperatorHandle, strategy Strategy) error {
	others := make([]int, len(dealt.Subtasks))
	for i := range dealt.Subtasks {
		sub := &dealt.Subtasks[i]
		for k := range sub.Pieces {
			piece := &sub.Pieces[k]
			piece.Shares = slices.DeleteFunc(slices.Clone(piece.Shares), func(s assign.Share) bool { return s.Mode == format.ModeList })
		}
		others[i] = len(sub.Pieces)
		sub.Lost = 0
	}
	// give is called for old subtasks in their order.
	give := func(to, old int, share assign.Share) {
		sub := &dealt.Subtasks[to]
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
	p := int64(len(dealt.Subtasks))
	next := map[string]int64{}   // elements of a state dealt so far
	passed := map[string]int64{} // its bytes
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
					give(int(next[name]%p), old, share)
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
					// The subtask is that in whose part of the bytes the
					// element starts.
					share.First = at + int64(i)
					give(int(partOf(passed[name]+off-first, totals[name], p)), old, share)
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

// partOf is in which of p equal parts of total position pos lies. Positions are
// claims: one outside counts as the nearest inside.
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

// listBytes gives the bytes of each list state, by name, and the sizers of the
// handles that it took.
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
		dealt, err := assign.Keyed(handles, plan.From, plan.To, plan.Operator.MaxParallelism)
		if err != nil {
			return err
		}
		plan.Keyed = append(plan.Keyed, &KeyedPlan{raw, dealt})
	}
	return nil
}

// Rescaled is the number of operators that the plan changes or deals out anew.
func (p *RescalePlan) Rescaled() int {
	n := 0
	for _, op := range p.Operators {
		if op.Left == "" {
			n++
		}
	}
	return n
}
