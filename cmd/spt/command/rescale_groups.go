package command

import (
	"context"
	"errors"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// runRegroup changes the max parallelism of operators, and their parallelism if that is
// asked for too.
func (o *rescaleOptions) runRegroup(ctx context.Context, env *Env, args []string) (err error) {
	var done closers
	defer func() { err = errors.Join(err, done.Close()) }()
	return edit(ctx, env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
		return o.regroup(ctx, env, snap, &done)
	})
}

// closers are reports whose temporary files are needed until the result is written.
type closers []*transform.RegroupReport

// Close closes all.
func (c closers) Close() error {
	var errs []error
	for _, r := range c {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}

func (o *rescaleOptions) regroup(ctx context.Context, env *Env, snap *reader.Snapshot, closing *closers) (*format.Savepoint, *report.Edit, error) {
	picked, err := o.pick.pickOperators(env, snap.Operators)
	if err != nil {
		return nil, nil, err
	}
	r := env.run.NewEdit()
	regroup := func(s *reader.Snapshot) (*reader.Snapshot, error) {
		v, done, err := transform.Regroup(ctx, s.View(), transform.RegroupOptions{
			Operators: selectorOf(picked, func(*format.Operator) bool { return true }), MaxParallelism: o.max, TempDir: env.common.tmp,
		})
		if err != nil {
			return nil, err
		}
		*closing = append(*closing, done)
		r.Regrouped(done, o.max)
		return s.With(v.Savepoint), nil
	}
	rescale := func(s *reader.Snapshot) (*reader.Snapshot, error) {
		if o.to == 0 {
			return s, nil
		}
		plan, err := o.plan(ctx, env, s)
		if err != nil {
			return nil, err
		}
		v, err := plan.Apply(ctx)
		if err != nil {
			return nil, err
		}
		r.Rescaled(plan, func(op *format.Operator) bool {
			return slices.ContainsFunc(picked, func(p *format.Operator) bool { return p.ID == op.ID })
		})
		return s.With(v.Savepoint), nil
	}
	steps := []func(*reader.Snapshot) (*reader.Snapshot, error){regroup, rescale}
	for _, op := range picked {
		if op.Parallelism > o.max { // more subtasks than there would be key groups
			steps[0], steps[1] = rescale, regroup
		}
	}
	for _, step := range steps {
		if snap, err = step(snap); err != nil {
			return nil, nil, err
		}
	}
	return snap.Savepoint, r, nil
}
