package transform

import (
	"encoding/binary"
	"errors"
	"testing"
)

func numbers(n, different int) func(visit func(p []byte)) error {
	return func(visit func(p []byte)) error {
		var p [4]byte
		for i := range n {
			binary.BigEndian.PutUint32(p[:], uint32(i%different))
			visit(p[:])
		}
		return nil
	}
}

// TestCountDistinct: the count is right however little the table holds.
func TestCountDistinct(t *testing.T) {
	for _, tt := range []struct{ n, different, limit, rounds int }{
		{0, 1, 100, 1}, {1000, 10, 100, 1}, {1000, 100, 100, 1}, {1000, 101, 100, 3}, {5000, 3000, 100, 33}, {777, 777, 1000, 1},
	} {
		rounds := 0
		each := numbers(tt.n, tt.different)
		got, err := countDistinct(func(visit func(p []byte)) error { rounds++; return each(visit) }, tt.limit)
		if want := min(tt.n, tt.different); err != nil || got != int64(want) {
			t.Errorf("%+v: %d, %v", tt, got, err)
		}
		if (tt.rounds == 1) != (rounds == 1) || rounds < tt.rounds {
			t.Errorf("%+v: %d rounds", tt, rounds)
		}
	}
	gone := errors.New("gone")
	if _, err := CountDistinct(func(func(p []byte)) error { return gone }); err != gone {
		t.Error(err)
	}
}

func TestCounter(t *testing.T) {
	c := NewCounter()
	c.t.limit = 3
	for i, s := range []string{"a", "b", "a", "", "a"} {
		if !c.Add([]byte(s)) {
			t.Fatalf("%d: full", i)
		}
	}
	if c.Add([]byte("d")) || !c.Add([]byte("b")) {
		t.Error("a fourth element fits, or one of the three does not")
	}
	for _, tt := range []struct {
		s     string
		count int64
		first bool
	}{{"a", 3, true}, {"b", 2, true}, {"a", 3, false}, {"", 1, true}} {
		if n, first := c.Again([]byte(tt.s)); n != tt.count || first != tt.first {
			t.Errorf("%q: %d, %v", tt.s, n, first)
		}
	}
}
