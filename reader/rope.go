package reader

import (
	"context"
	"sort"
	"sync"

	"github.com/savepoint-tools/spt/format"
)

// A rope can have one part per element, each a few bytes of a file. To save
// requests, parts of one stream that are close together are read at once.
const (
	ropeGap  = 64 << 10 // bytes between parts that are read rather than skipped
	ropeSpan = 1 << 20  // read at once, at most
)

// ropes caches where the parts of ropes end, so that a read finds its first part
// by binary search.
type ropes struct {
	mu   sync.Mutex
	ends map[*format.Concat][]int64
}

func (r *ropes) of(c *format.Concat) []int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	ends, ok := r.ends[c]
	if !ok {
		ends = make([]int64, len(c.Parts))
		var at int64
		for i, p := range c.Parts {
			at += p.N
			ends[i] = at
		}
		if r.ends == nil {
			r.ends = map[*format.Concat][]int64{}
		}
		r.ends[c] = ends
	}
	return ends
}

// concat reads from a rope.
func (s *source) concat(ctx context.Context, c *format.Concat, p []byte, off int64) (int, error) {
	ends := s.ropes.of(c)
	i := sort.Search(len(ends), func(i int) bool { return ends[i] > off })
	n := 0
	for n < len(p) && i < len(ends) {
		start := off + int64(n) - (ends[i] - c.Parts[i].N) // in part i
		last := s.together(c, i, int64(len(p)-n)+start)
		if last == i {
			part := c.Parts[i]
			k := int(min(part.N-start, int64(len(p)-n)))
			if _, err := s.ReadAt(ctx, part.Of, p[n:n+k], part.Off+start); err != nil {
				return n, err
			}
			n += k
			i++
			continue
		}
		k, err := s.gather(ctx, c.Parts[i:last+1], start, p[n:])
		n += k
		if err != nil {
			return n, err
		}
		i = last + 1
	}
	if n < len(p) {
		return n, format.Errorf(format.ErrTruncated, "read of %d bytes past the end of a stream of %d", len(p)-n, c.Size())
	}
	return n, nil
}

// together returns the last of the parts that are read with part i: of the same
// stream, in order, up to want bytes.
func (s *source) together(c *format.Concat, i int, want int64) int {
	first := c.Parts[i]
	got := first.N
	for got < want && i+1 < len(c.Parts) {
		a, b := c.Parts[i], c.Parts[i+1]
		if b.Of != first.Of || b.Off < a.Off+a.N || b.Off-a.Off-a.N > ropeGap || b.Off+b.N-first.Off > ropeSpan {
			break
		}
		got += b.N
		i++
	}
	return i
}

// gather reads parts of one stream at once and copies the requested bytes, which
// begin at start in the first part.
func (s *source) gather(ctx context.Context, parts []format.Part, start int64, p []byte) (int, error) {
	from, last := parts[0].Off+start, parts[len(parts)-1]
	span := make([]byte, last.Off+last.N-from)
	if _, err := s.ReadAt(ctx, parts[0].Of, span, from); err != nil {
		return 0, err
	}
	n := 0
	for i, part := range parts {
		at, size := part.Off-from, part.N
		if i == 0 {
			at, size = 0, part.N-start
		}
		n += copy(p[n:], span[at:at+size])
	}
	return n, nil
}
