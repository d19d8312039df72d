package trend

import (
	"math"
	"testing"
	"time"
)

func at(id int64, minutes int) Point {
	return Point{ID: id, Time: time.Date(2026, 11, 30, 12, minutes, 0, 0, time.UTC)}
}

func TestSpanOf(t *testing.T) {
	for name, x := range map[string]struct {
		points []Point
		want   Span
	}{
		"none":            {nil, Span{}},
		"one":             {[]Point{at(7, 0)}, Span{}},
		"by id":           {[]Point{at(7, 0), at(9, 1), at(17, 10)}, Span{10, 600}},
		"same id":         {[]Point{at(1, 0), at(1, 1), at(1, 2)}, Span{2, 120}},
		"id goes down":    {[]Point{at(90, 0), at(1, 1), at(99, 2)}, Span{2, 120}},
		"time goes down":  {[]Point{at(1, 5), at(3, 0)}, Span{2, 0}},
		"time is unknown": {[]Point{{ID: 1}, at(3, 0)}, Span{2, 0}},
	} {
		if got := SpanOf(x.points); got != x.want {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
}

func TestUntil(t *testing.T) {
	span := Span{Checkpoints: 10, Seconds: 600}
	n := func(v int64) *int64 { return &v }
	for name, x := range map[string]struct {
		span               Span
		first, last, limit int64
		want               Limit
	}{
		"reached":        {span, 1, 5, 5, Limit{Reached: true}},
		"does not grow":  {span, 5, 5, 6, Limit{}},
		"shrinks":        {span, 5, 4, 6, Limit{}},
		"one checkpoint": {Span{}, 5, 5, 6, Limit{}},
		"rounded up":     {span, 0, 100, 111, Limit{Checkpoints: n(2), Seconds: n(66)}},
		"without times":  {Span{Checkpoints: 1}, 0, 100, 1000, Limit{Checkpoints: n(9)}},
		"too far":        {Span{Checkpoints: 1 << 40}, 0, 1, math.MaxInt64, Limit{}},
	} {
		got := x.span.Until(x.first, x.last, x.limit)
		if got.Reached != x.want.Reached || !same(got.Checkpoints, x.want.Checkpoints) || !same(got.Seconds, x.want.Seconds) {
			t.Errorf("%s: %+v, want %+v", name, got, x.want)
		}
	}
	if got := span.Per(100, 65); got != -4 { // -3.5, away from zero
		t.Errorf("per checkpoint %d", got)
	}
}

func same(a, b *int64) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }
