package transform

import (
	"math/bits"
	"slices"
)

// bitmap is a set of element numbers. It grows as numbers are added.
type bitmap []uint64

func (b *bitmap) set(i int64) {
	w := int(i / 64)
	if w >= len(*b) {
		*b = slices.Grow(*b, w+1-len(*b))
		*b = (*b)[:cap(*b)]
	}
	(*b)[w] |= 1 << (i % 64)
}

// word returns the 64 numbers from 64*w on.
func (b bitmap) word(w int64) uint64 {
	if w >= int64(len(b)) {
		return 0
	}
	return b[w]
}

// runs calls f with each run of numbers in the set between first and first+n,
// relative to first.
func (b bitmap) runs(first, n int64, f func(at, count int64)) {
	end := first + n
	for i := first; i < end; {
		rest := b.word(i/64) >> (i % 64)
		if rest == 0 {
			i += 64 - i%64
			continue
		}
		i += int64(bits.TrailingZeros64(rest))
		at := i
		for i < end {
			ones := int64(bits.TrailingZeros64(^(b.word(i/64) >> (i % 64))))
			if i += ones; ones == 0 || i%64 != 0 {
				break
			}
		}
		if i = min(i, end); i > at {
			f(at-first, i-at)
		}
	}
}

// has reports whether a number is in the set.
func (b bitmap) has(i int64) bool { return b.word(i/64)>>(i%64)&1 == 1 }
