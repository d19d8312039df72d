package check

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
)

// idle reports states that leave subtasks without state at another parallelism:
// list states with fewer elements than subtasks, and key groups without entries,
// if a handle records them.
func (c *checker) idle(ctx context.Context, op *format.Operator, p int32) error {
	if p == op.Parallelism || p < 2 || p > op.MaxParallelism {
		return nil
	}
	s, err := summary.Of(ctx, &format.Savepoint{Operators: []*format.Operator{op}})
	if err != nil {
		return err
	}
	for _, st := range s.Operators[0].States {
		if st.Kind == summary.List && st.Elements > 0 && st.Elements < int64(p) {
			c.add(Finding{Severity: finding.Note, Code: "subtasks-without-state", Operator: op, State: st.Name,
				Message: fmt.Sprintf("%s of a list state for %d subtasks: none for %d of them", elementsText(st.Elements), p, int64(p)-st.Elements)})
		}
	}
	return c.idleKeyed(ctx, op, p)
}

func elementsText(n int64) string {
	if n == 1 {
		return "1 element"
	}
	return fmt.Sprintf("%d elements", n)
}

// idleKeyed counts the subtasks whose key groups all have no entries. Only
// handles in the canonical format record that.
func (c *checker) idleKeyed(ctx context.Context, op *format.Operator, p int32) error {
	used, known := map[int32]bool{}, false
	for _, sub := range op.Subtasks {
		switch h := sub.ManagedKeyed.(type) {
		case nil:
		case *format.KeyGroups:
			if !h.Savepoint {
				return nil
			}
			known = true
			err := format.EachOffset(ctx, h.Offsets, func(first int64, run []int64) error {
				for i, off := range run {
					if h.HasData(off) {
						used[h.Range.First+int32(first)+int32(i)] = true
					}
				}
				return nil
			})
			if err != nil {
				return err
			}
		default:
			return nil
		}
	}
	if !known || len(used) == 0 {
		return nil
	}
	idle := 0
	for i := range p {
		r := format.KeyGroupsOf(i, p, op.MaxParallelism)
		has := false
		for g := range r.Count {
			has = has || used[r.First+g]
		}
		if !has {
			idle++
		}
	}
	if idle > 0 {
		c.add(Finding{Severity: finding.Note, Code: "subtasks-without-state", Operator: op,
			Message: fmt.Sprintf("%d of %d key groups have entries: %d of %d subtasks get no keyed state", len(used), op.MaxParallelism, idle, p)})
	}
	return nil
}
