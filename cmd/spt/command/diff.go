package command

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/diff"
)

type diffOptions struct {
	ignore    []string
	placement bool
	verbose   bool
	limit     int
	operators []string
	schema    bool
}

func (o *diffOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.ignore, "ignore", nil, "do not compare differences of this `KIND`, and read nothing for them; several with commas; repeatable")
	fs.BoolVar(&o.placement, "placement", false, "also compare which subtask holds an element or a key group")
	fs.BoolVarP(&o.verbose, "verbose", "v", false, "list the elements, entries and key groups that differ")
	fs.IntVar(&o.limit, "limit", 10, "with -v: list at most `N` added, N removed and N changed elements or entries of each state")
	operatorFlag(fs, &o.operators, "compare only these operators")
	fs.BoolVar(&o.schema, "schema", false, "compare only the types of states, field by field, and report whether a job with the types of B restores A")
}

func (o *diffOptions) validate(output ui.Output) error {
	if o.schema && output == ui.OutputParquet {
		return usagef("-o parquet: the result of spt diff --schema has no typed columns; use -o table, json or jsonl")
	}
	if o.schema && (len(o.ignore) > 0 || o.placement || o.verbose) {
		return usagef("--schema compares only types: it cannot be combined with --ignore, --placement or -v")
	}
	for _, k := range o.ignore {
		if !slices.Contains(diffKinds(), k) {
			return usagef("--ignore %s: must be one of %s", ui.Quote(k), strings.Join(diffKinds(), ", "))
		}
	}
	if o.limit < 1 || o.limit > maxListed {
		return usagef("--limit %d: must be 1 to %d", o.limit, maxListed)
	}
	p := pick{operators: o.operators}
	return p.validate()
}

// maxListed bounds what is kept of each state to be listed.
const maxListed = 100_000

func diffKinds() []string {
	var all []string
	for _, k := range diff.Kinds {
		all = append(all, string(k.Kind))
	}
	return all
}

func diffKindHelp() string {
	var b strings.Builder
	for _, k := range diff.Kinds {
		help := k.Help
		if k.Kind == diff.KindPlacement {
			help += " (only with --placement)"
		}
		entry(&b, helpWidth, 2, 19, string(k.Kind), help)
	}
	return strings.TrimRight(b.String(), "\n")
}

func newDiffCommand(env *Env) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two snapshots: operators, states, sizes, elements",
		Long: `Compares two snapshots, the older first. Containers do not matter: a Flink
snapshot and the .spt file made from it are the same, and so are two snapshots
that differ only in their checkpoint ids. Sorted by growth, largest first.

Elements of operator state are compared as multisets; --placement also compares
which subtask holds them. Broadcast state is compared by key where its types are
known, else by whole maps. Some bytes are not read, and reported: a file that
both snapshots refer to by the same absolute reference and that is one file,
chunks of two .spt files that have the same checksums, and files that both refer
to alike and that neither has, or that cannot be looked for.

Keyed state is compared by the bytes of its key groups and by its files. Where
these differ, its entries are compared: added, removed and changed ones of each
state, by key, namespace and map key, whatever the state backends, encodings,
parallelisms and max parallelisms of the two snapshots are. With equal max
parallelisms a key that is in another key group is removed and added: the job
does not find its state there. With -v and -o jsonl each entry that differs is a
line with "before" and "after", which are as spt cat prints entries: a change
feed, of up to --limit entries of each state and kind of change.

Operators under another id are suggested as renamed, with the command, where
exactly one fits: by their stored names, without the number that the SQL planner
appends; where none are stored, by their states, types and sizes. Where several
fit they are listed. An operator that kept its id under another stored name is
marked with "!", because Flink matches state to operators by id. check --like
suggests the same.

--schema compares the types of states and reads only headers: each serializer
that changed, and in it each field, is compatible as is, after migration, or
not, by the rules of Flink's serializers. Operators are matched by id.

It reads all operator state, and the keyed state that the two do not refer to
alike, in ranges, as many at a time as --jobs says. Operator state with more
than three million elements is read twice. Memory use is bounded regardless of
size: what does not fit goes to temporary files (--tmp), 40 bytes for each
different element or entry.

Difference kinds accepted by --ignore:
` + diffKindHelp(),
		Example: `  spt diff chk-4100 chk-4211
  spt diff sp-001 sp-002 -v --limit 3
  spt diff chk-4100 sp-of-new-version --schema
  spt diff sp-001 sp-002 -v --limit 100000 -o jsonl | jq 'select(.kind == "entry")'
  spt diff before after --ignore offsets,coordinator -o json
  spt diff sp-001 sp-012.spt && echo nothing was lost`,
		Args: exactly(2, "two snapshots"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env.common.output); err != nil {
				return err
			}
			return runDiff(cmd.Context(), o, env, args[0], args[1])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runDiff(ctx context.Context, o diffOptions, env *Env, a, b string) (err error) {
	var snaps [2]*reader.Snapshot
	for i, location := range []string{a, b} {
		if snaps[i], err = env.open(ctx, location); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, snaps[i].Close()) }()
	}
	var inputs [2]format.View
	for i, snap := range snaps {
		inputs[i] = snap.View()
	}
	if err := o.pickBoth(env, &inputs); err != nil {
		return err
	}
	if o.schema {
		return diffSchemas(ctx, env, snaps, inputs)
	}
	stop := env.reading("comparing", allState(snaps[:]...))
	defer stop()
	res, err := o.compare(ctx, env, compared{[2]string{a, b}, snaps, inputs}, stop)
	if err != nil {
		return err
	}
	if err := env.answer(res); err != nil {
		return err
	}
	if !res.Same {
		return &findings{}
	}
	return nil
}

