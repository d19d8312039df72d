package rocksdb

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// A MANIFEST is blocks of 32 KiB. A record is stored in parts that do not cross the
// end of a block (spec flink-keyed-state B.1):
//
//	u32  masked CRC-32C of the kind and the bytes, little-endian
//	u16  n, little-endian
//	u8   kind
//	     n bytes
//
// Fewer than 7 bytes at the end of a block are zeros. Wire format: never change.
const (
	logBlock  = 32 << 10
	logHeader = 7

	partFull   = 1
	partFirst  = 2
	partMiddle = 3
	partLast   = 4
	partIgnore = 0x80 // flag: readers that do not know the kind skip the part
)

// eachRecord calls f with the records of a log.
func eachRecord(p []byte, f func(record []byte) error) error {
	var joined []byte
	within := false
	fail := func(off int, kind error, msg string, args ...any) error {
		e := format.Errorf(kind, msg, args...)
		e.Offset = int64(off)
		return e
	}
	for off := 0; off < len(p); {
		if left := logBlock - off%logBlock; left < logHeader {
			n := min(left, len(p)-off)
			if !zeros(p[off : off+n]) {
				return fail(off, format.ErrCorrupt, "expected zeros at the end of a block of the log")
			}
			off += n
			continue
		}
		if len(p)-off < logHeader {
			return fail(off, format.ErrTruncated, "cut short: a record of %d bytes", len(p)-off)
		}
		sum, n, kind := binary.LittleEndian.Uint32(p[off:]), int(binary.LittleEndian.Uint16(p[off+4:])), p[off+6]
		if n > logBlock-off%logBlock-logHeader {
			return fail(off, format.ErrCorrupt, "a record of %d bytes crosses the end of a block", n)
		}
		if n > len(p)-off-logHeader {
			return fail(off, format.ErrTruncated, "cut short: expected a record of %d bytes, %d are left", n, len(p)-off-logHeader)
		}
		body := p[off+logHeader : off+logHeader+n]
		if got := maskCRC(crc32.Checksum(p[off+6:off+logHeader+n], castagnoli)); got != sum {
			return fail(off, format.ErrCorrupt, "expected checksum %08x of a record, found %08x", sum, got)
		}
		at := off
		off += logHeader + n
		switch {
		case kind == partFull && !within:
			if err := f(body); err != nil {
				return atBlock(err, handle{off: uint64(at)})
			}
		case kind == partFirst && !within:
			joined, within = append(joined[:0], body...), true
		case kind == partMiddle && within:
			joined = append(joined, body...)
		case kind == partLast && within:
			joined, within = append(joined, body...), false
			if err := f(slices.Clip(joined)); err != nil {
				return atBlock(err, handle{off: uint64(at)})
			}
		case kind >= partFull && kind <= partLast:
			return fail(at, format.ErrCorrupt, "unexpected part of a record of kind %d", kind)
		case kind&partIgnore != 0:
		default:
			return fail(at, format.ErrUnsupported, "a part of a record of kind %d", kind)
		}
	}
	if within {
		return fail(len(p), format.ErrTruncated, "cut short: the last record does not end")
	}
	return nil
}
