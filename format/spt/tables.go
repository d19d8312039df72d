package spt

import (
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/limit"
)

// tables are the records of the manifest: the tables in docs/format.md, "Manifest".
// Wire format: keys and names never change.
type tables struct {
	savepoint record[format.Savepoint]
	keyGroups record[format.KeyGroupStream]
	keyed     []kind[format.KeyedHandle]
	origins   []kind[format.Stream]
}

const (
	keyKeyGroups       = "key-groups"
	keyIncremental     = "incremental"
	keyChangelog       = "changelog"
	keyChangelogMemory = "changelog-memory"
	keyChangelogStream = "changelog-stream"

	fromInline  = "inline"
	fromFile    = "file"
	fromSegment = "segment"
	fromNothing = "empty"
)

// snapshotTypes and savepointFormats are names by their number in the model. The
// empty name is omitted.
var (
	snapshotTypes    = []string{format.TypeUnknown: "", format.TypeCheckpoint: "checkpoint", format.TypeFullCheckpoint: "full-checkpoint", format.TypeSavepoint: "savepoint", format.TypeSuspendSavepoint: "suspend-savepoint", format.TypeTerminateSavepoint: "terminate-savepoint"}
	savepointFormats = []string{format.FormatUnknown: "", format.FormatCanonical: "canonical", format.FormatNative: "native"}
)

