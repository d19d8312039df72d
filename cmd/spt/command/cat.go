package command

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/ui"
)

type catOptions struct {
	pick
	typeFlags
	entryPick
	catChoice
	where    string
	limit    int64
	distinct bool
	stats    bool
	raw      bool
	// coordinator prints the state of coordinators instead of elements.
	coordinator bool

	filter *catFilter
	output ui.Output // json lines unless -o says otherwise
}

func (o *catOptions) addFlags(fs *pflag.FlagSet) {
	o.pick.addFlags(fs)
	o.typeFlags.addFlags(fs)
	o.entryPick.addFlags(fs)
	o.catChoice.addFlags(fs)
	fs.StringVar(&o.where, "where", "", "only elements for which `EXPR` is true, such as 'size > 1 * KiB and subtask == 0'")
	fs.Int64Var(&o.limit, "limit", 0, "print at most `N` lines; 0: all (default: 100 in a table, else all)")
	fs.BoolVar(&o.distinct, "distinct", false, "print each distinct element of a state once, at its first position, with its count")
	fs.BoolVar(&o.stats, "stats", false, "print no elements but, for each state, their number, how many are distinct, and a histogram of their sizes, by powers of two")
	fs.BoolVar(&o.coordinator, "coordinator", false, "print the state of the coordinators of operators instead: of sources, what is not assigned to readers")
	fs.BoolVar(&o.raw, "raw", false, "print values as they are stored, not decoded; for broadcast state whole maps")
}

func (o *catOptions) validate(env *Env, given *pflag.FlagSet) error {
	o.output = env.common.output
	if !given.Changed("output") && !o.stats {
		o.output = ui.OutputJSONL
	}
	switch {
	case o.limit < 0:
		return usagef("--limit %d: must be 0 or more", o.limit)
	case o.stats && (o.distinct || o.limit > 0):
		return usagef("--stats counts all elements: it cannot be combined with --distinct or --limit")
	case o.stats && (o.keysOnly || o.chooses()):
		return usagef("--stats counts all elements: it cannot be combined with --keys-only, --sample or --top")
	case o.chooses() && (o.distinct || o.limit > 0):
		return usagef("--sample and --top print N elements: they cannot be combined with --distinct or --limit")
	case o.keysOnly && o.distinct:
		return usagef("--distinct compares values, which --keys-only leaves out")
	case o.output == ui.OutputParquet && (o.stats || o.coordinator):
		return usagef("-o parquet writes the columns of elements: it cannot be combined with --stats or --coordinator")
	case o.coordinator && (o.entriesOnly() || o.chooses()):
		return usagef("--coordinator cannot be combined with --key, --keys, --key-group, --namespace, --keys-only, --sample or --top")
	case o.coordinator && (o.stats || o.distinct || o.where != "" || len(o.states) > 0 || o.subtasks != ""):
		return usagef("--coordinator cannot be combined with --state, --subtask, --where, --distinct or --stats: an operator has one coordinator")
	}
	if o.where != "" {
		f, err := newCatFilter(o.where)
		if err != nil {
			return err
		}
		o.filter = f
	}
	if err := cmp.Or(o.entryPick.validate(), o.catChoice.validate(given)); err != nil {
		return err
	}
	return o.pick.validate()
}

func newCatCommand(env *Env) *cobra.Command {
	var o catOptions
	cmd := &cobra.Command{
		Use:   "cat SP",
		Short: "Print the elements of operator state and the entries of keyed state, one JSON object per line",
		Long: `Prints the elements of list, union, broadcast and raw operator state and the
entries of keyed state, one JSON object a line: by operator in the order of the
snapshot; operator state by state, subtask and index, then keyed state by
subtask and key group. Broadcast state is printed entry by entry, with key and
value. With --coordinator the state of coordinators is printed instead, one for
each operator that has it.

Keyed state is printed entry by entry, from every encoding: key, namespace if
the state has one, and value. An entry of a map has its key in the map in
"user_key"; a timer has the "time" at which it fires; a value with a time to
live has the time of its last update in "ttl_timestamp". Within a key group,
entries are in the order of the file. --key, --keys, --key-group, --namespace
and --keys-only choose entries of keyed state, and leave operator state out. spt
get prints the entries of one key. --keys FILE chooses many: of states that all
of its keys fit; keys that occur nowhere are reported.

Values whose types are known are JSON in "value": numbers, strings, booleans,
tuples, lists and rows as arrays, POJOs as objects, maps as arrays of pairs,
timestamps and dates as ISO 8601, timers and windows as objects. JSON has no
bytes: a byte array is {"base64": "…"}, and an element whose type is not decoded
is printed as it is stored, in "value_base64" instead of "value", and likewise a
key in "key_base64". With --format hex and text they are hexadecimal or text, in
"value_hex" and "value_text". What connectors store as bytes, such as the splits
of a Kafka source, is decoded where the connector and its version are known
(docs/connectors.md); otherwise it is a record of the version, the reason and
the bytes.

--type reads values of user code, and bytes that hold JSON, text, Avro or
Protobuf, as a type in the type language (docs/type-language.md). Bytes that are
not of the type are an error that names the element and the byte.

--format redacted prints the length and a hash of every element, and no value or
name.

--where is evaluated for each element, or entry. These names can be used in it:
` + catWhereHelp() + `

It reads pieces, as many at a time as --jobs says, and prints them in order;
with --limit it reads no more than it prints. --distinct reads twice, and
compares entries of keyed state by their values, timers by their keys. --sample
and --top read all and hold what they print.

After an error, what was printed before remains: lines are whole, and the array
of --output json has no "]", so that no reader takes a part for the whole.`,
		Example: `  spt cat sp-001
  spt cat sp-001 --state even-ids --where 'value > 20' --limit 10
  spt cat sp-007 --state offsets --distinct | jq -c '[.count, .value]'
  spt cat chk-4211 --state orders --type 'orders=pojo{id: long, items: list<string>}'
  spt cat sp-009 --stats
  spt cat sp-002 --state counts --key-group 0-63 --limit 5
  spt cat sp-002 --top 10 -o table`,
		Args: exactly(1, "one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env, cmd.Flags()); err != nil {
				return err
			}
			return runCat(cmd.Context(), o, env, args[0])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runCat(ctx context.Context, o catOptions, env *Env, location string) (err error) {
	if err := env.readTypes(ctx, o.typeFlags); err != nil {
		return err
	}
	snap, err := env.open(ctx, location)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	sp, err := o.apply(env, snap.Savepoint)
	if err != nil {
		return err
	}
	if o.coordinator {
		return o.printCoordinators(ctx, env, snap, sp)
	}
	c := &catter{env: env, catOptions: o, snap: snap}
	defer func() { err = errors.Join(err, c.close()) }()
	states, err := c.catStates(ctx, sp)
	if err != nil {
		return err
	}
	if o.stats {
		return c.printStats(ctx, states)
	}
	return c.print(ctx, states)
}
