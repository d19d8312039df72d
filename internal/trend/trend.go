// Package trend extends numbers of successive checkpoints in a straight line through
// the first and the last. It does not read snapshots and keeps no history.
//
//	span := trend.SpanOf(points)
//	growth := span.Per(first, last)          // of each checkpoint
//	limit := span.Until(first, last, 1<<30)  // when it reaches 1 GiB
package trend

import (
	"cmp"
	"math"
	"math/big"
	"slices"
	"time"
)

// Point is the position of a checkpoint.
type Point struct {
	ID   int64
	Time time.Time // zero: not known
}

// Span is the distance from the first to the last checkpoint.
type Span struct {
	// Checkpoints is the difference of the ids if they increase, else the number of
	// steps; 0 for fewer than two checkpoints.
	Checkpoints int64
	Seconds     int64 // 0 if a time is not known, or the times do not increase
}

// SpanOf returns the span of checkpoints in their order.
func SpanOf(points []Point) Span {
	n := len(points)
	if n < 2 {
		return Span{}
	}
	first, last := points[0], points[n-1]
	s := Span{Checkpoints: last.ID - first.ID}
	increasing := slices.IsSortedFunc(points, func(a, b Point) int { return cmp.Compare(a.ID, b.ID) })
	if !increasing || s.Checkpoints < 1 {
		s.Checkpoints = int64(n - 1)
	}
	timed := !slices.ContainsFunc(points, func(p Point) bool { return p.Time.IsZero() }) &&
		slices.IsSortedFunc(points, func(a, b Point) int { return a.Time.Compare(b.Time) })
	if timed {
		s.Seconds = int64(last.Time.Sub(first.Time) / time.Second)
	}
	return s
}

// Per returns the growth of each checkpoint, rounded.
func (s Span) Per(first, last int64) int64 {
	if s.Checkpoints == 0 {
		return 0
	}
	return int64(math.Round(float64(last-first) / float64(s.Checkpoints)))
}

// Limit is when a number reaches a limit.
type Limit struct {
	Reached bool // by the last checkpoint
	// Checkpoints and Seconds after the last one, rounded up; nil if the limit is
	// reached, never will be at this rate, or the time is not known.
	Checkpoints, Seconds *int64
}

// Until returns when a number that was first and is last reaches the limit.
func (s Span) Until(first, last, limit int64) Limit {
	growth := last - first
	l := Limit{Reached: last >= limit}
	if l.Reached || growth <= 0 || s.Checkpoints == 0 {
		return l
	}
	l.Checkpoints = share(limit-last, s.Checkpoints, growth)
	if s.Seconds > 0 {
		l.Seconds = share(limit-last, s.Seconds, growth)
	}
	return l
}

// share returns a·b/c, rounded up; nil if that is not an int64.
func share(a, b, c int64) *int64 {
	x := new(big.Int).Mul(big.NewInt(a), big.NewInt(b))
	x.Add(x, big.NewInt(c-1)).Div(x, big.NewInt(c))
	if !x.IsInt64() {
		return nil
	}
	n := x.Int64()
	return &n
}
