package picture

// Grid returns n cells of one size in rows of columns, from the top left of the frame.
// The rows fill the frame.
func Grid(n, columns int, frame Rect) []Rect {
	all := make([]Rect, n)
	rows := (n + columns - 1) / columns
	w, h := frame.W/float64(columns), frame.H/float64(max(rows, 1))
	for i := range all {
		all[i] = Rect{frame.X + float64(i%columns)*w, frame.Y + float64(i/columns)*h, w, h}
	}
	return all
}

// Shade returns the shade of a value, from 1 to steps in proportion to its share of the
// largest one; 0 for 0.
func Shade(value, largest int64, steps int) int {
	if value <= 0 || largest <= 0 {
		return 0
	}
	return min(1+int(float64(value)/float64(largest)*float64(steps)), steps)
}

// Sum adds up neighbouring values, so that at most n are left. Each sum is of the same
// number of values, which it returns, except the last one.
func Sum(values []int64, n int) (sums []int64, each int) {
	each = max(1, (len(values)+n-1)/n)
	for i, v := range values {
		if i%each == 0 {
			sums = append(sums, 0)
		}
		sums[len(sums)-1] += v
	}
	return sums, each
}
