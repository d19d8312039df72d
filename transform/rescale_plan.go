package transform

import (
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/assign"
	"github.com/savepoint-tools/spt/format/summary"
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
	// Pick chooses operators; nil: all.
	Pick func(*format.Operator) bool
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

	in Input
	o  RescaleOptions
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
	// InFlight: records in flight, whose way depends on the job's graph and is
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
}

// SubtaskPlan is what one new subtask is handed.
type SubtaskPlan struct {
	Elements int64
	Bytes    int64
	Sources  []ElementSource // in the order handed out
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

// PlanRescale finds out who gets what at another parallelism. It reads offsets
// and no state, and changes nothing. A parallelism above an operator's max
// parallelism is a *ParallelismError.
func PlanRescale(ctx context.Context, in Input, o RescaleOptions) (*RescalePlan, error) {
	if o.Strategy == "" {
		o.Strategy = StrategyFlink
	}
	if o.At == "" {
		o.At = in.Location
	}
	p := &RescalePlan{To: o.To, At: o.At, Strategy: o.Strategy, in: in, o: o}
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
	case p.o.Pick != nil && !p.o.Pick(op):
		plan.Left = "not picked"
	case p.o.From > 0 && op.Parallelism != p.o.From:
		plan.Left = fmt.Sprintf("it has parallelism %d", op.Parallelism)
	case p.To > op.MaxParallelism:
		return nil, &ParallelismError{op.Label(), p.To, op.MaxParallelism}
	}
	if plan.Left != "" {
		plan.To = op.Parallelism
		return plan, nil
	}
	old := make([]*format.Subtask, op.Parallelism)
	for _, s := range op.Subtasks {
		if int(s.Index) < len(old) {
			old[s.Index] = s
		}
		plan.InFlight = plan.InFlight || len(s.Input)+len(s.Output) > 0
	}
	if err := plan.operatorStates(ctx, p, old); err != nil {
		return nil, err
	}
	return plan, plan.keyedStates(old)
}

