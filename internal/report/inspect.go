package report

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// Inspect is what inspect shows of one snapshot.
type Inspect struct {
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
	MovedFiles    int               `json:"moved_files,omitempty" jsonschema:"description=files found under the directory of the snapshot or its job instead of where the reference points"`
	MasterStates  []string          `json:"master_states,omitempty"`
	Operators     []InspectOperator `json:"operators"`
	Warnings      []InspectWarning  `json:"warnings,omitempty"`
	FailIf        *InspectGuard     `json:"fail_if,omitempty"`
	Counted       *InspectCounted   `json:"counted,omitempty" jsonschema:"description=with --count"`

	run           *Run
	savepoint     *format.Savepoint // as far as it is shown
	files         []reader.FileState
	usedBySeveral int64
	groups        KeyGroupsOf // with AddKeyGroups
	top           int
	wide          bool
}

// InspectBytes is where bytes are stored.
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

// InspectMissing is a file that cannot be read, or is not as expected.
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
	HeadersSkipped   int            `json:"headers_skipped,omitempty" jsonschema:"description=of streams in files, of which up to 16 are read: of a snapshot that is not on this machine only with --check-files or --deep"`
	HeadersUnread    []string       `json:"headers_unread,omitempty" jsonschema:"description=why headers could not be read, as far as that is not because their files are missing"`
	Bytes            InspectBytes   `json:"bytes"`
	Skew             *InspectSkew   `json:"skew,omitempty" jsonschema:"description=with --count: how the bytes of its entries are distributed"`
	Uncounted        []string       `json:"uncounted,omitempty" jsonschema:"description=with --count: why entries of it could not be counted"`
	States           []InspectState `json:"states"`

	label  string
	unread int // headers
}

// Label returns the best name of the operator.
func (op *InspectOperator) Label() string { return op.label }

// InspectState is one state of an operator in all its subtasks.
type InspectState struct {
	Name            string `json:"name,omitempty"`
	Kind            string `json:"kind" jsonschema:"enum=list,enum=union,enum=broadcast,enum=raw,enum=keyed,enum=raw keyed,enum=in-flight data,enum=coordinator,enum=legacy,enum=serializers"`
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
	// UnionRestoreBytes is what a restore at the operator's parallelism assigns.
	UnionRestoreBytes int64 `json:"union_restore_bytes,omitempty" jsonschema:"description=union state: bytes that a restore hands to all subtasks together, at the parallelism of the operator"`
	// Of union state, with --deep.
	Distinct  *int64 `json:"distinct,omitempty" jsonschema:"description=with --deep, of union state: different elements"`
	MinCopies int64  `json:"min_copies,omitempty" jsonschema:"description=with --deep: how often the rarest element occurs"`
	MaxCopies int64  `json:"max_copies,omitempty" jsonschema:"description=and the most frequent"`
	Verdict   string `json:"verdict,omitempty" jsonschema:"enum=duplicated by restores,enum=not sure,enum=nothing repeats,description=with --deep: as by prune-union"`
	// States is the states in keyed state, whose bytes are not known one by one.
	States []InspectKeyed `json:"keyed_states,omitempty" jsonschema:"description=the states that the headers of keyed state name; their bytes are not told apart"`
}

// InspectKeyed is one state among keyed state.
type InspectKeyed struct {
	Name      string          `json:"name"`
	Kind      string          `json:"kind" jsonschema:"enum=value,enum=list,enum=map,enum=reducing,enum=aggregating,enum=folding,enum=timers,enum=unknown"`
	Type      string          `json:"type,omitempty" jsonschema:"description=of its values, of timers of their keys"`
	Namespace string          `json:"namespace,omitempty" jsonschema:"description=type of its namespaces, such as windows"`
	Count     *InspectEntries `json:"counted,omitempty" jsonschema:"description=with --count"`
}

