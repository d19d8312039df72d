package command

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
)

type trendOptions struct {
	operators, states []string
	limit             ui.Size
	limitElements     int64
	depth, top        int
	count             bool
}

func (o *trendOptions) addFlags(fs *pflag.FlagSet) {
	operatorFlag(fs, &o.operators, "only these operators")
	stateFlag(fs, &o.states, "only these states")
	fs.Var(&o.limit, "limit", "predict when the bytes of each state reach `SIZE`, such as 1GiB")
	fs.Int64Var(&o.limitElements, "limit-elements", 0, "predict when the elements of each state reach `N`")
	fs.BoolVar(&o.count, "count", false, "read all entries of keyed state, and show entries and their bytes of each keyed state")
	fs.IntVar(&o.depth, "depth", 8, "search `N` levels of directories below a ROOT")
	fs.IntVar(&o.top, "top", 20, "in a table: print the `N` states that grew most; 0: all, also those that did not change")
}

func (o *trendOptions) validate(given *pflag.FlagSet) error {
	switch {
	case given.Changed("limit") && o.limit == 0:
		return usagef("--limit 0: must be 1 byte or more")
	case given.Changed("limit-elements") && o.limitElements < 1:
		return usagef("--limit-elements %d: must be 1 or more", o.limitElements)
	case o.depth < 1:
		return usagef("--depth %d: must be 1 or more", o.depth)
	case o.top < 0:
		return usagef("--top %d: must be 0 or more", o.top)
	}
	p := pick{operators: o.operators, states: o.states}
	return p.validate()
}

func newTrendCommand(env *Env) *cobra.Command {
	var o trendOptions
	cmd := &cobra.Command{
		Use:   "trend SP...|ROOT",
		Short: "Show what grew over many snapshots, and when it reaches a limit",
		Long: `Shows how the states of several snapshots grew: those given, in their order, or
those found under the directory ROOT, oldest first: by checkpoint id, or by time
where two have the same id. Largest growth first.

PER CHECKPOINT is the growth from the first to the last, by the difference of
their checkpoint ids where those increase, else by the number of snapshots. With
--limit and --limit-elements it predicts when each reaches the limit: by a
straight line through the first and the last, whatever is between them.

It reads the description of each snapshot, and no state. With --count it also
reads all entries of keyed state: ELEMENTS of a keyed state are its entries, and
its bytes are of stored keys and values, before compression. As CSV it prints a
row for each state in each snapshot.`,
		Example: `  spt trend /data/flink/orders --limit 1GiB
  spt trend chk-4100 chk-4150 chk-4211 --state committable-state
  spt trend /data/flink/orders --count
  spt trend /data/flink/orders -o csv > growth.csv`,
		Args: between(1, -1, "snapshots, or a directory that holds them"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd.Flags()); err != nil {
				return err
			}
			return runTrend(cmd.Context(), o, env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// trend adds snapshots to its report.
type trend struct {
	trendOptions
	*report.Trend
	env     *Env
	names   []string         // of states that were seen
	none    map[string]error // of each --operator that has matched nothing so far
	damaged bool             // a snapshot that was left out is corrupt
}

func runTrend(ctx context.Context, o trendOptions, env *Env, args []string) error {
	t := &trend{trendOptions: o, env: env, none: map[string]error{}, Trend: env.run.NewTrend(report.TrendOptions{
		Limit: int64(o.limit), LimitElements: o.limitElements, Top: o.top, Picked: len(o.operators)+len(o.states) > 0,
	})}
	paths := args
	if len(args) == 1 {
		var err error
		if paths, err = t.find(ctx, args[0]); err != nil {
			return err
		}
	}
	if len(paths) < 2 && len(t.LeftOut) > 0 {
		return t.tooFew(len(paths))
	}
	if len(paths) < 2 {
		return &usageError{fmt.Sprintf("%s: a trend needs at least two", ui.Plural(int64(len(paths)), "snapshot")), "to see what is there:  spt ls " + shell.Quote(args[0])}
	}
	if err := t.addAll(ctx, paths, t.add); err != nil {
		return err
	}
	if len(t.Snapshots) < 2 {
		return t.tooFew(len(t.Snapshots))
	}
	for _, want := range o.operators {
		if err := t.none[want]; err != nil {
			return err
		}
	}
	if err := env.checkGlobs(o.states, t.names, "state", "no operator picked has a state with a name"); err != nil {
		return err
	}
	t.Finish()
	if err := env.answer(t.Trend); err != nil {
		return err
	}
	if n := len(t.LeftOut); n > 0 {
		return &findings{fmt.Sprintf("%s left out, which cannot be read: %s\n  %s", ui.Plural(int64(n), "snapshot"), report.ShortenQuoted(t.LeftOut), t.Reasons())}
	}
	return nil
}
