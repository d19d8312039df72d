package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform/diff"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type diffOptions struct {
	ignore    []string
	placement bool
	verbose   bool
	limit     int
	operators []string
}

func (o *diffOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringSliceVar(&o.ignore, "ignore", nil, "do not compare differences of this `KIND`, and read nothing for them; several with commas; repeatable")
	fs.BoolVar(&o.placement, "placement", false, "also compare which subtask holds an element or a key group")
	fs.BoolVarP(&o.verbose, "verbose", "v", false, "list the elements, entries and key groups that differ")
	fs.IntVar(&o.limit, "limit", 10, "with -v: list at most `N` added and N removed elements of each state")
	operatorFlag(fs, &o.operators, "compare only these operators")
}

func (o *diffOptions) validate() error {
	for _, k := range o.ignore {
		if !slices.Contains(diffKinds(), k) {
			return usagef("--ignore %s: one of %s", ui.Quote(k), strings.Join(diffKinds(), ", "))
		}
	}
	if o.limit < 1 || o.limit > maxListed {
		return usagef("--limit %d: 1 to %d elements", o.limit, maxListed)
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
		entry(&b, helpWidth, 2, 19, string(k.Kind), k.Help)
	}
	return strings.TrimRight(b.String(), "\n")
}

func newDiffCommand(env *Env) *cobra.Command {
	var o diffOptions
	cmd := &cobra.Command{
		Use:   "diff A B",
		Short: "Compare two snapshots: operators, states, sizes, elements",
		Long: `Compares two snapshots, the older first, whatever they are kept in: a Flink
snapshot and the .spt made from it are the same, and so are two snapshots that
differ in their checkpoint ids alone. Largest growth first.

Elements of operator state are compared as multisets: which subtask holds them
does not count without --placement. Broadcast state is compared by key where its
types are known, else by whole maps. Keyed state is compared by the bytes of its
key groups and by its files; its entries are not looked at, and a backend may
write the same entries in other bytes. A file that both name by the same
absolute reference, and that is one file, is not read; nor are chunks of two
.spt files that have the same checksums, nor files that both name alike and that
neither has, or that nobody could look for: each is said.

Operators under another id are suggested as renamed, with the command, where
exactly one fits: by their stored names, without the number that the SQL planner
appends; where none are stored, by their states, types and sizes. Where several
fit they are listed. An operator that kept its id under another stored name is
marked with "!", because Flink matches state to operators by id. check --like
suggests the same.

It reads all operator state, twice where a state has more than three million
elements, and what of keyed state is not named alike. Memory stays the same
whatever the size: what does not fit goes to temporary files (--tmp), 40 bytes
for each different element.

Kinds of differences, as --ignore takes them:
` + diffKindHelp(),
		Example: `  spt diff chk-4100 chk-4211
  spt diff sp-001 sp-002 -v --limit 3
  spt diff before after --ignore offsets,coordinator -o json
  spt diff sp-001 sp-012.spt && echo nothing was lost`,
		Args: exactly(2, "two snapshots"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
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
	stop := env.reading("comparing", allState(snaps[:]...))
	defer stop()
	opts := diff.Options{TempDir: env.common.tmp, Ignore: map[diff.Kind]bool{}, Placement: o.placement}
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
	opts.Entries = func(ctx context.Context, side int, h *format.OperatorHandle, state int) (func([]byte) ([]diff.MapEntry, error), error) {
		return mapEntries(ctx, snaps[side], h, state)
	}
	d, err := diff.Savepoints(ctx, inputs[0], inputs[1], opts)
	stop()
	if err != nil {
		return err
	}
	r := &differ{env: env, o: o, snaps: snaps, inputs: inputs, values: map[valuesOf]reader.Values{}}
	res, err := r.result(ctx, d, [2]string{a, b})
	if err != nil {
		return err
	}
	if err := r.render(res); err != nil {
		return err
	}
	if !res.Same {
		return &findings{}
	}
	return nil
}

// pickBoth leaves the operators that were picked, which need not be in both.
func (o *diffOptions) pickBoth(env *Env, inputs *[2]format.View) error {
	if len(o.operators) == 0 {
		return nil
	}
	var keep [2]map[*format.Operator]bool
	for _, want := range o.operators {
		p := pick{operators: []string{want}}
		found := false
		var first error
		for i := range inputs {
			ops, err := p.pickOperators(env, inputs[i].Operators)
			if err != nil && first == nil {
				first = err
			}
			if keep[i] == nil {
				keep[i] = map[*format.Operator]bool{}
			}
			for _, op := range ops {
				keep[i][op] = true
				found = true
			}
		}
		if !found {
			return first
		}
	}
	for i := range inputs {
		sp := *inputs[i].Savepoint
		sp.Operators = slices.DeleteFunc(slices.Clone(sp.Operators), func(op *format.Operator) bool { return !keep[i][op] })
		inputs[i].Savepoint = &sp
	}
	return nil
}

// mapEntries takes the map of a broadcast state apart, where its types are
// known. Its texts are JSON.
func mapEntries(ctx context.Context, snap *reader.Snapshot, h *format.OperatorHandle, state int) (func([]byte) ([]diff.MapEntry, error), error) {
	values, err := snap.Values(ctx, h, state)
	if err != nil || values.Entries == nil {
		return nil, err
	}
	return func(p []byte) ([]diff.MapEntry, error) {
		entries, err := values.Entries(p)
		if err != nil {
			return nil, err
		}
		all := make([]diff.MapEntry, len(entries))
		for i, e := range entries {
			all[i] = diff.MapEntry{Key: string(appendValue(nil, e.Key, ui.FormatAuto)), Value: string(appendValue(nil, e.Value, ui.FormatAuto))}
		}
		return all, nil
	}, nil
}

// DiffResult is the answer of diff. Names in JSON are a promise: we add, we do
// not rename.
type DiffResult struct {
	Old           DiffSnapshot    `json:"old"`
	New           DiffSnapshot    `json:"new"`
	Same          bool            `json:"same" jsonschema:"description=nothing that was compared differs, but for the checkpoint id"`
	Differ        []string        `json:"differ" jsonschema:"description=the kinds of differences"`
	Ignored       []string        `json:"ignored,omitempty"`
	Counts        DiffCounts      `json:"counts"`
	Operators     []DiffOperator  `json:"operators" jsonschema:"description=of both snapshots, by how much they grew"`
	Differences   []DiffLine      `json:"differences"`
	Absent        int64           `json:"files_missing_on_both,omitempty" jsonschema:"description=files that both name alike and neither has: nothing is known of what is in them"`
	NotChecked    int64           `json:"files_not_checked_on_both,omitempty" jsonschema:"description=files that both name alike and that nobody could look for, such as those in a store that is not supported here"`
	ByDigest      int64           `json:"bytes_by_checksum,omitempty" jsonschema:"description=of two .spt files: bytes that are the same by the checksums of their chunks, and were not read"`
	KeyedByBytes  bool            `json:"keyed_by_bytes,omitempty" jsonschema:"description=keyed state was compared, by the bytes of key groups and files and not by its entries"`
	Renames       []RenameRow     `json:"renames,omitempty" jsonschema:"description=operators that the older snapshot likely has, or may have, under another id"`
	NameChanges   []NameChangeRow `json:"name_changes,omitempty" jsonschema:"description=operators of one id whose stored name changed: the id may be that of another operator now"`
	RenameCommand string          `json:"rename_command,omitempty" jsonschema:"description=gives the older snapshot the new uids of all that are likely; absent where a uid is not known"`

	suggested renameRows
}

// DiffSnapshot is one of the two.
type DiffSnapshot struct {
	Path         string `json:"path"`
	Family       string `json:"family" jsonschema:"enum=flink,enum=spt"`
	Type         string `json:"type" jsonschema:"enum=savepoint,enum=checkpoint,enum=snapshot"`
	Format       string `json:"format,omitempty"`
	CheckpointID int64  `json:"checkpoint_id"`
	Operators    int    `json:"operator_count"`
	Bytes        int64  `json:"bytes" jsonschema:"description=of state"`
}

// DiffCounts is how many operators are what.
type DiffCounts struct {
	Same    int `json:"same"`
	Changed int `json:"changed"`
	Added   int `json:"added"`
	Removed int `json:"removed"`
	Renamed int `json:"renamed" jsonschema:"description=likely so: gone under one id and there under another"`
}

// DiffOperator is one operator of either snapshot.
type DiffOperator struct {
	UID               string      `json:"uid,omitempty"`
	Name              string      `json:"name,omitempty"`
	ID                string      `json:"id"`
	Change            string      `json:"change" jsonschema:"enum=same,enum=changed,enum=added,enum=removed,enum=renamed"`
	OldID             string      `json:"old_id,omitempty" jsonschema:"description=of what is likely renamed"`
	Reasons           []string    `json:"reasons,omitempty" jsonschema:"description=to think that it was renamed"`
	RenameCommand     string      `json:"rename_command,omitempty" jsonschema:"description=gives the old snapshot the new uid"`
	OldParallelism    int32       `json:"old_parallelism"`
	NewParallelism    int32       `json:"new_parallelism"`
	OldMaxParallelism int32       `json:"old_max_parallelism"`
	NewMaxParallelism int32       `json:"new_max_parallelism"`
	OldBytes          int64       `json:"old_bytes"`
	NewBytes          int64       `json:"new_bytes"`
	Difference        int64       `json:"difference_bytes"`
	States            []DiffState `json:"states"`

	label string
	texts []string // what differs, of the operator as a whole
}

// DiffState is one state of an operator in either snapshot.
type DiffState struct {
	Name         string        `json:"name,omitempty"`
	OldKind      string        `json:"old_kind,omitempty" jsonschema:"description=list, union, broadcast, raw, keyed, raw keyed, in flight, coordinator, legacy; absent where it is not there"`
	NewKind      string        `json:"new_kind,omitempty"`
	OldBytes     int64         `json:"old_bytes"`
	NewBytes     int64         `json:"new_bytes"`
	Difference   int64         `json:"difference_bytes"`
	OldElements  *int64        `json:"old_elements,omitempty"`
	NewElements  *int64        `json:"new_elements,omitempty"`
	OldDistinct  *int64        `json:"old_distinct,omitempty" jsonschema:"description=absent where it was not necessary to count them"`
	NewDistinct  *int64        `json:"new_distinct,omitempty"`
	Added        *int64        `json:"added,omitempty" jsonschema:"description=elements; of broadcast state whole maps"`
	Removed      *int64        `json:"removed,omitempty"`
	Moved        *int64        `json:"moved,omitempty" jsonschema:"description=with --placement: elements that are in other subtasks"`
	MultipliedBy int64         `json:"multiplied_by,omitempty" jsonschema:"description=every element comes so many times as often, and none is new"`
	DividedBy    int64         `json:"divided_by,omitempty"`
	KeysAdded    *int64        `json:"keys_added,omitempty" jsonschema:"description=of broadcast state that was compared by key"`
	KeysRemoved  *int64        `json:"keys_removed,omitempty"`
	KeysChanged  *int64        `json:"keys_changed,omitempty"`
	MapsAdded    *int64        `json:"maps_added,omitempty" jsonschema:"description=of broadcast state: maps, by their entries, that a copy holds in the new snapshot only"`
	MapsRemoved  *int64        `json:"maps_removed,omitempty"`
	Keyed        *DiffKeyed    `json:"keyed,omitempty"`
	Elements     []DiffElement `json:"elements,omitempty" jsonschema:"description=with -v: the first that differ"`

	texts []string
}

// DiffKeyed is keyed state, compared by bytes.
type DiffKeyed struct {
	Incomparable  string  `json:"incomparable,omitempty" jsonschema:"description=why it was not compared"`
	GroupsSame    int64   `json:"groups_same"`
	GroupsChanged int64   `json:"groups_changed"`
	GroupsAdded   int64   `json:"groups_added"`
	GroupsRemoved int64   `json:"groups_removed"`
	FilesSame     int64   `json:"files_same"`
	ByReference   int64   `json:"files_same_by_reference" jsonschema:"description=of files_same: named by the same absolute reference that leads both to one file, or of equal checksums in two .spt files, and not read"`
	FilesAdded    int64   `json:"files_added"`
	FilesRemoved  int64   `json:"files_removed"`
	BytesAdded    int64   `json:"bytes_added" jsonschema:"description=in files added"`
	BytesRemoved  int64   `json:"bytes_removed"`
	Groups        []int32 `json:"groups,omitempty" jsonschema:"description=with -v: the key groups that differ"`
}

// DiffElement is an element, or an entry of a broadcast state, that differs.
type DiffElement struct {
	Change   string   `json:"change" jsonschema:"enum=added,enum=removed,enum=changed"`
	OldCount int64    `json:"old_count" jsonschema:"description=how often it comes; of an entry: how many values its key has"`
	NewCount int64    `json:"new_count"`
	Subtask  *int32   `json:"subtask,omitempty" jsonschema:"description=where it comes first, in the new snapshot if it is added, else in the old"`
	Index    *int64   `json:"index,omitempty"`
	Value    any      `json:"value,omitempty" jsonschema:"description=what it says, as cat has it, where its type is decoded"`
	Base64   string   `json:"value_base64,omitempty" jsonschema:"description=the element as stored"`
	Hex      string   `json:"value_hex,omitempty"`
	Text     string   `json:"value_text,omitempty"`
	Redacted string   `json:"value_redacted,omitempty"`
	Key      any      `json:"key,omitempty" jsonschema:"description=of an entry"`
	Old      []string `json:"old_values,omitempty" jsonschema:"description=of an entry, each as JSON; with --format redacted length and hash of that"`
	New      []string `json:"new_values,omitempty"`

	shown string // for people
}

// DiffLine is one difference: a line of -o jsonl. There, with -v, each element
// that differs is a line of its own.
type DiffLine struct {
	Kind     string       `json:"kind"`
	Operator string       `json:"operator,omitempty" jsonschema:"description=uid, else name, else the first digits of the id; absent for the snapshot as a whole"`
	ID       string       `json:"id,omitempty"`
	State    string       `json:"state,omitempty"`
	Text     string       `json:"text,omitempty" jsonschema:"description=the difference in words"`
	Element  *DiffElement `json:"element,omitempty"`
}

// differ makes an answer of a diff.
type differ struct {
	env    *Env
	o      diffOptions
	snaps  [2]*reader.Snapshot
	inputs [2]format.View
	values map[valuesOf]reader.Values
	texts  map[any][]string // what differs, by operator and state
}

type valuesOf struct {
	h     *format.OperatorHandle
	state int
}

func (r *differ) result(ctx context.Context, d *diff.Result, paths [2]string) (*DiffResult, error) {
	res := &DiffResult{Same: d.Same(), Differ: []string{}, Ignored: r.o.ignore, Operators: []DiffOperator{}, Differences: []DiffLine{}, KeyedByBytes: d.KeyedCompared, ByDigest: d.ByDigest, Absent: d.Absent, NotChecked: d.NotChecked}
	res.Old, res.New = r.snapshot(0, d, paths[0]), r.snapshot(1, d, paths[1])
	r.texts = map[any][]string{}
	changed := map[*diff.Operator]bool{}
	for _, x := range d.Differences {
		if x.Operator != nil {
			changed[x.Operator] = true
		}
		switch {
		case x.State != nil:
			r.texts[x.State] = append(r.texts[x.State], grouped(r.text(x)))
		case x.Operator != nil:
			r.texts[x.Operator] = append(r.texts[x.Operator], r.text(x))
		}
		line := DiffLine{Kind: string(x.Kind), Text: r.text(x)}
		if x.Operator != nil {
			op := x.Operator.Operator()
			line.Operator, line.ID = r.env.run.Label(op), op.ID.String()
		}
		if x.State != nil {
			line.State = r.env.run.Text(x.State.State().Name)
		}
		res.Differences = append(res.Differences, line)
	}
	for _, k := range diffKinds() {
		if slices.ContainsFunc(res.Differences, func(l DiffLine) bool { return l.Kind == k }) {
			res.Differ = append(res.Differ, k)
		}
	}
	res.suggested = r.env.renames(d.Renames, paths[0])
	res.Renames, res.NameChanges, res.RenameCommand = res.suggested.renames, res.suggested.names, res.suggested.command
	for _, o := range d.Operators {
		op, err := r.operator(ctx, o, &res.suggested)
		if err != nil {
			return nil, err
		}
		switch {
		case o.Old == nil:
			op.Change = "added"
			res.Counts.Added++
		case o.New == nil:
			op.Change = "removed"
			res.Counts.Removed++
		case o.Renamed != nil:
			op.Change = "renamed"
			res.Counts.Renamed++
		case changed[o]:
			op.Change = "changed"
			res.Counts.Changed++
		default:
			op.Change = "same"
			res.Counts.Same++
		}
		res.Operators = append(res.Operators, op)
	}
	return res, nil
}

func (r *differ) snapshot(side int, d *diff.Result, path string) DiffSnapshot {
	s, snap := d.Old, r.snaps[side]
	if side == 1 {
		s = d.New
	}
	return DiffSnapshot{
		Path: path, Family: string(snap.Container.Family), Type: s.Kind.Type, Format: s.Kind.Format, CheckpointID: snap.ID,
		Operators: len(s.Operators), Bytes: s.Bytes.State(),
	}
}

// text is a difference in words, with the names that --names and --format give.
func (r *differ) text(x diff.Difference) string {
	switch {
	case x.Kind == diff.KindNames:
		old, now := x.Operator.Old, x.Operator.New
		var parts []string
		for _, n := range [][3]string{{"uid", old.UID.String(), now.UID.String()}, {"name", old.Name.String(), now.Name.String()}} {
			if n[1] != "" && n[2] != "" && n[1] != n[2] {
				parts = append(parts, fmt.Sprintf("%s %s → %s", n[0], ui.Quote(r.env.run.Text(n[1])), ui.Quote(r.env.run.Text(n[2]))))
			}
		}
		return strings.Join(parts, ", ")
	case x.Kind == diff.KindOperators && x.Operator.Renamed != nil:
		return fmt.Sprintf("likely renamed from %s: %s", ui.Quote(r.env.run.Label(x.Operator.Old.Operator)), strings.Join(r.env.reasons(x.Operator.Renamed), ", "))
	}
	return x.Text
}

func (r *differ) operator(ctx context.Context, o *diff.Operator, rows *renameRows) (DiffOperator, error) {
	op := o.Operator()
	old, now := o.Bytes()
	res := DiffOperator{
		UID: r.env.run.UID(op), Name: r.env.run.Text(op.Name.String()), ID: op.ID.String(), label: r.env.run.Label(op),
		OldBytes: old, NewBytes: now, Difference: now - old, States: []DiffState{}, texts: r.texts[o],
	}
	if o.Old != nil {
		res.OldParallelism, res.OldMaxParallelism = o.Old.Parallelism, o.Old.MaxParallelism
	}
	if o.New != nil {
		res.NewParallelism, res.NewMaxParallelism = o.New.Parallelism, o.New.MaxParallelism
	}
	if o.Renamed != nil {
		res.OldID, res.Reasons, res.RenameCommand = o.Old.ID.String(), r.env.reasons(o.Renamed), rows.command
		for i := range rows.renames {
			rows.renames[i].told = rows.renames[i].told || rows.renames[i].ID == res.ID
		}
	}
	for _, st := range o.States {
		s, err := r.state(ctx, st)
		if err != nil {
			return res, err
		}
		res.States = append(res.States, s)
	}
	return res, nil
}

func (r *differ) state(ctx context.Context, st *diff.State) (DiffState, error) {
	old, now := st.Bytes()
	s := DiffState{Name: r.env.run.Text(st.State().Name), OldBytes: old, NewBytes: now, Difference: now - old, texts: r.texts[st]}
	count := func(n int64) *int64 {
		if n < 0 {
			return nil
		}
		return &n
	}
	if st.Old != nil {
		s.OldKind, s.OldElements = string(st.Old.Kind), count(st.Old.Elements)
	}
	if st.New != nil {
		s.NewKind, s.NewElements = string(st.New.Kind), count(st.New.Elements)
	}
	if k := st.Keyed; k != nil {
		s.Keyed = &DiffKeyed{
			Incomparable: k.Incomparable, GroupsSame: k.SameGroups, GroupsChanged: k.ChangedGroups, GroupsAdded: k.AddedGroups, GroupsRemoved: k.RemovedGroups,
			FilesSame: k.SameFiles, ByReference: k.ByReference, FilesAdded: k.AddedFiles, FilesRemoved: k.RemovedFiles, BytesAdded: k.AddedBytes, BytesRemoved: k.RemovedBytes,
		}
		if r.o.verbose {
			s.Keyed.Groups = k.Groups
		}
	}
	e := st.Elements
	if e == nil {
		return s, nil
	}
	s.OldDistinct, s.NewDistinct = count(e.OldDistinct), count(e.NewDistinct)
	s.Added, s.Removed, s.Moved = count(e.Added), count(e.Removed), count(e.Moved)
	if e.Factor > 1 {
		s.MultipliedBy = e.Factor
	}
	if e.Divided > 1 {
		s.DividedBy = e.Divided
	}
	if k := e.Entries; k != nil {
		s.KeysAdded, s.KeysRemoved, s.KeysChanged = &k.Added, &k.Removed, &k.Changed
		s.MapsAdded, s.MapsRemoved = &k.AddedMaps, &k.RemovedMaps
		for _, c := range k.Changes {
			s.Elements = append(s.Elements, r.entry(c))
		}
		return s, nil
	}
	for side, list := range [][]diff.ElementChange{e.RemovedList, e.AddedList} {
		for _, c := range list {
			item, err := r.element(ctx, side, c)
			if err != nil {
				return s, format.InFile(err, r.snaps[side].Container.Name)
			}
			s.Elements = append(s.Elements, item)
		}
	}
	return s, nil
}

// element reads an element and shows it as cat does.
func (r *differ) element(ctx context.Context, side int, c diff.ElementChange) (DiffElement, error) {
	e := DiffElement{Change: "removed", OldCount: c.Old, NewCount: c.New, Subtask: &c.Subtask, Index: &c.Index}
	if side == 1 {
		e.Change = "added"
	}
	p, err := c.Value(ctx, r.inputs[side])
	if err != nil {
		return e, err
	}
	cat := &catter{env: r.env, snap: r.snaps[side]}
	it := &catItem{stored: p}
	if cat.shown() {
		at := valuesOf{c.Handle, c.State}
		values, known := r.values[at]
		if !known {
			if values, err = r.snaps[side].Values(ctx, c.Handle, c.State); err != nil {
				return e, err
			}
			r.values[at] = values
		}
		if values.Decode != nil {
			if v, err := values.Decode(p); err == nil { // else it is shown as stored
				it.decoded, it.value = true, v
			}
		}
	}
	_, e.shown = cat.cells(it)
	switch enc := cat.encoding(it); enc {
	case "json":
		e.Value = json.RawMessage(appendValue(nil, it.value, r.env.run.Format))
	case "hex":
		e.Hex, e.shown = e.shown, enc+" "+e.shown
	case "text":
		e.Text, e.shown = e.shown, enc+" "+e.shown
	case "redacted":
		e.Redacted = e.shown
	default:
		e.Base64, e.shown = e.shown, enc+" "+e.shown
	}
	return e, nil
}

// entry shows an entry of a broadcast state.
func (r *differ) entry(c diff.EntryChange) DiffElement {
	hide := func(s string) string {
		if r.env.run.Format == ui.FormatRedacted {
			return ui.Value([]byte(s), ui.FormatRedacted, 0)
		}
		return s
	}
	e := DiffElement{Change: "changed", OldCount: int64(len(c.Old)), NewCount: int64(len(c.New)), Key: json.RawMessage(c.Key)}
	if r.env.run.Format == ui.FormatRedacted {
		e.Key = hide(c.Key)
	}
	for _, v := range c.Old {
		e.Old = append(e.Old, hide(v))
	}
	for _, v := range c.New {
		e.New = append(e.New, hide(v))
	}
	e.shown = hide(c.Key) + ": "
	switch {
	case len(c.Old) == 0:
		e.Change = "added"
		e.shown += strings.Join(e.New, " or ")
	case len(c.New) == 0:
		e.Change = "removed"
		e.shown += strings.Join(e.Old, " or ")
	default:
		e.shown += strings.Join(e.Old, " or ") + " → " + strings.Join(e.New, " or ")
	}
	return e
}

func (r *differ) render(res *DiffResult) error {
	switch r.env.common.output {
	case ui.OutputJSON:
		return ui.JSON(r.env.Stdout, res)
	case ui.OutputJSONL:
		return r.lines(res)
	}
	return r.table(res)
}

// lines prints differences, and the elements, one a line.
func (r *differ) lines(res *DiffResult) error {
	l := ui.NewJSONLines(r.env.Stdout)
	for i := range res.Differences {
		if err := l.Encode(&res.Differences[i]); err != nil {
			return err
		}
	}
	for i := range res.Operators {
		op := &res.Operators[i]
		for k := range op.States {
			st := &op.States[k]
			for n := range st.Elements {
				line := DiffLine{Kind: "element", Operator: op.label, ID: op.ID, State: st.Name, Element: &st.Elements[n]}
				if err := l.Encode(&line); err != nil {
					return err
				}
			}
		}
	}
	return l.Flush()
}
