package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

type pendingOptions struct{ operators []string }

func (o *pendingOptions) addFlags(fs *pflag.FlagSet) {
	operatorFlag(fs, &o.operators, "only these operators")
}

func (o *pendingOptions) validate() error {
	p := pick{operators: o.operators}
	return p.validate()
}

func newPendingCommand(env *Env) *cobra.Command {
	var o pendingOptions
	cmd := &cobra.Command{
		Use:   "pending SP",
		Short: "Show transactions and files that a restore would commit or abort",
		Long: `Shows what sinks have prepared and not committed when the snapshot was taken,
and what a restore does with it: commit it, abort it, or go on writing. These
are transactions of Kafka (with their id, producer and epoch) and of Pulsar,
files of file sinks, and committables of Iceberg and Paimon.

A savepoint that did not stop the job leaves them for the restore. A restore
without the state of the sink loses what they hold. If the same savepoint is
restored twice, or another job has used the same prefix of transactional ids
meanwhile, the transactions can be gone.

State that is not decoded is named with the reason, and the exit code is 1.`,
		Example: `  spt pending sp-011
  spt pending chk-4211 -o json | jq -r '.commits[].transactional_id'`,
		Args: exactly(1, "one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return runPending(cmd.Context(), o, env, args[0])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runPending(ctx context.Context, o pendingOptions, env *Env, location string) (err error) {
	snap, err := env.open(ctx, location)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	chosen, err := env.chooseOperators(o.operators, snap.Operators)
	if err != nil {
		return err
	}
	stop := env.reading("reading", nil)
	all, err := transform.Pending(ctx, snap.View(), transform.PendingOptions{Operators: selectorOf(snap.Operators, chosen)})
	stop()
	if err != nil {
		return inContainer(err, snap)
	}
	r := env.run.NewPending(all)
	if err := env.answer(r); err != nil {
		return err
	}
	return notDecoded(len(r.NotDecoded))
}

// notDecoded is the result of a command that could not decode n pieces of state.
func notDecoded(n int) error {
	if n == 0 {
		return nil
	}
	return &findings{fmt.Sprintf("%s of state not decoded", ui.Plural(int64(n), "piece"))}
}
