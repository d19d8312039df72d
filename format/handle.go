package format

import (
	"context"
	"fmt"
)

// Mode is how the engine deals out an operator state when it restores.
type Mode uint8

// The modes, as Flink numbers them (spec flink-metadata 5.2). Wire format:
// never change.
const (
	ModeList      Mode = 0 // split: each element to one subtask
	ModeUnion     Mode = 1 // each subtask gets every element
	ModeBroadcast Mode = 2 // each subtask gets one subtask's copy
)

// String is the name people use: list, union or broadcast.
func (m Mode) String() string {
	switch m {
	case ModeList:
		return "list"
	case ModeUnion:
		return "union"
	case ModeBroadcast:
		return "broadcast"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// OperatorHandle is the managed or raw operator state of one subtask: one
// stream, and where in it each state's elements start.
type OperatorHandle struct {
	Codec   CodecID
	States  []NamedState // in file order
	Data    Stream       // nil only where the snapshot says so
	Merging *FileMerging // nil: written without file merging
	Wire    Wire
}

// NamedState is one list, union or broadcast state in a handle. Offsets has an
// entry per element; a broadcast state has one, where its map starts.
type NamedState struct {
	Name    Text
	Mode    Mode
	Offsets Offsets
}

// FileMerging is what a handle of Flink's file merging adds: the directories
// that it keeps alive, and whether it is only a placeholder.
type FileMerging struct {
	TaskOwnedDir, SharedDir Text
	Placeholder             bool
}

// KeyedHandle is keyed state. The set is closed: [*KeyGroups],
// [*Incremental], [*Changelog], [*ChangelogMemory], [*ChangelogStream].
type KeyedHandle interface {
	// KeyGroups is the range of key groups that the handle covers.
	KeyGroups() KeyGroupRange
	keyed()
}

// KeyGroups is a stream of key groups one after another: a full snapshot, or,
// where Savepoint is set, one in the canonical savepoint format.
type KeyGroups struct {
	Codec     CodecID
	Range     KeyGroupRange
	Offsets   Offsets // one per key group, see HasData
	Data      Stream
	Savepoint bool
	HandleID  Text
	Wire      Wire
}

// HasData reports whether the offset of a key group is a position in the stream.
// Flink writes 0 for a key group without data, because a header precedes them
// all, and -1 in raw keyed state, which has no header. In native state every
// offset is a position: a key group without entries has the offset of the next
// one (spec flink-keyed-state 3.1, 10.1; docs/format.md, Keyed state).
func (h *KeyGroups) HasData(offset int64) bool {
	switch h.Codec {
	case CodecNative:
		return true
	case CodecRaw:
		return offset != -1
	}
	return offset != 0
}

// EachKeyGroup calls f with each key group that has data and the offset where it
// starts, in the order of the groups.
func (h *KeyGroups) EachKeyGroup(ctx context.Context, f func(group int32, at int64) error) error {
	if h.Offsets == nil {
		return nil
	}
	if n := h.Offsets.Len(); n != int64(h.Range.Count) {
		return Errorf(ErrCorrupt, "%d offsets for %d key groups", n, h.Range.Count)
	}
	return EachOffset(ctx, h.Offsets, func(first int64, run []int64) error {
		for i, at := range run {
			if !h.HasData(at) {
				continue
			}
			if err := f(h.Range.First+int32(first)+int32(i), at); err != nil {
				return err
			}
		}
		return nil
	})
}

// Incremental is an incremental RocksDB snapshot: the backend's own files.
type Incremental struct {
	CheckpointID     int64
	BackendID        Text
	Range            KeyGroupRange
	CheckpointedSize int64 // newly uploaded by this checkpoint; -1: not known
	Meta             Stream
	Shared, Private  []NamedStream
	HandleID         Text
	Wire             Wire
}

// NamedStream is a file of a state backend under its local name (000012.sst).
type NamedStream struct {
	Name Text
	Data Stream
}

// Changelog is a materialised snapshot and the changes since.
type Changelog struct {
	Range             KeyGroupRange
	CheckpointedSize  int64
	Materialized      []KeyedHandle // a nil entry is one the snapshot left empty
	Changes           []KeyedHandle
	MaterializationID int64
	CheckpointID      int64
	HandleID          Text
	Wire              Wire
}

// ChangelogMemory is changes that stand in the container itself.
type ChangelogMemory struct {
	Range    KeyGroupRange
	From, To int64
	Changes  []Change
	HandleID Text
	Wire     Wire
}

// Change is one change; key group -1 marks one of the metadata.
type Change struct {
	KeyGroup int32
	Data     Bytes
}

// ChangelogStream is changes in streams.
type ChangelogStream struct {
	Range            KeyGroupRange
	Streams          []OffsetStream
	StateSize        int64
	CheckpointedSize int64
	HandleID         Text
	StorageID        Text
	Wire             Wire
}

// OffsetStream is a stream and the position where the changes start in it.
type OffsetStream struct {
	Offset int64
	Data   Stream
}

// KeyGroups is the range covered.
func (h *KeyGroups) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups is the range covered.
func (h *Incremental) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups is the range covered.
func (h *Changelog) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups is the range covered.
func (h *ChangelogMemory) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups is the range covered.
func (h *ChangelogStream) KeyGroups() KeyGroupRange { return h.Range }

func (*KeyGroups) keyed()       {}
func (*Incremental) keyed()     {}
func (*Changelog) keyed()       {}
func (*ChangelogMemory) keyed() {}
func (*ChangelogStream) keyed() {}

// ChannelHandle is in-flight data of an unaligned checkpoint: of one channel,
// or of several that a newer engine merged into one handle.
type ChannelHandle struct {
	Subtask  int32 // -1: the release that wrote it did not say
	Channels []Channel
	Size     int64 // bytes of all channels; the stream is shared with others
	Merged   bool
	Data     Stream
	Wire     Wire
}

// Channel is one input channel (gate, channel) or result subpartition
// (partition, subpartition).
type Channel struct {
	First, Second int32
	Size          int64
	Offsets       Offsets
}
