package browse

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/ui"
)

// settle runs work until none is left, as a terminal would.
func settle(t *testing.T, b *Browser) {
	t.Helper()
	for range 100_000 {
		w := b.Next()
		if w == nil {
			return
		}
		w(t.Context())()
	}
	t.Fatal("work without end")
}

// press presses keys one after another.
func press(t *testing.T, b *Browser, keys ...string) {
	t.Helper()
	for _, key := range keys {
		text := ""
		if len([]rune(key)) == 1 {
			text = key
		}
		b.Press(key, text)
		settle(t, b)
	}
}

func typing(t *testing.T, b *Browser, text string) {
	t.Helper()
	for _, r := range text {
		press(t, b, string(r))
	}
	press(t, b, "enter")
}

func screenOf(b *Browser) string { return strings.Join(b.Screen(), "\n") }

// numbers is a page of n numbers; it notes what is read of it.
type numbers struct {
	n     int64
	total bool
	fail  int64 // rows from here on cannot be read; 0: all can
	calls int
	most  int64 // the last row that was read
}

func (p *numbers) page() *Page {
	page := &Page{Title: "numbers", Columns: []string{"NUMBER", "SIZE"}, Total: -1, Command: "spt cat numbers"}
	if p.total {
		page.Total = p.n
	}
	page.Rows = func(ctx context.Context, first int64, n int) (rows []Row, end bool, err error) {
		p.calls++
		for i := first; i < min(first+int64(n), p.n); i++ {
			if p.fail > 0 && i >= p.fail {
				return rows, true, errors.New("the file ends here")
			}
			rows = append(rows, Row{Text: fmt.Sprintf("number %d", i), Cells: []string{"8 B"}, Bytes: 8, Opens: true})
			p.most = max(p.most, i)
		}
		return rows, first+int64(n) >= p.n, ctx.Err()
	}
	page.Open = func(_ context.Context, row int64) (*Page, error) {
		return &Page{Title: fmt.Sprint(row), Text: Wrapped(fmt.Sprintf("value %d", row))}, nil
	}
	return page
}

func TestWindow(t *testing.T) {
	for _, total := range []bool{true, false} {
		p := &numbers{n: 2600, total: total}
		b := New(p.page())
		b.Resize(60, 20)
		settle(t, b)
		if p.most >= 2*chunk {
			t.Errorf("the first screen read up to row %d", p.most)
		}
		press(t, b, "end")
		if s := screenOf(b); !strings.Contains(s, "> number 2599") || !strings.Contains(s, "row 2,600 of 2,600") {
			t.Errorf("last row:\n%s", s)
		}
		if total && p.calls > 3 {
			t.Errorf("%d reads to see the first and the last row", p.calls)
		}
		for i := range 2599 {
			press(t, b, "up")
			if s, want := screenOf(b), fmt.Sprintf("> number %d ", 2598-i); !strings.Contains(s, want) {
				t.Fatalf("%q is not on the screen:\n%s", want, s)
			}
			if v := b.view(); len(v.rows) > held {
				t.Fatalf("%d rows are held", len(v.rows))
			}
		}
		for range 200 {
			press(t, b, "pgdown")
		}
		if s := screenOf(b); !strings.Contains(s, "> number 2599") {
			t.Errorf("the last row, by screens:\n%s", s)
		}
		press(t, b, "home", "enter")
		if s := screenOf(b); !strings.Contains(s, "value 0") || !strings.Contains(s, "numbers › 0") {
			t.Errorf("the first row, opened:\n%s", s)
		}
	}
}

func TestSearch(t *testing.T) {
	p := &numbers{n: 5000}
	b := New(p.page())
	b.Resize(60, 20)
	settle(t, b)
	press(t, b, "/")
	typing(t, b, "NUMBER 3999")
	if s := screenOf(b); !strings.Contains(s, "> number 3999") {
		t.Errorf("not found:\n%s", s)
	}
	if p.most > 3999+2*chunk {
		t.Errorf("row %d was read to find row 3999", p.most)
	}
	press(t, b, "/")
	typing(t, b, "number 3")
	press(t, b, "n")
	if s := screenOf(b); !strings.Contains(s, "> number 3999") || !strings.Contains(s, "not found below row 4,000: number 3") {
		t.Errorf("nothing follows:\n%s", s)
	}
}

func TestSearchFromTheTop(t *testing.T) {
	b := New((&numbers{n: 10}).page())
	settle(t, b)
	press(t, b, "end", "/")
	typing(t, b, "number 2")
	if s := screenOf(b); !strings.Contains(s, "> number 2") {
		t.Errorf("not found:\n%s", s)
	}
}

