package metadata

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// Encode writes sp as a _metadata file of the version that it carries, or of the
// latest if it did not come from Flink. Streams must have a tag in _metadata:
// writers resolve chunks and ropes first. The exception is chunks and ropes whose
// As is an Inline: their bytes are read from src and become inline state. src may
// be nil if sp has no such streams.
//
// It streams: its memory does not grow with inline state or offsets.
func Encode(ctx context.Context, w io.Writer, sp *format.Savepoint, src format.Source) error {
	fw, ok := parseFileWire(sp.Wire)
	if !ok {
		fw = fileWire{version: Latest}
	}
	if fw.tail == "" { // made by a program, or salvaged from a damaged file
		fw.tail = propertiesFor(sp.Kind)
	}
	e := &encoder{ctx: ctx, w: w, src: src, v: fw.version, layout: fw.layout}
	e.counter, _ = w.(*countingSink)
	e.file(sp, fw.tail)
	e.flush()
	return e.err
}

// Size returns the number of bytes that Encode writes, without reading inline state
// or offsets.
func Size(sp *format.Savepoint) (int64, error) {
	var n countingSink
	err := Encode(context.Background(), &n, sp, nil)
	return int64(n), err
}

// countingSink counts bytes. The encoder recognises it and skips bulk bytes.
type countingSink int64

func (n *countingSink) Write(p []byte) (int, error) {
	*n += countingSink(len(p))
	return len(p), nil
}

const encodeBuffer = 64 << 10

// encoder collects output in buf and keeps the first error.
type encoder struct {
	ctx     context.Context
	src     format.Source // nil: Flink's streams only
	w       io.Writer
	counter *countingSink // w, if only the size is computed
	v       Version
	layout  layout
	buf     []byte
	err     error
}

func (e *encoder) fail(err error) {
	if e.err == nil {
		e.err = err
	}
}

func (e *encoder) flush() {
	e.fail(e.ctx.Err())
	if e.err == nil && len(e.buf) > 0 {
		n, err := e.w.Write(e.buf)
		if err == nil && n < len(e.buf) {
			err = io.ErrShortWrite
		}
		e.fail(err)
	}
	e.buf = e.buf[:0]
}

func (e *encoder) spill() {
	if len(e.buf) >= encodeBuffer {
		e.flush()
	}
}

func (e *encoder) u8(v byte)   { e.buf = append(e.buf, v) }
func (e *encoder) i32(v int32) { e.buf = binary.BigEndian.AppendUint32(e.buf, uint32(v)) }
func (e *encoder) i64(v int64) { e.buf = binary.BigEndian.AppendUint64(e.buf, uint64(v)) }

func (e *encoder) count(n int, what string) {
	if n > math.MaxInt32 {
		e.fail(fmt.Errorf("%d %s, the format allows %d", n, what, math.MaxInt32))
	}
	e.i32(int32(n))
}

func (e *encoder) text(t format.Text) {
	var err error
	if e.buf, err = java.AppendText(e.buf, t); err != nil {
		e.fail(err)
	}
}

// bulk writes many bytes. It copies them to buf, so that the writer never touches
// mapped bytes: a fault would leave it in an undefined state.
func (e *encoder) bulk(b format.Bytes) {
	if e.counter != nil {
		*e.counter += countingSink(b.Len())
		return
	}
	for off := 0; off < b.Len() && e.err == nil; {
		p := e.room(b.Len() - off)
		_, err := b.ReadAt(p, int64(off))
		e.fail(err)
		off += len(p)
	}
	e.spill()
}

// room appends up to n bytes to buf, as many as fit, for the caller to fill.
func (e *encoder) room(n int) []byte {
	e.spill()
	at := len(e.buf)
	n = min(n, 2*encodeBuffer-at)
	e.buf = slices.Grow(e.buf, n)[:at+n]
	return e.buf[at:]
}

func (e *encoder) blob(b format.Bytes) {
	e.count(b.Len(), "inline bytes")
	e.bulk(b)
}

