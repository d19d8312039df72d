package spt

import (
	"bytes"
	"context"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"

	"github.com/savepoint-tools/spt/format"
)

// producer is what the manifest says of who wrote the file.
const producer = "spt"

// Names of kinds in the manifest. Wire format: never change.
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

// snapshotTypeName and savepointFormatName give the manifest's names, "" for
// what it leaves out.
func snapshotTypeName(t format.SnapshotType) (string, bool) {
	switch t {
	case format.TypeUnknown:
		return "", true
	case format.TypeCheckpoint:
		return "checkpoint", true
	case format.TypeFullCheckpoint:
		return "full-checkpoint", true
	case format.TypeSavepoint:
		return "savepoint", true
	case format.TypeSuspendSavepoint:
		return "suspend-savepoint", true
	case format.TypeTerminateSavepoint:
		return "terminate-savepoint", true
	}
	return "", false
}

func savepointFormatName(f format.SavepointFormat) (string, bool) {
	switch f {
	case format.FormatUnknown:
		return "", true
	case format.FormatCanonical:
		return "canonical", true
	case format.FormatNative:
		return "native", true
	}
	return "", false
}

// encoder writes the manifest. Maps have their keys in ascending order and
// leave out what is zero, so that there is one encoding of a savepoint.
type encoder struct {
	ctx    context.Context
	w      *Writer
	buf    bytes.Buffer
	enc    *msgpack.Encoder
	err    error
	keys   byte // of the map being written, so far
	refs   map[any]int
	stored storedOffsets
}

// storedOffsets tells for each field of a savepoint that holds offsets what
// stands for them in the file.
type storedOffsets map[*format.Offsets]format.Offsets

