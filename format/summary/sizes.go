package summary

import (
	"cmp"
	"context"
	"slices"

	"github.com/savepoint-tools/spt/format"
)

// StateSizes returns the bytes of each state of a handle, in the order of its
// states, by offsets alone: from the first element of a state to the first element
// of the next state in the stream, or to the end of the stream. States are written
// one after another, so this is exact (spec flink-operator-state A6), including
// frames of a compressed stream. Interleaved states are summed element by element.
func StateSizes(ctx context.Context, h *format.OperatorHandle) ([]int64, error) {
	sizes := make([]int64, len(h.States))
	spans := make([]span, 0, len(h.States))
	for i, s := range h.States {
		n := s.Offsets.Len()
		if n == 0 {
			continue
		}
		first, err := format.OffsetAt(ctx, s.Offsets, 0)
		if err != nil {
			return nil, err
		}
		last, err := format.OffsetAt(ctx, s.Offsets, n-1)
		if err != nil {
			return nil, err
		}
		spans = append(spans, span{i, first, last})
	}
	slices.SortFunc(spans, func(a, b span) int {
		return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.last, b.last))
	})
	end := int64(-1)
	if h.Data != nil {
		end = h.Data.Size()
	}
	for k, s := range spans {
		next := end
		if k+1 < len(spans) {
			next = spans[k+1].first
			if next < s.last {
				return interleaved(ctx, h, end)
			}
		}
		if next >= 0 { // otherwise the length of the stream is unknown
			sizes[s.state] = max(next-s.first, 0)
		}
	}
	return sizes, nil
}

type span struct {
	state       int
	first, last int64
}

// interleaved sums element by element: an element ends where the next one, of any
// state, starts. No release writes such a stream. It holds all offsets in memory.
func interleaved(ctx context.Context, h *format.OperatorHandle, end int64) ([]int64, error) {
	var all []span
	for i, s := range h.States {
		err := format.EachOffset(ctx, s.Offsets, func(_ int64, run []int64) error {
			for _, v := range run {
				all = append(all, span{state: i, first: v})
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	sizes := make([]int64, len(h.States))
	for k, e := range all {
		next := end
		if k+1 < len(all) {
			next = all[k+1].first
		}
		sizes[e.state] += max(next-e.first, 0)
	}
	return sizes, nil
}
