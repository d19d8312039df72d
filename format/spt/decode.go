package spt

import (
	"bytes"
	"errors"
	"math"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt/internal/msg"
	"github.com/savepoint-tools/spt/internal/limit"
)

// manifest is a decoded manifest.
type manifest struct {
	savepoint *format.Savepoint
	table     *table
	streams   []stream
	arrays    []*offsets // all distinct arrays of offsets in chunks
	writer    string
	// referenced is the total size of the chunks of all streams and offset arrays,
	// each counted as often as it is referred to.
	referenced int64
}

// stream is an entry of the stream table.
type stream struct {
	ref  format.Stream // Chunks, or a bare reference
	runs []run
}

// decoder reads a manifest.
type decoder struct {
	cursor
	t      *tables
	file   int64 // start of the manifest in the file
	limits format.Limits
	nodes  int
	depth  int
	refs   int64 // number of chunks named in lists
	lists  map[string]*chunkList
	small  map[string]format.Offsets // arrays in the manifest, by their packed bytes
	arrays map[arrayKey]*offsets
	total  int64 // number of entries of all arrays
	m      *manifest
}

// arrayKey is the identity of an array of offsets in chunks.
type arrayKey struct {
	list *chunkList
	n    int64
}

// decodeManifest decodes a manifest. at is its offset in the file, where the chunks
// end, minor the minor version of the file, and used the part of limits.Memory that
// opening has already taken.
func decodeManifest(raw []byte, at int64, minor uint16, limits format.Limits, used int64) (*manifest, error) {
	d := &decoder{
		cursor: newCursor(raw, minor > Minor, limits.Memory-used, limits.Memory),
		t:      newTables(),
		file:   at,
		limits: limits,
		lists:  make(map[string]*chunkList),
		small:  make(map[string]format.Offsets),
		arrays: make(map[arrayKey]*offsets),
		m:      &manifest{},
	}
	top := d.t.manifest()
	top.read(d, d.m)
	d.end()
	if d.err != nil {
		return nil, format.At(d.err, "manifest")
	}
	return d.m, nil
}

// manifest returns the record of the outermost map. The encoder encodes its fields
// in another order than it stores them, because encoding the tree adds to the
// others.
func (t *tables) manifest() *record[manifest] {
	return &record[manifest]{fields: []field[manifest]{
		required(field[manifest]{key: "chunks", read: func(d *decoder, m *manifest) { m.table = d.table() }}, "the manifest has no chunks"),
		{key: "streams", read: func(d *decoder, m *manifest) { d.streams(m) }},
		required(field[manifest]{key: "tree", read: func(d *decoder, m *manifest) {
			if m.savepoint = alloc[format.Savepoint](d); d.err == nil {
				d.t.savepoint.read(d, m.savepoint)
			}
		}}, "the manifest has no savepoint"),
		{key: "writer", read: func(d *decoder, m *manifest) { m.writer = d.string() }},
	}}
}

// invalid records the error of a rule.
func (d *decoder) invalid(err error) {
	if err == nil {
		return
	}
	var e *format.Error
	if errors.As(err, &e) {
		d.fail(e.Err, "%s", e.Msg)
	} else if d.err == nil {
		d.err = err
	}
}

// enter limits the depth of nested values. If it returns true, the caller must
// decrement d.depth afterwards.
func (d *decoder) enter() bool {
	if d.depth++; d.depth > d.limits.Depth {
		d.fail(limit.Depth, "handles nested more than %d deep", d.limits.Depth)
		return false
	}
	return d.err == nil
}

// chunkTable is the four arrays of the chunk table.
type chunkTable struct{ hashes, kinds, raw, stored []byte }

