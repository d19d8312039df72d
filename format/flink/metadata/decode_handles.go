package metadata

import (
	"encoding/binary"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/internal/limit"
)

// Tags. Three sets of tags share the numbers; the position in the file decides (spec
// flink-metadata 2). Wire format: never change.
const (
	tagNull = 0

	// Streams (5.1).
	streamBytes        = 1  // name utf, data i4+n
	streamFile         = 2  // size i8, path utf
	streamKeyGroups    = 3  // first i4, n i4, n × offset i8, stream
	streamRelative     = 6  // path utf, size i8
	streamSegment      = 15 // start i8, size i8, scope i4, path utf, logical id utf
	streamEmptySegment = 16 // nothing

	// Operator state (5.2): n i4, n × (name utf, mode u1, k i4, k × offset i8),
	// [17: taskOwned utf, shared utf, placeholder bool,] stream.
	operatorPlain  = 4
	operatorMerged = 17

	// Keyed state (5.3); range = first i4, n i4.
	keyedGroupsV1      = 3  // range, n × offset i8, stream
	keyedSavepoint     = 7  // as 3
	keyedGroups        = 12 // as 3, handleId utf
	keyedIncrementalV1 = 5  // checkpointId i8, backendId utf, range, meta stream, shared, private
	keyedIncremental   = 11 // as 5, with checkpointedSize i8 after range and handleId utf at the end
	keyedChangelogV1   = 8  // range, [checkpointedSize i8,] handles, handles[, materializationId i8, handleId utf]
	keyedChangelog     = 14 // as 8 (long), with checkpointId i8 before handleId
	keyedMemory        = 9  // range, from i8, to i8, n × (keyGroup i4, data i4+n)[, handleId utf]
	keyedStreamV1      = 10 // range, n × (offset i8, stream), stateSize i8[, checkpointedSize i8, handleId utf]
	keyedStream        = 13 // as 10 (long), storageId utf

	// Channels, version 6 (5.4).
	channelInput        = 1
	channelOutput       = 2
	channelInputMerged  = 3
	channelOutputMerged = 4
)

const vendorHint = "damaged, or written by a fork of Flink with its own formats"

// stream reads a stream handle. It returns nil for null and after an error.
func (d *decoder) stream(depth int) format.Stream {
	s := d.streamHandle(depth)
	if d.Err() != nil {
		return nil
	}
	return s
}

func (d *decoder) streamHandle(depth int) format.Stream {
	d.node()
	off := d.Offset()
	if depth > d.limits.Depth {
		d.Fail(off, limit.Depth, "streams nested more than %d deep", d.limits.Depth)
	}
	tag := d.U8()
	if d.Err() != nil {
		return nil
	}
	switch tag {
	case tagNull:
		return nil
	case streamBytes:
		s := d.arena.inline()
		s.Name = d.Text()
		s.Data = d.view(d.Blob("inline state"))
		return s
	case streamFile:
		s := &format.File{}
		s.Length = d.I64()
		s.Path = d.Text()
		return s
	case streamRelative:
		if !d.v.HasRelativeFiles() {
			d.Fail(off, format.ErrCorrupt, "tag %d of a stream handle is not in metadata %s: %s", tag, d.v, vendorHint)
			return nil
		}
		s := &format.File{Relative: true}
		s.Path = d.Text()
		s.Length = d.I64()
		return s
	case streamKeyGroups:
		s := &format.KeyGroupStream{}
		s.Range, s.Offsets = d.keyGroupOffsets()
		s.Data = d.stream(depth + 1)
		return s
	case streamSegment:
		s := &format.Segment{Start: d.I64(), Length: d.I64()}
		at := d.Offset()
		s.Scope = format.Scope(d.I32())
		if s.Scope != format.ScopeExclusive && s.Scope != format.ScopeShared {
			d.Fail(at, format.ErrCorrupt, "expected scope 0 or 1 of a segment, found %d", s.Scope)
		}
		s.Path = d.Name()
		s.LogicalID = d.Text()
		return s
	case streamEmptySegment:
		return &format.EmptySegment{}
	}
	d.Fail(off, format.ErrCorrupt, "unknown tag %d of a stream handle (known: 0, 1, 2, 3, 6, 15, 16): %s", tag, vendorHint)
	return nil
}

