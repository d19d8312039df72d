package rocksdb

import (
	"encoding/binary"

	"github.com/savepoint-tools/spt/format"
)

// The footer is the end of a table (spec flink-keyed-state A). Integers are
// little-endian. Wire format: never change.
//
//	format 0    handles of the metaindex and of the index, zeros up to 40 bytes;
//	            u64 oldMagic. Blocks have CRC32C
//	format 1-5  u8 checksum; handles and zeros as above; u32 format, u64 magic
//	format 6-7  u8 checksum; 3e 00 7a 00, u32 checksum of the footer, u32 base
//	            context, u32 size of the metaindex, 24 zeros; u32 format, u64 magic
const (
	oldMagic  = 0xdb4775248b80fb57
	magic     = 0x88e241b785f4cff7
	oldFooter = 48
	newFooter = 53

	contextFormat = 6 // from here on checksums depend on the position
	maxFormat     = 7
	extendedMark  = "\x3e\x00\x7a\x00"
)

// footer is the decoded footer.
type footer struct {
	at        int64 // its offset in the file
	version   uint32
	checksum  Checksum
	context   uint32
	metaindex handle
	index     handle // from version 6 on it is in the metaindex
}

// readFooter decodes the footer at the end of p, the end of a file of size bytes.
func readFooter(p []byte, size int64) (f footer, err error) {
	wrong := func(msg string, args ...any) (footer, error) {
		e := format.Errorf(format.ErrCorrupt, msg, args...)
		e.Offset = max(size-int64(len(p)), 0)
		return footer{}, e
	}
	if len(p) < oldFooter {
		return wrong("a table of %d bytes", size)
	}
	switch m := binary.LittleEndian.Uint64(p[len(p)-8:]); {
	case m == oldMagic:
		p = p[len(p)-oldFooter:]
		f.checksum = ChecksumCRC32C
	case m == magic && len(p) >= newFooter:
		p = p[len(p)-newFooter:]
		f.checksum = Checksum(p[0])
		f.version = binary.LittleEndian.Uint32(p[41:])
		if f.version == 0 {
			return wrong("a table of format version 0 with the footer of later versions")
		}
	default:
		return wrong("expected a RocksDB table, found magic number %#016x", m)
	}
	f.at = size - int64(len(p))
	if f.version > maxFormat {
		e := format.Errorf(format.ErrVersion, "unknown format version %d of a table; supported: 0 to %d", f.version, maxFormat)
		e.Offset = f.at
		return footer{}, e
	}
	if int(f.checksum) >= len(checksums) {
		e := format.Errorf(format.ErrUnsupported, "unknown checksum type %d of a table", f.checksum)
		e.Offset = f.at
		return footer{}, e
	}
	part := p[:40]
	if f.version > 0 {
		part = p[1:41]
	}
	if f.version < contextFormat {
		var n, k int
		var ok bool
		if f.metaindex, n, ok = readHandle(part); ok {
			f.index, k, ok = readHandle(part[n:])
		}
		if !ok || !zeros(part[n+k:]) || len(f.index.append(f.metaindex.append(nil))) != n+k {
			return wrong("the footer of a table is not valid")
		}
		if !f.index.within(f.at) || !f.metaindex.within(f.at) {
			return wrong("the index of a table is outside its %d bytes", f.at)
		}
		return f, nil
	}
	if string(part[:4]) != extendedMark || !zeros(part[16:]) {
		return wrong("the footer of a table is not valid")
	}
	f.context = binary.LittleEndian.Uint32(part[8:])
	sum := binary.LittleEndian.Uint32(part[4:])
	clean := append([]byte(nil), p...)
	clear(clean[5:9])
	if got := f.sum(clean, uint64(f.at)); got != sum {
		return wrong("expected checksum %08x of the footer, found %08x", sum, got)
	}
	n := uint64(binary.LittleEndian.Uint32(part[12:]))
	if n > uint64(f.at)-trailerSize || f.at < trailerSize {
		return wrong("a metaindex of %d bytes in a table of %d", n, size)
	}
	f.metaindex = handle{uint64(f.at) - trailerSize - n, n}
	return f, nil
}

// modifier is added to the checksum of what is stored at off.
func (f *footer) modifier(off uint64) uint32 {
	if f.context == 0 {
		return 0
	}
	return f.context ^ (uint32(off) + uint32(off>>32))
}

// sum returns the checksum of a block and its compression byte, stored at off.
func (f *footer) sum(p []byte, off uint64) uint32 {
	return checksums[f.checksum].of(p) + f.modifier(off)
}

func zeros(p []byte) bool {
	for _, b := range p {
		if b != 0 {
			return false
		}
	}
	return true
}