func (d *decoder) table() *table {
	bins := func(key string, at func(*chunkTable) *[]byte) field[chunkTable] {
		return field[chunkTable]{key: key, read: func(d *decoder, c *chunkTable) { *at(c) = d.bin() }}
	}
	var c chunkTable
	(&record[chunkTable]{fields: []field[chunkTable]{
		bins("hashes", func(c *chunkTable) *[]byte { return &c.hashes }),
		bins("kinds", func(c *chunkTable) *[]byte { return &c.kinds }),
		bins("raw", func(c *chunkTable) *[]byte { return &c.raw }),
		bins("stored", func(c *chunkTable) *[]byte { return &c.stored }),
	}}).read(d, &c)
	// Two 8-byte positions, the kind and the checksum of each.
	d.charge(int64(len(c.kinds)+1) * (8 + 8 + 1 + hashSize))
	if d.err != nil {
		return nil
	}
	t, err := unpackTable(c.stored, c.raw, bytes.Clone(c.kinds), bytes.Clone(c.hashes), d.file, d.limits)
	if err != nil {
		d.invalid(err)
		return nil
	}
	return t
}

// chunkList is a decoded chunk list.
type chunkList struct {
	runs   []run
	chunks int64  // number of chunks
	bytes  int64  // number of raw bytes
	digest string // "": not computed yet
}

// chunkList reads a chunk list and counts its chunks. Replicas of a state have
// equal lists, which share memory.
func (d *decoder) chunkList() *chunkList {
	packed := d.bin()
	if d.err != nil {
		return nil
	}
	l, ok := d.lists[string(packed)]
	if !ok {
		d.charge(mapEntry + int64(len(packed)) + int64(countUvarints(packed)/2)*24)
		if d.err != nil {
			return nil
		}
		l = &chunkList{}
		var err error
		if l.runs, l.chunks, l.bytes, err = d.m.table.unpackRuns(packed); err != nil {
			d.invalid(err)
			return nil
		}
		if d.refs += l.chunks; d.refs > d.limits.ChunkRefs {
			d.fail(limit.ChunkRefs, "chunk lists name more chunks than the limit of %d", d.limits.ChunkRefs)
			return nil
		}
		d.lists[string(packed)] = l
	}
	if d.m.referenced > math.MaxInt64-l.bytes {
		d.fail(format.ErrLimit, "more than 2^63 bytes in chunk lists")
		return nil
	}
	d.m.referenced += l.bytes
	return l
}

// streams reads the stream table.
func (d *decoder) streams(m *manifest) {
	n := 0
	table := record[streamFields]{fields: []field[streamFields]{
		{key: "as", read: func(d *decoder, s *streamFields) { s.as = readKind(d, "a stream", d.t.origins) }},
		{key: "chunks", read: func(d *decoder, s *streamFields) { s.list = d.chunkList() }},
		integer("size", func(s *streamFields) *int64 { return &s.size }, 0, math.MaxInt64),
	}}
	m.streams = readList(d, limit.Nodes, 40, func(d *decoder, s *stream) {
		var f streamFields
		table.read(d, &f)
		*s = d.stream(f, n)
		n++
	})
}

// streamFields are the fields of an entry of the stream table.
type streamFields struct {
	as   format.Stream
	list *chunkList // nil: a bare reference
	size int64
}

func (d *decoder) stream(s streamFields, index int) stream {
	_, empty := s.as.(*format.EmptySegment)
	_, inline := s.as.(*format.Inline)
	stored := s.list != nil
	var bytes int64
	if stored {
		bytes = s.list.bytes
	}
	switch {
	case d.err != nil:
	case !stored && s.as == nil:
		d.fail(format.ErrCorrupt, "a stream with neither as nor chunks")
	case stored && empty:
		d.fail(format.ErrCorrupt, "an empty segment with chunks")
	case !stored && inline:
		d.fail(format.ErrCorrupt, "an inline stream without chunks")
	case s.size != bytes:
		d.fail(format.ErrCorrupt, "a stream of %d bytes whose chunks have %d", s.size, bytes)
	}
	if d.err != nil || !stored {
		return stream{ref: s.as}
	}
	if s.list.digest == "" {
		d.charge(64)
		s.list.digest = d.m.table.digest(s.list.runs)
	}
	c := alloc[format.Chunks](d)
	if d.err != nil {
		return stream{}
	}
	*c = format.Chunks{As: s.as, Length: s.size, Digest: s.list.digest, Index: index}
	return stream{ref: c, runs: s.list.runs}
}

