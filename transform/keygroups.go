package transform

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// maxKeyedHeader bounds what is compared of the headers of two keyed streams.
const maxKeyedHeader = 64 << 20

// mergeKeyGroups puts the key groups of several full streams into one. A full
// stream is a header, which describes the states, and then each key group for
// itself, so groups can be moved as they are between streams with equal headers
// (spec flink-keyed-state). Offsets of key groups without data are 0 in the
// savepoint format and the place of the next in others.
func mergeKeyGroups(ctx context.Context, src format.Source, parts []groupsOf) (*format.KeyGroups, error) {
	slices.SortStableFunc(parts, func(a, b groupsOf) int { return int(a.groups.First - b.groups.First) })
	first := parts[0].h
	m := *first
	m.HandleID, m.Range = format.Text{}, format.KeyGroupRange{First: parts[0].groups.First}
	rope := &format.Concat{}
	var header []byte
	var offsets format.OffsetSlice
	var at int64
	for i, p := range parts {
		if p.h.Savepoint != first.Savepoint || p.h.Codec != first.Codec || p.h.Wire != first.Wire {
			return nil, &keyedError{"its keyed state lies in streams of different kinds, which cannot be merged"}
		}
		if p.groups.First != m.Range.First+m.Range.Count {
			return nil, &keyedError{fmt.Sprintf("its handles do not adjoin: key group %d follows %d", p.groups.First, m.Range.First+m.Range.Count-1)}
		}
		lie, err := groupExtents(ctx, p)
		if err != nil {
			return nil, err
		}
		mine, err := keyedHeader(ctx, src, p.h, lie.header)
		if err != nil {
			return nil, err
		}
		switch {
		case i == 0:
			header = mine
			rope.Parts = append(rope.Parts, format.Part{Of: p.h.Data, N: int64(len(mine))})
			at = int64(len(mine))
		case !bytes.Equal(header, mine):
			return nil, &keyedError{"its subtasks describe their keyed states differently, so their streams cannot be merged"}
		}
		for _, g := range lie.groups {
			if g.absent {
				offsets = append(offsets, 0)
				continue
			}
			offsets = append(offsets, at)
			if g.end > g.start {
				rope.Parts = append(rope.Parts, format.Part{Of: p.h.Data, Off: g.start, N: g.end - g.start})
				at += g.end - g.start
			}
		}
		m.Range.Count += p.groups.Count
	}
	m.Offsets, m.Data = offsets, rope
	return &m, nil
}

// groupsOf is some key groups of a handle.
type groupsOf struct {
	h      *format.KeyGroups
	groups format.KeyGroupRange
}

// extents are where key groups lie in a stream.
type extents struct {
	header int64 // where the first group of the stream starts
	groups []extent
}

type extent struct {
	start, end int64
	absent     bool // the savepoint format says that there is no data
}

// groupExtents finds where key groups lie: each ends where the next in the
// stream starts, the last at its end.
func groupExtents(ctx context.Context, p groupsOf) (extents, error) {
	all := make([]int64, 0, p.h.Range.Count)
	err := format.EachOffset(ctx, p.h.Offsets, func(_ int64, run []int64) error {
		all = append(all, run...)
		return nil
	})
	if err != nil {
		return extents{}, err
	}
	if len(all) != int(p.h.Range.Count) {
		return extents{}, format.Errorf(format.ErrCorrupt, "%d offsets for %d key groups", len(all), p.h.Range.Count)
	}
	absent := func(v int64) bool { return v == 0 && p.h.Savepoint }
	size := format.SizeOf(p.h.Data)
	e := extents{header: size}
	starts := slices.DeleteFunc(slices.Clone(all), absent)
	if !slices.IsSorted(starts) {
		return extents{}, format.Errorf(format.ErrUnsupported, "its key groups do not lie in the order of their numbers")
	}
	if len(starts) > 0 {
		e.header = starts[0]
	}
	ends := make([]int64, len(all))
	next := size
	for i := len(all) - 1; i >= 0; i-- {
		ends[i] = next
		if !absent(all[i]) {
			next = all[i]
		}
	}
	from := int(p.groups.First - p.h.Range.First)
	for i := from; i < from+int(p.groups.Count); i++ {
		start, end := all[i], ends[i]
		if absent(start) {
			e.groups = append(e.groups, extent{absent: true})
			continue
		}
		if start < 0 || end < start || end > size {
			return extents{}, format.Errorf(format.ErrCorrupt, "key group %d is said to be bytes %d to %d of a stream of %d", int(p.h.Range.First)+i, start, end, size)
		}
		e.groups = append(e.groups, extent{start: start, end: end})
	}
	return e, nil
}

// keyedHeader reads what stands before the first key group.
func keyedHeader(ctx context.Context, src format.Source, h *format.KeyGroups, n int64) ([]byte, error) {
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
