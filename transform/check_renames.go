package transform

import (
	"context"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
)

// renames finds the operators of the job that the snapshot likely has under other
// ids, as DiffSavepoints does, and says of operators what follows from it: that
// they start empty, or that their id is another operator's now.
func (c *checker) renames(ctx context.Context) error {
	job := c.o.Job
	here, err := byOperator(ctx, c.in.Savepoint)
	if err != nil {
		return err
	}
	there := map[format.OperatorID]*renameOperator{}
	if c.o.Like != nil {
		sums, err := byOperator(ctx, c.o.Like.Savepoint)
		if err != nil {
			return err
		}
		for _, op := range c.o.Like.Operators {
			there[op.ID] = newRenameOperator(op, sums[op], c.o.Like.Schema)
		}
	}
	var gone, come []*renameOperator
	var kept [][2]*renameOperator
	found := map[format.OperatorID]bool{}
	known := map[format.OperatorID]JobOperator{}
	for _, j := range job.Operators {
		known[j.ID] = j
	}
	for _, op := range c.in.Operators {
		x := newRenameOperator(op, here[op], c.o.Schema)
		if _, ok := known[op.ID]; !ok {
			gone = append(gone, x)
			continue
		}
		found[op.ID] = true
		y := there[op.ID]
		if y == nil {
			y = &renameOperator{id: op.ID}
		}
		kept = append(kept, [2]*renameOperator{x, y})
	}
	var empty []JobOperator
	for _, j := range job.Operators {
		if found[j.ID] {
			continue
		}
		empty = append(empty, j)
		y := there[j.ID]
		if y == nil {
			y = &renameOperator{id: j.ID}
			if _, hex := format.ParseOperatorID(j.Name); !hex {
				y.uid = j.Name
			}
		}
		come = append(come, y)
	}
	if job.Whole { // else an operator that the plan does not name may be there too
		if c.report.Renames, err = findRenames(ctx, gone, come, kept); err != nil {
			return err
		}
		for _, n := range c.report.Renames.Names {
			c.add(CheckFinding{Severity: SeverityWarning, Code: "name-changed", Operator: n.Old,
				Message: fmt.Sprintf("the operator of this id is named %q in the job and %q in the snapshot: Flink matches state to operators by id, so it may get the state of another operator", n.New.Name, n.Old.Name),
				Advice:  "if only the name was changed, nothing is wrong; if ids shifted, spt rename gives the states their new uids"})
		}
	}
	for _, j := range empty {
		c.add(CheckFinding{Severity: SeverityNote, Code: "starts-empty", UID: j.Name,
			Message: "the snapshot has no state of this operator: it starts empty", Advice: c.startsEmpty(j.ID)})
	}
	return nil
}

// startsEmpty advises on an operator of the job that has no state.
func (c *checker) startsEmpty(id format.OperatorID) string {
	if r := c.report.Renames; r != nil {
		for _, n := range r.Likely {
			if n.ID == id {
				return fmt.Sprintf("it is likely %q under another id: spt rename gives the state the new uid", n.From[0].Operator.Label())
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
			return "it may be " + strings.Join(names, " or ") + " under another id: spt rename gives a state another uid"
		}
	}
	return "if it had state, its uid has changed: spt rename"
}

// byOperator sums up the operators of a savepoint.
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
