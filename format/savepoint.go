package format

import "slices"

// Savepoint is one savepoint or checkpoint: the root of the model.
type Savepoint struct {
	// Location is where it stands, or will stand: the folder that relative
	// streams are beside. Flink's order of blocks after a rescale hashes it.
	Location  string
	ID        int64 // checkpoint id, ≥ 0
	Kind      SnapshotKind
	Masters   []MasterState
	Operators []*Operator // in file order, which has no meaning for an engine
	Wire      Wire
}

// SnapshotKind is what a snapshot says of itself. Flink says it from metadata
// version 4 on; before that, and for states of our own, the fields are unknown.
type SnapshotKind struct {
	Type   SnapshotType
	Format SavepointFormat
}

// SnapshotType tells savepoint from checkpoint.
type SnapshotType uint8

// The types.
const (
	TypeUnknown SnapshotType = iota
	TypeCheckpoint
	TypeFullCheckpoint // one that refers to no earlier checkpoint
	TypeSavepoint
	TypeSuspendSavepoint
	TypeTerminateSavepoint
)

var snapshotTypes = [...]string{"unknown", "checkpoint", "full checkpoint", "savepoint", "suspend savepoint", "terminate savepoint"}

// String is the type's name.
func (t SnapshotType) String() string { return snapshotTypes[t] }

// IsSavepoint is true for the three kinds of savepoint.
func (t SnapshotType) IsSavepoint() bool { return t >= TypeSavepoint }

// SavepointFormat is how a savepoint holds keyed state.
type SavepointFormat uint8

// The formats.
const (
	FormatUnknown   SavepointFormat = iota
	FormatCanonical                 // the same for every state backend
	FormatNative                    // as the state backend writes checkpoints
)

var savepointFormats = [...]string{"", "canonical", "native"}

// String is the format's name, "" if unknown.
func (f SavepointFormat) String() string { return savepointFormats[f] }

// MasterState is the state of a hook of the checkpoint coordinator: opaque.
type MasterState struct {
	Name    Text
	Version int32
	Data    Bytes
}

// Operator is the state of one operator.
type Operator struct {
	Name, UID                   Text // empty where the snapshot stores none
	ID                          OperatorID
	Parallelism, MaxParallelism int32
	// Finished: every subtask had finished and there are no entries.
	Finished    bool
	Coordinator Stream // nil: none
	// Subtasks holds the entries of the snapshot, in file order. Subtasks may
	// be missing from it.
	Subtasks []*Subtask
	Wire     Wire
}

// Label is the best name for people: uid, else name, else the first digits of
// the id. It is foreign text.
func (op *Operator) Label() string {
	switch {
	case op.UID.String() != "":
		return op.UID.String()
	case op.Name.String() != "":
		return op.Name.String()
	}
	return op.ID.Short()
}

// HasKeyed reports whether the operator holds keyed state, which its max parallelism
// divides into key groups.
func (op *Operator) HasKeyed() bool {
	return slices.ContainsFunc(op.Subtasks, func(s *Subtask) bool { return s.ManagedKeyed != nil || s.RawKeyed != nil })
}

// HasState reports whether the operator holds something that a job would miss: a
// handle with a stream, a coordinator, in-flight data. That an operator or subtask
// has finished is state, too.
func (op *Operator) HasState() bool {
	return op.Finished || op.Coordinator != nil || slices.ContainsFunc(op.Subtasks, func(s *Subtask) bool {
		return s.Finished || s.Raw != nil || s.ManagedKeyed != nil || s.RawKeyed != nil || len(s.Input)+len(s.Output)+len(s.Legacy) > 0 ||
			s.Managed != nil && (s.Managed.Merging == nil || !s.Managed.Merging.Placeholder)
	})
}

// HasInFlight reports whether the operator holds in-flight data.
func (op *Operator) HasInFlight() bool {
	return slices.ContainsFunc(op.Subtasks, func(s *Subtask) bool { return len(s.Input)+len(s.Output) > 0 })
}

// Subtask is the state of one parallel instance of an operator.
type Subtask struct {
	Index int32
	// Finished: it had finished, and has no state.
	Finished               bool
	Managed, Raw           *OperatorHandle // nil: none
	ManagedKeyed, RawKeyed KeyedHandle     // nil: none; a snapshot has one slot each
	Input, Output          []*ChannelHandle
	// Legacy is state handles of the interface that Flink dropped after 1.3.
	Legacy []Stream
	Wire   Wire
}
