package format

import (
	"context"
	"fmt"
)

// Mode is how Flink redistributes an operator state at a restore.
type Mode uint8

// The modes, as Flink numbers them (spec flink-metadata 5.2). Wire format:
// never change.
const (
	ModeList      Mode = 0 // split: each element is assigned to one subtask
	ModeUnion     Mode = 1 // every subtask receives all elements
	ModeBroadcast Mode = 2 // every subtask receives one replica
)

// String returns "list", "union" or "broadcast".
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

// OperatorHandle is the managed or raw operator state of one subtask: a stream, and
// the positions in it where the elements of each state start.
type OperatorHandle struct {
	Codec   CodecID
	States  []NamedState // in file order
	Data    Stream       // nil if the snapshot has no stream for it
	Merging *FileMerging // nil: written without file merging
	Wire    Wire
}

// NamedState is one list, union or broadcast state in a handle. Offsets has one
// entry per element; a broadcast state has one entry, the start of its map.
type NamedState struct {
	Name    Text
	Mode    Mode
	Offsets Offsets
}

// FileMerging is the part of a handle that Flink's file merging adds: the
// directories that it keeps alive, and whether it is only a placeholder.
type FileMerging struct {
	TaskOwnedDir, SharedDir Text
	Placeholder             bool
}

// KeyedHandle is keyed state. The set is closed: [*KeyGroups],
// [*Incremental], [*Changelog], [*ChangelogMemory], [*ChangelogStream].
type KeyedHandle interface {
	// KeyGroups returns the range of key groups that the handle covers.
	KeyGroups() KeyGroupRange
	keyed()
}

// KeyGroups is a stream of consecutive key groups: a full snapshot, or, if
// Savepoint is set, one in the canonical savepoint format.
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
// For a key group without data Flink writes 0, since a header precedes all key
// groups, or -1 in raw keyed state, which has no header. In native state every
// offset is a position: a key group without entries has the offset of the next one
// (spec flink-keyed-state 3.1, 10.1; docs/format.md, Keyed state).
func (h *KeyGroups) HasData(offset int64) bool {
	switch h.Codec {
	case CodecNative:
		return true
	case CodecRaw:
		return offset != -1
	}
	return offset != 0
}

// EachKeyGroup calls f with each key group that has data and its offset, in order
// of the key groups.
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

// Incremental is an incremental RocksDB snapshot, which consists of files of the
// backend.
type Incremental struct {
	CheckpointID     int64
	BackendID        Text
	Range            KeyGroupRange
	CheckpointedSize int64 // bytes uploaded by this checkpoint; -1: unknown
	Meta             Stream
	Shared, Private  []NamedStream
	HandleID         Text
	Wire             Wire
}

// NamedStream is a file of a state backend and its local name (000012.sst).
type NamedStream struct {
	Name Text
	Data Stream
}

// Changelog is a materialized snapshot and the changes since then.
type Changelog struct {
	Range             KeyGroupRange
	CheckpointedSize  int64
	Materialized      []KeyedHandle // entries may be nil
	Changes           []KeyedHandle
	MaterializationID int64
	CheckpointID      int64
	HandleID          Text
	Wire              Wire
}

// ChangelogMemory is changes stored in the container itself.
type ChangelogMemory struct {
	Range    KeyGroupRange
	From, To int64
	Changes  []Change
	HandleID Text
	Wire     Wire
}

// Change is one change of a key group; key group -1 marks a change of the metadata.
type Change struct {
	KeyGroup int32
	Data     Bytes
}

// ChangelogStream is changes stored in streams.
type ChangelogStream struct {
	Range            KeyGroupRange
	Streams          []OffsetStream
	StateSize        int64
	CheckpointedSize int64
	HandleID         Text
	StorageID        Text
	Wire             Wire
}

// OffsetStream is a stream and the offset at which its changes start.
type OffsetStream struct {
	Offset int64
	Data   Stream
}

// KeyGroups implements [KeyedHandle].
func (h *KeyGroups) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups implements [KeyedHandle].
func (h *Incremental) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups implements [KeyedHandle].
func (h *Changelog) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups implements [KeyedHandle].
func (h *ChangelogMemory) KeyGroups() KeyGroupRange { return h.Range }

// KeyGroups implements [KeyedHandle].
func (h *ChangelogStream) KeyGroups() KeyGroupRange { return h.Range }

func (*KeyGroups) keyed()       {}
func (*Incremental) keyed()     {}
func (*Changelog) keyed()       {}
func (*ChangelogMemory) keyed() {}
func (*ChangelogStream) keyed() {}

// ChannelHandle is in-flight data of an unaligned checkpoint, of one channel or of
// several channels in one handle.
type ChannelHandle struct {
	Subtask  int32 // -1: not recorded
	Channels []Channel
	Size     int64 // bytes of all channels; other handles may share the stream
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
