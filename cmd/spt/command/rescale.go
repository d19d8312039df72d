package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type rescaleOptions struct {
	writeOptions
	pick     pick
	from, to int32
	elements int64
	at       string
	strategy string
	keyed    string
	suggest  bool
	wide     bool
}

func (o *rescaleOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	fs.Int32Var(&o.to, "to", 0, "new parallelism `N`")
	fs.Int32Var(&o.from, "from", 0, "only operators with parallelism `M`; without IN: the old parallelism")
	operatorFlag(fs, &o.pick.operators, "only these operators")
	fs.Int64Var(&o.elements, "elements", 20, "without IN: redistribute `N` numbered elements")
	fs.StringVar(&o.at, "at", "", "`URI` of the directory from which Flink will restore the snapshot; the order of blocks can depend on it (default: IN, or OUT)")
	fs.StringVar(&o.strategy, "strategy", string(transform.StrategyFlink), "`flink|round-robin|balanced-bytes`: how to redistribute list state")
	fs.StringVar(&o.keyed, "keyed", "move", "`move|leave`: where keyed state cannot be written for parallelism N, refuse (move) or leave that operator as it is")
	fs.BoolVar(&o.suggest, "suggest", false, "print parallelisms near N that divide key groups evenly")
	fs.BoolVar(&o.wide, "wide", false, "print every subtask, and full names")
}

