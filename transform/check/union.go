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

// LargeUnion is the number of bytes, assigned to all subtasks together, from
// which a restore of union state is worth a warning.
const LargeUnion = 64 << 20

// maxUnionRead is the number of bytes of a union state that a check reads, unless
// its lengths suggest that restores multiplied it.
const maxUnionRead = 64 << 20

// states checks operator states: union state that grows, broadcast replicas that
// differ.
func (c *checker) states(ctx context.Context, op *format.Operator, p int32) error {
	s, err := summary.Of(ctx, &format.Savepoint{Operators: []*format.Operator{op}})
	if err != nil {
		return err
	}
	var unions []*summary.State
	var read []string
	for _, st := range s.Operators[0].States {
		if st.Kind != summary.Union || st.Elements == 0 || p < 2 {
			continue
		}
		unions = append(unions, st)
		if st.Alike || st.Bytes <= maxUnionRead {
			read = append(read, st.Name)
		}
	}
	var reports map[string]*transform.UnionReport
	if len(read) > 0 {
		if reports, err = c.readUnions(ctx, op, read, len(read) == len(unions)); err != nil {
			return err
		}
	}
	for _, st := range unions {
		c.union(op, st, p, reports[st.Name])
	}
	return c.broadcast(ctx, op)
}

// union reports what a restore assigns of a union state, and what its elements
// show about earlier restores. r is nil if they were not read.
func (c *checker) union(op *format.Operator, st *summary.State, p int32, r *transform.UnionReport) {
	bytes := number.Times(st.Bytes, int64(p))
	f := Finding{Severity: finding.Note, Code: "union", Operator: op, State: st.Name,
		Message: fmt.Sprintf("a restore assigns all %s elements (%s) to each of %d subtasks: %s elements, %s in total",
			number.Count(st.Elements), number.Bytes(st.Bytes), p, number.Count(number.Times(st.Elements, int64(p))), number.Bytes(bytes))}
	occurrences := finding.Remedy{Words: "how often each element occurs", Action: finding.CountElements, State: st.Name}
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
		f.Message = fmt.Sprintf("restores multiplied it: each of its %s distinct elements occurs %s; %s, which the next snapshot will hold if the job adds them again", number.Count(r.Distinct), times, f.Message)
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
}

// readUnions reads the elements of union states of an operator in one pass and
// returns reports by name. A state that cannot be read has none. whole is set if
// names has all union states.
func (c *checker) readUnions(ctx context.Context, op *format.Operator, names []string, whole bool) (map[string]*transform.UnionReport, error) {
	o := transform.UnionOptions{TempDir: c.o.TempDir, Jobs: c.o.Jobs, Partial: true}
	if !whole {
		o.States = format.ByName(names...)
	}
	one := c.in
	one.Savepoint = &format.Savepoint{Operators: []*format.Operator{op}}
	all, err := transform.DiagnoseUnions(ctx, one, o)
	var temp *transform.TempError
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(err, &temp):
		return nil, temp // not about the state
	case err != nil:
		return nil, err
	}
	reports := map[string]*transform.UnionReport{}
	for _, r := range all {
		switch {
		case r.Err == nil:
			reports[r.State] = r
		case !format.NoFile(r.Err) && !errors.Is(r.Err, format.ErrUnsupported) && !errors.Is(r.Err, format.ErrLimit):
			c.unreadable(op, r.Err)
		}
	}
	return reports, nil
}