// offsets returns n offsets as a view.
func (d *decoder) offsets(n int) format.Offsets {
	o := d.arena.offsets()
	o.Data = d.view(d.Bytes(n*8, "offsets"))
	return o
}

func (d *decoder) operatorHandle(codec format.CodecID) (*format.OperatorHandle, error) {
	d.node()
	off := d.Offset()
	tag := d.U8()
	h := d.arena.handle()
	h.Codec = codec
	switch tag {
	case operatorPlain, operatorMerged:
	case tagNull: // Flink reads it, but does not write it
		h.Wire = wireNull
		return h, d.Err()
	default:
		d.Fail(off, format.ErrCorrupt, "unknown tag %d of an operator state handle (known: 0, 4, 17): %s", tag, vendorHint)
	}
	n := d.Count("states", 7)
	if n > 0 {
		h.States = make([]format.NamedState, 0, min(n, 1024))
	}
	for i := range n {
		d.node()
		off := d.Offset()
		var st format.NamedState
		st.Name = d.Name()
		modeAt := d.Offset()
		st.Mode = format.Mode(d.U8())
		if st.Mode > format.ModeBroadcast {
			d.Fail(modeAt, format.ErrCorrupt, "expected mode 0 (list), 1 (union) or 2 (broadcast), found %d", uint8(st.Mode))
		}
		k := d.Count("offsets", 8)
		st.Offsets = d.offsets(k)
		if d.hasState(h.States, st.Name) {
			d.Fail(off, format.ErrCorrupt, "duplicate state name")
		}
		if err := d.Err(); err != nil {
			if st.Name.String() == "" {
				return nil, format.At(err, "state[%d]", i)
			}
			return nil, format.At(err, "state %q", st.Name)
		}
		h.States = append(h.States, st)
	}
	if tag == operatorMerged {
		m := &format.FileMerging{TaskOwnedDir: d.Name(), SharedDir: d.Name()}
		m.Placeholder = d.Bool("the placeholder flag")
		h.Merging = m
	}
	at := d.Offset()
	h.Data = d.stream(0)
	if tag == operatorMerged && d.Err() == nil {
		switch h.Data.(type) {
		case *format.Segment, *format.EmptySegment:
		default:
			d.Fail(at, format.ErrCorrupt, "the stream of a handle of file merging is not a segment")
		}
	}
	return h, d.Err()
}

// hasState reports whether one of the states, which precede it in the handle, has
// the name. Handles have tens of states at most; the set bounds the cost of a
// hostile one. Names are equal if Java reads them as equal, whatever their bytes
// are.
func (d *decoder) hasState(states []format.NamedState, name format.Text) bool {
	const few = 64
	if len(states) < few {
		for i := range states {
			if states[i].Name.String() == name.String() {
				return true
			}
		}
		return false
	}
	if len(states) == few {
		d.arena.stateNames = map[string]bool{}
		for i := range states {
			d.arena.stateNames[states[i].Name.String()] = true
		}
	}
	had := d.arena.stateNames[name.String()]
	d.arena.stateNames[name.String()] = true
	return had
}

func (d *decoder) keyGroupRange() format.KeyGroupRange {
	r := format.KeyGroupRange{First: d.I32()}
	off := d.Offset()
	r.Count = d.I32()
	if r.Count < 0 {
		d.Fail(off, format.ErrCorrupt, "invalid range of %d key groups", r.Count)
	}
	return r
}

