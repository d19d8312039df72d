package tally

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"testing"

	"github.com/savepoint-tools/spt/internal/hash128"
	tempfile "github.com/savepoint-tools/spt/internal/scratch"
)

// MemoryFor gives room for as many entries as it says, and not for twice as many.
func TestMemoryFor(t *testing.T) {
	for _, distinct := range []int64{1, 12, 13, 767, 768, 769, 3 << 19, 1 << 33} {
		memory := MemoryFor(distinct)
		slots := memory / entrySize
		if room := slots * 3 / 4; room < distinct || slots > 1<<minBits && room/2 >= distinct {
			t.Errorf("MemoryFor(%d) = %d, which is room for %d", distinct, memory, room)
		}
	}
	for _, distinct := range []int64{math.MinInt64, -1, 0} {
		if got := MemoryFor(distinct); got != entrySize<<minBits {
			t.Errorf("MemoryFor(%d) = %d", distinct, got)
		}
	}
	for _, distinct := range []int64{1 << 61, 1 << 62, math.MaxInt64} {
		if got := MemoryFor(distinct); got != entrySize<<mostBits {
			t.Errorf("MemoryFor(%d) = %d", distinct, got)
		}
	}
}

// A Counter in memory holds as many distinct elements as its memory was made for,
// and says when there is one more. Those that it has are still counted.
func TestInMemory(t *testing.T) {
	for _, distinct := range []int64{12, 768, 3 << 12} {
		c, h := New(Options{Memory: MemoryFor(distinct), InMemory: true, Dir: t.TempDir() + "/not there"}), hash128.New()
		digest := func(i int64) hash128.Digest { return h.Sum(binary.AppendVarint(nil, i)) }
		for i := range distinct {
			if err := c.Add(Element{Digest: digest(i), Number: i}); err != nil {
				t.Fatalf("element %d of %d: %v", i, distinct, err)
			}
		}
		if err := c.Add(Element{Digest: digest(distinct), Number: distinct}); !errors.Is(err, ErrFull) {
			t.Errorf("element %d: %v", distinct, err)
		}
		if err := c.Add(Element{Digest: digest(3), Number: distinct + 1}); err != nil {
			t.Errorf("an element that is known: %v", err)
		}
		for i := range distinct {
			want := uint32(1)
			if i == 3 {
				want = 2
			}
			if e := c.Find(digest(i)); e == nil || e.Count != want || e.First != i {
				t.Fatalf("element %d of %d: %+v", i, distinct, e)
			}
		}
		if e := c.Find(digest(distinct)); e != nil {
			t.Errorf("an element that was not added: %+v", e)
		}
		if c.Spilled() {
			t.Error("it spilled")
		}
	}
}

