package format_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// Vectors of spec flink-operator-state B8.
func TestKeyGroupOfHash(t *testing.T) {
	for hash, want := range map[int32]int32{
		0: 94, 1: 86, 2: 127, 42: 29, -1: 80, math.MinInt32: 108,
		97:       81, // "a"
		99162322: 35, // "hello"
		97520992: 98, // "flink"
	} {
		if got := format.KeyGroupOfHash(hash, 128); got != want {
			t.Errorf("hash %d: key group %d, want %d", hash, got, want)
		}
	}
	// The whole hash, modulo the largest max parallelism and a prime.
	for hash, murmur := range map[int32]int32{0: 593689054, 1: 68075478, 2: 1085422463, 42: 1134849565, -1: 1982413648, math.MinInt32: 1718298732} {
		for _, m := range []int32{1, 32768, 1_000_003, math.MaxInt32} {
			if got := format.KeyGroupOfHash(hash, m); got != murmur%m {
				t.Errorf("hash %d, max %d: %d, want %d", hash, m, got, murmur%m)
			}
		}
	}
}

// TestKeyGroupOfSmallestMurmur: of the one number that has no positive
// counterpart Flink makes 0 (MathUtils.murmurHash). The hash codes were found by
// inverting the murmur hash, whose steps are all bijections.
func TestKeyGroupOfSmallestMurmur(t *testing.T) {
	for hash, n := range map[int32]int32{
		-2089875627: 0,             // murmur 80000000
		1814469223:  math.MaxInt32, // 80000001
		994512208:   math.MaxInt32, // 7fffffff
		2009592756:  1,             // ffffffff
		-1035494534: 0,             // 00000000
	} {
		for _, m := range []int32{1, 100, 127, 128, 32767, 32768} {
			if got := format.KeyGroupOfHash(hash, m); got != n%m {
				t.Errorf("hash %d, max %d: %d, want %d", hash, m, got, n%m)
			}
		}
	}
}

func TestKeyGroupsOf(t *testing.T) {
	for _, x := range []struct {
		p, max int32
		want   string
	}{
		{1, 128, "[0–127]"},
		{2, 128, "[0–63 64–127]"},
		{3, 128, "[0–42 43–85 86–127]"},
		{5, 128, "[0–25 26–51 52–76 77–102 103–127]"},
		{3, 10, "[0–3 4–6 7–9]"},
		{3, 3, "[0 1 2]"},
	} {
		var got []format.KeyGroupRange
		for i := range x.p {
			got = append(got, format.KeyGroupsOf(i, x.p, x.max))
		}
		if fmt.Sprint(got) != x.want {
			t.Errorf("%d of %d: %v, want %s", x.p, x.max, got, x.want)
		}
	}
	// Without gaps, and each group where Flink's subtask formula puts it.
	for _, m := range []int32{1, 7, 128, 1000, format.MaxKeyGroups} {
		for _, p := range []int32{1, 2, 3, 7, 85, m} {
			if p > m {
				continue
			}
			next := int32(0)
			for i := range p {
				r := format.KeyGroupsOf(i, p, m)
				if r.First != next || r.Count < 1 {
					t.Fatalf("subtask %d of %d, max %d: %v after %d", i, p, m, r, next)
				}
				for _, g := range []int32{r.First, r.Last()} {
					if int32(int64(g)*int64(p)/int64(m)) != i {
						t.Fatalf("key group %d of %d is not subtask %d's of %d", g, m, i, p)
					}
				}
				next = r.Last() + 1
			}
			if next != m {
				t.Fatalf("%d of %d: the ranges end at %d", p, m, next)
			}
		}
	}
}

func TestKeyGroupRange(t *testing.T) {
	r := func(first, count int32) format.KeyGroupRange { return format.KeyGroupRange{First: first, Count: count} }
	for _, x := range []struct{ a, b, want format.KeyGroupRange }{
		{r(0, 10), r(5, 10), r(5, 5)},
		{r(0, 10), r(0, 10), r(0, 10)},
		{r(0, 10), r(10, 10), r(0, 0)},
		{r(0, 10), r(9, 1), r(9, 1)},
		{r(3, 0), r(0, 10), r(0, 0)},
		{r(0, 128), r(32, 32), r(32, 32)},
		// Claims of a damaged file.
		{r(math.MaxInt32, math.MaxInt32), r(0, 128), r(0, 0)},
		{r(100, math.MaxInt32), r(0, 128), r(100, 28)},
		{r(math.MinInt32, math.MaxInt32), r(0, 128), r(0, 0)},
	} {
		if got := x.a.Intersect(x.b); got != x.want {
			t.Errorf("%v and %v: %v, want %v", x.a, x.b, got, x.want)
		}
		if got := x.b.Intersect(x.a); got != x.want {
			t.Errorf("%v and %v: %v, want %v", x.b, x.a, got, x.want)
		}
	}
	for want, r := range map[string]format.KeyGroupRange{"none": r(5, 0), "5": r(5, 1), "5–6": r(5, 2), "2147483647–2147483647": r(math.MaxInt32, 7)} {
		if r.String() != want {
			t.Errorf("%q, want %q", r, want)
		}
	}
	if got := r(5, 0).Last(); got != 4 {
		t.Errorf("last of an empty range: %d", got)
	}
}
