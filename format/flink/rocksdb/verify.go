package rocksdb

import (
	"bytes"
	"context"
	"io"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Content is what a table holds, as [Verify] counted it.
type Content struct {
	Blocks        int64 // of all kinds
	DataBlocks    int64
	Entries       int64 // range tombstones not counted
	Deletions     int64
	MergeOperands int64
	Ranges        int64
	KeyBytes      int64 // of the user keys of entries
	ValueBytes    int64
	// Compressed is the number of data blocks by their compression.
	Compressed map[Compression]int64
}

// Verify reads all blocks of a table and compares their checksums, the order of the
// keys and the keys of the index, and the numbers that the properties record. It
// calls each with every entry, in order; nil: with none. It returns what it counted up
// to an error, also of each.
func Verify(ctx context.Context, t *Table, each func(TableEntry) error) (n Content, err error) {
	n.Compressed = map[Compression]int64{}
	n.Blocks = 1 // the metaindex, which OpenTable has read
	v := &verifier{Content: &n, t: t, r: t.blocks(ctx), each: each}
	for _, name := range t.metaBlocks() {
		if err := v.meta(name); err != nil {
			return n, format.At(err, "block %q", cut(name))
		}
	}
	if t.foot.version < contextFormat {
		n.Blocks++ // the index, which OpenTable has read too
	}
	if err := v.index(ctx); err != nil {
		return n, err
	}
	ranges, err := t.Ranges(ctx)
	if err != nil {
		return n, err
	}
	n.Ranges = int64(len(ranges))
	return n, v.counts()
}

// Verify is [Verify] of a live table of a column family. It also compares the keys and
// the sequence numbers with the ranges that the database records, and the name of the
// family. An error has the name of the file.
func (db *Database) Verify(ctx context.Context, f *Family, l *LiveTable, each func(TableEntry) error) (n Content, err error) {
	defer func() { err = format.InFile(err, l.Name) }()
	t, err := db.Table(ctx, l)
	if err != nil {
		return n, err
	}
	if err := t.in(f.Name); err != nil {
		return n, err
	}
	return Verify(ctx, t, func(e TableEntry) error {
		if bytes.Compare(e.Key, l.bounds.smallest) < 0 || bytes.Compare(e.Key, l.bounds.largest) > 0 {
			return corrupt("key %x is outside the range that the MANIFEST records", cutBytes(e.Key))
		}
		// Compaction sets the numbers of the oldest entries to 0 before it records the range.
		if e.Sequence > l.LastSequence && l.LastSequence != unknownSequence {
			return corrupt("sequence number %d is greater than the largest that the MANIFEST records, %d", e.Sequence, l.LastSequence)
		}
		if each == nil {
			return nil
		}
		return each(e)
	})
}

type verifier struct {
	*Content
	t    *Table
	r    *blocks
	last []byte // key of the index before
	each func(TableEntry) error
}

// meta reads a block of the metaindex. The index, the properties and the dictionary
// were read by OpenTable.
func (v *verifier) meta(name string) error {
	v.Blocks++
	if name == metaProperties || name == metaPropertiesOld {
		return nil // its checksum may be computed with sequence number 0
	}
	p, err := v.r.load(v.t.meta[name])
	if err != nil || !strings.HasPrefix(name, metaPartitions) {
		return err
	}
	// The index of the partitions of a filter is encoded like the index of the data.
	l := v.t.layout
	l.first = false
	var x index
	if err := x.start(bytes.Clone(p), l, 0); err != nil {
		return err
	}
	for x.next() {
		v.Blocks++
		if _, err := v.r.load(x.at); err != nil {
			return err
		}
	}
	return x.block.err
}

// index walks the entries, block by block, next to the index.
func (v *verifier) index(ctx context.Context) error {
	c := v.t.cursor(ctx)
	blocks := int64(0)
	for c.next() {
		if c.loads > blocks {
			blocks = c.loads
			if err := v.above(c); err != nil {
				return err
			}
			v.Compressed[c.compression]++
		}
		v.Entries++
		v.KeyBytes += int64(len(c.key))
		v.ValueBytes += int64(len(c.value))
		switch Kind(c.trail) {
		case KindDelete, KindSingleDelete:
			v.Deletions++
		case KindMerge:
			v.MergeOperands++
		}
		if x := c.lowest(); bytes.Compare(c.key, x.key[:len(x.key)-x.block.tail]) > 0 {
			return format.At(atBlock(corrupt("a key is greater than its key in the index"), c.at), "index")
		}
		if v.each == nil {
			continue
		}
		if err := v.each(TableEntry{Key: c.key, Sequence: c.trail >> 8, Kind: Kind(c.trail), Value: c.value}); err != nil {
			return err
		}
	}
	if c.err != io.EOF {
		return c.err
	}
	v.DataBlocks = c.loads
	v.Blocks += c.loads + c.parts
	return nil
}

// above checks that the first key of a block is not within the block before it, by
// the index.
func (v *verifier) above(c *TableCursor) error {
	x := c.lowest()
	user := x.key[:len(x.key)-x.block.tail]
	if v.last != nil && bytes.Compare(c.key, v.last) < 0 {
		return format.At(atBlock(corrupt("a key is less than the key of the block before in the index"), c.at), "index")
	}
	v.last = append(v.last[:0], user...)
	return nil
}

// counts compares what was counted with the properties.
func (v *verifier) counts() error {
	t := v.t
	for _, x := range []struct {
		name     string
		found    int64
		recorded uint64
		what     string
	}{
		{propBlocks, v.DataBlocks, t.DataBlocks, "data blocks"},
		{propEntries, v.Entries + v.Ranges, t.Entries, "entries"},
		{propDeletions, v.Deletions + v.Ranges, t.Deletions, "deletions"},
		{propOperands, v.MergeOperands, t.MergeOperands, "merge operands"},
		{propRanges, v.Ranges, t.RangeDeletions, "range tombstones"},
	} {
		if t.has(x.name) && uint64(x.found) != x.recorded {
			return format.At(corrupt("expected %d %s, found %d", x.recorded, x.what, x.found), "properties")
		}
	}
	return nil
}
