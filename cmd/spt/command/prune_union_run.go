package command

import (
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// chooses reports whether --state, and a Selector of what --operator chose, choose
// a state.
func (o *pruneOptions) chooses(operators format.Selector) func(*format.Operator, string) bool {
	return func(op *format.Operator, state string) bool {
		return slices.Contains(operators, op.ID.String()) && matches(o.states, state)
	}
}

// picked returns the operators that --operator chose, and checks that --state matches a
// union state of theirs.
func (o *pruneOptions) picked(env *Env, snap *reader.Snapshot) (format.Selector, error) {
	p := pick{operators: o.operators}
	ops, err := p.pickOperators(env, snap.Operators)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, op := range ops {
		for _, sub := range op.Subtasks {
			if sub.Managed == nil {
				continue
			}
			for _, st := range sub.Managed.States {
				if st.Mode == format.ModeUnion || st.Mode == format.ModeBroadcast && o.keep == "" {
					names = append(names, st.Name.String())
				}
			}
		}
	}
	if err := env.checkGlobs(o.states, names, "union state", "no union state"); err != nil {
		return nil, err
	}
	return selectorOf(ops, func(*format.Operator) bool { return true }), nil
}

func (o *pruneOptions) diagnose(ctx context.Context, env *Env, snap *reader.Snapshot, in string, choose format.Selector) error {
	stop := env.reading("reading", o.unionBytes(ctx, snap, o.chooses(choose)))
	defer stop()
	of := transform.UnionOptions{Operators: choose, States: o.states, TempDir: env.common.tmp, Jobs: env.readJobs(snap)}
	unions, err := transform.DiagnoseUnions(ctx, snap.View(), of)
	if err != nil {
		return format.InFile(err, snap.Container.Name)
	}
	broadcasts, err := transform.DiagnoseBroadcasts(ctx, snap.View(), of)
	stop()
	if err != nil {
		return format.InFile(err, snap.Container.Name)
	}
	return env.answer(env.run.NewUnions(in, unions, broadcasts, o.atParallelism))
}

// unionBytes returns how many bytes are read of the states that choose chooses.
func (o *pruneOptions) unionBytes(ctx context.Context, snap *reader.Snapshot, choose func(*format.Operator, string) bool) func() int64 {
	return someState(ctx, snap, statesOf(snap.Savepoint, func(op *format.Operator, st *format.NamedState) bool {
		return (st.Mode == format.ModeUnion || st.Mode == format.ModeBroadcast && o.keep == "") && choose(op, st.Name.String())
	}))
}

// policy returns the options of the edit.
func (o *pruneOptions) policy(env *Env, snap *reader.Snapshot, choose format.Selector) transform.PruneOptions {
	return transform.PruneOptions{
		Operators: choose, States: o.states, Keep: transform.Keep(o.keep), By: o.by, Max: o.max, Values: snap.Values,
		Place: transform.PlaceKept(o.place), Compact: o.compact, AcceptUnproven: o.acceptUnproven, TempDir: env.common.tmp, Jobs: env.readJobs(snap),
	}
}

func (o *pruneOptions) prune(ctx context.Context, env *Env, snap *reader.Snapshot, in, out string, choose format.Selector) error {
	stop := env.reading("reading", o.unionBytes(ctx, snap, o.chooses(choose)))
	v, pruned, err := transform.PruneUnion(ctx, snap.View(), o.policy(env, snap, choose))
	stop()
	if err != nil {
		return format.InFile(err, snap.Container.Name)
	}
	res := env.run.NewPrune(pruned.States, transform.Keep(o.keep), o.atParallelism)
	skipped := res.Skipped()
	if len(skipped) > 0 && len(o.states) > 0 {
		return &usageError{"not pruned: " + report.Shorten(skipped), "--accept-unproven prunes it anyway; look at its elements first"}
	}
	if o.opts.Family == "" && out == "" {
		o.opts.Family = snap.Container.Family
	}
	plan, written, err := o.write(ctx, env, snap.With(v.Savepoint), in, out)
	if err != nil {
		return inContainer(err, snap)
	}
	res.Write = written
	if snap.Container.Family == reader.Flink && plan.Family == reader.Flink {
		res.MetadataBefore, res.MetadataAfter = snap.Container.Size, plan.MetadataBytes
	}
	if err := env.answer(res); err != nil {
		return err
	}
	if len(skipped) > 0 {
		return &findings{"left as it is: " + report.Shorten(skipped)}
	}
	return incomplete(plan, written)
}
