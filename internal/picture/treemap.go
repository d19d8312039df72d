package picture

import (
	"cmp"
	"slices"
)

// Treemap divides a frame into one rectangle per value, with areas in proportion to the
// values. It returns the rectangles in the order of the values. A value of 0 or less
// has an empty rectangle. The layout is the squarified one (Bruls, Huizing and van Wijk,
// 2000): rows are filled, largest first, as long as that makes their rectangles more
// square.
func Treemap(values []int64, frame Rect) []Rect {
	all := make([]Rect, len(values))
	order := make([]int, 0, len(values))
	total := 0.0
	for i, v := range values {
		if v > 0 {
			order = append(order, i)
			total += float64(v)
		}
	}
	if total == 0 || frame.W <= 0 || frame.H <= 0 {
		return all
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[b], values[a]) })
	scale := frame.Area() / total
	areas := make([]float64, len(order))
	for k, i := range order {
		areas[k] = float64(values[i]) * scale
	}
	for first := 0; first < len(order); {
		side := min(frame.W, frame.H)
		sum := areas[first]
		n := first + 1
		for n < len(order) && worst(areas[first], areas[n], sum+areas[n], side) <= worst(areas[first], areas[n-1], sum, side) {
			sum += areas[n]
			n++
		}
		frame = row(all, order[first:n], areas[first:n], sum, frame, n == len(order))
		first = n
	}
	return all
}

// worst returns the largest ratio of the sides of rectangles in a row along a side, from
// the areas of the largest and the smallest of them and of all together.
func worst(largest, smallest, sum, side float64) float64 {
	return max(side*side*largest/(sum*sum), sum*sum/(side*side*smallest))
}

// row lines up rectangles along the shorter side of a frame, and returns what is left of
// the frame. The last row takes all of it, so that rounding leaves no gap.
func row(all []Rect, order []int, areas []float64, sum float64, frame Rect, last bool) Rect {
	if frame.W >= frame.H { // a column at the left
		w := sum / frame.H
		if last {
			w = frame.W
		}
		y := frame.Y
		for k, i := range order {
			h := frame.H * areas[k] / sum
			all[i] = Rect{frame.X, y, w, h}
			y += h
		}
		return Rect{frame.X + w, frame.Y, max(frame.W-w, 0), frame.H}
	}
	h := sum / frame.W
	if last {
		h = frame.H
	}
	x := frame.X
	for k, i := range order {
		w := frame.W * areas[k] / sum
		all[i] = Rect{x, frame.Y, w, h}
		x += w
	}
	return Rect{frame.X, frame.Y + h, frame.W, max(frame.H-h, 0)}
}
