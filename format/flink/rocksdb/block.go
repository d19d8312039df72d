package rocksdb

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/savepoint-tools/spt/format"
)

// handle is the position of a block: varint64 offset, varint64 size. The size
// excludes the trailer.
type handle struct{ off, size uint64 }

// trailerSize is the length of what follows a block: u8 compression, u32 checksum.
const trailerSize = 5

// end returns the offset after the trailer of the block.
func (h handle) end() uint64 { return h.off + h.size + trailerSize }

// within reports whether a file of size bytes can hold the block and its trailer.
func (h handle) within(size int64) bool {
	n := uint64(size)
	return h.off <= n && h.size <= n-h.off && trailerSize <= n-h.off-h.size
}

func (h handle) append(p []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(p, h.off), h.size)
}

func readHandle(p []byte) (h handle, n int, ok bool) {
	var a, b int
	h.off, a = binary.Uvarint(p)
	if a <= 0 {
		return h, 0, false
	}
	h.size, b = binary.Uvarint(p[a:])
	return h, a + b, b > 0
}

// block walks the entries of a block, and keeps the current key and value:
//
//	entries   varint32 shared, varint32 other, varint32 length of the value;
//	          the key is the first shared bytes of the key before it and other
//	          bytes that follow, and then the value
//	u32       offset of an entry whose shared is 0, n times, ascending
//	          a hash table, its u16 length in bytes    only if the first bit of n is set
//	u32       n
//
// Wire format: never change.
type block struct {
	data     []byte // entries
	restarts []byte
	off      int // of the next entry
	key      []byte
	prev     []byte // copy of the end of the last key, for comparing
	value    []byte // view of data
	// unordered: keys need not ascend.
	unordered bool
	// tail is the number of bytes at the end of a key that are not part of the user
	// key.
	tail int
	back bool // seek has moved to an entry that next has to return
	err  error
}

const (
	hashIndex = 1 << 31 // flag in n
	trailer   = 8       // length of an internal key after the user key
)

func corrupt(msg string, args ...any) *format.Error {
	return format.Errorf(format.ErrCorrupt, msg, args...)
}

// init starts on another block. The key stays: the first key must be greater.
func (b *block) init(p []byte) error {
	b.data, b.restarts, b.off, b.value = nil, nil, 0, nil
	if len(p) < 4 {
		return corrupt("a block of %d bytes", len(p))
	}
	n := binary.LittleEndian.Uint32(p[len(p)-4:])
	p = p[:len(p)-4]
	if n&hashIndex != 0 {
		n &^= hashIndex
		if len(p) < 2 {
			return corrupt("a block of %d bytes with a hash table", len(p)+4)
		}
		k := int(binary.LittleEndian.Uint16(p[len(p)-2:]))
		if p = p[:len(p)-2]; k > len(p) {
			return corrupt("a hash table of %d bytes in a block of %d", k, len(p)+6)
		}
		p = p[:len(p)-k]
	}
	if int64(n)*4 > int64(len(p)) {
		return corrupt("%d restart points in a block of %d bytes", n, len(p))
	}
	at := len(p) - int(n)*4
	b.data, b.restarts = p[:at:at], p[at:]
	return nil
}

// clear forgets the key, so that any key may follow.
func (b *block) clear() { b.key = b.key[:0] }

// uvarint32 is binary.Uvarint for 32 bits; n is 0 if p ends or the number is larger.
func uvarint32(p []byte) (v uint32, n int) {
	x, n := binary.Uvarint(p)
	if n <= 0 || x > math.MaxUint32 {
		return 0, 0
	}
	return uint32(x), n
}

// next moves to the next entry. It returns false at the end of the block and after
// an error.
func (b *block) next() bool {
	p := b.data[b.off:]
	if len(p) == 0 {
		return false
	}
	var shared, other, length uint32
	n := 3
	if len(p) >= 3 && p[0]|p[1]|p[2] < 0x80 {
		shared, other, length = uint32(p[0]), uint32(p[1]), uint32(p[2])
	} else {
		var i, j, k int
		shared, i = uvarint32(p)
		other, j = uvarint32(p[i:])
		length, k = uvarint32(p[i+j:])
		if n = i + j + k; i == 0 || j == 0 || k == 0 {
			return b.fail("the lengths of an entry are not valid")
		}
	}
	if uint64(other)+uint64(length) > uint64(len(p)-n) {
		return b.fail("an entry of %d bytes, %d are left", uint64(other)+uint64(length), len(p)-n)
	}
	end := n + int(other)
	if !b.setKey(int(shared), p[n:end]) {
		return false
	}
	b.value = p[end : end+int(length) : end+int(length)]
	b.off += end + int(length)
	return true
}

