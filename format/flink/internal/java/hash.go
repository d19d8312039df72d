package java

import "unicode/utf8"

// HashString returns String.hashCode: a polynomial over the UTF-16 units. A lone
// surrogate is encoded in three bytes, as DecodeText returns it.
func HashString(s string) int32 {
	var h uint32
	for i := 0; i < len(s); {
		if b := s[i]; b < utf8.RuneSelf {
			h = 31*h + uint32(b)
			i++
			continue
		}
		if isSurrogate(s[i:]) {
			h = 31*h + (0xd000 | uint32(s[i+1]&0x3f)<<6 | uint32(s[i+2]&0x3f))
			i += 3
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		u := uint32(r)
		if u >= 0x10000 {
			h = 31*h + 0xd800 + (u-0x10000)>>10
			u = 0xdc00 + (u-0x10000)&0x3ff
		}
		h = 31*h + u
	}
	return int32(h)
}

// HashMap computes the order in which a java.util.HashMap iterates its keys after
// insertions. It knows only hash codes: callers decide which keys are equal. Spec
// flink-operator-state A7, B2.
type HashMap struct {
	nodes []hashNode // in the order of insertion
	bins  []hashBin
	trees bool
}

type hashNode struct {
	hash uint32
	next int32 // in the bin; -1: last
}

type hashBin struct{ first, last int32 } // -1: empty

const (
	defaultTable = 16
	maxTable     = 1 << 30
	treeify      = 8  // nodes in a bin before the next makes it a tree …
	treeTable    = 64 // … or, in a smaller table, doubles the table
)

// NewHashMap returns the equivalent of new HashMap(capacity), or of new HashMap() for
// 0.
func NewHashMap(capacity int) *HashMap {
	if capacity == 0 {
		capacity = defaultTable
	}
	size := 1
	for size < capacity && size < maxTable {
		size *= 2
	}
	m := &HashMap{}
	m.resize(size)
	return m
}

// Put inserts a key that is not in the map yet.
func (m *HashMap) Put(hash int32) {
	n := m.insert(hash, false)
	if n > treeify {
		m.treeifyBin()
	}
	if m.full() {
		m.resize(2 * len(m.bins))
	}
}

// ComputeIfAbsent inserts a key unless known reports that the map has it. Unlike
// [HashMap.Put] it puts the key at the head of its bin, and enlarges a full table
// before it inserts, even for a known key.
func (m *HashMap) ComputeIfAbsent(hash int32, known bool) {
	if m.full() {
		m.resize(2 * len(m.bins))
	}
	if !known && m.insert(hash, true) >= treeify {
		m.treeifyBin()
	}
}

// Order returns the keys in iteration order, each as the number of its insertion.
func (m *HashMap) Order() []int {
	order := make([]int, 0, len(m.nodes))
	for _, b := range m.bins {
		for i := b.first; i >= 0; i = m.nodes[i].next {
			order = append(order, int(i))
		}
	}
	return order
}

// Trees reports whether a bin got so many keys that Java converted it to a tree.
// The order inside a tree is not modelled: Order is then one of several possible
// orders.
func (m *HashMap) Trees() bool { return m.trees }

func (m *HashMap) full() bool {
	return len(m.bins) < maxTable && 4*len(m.nodes) > 3*len(m.bins)
}

// insert adds a node and returns the number of nodes in its bin, counting up to
// treeify.
func (m *HashMap) insert(hash int32, head bool) int {
	h := uint32(hash) ^ uint32(hash)>>16
	i := int32(len(m.nodes))
	m.nodes = append(m.nodes, hashNode{h, -1})
	b := m.bin(h)
	if head && b.first >= 0 {
		m.nodes[i].next, b.first = b.first, i
	} else {
		m.link(b, i)
	}
	n := 0
	for k := b.first; k >= 0 && n <= treeify; k = m.nodes[k].next {
		n++
	}
	return n
}

func (m *HashMap) bin(h uint32) *hashBin { return &m.bins[h&uint32(len(m.bins)-1)] }

func (m *HashMap) link(b *hashBin, i int32) {
	if b.first < 0 {
		b.first = i
	} else {
		m.nodes[b.last].next = i
	}
	b.last, m.nodes[i].next = i, -1
}

// treeifyBin enlarges a small table, as Java does before it creates trees.
func (m *HashMap) treeifyBin() {
	if len(m.bins) < treeTable {
		m.resize(2 * len(m.bins))
	} else {
		m.trees = true
	}
}

// resize keeps the order of nodes inside the bins.
func (m *HashMap) resize(size int) {
	order := m.Order()
	m.bins = make([]hashBin, size)
	for i := range m.bins {
		m.bins[i] = hashBin{-1, -1}
	}
	for _, i := range order {
		m.link(m.bin(m.nodes[i].hash), int32(i))
	}
}
