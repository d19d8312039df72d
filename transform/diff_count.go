package transform

import (
	"iter"
	"runtime"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
)

// diffParts is into how many parts elements are told apart by their digests.
const diffParts = 1 << 12

func diffPart(d digest) int { return int(d.hi >> 52) }

// maxRecords is how many elements of both sides are in memory at once, 8 bytes
// each: 160 MiB.
const maxRecords = 20 << 20

// pairCounter counts how often each different element comes on two sides. It
// first collects a record of every element, in a list for each part and side,
// and then counts one part after another, in a table small enough for a core's
// own cache.
//
// A record is the lower half of a digest. With the part that makes 76 bits under
// keys drawn anew in each run: among a hundred million different elements, two
// are taken for one in one run of ten million.
//
// When memory is full, records that come again become pairs of record and count,
// so that few elements that come often need little. Where that gives too little
// the last parts are dropped, for a later pass to collect. A list stays in the
// order in which its elements came first.
type pairCounter struct {
	slab   slab
	lists  [2][diffParts]recordList
	lo, hi int              // parts of this pass
	todo   *[diffParts]bool // of them, those to collect
	total  int64            // elements that the pass goes through
	seen   [2]int64         // those of each side that came
	// world is held by both sides while they add, and alone by who makes room.
	world   sync.RWMutex
	workers []*countWorker
	// first is what count kept, and list takes.
	first [2][diffParts][]pairSlot
}

// recordList is the records of one part and side. The first words are pairs of a
// record and how often it came, the others are records that came once more.
type recordList struct {
	first, last uint32 // blocks; 0: none
	words       uint32
	paired      uint32 // how many of the words are pairs
}

// countWorker is what one goroutine counts with.
type countWorker struct {
	table  pairTable
	pairs  []uint64
	counts pairCounts
}

func newPairCounter(records int) *pairCounter {
	return &pairCounter{slab: newSlab(records / blockLen)}
}

// start begins a pass over so many elements, of which those in the parts from lo
// to hi that are to do are collected. What was collected before is gone.
func (c *pairCounter) start(lo, hi int, todo *[diffParts]bool, total int64) {
	c.lo, c.hi, c.todo, c.total, c.seen = lo, hi, todo, total, [2]int64{}
	clear(c.lists[0][:])
	clear(c.lists[1][:])
	c.slab.reset()
}

// add collects elements of a side. Each side may do so in a goroutine of its own.
func (c *pairCounter) add(side int, all []digest) error {
	c.world.RLock()
	defer c.world.RUnlock()
	for len(all) > 0 {
		n := c.addSome(side, all)
		c.seen[side] += int64(n)
		if all = all[n:]; len(all) == 0 {
			break
		}
		c.world.RUnlock()
		err := c.makeRoom()
		c.world.RLock()
		if err != nil {
			return err
		}
	}
	return nil
}

// addSome collects elements until memory is full, and says how many.
func (c *pairCounter) addSome(side int, all []digest) int {
	lists := &c.lists[side]
	for i := range all {
		p := diffPart(all[i])
		if p >= c.lo && p < c.hi && c.todo[p] && !c.slab.push(&lists[p], all[i].lo) {
			return i
		}
	}
	return len(all)
}

// makeRoom is called when there is none.
func (c *pairCounter) makeRoom() error {
	c.world.Lock()
	defer c.world.Unlock()
	if c.slab.left() > 0 {
		return nil // the other side made it
	}
	if err := c.each(c.compact); err != nil {
		return err
	}
	// Going through all of it again has to pay.
	for need := int(c.slab.max) / 4; c.slab.left() < max(need, 1); need = 0 {
		if c.hi-c.lo == 1 {
			if c.slab.left() > 0 {
				break
			}
			return format.Errorf(format.ErrLimit, "more than %d elements in one part of %d", c.slab.max*blockLen, diffParts)
		}
		c.narrow()
	}
	return nil
}