// compared is what is compared: the older snapshot and the newer one.
type compared struct {
	paths  [2]string
	snaps  [2]*reader.Snapshot
	inputs [2]format.View // snaps, or parts of them
}

// compare compares two snapshots. It calls read when all is read.
func (o *diffOptions) compare(ctx context.Context, env *Env, in compared, read func()) (*report.Diff, error) {
	snaps, inputs := in.snaps, in.inputs
	opts := diff.Options{TempDir: env.common.tmp, Jobs: env.readJobs(snaps[:]...), Ignore: map[diff.Kind]bool{}, Placement: o.placement}
	for _, k := range o.ignore {
		opts.Ignore[diff.Kind(k)] = true
	}
	if o.verbose {
		opts.List = o.limit
	}
	for i, snap := range snaps {
		opts.Schemas[i] = snap.Schema
		if inputs[i].Savepoint != snap.Savepoint {
			opts.Whole[i] = snap.Savepoint
		}
	}
	opts.EntryText = func(ctx context.Context, side int, h *format.OperatorHandle, state int) (func(format.MapEntry) (string, string, error), error) {
		return entryText(ctx, snaps[side], h, state)
	}
	d, err := diff.Savepoints(ctx, inputs[0], inputs[1], opts)
	read()
	if err != nil {
		return nil, err
	}
	elements := diffElements{env: env, snaps: snaps, inputs: inputs, values: map[valuesOf]reader.Values{}}
	entries := diffEntries{env: env, snaps: snaps, decoders: map[format.KeyedHandle]*entryDecoder{}}
	return env.run.NewDiff(d, report.DiffInput{Paths: in.paths, Snapshots: snaps, Ignored: o.ignore, Verbose: o.verbose,
		Element: func(side int, c diff.ElementChange) (string, string, error) { return elements.read(ctx, side, c) },
		Entry:   func(side int, at *diff.KeyedAt) (*report.CatItem, error) { return entries.read(ctx, side, at) },
		Cat:     report.CatOptions{Format: env.run.Format}})
}

// diffSchemas compares the types of states.
func diffSchemas(ctx context.Context, env *Env, snaps [2]*reader.Snapshot, inputs [2]format.View) error {
	stop := env.reading("comparing", nil)
	defer stop()
	all, err := diff.Schemas(ctx, inputs[0].Savepoint, inputs[1].Savepoint, [2]types.Schemas{snaps[0].Schema, snaps[1].Schema})
	stop()
	if err != nil {
		return err
	}
	res := env.run.NewDiffSchema(all)
	if err := env.answer(res); err != nil {
		return err
	}
	if !res.Same {
		return &findings{}
	}
	return nil
}
