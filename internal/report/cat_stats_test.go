package report

import (
	"slices"
	"testing"
)

// Sizes are counted by powers of two, from the smallest to the largest.
func TestCatStatSizes(t *testing.T) {
	tests := []struct {
		sizes []int64
		want  []CatSize
		drawn string
	}{
		{nil, nil, ""},
		{[]int64{0, 0}, []CatSize{{0, 2}}, ""},
		{[]int64{4, 5, 7}, []CatSize{{7, 3}}, ""},
		{[]int64{16, 3, 4, 3}, []CatSize{{3, 2}, {7, 1}, {15, 0}, {31, 1}}, "█▅▁▅"},
	}
	for _, tt := range tests {
		var s CatStat
		for _, n := range tt.sizes {
			s.Add(0, n)
		}
		s.Finish()
		if drawn := s.histogram(); !slices.Equal(s.Sizes, tt.want) || drawn != tt.drawn {
			t.Errorf("%v: %v %q, expected %v %q", tt.sizes, s.Sizes, drawn, tt.want, tt.drawn)
		}
	}
}
