package number

import "math"

// Times multiplies numbers that are not negative. A product that is more than an
// int64 holds is the largest int64.
func Times(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}
