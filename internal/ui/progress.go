package ui

import (
	"io"
	"strings"
	"sync"
	"time"
)

// Progress shows how far a long job has come. Add may be called from several goroutines.
type Progress interface {
	// Start begins a job of total bytes, 0 if that is not known; what says in a word what is done.
	Start(total int64, what string)
	// StartCount begins a job on total things other than bytes, such as snapshots.
	StartCount(total int64, what string)
	// Add reports n more bytes.
	Add(n int64)
	// Stop ends the job and removes what was drawn. It may be called again, and without Start.
	Stop()
}

// NoProgress is a Progress that shows nothing.
type NoProgress struct{}

// Start does nothing.
func (NoProgress) Start(int64, string) {}

// StartCount does nothing.
func (NoProgress) StartCount(int64, string) {}

// Add does nothing.
func (NoProgress) Add(int64) {}

// Stop does nothing.
func (NoProgress) Stop() {}

// NewProgress returns a Progress that draws one line on w, which is stderr, and [NoProgress] where term is not a terminal.
// It draws inside Add, at most ten times a second, and starts no goroutine. While a job runs, nothing else may be
// written to that terminal: Stop first. What cannot be drawn is not drawn; no job fails for that.
func NewProgress(w io.Writer, term Term, now func() time.Time) Progress {
	if !term.IsTTY {
		return NoProgress{}
	}
	// The last column stays free: some terminals wrap as soon as it is written.
	return &bar{w: w, width: max(term.Width-1, 1), now: now}
}

const redrawEvery = time.Second / 10

type bar struct {
	w     io.Writer
	width int
	now   func() time.Time

	mu            sync.Mutex // guards all below
	running       bool
	what          string
	count         func(int64) string // how amounts are shown
	total, done   int64
	started, last time.Time // last: when the line was drawn
	drawn         int       // columns of the line on screen
}

func (b *bar) Start(total int64, what string) { b.start(total, what, Bytes) }

func (b *bar) StartCount(total int64, what string) { b.start(total, what, Count) }

func (b *bar) start(total int64, what string, count func(int64) string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.running, b.what, b.count, b.total, b.done = true, Printable(what), count, total, 0
	b.started = b.now()
	b.last = b.started // a job that is done at once is never drawn
}

func (b *bar) Add(n int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.running {
		return
	}
	if b.done += n; b.done < 0 { // past the largest int64, or taken back more than was added
		b.done = 0
		if n > 0 {
			b.done = 1<<63 - 1
		}
	}
	if now := b.now(); now.Sub(b.last) >= redrawEvery {
		b.last = now
		b.draw(now.Sub(b.started))
	}
}

func (b *bar) Stop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.erase()
	b.running = false
}

func (b *bar) draw(elapsed time.Duration) {
	line := truncate(b.line(elapsed), b.width, CutEnd)
	w := Width(line)
	// Blanks instead of an escape sequence: they work on every terminal.
	b.print("\r" + line + strings.Repeat(" ", max(0, b.drawn-w)))
	b.drawn = max(b.drawn, w) // blanks count too
}

func (b *bar) erase() {
	if b.drawn > 0 {
		b.print("\r" + strings.Repeat(" ", b.drawn) + "\r")
		b.drawn = 0
	}
}

func (b *bar) print(s string) {
	_, _ = io.WriteString(b.w, s) // see NewProgress
}

// line says, as far as it is known: what, how much of how much, the share, the mean rate, the time left.
func (b *bar) line(elapsed time.Duration) string {
	parts := []string{b.what, b.count(b.done)}
	if b.total > 0 {
		parts[1] += " of " + b.count(b.total)
		parts = append(parts, Percent(min(b.done, b.total), b.total))
	}
	// In its first second a job mostly measures how long it took to start.
	const settled, sayable = time.Second, 100 * 24 * time.Hour
	if elapsed < settled || b.done == 0 {
		return strings.Join(parts, gap)
	}
	perSecond := float64(b.done) / elapsed.Seconds()
	if rate := int64(min(perSecond, 1<<62)); rate > 0 {
		parts = append(parts, b.count(rate)+"/s")
	}
	if left := float64(b.total-b.done) / perSecond; left > 0 && left < sayable.Seconds() {
		whole := time.Duration(left * float64(time.Second)).Round(time.Second)
		parts = append(parts, Duration(max(whole, time.Second))+" left")
	}
	return strings.Join(parts, gap)
}
