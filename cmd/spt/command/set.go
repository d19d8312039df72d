package command

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

type setOptions struct {
	writeOptions
	typeFlags
	offsets           offsetFlags
	id                int64
	operators, states []string
	values            []string
	mode              string
	max               int32
	shift             string // of timers
	timers            string

	by time.Duration // of shift

	setID, setMax bool
}

var modes = map[string]format.Mode{"list": format.ModeList, "union": format.ModeUnion}

func (o *setOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	o.typeFlags.addFlags(fs)
	fs.Int64Var(&o.id, "checkpoint-id", 0, "set the checkpoint id to `N`")
	operatorFlag(fs, &o.operators, "set fields of these operators")
	stateFlag(fs, &o.states, "with --mode: these operator states; with --shift-timers: these timers")
	fs.StringVar(&o.mode, "mode", "", "`list|union`: how the states named by --state are redistributed")
	fs.Int32Var(&o.max, "max-parallelism", 0, "set the max parallelism of operators without keyed state to `N`")
	fs.StringVar(&o.shift, "shift-timers", "", "move timers by `DURATION`, such as 2h, 7d or -30m: they fire so much later, or earlier")
	fs.StringVar(&o.timers, "timers", allTimers, "with --shift-timers: `all|event|processing`: the time that they wait for")
	fs.StringArrayVar(&o.values, "value", nil, "`ELEMENT=JSON`: set one value; ELEMENT is the operator and the state, and in brackets the subtask and the index, such as sink/buffer[0,3], or the key of an entry of broadcast or keyed state (repeatable)")
	o.offsets.addFlags(fs)
}

const allTimers = "all"

// timerStates are the keyed states of --timers.
var timerStates = map[string]format.Globs{allTimers: nil, "event": {"_timer_state/event_*"}, "processing": {"_timer_state/processing_*"}}

