package rocksdb

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math/bits"

	"github.com/cespare/xxhash/v2"
	"github.com/zeebo/xxh3"
)

// Checksum is the algorithm that protects the blocks of a table.
type Checksum uint8

// The algorithms, as RocksDB numbers them. Wire format: never change.
const (
	ChecksumNone   Checksum = 0
	ChecksumCRC32C Checksum = 1
	ChecksumXXH32  Checksum = 2
	ChecksumXXH64  Checksum = 3
	ChecksumXXH3   Checksum = 4
)

// checksums computes the checksum of a block and the byte of its compression, which
// are next to each other in the file.
var checksums = [...]struct {
	name string
	of   func(p []byte) uint32
}{
	ChecksumNone:   {"none", func([]byte) uint32 { return 0 }},
	ChecksumCRC32C: {"crc32c", func(p []byte) uint32 { return maskCRC(crc32.Checksum(p, castagnoli)) }},
	ChecksumXXH32:  {"xxHash", xxh32},
	ChecksumXXH64:  {"xxHash64", func(p []byte) uint32 { return uint32(xxhash.Sum64(p)) }},
	ChecksumXXH3: {"XXH3", func(p []byte) uint32 {
		last := len(p) - 1 // XXH3 is computed before the compression is known
		return uint32(xxh3.Hash(p[:last])) ^ uint32(p[last])*0x6b9083d9
	}},
}

// String returns the name that RocksDB uses.
func (c Checksum) String() string {
	if int(c) < len(checksums) {
		return checksums[c].name
	}
	return fmt.Sprintf("checksum %d", uint8(c))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maskCRC returns a CRC as RocksDB stores it.
func maskCRC(c uint32) uint32 { return bits.RotateLeft32(c, -15) + 0xa282ead8 }

// xxh32 returns the XXH32 of p with seed 0. No maintained library has it.
func xxh32(p []byte) uint32 {
	const p1, p2, p3, p4, p5 = 2654435761, 2246822519, 3266489917, 668265263, 374761393
	round := func(acc uint32, p []byte) uint32 {
		return bits.RotateLeft32(acc+binary.LittleEndian.Uint32(p)*p2, 13) * p1
	}
	h, n := uint32(p5), uint32(len(p))
	if n >= 16 {
		one, two := uint32(p1), uint32(p2)
		a, b, c, d := one+two, two, uint32(0), -one
		for ; len(p) >= 16; p = p[16:] {
			a, b, c, d = round(a, p), round(b, p[4:]), round(c, p[8:]), round(d, p[12:])
		}
		h = bits.RotateLeft32(a, 1) + bits.RotateLeft32(b, 7) + bits.RotateLeft32(c, 12) + bits.RotateLeft32(d, 18)
	}
	h += n
	for ; len(p) >= 4; p = p[4:] {
		h = bits.RotateLeft32(h+binary.LittleEndian.Uint32(p)*p3, 17) * p4
	}
	for _, x := range p {
		h = bits.RotateLeft32(h+uint32(x)*p5, 11) * p1
	}
	h = (h ^ h>>15) * p2
	h = (h ^ h>>13) * p3
	return h ^ h>>16
}
