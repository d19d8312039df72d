package command

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type inspectOptions struct {
	pick
	by      string
	top     int
	failIf  string
	salvage bool
	wide    bool
	guard   *guard
}

func (o *inspectOptions) addFlags(fs *pflag.FlagSet) {
	o.pick.addFlags(fs)
	fs.StringVar(&o.by, "by", "", "one table of these, the largest first: `operator|state|subtask|handle|file`")
	fs.IntVar(&o.top, "top", 0, "only the `N` largest; 0: all")
	fs.StringVar(&o.failIf, "fail-if", "", "exit 1 and name what `EXPR` holds for, such as 'union_elements > 100000'")
	fs.BoolVar(&o.salvage, "salvage", false, "of a damaged _metadata, show what stands before the damage (exit 4)")
	fs.BoolVar(&o.wide, "wide", false, "whole ids and names")
}

var inspectRows = []string{"operator", "state", "subtask", "handle", "file"}

func (o *inspectOptions) validate() error {
	if o.by != "" && !matches(inspectRows, o.by) {
		return usagef("--by %s: one of %s", o.by, strings.Join(inspectRows, ", "))
	}
	if o.top < 0 {
		return usagef("--top %d: not a number of rows", o.top)
	}
	if o.failIf != "" {
		g, err := newGuard(o.failIf)
		if err != nil {
			return err
		}
		o.guard = g
	}
	return o.pick.validate()
}

