package command

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

type filterOptions struct {
	writeOptions
	typeFlags
	where             string
	keys              string // a file
	invert            bool
	operators, states []string
	timers            bool
	expired           bool
	ttl               age
	at                instant // now if not set

	filter *catFilter
}

func (o *filterOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	o.typeFlags.addFlags(fs)
	fs.StringVar(&o.where, "where", "", "keep the elements for which `EXPR` is true, such as 'value > 20'")
	fs.StringVar(&o.keys, "keys", "", "keep the entries of keyed state whose key is in `FILE`: one a line, in JSON or as spt cat --keys-only prints it; - is standard input")
	fs.BoolVar(&o.invert, "invert", false, "keep the elements for which EXPR is false, or the entries whose key is not in FILE")
	fs.BoolVar(&o.timers, "timers", false, "filter timers only")
	fs.BoolVar(&o.expired, "expired", false, "remove the entries of keyed state whose time to live had ended, of lists the elements")
	fs.Var(&o.ttl, "ttl", "with --expired: the time to live, a `DURATION` such as 36h or 7d: a snapshot does not record it")
	fs.Var(&o.at, "at", "with --expired: `TIME` at which the job reads the state, such as 2026-11-30T12:00:00Z (default: now)")
	operatorFlag(fs, &o.operators, "filter only these operators")
	stateFlag(fs, &o.states, "filter only these states")
}