func newTables() *tables {
	t := &tables{}

	t.keyGroups = record[format.KeyGroupStream]{
		fields: []field[format.KeyGroupStream]{
			int32s("count", func(s *format.KeyGroupStream) *int32 { return &s.Range.Count }),
			streams("data", func(s *format.KeyGroupStream) *format.Stream { return &s.Data }),
			int32s("first", func(s *format.KeyGroupStream) *int32 { return &s.Range.First }),
			offsetsField(func(s *format.KeyGroupStream) *format.Offsets { return &s.Offsets }),
		},
		check: checkKeyGroupStream,
	}

	t.origins = []kind[format.Stream]{
		newKind[format.Stream](fromInline, &record[format.Inline]{fields: []field[format.Inline]{
			texts("name", func(s *format.Inline) *format.Text { return &s.Name }),
		}}),
		newKind[format.Stream](fromFile, &record[format.File]{
			fields: []field[format.File]{
				int64s("length", func(s *format.File) *int64 { return &s.Length }),
				texts("path", func(s *format.File) *format.Text { return &s.Path }),
				booleans("relative", func(s *format.File) *bool { return &s.Relative }),
			},
		}),
		newKind[format.Stream](fromSegment, &record[format.Segment]{
			fields: []field[format.Segment]{
				int64s("length", func(s *format.Segment) *int64 { return &s.Length }),
				texts("logical-id", func(s *format.Segment) *format.Text { return &s.LogicalID }),
				texts("path", func(s *format.Segment) *format.Text { return &s.Path }),
				int32s("scope", func(s *format.Segment) *format.Scope { return &s.Scope }),
				int64s("start", func(s *format.Segment) *int64 { return &s.Start }),
			},
			check: checkSegment,
		}),
		newKind[format.Stream](fromNothing, &record[format.EmptySegment]{}),
	}

	state := &record[format.NamedState]{
		fields: []field[format.NamedState]{
			integer("mode", func(s *format.NamedState) *format.Mode { return &s.Mode }, 0, math.MaxUint8),
			texts("name", func(s *format.NamedState) *format.Text { return &s.Name }),
			offsetsField(func(s *format.NamedState) *format.Offsets { return &s.Offsets }),
		},
	}
	merging := &record[format.FileMerging]{
		fields: []field[format.FileMerging]{
			booleans("placeholder", func(m *format.FileMerging) *bool { return &m.Placeholder }),
			texts("shared", func(m *format.FileMerging) *format.Text { return &m.SharedDir }),
			texts("task-owned", func(m *format.FileMerging) *format.Text { return &m.TaskOwnedDir }),
		},
	}
	handle := &record[format.OperatorHandle]{
		fields: []field[format.OperatorHandle]{
			strs("codec", func(h *format.OperatorHandle) *format.CodecID { return &h.Codec }),
			streams("data", func(h *format.OperatorHandle) *format.Stream { return &h.Data }),
			pointers("merging", func(h *format.OperatorHandle) **format.FileMerging { return &h.Merging }, merging),
			lists("states", func(h *format.OperatorHandle) *[]format.NamedState { return &h.States }, limit.Nodes, state.value()),
			wires(func(h *format.OperatorHandle) *format.Wire { return &h.Wire }),
		},
		check: checkHandle,
	}

	channel := &record[format.Channel]{
		fields: []field[format.Channel]{
			int32s("first", func(c *format.Channel) *int32 { return &c.First }),
			offsetsField(func(c *format.Channel) *format.Offsets { return &c.Offsets }),
			int32s("second", func(c *format.Channel) *int32 { return &c.Second }),
			int64s("size", func(c *format.Channel) *int64 { return &c.Size }),
		},
	}
	channels := &record[format.ChannelHandle]{
		fields: []field[format.ChannelHandle]{
			lists("channels", func(h *format.ChannelHandle) *[]format.Channel { return &h.Channels }, limit.Nodes, channel.value()),
			streams("data", func(h *format.ChannelHandle) *format.Stream { return &h.Data }),
			booleans("merged", func(h *format.ChannelHandle) *bool { return &h.Merged }),
			int64s("size", func(h *format.ChannelHandle) *int64 { return &h.Size }),
			int32s("subtask", func(h *format.ChannelHandle) *int32 { return &h.Subtask }),
			wires(func(h *format.ChannelHandle) *format.Wire { return &h.Wire }),
		},
		check: checkChannels,
	}

	t.keyed = keyedKinds()

	subtask := &record[format.Subtask]{
		fields: []field[format.Subtask]{
			booleans("finished", func(s *format.Subtask) *bool { return &s.Finished }),
			int32s("index", func(s *format.Subtask) *int32 { return &s.Index }),
			lists("input", func(s *format.Subtask) *[]*format.ChannelHandle { return &s.Input }, limit.Nodes, channels.pointer()),
			lists("legacy", func(s *format.Subtask) *[]format.Stream { return &s.Legacy }, limit.Nodes, value[format.Stream]{
				read:  func(d *decoder, v *format.Stream) { *v = d.refOrNil() },
				write: func(e *encoder, v *format.Stream) { e.ref(*v) },
			}),
			pointers("managed", func(s *format.Subtask) **format.OperatorHandle { return &s.Managed }, handle),
			keyedField("managed-keyed", func(s *format.Subtask) *format.KeyedHandle { return &s.ManagedKeyed }),
			lists("output", func(s *format.Subtask) *[]*format.ChannelHandle { return &s.Output }, limit.Nodes, channels.pointer()),
			pointers("raw", func(s *format.Subtask) **format.OperatorHandle { return &s.Raw }, handle),
			keyedField("raw-keyed", func(s *format.Subtask) *format.KeyedHandle { return &s.RawKeyed }),
			wires(func(s *format.Subtask) *format.Wire { return &s.Wire }),
		},
		check: checkSubtask,
	}

	operator := &record[format.Operator]{
		fields: []field[format.Operator]{
			streams("coordinator", func(o *format.Operator) *format.Stream { return &o.Coordinator }),
			booleans("finished", func(o *format.Operator) *bool { return &o.Finished }),
			required(operatorID(), "an operator has no id"),
			int32s("max-parallelism", func(o *format.Operator) *int32 { return &o.MaxParallelism }),
			texts("name", func(o *format.Operator) *format.Text { return &o.Name }),
			parallelism(),
			lists("subtasks", func(o *format.Operator) *[]*format.Subtask { return &o.Subtasks },
				limit.Subtasks, subtask.pointer()),
			texts("uid", func(o *format.Operator) *format.Text { return &o.UID }),
			wires(func(o *format.Operator) *format.Wire { return &o.Wire }),
		},
		check: checkOperator,
	}

	master := &record[format.MasterState]{
		fields: []field[format.MasterState]{
			blobs("data", func(m *format.MasterState) *format.Bytes { return &m.Data }),
			texts("name", func(m *format.MasterState) *format.Text { return &m.Name }),
			int32s("version", func(m *format.MasterState) *int32 { return &m.Version }),
		},
	}

	t.savepoint = record[format.Savepoint]{
		fields: []field[format.Savepoint]{
			names("format", func(sp *format.Savepoint) *format.SavepointFormat { return &sp.Kind.Format }, savepointFormats),
			int64s("id", func(sp *format.Savepoint) *int64 { return &sp.ID }),
			strs("location", func(sp *format.Savepoint) *string { return &sp.Location }),
			lists("masters", func(sp *format.Savepoint) *[]format.MasterState { return &sp.Masters }, limit.Nodes, master.value()),
			lists("operators", func(sp *format.Savepoint) *[]*format.Operator { return &sp.Operators },
				limit.Operators, operator.pointer()),
			names("type", func(sp *format.Savepoint) *format.SnapshotType { return &sp.Kind.Type }, snapshotTypes),
			wires(func(sp *format.Savepoint) *format.Wire { return &sp.Wire }),
		},
		check: checkSavepoint,
	}
	return t
}

