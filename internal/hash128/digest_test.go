package hash128

import (
	"slices"
	"testing"
)

// The digest of pieces is that of the whole, however it is cut.
func TestPieces(t *testing.T) {
	h, p := New(), []byte("an element that comes in pieces")
	var all []Digest
	for _, cut := range []int{0, 1, len(p) / 2, len(p)} {
		s := h.Pieces()
		s.Add(p[:cut])
		s.Add(p[cut:])
		all = append(all, s.Sum())
	}
	if len(slices.Compact(all)) != 1 {
		t.Errorf("digests %x of the same bytes", all)
	}
	other := h.Pieces()
	other.Add(p[1:])
	if other.Sum() == all[0] {
		t.Error("other bytes have the same digest")
	}
	if all[0] != h.Sum(p) {
		t.Error("the digest of pieces is not that of the whole")
	}
}
