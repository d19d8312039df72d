package rocksdb

import (
	"encoding/binary"
)

// Properties are what a table records about itself. Numbers that a release of
// RocksDB did not write are 0.
type Properties struct {
	Entries        uint64 // range deletions included
	Deletions      uint64 // of single keys and of ranges
	MergeOperands  uint64
	RangeDeletions uint64
	DataBlocks     uint64
	KeyBytes       uint64 // of internal keys, uncompressed
	ValueBytes     uint64
	DataBytes      uint64 // of all data blocks with their trailers, as stored

	ColumnFamily  string
	Comparator    string
	MergeOperator string // "": none
	Compression   string // of data blocks, as RocksDB calls it
	// All are the properties as they are stored.
	All map[string]string
}

// Comparator is the name of the bytewise comparator, the only one that is supported.
const Comparator = "leveldb.BytewiseComparator"

// Names of properties. Wire format: never change.
const (
	propIndexType   = "rocksdb.block.based.table.index.type"
	propIndexDelta  = "rocksdb.index.value.is.delta.encoded"
	propIndexUser   = "rocksdb.index.key.is.user.key"
	propGlobal      = "rocksdb.external_sst_file.global_seqno"
	propExternal    = "rocksdb.external_sst_file.version"
	propEntries     = "rocksdb.num.entries"
	propDeletions   = "rocksdb.deleted.keys"
	propOperands    = "rocksdb.merge.operands"
	propRanges      = "rocksdb.num.range-deletions"
	propBlocks      = "rocksdb.num.data.blocks"
	propKeyBytes    = "rocksdb.raw.key.size"
	propValueBytes  = "rocksdb.raw.value.size"
	propDataBytes   = "rocksdb.data.size"
	propFamily      = "rocksdb.column.family.name"
	propComparator  = "rocksdb.comparator"
	propMerge       = "rocksdb.merge.operator"
	propCompression = "rocksdb.compression"
)

// readProperties decodes the block of properties: entries without sequence numbers.
func readProperties(p []byte) (Properties, error) {
	props := Properties{All: map[string]string{}}
	var b block
	if err := b.init(p); err != nil {
		return props, err
	}
	for b.next() {
		props.All[string(b.key)] = string(b.value)
	}
	if b.err != nil {
		return props, b.err
	}
	for name, to := range map[string]*uint64{
		propEntries: &props.Entries, propDeletions: &props.Deletions, propOperands: &props.MergeOperands, propRanges: &props.RangeDeletions,
		propBlocks: &props.DataBlocks, propKeyBytes: &props.KeyBytes, propValueBytes: &props.ValueBytes, propDataBytes: &props.DataBytes,
	} {
		if v, ok := props.All[name]; ok {
			n, k := binary.Uvarint([]byte(v))
			if k != len(v) {
				return props, corrupt("property %s is not a number", name)
			}
			*to = n
		}
	}
	for name, to := range map[string]*string{
		propFamily: &props.ColumnFamily, propComparator: &props.Comparator, propMerge: &props.MergeOperator, propCompression: &props.Compression,
	} {
		*to = props.All[name]
	}
	if props.MergeOperator == "nullptr" {
		props.MergeOperator = ""
	}
	return props, nil
}

// in returns an error if the properties name another column family.
func (p *Properties) in(family string) error {
	if p.ColumnFamily != "" && p.ColumnFamily != family {
		return corrupt("expected a table of column family %q, found one of %q", cut(family), cut(p.ColumnFamily))
	}
	return nil
}

// has reports whether a property is stored.
func (p *Properties) has(name string) bool {
	_, ok := p.All[name]
	return ok
}

// flag returns a number that says yes or no, and is 0 if the property is missing.
func (p *Properties) flag(name string) (bool, error) {
	switch v := p.All[name]; v {
	case "", "\x00":
		return false, nil
	case "\x01":
		return true, nil
	default:
		return false, corrupt("property %s: expected 0 or 1, found % x", name, cut(v))
	}
}

func cut(s string) string { return s[:min(len(s), 40)] }
