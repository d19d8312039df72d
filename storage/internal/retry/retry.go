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
	for a := p.Begin(op, name); ; {
		err := f()
		if err == nil {
			return nil
		}
		if err := a.Wait(ctx, err); err != nil {
			return err
		}
	}
}

// Answered records that the service has answered at least once.
func (p *Policy) Answered() { p.answered.Store(true) }

// Attempts counts the attempts of one request.
type Attempts struct {
	p        *Policy
	op, name string
	failed   int
	begin    time.Time
}

// Begin begins the first attempt of a request.
func (p *Policy) Begin(op, name string) *Attempts {
	return &Attempts{p: p, op: op, name: name, begin: time.Now()}
}

// Reset counts from the beginning, because there was progress.
func (a *Attempts) Reset() { a.failed, a.begin = 0, time.Now() }

// Wait waits before the next attempt, after one that failed with err. If there is to
// be none, it returns err, or the error of the context.
func (a *Attempts) Wait(ctx context.Context, err error) error {
	p := a.p
	if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, errFinal) || ctx.Err() != nil {
		return err
	}
	a.failed++
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
	for i := 1; i < a.failed && pause < longestPause; i++ {
		pause = min(2*pause, longestPause)
	}
	wait := pause/2 + time.Duration(rand.Int64N(int64(pause/2)+1)) //nolint:gosec // not a secret
	var asked *later
	if errors.As(err, &asked) {
		wait = max(wait, asked.wait)
	}
	if a.failed >= attempts || time.Since(a.begin)+wait > deadline || a.failed >= unanswered && !p.answered.Load() {
		return err
	}
	if p.Report != nil {
		p.Report(storage.Retry{Op: a.op, Name: a.name, Attempt: a.failed, Wait: wait, Err: err})
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return &storage.Error{Op: a.op, Name: a.name, Err: ctx.Err()}
	}
}

// later is an error with the pause that a service asked for.
type later struct {
	error
	wait time.Duration
}

func (e *later) Unwrap() error { return e.error }

// After returns err with the least pause before another attempt, as in a header
// Retry-After.
func After(err error, wait time.Duration) error { return &later{err, wait} }

// errFinal marks errors after which no attempt is made.
var errFinal = errors.New("not tried again")

type final struct{ error }

func (e final) Unwrap() []error { return []error{e.error, errFinal} }

// Final returns err such that it ends the attempts, even if it is
// storage.ErrUnavailable: a host of that name does not exist, for example.
func Final(err error) error { return final{err} }
