package java_test

import (
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// What Java 17 says.
func TestHashString(t *testing.T) {
	for s, want := range map[string]int32{
		"": 0, "a": 97, "hello": 99162322, "Aa": 2112, "BB": 2112, "alpha": 92909918, "\x00": 0,
		"topic-partition-offset-states": 946096187,
		"é€":                            15587,
		"\U0001f600":                    1772899,
		"x\xed\xa0\xbd":                 59077,   // lone high surrogate
		"\xed\xb8\x80\xed\xa0\xbd":      1817149, // swapped
	} {
		if got := java.HashString(s); got != want {
			t.Errorf("%q: %d, want %d", s, got, want)
		}
	}
}

// known, among the hashes of computeIfAbsent, is a call for a key that is there.
const known = -1 << 31

// Orders of real java.util.HashMaps of Java 17.
func TestHashMapOrder(t *testing.T) {
	for _, c := range []struct {
		what     string
		capacity int
		absent   bool // by computeIfAbsent
		hashes   []int32
		order    []int
	}{
		{"nothing", 0, false, nil, []int{}},
		{"15 keys put: 32 bins", 0, false,
			[]int32{752, 6954, 301864, 17, 790500, 3255, 2184, 3584, 1261, 3690, 1680, 3327, 2303, 3279, 1458},
			[]int{7, 4, 6, 1, 9, 2, 8, 13, 0, 10, 3, 14, 5, 11, 12}},
		{"13 keys computed, with others asked for between", 0, true,
			[]int32{532, 396, 2325875, known, 1595, known, 518, 536, known, 2232, 3583, known, 1475, 457, 936924, known, 2446, 2430},
			[]int{2, 10, 8, 0, 4, 6, 5, 9, 3, 1, 12, 11, 7}},
		{"14 keys computed: the table grows before the last", 0, true,
			[]int32{0, 3, 4267, 10962, 6860, 19, 12, known, 23, 3165, 12, known, 1, known, 30, 975, 7850},
			[]int{0, 10, 1, 13, 2, 9, 6, 4, 12, 3, 5, 7, 8, 11}},
		{"a capacity of 8", 8, false,
			[]int32{22539810, -935917584, 82885169, 55110784, -1614409072, -769436819},
			[]int{3, 2, 0, 4, 5, 1}},
		{"9 keys of one hash: a larger table instead of a tree", 0, false, make([]int32, 9), []int{0, 1, 2, 3, 4, 5, 6, 7, 8}},
		{"8 keys of one hash computed", 0, true, make([]int32, 8), []int{7, 6, 5, 4, 3, 2, 1, 0}},
		{"13 keys computed stay in 16 bins", 0, true,
			[]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16}, []int{12, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{"asking for one of them again makes it 32", 0, true,
			[]int32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 16, known}, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}},
	} {
		m := java.NewHashMap(c.capacity)
		for _, h := range c.hashes {
			switch {
			case h == known:
				m.ComputeIfAbsent(0, true)
			case c.absent:
				m.ComputeIfAbsent(h, false)
			default:
				m.Put(h)
			}
		}
		if got := m.Order(); !slices.Equal(got, c.order) {
			t.Errorf("%s: %v, want %v", c.what, got, c.order)
		}
		if m.Trees() {
			t.Errorf("%s: trees", c.what)
		}
	}
}

// The ninth key of a bin, the eighth of one that is computed, doubles a table
// of less than 64 bins and makes a tree in a larger one.
func TestHashMapTrees(t *testing.T) {
	for _, c := range []struct {
		keys   int
		absent bool
		trees  bool
	}{{10, false, false}, {11, false, true}, {9, true, false}, {10, true, true}} {
		m := java.NewHashMap(0)
		for range c.keys {
			if c.absent {
				m.ComputeIfAbsent(7, false)
			} else {
				m.Put(7)
			}
		}
		if m.Trees() != c.trees {
			t.Errorf("%d keys of one hash, computed %t: trees %t", c.keys, c.absent, m.Trees())
		}
	}
}
