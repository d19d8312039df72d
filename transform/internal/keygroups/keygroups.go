// Package keygroups locates key groups in the streams of full keyed state.
package keygroups

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// Streams locates the key groups of an operator in the streams of its full
// handles. It needs all handles of the operator: handles of a rescaled snapshot
// can share a stream and each name some of its key groups.
type Streams struct {
	of map[*format.KeyGroups]*stream
	// Disorder is a key group that starts before its predecessor in the handle, or
	// nil.
	Disorder *int32
}

// stream is a stream of key groups with the extents that a handle, or all handles
// of the stream, name.
type stream struct {
	key     format.StreamKey
	size    int64
	extents []Extent // sorted by group
}

// Extent is the range of a key group in a stream: the bytes from Start to End.
type Extent struct {
	Group      int32
	Start, End int64
}

// Locate reads the offsets of the handles. size returns the length of a
// stream.
//
// A key group ends where the next one starts, and the last one at the end of the
// stream. So of several key groups with equal offsets, only the last one has
// bytes: in the state of a Go program, a key group without entries has the offset
// of the next.
func Locate(ctx context.Context, handles []*format.KeyGroups, size func(format.Stream) (int64, error)) (*Streams, error) {
	k := &Streams{of: map[*format.KeyGroups]*stream{}}
	type part struct {
		h      *format.KeyGroups
		starts []Extent
	}
	var order []format.StreamKey
	shared := map[format.StreamKey][]part{}
	for _, h := range handles {
		if k.of[h] != nil {
			continue
		}
		n, err := size(h.Data)
		if err != nil {
			return nil, err
		}
		var key format.StreamKey
		if h.Data != nil {
			key = h.Data.Key()
		}
		k.of[h] = &stream{key: key, size: n}
		var starts []Extent
		err = h.EachKeyGroup(ctx, func(group int32, at int64) error {
			if i := len(starts); i > 0 && at < starts[i-1].Start && k.Disorder == nil {
				k.Disorder = &group
			}
			starts = append(starts, Extent{group, at, n})
			return nil
		})
		if err != nil {
			return nil, err
		}
		if h.Codec == format.CodecNative {
			key.Name += fmt.Sprintf(" of %d", len(order)) // its handles share no stream
		}
		if shared[key] == nil {
			order = append(order, key)
		}
		shared[key] = append(shared[key], part{h, starts})
	}
	for _, key := range order {
		var all []Extent
		for _, p := range shared[key] {
			all = append(all, p.starts...)
		}
		slices.SortFunc(all, func(a, b Extent) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Start, b.Start)) })
		all = slices.Compact(all)
		ordered := true
		for i := 1; i < len(all); i++ {
			ordered = ordered && all[i].Start >= all[i-1].Start && all[i].Group != all[i-1].Group
		}
		if ordered {
			endAtNext(all)
			for _, p := range shared[key] {
				k.of[p.h].extents = all
			}
			continue
		}
		// Different streams of equal bytes, or key groups in another order.
		var cuts []int64
		for _, e := range all {
			cuts = append(cuts, e.Start)
		}
		slices.Sort(cuts)
		for _, p := range shared[key] {
			slices.SortFunc(p.starts, func(a, b Extent) int { return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Group, b.Group)) })
			endAtNext(p.starts)
			for i := range p.starts {
				e := &p.starts[i]
				if c, _ := slices.BinarySearch(cuts, e.Start+1); c < len(cuts) {
					e.End = min(e.End, cuts[c])
				}
			}
			slices.SortFunc(p.starts, func(a, b Extent) int { return cmp.Compare(a.Group, b.Group) })
			k.of[p.h].extents = p.starts
		}
	}
	return k, nil
}

// endAtNext ends each Extent where the next starts.
func endAtNext(all []Extent) {
	for i := 1; i < len(all); i++ {
		all[i-1].End = all[i].Start
	}
}

// Header returns the number of bytes before the first key group of a stream.
func (k *Streams) Header(h *format.KeyGroups) int64 {
	s := k.of[h]
	n := s.size
	for _, e := range s.extents {
		n = min(n, e.Start)
	}
	return n
}

// Extent returns the bytes of a key group; ok is false if it has no data.
func (k *Streams) Extent(h *format.KeyGroups, group int32) (e Extent, ok bool, err error) {
	s := k.of[h]
	i, ok := slices.BinarySearchFunc(s.extents, group, func(e Extent, group int32) int { return cmp.Compare(e.Group, group) })
	if !ok {
		return Extent{}, false, nil
	}
	e = s.extents[i]
	if e.Start < 0 || e.End > s.size || e.Start > e.End {
		return Extent{}, false, format.Errorf(format.ErrCorrupt, "key group %d starts at %d and ends at %d in a stream of %d bytes", group, e.Start, e.End, s.size)
	}
	return e, true, nil
}

// Key returns the key of the stream of a handle.
func (k *Streams) Key(h *format.KeyGroups) format.StreamKey { return k.of[h].key }
