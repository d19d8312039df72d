package opstate

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/snappy"

	"github.com/savepoint-tools/spt/format"
)

// The snappy framing format (spec A8): chunks of
//
//	u8   kind
//	u24  length of what follows, little-endian
//	u32  masked CRC-32C of the data, little-endian; data chunks only
//	     the data, compressed or stored, at most 64 KiB once decompressed
//
// Wire format: never change.
const (
	snappyHeader    = "\xff\x06\x00\x00sNaPpY"
	chunkCompressed = 0x00
	chunkStored     = 0x01
	chunkSkippable  = 0x80 // from here on a reader may skip; Flink writes none
	chunkHeader     = 0xff

	maxChunkData = 64 << 10
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func maskedCRC(p []byte) uint32 {
	c := crc32.Checksum(p, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}

// chunk reads the head of the chunk at pos. The chunk lies before w.end.
func (w *window) chunk(pos int64) (kind byte, body int64, err error) {
	p, err := w.bytes(pos, 4)
	if err != nil {
		return 0, 0, err
	}
	kind, body = p[0], int64(p[1])|int64(p[2])<<8|int64(p[3])<<16
	if body > w.end-pos-4 {
		return 0, 0, w.corrupt(pos, "a chunk of %d bytes, %d are left", body, w.end-pos-4)
	}
	switch {
	case kind == chunkHeader && body != 6:
		err = w.corrupt(pos, "a snappy stream header of %d bytes", body)
	case kind <= chunkStored && (body < 4 || body > int64(snappy.MaxEncodedLen(maxChunkData))+4):
		err = w.corrupt(pos, "a snappy chunk of %d bytes", body)
	case kind > chunkStored && kind < chunkSkippable:
		err = w.corrupt(pos, "a snappy chunk of unknown kind 0x%02x", kind)
	case kind >= chunkSkippable && kind < chunkHeader:
		// Skipped, one flipped bit would make an element disappear.
		err = format.Errorf(format.ErrUnsupported, "a snappy chunk of kind 0x%02x, which no Flink writes", kind)
	}
	return kind, body, err
}

func (w *window) corrupt(pos int64, msg string, args ...any) error {
	e := format.Errorf(format.ErrCorrupt, msg, args...)
	e.Offset = pos
	return e
}

// inflate appends what the chunks from start to end hold.
func (w *window) inflate(dst []byte, start, end, limit int64) ([]byte, error) {
	for pos := start; pos < end; {
		if end-pos < 4 {
			return dst, w.corrupt(pos, "%d bytes where a snappy chunk starts", end-pos)
		}
		kind, body, err := w.chunk(pos)
		if err != nil {
			return dst, err
		}
		at := pos
		if pos += 4 + body; pos > end {
			return dst, w.corrupt(at, "a snappy chunk reaches %d bytes into the next element", pos-end)
		}
		p, err := w.bytes(at+4, body)
		if err != nil {
			return dst, err
		}
		if kind == chunkHeader {
			if string(p) != snappyHeader[4:] {
				return dst, w.corrupt(at, "a snappy stream header that is none")
			}
			continue
		}
		sum, p := binary.LittleEndian.Uint32(p), p[4:]
		n := len(p)
		if kind == chunkCompressed {
			if n, err = snappy.DecodedLen(p); err != nil {
				return dst, w.corrupt(at, "a snappy chunk that cannot be decompressed")
			}
		}
		if n > maxChunkData {
			return dst, w.corrupt(at, "a snappy chunk with %d bytes of data", n)
		}
		if int64(len(dst)+n) > limit {
			return dst, format.Errorf(format.ErrLimit, "an element over the limit of %d bytes", limit)
		}
		dst = slices.Grow(dst, n)
		data := dst[len(dst) : len(dst)+n]
		if kind == chunkStored {
			copy(data, p)
		} else if got, err := snappy.Decode(data, p); err != nil || len(got) != n {
			return dst, w.corrupt(at, "a snappy chunk that cannot be decompressed")
		}
		if c := maskedCRC(data); c != sum {
			return dst, w.corrupt(at, "a snappy chunk whose checksum is %08x, not %08x", c, sum)
		}
		dst = dst[:len(dst)+n]
	}
	return dst, nil
}

// deflate makes chunks of p, stored where compressing does not pay.
func deflate(p []byte) []byte {
	var out []byte
	for len(p) > 0 {
		data := p[:min(len(p), maxChunkData)]
		p = p[len(data):]
		kind, body := byte(chunkCompressed), snappy.Encode(nil, data)
		if len(body) >= len(data) {
			kind, body = chunkStored, data
		}
		n := len(body) + 4
		out = append(out, kind, byte(n), byte(n>>8), byte(n>>16))
		out = append(binary.LittleEndian.AppendUint32(out, maskedCRC(data)), body...)
	}
	return out
}
