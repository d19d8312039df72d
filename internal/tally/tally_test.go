package tally

import (
	"cmp"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/internal/hash128"
)

// small makes a Counter whose table holds 768 entries, so that tests spill.
func small(t *testing.T) *Counter {
	t.Helper()
	dir := t.TempDir()
	c := New(Options{Memory: 1024 * entrySize, Dir: dir})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		empty(t, dir)
	})
	return c
}

// group is the group of the i-th element: there are seven to each thousand.
func group(i int) uint16 { return uint16(i / 143) }

// counted is what a map counts.
type counted map[string]*Entry

// elements are n elements of a vocabulary, with repetitions.
func elements(seed uint64, n, distinct int) [][]byte {
	r := rand.New(rand.NewPCG(seed, 1))
	all := make([][]byte, n)
	for i := range all {
		k := r.IntN(distinct)
		if r.IntN(4) == 0 {
			k = r.IntN(min(distinct, 3)) // a few that come often
		}
		all[i] = binary.AppendUvarint(nil, uint64(k))
	}
	return all
}

func byMap(all [][]byte) counted {
	m := counted{}
	for i, p := range all {
		g := group(i)
		if e := m[string(p)]; e == nil {
			m[string(p)] = &Entry{First: int64(i), Count: 1, Size: uint32(len(p)), Groups: 1, FirstGroup: g, LastGroup: g}
		} else {
			if e.Count++; e.LastGroup != g {
				e.LastGroup = g
				e.Groups++
			}
		}
	}
	return m
}

func fill(t *testing.T, c *Counter, h hash128.Hasher, all [][]byte) map[hash128.Digest]string {
	t.Helper()
	names := map[hash128.Digest]string{}
	for i, p := range all {
		d := h.Sum(p)
		names[d] = string(p)
		if err := c.Add(Element{d, int64(i), group(i), len(p)}); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

var shapes = []struct {
	name        string
	n, distinct int
	spills      bool
}{
	{"nothing", 0, 1, false},
	{"one", 1, 1, false},
	{"few that come often", 50_000, 500, false},
	{"as many as fit", 20_000, 700, false},
	{"more than fit", 20_000, 5_000, true},
	{"many", 150_000, 80_000, true},
}

func TestCountsAreThoseOfAMap(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			all, h, c := elements(7, shape.n, shape.distinct), hash128.New(), small(t)
			names, want := fill(t, c, h, all), byMap(all)
			for range 2 { // it can be asked again
				got := 0
				err := c.Each(func(e *Entry) error {
					got++
					x := *want[names[e.Digest]]
					x.Digest = e.Digest
					if *e != x {
						t.Errorf("%+v, a map has %+v", *e, x)
					}
					return nil
				})
				if err != nil || got != len(want) {
					t.Fatalf("%d distinct elements, a map has %d: %v", got, len(want), err)
				}
			}
			if c.Spilled() != shape.spills {
				t.Errorf("spilled: %t, the case is about %t", c.Spilled(), shape.spills)
			}
		})
	}
}