// InspectWarning is something to look at, and the command that helps.
type InspectWarning struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	Command string `json:"command,omitempty"`

	more string // detail for people
}

// More returns what the message does not say: what follows, or what to do. It may be "".
func (w *InspectWarning) More() string { return w.more }

// InspectGuard is the outcome of --fail-if.
type InspectGuard struct {
	Expression string   `json:"expression"`
	Holds      bool     `json:"holds"`
	For        []string `json:"for,omitempty"`
}

// Inspected is what inspect learned of one snapshot.
type Inspected struct {
	Location  string // as it was named
	Snapshot  *reader.Snapshot
	Savepoint *format.Savepoint // what is shown of it
	Summary   *summary.Summary  // of what is shown
	Headers   map[*format.Operator]*reader.Headers
	Unions    map[*summary.State]UnionRead // with --deep
	Count     *Counted                     // with --count
	Files     []reader.FileState
	Unchecked error // why no file was checked, if none was; Files is empty then
	Damage    error // with --salvage
	Picked    bool

	Top  int  // operators that a person is shown; 0: all
	Wide bool // with full ids
}

// NewInspect reports what inspect learned of one snapshot.
func (r *Run) NewInspect(in Inspected) *Inspect {
	snap, sum := in.Snapshot, in.Summary
	x := &Inspect{
		Path: in.Location, Family: string(snap.Container.Family),
		Type: sum.Kind.Type, Format: sum.Kind.Format, Stopped: sum.Kind.Stopped, Changelog: sum.Kind.Changelog, Unaligned: sum.Kind.Unaligned,
		CheckpointID: snap.ID, Container: snap.Container.Describe(), Metadata: int(snap.Container.Metadata), Size: snap.Container.Size,
		Picked: in.Picked, OperatorCount: len(sum.Operators), SubtaskCount: sum.Subtasks, Bytes: inspectBytes(sum.Bytes), Operators: []InspectOperator{},
		run: r, savepoint: in.Savepoint, usedBySeveral: sum.UsedBySeveral, top: in.Top, wide: in.Wide,
	}
	if x.Family == string(reader.SPT) {
		x.Bytes.Stored = snap.Container.SPT.StoredBytes
	}
	if in.Damage != nil {
		x.Damage = in.Damage.Error()
	}
	for _, m := range snap.Masters {
		x.MasterStates = append(x.MasterStates, r.Text(m.Name.String()))
	}
	for _, op := range sum.Operators {
		o := r.inspectOperator(op, in.Headers[op.Operator])
		x.Operators = append(x.Operators, o)
		x.Bytes.Serializers += o.Bytes.Serializers
	}
	var away *reader.OutsideError
	if errors.As(snap.Outside(), &away) {
		x.Warnings = append(x.Warnings, InspectWarning{
			Code:    "outside_description",
			Message: r.Hide(fmt.Sprintf("_metadata is a link that leads to %s, outside the snapshot: commands that read state refuse it", ui.Quote(away.Leads))),
			more:    r.Advice(away.Remedies()),
		})
	}
	x.addFiles(in.Files)
	x.addUnions(sum, in.Unions)
	x.addCount(in.Count)
	if in.Unchecked != nil {
		x.addUnchecked(sum.Files, in.Unchecked)
	}
	return x
}

// NewUninspected reports why a snapshot could not be inspected at all.
func (r *Run) NewUninspected(location string, err error) *Inspect {
	return &Inspect{Path: location, Operators: []InspectOperator{}, Problem: r.Hide(err.Error()), run: r, savepoint: &format.Savepoint{}}
}

func inspectBytes(b summary.Bytes) InspectBytes {
	return InspectBytes{Total: b.State(), Inline: b.Inline, OwnFiles: b.Own, SharedFiles: b.Shared, Packed: b.Packed, Offsets: b.Offsets}
}

