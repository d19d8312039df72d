package command

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform/check"
)

// job reads what describes the job; nil if nothing does. known names the descriptions.
func (o *checkOptions) job(ctx context.Context, env *Env) (job *check.Job, known []string, err error) {
	if env.common.names != "" {
		uids, err := env.readNames(ctx, env.common.names)
		if err != nil {
			return nil, nil, err
		}
		if len(uids) == 0 {
			return nil, nil, usagef("--names %s: it holds no uid", ui.Quote(env.common.names))
		}
		job, known = check.JobOfNames(uids), append(known, "names")
	}
	if o.plan == "" {
		return job, known, nil
	}
	text, err := env.readSide(ctx, "--plan", o.plan)
	if err != nil {
		return nil, nil, err
	}
	plan, err := check.ParsePlan(text)
	if err != nil {
		return nil, nil, &usageError{fmt.Sprintf("--plan %s: %v", ui.Quote(o.plan), err), "curl JOBMANAGER:8081/jobs/ID/plan returns one"}
	}
	known = append(known, "plan")
	if job == nil {
		return plan, known, nil
	}
	return job.WithPlan(plan), known, nil
}

// openLike opens the snapshot that the job took.
func (o *checkOptions) openLike(ctx context.Context, env *Env) (*check.Like, func() error, error) {
	if o.like == "" {
		return nil, func() error { return nil }, nil
	}
	snap, err := env.open(ctx, o.like)
	if err != nil {
		return nil, nil, fmt.Errorf("--like: %w", err)
	}
	return &check.Like{Savepoint: snap.Savepoint, Schema: snap.Schema, Metadata: snap.Container.Metadata}, snap.Close, nil
}