// compact turns the records of a part into pairs, where that takes less.
func (c *pairCounter) compact(w *countWorker, part int) error {
	for side := range c.lists {
		l := &c.lists[side][part]
		if l.words == l.paired || l.words <= blockLen {
			continue
		}
		w.table.reset(int(l.words))
		if err := w.table.fill(&c.slab, *l, side); err != nil {
			return err
		}
		if blocksOf(2*w.table.used) >= blocksOf(int(l.words)) {
			continue
		}
		w.pairs = w.pairs[:0]
		for key := range c.slab.records(*l) {
			if s := w.table.find(key); s.n[side] > 0 {
				w.pairs = append(w.pairs, key, uint64(s.n[side]))
				s.n[side], s.n[1-side] = 0, 1 // it was met, and its slot is not free
			}
		}
		c.slab.release(l)
		for _, word := range w.pairs {
			c.slab.push(l, word) // there is room: it takes fewer blocks than it gave back
		}
		l.paired = l.words
	}
	return nil
}

// narrow drops the last parts of the pass: as many as would not fit if what is
// to come is like what came, and some at least.
func (c *pairCounter) narrow() {
	width := c.hi - c.lo
	used := int(c.slab.max) - c.slab.left()
	// Each part has two blocks that are half full; the others grow in number.
	spread := min(width, used)
	need := float64(spread) + float64(used-spread)*float64(c.total)/float64(max(c.seen[0]+c.seen[1], 1))
	keep := min(c.fitting(need), width-(width+7)/8)
	for p := c.lo + keep; p < c.hi; p++ {
		for side := range c.lists {
			c.slab.release(&c.lists[side][p])
		}
	}
	c.hi = c.lo + keep
}

// fitting is how many parts fit if those of this pass need so many blocks.
func (c *pairCounter) fitting(blocks float64) int {
	return max(int(0.98*float64(c.hi-c.lo)*float64(c.slab.max)/max(blocks, 1)), 1)
}

// next is how many parts the pass that follows may start with.
func (c *pairCounter) next() int {
	return min(c.fitting(float64(int(c.slab.max)-c.slab.left())), diffParts)
}

// each calls f with the parts that are to do and hold anything, from several
// goroutines.
func (c *pairCounter) each(f func(w *countWorker, part int) error) error {
	n := min(runtime.GOMAXPROCS(0), maxWorkers)
	if c.hi-c.lo < fewParts {
		n = 1 // they may be large, and so may be their tables
	}
	for len(c.workers) < n {
		c.workers = append(c.workers, &countWorker{})
	}
	var taken atomic.Int64
	var g errgroup.Group
	for _, w := range c.workers[:n] {
		g.Go(func() error {
			for {
				to := c.lo + int(taken.Add(atOnce))
				for p := to - atOnce; p < min(to, c.hi); p++ {
					if !c.todo[p] || c.lists[0][p].words+c.lists[1][p].words == 0 {
						continue
					}
					if err := f(w, p); err != nil {
						return err
					}
				}
				if to >= c.hi {
					return nil
				}
			}
		})
	}
	return g.Wait()
}

const (
	maxWorkers = 8
	fewParts   = 64
	atOnce     = 16 // parts that a goroutine takes
)

// pairCounts is what a pass counted.
type pairCounts struct {
	distinct [2]int64
	// more is how many elements come more often on a side, as often as they do.
	more [2]int64
	// up and down are by how much the count of every element was multiplied, and
	// divided; 0: there was none.
	up, down int64
}

// count counts what was collected: as elements of two sets, or how often each
// comes. Of each part it keeps the first so many that come more often on a side.
func (c *pairCounter) count(set bool, first int) (*pairCounts, error) {
	all := &pairCounts{}
	clear(c.first[0][:])
	clear(c.first[1][:])
	for _, w := range c.workers {
		w.counts = pairCounts{}
	}
	err := c.each(func(w *countWorker, part int) error {
		t := &w.table
		t.reset(int(c.lists[0][part].words + c.lists[1][part].words))
		for side := range c.lists {
			if err := t.fill(&c.slab, c.lists[side][part], side); err != nil {
				return err
			}
		}
		more := w.counts.add(t, set)
		for side := range c.lists {
			if n := int(min(more[side], int64(first))); n > 0 {
				c.first[side][part] = t.surplus(&c.slab, c.lists[side][part], side, n)
			}
		}
		return nil
	})
	for _, w := range c.workers {
		all.merge(&w.counts)
	}
	return all, err
}

