package transform

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/transform/internal/keygroups"
)

// maxKeyedHeader bounds what is compared of the headers of two keyed streams.
const maxKeyedHeader = 64 << 20

// groupsOf is a set of key groups of a handle.
type groupsOf struct {
	h      *format.KeyGroups
	groups format.KeyGroupRange
}

// mergeGroups puts key groups of full streams into one stream. A full stream is a
// header, which describes only the states, followed by independent key groups. So
// key groups, also compressed ones, can be copied between streams with equal
// headers (spec flink-keyed-state 2, 3, 4).
func mergeGroups(ctx context.Context, src format.Source, k *keygroups.Streams, parts []groupsOf) (*format.KeyGroups, error) {
	if k.Disorder != nil {
		return nil, &keyedError{fmt.Sprintf("key group %d starts before its predecessor", *k.Disorder)}
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
		mine, err := keyedHeader(ctx, src, p.h, k.Header(p.h))
		if err != nil {
			return nil, err
		}
		switch {
		case i == 0:
			header, at = mine, int64(len(mine))
			rope.Parts = append(rope.Parts, format.Part{Of: p.h.Data, N: at})
		case !bytes.Equal(header, mine):
			return nil, &keyedError{"its subtasks have different serializer snapshots of keyed state, so their streams cannot be merged"}
		}
		for g := range p.groups.Count {
			e, ok, err := k.Extent(p.h, p.groups.First+g)
			if err != nil {
				return nil, err
			}
			if (!ok || e.Start == e.End && first.Savepoint) && !first.HasData(0) {
				offsets = append(offsets, 0)
				continue
			}
			offsets = append(offsets, at)
			rope.Parts = appendPart(rope.Parts, format.Part{Of: p.h.Data, Off: e.Start, N: e.End - e.Start})
			at += e.End - e.Start
		}
		m.Range.Count += p.groups.Count
	}
	m.Offsets, m.Data = offsets, rope
	return &m, nil
}

// appendPart appends a part, merging it with the previous part if they are
// adjacent.
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

// keyedHeader reads the header before the first key group.
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
