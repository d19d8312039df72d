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

var errBusy = fmt.Errorf("busy: %w", storage.ErrUnavailable)

func TestDo(t *testing.T) {
	for _, c := range []struct {
		what     string
		p        *retry.Policy
		answered bool
		fails    int // attempts
		err      error
		attempts int
		expected error
	}{
		{"works", &retry.Policy{}, true, 0, errBusy, 1, nil},
		{"works then", &retry.Policy{Pause: 1}, true, 5, errBusy, 6, nil},
		{"never works", &retry.Policy{Pause: 1, Attempts: 4}, true, 99, errBusy, 4, errBusy},
		{"default", &retry.Policy{Pause: 1}, true, 99, errBusy, 10, errBusy},
		{"never answered", &retry.Policy{Pause: 1}, false, 99, errBusy, 3, errBusy},
		{"another error", &retry.Policy{Pause: 1}, true, 99, storage.ErrExist, 1, storage.ErrExist},
		{"no time", &retry.Policy{Pause: time.Hour, Deadline: time.Minute}, true, 99, errBusy, 1, errBusy},
	} {
		n, told := 0, 0
		c.p.Report = func(r storage.Retry) {
			if told++; r.Attempt != told || r.Op != "read" || r.Name != "x" || r.Wait <= 0 && c.p.Pause > 1 || !errors.Is(r.Err, errBusy) {
				t.Errorf("%s: %+v", c.what, r)
			}
		}
		if c.answered {
			c.p.Answered()
		}
		err := c.p.Do(context.Background(), "read", "x", func() error {
			if n++; n <= c.fails {
				return c.err
			}
			return nil
		})
		if !errors.Is(err, c.expected) || n != c.attempts || told != n-1 {
			t.Errorf("%s: %v after %d attempts, %d reported; expected %v, %d", c.what, err, n, told, c.expected, c.attempts)
		}
	}
}

func TestEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	p := &retry.Policy{Pause: time.Hour, Deadline: 10 * time.Hour, Report: func(storage.Retry) { cancel() }}
	var of *storage.Error
	if err := p.Do(ctx, "read", "x", func() error { return errBusy }); !errors.Is(err, context.Canceled) || !errors.As(err, &of) || of.Name != "x" {
		t.Errorf("%v, expected Canceled", err)
	}
}
