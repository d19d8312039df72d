package command

import (
	"context"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

type filterOptions struct {
	writeOptions
	typeFlags
	where             string
	invert            bool
	operators, states []string

	filter *catFilter
}

func (o *filterOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	o.typeFlags.addFlags(fs)
	fs.StringVar(&o.where, "where", "", "keep the elements for which `EXPR` is true, such as 'value > 20'")
	fs.BoolVar(&o.invert, "invert", false, "keep the elements for which EXPR is false")
	operatorFlag(fs, &o.operators, "filter only these operators")
	stateFlag(fs, &o.states, "filter only these operator states")
}

func (o *filterOptions) validate(env *Env) error {
	if o.where == "" {
		return &usageError{"nothing says which elements to keep", "--where EXPR does, such as 'value > 20'"}
	}
	var err error
	if o.filter, err = newCatFilter(o.where); err != nil {
		return err
	}
	o.filter.invert = o.invert
	o.filter.hint = "use --operator and --state to choose others; the others stay whole"
	p := pick{operators: o.operators, states: o.states}
	if err := p.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

func newFilterCommand(env *Env) *cobra.Command {
	var o filterOptions
	cmd := &cobra.Command{
		Use:   "filter IN [OUT]",
		Short: "Keep the elements of operator state that match an expression",
		Long: `Keeps the elements of list and union state, and the entries of broadcast state,
for which an expression is true, and removes the others. What is kept is copied
byte for byte, in its order, and so is all other state. A state without any
element left is kept, empty.

These names can be used in --where, as with spt cat, which shows first what
would stay:
` + catWhereHelp() + `

An expression that uses values is refused for a state whose values are not
decoded; --state leaves such a state out, and --type decodes it. A map of broadcast state that is not
decoded is kept or emptied as a whole, by its state and subtask.

Each subtask has a replica of a broadcast state. An expression that uses subtask
leaves replicas that differ; spt reports it.`,
		Example: `  spt filter sp-001 small --state even-ids --where 'value > 20'
  spt filter sp-001 small --operator buffering-sink --where 'size > 1 * KiB' --invert
  spt filter sp-009 fewer --state rules --where 'not (key in [7, 8])'`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			if err := env.readTypes(cmd.Context(), o.typeFlags); err != nil {
				return err
			}
			return edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
				return o.keep(cmd.Context(), env, snap)
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *filterOptions) keep(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	chosen, err := env.chooseOperators(o.operators, snap.Operators)
	if err != nil {
		return nil, nil, err
	}
	if len(o.states) > 0 {
		if err := env.checkStates(ctx, snap, "--state", o.states, globMatches, chosen); err != nil {
			return nil, nil, err
		}
	}
	c := &catter{env: env, snap: snap, catOptions: catOptions{pick: pick{states: o.states}, filter: o.filter}}
	asked := &asker{ctx: ctx, c: c}
	stop := env.reading("reading", someState(ctx, snap, statesOf(snap.Savepoint, func(op *format.Operator, st *format.NamedState) bool {
		return chosen(op) && matches(o.states, st.Name.String())
	})))
	defer stop()
	v, done, err := transform.Filter(ctx, snap.View(), transform.FilterOptions{
		Operators: selectorOf(snap.Operators, chosen), States: o.states,
		Keep: asked.keep,
	})
	if err != nil {
		return nil, nil, err
	}
	if len(done.States) == 0 {
		if slices.ContainsFunc(snap.Operators, func(op *format.Operator) bool { return chosen(op) && op.HasKeyed() }) {
			return nil, nil, keyedError("there is no operator state to filter, and entries of keyed state stay as they are")
		}
		return nil, nil, usagef("there is no operator state to filter")
	}
	r := env.run.NewEdit()
	r.Filtered(done)
	return v.Savepoint, r, nil
}
