package transform

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/format"
)

// TestPairCounter: what passes over random elements count, however few records
// fit, is what maps count.
func TestPairCounter(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 5))
	var paired, dropped int
	for round := range 150 {
		// Some elements come often, most of them seldom; in few parts or in many.
		distinct, parts := 1+rnd.IntN(3000), 1<<rnd.IntN(13)
		all := make([]digest, distinct)
		for i := range all {
			all[i] = digest{uint64(rnd.IntN(parts))<<52 | rnd.Uint64()>>12, rnd.Uint64()}
		}
		var sides [2][]digest
		var held [2]map[digest]int64
		for s := range sides {
			held[s] = map[digest]int64{}
			for range rnd.IntN(10_000) {
				d := all[int(float64(distinct)*rnd.Float64()*rnd.Float64())]
				sides[s] = append(sides[s], d)
				held[s][d]++
			}
		}
		var todo [diffParts]bool
		for i := range todo {
			todo[i] = rnd.IntN(10) > 0
		}
		want, first := pairsByHand(sides, held, &todo)

		c := newPairCounter(blockLen * (100 + rnd.IntN(200)))
		var got pairCounts
		for lo, width := 0, diffParts; lo < diffParts; lo, width = c.hi, c.next() {
			c.start(lo, min(lo+width, diffParts), &todo, int64(len(sides[0])+len(sides[1])))
			collect(t, c, sides)
			for side := range c.lists {
				for _, l := range c.lists[side] {
					if l.paired > 0 {
						paired++
						break
					}
				}
			}
			if c.hi < min(lo+width, diffParts) {
				dropped++
			}
			counts, err := c.count(false, 3)
			if err != nil {
				t.Fatal(err)
			}
			got.merge(counts)
			for side := range first {
				for p := c.lo; p < c.hi; p++ {
					var keys []uint64
					for _, x := range c.first[side][p] {
						keys = append(keys, x.key)
						d := first[side][p][len(keys)-1]
						if int64(x.n[0]) != held[0][d] || int64(x.n[1]) != held[1][d] {
							t.Fatalf("round %d: %d and %d times, want %d and %d", round, x.n[0], x.n[1], held[0][d], held[1][d])
						}
					}
					var right []uint64
					for _, d := range first[side][p][:min(3, len(first[side][p]))] {
						right = append(right, d.lo)
					}
					if !slices.Equal(keys, right) {
						t.Fatalf("round %d, side %d: first in part %d are %x, want %x", round, side, p, keys, right)
					}
				}
			}
		}
		if got != want {
			t.Fatalf("round %d: %+v, want %+v", round, got, want)
		}
	}
	t.Logf("pairs were made %d times, parts dropped %d times", paired, dropped)
	if paired < 20 || dropped < 50 {
		t.Error("too seldom")
	}
}

// collect adds both sides at the same time, a few elements at once.
func collect(t *testing.T, c *pairCounter, sides [2][]digest) {
	t.Helper()
	var g sync.WaitGroup
	var errs [2]error
	for side, all := range sides {
		g.Go(func() {
			for batch := range slices.Chunk(all, 100) {
				if errs[side] = c.add(side, batch); errs[side] != nil {
					return
				}
			}
		})
	}
	g.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		t.Fatal(err)
	}
}

// pairsByHand counts what is in the parts to do, and gives of each what comes
// more often on a side, in order.
func pairsByHand(sides [2][]digest, held [2]map[digest]int64, todo *[diffParts]bool) (want pairCounts, first [2][diffParts][]digest) {
	seen := map[digest]bool{}
	ratios := map[[2]int64]bool{}
	for side, all := range sides {
		met := map[digest]bool{}
		for _, d := range all {
			p := diffPart(d)
			if !todo[p] {
				continue
			}
			a, b := held[0][d], held[1][d]
			if !seen[d] {
				seen[d] = true
				ratios[[2]int64{a, b}] = true
				want.more[0] += max(a-b, 0)
				want.more[1] += max(b-a, 0)
			}
			if !met[d] {
				met[d] = true
				want.distinct[side]++
				if held[side][d] > held[1-side][d] {
					first[side][p] = append(first[side][p], d)
				}
			}
		}
	}
	for k := int64(1); k <= 10_000 && len(ratios) > 0; k++ {
		up, down := true, true
		for n := range ratios {
			up = up && n[0]*k == n[1]
			down = down && n[1]*k == n[0]
		}
		if up {
			want.up = k
		}
		if down {
			want.down = k
		}
	}
	if len(ratios) > 0 && want.up == 0 {
		want.up = uneven
	}
	if len(ratios) > 0 && want.down == 0 {
		want.down = uneven
	}
	return want, first
}

