package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

type renameOptions struct {
	writeOptions
	uids, states []string
	operators    []string

	uidPairs, statePairs [][2]string
}

func (o *renameOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.StringArrayVar(&o.uids, "uid", nil, "`OLD=NEW`: give the operator OLD (a uid, a name, an id or an unambiguous beginning of an id, 4 digits or more) the uid NEW; repeatable, all at once")
	fs.StringArrayVar(&o.states, "state-name", nil, "`OLD=NEW`: give states named OLD the name NEW; repeatable, all at once")
	operatorFlag(fs, &o.operators, "with --state-name: only in these operators")
}

func (o *renameOptions) validate(env *Env) error {
	if len(o.uids)+len(o.states) == 0 {
		return &usageError{"nothing is named that could be renamed", "--uid OLD=NEW or --state-name OLD=NEW says what"}
	}
	if len(o.states) == 0 {
		if err := without("--state-name", o.given, "operator"); err != nil {
			return err
		}
	}
	for _, l := range []struct {
		flag string
		in   []string
		out  *[][2]string
	}{{"--uid", o.uids, &o.uidPairs}, {"--state-name", o.states, &o.statePairs}} {
		for _, s := range l.in {
			from, to, ok := strings.Cut(s, "=")
			if !ok || from == "" || to == "" {
				return usagef("%s %s: it is given as OLD=NEW", l.flag, ui.Quote(s))
			}
			if n := metadata.TextSize(to); n > metadata.MaxText {
				return usagef("%s: NEW is %d bytes, the format allows %d", l.flag, n, metadata.MaxText)
			}
			*l.out = append(*l.out, [2]string{from, to})
		}
	}
	return o.writeOptions.validate(env)
}

func newRenameCommand(env *Env) *cobra.Command {
	var o renameOptions
	cmd := &cobra.Command{
		Use:   "rename IN [OUT]",
		Short: "Set new uids of operators, and new names of states",
		Long: `Sets new uids of operators. Their ids become what Flink computes from the uids.
The uid is stored too if the snapshot stores uids and names (Flink 2.0 and
later). All renames happen at once, so that two operators can swap. Two
operators with one id are refused.

--state-name renames operator states and keyed states, in _metadata and in the
state itself. Keyed state of an operator in which one was renamed is built again
in the canonical format of savepoints, which any backend but ForSt restores.`,
		Example: `  spt rename sp-001 renamed --uid even-id-logger=id-logger
  spt rename sp-001 swapped --uid sink=buffering-sink --uid buffering-sink=sink
  spt rename sp-001 renamed --operator buffering-sink --state-name buffered-elements=pending`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			return edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
				return o.rename(cmd.Context(), env, snap)
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *renameOptions) rename(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	uids := map[string]string{} // by id
	for _, pair := range o.uidPairs {
		p := pick{flag: "--uid", operators: []string{pair[0]}}
		ops, err := p.pickOperators(env, snap.Operators)
		if err != nil {
			return nil, nil, err
		}
		n := len(ops)
		if n > 1 { // a name, or a glob, may fit others
			ops = slices.DeleteFunc(ops, func(op *format.Operator) bool { return op.UID.String() != pair[0] })
		}
		if len(ops) != 1 {
			return nil, nil, usagef("--uid %s: %s match", ui.Quote(pair[0]), ui.Plural(int64(n), "operator"))
		}
		if old, twice := uids[ops[0].ID.String()]; twice && old != pair[1] {
			return nil, nil, usagef("--uid names %s twice", ui.Quote(pair[0]))
		}
		uids[ops[0].ID.String()] = pair[1]
	}
	opts := transform.RenameOptions{UIDs: uids, Jobs: env.readJobs(snap)}
	if len(o.statePairs) > 0 {
		chosen, err := env.chooseOperators(o.operators, snap.Operators)
		if err != nil {
			return nil, nil, err
		}
		names := map[string]string{}
		var asked []string
		for _, pair := range o.statePairs {
			if to, twice := names[pair[0]]; twice && to != pair[1] {
				return nil, nil, usagef("--state-name names %s twice", ui.Quote(pair[0]))
			}
			names[pair[0]] = pair[1]
			asked = append(asked, pair[0])
		}
		if err := env.checkStates(ctx, snap, "--state-name", asked, func(want, name string) bool { return want == name }, chosen); err != nil {
			return nil, nil, err
		}
		opts.Operators, opts.States = selectorOf(snap.Operators, chosen), names
	}
	v, done, err := transform.Rename(ctx, snap.View(), opts)
	if err != nil {
		return nil, nil, err
	}
	r := env.run.NewEdit()
	r.Renamed(done)
	return v.Savepoint, r, nil
}