// parallelism returns the field, and charges memory for it, because users of the
// model allocate an entry for each possible subtask.
func parallelism() field[format.Operator] {
	f := int32s("parallelism", func(o *format.Operator) *int32 { return &o.Parallelism })
	read := f.read
	f.read = func(d *decoder, o *format.Operator) {
		if read(d, o); o.Parallelism > 0 && o.Parallelism <= format.MaxKeyGroups {
			d.charge(16 * int64(o.Parallelism))
		}
	}
	return f
}

// operatorID returns the id field, which is never omitted.
func operatorID() field[format.Operator] {
	return field[format.Operator]{
		key: "id",
		read: func(d *decoder, o *format.Operator) {
			id := d.bin()
			if d.err == nil && len(id) != len(o.ID) {
				d.fail(format.ErrCorrupt, "an operator id of %d bytes", len(id))
			}
			copy(o.ID[:], id)
		},
		write: func(e *encoder, o *format.Operator) {
			e.key("id")
			e.binary(o.ID[:])
		},
	}
}

// keyedField returns a field that is a keyed handle.
func keyedField[T any](key string, at func(*T) *format.KeyedHandle) field[T] {
	return field[T]{
		key:  key,
		read: func(d *decoder, v *T) { *at(v) = d.keyed() },
		write: func(e *encoder, v *T) {
			if h := *at(v); h != nil {
				e.key(key)
				e.keyed(h)
			}
		},
	}
}

