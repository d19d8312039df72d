package check

import (
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
)

// match finds the operators of the job in the snapshot, by id.
func (c *checker) match() {
	job := c.o.Job
	byID := map[format.OperatorID]JobOperator{}
	for _, j := range job.Operators {
		byID[j.ID] = j
	}
	c.taken, c.to, c.unsure = map[*format.Operator]bool{}, map[*format.Operator]int32{}, map[*format.Operator]bool{}
	for _, op := range c.in.Operators {
		j, ok := byID[op.ID]
		if ok {
			c.taken[op], c.to[op] = true, j.Parallelism
			c.report.Matched = append(c.report.Matched, Match{op, j.Name, c.parallelism(op)})
			continue
		}
		if !job.Whole {
			c.perhapsChained(op)
			continue
		}
		c.noTaker(op)
	}
}

// noTaker reports state that the job has no operator for.
func (c *checker) noTaker(op *format.Operator) {
	if !op.HasState() {
		c.add(Finding{Severity: finding.Note, Code: "not-in-job", Operator: op, Message: "the job has no such operator; it holds no state, so Flink skips it"})
		return
	}
	if c.o.AllowNonRestored {
		c.add(Finding{Severity: finding.Warning, Code: "no-taker", Operator: op, Message: "the job has no operator for this state: it is not restored"})
		return
	}
	c.add(Finding{Severity: finding.Error, Code: "no-taker", Operator: op,
		Message: "the job has no operator for this state: Flink refuses the restore",
		Advice: []finding.Remedy{{Words: "give the operator its uid back"}, {Words: "rename the state", Action: finding.RenameOperator},
			{Words: "drop it", Action: finding.DropOperator}, {Words: "restore with --allowNonRestoredState"}}})
}

// perhapsChained reports an operator that is not in a plan that names only the
// first operator of each chain: the job may or may not have it.
func (c *checker) perhapsChained(op *format.Operator) {
	c.taken[op] = true
	behind, parallelism := c.chainedIn(op)
	c.to[op] = parallelism
	switch {
	case !op.HasState():
		c.unsure[op] = true // a name proves little
	case behind != nil:
		c.add(Finding{Severity: finding.Note, Code: "chained", Operator: op,
			Message: fmt.Sprintf("no vertex of the plan has its id; by its name it is chained after another operator in %q. A plan has only the ids of vertices, so this is not certain", behind.Description),
			Advice:  []finding.Remedy{{Words: "to be sure, give the uids of the job", Action: finding.NameUIDs}}})
	default:
		c.add(Finding{Severity: finding.Warning, Code: "not-in-plan", Operator: op,
			Message: "no vertex of the plan has its id. A vertex has the id of the first operator of its chain, so this one may be chained after another, or it may have been removed, and then Flink refuses the restore",
			Advice:  []finding.Remedy{{Words: "to be sure, give the uids of the job", Action: finding.NameUIDs}}})
	}
}

// chainedIn returns the first vertex that names an operator in its chain, or nil.
// The parallelism is 0 if several vertices with different parallelisms do.
func (c *checker) chainedIn(op *format.Operator) (behind *JobOperator, parallelism int32) {
	name := oneSpace(op.Name.String())
	if name == "" {
		return nil, 0
	}
	for i := range c.o.Job.Operators {
		j := &c.o.Job.Operators[i]
		switch {
		case !slices.Contains(j.chained, name):
		case behind == nil:
			behind, parallelism = j, j.Parallelism
		case j.Parallelism != parallelism:
			return behind, 0
		}
	}
	return behind, parallelism
}

// parallelism returns the parallelism with which an operator will run.
func (c *checker) parallelism(op *format.Operator) int32 {
	switch {
	case c.o.Parallelism > 0:
		return c.o.Parallelism
	case c.to[op] > 0:
		return c.to[op]
	}
	return op.Parallelism
}
