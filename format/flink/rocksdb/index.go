package rocksdb

import (
	"bytes"
	"encoding/binary"
)

// layout is how the entries of an index block are encoded; properties of the table
// say it.
type layout struct {
	// delta: values have no length, and are differences to the handle before if the
	// key shares bytes with the key before.
	delta bool
	// first: the first key of the block follows its handle.
	first bool
	tail  int // 8: keys are internal keys
}

// index walks the entries of an index block. Each has the handle of a block and a key
// that is at least the last key of that block and less than the first key of the next.
type index struct {
	block
	layout
	at    handle
	least uint64 // blocks start at or after this offset
}

func (x *index) start(p []byte, l layout, least uint64) error {
	x.layout, x.least, x.at = l, least, handle{}
	x.block.tail = l.tail
	x.clear()
	return x.init(p)
}

// next moves to the next entry. Blocks that are not in ascending order are an error,
// so no block is read twice.
func (x *index) next() bool {
	if !x.delta {
		if !x.block.next() {
			return false
		}
		h, n, ok := readHandle(x.value)
		return ok && x.set(h) && x.rest(x.value[n:]) || x.fail("the handle of a block is not valid")
	}
	p := x.data[x.off:]
	if len(p) == 0 {
		return false
	}
	shared, other, n := deltaHeader(p)
	if n == 0 || other > len(p)-n {
		return x.fail("the lengths of an entry are not valid")
	}
	if !x.setKey(shared, p[n:n+other]) {
		return false
	}
	n += other
	h := x.at
	if shared == 0 {
		var k int
		var ok bool
		if h, k, ok = readHandle(p[n:]); !ok {
			return x.fail("the handle of a block is not valid")
		}
		n += k
	} else {
		d, k := binary.Varint(p[n:])
		if k <= 0 {
			return x.fail("the handle of a block is not valid")
		}
		n += k
		h = handle{h.end(), h.size + uint64(d)}
	}
	if x.first {
		size, k := binary.Uvarint(p[n:])
		if k <= 0 || size > uint64(len(p)-n-k) {
			return x.fail("the first key of a block is not valid")
		}
		n += k + int(size)
	}
	x.off += n
	return x.set(h)
}

// rest checks what follows a handle.
func (x *index) rest(p []byte) bool {
	if !x.first {
		return len(p) == 0
	}
	size, k := binary.Uvarint(p)
	return k > 0 && size == uint64(len(p)-k)
}

func (x *index) set(h handle) bool {
	if h.off < x.least || h.end() < h.off {
		return x.fail("a block at %d, expected one at or after %d", h.off, x.least)
	}
	x.at, x.least = h, h.end()
	return true
}

// seek moves to the first entry whose key is at least target: its block is the first
// that can hold the key or a greater one.
func (x *index) seek(target []byte) bool {
	header := dataHeader
	if x.delta {
		header = deltaHeader
	}
	if !x.restart(target, header) {
		return false
	}
	for x.next() {
		if bytes.Compare(x.key[:len(x.key)-x.block.tail], target) >= 0 {
			return true
		}
	}
	return false
}
