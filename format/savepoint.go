package format

import "slices"

// Savepoint is one savepoint or checkpoint: the root of the model.
type Savepoint struct {
	// Location is the URI or path of the snapshot's directory, which relative
	// streams are relative to. Flink's order of blocks after a rescale depends on
	// it.
	Location  string
	ID        int64 // checkpoint id, ≥ 0
	Kind      SnapshotKind
	Masters   []MasterState
	Operators []*Operator // in file order, which has no meaning to Flink
	Wire      Wire
}

// SnapshotKind is the kind of a snapshot as recorded in it. Flink records it from
// metadata version 4 on. In earlier versions and in native state, all fields are
// unknown.
type SnapshotKind struct {
	Type   SnapshotType
	Format SavepointFormat
}

// SnapshotType distinguishes savepoints and checkpoints.
type SnapshotType uint8

// The types.
const (
	TypeUnknown SnapshotType = iota
	TypeCheckpoint
	TypeFullCheckpoint // a checkpoint that does not refer to an earlier one
	TypeSavepoint
	TypeSuspendSavepoint
	TypeTerminateSavepoint
)

var snapshotTypes = [...]string{"unknown", "checkpoint", "full checkpoint", "savepoint", "suspend savepoint", "terminate savepoint"}

// String returns the name of the type.
func (t SnapshotType) String() string { return snapshotTypes[t] }

// IsSavepoint reports whether t is one of the three kinds of savepoint.
func (t SnapshotType) IsSavepoint() bool { return t >= TypeSavepoint }

// SavepointFormat is the format of a savepoint's keyed state.
type SavepointFormat uint8

// The formats.
const (
	FormatUnknown   SavepointFormat = iota
	FormatCanonical                 // the same for every state backend
	FormatNative                    // as the state backend writes checkpoints
)

var savepointFormats = [...]string{"", "canonical", "native"}

// String returns the name of the format, "" if unknown.
func (f SavepointFormat) String() string { return savepointFormats[f] }

// MasterState is the opaque state of a hook of the checkpoint coordinator.
type MasterState struct {
	Name    Text
	Version int32
	Data    Bytes
}

// Operator is the state of one operator.
type Operator struct {
	Name, UID                   Text // empty if not in the snapshot
	ID                          OperatorID
	Parallelism, MaxParallelism int32
	// Finished: all subtasks had finished, and Subtasks is empty.
	Finished    bool
	Coordinator Stream // nil: none
	// Subtasks has the entries of the snapshot, in file order. It need not have an
	// entry for each subtask.
	Subtasks []*Subtask
	Wire     Wire
}

// Label returns a name for users: the uid, else the name, else the first digits of
// the id. It comes from the file: quote it before printing.
func (op *Operator) Label() string {
	switch {
	case op.UID.String() != "":
		return op.UID.String()
	case op.Name.String() != "":
		return op.Name.String()
	}
	return op.ID.Short()
}

// HasKeyed reports whether the operator has keyed state, which its max parallelism
// divides into key groups.
func (op *Operator) HasKeyed() bool {
	return slices.ContainsFunc(op.Subtasks, func(s *Subtask) bool { return s.ManagedKeyed != nil || s.RawKeyed != nil })
}

// HasState reports whether the operator has anything that a job would miss: a
// handle with a stream, coordinator state, in-flight data, or a finished subtask.
func (op *Operator) HasState() bool {
	return op.Finished || op.Coordinator != nil || slices.ContainsFunc(op.Subtasks, func(s *Subtask) bool {
		return s.Finished || s.Raw != nil || s.ManagedKeyed != nil || s.RawKeyed != nil || len(s.Input)+len(s.Output)+len(s.Legacy) > 0 ||
			s.Managed != nil && (s.Managed.Merging == nil || !s.Managed.Merging.Placeholder)
	})
}

// HasInFlight reports whether the operator has in-flight data.
func (op *Operator) HasInFlight() bool {
	return slices.ContainsFunc(op.Subtasks, func(s *Subtask) bool { return len(s.Input)+len(s.Output) > 0 })
}

// Subtask is the state of one parallel instance of an operator.
type Subtask struct {
	Index int32
	// Finished: the subtask had finished, and has no state.
	Finished               bool
	Managed, Raw           *OperatorHandle // nil: none
	ManagedKeyed, RawKeyed KeyedHandle     // nil: none
	Input, Output          []*ChannelHandle
	// Legacy is legacy operator state, which Flink dropped after 1.3.
	Legacy []Stream
	Wire   Wire
}
