package command

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

type dropOptions struct {
	writeOptions
	operators, states      []string
	coordinators, channels bool
	empty                  bool
}

func (o *dropOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	operatorFlag(fs, &o.operators, "drop these operators, or with the flags below only that part of them")
	stateFlag(fs, &o.states, "drop these states")
	fs.BoolVar(&o.coordinators, "coordinator", false, "drop coordinator state")
	fs.BoolVar(&o.channels, "channels", false, "drop in-flight data (it is lost)")
	fs.BoolVar(&o.empty, "empty", false, "drop operators that have no state")
}

func (o *dropOptions) validate(env *Env) error {
	if len(o.operators)+len(o.states) == 0 && !o.coordinators && !o.channels && !o.empty {
		return &usageError{"nothing to drop", "--operator, --state, --coordinator, --channels or --empty says what"}
	}
	p := pick{operators: o.operators, states: o.states}
	if err := p.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

func newDropCommand(env *Env) *cobra.Command {
	var o dropOptions
	cmd := &cobra.Command{
		Use:   "drop IN [OUT]",
		Short: "Remove operators, states, coordinator state or in-flight data",
		Long: `Removes operators, or parts of them, from a snapshot: states by name, the state
of coordinators, in-flight data. All else is copied byte for byte.

--state removes operator states and keyed states. Timers are keyed states too:
of the timer service NAME they are _timer_state/event_NAME and
_timer_state/processing_NAME. Other keyed state of the operator is built again
in the canonical format of savepoints, which any backend but ForSt restores.

A job that has a dropped state starts with it empty. Flink needs no
--allowNonRestoredState for what is gone.`,
		Example: `  spt drop sp-001 smaller --operator even-id-logger
  spt drop sp-001 smaller --operator buffering-sink --state buffered-elements
  spt drop sp-002 smaller --operator keyed --state '_timer_state/*'
  spt drop chk-4211 aligned --channels`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			ctx := cmd.Context()
			return edit(ctx, env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
				return o.drop(cmd.Context(), env, snap)
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *dropOptions) drop(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	chosen, err := env.chooseOperators(o.operators, snap.Operators)
	if err != nil {
		return nil, nil, err
	}
	d := transform.DropOptions{Operators: selectorOf(snap.Operators, chosen), Coordinators: o.coordinators, Channels: o.channels, Empty: o.empty, Jobs: env.readJobs(snap)}
	if len(o.states) > 0 {
		if err := env.checkStates(ctx, snap, "--state", o.states, globMatches, chosen); err != nil {
			return nil, nil, err
		}
		d.States = o.states
	}
	v, dropped, err := transform.Drop(ctx, snap.View(), d)
	if err != nil {
		return nil, nil, err
	}
	sizes, err := operatorBytes(ctx, dropped.Operators)
	if err != nil {
		return nil, nil, err
	}
	r := env.run.NewEdit()
	r.Dropped(dropped, sizes)
	return v.Savepoint, r, nil
}

// chooseOperators makes a choice of what --operator names, all where it names
// none.
func (e *Env) chooseOperators(names []string, all []*format.Operator) (func(*format.Operator) bool, error) {
	p := pick{operators: names}
	ops, err := p.pickOperators(e, all)
	if err != nil {
		return nil, err
	}
	return among(ops), nil
}
