package check

import (
	"context"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/transform/internal/renames"
)

// renames finds the operators of the job that the snapshot likely has under other
// ids, as package diff does, and reports the operators that start empty or whose
// id now belongs to another operator.
func (c *checker) renames(ctx context.Context) error {
	job := c.o.Job
	here, err := byOperator(ctx, c.in.Savepoint)
	if err != nil {
		return err
	}
	like := map[format.OperatorID]renames.Side{}
	if c.o.Like != nil {
		sums, err := byOperator(ctx, c.o.Like.Savepoint)
		if err != nil {
			return err
		}
		for _, op := range c.o.Like.Operators {
			like[op.ID] = renames.Of(op, sums[op], c.o.Like.Schema)
		}
	}
	found := map[format.OperatorID]bool{}
	var old, now []renames.Side
	for _, op := range c.in.Operators {
		found[op.ID] = true
		old = append(old, renames.Of(op, here[op], c.o.Schema))
	}
	var empty []JobOperator
	for _, j := range job.Operators {
		y, ok := like[j.ID]
		if !ok {
			y.ID = j.ID
			if _, hex := format.ParseOperatorID(j.Name); !hex {
				y.UID = j.Name
			}
		}
		now = append(now, y)
		if !found[j.ID] {
			empty = append(empty, j)
		}
	}
	if job.Whole { // otherwise the job may also have operators that the plan does not name
		if c.report.Renames, err = renames.Find(ctx, old, now); err != nil {
			return err
		}
		for _, n := range c.report.Renames.Names {
			c.add(Finding{Severity: finding.Warning, Code: "name-changed", Operator: n.Old,
				Message: fmt.Sprintf("the operator of this id is named %q in the job and %q in the snapshot: Flink matches state to operators by id, so the operator may get the state of another", n.New.Name, n.Old.Name),
				Advice:  []finding.Remedy{{Words: "if only the name was changed, nothing is wrong"}, {Words: "if ids shifted, give the states their new uids", Also: true, Action: finding.RenameOperator}}})
		}
	}
	for _, j := range empty {
		c.add(Finding{Severity: finding.Note, Code: "starts-empty", UID: j.Name,
			Message: "the snapshot has no state of this operator: it starts empty", Advice: c.startsEmpty(j.ID)})
	}
	return nil
}

// startsEmpty returns advice for an operator of the job without state.
func (c *checker) startsEmpty(id format.OperatorID) []finding.Remedy {
	rename := func(words string) []finding.Remedy {
		return []finding.Remedy{{Words: words, Action: finding.RenameOperator}}
	}
	if r := c.report.Renames; r != nil {
		for _, n := range r.Likely {
			if n.ID == id {
				return rename(fmt.Sprintf("it is likely %q under another id: give the state the new uid", n.From[0].Operator.Label()))
			}
		}
		for _, n := range r.Open {
			if n.ID != id {
				continue
			}
			var names []string
			for _, f := range n.From[:min(len(n.From), 3)] {
				names = append(names, fmt.Sprintf("%q", f.Operator.Label()))
			}
			if more := len(n.From) - len(names); more > 0 {
				names = append(names, fmt.Sprintf("%d more", more))
			}
			return rename("it may be " + strings.Join(names, " or ") + " under another id: give a state another uid")
		}
	}
	return rename("if it had state, its uid has changed: give the state the new uid")
}

// byOperator returns summaries of the operators of a savepoint.
func byOperator(ctx context.Context, sp *format.Savepoint) (map[*format.Operator]*summary.Operator, error) {
	s, err := summary.Of(ctx, sp)
	if err != nil {
		return nil, err
	}
	all := map[*format.Operator]*summary.Operator{}
	for _, op := range s.Operators {
		all[op.Operator] = op
	}
	return all, nil
}