func (o *setOptions) validate(env *Env, given *pflag.FlagSet) error {
	o.setID, o.setMax = given.Changed("checkpoint-id"), given.Changed("max-parallelism")
	if len(o.values) > 0 {
		if o.setID || o.setMax || o.mode != "" || len(o.states)+len(o.operators) > 0 || o.offsets.given() {
			return usagef("--value cannot be combined with flags that set anything else: set one after the other")
		}
		for _, text := range o.values {
			if _, err := parseValue(text); err != nil {
				return err
			}
		}
		return o.writeOptions.validate(env)
	}
	if err := without("--value", given, "type", "types"); err != nil {
		return err
	}
	if o.offsets.given() {
		if o.setID || o.setMax || o.mode != "" || len(o.states) > 0 {
			return usagef("the flags that move sources cannot be combined with --checkpoint-id, --mode, --state and --max-parallelism: set one after the other")
		}
		p := pick{operators: o.operators}
		return errors.Join(p.validate(), o.offsets.validate(), o.writeOptions.validate(env))
	}
	if o.shift != "" {
		if o.setID || o.setMax || o.mode != "" {
			return usagef("--shift-timers cannot be combined with --checkpoint-id, --mode and --max-parallelism: set one after the other")
		}
		return o.validateShift(env)
	}
	switch _, known := modes[o.mode]; {
	case o.timers != allTimers:
		return usagef("--timers goes with --shift-timers")
	case !o.setID && !o.setMax && o.mode == "" && len(o.states) == 0:
		return &usageError{"nothing to set", "--value, --checkpoint-id, --mode, --max-parallelism, --offset, --offsets, --drop-topic or --shift-timers says what"}
	case o.setID && o.id < 0:
		return usagef("--checkpoint-id %d: 0 or more", o.id)
	case o.mode != "" && !known:
		return usagef("--mode %s: list or union", o.mode)
	case (o.mode != "") != (len(o.states) > 0):
		return usagef("--state and --mode go together")
	case o.mode == "" && !o.setMax && len(o.operators) > 0:
		return without("--mode or --max-parallelism", given, "operator")
	case (o.mode != "" || o.setMax) && len(o.operators) == 0:
		return &usageError{"--mode and --max-parallelism need --operator", "--operator '*' is all of them"}
	case o.setMax && (o.max < 1 || o.max > format.MaxKeyGroups):
		return usagef("--max-parallelism %d: 1 to %d", o.max, format.MaxKeyGroups)
	}
	p := pick{operators: o.operators, states: o.states}
	if err := p.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

// validateShift checks the flags that move timers.
func (o *setOptions) validateShift(env *Env) error {
	var a age
	text, earlier := strings.CutPrefix(o.shift, "-")
	err := a.Set(strings.TrimPrefix(text, "+"))
	states, known := timerStates[o.timers]
	switch {
	case err != nil:
		return usagef("--shift-timers %s: expected a duration such as 2h, 7d or -30m", o.shift)
	case a == 0:
		return usagef("--shift-timers %s moves nothing", o.shift)
	case !known:
		return usagef("--timers %s: must be all, event or processing", o.timers)
	case o.timers != allTimers && len(o.states) > 0:
		return usagef("--timers and --state both choose timers: use one of them")
	}
	if o.by = time.Duration(a); earlier {
		o.by = -o.by
	}
	if states != nil {
		o.states = states
	}
	p := pick{operators: o.operators, states: o.states}
	return errors.Join(p.validate(), o.writeOptions.validate(env))
}

func newSetCommand(env *Env) *cobra.Command {
	var o setOptions
	cmd := &cobra.Command{
		Use:   "set IN [OUT]",
		Short: "Set values, read positions of sources, the checkpoint id, modes, the max parallelism, timers",
		Long: `Sets single fields of a snapshot. All else is copied byte for byte.

--value sets an element of list or union state, by its subtask and index; an
entry of broadcast state in the replicas of all subtasks, by its key; an entry
of keyed state, by its key, and of a map by [KEY,USERKEY]; or the state of a
coordinator, as OPERATOR[coordinator]. The value is JSON as spt cat prints it,
and its type is checked; --type is the type of a state whose type the snapshot
does not record. spt patch changes many values, and adds and removes some.

--mode makes list state union state and the other way round, in _metadata and in
the state itself: Flink refuses a job that asks for a state in another mode than
the snapshot has. Elements stay in their subtasks: what was union state, and so
in all of them, is in the list that often; run spt prune-union first to keep one
of each. Broadcast state is a map and stays one.

--max-parallelism is the number of key groups, by which keyed state is divided:
an operator that has any, managed or raw, is refused (spt rescale
--max-parallelism moves its keys). Operators that run in one chain need the same
max parallelism.

--shift-timers moves timers, for example after an outage, so that they do not
all fire at once. Timers that end windows stay: a window is evaluated at its end
only. Keyed state of an operator whose timers move is built again in the
canonical format of savepoints, which any backend but ForSt restores.

--offset, --offsets-from and --offsets set where Kafka sources read on after a
restore: the offset of the next record, in the readers and, where it stores it,
in the coordinator. A single partition counts more than --offsets. Only the
broker knows whether an offset exists: one past the end restarts the partition
by the reset policy of the job, without a word. --drop-topic removes the
partitions of a topic from readers and coordinator; a job that still subscribes
to the topic finds them again and reads them as new ones, from the earliest
record. spt offsets shows what is stored.`,
		Example: `  spt set sp-001 renumbered --checkpoint-id 4000
  spt set sp-001 as-list --operator even-id-logger --state even-ids --mode list
  spt set sp-001 fixed --value '33fb6e3d/even-ids[0,1]=4'
  spt set sp-001 wider --operator '*' --max-parallelism 512
  spt set sp-002 later --shift-timers 2h --timers processing
  spt set chk-4211 replay --offset orders:3=15000 --offset orders:4=earliest
  spt set chk-4211 other --offsets committed --topic orders --drop-topic audit`,
		Args: between(1, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env, cmd.Flags()); err != nil {
				return err
			}
			if err := env.readTypes(cmd.Context(), o.typeFlags); err != nil {
				return err
			}
			return edit(cmd.Context(), env, o.writeOptions, args, func(snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
				return o.set(cmd.Context(), env, snap)
			})
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *setOptions) set(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	if len(o.values) > 0 {
		return o.setValues(ctx, env, snap)
	}
	chosen, err := env.chooseOperators(o.operators, snap.Operators)
	if err != nil {
		return nil, nil, err
	}
	if o.offsets.given() {
		return o.offsets.apply(ctx, env, snap, selectorOf(snap.Operators, chosen))
	}
	if o.shift != "" {
		return o.shiftTimers(ctx, env, snap, selectorOf(snap.Operators, chosen))
	}
	to := transform.SetOptions{Operators: selectorOf(snap.Operators, chosen), MaxParallelism: o.max}
	if o.mode != "" {
		if err := env.checkOperatorStates(ctx, snap, "--state", o.states, chosen); err != nil {
			return nil, nil, err
		}
		to.Mode, to.States = new(modes[o.mode]), o.states
	}
	if o.setID {
		to.ID = &o.id
	}
	v, done, err := transform.Set(ctx, snap.View(), to)
	if err != nil {
		return nil, nil, err
	}
	r := env.run.NewEdit()
	r.Set(done, to)
	return v.Savepoint, r, nil
}

func (o *setOptions) shiftTimers(ctx context.Context, env *Env, snap *reader.Snapshot, operators format.Selector) (*format.Savepoint, *report.Edit, error) {
	stop := env.reading("reading", nil)
	defer stop()
	v, done, err := transform.ShiftTimers(ctx, snap.View(), transform.ShiftTimersOptions{Operators: operators, States: o.states, By: o.by})
	if errors.Is(err, format.ErrNoMatch) {
		return nil, nil, usagef("no operator has such timers")
	}
	if err != nil {
		return nil, nil, err
	}
	if len(done.States)+len(done.Windows)+len(done.Unread) == 0 {
		return nil, nil, usagef("no operator has such timers")
	}
	r := env.run.NewEdit()
	r.Shifted(done, o.by)
	return v.Savepoint, r, nil
}
