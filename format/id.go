package format

import (
	"encoding/binary"
	"encoding/hex"
	"math/bits"
)

// OperatorID identifies an operator in a snapshot. It is printed as 32 lower-case
// hex digits in byte order (spec flink-metadata 4.3).
type OperatorID [16]byte

// String returns the 32 hex digits.
func (id OperatorID) String() string { return hex.EncodeToString(id[:]) }

// Short returns the first 8 hex digits.
func (id OperatorID) Short() string { return hex.EncodeToString(id[:4]) }

// ParseOperatorID parses 32 hex digits.
func ParseOperatorID(s string) (OperatorID, bool) {
	var id OperatorID
	if len(s) != 32 {
		return id, false
	}
	_, err := hex.Decode(id[:], []byte(s))
	return id, err == nil
}

// OperatorIDOf returns the id that Flink assigns to an operator with this uid:
// murmur3, x64 128 bit, seed 0, of its UTF-8 bytes (spec flink-operator-state C1).
func OperatorIDOf(uid string) OperatorID {
	const c1, c2 = 0x87c37b91114253d5, 0x4cf5ad432745937f
	mix1 := func(k uint64) uint64 { return bits.RotateLeft64(k*c1, 31) * c2 }
	mix2 := func(k uint64) uint64 { return bits.RotateLeft64(k*c2, 33) * c1 }
	final := func(h uint64) uint64 {
		h = (h ^ h>>33) * 0xff51afd7ed558ccd
		h = (h ^ h>>33) * 0xc4ceb9fe1a85ec53
		return h ^ h>>33
	}
	p := []byte(uid)
	var h1, h2 uint64
	for ; len(p) >= 16; p = p[16:] {
		h1 ^= mix1(binary.LittleEndian.Uint64(p))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= mix2(binary.LittleEndian.Uint64(p[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], p)
	if len(p) > 8 {
		h2 ^= mix2(binary.LittleEndian.Uint64(tail[8:]))
	}
	if len(p) > 0 {
		h1 ^= mix1(binary.LittleEndian.Uint64(tail[:]))
	}
	h1 ^= uint64(len(uid))
	h2 ^= uint64(len(uid))
	h1 += h2
	h2 += h1
	h1, h2 = final(h1), final(h2)
	h1 += h2
	h2 += h1
	var id OperatorID
	binary.LittleEndian.PutUint64(id[0:], h1)
	binary.LittleEndian.PutUint64(id[8:], h2)
	return id
}