func TestCancel(t *testing.T) {
	p := &numbers{n: 1 << 40}
	b := New(p.page())
	settle(t, b)
	b.Press("end", "")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 100 {
		w := b.Next()
		if w == nil {
			t.Fatal("nothing to read")
		}
		if s := screenOf(b); !strings.Contains(s, "reading…") || !strings.Contains(s, "Esc cancels") {
			t.Fatalf("no progress:\n%s", s)
		}
		if i == 99 {
			if !b.Press("esc", "") {
				t.Error("Esc does not cancel")
			}
			cancel()
		}
		w(ctx)()
	}
	if w := b.Next(); w != nil || b.Done() {
		t.Error("it reads on, or ends")
	}
	if s := screenOf(b); !strings.Contains(s, "cancelled") {
		t.Errorf("not cancelled:\n%s", s)
	}
	press(t, b, "down")
	if s := screenOf(b); !strings.Contains(s, "> number ") {
		t.Errorf("no rows after a key:\n%s", s)
	}
}

// TestDamage: rows before an error are shown, and the error in its place.
func TestDamage(t *testing.T) {
	b := New((&numbers{n: 5000, fail: 5}).page())
	b.Resize(60, 20)
	settle(t, b)
	s := screenOf(b)
	if !strings.Contains(s, "number 4") || !strings.Contains(s, "! the file ends here") {
		t.Errorf("the error is not shown:\n%s", s)
	}
	press(t, b, "end", "enter")
	if s := screenOf(b); !strings.Contains(s, "value 4") {
		t.Errorf("the row before the error does not open:\n%s", s)
	}
}

// TestKeysAhead: keys that are pressed during a read are handled after it.
func TestKeysAhead(t *testing.T) {
	b := New((&numbers{n: 5000}).page())
	w := b.Next()
	for _, key := range []string{"down", "down", "enter"} {
		if b.Press(key, "") {
			t.Errorf("%s cancels", key)
		}
	}
	w(t.Context())()
	settle(t, b)
	if s := screenOf(b); !strings.Contains(s, "value 2") {
		t.Errorf("the third row is not open:\n%s", s)
	}
}

func TestQuit(t *testing.T) {
	b := New((&numbers{n: 1}).page())
	settle(t, b)
	press(t, b, "enter", "esc")
	if b.Done() {
		t.Fatal("Esc on the second page quits")
	}
	press(t, b, "esc")
	if !b.Done() {
		t.Error("Esc on the first page does not quit")
	}
}

// TestScreens: no line is wider than the terminal, at any size, and what a snapshot says
// cannot control the terminal.
func TestScreens(t *testing.T) {
	evil := "a\x1b[2J\x1b[31mb\u202ec\x07\nd\xff界界界界界界界界界界界界界界界界界界界界界界界界"
	page := func() *Page {
		p := &Page{Title: evil, Columns: []string{"NAME", "SIZE", "COUNT"}, Total: -1, Command: "spt cat 'a b'"}
		p.Rows = func(context.Context, int64, int) ([]Row, bool, error) {
			return []Row{{Text: evil, Cells: []string{evil, "1"}, Bytes: 3, Opens: true}, {Text: "x", Problem: evil, Bytes: -1}}, true, errors.New(evil)
		}
		p.Open = func(context.Context, int64) (*Page, error) { return nil, errors.New(evil) }
		p.Lookup = func(context.Context, string) (*Page, error) { return &Page{Title: evil, Text: Wrapped(evil)}, nil }
		p.Types = func(context.Context) (Text, error) { return Wrapped(evil + " type"), nil }
		return p
	}
	for _, color := range []bool{false, true} {
		for _, width := range []int{8, 20, 40, 60, 80, 99, 100, 160} {
			for _, height := range []int{1, 5, 20} {
				b := New(page())
				b.Color = color
				for _, step := range []string{"", "enter", "?", "esc", "y", "esc", "s", "esc", "f", "\"", "k", "enter", "down"} {
					if step != "" {
						press(t, b, step)
					}
					b.Resize(width, height)
					settle(t, b)
					lines := b.Screen()
					if len(lines) > height {
						t.Fatalf("%d lines of %d", len(lines), height)
					}
					for _, line := range lines {
						if w := ui.Width(line); w > width {
							t.Errorf("%d columns of %d after %q: %q", w, width, step, line)
						}
						if strings.ContainsAny(line, "\x07\n\u202e") || strings.Contains(line, "\x1b[2J") || !color && strings.Contains(line, "\x1b") {
							t.Fatalf("%q after %q", line, step)
						}
					}
				}
			}
		}
	}
}

func TestBar(t *testing.T) {
	for _, x := range []struct {
		n, most int64
		want    string
	}{{0, 10, ""}, {1, 1000, "▏"}, {10, 10, "████"}, {5, 10, "██"}, {3, 16, "▊"}, {20, 10, "████"}} {
		if got := Bar(x.n, x.most, 4); got != x.want {
			t.Errorf("Bar(%d, %d, 4) = %q, want %q", x.n, x.most, got, x.want)
		}
	}
}
