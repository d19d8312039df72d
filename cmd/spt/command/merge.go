package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

type mergeOptions struct {
	writeOptions
	from              string
	operators, states []string
}

func (o *mergeOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.StringVar(&o.from, "from", "", "snapshot `B` to take operators from")
	operatorFlag(fs, &o.operators, "take these operators of B")
	stateFlag(fs, &o.states, "take only these states, into the operator with the same id")
}

func (o *mergeOptions) validate(env *Env) error {
	if o.from == "" {
		return &usageError{"--from B is needed: the snapshot that operators are taken from", "spt merge A OUT --from B --operator UID"}
	}
	if len(o.operators) == 0 {
		return &usageError{"--operator is needed: what is taken from " + ui.Quote(o.from), "--operator '*' takes all; to see what is there:  spt inspect " + shell.Quote(o.from)}
	}
	p := pick{operators: o.operators, states: o.states}
	if err := p.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

func newMergeCommand(env *Env) *cobra.Command {
	var o mergeOptions
	cmd := &cobra.Command{
		Use:   "merge A [OUT] --from B --operator NAME",
		Short: "Take operators, or single states, from another snapshot",
		Long: `Copies operators with all their state from a snapshot B into a snapshot A. All
else of A is copied byte for byte. Files of B are copied too; if a file of A has
the same name, a number is appended to the name of the file of B.

With --state, only states of that name are taken, into the operator of the same
id, or as an operator of their own where A has none. Keyed state of an operator
that gets another one is built again in the canonical format of savepoints,
which any backend but ForSt restores; its max parallelism must be the same in A
and B.

Nothing of A is replaced: an operator, or a state, that A has already is
refused. So are in-flight data, an operator that had finished, and single
states where A and B have the operator at different parallelisms.`,
		Example: `  spt merge sp-001 both --from sp-007 --operator union
  spt merge before both --from after --operator sink --state writer_raw_states`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			return o.run(cmd, env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *mergeOptions) run(cmd *cobra.Command, env *Env, args []string) (err error) {
	out := ""
	if len(args) == 2 {
		out = args[1]
	}
	ctx := cmd.Context()
	a, err := env.open(ctx, args[0])
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	b, err := env.open(ctx, o.from)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.Close()) }()
	picked, err := o.picked(ctx, env, a, b)
	if err != nil {
		return err
	}
	both, from, err := reader.Combine(ctx, a, b.With(picked))
	if err != nil {
		return inContainer(err, b)
	}
	stop := env.reading("reading", nil)
	v, done, err := transform.Merge(ctx, both.View(), transform.MergeOptions{From: from, States: o.states})
	stop()
	if err != nil {
		return format.At(err, "merging %s", ui.Quote(o.from))
	}
	r, err := o.result(cmd, env, a, b, args[0], done)
	if err != nil {
		return err
	}
	return sealEdit(ctx, env, o.writeOptions, args[0], out, both, v.Savepoint, r)
}

// picked is B with the operators that are asked for, in the version of _metadata
// that A has.
func (o *mergeOptions) picked(ctx context.Context, env *Env, a, b *reader.Snapshot) (*format.Savepoint, error) {
	p := pick{operators: o.operators}
	ops, err := p.pickOperators(env, b.Operators)
	if err != nil {
		return nil, err
	}
	if len(o.states) > 0 {
		if err := env.checkStates(ctx, b, "--state", o.states, globMatches, among(ops)); err != nil {
			return nil, err
		}
	}
	c := *b.Savepoint
	c.Operators = ops
	mine, ok1 := metadata.VersionOf(a.Savepoint)
	theirs, ok2 := metadata.VersionOf(b.Savepoint)
	switch {
	case !ok1 || !ok2 || mine == theirs:
		return &c, nil
	case mine < theirs:
		return nil, &hintedError{
			format.Errorf(format.ErrUnsupported, "%s has metadata %s, which is newer than %s of %s", ui.Quote(o.from), theirs, mine, ui.Quote(a.Location)),
			fmt.Sprintf("bring one to the version of the other first:  spt convert %s OUT --metadata-version %d", shell.Quote(a.Location), int32(theirs))}
	}
	return metadata.WithVersion(&c, mine)
}

func (o *mergeOptions) result(cmd *cobra.Command, env *Env, a, b *reader.Snapshot, to string, done *transform.MergeReport) (*report.Edit, error) {
	r := env.run.NewEdit()
	sizes, err := operatorBytes(cmd.Context(), done.Operators)
	if err != nil {
		return nil, err
	}
	r.Merged(done, sizes, o.from, to)
	if len(done.Operators) > 0 {
		r.MergedKinds(summary.KindOf(a.Savepoint), summary.KindOf(b.Savepoint), a.Location, b.Location)
	}
	return r, nil
}