func (r *Run) inspectOperator(op *summary.Operator, h *reader.Headers) InspectOperator {
	o := InspectOperator{
		UID: r.UID(op.Operator), Name: r.Text(op.Name.String()), ID: op.ID.String(), label: r.Label(op.Operator),
		Parallelism: op.Parallelism, MaxParallelism: op.MaxParallelism,
		FinishedSubtasks: op.Finished, MissingSubtasks: op.Missing, CoordinatorBytes: op.Coordinator,
		Bytes: inspectBytes(op.Bytes), States: []InspectState{},
	}
	framing := op.Framing
	for _, st := range op.States {
		framing.Add(st.Framing)
		s := InspectState{
			Name: r.Text(st.Name), Kind: string(st.Kind), Handles: st.Handles, Subtasks: st.Subtasks, KeyGroups: st.KeyGroups,
			Bytes: st.Stored.State() - st.Framing.State(), InlineBytes: st.Stored.Inline - st.Framing.Inline, OffsetBytes: st.Stored.Offsets, MayBeMultiplied: st.MayBeMultiplied,
		}
		if st.Elements >= 0 && st.Name != "" {
			s.Elements = new(st.Elements)
		}
		s.addHeaders(r, st, h)
		o.States = append(o.States, s)
	}
	slices.SortStableFunc(o.States, func(a, b InspectState) int { return cmp.Compare(b.Bytes, a.Bytes) })
	if n := framing.State(); n > 0 { // what belongs to no state
		o.Bytes.Serializers = n
		o.States = append(o.States, InspectState{Kind: "serializers", Bytes: n, InlineBytes: framing.Inline})
	}
	o.addHeaders(r, h)
	return o
}

// Snappy is the name of the compression of Flink's state.
const Snappy = "snappy"

// addHeaders adds what headers say of all state of the operator.
func (op *InspectOperator) addHeaders(r *Run, h *reader.Headers) {
	if h == nil {
		return
	}
	op.HeadersRead, op.HeadersSkipped, op.unread = h.Read, h.Skipped, len(h.Unread)
	if h.Key != nil {
		op.KeyType = h.Key.Text(r.Text)
	}
	if h.Compressed > 0 {
		op.Compression = Snappy
	}
	for _, err := range h.Unread {
		if !format.NoFile(err) {
			op.HeadersUnread = append(op.HeadersUnread, r.Hide(err.Error()))
		}
	}
}

// addHeaders adds what headers say of one state.
func (s *InspectState) addHeaders(r *Run, st *summary.State, h *reader.Headers) {
	if h == nil {
		return
	}
	for i := range h.States {
		header := &h.States[i]
		first := &header.Schemas[0]
		switch {
		case header.Keyed() && (st.Kind == summary.Keyed && !header.Raw || st.Kind == summary.RawKeyed && header.Raw):
			s.States = append(s.States, InspectKeyed{
				Name: r.Text(header.Name()), Kind: first.Keyed, Type: r.typeText(header), Namespace: first.NamespaceText(r.Text),
			})
		case !header.Keyed() && header.Name() == st.Name && first.Mode.String() == string(st.Kind):
			s.Type = r.typeText(header)
		default:
			continue
		}
		if header.Compressed > 0 {
			s.Compression = Snappy
		}
	}
}

// schemaText returns the type of a state, or what a connector stores in it.
func (r *Run) schemaText(s *types.StateSchema) string {
	if v := s.Parts().Value; s.Keyed == "" && s.Mode != format.ModeBroadcast && v != nil {
		if what := connector.What(s.Name.String(), v.Raw); what != "" {
			return what
		}
	}
	return s.TypeText(r.Text)
}

// typeText returns the type of a state, or its types where subtasks differ.
func (r *Run) typeText(h *reader.StateHeader) string {
	var all []string
	for i := range h.Schemas {
		if text := r.schemaText(&h.Schemas[i]); text != "" && !slices.Contains(all, text) {
			all = append(all, text)
		}
	}
	return strings.Join(all, " or ")
}