// manifest encodes the manifest, and stores the offsets of sp that are not in
// the file yet.
func (w *Writer) manifest(ctx context.Context, sp *format.Savepoint) ([]byte, storedOffsets, error) {
	e := &encoder{ctx: ctx, w: w, refs: make(map[any]int), stored: make(storedOffsets)}
	e.enc = msgpack.NewEncoder(&e.buf)
	// The tree comes last in the file and is made first: it adds to the
	// streams and the chunks.
	e.savepoint(sp)
	if e.err == nil {
		e.fail(w.drain(0))
	}
	if e.err != nil {
		return nil, nil, e.err
	}
	tree := bytes.Clone(e.buf.Bytes())
	e.buf.Reset()
	e.object(func() {
		e.key("chunks")
		e.object(func() {
			stored, raw, kinds, hashes := w.table.pack()
			e.bin("hashes", hashes)
			e.bin("kinds", kinds)
			e.bin("raw", raw)
			e.bin("stored", stored)
		})
		array(e, "streams", w.entries, e.stream)
		e.key("tree")
		e.buf.Write(tree)
		e.str("writer", producer)
	})
	return e.buf.Bytes(), e.stored, e.err
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

// object writes a map of the fields that f writes, at most 15.
func (e *encoder) object(f func()) {
	at, outer := e.buf.Len(), e.keys
	e.keys = 0
	e.buf.WriteByte(0x80)
	f()
	if e.keys > 15 {
		panic("internal error: a map of more than 15 keys")
	}
	e.buf.Bytes()[at] |= e.keys
	e.keys = outer
}

// kind writes one of several kinds of thing: an array of the kind's name and
// the fields that f writes.
func (e *encoder) kind(name string, f func()) {
	e.enc.EncodeArrayLen(2)  //nolint:errcheck
	e.enc.EncodeString(name) //nolint:errcheck
	e.object(f)
}

// The encoder writes to memory, where nothing fails.

func (e *encoder) key(k string) {
	e.keys++
	e.enc.EncodeString(k) //nolint:errcheck
}

func (e *encoder) int(k string, v int64) {
	if v != 0 {
		e.key(k)
		e.enc.EncodeInt(v) //nolint:errcheck
	}
}

func (e *encoder) bool(k string, v bool) {
	if v {
		e.key(k)
		e.enc.EncodeBool(v) //nolint:errcheck
	}
}

func (e *encoder) str(k, v string) {
	if v != "" {
		e.key(k)
		e.enc.EncodeString(v) //nolint:errcheck
	}
}

func (e *encoder) bin(k string, v []byte) {
	if len(v) > 0 {
		e.key(k)
		e.binary(v)
	}
}

// binary writes a bin that may be empty: msgpack's own call takes nil for nil.
func (e *encoder) binary(v []byte) {
	e.enc.EncodeBytesLen(len(v)) //nolint:errcheck
	e.buf.Write(v)
}

func (e *encoder) bytes(k string, v format.Bytes) {
	e.fail(v.View(func(p []byte) error {
		e.bin(k, p)
		return nil
	}))
}

func (e *encoder) text(k string, t format.Text) {
	raw, ok := t.Raw()
	if !ok {
		e.str(k, t.String())
		return
	}
	e.key(k)
	e.enc.EncodeArrayLen(2)        //nolint:errcheck
	e.enc.EncodeString(t.String()) //nolint:errcheck
	e.binary([]byte(raw))
}

// array writes an array, unless it is empty.
func array[T any](e *encoder, k string, v []T, f func(T)) {
	if len(v) == 0 {
		return
	}
	e.key(k)
	e.enc.EncodeArrayLen(len(v)) //nolint:errcheck
	for _, x := range v {
		if e.err != nil {
			return
		}
		f(x)
	}
}

func (e *encoder) savepoint(sp *format.Savepoint) {
	typ, ok := snapshotTypeName(sp.Kind.Type)
	form, ok2 := savepointFormatName(sp.Kind.Format)
	if !ok || !ok2 {
		e.fail(fmt.Errorf("internal error: snapshot kind %d/%d", sp.Kind.Type, sp.Kind.Format))
		return
	}
	e.object(func() {
		e.str("format", form)
		e.int("id", sp.ID)
		e.str("location", sp.Location)
		array(e, "masters", sp.Masters, func(m format.MasterState) {
			e.object(func() {
				e.bytes("data", m.Data)
				e.text("name", m.Name)
				e.int("version", int64(m.Version))
			})
		})
		array(e, "operators", sp.Operators, func(o *format.Operator) {
			e.operator(o)
			if e.err != nil {
				e.err = format.At(e.err, "operator %q", o.Label())
			}
		})
		e.str("type", typ)
		e.bin("wire", []byte(sp.Wire))
	})
}

func (e *encoder) operator(o *format.Operator) {
	e.object(func() {
		e.ref("coordinator", o.Coordinator)
		e.bool("finished", o.Finished)
		e.key("id")
		e.binary(o.ID[:])
		e.int("max-parallelism", int64(o.MaxParallelism))
		e.text("name", o.Name)
		e.int("parallelism", int64(o.Parallelism))
		array(e, "subtasks", o.Subtasks, e.subtask)
		e.text("uid", o.UID)
		e.bin("wire", []byte(o.Wire))
	})
}

func (e *encoder) subtask(s *format.Subtask) {
	e.object(func() {
		e.bool("finished", s.Finished)
		e.int("index", int64(s.Index))
		array(e, "input", s.Input, e.channel)
		array(e, "legacy", s.Legacy, e.refOrNil)
		e.handle("managed", s.Managed)
		e.keyed("managed-keyed", s.ManagedKeyed)
		array(e, "output", s.Output, e.channel)
		e.handle("raw", s.Raw)
		e.keyed("raw-keyed", s.RawKeyed)
		e.bin("wire", []byte(s.Wire))
	})
}

func (e *encoder) handle(k string, h *format.OperatorHandle) {
	if h == nil {
		return
	}
	e.key(k)
	e.object(func() {
		e.str("codec", string(h.Codec))
		e.ref("data", h.Data)
		if m := h.Merging; m != nil {
			e.key("merging")
			e.object(func() {
				e.bool("placeholder", m.Placeholder)
				e.text("shared", m.SharedDir)
				e.text("task-owned", m.TaskOwnedDir)
			})
		}
		if len(h.States) > 0 {
			e.key("states")
			e.enc.EncodeArrayLen(len(h.States)) //nolint:errcheck
			for i := range h.States {
				st := &h.States[i]
				e.object(func() {
					e.int("mode", int64(st.Mode))
					e.text("name", st.Name)
					e.offsets("offsets", &st.Offsets)
				})
			}
		}
		e.bin("wire", []byte(h.Wire))
	})
}

func (e *encoder) channel(h *format.ChannelHandle) {
	e.object(func() {
		if len(h.Channels) > 0 {
			e.key("channels")
			e.enc.EncodeArrayLen(len(h.Channels)) //nolint:errcheck
			for i := range h.Channels {
				c := &h.Channels[i]
				e.object(func() {
					e.int("first", int64(c.First))
					e.offsets("offsets", &c.Offsets)
					e.int("second", int64(c.Second))
					e.int("size", c.Size)
				})
			}
		}
		e.ref("data", h.Data)
		e.bool("merged", h.Merged)
		e.int("size", h.Size)
		e.int("subtask", int64(h.Subtask))
		e.bin("wire", []byte(h.Wire))
	})
}

func (e *encoder) keyed(k string, h format.KeyedHandle) {
	if h != nil {
		e.key(k)
		e.keyedHandle(h)
	}
}

// keyedHandle writes the kind of a handle and its fields: an array of two, or
// nil.
func (e *encoder) keyedHandle(h format.KeyedHandle) {
	switch h := h.(type) {
	case nil:
		e.enc.EncodeNil() //nolint:errcheck
	case *format.KeyGroups:
		e.kind(keyKeyGroups, func() {
			e.str("codec", string(h.Codec))
			e.int("count", int64(h.Range.Count))
			e.ref("data", h.Data)
			e.int("first", int64(h.Range.First))
			e.text("handle-id", h.HandleID)
			e.offsets("offsets", &h.Offsets)
			e.bool("savepoint", h.Savepoint)
			e.bin("wire", []byte(h.Wire))
		})
	case *format.Incremental:
		named := func(n format.NamedStream) {
			e.object(func() {
				e.ref("data", n.Data)
				e.text("name", n.Name)
			})
		}
		e.kind(keyIncremental, func() {
			e.text("backend-id", h.BackendID)
			e.int("checkpoint-id", h.CheckpointID)
			e.int("checkpointed-size", h.CheckpointedSize)
			e.int("count", int64(h.Range.Count))
			e.int("first", int64(h.Range.First))
			e.text("handle-id", h.HandleID)
			e.ref("meta", h.Meta)
			array(e, "private", h.Private, named)
			array(e, "shared", h.Shared, named)
			e.bin("wire", []byte(h.Wire))
		})
	case *format.Changelog:
		e.kind(keyChangelog, func() {
			array(e, "changes", h.Changes, e.keyedHandle)
			e.int("checkpoint-id", h.CheckpointID)
			e.int("checkpointed-size", h.CheckpointedSize)
			e.int("count", int64(h.Range.Count))
			e.int("first", int64(h.Range.First))
			e.text("handle-id", h.HandleID)
			e.int("materialization-id", h.MaterializationID)
			array(e, "materialized", h.Materialized, e.keyedHandle)
			e.bin("wire", []byte(h.Wire))
		})
	case *format.ChangelogMemory:
		e.kind(keyChangelogMemory, func() {
			array(e, "changes", h.Changes, func(c format.Change) {
				e.object(func() {
					e.bytes("data", c.Data)
					e.int("key-group", int64(c.KeyGroup))
				})
			})
			e.int("count", int64(h.Range.Count))
			e.int("first", int64(h.Range.First))
			e.int("from", h.From)
			e.text("handle-id", h.HandleID)
			e.int("to", h.To)
			e.bin("wire", []byte(h.Wire))
		})
	case *format.ChangelogStream:
		e.kind(keyChangelogStream, func() {
			e.int("checkpointed-size", h.CheckpointedSize)
			e.int("count", int64(h.Range.Count))
			e.int("first", int64(h.Range.First))
			e.text("handle-id", h.HandleID)
			e.int("state-size", h.StateSize)
			e.text("storage-id", h.StorageID)
			array(e, "streams", h.Streams, func(s format.OffsetStream) {
				e.object(func() {
					e.ref("data", s.Data)
					e.int("offset", s.Offset)
				})
			})
			e.bin("wire", []byte(h.Wire))
		})
	}
}

// offsets writes an array of offsets, after its chunks if it has any: packed,
// or an array of its length and chunk list. nil is left out.
func (e *encoder) offsets(k string, field *format.Offsets) {
	if *field == nil || e.err != nil {
		return
	}
	o, err := e.w.storeOffsets(e.ctx, *field)
	if err != nil {
		e.fail(err)
		return
	}
	e.stored[field] = o
	e.key(k)
	switch o := o.(type) {
	case format.OffsetSlice:
		e.binary(packOffsets(nil, o))
	case *offsets:
		e.enc.EncodeArrayLen(2) //nolint:errcheck
		e.enc.EncodeInt(o.n)    //nolint:errcheck
		e.binary(appendRuns(nil, o.runs))
	}
}

// ref writes a field that names a stream, unless it is nil.
func (e *encoder) ref(k string, s format.Stream) {
	if s != nil {
		e.key(k)
		e.refOrNil(s)
	}
}

// refOrNil writes a stream's number in the stream table, a map for a key-group
// stream, or nil.
func (e *encoder) refOrNil(s format.Stream) {
	var id any
	switch s := s.(type) {
	case nil:
		e.enc.EncodeNil() //nolint:errcheck
		return
	case *format.KeyGroupStream:
		e.object(func() {
			e.int("count", int64(s.Range.Count))
			e.ref("data", s.Data)
			e.int("first", int64(s.Range.First))
			e.offsets("offsets", &s.Offsets)
		})
		return
	case *format.Chunks:
		if s.Index < 0 || s.Index >= len(e.w.entries) || !sameChunks(e.w.entries[s.Index].chunks, s) {
			e.fail(fmt.Errorf("internal error: spt.Writer: a stream that this writer did not make: %v", s.Key()))
			return
		}
		e.enc.EncodeInt(int64(s.Index)) //nolint:errcheck
		return
	case *format.File:
		id = *s
	case *format.Segment:
		id = *s
	case *format.EmptySegment:
		id = *s
	default:
		e.fail(fmt.Errorf("internal error: spt.Writer: a stream whose bytes were not written: %v", s.Key()))
		return
	}
	// References without bytes: each once.
	n, ok := e.refs[id]
	if !ok {
		n = len(e.w.entries)
		e.refs[id] = n
		e.w.entries = append(e.w.entries, entry{as: s})
	}
	e.enc.EncodeInt(int64(n)) //nolint:errcheck
}

// sameChunks is whether b names the stream that a is.
func sameChunks(a, b *format.Chunks) bool {
	return a == b || a != nil && a.Length == b.Length && a.Digest == b.Digest && asKey(a.As) == asKey(b.As)
}

// asKey makes the origins of streams comparable.
func asKey(s format.Stream) any {
	switch s := s.(type) {
	case *format.Inline:
		return s.Name
	case *format.File:
		return *s
	case *format.Segment:
		return *s
	}
	return nil
}

// stream writes an entry of the stream table: what it refers to, or where its
// bytes came from, and its chunks unless it has none in the file.
func (e *encoder) stream(s entry) {
	e.object(func() {
		if s.as != nil {
			e.key("as")
			e.origin(s.as)
		}
		if s.chunks != nil {
			e.key("chunks")
			e.binary(appendRuns(nil, s.runs))
			e.int("size", s.chunks.Length)
		}
	})
}

// origin writes the kind of a stream and its fields.
func (e *encoder) origin(s format.Stream) {
	switch s := s.(type) {
	case *format.Inline:
		e.kind(fromInline, func() { e.text("name", s.Name) })
	case *format.File:
		e.kind(fromFile, func() {
			e.int("length", s.Length)
			e.text("path", s.Path)
			e.bool("relative", s.Relative)
		})
	case *format.Segment:
		e.kind(fromSegment, func() {
			e.int("length", s.Length)
			e.text("logical-id", s.LogicalID)
			e.text("path", s.Path)
			e.int("scope", int64(s.Scope))
			e.int("start", s.Start)
		})
	case *format.EmptySegment:
		e.kind(fromNothing, func() {})
	}
}
