package count

import "hash/maphash"

// maxKeys is the number of keys of a key group that are remembered at most.
const maxKeys = 1 << 20

// minSlots is the number of slots of the smallest set of keys.
const minSlots = 64

// keys is the set of the keys of a key group whose entries are in no order, by their
// hashes. It is a hash table with open addressing that is at most half full: a map took a
// third of the time of a count.
type keys struct {
	seed  maphash.Seed
	slots []uint64 // hashes; 0: free. Their number is a power of two
	used  int
}

func newKeys() keys { return keys{seed: maphash.MakeSeed(), slots: make([]uint64, minSlots)} }

// clear removes all keys. A table that was mostly empty becomes smaller, so that one large
// key group does not make many small ones slow.
func (k *keys) clear() {
	if n := len(k.slots); n > minSlots && k.used < n/8 {
		k.slots = k.slots[:n/2]
	}
	clear(k.slots)
	k.used = 0
}

// add reports whether the key of a state is new; ok is false if there are too many.
func (k *keys) add(state int, key []byte) (fresh, ok bool) {
	h := maphash.Bytes(k.seed, key) ^ uint64(state)*0x9e3779b97f4a7c15
	if h == 0 {
		h = 1
	}
	at := k.find(h)
	switch {
	case k.slots[at] == h:
		return false, true
	case k.used >= maxKeys:
		return false, false
	}
	k.slots[at] = h
	if k.used++; 2*k.used > len(k.slots) {
		k.grow()
	}
	return true, true
}

// find returns the slot of a hash, or the free one for it.
func (k *keys) find(h uint64) int {
	mask := len(k.slots) - 1
	at := int(h) & mask
	for k.slots[at] != 0 && k.slots[at] != h {
		at = (at + 1) & mask
	}
	return at
}

// grow doubles the slots.
func (k *keys) grow() {
	old := k.slots
	k.slots = make([]uint64, 2*len(old))
	for _, h := range old {
		if h != 0 {
			k.slots[k.find(h)] = h
		}
	}
}
