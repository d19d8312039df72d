package hash128

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestMultiset compares digests with sorted copies: order does not count, how
// often a string comes does, and so does where one ends.
func TestMultiset(t *testing.T) {
	h := New()
	of := func(list ...string) (m Multiset) {
		for _, s := range list {
			m.Add(h.Sum([]byte(s)))
		}
		return m
	}
	lists := [][]string{
		{}, {""}, {"", ""}, {"a"}, {"b"}, {"a", "a"}, {"b", "b"}, {"a", "b"}, {"ab"}, {"a", "b", ""},
		{"a", "a", "b"}, {"a", "b", "b"}, {"a", "a", "a"}, {"b", "b", "a", "a"}, {"a", "a", "a", "b"}, {"c", "c"}, {"c", "c", "a"},
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for i, a := range lists {
		if n := of(a...).N; n != int64(len(a)) {
			t.Errorf("%q: %d", a, n)
		}
		for range 5 {
			shuffled := slices.Clone(a)
			rnd.Shuffle(len(shuffled), func(i, j int) { shuffled[i], shuffled[j] = shuffled[j], shuffled[i] })
			if of(shuffled...) != of(a...) {
				t.Errorf("%q and %q have different digests", a, shuffled)
			}
		}
		for _, b := range lists[:i] {
			if x, y := of(a...), of(b...); x == y || x.lo == y.lo || x.hi == y.hi { // each half tells them apart
				t.Errorf("%q and %q have one digest, or half of one", a, b)
			}
		}
	}
	// Counts that are multiples of large powers of two: an exclusive or, and a sum
	// of digests that are multiples of one number, would lose them.
	many := func(s string, n int) (m Multiset) {
		d := h.Sum([]byte(s))
		for range n {
			m.Add(d)
		}
		return m
	}
	seen := map[Multiset]string{}
	for _, s := range []string{"x", "y", "z"} {
		for _, n := range []int{1 << 10, 1 << 16, 1 << 20} {
			m := many(s, n)
			if other := seen[m]; other != "" {
				t.Errorf("%s × %d has the digest of %s", s, n, other)
			}
			seen[m] = fmt.Sprint(s, n)
			m.N = 0
			if m == (Multiset{}) {
				t.Errorf("%s × %d adds up to nothing", s, n)
			}
		}
	}
}
