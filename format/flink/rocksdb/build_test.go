package rocksdb

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/snappy"
)

// builder writes tables of format version 5 for tests, as small as possible: it can
// also write what RocksDB would not.
type builder struct {
	p        []byte
	checksum Checksum
	snappy   bool
	block    int // bytes of a data block; 0 means 4 KiB
	props    map[string]string
	data     blockBuilder
	index    blockBuilder
	ranges   blockBuilder
	n        int
	last     []byte
}

// blockBuilder writes the entries of a block.
type blockBuilder struct {
	p        []byte
	restarts []uint32
	n        int
	last     []byte
	interval int
}

func (b *blockBuilder) add(key, value []byte) {
	shared := 0
	if b.n%b.interval == 0 {
		b.restarts = append(b.restarts, uint32(len(b.p)))
	} else {
		for shared < len(key) && shared < len(b.last) && key[shared] == b.last[shared] {
			shared++
		}
	}
	b.n++
	b.p = binary.AppendUvarint(b.p, uint64(shared))
	b.p = binary.AppendUvarint(b.p, uint64(len(key)-shared))
	b.p = binary.AppendUvarint(b.p, uint64(len(value)))
	b.p = append(append(b.p, key[shared:]...), value...)
	b.last = append(b.last[:0], key...)
}

// end returns the block and starts another.
func (b *blockBuilder) end() []byte {
	p := b.p
	for _, r := range b.restarts {
		p = binary.LittleEndian.AppendUint32(p, r)
	}
	p = binary.LittleEndian.AppendUint32(p, uint32(len(b.restarts)))
	*b = blockBuilder{interval: b.interval}
	return p
}

func internalKey(key []byte, seq uint64, k Kind) []byte {
	return binary.LittleEndian.AppendUint64(append([]byte(nil), key...), seq<<8|uint64(k))
}

func newBuilder() *builder {
	return &builder{
		checksum: ChecksumXXH3, block: 4 << 10, props: map[string]string{propComparator: Comparator, propMerge: operators[0]},
		data: blockBuilder{interval: 16}, index: blockBuilder{interval: 1}, ranges: blockBuilder{interval: 1},
	}
}

func (b *builder) write(p []byte) handle {
	h, c := handle{off: uint64(len(b.p))}, byte(CompressionNone)
	if b.snappy {
		if q := snappy.Encode(nil, p); len(q) < len(p) {
			p, c = q, byte(CompressionSnappy)
		}
	}
	h.size = uint64(len(p))
	b.p = append(append(b.p, p...), c)
	b.p = binary.LittleEndian.AppendUint32(b.p, checksums[b.checksum].of(b.p[h.off:]))
	return h
}

func (b *builder) add(key string, seq uint64, k Kind, value string) {
	b.addInternal(internalKey([]byte(key), seq, k), []byte(value))
}

func (b *builder) addInternal(key, value []byte) {
	b.n++
	b.data.add(key, value)
	b.last = append(b.last[:0], key...)
	if len(b.data.p) >= b.block {
		b.flush()
	}
}

func (b *builder) flush() {
	if b.data.n > 0 {
		b.index.add(b.last, b.write(b.data.end()).append(nil))
	}
}

func (b *builder) deleteRange(start, end string, seq uint64) {
	b.ranges.add(internalKey([]byte(start), seq, kindRange), []byte(end))
}

// table ends the table.
func (b *builder) table() []byte {
	b.flush()
	meta := blockBuilder{interval: 1}
	b.props[propEntries] = string(binary.AppendUvarint(nil, uint64(b.n+b.ranges.n)))
	props := blockBuilder{interval: 1}
	for _, name := range sortedKeys(b.props) {
		props.add([]byte(name), []byte(b.props[name]))
	}
	hp := b.write(props.end()).append(nil)
	meta.add([]byte(metaProperties), hp)
	if b.ranges.n > 0 {
		meta.add([]byte(metaRanges), b.write(b.ranges.end()).append(nil))
	}
	return b.finish(b.write(meta.end()), b.write(b.index.end()))
}

// finish writes the footer.
func (b *builder) finish(metaindex, index handle) []byte {
	foot := append([]byte{byte(b.checksum)}, index.append(metaindex.append(nil))...)
	foot = append(foot, make([]byte, 41-len(foot))...)
	foot = binary.LittleEndian.AppendUint32(foot, 5)
	return append(b.p, binary.LittleEndian.AppendUint64(foot, magic)...)
}

func sortedKeys(m map[string]string) (all []string) {
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}

// appendRecord appends a record of a log.
func appendRecord(p, record []byte) []byte {
	kind := byte(partFull)
	for {
		left := logBlock - len(p)%logBlock
		if left < logHeader {
			p = append(p, make([]byte, left)...)
			continue
		}
		n := min(len(record), left-logHeader)
		last := n == len(record)
		switch {
		case kind == partFull && !last:
			kind = partFirst
		case kind != partFull && last:
			kind = partLast
		}
		body := append([]byte{kind}, record[:n]...)
		p = binary.LittleEndian.AppendUint32(p, maskCRC(crc32.Checksum(body, castagnoli)))
		p = binary.LittleEndian.AppendUint16(p, uint16(n))
		p = append(p, body...)
		if last {
			return p
		}
		kind, record = partMiddle, record[n:]
	}
}

// live is a table of a database that a test makes.
type live struct {
	number            uint64
	level             int
	smallest, largest []byte // internal keys
	first, last       uint64
	data              []byte
}

// manifest returns a MANIFEST with the default column family and one more.
func manifest(family string, tables ...live) []byte {
	str := func(p []byte, s string) []byte { return append(binary.AppendUvarint(p, uint64(len(s))), s...) }
	num := binary.AppendUvarint
	p := appendRecord(nil, str(num(nil, tagComparator), Comparator))
	p = appendRecord(p, str(num(num(num(nil, tagFamily), 1), tagFamilyAdd), family))
	for _, t := range tables {
		e := num(num(nil, tagFamily), 1)
		e = num(num(num(num(e, tagNewFile4), uint64(t.level)), t.number), uint64(len(t.data)))
		e = str(str(e, string(t.smallest)), string(t.largest))
		e = num(num(num(e, t.first), t.last), customEnd)
		p = appendRecord(p, e)
	}
	return p
}
