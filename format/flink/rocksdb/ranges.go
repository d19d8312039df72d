package rocksdb

import (
	"bytes"
	"cmp"
	"container/heap"
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
	p, err := r.load(h)
	if err != nil {
		return nil, err
	}
	b := block{tail: trailer, unordered: true}
	if err := b.init(bytes.Clone(p)); err != nil {
		return nil, err
	}
	for b.next() {
		n := len(b.key) - trailer
		trail := binary.LittleEndian.Uint64(b.key[n:])
		if Kind(trail) != kindRange {
			return nil, corrupt("an entry of kind 0x%02x", uint8(trail))
		}
		seq := trail >> 8
		if t.ingested {
			seq = t.global
		}
		all = append(all, Range{bytes.Clone(b.key[:n]), b.value, seq})
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
			x.End = after(bounds.largest)
		}
	}
	return bytes.Compare(x.Start, x.End) < 0
}

// after returns the first key after key.
func after(key []byte) []byte { return append(slices.Clip(key), 0) }

// flatten replaces tombstones by ones that do not overlap: the newest for each key,
// ascending. It sorts all.
func flatten(all []Range) []Range {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b Range) int { return bytes.Compare(a.Start, b.Start) })
	ends := make([][]byte, len(all))
	for i := range all {
		ends[i] = all[i].End
	}
	slices.SortFunc(ends, bytes.Compare)
	var out []Range
	var open newest
	for i, j := 0, 0; j < len(ends); {
		// The next position at which a tombstone starts or ends.
		at := ends[j]
		if i < len(all) && bytes.Compare(all[i].Start, at) < 0 {
			at = all[i].Start
		}
		for i < len(all) && bytes.Equal(all[i].Start, at) {
			heap.Push(&open, all[i])
			i++
		}
		for j < len(ends) && bytes.Equal(ends[j], at) {
			j++
		}
		for len(open) > 0 && bytes.Compare(open[0].End, at) <= 0 {
			heap.Pop(&open)
		}
		last := len(out) - 1
		if last >= 0 && out[last].End == nil {
			if len(open) > 0 && open[0].Sequence == out[last].Sequence {
				continue
			}
			out[last].End = at
		}
		if len(open) > 0 {
			out = append(out, Range{Start: at, Sequence: open[0].Sequence})
		}
	}
	return out
}

// newest is a heap of tombstones, the newest first.
type newest []Range

func (h newest) Len() int           { return len(h) }
func (h newest) Less(i, j int) bool { return cmp.Less(h[j].Sequence, h[i].Sequence) }
func (h newest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *newest) Push(x any)        { *h = append(*h, x.(Range)) }
func (h *newest) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// cover tells the newest tombstone over keys that ascend. It holds the tombstones of
// the tables that a scan has reached.
type cover struct {
	lists [][]Range // flattened; what the scan has passed is cut off
	seq   uint64    // the newest over the current key
	any   bool
	until []byte // seq holds for keys before it; nil: not known
}

func (c *cover) add(list []Range) {
	if len(list) > 0 {
		c.lists, c.until, c.any = append(c.lists, list), nil, true
	}
}

// deletes reports whether a tombstone deletes an entry. Keys must not descend.
func (c *cover) deletes(key []byte, seq uint64) bool {
	if !c.any {
		return false
	}
	if c.until == nil || bytes.Compare(key, c.until) >= 0 {
		c.move(key)
	}
	return seq < c.seq
}

// move finds the newest tombstone over key, and until where it is that.
func (c *cover) move(key []byte) {
	c.seq, c.until = 0, nil
	soon := func(k []byte) {
		if c.until == nil || bytes.Compare(k, c.until) < 0 {
			c.until = k
		}
	}
	kept := c.lists[:0]
	for _, l := range c.lists {
		// Skip in steps that grow, for keys far away.
		if n, found := slices.BinarySearchFunc(l, key, func(r Range, k []byte) int {
			if bytes.Compare(r.End, k) <= 0 {
				return -1
			}
			return 1
		}); !found {
			l = l[n:]
		}
		if len(l) == 0 {
			continue
		}
		kept = append(kept, l)
		if bytes.Compare(l[0].Start, key) > 0 {
			soon(l[0].Start)
			continue
		}
		c.seq = max(c.seq, l[0].Sequence)
		soon(l[0].End)
	}
	clear(c.lists[len(kept):])
	c.lists, c.any = kept, len(kept) > 0
}