func (d *decoder) keyGroupOffsets() (format.KeyGroupRange, format.Offsets) {
	off := d.Offset() + 4
	r := d.keyGroupRange()
	d.CheckCount(off, int(r.Count), "key groups", 8)
	return r, d.offsets(int(r.Count))
}

// keyed reads a keyed handle or null.
func (d *decoder) keyed(codec format.CodecID, depth int) (format.KeyedHandle, error) {
	d.node()
	off := d.Offset()
	if depth > d.limits.Depth {
		d.Fail(off, limit.Depth, "handles nested more than %d deep", d.limits.Depth)
	}
	tag := d.U8()
	if err := d.Err(); err != nil {
		return nil, err
	}
	wire := tagWire(tag, false)
	switch tag {
	case tagNull:
		return nil, nil
	case keyedGroupsV1, keyedSavepoint, keyedGroups:
		h := d.arena.keyGroups()
		h.Codec, h.Savepoint, h.Wire = codec, tag == keyedSavepoint, wire
		h.Range, h.Offsets = d.keyGroupOffsets()
		h.Data = d.stream(0)
		if tag == keyedGroups {
			h.HandleID = d.Text()
		}
		return h, d.Err()
	case keyedIncrementalV1, keyedIncremental:
		return d.incremental(tag, wire)
	case keyedChangelogV1, keyedChangelog:
		return d.changelog(tag, codec, depth)
	case keyedMemory:
		return d.changelogMemory()
	case keyedStreamV1, keyedStream:
		return d.changelogStream(tag)
	}
	d.Fail(off, format.ErrCorrupt, "unknown tag %d of a keyed state handle (known: 0, 3, 5, 7–14): %s", tag, vendorHint)
	return nil, d.Err()
}

func (d *decoder) incremental(tag byte, wire format.Wire) (format.KeyedHandle, error) {
	h := &format.Incremental{Wire: wire, CheckpointedSize: -1}
	h.CheckpointID = d.I64()
	h.BackendID = d.Name()
	h.Range = d.keyGroupRange()
	if tag == keyedIncremental {
		h.CheckpointedSize = d.I64()
	}
	if err := d.Err(); err != nil {
		return h, err
	}
	h.Meta = d.stream(0)
	if err := d.Err(); err != nil {
		return h, format.At(err, "meta")
	}
	var err error
	if h.Shared, err = d.named(); err != nil {
		return h, format.At(err, "shared")
	}
	if h.Private, err = d.named(); err != nil {
		return h, format.At(err, "private")
	}
	if tag == keyedIncremental {
		h.HandleID = d.Text()
	}
	return h, d.Err()
}

func (d *decoder) named() ([]format.NamedStream, error) {
	n := d.Count("files", 3)
	var all []format.NamedStream
	for i := range n {
		s := format.NamedStream{Name: d.Name()}
		s.Data = d.stream(0)
		if err := d.Err(); err != nil {
			if s.Name.String() == "" {
				return nil, format.At(err, "file[%d]", i)
			}
			return nil, format.At(err, "%q", s.Name)
		}
		all = append(all, s)
	}
	return all, d.Err()
}

func (d *decoder) changelog(tag byte, codec format.CodecID, depth int) (format.KeyedHandle, error) {
	short := d.short(tag)
	h := &format.Changelog{Wire: tagWire(tag, short), CheckpointedSize: -1}
	h.Range = d.keyGroupRange()
	if !short {
		h.CheckpointedSize = d.I64()
	}
	var err error
	if h.Materialized, err = d.keyedList("materialized handles", codec, depth); err != nil {
		return h, err
	}
	off := d.Offset()
	if h.Changes, err = d.keyedList("changelog handles", codec, depth); err != nil {
		return h, err
	}
	for _, c := range h.Changes {
		switch c.(type) {
		case nil, *format.ChangelogMemory, *format.ChangelogStream:
		default:
			d.Fail(off, format.ErrCorrupt, "expected a changelog handle in a list of changelogs")
		}
	}
	if !short {
		h.MaterializationID = d.I64()
		h.CheckpointID = h.MaterializationID
		if tag == keyedChangelog {
			h.CheckpointID = d.I64()
		}
		h.HandleID = d.Text()
	}
	return h, d.Err()
}