// keyedKinds returns the kinds of keyed handles.
func keyedKinds() []kind[format.KeyedHandle] {
	orNil := value[format.KeyedHandle]{
		read:  func(d *decoder, v *format.KeyedHandle) { *v = d.keyedOrNil() },
		write: func(e *encoder, v *format.KeyedHandle) { e.keyed(*v) },
	}
	named := &record[format.NamedStream]{
		fields: []field[format.NamedStream]{
			streams("data", func(n *format.NamedStream) *format.Stream { return &n.Data }),
			texts("name", func(n *format.NamedStream) *format.Text { return &n.Name }),
		},
		check: checkNamed,
	}
	change := &record[format.Change]{
		fields: []field[format.Change]{
			blobs("data", func(c *format.Change) *format.Bytes { return &c.Data }),
			int32s("key-group", func(c *format.Change) *int32 { return &c.KeyGroup }),
		},
	}
	offsetStream := &record[format.OffsetStream]{
		fields: []field[format.OffsetStream]{
			streams("data", func(s *format.OffsetStream) *format.Stream { return &s.Data }),
			int64s("offset", func(s *format.OffsetStream) *int64 { return &s.Offset }),
		},
		check: checkOffsetStream,
	}
	return []kind[format.KeyedHandle]{
		newKind[format.KeyedHandle](keyKeyGroups, &record[format.KeyGroups]{
			fields: []field[format.KeyGroups]{
				strs("codec", func(h *format.KeyGroups) *format.CodecID { return &h.Codec }),
				int32s("count", func(h *format.KeyGroups) *int32 { return &h.Range.Count }),
				streams("data", func(h *format.KeyGroups) *format.Stream { return &h.Data }),
				int32s("first", func(h *format.KeyGroups) *int32 { return &h.Range.First }),
				texts("handle-id", func(h *format.KeyGroups) *format.Text { return &h.HandleID }),
				offsetsField(func(h *format.KeyGroups) *format.Offsets { return &h.Offsets }),
				booleans("savepoint", func(h *format.KeyGroups) *bool { return &h.Savepoint }),
				wires(func(h *format.KeyGroups) *format.Wire { return &h.Wire }),
			},
			check: checkKeyGroupsHandle,
		}),
		newKind[format.KeyedHandle](keyIncremental, &record[format.Incremental]{
			fields: []field[format.Incremental]{
				texts("backend-id", func(h *format.Incremental) *format.Text { return &h.BackendID }),
				int64s("checkpoint-id", func(h *format.Incremental) *int64 { return &h.CheckpointID }),
				int64s("checkpointed-size", func(h *format.Incremental) *int64 { return &h.CheckpointedSize }),
				int32s("count", func(h *format.Incremental) *int32 { return &h.Range.Count }),
				int32s("first", func(h *format.Incremental) *int32 { return &h.Range.First }),
				texts("handle-id", func(h *format.Incremental) *format.Text { return &h.HandleID }),
				streams("meta", func(h *format.Incremental) *format.Stream { return &h.Meta }),
				lists("private", func(h *format.Incremental) *[]format.NamedStream { return &h.Private }, limit.Nodes, named.value()),
				lists("shared", func(h *format.Incremental) *[]format.NamedStream { return &h.Shared }, limit.Nodes, named.value()),
				wires(func(h *format.Incremental) *format.Wire { return &h.Wire }),
			},
			check: checkIncremental,
		}),
		newKind[format.KeyedHandle](keyChangelog, &record[format.Changelog]{
			fields: []field[format.Changelog]{
				lists("changes", func(h *format.Changelog) *[]format.KeyedHandle { return &h.Changes }, limit.Nodes, orNil),
				int64s("checkpoint-id", func(h *format.Changelog) *int64 { return &h.CheckpointID }),
				int64s("checkpointed-size", func(h *format.Changelog) *int64 { return &h.CheckpointedSize }),
				int32s("count", func(h *format.Changelog) *int32 { return &h.Range.Count }),
				int32s("first", func(h *format.Changelog) *int32 { return &h.Range.First }),
				texts("handle-id", func(h *format.Changelog) *format.Text { return &h.HandleID }),
				int64s("materialization-id", func(h *format.Changelog) *int64 { return &h.MaterializationID }),
				lists("materialized", func(h *format.Changelog) *[]format.KeyedHandle { return &h.Materialized }, limit.Nodes, orNil),
				wires(func(h *format.Changelog) *format.Wire { return &h.Wire }),
			},
			check: checkChangelog,
		}),
		newKind[format.KeyedHandle](keyChangelogMemory, &record[format.ChangelogMemory]{
			fields: []field[format.ChangelogMemory]{
				lists("changes", func(h *format.ChangelogMemory) *[]format.Change { return &h.Changes }, limit.Nodes, change.value()),
				int32s("count", func(h *format.ChangelogMemory) *int32 { return &h.Range.Count }),
				int32s("first", func(h *format.ChangelogMemory) *int32 { return &h.Range.First }),
				int64s("from", func(h *format.ChangelogMemory) *int64 { return &h.From }),
				texts("handle-id", func(h *format.ChangelogMemory) *format.Text { return &h.HandleID }),
				int64s("to", func(h *format.ChangelogMemory) *int64 { return &h.To }),
				wires(func(h *format.ChangelogMemory) *format.Wire { return &h.Wire }),
			},
			check: func(h *format.ChangelogMemory) error { return checkRange(h.Range) },
		}),
		newKind[format.KeyedHandle](keyChangelogStream, &record[format.ChangelogStream]{
			fields: []field[format.ChangelogStream]{
				int64s("checkpointed-size", func(h *format.ChangelogStream) *int64 { return &h.CheckpointedSize }),
				int32s("count", func(h *format.ChangelogStream) *int32 { return &h.Range.Count }),
				int32s("first", func(h *format.ChangelogStream) *int32 { return &h.Range.First }),
				texts("handle-id", func(h *format.ChangelogStream) *format.Text { return &h.HandleID }),
				int64s("state-size", func(h *format.ChangelogStream) *int64 { return &h.StateSize }),
				texts("storage-id", func(h *format.ChangelogStream) *format.Text { return &h.StorageID }),
				lists("streams", func(h *format.ChangelogStream) *[]format.OffsetStream { return &h.Streams }, limit.Nodes, offsetStream.value()),
				wires(func(h *format.ChangelogStream) *format.Wire { return &h.Wire }),
			},
			check: func(h *format.ChangelogStream) error { return checkRange(h.Range) },
		}),
	}
}