// add adds up the counts of a part, and says what comes more often on a side.
// With set, counts become 1.
func (c *pairCounts) add(t *pairTable, set bool) (more [2]int64) {
	for i := range t.slots {
		s := &t.slots[i]
		if s.free() {
			continue
		}
		if s.n[0] > 0 {
			c.distinct[0]++
		}
		if s.n[1] > 0 {
			c.distinct[1]++
		}
		if set {
			s.n = [2]uint32{min(s.n[0], 1), min(s.n[1], 1)}
		}
		a, b := int64(s.n[0]), int64(s.n[1])
		more[0] += max(a-b, 0)
		more[1] += max(b-a, 0)
		if c.up != uneven || c.down != uneven {
			c.ratio(a, b)
		}
	}
	c.more[0] += more[0]
	c.more[1] += more[1]
	return more
}

// ratio notes by how much the count of one element was multiplied or divided.
func (c *pairCounts) ratio(a, b int64) {
	up, down := int64(uneven), int64(uneven)
	if a > 0 && b > 0 && b%a == 0 {
		up = b / a
	}
	if a > 0 && b > 0 && a%b == 0 {
		down = a / b
	}
	c.up, c.down = ratioOf(c.up, up), ratioOf(c.down, down)
}

// ratioOf is the ratio of counts that have one, and of others; 0: there are none.
func ratioOf(x, y int64) int64 {
	switch {
	case x == 0 || x == y:
		return y
	case y == 0:
		return x
	}
	return uneven
}

// uneven is the ratio of counts that have none in common.
const uneven = -1

// merge adds the counts of other elements.
func (c *pairCounts) merge(o *pairCounts) {
	for side := range c.more {
		c.distinct[side] += o.distinct[side]
		c.more[side] += o.more[side]
	}
	c.up, c.down = ratioOf(c.up, o.up), ratioOf(c.down, o.down)
}

// pairTable counts the elements of a part: an open hash table, at most three
// quarters full.
type pairTable struct {
	slots []pairSlot
	used  int
}

type pairSlot struct {
	key uint64    // the record
	n   [2]uint32 // how often it comes; both 0: the slot is free
}

func (s *pairSlot) free() bool { return s.n[0]|s.n[1] == 0 }

// maxPairs is how many different elements a table holds: as many as fill three
// quarters of 64 MiB. More than that in one part are twelve billion in all.
const maxPairs = 3 << 20

// reset makes an empty table for so many records. It starts no larger than a
// cache: they may be few elements that come often.
func (t *pairTable) reset(records int) {
	size := 16
	for size < 1<<16 && size*3/4 < records {
		size *= 2
	}
	if cap(t.slots) < size {
		t.slots = make([]pairSlot, size)
	}
	t.slots, t.used = t.slots[:size], 0
	clear(t.slots)
}

// find gives the slot of an element, or the free one where it belongs.
func (t *pairTable) find(key uint64) *pairSlot {
	mask := uint64(len(t.slots) - 1)
	for i := key & mask; ; i = (i + 1) & mask {
		s := &t.slots[i]
		if s.key == key || s.free() {
			return s
		}
	}
}

// add counts an element that comes n times on a side.
func (t *pairTable) add(key uint64, side int, n uint64) error {
	s := t.find(key)
	if s.free() {
		if t.used*4 >= len(t.slots)*3 {
			if err := t.grow(); err != nil {
				return err
			}
			s = t.find(key)
		}
		t.used++
		s.key = key
	}
	if n += uint64(s.n[side]); n > mostTimes {
		return format.Errorf(format.ErrLimit, "an element that comes more than %d times", uint32(mostTimes))
	}
	s.n[side] = uint32(n)
	return nil
}

func (t *pairTable) grow() error {
	if t.used >= maxPairs {
		return format.Errorf(format.ErrLimit, "more than %d different elements in one part of %d", maxPairs, diffParts)
	}
	old := t.slots
	t.slots = make([]pairSlot, 2*len(old))
	for i := range old {
		if !old[i].free() {
			*t.find(old[i].key) = old[i]
		}
	}
	return nil
}