func (e *encoder) offsets(o format.Offsets) {
	if b, ok := o.(*format.OffsetBytes); ok {
		e.bulk(b.Data)
		return
	}
	if b, ok := o.(format.OffsetBytes); ok {
		e.bulk(b.Data)
		return
	}
	if o == nil {
		return
	}
	if e.counter != nil {
		*e.counter += countingSink(o.Len() * 8)
		return
	}
	e.fail(format.EachOffset(e.ctx, o, func(_ int64, run []int64) error {
		for _, v := range run {
			e.i64(v)
		}
		e.spill()
		return e.err
	}))
}

func offsetsLen(o format.Offsets) int {
	if o == nil {
		return 0
	}
	return int(o.Len())
}

// at adds a step to the path of the first error.
func (e *encoder) at(had error, step string, args ...any) {
	if had == nil && e.err != nil {
		e.err = format.At(e.err, step, args...)
	}
}

func (e *encoder) file(sp *format.Savepoint, tail string) {
	e.buf = binary.BigEndian.AppendUint32(e.buf, fileMagic)
	e.i32(int32(e.v))
	e.i64(sp.ID)
	e.count(len(sp.Masters), "master states")
	for _, m := range sp.Masters {
		e.buf = binary.BigEndian.AppendUint32(e.buf, masterMagic)
		e.i32(int32(4 + java.TextSize(m.Name) + 4 + m.Data.Len()))
		e.i32(m.Version)
		e.text(m.Name)
		e.blob(m.Data)
	}
	e.count(len(sp.Operators), "operators")
	for _, op := range sp.Operators {
		had := e.err
		e.operator(op)
		e.at(had, "operator %q", op.Label())
		if e.err != nil {
			return
		}
	}
	if e.v.hasProperties() {
		e.buf = append(e.buf, tail...)
	}
}

func (e *encoder) operator(op *format.Operator) {
	w := parseOperatorWire(op.Wire)
	if e.v.hasNames() {
		e.text(op.Name)
		e.text(op.UID)
	}
	e.buf = append(e.buf, op.ID[:]...)
	e.i32(op.Parallelism)
	e.i32(op.MaxParallelism)
	if e.v.hasDeadFields() {
		e.i32(w.chainLength)
	}
	if e.v.hasCoordinator() {
		e.stream(op.Coordinator)
	} else if op.Coordinator != nil {
		e.fail(format.Errorf(format.ErrUnsupported, "metadata %s cannot store coordinator state", e.v))
	}
	if op.Finished {
		if !e.v.hasFinished() {
			e.fail(format.Errorf(format.ErrUnsupported, "metadata %s cannot store finished operators", e.v))
		}
		if op.Coordinator != nil || len(op.Subtasks) > 0 {
			e.fail(format.Errorf(format.ErrCorrupt, "finished operator with state"))
		}
		e.i32(min(w.subtaskCount, -1))
		return
	}
	e.count(len(op.Subtasks), "subtasks")
	for _, s := range op.Subtasks {
		had := e.err
		e.subtask(s)
		e.at(had, "subtask %d", s.Index)
		if e.err != nil {
			return
		}
	}
}

func (e *encoder) subtask(s *format.Subtask) {
	if s.Finished {
		if !e.v.hasFinished() {
			e.fail(format.Errorf(format.ErrUnsupported, "metadata %s cannot store finished subtasks", e.v))
		}
		if s.Managed != nil || s.Raw != nil || s.ManagedKeyed != nil || s.RawKeyed != nil || len(s.Input)+len(s.Output)+len(s.Legacy) > 0 {
			e.fail(format.Errorf(format.ErrCorrupt, "finished subtask with state"))
		}
		e.i32(-s.Index - 1)
		return
	}
	e.i32(s.Index)
	if e.v.hasDeadFields() {
		e.i64(parseDurationWire(s.Wire))
		e.count(len(s.Legacy), "legacy handles")
		for _, st := range s.Legacy {
			e.stream(st)
		}
	} else if len(s.Legacy) > 0 {
		e.fail(format.Errorf(format.ErrUnsupported, "metadata %s cannot store legacy operator state", e.v))
	}
	e.operatorHandle(s.Managed)
	e.operatorHandle(s.Raw)
	e.keyed(s.ManagedKeyed)
	e.keyed(s.RawKeyed)
	switch {
	case e.v.hasChannels():
		e.channels(s.Input, channelInput, channelInputMerged)
		e.channels(s.Output, channelOutput, channelOutputMerged)
	case len(s.Input)+len(s.Output) > 0:
		e.fail(format.Errorf(format.ErrUnsupported, "metadata %s cannot store channel state", e.v))
	}
	e.spill()
}

