package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/check"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type pruneOptions struct {
	writeOptions
	operators, states []string
	keep, place       string
	compact           bool
	acceptUnproven    bool
	elements          int64
	parallelism       int32
	restores          int
	atParallelism     int32
}

func (o *pruneOptions) addFlags(fs *pflag.FlagSet) {
	o.writeOptions.addFlags(fs)
	operatorFlag(fs, &o.operators, "only these operators")
	stateFlag(fs, &o.states, "only these union states")
	fs.StringVar(&o.keep, "keep", "", "`distinct|copies|first-subtask|modulo`: which elements to keep in OUT")
	fs.StringVar(&o.place, "place", string(transform.PlaceStay), "`stay|first|spread`: which subtasks get the kept elements")
	fs.BoolVar(&o.compact, "compact", false, "put all kept elements into one handle and drop the state from the others")
	fs.BoolVar(&o.acceptUnproven, "accept-unproven", false, "also prune state that is not proven to be duplicated by restores")
	fs.Int64Var(&o.elements, "elements", 10_000, "without IN: start with `N` elements")
	fs.Int32Var(&o.parallelism, "parallelism", 100, "without IN: restore with parallelism `N`; with IN: estimate the costs for it (default: the operator's)")
	fs.IntVar(&o.restores, "restores", 1, "without IN: restore `N` times")
}

func (o *pruneOptions) validate(env *Env, args []string, given *pflag.FlagSet) error {
	switch transform.Keep(o.keep) {
	case "", transform.KeepDistinct, transform.KeepCopies, transform.KeepFirstSubtask, transform.KeepModulo:
	default:
		return usagef("--keep %s: one of distinct, copies, first-subtask, modulo", o.keep)
	}
	switch transform.PlaceKept(o.place) {
	case transform.PlaceStay, transform.PlaceFirst, transform.PlaceSpread:
	default:
		return usagef("--place %s: one of stay, first, spread", o.place)
	}
	switch {
	case len(args) == 2 && o.keep == "":
		return &usageError{"--keep is needed to write: choose which of the duplicates stay", "to see them:  spt prune-union " + shell.Quote(args[0])}
	case o.elements < 0 || o.restores < 0 || o.restores > 20:
		return usagef("--elements %d, --restores %d: not numbers of elements and (0 to 20) restores", o.elements, o.restores)
	case o.parallelism < 1 || o.parallelism > format.MaxKeyGroups:
		return usagef("--parallelism %d: 1 to %d", o.parallelism, format.MaxKeyGroups)
	}
	if len(args) == 0 {
		if err := without("IN", given, "operator", "state", "keep"); err != nil {
			return err
		}
	} else if given.Changed("elements") || given.Changed("restores") {
		return usagef("--elements and --restores are without IN; a snapshot has its own")
	}
	if o.keep == "" {
		if err := without("--keep", given, "place", "compact", "accept-unproven"); err != nil {
			return err
		}
	}
	if given.Changed("parallelism") {
		o.atParallelism = o.parallelism
	}
	p := pick{operators: o.operators, states: o.states}
	if err := p.validate(); err != nil {
		return err
	}
	return o.writeOptions.validate(env)
}