func TestPairsAreThoseOfMaps(t *testing.T) {
	for _, x := range shapes {
		for _, y := range shapes {
			t.Run(x.name+"/"+y.name, func(t *testing.T) {
				as, bs, h := elements(1, x.n, x.distinct), elements(2, y.n, y.distinct+y.distinct/2), hash128.New()
				a, b := small(t), small(t)
				names := fill(t, a, h, as)
				for d, p := range fill(t, b, h, bs) {
					names[d] = p
				}
				wantA, wantB := byMap(as), byMap(bs)
				seen := map[string]bool{}
				err := Pair(a, b, func(x, y *Entry) error {
					var name string
					for side, e := range []*Entry{x, y} {
						if e != nil {
							name = names[e.Digest]
						}
						_ = side
					}
					if seen[name] {
						t.Errorf("%x occurs twice", name)
					}
					seen[name] = true
					for _, p := range []struct {
						got, want *Entry
					}{{x, wantA[name]}, {y, wantB[name]}} {
						if (p.got == nil) != (p.want == nil) || p.got != nil && (p.got.Count != p.want.Count || p.got.First != p.want.First || p.got.Size != p.want.Size) {
							t.Errorf("%x: %+v, a map has %+v", name, p.got, p.want)
						}
					}
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
				for name := range wantA {
					wantB[name] = nil
				}
				if len(seen) != len(wantB) {
					t.Errorf("%d distinct elements, maps have %d", len(seen), len(wantB))
				}
			})
		}
	}
}

func TestReplay(t *testing.T) {
	for _, shape := range shapes {
		t.Run(shape.name, func(t *testing.T) {
			all, h, c := elements(9, shape.n, shape.distinct), hash128.New(), small(t)
			fill(t, c, h, all)
			// The first half of the occurrences of each element, as a map tells them.
			count, half := byMap(all), map[string]int{}
			var want []int64
			for i, p := range all {
				if half[string(p)] < int(count[string(p)].Count)/2 {
					half[string(p)]++
					want = append(want, int64(i))
				}
			}
			var got []int64
			each := func(visit func(d hash128.Digest, number int64) error) error {
				for i, p := range all {
					if err := visit(h.Sum(p), int64(i)); err != nil {
						return err
					}
				}
				return nil
			}
			err := c.Replay(each, func(e *Entry) { e.Size = e.Count / 2 }, func(number int64, e *Entry) {
				if e.Size > 0 {
					e.Size--
					got = append(got, number)
				}
			})
			slices.SortFunc(got, cmp.Compare[int64])
			if err != nil || !slices.Equal(got, want) {
				t.Fatalf("%d occurrences, a map has %d: %v", len(got), len(want), err)
			}
			if shape.n == 0 {
				return
			}
			err = c.Replay(func(visit func(d hash128.Digest, number int64) error) error {
				return visit(h.Sum([]byte("an element that was not there")), 0)
			}, func(*Entry) {}, func(int64, *Entry) {})
			if !errors.Is(err, ErrNotCounted) {
				t.Errorf("an element that was not added: %v", err)
			}
		})
	}
}

func TestErrors(t *testing.T) {
	stop := errors.New("stop")
	for _, n := range []int{10, 5000} {
		c := small(t)
		h := hash128.New()
		for i := range n {
			if err := c.Add(Element{Digest: h.Sum(binary.AppendUvarint(nil, uint64(i))), Number: int64(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := c.Each(func(*Entry) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("Each: %v", err)
		}
		if err := Pair(c, small(t), func(_, _ *Entry) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("Pair: %v", err)
		}
	}
	c := New(Options{Memory: 1024 * entrySize, Dir: t.TempDir() + "/not there"})
	h := hash128.New()
	var err error
	for i := 0; i < 5000 && err == nil; i++ {
		err = c.Add(Element{Digest: h.Sum(binary.AppendUvarint(nil, uint64(i))), Number: int64(i)})
	}
	var temp *TempError
	if !errors.As(err, &temp) || !errors.Is(temp.Err, os.ErrNotExist) || errors.Is(err, os.ErrNotExist) {
		t.Errorf("no temporary directory: %v", err)
	}
}

func TestMaxCount(t *testing.T) {
	c := New(Options{})
	d := hash128.Digest{Hi: 1, Lo: 2}
	e := Entry{Digest: d, Count: MaxCount}
	if ok, err := c.table.add(&e); !ok || err != nil {
		t.Fatal(err)
	}
	if err := c.Add(Element{Digest: d, Number: 1}); !errors.Is(err, ErrTooOften) {
		t.Errorf("once more than MaxCount: %v", err)
	}
}

func BenchmarkCount(b *testing.B) {
	for _, bench := range []struct {
		name string
		n    int
		of   uint64
	}{
		{"100k distinct of 1M", 1 << 20, 100_000}, {"1M distinct", 1 << 20, 1 << 40}, {"10M distinct", 10 << 20, 1 << 40}, {"40M distinct", 40 << 20, 1 << 40},
	} {
		b.Run(bench.name, func(b *testing.B) {
			for b.Loop() {
				c := New(Options{Dir: b.TempDir()})
				r := rand.New(rand.NewPCG(1, 2))
				for i := range bench.n {
					x := r.Uint64() % bench.of
					if err := c.Add(Element{Digest: hash128.Digest{Hi: x * 0x9e3779b97f4a7c15, Lo: x}, Number: int64(i), Size: 100}); err != nil {
						b.Fatal(err)
					}
				}
				var n int
				if err := c.Each(func(*Entry) error { n++; return nil }); err != nil {
					b.Fatal(err)
				}
				if err := c.Close(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(bench.n), "ns/element")
		})
	}
}
