package spt

import (
	"bytes"
	"math"

	"github.com/savepoint-tools/spt/format"
)

// manifest is what a manifest says.
type manifest struct {
	savepoint *format.Savepoint
	table     *table
	streams   []stream
	arrays    []*offsets // all arrays of offsets in chunks
	writer    string
	// referenced is the sum of all chunks that streams and offsets refer to,
	// each as often as they do.
	referenced int64
}

// stream is an entry of the stream table.
type stream struct {
	ref  format.Stream // what the model holds: Chunks, or a bare reference
	runs []run
}

// maxRefs bounds the chunk lists of all streams together, in chunks; a list
// names many with few bytes. It is 4 for each node of the model.
func maxRefs(l format.Limits) int64 { return 4 * int64(l.Nodes) }

// decoder reads a manifest.
type decoder struct {
	cursor
	limits  format.Limits
	nodes   int
	depth   int
	entries int // of the stream table, so far
	refs    int64
	lists   map[string]chunkList // of streams, by their packed form
	arrays  map[string]chunkList // of offsets
	m       *manifest
}

// decodeManifest reads a manifest that stands at an offset of a file, behind
// its chunks. minor is the file's.
func decodeManifest(raw []byte, at int64, minor uint16, limits format.Limits) (*manifest, error) {
	d := &decoder{
		cursor: newCursor(raw, minor > Minor),
		limits: limits,
		lists:  make(map[string]chunkList),
		arrays: make(map[string]chunkList),
		m:      &manifest{},
	}
	d.fields(func(key string) bool {
		switch key {
		case "chunks":
			d.table(at)
		case "streams":
			// The table is needed to read chunk lists.
			if d.m.table == nil {
				d.fail(format.ErrCorrupt, "streams without chunks")
				break
			}
			d.m.streams = items(d, d.limits.Nodes, d.stream)
		case "tree":
			if d.m.table == nil {
				d.fail(format.ErrCorrupt, "a tree without chunks")
				break
			}
			d.m.savepoint = d.savepoint()
		case "writer":
			d.m.writer = d.str()
		default:
			return false
		}
		return true
	})
	d.end()
	if d.err == nil && d.m.savepoint == nil {
		d.fail(format.ErrCorrupt, "no savepoint in the manifest")
	}
	if d.err != nil {
		return nil, format.At(d.err, "manifest")
	}
	return d.m, nil
}

// items reads an array.
func items[T any](d *decoder, limit int, f func() T) []T {
	n := d.array()
	if n > limit {
		d.fail(format.ErrLimit, "%d of them, over the limit of %d", n, limit)
	}
	if d.nodes += n; d.nodes > d.limits.Nodes {
		d.fail(format.ErrLimit, "more than %d operators, subtasks, handles and streams", d.limits.Nodes)
	}
	if d.err != nil || n == 0 {
		return nil
	}
	// The count is a claim still: an element may take one byte of the manifest
	// and many of memory.
	out := make([]T, 0, min(n, 1024))
	for i := range n {
		v := f()
		if d.err != nil {
			d.err = format.At(d.err, "%d", i)
			return nil
		}
		out = append(out, v)
	}
	return out
}

// enter bounds the depth of nested values; leave with d.depth--.
func (d *decoder) enter() bool {
	if d.depth++; d.depth > d.limits.Depth {
		d.fail(format.ErrLimit, "handles nested deeper than %d", d.limits.Depth)
	}
	return d.err == nil
}

func (d *decoder) table(at int64) {
	var stored, raw, kinds, hashes []byte
	d.fields(func(key string) bool {
		switch key {
		case "hashes":
			hashes = bytes.Clone(d.bin())
		case "kinds":
			kinds = bytes.Clone(d.bin())
		case "raw":
			raw = d.bin()
		case "stored":
			stored = d.bin()
		default:
			return false
		}
		return true
	})
	if d.err != nil {
		return
	}
	t, err := unpackTable(stored, raw, kinds, hashes, at, d.limits)
	if err != nil {
		d.err = err
		return
	}
	d.m.table = t
}