// fill adds the records of a list.
func (t *pairTable) fill(m *slab, l recordList, side int) error {
	for words, paired := range m.blocks(l) {
		for i := 0; i < paired; i += 2 {
			if err := t.add(words[i], side, words[i+1]); err != nil {
				return err
			}
		}
		for _, key := range words[paired:] {
			if err := t.add(key, side, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// surplus gives the first elements of a side's list that come more often there,
// n at most, and forgets how often that is.
func (t *pairTable) surplus(m *slab, l recordList, side, n int) []pairSlot {
	var found []pairSlot
	for key := range m.records(l) {
		s := t.find(key)
		if s.n[side] <= s.n[1-side] {
			continue
		}
		found = append(found, *s)
		s.n = [2]uint32{1, 1} // it was met
		if len(found) == n {
			break
		}
	}
	return found
}

// slab is memory for lists of words, in blocks that are taken and given back. It
// grows as it is needed, and is never given back itself.
type slab struct {
	max    uint32 // blocks
	chunks []*slabChunk
	mu     sync.Mutex // guards what follows; a block is its list's
	made   uint32     // blocks 1 to made were taken
	free   uint32     // the first of those given back; 0: none
	back   uint32     // how many these are
}

// A block has place for a few dozen records: each list has one that is not full.
const (
	blockLen    = 64
	chunkBlocks = 2048
)

// slabChunk is 1 MiB of blocks, and which block comes behind each.
type slabChunk struct {
	blocks [chunkBlocks][blockLen]uint64
	next   [chunkBlocks]uint32
}

func newSlab(blocks int) slab {
	return slab{max: uint32(blocks), chunks: make([]*slabChunk, blocks/chunkBlocks+1)}
}

// blocksOf is how many blocks so many words take.
func blocksOf(words int) int { return (words + blockLen - 1) / blockLen }

func (m *slab) block(b uint32) *[blockLen]uint64 {
	return &m.chunks[b/chunkBlocks].blocks[b%chunkBlocks]
}
func (m *slab) next(b uint32) *uint32 { return &m.chunks[b/chunkBlocks].next[b%chunkBlocks] }

// left is how many blocks are free.
func (m *slab) left() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return int(m.max - m.made + m.back)
}

// reset frees all blocks.
func (m *slab) reset() { m.made, m.free, m.back = 0, 0, 0 }

// push appends a word to a list; false where there is no memory left.
func (m *slab) push(l *recordList, word uint64) bool {
	at := l.words % blockLen
	if at == 0 && !m.extend(l) {
		return false
	}
	m.block(l.last)[at] = word
	l.words++
	return true
}

// extend gives a list one more block.
func (m *slab) extend(l *recordList) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.free
	switch {
	case b > 0:
		m.free = *m.next(b)
		m.back--
	case m.made < m.max:
		m.made++
		b = m.made
		if chunk := &m.chunks[b/chunkBlocks]; *chunk == nil {
			*chunk = &slabChunk{}
		}
	default:
		return false
	}
	if l.first == 0 {
		l.first = b
	} else {
		*m.next(l.last) = b
	}
	l.last = b
	return true
}

// release gives the blocks of a list back and leaves it empty.
func (m *slab) release(l *recordList) {
	if l.first > 0 {
		m.mu.Lock()
		defer m.mu.Unlock()
		*m.next(l.last) = m.free
		m.free = l.first
		m.back += uint32(blocksOf(int(l.words)))
	}
	*l = recordList{}
}

// blocks gives the words of a list block by block, and how many of them belong
// to pairs.
func (m *slab) blocks(l recordList) iter.Seq2[[]uint64, int] {
	return func(yield func([]uint64, int) bool) {
		words, paired := int(l.words), int(l.paired)
		for b := l.first; words > 0; b = *m.next(b) {
			n := min(words, blockLen)
			if !yield(m.block(b)[:n], min(paired, n)) {
				return
			}
			words -= n
			paired -= min(paired, n)
		}
	}
}

// records gives the records of a list, a pair as one.
func (m *slab) records(l recordList) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for words, paired := range m.blocks(l) {
			for i := 0; i < paired; i += 2 {
				if !yield(words[i]) {
					return
				}
			}
			for _, key := range words[paired:] {
				if !yield(key) {
					return
				}
			}
		}
	}
}