// short reports whether a changelog handle is in the short layout.
func (d *decoder) short(tag byte) bool {
	if !twoLayouts(tag) {
		return false
	}
	d.met.shortChangelogs = true
	return d.layout.shortChangelogs
}

// twoLayouts reports whether handles with the tag have a short and a long layout.
func twoLayouts(tag byte) bool {
	return tag == keyedChangelogV1 || tag == keyedMemory || tag == keyedStreamV1
}

func (d *decoder) keyedList(what string, codec format.CodecID, depth int) ([]format.KeyedHandle, error) {
	n := d.Count(what, 1)
	var all []format.KeyedHandle
	for i := range n {
		h, err := d.keyed(codec, depth+1)
		if err != nil {
			return nil, format.At(err, "%s[%d]", what, i)
		}
		all = append(all, h)
	}
	return all, d.Err()
}

func (d *decoder) changelogMemory() (format.KeyedHandle, error) {
	short := d.short(keyedMemory)
	h := &format.ChangelogMemory{Wire: tagWire(keyedMemory, short)}
	h.Range = d.keyGroupRange()
	h.From = d.I64()
	h.To = d.I64()
	n := d.Count("changes", 8)
	for range n {
		d.node()
		c := format.Change{KeyGroup: d.I32()}
		c.Data = d.view(d.Blob("a change"))
		if d.Err() != nil {
			break
		}
		h.Changes = append(h.Changes, c)
	}
	if !short {
		h.HandleID = d.Text()
	}
	return h, d.Err()
}

func (d *decoder) changelogStream(tag byte) (format.KeyedHandle, error) {
	short := d.short(tag)
	h := &format.ChangelogStream{Wire: tagWire(tag, short), CheckpointedSize: -1}
	h.Range = d.keyGroupRange()
	n := d.Count("changelog streams", 9)
	for range n {
		s := format.OffsetStream{Offset: d.I64()}
		s.Data = d.stream(0)
		if d.Err() != nil {
			break
		}
		h.Streams = append(h.Streams, s)
	}
	h.StateSize = d.I64()
	if !short {
		h.CheckpointedSize = d.I64()
		h.HandleID = d.Text()
	}
	if tag == keyedStream {
		h.StorageID = d.Name()
	}
	return h, d.Err()
}

// channels reads the list of input or output channel handles.
func (d *decoder) channels(input bool) ([]*format.ChannelHandle, error) {
	minSize := 25
	switch {
	case d.v.hasChannelTypes():
		minSize = 18
	case d.layout.noSubtask:
		minSize = 21
	}
	n := d.Count("channel handles", minSize)
	if n > 0 || d.Err() != nil {
		d.met.noSubtask = true
	}
	var all []*format.ChannelHandle
	for i := range n {
		h := d.channel(input)
		if err := d.Err(); err != nil {
			return nil, format.At(err, "channel handle[%d]", i)
		}
		all = append(all, h)
	}
	return all, d.Err()
}

func (d *decoder) channel(input bool) *format.ChannelHandle {
	d.node()
	if d.v.hasChannelTypes() {
		off := d.Offset()
		plain, merged := byte(channelInput), byte(channelInputMerged)
		if !input {
			plain, merged = channelOutput, channelOutputMerged
		}
		switch t := d.U8(); t {
		case plain:
		case merged:
			return d.mergedChannel()
		default:
			d.Fail(off, format.ErrCorrupt, "expected type %d or %d of a channel handle, found %d: %s", plain, merged, t, vendorHint)
		}
	}
	h := &format.ChannelHandle{Subtask: -1}
	if !d.layout.noSubtask {
		h.Subtask = d.I32()
	}
	ch := format.Channel{First: d.I32(), Second: d.I32()}
	ch.Offsets = d.offsets(d.Count("offsets", 8))
	ch.Size = d.I64()
	h.Size = ch.Size
	h.Channels = []format.Channel{ch}
	off := d.Offset()
	h.Data = d.stream(0)
	if d.v.hasLayouts() && d.Err() == nil {
		// With null and placeholders, one byte each, a truncated record could be
		// read as one of the other layout. Flink does not write them here.
		switch h.Data.(type) {
		case *format.Inline, *format.File:
		default:
			d.Fail(off, format.ErrCorrupt, "expected the state of a channel inline or in a file")
		}
	}
	return h
}

