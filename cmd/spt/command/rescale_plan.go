package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// plan plans the rescale of the operators that are picked.
func (o *rescaleOptions) plan(ctx context.Context, env *Env, snap *reader.Snapshot) (*transform.RescalePlan, error) {
	picked, err := o.pick.pickOperators(env, snap.Operators)
	if err != nil {
		return nil, err
	}
	at := o.at
	if at == "" {
		if at, err = snap.URI(ctx); err != nil {
			return nil, err
		}
	}
	plan, err := transform.PlanRescale(ctx, snap.View(), transform.RescaleOptions{
		To: o.to, From: o.from, Operators: selectorOf(picked, func(*format.Operator) bool { return true }), At: at,
		Strategy: transform.Strategy(o.strategy), Keyed: keyedPolicies[o.keyed], Jobs: env.readJobs(snap),
	})
	var limit *transform.ParallelismError
	switch {
	case errors.As(err, &limit):
		return nil, limit // it names the operator itself
	case err != nil:
		return nil, inContainer(err, snap)
	case plan.Rescaled() == 0:
		return nil, o.nothing(env, snap.Operators)
	}
	return plan, nil
}

// mayBeMultiplied returns the union states of rescaled operators that restores may have
// multiplied. A rescale puts their elements into one subtask, and nothing shows any
// more that all subtasks held the same.
func mayBeMultiplied(ctx context.Context, plan *transform.RescalePlan) ([]report.StateOf, error) {
	var all []report.StateOf
	for _, p := range plan.Operators {
		if p.Left != "" || p.From == p.To {
			continue
		}
		s, err := summary.Of(ctx, &format.Savepoint{Operators: []*format.Operator{p.Operator}})
		if err != nil {
			return nil, err
		}
		for _, st := range s.Operators[0].States {
			if st.MayBeMultiplied {
				all = append(all, report.StateOf{Operator: p.Operator, State: st.Name})
			}
		}
	}
	return all, nil
}

// again returns the flags of the command that writes the plan, but for --to.
func (o *rescaleOptions) again() string {
	flags := ""
	if o.from > 0 {
		flags = fmt.Sprintf(" --from %d", o.from)
	}
	for _, name := range o.pick.operators {
		flags += " --operator " + shell.Quote(name)
	}
	if o.strategy != string(transform.StrategyFlink) {
		flags += " --strategy " + o.strategy
	}
	if o.keyed != moveKeyed {
		flags += " --keyed " + o.keyed
	}
	return flags
}

// refusal is why a plan cannot be written, though Flink can carry it out.
type refusal struct {
	error
	inFlight bool
}

func (e *refusal) Unwrap() error { return e.error }

// Remedies returns what to do instead.
func (e *refusal) Remedies() []finding.Remedy {
	if all := reader.Remedies(e.error); all != nil || !e.inFlight {
		return all
	}
	return finding.Words("rescale a savepoint, or an aligned checkpoint: it holds no in-flight data")
}

// nothing is the error where no operator is rescaled.
func (o *rescaleOptions) nothing(env *Env, all []*format.Operator) error {
	if len(all) == 0 {
		return usagef("the snapshot holds no operator to rescale")
	}
	return &usageError{fmt.Sprintf("no operator has parallelism %d", o.from), "available: " + parallelisms(env, all)}
}

func parallelisms(env *Env, ops []*format.Operator) string {
	var all []string
	for _, op := range ops {
		all = append(all, fmt.Sprintf("%s at %d", ui.Quote(env.run.Label(op)), op.Parallelism))
	}
	return report.Shorten(all)
}
