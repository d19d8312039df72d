package upload

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
)

// service is a service in memory that refuses what S3 refuses.
type service struct {
	store *mem.Store
	least int64
	fail  func(call string) error

	mu    sync.Mutex
	parts map[int][]byte
	data  []byte
	calls []string
}

func (s *service) call(format string, args ...any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := fmt.Sprintf(format, args...)
	s.calls = append(s.calls, call)
	if s.fail != nil {
		return s.fail(call)
	}
	return nil
}

func (s *service) Put(_ context.Context, body []byte) (storage.Info, error) {
	s.data = bytes.Clone(body)
	return storage.Info{Size: int64(len(body))}, s.call("put %d", len(body))
}

func (s *service) Begin(context.Context) error {
	s.parts = map[int][]byte{}
	return s.call("begin")
}

func (s *service) PutPart(_ context.Context, i int, body []byte) error {
	err := s.call("part %d", len(body))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[i] = bytes.Clone(body)
	return err
}

func (s *service) read(ctx context.Context, src Source, off, n int64) ([]byte, error) {
	body, _, err := s.store.ReadRange(ctx, src.Name, off, n, src.Pin)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(body)
}

func (s *service) CopyPart(ctx context.Context, i int, src Source, off, n int64) error {
	p, err := s.read(ctx, src, off, n)
	if err != nil {
		return err
	}
	err = s.call("copy %d", len(p))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.parts[i] = p
	return err
}

func (s *service) Complete(_ context.Context, n int, size int64) (storage.Info, error) {
	s.data = nil
	for i := range n {
		if i < n-1 && int64(len(s.parts[i])) < s.least {
			return storage.Info{}, fmt.Errorf("part %d of %d is too small: %d", i, n, len(s.parts[i]))
		}
		s.data = append(s.data, s.parts[i]...)
	}
	if int64(len(s.data)) != size {
		return storage.Info{}, fmt.Errorf("%d bytes, not %d", len(s.data), size)
	}
	return storage.Info{Size: size}, s.call("complete %d", n)
}

func (s *service) CopyWhole(ctx context.Context, src Source) (storage.Info, error) {
	p, err := s.read(ctx, src, 0, -1)
	s.data = p
	return storage.Info{Size: int64(len(p))}, errors.Join(err, s.call("whole"))
}

func (s *service) Cancel(_ context.Context, tried bool) error { return s.call("cancel %v", tried) }