func (o *rescaleOptions) validate(env *Env, args []string) error {
	switch {
	case o.to < 1:
		return &usageError{"--to N is needed: the new parallelism, at least 1", "for example:  spt rescale --from 2 --to 4"}
	case o.to > format.MaxKeyGroups:
		return usagef("--to %d: no engine runs at more than %d", o.to, format.MaxKeyGroups)
	case o.given.Changed("from") && o.from < 1 || o.from > format.MaxKeyGroups:
		return usagef("--from %d: no parallelism", o.from)
	case len(args) == 0 && o.from == 0:
		return &usageError{"without a snapshot --from M is needed too", "for example:  spt rescale --from 2 --to 4"}
	case o.elements < 0 || o.elements > maxSimulated:
		return usagef("--elements %d: 0 to %d", o.elements, maxSimulated)
	case o.keyed != "move" && o.keyed != "leave":
		return usagef("--keyed %s: move or leave", o.keyed)
	}
	switch transform.Strategy(o.strategy) {
	case transform.StrategyFlink, transform.StrategyRoundRobin, transform.StrategyBalancedBytes:
	default:
		return usagef("--strategy %s: one of flink, round-robin, balanced-bytes", o.strategy)
	}
	if len(args) == 0 {
		if err := without("IN", o.given, "operator", "at", "keyed"); err != nil {
			return err
		}
	} else if o.given.Changed("elements") {
		return usagef("--elements is without IN; a snapshot has its own")
	}
	if err := o.pick.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

// maxSimulated bounds the numbered elements of a simulation.
const maxSimulated = 10_000_000

func newRescaleCommand(env *Env) *cobra.Command {
	var o rescaleOptions
	cmd := &cobra.Command{
		Use:   "rescale [IN [OUT]] --to N",
		Short: "Show, or write, a snapshot at another parallelism",
		Long: `Shows which elements, copies and key groups each new subtask is handed when a
job restores a snapshot at parallelism N, exactly as Flink deals them out: list
state in contiguous blocks, larger ones first, from a start that moves on from
state to state; every element of union state to every subtask; one copy of
broadcast state to each; key groups by range.

With OUT it writes the snapshot in its new shape. Restored at N, each subtask is
handed exactly what the plan says. Union state is stored once.

Without IN it deals out numbered elements: the exercise of the tutorials in one
line. --strategy round-robin gives element i to subtask i % N, as one of them
has it and Flink does not.`,
		Example: `  spt rescale --from 2 --to 4
  spt rescale sp-001 --to 3
  spt rescale sp-001 sp-001-p3 --from 2 --to 3`,
		Args: between(0, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env, args); err != nil {
				return err
			}
			if len(args) == 0 {
				return runSimulation(cmd.Context(), o, env)
			}
			out := ""
			if len(args) == 2 {
				out = args[1]
			}
			return runRescale(cmd.Context(), o, env, args[0], out)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runSimulation(ctx context.Context, o rescaleOptions, env *Env) error {
	plan, err := transform.Simulate(ctx, o.elements, o.from, o.to, transform.Strategy(o.strategy))
	if err != nil {
		return err
	}
	r := newRescaleResult(env, "", "", plan)
	r.Operators[0].ID, r.Operators[0].MaxParallelism, r.Operators[0].label = "", 0, "simulated"
	if env.common.output != ui.OutputTable {
		return renderRescaleData(env, r)
	}
	return simulationText(env, o, r)
}

func runRescale(ctx context.Context, o rescaleOptions, env *Env, in, out string) (err error) {
	snap, err := env.open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	picked, err := o.pick.pickOperators(env, snap.Operators)
	if err != nil {
		return err
	}
	at := o.at
	if at == "" {
		if at, err = snap.URI(ctx); err != nil {
			return err
		}
	}
	stop := env.reading("reading", nil)
	defer stop()
	plan, err := transform.PlanRescale(ctx, snap.View(), transform.RescaleOptions{
		To: o.to, From: o.from, Operators: selectorOf(picked, func(*format.Operator) bool { return true }), At: at,
		Strategy: transform.Strategy(o.strategy), LeaveKeyed: o.keyed == "leave",
	})
	var limit *transform.ParallelismError
	if errors.As(err, &limit) {
		return limit // it names the operator itself
	}
	if err != nil {
		return inContainer(err, snap)
	}
	if plan.Rescaled() == 0 {
		return o.nothing(env, snap.Operators)
	}
	// It says which operators --keyed leave leaves, and reads no element.
	v, err := plan.Apply(ctx)
	stop()
	r := newRescaleResult(env, in, out, plan)
	remarks, unionErr := multipliedRemarks(ctx, env, plan)
	if unionErr != nil {
		return inContainer(unionErr, snap)
	}
	r.Remarks = append(r.Remarks, remarks...)
	if errors.Is(err, format.ErrUnsupported) {
		err = &refusal{err, r.inFlight()}
		if r.Refused = err.Error(); out == "" {
			if env.common.output != ui.OutputTable {
				return renderRescaleData(env, r)
			}
			return rescaleText(env, o, r, err)
		}
	}
	if err != nil {
		return inContainer(err, snap)
	}
	if out == "" {
		if env.common.output != ui.OutputTable {
			return renderRescaleData(env, r)
		}
		return rescaleText(env, o, r, nil)
	}
	if env.common.output == ui.OutputTable {
		if err := r.summary(env); err != nil {
			return err
		}
	} else {
		o.note = func(w *report.Write) { w.Remarks = append(w.Remarks, r.Remarks...) }
	}
	if orders := r.undefinedOrders(); len(orders) > 0 {
		note := o.note
		o.note = func(w *report.Write) {
			if note != nil {
				note(w)
			}
			w.Remarks = append(w.Remarks, orders...)
		}
	}
	return seal(ctx, env, o.writeOptions, snap.With(v.Savepoint), in, out)
}

// undefinedOrders says of which operators OUT has one of several orders that Flink
// could assign.
func (r *RescaleResult) undefinedOrders() []string {
	var all []string
	for _, op := range r.Operators {
		if op.Left == "" && op.Order != "" {
			all = append(all, fmt.Sprintf("%s: Flink's order of blocks within a subtask is not defined, and OUT has one of those that are possible: %s", ui.Quote(op.label), op.Order))
		}
	}
	return all
}

// refusal is why a plan cannot be written, though Flink can carry it out.
type refusal struct {
	error
	inFlight bool
}

func (e *refusal) Unwrap() error { return e.error }

// Hint says how it can be had all the same.
func (e *refusal) Hint() string {
	if hint := hintOf(e.error); hint != "" || !e.inFlight {
		return hint
	}
	return "rescale a savepoint, or an aligned checkpoint: it holds no in-flight data"
}

func (r *RescaleResult) inFlight() bool {
	return slices.ContainsFunc(r.Operators, func(op RescaleOperator) bool { return op.Left == "" && op.InFlight })
}

// nothing is the error where no operator is rescaled.
func (o *rescaleOptions) nothing(env *Env, all []*format.Operator) error {
	if len(all) == 0 {
		return usagef("there is no operator to rescale")
	}
	return &usageError{fmt.Sprintf("no operator has parallelism %d", o.from), "available: " + parallelisms(env, all)}
}

func parallelisms(env *Env, ops []*format.Operator) string {
	var all []string
	for _, op := range ops {
		all = append(all, fmt.Sprintf("%s at %d", ui.Quote(env.run.Label(op)), op.Parallelism))
	}
	return report.Shorten(all)
}

// RescaleResult is the answer of rescale: the whole plan.
type RescaleResult struct {
	Input     string            `json:"input,omitempty"`
	Output    string            `json:"output,omitempty"`
	To        int32             `json:"parallelism_to"`
	At        string            `json:"at,omitempty" jsonschema:"description=where Flink is taken to restore the snapshot from"`
	Strategy  string            `json:"strategy"`
	Refused   string            `json:"refused,omitempty" jsonschema:"description=why spt cannot write the plan, though Flink can carry it out"`
	Remarks   []string          `json:"remarks,omitempty"`
	Operators []RescaleOperator `json:"operators"`
}

// RescaleOperator is the plan for one operator.
type RescaleOperator struct {
	UID             string         `json:"uid,omitempty"`
	Name            string         `json:"name,omitempty"`
	ID              string         `json:"id,omitempty"`
	From            int32          `json:"parallelism_from"`
	To              int32          `json:"parallelism_to"`
	MaxParallelism  int32          `json:"max_parallelism,omitempty"`
	Left            string         `json:"left,omitempty" jsonschema:"description=why the operator is left alone"`
	InFlight        bool           `json:"in_flight,omitempty" jsonschema:"description=has in-flight data, whose path depends on the job's graph and is not in the plan"`
	Order           string         `json:"order,omitempty" jsonschema:"description=why the order of blocks in a subtask is not certain"`
	PlaceOrder      bool           `json:"order_depends_on_place,omitempty"`
	States          []RescaleState `json:"states"`
	Keyed           []RescaleKeyed `json:"keyed,omitempty"`
	HighestPossible int32          `json:"highest_parallelism,omitempty"`

	label string
}

// RescaleState is how the elements of one state are dealt out.
type RescaleState struct {
	Name     string           `json:"name"`
	Kind     string           `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast"`
	Raw      bool             `json:"raw,omitempty"`
	Elements int64            `json:"elements" jsonschema:"description=in the snapshot; of broadcast state: copies"`
	Bytes    int64            `json:"bytes"`
	Varies   bool             `json:"order_varies,omitempty" jsonschema:"description=subtasks get this union state in different orders; OUT gives it to all in the order of subtask 0"`
	Growth   []int64          `json:"growth,omitempty" jsonschema:"description=of union state: elements assigned by this restore and the next three, if the job adds again what it gets"`
	Empty    int              `json:"subtasks_without,omitempty" jsonschema:"description=new subtasks that get nothing"`
	Subtasks []RescaleSubtask `json:"subtasks"`
}

// RescaleSubtask is what one new subtask is handed.
type RescaleSubtask struct {
	Index    int             `json:"index"`
	Elements int64           `json:"elements"`
	Bytes    int64           `json:"bytes"`
	Sources  []RescaleSource `json:"sources" jsonschema:"description=in the order assigned"`
}

// RescaleSource is elements first … first+count-1 of an old subtask.
type RescaleSource struct {
	Old   int32 `json:"old_subtask"`
	First int64 `json:"first"`
	Count int64 `json:"count"`
}

// RescaleKeyed is how key groups are dealt out.
type RescaleKeyed struct {
	Raw      bool                  `json:"raw,omitempty"`
	Subtasks []RescaleKeyedSubtask `json:"subtasks"`
}

// sharedWhole reports whether several new subtasks are handed one incremental handle:
// each holds all of it, and Flink clips it when it restores.
func (k RescaleKeyed) sharedWhole() bool {
	handed := map[int32]int{}
	for _, sub := range k.Subtasks {
		for _, s := range sub.Sources {
			if s.Whole {
				if handed[s.Old]++; handed[s.Old] > 1 {
					return true
				}
			}
		}
	}
	return false
}

// RescaleKeyedSubtask is the key groups of one new subtask.
type RescaleKeyedSubtask struct {
	Index   int                  `json:"index"`
	First   int32                `json:"first_key_group"`
	Count   int32                `json:"key_groups"`
	Sources []RescaleKeyedSource `json:"sources" jsonschema:"description=in the order assigned"`
}

// RescaleKeyedSource is key groups of an old subtask's handle.
type RescaleKeyedSource struct {
	Old   int32 `json:"old_subtask"`
	First int32 `json:"first_key_group"`
	Count int32 `json:"key_groups"`
	Whole bool  `json:"whole,omitempty" jsonschema:"description=the whole handle is assigned, and clipped by the state backend"`
}

func newRescaleResult(env *Env, in, out string, p *transform.RescalePlan) *RescaleResult {
	r := &RescaleResult{Input: in, Output: out, To: p.To, At: env.run.Text(p.At), Strategy: string(p.Strategy)}
	for _, op := range p.Operators {
		o := RescaleOperator{
			UID: env.run.UID(op.Operator), Name: env.run.Text(op.Operator.Name.String()), ID: op.Operator.ID.String(), label: env.run.Label(op.Operator),
			From: op.From, To: op.To, MaxParallelism: op.Operator.MaxParallelism, Left: op.Left, InFlight: op.InFlight,
			Order: op.Order, PlaceOrder: op.PlaceOrder, States: []RescaleState{}, HighestPossible: op.Operator.MaxParallelism,
		}
		for _, st := range op.States {
			o.States = append(o.States, rescaleState(env, st, p.To))
		}
		for _, k := range op.Keyed {
			keyed := RescaleKeyed{Raw: k.Raw}
			for i, s := range k.Subtasks {
				sub := RescaleKeyedSubtask{Index: i, First: s.Range.First, Count: s.Range.Count, Sources: []RescaleKeyedSource{}}
				for _, src := range s.Pieces {
					sub.Sources = append(sub.Sources, RescaleKeyedSource{int32(src.Old), src.Groups.First, src.Groups.Count, handedWhole(src.Groups, src.Handle)})
				}
				keyed.Subtasks = append(keyed.Subtasks, sub)
			}
			o.Keyed = append(o.Keyed, keyed)
		}
		r.Operators = append(r.Operators, o)
	}
	r.Remarks = r.clipped()
	return r
}

// handedWhole reports whether a subtask is handed more key groups than it owns: the
// state backend cuts them.
func handedWhole(groups format.KeyGroupRange, h format.KeyedHandle) bool {
	_, incremental := h.(*format.Incremental)
	return incremental && h.KeyGroups() != groups
}

func rescaleState(env *Env, st *transform.StatePlan, to int32) RescaleState {
	s := RescaleState{Name: env.run.Text(st.Name), Kind: st.Mode.String(), Raw: st.Raw, Elements: st.Elements, Bytes: st.Bytes, Varies: st.OrderVaries}
	if st.Mode == format.ModeUnion {
		n := st.Elements
		for range 4 {
			n = transform.Capped(n, int64(to))
			s.Growth = append(s.Growth, n)
		}
	}
	for i, sub := range st.Subtasks {
		t := RescaleSubtask{Index: i, Elements: sub.Elements, Bytes: sub.Bytes, Sources: []RescaleSource{}}
		for _, src := range sub.Sources {
			t.Sources = append(t.Sources, RescaleSource(src))
		}
		if sub.Elements == 0 {
			s.Empty++
		}
		s.Subtasks = append(s.Subtasks, t)
	}
	return s
}

func renderRescaleData(env *Env, r *RescaleResult) error {
	switch env.common.output {
	case ui.OutputJSON:
		return ui.JSON(env.Stdout, r)
	case ui.OutputJSONL:
		l := ui.NewJSONLines(env.Stdout)
		for i := range r.Operators {
			if err := l.Encode(&r.Operators[i]); err != nil {
				return err
			}
		}
		return l.Flush()
	}
	c := ui.NewCSV(env.Stdout, "operator", "id", "state", "kind", "subtask", "elements", "bytes", "old_subtask", "first", "count")
	for _, op := range r.Operators {
		for _, st := range op.States {
			for _, sub := range st.Subtasks {
				for _, src := range sub.Sources {
					if err := c.Row(op.label, op.ID, st.Name, st.Kind, fmt.Sprint(sub.Index), fmt.Sprint(sub.Elements), fmt.Sprint(sub.Bytes), fmt.Sprint(src.Old), fmt.Sprint(src.First), fmt.Sprint(src.Count)); err != nil {
						return err
					}
				}
			}
		}
		for _, k := range op.Keyed {
			for _, sub := range k.Subtasks {
				for _, src := range sub.Sources {
					if err := c.Row(op.label, op.ID, "", "key groups", fmt.Sprint(sub.Index), "", "", fmt.Sprint(src.Old), fmt.Sprint(src.First), fmt.Sprint(src.Count)); err != nil {
						return err
					}
				}
			}
		}
	}
	return c.Flush()
}

// simulationText shows list and union state side by side.
func simulationText(env *Env, o rescaleOptions, r *RescaleResult) error {
	var list, union RescaleState
	for _, st := range r.Operators[0].States {
		if st.Kind == "list" {
			list = st
		} else {
			union = st
		}
	}
	each := fmt.Sprintf("of %s", ui.Count(o.elements/int64(o.from)))
	if o.elements%int64(o.from) != 0 {
		each = fmt.Sprintf("of %s or %s", ui.Count(o.elements/int64(o.from)), ui.Count(o.elements/int64(o.from)+1))
	}
	if o.from == 1 {
		each = "with all of them"
	}
	title := "list state (even split)"
	if o.strategy != string(transform.StrategyFlink) {
		title = "list state (" + o.strategy + ")"
	}
	if _, err := fmt.Fprintf(env.Stdout, "%s in %s %s, restored with %d\n\n", ui.Plural(o.elements, "element"), ui.Plural(int64(o.from), "subtask"), each, o.to); err != nil {
		return err
	}
	t := ui.NewTable(ui.Column{Header: title}, ui.Column{Align: ui.Right}, ui.Column{Shrink: 1, Min: 14, Wrap: true}, ui.Column{Header: "union state", Align: ui.Right}, ui.Column{Drop: 1})
	shown, rest := showSubtasks(len(list.Subtasks), o.wide)
	var sum int64
	for i, sub := range list.Subtasks {
		sum += sub.Elements
		if i < shown {
			t.Row(fmt.Sprintf("subtask %d", i), ui.Count(sub.Elements), sourcesText(sub.Sources), ui.Count(union.Subtasks[i].Elements), "everything")
		}
	}
	if rest > 0 {
		t.Row(fmt.Sprintf("… %d more", rest))
	}
	growth := fmt.Sprintf("×%d; ×%s after the next restore if every subtask adds again what it gets", o.to, ui.Count(transform.Capped(int64(o.to), int64(o.to))))
	t.Row("", ui.Count(sum), "", ui.Count(union.Growth[0]))
	if err := t.Write(env.Stdout, env.term()); err != nil {
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\nUnion state is assigned %s.\n", growth)
	if list.Empty > 0 {
		fmt.Fprintf(&b, "%s get nothing of the list.\n", ui.Plural(int64(list.Empty), "subtask"))
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}

// subtasksShown is how many subtasks a person is shown.
const subtasksShown = 16

func showSubtasks(n int, wide bool) (shown, rest int) {
	if wide || n <= subtasksShown {
		return n, 0
	}
	return subtasksShown - 4, n - subtasksShown + 4
}

// sourcesText is where elements come from: "old 0 [5..9], old 1 [0..4]".
func sourcesText(all []RescaleSource) string {
	const most = 6
	var parts []string
	for i, s := range all {
		if i == most {
			parts = append(parts, fmt.Sprintf("and %s more", ui.Plural(int64(len(all)-most), "block")))
			break
		}
		if s.Count == 1 {
			parts = append(parts, fmt.Sprintf("old %d [%d]", s.Old, s.First))
		} else {
			parts = append(parts, fmt.Sprintf("old %d [%d..%d]", s.Old, s.First, s.First+s.Count-1))
		}
	}
	return strings.Join(parts, ", ")
}
