package transform

// Counter counts how often each of many elements comes. It knows them by
// digests of 128 bits, not by their bytes, and takes 32 to 64 bytes for each
// different one, of which it counts at most MaxDistinct.
type Counter struct {
	h hasher
	t *tally
}

// MaxDistinct is how many different elements a Counter counts: three million,
// which take 96 MiB.
const MaxDistinct = maxTally

// NewCounter makes an empty one.
func NewCounter() *Counter { return &Counter{newHasher(), newTally(maxTally)} }

// Add counts an element. It is false, and nothing is counted, where it would be
// one different element too many.
func (c *Counter) Add(p []byte) bool {
	_, ok := c.t.add(c.h.sum(p))
	return ok
}

// Again tells of an element that was added how often it was, and whether Again
// is asked of it for the first time.
func (c *Counter) Again(p []byte) (count int64, first bool) {
	s := c.t.find(c.h.sum(p))
	first, s.seen = s.seen == 0, 1
	return int64(s.count), first
}

// CountDistinct counts the different ones among the elements that each goes
// through. It calls each once, and again, in memory that stays the same, where
// there are more than MaxDistinct.
func CountDistinct(each func(visit func(p []byte)) error) (int64, error) {
	return countDistinct(each, maxTally)
}

func countDistinct(each func(visit func(p []byte)) error, limit int) (int64, error) {
	h, t := newHasher(), newTally(limit)
	for of := uint64(1); ; of *= 2 {
		n, full := int64(0), false
		for i := uint64(0); i < of && !full; i++ {
			p := pass{i, of}
			t.reset()
			err := each(func(value []byte) {
				if d := h.sum(value); !full && p.has(d) {
					_, ok := t.add(d)
					full = !ok
				}
			})
			if err != nil {
				return 0, err
			}
			n += int64(t.used)
		}
		if !full {
			return n, nil
		}
	}
}
