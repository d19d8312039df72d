package rocksdb

import (
	"bytes"
	"context"
	"encoding/binary"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// Range is a range tombstone: it deletes the keys from Start up to, but not
// including, End whose sequence number is less than Sequence.
type Range struct {
	Start, End []byte
	Sequence   uint64
}

// Ranges returns the range tombstones of a table in the order of the file. They hold
// for all tables of the column family, but only for keys within the bounds that the
// database records for this table; see [LiveTable].
func (t *Table) Ranges(ctx context.Context) ([]Range, error) {
	h, ok := t.meta[metaRanges]
	if !ok {
		return nil, nil
	}
	all, err := t.ranges(t.blocks(ctx), h)
	return all, format.At(atBlock(err, h), "range tombstones")
}

func (t *Table) ranges(r *blocks, h handle) (all []Range, err error) {
	p, err := r.load(h) // r is not used again, so the block stays
	if err != nil {
		return nil, err
	}
	b := block{tail: trailer, unordered: true}
	if err := b.init(p); err != nil {
		return nil, err
	}
	all = make([]Range, 0, min(t.RangeDeletions, uint64(len(b.data)/(trailer+3))))
	for at := 0; b.next(); at = b.off {
		n := len(b.key) - trailer
		trail := binary.LittleEndian.Uint64(b.key[n:])
		if Kind(trail) != kindRange {
			return nil, corrupt("an entry of kind 0x%02x", uint8(trail))
		}
		x := Range{End: b.value, Sequence: trail >> 8}
		if t.ingested {
			x.Sequence = t.global
		}
		if shared, _, k := dataHeader(b.data[at:]); shared == 0 { // always, in RocksDB's own tables
			x.Start = b.data[at+k : at+k+n : at+k+n]
		} else {
			x.Start = bytes.Clone(b.key[:n])
		}
		all = append(all, x)
	}
	if b.err != nil {
		return nil, b.err
	}
	return all, nil
}

// clip limits a tombstone to the bounds of its table (spec flink-keyed-state B.3). It
// returns false if nothing is left.
func (x *Range) clip(bounds keyRange) bool {
	if bytes.Compare(x.Start, bounds.smallest) < 0 {
		x.Start = bounds.smallest
	}
	if bytes.Compare(x.End, bounds.largest) > 0 {
		x.End = bounds.largest
		if !bounds.open { // the largest key is in the table
			x.End = nextKey(bounds.largest)
		}
	}
	return bytes.Compare(x.Start, x.End) < 0
}

// nextKey returns the first key after key.
func nextKey(key []byte) []byte { return append(slices.Clip(key), 0) }

// boundary says that from a key on the newest tombstone has a sequence number; 0: no
// tombstone is over the keys up to the next boundary.
type boundary struct {
	key []byte
	seq uint64
}

// flatten returns the newest tombstone for each key, ascending. It sorts all. Its
// time is n log n, no matter how the tombstones overlap.
func flatten(all []Range) []boundary {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b Range) int { return bytes.Compare(a.Start, b.Start) })
	ends := make([][]byte, len(all))
	for i := range all {
		ends[i] = all[i].End
	}
	slices.SortFunc(ends, bytes.Compare)
	out := make([]boundary, 0, 2*len(all))
	open := newest{all: all}
	for i, j := 0, 0; j < len(ends); {
		// The next position at which a tombstone starts or ends.
		at := ends[j]
		if i < len(all) && bytes.Compare(all[i].Start, at) < 0 {
			at = all[i].Start
		}
		for ; i < len(all) && bytes.Equal(all[i].Start, at); i++ {
			open.push(i)
		}
		for j < len(ends) && bytes.Equal(ends[j], at) {
			j++
		}
		for len(open.heap) > 0 && bytes.Compare(open.first().End, at) <= 0 {
			open.pop()
		}
		seq := uint64(0)
		if len(open.heap) > 0 {
			seq = open.first().Sequence
		}
		if n := len(out); n == 0 && seq > 0 || n > 0 && out[n-1].seq != seq {
			out = append(out, boundary{at, seq})
		}
	}
	return out
}

// newest is a heap of tombstones, the newest first.
type newest struct {
	all  []Range
	heap []int
}

func (h *newest) first() *Range { return &h.all[h.heap[0]] }

func (h *newest) newer(i, j int) bool {
	return h.all[h.heap[i]].Sequence > h.all[h.heap[j]].Sequence
}

func (h *newest) push(x int) {
	h.heap = append(h.heap, x)
	for i := len(h.heap) - 1; i > 0 && h.newer(i, (i-1)/2); i = (i - 1) / 2 {
		h.heap[i], h.heap[(i-1)/2] = h.heap[(i-1)/2], h.heap[i]
	}
}

func (h *newest) pop() {
	n := len(h.heap) - 1
	h.heap[0] = h.heap[n]
	h.heap = h.heap[:n]
	for i := 0; ; {
		k := 2*i + 1
		if k >= n {
			return
		}
		if k+1 < n && h.newer(k+1, k) {
			k++
		}
		if !h.newer(k, i) {
			return
		}
		h.heap[i], h.heap[k] = h.heap[k], h.heap[i]
		i = k
	}
}

// cover determines the newest tombstone over keys that ascend. It holds the
// tombstones of the tables that a scan has reached.
type cover struct {
	lists [][]boundary // what the scan has passed is cut off
	seq   uint64       // the newest over the current key
	until []byte       // seq holds for keys before it
	known bool         // seq and until are determined
	ends  bool         // until holds; otherwise seq is for all keys that follow
}

func (c *cover) add(list []boundary) {
	if len(list) > 0 {
		c.lists, c.known = append(c.lists, list), false
	}
}

// deletes reports whether a tombstone deletes an entry. Keys must not descend.
func (c *cover) deletes(key []byte, seq uint64) bool {
	if len(c.lists) == 0 {
		return false
	}
	if !c.known || c.ends && bytes.Compare(key, c.until) >= 0 {
		c.move(key)
	}
	return seq < c.seq
}

// move finds the newest tombstone over key, and the key from which on another may be.
func (c *cover) move(key []byte) {
	c.seq, c.known, c.ends = 0, true, false
	soon := func(k []byte) {
		if !c.ends || bytes.Compare(k, c.until) < 0 {
			c.until, c.ends = k, true
		}
	}
	kept := c.lists[:0]
	for _, l := range c.lists {
		n, found := slices.BinarySearchFunc(l, key, func(b boundary, k []byte) int { return bytes.Compare(b.key, k) })
		if found {
			n++ // of those after key
		}
		if n > 0 {
			l = l[n-1:]
			c.seq = max(c.seq, l[0].seq)
			if len(l) == 1 {
				continue // its last boundary has no tombstone
			}
			soon(l[1].key)
		} else {
			soon(l[0].key)
		}
		kept = append(kept, l)
	}
	clear(c.lists[len(kept):])
	c.lists = kept
}
