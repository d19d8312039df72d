package scratch

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

type keyed struct {
	key int32
	p   string
}

// all returns the records of keys between first and last.
func all(t *testing.T, s *Sorter, first, last int32) (out []keyed) {
	t.Helper()
	c := s.Records(first, last)
	for {
		key, p, err := c.Next()
		if err == io.EOF {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, keyed{key, string(p)})
	}
}

// Records come in the order of keys and bytes, whether or not they fit into memory, and
// each key once.
func TestSorter(t *testing.T) {
	for _, memory := range []int64{0, 4 << 10, 1} { // one run, some, one per record
		t.Run(fmt.Sprint(memory), func(t *testing.T) {
			dir := t.TempDir()
			s := NewSorter(Options{Dir: dir, Memory: memory})
			r := rand.New(rand.NewPCG(1, 2))
			var want []keyed
			for range 700 {
				x := keyed{int32(r.IntN(40)) * 7, string(bytes.Repeat([]byte{byte(r.IntN(256))}, r.IntN(30)))}
				want = append(want, x)
				p := []byte(x.p)
				if err := s.Add(x.key, p); err != nil {
					t.Fatal(err)
				}
				clear(p) // the caller's again
			}
			if s.Spilled() != (memory > 0) {
				t.Errorf("spilled: %v", s.Spilled())
			}
			slices.SortFunc(want, func(a, b keyed) int { return cmp.Or(cmp.Compare(a.key, b.key), cmp.Compare(a.p, b.p)) })
			for range 2 {
				if got := all(t, s, 0, Keys-1); !slices.Equal(got, want) {
					t.Fatalf("%d records, or in another order than %d", len(got), len(want))
				}
			}
			var parts []keyed
			for first := int32(0); first < 280; first += 35 {
				parts = append(parts, all(t, s, first, first+34)...)
			}
			if !slices.Equal(parts, want) {
				t.Errorf("%d records in parts, expected %d", len(parts), len(want))
			}
			if got := all(t, s, 1, 6); len(got) > 0 {
				t.Errorf("keys between two: %v", got)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left: %v, %v", left, err)
			}
		})
	}
}

// A record larger than the buffer, and one without bytes.
func TestSorterSizes(t *testing.T) {
	s := NewSorter(Options{Dir: t.TempDir(), Memory: 1})
	large := string(bytes.Repeat([]byte("x"), 3*bufferSize+1))
	want := []keyed{{3, ""}, {3, large}, {Keys - 1, large}}
	for _, i := range []int{2, 0, 1} {
		if err := s.Add(want[i].key, []byte(want[i].p)); err != nil {
			t.Fatal(err)
		}
	}
	if got := all(t, s, 0, Keys-1); !slices.Equal(got, want) {
		t.Errorf("%d records", len(got))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// A directory that does not exist, and a file that was cut, are errors of the temporary
// file.
func TestSorterErrors(t *testing.T) {
	var temp *Error
	s := NewSorter(Options{Dir: filepath.Join(t.TempDir(), "none"), Memory: 1})
	if err := errors.Join(s.Add(1, []byte("a")), s.Add(2, []byte("b"))); !errors.As(err, &temp) || errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	s = NewSorter(Options{Dir: t.TempDir(), Memory: 1})
	for i := range int32(3) {
		if err := s.Add(i, []byte("abc")); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.file.Truncate(5); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Records(0, 5).Next(); !errors.As(err, &temp) {
		t.Errorf("got %v", err)
	}
	if err := s.Add(-1, nil); err == nil {
		t.Error("a key below 0 was added")
	}
	if err := s.Add(Keys, nil); err == nil {
		t.Error("a key of Keys was added")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
