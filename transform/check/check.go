package check

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/transform"
)

// Finding is something that matters for a restore.
type Finding = finding.Finding

// Options say what the snapshot is to be restored into. What is not known
// is not checked.
type Options struct {
	// TempDir is the directory of temporary files; "": that of the system.
	TempDir string
	// Jobs is how many ranges of elements are read at once; 0: one per processor.
	Jobs int
	Job  *Job // nil: not known
	// Parallelism of every operator; 0: as the job says, else as it was.
	Parallelism int32
	// MaxParallelism that the job sets; 0: it sets none, and takes over what the
	// snapshot has.
	MaxParallelism int32
	// AllowNonRestored: state that no operator takes may be left behind.
	AllowNonRestored bool
	// Release is the release of Flink that restores; zero: any that can.
	Release flink.Release
	// Metadata is the version of _metadata, 0 where there is none.
	Metadata int32
	// At is where Flink will restore from, as in [transform.RescaleOptions].
	At string
	// Schema tells how the states of an operator are serialized; nil: types are
	// not looked at.
	Schema types.Schemas
	// Like is a snapshot that the job took as it will be; nil: there is none.
	Like *Like
	// Content finds what is wrong with an operator and the streams of its state
	// themselves, in the words of verify; nil: that is not looked at.
	Content func(ctx context.Context, op *format.Operator) ([]finding.Finding, error)
}

// Match is an operator of the snapshot that the job has too.
type Match struct {
	Operator *format.Operator
	Name     string // in the job
	To       int32  // parallelism
}

// Report is what Run found.
type Report struct {
	Findings []Finding // worst first, then in the order of the snapshot
	Matched  []Match
	// Renames are the operators that the job likely has under other ids; nil where
	// that was not looked for.
	Renames *transform.Renames
	// Restored are the operators whose state the job takes, or may take.
	Restored []*format.Operator
}

// Count returns the number of findings of a severity.
func (r *Report) Count(s finding.Severity) int { return finding.Count(r.Findings, s) }

// Sort puts the worst findings first and keeps the order of equal ones.
func (r *Report) Sort() { finding.Sort(r.Findings) }

// Run reports whether a job would restore from a snapshot, as far as that can be
// told without Flink. It reads the description of the snapshot, the first bytes
// of its streams, which describe the states in them, and the elements of union
// state: of up to 64 MiB, and of more where their lengths look as if it had been
// multiplied; no entry of keyed state.
func Run(ctx context.Context, in format.View, o Options) (*Report, error) {
	c := &checker{in: in, o: o, report: &Report{}, described: map[*format.Operator]*described{}}
	if o.Like != nil && (o.Job == nil || !o.Job.Whole) {
		c.o.Job = o.Like.job()
		if o.Job != nil {
			c.o.Job = c.o.Job.WithPlan(o.Job)
		}
	}
	if c.o.Job != nil {
		c.match()
		if err := c.renames(ctx); err != nil {
			return nil, err
		}
	}
	for _, op := range in.Operators {
		if c.o.Job == nil || c.taken[op] { // else its state is left behind, or the restore is refused
			c.report.Restored = append(c.report.Restored, op)
		}
	}
	if err := c.content(ctx); err != nil {
		return nil, err
	}
	if err := c.describe(ctx); err != nil {
		return nil, err
	}
	c.release(ctx)
	c.vertices()
	for _, op := range c.report.Restored {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if err := c.operator(ctx, op); err != nil {
			return nil, format.At(err, "operator %q", op.Label())
		}
	}
	c.report.Sort()
	return c.report, nil
}

type checker struct {
	in     format.View
	o      Options
	report *Report
	taken  map[*format.Operator]bool
	to     map[*format.Operator]int32 // parallelism that the job's plan gives it
	unsure map[*format.Operator]bool  // without state, and perhaps not in the job
	// described is how the states of the restored operators are serialized.
	described map[*format.Operator]*described
	// damaged has the operators with state that Content calls wrong: what fails
	// for that reason is not said again.
	damaged map[*format.Operator]bool
}

// content adds what is wrong with the restored operators themselves.
func (c *checker) content(ctx context.Context) error {
	c.damaged = map[*format.Operator]bool{}
	if c.o.Content == nil {
		return nil
	}
	for _, op := range c.report.Restored {
		found, err := c.o.Content(ctx, op)
		if err != nil {
			return err
		}
		for _, f := range found {
			c.damaged[op] = c.damaged[op] || f.Severity == finding.Error
			c.add(f)
		}
	}
	return nil
}

func (c *checker) add(f Finding) { c.report.Findings = append(c.report.Findings, f) }

// operator checks what one operator's state will meet.
func (c *checker) operator(ctx context.Context, op *format.Operator) error {
	c.native(op)
	p := c.parallelism(op)
	c.limits(op, p)
	if !op.HasState() {
		return nil
	}
	c.finished(op, p)
	if p != op.Parallelism && op.HasInFlight() {
		c.add(Finding{Severity: finding.Warning, Code: "in-flight", Operator: op,
			Message: fmt.Sprintf("in-flight data is redistributed from parallelism %d to %d by the job's graph: after a partitioner that cannot be rescaled, such as forward, Flink refuses", op.Parallelism, p),
			Advice:  finding.Words("restore at the same parallelism, or from a savepoint")})
	}
	if err := c.states(ctx, op, p); err != nil {
		return err
	}
	if err := c.idle(ctx, op, p); err != nil {
		return err
	}
	if p <= op.MaxParallelism && p > 0 {
		if err := c.order(ctx, op, p); err != nil {
			return err
		}
	}
	c.keyed(op)
	return c.types(ctx, op)
}
