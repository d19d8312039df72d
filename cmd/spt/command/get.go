package command

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/ui"
)

// getOptions are the options of cat that choose one key.
type getOptions struct{ catOptions }

func (o *getOptions) addFlags(fs *pflag.FlagSet) {
	operatorFlag(fs, &o.operators, "only these operators")
	stateFlag(fs, &o.states, "the keyed state, or several (required)")
	fs.StringVar(&o.key, "key", "", "the key, in `JSON` as spt cat prints it, such as '\"user-17\"' (required)")
	fs.StringVar(&o.namespace, "namespace", "", "only in this namespace, such as a window, in `JSON`")
	fs.StringVar(&o.userKey, "user-key", "", "of map state only the entry with this key in the map, in `JSON`")
	fs.BoolVar(&o.raw, "raw", false, "print values as they are stored, not decoded")
}

func (o *getOptions) validate(env *Env, given *pflag.FlagSet) error {
	o.output = env.common.output
	if !given.Changed("output") {
		o.output = ui.OutputJSONL
	}
	switch {
	case len(o.states) == 0:
		return &usageError{"--state is required", "spt inspect lists the states of a snapshot, spt cat --key prints all of a key"}
	case o.key == "":
		return &usageError{"--key is required", "spt cat --keys-only prints the keys of a state"}
	}
	return o.pick.validate()
}

func newGetCommand(env *Env) *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use:   "get SP",
		Short: "Print what keyed state holds for one key, without reading the rest",
		Long: `Prints the entries of one key of keyed state as spt cat does, one JSON object a
line: one of each namespace, and of map state one of each key in the map.

The key is read by the serializer of the state, see docs/json.md. Its hash code
determines its key group, and only the subtask that has it is searched: of the
heap backend and of canonical snapshots the key group is read, of RocksDB the
blocks that the index points to. If the bytes of a key do not determine its hash
code, as for POJOs, whose classes compute it, all key groups are searched, which
is reported.

If the snapshot has no such entry, the exit code is 1.`,
		Example: `  spt get sp-002 --state counts --key '"key-4"'
  spt get sp-002 --state window-contents --key '"key-4"' --namespace '{"start":0,"end":1000}'`,
		Args: exactly(1, "one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env, cmd.Flags()); err != nil {
				return err
			}
			return runGet(cmd.Context(), o, env, args[0])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runGet(ctx context.Context, o getOptions, env *Env, location string) (err error) {
	snap, err := env.open(ctx, location)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	sp, err := o.apply(env, snap.Savepoint)
	if err != nil {
		return err
	}
	c := &catter{env: env, catOptions: o.catOptions, snap: snap, get: true}
	states, err := c.catStates(ctx, sp)
	if err != nil {
		return err
	}
	if err := c.print(ctx, states); err != nil {
		return err
	}
	if c.printed > 0 {
		return nil
	}
	return &findings{strings.Join(append([]string{"no such entry"}, c.left...), "; not searched: ")}
}