// Whatever is written and copied in whatever order, the object has these bytes.
func TestAnyOrder(t *testing.T) {
	const seeds = 2000
	copies, wholes := 0, 0
	for seed := range uint64(seeds) {
		r := rand.New(rand.NewPCG(seed, 1))
		store := mem.New()
		source := bytes.Repeat([]byte("0123456789"), r.IntN(30))
		w, err := store.Create(t.Context(), "src", storage.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(source); err != nil {
			t.Fatal(err)
		}
		info, err := w.Commit(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		from := Source{Name: "src", Size: info.Size, Pin: info.Version}
		s := &service{store: store, least: 5}
		var o storage.CreateOptions
		l := Limits{Part: 16, MinCopy: 5, MaxCopy: 40}
		if seed%4 == 0 {
			l = Limits{Part: 16, MaxCopy: 1 << 40, Parallel: 1, WholeOnly: true}
		}
		u := New(t.Context(), "dst", s, l, o)
		var want []byte
		for range 1 + r.IntN(5) {
			off := r.IntN(len(source) + 1)
			n := r.IntN(len(source) - off + 1)
			switch r.IntN(3) {
			case 0:
				if _, err := u.Write(source[off : off+n]); err != nil {
					t.Fatal(err)
				}
			case 1:
				off, n = 0, len(source)
				err = u.CopyWhole(t.Context(), store, from)
			default:
				err = u.Copy(t.Context(), store, from, int64(off), int64(n))
			}
			if errors.Is(err, storage.ErrUnsupported) {
				_, err = u.Write(source[off : off+n])
			}
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			want = append(want, source[off:off+n]...)
		}
		got, err := u.Commit(t.Context())
		if err != nil {
			t.Fatalf("seed %d: %v, after %v", seed, err, s.calls)
		}
		if !bytes.Equal(s.data, want) || got.Size != int64(len(want)) {
			t.Fatalf("seed %d: %q, expected %q, after %v", seed, s.data, want, s.calls)
		}
		for _, c := range s.calls {
			if strings.HasPrefix(c, "copy") {
				copies++
				if l.WholeOnly {
					t.Fatalf("seed %d: a range is copied", seed)
				}
			}
			if c == "whole" {
				wholes++
			}
		}
	}
	if copies < seeds/4 || wholes < seeds/200 {
		t.Errorf("only %d copied parts and %d whole copies in %d uploads", copies, wholes, seeds)
	}
}

func TestCalls(t *testing.T) {
	limits := Limits{Part: 10, MinCopy: 5, MaxCopy: 40, MaxParts: 4, Parallel: 1}
	fails := func(at string) func(string) error {
		return func(call string) error {
			if strings.HasPrefix(call, at) {
				return errors.New("refused")
			}
			return nil
		}
	}
	for name, tc := range map[string]struct {
		write  []int // sizes
		size   int64
		fail   string
		refuse bool
		calls  []string
	}{
		"empty":            {calls: []string{"put 0"}},
		"one part":         {write: []int{4, 6}, calls: []string{"put 10"}},
		"two":              {write: []int{4, 6, 1}, calls: []string{"begin", "part 10", "part 1", "complete 2"}},
		"large, announced": {write: []int{50}, size: 50, calls: []string{"begin", "part 13", "part 13", "part 13", "part 11", "complete 4"}},
		"too many":         {write: []int{50}, refuse: true, calls: []string{"begin", "part 10", "part 10", "part 10", "part 10", "cancel false"}},
		"too long":         {write: []int{3, 3}, size: 5, refuse: true},
		"too short":        {write: []int{3}, size: 5, refuse: true},
		"put fails":        {write: []int{3}, fail: "put", refuse: true, calls: []string{"put 3", "cancel true"}},
		"begin fails":      {write: []int{11}, fail: "begin", refuse: true, calls: []string{"begin", "cancel false"}},
		"part fails":       {write: []int{11}, fail: "part", refuse: true, calls: []string{"begin", "part 10", "part 1", "cancel false"}},
		"complete fails":   {write: []int{11}, fail: "complete", refuse: true, calls: []string{"begin", "part 10", "part 1", "complete 2", "cancel true"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &service{store: mem.New()}
			if tc.fail != "" {
				s.fail = fails(tc.fail)
			}
			u := New(t.Context(), "dst", s, limits, storage.CreateOptions{Size: tc.size})
			var err error
			for _, n := range tc.write {
				if _, err = u.Write(make([]byte, n)); err != nil {
					break
				}
			}
			if err == nil {
				_, err = u.Commit(t.Context())
			}
			if (err != nil) != tc.refuse {
				t.Errorf("refused %v: %v", tc.refuse, err)
			}
			for range 2 {
				if err := u.Abort(t.Context()); err != nil {
					t.Error(err)
				}
			}
			if tc.fail == "part" { // the part after the failed one may not be sent
				s.calls = slices.DeleteFunc(s.calls, func(c string) bool { return c == "part 1" })
				tc.calls = slices.DeleteFunc(tc.calls, func(c string) bool { return c == "part 1" })
			}
			if !slices.Equal(s.calls, tc.calls) {
				t.Errorf("calls %v, expected %v", s.calls, tc.calls)
			}
			if _, err := u.Write([]byte("x")); err == nil {
				t.Error("a write after the end succeeds")
			}
		})
	}
}
