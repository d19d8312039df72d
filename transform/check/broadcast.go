package check

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/summary"
)

// broadcast compares the replicas of broadcast states: a restore at another
// parallelism can assign any of them.
func (c *checker) broadcast(ctx context.Context, op *format.Operator) error {
	type copies struct {
		n        int
		min, max int64
	}
	found := map[string]*copies{}
	var names []string
	present := 0
	for _, sub := range op.Subtasks {
		if sub.Finished {
			continue
		}
		present++
		if sub.Managed == nil {
			continue
		}
		var sizes []int64
		for k, st := range sub.Managed.States {
			if st.Mode != format.ModeBroadcast {
				continue
			}
			if sizes == nil {
				var err error
				if sizes, err = summary.StateSizes(ctx, sub.Managed); err != nil {
					return err
				}
			}
			name := st.Name.String()
			b := found[name]
			if b == nil {
				b = &copies{min: sizes[k]}
				found[name] = b
				names = append(names, name)
			}
			b.n++
			b.min, b.max = min(b.min, sizes[k]), max(b.max, sizes[k])
		}
	}
	for _, name := range names {
		b := found[name]
		if b.min != b.max {
			c.add(Finding{Severity: finding.Warning, Code: "broadcast-differs", Operator: op, State: name,
				Message: fmt.Sprintf("its replicas in %d subtasks differ, from %d to %d bytes: which one a subtask gets depends on the parallelism", b.n, b.min, b.max),
				Advice:  []finding.Remedy{{Words: "look at them", Action: finding.ShowElements}, {Words: "update broadcast state identically in all subtasks", Also: true}}})
		}
		if b.n < present {
			first, _ := flink.Lifetime(func(f flink.Facts) bool { return f.FillsBroadcast })
			c.add(Finding{Severity: finding.Note, Code: "broadcast-partial", Operator: op, State: name,
				Message: fmt.Sprintf("%d of %d subtasks hold a replica; Flink %v and later assigns one of these to each of the others", b.n, present, first)})
		}
	}
	return nil
}
