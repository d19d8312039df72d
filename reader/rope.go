package reader

import (
	"context"
	"sort"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ability"
)

// A rope can have one part per element, each a few bytes of a file. To save
// requests, parts of one stream that are close together are read at once.
const (
	ropeGap       = 64 << 10  // bytes between parts that are read rather than skipped
	remoteRopeGap = 256 << 10 // the same, of a remote snapshot
	ropeSpan      = 1 << 20   // read at once, at most
	ropeReads     = 8         // reads at the same time, of a remote snapshot
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

// piece is a range of parts of a rope that is read at once.
type piece struct {
	parts []format.Part
	start int64 // of the range, in the first part
	to    []byte
}

// concat reads from a rope.
func (s *source) concat(ctx context.Context, c *format.Concat, p []byte, off int64) (int, error) {
	ends := s.ropes.of(c)
	i := sort.Search(len(ends), func(i int) bool { return ends[i] > off })
	remote := !ability.Near(s.store)
	var pieces []piece // not read yet
	n := 0
	for n < len(p) && i < len(ends) {
		start := off + int64(n) - (ends[i] - c.Parts[i].N) // in part i
		last := s.together(c, i, int64(len(p)-n)+start)
		k := int(min(ends[last]-off, int64(len(p)))) - n
		one := piece{c.Parts[i : last+1], start, p[n : n+k]}
		if remote {
			pieces = append(pieces, one)
		} else if done, err := s.piece(ctx, one); err != nil {
			return n + done, err
		}
		n += k
		i = last + 1
	}
	if len(pieces) == 1 {
		if done, err := s.piece(ctx, pieces[0]); err != nil {
			return done, err
		}
	} else if len(pieces) > 1 {
		g, gctx := errgroup.WithContext(ctx)
		g.SetLimit(ropeReads)
		for _, one := range pieces {
			g.Go(func() error {
				_, err := s.piece(gctx, one)
				return err
			})
		}
		if err := g.Wait(); err != nil {
			return 0, err
		}
	}
	if n < len(p) {
		return n, format.Errorf(format.ErrTruncated, "read of %d bytes past the end of a stream of %d", len(p)-n, c.Size())
	}
	return n, nil
}

// piece reads one piece.
func (s *source) piece(ctx context.Context, one piece) (int, error) {
	if len(one.parts) > 1 {
		return s.gather(ctx, one.parts, one.start, one.to)
	}
	if _, err := s.ReadAt(ctx, one.parts[0].Of, one.to, one.parts[0].Off+one.start); err != nil {
		return 0, err
	}
	return len(one.to), nil
}

// together returns the last of the parts that are read with part i: of the same
// stream, in order, up to want bytes.
func (s *source) together(c *format.Concat, i int, want int64) int {
	first := c.Parts[i]
	got := first.N
	gap := int64(ropeGap)
	if !ability.Near(s.store) {
		gap = remoteRopeGap
	}
	for got < want && i+1 < len(c.Parts) {
		a, b := c.Parts[i], c.Parts[i+1]
		if b.Of != first.Of || b.Off < a.Off+a.N || b.Off-a.Off-a.N > gap || b.Off+b.N-first.Off > ropeSpan {
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