// chunkList is a decoded chunk list.
type chunkList struct {
	runs   []run
	total  int64  // bytes of a stream, chunks of offsets
	digest string // of a stream's list
}

// streamChunks reads the chunk list of a stream.
func (d *decoder) streamChunks() chunkList {
	return d.chunkList(d.lists, d.m.table.bytesOf, d.m.table.digest)
}

// offsetChunks reads the chunk list of an array of offsets.
func (d *decoder) offsetChunks() chunkList {
	return d.chunkList(d.arrays, chunksOf, func([]run) string { return "" })
}

// chunkList reads a chunk list and counts what it refers to. Copies of a state
// have equal lists: they share their memory, and are digested once.
func (d *decoder) chunkList(known map[string]chunkList, size func(run) int64, digest func([]run) string) chunkList {
	packed := d.bin()
	if d.err != nil {
		return chunkList{}
	}
	l, ok := known[string(packed)]
	if !ok {
		if l.runs, l.total, d.err = d.m.table.unpackRuns(packed, size); d.err != nil {
			return chunkList{}
		}
	}
	for _, r := range l.runs {
		d.refs += int64(r.n)
		d.m.referenced += d.m.table.bytesOf(r) // no overflow: limited chunks of limited size
	}
	if d.refs > maxRefs(d.limits) {
		d.fail(format.ErrLimit, "chunk lists of more than %d chunks", maxRefs(d.limits))
		return chunkList{}
	}
	if !ok {
		l.digest = digest(l.runs)
		known[string(packed)] = l
	}
	return l
}

func (d *decoder) stream() stream {
	var (
		as           format.Stream
		list         chunkList
		size         int64
		stored, bare bool
	)
	d.fields(func(key string) bool {
		switch key {
		case "as":
			as = d.origin()
			bare = true
		case "chunks":
			list = d.streamChunks()
			stored, bare = true, false
		case "size":
			size = d.within(0, math.MaxInt64)
		default:
			return false
		}
		return true
	})
	_, empty := as.(*format.EmptySegment)
	_, inline := as.(*format.Inline)
	switch {
	case d.err != nil:
	case !stored && !bare:
		d.fail(format.ErrCorrupt, "a stream from nowhere, without chunks")
	case stored && empty:
		d.fail(format.ErrCorrupt, "an empty segment with chunks")
	case bare && inline:
		d.fail(format.ErrCorrupt, "an inline stream without chunks")
	case size != list.total:
		d.fail(format.ErrCorrupt, "a stream of %d bytes with chunks of %d", size, list.total)
	}
	n := d.entries
	d.entries++
	if d.err != nil || bare {
		return stream{ref: as}
	}
	return stream{ref: &format.Chunks{As: as, Length: size, Digest: list.digest, Index: n}, runs: list.runs}
}

// origin reads what a stream refers to, or where its bytes came from: its kind,
// then its fields.
func (d *decoder) origin() format.Stream {
	if n := d.array(); d.err == nil && n != 2 {
		d.fail(format.ErrCorrupt, "a stream of %d parts", n)
	}
	kind := d.str()
	if d.err != nil {
		return nil
	}
	switch kind {
	case fromInline:
		s := &format.Inline{}
		d.fields(func(key string) bool {
			if key != "name" {
				return false
			}
			s.Name = d.text()
			return true
		})
		return s
	case fromFile:
		s := &format.File{}
		d.fields(func(key string) bool {
			switch key {
			case "length":
				s.Length = d.int64()
			case "path":
				s.Path = d.text()
			case "relative":
				s.Relative = d.bool()
			default:
				return false
			}
			return true
		})
		return s
	case fromSegment:
		s := &format.Segment{}
		d.fields(func(key string) bool {
			switch key {
			case "length":
				s.Length = d.int64()
			case "logical-id":
				s.LogicalID = d.text()
			case "path":
				s.Path = d.text()
			case "scope":
				s.Scope = format.Scope(d.int32())
			case "start":
				s.Start = d.int64()
			default:
				return false
			}
			return true
		})
		return s
	case fromNothing:
		d.fields(func(string) bool { return false })
		return &format.EmptySegment{}
	}
	d.fail(format.ErrUnsupported, "a stream of kind %q", kind)
	return nil
}

