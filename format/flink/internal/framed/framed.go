// Package framed reads and writes chunks of the snappy framing format, in which
// Flink compresses state (spec flink-operator-state A8, flink-keyed-state 3.6). It
// does not read streams: its callers decide which chunks belong together.
//
//	kind, body := framed.Head(p)
//	data, err := framed.Decode(nil, kind, p[framed.HeadSize:][:body], framed.MaxData)
package framed

import (
	"encoding/binary"
	"hash/crc32"
	"slices"

	"github.com/klauspost/compress/snappy"

	"github.com/savepoint-tools/spt/format"
)

// The snappy framing format: chunks of
//
//	u8   kind
//	u24  length of what follows, little-endian
//	u32  masked CRC-32C of the data, little-endian; data chunks only
//	     the data, compressed or stored, at most 64 KiB once decompressed
//
// Wire format: never change.
const (
	Header     = "\xff\x06\x00\x00sNaPpY" // a chunk that opens a stream
	Compressed = 0x00
	Stored     = 0x01
	Skippable  = 0x80 // from here on readers may skip chunks; Flink writes none
	HeaderKind = 0xff

	HeadSize = 4        // of a chunk
	MaxData  = 64 << 10 // of a chunk, once decompressed
)

// Head returns the kind of a chunk and the number of bytes that follow its head.
func Head(p []byte) (kind byte, body int64) {
	return p[0], int64(p[1]) | int64(p[2])<<8 | int64(p[3])<<16
}

// Check checks the head of a chunk; left is the number of bytes in the stream after
// the head.
func Check(kind byte, body, left int64) error {
	switch {
	case body > left:
		return format.Errorf(format.ErrCorrupt, "expected a snappy chunk of %d bytes, found %d", body, left)
	case kind == HeaderKind && body != 6:
		return format.Errorf(format.ErrCorrupt, "snappy stream header of %d bytes", body)
	case kind <= Stored && (body < 4 || body > int64(snappy.MaxEncodedLen(MaxData))+4):
		return format.Errorf(format.ErrCorrupt, "snappy chunk of %d bytes", body)
	case kind > Stored && kind < Skippable:
		return format.Errorf(format.ErrCorrupt, "unknown kind 0x%02x of a snappy chunk", kind)
	case kind >= Skippable && kind < HeaderKind:
		// If it were skipped, one flipped bit would drop an element.
		return format.Errorf(format.ErrUnsupported, "snappy chunk of kind 0x%02x, which Flink does not write", kind)
	}
	return nil
}

// Decode appends the data of a chunk to dst, which may grow to limit bytes. A stream
// header has no data.
func Decode(dst []byte, kind byte, body []byte, limit int64) ([]byte, error) {
	if kind == HeaderKind {
		if string(body) != Header[HeadSize:] {
			return dst, format.Errorf(format.ErrCorrupt, "invalid snappy stream header")
		}
		return dst, nil
	}
	sum, p := binary.LittleEndian.Uint32(body), body[4:]
	n := len(p)
	if kind == Compressed {
		var err error
		if n, err = snappy.DecodedLen(p); err != nil {
			return dst, format.Errorf(format.ErrCorrupt, "invalid data in a snappy chunk")
		}
	}
	if n > MaxData {
		return dst, format.Errorf(format.ErrCorrupt, "snappy chunk with %d bytes of data", n)
	}
	if int64(len(dst)+n) > limit {
		return dst, format.Errorf(format.ErrLimit, "an element exceeds the limit of %d bytes", limit)
	}
	dst = slices.Grow(dst, n)
	data := dst[len(dst) : len(dst)+n]
	if kind == Stored {
		copy(data, p)
	} else if got, err := snappy.Decode(data, p); err != nil || len(got) != n {
		return dst, format.Errorf(format.ErrCorrupt, "invalid data in a snappy chunk")
	}
	if c := checksum(data); c != sum {
		return dst, format.Errorf(format.ErrCorrupt, "expected checksum %08x of a snappy chunk, found %08x", sum, c)
	}
	return dst[:len(dst)+n], nil
}

// Append appends p to dst as chunks. A chunk that compression would not shorten is
// stored uncompressed. An empty p appends nothing.
func Append(dst, p []byte) []byte {
	for len(p) > 0 {
		data := p[:min(len(p), MaxData)]
		p = p[len(data):]
		kind, body := byte(Compressed), snappy.Encode(nil, data)
		if len(body) >= len(data) {
			kind, body = Stored, data
		}
		n := len(body) + 4
		dst = append(dst, kind, byte(n), byte(n>>8), byte(n>>16))
		dst = append(binary.LittleEndian.AppendUint32(dst, checksum(data)), body...)
	}
	return dst
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// checksum returns the masked CRC-32C of the data of a chunk.
func checksum(p []byte) uint32 {
	c := crc32.Checksum(p, castagnoli)
	return (c>>15 | c<<17) + 0xa282ead8
}