func (e *encoder) stream(s format.Stream) {
	switch s := s.(type) {
	case nil:
		e.u8(tagNull)
	case *format.Inline:
		e.u8(streamBytes)
		e.text(s.Name)
		e.blob(s.Data)
	case *format.File:
		if s.Relative {
			if !e.v.HasRelativeFiles() {
				e.fail(format.Errorf(format.ErrUnsupported, "metadata %s cannot store relative files", e.v))
			}
			e.u8(streamRelative)
			e.text(s.Path)
			e.i64(s.Length)
			return
		}
		e.u8(streamFile)
		e.i64(s.Length)
		e.text(s.Path)
	case *format.KeyGroupStream:
		e.u8(streamKeyGroups)
		e.keyGroupOffsets(s.Range, s.Offsets)
		e.stream(s.Data)
	case *format.Segment:
		e.u8(streamSegment)
		e.i64(s.Start)
		e.i64(s.Length)
		e.i32(int32(s.Scope))
		e.text(s.Path)
		e.text(s.LogicalID)
	case *format.EmptySegment:
		e.u8(streamEmptySegment)
	case *format.Chunks:
		e.inlineFrom(s, s.As)
	case *format.Concat:
		e.inlineFrom(s, s.As)
	default:
		e.fail(fmt.Errorf("internal error: a stream of kind %s cannot be stored in _metadata", format.Kind(s)))
	}
}

// inlineFrom writes the bytes of a stream as inline state with the name of as.
func (e *encoder) inlineFrom(s, as format.Stream) {
	in, ok := as.(*format.Inline)
	if !ok || e.src == nil && e.counter == nil {
		e.fail(fmt.Errorf("internal error: a stream of kind %s cannot be stored in _metadata", format.Kind(s)))
		return
	}
	e.u8(streamBytes)
	e.text(in.Name)
	n := s.Size()
	if n < 0 || n > math.MaxInt32 {
		e.fail(format.Errorf(format.ErrUnsupported, "%d bytes of inline state, the format allows %d", n, math.MaxInt32))
		return
	}
	e.i32(int32(n))
	if e.counter != nil {
		*e.counter += countingSink(n)
		return
	}
	for off := int64(0); off < n && e.err == nil; {
		p := e.room(int(n - off))
		_, err := e.src.ReadAt(e.ctx, s, p, off)
		e.fail(err)
		off += int64(len(p))
	}
	e.spill()
}

func (e *encoder) keyGroupOffsets(r format.KeyGroupRange, o format.Offsets) {
	if int(r.Count) != offsetsLen(o) {
		e.fail(format.Errorf(format.ErrCorrupt, "%d offsets for %d key groups", offsetsLen(o), r.Count))
	}
	e.keyGroupRange(r)
	e.offsets(o)
}

func (e *encoder) keyGroupRange(r format.KeyGroupRange) {
	e.i32(r.First)
	e.i32(r.Count)
}

func (e *encoder) operatorHandle(h *format.OperatorHandle) {
	if h == nil {
		e.i32(0)
		return
	}
	e.i32(1)
	if h.Wire == wireNull {
		e.u8(tagNull)
		return
	}
	if h.Merging != nil {
		e.u8(operatorMerged)
	} else {
		e.u8(operatorPlain)
	}
	e.count(len(h.States), "states")
	for i := range h.States {
		st := &h.States[i]
		e.text(st.Name)
		e.u8(byte(st.Mode))
		e.count(offsetsLen(st.Offsets), "offsets")
		e.offsets(st.Offsets)
	}
	if m := h.Merging; m != nil {
		e.text(m.TaskOwnedDir)
		e.text(m.SharedDir)
		if m.Placeholder {
			e.u8(1)
		} else {
			e.u8(0)
		}
	}
	e.stream(h.Data)
}

