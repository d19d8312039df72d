package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
)

type hashOptions struct{ in string }

func (o *hashOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.in, "in", "", "look for the operators in the snapshot `SP` (exit 1 if one is not there)")
}

func newHashCommand(env *Env) *cobra.Command {
	var o hashOptions
	cmd := &cobra.Command{
		Use:   "hash UID|ID...",
		Short: "Print the operator id that Flink derives from a uid",
		Long: `Prints the operator id of each uid: the 128-bit murmur3 of its UTF-8 bytes, as
Flink computes it. With --names the uids of a file follow those given. With --in
each is looked for in a snapshot: which id is which operator.

An argument of 32 hexadecimal digits is an id, not a uid: the uid that has it is
looked for in --names and in the snapshot of --in (exit 1 if it is in neither).
In a file of --names every line is a uid. Operators without a uid have ids that
follow from the job graph, and no uid has those.`,
		Example: `  spt hash kafka-source
  spt hash 9f58a7772f5543d78061e8225175f39f --names uids.txt
  spt hash --names uids.txt --in sp-001`,
		Args: between(0, -1, "at least one uid or id, or --names FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return runHash(cmd.Context(), o, env, args) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runHash(ctx context.Context, o hashOptions, env *Env, args []string) error {
	rows := make(report.Hashes, 0, len(args))
	ids := 0
	for _, arg := range args {
		row := report.Hash{UID: arg, ID: format.OperatorIDOf(arg).String()}
		if id, ok := format.ParseOperatorID(strings.ToLower(arg)); ok {
			row = report.Hash{ID: id.String(), FromID: true}
			ids++
		}
		rows = append(rows, row)
	}
	named := env.common.names
	if named == "" && len(args) == 0 {
		named = env.Getenv("SPT_NAMES")
	}
	if named != "" && ids == 0 { // else the file is for looking ids up
		more, err := env.readNames(ctx, named)
		if err != nil {
			return err
		}
		for _, uid := range more {
			rows = append(rows, report.Hash{UID: uid, ID: format.OperatorIDOf(uid).String()})
		}
	}
	if len(rows) == 0 {
		return &usageError{"spt hash needs at least one uid or id, or --names FILE", "usage:  spt hash UID|ID..."}
	}
	missing := 0
	if o.in != "" {
		there, err := env.operatorIDs(ctx, o.in)
		if err != nil {
			return err
		}
		for i := range rows {
			found := there[rows[i].ID]
			rows[i].Found = &found
			if !found {
				missing++
			}
		}
	}
	unknown, err := env.findUIDs(rows)
	if err != nil {
		return err
	}
	if err := env.answer(rows); err != nil {
		return err
	}
	switch {
	case missing > 0 && ids > 0:
		return &findings{fmt.Sprintf("%d of %s not in %s", missing, ui.Plural(int64(len(rows)), "operator"), ui.Quote(o.in))}
	case missing > 0:
		return &findings{fmt.Sprintf("%s of %d not in %s", ui.Plural(int64(missing), "uid"), len(rows), ui.Quote(o.in))}
	case unknown > 0 && env.run.KnowsUIDs():
		return &findings{fmt.Sprintf("no uid known for %s", ui.Plural(int64(unknown), "id"))}
	}
	return nil
}

// operatorIDs returns the ids of a snapshot's operators, and learns the uids that
// it has.
func (e *Env) operatorIDs(ctx context.Context, location string) (map[string]bool, error) {
	snap, err := e.open(ctx, location)
	if err != nil {
		return nil, err
	}
	there := map[string]bool{}
	for _, op := range snap.Operators {
		there[op.ID.String()] = true
		if uid := op.UID.String(); uid != "" {
			e.run.LearnUID(uid)
		}
	}
	return there, snap.Close()
}

// findUIDs fills in the uids of the rows that were given as ids, says that they
// were taken as such, and counts those without one.
func (e *Env) findUIDs(rows report.Hashes) (unknown int, err error) {
	for i := range rows {
		r := &rows[i]
		if !r.FromID {
			continue
		}
		text := r.ID + " is an operator id"
		if r.UID = e.run.Learned(r.ID); r.UID == "" {
			unknown++
			if !e.run.KnowsUIDs() {
				text += "; --names FILE tells which uid has it"
			}
		}
		if err := e.remark("%s (as a uid, it would have the id %s)", text, format.OperatorIDOf(r.ID)); err != nil {
			return 0, err
		}
	}
	return unknown, nil
}
