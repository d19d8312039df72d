package transform

import (
	"math"

	"github.com/savepoint-tools/spt/internal/hash128"
	"github.com/savepoint-tools/spt/internal/tally"
)

// Counter counts how often each of many elements occurs, in memory. It knows them
// by digests of 128 bits, not by their bytes, and counts at most MaxDistinct
// distinct ones.
type Counter struct {
	hash hash128.Hasher
	t    *tally.Counter
}

// MaxDistinct is how many distinct elements a Counter counts: three million, which
// take 160 MiB.
const MaxDistinct = 3 << 20

// NewCounter returns an empty Counter.
func NewCounter() *Counter { return newCounter(MaxDistinct) }

func newCounter(distinct int64) *Counter {
	return &Counter{hash128.New(), tally.New(tally.Options{Memory: tally.MemoryFor(distinct), InMemory: true})}
}

// Add counts an element. It reports false, and counts nothing, if that would be
// one distinct element too many.
func (c *Counter) Add(p []byte) bool {
	return c.t.Add(tally.Element{Digest: c.hash.Sum(p)}) == nil
}

// Again returns how often an element was added, and whether Again is called with
// it for the first time.
func (c *Counter) Again(p []byte) (count int64, first bool) {
	e := c.t.Find(c.hash.Sum(p))
	if e == nil {
		return 0, false
	}
	first, e.Size = e.Size == 0, math.MaxUint32
	return int64(e.Count), first
}

// CountDistinct counts the distinct elements among those that each calls visit
// with. Memory is bounded; see UnionOptions for TempDir.
func CountDistinct(each func(visit func(p []byte) error) error, tempDir string) (int64, error) {
	return countDistinct(each, tally.Options{Dir: tempDir})
}

func countDistinct(each func(visit func(p []byte) error) error, o tally.Options) (n int64, err error) {
	h, t := hash128.New(), tally.New(o)
	defer func() {
		if cerr := t.Close(); err == nil {
			err = cerr
		}
	}()
	err = each(func(p []byte) error { return t.Add(tally.Element{Digest: h.Sum(p)}) })
	if err != nil {
		return 0, err
	}
	err = t.Each(func(*tally.Entry) error {
		n++
		return nil
	})
	return n, err
}
