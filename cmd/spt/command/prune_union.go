package command

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

type pruneOptions struct {
	writeOptions
	operators, states []string
	keep, place       string
	by                []string
	max               string
	compact           bool
	acceptUnproven    bool
	elements          int64
	parallelism       int32
	restores          int
	atParallelism     int32
}

func (o *pruneOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	operatorFlag(fs, &o.operators, "only these operators")
	stateFlag(fs, &o.states, "only these union states")
	fs.StringVar(&o.keep, "keep", "", "`POLICY`: which elements to keep in OUT, see above")
	fs.StringSliceVar(&o.by, "by", nil, "with --keep latest-by and max-by: the `FIELD` that identifies elements, such as topic or value[0]; several with commas; repeatable")
	fs.StringVar(&o.max, "max", "", "with --keep max-by: keep the element with the largest value of `FIELD`")
	fs.StringVar(&o.place, "place", string(transform.PlaceStay), "`stay|first|spread`: which subtasks get the kept elements")
	fs.BoolVar(&o.compact, "compact", false, "put all kept elements into one handle and drop the state from the others")
	fs.BoolVar(&o.acceptUnproven, "accept-unproven", false, "also prune state that is not proven to be duplicated by restores")
	fs.Int64Var(&o.elements, "elements", 10_000, "without IN: start with `N` elements")
	fs.Int32Var(&o.parallelism, "parallelism", 100, "with IN: estimate the costs for parallelism `N` instead of the operator's; without IN: restore with it")
	fs.IntVar(&o.restores, "restores", 1, "without IN: restore `N` times")
}

func (o *pruneOptions) validate(env *Env, args []string, given *pflag.FlagSet) error {
	if o.keep != "" && !slices.Contains(transform.Keeps(), transform.Keep(o.keep)) {
		return usagef("--keep %s: must be one of distinct, copies, first-subtask, modulo, latest-by, max-by", ui.Quote(o.keep))
	}
	switch byIdentity := o.keep == string(transform.KeepLatestBy) || o.keep == string(transform.KeepMaxBy); {
	case byIdentity != (len(o.by) > 0):
		return usagef("--by goes with --keep latest-by and --keep max-by: which fields identify elements")
	case (o.keep == string(transform.KeepMaxBy)) != (o.max != ""):
		return usagef("--max and --keep max-by go together")
	}
	switch transform.PlaceKept(o.place) {
	case transform.PlaceStay, transform.PlaceFirst, transform.PlaceSpread:
	default:
		return usagef("--place %s: must be one of stay, first, spread", o.place)
	}
	switch {
	case len(args) == 2 && o.keep == "":
		return &usageError{"--keep is needed to write: choose which of the duplicates stay", "to see them:  spt prune-union " + shell.Quote(args[0])}
	case o.elements < 0 || o.restores < 0 || o.restores > 20:
		return usagef("--elements %d, --restores %d: must be 0 or more elements and 0 to 20 restores", o.elements, o.restores)
	case o.parallelism < 1 || o.parallelism > format.MaxKeyGroups:
		return usagef("--parallelism %d: must be 1 to %d", o.parallelism, format.MaxKeyGroups)
	}
	if len(args) == 0 {
		if err := without("IN", given, "operator", "state", "keep"); err != nil {
			return err
		}
	} else if given.Changed("elements") || given.Changed("restores") {
		return usagef("--elements and --restores cannot be combined with IN")
	}
	if o.keep == "" {
		if err := without("--keep", given, "place", "compact", "accept-unproven"); err != nil {
			return err
		}
	}
	if given.Changed("parallelism") {
		o.atParallelism = o.parallelism
	}
	p := pick{operators: o.operators, states: o.states}
	if err := p.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

func newPruneUnionCommand(env *Env) *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune-union [IN [OUT]]",
		Short: "Find and remove the duplicates that restores left in union state",
		Long: `A restore assigns every element of union state to every subtask. A job that adds
again what it gets multiplies the state by its parallelism with each restore.

Without OUT it reads every element of union state and reports how often each
occurs. Duplicates are proven to come from restores where every subtask holds
the same elements, each equally often. Their order does not matter: with about
10 subtasks or more, Flink assigns the elements to some subtasks in another
order than to others. States are named if a restore loads 64 MiB or more of
them in all subtasks together.

With OUT it removes duplicates by the policy --keep:
  distinct       keeps the first of each equal element
  copies         divides how often each occurs by the largest power of the
                 parallelism that divides all counts, so that elements which the
                 job itself repeats stay repeated
  first-subtask  keeps the list of the first subtask; only where all subtasks
                 hold the same elements
  modulo         keeps the list of the first subtask, element i in subtask i
                 modulo the parallelism; only where all subtasks hold the same
                 elements
  latest-by      keeps the last element of each identity, in the order of subtasks
                 and indexes; --by names the fields that identify an element
  max-by         keeps the element of each identity with the largest --max FIELD
The last two look into values, which must be decoded; fields are named as in
spt cat --where. They prune states with other duplicates, too. All others but
distinct can leave duplicates: from restores at other parallelisms, from earlier
restores, or from the job. What remains is reported. State that is not proven to
be duplicated by restores is left as it is and named (exit 1), or refused where
--state picked it, unless --accept-unproven.

Without IN it shows how union state grows.`,
		Example: `  spt prune-union --elements 10000 --parallelism 100 --restores 1
  spt prune-union sp-007
  spt prune-union sp-007 pruned --state offsets --keep distinct
  spt prune-union sp-007 pruned --state offsets --keep max-by --by 'value[0]' --max 'value[1]'`,
		Args: between(0, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env, args, cmd.Flags()); err != nil {
				return err
			}
			switch len(args) {
			case 0:
				return env.answer(report.NewGrowth(o.elements, o.parallelism, o.restores))
			case 1:
				return runPruneUnion(cmd.Context(), o, env, args[0], "")
			}
			return runPruneUnion(cmd.Context(), o, env, args[0], args[1])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runPruneUnion(ctx context.Context, o pruneOptions, env *Env, in, out string) (err error) {
	snap, err := env.open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	choose, err := o.picked(env, snap)
	if err != nil {
		return err
	}
	if o.keep == "" {
		return o.diagnose(ctx, env, snap, in, choose)
	}
	return o.prune(ctx, env, snap, in, out, choose)
}
