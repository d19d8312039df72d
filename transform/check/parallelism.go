package check

import (
	"fmt"
	"strconv"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/transform"
)

// limits compares parallelisms with the max parallelism of an operator in the
// snapshot, as Flink does for each operator of the job, with or without state
// (spec flink-operator-state B12).
func (c *checker) limits(op *format.Operator, p int32) {
	empty := !op.HasState()
	of, whose, severity, refuses := "of its state", "its state", finding.Error, "Flink refuses the restore"
	if empty {
		of, whose = "that the snapshot records for it, although it has no state", "it"
	}
	if c.unsure[op] {
		severity, refuses = finding.Warning, "if the job has it, Flink refuses the restore"
	}
	switch {
	case p > op.MaxParallelism && len(op.Subtasks) > 0: // otherwise there is nothing to assign
		f := Finding{Severity: severity, Code: "parallelism", Operator: op,
			Message: fmt.Sprintf("it would run at parallelism %d, above the max parallelism %d %s: %s", p, op.MaxParallelism, of, refuses),
			Advice:  finding.Words(fmt.Sprintf("run it at parallelism %d or less", op.MaxParallelism))}
		for _, m := range (&transform.ParallelismError{Operator: op.Label(), To: p, Free: !op.HasKeyed()}).Remedies() {
			m.Words = "give " + whose + " another max parallelism, as it has no keyed state"
			if op.HasKeyed() {
				m.Words = "move its keys to the key groups of another max parallelism"
			}
			f.Advice = append(f.Advice, m)
		}
		c.add(f)
	case c.o.MaxParallelism > 0 && p > c.o.MaxParallelism:
		c.add(Finding{Severity: severity, Code: "parallelism", Operator: op,
			Message: fmt.Sprintf("it would run at parallelism %d, above the max parallelism %d that the job sets", p, c.o.MaxParallelism),
			Advice:  finding.Words("lower the parallelism of the job")})
	}
	m := c.o.MaxParallelism
	if m <= 0 || m == op.MaxParallelism {
		return
	}
	f := Finding{Severity: severity, Code: "max-parallelism", Operator: op,
		Message: fmt.Sprintf("the job sets max parallelism %d, its state was written with %d: %s", m, op.MaxParallelism, refuses),
		Advice:  finding.Words(fmt.Sprintf("remove the job's max parallelism setting, or set it to %d", op.MaxParallelism))}
	if empty {
		f.Message = fmt.Sprintf("the job sets max parallelism %d, the snapshot records %d for it, which applies even without state: %s", m, op.MaxParallelism, refuses)
	}
	to := strconv.Itoa(int(m))
	switch {
	case p > m: // the other finding says so
	case op.HasKeyed():
		f.Advice = append(f.Advice, finding.Remedy{Words: "move its keys to the key groups of the job's", Action: finding.Regroup, To: to})
	default:
		f.Advice = append(f.Advice, finding.Remedy{Words: "give it the job's, as it has no keyed state", Action: finding.SetMaxParallelism, Operator: op.Label(), To: to})
	}
	c.add(f)
}
