package transform

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sort"

	"github.com/savepoint-tools/spt/format"
)

// maxKeyedHeader bounds what is compared of the headers of two keyed streams.
const maxKeyedHeader = 64 << 20

// groupsOf is some key groups of a handle.
type groupsOf struct {
	h      *format.KeyGroups
	groups format.KeyGroupRange
}

// groupStart is where a key group starts in a stream.
type groupStart struct {
	group int32
	at    int64
}

// keyedStreams is where the key groups lie in the streams of one operator's
// full handles. It takes all handles of an operator to know: a rescaled
// snapshot has handles that each name some key groups of a stream they share.
type keyedStreams struct {
	starts map[any][]groupStart // by streamID, in the order of the groups
}

// streamID tells streams apart without reading them.
func streamID(s format.Stream) any {
	switch s := s.(type) {
	case nil: // a _metadata may say so
		return nil
	case *format.Inline:
		return s
	}
	return s.Key()
}

// hasNoData is whether an offset says that there is no data of a key group.
// Before the groups stands a header, so no group of Flink's starts at 0.
func hasNoData(h *format.KeyGroups, offset int64) bool {
	return offset == 0 && h.Codec != format.CodecNative
}

func newKeyedStreams(ctx context.Context, subtasks []*format.Subtask) (*keyedStreams, error) {
	k := &keyedStreams{map[any][]groupStart{}}
	for _, sub := range subtasks {
		h, full := keyedOf(sub, false).(*format.KeyGroups)
		if !full {
			continue
		}
		if n := h.Offsets.Len(); n != int64(h.Range.Count) {
			return nil, format.Errorf(format.ErrCorrupt, "%d offsets for %d key groups", n, h.Range.Count)
		}
		id := streamID(h.Data)
		err := format.EachOffset(ctx, h.Offsets, func(first int64, run []int64) error {
			for i, off := range run {
				if !hasNoData(h, off) {
					k.starts[id] = append(k.starts[id], groupStart{h.Range.First + int32(first) + int32(i), off})
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for _, s := range k.starts {
		slices.SortStableFunc(s, func(a, b groupStart) int { return int(a.group) - int(b.group) })
		for i := 1; i < len(s); i++ {
			if s[i].at < s[i-1].at || s[i].group == s[i-1].group && s[i].at != s[i-1].at {
				return nil, &keyedError{fmt.Sprintf("key group %d does not lie behind those before it", s[i].group)}
			}
		}
	}
	return k, nil
}

// header is how many bytes stand before the first key group of a stream.
func (k *keyedStreams) header(h *format.KeyGroups) int64 {
	if s := k.starts[streamID(h.Data)]; len(s) > 0 {
		return s[0].at
	}
	return format.SizeOf(h.Data)
}

// extent is where the data of a key group lies; ok is false where it has none.
// It ends where the next group starts, the last at the end of the stream.
func (k *keyedStreams) extent(h *format.KeyGroups, group int32) (start, end int64, ok bool, err error) {
	s := k.starts[streamID(h.Data)]
	i := sort.Search(len(s), func(i int) bool { return s[i].group >= group })
	if i == len(s) || s[i].group != group {
		return 0, 0, false, nil
	}
	size := format.SizeOf(h.Data)
	start, end = s[i].at, size
	if next := sort.Search(len(s), func(i int) bool { return s[i].group > group }); next < len(s) {
		end = s[next].at
	}
	if start < 0 || end > size || start > end {
		return 0, 0, false, format.Errorf(format.ErrCorrupt, "key group %d is said to be bytes %d to %d of a stream of %d", group, start, end, size)
	}
	return start, end, true, nil
}

// merge puts key groups of full streams into one stream. A full stream is a
// header, which describes the states and nothing of the key groups, and then
// each key group for itself. So groups can be moved as they are between streams
// with equal headers (spec flink-keyed-state 2, 3, 4), compressed ones too.
func (k *keyedStreams) merge(ctx context.Context, src format.Source, parts []groupsOf) (*format.KeyGroups, error) {
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
			return nil, &keyedError{"its keyed state lies in streams of different kinds, which cannot be merged"}
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
			start, end, ok, err := k.extent(p.h, p.groups.First+g)
			if err != nil {
				return nil, err
			}
			if !ok {
				offsets = append(offsets, 0)
				continue
			}
			offsets = append(offsets, at)
			rope.Parts = appendPart(rope.Parts, format.Part{Of: p.h.Data, Off: start, N: end - start})
			at += end - start
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
		return nil, format.Errorf(format.ErrCorrupt, "the first key group is said to be at %d in a stream of %d bytes", n, size)
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