func (d *decoder) savepoint() *format.Savepoint {
	sp := &format.Savepoint{}
	d.fields(func(key string) bool {
		switch key {
		case "format":
			sp.Kind.Format = oneOf(d, savepointFormatName)
		case "id":
			sp.ID = d.int64()
		case "location":
			sp.Location = d.str()
		case "masters":
			sp.Masters = items(d, d.limits.Nodes, d.master)
		case "operators":
			sp.Operators = items(d, d.limits.Operators, d.operator)
		case "type":
			sp.Kind.Type = oneOf(d, snapshotTypeName)
		case "wire":
			sp.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	return sp
}

// oneOf reads the name of one of the values that name knows, not the zero one.
func oneOf[T ~uint8](d *decoder, name func(T) (string, bool)) T {
	s := d.str()
	for v := T(1); ; v++ {
		n, ok := name(v)
		if !ok {
			d.fail(format.ErrUnsupported, "the kind %q", s)
			return 0
		}
		if n == s {
			return v
		}
	}
}

func (d *decoder) master() (m format.MasterState) {
	d.fields(func(key string) bool {
		switch key {
		case "data":
			m.Data = d.bytes()
		case "name":
			m.Name = d.text()
		case "version":
			m.Version = d.int32()
		default:
			return false
		}
		return true
	})
	return m
}

func (d *decoder) operator() *format.Operator {
	o := &format.Operator{}
	identified := false
	d.fields(func(key string) bool {
		switch key {
		case "coordinator":
			o.Coordinator = d.ref()
		case "finished":
			o.Finished = d.bool()
		case "id":
			id := d.bin()
			identified = true
			if d.err == nil && len(id) != len(o.ID) {
				d.fail(format.ErrCorrupt, "an operator id of %d bytes", len(id))
			}
			copy(o.ID[:], id)
		case "max-parallelism":
			o.MaxParallelism = d.int32()
		case "name":
			o.Name = d.text()
		case "parallelism":
			o.Parallelism = d.int32()
		case "subtasks":
			o.Subtasks = items(d, d.limits.Subtasks, d.subtask)
		case "uid":
			o.UID = d.text()
		case "wire":
			o.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	if !identified {
		d.fail(format.ErrCorrupt, "an operator without id")
	}
	return o
}

func (d *decoder) subtask() *format.Subtask {
	s := &format.Subtask{}
	d.fields(func(key string) bool {
		switch key {
		case "finished":
			s.Finished = d.bool()
		case "index":
			s.Index = d.int32()
		case "input":
			s.Input = items(d, d.limits.Nodes, d.channels)
		case "legacy":
			s.Legacy = items(d, d.limits.Nodes, d.refOrNil)
		case "managed":
			s.Managed = d.handle()
		case "managed-keyed":
			s.ManagedKeyed = d.keyed()
		case "output":
			s.Output = items(d, d.limits.Nodes, d.channels)
		case "raw":
			s.Raw = d.handle()
		case "raw-keyed":
			s.RawKeyed = d.keyed()
		case "wire":
			s.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	return s
}

func (d *decoder) handle() *format.OperatorHandle {
	h := &format.OperatorHandle{}
	d.fields(func(key string) bool {
		switch key {
		case "codec":
			h.Codec = format.CodecID(d.str())
		case "data":
			h.Data = d.ref()
		case "merging":
			h.Merging = d.merging()
		case "states":
			h.States = items(d, d.limits.Nodes, d.state)
		case "wire":
			h.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	return h
}

func (d *decoder) merging() *format.FileMerging {
	m := &format.FileMerging{}
	d.fields(func(key string) bool {
		switch key {
		case "placeholder":
			m.Placeholder = d.bool()
		case "shared":
			m.SharedDir = d.text()
		case "task-owned":
			m.TaskOwnedDir = d.text()
		default:
			return false
		}
		return true
	})
	return m
}

func (d *decoder) state() (st format.NamedState) {
	d.fields(func(key string) bool {
		switch key {
		case "mode":
			st.Mode = format.Mode(d.within(0, math.MaxUint8))
		case "name":
			st.Name = d.text()
		case "offsets":
			st.Offsets = d.offsets()
		default:
			return false
		}
		return true
	})
	return st
}

func (d *decoder) channels() *format.ChannelHandle {
	h := &format.ChannelHandle{}
	d.fields(func(key string) bool {
		switch key {
		case "channels":
			h.Channels = items(d, d.limits.Nodes, d.channel)
		case "data":
			h.Data = d.ref()
		case "merged":
			h.Merged = d.bool()
		case "size":
			h.Size = d.int64()
		case "subtask":
			h.Subtask = d.int32()
		case "wire":
			h.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	return h
}

func (d *decoder) channel() (c format.Channel) {
	d.fields(func(key string) bool {
		switch key {
		case "first":
			c.First = d.int32()
		case "offsets":
			c.Offsets = d.offsets()
		case "second":
			c.Second = d.int32()
		case "size":
			c.Size = d.int64()
		default:
			return false
		}
		return true
	})
	return c
}

// keyed reads a keyed handle: its kind, then its fields.
func (d *decoder) keyed() format.KeyedHandle {
	if !d.enter() {
		return nil
	}
	defer func() { d.depth-- }()
	if n := d.array(); d.err == nil && n != 2 {
		d.fail(format.ErrCorrupt, "a keyed handle of %d parts", n)
	}
	kind := d.str()
	if d.err != nil {
		return nil
	}
	switch kind {
	case keyKeyGroups:
		return d.keyGroups()
	case keyIncremental:
		return d.incremental()
	case keyChangelog:
		return d.changelog()
	case keyChangelogMemory:
		return d.changelogMemory()
	case keyChangelogStream:
		return d.changelogStream()
	}
	d.fail(format.ErrUnsupported, "a keyed handle of kind %q", kind)
	return nil
}

func (d *decoder) keyedOrNil() format.KeyedHandle {
	if d.skipNil() {
		return nil
	}
	return d.keyed()
}

func (d *decoder) keyGroups() *format.KeyGroups {
	h := &format.KeyGroups{}
	d.fields(func(key string) bool {
		switch key {
		case "codec":
			h.Codec = format.CodecID(d.str())
		case "count":
			h.Range.Count = d.int32()
		case "data":
			h.Data = d.ref()
		case "first":
			h.Range.First = d.int32()
		case "handle-id":
			h.HandleID = d.text()
		case "offsets":
			h.Offsets = d.offsets()
		case "savepoint":
			h.Savepoint = d.bool()
		case "wire":
			h.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	return h
}

func (d *decoder) incremental() *format.Incremental {
	h := &format.Incremental{}
	d.fields(func(key string) bool {
		switch key {
		case "backend-id":
			h.BackendID = d.text()
		case "checkpoint-id":
			h.CheckpointID = d.int64()
		case "checkpointed-size":
			h.CheckpointedSize = d.int64()
		case "count":
			h.Range.Count = d.int32()
		case "first":
			h.Range.First = d.int32()
		case "handle-id":
			h.HandleID = d.text()
		case "meta":
			h.Meta = d.ref()
		case "private":
			h.Private = items(d, d.limits.Nodes, d.named)
		case "shared":
			h.Shared = items(d, d.limits.Nodes, d.named)
		case "wire":
			h.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	return h
}

func (d *decoder) named() (n format.NamedStream) {
	d.fields(func(key string) bool {
		switch key {
		case "data":
			n.Data = d.ref()
		case "name":
			n.Name = d.text()
		default:
			return false
		}
		return true
	})
	return n
}

func (d *decoder) changelog() *format.Changelog {
	h := &format.Changelog{}
	d.fields(func(key string) bool {
		switch key {
		case "changes":
			h.Changes = items(d, d.limits.Nodes, d.keyedOrNil)
		case "checkpoint-id":
			h.CheckpointID = d.int64()
		case "checkpointed-size":
			h.CheckpointedSize = d.int64()
		case "count":
			h.Range.Count = d.int32()
		case "first":
			h.Range.First = d.int32()
		case "handle-id":
			h.HandleID = d.text()
		case "materialization-id":
			h.MaterializationID = d.int64()
		case "materialized":
			h.Materialized = items(d, d.limits.Nodes, d.keyedOrNil)
		case "wire":
			h.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	return h
}

func (d *decoder) changelogMemory() *format.ChangelogMemory {
	h := &format.ChangelogMemory{}
	d.fields(func(key string) bool {
		switch key {
		case "changes":
			h.Changes = items(d, d.limits.Nodes, d.change)
		case "count":
			h.Range.Count = d.int32()
		case "first":
			h.Range.First = d.int32()
		case "from":
			h.From = d.int64()
		case "handle-id":
			h.HandleID = d.text()
		case "to":
			h.To = d.int64()
		case "wire":
			h.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	return h
}

func (d *decoder) change() (c format.Change) {
	d.fields(func(key string) bool {
		switch key {
		case "data":
			c.Data = d.bytes()
		case "key-group":
			c.KeyGroup = d.int32()
		default:
			return false
		}
		return true
	})
	return c
}

func (d *decoder) changelogStream() *format.ChangelogStream {
	h := &format.ChangelogStream{}
	d.fields(func(key string) bool {
		switch key {
		case "checkpointed-size":
			h.CheckpointedSize = d.int64()
		case "count":
			h.Range.Count = d.int32()
		case "first":
			h.Range.First = d.int32()
		case "handle-id":
			h.HandleID = d.text()
		case "state-size":
			h.StateSize = d.int64()
		case "storage-id":
			h.StorageID = d.text()
		case "streams":
			h.Streams = items(d, d.limits.Nodes, d.offsetStream)
		case "wire":
			h.Wire = d.wire()
		default:
			return false
		}
		return true
	})
	return h
}

func (d *decoder) offsetStream() (s format.OffsetStream) {
	d.fields(func(key string) bool {
		switch key {
		case "data":
			s.Data = d.ref()
		case "offset":
			s.Offset = d.int64()
		default:
			return false
		}
		return true
	})
	return s
}

// ref reads a stream: its number in the stream table, or a map for a key-group
// stream.
func (d *decoder) ref() format.Stream {
	if d.isMap() {
		return d.keyGroupStream()
	}
	n := d.int64()
	if d.err == nil && (n < 0 || n >= int64(len(d.m.streams))) {
		d.fail(format.ErrCorrupt, "stream %d of a table of %d", n, len(d.m.streams))
	}
	if d.err != nil {
		return nil
	}
	return d.m.streams[n].ref
}

func (d *decoder) refOrNil() format.Stream {
	if d.skipNil() {
		return nil
	}
	return d.ref()
}

func (d *decoder) keyGroupStream() format.Stream {
	if !d.enter() {
		return nil
	}
	defer func() { d.depth-- }()
	s := &format.KeyGroupStream{}
	d.fields(func(key string) bool {
		switch key {
		case "count":
			s.Range.Count = d.int32()
		case "data":
			s.Data = d.ref()
		case "first":
			s.Range.First = d.int32()
		case "offsets":
			s.Offsets = d.offsets()
		default:
			return false
		}
		return true
	})
	return s
}

// offsets reads an array of offsets: packed, or its length and chunk list.
func (d *decoder) offsets() format.Offsets {
	if code := d.code(); d.err == nil && !isArray(code) {
		p := d.bin()
		if d.err != nil {
			return nil
		}
		small, err := unpackOffsets(p)
		if err != nil {
			d.err = err
			return nil
		}
		return small
	}
	if n := d.array(); d.err == nil && n != 2 {
		d.fail(format.ErrCorrupt, "offsets of %d parts", n)
	}
	n := d.within(1, math.MaxInt64)
	list := d.offsetChunks()
	if d.err == nil && list.total != (n-1)/chunkOffsets+1 {
		d.fail(format.ErrCorrupt, "%d offsets in %d chunks", n, list.total)
	}
	if d.err != nil {
		return nil
	}
	o := &offsets{n: n, runs: list.runs}
	d.m.arrays = append(d.m.arrays, o)
	return o
}
