package picture

import (
	"math"
	"strconv"
	"strings"
)

// Line returns a point for each value, evenly spread from the left to the right of the
// frame: 0 is at its bottom, and top at its top. A single value is in the middle.
func Line(values []int64, top int64, frame Rect) []Point {
	return points(len(values), frame, func(i int) float64 { return share(float64(values[i]), float64(top)) })
}

// LogLine is [Line] on a logarithmic scale from 1 to top. Values below 1 are at the
// bottom.
func LogLine(values []int64, top int64, frame Rect) []Point {
	return points(len(values), frame, func(i int) float64 {
		return share(math.Log(max(float64(values[i]), 1)), math.Log(max(float64(top), 1)))
	})
}

func points(n int, frame Rect, height func(int) float64) []Point {
	all := make([]Point, n)
	for i := range all {
		x := 0.5
		if n > 1 {
			x = float64(i) / float64(n-1)
		}
		all[i] = Point{frame.X + x*frame.W, frame.Y + (1-height(i))*frame.H}
	}
	return all
}

// share returns part/whole, from 0 to 1.
func share(part, whole float64) float64 {
	if whole <= 0 {
		return 0
	}
	return min(max(part/whole, 0), 1)
}

// Ticks returns round numbers from 0 to the first that is top or more, at most six of
// them. They are multiples of 1, 2 or 5 times a power of ten, in units of a power of
// base: 1000 for counts, 1024 for bytes.
func Ticks(top, base int64) []int64 {
	for unit := int64(1); ; unit *= base {
		for _, k := range []int64{1, 10, 100} {
			for _, m := range []int64{1, 2, 5} {
				step := m * k * unit
				if m*k >= base || step <= 0 {
					break
				}
				if (max(top, 1)-1)/step < 5 {
					return upTo(top, step)
				}
			}
		}
		if unit > math.MaxInt64/base/base {
			return upTo(top, max(top, 1))
		}
	}
}

func upTo(top, step int64) (all []int64) {
	for n := int64(0); ; n += step {
		all = append(all, n)
		if n >= top || n > math.MaxInt64-step {
			return all
		}
	}
}

// Path returns the points as the data of an SVG path.
func Path(points []Point) string {
	var b strings.Builder
	for i, p := range points {
		b.WriteByte("ML"[min(i, 1)])
		number(&b, p.X)
		b.WriteByte(' ')
		number(&b, p.Y)
	}
	return b.String()
}

// Bars returns the data of an SVG path with a bar for each value, side by side from the
// left to the right of the frame. The largest value is as high as the frame.
func Bars(values []int64, frame Rect) string {
	top := int64(0)
	for _, v := range values {
		top = max(top, v)
	}
	var b strings.Builder
	w := frame.W / float64(max(len(values), 1))
	for i, v := range values {
		h := share(float64(v), float64(top)) * frame.H
		if h == 0 {
			continue
		}
		b.WriteByte('M')
		number(&b, frame.X+float64(i)*w)
		b.WriteByte(' ')
		number(&b, frame.Y+frame.H)
		b.WriteByte('v')
		number(&b, -h)
		b.WriteByte('h')
		number(&b, w)
		b.WriteByte('v')
		number(&b, h)
		b.WriteByte('z')
	}
	return b.String()
}

// number writes a coordinate with up to two decimals.
func number(b *strings.Builder, x float64) {
	b.WriteString(strconv.FormatFloat(math.Round(x*100)/100+0, 'f', -1, 64))
}