// Digests need not be spread evenly: entries that all belong to the last slots go
// past the end, and count as too many when there is no room left there.
func TestPastTheEnd(t *testing.T) {
	const n = 3000
	last := func(i int) hash128.Digest { return hash128.Digest{Hi: math.MaxUint64, Lo: uint64(i)} }
	c := New(Options{Memory: 1 << 20, InMemory: true})
	held := 0
	for ; ; held++ {
		if err := c.Add(Element{Digest: last(held), Number: int64(held)}); errors.Is(err, ErrFull) {
			break
		} else if err != nil || held == n {
			t.Fatal(held, err)
		}
	}
	if held != past+1 {
		t.Errorf("%d entries are in the last slot and past it, there is room for %d", held, past+1)
	}
	if err := c.Add(Element{Digest: last(7), Number: n}); err != nil {
		t.Error(err)
	}
	for i := range held {
		if e := c.Find(last(i)); e == nil || e.First != int64(i) {
			t.Fatalf("element %d: %+v", i, e)
		}
	}
	if e := c.Find(last(n)); e != nil {
		t.Errorf("an element that was not added: %+v", e)
	}

	// With files they are written several times, and there is room for no more when
	// they are brought together.
	c = small(t)
	for i := range n {
		if err := c.Add(Element{Digest: last(i), Number: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Each(func(*Entry) error { return nil }); !errors.Is(err, errNoRoom) {
		t.Errorf("%d entries for one slot: %v", n, err)
	}
}

// A large table that takes few repetitions becomes a small one, and nothing is
// counted differently.
func TestFewRepetitions(t *testing.T) {
	dir := t.TempDir()
	c := New(Options{Memory: entrySize << (cachedBits + 1), Dir: dir})
	const n = 1<<(cachedBits+1) + 17
	digest := func(i int) hash128.Digest { return hash128.Digest{Hi: uint64(i) * 0x9e3779b97f4a7c15, Lo: uint64(i)} }
	for i := range n + n/2 {
		if err := c.Add(Element{Digest: digest(i % n), Number: int64(i), Group: uint16(i / n)}); err != nil {
			t.Fatal(err)
		}
	}
	if c.maxBits != cachedBits || !c.Spilled() {
		t.Errorf("the table has %d bits, spilled: %t", c.maxBits, c.Spilled())
	}
	seen := 0
	err := c.Each(func(e *Entry) error {
		seen++
		want := Entry{Digest: digest(int(e.First)), First: e.First, Count: 1, Groups: 1}
		if e.First < n/2 {
			want.Count, want.Groups, want.LastGroup = 2, 2, 1
		}
		if *e != want {
			return fmt.Errorf("%+v, expected %+v", *e, want)
		}
		return nil
	})
	if err != nil || seen != n {
		t.Errorf("%d distinct elements of %d: %v", seen, n, err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Errorf("closed twice: %v", err)
	}
	empty(t, dir)
}

// Counts of runs add up beyond what one table had, up to MaxCount.
func TestMaxCountOfRuns(t *testing.T) {
	for _, counts := range [][2]uint32{{MaxCount - 1, 1}, {MaxCount, 1}, {1 << 31, 1 << 31}} {
		c, d := small(t), hash128.Digest{Hi: 1 << 63, Lo: 2}
		for i, n := range counts {
			if ok, err := c.table.add(&Entry{Digest: d, First: int64(i), Count: n, Groups: 1}); !ok || err != nil {
				t.Fatal(err)
			}
			if err := c.write(); err != nil {
				t.Fatal(err)
			}
		}
		sum := uint64(counts[0]) + uint64(counts[1])
		err := c.Each(func(e *Entry) error {
			if uint64(e.Count) != sum {
				return fmt.Errorf("counted %d", e.Count)
			}
			return nil
		})
		if want := sum > MaxCount; errors.Is(err, ErrTooOften) != want || !want && err != nil {
			t.Errorf("%d: %v", sum, err)
		}
	}
}

// The disk may fail or be full at any time: the error is that of the disk, and no
// file is left.
func TestDiskErrors(t *testing.T) {
	h := hash128.New()
	fillUp := func(c *Counter, n int) error {
		for i := range n {
			if err := c.Add(Element{Digest: h.Sum(binary.AppendVarint(nil, int64(i))), Number: int64(i)}); err != nil {
				return err
			}
		}
		return nil
	}
	each := func(visit func(d hash128.Digest, number int64) error) error {
		for i := range 5000 {
			if err := visit(h.Sum(binary.AppendVarint(nil, int64(i))), int64(i)); err != nil {
				return err
			}
		}
		return nil
	}
	use := map[string]func(c *Counter) error{
		"Add":  func(c *Counter) error { return fillUp(c, 10_000) },
		"Each": func(c *Counter) error { return c.Each(func(*Entry) error { return nil }) },
		"Pair": func(c *Counter) error { return Pair(small(t), c, func(_, _ *Entry) error { return nil }) },
		"Replay": func(c *Counter) error {
			return c.Replay(each, func(*Entry) {}, func(int64, *Entry) {})
		},
	}
	for name, f := range use {
		dir := t.TempDir()
		c := New(Options{Memory: 1024 * entrySize, Dir: dir})
		if err := fillUp(c, 5000); err != nil {
			t.Fatal(err)
		}
		c.spill.f.Close()
		var temp *TempError
		if err := f(c); !errors.As(err, &temp) || !errors.Is(temp.Err, os.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
		_ = c.Close() // the file is closed: an error is right
		empty(t, dir)
	}

	// A file that lost its end.
	c := small(t)
	if err := fillUp(c, 5000); err != nil {
		t.Fatal(err)
	}
	if err := c.seal(); err != nil {
		t.Fatal(err)
	}
	if err := c.spill.f.Truncate(c.spill.size - 1); err != nil {
		t.Fatal(err)
	}
	var temp *TempError
	if err := c.Each(func(*Entry) error { return nil }); !errors.As(err, &temp) || !errors.Is(temp.Err, io.ErrUnexpectedEOF) {
		t.Errorf("a file that was cut: %v", err)
	}

	// What calls Replay fails: its temporary file goes before Close.
	stop := errors.New("stop")
	dir := t.TempDir()
	c = New(Options{Memory: 1024 * entrySize, Dir: dir})
	if err := fillUp(c, 5000); err != nil {
		t.Fatal(err)
	}
	err := c.Replay(func(visit func(d hash128.Digest, number int64) error) error { return stop }, func(*Entry) {}, func(int64, *Entry) {})
	if !errors.Is(err, stop) {
		t.Error(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	empty(t, dir)
}

// A file that keeps its name, as on systems that remove no open file, goes with
// Close.
func TestFileWithAName(t *testing.T) {
	dir := t.TempDir()
	f, err := os.CreateTemp(dir, "spt-tally-*.tmp")
	if err != nil {
		t.Fatal(err)
	}
	c := &Counter{spill: &scratch{f: &tempfile.File{File: f}}}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	empty(t, dir)
}

func empty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("%d files are left in the temporary directory, %v", len(left), err)
	}
}

// TestReset: after Reset a Counter counts as a new one does, in memory or not, and has no
// temporary file.
func TestReset(t *testing.T) {
	h := hash128.New()
	for _, sizes := range [][]int{{10, 10}, {5000, 10}, {10, 5000, 5000}, {700, 5000, 700}} {
		c := small(t)
		for round, n := range sizes {
			for i := range n {
				if err := c.Add(Element{Digest: h.Sum(binary.AppendVarint(nil, int64(i*(round+1)))), Number: int64(i)}); err != nil {
					t.Fatal(err)
				}
			}
			if spilled := n > 768; c.Spilled() != spilled {
				t.Errorf("%v: %d elements spilled: %v", sizes, n, c.Spilled())
			}
			seen := 0
			err := c.Each(func(e *Entry) error {
				seen++
				if e.Count != 1 || h.Sum(binary.AppendVarint(nil, e.First*int64(round+1))) != e.Digest {
					return fmt.Errorf("%v: entry %+v", sizes, *e)
				}
				return nil
			})
			if err != nil || seen != n {
				t.Errorf("%v: %d of %d elements, %v", sizes, seen, n, err)
			}
			if err := c.Reset(); err != nil || c.Spilled() {
				t.Errorf("%v: %v, %v", sizes, err, c.Spilled())
			}
		}
	}
}

// TestAddAll: it counts what Add does, and stops at the first error.
func TestAddAll(t *testing.T) {
	h := hash128.New()
	for _, n := range []int{0, 1, 63, 64, 65, 5000} {
		c, want := small(t), map[hash128.Digest]uint32{}
		var all []Element
		for i := range n {
			d := h.Sum(binary.AppendVarint(nil, int64(i*i%1999)))
			all = append(all, Element{Digest: d, Number: int64(i)})
			want[d]++
		}
		if err := c.AddAll(all); err != nil {
			t.Fatal(err)
		}
		err := c.Each(func(e *Entry) error {
			if e.Count != want[e.Digest] {
				return fmt.Errorf("%d times, expected %d", e.Count, want[e.Digest])
			}
			delete(want, e.Digest)
			return nil
		})
		if err != nil || len(want) > 0 {
			t.Errorf("%d elements: %v; %d are missing", n, err, len(want))
		}
	}
	c := New(Options{Memory: MemoryFor(12), InMemory: true})
	var all []Element
	for i := range 100 {
		all = append(all, Element{Digest: h.Sum(binary.AppendVarint(nil, int64(i))), Number: int64(i)})
	}
	if err := c.AddAll(all); !errors.Is(err, ErrFull) {
		t.Error(err)
	}
}