// operatorStates plans managed and raw operator state.
func (plan *OperatorPlan) operatorStates(ctx context.Context, p *RescalePlan, old []*format.Subtask) error {
	for _, raw := range []bool{false, true} {
		handles := make([]*format.OperatorHandle, len(old))
		found := false
		for i, s := range old {
			if s == nil {
				continue
			}
			handles[i] = s.Managed
			if raw {
				handles[i] = s.Raw
			}
			found = found || handles[i] != nil
		}
		if !found {
			continue
		}
		dealt, err := assign.Operator(handles, int(plan.To), assign.Options{At: p.At})
		if err != nil {
			return err
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
		plan.PlaceOrder = plan.PlaceOrder || dealt.DependsOnPlace
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
	sizers := make([]*elementSizer, len(handles))
	var order []*StatePlan
	byName := map[stateKey]*StatePlan{}
	at := func(name string, mode format.Mode) *StatePlan {
		key := stateKey{name, mode}
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
		sizes, err := summary.StateSizes(ctx, h)
		if err != nil {
			return nil, err
		}
		ends, err := stateEnds(ctx, h)
		if err != nil {
			return nil, err
		}
		sizers[i] = &elementSizer{h: h, ends: ends}
		for k, st := range h.States {
			s := at(st.Name.String(), st.Mode)
			s.Elements += st.Offsets.Len()
			s.Bytes += sizes[k]
		}
	}
	for i, sub := range dealt.Subtasks {
		for _, piece := range sub.Pieces {
			for _, share := range piece.Shares {
				if share.Count == 0 {
					continue
				}
				n, err := sizers[piece.Old].runBytes(ctx, share.State, share.First, share.Count)
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
	slices.SortStableFunc(order, func(a, b *StatePlan) int { return int(a.Mode) - int(b.Mode) })
	return order, nil
}

type stateKey struct {
	name string
	mode format.Mode
}

// redeal replaces the shares of list state by those of another strategy.
func redeal(ctx context.Context, dealt *assign.Plan, handles []*format.OperatorHandle, strategy Strategy) error {
	p := int64(len(dealt.Subtasks))
	// The new shares go behind the others, so that they stand in the order of
	// the old subtasks whatever Flink's order of handles is.
	others := make([]int, p)
	for i := range dealt.Subtasks {
		for k := range dealt.Subtasks[i].Pieces {
			piece := &dealt.Subtasks[i].Pieces[k]
			piece.Shares = slices.DeleteFunc(slices.Clone(piece.Shares), func(s assign.Share) bool { return s.Mode == format.ModeList })
		}
		others[i] = len(dealt.Subtasks[i].Pieces)
	}
	give := func(to int64, old int, share assign.Share) {
		sub := &dealt.Subtasks[to]
		for k := others[to]; k < len(sub.Pieces); k++ {
			if sub.Pieces[k].Old == old {
				piece := &sub.Pieces[k]
				if n := len(piece.Shares) - 1; n >= 0 && piece.Shares[n].State == share.State && piece.Shares[n].First+piece.Shares[n].Count == share.First {
					piece.Shares[n].Count += share.Count
					return
				}
				piece.Shares = append(piece.Shares, share)
				return
			}
		}
		sub.Pieces = append(sub.Pieces, assign.Piece{Old: old, Shares: []assign.Share{share}})
	}
	totals, err := listBytes(ctx, handles)
	if err != nil {
		return err
	}
	next := map[string]int64{}   // elements of a state dealt so far
	passed := map[string]int64{} // its bytes
	for old, h := range handles {
		if h == nil {
			continue
		}
		sizes, err := summary.StateSizes(ctx, h)
		if err != nil {
			return err
		}
		for k, st := range h.States {
			if st.Mode != format.ModeList {
				continue
			}
			name := st.Name.String()
			share := assign.Share{State: k, Name: name, Mode: st.Mode, Count: 1}
			if strategy == StrategyRoundRobin {
				for share.First = 0; share.First < st.Offsets.Len(); share.First++ {
					give(next[name]%p, old, share)
					next[name]++
				}
				continue
			}
			first := int64(-1)
			err := format.EachOffset(ctx, st.Offsets, func(at int64, run []int64) error {
				for i, off := range run {
					if first < 0 {
						first = off
					}
					// The subtask is that in whose part of the bytes the
					// element starts.
					to := int64(0)
					if totals[name] > 0 {
						to = min(mulDiv(passed[name]+off-first, p, totals[name]), p-1)
					}
					share.First = at + int64(i)
					give(to, old, share)
				}
				return nil
			})
			if err != nil {
				return err
			}
			passed[name] += sizes[k]
		}
	}
	return nil
}

// mulDiv is a*b/c where a*b may be larger than a number can be.
func mulDiv(a, b, c int64) int64 {
	if a <= (1<<63-1)/b {
		return a * b / c
	}
	return int64(float64(a) / float64(c) * float64(b))
}

func listBytes(ctx context.Context, handles []*format.OperatorHandle) (map[string]int64, error) {
	totals := map[string]int64{}
	for _, h := range handles {
		if h == nil {
			continue
		}
		sizes, err := summary.StateSizes(ctx, h)
		if err != nil {
			return nil, err
		}
		for k, st := range h.States {
			if st.Mode == format.ModeList {
				totals[st.Name.String()] += sizes[k]
			}
		}
	}
	return totals, nil
}

// keyedStates plans managed and raw keyed state.
func (plan *OperatorPlan) keyedStates(old []*format.Subtask) error {
	for _, raw := range []bool{false, true} {
		handles := make([]format.KeyedHandle, len(old))
		found := false
		for i, s := range old {
			if s == nil {
				continue
			}
			handles[i] = s.ManagedKeyed
			if raw {
				handles[i] = s.RawKeyed
			}
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