func newPruneUnionCommand(env *Env) *cobra.Command {
	var o pruneOptions
	cmd := &cobra.Command{
		Use:   "prune-union [IN [OUT]]",
		Short: "Find and remove the duplicates that restores left in union state",
		Long: `Union state hands every element to every subtask when a job restores. A job that
adds again what it is handed multiplies it by its parallelism with each restore.

Without OUT it reads every element of union state and reports how often each
comes. Restores are proven to be the reason where every subtask holds the same
elements, each equally often. The order does not count: from about 10 subtasks
on Flink hands the elements to some subtasks in another order than to the
others. A state of which a restore hands out 64 MiB or more, to all subtasks
together, is named.

With OUT it removes duplicates by the policy that --keep names:
  distinct       keeps the first of each equal element
  copies         divides how often each comes by the largest power of the
                 parallelism that divides all counts, so that elements which the
                 job itself repeats stay repeated
  first-subtask  keeps the list of the first subtask; only where all subtasks
                 hold the same elements
  modulo         keeps the list of the first subtask, element i in subtask i
                 modulo the parallelism; only where all subtasks hold the same
                 elements
All but distinct can leave duplicates: those of restores at other parallelisms,
those of earlier restores, those of the job. What remains is reported.
What is not proven to be duplicated by restores is left as it is and named (exit
1), or refused where --state picked it, unless --accept-unproven.

Without IN it shows how union state grows.`,
		Example: `  spt prune-union --elements 10000 --parallelism 100 --restores 1
  spt prune-union sp-007
  spt prune-union sp-007 pruned --state offsets --keep distinct`,
		Args: between(0, 2, "a snapshot, and where to write it"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(env, args, cmd.Flags()); err != nil {
				return err
			}
			switch len(args) {
			case 0:
				return runGrowth(o, env)
			case 1:
				return runDiagnose(cmd.Context(), o, env, args[0])
			}
			return runPrune(cmd.Context(), o, env, args[0], args[1])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// GrowthRow is union state after so many restores.
type GrowthRow struct {
	Restores   int   `json:"restores"`
	PerSubtask int64 `json:"elements_per_subtask"`
	Kept       int64 `json:"elements_kept_once" jsonschema:"description=in the snapshot, if subtasks together keep each element once"`
	Readded    int64 `json:"elements_readded" jsonschema:"description=in the snapshot, if every subtask adds again what it gets"`
	HandedOut  int64 `json:"elements_handed_out" jsonschema:"description=to all subtasks by the next restore, of what was added again"`
}

func runGrowth(o pruneOptions, env *Env) error {
	var rows []GrowthRow
	n := o.elements
	for r := 0; r <= o.restores; r++ {
		rows = append(rows, GrowthRow{r, n / int64(o.parallelism), o.elements, n, transform.Capped(n, int64(o.parallelism))})
		n = transform.Capped(n, int64(o.parallelism))
	}
	done, err := renderRows(env, env.common.output, rows, []string{"restores", "elements_kept_once", "elements_readded", "elements_handed_out"}, func(r *GrowthRow) []string {
		return []string{strconv.Itoa(r.Restores), fmt.Sprint(r.Kept), fmt.Sprint(r.Readded), fmt.Sprint(r.HandedOut)}
	})
	if done {
		return err
	}
	if _, err := fmt.Fprintf(env.Stdout, "union state of %s, restored at parallelism %d\n\n", ui.Plural(o.elements, "element"), o.parallelism); err != nil {
		return err
	}
	t := ui.NewTable(ui.Column{Header: "RESTORES", Align: ui.Right}, ui.Column{Header: "KEPT ONCE", Align: ui.Right}, ui.Column{Header: "ADDED AGAIN", Align: ui.Right}, ui.Column{Header: "THEN HANDED OUT", Align: ui.Right})
	for _, r := range rows {
		t.Row(strconv.Itoa(r.Restores), ui.Count(r.Kept), ui.Count(r.Readded), ui.Count(r.HandedOut))
	}
	if err := t.Write(env.Stdout, env.term()); err != nil {
		return err
	}
	_, err = fmt.Fprint(env.Stdout, `
KEPT ONCE: each subtask keeps a share of what it is handed, as by index % parallelism.
ADDED AGAIN: every subtask adds all that it is handed; the snapshot holds that much.
`)
	return err
}

// UnionRow is what prune-union knows of one union state.
type UnionRow struct {
	Operator      string `json:"operator"`
	ID            string `json:"id"`
	State         string `json:"state"`
	Kind          string `json:"kind" jsonschema:"enum=union,enum=broadcast,description=of broadcast state each subtask's copy of the map is an element"`
	Subtasks      int    `json:"subtasks"`
	Elements      int64  `json:"elements"`
	Distinct      int64  `json:"distinct"`
	MinCopies     int64  `json:"min_copies"`
	MaxCopies     int64  `json:"max_copies"`
	Bytes         int64  `json:"bytes"`
	DistinctBytes int64  `json:"distinct_bytes"`
	Equal         bool   `json:"subtasks_equal" jsonschema:"description=every subtask holds the same elements, each equally often, in any order"`
	SameOrder     bool   `json:"subtasks_same_order" jsonschema:"description=and in the same order"`
	Fewest        int64  `json:"min_in_subtask" jsonschema:"description=elements of the subtask that holds the fewest"`
	Most          int64  `json:"max_in_subtask" jsonschema:"description=elements of the subtask that holds the most"`
	Common        int64  `json:"in_all_subtasks" jsonschema:"description=different elements that every one of several subtasks holds"`
	Factor        int64  `json:"factor" jsonschema:"description=largest power of the number of subtasks that divides every count; 1 if none"`
	MaxFactor     int64  `json:"max_factor" jsonschema:"description=greatest common divisor of the counts: the highest factor by which restores can have multiplied all elements; 0 without elements"`
	Verdict       string `json:"verdict" jsonschema:"enum=duplicated by restores,enum=not sure,enum=nothing repeats,enum=copies equal,enum=copies differ"`
	Why           string `json:"why"`
	HandedOut     int64  `json:"handed_out" jsonschema:"description=elements that a restore hands to all subtasks together"`
	HandedBytes   int64  `json:"handed_out_bytes"`

	Kept      *int64 `json:"kept,omitempty" jsonschema:"description=elements that stay"`
	KeptBytes *int64 `json:"kept_bytes,omitempty"`
	// HandedOutAfter is HandedOut of what is kept.
	HandedOutAfter *int64 `json:"handed_out_after,omitempty"`
	// MinKept and MaxKept say how often an element comes after pruning.
	MinKept      int64  `json:"kept_min_copies,omitempty" jsonschema:"description=how often an element that stays comes at least"`
	MaxKept      int64  `json:"kept_max_copies,omitempty" jsonschema:"description=and at most"`
	Remaining    int64  `json:"remaining_duplicates,omitempty" jsonschema:"description=elements that stay beyond one of each"`
	RemainingWhy string `json:"remaining_why,omitempty" jsonschema:"description=of a state that was pruned: why duplicates remain"`
	Skipped      string `json:"skipped,omitempty" jsonschema:"description=why it is left as it is"`

	oneEach    bool  // see transform.UnionReport.OneEach
	restoredAt int64 // the parallelism that HandedOut is for
}

// PruneResult is the answer of prune-union with OUT.
type PruneResult struct {
	States         []UnionRow    `json:"states"`
	MetadataBefore int64         `json:"metadata_bytes_before,omitempty"`
	MetadataAfter  int64         `json:"metadata_bytes_after,omitempty"`
	Write          *report.Write `json:"write"`
}

// restoredAt is the parallelism that the cost of a restore is estimated for.
func (o *pruneOptions) restoredAt(op *format.Operator) int64 {
	if o.atParallelism > 0 {
		return int64(o.atParallelism)
	}
	return int64(op.Parallelism)
}

func (o *pruneOptions) unionRow(env *Env, r *transform.UnionReport) UnionRow {
	p := o.restoredAt(r.Operator)
	return UnionRow{
		Operator: env.run.Label(r.Operator), ID: r.Operator.ID.String(), State: env.run.Text(r.State), Kind: "union", Subtasks: r.Subtasks,
		Elements: r.Elements, Distinct: r.Distinct, MinCopies: r.MinCopies, MaxCopies: r.MaxCopies, Bytes: r.Bytes, DistinctBytes: r.DistinctBytes,
		Equal: r.Equal, SameOrder: r.SameOrder, Fewest: r.Fewest, Most: r.Most, Common: r.Common, Factor: r.Factor, MaxFactor: r.MaxFactor, Verdict: string(r.Verdict), Why: r.Why,
		HandedOut: transform.Capped(r.Elements, p), HandedBytes: transform.Capped(r.Bytes, p), oneEach: r.OneEach(), restoredAt: p,
	}
}

// chooses reports whether --state, and a Selector of what --operator chose, choose
// a state.
func (o *pruneOptions) chooses(operators format.Selector) func(*format.Operator, string) bool {
	return func(op *format.Operator, state string) bool {
		return slices.Contains(operators, op.ID.String()) && matches(o.states, state)
	}
}

// picked makes the choice of union states, and checks that it matches one.
func (o *pruneOptions) picked(env *Env, snap *reader.Snapshot) (format.Selector, error) {
	p := pick{operators: o.operators}
	ops, err := p.pickOperators(env, snap.Operators)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, op := range ops {
		for _, sub := range op.Subtasks {
			if sub.Managed == nil {
				continue
			}
			for _, st := range sub.Managed.States {
				if st.Mode == format.ModeUnion || st.Mode == format.ModeBroadcast && o.keep == "" {
					names = append(names, st.Name.String())
				}
			}
		}
	}
	if err := env.checkGlobs(o.states, names, "union state", "no union state"); err != nil {
		return nil, err
	}
	return selectorOf(ops, func(*format.Operator) bool { return true }), nil
}

func runDiagnose(ctx context.Context, o pruneOptions, env *Env, in string) (err error) {
	snap, err := env.open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	choose, err := o.picked(env, snap)
	if err != nil {
		return err
	}
	input := snap.View()
	if o.keep != "" {
		return o.preview(ctx, env, snap, in, choose)
	}
	stop := env.reading("reading", o.unionBytes(ctx, snap, o.chooses(choose)))
	defer stop()
	reports, err := transform.DiagnoseUnions(ctx, input, transform.UnionOptions{Operators: choose, States: o.states, TempDir: env.common.tmp})
	if err != nil {
		return format.InFile(err, snap.Container.Name)
	}
	var rows []UnionRow
	for _, r := range reports {
		rows = append(rows, o.unionRow(env, r))
	}
	unions := rows
	broadcasts, err := transform.DiagnoseBroadcasts(ctx, input, transform.UnionOptions{Operators: choose, States: o.states, TempDir: env.common.tmp})
	stop()
	if err != nil {
		return format.InFile(err, snap.Container.Name)
	}
	if env.common.output != ui.OutputTable {
		for _, b := range broadcasts {
			rows = append(rows, broadcastRow(env, b))
		}
		_, err := renderRows(env, env.common.output, rows, unionHeader(), unionCells)
		return err
	}
	if err := unionTable(env, rows); err != nil {
		return err
	}
	if err := o.diagnoseEnd(env, in, reports, unions); err != nil {
		return err
	}
	return broadcastText(env, broadcasts)
}

// unionBytes is how much is read of the states that choose chooses.
func (o *pruneOptions) unionBytes(ctx context.Context, snap *reader.Snapshot, choose func(*format.Operator, string) bool) func() int64 {
	return someState(ctx, snap, statesOf(snap.Savepoint, func(op *format.Operator, st *format.NamedState) bool {
		return (st.Mode == format.ModeUnion || st.Mode == format.ModeBroadcast && o.keep == "") && choose(op, st.Name.String())
	}))
}

// broadcastRow is a broadcast state as a row of data.
func broadcastRow(env *Env, b *transform.BroadcastReport) UnionRow {
	r := UnionRow{
		Operator: env.run.Label(b.Operator), ID: b.Operator.ID.String(), State: env.run.Text(b.State), Kind: "broadcast",
		Distinct: int64(len(b.Versions)), Bytes: b.Bytes, Factor: 1, Equal: len(b.Versions) <= 1, SameOrder: len(b.Versions) <= 1,
		Verdict: "copies equal", Why: "every subtask holds the same map",
	}
	for _, v := range b.Versions {
		n := int64(len(v.Subtasks))
		r.Elements += n
		r.DistinctBytes += v.Bytes
		if r.MinCopies == 0 || n < r.MinCopies {
			r.MinCopies = n
		}
		r.MaxCopies = max(r.MaxCopies, n)
	}
	r.Subtasks = int(r.Elements)
	r.Fewest, r.Most, r.MaxFactor = 1, 1, 1
	if r.Equal && r.Subtasks > 1 {
		r.Common = 1
	}
	r.HandedOut, r.HandedBytes = r.Elements, r.Bytes
	if !r.Equal {
		r.Verdict, r.Why = "copies differ", versionsText(b)
	}
	return r
}

// versionsText says who holds which map.
func versionsText(b *transform.BroadcastReport) string {
	var parts []string
	for _, v := range b.Versions {
		var subs []string
		for _, i := range v.Subtasks {
			subs = append(subs, strconv.Itoa(int(i)))
		}
		parts = append(parts, fmt.Sprintf("%s in subtask %s", ui.Bytes(v.Bytes), report.Shorten(subs)))
	}
	return fmt.Sprintf("%d maps: %s", len(b.Versions), report.Shorten(parts))
}

// broadcastText says which broadcast states have copies that differ: after a
// restore with fewer subtasks some of them are not read at all.
func broadcastText(env *Env, all []*transform.BroadcastReport) error {
	var b strings.Builder
	equal := 0
	for _, r := range all {
		if len(r.Versions) <= 1 {
			equal++
			continue
		}
		fmt.Fprintf(&b, "\n%s broadcast state %s/%s has copies that differ, %s.\n  A restore gives each subtask one of them: which are read depends on the parallelism.\n",
			ui.Look("!"), ui.Quote(env.run.Label(r.Operator)), ui.Quote(env.run.Text(r.State)), versionsText(r))
	}
	if equal > 0 {
		fmt.Fprintf(&b, "\n%s with equal copies: nothing to prune, an .spt file stores them once.\n", ui.Plural(int64(equal), "broadcast state"))
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}

// preview says what --keep would do, without an output.
func (o *pruneOptions) preview(ctx context.Context, env *Env, snap *reader.Snapshot, in string, choose format.Selector) error {
	return o.prune(ctx, env, snap, in, "", choose)
}

func runPrune(ctx context.Context, o pruneOptions, env *Env, in, out string) (err error) {
	snap, err := env.open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	choose, err := o.picked(env, snap)
	if err != nil {
		return err
	}
	return o.prune(ctx, env, snap, in, out, choose)
}

func (o *pruneOptions) prune(ctx context.Context, env *Env, snap *reader.Snapshot, in, out string, choose format.Selector) error {
	stop := env.reading("reading", o.unionBytes(ctx, snap, o.chooses(choose)))
	v, pruned, err := transform.PruneUnion(ctx, snap.View(), transform.PruneOptions{
		Operators: choose, States: o.states, Keep: transform.Keep(o.keep), Place: transform.PlaceKept(o.place), Compact: o.compact, AcceptUnproven: o.acceptUnproven, TempDir: env.common.tmp,
	})
	stop()
	if err != nil {
		return format.InFile(err, snap.Container.Name)
	}
	res := &PruneResult{States: []UnionRow{}}
	var skipped []string
	for _, p := range pruned.States {
		row := o.unionRow(env, &p.UnionReport)
		row.Skipped = p.Skipped
		kept, bytes := p.Kept, p.BytesAfter
		after := transform.Capped(kept, o.restoredAt(p.Operator))
		row.Kept, row.KeptBytes, row.HandedOutAfter = &kept, &bytes, &after
		row.MinKept, row.MaxKept, row.Remaining = p.MinKept, p.MaxKept, p.Remaining()
		row.RemainingWhy = remaining(p, transform.Keep(o.keep))
		res.States = append(res.States, row)
		if p.Skipped != "" && p.Verdict != transform.VerdictSound {
			skipped = append(skipped, fmt.Sprintf("%s/%s (%s)", ui.Quote(row.Operator), ui.Quote(row.State), p.Skipped))
		}
	}
	if len(skipped) > 0 && len(o.states) > 0 {
		return &usageError{"not pruned: " + report.Shorten(skipped), "--accept-unproven prunes it all the same; look at its elements first"}
	}
	if o.opts.Family == "" && out == "" {
		o.opts.Family = snap.Container.Family
	}
	plan, written, err := o.write(ctx, env, snap.With(v.Savepoint), in, out)
	if err != nil {
		return inContainer(err, snap)
	}
	res.Write = written
	if snap.Container.Family == reader.Flink && plan.Family == reader.Flink {
		res.MetadataBefore, res.MetadataAfter = snap.Container.Size, plan.MetadataBytes
	}
	if err := o.renderPrune(env, res); err != nil {
		return err
	}
	if len(skipped) > 0 {
		return &findings{"left as it is: " + report.Shorten(skipped)}
	}
	return incomplete(plan, written)
}

func (o *pruneOptions) renderPrune(env *Env, r *PruneResult) error {
	if done, err := renderValue(env, r); done {
		return err
	}
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16},
		ui.Column{Header: "ELEMENTS", Align: ui.Right}, ui.Column{Header: "KEPT", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right}, ui.Column{Header: "AFTER", Align: ui.Right}, ui.Column{Header: "", Shrink: 2, Min: 20, Wrap: true},
	)
	for _, s := range r.States {
		note := ""
		if s.Skipped != "" {
			note = ui.Look("left as it is: ") + s.Skipped
		}
		t.Row(ui.Quote(s.Operator)+"/"+ui.Quote(s.State), ui.Count(s.Elements), ui.Count(*s.Kept), ui.Bytes(s.Bytes), ui.Bytes(*s.KeptBytes), note)
	}
	if err := t.Write(env.Stdout, env.term()); err != nil {
		return err
	}
	if _, err := fmt.Fprint(env.Stdout, o.prunedText(env, r.States)); err != nil {
		return err
	}
	if r.MetadataBefore > 0 {
		if _, err := fmt.Fprintf(env.Stdout, "_metadata %s → %s\n", ui.Bytes(r.MetadataBefore), ui.Bytes(r.MetadataAfter)); err != nil {
			return err
		}
	}
	return r.Write.Document().Write(env.Stdout, env.term())
}

// prunedText says which duplicates remain and what a restore hands out.
func (o *pruneOptions) prunedText(env *Env, rows []UnionRow) string {
	var b strings.Builder
	var before, after, bytesBefore, bytesAfter int64
	for _, s := range rows {
		before, after = before+s.HandedOut, after+*s.HandedOutAfter
		bytesBefore += s.HandedBytes
		bytesAfter += transform.Capped(*s.KeptBytes, s.restoredAt)
		if s.Skipped == "" && s.oneEach {
			fmt.Fprintf(&b, "\n%s %s/%s: %s.\n", ui.Look("!"), ui.Quote(s.Operator), ui.Quote(s.State), s.Why)
		}
		if s.RemainingWhy != "" {
			fmt.Fprintf(&b, "\n%s %s/%s: %s.\n", ui.Look("!"), ui.Quote(s.Operator), ui.Quote(s.State), s.RemainingWhy)
		}
	}
	if before != after {
		fmt.Fprintf(&b, "\na restore loads %s → %s elements, %s → %s, in all subtasks together\n", ui.Count(before), ui.Count(after), ui.Bytes(bytesBefore), ui.Bytes(bytesAfter))
	}
	for _, s := range rows {
		if n := transform.Capped(*s.KeptBytes, s.restoredAt); n >= check.LargeUnion {
			fmt.Fprintf(&b, "%s\n", largeUnion(&s, *s.Kept, n))
		}
	}
	return b.String()
}

// largeUnion warns of a state of which a restore hands out much.
func largeUnion(s *UnionRow, elements, handed int64) string {
	return fmt.Sprintf("%s %s/%s: a restore at parallelism %s hands all %s to every subtask: %s in total.", ui.Look("!"), ui.Quote(s.Operator), ui.Quote(s.State),
		ui.Count(s.restoredAt), ui.Plural(elements, "element"), ui.Bytes(handed))
}

func unionHeader() []string {
	return []string{"operator", "id", "state", "kind", "subtasks", "elements", "distinct", "min_copies", "max_copies", "bytes", "distinct_bytes", "subtasks_equal", "factor", "verdict", "why", "subtasks_same_order", "min_in_subtask", "max_in_subtask", "max_factor", "in_all_subtasks"}
}

func unionCells(r *UnionRow) []string {
	return []string{r.Operator, r.ID, r.State, r.Kind, strconv.Itoa(r.Subtasks), fmt.Sprint(r.Elements), fmt.Sprint(r.Distinct), fmt.Sprint(r.MinCopies), fmt.Sprint(r.MaxCopies),
		fmt.Sprint(r.Bytes), fmt.Sprint(r.DistinctBytes), strconv.FormatBool(r.Equal), fmt.Sprint(r.Factor), r.Verdict, r.Why,
		strconv.FormatBool(r.SameOrder), fmt.Sprint(r.Fewest), fmt.Sprint(r.Most), fmt.Sprint(r.MaxFactor), fmt.Sprint(r.Common)}
}

func unionTable(env *Env, rows []UnionRow) error {
	if len(rows) == 0 {
		_, err := fmt.Fprintln(env.Stdout, "no union state")
		return err
	}
	t := ui.NewTable(
		ui.Column{Header: "OPERATOR / STATE", Shrink: 1, Cut: ui.CutMiddle, Min: 16},
		ui.Column{Header: "ELEMENTS", Align: ui.Right}, ui.Column{Header: "DISTINCT", Align: ui.Right}, ui.Column{Header: "COPIES", Align: ui.Right},
		ui.Column{Header: "BYTES", Align: ui.Right}, ui.Column{Header: "VERDICT", Shrink: 2, Min: 10, Wrap: true},
	)
	for _, r := range rows {
		copies := fmt.Sprintf("%s–%s", ui.Count(r.MinCopies), ui.Count(r.MaxCopies))
		if r.MinCopies == r.MaxCopies {
			copies = ui.Count(r.MinCopies) + " each"
		}
		if r.Elements == 0 {
			copies = ""
		}
		verdict := r.Verdict
		switch transform.Verdict(r.Verdict) {
		case transform.VerdictProduct:
			verdict = ui.Bad(verdict)
		case transform.VerdictNotSure:
			verdict = ui.Look(verdict)
		default:
			verdict = ui.Proved(verdict)
		}
		t.Row(ui.Quote(r.Operator)+"/"+ui.Quote(r.State), ui.Count(r.Elements), ui.Count(r.Distinct), copies, ui.Bytes(r.Bytes), verdict)
	}
	return t.Write(env.Stdout, env.term())
}

// diagnoseEnd says of each state what its verdict rests on, and what to do.
func (o *pruneOptions) diagnoseEnd(env *Env, in string, reports []*transform.UnionReport, rows []UnionRow) error {
	var b strings.Builder
	redacted := env.run.Format == ui.FormatRedacted // a command with such names would choose nothing
	states := map[string]int{}                      // how many operators have a union state of the name
	for _, r := range rows {
		states[r.State]++
	}
	for i, r := range rows {
		of := reports[i]
		name := ui.Quote(r.Operator) + "/" + ui.Quote(r.State)
		switch of.Verdict {
		case transform.VerdictProduct:
			fmt.Fprintf(&b, "\n%s: %s.\n%s", name, r.Why, factorText(of))
			fmt.Fprintf(&b, "--keep distinct on %s would keep %s, %s (%s).\nA restore now loads %s, %s, in all subtasks together.\n",
				ui.Quote(r.State), ui.Plural(r.Distinct, "element"), ui.Bytes(r.DistinctBytes), ui.Percent(r.DistinctBytes, r.Bytes), ui.Plural(r.HandedOut, "element"), ui.Bytes(r.HandedBytes))
			if redacted {
				continue
			}
			fmt.Fprintf(&b, "Nothing written. Add an output to write it:  spt prune-union %s %s %s --keep distinct\n", shell.Quote(in), report.OutLike(in), chosen(r.ID, r.State, states[r.State] > 1))
			continue
		case transform.VerdictNotSure:
			fmt.Fprintf(&b, "\n%s: %s.\n", name, r.Why)
			if of.Repeats() && redacted {
				fmt.Fprintf(&b, "%s.\n", of.Numbers())
			} else if of.Repeats() {
				fmt.Fprintf(&b, "%s. How often each comes:\n  spt cat %s %s --distinct\n", of.Numbers(), shell.Quote(in), chosen(r.ID, r.State, states[r.State] > 1))
			}
		}
		if r.HandedBytes >= check.LargeUnion {
			fmt.Fprintf(&b, "\n%s\n", largeUnion(&r, r.Elements, r.HandedBytes))
		}
	}
	_, err := fmt.Fprint(env.Stdout, b.String())
	return err
}
