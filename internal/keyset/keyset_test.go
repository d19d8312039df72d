package keyset

import (
	"encoding/binary"
	"os"
	"testing"

	"github.com/savepoint-tools/spt/internal/scratch"
)

func key(i int) []byte { return binary.AppendUvarint([]byte("key "), uint64(i)) }

// Keys that were added are found with their first line, others are not, in memory and
// in a temporary file.
func TestSet(t *testing.T) {
	for _, test := range []struct {
		name   string
		n      int
		memory int64
		spills bool
	}{
		{"none", 0, 0, false},
		{"one", 1, 0, false},
		{"in memory", 10_000, 0, false},
		{"in a file", 10_000, 1 << 10, true},
		{"many of a range", 200_000, 1 << 20, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			dir := t.TempDir()
			b := NewBuilder(dir)
			b.sorter = scratch.NewSorter(scratch.Options{Dir: dir, Memory: test.memory})
			for round := range 2 {
				for i := range test.n {
					if err := b.Add(key(2*i), int64(round*test.n+i)); err != nil {
						t.Fatal(err)
					}
				}
			}
			if b.sorter.Spilled() != test.spills {
				t.Fatalf("a temporary file: %v", b.sorter.Spilled())
			}
			s, err := b.Set()
			if err != nil {
				t.Fatal(err)
			}
			if err := b.Close(); err != nil {
				t.Fatal(err)
			}
			if s.Len() != int64(test.n) {
				t.Errorf("%d keys, expected %d", s.Len(), test.n)
			}
			for i := range test.n {
				if line, ok, err := s.Find(key(2 * i)); err != nil || !ok || line != int64(i) {
					t.Fatalf("key %d: line %d, %v, %v", 2*i, line, ok, err)
				}
				if _, ok, err := s.Find(key(2*i + 1)); err != nil || ok {
					t.Fatalf("key %d: %v, %v", 2*i+1, ok, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// More records of a range than are read at once are searched in the file.
func TestLongRange(t *testing.T) {
	b := NewBuilder(t.TempDir())
	b.sorter = scratch.NewSorter(scratch.Options{Dir: b.dir, Memory: 1 << 20})
	for i := range 100_000 {
		if err := b.Add(key(i), int64(i)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := b.Set()
	if err != nil {
		t.Fatal(err)
	}
	// All are searched as if they were of one range.
	wrong := 0
	for i := range 100_000 {
		d := s.hash.Sum(key(i))
		at := rangeOf(d)
		s.starts[at], s.starts[at+1] = 0, s.n
		if line, ok, err := s.Find(key(i)); err != nil || !ok || line != int64(i) {
			wrong++
		}
	}
	if wrong > 0 {
		t.Errorf("%d of 100,000 keys are not found", wrong)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
}
