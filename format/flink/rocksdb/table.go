package rocksdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Options bound the memory of a reader. The zero value is ready to use.
type Options struct {
	// MaxBlock is the limit for the bytes of one block once decompressed, of the
	// range tombstones of one table, and of a joined value. A block is larger than
	// 4 KiB only if a value is. 0 means 64 MiB + 16 times the size of the table, at
	// most 1 GiB.
	MaxBlock int64
}

func (o Options) most(size int64) int64 {
	if o.MaxBlock > 0 {
		return o.MaxBlock
	}
	return min(1<<30, 64<<20+16*min(size, 1<<40))
}

// Table is a table of a database: one .sst file. It is safe for concurrent use.
type Table struct {
	Format   uint32 // version, 0 to 7
	Checksum Checksum
	Size     int64 // bytes of the file
	Properties

	src    format.Source
	s      format.Stream
	o      Options
	foot   footer
	meta   map[string]handle
	dict   *dictionary
	layout layout
	levels int    // of the index: 1 or 2
	index  []byte // the top one
	// ingested: all entries have the sequence number global.
	ingested bool
	global   uint64
}

// Names in the metaindex. Wire format: never change.
const (
	metaProperties    = "rocksdb.properties"
	metaPropertiesOld = "rocksdb.stats"
	metaRanges        = "rocksdb.range_del"
	metaDictionary    = "rocksdb.compression_dict"
	metaIndex         = "rocksdb.index"
	metaPartitions    = "partitionedfilter." // then the name of the filter
)

// Types of an index. Wire format: never change.
const (
	indexBinary   = 0
	indexHash     = 1 // as 0; its prefixes are stored elsewhere
	indexTwoLevel = 2
	indexFirstKey = 3
)

// tailSize is the number of bytes at the end of a table that are read first: mostly
// enough for all but a large index.
const tailSize = 16 << 10

// OpenTable reads the footer, the properties and the top index of a table.
func OpenTable(ctx context.Context, src format.Source, s format.Stream, o Options) (*Table, error) {
	return openTable(ctx, src, s, o, unknownSequence)
}

// openTable opens a table; largest is the sequence number that the database records
// for it, or unknownSequence.
func openTable(ctx context.Context, src format.Source, s format.Stream, o Options, largest uint64) (*Table, error) {
	size, err := format.StreamSize(ctx, src, s)
	if err != nil {
		return nil, err
	}
	t := &Table{Size: size, src: src, s: s, o: o, dict: plain}
	r := t.blocks(ctx)
	r.end = size
	n := min(size, tailSize)
	tail, err := r.bytes(size-n, n)
	if err != nil {
		return nil, err
	}
	if t.foot, err = readFooter(tail, size); err != nil {
		return nil, err
	}
	t.Format, t.Checksum, r.end = t.foot.version, t.foot.checksum, t.foot.at
	if err := t.readMeta(r); err != nil {
		return nil, err
	}
	if err := t.readIndex(r); err != nil {
		return nil, err
	}
	return t, t.setGlobal(largest)
}

func (t *Table) blocks(ctx context.Context) *blocks {
	return &blocks{ctx: ctx, src: t.src, s: t.s, end: t.foot.at, most: t.o.most(t.Size), f: &t.foot, dict: t.dict, last: -1}
}

// readMeta reads the metaindex, the properties and the compression dictionary.
func (t *Table) readMeta(r *blocks) error {
	p, err := r.load(t.foot.metaindex)
	if err != nil {
		return format.At(err, "metaindex")
	}
	var b block
	if err := b.init(p); err != nil {
		return format.At(atBlock(err, t.foot.metaindex), "metaindex")
	}
	t.meta = map[string]handle{}
	for b.next() {
		h, n, ok := readHandle(b.value)
		if !ok || n != len(b.value) || !h.within(t.foot.at) {
			b.fail("the handle of %q is not valid", cut(string(b.key)))
			break
		}
		t.meta[string(b.key)] = h
	}
	if b.err != nil {
		return format.At(atBlock(b.err, t.foot.metaindex), "metaindex")
	}
	h, ok := t.meta[metaProperties]
	if !ok {
		h, ok = t.meta[metaPropertiesOld]
	}
	if ok {
		if err := t.readProperties(r, h); err != nil {
			return format.At(err, "properties")
		}
	}
	if h, ok := t.meta[metaDictionary]; ok {
		p, err := r.load(h)
		if err != nil {
			return format.At(err, "compression dictionary")
		}
		t.dict = &dictionary{data: bytes.Clone(p)}
		r.dict = t.dict
	}
	return nil
}

func (t *Table) readProperties(r *blocks, h handle) error {
	p, err := r.load(h)
	if err != nil {
		if p, err = t.withoutGlobal(r, h, err); err != nil {
			return err
		}
	}
	if t.Properties, err = readProperties(p); err != nil {
		return atBlock(err, h)
	}
	if c := t.Comparator; c != "" && c != Comparator {
		return format.Errorf(format.ErrUnsupported, "keys in the order of comparator %q", c)
	}
	return nil
}