// tag returns the tag that a keyed handle was read with, or the one that the newest
// release of the version writes, and whether the layout is the short one. A handle may
// come from a file in the other layout.
func (e *encoder) tag(w format.Wire, v2, v3, newest byte) (tag byte, short bool) {
	switch {
	case len(w) > 0:
		tag, short = w[0], len(w) > 1
	case e.v == V2:
		tag = v2
	case e.v == V3:
		tag = v3
	default:
		tag = newest
	}
	if tag != v2 && tag != newest {
		e.fail(format.Errorf(format.ErrCorrupt, "tag %d does not match the kind of the handle", tag))
	}
	if fits := twoLayouts(tag) && e.layout.shortChangelogs; len(w) == 0 {
		short = fits
	} else if short != fits {
		e.fail(format.Errorf(format.ErrUnsupported, "a changelog handle in the layout of Flink %v cannot be stored next to newer ones", layout{shortChangelogs: true}.writer()))
	}
	return tag, short
}

func (e *encoder) keyed(h format.KeyedHandle) {
	switch h := h.(type) {
	case nil:
		e.u8(tagNull)
	case *format.KeyGroups:
		newest := byte(keyedGroups)
		if h.Savepoint {
			newest = keyedSavepoint
			if e.v == V2 && len(h.Wire) == 0 {
				e.fail(format.Errorf(format.ErrUnsupported, "metadata version 2 cannot mark keyed state as canonical, expected version 3 or later"))
			}
		}
		tag, _ := e.tag(h.Wire, keyedGroupsV1, newest, newest)
		e.u8(tag)
		e.keyGroupOffsets(h.Range, h.Offsets)
		e.stream(h.Data)
		if tag == keyedGroups {
			e.text(h.HandleID)
		}
	case *format.Incremental:
		tag, _ := e.tag(h.Wire, keyedIncrementalV1, keyedIncremental, keyedIncremental)
		e.u8(tag)
		e.i64(h.CheckpointID)
		e.text(h.BackendID)
		e.keyGroupRange(h.Range)
		if tag == keyedIncremental {
			e.i64(h.CheckpointedSize)
		}
		e.stream(h.Meta)
		e.named(h.Shared)
		e.named(h.Private)
		if tag == keyedIncremental {
			e.text(h.HandleID)
		}
	case *format.Changelog:
		tag, short := e.tag(h.Wire, keyedChangelogV1, keyedChangelogV1, keyedChangelog)
		e.u8(tag)
		e.keyGroupRange(h.Range)
		if !short {
			e.i64(h.CheckpointedSize)
		}
		e.keyedList(h.Materialized)
		e.keyedList(h.Changes)
		if !short {
			e.i64(h.MaterializationID)
			if tag == keyedChangelog {
				e.i64(h.CheckpointID)
			}
			e.text(h.HandleID)
		}
	case *format.ChangelogMemory:
		_, short := e.tag(h.Wire, keyedMemory, keyedMemory, keyedMemory)
		e.u8(keyedMemory)
		e.keyGroupRange(h.Range)
		e.i64(h.From)
		e.i64(h.To)
		e.count(len(h.Changes), "changes")
		for _, c := range h.Changes {
			e.i32(c.KeyGroup)
			e.blob(c.Data)
		}
		if !short {
			e.text(h.HandleID)
		}
	case *format.ChangelogStream:
		tag, short := e.tag(h.Wire, keyedStreamV1, keyedStreamV1, keyedStream)
		e.u8(tag)
		e.keyGroupRange(h.Range)
		e.count(len(h.Streams), "changelog streams")
		for _, s := range h.Streams {
			e.i64(s.Offset)
			e.stream(s.Data)
		}
		e.i64(h.StateSize)
		if !short {
			e.i64(h.CheckpointedSize)
			e.text(h.HandleID)
		}
		if tag == keyedStream {
			e.text(h.StorageID)
		}
	}
	e.spill()
}

func (e *encoder) named(all []format.NamedStream) {
	e.count(len(all), "files")
	for _, s := range all {
		e.text(s.Name)
		e.stream(s.Data)
	}
}

func (e *encoder) keyedList(all []format.KeyedHandle) {
	e.count(len(all), "handles")
	for _, h := range all {
		e.keyed(h)
	}
}