// keyed reads a keyed handle: its kind and its fields.
func (d *decoder) keyed() format.KeyedHandle {
	if !d.enter() {
		return nil
	}
	defer func() { d.depth-- }()
	return readKind(d, "a keyed handle", d.t.keyed)
}

func (d *decoder) keyedOrNil() format.KeyedHandle {
	if d.skipNil() {
		return nil
	}
	return d.keyed()
}

// ref reads a stream: its index in the stream table, or a map for a key-group
// stream.
func (d *decoder) ref() format.Stream {
	if d.isMap() {
		if !d.enter() {
			return nil
		}
		defer func() { d.depth-- }()
		s := alloc[format.KeyGroupStream](d)
		if d.err == nil {
			d.t.keyGroups.read(d, s)
		}
		return s
	}
	n := d.int64()
	if d.err == nil && (n < 0 || n >= int64(len(d.m.streams))) {
		d.fail(format.ErrCorrupt, "stream %d is outside the table of %d", n, len(d.m.streams))
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

// offsets reads an array of offsets: packed, or its length and chunk list. Equal
// arrays share memory.
func (d *decoder) offsets() format.Offsets {
	if code := d.code(); d.err == nil && !msg.IsArray(code) {
		return d.smallOffsets(d.bin())
	}
	if n := d.array(); d.err == nil && n != 2 {
		d.fail(format.ErrCorrupt, "expected offsets of 2 parts, found %d", n)
	}
	n := d.within(1, math.MaxInt64)
	list := d.chunkList()
	if d.err == nil && list.chunks != (n-1)/chunkOffsets+1 {
		d.fail(format.ErrCorrupt, "%d offsets in %d chunks", n, list.chunks)
	}
	if d.err != nil {
		return noOffsets
	}
	key := arrayKey{list, n}
	if o, ok := d.arrays[key]; ok {
		return o
	}
	if d.total > d.limits.Offsets-n {
		d.fail(limit.Offsets, "offset arrays have more entries than the limit of %d", d.limits.Offsets)
		return noOffsets
	}
	d.total += n
	d.charge(mapEntry + 64 + 24) // and its entry in the growing list of arrays
	if d.err != nil {
		return noOffsets
	}
	o := &offsets{n: n, runs: list.runs}
	d.arrays[key] = o
	d.m.arrays = append(d.m.arrays, o)
	return o
}

// sharedOffsets is the packed size up to which equal arrays in the manifest are
// shared.
const sharedOffsets = 4096

func (d *decoder) smallOffsets(packed []byte) format.Offsets {
	if d.err != nil || len(packed) == 0 {
		return noOffsets
	}
	if len(packed) <= sharedOffsets {
		if o, ok := d.small[string(packed)]; ok {
			return o
		}
	}
	n := countUvarints(packed)
	d.charge(24 + 8*int64(n))
	if d.err != nil {
		return noOffsets
	}
	o, err := unpackOffsets(packed)
	if err != nil {
		d.invalid(err)
		return noOffsets
	}
	var shared format.Offsets = o
	if len(packed) <= sharedOffsets && len(d.small) < 1<<16 {
		d.charge(mapEntry + int64(len(packed)))
		d.small[string(packed)] = shared
	}
	return shared
}

// countUvarints returns the number of uvarints in p, which must contain nothing
// else.
func countUvarints(p []byte) (n int) {
	for _, b := range p {
		if b < 0x80 {
			n++
		}
	}
	return n
}
