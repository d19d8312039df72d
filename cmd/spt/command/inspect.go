package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/shell"
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
	deep    bool
	guard   *guard
}

func (o *inspectOptions) addFlags(fs *pflag.FlagSet) {
	o.pick.addFlags(fs)
	fs.StringVar(&o.by, "by", "", "`operator|state|subtask|handle|file`: print one table of these, largest first")
	fs.IntVar(&o.top, "top", 0, "print only the `N` largest; 0: all")
	fs.StringVar(&o.failIf, "fail-if", "", "exit 1, and name the states, if `EXPR` is true, such as 'union_elements > 100000'")
	fs.BoolVar(&o.salvage, "salvage", false, "of a damaged _metadata, print what precedes the damage (exit 4)")
	fs.BoolVar(&o.deep, "deep", false, "also read the elements of union states, and report how often each occurs")
	fs.BoolVar(&o.wide, "wide", false, "print full ids and names")
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
		Use:   "inspect SP...",
		Short: "What is in a snapshot: operators, states, elements, bytes",
		Long: `Shows what a snapshot is, what it holds and where its bytes are stored:
operators with parallelism, list, union and broadcast states with their
elements, keyed state with its key groups, coordinators, in-flight data; largest
first. Rows add up to their operator, and operators to the total: (serializers)
is serializer snapshots, headers, and bytes that belong to no element. A file
that several operators use is counted for the first of them.

It reads the description of the snapshot and checks that the files exist. Of the
state it reads only the headers, for the names, kinds and types of states and
whether they are compressed: all that are inline, and of state in files those of
up to 16 subtasks of each operator. The bytes of one keyed state among several
are not known without reading them all. What inspect reports about elements
follows from their offsets. That restores may have multiplied a union state is a
guess: all subtasks hold as many elements of the same lengths, in any order, and
the same elements where those are inline. --deep reads the elements of union
states and reports how often each comes. Union state is named of which a restore
hands out 64 MiB or more, to all subtasks together.

SP is - to read a _metadata from standard input. Its files are then not checked.
With several snapshots, those that cannot be read are named, and the others are
shown; -o json gives a list.

--fail-if is a guard for a scheduled job. The expression holds for a state or
for the whole snapshot; these names can be used in it:
` + guardHelp(),
		Example: `  spt inspect sp-001
  spt inspect chk-4211/_metadata --by file --top 20
  spt inspect chk-4100 chk-4211
  aws s3 cp s3://flink/chk-4211/_metadata - | spt inspect -
  spt inspect sp-001 --fail-if 'union_elements > 100000 or may_be_multiplied'
  spt inspect sp-001 -o json | jq '.operators[].states[] | select(.kind == "union")'`,
		Args: between(1, -1, "at least one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return runInspect(cmd.Context(), o, env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

// inspected is one snapshot that was looked at.
type inspected struct {
	*InspectResult
	sp     *format.Savepoint
	damage error // with --salvage
	unread error // with --deep
}

func runInspect(ctx context.Context, o inspectOptions, env *Env, locations []string) error {
	var all []inspected
	var failed several
	var offenders []string
	progress := env.progress()
	progress.StartCount(int64(len(locations)), "opening snapshots")
	defer progress.Stop()
	for _, location := range locations {
		one, err := o.inspect(ctx, env, location)
		progress.Add(1)
		if err != nil {
			if ctx.Err() != nil || len(locations) == 1 {
				return err
			}
			// Several were asked for: say it of this one and go on.
			one = inspected{InspectResult: &InspectResult{Path: location, Operators: []InspectOperator{}, Problem: env.run.Hide(err.Error())}, sp: &format.Savepoint{}}
			if !strings.Contains(err.Error(), location) {
				err = fmt.Errorf("%s: %w", ui.Quote(location), err) // of which of them it is
			}
			failed = append(failed, err)
		}
		if one.damage != nil {
			failed = append(failed, &salvaged{one.damage})
		}
		if one.unread != nil {
			failed = append(failed, one.unread)
		}
		if one.FailIf != nil {
			offenders = append(offenders, one.FailIf.For...)
		}
		all = append(all, one)
	}
	progress.Stop()
	if err := o.render(env, all); err != nil {
		return err
	}
	switch {
	case len(failed) == 1:
		return failed[0]
	case len(failed) > 0:
		return failed
	case len(offenders) > 0:
		return &findings{fmt.Sprintf("%s holds for %s", o.failIf, report.Shorten(quoteAll(offenders)))}
	}
	return nil
}

// inspect looks at one snapshot.
func (o *inspectOptions) inspect(ctx context.Context, env *Env, location string) (one inspected, err error) {
	snap, damage, err := o.open(ctx, env, location)
	if err != nil {
		return one, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	sp, err := o.apply(env, snap.Savepoint)
	if err != nil {
		return one, err
	}
	sum, err := summary.Of(ctx, sp)
	if err != nil {
		return one, format.InFile(err, snap.Container.Name)
	}
	headers, err := snap.Headers(ctx, sp.Operators)
	if err != nil {
		return one, err
	}
	if err := o.applyStates(env, sum, headers); err != nil {
		return one, err
	}
	if len(o.ranges) > 0 || damage != nil {
		for _, op := range sum.Operators {
			op.Missing = 0 // those not picked, or past the damage: it is not the snapshot that lacks them
		}
	}
	var files []reader.FileState
	if location != stdinName {
		if files, err = snap.Files(ctx, sum.Files); err != nil {
			return one, err
		}
	}
	res := newInspectResult(env, location, snap, sum, files, headers)
	var unions unionReports
	var unread error
	if o.deep {
		if unions, unread, err = readUnions(ctx, env, snap, sum); err != nil {
			return one, err
		}
	}
	res.unions(env, sum, unions)
	res.Picked = o.any()
	if location == stdinName {
		res.notChecked(env, sum)
	}
	if damage != nil {
		res.Damage = damage.Error()
	}
	if o.guard != nil {
		offenders, err := o.guard.check(res)
		if err != nil {
			return one, err
		}
		res.FailIf = &InspectGuard{Expression: o.failIf, Holds: len(offenders) > 0, For: offenders}
	}
	return inspected{res, sp, damage, unread}, nil
}

func (o *inspectOptions) open(ctx context.Context, env *Env, location string) (snap *reader.Snapshot, damage, err error) {
	opts := env.readerOptions()
	if location == stdinName {
		if opts.Stores, err = env.readStdin(ctx); err != nil {
			return nil, nil, err
		}
	}
	if o.salvage {
		snap, damage, err = reader.Salvage(ctx, location, &opts)
	} else {
		snap, err = reader.Open(ctx, location, &opts)
	}
	if err != nil {
		return nil, nil, env.suggestPath(ctx, location, err)
	}
	env.run.LearnFiles(snap.Savepoint)
	return snap, damage, nil
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
	Family        string            `json:"family,omitempty" jsonschema:"enum=flink,enum=spt"`
	Type          string            `json:"type,omitempty" jsonschema:"enum=savepoint,enum=checkpoint,enum=snapshot,description=snapshot where the file does not say which"`
	Format        string            `json:"format,omitempty" jsonschema:"description=canonical or native for a savepoint; full or incremental for a checkpoint"`
	Stopped       bool              `json:"stopped,omitempty" jsonschema:"description=taken to stop the job"`
	Changelog     bool              `json:"changelog,omitempty"`
	Unaligned     bool              `json:"unaligned,omitempty" jsonschema:"description=holds in-flight data"`
	CheckpointID  int64             `json:"checkpoint_id"`
	Container     string            `json:"container" jsonschema:"description=version of the container and the releases that write it"`
	Metadata      int               `json:"metadata_version,omitempty"`
	Size          int64             `json:"container_bytes" jsonschema:"description=size of _metadata or of the .spt file"`
	Problem       string            `json:"problem,omitempty" jsonschema:"description=of several snapshots: why this one could not be inspected at all"`
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

	files         []reader.FileState
	usedBySeveral int64
}

// InspectBytes says where bytes lie.
type InspectBytes struct {
	Total       int64 `json:"total" jsonschema:"description=state wherever it is stored, the sum of its operators or states; offsets are not part of it"`
	Serializers int64 `json:"serializers,omitempty" jsonschema:"description=of it: serializer snapshots, headers, and bytes that belong to no element"`
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
	KeyType          string         `json:"key_type,omitempty" jsonschema:"description=of keyed state"`
	Compression      string         `json:"compression,omitempty" jsonschema:"enum=snappy,description=of its state, as far as headers say"`
	HeadersRead      int            `json:"headers_read,omitempty" jsonschema:"description=of streams of state: what names, kinds, types and compression follow from"`
	HeadersSkipped   int            `json:"headers_skipped,omitempty" jsonschema:"description=of streams in files, of which up to 16 are read"`
	HeadersUnread    []string       `json:"headers_unread,omitempty" jsonschema:"description=why headers could not be read, as far as that is not because their files are missing"`
	Bytes            InspectBytes   `json:"bytes"`
	States           []InspectState `json:"states"`

	label  string
	unread int // headers
}

// InspectState is one state of an operator over all its subtasks.
type InspectState struct {
	Name            string `json:"name,omitempty"`
	Kind            string `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast,enum=raw,enum=keyed,enum=raw keyed,enum=in flight,enum=coordinator,enum=legacy,enum=serializers"`
	Type            string `json:"type,omitempty" jsonschema:"description=of its elements, as the serializer snapshots in the stream say"`
	Compression     string `json:"compression,omitempty" jsonschema:"enum=snappy"`
	Handles         string `json:"handles,omitempty" jsonschema:"description=how keyed state is kept: full, savepoint, incremental, changelog"`
	Subtasks        int    `json:"subtasks"`
	Elements        *int64 `json:"elements,omitempty" jsonschema:"description=list and union: elements; broadcast: copies"`
	KeyGroups       int64  `json:"key_groups,omitempty"`
	Bytes           int64  `json:"bytes" jsonschema:"description=each byte once: they add up to the total of the operator"`
	InlineBytes     int64  `json:"inline_bytes"`
	OffsetBytes     int64  `json:"offset_bytes"`
	MayBeMultiplied bool   `json:"may_be_multiplied,omitempty" jsonschema:"description=union state whose subtasks all hold as many elements of the same lengths in any order, and where they are inline the same elements; with --deep what the elements show"`
	// UnionRestoreBytes is what a restore at the operator's parallelism hands out.
	UnionRestoreBytes int64 `json:"union_restore_bytes,omitempty" jsonschema:"description=union state: bytes that a restore hands to all subtasks together, at the parallelism of the operator"`
	// Of union state, with --deep.
	Distinct  *int64 `json:"distinct,omitempty" jsonschema:"description=with --deep, of union state: different elements"`
	MinCopies int64  `json:"min_copies,omitempty" jsonschema:"description=with --deep: how often an element comes at least"`
	MaxCopies int64  `json:"max_copies,omitempty" jsonschema:"description=and at most"`
	Verdict   string `json:"verdict,omitempty" jsonschema:"enum=duplicated by restores,enum=not sure,enum=nothing repeats,description=with --deep: as by prune-union"`
	// States is the states in keyed state, whose bytes are not told apart.
	States []InspectKeyed `json:"keyed_states,omitempty" jsonschema:"description=the states that the headers of keyed state name; their bytes are not told apart"`
}

// InspectKeyed is one state among keyed state.
type InspectKeyed struct {
	Name      string `json:"name"`
	Kind      string `json:"kind" jsonschema:"enum=value,enum=list,enum=map,enum=reducing,enum=aggregating,enum=folding,enum=timers,enum=unknown"`
	Type      string `json:"type,omitempty" jsonschema:"description=of its values, of timers of their keys"`
	Namespace string `json:"namespace,omitempty" jsonschema:"description=type of its namespaces, such as windows"`
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

func newInspectResult(env *Env, location string, snap *reader.Snapshot, sum *summary.Summary, files []reader.FileState, headers map[*format.Operator]*reader.Headers) *InspectResult {
	r := &InspectResult{
		Path: location, Family: string(snap.Container.Family),
		Type: sum.Kind.Type, Format: sum.Kind.Format, Stopped: sum.Kind.Stopped, Changelog: sum.Kind.Changelog, Unaligned: sum.Kind.Unaligned,
		CheckpointID: snap.ID, Container: snap.Container.Describe(), Metadata: int(snap.Container.Metadata), Size: snap.Container.Size,
		OperatorCount: len(sum.Operators), SubtaskCount: sum.Subtasks, Bytes: inspectBytes(sum.Bytes),
		FileCount: len(files), usedBySeveral: sum.UsedBySeveral, Operators: []InspectOperator{}, files: files,
	}
	if r.Family == string(reader.SPT) {
		r.Bytes.Stored = snap.Container.SPT.StoredBytes
	}
	for _, f := range files {
		switch status := f.Status(); {
		case status == reader.FileNotChecked:
			r.NotChecked = append(r.NotChecked, InspectMissing{env.run.Text(f.Path), f.Bytes, f.Handles, notCheckedWhy(env, f.Err)})
		case status == reader.FileRefused:
			r.OutsideFiles = append(r.OutsideFiles, InspectMissing{env.run.Text(f.Path), f.Bytes, f.Handles, env.run.Hide(f.Err.Error())})
		}
		switch {
		case f.Wrong != "":
			r.WrongFiles = append(r.WrongFiles, InspectMissing{env.run.Text(f.Path), f.Bytes, f.Handles, f.Wrong})
		case f.Missing():
			r.Bytes.Unreachable += f.Bytes
			r.MissingFiles = append(r.MissingFiles, InspectMissing{env.run.Text(f.Path), f.Bytes, f.Handles, f.Err.Error()})
		case f.Found.Instead != "":
			r.MovedFiles++
		}
	}
	for _, m := range snap.Masters {
		r.MasterStates = append(r.MasterStates, env.run.Text(m.Name.String()))
	}
	for _, op := range sum.Operators {
		o := inspectOperator(env, op, headers[op.Operator])
		r.Operators = append(r.Operators, o)
		r.Bytes.Serializers += o.Bytes.Serializers
	}
	var away *reader.OutsideError
	if errors.As(snap.Outside(), &away) {
		r.Warnings = append(r.Warnings, InspectWarning{
			Code:    "outside_description",
			Message: env.run.Hide(fmt.Sprintf("_metadata is a link that leads to %s, outside the snapshot: commands that read state refuse it", ui.Quote(away.Leads))),
			more:    env.run.Hide(away.Hint()),
		})
	}
	r.warn(env, sum)
	return r
}

func inspectBytes(b summary.Bytes) InspectBytes {
	return InspectBytes{Total: b.State(), Inline: b.Inline, OwnFiles: b.Own, SharedFiles: b.Shared, Packed: b.Packed, Offsets: b.Offsets}
}

func inspectOperator(env *Env, op *summary.Operator, h *reader.Headers) InspectOperator {
	o := InspectOperator{
		UID: env.run.UID(op.Operator), Name: env.run.Text(op.Name.String()), ID: op.ID.String(), label: env.run.Label(op.Operator),
		Parallelism: op.Parallelism, MaxParallelism: op.MaxParallelism,
		FinishedSubtasks: op.Finished, MissingSubtasks: op.Missing, CoordinatorBytes: op.Coordinator,
		Bytes: inspectBytes(op.Bytes), States: []InspectState{},
	}
	framing := op.Framing
	for _, st := range op.States {
		addBytes(&framing, st.Framing)
		s := InspectState{
			Name: env.run.Text(st.Name), Kind: string(st.Kind), Handles: st.Handles, Subtasks: st.Subtasks, KeyGroups: st.KeyGroups,
			Bytes: st.Place.State() - st.Framing.State(), InlineBytes: st.Place.Inline - st.Framing.Inline, OffsetBytes: st.Place.Offsets, MayBeMultiplied: st.MayBeMultiplied,
		}
		if st.Elements >= 0 && st.Name != "" {
			n := st.Elements
			s.Elements = &n
		}
		s.describe(env, st, h)
		o.States = append(o.States, s)
	}
	slices.SortStableFunc(o.States, func(a, b InspectState) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if n := framing.State(); n > 0 {
		o.Bytes.Serializers = n
		o.States = append(o.States, InspectState{Kind: serializersKind, Bytes: n, InlineBytes: framing.Inline})
	}
	o.headers(env, h)
	return o
}

// serializersKind is the row of what belongs to no state.
const serializersKind = "serializers"

// headers is what is known of all state of the operator by its headers.
func (op *InspectOperator) headers(env *Env, h *reader.Headers) {
	if h == nil {
		return
	}
	op.HeadersRead, op.HeadersSkipped, op.unread = h.Read, h.Skipped, len(h.Unread)
	if h.Key != nil {
		op.KeyType = h.Key.Text(env.run.Text)
	}
	if h.Compressed > 0 {
		op.Compression = snappyName
	}
	for _, err := range h.Unread {
		if !format.NoFile(err) {
			op.HeadersUnread = append(op.HeadersUnread, env.run.Hide(err.Error()))
		}
	}
}

const snappyName = "snappy"

// describe adds what the headers of the operator say of a state.
func (s *InspectState) describe(env *Env, st *summary.State, h *reader.Headers) {
	if h == nil {
		return
	}
	for i := range h.States {
		header := &h.States[i]
		switch {
		case st.Kind == summary.Keyed && header.Keyed():
			first := &header.Schemas[0]
			s.States = append(s.States, InspectKeyed{
				Name: env.run.Text(header.Name()), Kind: first.Keyed, Type: typeText(env, header),
				Namespace: first.NamespaceText(env.run.Text),
			})
		case !header.Keyed() && header.Name() == st.Name && header.Schemas[0].Mode.String() == string(st.Kind):
			s.Type = typeText(env, header)
		default:
			continue
		}
		if header.Compressed > 0 {
			s.Compression = snappyName
		}
	}
}

// typeText is the type of a state; the types, where subtasks differ in it.
func typeText(env *Env, h *reader.StateHeader) string {
	var all []string
	for i := range h.Schemas {
		if text := h.Schemas[i].TypeText(env.run.Text); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " or ")
}

// notCheckedWhy is why nobody looked for a file, without the file.
func notCheckedWhy(env *Env, err error) string {
	var e *reader.NotCheckedError
	if errors.As(err, &e) && e.Scheme != "" {
		return e.Scheme + ": is not supported here"
	}
	return env.run.Hide(reason(err))
}

// whyNot is why files were not checked: each reason once.
func whyNot(files []InspectMissing) string {
	var all []string
	for _, f := range files {
		if !slices.Contains(all, f.Why) {
			all = append(all, f.Why)
		}
	}
	return report.Shorten(all)
}

// errFromStdin is why the files of a snapshot from standard input are not checked.
var errFromStdin = errors.New("read from standard input")

// notChecked names the files of a snapshot from standard input, which has no
// directory in which they could be.
func (r *InspectResult) notChecked(env *Env, sum *summary.Summary) {
	r.FileCount = len(sum.Files)
	for i := range r.Warnings {
		r.Warnings[i].Command = "" // no other command reads standard input
	}
	for _, f := range sum.Files {
		r.files = append(r.files, reader.FileState{File: f, Err: &reader.NotCheckedError{Reference: f.Path, Err: errFromStdin}})
		r.NotChecked = append(r.NotChecked, InspectMissing{env.run.Text(f.Path), f.Bytes, f.Handles, errFromStdin.Error()})
	}
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
			more:    env.run.Hide(reader.FollowAdvice(follow...)),
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
			Command: "spt verify " + shell.Quote(r.Path),
			more:    "if files were moved, say where with --map OLD=NEW",
		})
	}
	r.warnFiles(env)
	if n := len(r.WrongFiles); n > 0 {
		w := r.WrongFiles[0]
		r.Warnings = append(r.Warnings, InspectWarning{
			Code:    "wrong_files",
			Message: fmt.Sprintf("%s not of the recorded length, such as %s: %s", ui.Plural(int64(n), "file"), ui.Quote(w.Path), w.Why),
			Command: "spt verify " + shell.Quote(r.Path),
		})
	}
}

// render prints the answer: of one snapshot it is one value, of several a list.
func (o *inspectOptions) render(env *Env, all []inspected) error {
	if o.by != "" {
		return o.renderBy(env, all)
	}
	switch output := env.common.output; {
	case output == ui.OutputJSON && len(all) == 1:
		return ui.JSON(env.Stdout, all[0].InspectResult)
	case output == ui.OutputJSON:
		results := make([]*InspectResult, len(all))
		for i := range all {
			results[i] = all[i].InspectResult
		}
		return ui.JSON(env.Stdout, results)
	case output == ui.OutputJSONL:
		l := ui.NewJSONLines(env.Stdout)
		for i := range all {
			if err := l.Encode(all[i].InspectResult); err != nil {
				return err
			}
		}
		return l.Flush()
	case output == ui.OutputCSV:
		return o.csv(env, all)
	}
	for i := range all {
		if err := heading(env, all, i); err != nil {
			return err
		}
		if all[i].Problem != "" {
			continue
		}
		if err := o.table(env, all[i].InspectResult); err != nil {
			return err
		}
	}
	return nil
}

// heading names the snapshot that the following is about, if there are several.
func heading(env *Env, all []inspected, i int) error {
	if len(all) == 1 {
		return nil
	}
	text := ui.Bold(ui.Quote(all[i].Path) + ":")
	if i > 0 {
		text = "\n" + text
	}
	if p := all[i].Problem; p != "" {
		text += " " + ui.Bad("not inspected:") + " " + printableLines(p)
	}
	_, err := fmt.Fprintln(env.Stdout, text)
	return err
}

// csv has a column for the snapshot where there are several.
func (o *inspectOptions) csv(env *Env, all []inspected) error {
	header := []string{"operator", "id", "state", "kind", "handles", "subtasks", "parallelism", "max_parallelism", "elements", "key_groups", "bytes", "inline_bytes", "offset_bytes", "may_be_multiplied", "type", "compression"}
	if len(all) > 1 {
		header = append([]string{"path"}, header...)
	}
	c := ui.NewCSV(env.Stdout, header...)
	for _, r := range all {
		if err := r.csv(c, len(all) > 1); err != nil {
			return err
		}
		if len(r.Operators) == 0 && r.Problem == "" {
			if err := env.remark("no operator: nothing to show"); err != nil {
				return err
			}
		}
	}
	return c.Flush()
}

func (r *InspectResult) csv(c *ui.CSV, path bool) error {
	for _, op := range r.Operators {
		for _, st := range op.States {
			elements := ""
			if st.Elements != nil {
				elements = strconv.FormatInt(*st.Elements, 10)
			}
			row := []string{op.label, op.ID, st.Name, st.Kind, st.Handles, strconv.Itoa(st.Subtasks), strconv.Itoa(int(op.Parallelism)), strconv.Itoa(int(op.MaxParallelism)),
				elements, strconv.FormatInt(st.KeyGroups, 10), strconv.FormatInt(st.Bytes, 10), strconv.FormatInt(st.InlineBytes, 10), strconv.FormatInt(st.OffsetBytes, 10), strconv.FormatBool(st.MayBeMultiplied),
				st.Type, st.Compression}
			if path {
				row = append([]string{r.Path}, row...)
			}
			if err := c.Row(row...); err != nil {
				return err
			}
		}
	}
	return nil
}
