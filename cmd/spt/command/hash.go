package command

import (
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type hashOptions struct{ in string }

func (o *hashOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.in, "in", "", "look for the operators in the snapshot `SP` (exit 1 if one is not there)")
}

// HashRow is one uid and the id that Flink gives it.
type HashRow struct {
	UID   string `json:"uid"`
	ID    string `json:"id"`
	Found *bool  `json:"found,omitempty" jsonschema:"description=with --in: whether an operator of this id stands in the snapshot"`
}

func newHashCommand(env *Env) *cobra.Command {
	var o hashOptions
	cmd := &cobra.Command{
		Use:   "hash UID...",
		Short: "Print the operator id that Flink derives from a uid",
		Long: `Prints the operator id of each uid: the 128 bit murmur3 of its UTF-8 bytes, as
Flink makes it. With --names the uids of a file come after those given. With
--in each is looked for in a snapshot: which hash is which operator. Ids of
operators without a uid follow from the job's graph and have none.`,
		Example: `  spt hash kafka-source
  spt hash --names uids.txt --in sp-001`,
		Args: between(0, -1, "at least one uid, or --names FILE"),
		RunE: func(cmd *cobra.Command, args []string) error { return runHash(cmd.Context(), o, env, args) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runHash(ctx context.Context, o hashOptions, env *Env, uids []string) error {
	named := env.common.names
	if named == "" && len(uids) == 0 {
		named = env.Getenv("SPT_NAMES")
	}
	if named != "" {
		more, err := env.readNames(ctx, named)
		if err != nil {
			return err
		}
		uids = append(uids, more...)
	}
	if len(uids) == 0 {
		return &usageError{"spt hash needs at least one uid, or --names FILE", "usage:  spt hash UID..."}
	}
	there := map[string]bool{}
	if o.in != "" {
		snap, err := env.open(ctx, o.in)
		if err != nil {
			return err
		}
		for _, op := range snap.Operators {
			there[op.ID.String()] = true
		}
		if err := snap.Close(); err != nil {
			return err
		}
	}
	rows := make([]HashRow, len(uids))
	missing := 0
	for i, uid := range uids {
		rows[i] = HashRow{UID: uid, ID: format.OperatorIDOf(uid).String()}
		if o.in != "" {
			found := there[rows[i].ID]
			rows[i].Found = &found
			if !found {
				missing++
			}
		}
	}
	if err := renderHash(env, rows); err != nil {
		return err
	}
	if missing > 0 {
		return &findings{fmt.Sprintf("%s of %d not in %s", ui.Plural(int64(missing), "uid"), len(uids), ui.Quote(o.in))}
	}
	return nil
}

func renderHash(env *Env, rows []HashRow) error {
	done, err := renderRows(env, env.common.output, rows, []string{"id", "uid", "found"}, func(r *HashRow) []string {
		return []string{r.ID, r.UID, foundWord(*r, "true", "false")}
	})
	if done {
		return err
	}
	term := env.term()
	t := ui.NewTable(ui.Column{}, ui.Column{}, ui.Column{})
	for _, r := range rows {
		found := foundWord(r, term.Style().Proved("found"), term.Style().Look("not there"))
		t.Row(r.ID, ui.Quote(r.UID), found)
	}
	return t.Write(env.Stdout, term)
}

func foundWord(r HashRow, yes, no string) string {
	switch {
	case r.Found == nil:
		return ""
	case *r.Found:
		return yes
	}
	return no
}