func newInspectCommand(env *Env) *cobra.Command {
	var o inspectOptions
	cmd := &cobra.Command{
		Use:   "inspect SP",
		Short: "What is in a snapshot: operators, states, elements, bytes",
		Long: `Shows what a snapshot is, what it holds and where its bytes lie: operators with
parallelism, list, union and broadcast states with their elements, keyed state
with its key groups, coordinators, in-flight data; the largest first.

It reads the description of the snapshot and looks whether the files are there.
It reads no state: what it says of elements follows from their offsets.

--fail-if is a guard for a scheduled job. The expression holds for a state or
for the whole snapshot; these names can stand in it:
` + guardHelp(),
		Example: `  spt inspect sp-001
  spt inspect chk-4211/_metadata --by file --top 20
  spt inspect sp-001 --fail-if 'union_elements > 100000 or may_be_multiplied'
  spt inspect sp-001 -o json | jq '.operators[].states[] | select(.kind == "union")'`,
		Args: exactly(1, "one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return runInspect(cmd.Context(), o, env, args[0])
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runInspect(ctx context.Context, o inspectOptions, env *Env, location string) (err error) {
	var snap *reader.Snapshot
	var damage error
	if o.salvage {
		snap, damage, err = reader.Salvage(ctx, location, env.readerOptions())
	} else {
		snap, err = env.open(ctx, location)
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	sp, err := o.apply(env, snap.Savepoint)
	if err != nil {
		return err
	}
	sum, err := summary.Of(ctx, sp)
	if err != nil {
		return format.InFile(err, snap.Container.Name)
	}
	if err := o.applyStates(env, sum); err != nil {
		return err
	}
	if len(o.ranges) > 0 || damage != nil {
		for _, op := range sum.Operators {
			op.Missing = 0 // those not picked, or behind the damage: it is not the snapshot that lacks them
		}
	}
	files, err := snap.Files(ctx, sum.Files)
	if err != nil {
		return err
	}
	res := newInspectResult(env, location, snap, sum, files)
	res.Picked = o.any()
	if damage != nil {
		res.Damage = damage.Error()
	}
	var offenders []string
	if o.guard != nil {
		if offenders, err = o.guard.check(res); err != nil {
			return err
		}
		res.FailIf = &InspectGuard{Expression: o.failIf, Holds: len(offenders) > 0, For: offenders}
	}
	if err := o.render(env, res, sp); err != nil {
		return err
	}
	switch {
	case damage != nil:
		return &salvaged{damage}
	case len(offenders) > 0:
		return &findings{fmt.Sprintf("%s holds for %s", o.failIf, shorten(quoteAll(offenders)))}
	}
	return nil
}

// salvaged is the damage of a snapshot that was shown as far as it can be.
type salvaged struct{ error }

func (e *salvaged) Unwrap() error { return e.error }

// Hint leaves out the advice that was taken.
func (e *salvaged) Hint() string {
	hint, _, _ := strings.Cut(reader.Hint(e.error), "; spt inspect --salvage")
	return hint
}

func quoteAll(all []string) []string {
	out := make([]string, len(all))
	for i, s := range all {
		out[i] = ui.Quote(s)
	}
	return out
}

// InspectResult is the answer of inspect. Names in JSON are a promise: we add,
// we do not rename.
type InspectResult struct {
	Path          string            `json:"path" jsonschema:"description=the snapshot as it was named"`
	Family        string            `json:"family" jsonschema:"enum=flink,enum=spt"`
	Type          string            `json:"type" jsonschema:"enum=savepoint,enum=checkpoint,enum=snapshot,description=snapshot where the file does not say which"`
	Format        string            `json:"format,omitempty" jsonschema:"description=canonical or native for a savepoint; full or incremental for a checkpoint"`
	Stopped       bool              `json:"stopped,omitempty" jsonschema:"description=taken to stop the job"`
	Changelog     bool              `json:"changelog,omitempty"`
	Unaligned     bool              `json:"unaligned,omitempty" jsonschema:"description=holds records in flight"`
	CheckpointID  int64             `json:"checkpoint_id"`
	Container     string            `json:"container" jsonschema:"description=version of the container and the releases that write it"`
	Metadata      int               `json:"metadata_version,omitempty"`
	Size          int64             `json:"container_bytes" jsonschema:"description=size of _metadata or of the .spt file"`
	Damage        string            `json:"damage,omitempty" jsonschema:"description=with --salvage: what ends the readable part"`
	Picked        bool              `json:"picked,omitempty" jsonschema:"description=with --operator, --state or --subtask: only what they picked is shown and counted"`
	OperatorCount int               `json:"operator_count"`
	SubtaskCount  int               `json:"subtask_count"`
	Bytes         InspectBytes      `json:"bytes"`
	FileCount     int               `json:"file_count"`
	MissingFiles  []InspectMissing  `json:"missing_files,omitempty"`
	NotChecked    []InspectMissing  `json:"not_checked_files,omitempty" jsonschema:"description=files that nobody could look for: their store is not supported or gave no answer; they may be there"`
	OutsideFiles  []InspectMissing  `json:"outside_files,omitempty" jsonschema:"description=files outside the snapshot and its checkpoint directory: commands that read state refuse them without --follow"`
	WrongFiles    []InspectMissing  `json:"wrong_files,omitempty" jsonschema:"description=files that are not as long as the snapshot promises"`
	MovedFiles    int               `json:"moved_files,omitempty" jsonschema:"description=files found under the folder of the snapshot or its job instead of where the reference points"`
	MasterStates  []string          `json:"master_states,omitempty"`
	Operators     []InspectOperator `json:"operators"`
	Warnings      []InspectWarning  `json:"warnings,omitempty"`
	FailIf        *InspectGuard     `json:"fail_if,omitempty"`

	files []reader.FileState
}

// InspectBytes says where bytes lie.
type InspectBytes struct {
	Total       int64 `json:"total" jsonschema:"description=state wherever it lies; offsets are not part of it"`
	Inline      int64 `json:"inline"`
	OwnFiles    int64 `json:"own_files"`
	SharedFiles int64 `json:"shared_files"`
	Packed      int64 `json:"packed,omitempty" jsonschema:"description=in the chunks of an .spt file, before compression"`
	Stored      int64 `json:"stored,omitempty" jsonschema:"description=what the chunks of an .spt file take"`
	Unreachable int64 `json:"unreachable" jsonschema:"description=of own and shared files: in those that are not there"`
	Offsets     int64 `json:"offsets"`
}

// InspectMissing is a file that is not to be had.
type InspectMissing struct {
	Path    string `json:"path"`
	Bytes   int64  `json:"bytes"`
	Handles int    `json:"handles"`
	Why     string `json:"why"`
}

// InspectOperator is one operator.
type InspectOperator struct {
	UID              string         `json:"uid,omitempty"`
	Name             string         `json:"name,omitempty"`
	ID               string         `json:"id"`
	Parallelism      int32          `json:"parallelism"`
	MaxParallelism   int32          `json:"max_parallelism"`
	FinishedSubtasks int            `json:"finished_subtasks,omitempty"`
	MissingSubtasks  int            `json:"missing_subtasks,omitempty"`
	CoordinatorBytes int64          `json:"coordinator_bytes,omitempty"`
	Bytes            InspectBytes   `json:"bytes"`
	States           []InspectState `json:"states"`

	label string
}

// InspectState is one state of an operator over all its subtasks.
type InspectState struct {
	Name            string `json:"name,omitempty"`
	Kind            string `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast,enum=raw,enum=keyed,enum=raw keyed,enum=in flight,enum=coordinator,enum=legacy"`
	Handles         string `json:"handles,omitempty" jsonschema:"description=how keyed state is kept: full, savepoint, incremental, changelog"`
	Subtasks        int    `json:"subtasks"`
	Elements        *int64 `json:"elements,omitempty" jsonschema:"description=list and union: elements; broadcast: copies"`
	KeyGroups       int64  `json:"key_groups,omitempty"`
	Bytes           int64  `json:"bytes"`
	InlineBytes     int64  `json:"inline_bytes"`
	OffsetBytes     int64  `json:"offset_bytes"`
	MayBeMultiplied bool   `json:"may_be_multiplied,omitempty" jsonschema:"description=union state whose subtasks all hold as many elements of the same lengths in the same order, and where they are inline begin with the same bytes"`
}

// InspectWarning is something to look at, and the command that helps.
type InspectWarning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Command string `json:"command,omitempty"`

	more string // detail for people
}

// InspectGuard is the outcome of --fail-if.
type InspectGuard struct {
	Expression string   `json:"expression"`
	Holds      bool     `json:"holds"`
	For        []string `json:"for,omitempty"`
}

func newInspectResult(env *Env, location string, snap *reader.Snapshot, sum *summary.Summary, files []reader.FileState) *InspectResult {
	r := &InspectResult{
		Path: location, Family: string(snap.Container.Family),
		Type: sum.Kind.Type, Format: sum.Kind.Format, Stopped: sum.Kind.Stopped, Changelog: sum.Kind.Changelog, Unaligned: sum.Kind.Unaligned,
		CheckpointID: snap.ID, Container: snap.Container.Describe(), Metadata: int(snap.Container.Metadata), Size: snap.Container.Size,
		OperatorCount: len(sum.Operators), SubtaskCount: sum.Subtasks, Bytes: inspectBytes(sum.Bytes),
		FileCount: len(files), Operators: []InspectOperator{}, files: files,
	}
	if r.Family == string(reader.SPT) {
		r.Bytes.Stored = snap.Container.SPT.StoredBytes
	}
	for _, f := range files {
		switch status := f.Status(); {
		case status == reader.FileNotChecked:
			r.NotChecked = append(r.NotChecked, InspectMissing{env.text(f.Path), f.Bytes, f.Handles, notCheckedWhy(env, f.Err)})
		case status == reader.FileRefused:
			r.OutsideFiles = append(r.OutsideFiles, InspectMissing{env.text(f.Path), f.Bytes, f.Handles, env.hide(f.Err.Error())})
		}
		switch {
		case f.Wrong != "":
			r.WrongFiles = append(r.WrongFiles, InspectMissing{env.text(f.Path), f.Bytes, f.Handles, f.Wrong})
		case f.Missing():
			r.Bytes.Unreachable += f.Bytes
			r.MissingFiles = append(r.MissingFiles, InspectMissing{env.text(f.Path), f.Bytes, f.Handles, f.Err.Error()})
		case f.Found.Instead != "":
			r.MovedFiles++
		}
	}
	for _, m := range snap.Masters {
		r.MasterStates = append(r.MasterStates, env.text(m.Name.String()))
	}
	for _, op := range sum.Operators {
		r.Operators = append(r.Operators, inspectOperator(env, op))
	}
	var away *reader.OutsideError
	if errors.As(snap.Outside(), &away) {
		r.Warnings = append(r.Warnings, InspectWarning{
			Code:    "outside_description",
			Message: env.hide(fmt.Sprintf("_metadata is a link that leads to %s, outside the snapshot: commands that read state refuse it", ui.Quote(away.Leads))),
			more:    env.hide(away.Hint()),
		})
	}
	r.warn(env, sum)
	return r
}

func inspectBytes(b summary.Bytes) InspectBytes {
	return InspectBytes{Total: b.State(), Inline: b.Inline, OwnFiles: b.Own, SharedFiles: b.Shared, Packed: b.Packed, Offsets: b.Offsets}
}

func inspectOperator(env *Env, op *summary.Operator) InspectOperator {
	o := InspectOperator{
		UID: env.uid(op.Operator), Name: env.text(op.Name.String()), ID: op.ID.String(), label: env.label(op.Operator),
		Parallelism: op.Parallelism, MaxParallelism: op.MaxParallelism,
		FinishedSubtasks: op.Finished, MissingSubtasks: op.Missing, CoordinatorBytes: op.Coordinator,
		Bytes: inspectBytes(op.Bytes), States: []InspectState{},
	}
	for _, st := range op.States {
		s := InspectState{
			Name: env.text(st.Name), Kind: string(st.Kind), Handles: st.Handles, Subtasks: st.Subtasks, KeyGroups: st.KeyGroups,
			// Its place holds what stands before the elements too.
			Bytes: st.Bytes, InlineBytes: min(st.Place.Inline, st.Bytes), OffsetBytes: st.Place.Offsets, MayBeMultiplied: st.MayBeMultiplied,
		}
		if st.Elements >= 0 && st.Name != "" {
			n := st.Elements
			s.Elements = &n
		}
		o.States = append(o.States, s)
	}
	return o
}

// notCheckedWhy is why nobody looked for a file, without the file.
func notCheckedWhy(env *Env, err error) string {
	var e *reader.NotCheckedError
	if errors.As(err, &e) && e.Scheme != "" {
		return e.Scheme + ": is not supported here"
	}
	return env.hide(reason(err))
}

// whyNot is why files were not checked: each reason once.
func whyNot(files []InspectMissing) string {
	var all []string
	for _, f := range files {
		if !slices.Contains(all, f.Why) {
			all = append(all, f.Why)
		}
	}
	return shorten(all)
}

// warnFiles adds what is to be known of files that were not looked at.
func (r *InspectResult) warnFiles(env *Env) {
	if n := len(r.NotChecked); n > 0 {
		r.Warnings = append(r.Warnings, InspectWarning{
			Code:    "not_checked_files",
			Message: fmt.Sprintf("%s (%s) not checked: %s", ui.Plural(int64(n), "file"), ui.Bytes(bytesOf(r.NotChecked)), whyNot(r.NotChecked)),
			more:    "copies elsewhere are found with --map OLD=NEW",
		})
	}
	if n := len(r.OutsideFiles); n > 0 {
		var follow []string
		for _, f := range r.files {
			var out *reader.OutsideError
			if errors.As(f.Err, &out) && out.Follow != "" && !slices.Contains(follow, out.Follow) {
				follow = append(follow, out.Follow)
			}
		}
		r.Warnings = append(r.Warnings, InspectWarning{
			Code:    "outside_files",
			Message: fmt.Sprintf("%s outside the snapshot and its checkpoint directory, such as %s: commands that read state refuse them", ui.Plural(int64(n), "file"), ui.Quote(r.OutsideFiles[0].Path)),
			more:    env.hide(reader.FollowAdvice(follow...)),
		})
	}
}

func bytesOf(files []InspectMissing) (n int64) {
	for _, f := range files {
		n += f.Bytes
	}
	return n
}

// warn adds what deserves a look.
func (r *InspectResult) warn(env *Env, sum *summary.Summary) {
	if n := len(r.MissingFiles); n > 0 {
		r.Warnings = append(r.Warnings, InspectWarning{
			Code:    "missing_files",
			Message: fmt.Sprintf("%s (%s) cannot be had: the snapshot is not complete here", ui.Plural(int64(n), "file"), ui.Bytes(r.Bytes.Unreachable)),
			Command: "spt verify " + ui.Quote(r.Path),
			more:    "what lies elsewhere is found with --map OLD=NEW",
		})
	}
	r.warnFiles(env)
	if n := len(r.WrongFiles); n > 0 {
		w := r.WrongFiles[0]
		r.Warnings = append(r.Warnings, InspectWarning{
			Code:    "wrong_files",
			Message: fmt.Sprintf("%s not as long as promised, such as %s: %s", ui.Plural(int64(n), "file"), ui.Quote(w.Path), w.Why),
			Command: "spt verify " + ui.Quote(r.Path),
		})
	}
	for _, op := range sum.Operators {
		for _, st := range op.States {
			if !st.MayBeMultiplied {
				continue
			}
			n := int64(st.Subtasks)
			next, _ := mulCapped(st.Elements, n)
			r.Warnings = append(r.Warnings, InspectWarning{
				Code: "may_be_multiplied",
				Message: fmt.Sprintf("%s of %s may be multiplied: %s elements, %s in each of %d subtasks, with the same lengths in the same order",
					ui.Quote(env.text(st.Name)), ui.Quote(env.label(op.Operator)), ui.Count(st.Elements), ui.Count(st.Elements/n), n),
				Command: "spt prune-union " + ui.Quote(r.Path),
				more:    fmt.Sprintf("every subtask is handed all %s at a restore; if the job adds them again, the next snapshot holds %s", ui.Count(st.Elements), next),
			})
		}
	}
}

// mulCapped multiplies and says "more than 9e18" where that is no longer a
// number.
func mulCapped(a, b int64) (string, bool) {
	if a > 0 && b > (1<<63-1)/a {
		return "more than " + ui.Count(1<<63-1), false
	}
	return ui.Count(a * b), true
}

func (o *inspectOptions) render(env *Env, r *InspectResult, sp *format.Savepoint) error {
	if o.by != "" {
		return o.renderRows(env, r, sp)
	}
	if done, err := renderValue(env, r); done {
		return err
	}
	if env.common.output == ui.OutputCSV {
		return o.csv(env, r)
	}
	return o.table(env, r)
}

func (o *inspectOptions) csv(env *Env, r *InspectResult) error {
	c := ui.NewCSV(env.Stdout, "operator", "id", "state", "kind", "handles", "subtasks", "parallelism", "max_parallelism", "elements", "key_groups", "bytes", "inline_bytes", "offset_bytes", "may_be_multiplied")
	for _, op := range r.Operators {
		for _, st := range op.States {
			elements := ""
			if st.Elements != nil {
				elements = strconv.FormatInt(*st.Elements, 10)
			}
			err := c.Row(op.label, op.ID, st.Name, st.Kind, st.Handles, strconv.Itoa(st.Subtasks), strconv.Itoa(int(op.Parallelism)), strconv.Itoa(int(op.MaxParallelism)),
				elements, strconv.FormatInt(st.KeyGroups, 10), strconv.FormatInt(st.Bytes, 10), strconv.FormatInt(st.InlineBytes, 10), strconv.FormatInt(st.OffsetBytes, 10), strconv.FormatBool(st.MayBeMultiplied))
			if err != nil {
				return err
			}
		}
	}
	if len(r.Operators) == 0 {
		if err := env.remark("no operator: nothing to show"); err != nil {
			return err
		}
	}
	return c.Flush()
}
