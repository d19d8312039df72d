package retry_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/retry"
)

func TestAttempts(t *testing.T) {
	busy := fmt.Errorf("busy: %w", storage.ErrUnavailable)
	for name, c := range map[string]struct {
		p        *retry.Policy
		answered bool
		errs     []error // of each attempt; the last one of all further ones
		want     int     // attempts
	}{
		"at once":           {errs: []error{nil}, want: 1},
		"the third":         {errs: []error{busy, busy, nil}, answered: true, want: 3},
		"all used up":       {p: &retry.Policy{Attempts: 5}, errs: []error{busy}, answered: true, want: 5},
		"ten by default":    {errs: []error{busy}, answered: true, want: 10},
		"never an answer":   {errs: []error{busy}, want: 3},
		"one only":          {p: &retry.Policy{Attempts: 1}, errs: []error{busy}, answered: true, want: 1},
		"another error":     {errs: []error{busy, errors.New("refused")}, answered: true, want: 2},
		"final":             {errs: []error{busy, retry.Final(busy)}, answered: true, want: 2},
		"after a deadline":  {p: &retry.Policy{Deadline: time.Hour}, errs: []error{retry.After(busy, 2*time.Hour)}, answered: true, want: 1},
		"asked for a pause": {errs: []error{retry.After(busy, time.Millisecond), nil}, answered: true, want: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var reported []storage.Retry
			if c.p == nil {
				c.p = &retry.Policy{}
			}
			c.p.Pause = time.Microsecond
			c.p.Report = func(r storage.Retry) { reported = append(reported, r) }
			if c.answered {
				c.p.Answered()
			}
			n := 0
			err := c.p.Do(context.Background(), "read", "x", func() error {
				n++
				return c.errs[min(n, len(c.errs))-1]
			})
			if n != c.want || !errors.Is(err, c.errs[min(n, len(c.errs))-1]) {
				t.Errorf("%d attempts, expected %d: %v", n, c.want, err)
			}
			if len(reported) != n-1 {
				t.Fatalf("%d reports of %d attempts", len(reported), n)
			}
			for i, r := range reported {
				if r.Op != "read" || r.Name != "x" || r.Attempt != i+1 || r.Wait < 0 || !errors.Is(r.Err, storage.ErrUnavailable) {
					t.Errorf("%+v", r)
				}
			}
		})
	}
}

func TestContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := retry.Policy{Pause: time.Hour, Deadline: 10 * time.Hour, Report: func(storage.Retry) { cancel() }}
	err := p.Do(ctx, "read", "x", func() error { return storage.ErrUnavailable })
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func TestReset(t *testing.T) {
	p := retry.Policy{Attempts: 2, Pause: time.Microsecond}
	p.Answered()
	a := p.Begin("write", "x")
	for i := range 5 {
		if err := a.Wait(context.Background(), storage.ErrUnavailable); err != nil {
			t.Fatalf("%d: %v", i, err)
		}
		a.Reset()
	}
	_ = a.Wait(context.Background(), storage.ErrUnavailable)
	if err := a.Wait(context.Background(), storage.ErrUnavailable); !errors.Is(err, storage.ErrUnavailable) {
		t.Error(err)
	}
}