func (o *filterOptions) validate(env *Env) error {
	switch {
	case o.expired:
		if err := o.validateExpired(env); err != nil {
			return err
		}
	case o.ttl > 0 || !o.at.IsZero():
		return usagef("--ttl and --at go with --expired")
	case o.keys != "" && o.where != "":
		return usagef("--keys cannot be combined with --where: filter twice")
	case o.keys == "" && o.where == "":
		return &usageError{"nothing says what to keep", "--where EXPR does, such as 'value > 20', or --keys, or --expired"}
	case o.where != "":
		var err error
		if o.filter, err = newCatFilter(o.where); err != nil {
			return err
		}
		o.filter.invert = o.invert
		o.filter.hint = "use --operator and --state to choose others; the others stay whole"
	}
	p := pick{operators: o.operators, states: o.states}
	if err := p.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

func (o *filterOptions) validateExpired(env *Env) (err error) {
	switch {
	case o.where != "" || o.keys != "" || o.invert || o.timers:
		return usagef("--expired cannot be combined with --where, --keys, --invert and --timers: filter twice")
	case o.ttl == 0:
		return &usageError{"--expired needs --ttl: a snapshot does not record the time to live", "--ttl 7d, and --state for states that have another one"}
	}
	if o.at.IsZero() {
		o.at.Time = env.Now()
	}
	return nil
}

func newFilterCommand(env *Env) *cobra.Command {
	var o filterOptions
	cmd := &cobra.Command{
		Use:   "filter IN [OUT]",
		Short: "Keep the elements and entries that match an expression, have one of many keys, or are not expired",
		Long: `Keeps the elements of list and union state, the entries of broadcast state, and
the entries of keyed state, for which an expression is true, and removes the
others. What is kept is copied byte for byte, in its order, and so is all other
state. A state without any element left is kept, empty.

These names can be used in --where, as with spt cat, which shows first what
would stay:
` + catWhereHelp() + `

An expression that uses values is refused for a state whose values are not
decoded; --state leaves such a state out, and --type decodes it. A map of
broadcast state that is not decoded is kept or emptied as a whole, by its state
and subtask.

A state that has nothing of what an expression looks at stays whole: a list has
no key, and only timers have a time. So --where 'key != 17' removes a key from
all keyed states and its timers, and --where 'value > 20' no timer.

Keyed state of an operator that loses entries is built again in the canonical
format of savepoints, which any backend but ForSt restores. It is read twice: to
decide, and to write. An operator that loses nothing is copied.

--keys FILE keeps the entries of keyed state, and the timers, whose key is one
of many; with --invert it removes them. A line of the file is a key in JSON, as
spt get --key takes it, or a line of spt cat --keys-only: its key. All keys must
be of the type that the keys of the chosen states have: if a line is not, it is
named, and nothing is written. Keys that occur nowhere are reported. A list that
does not fit into 64 MiB of memory is sorted in a temporary file.

--expired removes entries whose time to live had ended: Flink stores with each
value when it was last updated, and removes what has expired when it is read, or
in the background. A state that is not read keeps it for ever.

Each subtask has a replica of a broadcast state. An expression that uses subtask
leaves replicas that differ; spt reports it.`,
		Example: `  spt filter sp-001 small --state even-ids --where 'value > 20'
  spt filter sp-001 small --operator buffering-sink --where 'size > 1 * KiB' --invert
  spt filter sp-009 fewer --state rules --where 'not (key in [7, 8])'
  spt filter sp-002 without-key --where 'key != "key-4"'
  spt filter sp-4211 forgotten --keys users.jsonl --invert
  spt filter chk-4211 alive --expired --ttl 7d
  spt filter sp-002 sooner --timers --where 'time < 1796000000000'`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env); err != nil {
				return err
			}
			if err := env.readTypes(cmd.Context(), o.typeFlags); err != nil {
				return err
			}
			return edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
				return o.keep(cmd.Context(), env, snap)
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *filterOptions) keep(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	chosen, err := env.chooseOperators(o.operators, snap.Operators)
	if err != nil {
		return nil, nil, err
	}
	if len(o.states) > 0 {
		if err := env.checkStates(ctx, snap, "--state", o.states, globMatches, chosen); err != nil {
			return nil, nil, err
		}
	}
	if o.expired {
		return o.expire(ctx, env, snap, chosen)
	}
	if o.keys != "" {
		return o.keepKeys(ctx, env, snap, chosen)
	}
	c := &catter{env: env, snap: snap, catOptions: catOptions{pick: pick{states: o.states}, filter: o.filter, raw: true}}
	asked := &asker{ctx: ctx, c: c}
	stop := env.reading("reading", someState(ctx, snap, statesOf(snap.Savepoint, func(op *format.Operator, st *format.NamedState) bool {
		return chosen(op) && matches(o.states, st.Name.String())
	})))
	defer stop()
	entries := &entryAskers{ctx: ctx, c: c}
	f := transform.FilterOptions{
		Operators: selectorOf(snap.Operators, chosen), States: o.states, Keep: asked.keep, KeepEntries: entries.of, Jobs: env.readJobs(snap),
		Keyed: func(st format.KeyedState) bool {
			return o.filter.fits(st.Kind) && (!o.timers || st.Kind == kindOfTimers)
		},
	}
	if o.timers || o.filter.entriesOnly() {
		f.Keep = nil
	}
	v, done, err := transform.Filter(ctx, snap.View(), f)
	if err != nil {
		return nil, nil, err
	}
	if len(done.States) == 0 && len(done.Unread) == 0 {
		return nil, nil, usagef("no state has what the expression looks at")
	}
	r := env.run.NewEdit()
	r.Filtered(done, "no element matches --where, which is also false where it compares with another type")
	return v.Savepoint, r, nil
}

// keepKeys keeps the entries that have one of many keys.
func (o *filterOptions) keepKeys(ctx context.Context, env *Env, snap *reader.Snapshot, chosen func(*format.Operator) bool) (_ *format.Savepoint, _ *report.Edit, err error) {
	list := newKeyList(env, o.keys)
	defer func() { err = errors.Join(err, list.close()) }()
	wanted := func(st format.KeyedState) bool {
		return matches(o.states, st.Name.String()) && (!o.timers || st.Kind == kindOfTimers)
	}
	sp := *snap.Savepoint
	sp.Operators = slices.DeleteFunc(slices.Clone(sp.Operators), func(op *format.Operator) bool { return !chosen(op) })
	stop := env.reading("reading", nil)
	defer func() { stop() }()
	handles, err := (&catter{env: env, snap: snap}).keyedHandles(ctx, &sp, nil)
	if err != nil {
		return nil, nil, err
	}
	var unread error
	for _, op := range sp.Operators {
		for _, h := range handles[op] {
			if h.err != nil {
				unread = cmp.Or(unread, h.err)
				continue
			}
			for i, st := range h.schema.States {
				if wanted(st) {
					list.wants(h, i)
				}
			}
		}
	}
	switch {
	case len(list.all) > 0:
	case unread != nil:
		return nil, nil, unread
	default:
		return nil, nil, usagef("no state that is chosen has keys")
	}
	if err := list.read(ctx, true); err != nil {
		return nil, nil, err
	}
	v, done, err := transform.Filter(ctx, snap.View(), transform.FilterOptions{
		Operators: selectorOf(snap.Operators, chosen), States: o.states, Jobs: env.readJobs(snap), Keyed: wanted,
		KeepEntries: func(h transform.FilterHandle) (func(*format.KeyedEntry) (bool, error), error) {
			asked := &keyAsker{keys: list.of(h.Operator, h.Handle, h.Schema), of: h, invert: o.invert}
			return asked.keep, nil
		},
	})
	if err != nil {
		return nil, nil, err
	}
	n, missing, _, err := list.missing()
	switch {
	case err != nil:
		return nil, nil, err
	case !o.invert && missing == n:
		return nil, nil, usagef("--keys %s: none of the keys occurs in the states that are chosen, so nothing would be left of them", ui.Quote(o.keys))
	}
	r := env.run.NewEdit()
	why := "no entry has one of the keys"
	if o.invert {
		why = "all entries have one of the keys"
	}
	r.Filtered(done, why)
	text, err := list.remark()
	if text != "" {
		r.Remark("%s", text)
	}
	return v.Savepoint, r, err
}

// expire removes what has expired.
func (o *filterOptions) expire(ctx context.Context, env *Env, snap *reader.Snapshot, chosen func(*format.Operator) bool) (*format.Savepoint, *report.Edit, error) {
	stop := env.reading("reading", nil)
	defer stop()
	v, done, err := transform.Expire(ctx, snap.View(), transform.ExpireOptions{
		Operators: selectorOf(snap.Operators, chosen), States: o.states, TTL: time.Duration(o.ttl), At: o.at.Time, Jobs: env.readJobs(snap),
	})
	if err != nil {
		return nil, nil, err
	}
	if len(done.States) == 0 && len(done.Unread) == 0 {
		return nil, nil, usagef("no keyed state has a time to live")
	}
	r := env.run.NewEdit()
	r.Expired(done)
	return v.Savepoint, r, nil
}