// TestPairCounterLimits: too many elements, or one too often, are refused.
func TestPairCounterLimits(t *testing.T) {
	var todo [diffParts]bool
	todo[5] = true
	c := newPairCounter(8 * blockLen)
	c.start(5, diffParts, &todo, 10_000)
	all := make([]digest, 8*blockLen+1)
	for i := range all {
		all[i] = digest{5 << 52, uint64(i)}
	}
	if err := c.add(0, all[:8*blockLen]); err != nil {
		t.Errorf("as many as fit: %v", err)
	}
	if err := c.add(0, all[8*blockLen:]); !errors.Is(err, format.ErrLimit) {
		t.Errorf("one more: %v", err)
	}
	if c.hi != 6 {
		t.Errorf("parts up to %d are left, want 6", c.hi)
	}

	c.start(5, diffParts, &todo, 10_000)
	l := &c.lists[1][5]
	c.slab.push(l, 77)
	c.slab.push(l, mostTimes-1)
	l.paired = l.words
	for i, want := range []error{nil, format.ErrLimit} {
		if err := c.add(1, []digest{{5 << 52, 77}}); err != nil {
			t.Fatal(err)
		}
		counts, err := c.count(false, 0)
		if !errors.Is(err, want) || err == nil && counts.more[1] != mostTimes {
			t.Errorf("%d more: %+v, %v", i+1, counts, err)
		}
	}
}

// TestPairTableLimit: a table is as large as it may be.
func TestPairTableLimit(t *testing.T) {
	if testing.Short() {
		t.Skip("fills 64 MiB")
	}
	var table pairTable
	table.reset(0)
	for i := range uint64(maxPairs) {
		if err := table.add(i*0x9e3779b97f4a7c15, 0, 1); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
	}
	if err := table.add(1, 0, 1); !errors.Is(err, format.ErrLimit) || len(table.slots)*16 != 64<<20 {
		t.Errorf("one more in %d slots: %v", len(table.slots), err)
	}
}

// passesOf runs a diff and gives how often it went through both sides.
func passesOf(t *testing.T, d *differ, bytes int64) (*ElementsDiff, float64) {
	t.Helper()
	var mu sync.Mutex
	var read int64
	d.o.Progress = func(n int64) {
		mu.Lock()
		defer mu.Unlock()
		read += n
	}
	out, err := d.run()
	if err != nil {
		t.Fatal(err)
	}
	return out.Operators[0].States[0].Elements, float64(read) / float64(bytes)
}

// TestDiffCopiesInOnePass: few elements that come often are counted in one pass,
// behind that of the sums, though not all records fit; of others it takes as
// many passes as memory does not hold.
func TestDiffCopiesInOnePass(t *testing.T) {
	number := func(i int) string {
		return string(binary.BigEndian.AppendUint64(nil, uint64(i)*0x9e3779b97f4a7c15))
	}
	const records = 64_000
	var often, more, all, other []string
	for i := range 100_000 {
		often = append(often, number(i%50))
		more = append(more, number(i%51))
		all = append(all, number(i))
		other = append(other, number(1_000_000+i))
	}
	e, passes := passesOf(t, boundedDiffer(t, listInput(1, often), listInput(1, more), DiffOptions{}, records), 8*200_000)
	if passes != 2 || e.NewDistinct != 51 || e.Added != 1960 || e.Removed != e.Added {
		t.Errorf("few elements: %v passes, %+v", passes, e)
	}
	// 4 records of each part and side take a block of 64.
	e, passes = passesOf(t, boundedDiffer(t, listInput(1, all), listInput(1, other), DiffOptions{}, records), 8*200_000)
	if least := 1 + 2.0*diffParts*blockLen/records; passes < least || passes > least*1.4 || e.Added != 100_000 || e.Removed != 100_000 {
		t.Errorf("all other: %v passes, want %v or little more; %+v", passes, least, e)
	}
}

// TestDiffListed: of many that differ the first are listed, in the order in
// which they come, whatever the part of each, and however many there are.
func TestDiffListed(t *testing.T) {
	var old, now []string
	for i := range 30_000 {
		old = append(old, fmt.Sprint("old", i/2))
		now = append(now, fmt.Sprint("new", i/2))
	}
	for _, records := range []int{60_000, 1 << 20} {
		for _, n := range []int{1, 100, 9_000} {
			d := boundedDiffer(t, listInput(1, old), listInput(1, now), DiffOptions{List: n}, records)
			e, _ := passesOf(t, d, 1)
			for side, list := range [][]ElementChange{e.RemovedList, e.AddedList} {
				if len(list) != n {
					t.Errorf("%d records: %d listed, want %d", records, len(list), n)
				}
				for i, x := range list {
					if x.Index != int64(2*i) || x.Old != int64(2-2*side) || x.New != int64(2*side) {
						t.Fatalf("%d records: number %d of those listed is %+v", records, i, x)
					}
				}
			}
		}
	}
}