// mergedChannel reads subtask i4, size i8, stream, packed i4+n; packed is
// n i4, n × (first i4, second i4, size i8, k i4, k × offset i8).
func (d *decoder) mergedChannel() *format.ChannelHandle {
	h := &format.ChannelHandle{Merged: true}
	h.Subtask = d.I32()
	h.Size = d.I64()
	h.Data = d.stream(0)
	packed := d.Blob("packed channels")
	base := d.Offset() - len(packed)
	if d.Err() != nil {
		return h
	}
	c := java.NewCursor(packed)
	n := c.Count("packed channels", 20)
	for range n {
		d.node()
		ch := format.Channel{First: c.I32(), Second: c.I32(), Size: c.I64()}
		k := c.Count("offsets", 8)
		from := base + c.Offset()
		c.Bytes(k*8, "offsets")
		if c.Err() != nil || d.Err() != nil {
			break
		}
		o := d.arena.offsets()
		o.Data = d.bytes.Slice(from, from+k*8)
		ch.Offsets = o
		h.Channels = append(h.Channels, ch)
	}
	if n := c.Remaining(); n > 0 {
		c.Fail(c.Offset(), format.ErrCorrupt, "%d bytes after the end of packed channels", n)
	}
	d.Adopt(c, base)
	return h
}

// wireNull marks an operator handle that is null, as opposed to a missing one.
const wireNull format.Wire = "\x00"

// tagWires holds one string per tag, so that the Wire of a handle is not allocated.
var tagWires = func() (w [2][32]format.Wire) {
	for tag := range w[0] {
		w[0][tag] = format.Wire([]byte{byte(tag)})
		w[1][tag] = format.Wire([]byte{byte(tag), 'a'})
	}
	return w
}()

// tagWire returns the Wire of a keyed handle: its tag, and 'a' for the short layout.
func tagWire(tag byte, short bool) format.Wire {
	if int(tag) >= len(tagWires[0]) {
		return ""
	}
	if short {
		return tagWires[1][tag]
	}
	return tagWires[0][tag]
}

// operatorWire is the Wire of an operator: the unused chain length of version 2,
// and the negative count of a finished one; "" for 1 and -1.
type operatorWire struct{ chainLength, subtaskCount int32 }

func (w operatorWire) wire() format.Wire {
	if w.chainLength == 1 && w.subtaskCount == -1 {
		return ""
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(w.chainLength))
	return format.Wire(binary.BigEndian.AppendUint32(b, uint32(w.subtaskCount)))
}

func parseOperatorWire(w format.Wire) operatorWire {
	if len(w) != 8 {
		return operatorWire{chainLength: 1, subtaskCount: -1}
	}
	return operatorWire{
		chainLength:  int32(binary.BigEndian.Uint32([]byte(w[:4]))),
		subtaskCount: int32(binary.BigEndian.Uint32([]byte(w[4:]))),
	}
}

// durationWire is the Wire of a version 2 subtask whose unused duration field is
// not -1.
func durationWire(duration int64) format.Wire {
	return format.Wire(binary.BigEndian.AppendUint64(nil, uint64(duration)))
}

func parseDurationWire(w format.Wire) int64 {
	if len(w) != 8 {
		return -1
	}
	return int64(binary.BigEndian.Uint64([]byte(w)))
}
