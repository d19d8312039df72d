package ui

import (
	"math"
	"strings"
	"sync"
	"testing"
	"time"
)

// clock moves only when it is told to.
type clock struct{ t time.Time }

func (c *clock) now() time.Time      { return c.t }
func (c *clock) add(d time.Duration) { c.t = c.t.Add(d) }
func newBar(width int) (*strings.Builder, *clock, Progress) {
	var out strings.Builder
	c := &clock{time.Date(2024, 5, 31, 12, 0, 0, 0, time.UTC)}
	return &out, c, NewProgress(&out, Term{IsTTY: true, Width: width}, c.now)
}

// visible plays what was drawn on one line of a terminal and returns what stands there.
func visible(t *testing.T, drawn string, width int) string {
	t.Helper()
	line := []rune(strings.Repeat(" ", width))
	at := 0
	for _, r := range drawn {
		if r == '\r' {
			at = 0
			continue
		}
		w := 1
		if r > 0x2fff { // all wide characters of these tests
			w = 2
		}
		if at+w > width-1 {
			t.Fatalf("the last column was written: %q", drawn)
		}
		line[at] = r
		if w == 2 {
			line[at+1] = 0
		}
		at += w
	}
	return strings.TrimRight(strings.ReplaceAll(string(line), "\x00", ""), " ")
}

func TestProgress(t *testing.T) {
	const width = 80
	out, c, p := newBar(width)
	step := func(d time.Duration, n int64, want string) {
		t.Helper()
		c.add(d)
		p.Add(n)
		if got := visible(t, out.String(), width); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
	p.Start(100<<20, "copying")
	step(0, 1<<20, "")
	step(99*time.Millisecond, 1<<20, "")
	step(time.Millisecond, 0, "copying  2.0 MiB of 100.0 MiB  2 %")
	step(50*time.Millisecond, 1<<20, "copying  2.0 MiB of 100.0 MiB  2 %") // too soon
	step(1850*time.Millisecond, 7<<20, "copying  10.0 MiB of 100.0 MiB  10 %  5.0 MiB/s  18 s left")
	step(8*time.Second, 90<<20, "copying  100.0 MiB of 100.0 MiB  100 %  10.0 MiB/s")
	step(time.Second, 10<<20, "copying  110.0 MiB of 100.0 MiB  100 %  10.0 MiB/s") // totals are claims
	p.Stop()
	if got := visible(t, out.String(), width); got != "" {
		t.Errorf("after Stop: %q", got)
	}

	drawn := out.Len()
	p.Stop()
	step(time.Second, 5, "")
	if out.Len() != drawn {
		t.Error("something was drawn after Stop")
	}

	p.StartCount(196, "opening snapshots")
	step(100*time.Millisecond, 3, "opening snapshots  3 of 196  2 %")
	step(1900*time.Millisecond, 46, "opening snapshots  49 of 196  25 %  24/s  6 s left")
	p.StartCount(3, "opening snapshots")
	step(10*time.Second, 1, "opening snapshots  1 of 3  33 %  20 s left")

	p.Start(0, "reading") // again, total unknown
	step(2*time.Second, 4<<20, "reading  4.0 MiB  2.0 MiB/s")
	p.Start(10, "next") // without Stop between
	step(time.Second, 9, "next  9 B of 10 B  90 %  9 B/s  1 s left")
	p.Stop()
	if got := visible(t, out.String(), width); got != "" {
		t.Errorf("after Stop: %q", got)
	}
}

func TestProgressOddities(t *testing.T) {
	const max64 = math.MaxInt64
	tests := []struct {
		name  string
		width int
		total int64
		what  string
		after time.Duration // from Start to the last Add
		adds  []int64
		want  string
	}{
		{"narrow", 20, 100, "copying", time.Second, []int64{1}, "copying  1 B of 10…"},
		{"two columns", 2, 100, "copying", time.Second, []int64{1}, "…"},
		{"wide name", 9, 0, "日本語の", time.Second, []int64{1}, "日本語…"},
		{"foreign name", 60, 0, "a\x1b[2J\r", time.Second, []int64{1}, `a\x1b[2J\r  1 B  1 B/s`},
		{"nothing done", 60, 100, "x", time.Hour, []int64{0}, "x  0 B of 100 B  0 %"},
		{"too long to say", 60, max64, "x", time.Second, []int64{1}, "x  1 B of 8.0 EiB  <1 %  1 B/s"},
		{"overflow", 60, max64, "x", 2 * time.Second, []int64{max64, max64}, "x  8.0 EiB of 8.0 EiB  100 %  4.0 EiB/s"},
		{"taken back", 60, 10, "x", time.Second, []int64{5, -7}, "x  0 B of 10 B  0 %"},
		{"negative total", 60, -1, "x", time.Second, []int64{5}, "x  5 B  5 B/s"},
		{"clock goes back", 60, 10, "x", -time.Hour, []int64{5}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out, c, p := newBar(tt.width)
			p.Start(tt.total, tt.what)
			for i, n := range tt.adds {
				if i == len(tt.adds)-1 {
					c.add(tt.after)
				}
				p.Add(n)
			}
			if got := visible(t, out.String(), tt.width); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
			p.Stop()
			if got := visible(t, out.String(), tt.width); got != "" {
				t.Errorf("after Stop: %q", got)
			}
		})
	}
}

func TestProgressRedrawsTenTimesASecond(t *testing.T) {
	out, c, p := newBar(80)
	p.Start(1000, "copying")
	for range 1000 { // ten seconds
		c.add(10 * time.Millisecond)
		p.Add(1)
	}
	if n := strings.Count(out.String(), "\r"); n != 100 {
		t.Errorf("drawn %d times in ten seconds, want 100", n)
	}
}

func TestProgressFromManyGoroutines(t *testing.T) {
	p := NewProgress(&full{100}, Term{IsTTY: true, Width: 80}, time.Now) // a terminal that went away
	p.Start(8000, "copying")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				p.Add(1)
			}
		})
	}
	wg.Wait()
	if got := p.(*bar).done; got != 8000 {
		t.Errorf("got %d, want 8000", got)
	}
	p.Stop()
}

func TestProgressWithoutTerminal(t *testing.T) {
	var out strings.Builder
	c := &clock{}
	p := NewProgress(&out, Term{Width: 80, Color: true}, c.now)
	p.Start(10, "copying")
	c.add(time.Hour)
	p.Add(5)
	p.Stop()
	if out.Len() > 0 {
		t.Errorf("drawn: %q", out.String())
	}
}