// setKey sets the key, and checks that it is greater than the last one.
func (b *block) setKey(shared int, other []byte) bool {
	if shared > len(b.key) || shared > 0 && b.off == 0 {
		return b.fail("a key shares %d bytes with one of %d", shared, len(b.key))
	}
	if shared+len(other) < b.tail {
		return b.fail("a key of %d bytes", shared+len(other))
	}
	if len(b.key) == 0 || b.unordered {
		b.key = append(b.key[:shared], other...)
		return true
	}
	// Mostly the first bytes that differ decide, and are part of both user keys.
	last := len(b.key)
	if shared < last-b.tail && len(other) > b.tail && b.key[shared] != other[0] {
		if other[0] < b.key[shared] {
			return b.fail("keys are not in order")
		}
		b.key = append(b.key[:shared], other...)
		return true
	}
	// Only what differs is copied: keys may be long, and entries short.
	b.prev = append(b.prev[:0], b.key[shared:]...)
	before := uint64(0)
	if b.tail > 0 {
		before = trailerOf(b.key)
	}
	b.key = append(b.key[:shared], other...)
	if !b.ascends(last, shared, before) {
		return b.fail("keys are not in order")
	}
	return true
}

// ascends reports whether the key is greater than the key before it, by user key and
// then by descending sequence. prev has the bytes of that key from shared on, last is
// its length and before its trailer.
func (b *block) ascends(last, shared int, before uint64) bool {
	now := len(b.key)
	if b.tail == 0 {
		return bytes.Compare(b.prev, b.key[shared:]) < 0
	}
	if shared > min(last, now)-b.tail { // one user key is the start of the other
		return now > last || now == last && trailerOf(b.key) < before
	}
	switch bytes.Compare(b.prev[:last-b.tail-shared], b.key[shared:now-b.tail]) {
	case -1:
		return true
	case 0:
		return trailerOf(b.key) < before
	}
	return false
}

func trailerOf(key []byte) uint64 { return binary.LittleEndian.Uint64(key[len(key)-trailer:]) }

func (b *block) fail(msg string, args ...any) bool {
	if b.err == nil {
		b.err = corrupt(msg, args...)
	}
	b.off = len(b.data)
	return false
}

// restart moves before the last restart point whose user key is less than target.
// It reads only keys at restart points.
func (b *block) restart(target []byte, header func(p []byte) (shared, other, n int)) bool {
	n := len(b.restarts) / 4
	lo, hi := 0, n-1 // the answer is in [lo, hi]
	for lo < hi {
		mid := int(uint(lo+hi+1) / 2)
		key, ok := b.keyAt(mid, header)
		if !ok {
			return b.fail("restart point %d is not valid", mid)
		}
		if bytes.Compare(key[:len(key)-b.tail], target) < 0 {
			lo = mid
		} else {
			hi = mid - 1
		}
	}
	b.off = 0
	if lo > 0 { // keyAt has checked it
		b.off = int(binary.LittleEndian.Uint32(b.restarts[4*lo:]))
	}
	b.clear()
	return true
}

func (b *block) keyAt(i int, header func(p []byte) (shared, other, n int)) ([]byte, bool) {
	off := int64(binary.LittleEndian.Uint32(b.restarts[4*i:]))
	if off >= int64(len(b.data)) {
		return nil, false
	}
	p := b.data[off:]
	shared, other, n := header(p)
	if n == 0 || shared != 0 || other > len(p)-n || other < b.tail {
		return nil, false
	}
	return p[n : n+other], true
}

// dataHeader reads the lengths of an entry.
func dataHeader(p []byte) (shared, other, n int) {
	s, i := uvarint32(p)
	o, j := uvarint32(p[i:])
	_, k := uvarint32(p[i+j:])
	if i == 0 || j == 0 || k == 0 {
		return 0, 0, 0
	}
	return int(s), int(o), i + j + k
}

// deltaHeader reads the lengths of an entry of an index without lengths of values.
func deltaHeader(p []byte) (shared, other, n int) {
	s, i := uvarint32(p)
	o, j := uvarint32(p[i:])
	if i == 0 || j == 0 {
		return 0, 0, 0
	}
	return int(s), int(o), i + j
}

// seek moves to the first entry whose user key is at least target. It returns false
// if the block has none.
func (b *block) seek(target []byte) bool {
	if !b.restart(target, dataHeader) {
		return false
	}
	for b.next() {
		if bytes.Compare(b.key[:len(b.key)-b.tail], target) >= 0 {
			return true
		}
	}
	return false
}