// withoutGlobal returns the block of properties if it is valid with sequence number
// 0: RocksDB changes the number of an ingested table in place, and not the checksum.
func (t *Table) withoutGlobal(r *blocks, h handle, err error) ([]byte, error) {
	if !h.within(r.end) {
		return nil, err
	}
	p, rerr := r.bytes(int64(h.off), int64(h.size)+trailerSize)
	if rerr != nil || p[h.size] != byte(CompressionNone) {
		return nil, err
	}
	var b block
	if b.init(p[:h.size]) != nil {
		return nil, err
	}
	for b.next() {
		if string(b.key) != propGlobal || len(b.value) != 8 {
			continue
		}
		stored := bytes.Clone(b.value)
		clear(b.value)
		wrong := r.check(p, h)
		copy(b.value, stored)
		if wrong != nil {
			return nil, err
		}
		return p[:h.size:h.size], nil
	}
	return nil, err
}

// readIndex reads the top index.
func (t *Table) readIndex(r *blocks) error {
	h := t.foot.index
	if t.foot.version >= contextFormat {
		var ok bool
		if h, ok = t.meta[metaIndex]; !ok {
			return corrupt("a table without an index")
		}
	}
	kind := uint32(indexBinary)
	if v, ok := t.All[propIndexType]; ok {
		if len(v) != 4 {
			return corrupt("property %s has %d bytes", propIndexType, len(v))
		}
		kind = binary.LittleEndian.Uint32([]byte(v))
	}
	t.levels = 1
	switch kind {
	case indexBinary, indexHash:
	case indexTwoLevel:
		t.levels = 2
	case indexFirstKey:
		t.layout.first = true
	default:
		return format.Errorf(format.ErrUnsupported, "an index of type %d", kind)
	}
	t.layout.tail = trailer
	user, err := t.flag(propIndexUser)
	if err != nil {
		return err
	}
	if user {
		t.layout.tail = 0
	}
	if t.layout.delta, err = t.flag(propIndexDelta); err != nil {
		return err
	}
	p, err := r.load(h)
	if err != nil {
		return format.At(err, "index")
	}
	t.index = bytes.Clone(p)
	return nil
}

// Sequence numbers have 56 bits.
const (
	maxSequence     = 1<<56 - 1
	unknownSequence = math.MaxUint64
)

// setGlobal determines the sequence number of a table that was written outside the
// database and ingested: all its entries have the one in its properties or, if that
// is 0, the one that the database records.
func (t *Table) setGlobal(largest uint64) error {
	version, external := t.All[propExternal]
	stored, has := t.All[propGlobal]
	if !external {
		if has {
			return corrupt("a sequence number for all entries without a version")
		}
		return nil
	}
	if len(version) != 4 || has && len(stored) != 8 {
		return corrupt("the properties of an ingested table are not valid")
	}
	switch v := binary.LittleEndian.Uint32([]byte(version)); {
	case v == 1 && !has:
		return nil
	case v < 2:
		return corrupt("an ingested table of version %d", v)
	}
	if has {
		t.global = binary.LittleEndian.Uint64([]byte(stored))
	}
	if largest != unknownSequence {
		if t.global == 0 {
			t.global = largest
		}
		if t.global != largest {
			return corrupt("expected sequence number %d of an ingested table, found %d", largest, t.global)
		}
	}
	if t.global > maxSequence {
		return corrupt("sequence number %d of an ingested table", t.global)
	}
	t.ingested = true
	return nil
}

// Kind is the kind of an entry in a table.
type Kind uint8

// The kinds of entries that are read. Wire format: never change.
const (
	KindDelete       Kind = 0
	KindPut          Kind = 1
	KindMerge        Kind = 2 // the value is an operand
	KindSingleDelete Kind = 7
	kindRange        Kind = 15 // in the block of range tombstones only
)

// kinds are the names of all kinds of RocksDB; those that are not read are marked.
var kinds = map[Kind]struct {
	name string
	read bool
}{
	KindDelete: {"delete", true}, KindPut: {"put", true}, KindMerge: {"merge operand", true}, KindSingleDelete: {"single delete", true},
	0x11: {"reference to a blob file", false}, 0x14: {"delete with timestamp", false}, 0x16: {"wide columns", false}, 0x18: {"put with write time", false},
}

// TableEntry is one entry of a table. Key and Value are valid until the next call of
// the cursor.
type TableEntry struct {
	Key      []byte // user key
	Sequence uint64
	Kind     Kind
	Value    []byte
}

// TableCursor walks the entries of one table: keys ascend, and of one key the newest
// entry comes first. Range tombstones are not among them; see [Table.Ranges].
type TableCursor struct {
	t    *Table
	r    *blocks
	top  index
	low  index // of the current partition, if the index has two levels
	part []byte
	b    block
	at   handle
	err  error

	first        bool        // no entry was looked at yet; for the caller
	loads, parts int64       // data blocks and index blocks read
	compression  Compression // of the data block

	// The current entry.
	key   []byte
	trail uint64
	value []byte
}

