package spill_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/internal/spill"
)

// Records come out by key, and those with equal keys as they were added, whether they fit
// into memory or not.
func TestSorter(t *testing.T) {
	for _, memory := range []int64{1, 1000, 50_000, 1 << 30} {
		dir := t.TempDir()
		s := spill.NewSorter(spill.Options{Memory: memory, Dir: dir})
		r := rand.New(rand.NewPCG(1, 2))
		type record struct {
			key, value string
			n          int64
		}
		var want []record
		for n := range int64(2000) {
			rec := record{fmt.Sprint(r.IntN(500)), fmt.Sprint("value ", r.IntN(1000)), n}
			if n == 1000 {
				rec.value = string(make([]byte, 3<<20))
			}
			if err := s.Add([]byte(rec.key), []byte(rec.value)); err != nil {
				t.Fatal(err)
			}
			want = append(want, rec)
		}
		slices.SortStableFunc(want, func(a, b record) int {
			switch {
			case a.key < b.key:
				return -1
			case a.key > b.key:
				return 1
			}
			return 0
		})
		var got []record
		err := s.Each(context.Background(), func(r spill.Record) error {
			got = append(got, record{string(r.Key), string(r.Value), r.Number})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("memory of %d bytes: %d records in another order than expected", memory, len(got))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in the directory: %v, %v", left, err)
		}
	}
}

func TestSorterStops(t *testing.T) {
	s := spill.NewSorter(spill.Options{Memory: 1, Dir: t.TempDir()})
	defer s.Close() //nolint:errcheck // a test
	for range 10 {
		if err := s.Add([]byte("k"), nil); err != nil {
			t.Fatal(err)
		}
	}
	n, stop := 0, errors.New("stop")
	if err := s.Each(context.Background(), func(spill.Record) error { n++; return stop }); !errors.Is(err, stop) || n != 1 {
		t.Errorf("%d records, %v", n, err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := s.Each(ctx, func(spill.Record) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("after the context ended: %v", err)
	}
}

func TestNoDirectory(t *testing.T) {
	s := spill.NewSorter(spill.Options{Memory: 1, Dir: t.TempDir() + "/none"})
	err := errors.Join(s.Add(nil, nil), s.Add(nil, nil))
	if err == nil || errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func TestFile(t *testing.T) {
	f, err := spill.NewFile(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	big := make([]byte, 1<<20)
	big[7] = 7
	for _, p := range [][]byte{[]byte("abc"), big, []byte("def")} {
		if n, err := f.Write(p); n != len(p) || err != nil {
			t.Fatal(n, err)
		}
	}
	if err := f.Flush(); err != nil || f.Size() != 1<<20+6 {
		t.Fatal(f.Size(), err)
	}
	p := make([]byte, 4)
	if _, err := f.ReadAt(p, 7); err != nil || p[3] != 7 {
		t.Errorf("% x, %v", p, err)
	}
	if _, err := f.ReadAt(p, 1<<20+3); !errors.Is(err, io.EOF) || string(p[:3]) != "def" {
		t.Errorf("%q, %v", p, err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