func (e *encoder) channels(all []*format.ChannelHandle, plain, merged byte) {
	e.count(len(all), "channel handles")
	for _, h := range all {
		e.channel(h, plain, merged)
		e.spill()
	}
}

func (e *encoder) channel(h *format.ChannelHandle, plain, merged byte) {
	if h.Merged {
		if !e.v.hasChannelTypes() {
			e.fail(format.Errorf(format.ErrUnsupported, "metadata %s cannot store merged channel handles", e.v))
		}
		e.u8(merged)
		e.i32(h.Subtask)
		e.i64(h.Size)
		e.stream(h.Data)
		n := int64(4)
		for _, c := range h.Channels {
			n += 20 + 8*int64(offsetsLen(c.Offsets))
		}
		if n > math.MaxInt32 {
			e.fail(fmt.Errorf("%d bytes of packed channels, the format allows %d", n, math.MaxInt32))
		}
		e.i32(int32(n))
		e.count(len(h.Channels), "channels")
		for _, c := range h.Channels {
			e.i32(c.First)
			e.i32(c.Second)
			e.i64(c.Size)
			e.count(offsetsLen(c.Offsets), "offsets")
			e.offsets(c.Offsets)
		}
		return
	}
	if len(h.Channels) != 1 {
		e.fail(format.Errorf(format.ErrCorrupt, "expected one channel in a plain channel handle, found %d", len(h.Channels)))
		return
	}
	if e.v.hasChannelTypes() {
		e.u8(plain)
	}
	if !e.layout.noSubtask {
		e.i32(h.Subtask)
	}
	c := h.Channels[0]
	e.i32(c.First)
	e.i32(c.Second)
	e.count(offsetsLen(c.Offsets), "offsets")
	e.offsets(c.Offsets)
	e.i64(c.Size)
	e.stream(h.Data)
}

// WithVersion returns the savepoint for a newer version of _metadata, in which all
// older tags are valid. It returns ErrUnsupported for an older version, and for a
// savepoint in one of the layouts that a single release wrote.
func WithVersion(sp *format.Savepoint, v Version) (*format.Savepoint, error) {
	if !v.Valid() {
		return nil, unsupported(v)
	}
	fw, ok := parseFileWire(sp.Wire)
	switch {
	case ok && fw.version == v:
		return sp, nil
	case ok && v < fw.version:
		return nil, format.Errorf(format.ErrUnsupported, "cannot rewrite a snapshot with metadata %s to the older %s", fw.version, v)
	case ok && fw.layout != layout{}:
		return nil, format.Errorf(format.ErrUnsupported, "cannot rewrite a snapshot in a layout that only Flink %v wrote to metadata %s", fw.layout.writer(), v)
	}
	if !ok || !fw.version.hasProperties() {
		fw.tail = propertiesFor(sp.Kind)
	}
	if !v.hasProperties() {
		fw.tail = ""
	}
	fw.version = v
	c := *sp
	c.Wire = fw.wire()
	return &c, nil
}

// Trim returns the savepoint without what its version of _metadata cannot store,
// and names it: names and uids, and the kind of snapshot. Only savepoints with
// nodes from another container lose something. It returns sp if nothing is lost.
func Trim(sp *format.Savepoint) (out *format.Savepoint, lost []string) {
	v, ok := VersionOf(sp)
	if !ok {
		v = Latest
	}
	c := *sp
	if !v.hasProperties() && sp.Kind != (format.SnapshotKind{}) {
		c.Kind = format.SnapshotKind{}
		lost = append(lost, lostKind)
	}
	t := &retarget{v: v, lost: lost}
	if !v.hasNames() {
		c.Operators = make([]*format.Operator, len(sp.Operators))
		for i, op := range sp.Operators {
			c.Operators[i] = t.unnamed(op)
		}
	}
	if lost = t.report(); len(lost) == 0 {
		return sp, nil
	}
	return &c, lost
}

// MaxText is the maximum length of an encoded string in _metadata.
const MaxText = math.MaxUint16

// TextSize returns the encoded length of a string in _metadata, without its length
// field.
func TextSize(s string) int { return java.TextSize(format.NewText(s)) - 2 }
