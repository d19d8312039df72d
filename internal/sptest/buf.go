package sptest

import (
	"encoding/binary"
	"encoding/hex"
	"strings"
)

// Buf collects bytes as Java's DataOutputStream writes them: big-endian, without
// padding. Calls can be chained. The zero value is empty.
type Buf struct{ B []byte }

// U8 adds one byte.
func (b *Buf) U8(v int) *Buf { b.B = append(b.B, byte(v)); return b }

// I32 adds four bytes.
func (b *Buf) I32(v int) *Buf { b.B = binary.BigEndian.AppendUint32(b.B, uint32(v)); return b }

// I64 adds eight bytes.
func (b *Buf) I64(v int64) *Buf { b.B = binary.BigEndian.AppendUint64(b.B, uint64(v)); return b }

// UTF adds a two-byte length and p, which the caller has encoded as modified
// UTF-8.
func (b *Buf) UTF(p string) *Buf {
	b.B = binary.BigEndian.AppendUint16(b.B, uint16(len(p)))
	b.B = append(b.B, p...)
	return b
}

// Blob adds a four-byte length and p.
func (b *Buf) Blob(p string) *Buf { return b.I32(len(p)).Raw(p) }

// Raw adds p without a length.
func (b *Buf) Raw(p string) *Buf { b.B = append(b.B, p...); return b }

// Hex adds bytes given as hex digits; white space between them is ignored.
func (b *Buf) Hex(s string) *Buf { b.B = append(b.B, Hex(s)...); return b }

// Len returns the number of bytes so far.
func (b *Buf) Len() int { return len(b.B) }

// Hex returns the bytes of a hexadecimal literal in a test. It panics on other
// characters.
func Hex(s string) []byte {
	p, err := hex.DecodeString(strings.Join(strings.Fields(s), ""))
	if err != nil {
		panic(err)
	}
	return p
}
