// Package retry makes requests of a store again that failed for a reason that passes:
// the service is busy, or the network broke.
package retry

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/savepoint-tools/spt/storage"
)

// Policy says how often and how long requests are tried. The zero value works. It must
// not be copied after its first use.
type Policy struct {
	Attempts int                 // of one request; 0: 10
	Deadline time.Duration       // no new attempt begins later than this after the first; 0: a minute
	Pause    time.Duration       // before the second attempt, half of it at random; doubled for each further one, to five seconds. 0: 200 ms
	Report   func(storage.Retry) // called before each pause, concurrently; may be nil

	answered atomic.Bool
}

// unanswered is the number of attempts while the service has never answered: then it
// is more likely that its address is wrong than that it is busy.
const unanswered = 3

const longestPause = 5 * time.Second

// Do calls f until it returns nil, or an error that is not storage.ErrUnavailable, or
// until the attempts or the time are used up; it returns the last error of f.
func (p *Policy) Do(ctx context.Context, op, name string, f func() error) error {
	begin := time.Now()
	attempts := p.Attempts
	if attempts <= 0 {
		attempts = 10
	}
	deadline := p.Deadline
	if deadline <= 0 {
		deadline = time.Minute
	}
	pause := p.Pause
	if pause <= 0 {
		pause = 200 * time.Millisecond
	}
	for attempt := 1; ; attempt++ {
		err := f()
		if err == nil || !errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
		wait := pause/2 + time.Duration(rand.Int64N(int64(pause/2)+1)) //nolint:gosec // not a secret
		if attempt >= attempts || time.Since(begin)+wait > deadline || attempt >= unanswered && !p.answered.Load() {
			return err
		}
		if p.Report != nil {
			p.Report(storage.Retry{Op: op, Name: name, Attempt: attempt, Wait: wait, Err: err})
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return &storage.Error{Op: op, Name: name, Err: ctx.Err()}
		}
		pause = min(2*pause, longestPause)
	}
}

// Answered records that the service has answered at least once.
func (p *Policy) Answered() { p.answered.Store(true) }
