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

// Finding is a problem, risk or note about a restore.
type Finding = finding.Finding

// Options describe the job and the release into which the snapshot is restored.
// What is unknown is not checked.
type Options struct {
	// TempDir is the directory of temporary files; "" means the system's.
	TempDir string
	// Jobs is the number of ranges of elements read at once; 0 means one per
	// processor.
	Jobs int
	Job  *Job // nil if unknown
	// Parallelism is the parallelism of every operator; 0 means the job's, or else
	// the snapshot's.
	Parallelism int32
	// MaxParallelism is the max parallelism that the job sets; 0 means that it sets
	// none and keeps the snapshot's.
	MaxParallelism int32
	// AllowNonRestored permits state that no operator of the job takes; it is not
	// restored.
	AllowNonRestored bool
	// Release is the release of Flink that restores; zero means any that can.
	Release flink.Release
	// Metadata is the version of _metadata, or 0.
	Metadata int32
	// At is where Flink will restore from, as in [transform.RescaleOptions].
	At string
	// Schema returns how the states of an operator are serialized; nil if types are
	// not checked.
	Schema types.Schemas
	// Like is a snapshot taken by the new version of the job; nil if unknown.
	Like *Like
	// Content returns what is wrong with an operator and the streams of its state
	// themselves, as verify reports it; nil if content is not checked.
	Content func(ctx context.Context, op *format.Operator) ([]finding.Finding, error)
}

// Match is an operator of the snapshot that the job has too, by id.
type Match struct {
	Operator *format.Operator
	Name     string // in the job
	To       int32  // parallelism
}

// Report is the result of Run.
type Report struct {
	Findings []Finding // worst first, then in the order of the snapshot
	Matched  []Match
	// Renames are the operators that the job likely has under other ids; nil if not
	// searched.
	Renames *transform.Renames
	// Restored are the operators whose state the job takes, or may take.
	Restored []*format.Operator
}

// Count returns the number of findings of a severity.
func (r *Report) Count(s finding.Severity) int { return finding.Count(r.Findings, s) }

// Sort puts the worst findings first and keeps the order of equal ones.
func (r *Report) Sort() { finding.Sort(r.Findings) }

// Run predicts, without running Flink, whether a job would restore from a
// snapshot. It reads the description of the snapshot, the headers of its streams,
// and the elements of union state up to 64 MiB, or more if their lengths suggest
// that restores multiplied it. It reads no entries of keyed state.
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
		if c.o.Job == nil || c.taken[op] { // otherwise its state is not restored, or the restore is refused
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
	to     map[*format.Operator]int32 // parallelism in the job's plan
	unsure map[*format.Operator]bool  // without state, and perhaps not in the job
	// described holds how the states of the restored operators are serialized.
	described map[*format.Operator]*described
	// damaged holds the operators in whose state Content found errors: failures with
	// the same cause are not reported again.
	damaged map[*format.Operator]bool
}

// content adds the findings of Options.Content for the restored operators.
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

// operator checks the restore of one operator.
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
