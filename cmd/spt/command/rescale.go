package command

import (
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

type rescaleOptions struct {
	writeOptions
	pick     pick
	from, to int32
	max      int32
	elements int64
	at       string
	strategy string
	keyed    string
	suggest  bool
	wide     bool
}

func (o *rescaleOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.Int32Var(&o.to, "to", 0, "new parallelism `N`")
	fs.Int32Var(&o.max, "max-parallelism", 0, "new max parallelism `N`: each key moves to its new key group; without --to operators keep their parallelism")
	fs.Int32Var(&o.from, "from", 0, "only operators with parallelism `M`; without IN: the old parallelism")
	operatorFlag(fs, &o.pick.operators, "only these operators")
	fs.Int64Var(&o.elements, "elements", 20, "without IN: redistribute `N` numbered elements")
	fs.StringVar(&o.at, "at", "", "`URI` of the directory from which Flink will restore the snapshot; the order of blocks can depend on it (default: IN, or OUT)")
	fs.StringVar(&o.strategy, "strategy", string(transform.StrategyFlink), "`flink|round-robin|balanced-bytes`: how to redistribute list state")
	fs.StringVar(&o.keyed, "keyed", moveKeyed, "`move|leave|canonical`: where the files of keyed state cannot be moved to the new subtasks, refuse (move), leave that operator as it is, or build its state again in the canonical format, which any backend but ForSt restores")
	fs.BoolVar(&o.suggest, "suggest", false, "print parallelisms near N that divide key groups evenly")
	fs.BoolVar(&o.wide, "wide", false, "print every subtask, and full names")
}

func (o *rescaleOptions) validate(env *Env, args []string) error {
	switch {
	case o.given.Changed("max-parallelism") && (o.max < 1 || o.max > format.MaxKeyGroups):
		return usagef("--max-parallelism %d: must be 1 to %d", o.max, format.MaxKeyGroups)
	case o.max > 0 && len(args) == 0:
		return usagef("--max-parallelism needs IN")
	case o.max > 0 && o.to == 0:
		if err := without("--max-parallelism without --to", o.given, "from", "at", "strategy", "keyed", "suggest"); err != nil {
			return err
		}
	case o.max > 0 && o.to > o.max:
		return usagef("--to %d is more than --max-parallelism %d", o.to, o.max)
	case o.to < 1:
		return &usageError{"--to N is needed: the new parallelism, at least 1", "for example:  spt rescale --from 2 --to 4"}
	case o.to > format.MaxKeyGroups:
		return usagef("--to %d: must be 1 to %d", o.to, format.MaxKeyGroups)
	case o.given.Changed("from") && o.from < 1 || o.from > format.MaxKeyGroups:
		return usagef("--from %d: must be 1 to %d", o.from, format.MaxKeyGroups)
	case len(args) == 0 && o.from == 0:
		return &usageError{"without a snapshot --from M is needed too", "for example:  spt rescale --from 2 --to 4"}
	case o.elements < 0 || o.elements > maxSimulated:
		return usagef("--elements %d: must be 0 to %d", o.elements, maxSimulated)
	}
	if _, known := keyedPolicies[o.keyed]; !known {
		return usagef("--keyed %s: must be move, leave or canonical", o.keyed)
	}
	switch transform.Strategy(o.strategy) {
	case transform.StrategyFlink, transform.StrategyRoundRobin, transform.StrategyBalancedBytes:
	default:
		return usagef("--strategy %s: must be one of flink, round-robin, balanced-bytes", o.strategy)
	}
	if len(args) == 0 {
		if err := without("IN", o.given, "operator", "at", "keyed"); err != nil {
			return err
		}
	} else if o.given.Changed("elements") {
		return usagef("--elements cannot be combined with IN")
	}
	if err := o.pick.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

const moveKeyed = "move"

// keyedPolicies are the values of --keyed.
var keyedPolicies = map[string]transform.KeyedPolicy{moveKeyed: transform.KeyedMove, "leave": transform.KeyedLeave, canonicalKeyed: transform.KeyedCanonical}

// maxSimulated bounds the numbered elements of a simulation.
const maxSimulated = 10_000_000

func newRescaleCommand(env *Env) *cobra.Command {
	var o rescaleOptions
	cmd := &cobra.Command{
		Use:   "rescale [IN [OUT]] [--to N] [--max-parallelism N]",
		Short: "Show, or write, a snapshot at another parallelism",
		Long: `Shows which elements, replicas and key groups each new subtask is assigned when
a job restores a snapshot at parallelism N, exactly as Flink redistributes them:
list state in contiguous blocks, larger ones first, starting at a subtask that
moves on from state to state; every element of union state to every subtask; one
replica of broadcast state to each; key groups by range.

With OUT it writes the snapshot at parallelism N. Restored at N, each subtask is
assigned exactly what the plan shows. Union state is stored once.

Several new subtasks can share the files of a state backend that one subtask
had. A new subtask that needs the files of several old ones cannot be written,
nor can new subtasks that would share the changes of a changelog: such keyed
state is refused. --keyed canonical builds it again, entry by entry, in the
canonical format of savepoints, which any backend but ForSt restores.

--max-parallelism changes the number of key groups. Each key moves to its new
key group, which the hash code of the key in Java determines. spt computes the
hash code from the bytes of the key, and checks that it leads to the key group
in which Flink stored the key. A type whose bytes do not determine it, such as
an enum, is refused (exit 5). Entries are sorted, with temporary files below
--tmp if they do not fit into memory. Keyed state becomes canonical. Operators
that run in one chain need the same max parallelism, and the job must be started
with it.

Without IN it redistributes numbered elements, an exercise of Flink tutorials.
--strategy round-robin assigns element i to subtask i % N, which is how some
describe it and not what Flink does.`,
		Example: `  spt rescale --from 2 --to 4
  spt rescale sp-001 --to 3
  spt rescale sp-001 sp-001-p3 --from 2 --to 3
  spt rescale chk-4211 sp-p3 --to 3 --keyed canonical
  spt rescale sp-001 wider --max-parallelism 1024`,
		Args: between(0, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env, args); err != nil {
				return err
			}
			if len(args) == 0 {
				return runSimulation(cmd.Context(), o, env)
			}
			out := ""
			if len(args) == 2 {
				out = args[1]
			}
			if o.max > 0 {
				return o.runRegroup(cmd.Context(), env, args)
			}
			return runRescale(cmd.Context(), o, env, args[0], out)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runSimulation(ctx context.Context, o rescaleOptions, env *Env) error {
	plan, err := transform.Simulate(ctx, o.elements, o.from, o.to, transform.Strategy(o.strategy))
	if err != nil {
		return err
	}
	return env.answer(env.run.NewSimulation(plan, o.elements, o.from, o.wide))
}

func runRescale(ctx context.Context, o rescaleOptions, env *Env, in, out string) (err error) {
	snap, err := env.open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	stop := env.reading("reading", nil)
	defer stop()
	plan, err := o.plan(ctx, env, snap)
	if err != nil {
		return err
	}
	// It says which operators --keyed leave leaves, and reads no element.
	v, err := plan.Apply(ctx)
	stop()
	multiplied, unionErr := mayBeMultiplied(ctx, plan)
	if unionErr != nil {
		return inContainer(unionErr, snap)
	}
	r := env.run.NewRescale(plan, report.RescaleInput{In: in, Out: out, Flags: o.again(), Wide: o.wide, Suggest: o.suggest, Multiplied: multiplied})
	if errors.Is(err, format.ErrUnsupported) {
		err = &refusal{err, r.InFlight()}
		if out == "" {
			r.Refuse(err.Error(), env.hintOf(err))
			return env.answer(r)
		}
	}
	if err != nil {
		return inContainer(err, snap)
	}
	if out == "" {
		return env.answer(r)
	}
	remarks := r.UndefinedOrders()
	if env.common.output != ui.OutputTable {
		remarks = append(r.Remarks, remarks...)
	} else if err := env.answer(r.Summary()); err != nil {
		return err
	}
	o.note = func(w *report.Write) { w.Remarks = append(w.Remarks, remarks...) }
	return seal(ctx, env, o.writeOptions, snap.With(v.Savepoint), in, out)
}
