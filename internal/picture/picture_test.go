package picture

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// near compares coordinates.
func near(a, b float64) bool { return math.Abs(a-b) < 1e-6*max(1, math.Abs(a), math.Abs(b)) }

// overlap reports whether two rectangles share more than an edge.
func overlap(a, b Rect) bool {
	w := min(a.X+a.W, b.X+b.W) - max(a.X, b.X)
	h := min(a.Y+a.H, b.Y+b.H) - max(a.Y, b.Y)
	return w > 1e-6 && h > 1e-6
}

func inside(r, frame Rect) bool {
	return r.X >= frame.X-1e-6 && r.Y >= frame.Y-1e-6 && r.X+r.W <= frame.X+frame.W+1e-6 && r.Y+r.H <= frame.Y+frame.H+1e-6
}

// TestTreemap divides frames at random: areas are in proportion to the values and sum up
// to the frame, no rectangle overlaps another or leaves the frame.
func TestTreemap(t *testing.T) {
	src := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		frame := Rect{src.Float64() * 10, src.Float64() * 10, 1 + src.Float64()*1000, 1 + src.Float64()*1000}
		values := make([]int64, src.IntN(60))
		total := 0.0
		for i := range values {
			values[i] = int64(math.Exp(src.Float64()*float64(src.IntN(30)))) - 1
			total += float64(values[i])
		}
		rects := Treemap(values, frame)
		if len(rects) != len(values) {
			t.Fatalf("%d rectangles of %d values", len(rects), len(values))
		}
		sum := 0.0
		for i, r := range rects {
			sum += r.Area()
			if want := float64(values[i]) / max(total, 1) * frame.Area(); !near(r.Area(), want) {
				t.Errorf("%v: area %g of value %d, expected %g", values, r.Area(), values[i], want)
			}
			if r.Area() > 0 && !inside(r, frame) {
				t.Errorf("%v: %v is not inside %v", values, r, frame)
			}
			for _, o := range rects[:i] {
				if overlap(r, o) {
					t.Errorf("%v: %v overlaps %v", values, r, o)
				}
			}
		}
		if total > 0 && !near(sum, frame.Area()) {
			t.Errorf("%v: the areas are %g, expected %g", values, sum, frame.Area())
		}
	}
}

// TestTreemapPaper is the example of the paper: 6, 6, 4, 3, 2, 2, 1 in a frame of 6 by 4
// makes a first column of the two sixes, each 3 by 2.
func TestTreemapPaper(t *testing.T) {
	got := Treemap([]int64{6, 6, 4, 3, 2, 2, 1}, Rect{0, 0, 6, 4})
	want := []Rect{{0, 0, 3, 2}, {0, 2, 3, 2}, {3, 0, 12.0 / 7, 7.0 / 3}, {3 + 12.0/7, 0, 9.0 / 7, 7.0 / 3}}
	for i, w := range want {
		g := got[i]
		if !near(g.X, w.X) || !near(g.Y, w.Y) || !near(g.W, w.W) || !near(g.H, w.H) {
			t.Errorf("rectangle %d is %v, expected %v", i, g, w)
		}
	}
}

func TestLine(t *testing.T) {
	frame := Rect{0, 0, 100, 50}
	for _, test := range []struct {
		got, want []Point
	}{
		{Line([]int64{0, 5, 10}, 10, frame), []Point{{0, 50}, {50, 25}, {100, 0}}},
		{Line([]int64{7}, 7, frame), []Point{{50, 0}}},
		{Line([]int64{0, 0}, 0, frame), []Point{{0, 50}, {100, 50}}},
		{Line([]int64{-3, 30}, 10, frame), []Point{{0, 50}, {100, 0}}},
		{LogLine([]int64{1, 100, 10000}, 10000, frame), []Point{{0, 50}, {50, 25}, {100, 0}}},
		{LogLine([]int64{0, math.MaxInt64}, math.MaxInt64, frame), []Point{{0, 50}, {100, 0}}},
	} {
		for i, p := range test.want {
			if !near(test.got[i].X, p.X) || !near(test.got[i].Y, p.Y) {
				t.Errorf("%v, expected %v", test.got, test.want)
				break
			}
		}
	}
	if got, want := Path([]Point{{0, 50}, {33.333333, 25}}), "M0 50L33.33 25"; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
}

func TestTicks(t *testing.T) {
	for _, test := range []struct {
		top, base int64
		want      []int64
	}{
		{0, 1000, []int64{0}},
		{1, 1000, []int64{0, 1}},
		{7, 1000, []int64{0, 2, 4, 6, 8}},
		{999, 1000, []int64{0, 200, 400, 600, 800, 1000}},
		{1 << 20, 1024, []int64{0, 500 << 10, 1000 << 10, 1500 << 10}},
		{3 << 20, 1024, []int64{0, 1 << 20, 2 << 20, 3 << 20}},
		{40 << 30, 1024, []int64{0, 10 << 30, 20 << 30, 30 << 30, 40 << 30}},
	} {
		if got := Ticks(test.top, test.base); !slices.Equal(got, test.want) {
			t.Errorf("%d by %d: %v, expected %v", test.top, test.base, got, test.want)
		}
	}
	for _, top := range []int64{math.MaxInt64, math.MaxInt64 / 2, 1 << 60} {
		for _, base := range []int64{1000, 1024} {
			got := Ticks(top, base)
			if len(got) > 7 || !slices.IsSorted(got) {
				t.Errorf("%d by %d: %v", top, base, got)
			}
		}
	}
}

func TestBars(t *testing.T) {
	if got, want := Bars([]int64{2, 0, 4}, Rect{0, 0, 30, 10}), "M0 10v-5h10v5zM20 10v-10h10v10z"; got != want {
		t.Errorf("%s, expected %s", got, want)
	}
	if got := Bars(nil, Rect{0, 0, 30, 10}); got != "" {
		t.Errorf("%q of no values", got)
	}
}

// TestGrid: the cells have one size and do not overlap.
func TestGrid(t *testing.T) {
	frame := Rect{0, 0, 320, 30}
	cells := Grid(70, 32, frame)
	for i, c := range cells {
		if !near(c.W, 10) || !near(c.H, 10) || !inside(c, frame) {
			t.Errorf("cell %d is %v", i, c)
		}
		for _, o := range cells[:i] {
			if overlap(c, o) {
				t.Errorf("%v overlaps %v", c, o)
			}
		}
	}
	if last := cells[69]; last.X != 50 || last.Y != 20 {
		t.Errorf("cell 69 is at %g, %g", last.X, last.Y)
	}
}

func TestShade(t *testing.T) {
	for _, test := range []struct {
		value, largest int64
		want           int
	}{{0, 10, 0}, {1, 10, 1}, {4, 10, 3}, {9, 10, 5}, {10, 10, 5}, {0, 0, 0}, {math.MaxInt64, math.MaxInt64, 5}} {
		if got := Shade(test.value, test.largest, 5); got != test.want {
			t.Errorf("%d of %d: %d, expected %d", test.value, test.largest, got, test.want)
		}
	}
}

func TestSum(t *testing.T) {
	for _, test := range []struct {
		values, want []int64
		n, each      int
	}{
		{[]int64{1, 2, 3}, []int64{1, 2, 3}, 3, 1},
		{[]int64{1, 2, 3, 4, 5}, []int64{3, 7, 5}, 3, 2},
		{nil, nil, 3, 1},
	} {
		if got, each := Sum(test.values, test.n); !slices.Equal(got, test.want) || each != test.each {
			t.Errorf("%v: %v of %d, expected %v of %d", test.values, got, each, test.want, test.each)
		}
	}
}
