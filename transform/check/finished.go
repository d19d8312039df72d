package check

import (
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
)

// progress is how many subtasks of an operator had finished when the snapshot was
// taken.
type progress uint8

// The values of progress, as in Flink's VertexFinishedStateChecker.
const (
	allRunning progress = iota
	partlyFinished
	fullyFinished
)

func progressOf(op *format.Operator) progress {
	switch {
	case op == nil:
		return allRunning // Flink treats operators that are not in the snapshot as running
	case op.Finished:
		return fullyFinished
	case slices.ContainsFunc(op.Subtasks, func(s *format.Subtask) bool { return s.Finished }):
		return partlyFinished
	}
	return allRunning
}

// describe returns the predicate of a message about an operator.
func (p progress) describe(op *format.Operator) string {
	switch p {
	case fullyFinished:
		return "had fully finished"
	case partlyFinished:
		n := 0
		for _, s := range op.Subtasks {
			if s.Finished {
				n++
			}
		}
		return fmt.Sprintf("had finished in %d of %d subtasks", n, op.Parallelism)
	}
	return "was running"
}

// finished reports finished subtasks: a restore does not run them again (spec
// flink-operator-state B6).
func (c *checker) finished(op *format.Operator, p int32) {
	n := 0
	for _, s := range op.Subtasks {
		if s.Finished {
			n++
		}
	}
	switch {
	case op.Finished || n > 0 && n == int(op.Parallelism):
		c.add(Finding{Severity: finding.Note, Code: "finished", Operator: op,
			Message: "it had finished: it will not run again, at any parallelism, and Flink refuses a job in which an unfinished operator is upstream of it",
			Advice:  finding.Words("do not change the job's graph upstream of this operator")})
	case n > 0:
		message := fmt.Sprintf("%d of its %d subtasks had finished and hold no state; Flink refuses some changes of the graph around it", n, op.Parallelism)
		if p != op.Parallelism {
			message += fmt.Sprintf(", and at parallelism %d the state of the others is redistributed to all", p)
		}
		c.add(Finding{Severity: finding.Note, Code: "partly-finished", Operator: op, Message: message, Advice: finding.Words("do not change the job's graph around this operator")})
	}
}

// vertices repeats Flink's checks of each vertex before a restore: its operators
// have the same progress, and upstream vertices at least as much (spec
// flink-operator-state B6 and B12).
func (c *checker) vertices() {
	if c.o.Job == nil || !slices.ContainsFunc(c.o.Job.Operators, func(j JobOperator) bool { return j.vertex }) {
		return
	}
	byID := map[format.OperatorID]*format.Operator{}
	for _, op := range c.in.Operators {
		byID[op.ID] = op
	}
	var heads []*JobOperator
	for i := range c.o.Job.Operators {
		if j := &c.o.Job.Operators[i]; j.vertex {
			heads = append(heads, j)
		}
	}
	mixed := map[format.OperatorID]bool{}
	for _, j := range heads {
		mixed[j.ID] = c.mixed(j, c.members(j, heads, byID))
	}
	for _, op := range c.in.Operators {
		c.unchained(op, heads, byID)
	}
	for _, j := range heads {
		if !mixed[j.ID] {
			c.upstream(j, byID)
		}
	}
}

// members returns the operators of the snapshot that are certainly in a vertex:
// its first one, and those whose name only this vertex chains.
func (c *checker) members(j *JobOperator, heads []*JobOperator, byID map[format.OperatorID]*format.Operator) []*format.Operator {
	var all []*format.Operator
	if op := byID[j.ID]; op != nil {
		all = append(all, op)
	}
	for _, op := range c.in.Operators {
		if op.Name.String() == "" && c.o.AllowNonRestored {
			continue // the job may no longer have it
		}
		if op.ID != j.ID && !isHead(op, heads) && slices.Equal(chainsOf(op, heads), []*JobOperator{j}) {
			all = append(all, op)
		}
	}
	return all
}

func isHead(op *format.Operator, heads []*JobOperator) bool {
	return slices.ContainsFunc(heads, func(j *JobOperator) bool { return j.ID == op.ID })
}

// chainsOf returns the vertices in which an operator may be chained: the ones
// that name it, or all if its name is unknown.
func chainsOf(op *format.Operator, heads []*JobOperator) []*JobOperator {
	name := oneSpace(op.Name.String())
	if name == "" {
		return heads
	}
	var all []*JobOperator
	for _, j := range heads {
		if slices.Contains(j.chained, name) {
			all = append(all, j)
		}
	}
	return all
}

// mixed reports a vertex whose operators differ in progress.
func (c *checker) mixed(j *JobOperator, members []*format.Operator) bool {
	differ := false
	var all []string
	for _, op := range members {
		differ = differ || progressOf(op) != progressOf(members[0])
		all = append(all, fmt.Sprintf("%q %s", op.Label(), progressOf(op).describe(op)))
	}
	if !differ {
		return false
	}
	c.add(Finding{Severity: finding.Error, Code: "finished-mixed", Operator: members[0],
		Message: fmt.Sprintf("operators of one vertex of the job disagree about finished subtasks: %s. Flink refuses the restore (vertex contains mixed operator finished state)", strings.Join(all, ", ")),
		Advice:  finding.Words("chain them as they were when the snapshot was taken, or restore from a snapshot that was taken before the first of them finished")})
	return true
}

// unchained reports an operator whose progress differs from every vertex in which
// it may be chained.
func (c *checker) unchained(op *format.Operator, heads []*JobOperator, byID map[format.OperatorID]*format.Operator) {
	chains := chainsOf(op, heads)
	if isHead(op, heads) || len(chains) == 0 || len(chains) == 1 && (op.Name.String() != "" || !c.o.AllowNonRestored) { // reported by mixed
		return
	}
	for _, j := range chains {
		if progressOf(byID[j.ID]) == progressOf(op) {
			return
		}
	}
	f := Finding{Severity: finding.Error, Code: "finished-mixed", Operator: op,
		Message: fmt.Sprintf("it %s when the snapshot was taken, and no vertex of the plan begins with such an operator: wherever it is chained, the operators of that vertex disagree about finished subtasks, and Flink refuses the restore (vertex contains mixed operator finished state)", progressOf(op).describe(op)),
		Advice:  finding.Words("chain it as it was when the snapshot was taken, or restore from a snapshot that was taken before the first of them finished")}
	if c.o.AllowNonRestored {
		f.Severity = finding.Warning
		f.Message = strings.Replace(f.Message, "wherever it is chained,", "unless the job no longer has it,", 1)
	}
	c.add(f)
}

// upstream reports a vertex with more progress than the vertices it reads from.
func (c *checker) upstream(j *JobOperator, byID map[format.OperatorID]*format.Operator) {
	op := byID[j.ID]
	p := progressOf(op)
	if p == allRunning {
		return
	}
	for _, in := range j.inputs {
		before := byID[in.from]
		q := progressOf(before)
		if p == fullyFinished && q == fullyFinished || p == partlyFinished && (q == fullyFinished || q == partlyFinished && !in.allToAll) {
			continue
		}
		name := in.from.String()
		if i := slices.IndexFunc(c.o.Job.Operators, func(o JobOperator) bool { return o.ID == in.from }); i >= 0 {
			name = c.o.Job.Operators[i].Name
		}
		c.add(Finding{Severity: finding.Error, Code: "finished-upstream", Operator: op,
			Message: fmt.Sprintf("it %s when the snapshot was taken, and %q, which it reads from in the plan, %s: Flink refuses such a job graph", p.describe(op), name, q.describe(before)),
			Advice:  finding.Words("do not change the job's graph upstream of this operator")})
	}
}
