package transform

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// maxKeyedHeader bounds what is compared of the headers of two keyed streams.
const maxKeyedHeader = 64 << 20

// groupsOf is some key groups of a handle.
type groupsOf struct {
	h      *format.KeyGroups
	groups format.KeyGroupRange
}

// keyedStreams locates the key groups of an operator in the streams of its full
// handles. It needs all handles of the operator: handles of a rescaled snapshot
// can share a stream and each name some of its key groups.
type keyedStreams struct {
	of map[*format.KeyGroups]*keyedStream
	// disorder is a key group that starts before the one that precedes it in its
	// handle; nil if there is none.
	disorder *int32
}

// keyedStream is a stream of key groups and the extents in it that a handle, or
// all handles of the stream, name.
type keyedStream struct {
	key     format.StreamKey
	size    int64
	extents []extent // sorted by group
}

// extent is the bytes start to end of a stream, which are a key group's.
type extent struct {
	group      int32
	start, end int64
}

// newKeyedStreams reads the offsets of the handles. size returns the length of a
// stream.
//
// The one rule for where a key group ends: at the start of the key group after
// it, the last one at the end of the stream. So of key groups with equal offsets
// only the last one has bytes: a key group without entries in the state of a Go
// program has the offset of the next.
func newKeyedStreams(ctx context.Context, handles []*format.KeyGroups, size func(format.Stream) (int64, error)) (*keyedStreams, error) {
	k := &keyedStreams{of: map[*format.KeyGroups]*keyedStream{}}
	type part struct {
		h      *format.KeyGroups
		starts []extent
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
		k.of[h] = &keyedStream{key: key, size: n}
		var starts []extent
		err = h.EachKeyGroup(ctx, func(group int32, at int64) error {
			if i := len(starts); i > 0 && at < starts[i-1].start && k.disorder == nil {
				k.disorder = &group
			}
			starts = append(starts, extent{group, at, n})
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
		var all []extent
		for _, p := range shared[key] {
			all = append(all, p.starts...)
		}
		slices.SortFunc(all, func(a, b extent) int { return cmp.Or(cmp.Compare(a.group, b.group), cmp.Compare(a.start, b.start)) })
		all = slices.Compact(all)
		ordered := true
		for i := 1; i < len(all); i++ {
			ordered = ordered && all[i].start >= all[i-1].start && all[i].group != all[i-1].group
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
			cuts = append(cuts, e.start)
		}
		slices.Sort(cuts)
		for _, p := range shared[key] {
			slices.SortFunc(p.starts, func(a, b extent) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.group, b.group)) })
			endAtNext(p.starts)
			for i := range p.starts {
				e := &p.starts[i]
				if c, _ := slices.BinarySearch(cuts, e.start+1); c < len(cuts) {
					e.end = min(e.end, cuts[c])
				}
			}
			slices.SortFunc(p.starts, func(a, b extent) int { return cmp.Compare(a.group, b.group) })
			k.of[p.h].extents = p.starts
		}
	}
	return k, nil
}

// endAtNext ends each extent where the next starts.
func endAtNext(all []extent) {
	for i := 1; i < len(all); i++ {
		all[i-1].end = all[i].start
	}
}

// header returns the number of bytes before the first key group of a stream.
func (k *keyedStreams) header(h *format.KeyGroups) int64 {
	s := k.of[h]
	n := s.size
	for _, e := range s.extents {
		n = min(n, e.start)
	}
	return n
}

// extent returns the bytes of a key group; ok is false if it has no data.
func (k *keyedStreams) extent(h *format.KeyGroups, group int32) (e extent, ok bool, err error) {
	s := k.of[h]
	i, ok := slices.BinarySearchFunc(s.extents, group, func(e extent, group int32) int { return cmp.Compare(e.group, group) })
	if !ok {
		return extent{}, false, nil
	}
	e = s.extents[i]
	if e.start < 0 || e.end > s.size || e.start > e.end {
		return extent{}, false, format.Errorf(format.ErrCorrupt, "key group %d starts at %d and ends at %d in a stream of %d bytes", group, e.start, e.end, s.size)
	}
	return e, true, nil
}

// merge puts key groups of full streams into one stream. A full stream is a
// header, which describes the states and nothing of the key groups, and then
// each key group for itself. So groups can be moved as they are between streams
// with equal headers (spec flink-keyed-state 2, 3, 4), compressed ones too.
func (k *keyedStreams) merge(ctx context.Context, src format.Source, parts []groupsOf) (*format.KeyGroups, error) {
	if k.disorder != nil {
		return nil, &keyedError{fmt.Sprintf("key group %d starts before the one that precedes it", *k.disorder)}
	}
	parts = slices.Clone(parts)
	slices.SortStableFunc(parts, func(a, b groupsOf) int { return int(a.groups.First) - int(b.groups.First) })
	first := parts[0].h
	m := *first
	m.HandleID, m.Range = format.Text{}, format.KeyGroupRange{First: parts[0].groups.First}
	rope := &format.Concat{}
	offsets := make(format.OffsetSlice, 0, len(parts))
	var header []byte
	var at int64
	for i, p := range parts {
		if p.h.Savepoint != first.Savepoint || p.h.Codec != first.Codec {
			return nil, &keyedError{"its keyed state is in streams of different kinds, which cannot be merged"}
		}
		if next := m.Range.First + m.Range.Count; p.groups.First != next {
			return nil, &keyedError{fmt.Sprintf("key group %d would follow %d: its handles overlap or leave a gap", p.groups.First, next-1)}
		}
		mine, err := keyedHeader(ctx, src, p.h, k.header(p.h))
		if err != nil {
			return nil, err
		}
		switch {
		case i == 0:
			header, at = mine, int64(len(mine))
			rope.Parts = append(rope.Parts, format.Part{Of: p.h.Data, N: at})
		case !bytes.Equal(header, mine):
			return nil, &keyedError{"its subtasks describe their keyed states differently, so their streams cannot be merged"}
		}
		for g := range p.groups.Count {
			e, ok, err := k.extent(p.h, p.groups.First+g)
			if err != nil {
				return nil, err
			}
			if (!ok || e.start == e.end && first.Savepoint) && !first.HasData(0) {
				offsets = append(offsets, 0)
				continue
			}
			offsets = append(offsets, at)
			rope.Parts = appendPart(rope.Parts, format.Part{Of: p.h.Data, Off: e.start, N: e.end - e.start})
			at += e.end - e.start
		}
		m.Range.Count += p.groups.Count
	}
	m.Offsets, m.Data = offsets, rope
	return &m, nil
}

// appendPart appends a part, as one with that before it where they adjoin.
func appendPart(parts []format.Part, p format.Part) []format.Part {
	if p.N == 0 {
		return parts
	}
	if last := &parts[len(parts)-1]; last.Of == p.Of && last.Off+last.N == p.Off {
		last.N += p.N
		return parts
	}
	return append(parts, p)
}

// keyedHeader reads what stands before the first key group.
func keyedHeader(ctx context.Context, src format.Source, h *format.KeyGroups, n int64) ([]byte, error) {
	if size := format.SizeOf(h.Data); n < 0 || n > size {
		return nil, format.Errorf(format.ErrCorrupt, "the first key group starts at %d in a stream of %d bytes", n, size)
	}
	if n > maxKeyedHeader {
		return nil, format.Errorf(format.ErrLimit, "a header of %d bytes before the first key group", n)
	}
	p := make([]byte, n)
	if n == 0 {
		return p, nil
	}
	_, err := src.ReadAt(ctx, h.Data, p, 0)
	return p, err
}