// Scan returns a cursor on the entries whose key is at least from; nil means all.
func (t *Table) Scan(ctx context.Context, from []byte) *TableCursor {
	c := t.cursor(ctx)
	if from != nil {
		c.seek(from)
	}
	return c
}

// cursor returns a cursor before the first entry.
func (t *Table) cursor(ctx context.Context) *TableCursor {
	c := &TableCursor{t: t, r: t.blocks(ctx), first: true}
	c.b.tail = trailer
	l := t.layout
	if t.levels == 2 {
		l.first = false
	}
	if err := c.top.start(t.index, l, 0); err != nil {
		c.err = format.At(err, "index")
	}
	return c
}

// Next returns the next entry, or io.EOF at the end. After an error it returns that
// error again.
func (c *TableCursor) Next() (TableEntry, error) {
	if !c.next() {
		return TableEntry{}, c.err
	}
	return TableEntry{Key: c.key, Sequence: c.trail >> 8, Kind: Kind(c.trail), Value: c.value}, nil
}

// seek moves before the first entry whose user key is at least target.
func (c *TableCursor) seek(target []byte) {
	if c.err != nil {
		return
	}
	found := c.top.seek(target)
	if found && c.t.levels == 2 {
		if !c.partition() {
			return
		}
		found = c.low.seek(target)
		for !found && c.low.err == nil && c.top.next() {
			// Its keys are all greater.
			if !c.partition() {
				return
			}
			found = c.low.next()
		}
	}
	if !found {
		c.end()
		return
	}
	if !c.open() {
		return
	}
	if c.b.seek(target) {
		c.b.back = true
	} else if c.b.err != nil {
		c.fail(c.b.err)
	}
}

// next moves to the next entry. It returns false at the end, with io.EOF, and after
// an error.
func (c *TableCursor) next() bool {
	for {
		if c.b.back {
			c.b.back = false
		} else if !c.b.next() {
			if c.b.err != nil {
				return c.fail(atBlock(c.b.err, c.at))
			}
			if c.err != nil || !c.advance() {
				return false
			}
			continue
		}
		n := len(c.b.key) - trailer
		c.key, c.trail, c.value = c.b.key[:n:n], binary.LittleEndian.Uint64(c.b.key[n:]), c.b.value
		if c.trail&0xff > uint64(KindMerge) && Kind(c.trail) != KindSingleDelete {
			return c.fail(atBlock(errKind(Kind(c.trail)), c.at))
		}
		if c.t.ingested {
			c.trail = c.t.global<<8 | c.trail&0xff
		}
		return true
	}
}

func errKind(k Kind) error {
	if known, ok := kinds[k]; ok {
		return format.Errorf(format.ErrUnsupported, "an entry of kind 0x%02x (%s)", uint8(k), known.name)
	}
	return corrupt("an entry of unknown kind 0x%02x", uint8(k))
}

// advance moves to the next data block.
func (c *TableCursor) advance() bool {
	if c.t.levels == 1 {
		return (c.top.next() || c.end()) && c.open()
	}
	for !c.low.next() {
		if c.low.err != nil || !c.top.next() {
			return c.end()
		}
		if !c.partition() {
			return false
		}
	}
	return c.open()
}

// lowest returns the index whose entries are data blocks.
func (c *TableCursor) lowest() *index {
	if c.t.levels == 2 {
		return &c.low
	}
	return &c.top
}

// partition loads the index block to which the top index points.
func (c *TableCursor) partition() bool {
	p, err := c.r.load(c.top.at)
	if err != nil {
		return c.fail(format.At(err, "index"))
	}
	c.parts++
	c.part = append(c.part[:0], p...)
	if err := c.low.start(c.part, c.t.layout, c.low.least); err != nil {
		return c.fail(format.At(atBlock(err, c.top.at), "index"))
	}
	return true
}

// open loads the data block to which the index points.
func (c *TableCursor) open() bool {
	c.at = c.lowest().at
	p, compression, err := c.r.read(c.at)
	c.loads, c.compression = c.loads+1, compression
	if err == nil {
		if err = c.b.init(p); err != nil {
			err = atBlock(err, c.at)
		}
	}
	return err == nil || c.fail(err)
}

// end ends the cursor, with the error of the index or io.EOF.
func (c *TableCursor) end() bool {
	for _, x := range []*index{&c.top, &c.low} {
		if x.err != nil {
			return c.fail(format.At(x.err, "index"))
		}
	}
	c.err = io.EOF
	return false
}

func (c *TableCursor) fail(err error) bool {
	if c.err == nil {
		c.err = err
	}
	c.b.data, c.b.off, c.b.back = nil, 0, false
	return false
}

// metaBlocks returns the names in the metaindex, in the order of the blocks.
func (t *Table) metaBlocks() (names []string) {
	for name := range t.meta {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if c := int64(t.meta[a].off) - int64(t.meta[b].off); c != 0 {
			return int(max(min(c, 1), -1))
		}
		return strings.Compare(a, b)
	})
	return names
}
