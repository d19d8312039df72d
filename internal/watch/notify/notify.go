package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// Options of a Notifier.
type Options struct {
	URL      string        // http or https
	Bearer   string        // token of the Authorization header; ""
	Attempts int           // for one event; 0: 5
	Pause    time.Duration // before the second attempt, doubled for each further one; 0: a second
	Failed   func(error)   // called for an event that was given up; the error does not show the URL. It may be nil.
}

// Bounds of what waits.
const (
	queued       = 256              // events
	answerTime   = 10 * time.Second // for one attempt
	longestPause = time.Minute
	answerBytes  = 64 << 10
)

// The outcomes of events.
const (
	Sent    = "sent"
	Failed  = "failed"  // after all attempts
	Dropped = "dropped" // too many were waiting
)

// Notifier sends events to one URL. It is safe for concurrent use.
type Notifier struct {
	o      Options
	client *http.Client
	queue  chan []byte
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	counts map[string]int64
	closed bool
}

// CheckURL returns an error for a URL that no event can be sent to. The error does not
// show it.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return errors.New("its scheme must be http or https")
	case u.Host == "":
		return errors.New("it has no host")
	}
	return nil
}

// New starts a notifier. The caller must call Close.
func New(o Options) *Notifier {
	if o.Attempts == 0 {
		o.Attempts = 5
	}
	if o.Pause == 0 {
		o.Pause = time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &Notifier{o: o, queue: make(chan []byte, queued), cancel: cancel, done: make(chan struct{}), counts: map[string]int64{Sent: 0, Failed: 0, Dropped: 0}}
	// A redirect would repeat the event, and the secret in a header, at another URL.
	n.client = &http.Client{Timeout: answerTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	go n.run(ctx)
	return n
}

// Send queues an event, a JSON text. It does not wait.
func (n *Notifier) Send(body []byte) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.closed {
		select {
		case n.queue <- body:
			return
		default:
		}
	}
	n.counts[Dropped]++
}

// Counts returns the number of events by outcome.
func (n *Notifier) Counts() map[string]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.counts)
}

// Close waits until all events are sent or given up; if the context ends before, the
// rest is given up.
func (n *Notifier) Close(ctx context.Context) {
	n.mu.Lock()
	if !n.closed {
		n.closed = true
		close(n.queue)
	}
	n.mu.Unlock()
	select {
	case <-n.done:
	case <-ctx.Done():
	}
	n.cancel()
	<-n.done
}

func (n *Notifier) run(ctx context.Context) {
	defer close(n.done)
	for body := range n.queue {
		err := n.deliver(ctx, body)
		outcome := Sent
		if err != nil {
			outcome = Failed
			if n.o.Failed != nil {
				n.o.Failed(err)
			}
		}
		n.mu.Lock()
		n.counts[outcome]++
		n.mu.Unlock()
	}
}

// deliver sends one event, in several attempts.
func (n *Notifier) deliver(ctx context.Context, body []byte) error {
	pause := n.o.Pause
	for attempt := 1; ; attempt++ {
		again, err := n.post(ctx, body)
		if err == nil {
			return nil
		}
		if !again || attempt == n.o.Attempts || ctx.Err() != nil {
			return fmt.Errorf("webhook, attempt %d: %w", attempt, err)
		}
		timer := time.NewTimer(pause/2 + rand.N(pause/2+1))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
		pause = min(2*pause, longestPause)
	}
}

// post makes one attempt. again reports whether another one may succeed.
func (n *Notifier) post(ctx context.Context, body []byte) (again bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, n.o.URL, bytes.NewReader(body))
	if err != nil {
		return false, errors.New("invalid URL")
	}
	req.Header.Set("Content-Type", "application/json")
	if n.o.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+n.o.Bearer)
	}
	resp, err := n.client.Do(req)
	if err != nil {
		var of *url.Error // which shows the URL
		if errors.As(err, &of) {
			err = of.Err
		}
		return true, err
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, answerBytes)) // so that the connection can be used again
	_ = resp.Body.Close()
	switch code := resp.StatusCode; {
	case code >= 200 && code < 300:
		return false, nil
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout, code >= 500:
		return true, fmt.Errorf("status %d", code)
	default:
		return false, fmt.Errorf("status %d", code)
	}
}
