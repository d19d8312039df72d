package check

import (
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/number"
	"github.com/savepoint-tools/spt/transform"
)

// LargeUnion is from how many bytes on a restore that hands out a union state is
// worth a warning: those that all subtasks are handed together.
const LargeUnion = 64 << 20

// maxUnionRead is how many bytes of a union state a check reads whose lengths do
// not show that restores may have multiplied it.
const maxUnionRead = 64 << 20

// states looks at operator states: union state that grows, broadcast copies
// that differ.
func (c *checker) states(ctx context.Context, op *format.Operator, p int32) error {
	s, err := summary.Of(ctx, &format.Savepoint{Operators: []*format.Operator{op}})
	if err != nil {
		return err
	}
	for _, st := range s.Operators[0].States {
		if st.Kind != summary.Union || st.Elements == 0 || p < 2 {
			continue
		}
		if err := c.union(ctx, op, st, p); err != nil {
			return err
		}
	}
	return c.broadcast(ctx, op)
}

// union says what a restore hands out of a union state, and what its elements
// show of restores before.
func (c *checker) union(ctx context.Context, op *format.Operator, st *summary.State, p int32) error {
	bytes := transform.Capped(st.Bytes, int64(p))
	f := Finding{Severity: finding.Note, Code: "union", Operator: op, State: st.Name,
		Message: fmt.Sprintf("a restore hands each of %d subtasks all %s elements (%s): %s elements, %s in total",
			p, number.Count(st.Elements), number.Bytes(st.Bytes), number.Count(transform.Capped(st.Elements, int64(p))), number.Bytes(bytes))}
	occurrences := finding.Remedy{Words: "how often each element occurs", Action: finding.CountElements, State: st.Name}
	r, err := c.unionReport(ctx, op, st)
	if err != nil {
		return err
	}
	switch {
	case r == nil && st.MayBeMultiplied:
		f.Severity, f.Code = finding.Warning, "union-multiplied"
		f.Message = fmt.Sprintf("its %d subtasks hold elements of the same lengths, so a restore may have multiplied them; %s, which the next snapshot will hold if the job adds them again", st.Subtasks, f.Message)
		f.Advice = []finding.Remedy{{Words: "to find and remove duplicates", Action: finding.FindDuplicates}}
	case r != nil && r.OneEach():
		f.Message = fmt.Sprintf("%s; %s", r.Why, f.Message)
		f.Advice = []finding.Remedy{{Words: "if restores did that, keep one", Action: finding.KeepOneOfEach, State: st.Name}}
	case r != nil && r.Verdict == transform.VerdictProduct:
		times := number.Count(r.MinCopies) + " times"
		if r.MinCopies != r.MaxCopies {
			times = fmt.Sprintf("%s to %s times", number.Count(r.MinCopies), number.Count(r.MaxCopies))
		}
		f.Severity, f.Code = finding.Warning, "union-multiplied"
		f.Message = fmt.Sprintf("restores multiplied it: each of its %s different elements comes %s; %s, which the next snapshot will hold if the job adds them again", number.Count(r.Distinct), times, f.Message)
		f.Advice = []finding.Remedy{{Words: "to list and remove the duplicates", Action: finding.FindDuplicates}}
	case r != nil && r.Suspicious():
		f.Severity, f.Code = finding.Warning, "union-repeats"
		f.Message = fmt.Sprintf("restores may have multiplied it, which is not proven because %s: %s; %s", r.Why, r.Numbers(), f.Message)
		f.Advice = []finding.Remedy{occurrences, {Words: "to keep one of each", Action: finding.KeepUnproven, State: st.Name}}
	case r != nil && r.Repeats():
		f.Message = fmt.Sprintf("elements repeat: %s; %s", r.Numbers(), f.Message)
		f.Advice = []finding.Remedy{occurrences}
	}
	if bytes >= LargeUnion && f.Severity == finding.Note {
		f.Severity, f.Code = finding.Warning, "union-large"
		f.Advice = []finding.Remedy{{Words: "every subtask loads all of it; list state would be redistributed instead. Whether duplicates can be removed", Action: finding.FindDuplicates}}
	}
	c.add(f)
	return nil
}

// unionReport reads the elements of a union state, or returns nil where they are
// not read: they cannot be, or nothing asks for it.
func (c *checker) unionReport(ctx context.Context, op *format.Operator, st *summary.State) (*transform.UnionReport, error) {
	if !st.Alike && st.Bytes > maxUnionRead {
		return nil, nil
	}
	one := c.in
	one.Savepoint = &format.Savepoint{Operators: []*format.Operator{op}}
	var temp *transform.TempError
	reports, err := transform.DiagnoseUnions(ctx, one, transform.UnionOptions{States: format.ByName(st.Name), TempDir: c.o.TempDir})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.Is(err, format.ErrChanged):
		return nil, err
	case errors.As(err, &temp):
		return nil, temp // says nothing of the state
	case err != nil:
		if !format.NoFile(err) && !errors.Is(err, format.ErrUnsupported) && !errors.Is(err, format.ErrLimit) {
			c.unreadable(op, err)
		}
		return nil, nil
	case len(reports) != 1:
		return nil, nil
	}
	return reports[0], nil
}
