package transform

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// Simulate plans a rescale of numbered elements, 0 … elements-1, that lie in
// equal blocks in from subtasks, once as list and once as union state. Nothing
// names a file, so blocks come in the order of the old subtasks.
func Simulate(ctx context.Context, elements int64, from, to int32, strategy Strategy) (*RescalePlan, error) {
	op := &format.Operator{ID: format.OperatorIDOf("simulation"), Parallelism: from, MaxParallelism: format.MaxKeyGroups}
	for i := range from {
		n := elements / int64(from)
		if int64(i) < elements%int64(from) {
			n++
		}
		// One byte an element: bytes are not what a simulation is about.
		offsets := make(format.OffsetSlice, n)
		unions := make(format.OffsetSlice, n)
		for k := range offsets {
			offsets[k], unions[k] = int64(k), n+int64(k)
		}
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: i, Managed: &format.OperatorHandle{
			States: []format.NamedState{
				{Name: format.NewText("list"), Mode: format.ModeList, Offsets: offsets},
				{Name: format.NewText("union"), Mode: format.ModeUnion, Offsets: unions},
			},
			Data: &format.Concat{Parts: []format.Part{{Of: &format.Inline{Name: format.NewText(string(rune('a' + i)))}, N: 2 * n}}},
		}})
	}
	in := Input{Savepoint: &format.Savepoint{Operators: []*format.Operator{op}}}
	p, err := PlanRescale(ctx, in, RescaleOptions{To: to, Strategy: strategy})
	if err != nil {
		return nil, err
	}
	for _, st := range p.Operators[0].States {
		for i := range st.Subtasks {
			slices.SortStableFunc(st.Subtasks[i].Sources, func(a, b ElementSource) int { return int(a.Old - b.Old) })
		}
	}
	return p, nil
}
