package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
)

type inspectOptions struct {
	pick
	by      string
	top     int
	failIf  string
	salvage bool
	wide    bool
	deep    bool
	files   bool
	count   countOptions
	guard   *guard
	groups  bool // find how keyed state is distributed over key groups
}

func (o *inspectOptions) addFlags(fs *pflag.FlagSet) {
	o.pick.addFlags(fs)
	fs.StringVar(&o.by, "by", "", "`operator|state|subtask|handle|file|key-group`: print one table of these, largest first; key-group needs --count")
	fs.IntVar(&o.top, "top", 0, "print only the `N` largest; 0: all")
	fs.StringVar(&o.failIf, "fail-if", "", "exit 1, and name the states, if `EXPR` is true, such as 'union_elements > 100000'")
	fs.BoolVar(&o.salvage, "salvage", false, "of a damaged _metadata, print what precedes the damage (exit 4)")
	fs.BoolVar(&o.deep, "deep", false, "also read the elements of union states, and report how often each occurs")
	fs.BoolVar(&o.files, "check-files", false, "of a snapshot that is not on this machine, look for the files and read headers too")
	o.count.addFlags(fs)
	fs.BoolVar(&o.wide, "wide", false, "print full ids and names, and how the bytes of operators are distributed over subtasks")
}

func (o *inspectOptions) validate(env *Env, given *pflag.FlagSet) error {
	rows := []string{report.ByOperator, report.ByState, report.BySubtask, report.ByHandle, report.ByFile, report.ByKeyGroup}
	if o.by != "" && !slices.Contains(rows, o.by) {
		return usagef("--by %s: must be one of %s", o.by, strings.Join(rows, ", "))
	}
	if o.by == "" && env.common.output == ui.OutputParquet {
		return usagef("-o parquet: the columns depend on the rows: it needs --by %s", strings.Join(rows, "|"))
	}
	if o.top < 0 {
		return usagef("--top %d: must be 0 or more", o.top)
	}
	if o.by == report.ByKeyGroup && !o.count.on {
		return usagef("--by key-group reads all entries of keyed state: it needs --count")
	}
	if err := o.count.validate(given); err != nil {
		return err
	}
	if o.failIf != "" {
		g, err := newGuard("--fail-if", o.failIf)
		if err != nil {
			return err
		}
		if g.counts && !o.count.on {
			return usagef("--fail-if names counts of entries of keyed state: it needs --count")
		}
		o.guard = g
	}
	return o.pick.validate()
}

func newInspectCommand(env *Env) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect SP...",
		Short: "Show what is in a snapshot: operators, states, elements, bytes",
		Long: `Shows what a snapshot is, what it holds and where its bytes are stored:
operators with parallelism, list, union and broadcast states with their
elements, keyed state with its key groups, coordinators, in-flight data; largest
first. Rows add up to their operator, and operators to the total: (serializers)
is serializer snapshots, headers, and bytes that belong to no element. A file
that several operators use is counted for the first of them.

It reads the description of the snapshot and checks that the files exist. Of the
state it reads only headers, for the names, kinds and types of states and
whether they are compressed: all inline ones, and up to 16 in files for each
operator. The bytes of one keyed state among several are not known without
reading them all. What inspect reports about elements follows from their
offsets. That restores may have multiplied a union state is a guess: all
subtasks hold as many elements of the same lengths, in any order, and the same
elements where those are inline. --deep reads the elements of union states and
reports how often each occurs. Union states that make a restore load 64 MiB or
more, into all subtasks together, are pointed out.

Of a snapshot that is not on this machine it reads the description only, in one
request up to 1 MiB and one for each 8 MiB more. --check-files lists the
directories of its files and reads the headers in files, --deep does as well;
--by file and --fail-if list the directories.

SP is - to read a _metadata from standard input. Its files are then not checked.
With several snapshots, those that cannot be read are named, and the others are
shown; -o json prints a list.

--count reads all entries of keyed state, as many parts at a time as --jobs says
and in bounded memory, and reports for each state: entries, distinct keys, bytes
of stored keys and values (ENTRY BYTES, before compression), and in tables of
RocksDB the bytes of entries that are overwritten or deleted (DEAD), which
compaction removes. It reports when timers fire, of event time too, relative to
--at; how the bytes of each operator are distributed over key groups; and what
each subtask holds at --parallelism. With --ttl it counts the entries that had
not been updated for so long at --at: a snapshot records that a state has a time
to live, not how long it is. --at is when the snapshot was stored, unless given.

--fail-if is a guard for a scheduled job. The expression is evaluated for each
state, or for the whole snapshot; these names can be used in it:
` + guardHelp(),
		Example: `  spt inspect sp-001
  spt inspect chk-4211/_metadata --by file --top 20
  spt inspect chk-4100 chk-4211
  aws s3 cp s3://flink/chk-4211/_metadata - | spt inspect -
  spt inspect sp-001 --fail-if 'union_elements > 100000 or may_be_multiplied'
  spt inspect sp-001 --count --ttl 7d --parallelism 64
  spt inspect sp-001 --count --by key-group --top 5
  spt inspect sp-001 -o json | jq '.operators[].states[] | select(.kind == "union")'`,
		Args: between(1, -1, "at least one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env, cmd.Flags()); err != nil {
				return err
			}
			return runInspect(cmd.Context(), o, env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runInspect(ctx context.Context, o inspectOptions, env *Env, locations []string) error {
	var all report.Inspects
	var failed several
	var offenders []string
	progress := env.progress()
	progress.StartCount(int64(len(locations)), "opening snapshots")
	defer progress.Stop()
	for _, location := range locations {
		one, partial, err := o.inspect(ctx, env, location)
		progress.Add(1)
		if err != nil {
			if ctx.Err() != nil || len(locations) == 1 {
				return err
			}
			// Several were asked for: report this one and go on.
			one = env.run.NewUninspected(location, err)
			if !strings.Contains(err.Error(), location) {
				err = fmt.Errorf("%s: %w", ui.Quote(location), err)
			}
			failed = append(failed, err)
		}
		failed = append(failed, partial...)
		if one.FailIf != nil {
			offenders = append(offenders, one.FailIf.For...)
		}
		all = append(all, one)
	}
	progress.Stop()
	if err := o.print(env, all); err != nil {
		return err
	}
	switch {
	case len(failed) == 1:
		return failed[0]
	case len(failed) > 0:
		return failed
	case len(offenders) > 0:
		return &findings{fmt.Sprintf("%s holds for %s", o.failIf, report.ShortenQuoted(offenders))}
	}
	return nil
}

func (o *inspectOptions) print(env *Env, all report.Inspects) error {
	if o.by == "" {
		if err := env.answer(all); err != nil || env.common.output != ui.OutputCSV {
			return err
		}
		for range all.Empty() {
			if err := env.remark("no operator: nothing to show"); err != nil {
				return err
			}
		}
		return nil
	}
	rows := report.NewInspectRows(o.by, o.top, all)
	if err := env.answer(rows); err != nil {
		return err
	}
	for _, text := range rows.Empty() {
		if err := env.remark("%s", text); err != nil {
			return err
		}
	}
	return nil
}
