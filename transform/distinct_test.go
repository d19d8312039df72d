package transform

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/savepoint-tools/spt/internal/tally"
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

// TestCountDistinct: the count is right however little the table holds.
func TestCountDistinct(t *testing.T) {
	for _, tt := range []struct {
		n, different int
		limit        int64
	}{
		{0, 1, 100}, {1000, 10, 100}, {1000, 100, 100}, {1000, 101, 100}, {5000, 3000, 100}, {777, 777, 1000},
	} {
		got, err := countDistinct(numbers(tt.n, tt.different), tally.Options{Memory: tally.MemoryFor(tt.limit), Dir: t.TempDir()})
		if want := min(tt.n, tt.different); err != nil || got != int64(want) {
			t.Errorf("%+v: %d, %v", tt, got, err)
		}
	}
	gone := errors.New("gone")
	if _, err := CountDistinct(func(func(p []byte) error) error { return gone }, ""); err != gone {
		t.Error(err)
	}
}

func TestCounter(t *testing.T) {
	c := newCounter(12)
	for i, s := range []string{"a", "b", "a", "", "a", "1", "2", "3", "4", "5", "6", "7", "8", "9"} {
		if !c.Add([]byte(s)) {
			t.Fatalf("%d: full", i)
		}
	}
	if c.Add([]byte("d")) || !c.Add([]byte("b")) {
		t.Error("a thirteenth element fits, or one of the twelve does not")
	}
	for _, tt := range []struct {
		s     string
		count int64
		first bool
	}{{"a", 3, true}, {"b", 2, true}, {"a", 3, false}, {"", 1, true}, {"never added", 0, false}} {
		if n, first := c.Again([]byte(tt.s)); n != tt.count || first != tt.first {
			t.Errorf("%q: %d, %v", tt.s, n, first)
		}
	}
}
