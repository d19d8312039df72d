package tally

import (
	"encoding/binary"
	"errors"
	"testing"
)

func numbers(n, different int) func(visit func(p []byte) error) error {
	return func(visit func(p []byte) error) error {
		var p [4]byte
		for i := range n {
			binary.BigEndian.PutUint32(p[:], uint32(i%different))
			if err := visit(p[:]); err != nil {
				return err
			}
		}
		return nil
	}
}

// TestDistinct: the count is right however little the table holds.
func TestDistinct(t *testing.T) {
	for _, tt := range []struct {
		n, different int
		limit        int64
	}{
		{0, 1, 100}, {1000, 10, 100}, {1000, 100, 100}, {1000, 101, 100}, {5000, 3000, 100}, {777, 777, 1000},
	} {
		got, err := Distinct(numbers(tt.n, tt.different), Options{Memory: MemoryFor(tt.limit), Dir: t.TempDir()})
		if want := min(tt.n, tt.different); err != nil || got != int64(want) {
			t.Errorf("%+v: %d, %v", tt, got, err)
		}
	}
	gone := errors.New("gone")
	if _, err := Distinct(func(func(p []byte) error) error { return gone }, Options{}); err != gone {
		t.Error(err)
	}
}
