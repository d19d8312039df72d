package spt

import (
	"bytes"
	"context"
	"fmt"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
)

// producer is the value of the manifest's writer key.
const producer = "spt"

// encoder writes the manifest. The keys of maps ascend and zero fields are omitted,
// so a savepoint has exactly one encoding.
type encoder struct {
	ctx    context.Context
	w      *Writer
	t      *tables
	buf    []byte
	err    error
	keys   byte // number of keys in the current map so far
	refs   map[any]int
	stored storedOffsets
}

// storedOffsets maps each field of a savepoint that holds offsets to the offsets
// that represent it in the file.
type storedOffsets map[*format.Offsets]format.Offsets

// manifest encodes the manifest, and stores the offsets of sp that are not yet in
// the file.
func (w *Writer) manifest(ctx context.Context, sp *format.Savepoint) ([]byte, storedOffsets, error) {
	e := &encoder{ctx: ctx, w: w, t: newTables(), refs: make(map[any]int), stored: make(storedOffsets)}
	// The tree is the last field and is encoded first, because encoding it adds
	// streams and chunks.
	e.t.savepoint.write(e, sp)
	if e.err == nil {
		e.fail(w.drain(0))
	}
	if e.err != nil {
		return nil, nil, e.err
	}
	tree := bytes.Clone(e.buf)
	n := 3
	if len(w.entries) > 0 {
		n++
	}
	e.buf = msg.AppendMap(e.buf[:0], n)
	e.key("chunks")
	e.chunkTable()
	if len(w.entries) > 0 {
		e.key("streams")
		e.buf = msg.AppendArray(e.buf, len(w.entries))
		for _, s := range w.entries {
			e.entry(s)
		}
	}
	e.key("tree")
	e.buf = append(e.buf, tree...)
	e.key("writer")
	e.buf = msg.AppendString(e.buf, producer)
	return e.buf, e.stored, e.err
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *encoder) key(k string) {
	e.keys++
	e.buf = msg.AppendString(e.buf, k)
}

func (e *encoder) binary(p []byte) { e.buf = msg.AppendBinary(e.buf, p) }

func (e *encoder) chunkTable() {
	stored, raw, kinds, hashes := e.w.table.pack()
	if len(kinds) == 0 {
		e.buf = msg.AppendMap(e.buf, 0)
		return
	}
	e.buf = msg.AppendMap(e.buf, 4)
	e.key("hashes")
	e.binary(hashes)
	e.key("kinds")
	e.binary(kinds)
	e.key("raw")
	e.binary(raw)
	e.key("stored")
	e.binary(stored)
}

// entry writes an entry of the stream table: its reference or origin, and its
// chunks if its bytes are in the file.
func (e *encoder) entry(s entry) {
	n := 0
	if s.as != nil {
		n++
	}
	if s.chunks != nil {
		n++
		if s.chunks.Length > 0 {
			n++
		}
	}
	e.buf = msg.AppendMap(e.buf, n)
	if s.as != nil {
		e.key("as")
		for _, k := range e.t.origins {
			if k.write(e, s.as) {
				break
			}
		}
	}
	if s.chunks == nil {
		return
	}
	e.key("chunks")
	e.binary(appendRuns(nil, s.runs))
	if s.chunks.Length > 0 {
		e.key("size")
		e.buf = msg.AppendInt(e.buf, s.chunks.Length)
	}
}

// keyed writes a keyed handle, or nil.
func (e *encoder) keyed(h format.KeyedHandle) {
	if h == nil {
		e.buf = append(e.buf, msg.Nil)
		return
	}
	for _, k := range e.t.keyed {
		if k.write(e, h) {
			return
		}
	}
}

// offsets writes a field of offsets: packed, or as an array of its length and chunk
// list, after storing its chunks. nil is omitted.
func (e *encoder) offsets(field *format.Offsets) {
	if *field == nil || e.err != nil {
		return
	}
	o, err := e.w.storeOffsets(e.ctx, *field)
	if err != nil {
		e.fail(err)
		return
	}
	e.stored[field] = o
	e.key("offsets")
	switch o := o.(type) {
	case format.OffsetSlice:
		e.binary(packOffsets(nil, o))
	case *offsets:
		e.buf = msg.AppendArray(e.buf, 2)
		e.buf = msg.AppendInt(e.buf, o.n)
		e.binary(appendRuns(nil, o.runs))
	}
}

// ref writes the index of a stream in the stream table, a map for a key-group
// stream, or nil.
func (e *encoder) ref(s format.Stream) {
	var id any
	switch s := s.(type) {
	case nil:
		e.buf = append(e.buf, msg.Nil)
		return
	case *format.KeyGroupStream:
		e.t.keyGroups.write(e, s)
		return
	case *format.Chunks:
		if s.Index < 0 || s.Index >= len(e.w.entries) || !sameChunks(e.w.entries[s.Index].chunks, s) {
			e.fail(fmt.Errorf("internal error: spt.Writer: stream of another writer: %v", s.Key()))
			return
		}
		e.buf = msg.AppendInt(e.buf, int64(s.Index))
		return
	case *format.File:
		id = *s
	case *format.Segment:
		id = *s
		e.fail(checkSegment(s))
	case *format.EmptySegment:
		id = *s
	default:
		e.fail(fmt.Errorf("internal error: spt.Writer: stream not written: %v", s.Key()))
		return
	}
	// Bare references: one entry each.
	n, ok := e.refs[id]
	if !ok {
		n = len(e.w.entries)
		e.refs[id] = n
		e.w.entries = append(e.w.entries, entry{as: s})
	}
	e.buf = msg.AppendInt(e.buf, int64(n))
}

// sameChunks reports whether a and b are the same stream.
func sameChunks(a, b *format.Chunks) bool {
	return a == b || a != nil && a.Length == b.Length && a.Digest == b.Digest && asKey(a.As) == asKey(b.As)
}

// asKey returns a comparable key for the origin of a stream.
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
